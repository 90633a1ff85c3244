"""The runners in a race of strategies: the best mesh of each kind, on one machine.

Each lane is the mesh of its kind with the least predicted time, and the mixture is the
planner's recommendation. Finding them takes a search (`race_search`), so ``race.toml``
stores the meshes with their bytes and seconds. A test compares the file with the
search.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from ...training.efficiencies import band
from ...training.prediction import PARTS, Prediction
from ...transformer import DEEPSEEK_V3, LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B, Model

FAMILIES = ("data", "FSDP", "tensor", "pipeline", "mixture")
MODELS: dict[str, Model] = {
    one.name: one for one in (LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B, DEEPSEEK_V3)
}
BATCHES = {  # sequences of a step, and tokens of each
    LLAMA_3_8B.name: (512, 8192),
    LLAMA_3_70B.name: (512, 8192),
    LLAMA_3_405B.name: (2048, 8192),
    DEEPSEEK_V3.name: (15_360, 4096),
}
MACHINES = {
    "64 TPU v5p": "v5p:4x4x4",
    "512 H100": "h100:64x8",
    "2,048 H800": "h800:256x8",
    "16,384 H100": "h100:2048x8",
}
LARGE, UNEVEN = "does not fit", "cannot start"


@dataclass(frozen=True)
class RaceEntry:
    """The mesh of one lane, as it is stored.

    Args:
        why: why it does not run: it has too little memory, or the sequences can't be
            divided over the chips; "" if it runs.
        sizes: the sizes of the axes larger than 1; empty if no mesh is admissible.
        settings: microbatches, chunks and recomputation, in words.
        held: bytes that a chip needs.
        room: bytes that a chip may use.
        parts: key of `prediction.PARTS` → predicted seconds of a step, if not 0.
        bound: lower bound on the seconds of a step.
        warnings: how it differs from the runs that predictions were fitted to.
    """

    why: str
    sizes: Mapping[str, int]
    settings: str
    held: float
    room: float
    parts: Mapping[str, float]
    bound: float
    warnings: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Runner:
    """One lane of a race.

    Args:
        family: one of `FAMILIES`.
        entry: its mesh, and whether it runs.
        model: a key of `MODELS`.
    """

    family: str
    entry: RaceEntry
    model: str

    @property
    def runs(self) -> bool:
        return not self.entry.why

    @cached_property
    def prediction(self) -> Prediction:
        """The predicted time of the step.

        Raises:
            ValueError: the mesh does not run.
        """
        if not self.runs:
            raise ValueError(f"{self.family} {self.entry.why}, so it has no prediction")
        parts = dict.fromkeys(PARTS, 0.0) | dict(self.entry.parts)
        range_ = band(bool(MODELS[self.model].experts))
        return Prediction(parts, self.entry.bound, range_, tuple(self.entry.warnings))

    @property
    def mesh(self) -> str:
        """The sizes of its axes, as text."""
        sizes = self.entry.sizes.items()
        return " × ".join(f"{axis} {size:,}" for axis, size in sizes) or "no mesh"


@cache
def table() -> dict[str, dict[str, dict[str, dict]]]:
    """The content of the file: model → machine → family → entry."""
    text = files(__package__).joinpath("race.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def runners(model: str, machine: str) -> tuple[Runner, ...]:
    """All lanes of a race.

    >>> [one.family for one in runners("Llama 3.1 405B", "16,384 H100") if one.runs]
    ['mixture']
    """
    found = table()[model][machine]
    return tuple(Runner(name, RaceEntry(**found[name]), model) for name in FAMILIES)
