"""Results as a table: aligned text in a terminal, an HTML table on a page.

`compare` takes a thing for each row, and what each column shows of it. `table` takes
finished cells.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from .units import number, short_repr, shortened, show, takes_prefix, text

MISSING = "–"


class Absent(ValueError):  # noqa: N818, no error where a table shows a dash
    """Raised if nobody states such a value for a row; `compare` then shows –.

    Any other error in a column is a mistake, which `compare` does not catch.
    """


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; columns of numbers are aligned to the right.

    `right` marks the columns that are aligned to the right. By default, these are the
    columns in which every cell begins like a number.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "header", _cells("header", self.header))
        if isinstance(self.rows, str) or not isinstance(self.rows, Iterable):
            raise ValueError(f"rows = {short_repr(self.rows)}: must be a list of rows")
        rows = tuple(_cells(f"rows[{n}]", row) for n, row in enumerate(self.rows))
        object.__setattr__(self, "rows", rows)
        if not isinstance(self.right, tuple) or len(self.right) not in (
            0,
            len(self.header),
        ):
            wanted = f"must be () or a tuple of {len(self.header)} flags"
            raise ValueError(f"right = {short_repr(self.right)}: {wanted}")
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"row {short_repr(row)} has {len(row)} cells, the header "
                    f"{short_repr(self.header)} has {len(self.header)}"
                )

    @property
    def numeric(self) -> tuple[bool, ...]:
        """For each column, whether it is aligned to the right."""
        if self.right:
            return self.right
        columns = zip(*self.rows, strict=True)
        found = tuple(all(_is_number(cell) for cell in column) for column in columns)
        return found or (False,) * len(self.header)

    @property
    def transposed(self) -> "Table":
        """The same cells with rows and columns exchanged: a row for each quantity.

        >>> print(table(["chip", "MXUs", "side"], [("v5e", 4, 128)]).transposed)
        chip  v5e
        MXUs    4
        side  128
        """
        lines = list(zip(self.header, *self.rows, strict=True))
        return Table(lines[0], tuple(lines[1:]), (False, *[True] * len(self.rows)))

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        sides = [">" if right else "<" for right in self.numeric]
        return "\n".join(
            "  ".join(
                f"{cell:{side}{width}}"
                for cell, side, width in zip(line, sides, widths, strict=True)
            ).rstrip()
            for line in lines
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def _repr_html_(self) -> str:
        # "left" is needed too: Jupyter's style aligns every cell to the right.
        sides = ["right" if n else "left" for n in self.numeric]
        styles = [f' style="text-align: {side}"' for side in sides]
        head = "".join(
            f'<th scope="col"{style}>{escape(cell)}</th>' if cell else "<td></td>"
            for cell, style in zip(self.header, styles, strict=True)
        )
        body = "\n".join(
            "<tr>"
            + "".join(
                f"<td{style}>{escape(cell)}</td>"
                for cell, style in zip(row, styles, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        head = f"<thead><tr>{head}</tr></thead>"
        return f"<table>\n{head}\n<tbody>\n{body}\n</tbody></table>"


def _cells(name: str, row: object) -> tuple[str, ...]:
    """The cells of a row as text; a string is no row, although it is iterable."""
    if isinstance(row, str) or not isinstance(row, Iterable):
        raise ValueError(f"{name} = {short_repr(row)}: must be a list of cells")
    return tuple(map(str, row))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A Table of `rows` under `header`; every cell is turned into text with str().

    Raises:
        ValueError: the header, the rows or one row is not a list, or a row does not
            have as many cells as the header.

    >>> print(table(["chip", "tokens"], [("TPU v5e", 241), ("H100", "1,024")]))
    chip     tokens
    TPU v5e     241
    H100      1,024
    """
    return Table(header, rows)


@dataclass(frozen=True)
class Ratio:
    """A column computed from two others: first / second − minus, in format `form`."""

    first: str
    second: str
    form: str
    minus: int = 0

    def __post_init__(self) -> None:
        for name in ("first", "second", "form"):
            text(name, getattr(self, name))

    def of(self, columns: Mapping[str, Sequence]) -> list[float | None]:
        """The value in every row; None if one of the two columns has none there."""
        for name in (self.first, self.second):
            if name not in columns:
                known = shortened(", ".join(map(repr, columns)), 300)
                given = short_repr(name)
                raise ValueError(f"no column {given} to the left; there are {known}")
        if 0 in columns[self.second]:
            raise ValueError(
                f"column {short_repr(self.second)} has a 0: nothing can be divided by 0"
            )
        pairs = zip(columns[self.first], columns[self.second], strict=True)
        return [None if None in (a, b) else a / b - self.minus for a, b in pairs]


