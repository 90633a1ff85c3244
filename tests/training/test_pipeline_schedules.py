"""Pipeline schedules: bubbles as published, and nothing impossible accepted."""

import random
import re
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import numpy as np
import pytest

from shardmath.draw.pictures import timeline
from shardmath.training.pipeline_schedules import (
    NAMES,
    Op,
    PipelineSchedule,
    Times,
    check,
    idle,
    peak,
    schedule,
)
from shardmath.training.pipeline_schedules.closed_forms import held, idle_of
from shardmath.training.pipeline_schedules.named import LOOPED

# Each within the closed forms' domains of some schedules; `idle` refuses the others.
TIMES = (
    *(Times(), Times(1, 1.5, 0.5), Times(1, 1, 0.5)),
    *(Times(1, 1, 1, both=pair) for pair in (2, 2.5, 3)),
)


def exists(name: str, p: int, M: int) -> bool:
    if name in ("interleaved", "overlapped"):
        return M % p == 0
    if name == "dualpipev":
        return 2 * p <= M
    return name != "dualpipe" or (p % 2 == 0 and M % 2 == 0 and 2 * p <= M)


def sizes(name: str):
    """Stages 2 to 16, microbatches 1 to 64: around every corner, and the ends.

    The forms are linear between corners. All of the 7,242 cases hold as well.
    """
    for p in range(2, 17):
        near = {1, 2, p - 1, p, p + 1, 2 * p - 2, 2 * p - 1, 2 * p, 2 * p + 2, 4 * p}
        for M in sorted(near | ({64} if p in (2, 8, 16) else set())):
            if 1 <= M <= 64 and exists(name, p, M):
                yield p, M


@pytest.mark.parametrize("name", NAMES)
def test_the_bubble_is_that_of_the_closed_form(name):
    for p, M in sizes(name):
        one = schedule(name, p, M)
        assert max(one.idle) == pytest.approx(idle(name, p, M)), (p, M)
        assert one.bubble == pytest.approx(idle(name, p, M) / (3 * M)), (p, M)
        alone = idle(name, p, M, together=False)
        assert one.period - 3 * M == pytest.approx(alone), (p, M)
        assert max(one.in_flight) == peak(name, p, M), (p, M)


@pytest.mark.parametrize("name", NAMES)
def test_the_closed_form_holds_for_other_times(name):
    within = 0
    for p, M in sizes(name):
        if p > 8 or p % 2:
            continue
        for times in TIMES:
            try:
                said = idle(name, p, M, times=times)
            except ValueError:
                continue
            within += times is not TIMES[0]
            played = schedule(name, p, M, times=times)
            assert max(played.idle) == pytest.approx(said), (p, M, times)
    assert within or name == "zb-v"


@pytest.mark.parametrize("name", ["zb-h1", "zb-h2", "dualpipe", "dualpipev"])
def test_what_is_computed_again_fills_no_wait(name):
    """Under full remat B is 3F, and a third of it, not a half, can be postponed."""
    again = Times(F=1, I=2, W=1)
    for p, M in ((4, 16), (8, 32), (16, 64)):
        played = max(schedule(name, p, M, times=again).idle)
        late = 1 if name.startswith("dualpipe") else 0  # its form asks for I = F
        assert played <= idle_of(name, p, M)(1, 3) <= played + late, (p, M)
        assert idle_of(name, p, M)(1, 2) == pytest.approx(idle(name, p, M)), (p, M)


