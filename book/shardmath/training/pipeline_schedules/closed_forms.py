"""The closed forms that papers give for their schedules, and where these hold.

A pipeline has p stages, M microbatches and v chunks. A stage takes F, I and W seconds
for a microbatch (B = I + W), and F&B for a forward and a backward pass together:

    schedule       idle seconds of a stage           holds for           held at most
    gpipe          (p−1)(F+B)                        every M             M
    1f1b           (p−1)(F+B)                        every M             min(M, p)
    eager-1f1b     (p−1)(F+B)                        every M             min(M, 2p−1)
    interleaved    (p−1)(F+B)/v                      M a multiple of p   p + (p−1)/v
    overlapped     (p−1)(F+B)/v                      M a multiple of p,  p + p/v
                                                     B ≤ F&B ≤ F+B
    breadth-first  (p−1)(F+B)/v                      M ≥ p               M
    zb-h1          (p−1)(F+B−2W) = (p−1)(F+I−W)      W ≤ F, W ≤ I        min(M, p)
    zb-h2          (p−1)(F+I−2W), between a stage's  W ≤ F, 2W ≤ F+I,    min(M, 2p−1)
                   own first and last op             M ≥ 2p−1
    zb-v           (p−1)F/2, or none: see `idle`     F = I = W           min(M, p)
    dualpipe       (p/2−1)(F&B+B−3W)                 I = F, W ≤ F,       p + 1
                                                     B ≤ F&B ≤ F+B
    dualpipev      (p−1)(F&B+B−3W)/2                 as dualpipe         p + 1/2

"Held" counts microbatches for a stage's whole share of layers, on the stage that holds
the most. If M is small, breadth-first, zb-h1, zb-h2 and zb-v have the longer forms in
`_idle`.

Sources: Narayanan et al., 2021 (arXiv:2104.04473), section 2.2; Zhuang et al., 2022
(arXiv:2211.05322), for eager 1F1B; Lamy-Poirier, 2022 (arXiv:2211.05953), for
breadth-first; Qi et al., 2024 (arXiv:2401.10241), table 2, whose "B" is our I, and
section 6; DeepSeek-AI, 2024 (arXiv:2412.19437), table 2, whose "B" is our B; the table
in DeepSeek's DualPipe repository (3da1bbe), which counts two stages for each of our p
in dualpipev, and so has p/2 where this table has p, and chunks where it has stages.

We found further conditions by simulating the schedules. zb-h1 needs W ≤ min(F, I), and
zb-h2 needs the conditions above. DualPipe needs I = F, and pairs that take no longer
than their two passes in turn. The paper's form for zb-h2 ignores that the stages start
and end one after the other. If the stages wait for one another at the end of a step,
each waits (p−1)F for F = I = W, which is as long as in zb-h1, although no stage has a
gap. No paper gives a form for overlapped. This schedule has the bubble of interleaved,
because the forward passes of the first microbatch and the backward passes of the last
are not in pairs.
"""

from collections.abc import Callable

from ...base.units import flags, positive_int
from .named import chunks_of
from .ops import EVEN, Times, checked

# The first microbatch fills these pipelines and the last one drains them, which takes
# p − 1 passes forward and backward through a chunk.
FILLED = ("gpipe", "1f1b", "eager-1f1b", "interleaved", "overlapped")


def idle(
    name: str,
    stages: int,
    microbatches: int,
    chunks: int | None = None,
    times: Times = EVEN,
    together: bool = True,
) -> float:
    """The longest time, in seconds, that any stage waits in a step.

    Args:
        name, stages, microbatches, chunks, times: as in `schedule`.
        together: whether the stages wait for one another at the end of the step.
            If not, each starts its next step at once, and only waits between its first
            and last op count: `period` − `busy` of a `PipelineSchedule`.

    Raises:
        ValueError: there is no closed form for these arguments. The message says for
            which arguments there is one.

    >>> idle("1f1b", 8, 32), idle("zb-h1", 8, 32), idle("dualpipe", 8, 32)
    (21, 7, 6.0)
    >>> idle("zb-v", 8, 32), idle("zb-v", 8, 32, together=False)
    (3.5, 0)
    >>> idle("zb-h2", 8, 32), idle("zb-h2", 8, 32, together=False)
    (7, 0)
    >>> idle("zb-h1", 8, 32, times=Times(F=1, I=1, W=2))
    Traceback (most recent call last):
    ValueError: zb-h1 has a closed form for W ≤ F and W ≤ I, not for F = 1, I = 1, W = 2
    """
    v = chunks_of(name, stages, microbatches, chunks)
    p, M = positive_int(stages=stages, microbatches=microbatches)
    checked(times)
    (together,) = flags(together=together)
    _within(name, times, together)
    return _idle(name, p, M, v, times, together)