def ratio(first: str, second: str, form: str = ".2f") -> Ratio:
    """A column for `compare`: the column `first` divided by the column `second`.

    >>> runs = {"8 H200": (482e9, 787e9), "4 nodes": (382e9, None)}
    >>> columns = {
    ...     "measured": (lambda seen, bound: seen, "bytes/s"),
    ...     "bound": (lambda seen, bound: bound, "bytes/s"),
    ...     "of it": ratio("measured", "bound", ".0%"),
    ... }
    >>> print(compare(runs, columns))
             measured     bound  of it
    8 H200   482 GB/s  787 GB/s    61%
    4 nodes  382 GB/s         –      –
    """
    return Ratio(first, second, form)


def deviation(first: str, second: str, form: str = "+.1%") -> Ratio:
    """A column for `compare` of how much `first` exceeds `second`: first / second − 1.

    >>> times = {"small": (2e-6, 3e-6), "large": (1e-3, 1.1e-3)}
    >>> columns = {
    ...     "predicted": (lambda p, m: p, "s"),
    ...     "measured": (lambda p, m: m, "s"),
    ...     "off by": deviation("predicted", "measured"),
    ... }
    >>> print(compare(times, columns, of="message"))
    message  predicted  measured  off by
    small         2 µs      3 µs  -33.3%
    large         1 ms    1.1 ms   -9.1%
    """
    return Ratio(first, second, form, minus=1)


# What a column shows: a name, a function, one of them with unit and digits, or a ratio.
Column = str | Callable | tuple | Ratio


def compare(
    things: Iterable | Mapping,
    columns: Iterable[str] | Mapping[str, Column],
    of: str | tuple[str, ...] = "",
) -> Table:
    """A table with a row for each thing and a column for each of its quantities.

    Args:
        things: any objects. If they are the values of a mapping, its keys become labels
            in front of the rows. A row that is a tuple is passed to functions as
            separate arguments.
        columns: what to show under each heading:

            * ``"hbm_bytes"``: a fact of a chip, with its unit from the vocabulary; for
              other things, the attribute of that name;
            * ``lambda c: …``: a function of the row;
            * ``(either, "s")``: a name or a function, shown in that unit. Units that
              take a prefix get one; others, such as "tokens", go into the heading.
              ``(either, "s", 4)`` shows four digits;
            * ``(either, ".1%")``: in a Python format that begins with . + or ,
            * ``ratio("measured", "bound")``, ``deviation(…)``: of columns to the left.

            A function may return ``(value, unit)`` if rows differ in their unit. If
            `columns` is a list of names, the headings come from the vocabulary.
        of: the heading of the labels, or a tuple of headings if the labels are tuples.

    Returns:
        A Table; `.transposed` has a column for each thing. Numbers have three digits by
        default and are aligned to the right; text is aligned to the left. A value that
        nobody published (`Absent`) or measured (None) is shown as "–".

    Raises:
        ValueError: a ratio of columns that do not exist, no things or no columns.
        AttributeError: a name that a row does not have, or that is not a fact of a
            chip.
        Exception: whatever a function raises, except `Absent`.

    >>> from shardmath.hardware.chips import H100, TPU_V5E
    >>> print(compare([TPU_V5E, H100], ["name", "hbm_bandwidth", "flops.int4"]))
    name     HBM bandwidth   int4 peak
    TPU v5e       819 GB/s  788 TOPs/s
    H100         3.35 TB/s           –

    >>> from shardmath.hardware.roofline import matmul
    >>> work = {B: matmul(B, 8192, 8192, TPU_V5E) for B in (24, 2048)}
    >>> columns = {"time": ("lower", "s"), "of the peak": ("utilization", ".1%")}
    >>> print(compare(work, columns | {"bound": "bound"}, of="tokens"))
    tokens    time  of the peak  bound
        24  165 µs         9.9%  memory-bound
     2,048  1.4 ms       100.0%  compute-bound
    """
    if isinstance(things, str) or not isinstance(things, Iterable):
        raise ValueError(f"things = {short_repr(things)}: must be a list or a mapping")
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        wanted = "must map headings to what is shown, or list names"
        raise ValueError(f"columns = {short_repr(columns)}: {wanted}")
    labels = list(things) if isinstance(things, Mapping) else []
    rows = list(things.values() if isinstance(things, Mapping) else things)
    if not rows:
        raise ValueError(f"things = {short_repr(things)}: must hold at least one")
    if not isinstance(columns, Mapping):
        columns = {_words(name, rows): name for name in columns}
    shown = _labels(labels, of)
    values: dict[str, list] = {}
    for heading, column in columns.items():
        if isinstance(column, Ratio):
            cells, digits = [(value, column.form) for value in column.of(values)], 3
        else:
            what, unit, digits = _parts(heading, column)
            cells = [_cell(what, row, unit) for row in rows]
        values[heading] = [value for value, _ in cells]
        shown.append(_column(heading, cells, digits))
    if not shown:
        raise ValueError("columns = {}: must name at least one")
    header, texts, right = zip(*shown, strict=True)
    return Table(header, tuple(zip(*texts, strict=True)), right)


