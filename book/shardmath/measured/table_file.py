"""Read a user's table into cells by column, whatever the format of the file.

A table has a head and is separated by commas, semicolons or tabs, or it is a JSON list
of objects. Columns have the book's names or others that people use.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path

from ..base import units
from ..base.units import short_repr, shortened

NOBODY_SAYS = (
    "", "-", "–", "?", "n/a", "na", "nan", "null", "none given", "unknown",
    "not published",
)  # fmt: skip
MORE = None  # the key under which a row keeps cells beyond the head


def read_file(path: str | Path) -> str:
    """The text of a file.

    Raises:
        ValueError: `path` is no path, there is no such file, or it is not text.
    """
    if not isinstance(path, str | PathLike):
        raise ValueError(f"path = {short_repr(path)}: must be the path of a file")
    try:
        return Path(path).read_text("utf-8-sig")
    except (OSError, ValueError) as error:  # a path may hold a null character
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"{shortened(str(path))}: cannot be read: {why}") from None


def read_table(text: str, name: str, needed: str) -> list[dict[str | None, object]]:
    """The rows of a table, each cell under the name of its column as written.

    Args:
        text: the text of the file.
        name: the name of the file, for error messages.
        needed: what the file must be, for error messages.

    Raises:
        ValueError: the text is empty, not a table, or has a cell of more characters
            than `csv.field_size_limit`.

    >>> read_table("# a comment\\na;b\\n1;2", "the table", "a table")
    [{'a': '1', 'b': '2'}]
    >>> read_table('[{"a": 1, "b": {"c": 2}}]', "the table", "a table")
    [{'a': 1, 'b': {'c': 2}}]
    """
    lines = [line for line in units.text("text", text).splitlines() if line.strip()]
    lines = [line for line in lines if not line.lstrip().startswith("#")]
    if not lines:
        raise ValueError(f"{name}: is empty; must be {needed}")
    if lines[0].lstrip()[:1] in "[{":
        return _json("\n".join(lines), name, needed)
    separator = max(",;\t", key=lines[0].count)
    reader = csv.DictReader(io.StringIO("\n".join(lines)), delimiter=separator)
    try:
        return list(reader)
    except csv.Error:  # the only one in lines without line breaks
        raise ValueError(
            f"{name}: a cell after line {reader.line_num} is too long; must have at "
            f"most {csv.field_size_limit():,} characters"
        ) from None


def _json(text: str, name: str, needed: str) -> list[dict[str | None, object]]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = _each_line(text)
    if isinstance(found, dict):  # {"rows": [...]}, or one row
        lists = [value for value in found.values() if isinstance(value, list)]
        found = lists[0] if len(lists) == 1 else [found]
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(
            f"{name}: must be {needed}; JSON must be a list with an object for each row"
        )
    if not found:
        raise ValueError(f"{name}: is empty; must be {needed}")
    return found


def _each_line(text: str) -> list[object] | None:
    """The JSON values of a text with one on each line; None for any other text."""
    try:
        return [json.loads(line) for line in text.splitlines()]
    except (ValueError, RecursionError):
        return None


def column(head: object, aliases: Mapping[str, str]) -> str:
    """The book's name of a column, or its head in lower case if there is no such name.

    >>> column("Seq Len", {"seq_len": "seq"}), column("Chip", {})
    ('seq', 'chip')
    """
    plain = re.sub(r"[^a-z0-9]+", "_", str(head or "").strip().lower()).strip("_")
    return aliases.get(plain, plain)


def renamed(
    rows: Iterable[Mapping[str | None, object]], aliases: Mapping[str, str]
) -> list[dict[str | None, object]]:
    """The same rows, under the book's column names.

    If two columns mean the same, the first cell that is not empty counts.
    """
    heads: dict[object, str] = {}
    found = []
    for row in rows:
        one: dict[str | None, object] = {}
        for head, value in row.items():
            if head is MORE:
                one[MORE] = value
                continue
            if head not in heads:
                heads[head] = column(head, aliases)
            if not said(one.get(heads[head])):
                one[heads[head]] = value
        found.append(one)
    return found


def cell(value: object) -> str:
    """A cell as text without spaces around it; "" if it states nothing.

    >>> cell(" 8 "), cell("n/a"), cell(None), cell(8.0), cell(0)
    ('8', '', '', '8', '0')
    """
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    return "" if text.lower() in NOBODY_SAYS else text


def said(value: object) -> bool:
    """Whether a cell holds anything."""
    return value is not None and bool(cell(value))


def number(cells: Mapping[str, str], name: str, least: float = 0.0) -> float | None:
    """A cell as a number above `least`; None if it is empty.

    Raises:
        ValueError: the cell is not such a number. The message quotes it.

    >>> number({"input": "1,024"}, "input"), number({"input": ""}, "input")
    (1024.0, None)
    """
    text = cells.get(name, "")
    if not text:
        return None
    try:
        found = float(text.replace(",", ""))
    except ValueError:
        found = float("nan")
    if not least < found < float("inf"):
        raise ValueError(
            f"{name} = {short_repr(text)}: must be a number above {least:g}"
        )
    return found
