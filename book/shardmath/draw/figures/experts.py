"""The live figure "experts": the loads of experts while biases balance them."""

import random
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from math import ceil, exp

from ..picture import WIDEST
from ..shapes import box, framed, line, written
from ..theme import hue
from .controls import Choice, Drawing, Figure, Slider

TOKENS = 512  # of a step
POOL = 8  # steps until the same tokens repeat
SPEEDS = {"never moved": 0.0, "0.003": 0.003, "0.01": 0.01, "0.03": 0.03, "0.1": 0.1}
FACTORS = {"dropless": 0.0, "1": 1.0, "1.25": 1.25, "1.5": 1.5, "2": 2.0}
EDGE, FLOOR, TALL = 8, 262, 190  # of the picture: sides, foot of the bars, their height

Scores = tuple[tuple[float, ...], ...]


@lru_cache(maxsize=8)
def scores(experts: int, skew: int) -> tuple[Scores, ...]:
    """The score of each expert for each token of a step, for `POOL` steps.

    A score is the logistic function of a normal variable, whose mean decreases by
    `skew` from the first expert to the last. So the first ones are the most popular.

    >>> steps = scores(8, 2)
    >>> len(steps), len(steps[0]), len(steps[0][0])
    (8, 512, 8)
    """
    rng = random.Random(13)
    means = [skew * (0.5 - n / (experts - 1)) for n in range(experts)]
    return tuple(
        tuple(
            tuple(1 / (1 + exp(-rng.gauss(mean, 1))) for mean in means)
            for _ in range(TOKENS)
        )
        for _ in range(POOL)
    )


def routed(step: Scores, biases: list[float], k: int) -> list[int]:
    """How many tokens choose each expert. A token takes the k best by score + bias.

    >>> routed(((0.9, 0.8, 0.1), (0.7, 0.2, 0.1)), [0.0, 0.0, 0.65], 1)
    [1, 0, 1]
    """
    found = [0] * len(biases)
    for token in step:
        judged = [score + bias for score, bias in zip(token, biases, strict=True)]
        for expert in sorted(range(len(judged)), key=judged.__getitem__)[-k:]:
            found[expert] += 1
    return found


def moved(biases: list[float], loads: list[int], speed: float) -> list[float]:
    """The biases after a step: lower if the load was above the mean, higher if below.

    >>> moved([0.0, 0.0, 0.0], [5, 1, 3], 0.01)
    [-0.01, 0.01, 0.0]
    """
    mean = sum(loads) / len(loads)
    return [
        bias + speed * ((load < mean) - (load > mean))
        for bias, load in zip(biases, loads, strict=True)
    ]


@lru_cache(maxsize=16)
def history(experts: int, k: int, skew: int, speed: float) -> tuple[tuple, ...]:
    """(loads, biases) of every step from 0 on, with the biases that the step used."""
    return tuple(islice(_steps(scores(experts, skew), k, speed), STEP.high + 1))


def _steps(pool: tuple[Scores, ...], k: int, speed: float) -> Iterator[tuple]:
    biases, number = [0.0] * len(pool[0][0]), 0
    while True:
        loads = routed(pool[number % len(pool)], biases, k)
        yield tuple(loads), tuple(biases)
        biases = moved(biases, loads, speed)
        number += 1


STEP = Slider("step", "Step", "", 0, 40, 0, step=1, play=True)


