"""Mesh axes as nested boxes, each with its links and its traffic in a step."""

from collections.abc import Iterator, Mapping

from ...base.units import short_repr, show
from ...collectives import price
from ...hardware.mesh import Mesh
from ...training import Step
from .. import shapes
from ..labels import text_width
from ..picture import WIDEST, Picture, picture
from ..theme import hue

EDGE, INSET, HEAD, BEHIND = 4, 9, 48, 3  # of a box: its lines of words, its shadow
CHIP, MOST = 18, 8  # side of a chip, and how many are drawn


def nesting(step: Step, words: Mapping[str, str]) -> Picture:
    """The axes of a mesh, in which a box is one of the parts along an axis.

    A box says how many parts there are, which links join them, and how many bytes a
    chip sends along the axis in one step, with the time that this takes at full rate.
    Traffic over two axes together is counted on the outer one. The chips of the
    innermost axis are drawn one by one, but at most eight.

    Args:
        step: its mesh must be a `Mesh` of known chips.
        words: axis → what it is for, such as ``{"Y": "tensor"}``.

    Raises:
        ValueError: the mesh has no chips, an axis has no words, or words are too long.

    >>> from shardmath.hardware.chips import H100
    >>> from shardmath.hardware.networks import Cluster, NVLinkDomain
    >>> from shardmath.training import combine, fsdp, step, tensor
    >>> from shardmath.transformer import LLAMA_3_8B
    >>> mesh = Mesh(Cluster(NVLinkDomain(H100), 4), {"X": 4, "Y": 8})
    >>> one = step(combine(fsdp("X"), tensor("Y")), LLAMA_3_8B, mesh, 4, 4096,
    ...            attention="causal")
    >>> nesting(one, {"X": "FSDP", "Y": "tensor"}).desc[:71]
    'Outermost X, 4 parts, FSDP: leaf; a chip sends 4.32 GB a step, 86.4 ms.'
    """
    if not isinstance(step.mesh, Mesh):
        raise ValueError(
            f"mesh = {short_repr(step.mesh)}: must be a `Mesh` of known chips"
        )
    axes = [axis for axis, size in step.mesh.axes.items() if size > 1]
    for axis in axes:
        if axis not in words:
            raise ValueError(f"words = {dict(words)!r}: must say what axis {axis} is")
    levels = {axis: step.mesh.binding(axis).level for axis in axes}
    kinds = list(dict.fromkeys(levels.values()))
    lines = {axis: _lines(step, axis, levels[axis], words[axis]) for axis in axes}
    for depth, axis in enumerate(axes):
        room = WIDEST - 2 * (EDGE + INSET * depth) - 16
        for n, line in enumerate(lines[axis]):
            if text_width(line, bold=n == 0) > room:
                raise ValueError(f"{line!r} is wider than its box")
    said = " Inside it ".join(
        f"{axis}, {step.mesh.axes[axis]} parts, {words[axis]}: {lines[axis][1]}."
        for axis in axes
    )
    desc = f"Outermost {said} Each box stands for one part of its axis."
    title = f"{step.model.name} on {step.mesh.network.name}"
    colours = {axis: hue(kinds.index(levels[axis])) for axis in axes}
    high = 2 * EDGE + (HEAD + INSET) * len(axes) + CHIP + BEHIND
    parts = _boxes(step.mesh, axes, lines, colours, high)
    return picture(title, desc, shapes.framed(title, desc, parts, WIDEST, high))


def _lines(step: Step, axis: str, level: str, words: str) -> tuple[str, str]:
    """What stands in the head of a box."""
    moved = [c for c in step.collectives if c.axes[:1] == (axis,)]
    sent = sum(one.total_sent for one in moved)
    seconds = sum(price(one, step.mesh).lower for one in moved)
    first = f"{axis} = {step.mesh.axes[axis]:,}: {words}"
    if not moved:
        return first, f"{level}; nothing moves"
    took = f"a chip sends {show(sent, 'bytes')} a step, {show(seconds, 's')}"
    return first, f"{level}; {took}"


def _boxes(
    mesh: Mesh,
    axes: list[str],
    lines: Mapping[str, tuple[str, str]],
    colours: Mapping[str, str],
    high: float,
) -> Iterator[str]:
    left, top, right, bottom = EDGE, EDGE, WIDEST - EDGE - BEHIND, high - EDGE
    for axis in axes:
        for shift in (BEHIND, 0):  # a second box behind: there are more of them
            ends = left + shift, top + shift, right + shift, bottom - BEHIND + shift
            yield shapes.box(*ends, colours[axis], fill=0 if shift else 0.06, edge=0.9)
        name, rest = lines[axis]
        yield shapes.written(left + 8, top + 18, name, bold=True)
        yield shapes.written(left + 8, top + 38, rest)
        left, right = left + INSET, right - INSET
        top, bottom = top + HEAD, bottom - INSET
    count = mesh.axes[axes[-1]]
    for n in range(min(count, MOST)):
        x = left + n * (CHIP + 8)
        yield shapes.box(x, top, x + CHIP, top + CHIP, colours[axes[-1]], fill=0.35)
    if count > MOST:
        x = left + MOST * (CHIP + 8)
        yield shapes.written(x, top + 14, f"… {count} chips")
    else:
        x = left + count * (CHIP + 8)
        yield shapes.written(x, top + 14, f"{count} chips")
