"""Predictions for your own measured servers, from rows with one metric each.

The rows are those of `serving_rows`. Each answer has the metric and unit of its row. If
a row cannot be read or contradicts itself, the answer is the reason, and the other rows
are still answered. If each of several rows is possible but they contradict one another,
each of them gets a warning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .serving_answers import ServingAnswer, serving_answer
from .serving_gates import checked, refusals
from .serving_rows import ServingRow, read_row, spread
from .table_file import MORE, cell


def predict_rows(
    rows: Sequence[Mapping[str | None, object]],
) -> tuple[ServingAnswer, ...]:
    """An answer for every row of a table, and for every metric of a row.

    Args:
        rows: the cells of each row, by the names of `serving_rows.COLUMNS`.

    >>> row = {"model": "Qwen3-32B", "chip": "H100", "parallelism": "tp=2",
    ...     "engine": "trtllm", "weights": "fp8", "concurrency": 8, "input": 1024,
    ...     "output": 1024, "metric": "tpot", "value": 11.7, "unit": "ms"}
    >>> good, bad = predict_rows([row, row | {"count": 3}])
    >>> good.bound < good.predicted, 0.5 < good.predicted / good.measured < 2, good.unit
    (True, True, 'ms')
    >>> bad.why
    'count = 3: is no whole number of copies of 2 chips (tensor 2)'
    """
    read: list[tuple[int, ServingRow | str, str, str]] = []
    for number, cells in enumerate(rows, 1):
        for one in spread(cells) if MORE not in cells else [cells]:
            read.append((number, *_read(one), cell(one.get("metric"))))
    some = [row for _, row, *_ in read if isinstance(row, ServingRow)]
    named = checked(some)
    answers, at = [], 0
    for number, row, name, metric in read:
        if isinstance(row, str):
            answers.append(ServingAnswer(number, name, metric, why=row))
            continue
        warnings = named.get(at, ())
        at += 1
        answers.append(_answered(number, row, warnings))
    return tuple(answers)


def _read(cells: Mapping[str | None, object]) -> tuple[ServingRow | str, str]:
    """A row or the reason why it cannot be read, and its name in words."""
    name = " on ".join(part for part in (cell(cells.get("model")),
                       f"{cell(cells.get('count'))} {cell(cells.get('chip'))}".strip())
                       if part)  # fmt: skip
    try:
        if MORE in cells:
            more = len(cells[MORE])
            raise ValueError(f"the row has {more} more cells than the head")
        return read_row(cells), name
    except ValueError as error:
        return str(error).partition("\n")[0], name


def _answered(number: int, row: ServingRow, warnings: tuple[str, ...]) -> ServingAnswer:
    refused = refusals(row)
    if refused:
        why = "; ".join(refused)
        return ServingAnswer(number, str(row), row.shown, row.unit, why=why)
    found = serving_answer(number, row)
    if found.why:
        return found
    return replace(found, warnings=tuple(dict.fromkeys((*found.warnings, *warnings))))