def test_outside_its_domain_a_closed_form_would_be_wrong():
    """So that the refusals are no more than what is needed."""
    late = Times(1, 1, 1.5)
    assert max(schedule("zb-h1", 4, 8, times=late).idle) > 3 * (1 + 1 - 1.5)
    assert schedule("zb-h2", 4, 8, times=late).period >= 8 * 3.5  # no gaps below none
    assert 3 * (1 + 1) - 6 * 1.5 < 0
    slow = Times(1, 1.5, 0.5)
    assert max(schedule("dualpipe", 4, 8, times=slow).idle) < 1 * (3 + 2 - 1.5)
    apart = Times(1, 1, 1, both=3.3)  # a pair that is longer than its passes
    assert max(schedule("dualpipe", 8, 16, times=apart).idle) > 3 * (3.3 + 2 - 3) + 0.5
    refused = [("zb-h1", late), ("zb-h2", late), ("zb-v", slow), ("overlapped", apart)]
    refused += [(name, t) for name in ("dualpipe", "dualpipev") for t in (slow, apart)]
    for name, times in refused:
        with pytest.raises(ValueError, match="has a closed form for"):
            idle(name, 8, 16, times=times)
    with pytest.raises(ValueError, match=r"F&B = 3\.3"):
        idle("dualpipe", 8, 16, times=apart)
    with pytest.raises(ValueError, match="sends that take no time"):
        idle("1f1b", 4, 8, times=Times(send=1))


@pytest.mark.parametrize("chunks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", LOOPED)
def test_chunks_divide_the_bubble_and_cost_memory(name, chunks):
    one = schedule(name, 4, 16, chunks)
    assert one.bubble == pytest.approx(schedule("1f1b", 4, 16).bubble / chunks)
    most = {
        "interleaved": 4 + (3 / chunks if chunks > 1 else 0),
        "overlapped": 4 + 4 / chunks,
        "breadth-first": 16,
    }
    assert max(one.in_flight) == pytest.approx(most[name])
    assert sum(one.sends) == 2 * 16 * (4 * chunks - 1)  # every place but the first
    for p, M in ((2, 2), (3, 6), (4, 4), (8, 24)):
        one = schedule(name, p, M, chunks)
        assert max(one.idle) == pytest.approx(idle(name, p, M, chunks)), (p, M)
        assert max(one.in_flight) == pytest.approx(peak(name, p, M, chunks)), (p, M)


EVERY_STAGE = [("1f1b", None), ("eager-1f1b", None)]
EVERY_STAGE += [("interleaved", v) for v in (2, 3)]
EVERY_STAGE += [("overlapped", v) for v in (1, 2, 3)]


@pytest.mark.parametrize(("name", "chunks"), EVERY_STAGE)
def test_what_each_stage_holds_is_known_without_playing(name, chunks):
    for p, M in ((2, 2), (3, 6), (4, 8), (4, 16), (8, 16)):
        one = schedule(name, p, M, chunks)
        each = [held(name, p, M, chunks, stage) for stage in range(p)]
        assert list(one.in_flight) == pytest.approx(each), (p, M)


def test_breadth_first_of_one_chunk_is_gpipe():
    one, other = schedule("breadth-first", 4, 6, chunks=1), schedule("gpipe", 4, 6)
    assert one.orders == other.orders


