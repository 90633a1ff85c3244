"""Every mesh of powers of two for Llama 3.1 405B on 16,384 H100s.

For each size of the tensor, context and pipeline axes, the planner's search finds the
settings with the least predicted time. This takes minutes, so the result is stored in
``meshes.toml``, and a test compares the file with the search.
"""

import tomllib
from functools import cache
from importlib.resources import files

from ...training.prediction import PARTS
from ...transformer import LLAMA_3_405B
from .race import RaceEntry, Runner

MODEL, MACHINE = LLAMA_3_405B.name, "16,384 H100"
CHIPS = 2**14
TENSOR = tuple(2**n for n in range(5))
CONTEXT = tuple(2**n for n in range(5))
PIPELINE = tuple(2**n for n in range(7))
META = (8, 1, 16)  # tensor, context, pipeline: a test compares it with the record


@cache
def table() -> dict[tuple[int, int, int], RaceEntry]:
    """The file: sizes of the tensor, context and pipeline axes → entry."""
    text = files(__package__).joinpath("meshes.toml").read_text("utf-8")
    found = tomllib.loads(text)
    room = found.pop("room")
    return {
        tuple(map(int, sizes.split())): _entry(values, room)
        for sizes, values in found.items()
    }


def _entry(values: dict, room: float) -> RaceEntry:
    """An entry of the file, whose seconds stand in the order of `PARTS`."""
    parts = dict(zip(PARTS, values.get("seconds", ()), strict=False))
    return RaceEntry(
        values.get("why", ""),
        values.get("sizes", {}),
        values.get("settings", ""),
        values.get("held", 0.0),
        room,
        {name: seconds for name, seconds in parts.items() if seconds},
        values.get("bound", 0.0),
        values.get("warnings", ()),
    )


@cache
def mesh_of(tensor: int, context: int, pipeline: int) -> Runner:
    """A mesh with its prediction.

    >>> meta = mesh_of(*META)
    >>> meta.mesh, meta.runs
    ('pipeline 16 × zero 128 × tensor 8', True)
    """
    return Runner("mixture", table()[tensor, context, pipeline], MODEL)


@cache
def fastest() -> tuple[int, int, int]:
    """The sizes of the mesh with the least predicted time."""
    running = [sizes for sizes, entry in table().items() if not entry.why]
    return min(running, key=lambda sizes: mesh_of(*sizes).prediction.seconds)
