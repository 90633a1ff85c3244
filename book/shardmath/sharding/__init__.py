"""Sharded arrays, matmuls and reshardings from a line of the book's notation.

>>> print(array("bf16[B_X, D]", mesh={"X": 4}, B=1024, D=4096))
bf16[B_X, D]: [1024, 4096] in bf16, 8.39 MB; each of 4 devices holds [256, 4096], 2.1 MB
>>> print(contract("A[I, J_X] · B[J_X, K] -> C[I, K]", {"X": 4}, I=64, J=32, K=16))
A[I, J_X] · B[J_X, K] -> C[I, K]
case 3 over X: both operands are split along the contraction: partial sums to add up
  1. each multiplies A[I, J_X] · B[J_X, K] -> C[I, K]{U_X}
  2. AllReduce_X: C[I, K]{U_X} -> C[I, K], 3.07 kB sent
"""

import re
from collections.abc import Mapping
from math import prod
from numbers import Integral

from ..units import PRECISION_BYTES
from .contraction import Contraction
from .layout import ShardedArray
from .notation import Line, Term, Word, parse
from .plan import candidates
from .resharding import Resharding, route

# As JAX and XLA print them.
_ALIASES = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "s8": "int8", "s4": "int4"}
_FORMAT = re.compile(r"(bf|fp|tf|f|int|s)\d+")


def array(text: str, mesh=None, dtype: str = "bf16", **sizes: int) -> ShardedArray:
    """One array in the notation, such as ``"bf16[B_X, D]"`` or ``"A[I, J_XY]{U_Z}"``.

    Args:
        text: the array; before the bracket its name or the format of a value.
        mesh: a `Mesh`, or sizes by axis name in device order (row-major).
        dtype: format of a value where the text names none.
        sizes: the size of every dimension.

    Returns:
        A ShardedArray. It knows its blocks, bytes and copies, and draws itself.

    Raises:
        ValueError: points at the character that is wrong: not in the notation, an axis
            that the mesh lacks or that is used twice, a size that is missing or does
            not divide.

    >>> array("A[I_XY, J]", mesh={"X": 2, "Y": 4}, I=64, J=3).local_shape
    (8, 3)
    """
    line = parse(text)
    if len(line.left) > 1:
        raise line.left[1].head.error("one array is expected; `contract` takes two")
    if line.right:
        raise line.right.head.error("one array is expected; `reshard` takes a change")
    return _bound(line, mesh, dtype, sizes)[0]


def reshard(text: str, mesh=None, dtype: str = "bf16", **sizes: int) -> Resharding:
    """A change of sharding such as ``"A[I_X, J] -> A[I, J_X]"`` (an AllToAll).

    Args:
        text: the array before and after, its dimensions in the same order.
        mesh, dtype, sizes: as for `array`; a `Mesh` also gives the time.

    Returns:
        A Resharding: the steps that send the fewest bytes per device. Axes that go away
        from two dimensions are gathered one dimension after the other, which is how a
        program says it; one AllGather over both axes at once sends as many bytes and
        may take less time on a torus.

    Raises:
        ValueError: as for `array`; other dimensions after than before, or partial sums
            that were not there before.

    >>> print(reshard("A[I_X, J] -> A[I, J_X]", {"X": 4}, I=8, J=8))
    A[I_X, J] -> A[I, J_X]: 24 bytes sent per device
      AllToAll_X: A[I_X, J] -> A[I, J_X], 24 bytes sent
    """
    line = parse(text)
    if len(line.left) > 1:
        raise line.left[1].head.error("one array is expected before the arrow")
    if line.right is None:
        raise line.end.error("'->' and the array as it shall be are expected")
    source, target = _bound(line, mesh, dtype, sizes)
    before, after = (_names(term) for term in (line.left[0], line.right))
    if before != after:
        raise line.right.head.error(
            f"dimensions {', '.join(after)}: must be {', '.join(before)}, in this order"
        )
    for axis in line.right.unreduced:
        if axis.text not in source.unreduced:
            raise axis.error(f"no partial sums over {axis.text} before the arrow")
    if (source.name, source.precision) != (target.name, target.precision):
        raise line.right.head.error(f"must be the same array: {source.notation}")
    steps = route(source, target)
    return Resharding(source, target, steps, _priced(mesh))


