"""Neighbouring axes that are placed alike in all arrays, treated as one axis.

Six axes can be placed on an array of two dimensions in 11,743 ways, and seven axes in
95,901 ways. So a line over seven axes is searched with fewer axes: U and V become one
axis if every array has V right after U or has neither.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from ..hardware.mesh import Mesh
from .layout import Names, Placed, ShardedArray
from .reshard_step import Change

MOST_AXES = 6  # that are all searched separately, in about ten seconds
FEW_AXES = 5  # more axes than `MOST_AXES` are joined until so few are left


def runs_to_search(
    arrays: Sequence[ShardedArray], usable: Names, mesh: Mesh | None = None
) -> dict[str, Names]:
    """Runs of axes that a search treats as one, if there are more than `MOST_AXES`.

    Args:
        arrays: the arrays of one line.
        usable: the axes that may be moved.
        mesh: an axis with a block on it is in no run.

    Raises:
        ValueError: more than `MOST_AXES` axes are left, whose search would take minutes
            and gigabytes.
    """
    if len(usable) <= MOST_AXES:
        return {}
    blocks = set() if mesh is None else set(mesh.blocks)
    runs = {
        axis: run
        for axis, run in runs_alike(arrays, usable).items()
        if not blocks & set(run)
    }
    if len(usable) - sum(len(run) - 1 for run in runs.values()) > MOST_AXES:
        raise ValueError(
            f"{len(usable)} axes ({', '.join(usable)}): a search goes over at most "
            f"{MOST_AXES}, or over more if neighbours are placed alike in all arrays; "
            "merge axes of the mesh, or say which of them are busy"
        )
    return runs


def runs_alike(arrays: Sequence[ShardedArray], usable: Names) -> dict[str, Names]:
    """Runs of `usable` axes, each to be treated as one axis, keyed by its first axis.

    The axes of a run are neighbours on the mesh, and each array has either all of them
    in this order or none. Runs that arrays name come first, starting with the longest.
    Idle axes are joined only until `FEW_AXES` are left.
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
    found, more = {}, len(usable) - FEW_AXES
    for run in sorted(runs, key=lambda run: (run[0] not in named, -len(run))):
        taken = run if run[0] in named else run[: max(more, 0) + 1]
        if more > 0 and len(taken) > 1:
            found[taken[0]] = taken
            more -= len(taken) - 1
    return found


def _together(one: str, other: str, array: ShardedArray) -> bool:
    """Whether `other` follows `one` in `array`, or both are absent."""
    places = [*array.placed, array.unreduced]
    held = [axes for axes in places if one in axes or other in axes]
    return not held or (len(held) == 1 and (one, other) in pairwise(held[0]))


def fewer_axes(mesh: Mesh, runs: Mapping[str, Names]) -> Mesh:
    """`mesh` with the axes of each run merged into one, named after the first axis."""
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
    """`placed` without the axes of `less`."""
    return tuple(tuple(axis for axis in axes if axis not in less) for axes in placed)


def fused(
    array: ShardedArray, runs: Mapping[str, Names], less: Collection[str]
) -> ShardedArray:
    """`array` on a mesh with each of `runs` as one axis and without axes of `less`."""
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


def with_fewer_axes(
    arrays: Sequence[ShardedArray], axes: Names, runs: Mapping[str, Names]
) -> tuple[tuple[ShardedArray, ...], Names]:
    """The arrays on a mesh with each of `runs` as one axis, and the rest of `axes`."""
    less = {axis for run in runs.values() for axis in run[1:]}
    left = tuple(axis for axis in axes if axis not in less)
    return tuple(fused(array, runs, less) for array in arrays), left


def spelt_array(
    one: ShardedArray, array: ShardedArray, runs: Mapping[str, Names]
) -> ShardedArray:
    """`array` placed like `one`, which is on a mesh with fused axes."""
    sums = _axes(one.unreduced, runs)
    in_order = tuple(name for name, _ in array.mesh if name in sums)
    return array.moved(tuple(_axes(axes, runs) for axes in one.placed), in_order)


def spelt(step: Change, array: ShardedArray, runs: Mapping[str, Names]) -> Change:
    """A step on a mesh with fused axes, translated to the mesh of `array`."""
    over = _axes(step.axes, runs)
    if step.op == "all_reduce":
        over = tuple(name for name, _ in array.mesh if name in over)
    before, after = (spelt_array(x, array, runs) for x in (step.before, step.after))
    return Change(before, after, step.op, over)


def _axes(some: Names, runs: Mapping[str, Names]) -> Names:
    return tuple(a for axis in some for a in runs.get(axis, (axis,)))
