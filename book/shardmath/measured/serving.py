"""The book's measured servers, from ``serving.csv``, with their sources.

>>> one = serving()[0]
>>> print(one, f"{one.value * 1e3:.1f} ms", one.source, sep="; ")
MiniMax-M2.5 on 2 B300, vllm, ttft; 82.0 ms; aic-silicon/InferenceX
>>> SERVING_SOURCES["trtllm_1_0"].licence
'Apache-2.0'
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from .rows import named_rows
from .serving_rows import ServingRow, read_row


@dataclass(frozen=True)
class ServingSource:
    """The source of some lines of the table.

    Args:
        key: its name in the lines of the table.
        name: its name in rows of JSON.
        title, url, path, commit: title, address, path and commit of the file.
        licence: the licence that its repository states.
        open: what the source leaves open.
        kind, read: as in `base.facts.Source`.
    """

    key: str
    name: str
    title: str
    url: str
    path: str
    commit: str
    licence: str
    open: str
    kind: str
    read: str


def _sources() -> dict[str, ServingSource]:
    text = files(__package__).joinpath("serving.toml").read_text("utf-8")
    return {
        key: ServingSource(key, **row)
        for key, row in tomllib.loads(text)["sources"].items()
    }


def lines() -> Iterator[dict[str, str]]:
    """The lines of the table for `read_row`, each once for every number in it."""
    for line in named_rows("serving.csv"):
        for part in line.pop("values").split():
            metric, _, value = part.partition("=")
            unit = "tokens/s" if metric == "tokens" else "ms"
            told = {"metric": metric, "value": value, "unit": unit}
            yield line | told | {"source": SERVING_SOURCES[line["source"]].name}


@cache
def serving() -> tuple[ServingRow, ...]:
    """All numbers of the table as rows, in the order of the table."""
    return tuple(map(read_row, lines()))


SERVING_SOURCES = _sources()
