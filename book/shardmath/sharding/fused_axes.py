"""Neighbouring axes that no array tells apart, taken for one axis.

Six axes have 13,327 places in an array of two dimensions, five have 2,211. So a line
over many axes is searched with fewer: U and V are one axis if every array has V next
to U, or neither.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from ..hardware.mesh import Mesh
from .layout import Names, Placed, ShardedArray
from .reshard_step import Change

MOST_AXES = 5  # that are searched one by one; six can take a minute and a half


def runs_alike(arrays: Sequence[ShardedArray], usable: Names) -> dict[str, Names]:
    """Runs of `usable` axes to take for one each, by the first axis of a run.

    They are neighbours on the mesh, and each array has all of a run or nothing, in its
    order. Those that arrays name come first, the longest first. Of axes that are idle
    no more go together than it takes to leave `MOST_AXES`.
    """
    mesh = [axis for axis, _ in arrays[0].mesh]
    runs: list[Names] = []
    for axis in usable:
        last = runs[-1][-1] if runs else None
        near = last is not None and mesh.index(axis) == mesh.index(last) + 1
        if near and all(_together(last, axis, array) for array in arrays):
            runs[-1] = (*runs[-1], axis)
        else:
            runs.append((axis,))
    named = {axis for array in arrays for axis in (*array.axes, *array.unreduced)}
    found, more = {}, len(usable) - MOST_AXES
    for run in sorted(runs, key=lambda run: (run[0] not in named, -len(run))):
        taken = run if run[0] in named else run[: max(more, 0) + 1]
        if more > 0 and len(taken) > 1:
            found[taken[0]] = taken
            more -= len(taken) - 1
    return found


def _together(one: str, other: str, array: ShardedArray) -> bool:
    """Whether `other` stands next to `one` in `array`, or both are absent."""
    places = [*array.placed, array.unreduced]
    held = [axes for axes in places if one in axes or other in axes]
    return not held or (len(held) == 1 and (one, other) in pairwise(held[0]))


def fewer_axes(mesh: Mesh, runs: Mapping[str, Names]) -> Mesh:
    """`mesh` with each of `runs` as one axis of the name of its first."""
    rest = {axis for run in runs.values() for axis in run[1:]}
    return Mesh(
        mesh.network,
        {
            axis: mesh.size(runs.get(axis, (axis,)))
            for axis in mesh.axes
            if axis not in rest
        },
        mesh.blocks,
    )


def short(placed: Placed, less: Collection[str]) -> Placed:
    """Where axes stand, without all of `less`."""
    return tuple(tuple(axis for axis in axes if axis not in less) for axes in placed)


def fused(
    array: ShardedArray, runs: Mapping[str, Names], less: Collection[str]
) -> ShardedArray:
    """`array` on a mesh on which each of `runs` is one axis, without all of `less`."""
    mesh = (
        (name, array.ways(runs[name]) if name in runs else size)
        for name, size in array.mesh
        if name not in less
    )
    return replace(
        array,
        placed=short(array.placed, less),
        unreduced=short((array.unreduced,), less)[0],
        mesh=tuple(mesh),
    )


def spelt_array(
    one: ShardedArray, array: ShardedArray, runs: Mapping[str, Names]
) -> ShardedArray:
    """`array` placed as `one` is on such a mesh."""
    sums = _axes(one.unreduced, runs)
    in_order = tuple(name for name, _ in array.mesh if name in sums)
    return array.moved(tuple(_axes(axes, runs) for axes in one.placed), in_order)


def spelt(step: Change, array: ShardedArray, runs: Mapping[str, Names]) -> Change:
    """A step on such a mesh, on that of `array`."""
    over = _axes(step.axes, runs)
    if step.op == "all_reduce":
        over = tuple(name for name, _ in array.mesh if name in over)
    before, after = (spelt_array(x, array, runs) for x in (step.before, step.after))
    return Change(before, after, step.op, over)


def _axes(some: Names, runs: Mapping[str, Names]) -> Names:
    return tuple(a for axis in some for a in runs.get(axis, (axis,)))
