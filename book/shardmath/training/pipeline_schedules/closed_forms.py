"""What the papers say of their schedules, in closed form, and where it holds.

With p stages, M microbatches, v chunks, and F, I, W seconds of a stage for a microbatch
(B = I + W; F&B a pair that runs together):

    schedule     idle seconds of a stage           holds for           held at most
    gpipe        (p−1)(F+B)                        every M             M
    1f1b         (p−1)(F+B)                        every M             min(M, p)
    interleaved  (p−1)(F+B)/v                      M a multiple of p   p + (p−1)/v
    zb-h1        (p−1)(F+B−2W) = (p−1)(F+I−W)      W ≤ F, W ≤ I        min(M, p)
    zb-v         (p−1)F/2, or none: see `idle`     F = I = W           min(M, p)
    dualpipe     (p/2−1)(F&B+B−3W)                 I = F, W ≤ F,       p + 1
                                                   B ≤ F&B ≤ F+B

"Held" counts microbatches of a stage's share of layers, on the stage that holds most.
Where M is small, zb-h1 and zb-v have longer forms, below. Sources: Narayanan et al.,
2021 (arXiv:2104.04473), section 2.2; Qi et al., 2024 (arXiv:2401.10241), table 2, whose
"B" is our I, and section 6; DeepSeek-AI, 2024 (arXiv:2412.19437), table 2, whose "B" is
our B. That zb-h1 needs W ≤ min(F, I), and dualpipe I = F and pairs no longer than their
two passes one after the other, is what playing them shows.
"""

from collections.abc import Callable

from ...base.units import flags, positive_int
from .named import chunks_of
from .ops import EVEN, Times, checked


def idle(
    name: str,
    stages: int,
    microbatches: int,
    chunks: int | None = None,
    times: Times = EVEN,
    together: bool = True,
) -> float:
    """Seconds that a stage waits in a step; of several, the one that waits longest.

    Args:
        name, stages, microbatches, chunks, times: as in `schedule`.
        together: the stages wait for one another at the end of the step. Otherwise
            each starts its next step at once, and what counts is the time between its
            own first and last op: `Schedule.period` less `Schedule.busy`.

    Raises:
        ValueError: there is no closed form for these; says for which there is.

    >>> idle("1f1b", 8, 32), idle("zb-h1", 8, 32), idle("dualpipe", 8, 32)
    (21, 7, 6.0)
    >>> idle("zb-v", 8, 32), idle("zb-v", 8, 32, together=False)
    (3.5, 0)
    >>> idle("zb-h1", 8, 32, times=Times(F=1, I=1, W=2))
    Traceback (most recent call last):
    ValueError: zb-h1 has a closed form for W ≤ F and W ≤ I, not for F = 1, I = 1, W = 2
    """
    v = chunks_of(name, stages, microbatches, chunks)
    p, M = positive_int(stages=stages, microbatches=microbatches)
    checked(times)
    (together,) = flags(together=together)
    _within(name, times)
    return _idle(name, p, M, v, times, together)


def _idle(
    name: str, p: int, M: int, v: int, times: Times, together: bool = True
) -> float:
    """The closed form, wherever it is meant to hold; see `idle`."""
    F, I, W = times.F, times.I, times.W
    if name in ("gpipe", "1f1b"):
        return (p - 1) * times.total
    if name == "interleaved":
        return (p - 1) * times.total / v
    if name == "zb-h1":
        return (p - 1) * (F + I) - min(M - 1, p - 1) * W
    if name == "zb-v":
        unfilled = max(0, 2 * p - 1 - M) * F
        return max(unfilled, (p - 1) * F / 2) if together else unfilled
    return (p / 2 - 1) * (times.together + times.B - 3 * W)


def idle_of(
    name: str, stages: int, microbatches: int, chunks: int | None = None
) -> Callable[[float, float], float]:
    """Seconds that a stage waits, for stages that are not quite as a closed form asks.

    Args:
        name, stages, microbatches, chunks: as in `schedule`.

    Returns:
        A function of F and B, the seconds of a stage for a microbatch forward and
        backward. Half of B is for the gradients of weights.

    Assumes:
        The closed form of `idle`, although B is seldom exactly 2F.

    >>> idle_of("interleaved", 8, 32, 2)(1.0, 2.0)
    10.5
    """
    if stages == 1:
        return lambda forward, backward: 0.0
    v = chunks_of(name, stages, microbatches, chunks)
    if name in ("gpipe", "1f1b", "interleaved"):
        filled = (stages - 1) / (v if name == "interleaved" else 1)
        return lambda forward, backward: filled * (forward + backward)

    def seconds(forward: float, backward: float) -> float:
        times = Times(forward, backward / 2, backward / 2)
        return max(0.0, _idle(name, stages, microbatches, v, times))

    return seconds


def peak(name: str, stages: int, microbatches: int, chunks: int | None = None) -> float:
    """Microbatches whose activations the stage that holds most has at a time.

    Args:
        name, stages, microbatches, chunks: as in `schedule`.

    >>> peak("gpipe", 8, 32), peak("1f1b", 8, 32), peak("interleaved", 8, 32, chunks=2)
    (32, 8, 11.5)
    """
    v = chunks_of(name, stages, microbatches, chunks)
    stages, microbatches = positive_int(stages=stages, microbatches=microbatches)
    if name == "gpipe":
        return microbatches
    if name == "interleaved" and v > 1:
        return min(microbatches, stages + (stages - 1) / v)
    return stages + 1 if name == "dualpipe" else min(microbatches, stages)


def held(
    name: str, stages: int, microbatches: int, chunks: int | None, stage: int
) -> float:
    """Microbatches of its share of layers that a stage has in flight at most.

    A stage of 1F1B starts one microbatch for each stage behind it and one for itself.
    Interleaved, in passes through one of v chunks, it starts (v − 1)·p for the other
    chunks and two for each stage behind it, and one more.

    Args:
        name, stages, microbatches, chunks: as in `schedule`.
        stage: which one, from 0.

    Assumes:
        Of the schedules besides 1F1B, interleaved and GPipe the stage that holds most
        stands for all of them.

    >>> [held("1f1b", 4, 8, None, stage) for stage in range(4)]
    [4, 3, 2, 1]
    >>> held("interleaved", 8, 32, 2, 0) == peak("interleaved", 8, 32, chunks=2)
    True
    """
    if stages == 1:
        return 1
    if name == "1f1b":
        return min(microbatches, stages - stage)
    if name == "interleaved" and chunks != 1:
        v = chunks or 2
        return min(microbatches, stages + (stages - 1 - 2 * stage) / v)
    return peak(name, stages, microbatches, chunks)


def _within(name: str, times: Times) -> None:
    F, I, W = times.F, times.I, times.W
    allowed = {
        "zb-h1": ("W ≤ F and W ≤ I", W <= F and W <= I),
        "zb-v": ("F = I = W", F == I == W),
        "dualpipe": ("I = F, W ≤ F and B ≤ F&B ≤ F + B", I == F and W <= F
                     and times.B <= times.together <= times.total * (1 + 1e-12)),
    }  # fmt: skip
    said, holds = allowed.get(name, ("", True))
    given = f"F = {F:g}, I = {I:g}, W = {W:g}"
    given += f", F&B = {times.together:g}" if name == "dualpipe" else ""
    if not holds:
        raise ValueError(f"{name} has a closed form for {said}, not for {given}")
    if times.send or times.work:
        raise ValueError(
            f"{name} has a closed form for equal stages and sends that take no time"
        )
