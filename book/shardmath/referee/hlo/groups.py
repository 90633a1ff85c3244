"""Which devices communicate in a collective: HLO's replica groups as mesh axes.

HLO numbers devices as the mesh does, row-major: in {"X": 4, "Y": 2} device 5 is at
X = 2, Y = 1. A group is named after the axes along which its members differ.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain

from ...base.units import short_repr

Groups = tuple[tuple[int, ...], ...]

FORMS = re.compile(
    r"replica_groups=("
    r"\{\}|\{ *\{.*?\} *\}"
    r"|\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?"
    r"|mesh\[[^\]]*\](?:, device_ids=\(.*?\))? \{[^}]*\})"
)


@lru_cache(maxsize=1024)
def groups(text: str, devices: int) -> Groups:
    """The groups of devices given by `text`, the value of `replica_groups=`.

    Args:
        text: lists ``{{0,1},{2,3}}``, an empty list ``{}`` (all devices), a reshaped
            count ``[2,2]<=[4]`` or ``[2,2]<=[2,2]T(1,0)``, or axes of the compiler's
            mesh ``mesh['a'=2,'b'=2] {'b'}``.
        devices: the number of devices that the program runs on.

    Raises:
        ValueError: the text has another form, or its groups do not have equal sizes or
            do not hold each device once.

    >>> groups("[2,4]<=[4,2]T(1,0)", 8)
    ((0, 2, 4, 6), (1, 3, 5, 7))
    >>> groups("mesh['a'=4,'b'=2] {'b'}", 8)
    ((0, 1), (2, 3), (4, 5), (6, 7))
    """
    if text == "{}":
        found = (tuple(range(devices)),)
    elif text.startswith("{"):
        found = tuple(_numbers(group) for group in _inner(text, r"\d+(?: *, *\d+)*"))
    elif text.startswith("mesh["):
        found = _by_axes(text, devices)
    elif match := re.fullmatch(r"\[([\d,]+)\]<=(\[.*)", text):
        shape = _numbers(match[1])
        if len(shape) != 2 or math.prod(shape) != devices:
            raise ValueError(
                f"{_shown(text)}: must hold each of {devices} devices once"
            )
        order = _iota(match[2], devices)
        count, size = shape
        found = tuple(tuple(order[i * size : (i + 1) * size]) for i in range(count))
    else:
        raise ValueError(f"{_shown(text)}: its form is unknown")
    if sorted(chain.from_iterable(found)) != list(range(devices)):
        raise ValueError(f"{_shown(text)}: must hold each of {devices} devices once")
    if len({len(group) for group in found}) != 1:
        raise ValueError(f"{_shown(text)}: must have groups of equal size")
    return found


def axes_of(found: Groups, mesh: Mapping[str, int]) -> tuple[str, ...]:
    """The axes along which members of a group differ, in the order of `mesh`.

    A group may be smaller than the product of the sizes of these axes.

    >>> axes_of(((0, 2, 4, 6), (1, 3, 5, 7)), {"X": 4, "Y": 2})
    ('X',)
    """
    return _differing([(group[0], d) for group in found for d in group], mesh)


def pairs(text: str, devices: int) -> tuple[tuple[int, int], ...]:
    """The value of `source_target_pairs=`, without sends of a device to itself.

    Args:
        text: such as ``{{0,1},{1,0}}``, with or without spaces.
        devices: the number of devices that the program runs on.

    Raises:
        ValueError: the text has another form, or a device does not exist, sends twice,
            or receives twice.

    >>> pairs("{{0,1}, {1, 0}, {2,2}}", devices=4)
    ((0, 1), (1, 0))
    """
    what = f"source_target_pairs={text:.80}"
    if re.fullmatch(r"\{ *\}", text):
        return ()
    both = [_numbers(pair) for pair in _inner(text, r"\d+ *, *\d+")]
    if not both:
        raise ValueError(f"{what}: its form is unknown")
    for ends in zip(*both, strict=True):
        if max(ends) >= devices or len(set(ends)) < len(ends):
            raise ValueError(
                f"{what}: must name each of {devices} devices at most once as source "
                "and once as target"
            )
    return tuple((source, target) for source, target in both if source != target)


def shift_of(
    moves: tuple[tuple[int, int], ...], mesh: Mapping[str, int]
) -> tuple[tuple[str, ...], int | None]:
    """Axes along which a permute sends, and its shift in places, or None.

    Several axes count as one ring of n devices, row-major. A shift is above −n/2 and at
    most n/2. The shift is None if devices send over different distances.

    >>> shift_of(pairs("{{0,2},{2,4},{4,6},{6,0}}", 8), {"X": 4, "Y": 2})
    (('X',), 1)
    >>> shift_of(pairs("{{0,3},{3,0}}", 4), {"X": 4})
    (('X',), None)
    """
    axes = _differing(moves, mesh)
    n = math.prod(mesh[axis] for axis in axes)
    places = [_place(axes, mesh, source, target) for source, target in moves]
    shifts = {(target - source) % n for source, target in places}
    if len(shifts) != 1:
        return axes, None
    (shift,) = shifts
    return axes, shift if shift <= n / 2 else shift - n


def _place(axes: tuple[str, ...], mesh: Mapping[str, int], *devices: int) -> list[int]:
    """Row-major place of each device along only `axes`."""
    places = [0] * len(devices)
    for axis, stride in _strides(mesh).items():
        if axis in axes:
            for i, device in enumerate(devices):
                places[i] = places[i] * mesh[axis] + device // stride % mesh[axis]
    return places


def _differing(moves, mesh: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(
        axis
        for axis, stride in _strides(mesh).items()
        if any(a // stride % mesh[axis] != b // stride % mesh[axis] for a, b in moves)
    )


def _strides(mesh: Mapping[str, int]) -> dict[str, int]:
    sizes = list(mesh.values())
    return {axis: math.prod(sizes[i + 1 :]) for i, axis in enumerate(mesh)}


def _inner(text: str, one: str) -> list[str]:
    """The contents of the inner braces of ``{{…},{…}}``; none for another form."""
    if not re.fullmatch(rf"\{{ *\{{ *{one} *\}}(?: *, *\{{ *{one} *\}})* *\}}", text):
        return []
    return re.findall(rf"\{{ *({one}) *\}}", text)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _shown(text: str) -> str:
    return f"replica_groups={text:.80}"


def _iota(text: str, devices: int) -> list[int]:
    """``[4,2]T(1,0)``: 0, 1, 2 … as a grid, transposed, and read row by row."""
    match = re.fullmatch(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
    shape = _numbers(match[1]) if match else ()
    order = _numbers(match[2]) if match and match[2] else tuple(range(len(shape)))
    if math.prod(shape) != devices or sorted(order) != list(range(len(shape))):
        raise ValueError(f"{text:.80}: must be a grid of {devices} devices")
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    found = [0]
    for axis in order:
        found = [base + i * strides[axis] for base in found for i in range(shape[axis])]
    return found


def _by_axes(text: str, devices: int) -> Groups:
    """``mesh['a'=4,'b'=2], device_ids=(…) {'b'}``; ``'a':(2)2`` is part of an axis."""
    mesh, _, named = text.rpartition(" ")
    sizes = {a: int(n) for a, n in re.findall(r"'([^']+)'=(\d+)", mesh)}
    if math.prod(sizes.values()) != devices:
        raise ValueError(f"{_shown(text)}: must be a mesh of {devices} devices")
    order: Sequence[int] = range(devices)
    if listed := re.search(r"device_ids=\((.*)\)$", mesh):
        listed = listed[1]
        order = _iota(listed, devices) if listed[0] == "[" else _numbers(listed)
    strides = _strides(sizes)
    digits = []  # (stride, size) of what varies inside a group
    for axis, outer, size in re.findall(r"'([^']+)'(?::\((\d+)\)(\d+))?", named):
        whole = sizes.get(axis, 0)
        outer, size = int(outer or 1), int(size or whole)
        if not outer or not size or whole % (outer * size):
            raise ValueError(
                f"{_shown(text)}: no axis {short_repr(axis)} that divides so"
            )
        digits.append((strides[axis] * (whole // (outer * size)), size))
    found = defaultdict(list)
    for place, device in enumerate(order):
        found[place - sum(place // s % n * s for s, n in digits)].append(device)
    return tuple(tuple(group) for group in found.values())