@pytest.mark.parametrize("M", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("chunks", [2, 3])
def test_breadth_first_with_few_microbatches_waits_in_every_chunk(M, chunks):
    """The paper's form is for M ≥ p; below, each further chunk waits for p − M."""
    for p in (2, 4, 5, 8):
        said = idle("breadth-first", p, M, chunks)
        played = max(schedule("breadth-first", p, M, chunks).idle)
        assert played == pytest.approx(said), p
        assert (said > 3 * (p - 1) / chunks + 1e-9) == (p > M)


def test_eager_1f1b_hides_what_1f1b_waits_for():
    """Sends that take no longer than a pass cost only the way there and back."""
    for p in (2, 4, 8):
        for send in (0.25, 0.5, 1):
            eager, lazy = (
                max(schedule(name, p, 4 * p, times=Times(send=send)).idle)
                for name in ("eager-1f1b", "1f1b")
            )
            assert eager == pytest.approx((p - 1) * (3 + 2 * send))
            assert lazy > eager + 4 * send


def test_zb_h2_has_no_gaps_but_its_stages_wait_for_one_another():
    """What the paper calls zero is between a stage's own first and last op."""
    for p in (2, 4, 8):
        h1, h2 = (schedule(name, p, 4 * p) for name in ("zb-h1", "zb-h2"))
        assert h2.period == h2.busy[0]
        assert h2.idle == h1.idle == (p - 1,) * p
        assert set(h2.in_flight) == {2 * p - 1}
        assert idle("zb-h2", p, 4 * p, together=False) == 0


def test_orders_are_those_that_were_published():
    """Figure 3 of Qi et al., 2024, where B is our I; and the clocks in Alpa's code."""
    h2 = schedule("zb-h2", 4, 8)
    tail = " ".join(f"I{m} W{m}" for m in range(1, 8))
    first = "F0 F1 F2 F3 F4 F5 F6 I0 W0 F7 " + tail
    assert " ".join(map(str, h2.orders[0])) == first
    pairs = " ".join(f"F{m} I{m}" for m in range(7))
    last = pairs + " W0 F7 I7 W1 W2 W3 W4 W5 W6 W7"
    assert " ".join(map(str, h2.orders[3])) == last
    eager = schedule("eager-1f1b", 3, 8)
    begins = ("F0 F1 F2 F3 F4 B0 F5", "F0 F1 F2 B0 F3 B1", "F0 B0 F1 B1 F2")
    for order, begin in zip(eager.orders, begins, strict=True):
        assert " ".join(map(str, order)).startswith(begin)


@pytest.mark.parametrize(("p", "M"), [(2, 4), (4, 10), (5, 12), (8, 20)])
def test_dualpipev_takes_the_eight_steps_of_its_authors(p, M):
    """Kinds and chunks, step by step, as the comments of dualpipev.py name them."""
    for rank, order in enumerate(schedule("dualpipev", p, M).orders):
        after = p - rank - 1
        steps = after * 2 * "F0 " + (rank + 1) * "F0 F1 " + after * "B1 W1 F1 "
        steps += (M - 2 * p + rank + 1) * "F0 B1 F1 B0 " + after * "B1 F1 B0 "
        steps += (rank + 1) * "B1 B0 " + after * "W B0 " + (rank + 1) * "W "
        kinds = [
            "W" if op.kind == "W" else f"{op.kind}{op.chunk}".replace("I", "B")
            for op in order
        ]
        said = [word[0] if word[0] == "W" else word for word in steps.split()]
        assert kinds == said, rank
        for chunk in (0, 1):
            for kinds in ("F", "BI"):
                passes = [
                    op.microbatch
                    for op in order
                    if op.kind in kinds and op.chunk == chunk
                ]
                assert passes == list(range(M))


def warmed_up(M: int, ahead: int, later: int | None) -> tuple[Op, ...]:
    """So many forward passes, then one backward and one forward; W so much later."""
    order = [Op("F", m) for m in range(min(ahead, M))]
    for m in range(M):
        order.append(Op("B" if later is None else "I", m))
        if later is not None and m >= later:
            order.append(Op("W", m - later))
        order += [Op("F", ahead + m)] if ahead + m < M else []
    return (*order, *(Op("W", m) for m in range(M - (later or 0), M) if later))


@pytest.mark.parametrize("name", ["eager-1f1b", "zb-h2"])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_another_warm_up_is_not_what_is_published(name, more):
    """One forward pass too few or too many before the first backward pass shows."""
    p, M = 4, 12
    good, orders = schedule(name, p, M), []
    for s in range(p):
        later = 2 * s if name == "zb-h2" else None
        ahead = max(1, 2 * (p - s) - 1 + more)
        orders.append(warmed_up(M, ahead, later))
    other = replace(good, orders=tuple(orders))
    check(other)
    assert (other.orders == good.orders) == (more == 0)
    found = max(other.in_flight), max(other.idle), other.period - 3 * M
    alone = idle(name, p, M, together=False)
    assert (found == (peak(name, p, M), idle(name, p, M), alone)) == (more == 0)


def test_what_stages_send():
    """The middle of a V hands over to itself; DualPipe's both ends begin and end."""
    assert schedule("1f1b", 4, 8).sends == (8, 16, 16, 8)
    assert schedule("zb-v", 4, 8).sends == (16, 32, 32, 16)
    assert schedule("dualpipe", 4, 8).sends == (8, 16, 16, 8)


def test_what_1f1b_holds():
    """Stage s holds p − s microbatches, where GPipe holds all."""
    assert schedule("1f1b", 5, 12).in_flight == (5, 4, 3, 2, 1)
    assert schedule("gpipe", 5, 12).in_flight == (12,) * 5


def edges(one: PipelineSchedule) -> dict:
    """What every op waits for, said again and naively: data, and the op before."""
    graph = {}
    for stage, order in enumerate(one.orders):
        for op in order:
            graph[stage, op] = set()
        for before, op in pairwise(order):
            graph[stage, op].add((stage, before))
    for m in range(one.microbatches):
        path = one.path(m)
        backward = {
            (s, c): Op("B", m, c) if (s, Op("B", m, c)) in graph else Op("I", m, c)
            for s, c in path
        }
        for s, c in path:
            graph[s, backward[s, c]].add((s, Op("F", m, c)))
            if (s, Op("W", m, c)) in graph:
                graph[s, Op("W", m, c)].add((s, backward[s, c]))
        for (a, ca), (b, cb) in pairwise(path):
            graph[b, Op("F", m, cb)].add((a, Op("F", m, ca)))
            graph[a, backward[a, ca]].add((b, backward[b, cb]))
    return graph


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("send", [0, 0.25])
def test_uneven_stages_take_the_longest_path(name, send):
    """The event simulation against the longest path through the graph of all ops."""
    p, M = 4, 8
    places = len(schedule(name, p, M).paths[0])
    times = Times(1, 1.25, 0.75, None, send, tuple(1 + i % 3 for i in range(places)))
    one = schedule(name, p, M, times=times)
    share, ends = p / places, {}
    work = {
        place: w
        for path in one.paths
        for place, w in zip(path, times.work, strict=True)
    }
    slots = {}  # ops that run together are one node
    for stage, order in enumerate(one.orders):
        for before, op in pairwise((None, *order)):
            slots[stage, op] = slots[stage, before] if op.beside else (stage, op)
    graph, lasts = {}, dict.fromkeys(slots.values(), 0)
    for (stage, op), needed in edges(one).items():
        slot = slots[stage, op]
        graph.setdefault(slot, set()).update(slots[node] for node in needed)
        graph[slot].discard(slot)
        lasts[slot] += share * getattr(times, op.kind) * work[stage, op.chunk]
    for slot in TopologicalSorter(graph).static_order():
        arrived = (ends[of] + send * (of[0] != slot[0]) for of in graph[slot])
        ends[slot] = max(arrived, default=0) + lasts[slot]
    played = {(s, x.op): x.end for s, spans in enumerate(one.spans) for x in spans}
    assert played == pytest.approx({node: ends[slot] for node, slot in slots.items()})
    assert min(one.idle) >= 0


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("dualpipe", 4 * 3),  # the rest of 4 forward passes is alone
        ("overlapped", 4 * 16 - (11 + 9 + 7 + 5)),  # without the warm-ups
        ("dualpipev", 1 + 2 * (1 + 2 + 3 + 4) + (3 + 2 + 1 + 0) - 2),
    ],
)
def test_pairs_begin_and_end_together(name, count):
    """In DualPipe, and the pair takes `both`."""
    one = schedule(name, 4, 8, times=Times(1, 1, 1, both=2.5))
    pairs = [
        (first, second)
        for spans in one.spans
        for first, second in pairwise(spans)
        if second.op.beside
    ]
    assert len(pairs) == count
    for first, second in pairs:
        assert (first.op.kind, second.op.kind) == ("F", "B")
        assert first[1:] == second[1:]
        assert first.end - first.start == pytest.approx(2.5 * one.share)


