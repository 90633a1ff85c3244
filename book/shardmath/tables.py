"""Results as a table: aligned text in a terminal, a real table on a page."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; columns that hold numbers are set to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"row {row!r} has {len(row)} cells, the header {self.header!r} "
                    f"has {len(self.header)}"
                )

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Column by column: does every cell begin like a number?"""
        columns = zip(*self.rows, strict=True)
        found = tuple(all(_is_number(cell) for cell in column) for column in columns)
        return found or (False,) * len(self.header)

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
        styles = [' style="text-align: right"' if n else "" for n in self.numeric]
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


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A Table of `rows` under `header`; every cell is turned into text with str().

    >>> print(table(["chip", "tokens"], [("TPU v5e", 241), ("H100", "1,024")]))
    chip     tokens
    TPU v5e     241
    H100      1,024
    """
    return Table(tuple(header), tuple(tuple(str(c) for c in row) for row in rows))


def _is_number(cell: str) -> bool:
    return cell.lstrip("+-−≥≤")[:1].isdigit() or cell in ("inf", "–")
