"""Arrays from a line of the notation and a mesh; errors point at the wrong word."""

import contextlib
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from math import prod

from ..base.units import PRECISION_BYTES, flags, positive_int, short_repr, shortened
from .layout import Names, ShardedArray
from .machine import Machine, axes_of
from .notation import ArrayTerm, ArrayWord, MatmulLine, once

LARGEST = 1e150  # product of the sizes, so that floats can hold FLOPs and bytes
# As JAX and XLA print them.
_ALIASES = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "s8": "int8", "s4": "int4"}
_FORMAT = re.compile(r"(bf|fp|tf|f|int|s)\d+")


def bound(
    line: MatmulLine, mesh: Machine, dtype: str, sizes: dict
) -> tuple[ShardedArray, ...]:
    """The arrays of a line with their sizes, on their mesh."""
    terms = (*line.left, line.right) if line.right else line.left
    axes, known = axes_of(mesh), dict(zip(sizes, positive_int(**sizes), strict=True))
    if prod(known.values()) > LARGEST:
        raise ValueError(
            f"sizes = {short_repr(known)}: must have a product of at most {LARGEST:g}"
        )
    arrays = tuple(_array(term, axes, format_of(dtype), known) for term in terms)
    dims = list(dict.fromkeys(dim for array in arrays for dim in array.dims))
    for name in known.keys() - set(dims):
        raise ValueError(
            f"{shortened(name)} = {known[name]}: the line has no such dimension; it "
            f"has {shortened(', '.join(dims))}{_nearest(name, dims)}"
        )
    return arrays


def names(term: ArrayTerm) -> tuple[str, ...]:
    """The names of an array's dimensions."""
    return tuple(dim.name.text for dim in term.dims)


def format_of(text: object, word: ArrayWord | None = None) -> str:
    """The key of `PRECISION_BYTES` that `text` means; "f32" means "fp32"."""
    found = _ALIASES.get(text, text) if isinstance(text, str) else text
    if not isinstance(found, str) or found not in PRECISION_BYTES:
        known = ", ".join(PRECISION_BYTES)
        why = f"format {short_repr(text)}: must be one of {known}"
        raise word.error(why) if word else ValueError(why)
    return found


def axis_words(
    words: tuple[ArrayWord, ...], axes: dict[str, int]
) -> tuple[ArrayWord, ...]:
    """The axes of subscripts: one for a name in the mesh, otherwise one per letter.

    >>> [w.text for w in axis_words((ArrayWord("XY", "A[I_XY]", 4),), {"X": 2, "Y": 2})]
    ['X', 'Y']
    >>> axes = {"X": 2, "XY": 2}
    >>> [word.text for word in axis_words((ArrayWord("XY", "A[I_XY]", 4),), axes)]
    ['XY']
    """
    found: list[ArrayWord] = []
    for word in words:
        letters = [
            ArrayWord(c, word.line, word.at + n) for n, c in enumerate(word.text)
        ]
        if word.text in axes or not any(letter.text in axes for letter in letters):
            letters = [word]
        for axis in letters:
            if axis.text not in axes:
                mesh = ", ".join(f"{name} = {size}" for name, size in axes.items())
                raise axis.error(
                    f"mesh axis {shortened(axis.text)} is not in the mesh "
                    f"({shortened(mesh, 200) or 'no axes'})" + _nearest(axis.text, axes)
                )
        found += letters
    return tuple(found)


def named_axes(arrays: Sequence[ShardedArray]) -> Names:
    """The axes over which at least one array is split or partial, in mesh order."""
    used = {axis for array in arrays for axis in array.axes + array.unreduced}
    return tuple(name for name, _ in arrays[0].mesh if name in used)


def usable_axes(
    arrays: Sequence[ShardedArray], busy: Iterable[str] | bool = ()
) -> Names:
    """The named axes, and the unnamed ones that have several devices and are not busy.

    Raises:
        ValueError: a busy axis is not in the mesh, or an array names it.
    """
    mesh, named = dict(arrays[0].mesh), named_axes(arrays)
    with contextlib.suppress(ValueError):
        (busy,) = flags(busy=busy)
    if isinstance(busy, bool):
        busy = [axis for axis in mesh if axis not in named] if busy else ()
    if not isinstance(busy, Iterable) or getattr(busy, "shape", None) == ():
        known = ", ".join(mesh)
        raise ValueError(
            f"busy = {short_repr(busy)}: must be True, False or some of {known}"
        )
    # A string is one name, or several: "XY" is X and Y.
    busy = (busy,) if isinstance(busy, str) and busy in mesh else tuple(busy)
    for axis in busy:
        if not isinstance(axis, str) or axis not in mesh:
            raise ValueError(
                f"busy = {short_repr(axis)}: must be one of {', '.join(mesh)}"
            )
        if axis in named:
            raise ValueError(
                f"busy = {short_repr(axis)}: the line itself uses this axis"
            )
    return tuple(
        name
        for name, size in mesh.items()
        if name in named or (size > 1 and name not in busy)
    )


def _array(
    term: ArrayTerm, axes: dict[str, int], dtype: str, sizes: dict
) -> ShardedArray:
    placed = [axis_words(dim.axes, axes) for dim in term.dims]
    unreduced = axis_words(term.unreduced, axes)
    used = [axis for words in placed for axis in words]
    once([*used, *unreduced], "mesh axis {} is already in use in this array")
    for dim, words in zip(term.dims, placed, strict=True):
        name = dim.name.text
        if name not in sizes:
            raise dim.name.error(
                f"the size of {shortened(name)} is not given: pass {shortened(name)}=…"
                + _nearest(name, sizes.keys() - set(names(term)))
            )
        parts = prod(axes[axis.text] for axis in words)
        if sizes[name] % parts:
            over = " · ".join(f"|{axis.text}|" for axis in words)
            raise dim.name.error(
                f"{over} = {parts} does not divide {shortened(name)} = {sizes[name]}"
            )
    head = term.head.text
    formatted = _FORMAT.fullmatch(head) is not None
    sums = {axis.text for axis in unreduced}
    return ShardedArray(
        dims=names(term),
        sizes=tuple(sizes[name] for name in names(term)),
        placed=tuple(tuple(axis.text for axis in words) for words in placed),
        mesh=tuple(axes.items()),
        precision=format_of(head, term.head) if formatted else dtype,
        unreduced=tuple(name for name in axes if name in sums),
        name="" if formatted else head,
    )


def _nearest(name: str, known) -> str:
    """The end of a message with the most similar known name, if there is any."""
    by_lower = {other.lower(): other for other in known}
    found = get_close_matches(name.lower(), by_lower, n=1)
    return f"; did you mean {shortened(by_lower[found[0]])}?" if found else ""
