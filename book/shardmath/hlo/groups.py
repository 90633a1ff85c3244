"""Who talks to whom in a collective: HLO's replica groups, as axes of a mesh.

HLO numbers devices as the mesh does, row-major: in {"X": 4, "Y": 2} device 5 is at
X = 2, Y = 1. A group is named by the axes along which its members differ.
"""

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain

Groups = tuple[tuple[int, ...], ...]
Axes = tuple[str, ...]

FORMS = re.compile(
    r"replica_groups=("
    r"\{\}|\{\{.*?\}\}"
    r"|\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?"
    r"|mesh\[[^\]]*\](?:, device_ids=\(.*?\))? \{[^}]*\})"
)


@lru_cache(maxsize=1024)
def groups(text: str, devices: int) -> Groups:
    """The groups that `text`, the value of `replica_groups=`, stands for.

    Args:
        text: braces ``{{0,1},{2,3}}``, none ``{}`` (all devices), counted
            ``[2,2]<=[4]`` or ``[2,2]<=[2,2]T(1,0)``, or by axes of the compiler's own
            mesh ``mesh['a'=2,'b'=2] {'b'}``.
        devices: how many devices the program runs on.

    Raises:
        ValueError: another form, or groups that do not hold each device once.

    >>> groups("[2,4]<=[4,2]T(1,0)", 8)
    ((0, 2, 4, 6), (1, 3, 5, 7))
    >>> groups("mesh['a'=4,'b'=2] {'b'}", 8)
    ((0, 1), (2, 3), (4, 5), (6, 7))
    """
    if text == "{}":
        found = (tuple(range(devices)),)
    elif text.startswith("{{"):
        found = tuple(_numbers(group) for group in text[2:-2].split("},{"))
    elif text.startswith("mesh["):
        found = _by_axes(text)
    elif match := re.fullmatch(r"\[([\d,]+)\]<=\[(.*)", text):
        count, size = _numbers(match[1])
        order = _iota("[" + match[2])
        found = tuple(tuple(order[i * size : (i + 1) * size]) for i in range(count))
    else:
        raise ValueError(f"replica_groups={text}: not a form that is known")
    if sorted(chain.from_iterable(found)) != list(range(devices)):
        raise ValueError(
            f"replica_groups={text}: must hold each of {devices} devices once"
        )
    if len({len(group) for group in found}) != 1:
        raise ValueError(f"replica_groups={text}: groups of unequal size")
    return found


def axes_of(found: Groups, mesh: Mapping[str, int]) -> Axes:
    """Axes of `mesh`, in its order, along which members of a group differ.

    Groups smaller than the product of these axes are parts of them.

    >>> axes_of(((0, 2, 4, 6), (1, 3, 5, 7)), {"X": 4, "Y": 2})
    ('X',)
    """
    return _differing([(group[0], d) for group in found for d in group], mesh)


def pairs(text: str) -> tuple[tuple[int, int], ...]:
    """The value of `source_target_pairs=`, sends of a device to itself left out.

    >>> pairs("{{0,1},{1,0},{2,2}}")
    ((0, 1), (1, 0))
    """
    both = ((int(a), int(b)) for a, b in re.findall(r"\{(\d+),(\d+)\}", text))
    return tuple((source, target) for source, target in both if source != target)


def shift_of(
    moves: tuple[tuple[int, int], ...], mesh: Mapping[str, int]
) -> tuple[Axes, int | None]:
    """Axes that a permute crosses, and the ring shift along them where there is one.

    Several axes count as one ring, row-major. A shift is between −n/2 and n/2; `None`
    where devices move by different amounts.

    >>> shift_of(pairs("{{0,2},{2,4},{4,6},{6,0}}"), {"X": 4, "Y": 2})
    (('X',), 1)
    >>> shift_of(pairs("{{0,3},{3,0}}"), {"X": 4})
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


def _place(axes: Axes, mesh: Mapping[str, int], *devices: int) -> list[int]:
    """Row-major place of each device on `axes` alone."""
    places = [0] * len(devices)
    for axis, stride in _strides(mesh).items():
        if axis in axes:
            for i, device in enumerate(devices):
                places[i] = places[i] * mesh[axis] + device // stride % mesh[axis]
    return places


def _differing(moves, mesh: Mapping[str, int]) -> Axes:
    return tuple(
        axis
        for axis, stride in _strides(mesh).items()
        if any(a // stride % mesh[axis] != b // stride % mesh[axis] for a, b in moves)
    )


def _strides(mesh: Mapping[str, int]) -> dict[str, int]:
    sizes = list(mesh.values())
    return {axis: math.prod(sizes[i + 1 :]) for i, axis in enumerate(mesh)}


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _iota(text: str) -> list[int]:
    """``[4,2]T(1,0)``: 0, 1, 2 … as a grid, transposed, read row by row."""
    dims, _, turn = text[1:].partition("]")
    shape = _numbers(dims)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    order = _numbers(turn[2:-1]) if turn else range(len(shape))
    found = [0]
    for axis in order:
        found = [base + i * strides[axis] for base in found for i in range(shape[axis])]
    return found


def _by_axes(text: str) -> Groups:
    """``mesh['a'=4,'b'=2], device_ids=(…) {'b'}``; ``'a':(2)2`` is part of an axis."""
    mesh, _, named = text.rpartition(" ")
    sizes = {a: int(n) for a, n in re.findall(r"'([^']+)'=(\d+)", mesh)}
    order = list(range(math.prod(sizes.values())))
    if listed := re.search(r"device_ids=\((.*)\)$", mesh):
        listed = listed[1]
        order = _iota(listed) if listed[0] == "[" else list(_numbers(listed))
    strides = _strides(sizes)
    digits = []  # (stride, size) of what varies inside a group
    for axis, outer, size in re.findall(r"'([^']+)'(?::\((\d+)\)(\d+))?", named):
        size = int(size or sizes[axis])
        rest = sizes[axis] // (int(outer or 1) * size)
        digits.append((strides[axis] * rest, size))
    found = defaultdict(list)
    for place, device in enumerate(order):
        found[place - sum(place // s % n * s for s, n in digits)].append(device)
    return tuple(tuple(group) for group in found.values())