def _idle(
    name: str, p: int, M: int, v: int, times: Times, together: bool = True
) -> float:
    """The closed form, without a check that it holds; see `idle`."""
    F, I, W = times.F, times.I, times.W
    if name in FILLED:
        filled = (p - 1) * times.total
        return filled if v == 1 else filled / v
    if name == "breadth-first":
        return (p - 1 + (v - 1) * max(0, p - M)) * times.total / v
    if name == "zb-h1":
        return (p - 1) * (F + I) - min(M - 1, p - 1) * W
    if name == "zb-h2":
        gaps = (p - 1) * (F + I) - min(M - 1, 2 * (p - 1)) * W
        # Stage s ends s·I earlier than stage 0, except that it still has to compute W
        # of 2s microbatches.
        late = max(min(M - 1, 2 * s) * W - s * I for s in range(p))
        return gaps + late if together else gaps
    if name == "zb-v":
        unfilled = max(0, 2 * p - 1 - M) * F
        return max(unfilled, (p - 1) * F / 2) if together else unfilled
    pairs = times.together + times.B - 3 * W
    return (p / 2 - 1) * pairs if name == "dualpipe" else (p - 1) / 2 * pairs


def idle_of(
    name: str, stages: int, microbatches: int, chunks: int | None = None
) -> Callable[[float, float], float]:
    """Seconds that a stage waits, even if the times do not quite fit a closed form.

    Args:
        name, stages, microbatches, chunks: as in `schedule`.

    Returns:
        A function of F and B, the seconds of a stage for a microbatch forward and
        backward.

    Assumes:
        The closed form of `idle` holds, although B is seldom exactly 2F. W is half of B
        but at most F, because recomputation belongs to I: it has to be finished before
        a gradient can be passed on.

    >>> idle_of("interleaved", 8, 32, 2)(1.0, 2.0)
    10.5
    >>> idle_of("zb-h1", 8, 32)(1.0, 2.0), idle_of("zb-h1", 8, 32)(1.0, 3.0)
    (7.0, 14.0)
    """
    if stages == 1:
        return lambda forward, backward: 0.0
    v = chunks_of(name, stages, microbatches, chunks)
    if name in FILLED:
        filled = (stages - 1) / v
        return lambda forward, backward: filled * (forward + backward)

    def seconds(forward: float, backward: float) -> float:
        W = min(forward, backward / 2)
        times = Times(forward, backward - W, W)
        return max(0.0, _idle(name, stages, microbatches, v, times))

    return seconds


def peak(name: str, stages: int, microbatches: int, chunks: int | None = None) -> float:
    """How many microbatches' activations any stage holds at once, at most.

    Args:
        name, stages, microbatches, chunks: as in `schedule`.

    >>> peak("gpipe", 8, 32), peak("1f1b", 8, 32), peak("interleaved", 8, 32, chunks=2)
    (32, 8, 11.5)
    """
    v = chunks_of(name, stages, microbatches, chunks)
    stages, microbatches = positive_int(stages=stages, microbatches=microbatches)
    if name in ("gpipe", "breadth-first"):
        return microbatches
    if name in ("dualpipe", "dualpipev"):
        return stages + (1 if name == "dualpipe" else 1 / 2)
    most = stages
    if name in ("eager-1f1b", "zb-h2"):
        most = 2 * stages - 1
    elif name == "overlapped":
        most = stages + stages / v
    elif name == "interleaved" and v > 1:
        most = stages + (stages - 1) / v
    return min(microbatches, most)


def held(
    name: str, stages: int, microbatches: int, chunks: int | None, stage: int
) -> float:
    """How many microbatches a stage has in flight, at most, for its share of layers.

    Before its first backward pass, a stage of 1F1B starts one microbatch for each later
    stage and one for itself. Eager 1F1B starts two for each later stage, and one for
    itself. Interleaved 1F1B, each of whose passes goes through one of v chunks, starts
    (v − 1)·p passes for the other chunks, two for each later stage, and one more.
    Overlapped starts two more instead of one.

    Args:
        name, stages, microbatches, chunks: as in `schedule`.
        stage: the stage, counted from 0.

    Assumes:
        In the other schedules, all stages hold about the same amount, so we take the
        stage that holds the most.

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
    if name == "eager-1f1b":
        return min(microbatches, 2 * (stages - stage) - 1)
    if name == "overlapped":
        v = chunks or 2
        return min(microbatches, stages + (stages - 2 * stage) / v)
    return peak(name, stages, microbatches, chunks)


def _within(name: str, times: Times, together: bool) -> None:
    F, I, W = times.F, times.I, times.W
    no_longer = times.together <= times.total * (1 + 1e-12)
    in_pairs = I == F and W <= F and times.together >= times.B and no_longer
    pairs = "I = F, W ≤ F and B ≤ F&B ≤ F + B", in_pairs
    overlaps = "B ≤ F&B ≤ F + B", times.together >= times.B and no_longer
    if not together:  # some stages have more pairs than others
        overlaps = "F&B = F + B", times.together == times.total
    allowed = {
        "overlapped": overlaps,
        "zb-h1": ("W ≤ F and W ≤ I", W <= F and W <= I),
        "zb-h2": ("W ≤ F and 2W ≤ F + I", W <= F and 2 * W <= F + I),
        "zb-v": ("F = I = W", F == I == W),
        "dualpipe": pairs,
        "dualpipev": pairs,
    }
    said, holds = allowed.get(name, ("", True))
    given = f"F = {F:g}, I = {I:g}, W = {W:g}"
    given += f", F&B = {times.together:g}" if "F&B" in said else ""
    if not holds:
        raise ValueError(f"{name} has a closed form for {said}, not for {given}")
    if times.send or times.work:
        raise ValueError(
            f"{name} has a closed form only for equal stages and for sends that take "
            "no time"
        )