def test_numbers_of_a_fixed_width_are_taken_as_pythons():
    """100 + 100 is −56 in NumPy's int8."""
    hundred, p, M = np.int8(100), np.int8(8), np.int8(16)
    times = Times(hundred, hundred, hundred, both=hundred, work=(hundred,) * 2)
    assert (times.B, times.total, times.together) == (200, 300, 100)
    assert {type(n) for n in (times.F, times.both, *times.work)} == {int}
    even = Times(hundred, hundred, hundred)
    assert idle("1f1b", p, M, times=even) == 7 * 300
    one = schedule("1f1b", p, M, times=even)
    assert {type(n) for n in (one.stages, one.microbatches)} == {int}
    assert type(peak("1f1b", p, M)) is int


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: idle("1f1b", 4, 8, times=3), "times = 3: must be `Times"),
        (lambda: idle("1f1b", 4, 8, times=None), "times = None: must be `Times"),
        (lambda: schedule("1f1b", 4, 8, times=3), "times = 3: must be `Times"),
        (lambda: replace(schedule("1f1b", 4, 8), times=3), "times = 3: must be `Ti"),
        (lambda: check(None), "schedule = None: must be a `PipelineSchedule`"),
        (lambda: timeline(None), "schedule = None: must be a `PipelineSchedule`"),
        (lambda: schedule("1f1b", 4, 8).path(9), "microbatch = 9: microbatches are 0 "),
        (lambda: schedule("1f1b", 4, 8).path(-1), "microbatch = -1: microbatches are"),
        (lambda: Times(work=3), "work = 3: must be a sequence of numbers"),
        (lambda: Times(work="34"), "work = '34': must be a sequence of numbers"),
        (lambda: Times(work=(1, "x")), "work[1] = 'x'"),
        (lambda: schedule("1f1b", 4, 8, chunks="x"), "chunks = 'x': must be a whole"),
        (lambda: schedule("1f1b", 4, 8, chunks=True), "chunks = True: must be a whole"),
        (lambda: schedule("zb-v", 4, 8, chunks=2.0), "chunks = 2.0: must be a whole"),
        (lambda: schedule("interleaved", 4, 8, chunks=2.0), "chunks = 2.0: must be a"),
    ],
)
def test_what_is_no_argument_is_quoted(call, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        call()


def rejected(one: PipelineSchedule) -> bool:
    try:
        check(one)
    except ValueError as error:
        return str(error).startswith(f"{one.name} cannot run: stage ")
    return False


def possible(good: PipelineSchedule, one: PipelineSchedule) -> bool:
    """Whether the same ops stand at every stage, and no circle of waiting is there."""
    if any(
        sorted(a) != sorted(b) for a, b in zip(good.orders, one.orders, strict=True)
    ):
        return False
    try:
        TopologicalSorter(edges(one)).prepare()
    except CycleError:
        return False
    return True


def mutations(good: PipelineSchedule, rng: random.Random):
    """Ops swapped, moved, dropped, doubled, or handed to another stage."""
    for _ in range(60):
        orders = [list(order) for order in good.orders]
        stage, other = rng.sample(range(good.stages), 2)
        order = orders[stage]
        i, j = rng.sample(range(len(order)), 2)
        match rng.choice(("swap", "swap", "move", "drop", "double", "hand over")):
            case "swap":
                order[i], order[j] = order[j], order[i]
            case "move":
                order.insert(j, order.pop(i))
            case "drop":
                del order[i]
            case "double":
                order.insert(j, order[i])
            case "hand over":
                orders[other].insert(min(j, len(orders[other])), order.pop(i))
        yield replace(good, orders=tuple(map(tuple, orders)))


@pytest.mark.parametrize("name", NAMES)
def test_no_broken_dependency_passes(name):
    """Against a circle found by `graphlib`: rejected if, and only if, it is broken."""
    rng, said = random.Random(12), {True: 0, False: 0}
    for p, M in ((2, 4), (4, 8)):
        good = schedule(name, p, M)
        orders = tuple(
            tuple(replace(op, beside=False) for op in order) for order in good.orders
        )
        good = replace(good, orders=orders)  # pairs may be pulled apart
        check(good)
        for one in mutations(good, rng):
            bad = rejected(one)
            assert bad != possible(good, one), one.orders
            said[bad] += 1
    assert said[True] > 50
    assert said[False] > 0


@pytest.mark.parametrize(
    ("orders", "said"),
    [
        (("F0 B0", "B0 F0"), "stage 1 waits at B0 for its own F0, which comes later"),
        (("F0 B0", "F0"), "stage 1 never does B0"),
        (("F0 F0 B0", "F0 B0"), "stage 0 does F0 twice"),
        (("F0 B0 W0", "F0 B0"), "stage 0 does W0 twice, because B0 includes it"),
        (("F0 I0", "F0 B0"), "stage 0 never does W0"),
        (("F0 B0 F1", "F0 B0"), "stage 0: F1, but the microbatches are 0 to 0"),
        (("F0 B0 X0", "F0 B0"), "stage 0: X0 must be of kind F, B, I, W"),
    ],
)
def test_what_is_wrong_is_said(orders, said):
    good = schedule("1f1b", 2, 1)
    ops = tuple(tuple(Op(w[0], int(w[1])) for w in o.split()) for o in orders)
    with pytest.raises(ValueError, match=f"^1f1b cannot run: {said}$"):
        check(replace(good, orders=ops))


@pytest.mark.parametrize("paths", [(), ((),)])
def test_a_path_that_passes_nothing_is_refused(paths):
    with pytest.raises(ValueError, match="each path must pass at least one place"):
        check(replace(schedule("gpipe", 2, 1), paths=paths))


def test_a_circle_of_stages_is_told_all_around():
    one = schedule("1f1b", 2, 2)
    ops = "F0 B0 F1 B1", "F0 F1 B0 B1"
    orders = tuple(tuple(Op(w[0], int(w[1])) for w in o.split()) for o in ops)
    said = (
        "1f1b cannot run: stage 0 waits at B0 for stage 1's B0; "
        "stage 1 waits at F1 for stage 0's F1"
    )
    with pytest.raises(ValueError, match=f"^{said}$"):
        check(replace(one, orders=orders))


def test_pairs_that_cannot_be_are_refused():
    good = schedule("dualpipe", 2, 4)
    for bad in ("F0 F1+", "B0+ F0"):
        ops = [Op(w[0], int(w[1]), beside=w.endswith("+")) for w in bad.split()]
        with pytest.raises(ValueError, match="stage 0"):
            check(replace(good, orders=(tuple(ops), good.orders[1])))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("2f2b", 4, 8), "name = '2f2b': must be one of gpipe, 1f1b"),
        (("1f1b", 0, 8), "stages = 0: must be a whole number from 1"),
        ((["1f1b"], 4, 8), r"\['1f1b'\]: must be one of"),
        (("1f1b", 4, 8, None, 2), "times = 2: must be `Times"),
        (("1f1b", 4, 8, 2), "1f1b has 1 chunk per stage, not 2"),
        (("dualpipe", 4, 6), "dualpipe needs an even number of stages"),
        (("dualpipe", 3, 8), "dualpipe needs an even number of stages"),
        (("interleaved", 4, 9), "interleaved needs a multiple of 4 microbatches"),
        (("overlapped", 4, 9), "overlapped needs a multiple of 4 microbatches"),
        (("dualpipev", 4, 7), "dualpipev needs at least twice as many microbatches"),
    ],
)
def test_bad_input(given, said):
    with pytest.raises(ValueError, match=said):
        schedule(*given)


@pytest.mark.parametrize("microbatch", [0.5, "0", -1])
def test_a_microbatch_that_is_none_is_refused(microbatch):
    good = schedule("1f1b", 2, 1)
    orders = (Op("F", microbatch), Op("B", 0)), good.orders[1]
    with pytest.raises(ValueError, match="but the microbatches are 0 to 0"):
        check(replace(good, orders=orders))


def test_bad_times():
    with pytest.raises(ValueError, match="F = 0: must be a finite number above 0"):
        Times(F=0)
    with pytest.raises(ValueError, match="W must be finite and 0 or more, not -1"):
        Times(W=-1)
    for send in (float("inf"), float("nan"), -1):
        with pytest.raises(ValueError, match="send must be finite and 0 or more"):
            Times(send=send)
    with pytest.raises(ValueError, match="send = None: must be a number"):
        Times(send=None)
    with pytest.raises(
        ValueError, match="work has 3 values, but a microbatch passes 4"
    ):
        _ = schedule("1f1b", 4, 4, times=Times(work=(1, 2, 3))).seconds
