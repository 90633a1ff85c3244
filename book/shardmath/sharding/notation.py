"""The notation of sharded arrays, read from text: ``A[I_X, J] · B[J, K] -> C[I_X, K]``.

    line  = array [ "·" array ] [ "->" array ]      "·_J" names what is contracted
    array = [ name ] "[" dim { "," dim } "]" [ "{U_" axes "}" ]
    dim   = name [ "_" axes ]
    axes  = name | "{" name { "," name } "}"        major first

A name consists of letters and digits and, in braces, also "_". "*" and "@" may be
written for "·", and "→" for "->". The mesh decides what a subscript means
(`bind_axes`). The name of a mesh axis means that axis, as in `I_data`. In any other
name, each letter is an axis, so `I_XY` is `I_{X,Y}`.

Order matters. `A[I_XY]` cuts the rows over X first and then each part over Y; `A[I_YX]`
starts with Y. Both give blocks of the same size, but on different devices.

Every word keeps its place in the line, so an error can point at the wrong character.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ..base.units import short_repr, shortened

_TOKEN = re.compile(r"[^\W\d_][^\W_]*|\d+|->|→|\S")
_NAME = re.compile(r"[^\W\d_][^\W_]*")
_SHOWN = 60  # characters before the wrong word and from it on, if a line is long
_TIMES, _ARROW = ("·", "*", "@"), ("->", "→")


@dataclass(frozen=True)
class ArrayWord:
    """A piece of a line, and its position."""

    text: str
    line: str
    at: int

    def error(self, why: str) -> ValueError:
        """An error that shows the line with a caret under this word.

        >>> print(ArrayWord("Z", "A[I_Z]", 4).error("no such axis"))
        no such axis
            A[I_Z]
                ^
        """
        before, after = self.line[: self.at], self.line[self.at :]
        if len(self.line) > 2 * _SHOWN:  # cut on both sides
            before = f"…{before[-_SHOWN:]}" if len(before) > _SHOWN else before
            after = shortened(after, _SHOWN)
        carets = "^" * min(max(len(self.text), 1), max(len(after), 1))
        return ValueError(
            f"{why}\n    {before}{after}\n    {' ' * len(before)}{carets}"
        )


@dataclass(frozen=True)
class Dim:
    """One dimension of an array; `axes` are its subscripts as written."""

    name: ArrayWord
    axes: tuple[ArrayWord, ...] = ()


@dataclass(frozen=True)
class ArrayTerm:
    """One array of a line; `head` is the name or format before the bracket."""

    head: ArrayWord
    dims: tuple[Dim, ...]
    unreduced: tuple[ArrayWord, ...] = ()

    def dim(self, name: str) -> Dim:
        return next(d for d in self.dims if d.name.text == name)


@dataclass(frozen=True)
class MatmulLine:
    """The arrays left and right of the arrow; `over` is the subscript of "·"."""

    left: tuple[ArrayTerm, ...]
    right: ArrayTerm | None
    end: ArrayWord
    over: ArrayWord | None = None


def parse(text: str) -> MatmulLine:
    """`text` as a MatmulLine.

    Raises:
        ValueError: `text` is not a string or not in the grammar, or a dimension is
            twice in an array; the message has a caret under the wrong character.

    >>> line = parse("A[I_{data,model}, J] · B[J, K] -> C[I, K]")
    >>> [axis.text for axis in line.left[0].dims[0].axes]
    ['data', 'model']
    """
    if not isinstance(text, str):
        raise ValueError(
            f"text = {short_repr(text)}: must be a line such as 'A[I_X, J]'"
        )
    line = text.replace("\n", " ").replace("\t", " ")
    words = [ArrayWord(m[0], line, m.start()) for m in _TOKEN.finditer(line)]
    reader = _NotationReader(words, ArrayWord("", line, len(line.rstrip())))
    terms, over = [_term(reader)], None
    if reader.take(*_TIMES):
        if reader.take("_"):
            over = reader.name("a dimension to contract")
        terms.append(_term(reader))
    right = _term(reader) if reader.take(*_ARROW) else None
    if reader.left:
        raise reader.next.error(
            f"{short_repr(reader.next.text)} is not expected here; write '·', '*' or "
            "'@' between two arrays for their product, or '->' for a change"
        )
    return MatmulLine(tuple(terms), right, reader.end, over)


class _NotationReader:
    """The words that have not been read yet."""

    def __init__(self, words: Iterable[ArrayWord], end: ArrayWord):
        self.left = list(words)
        self.end = end

    @property
    def next(self) -> ArrayWord:
        return self.left[0] if self.left else self.end

    def take(self, *texts: str) -> ArrayWord | None:
        """The next word if it is one of `texts`."""
        return self.left.pop(0) if self.next.text in texts else None

    def need(self, text: str) -> ArrayWord:
        found = self.take(text)
        if found is None:
            raise self.next.error(f"{text!r} is expected here")
        return found

    def name(self, what: str) -> ArrayWord:
        if not _NAME.fullmatch(self.next.text):
            raise self.next.error(f"{what} is expected here, such as J")
        return self.left.pop(0)


def _term(reader: _NotationReader) -> ArrayTerm:
    start = reader.next
    named = _NAME.fullmatch(start.text) is not None
    head = reader.left.pop(0) if named else ArrayWord("", start.line, start.at)
    reader.need("[")
    dims = [_dim(reader)]
    while reader.take(","):
        dims.append(_dim(reader))
    if not reader.take("]"):
        raise reader.next.error("',' or ']' is expected here")
    unreduced: tuple[ArrayWord, ...] = ()
    if reader.take("{"):
        reader.need("U")
        reader.need("_")
        unreduced = _axes(reader)
        reader.need("}")
    once([d.name for d in dims], "dimension {} is already in this array")
    return ArrayTerm(head, tuple(dims), unreduced)


def _dim(reader: _NotationReader) -> Dim:
    name = reader.name("a dimension")
    return Dim(name, _axes(reader) if reader.take("_") else ())


def _axes(reader: _NotationReader) -> tuple[ArrayWord, ...]:
    if not reader.take("{"):
        found = [reader.name("a mesh axis")]
        if reader.next.text == "_":
            raise reader.next.error("an axis with '_' in its name must be in braces")
        return tuple(found)
    found = [_braced(reader)]
    while reader.take(","):
        found.append(_braced(reader))
    if not reader.take("}"):
        raise reader.next.error("',' or '}' is expected here")
    return tuple(found)


def _braced(reader: _NotationReader) -> ArrayWord:
    """A name that may have "_" in it."""
    first = word = reader.name("a mesh axis")
    text = word.text
    while reader.left and reader.next.at == word.at + len(word.text):
        if reader.next.text in ("}", ",", "]"):
            break
        word = reader.left.pop(0)
        if not re.fullmatch(r"\w+", word.text):
            raise word.error(
                f"{short_repr(word.text)} cannot be in the name of a mesh axis"
            )
        text += word.text
    return ArrayWord(text, first.line, first.at)


def subscript(axes: Iterable[str], names: Iterable[str] = ()) -> str:
    """`axes` as they are written after "_"; `names` are all axes of the mesh.

    >>> subscript(("X", "Y")), subscript(("data",)), subscript(("data", "X"))
    ('XY', 'data', '{data,X}')
    """
    axes = tuple(axes)
    together = "".join(axes)
    single = len(axes) == 1 and "_" not in together
    letters = all(len(axis) == 1 for axis in axes) and together not in tuple(names)
    return together if single or letters else f"{{{','.join(axes)}}}"


def once(words: Iterable[ArrayWord], why: str) -> None:
    """Raise at the first word that is repeated."""
    seen = set()
    for word in words:
        if word.text in seen:
            raise word.error(why.format(shortened(word.text)))
        seen.add(word.text)
