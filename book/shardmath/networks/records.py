"""Latencies and grids, each value with its source: what ``networks.toml`` holds.

>>> LATENCY["leaf"].value, GRIDS["tpu_v5e"]["closes"].source.key
(2.8e-06, 'book')
"""

import tomllib
from importlib.resources import files

from ..chips import SOURCES
from ..facts import Fact, Source


def _read() -> tuple[dict[str, Fact], dict[str, dict[str, Fact]]]:
    """The latencies by level, and the facts of each grid by the chip's id."""
    text = files(__package__).joinpath("networks.toml").read_text("utf-8")
    rows = tomllib.loads(text)
    sources = SOURCES | {key: Source(key, **r) for key, r in rows["sources"].items()}

    def facts(table: dict[str, dict]) -> dict[str, Fact]:
        return {
            name: Fact(
                tuple(row["value"]) if name == "pod" else row["value"],
                sources[row["source"]],
                row.get("note", ""),
            )
            for name, row in table.items()
        }

    return facts(rows["latency"]), {k: facts(row) for k, row in rows["grid"].items()}


LATENCY, GRIDS = _read()