def contract(text: str, mesh=None, dtype: str = "bf16", **sizes: int) -> Contraction:
    """A sharded matmul such as ``"A[I, J_X] · B[J_X, K] -> C[I, K_X]"``.

    Dimensions of both operands that the result lacks are summed over; those it has are
    batch dimensions. FLOPs, bytes and times are those of one device.

    Args:
        text: two operands and the result; the sharding of each is taken as given.
        mesh: a `Mesh` (its chips give times), or sizes by axis name in device order.
        dtype: of the multiplication, and of each array whose text names no format.
            Partial sums travel in the format of the result.
        sizes: the size of every dimension.

    Returns:
        A Contraction: `case`, `collectives`, `flops`, `estimate`, all `plans`, the
        `best` of them, and `crossings("B")` where another one becomes the best.

    Raises:
        ValueError: as for `array`; a dimension that is neither in the other operand nor
            in the result, operands with nothing to contract or with partial sums.

    >>> op = contract("A[I, J_X] · B[J, K] -> C[I, K]", {"X": 4}, I=64, J=32, K=16)
    >>> op.case, [c.op for c in op.collectives]
    (2, ['all_gather'])
    """
    line = parse(text)
    if len(line.left) < 2:
        at = line.right.head if line.right else line.end
        raise at.error("'·' and a second operand are expected before this")
    if line.right is None:
        raise line.end.error("'->' and the result with its sharding are expected")
    _check_dims(line)
    a, b, c = _bound(line, mesh, dtype, sizes)
    plans = candidates(a, b, c)
    if not plans:  # only partial sums can be impossible: the rest is split as it stands
        raise line.right.unreduced[0].error(
            f"{''.join(c.unreduced)} does not divide a dimension that is summed over"
        )
    return Contraction(a, b, c, plans, _priced(mesh), _format(dtype))


def _bound(line: Line, mesh, dtype: str, sizes: dict) -> tuple[ShardedArray, ...]:
    """The arrays of a line with their sizes, on their mesh."""
    terms = (*line.left, line.right) if line.right else line.left
    found = getattr(mesh, "axes", {} if mesh is None else mesh)
    if not isinstance(found, Mapping):
        raise ValueError(
            f"mesh = {mesh!r}: must be a `Mesh`, or sizes as in {{'X': 4}}"
        )
    axes = {str(name): _whole(name, size) for name, size in found.items()}
    whole = {name: _whole(name, size) for name, size in sizes.items()}
    arrays = tuple(_array(term, axes, _format(dtype), whole) for term in terms)
    for name in whole.keys() - {dim for found in arrays for dim in found.dims}:
        raise ValueError(f"{name} = {whole[name]}: the line has no such dimension")
    return arrays


def _array(term: Term, axes: dict[str, int], dtype: str, sizes: dict) -> ShardedArray:
    """One array; every fault is shown at its place in the line."""
    used = [axis for dim in term.dims for axis in dim.axes]
    for axis in (*used, *term.unreduced):
        if axis.text not in axes:
            mesh = ", ".join(f"{name} = {size}" for name, size in axes.items())
            raise axis.error(f"mesh axis {axis.text} is not in the mesh ({mesh})")
    for dim in term.dims:
        name = dim.name.text
        if name not in sizes:
            raise dim.name.error(f"the size of {name} is not given: pass {name}=…")
        parts = prod(axes[axis.text] for axis in dim.axes)
        if sizes[name] % parts:
            over = " · ".join(f"|{axis.text}|" for axis in dim.axes)
            raise dim.name.error(
                f"{over} = {parts} does not divide {name} = {sizes[name]}"
            )
    head = term.head.text
    formatted = _FORMAT.fullmatch(head) is not None
    unreduced = {axis.text for axis in term.unreduced}
    return ShardedArray(
        dims=_names(term),
        sizes=tuple(sizes[name] for name in _names(term)),
        placed=tuple(tuple(axis.text for axis in dim.axes) for dim in term.dims),
        mesh=tuple(axes.items()),
        precision=_format(head, term.head) if formatted else dtype,
        unreduced=tuple(name for name in axes if name in unreduced),
        name="" if formatted else head,
    )


def _check_dims(line: Line) -> None:
    """Does the line say a matmul?"""
    (a, b), c = line.left, line.right
    for operand, other in ((a, b), (b, a)):
        for dim in operand.dims:
            if dim.name.text not in _names(other) + _names(c):
                raise dim.name.error(
                    f"{dim.name.text} is neither in the other operand nor in the result"
                )
        for axis in operand.unreduced:
            raise axis.error("an operand must be added up before it is multiplied")
    for dim in c.dims:
        if dim.name.text not in _names(a) + _names(b):
            raise dim.name.error(f"{dim.name.text} is in neither operand")
    summed = [n for n in _names(a) if n in _names(b) and n not in _names(c)]
    if not summed:
        raise b.head.error("the operands share no dimension that the result lacks")
    if line.over and line.over.text not in (*summed, "".join(summed)):
        raise line.over.error(
            f"{line.over.text} is not summed over; what is: {', '.join(summed)}"
        )


def _names(term: Term) -> tuple[str, ...]:
    return tuple(dim.name.text for dim in term.dims)


def _format(text: str, word: Word | None = None) -> str:
    found = _ALIASES.get(text, text)
    if found not in PRECISION_BYTES:
        why = f"format {text!r}: must be one of {', '.join(PRECISION_BYTES)}"
        raise word.error(why) if word else ValueError(why)
    return found


def _whole(name: str, size: object) -> int:
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ValueError(f"{name} = {size!r}: must be a whole number from 1")
    return int(size)


def _priced(mesh):
    """The mesh if it can price, that is, if it is more than a dict of sizes."""
    return None if mesh is None or isinstance(mesh, Mapping) else mesh