def draw(
    experts: int, k: int, skew: int, speed: str, capacity: str, step: int
) -> Drawing:
    """The load of every expert after `step` updates of the biases."""
    played = history(experts, k, skew, SPEEDS[speed])
    loads, biases = played[step]
    mean, busiest = sum(loads) / experts, max(loads)
    room = ceil(FACTORS[capacity] * mean) if FACTORS[capacity] else None
    dropped = sum(max(0, load - room) for load in loads) if room else 0
    share = dropped / sum(loads)
    lost = f"; {share:.1%} of them find no slot" if room else ""
    summary = (
        f"Step {step}: {TOKENS} tokens choose {k} of {experts} experts. The busiest "
        f"has {busiest / mean:.2f} times the mean of {mean:g}{lost}."
    )
    tail = [max(seen) / mean for seen, _ in played[-8:]]
    data = {
        "loads": list(loads),
        "biases": list(biases),
        "mean": mean,
        "busiest": busiest / mean,
        "capacity": room,
        "dropped": dropped,
        "at_last": sum(tail) / len(tail),
    }
    readout = (
        ("", "tokens"),
        ("mean of all experts", f"{mean:g}"),
        ("busiest expert", f"{busiest:,}"),
        ("idlest expert", f"{min(loads):,}"),
        ("slots of an expert", f"{room:,}" if room else "as many as come"),
        ("choices without a slot", f"{dropped:,}"),
        ("busiest over mean", f"{busiest / mean:.2f}"),
        ("the same, last 8 steps", f"{data['at_last']:.2f}"),
        ("biases, least and largest", f"{min(biases):.2f}, {max(biases):.2f}"),
    )
    title = f"Loads of {experts} experts"
    parts = _drawn(title, played, step, mean, room)
    picture = framed(title, summary, parts, WIDEST, FLOOR + 26)
    return Drawing(picture, summary, readout, data, last=STEP.high)


def _drawn(title: str, played: tuple, step: int, mean: float, room: int | None):
    """A bar for each expert, cut at its slots, and a curve of the largest load."""
    loads, _ = played[step]
    pitch = (WIDEST - 2 * EDGE) / len(loads)

    highest = max(*(max(seen) for seen, _ in played), room or 0)  # of all steps

    def up(tokens: float) -> float:
        return FLOOR - TALL * tokens / highest

    yield written(EDGE, 18, title, bold=True)
    said = f"busiest {max(loads) / mean:.2f} times the mean"
    yield written(EDGE, 38, said, key="busiest")
    for expert, load in enumerate(loads):
        left, right = EDGE + pitch * expert + 1, EDGE + pitch * (expert + 1) - 1
        kept = load if room is None else min(load, room)
        yield box(left, up(kept), right, FLOOR, hue(6), fill=0.8, edge=0, round=0,
                  key=f"expert {expert}")  # fmt: skip
        yield box(left, up(load), right, up(kept), hue(7), fill=0.8, edge=0, round=0,
                  key=f"dropped {expert}")  # fmt: skip
    ends = (EDGE, up(mean)), (WIDEST - EDGE, up(mean))
    yield line(*ends, width=1, dashed=True, key="mean")
    words = f"dashed: mean {mean:g}"
    yield written(WIDEST - EDGE, 18, words, anchor="end", key="mean's")
    if room:
        ends = (EDGE, up(room)), (WIDEST - EDGE, up(room))
        yield line(*ends, colour=hue(7), width=1.5, key="slots")
        words = f"line: {room:,} slots"
        yield written(WIDEST - EDGE, 38, words, hue(7), "end", key="slots'")
    yield written(EDGE, FLOOR + 20, "experts, by popularity")
    yield written(WIDEST - EDGE, FLOOR + 20, f"step {step}", anchor="end", key="step")


FIGURE = Figure(
    "experts",
    "Loads of experts, and biases that even them out",
    (
        Slider("experts", "Experts", "", 8, 32, 16),
        Slider("k", "Experts per token", "", 1, 4, 2),
        Slider("skew", "Skew of popularity", "", 0, 4, 2, step=1),
        Choice("speed", "Bias moves by", tuple(SPEEDS), "0.01"),
        Choice("capacity", "Capacity factor", tuple(FACTORS), "1.25"),
        STEP,
    ),
    draw,
    first="step",
    presets={
        "before": {"speed": "0.01", "step": 0},
        "evened out": {"speed": "0.01", "step": 40},
        "never moved": {"speed": "never moved", "step": 40},
        "too fast": {"speed": "0.1", "step": 40},
    },
)