def _words(name: str, rows: list) -> str:
    """The heading of the fact or attribute `name`, in the words of all rows."""
    words = [row.words(name) if hasattr(row, "words") else name for row in rows]
    return " / ".join(dict.fromkeys(words)).replace("_", " ")


def _labels(labels: list, of: str | tuple[str, ...]) -> list[tuple]:
    """The columns in front: heading, texts, and whether they are numbers."""
    keys = [key if isinstance(key, tuple) else (key,) for key in labels]
    for key in keys:
        if len(key) != len(keys[0]):
            pair = f"{short_repr(keys[0])} and {short_repr(key)}"
            raise ValueError(f"things: labels {pair} must have equally many parts")
    parts = list(zip(*keys, strict=True))
    heads = (of,) if isinstance(of, str) else of
    if not isinstance(heads, tuple) or not all(isinstance(h, str) for h in heads):
        raise ValueError(f"of = {short_repr(of)}: must be a heading or a tuple of them")
    if keys and len(heads) != len(parts):
        wanted = f"must head {len(parts)} columns of labels"
        raise ValueError(f"of = {short_repr(of)}: {wanted}")
    return [
        _column(head, [(label, "") for label in part], 3)
        for head, part in zip(heads, parts, strict=False)
    ]


def _parts(heading: str, column: Column) -> tuple[str | Callable, str, int]:
    """What a column shows of a row, its unit or format, and its digits."""
    what, unit, digits = column, "", 3
    if isinstance(column, tuple) and len(column) in (2, 3):
        what, unit, digits = (*column, digits)[:3]
    if not (callable(what) or isinstance(what, str)):
        raise ValueError(
            f"column {short_repr(heading)} = {short_repr(column)}: must be a name, a "
            "function, (either, unit), (either, unit, digits), ratio(…) or deviation(…)"
        )
    return what, unit, digits


def _cell(what: str | Callable, row: object, unit: str) -> tuple[object, str]:
    """The value of one cell and its unit; None where there is no such value."""
    try:
        if callable(what):
            found = what(*row) if type(row) is tuple else what(row)
        else:
            found = row.cell(what) if hasattr(row, "cell") else getattr(row, what)
    except Absent:
        found = None
    own = isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], str)
    value, said = found if own else (found, "")
    return value, unit or said


def _column(heading: str, cells: list[tuple], digits: int) -> tuple:
    """Heading, texts, and whether the texts are numbers."""
    units = {unit for value, unit in cells if value is not None}
    if len(units) == 1 and not takes_prefix(unit := units.pop()) and not _is_form(unit):
        heading, cells = f"{heading}, {unit}", [(value, "") for value, _ in cells]
    texts = tuple(_text(value, unit, digits) for value, unit in cells)
    return heading, texts, all(_is_value(value) for value, _ in cells)


def _text(value: object, unit: str, digits: int) -> str:
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not unit and not _is_value(value):
        return str(value)
    value = number("a cell", value)
    if _is_form(unit):
        return format(value, unit)
    if unit:
        return show(value, unit, digits)
    if isinstance(value, int):
        return f"{value:,}"
    large = abs(value) >= 10**digits  # where :g switches to an exponent
    return f"{value:,.0f}" if large else f"{value:,.{digits}g}"


def _is_form(unit: str) -> bool:
    """Whether `unit` is a format such as ".1%"; no unit begins like one."""
    return unit[:1] in tuple(".+,")


def _is_value(value: object) -> bool:
    """Whether the value is a number or missing."""
    if value is None:
        return True
    with contextlib.suppress(ValueError):
        number("a cell", value)
        return True
    return False


def _is_number(cell: str) -> bool:
    return cell.lstrip("+-−≥≤")[:1].isdigit() or cell in ("inf", MISSING)
