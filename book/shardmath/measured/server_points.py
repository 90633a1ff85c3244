"""Measured TTFT and TPOT of servers, with predictions for the same servers.

The points are kept in ``server_points.csv``, derived from ``serving.csv``. The number
of clients is constant in a closed loop, so by Little's law the two times also give the
throughput. The points are those of four models that InferenceX measured on several
chips. They leave out rows that a gate names, and days with multi-token prediction.

>>> some = points()
>>> one = next(p for p in some if p.model == "Llama 3.1 70B" and p.clients == 64)
>>> print(one.hardware, one.layout, f"{one.user:.0f} and {one.per_chip:.0f} tokens/s")
B200, fp4 tensor 8 73 and 570 tokens/s
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from ..inference import held
from ..inference.efficiencies import calibration
from .ops import OpBin
from .rows import rows
from .serving import serving
from .serving_answers import load, setting, speculated
from .serving_gates import checked
from .serving_rows import ServingRow

MODELS = ("Llama 3.1 70B", "gpt-oss-120b", "MiniMax-M2.5", "DeepSeek-V3")
SOURCE = "InferenceX"  # the source of the rows
DIGITS = 5  # digits of the numbers in the file


class ServerPoint(NamedTuple):
    """One server under one load.

    Args:
        model, chip: the names of the model and the chip.
        weights: the format of the weights.
        layout: the layout of one copy of the model.
        chips: chips of the whole system.
        prompt, answer: nominal tokens of a request.
        clients: requests in flight.
        output: mean tokens of an answer, which are fewer than nominal.
        ttft, tpot: measured seconds.
        predicted_ttft, predicted_tpot: seconds predicted with the three fitted numbers.
        bound: the bound of a decode step with the predicted mean number of sequences.
        kernels: mean kernel launches of a step; with a prompt, each counts twice.
    """

    model: str
    chip: str
    weights: str
    layout: str
    chips: int
    prompt: int
    answer: int
    clients: int
    output: float
    ttft: float
    tpot: float
    predicted_ttft: float
    predicted_tpot: float
    bound: float
    kernels: float

    @property
    def hardware(self) -> str:
        """Chip and format of the weights."""
        return f"{self.chip}, {self.weights}"

    @property
    def lengths(self) -> str:
        """Nominal tokens of prompt and answer."""
        return f"{self.prompt:,} + {self.answer:,}"

    @property
    def user(self) -> float:
        """Measured tokens per second for one user, 1/TPOT."""
        return 1 / self.tpot

    @property
    def predicted_user(self) -> float:
        """Predicted tokens per second for one user."""
        return 1 / self.predicted_tpot

    @property
    def per_chip(self) -> float:
        """Measured output tokens per second and chip, by Little's law."""
        return self._per_chip(self.ttft, self.tpot)

    @property
    def predicted_per_chip(self) -> float:
        """Predicted output tokens per second and chip, by Little's law."""
        return self._per_chip(self.predicted_ttft, self.predicted_tpot)

    def _per_chip(self, ttft: float, tpot: float) -> float:
        """clients · output / (TTFT + (output − 1) · TPOT) / chips"""
        stay = ttft + (self.output - 1) * tpot
        return self.clients * self.output / stay / self.chips


def front(some: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points that no other point beats in both numbers, sorted by the first number.

    >>> front([(1, 9), (2, 5), (2, 7), (3, 6), (1, 3)])
    [(1, 9), (2, 7), (3, 6)]
    """
    kept: list[tuple[float, float]] = []
    for point in sorted(some, reverse=True):
        if not kept or point[1] > kept[-1][1]:
            kept.append(point)
    return kept[::-1]


def derived() -> tuple[ServerPoint, ...]:
    """The points that follow from the book's rows, each only once, although the table
    has some rows twice, under two labels."""
    return tuple(dict.fromkeys(_derived()))


def _derived() -> Iterator[ServerPoint]:
    every = serving()
    named = checked(every)
    for at, (ttft, tpot) in enumerate(pairwise(every)):
        if (ttft.metric, tpot.metric) != ("ttft", "tpot") or {at, at + 1} & set(named):
            continue
        fits = tpot.source.endswith(SOURCE) and tpot.model.name in MODELS
        if fits and tpot.mode == "agg" and not speculated(tpot):
            try:
                yield _point(ttft, tpot)
            except ValueError:  # `serving_answer` gives the reason
                continue


def _point(ttft: ServingRow, tpot: ServingRow) -> ServerPoint:
    """The point of a run, from two numbers of one line of the table."""
    found = setting(tpot)
    row, requests, now = found.row, found.requests, load(found)
    server = found.servers[-1]
    length = held(requests.prompt, requests.output)
    step = server.decode(now.decoding, now.decoding * length)
    kernels = now.parts["launches"] / calibration().launch
    layout = str(server.layout).replace(", ", " and ")
    return ServerPoint(
        row.model.name, row.chip.name, row.weights, layout,
        server.layout.chips * found.copies[-1], round(row.input), round(row.output),
        round(row.concurrency), requests.output, ttft.value, tpot.value,
        now.ttft, now.tpot, step.bound, kernels,
    )  # fmt: skip


def step_bins() -> tuple[OpBin, ...]:
    """Steps of the servers in bins, like single operations in `ops.all_bins`.

    Here `bound` is the bound of a step ÷ its number of kernels, so a server that only
    launches kernels follows the law of a single kernel. The number of sequences that
    decode at a time is predicted, not measured. If fewer decode, a step can beat this
    bound.

    >>> b200 = [one for one in step_bins() if one.chip == "B200" and one.points > 20]
    >>> [f"{one.bound * 1e6:.1f} µs: {one.median:.1f}" for one in b200[:3]]
    ['0.5 µs: 9.7', '1.0 µs: 5.8', '2.2 µs: 3.5']
    """
    found: dict[tuple[str, int], list[float]] = {}
    for one in points():
        third = round(3 * math.log10(one.bound / one.kernels))
        found.setdefault((one.chip, third), []).append(one.tpot / one.bound)
    return tuple(
        OpBin("steps of servers", chip, "any", 10 ** (third / 3), len(some),
              *_deciles(some), sum(one < 1 for one in some))
        for (chip, third), some in sorted(found.items())
    )  # fmt: skip


def _deciles(some: Sequence[float]) -> tuple[float, float, float]:
    """The first, fifth and ninth decile, each rounded to one of the values."""
    order = sorted(some)
    return tuple(order[round(share * (len(order) - 1))] for share in (0.1, 0.5, 0.9))


@cache
def points() -> tuple[ServerPoint, ...]:
    """All points of the file."""
    return tuple(map(_read, rows("server_points.csv")))


def _read(cells: Iterable[str]) -> ServerPoint:
    kinds = ServerPoint.__annotations__.values()
    return ServerPoint(*(kind(one) for kind, one in zip(kinds, cells, strict=True)))


def text(some: Iterable[ServerPoint]) -> str:
    """The text of the file, without its head."""

    def cell(value: object) -> str:
        return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)

    return "".join(",".join(map(cell, one)) + "\n" for one in some)
