"""Simulate a schedule: when each op starts, and which op never can.

Every stage does its ops in their order, each as soon as its inputs have arrived. For
the same microbatch,

    F  needs F at the previous place,
    B  (or I) needs F at its own place, and B (or I) at the next place,
    W  needs I at its own place.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

from .ops import KINDS, Op, Playable, Span, StagePlace

PlacedWork = tuple[str, StagePlace]  # "F", "B" (also for "I") or "W", at a place
Ended = dict[PlacedWork, dict[int, float]]  # end times, by microbatch


def simulate(schedule: Playable) -> tuple[tuple[Span, ...], ...]:
    """Every op of every stage with its start and end.

    Raises:
        ValueError: a stage waits for an op that never ends, or `times.work` and the
            paths differ in length.
    """
    orders, needs = schedule.orders, _needs(schedule.paths)
    seconds, ended = _seconds(schedule), defaultdict(dict)
    slots, after = [slots_of(order) for order in orders], _after(schedule, needs, ended)
    spans: list[list[Span]] = [[] for _ in orders]
    clock, done = [0.0] * len(orders), [0] * len(orders)
    waiting = defaultdict(list)  # stages that wait for some work on a microbatch
    awake = list(range(len(orders)))[::-1]
    while awake:
        stage = awake.pop()
        for ops in islice(slots[stage], done[stage], None):
            start, missing = clock[stage], None
            for op in ops:
                for source, late, work in after[stage][op.kind, op.chunk]:
                    there = source.get(op.microbatch)
                    if there is None:
                        missing = missing or (work, op.microbatch)
                    elif there + late > start:
                        start = there + late
            if missing:
                waiting[missing].append(stage)
                break
            end = start + seconds(ops, stage)
            for op in ops:
                spans[stage].append(Span(op, start, end))
                work = _work(op, stage)
                ended[work][op.microbatch] = end
                if waiting:
                    awake += waiting.pop((work, op.microbatch), ())
            clock[stage] = end
            done[stage] += 1
    stuck = {s: slots[s][n] for s, n in enumerate(done) if n < len(slots[s])}
    if stuck:
        raise ValueError(_deadlock(stuck, ended, needs, schedule))
    return tuple(map(tuple, spans))


def _needs(
    paths: Sequence[Sequence[StagePlace]],
) -> dict[PlacedWork, tuple[PlacedWork, ...]]:
    """The work on its own microbatch for which each op waits, by kind and place."""
    found = {}
    for path in paths:
        before = dict(zip(path, (None, *path), strict=False))
        behind = dict(zip(path, (*path[1:], None), strict=True))
        for place in path:
            comes, back = before[place], behind[place]
            found["F", place] = (("F", comes),) if comes else ()
            found["W", place] = (("B", place),)
            gradient = (("B", back),) if back else ()
            found["B", place] = found["I", place] = (("F", place), *gradient)
    return found


def _after(schedule: Playable, needs: dict, ended: Ended) -> list[dict]:
    """For each stage, kind of op and chunk, the work that it needs: its end times, the
    time until its result arrives, and the work itself."""
    found: list[dict] = [{} for _ in schedule.orders]
    for (kind, (stage, chunk)), some in needs.items():
        found[stage][kind, chunk] = [
            (ended[work], schedule.times.send if work[1][0] != stage else 0, work)
            for work in some
        ]
    return found


def _work(op: Op, stage: int) -> PlacedWork:
    return "B" if op.kind == "I" else op.kind, (stage, op.chunk)


def slots_of(order: Sequence[Op]) -> list[tuple[Op, ...]]:
    """The ops grouped into slots; ops that run together share a slot."""
    if not any(op.beside for op in order):
        return [(op,) for op in order]
    slots: list[tuple[Op, ...]] = []
    for op in order:
        if op.beside and slots:
            slots[-1] += (op,)
        else:
            slots.append((op,))
    return slots


def _seconds(schedule: Playable):
    """A function that says how long the ops of a slot take on a stage."""
    times, share = schedule.times, schedule.share
    length = len(schedule.paths[0])
    if times.work and len(times.work) != length:
        raise ValueError(
            f"work has {len(times.work)} values, but a microbatch passes {length} "
            "places: must have one value for each"
        )
    work = times.work or (1,) * length
    each = {
        place: {kind: share * of * getattr(times, kind) for kind in KINDS}
        for path in schedule.paths
        for place, of in zip(path, work, strict=True)
    }
    together = times.together / times.total

    def seconds(ops: tuple[Op, ...], stage: int) -> float:
        if len(ops) == 1:
            return each[stage, ops[0].chunk][ops[0].kind]
        return together * sum(each[stage, op.chunk][op.kind] for op in ops)

    return seconds


def _deadlock(stuck: dict, ended: Ended, needs: dict, schedule: Playable) -> str:
    """A message that names the stages that wait for one another in a circle."""
    stage, said = min(stuck), {}
    while stage in stuck and stage not in said:
        op, kind, (there, chunk) = next(
            (op, kind, place)
            for op in stuck[stage]
            for kind, place in needs[op.kind, (stage, op.chunk)]
            if op.microbatch not in ended[kind, place]
        )
        microbatch = op.microbatch
        names = {(_work(o, there), o.microbatch): o for o in schedule.orders[there]}
        wanted = (kind, (there, chunk)), microbatch
        for_ = names.get(wanted, Op(kind, microbatch, chunk))
        whose = "its own" if there == stage else f"stage {there}'s"
        said[stage] = f"stage {stage} waits at {op} for {whose} {for_}"
        stage = there
    circle = list(said)[list(said).index(stage) :]
    end = ", which comes later" if circle == [stage] else ""
    around = "; ".join(said[stage] for stage in circle)
    return f"{schedule.name} cannot run: {around}{end}"
