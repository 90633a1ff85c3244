"""The simulator of servers, against queueing theory, counts, and a measured sweep."""

from dataclasses import replace
from itertools import pairwise
from math import inf, log, nan
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shardmath.inference import Batch
from shardmath.serving import (
    Demand,
    Engine,
    LatencyTarget,
    Lognormal,
    Pools,
    Request,
    Sampled,
    Speculation,
    Uniform,
    percentile,
    simulate,
    simulate_pools,
)
from shardmath.serving.pages import PagePool
from shardmath.serving.played import PlayedServer, Sequence
from shardmath.serving.stretch import stretch

ONE = Engine(slots=1, budget=10_000_000)


def roof(batch: Batch) -> float:
    """Seconds of a step with a kink in the context, as the roofline has one."""
    math = 4e-6 * batch.tokens + 2e-9 * batch.context
    math += sum(1e-9 * new * behind for new, behind in batch.prefill)
    return 0.004 + max(0.002 + 2e-8 * batch.context, math)


def steps(result) -> int:
    return sum(one.steps for server in result.stretches for one in server)


# Queues with a known answer ----------------------------------------------------------


def mean_wait(rate: float, work: Lognormal | int, seed: int, count=20_000) -> float:
    """Mean wait in the queue of a server that takes one prompt at a time."""
    demand = Demand.poisson(rate, count, work, 1, seed)
    return simulate(lambda b: b.tokens / 1000, ONE, demand).mean_wait


@pytest.mark.parametrize(("load", "most"), [(0.5, 0.03), (0.8, 0.06)])
def test_a_server_of_fixed_requests_waits_as_m_d_1_says(load, most):
    """ρ/2(1 − ρ) service times; a seed alone scatters by some per cent."""
    found = sum(mean_wait(load, 1000, seed) for seed in range(3)) / 3
    assert found == pytest.approx(load / (2 * (1 - load)), rel=most)


class Exponential:
    def at(self, share: float) -> int:
        return max(1, round(-100_000 * log(1 - share)))


@pytest.mark.parametrize("load", [0.6])
def test_a_server_of_random_requests_waits_as_m_m_1_says(load):
    """ρ/(1 − ρ) service times: twice the wait of fixed ones."""
    found = 0.0
    for seed in range(3):
        demand = Demand.poisson(load, 20_000, Exponential(), 1, seed)
        found += simulate(lambda b: b.tokens / 100_000, ONE, demand).mean_wait / 3
    assert found == pytest.approx(load / (1 - load), rel=0.05)


@pytest.mark.parametrize(("clients", "think"), [(1, 2.0), (4, 2.0), (8, 6.0)])
def test_a_closed_loop_is_as_fast_as_mean_value_analysis_says(clients, think):
    """One server with exponential work, and clients that think: X = n / (R + Z)."""
    queue = rate = 0.0
    for n in range(1, clients + 1):
        time = 1 + queue
        rate = n / (time + think)
        queue = rate * time
    demand = Demand.closed_loop(clients, 20_000, Exponential(), 1, think=think)
    result = simulate(lambda b: b.tokens / 100_000, ONE, demand)
    assert len(result.served) / result.duration == pytest.approx(rate, rel=0.03)


def test_a_full_closed_loop_takes_as_long_as_its_steps():
    """Eight clients and slots for all: a step of prompts, then 199 steps of decode."""
    engine = Engine(slots=8, budget=80_000)
    demand = Demand.closed_loop(8, 80, 1000, 200)
    result = simulate(lambda b: 0.01 + 1e-5 * b.tokens, engine, demand)
    once = 0.01 + 1e-5 * 8000
    each = 0.01 + 1e-5 * 8
    assert result.duration == pytest.approx(10 * (once + 199 * each))
    assert result.ttft(50) == pytest.approx(once)
    assert result.tpot(99) == pytest.approx(each)
    assert result.throughput == pytest.approx(1600 / (once + 199 * each))


# What must not be lost or made -------------------------------------------------------

lengths = st.tuples(
    st.floats(0, 0.2), st.integers(1, 300), st.integers(1, 60), st.integers(0, 3)
)
engines = st.fixed_dictionaries(
    {
        "slots": st.integers(1, 12),
        "pages": st.none() | st.integers(23, 90),
        "page": st.sampled_from([16, 32]),
        "budget": st.integers(61, 500),
        "chunked": st.booleans(),
        "reserve": st.booleans(),
        "prefix_cache": st.booleans(),
        "speculation": st.none() | st.builds(
            Speculation, st.integers(1, 4), st.floats(0, 1)
        ),
    }
)  # fmt: skip


def demanded(rows, clients=None, think=0.0) -> Demand:
    """Requests from gaps and lengths; some of them share a prefix of 48 tokens."""
    clock, found = 0.0, []
    for gap, prompt, answer, group in rows:
        clock += gap
        named = group and prompt >= 48
        prefix = {"prefix": f"group {group}", "shared": 48} if named else {}
        found.append(Request(clock, prompt, answer, **prefix))
    return Demand(tuple(found), clients, think)


def accounted(result, engine: Engine) -> None:
    """Tokens, work, pages and requests are neither lost nor made."""
    (server,) = result.stretches
    assert server[-1].queue == 0
    assert server[-1].slots >= 1
    assert all(one.slots <= engine.slots for one in server)
    assert all(a.end <= b.start + 1e-12 for a, b in pairwise(server))
    if engine.pages:
        assert result.most_pages <= engine.pages
    for one in server:
        taken = one.decode * engine.verified * engine.chunked + one.prefill
        alone = not engine.chunked and one.prefill <= 500
        assert taken <= engine.budget or alone or one.decode == 0
    assert sum(one.prefill for one in server) == result.computed
    given = sum(one.tokens for one in server)
    if engine.speculation is None or not result.preemptions:
        assert given == pytest.approx(result.output)
    assert result.recomputed >= 0
    assert (result.recomputed > 0) <= (result.preemptions > 0)
    for one in result.served:
        assert one.request.arrival <= one.admitted <= one.first <= one.finish
        assert (one.finish == one.first) == (one.request.output == 1)
    assert result.in_system == pytest.approx(result.little)


# A preemption frees the pages with which prefill comes first in the very next step.
READMITTED = {
    "slots": 2, "pages": 23, "page": 16, "budget": 61, "chunked": False,
    "reserve": False, "prefix_cache": False, "speculation": Speculation(1, 0.5),
}  # fmt: skip


@settings(max_examples=150)
@example([(0.0, 5, 30, 0), (0.0, 297, 26, 0)], READMITTED, 0)
@given(st.lists(lengths, min_size=1, max_size=25), engines, st.integers(0, 3))
def test_nothing_is_lost_and_skipping_changes_nothing(rows, options, clients):
    engine = Engine(**options)
    demand = demanded(rows, clients or None, think=0.01)
    slow = simulate(roof, engine, demand, skip=False)
    fast = simulate(roof, engine, demand)
    accounted(slow, engine)
    accounted(fast, engine)
    assert steps(fast) == steps(slow)
    assert fast.preemptions == slow.preemptions
    assert fast.computed == slow.computed
    for one, other in zip(fast.served, slow.served, strict=True):
        for name in ("admitted", "first", "finish"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9)
    for name in ("decoding", "in_slots", "busy"):
        assert getattr(fast, name) == pytest.approx(getattr(slow, name))
    uncounted = simulate(roof, engine, demand, pages=False)
    assert uncounted.served == fast.served
    assert uncounted.computed == fast.computed
    assert [one._replace(pages=None) for one in fast.stretches[0]] == [
        *uncounted.stretches[0]
    ]
    with pytest.raises(ValueError, match="pages = False"):
        _ = uncounted.most_pages


@settings(max_examples=100)
@given(st.lists(lengths, min_size=1, max_size=25), engines, st.booleans())
def test_a_server_that_is_done_holds_nothing(rows, options, pages):
    server = PlayedServer(roof, Engine(**options), pages=pages)
    waiting = list(enumerate(demanded(rows).requests))
    complete = 0
    while waiting or server.busy:
        if waiting:
            number, request = waiting.pop(0)
            server.submit(Sequence(request, number), server.clock)
        complete += len(server.run(server.clock + 0.02))
        own = sum(one.own for one in server.admitted.values())
        kept = sum(one.pages for one in server.pool.prefixes.values() if one.readers)
        assert server.pool.held == own + kept
        for one in server.admitted.values():
            cached = one.done
            if one.begun >= 0:
                cached = one.length + one.growth * (server._tick - one.begun)
            if server.engine.pages and pages:
                assert one.held * server.engine.page >= cached - 1e-6
    assert complete == len(rows)
    assert (server.pool.held, server.admitted, server.prefilling) == (0, {}, {})
    assert (server._decoding, server._base, server._slope) == (0, 0, 0)
    assert server._due == 0
    kept = server.pool.prefixes.values()
    assert server.pool.unread == sum(one.pages for one in kept)


@settings(max_examples=50)
@given(st.lists(lengths, min_size=1, max_size=25), st.integers(2, 12))
def test_the_work_is_that_of_the_requests(rows, slots):
    """Without preemption: prefill is all prompts, decode all tokens but the first."""
    demand = demanded(rows)
    result = simulate(roof, Engine(slots), demand)
    (server,) = result.stretches
    assert result.computed == sum(one.input for one in demand.requests)
    decoded = sum(one.decode * one.steps for one in server)
    assert decoded == sum(one.output - 1 for one in demand.requests)
    slots_held = sum(one.slots * (one.end - one.start) for one in server)
    assert slots_held == pytest.approx(
        sum(o.finish - o.admitted for o in result.served)
    )


def test_the_context_of_every_step_is_what_its_sequences_hold():
    """Seen from outside: the batches that the cost of a step is asked for."""
    asked = []

    def seconds(batch: Batch) -> float:
        asked.append(batch)
        return 0.01

    demand = Demand.trace([(0.0, 10, 4), (0.005, 20, 3)])
    simulate(seconds, Engine(4, budget=16), demand, skip=False)
    assert asked[1:] == [
        Batch(0, 0, ((10, 0),)),
        Batch(1, 11, ((15, 0),)),  # one token of the budget is the first answer's
        Batch(1, 12, ((5, 15),)),
        Batch(2, 13 + 21),
        Batch(1, 22),
    ]


def test_the_oldest_request_is_never_preempted():
    demand = Demand.closed_loop(20, 200, Lognormal(300, 0.8, 2000), Uniform(400, 0.2))
    result = simulate(roof, Engine(20, pages=200), demand)
    assert result.preemptions > 50
    assert result.served[0].preemptions == 0
    assert result.recomputed > 10_000


def test_a_reservation_is_never_preempted_and_admits_fewer():
    demand = Demand.closed_loop(20, 200, 300, 400)
    paged = simulate(roof, Engine(20, pages=200), demand)
    reserved = simulate(roof, Engine(20, pages=200, reserve=True), demand)
    assert reserved.preemptions == 0 < paged.preemptions
    assert max(one.slots for one in reserved.stretches[0]) == 200 // 44
    assert reserved.in_slots < paged.in_slots


def test_chunks_spare_the_sequences_in_decode_a_long_step():
    """With prefill first, nobody decodes while a prompt is read."""
    demand = Demand.poisson(8, 300, 4000, 100)
    longest = {}
    for chunked in (True, False):
        engine = Engine(64, budget=512, chunked=chunked)
        result = simulate(roof, engine, demand)
        (server,) = result.stretches
        longest[chunked] = max(one.end - one.start for one in server if one.prefill)
        mixed = [one for one in server if one.decode and one.prefill]
        assert bool(mixed) == chunked
    assert longest[False] > 2.5 * longest[True]


def test_a_kept_prefix_is_computed_once():
    rows = [Request(float(n), 1000, 10, "system", 960) for n in range(20)]
    engine = Engine(8, pages=200, prefix_cache=True)
    result = simulate(roof, engine, Demand(tuple(rows)))
    assert [one.hits for one in result.served] == [0] + [960] * 19
    assert result.computed == 1000 + 19 * 40
    none = simulate(roof, replace(engine, prefix_cache=False), Demand(tuple(rows)))
    assert none.computed == 20_000
    assert result.ttft(50) < none.ttft(50)


def test_a_prefix_goes_when_its_pages_are_needed():
    rows = [Request(0.0, 640, 2, "a", 640), Request(9.0, 640, 2, "b", 640),
            Request(18.0, 640, 2, "a", 640)]  # fmt: skip
    for pages, hits in ((60, 0), (120, 639)):
        engine = Engine(8, pages=pages, prefix_cache=True)
        result = simulate(roof, engine, Demand(tuple(rows)))
        assert result.served[2].hits == hits


def test_sequences_that_share_a_prefix_hold_it_once():
    rows = [Request(0.0, 640, 400, "a", 640)]
    rows += [Request(0.1, 656, 400, "a", 640) for _ in range(5)]
    result = simulate(
        roof, Engine(8, pages=1000, prefix_cache=True), Demand(tuple(rows))
    )
    assert result.most_pages <= 40 + 6 * 27


@pytest.mark.parametrize("acceptance", [0.0, 0.5, 0.8, 1.0])
def test_speculation_gives_as_many_tokens_a_round_as_its_formula(acceptance):
    spec = Speculation(4, acceptance, cost=0.0)
    demand = Demand.closed_loop(4, 40, 100, 1001)
    result = simulate(lambda b: 0.01, Engine(4, speculation=spec), demand)
    assert 0.01 / result.mean_tpot == pytest.approx(spec.tokens, rel=0.02)


def test_speculation_is_paid_for():
    """γ guesses at their cost, and the check of γ + 1 tokens of each sequence."""
    spec = Speculation(4, 1.0, cost=0.1)
    demand = Demand.closed_loop(2, 2, 100, 1001)
    result = simulate(
        lambda b: 0.01 + 0.001 * b.tokens, Engine(2, speculation=spec), demand
    )
    each = (0.01 + 0.001 * 10) + 4 * 0.1 * (0.01 + 0.001 * 2)
    assert result.mean_tpot == pytest.approx(each / 5)


# Pools -------------------------------------------------------------------------------


def test_pools_are_bound_by_the_slower_one():
    """The published answer for Llama 3 70B on v5e: prompts of 0.91 s, and 32 sequences
    in decode with steps of 19 ms, take 2.99 prefill servers for a generate server."""
    prompt, slots, answer, step = 0.91, 32, 512, 0.019
    ratio = (slots / (answer * step)) / (1 / prompt)
    assert ratio == pytest.approx(2.99342, rel=1e-5)
    demand = Demand.poisson(8, 1500, 8192, answer + 1)
    found = []
    for servers in range(1, 6):
        result = simulate_pools(
            (lambda b: prompt, Engine(1, budget=8192)),
            (lambda b: step, Engine(slots, budget=512)),
            Pools(servers, 1),
            demand,
        )
        found.append(result.steady() / (answer + 1))
    least = [min(n / prompt, slots / (answer * step)) for n in range(1, 6)]
    assert found == pytest.approx(least, rel=0.02)


def test_a_cache_moves_between_the_pools():
    demand = Demand.trace([(0.0, 1000, 11), (50.0, 2000, 1)])
    pools = Pools(1, 1, (0.5, 0.001))
    result = simulate_pools(
        (lambda b: 1.0, Engine(4)), (lambda b: 0.1, Engine(4)), pools, demand
    )
    first, last = result.served
    assert first.ttft == pytest.approx(1.0)
    assert first.finish == pytest.approx(1.0 + 1.5 + 10 * 0.1)
    assert last.finish == last.first == pytest.approx(51.0)
    assert result.computed == 3000
    with pytest.raises(ValueError, match="clients = 2: must be None, because pools"):
        simulate_pools(
            (roof, ONE), (roof, ONE), pools, Demand.closed_loop(2, 4, 10, 10)
        )  # fmt: skip


def test_pools_without_interference_keep_the_time_per_token():
    """Prompts never share a step with decode, so TPOT does not depend on them."""
    demand = Demand.poisson(2, 200, 3000, 100)
    apart = simulate_pools(
        (roof, Engine(8, budget=3000)), (roof, Engine(32)), Pools(1, 1), demand
    )
    together = simulate(roof, Engine(32, budget=2048), demand)
    assert apart.tpot(99) < together.tpot(99)
    assert len(apart.stretches) == 2
    assert all(one.decode == 0 for one in apart.stretches[0])
    assert all(one.prefill == 0 for one in apart.stretches[1])


# Stretches, pages, percentiles -------------------------------------------------------


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.floats(0.1, 5), st.floats(0, 1)), min_size=1, max_size=3),
    st.integers(1, 400),
    st.floats(0.01, 500),
)
def test_a_stretch_is_the_sum_of_its_steps(lines, most, until):
    def seconds(step: int) -> float:
        return max(first + slope * step for first, slope in lines)

    clock, count = 0.0, 0
    while count < most and clock < until:
        clock += seconds(count)
        count += 1
    found, elapsed = stretch(seconds, most, until)
    if abs(found - count) == 1:  # until is where a step begins, but for rounding
        assert min(abs(elapsed - until), abs(clock - until)) < 1e-9 * until
    else:
        assert (found, elapsed) == (count, pytest.approx(clock, rel=1e-9))


def test_a_stretch_asks_for_few_steps():
    asked = []

    def seconds(step: int) -> float:
        asked.append(step)
        return max(2.0, 0.01 * step)

    count, elapsed = stretch(seconds, 1000)
    assert (count, elapsed) == (1000, pytest.approx(sum(map(seconds, range(1000)))))
    assert len(asked) < 1000 + 60


def test_pages_of_a_prefix_are_counted_once():
    pool = PagePool(10)
    assert pool.take(6)
    assert pool.keep("a", 4, now=0.0)
    assert pool.read("a") == 4
    pool.give(2)
    pool.leave("a", 1.0)
    assert pool.available == 10 - 4
    pool.leave("a", 2.0)
    assert (pool.available, pool.unread) == (10, 4)
    assert pool.take(7)
    assert (pool.read("a"), pool.unread) == (0, 0)
    assert not pool.take(4)


def test_the_prefix_that_was_read_longest_ago_goes_first():
    pool = PagePool(10)
    for name, now in (("a", 0.0), ("b", 1.0)):
        pool.take(4)
        pool.keep(name, 4, now)
        pool.leave(name, now)
    pool.read("a")
    pool.leave("a", 2.0)
    assert pool.take(4)
    assert set(pool.prefixes) == {"a"}


def test_a_prefix_that_nobody_reads_takes_room_when_it_is_read_again():
    """40 of 100 pages keep a prefix. With 55 others held, 50 are not to be had."""
    rows = [
        Request(0.0, 640, 1, "a", 640),
        Request(1.0, 676, 200),
        Request(1.1, 780, 10, "a", 640),
    ]
    engine = Engine(8, pages=100, prefix_cache=True, reserve=True)
    result = simulate(roof, engine, Demand(tuple(rows)))
    assert result.served[2].admitted == result.served[1].finish
    assert result.most_pages <= 100


def test_a_preempted_request_is_the_next_to_be_admitted():
    server = PlayedServer(roof, Engine(3, pages=40))
    for number in range(5):
        server.submit(Sequence(Request(0.0, 200, 300), number), 0.0)
    while server.busy:
        before = {one.number for one in server.admitted.values()}
        server.run(server.clock + 0.001)
        waiting = [one for one in server.queue if one.preemptions]
        gone = [one for one in waiting if one.number in before]
        if gone:
            assert server.queue[0] in gone
            break
    else:
        raise AssertionError("nobody was preempted")


def test_a_request_that_loses_its_pages_in_the_second_pool_is_computed_again():
    demand = Demand.poisson(20, 60, 200, 300)
    result = simulate_pools(
        (roof, Engine(8)), (roof, Engine(16, pages=120)), Pools(1, 1), demand
    )
    assert result.preemptions > 0
    assert result.computed > 60 * 200
    assert any(one.prefill for one in result.stretches[1])


def test_percentiles_are_those_of_numpy():
    numpy = pytest.importorskip("numpy")
    random = Random(1)
    values = sorted(random.random() for _ in range(17))
    for percent in (0, 1, 50, 90, 99, 100):
        assert percentile(values, percent) == pytest.approx(
            numpy.percentile(values, percent)
        )


# Demand ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "mean"),
    [
        (Uniform(1000), 900),
        (Lognormal(1000, 0.5), 1000),
        (Sampled((10, 20, 60)), 30),
        (Uniform(3, 0.1), 2),
    ],
)
def test_lengths_have_their_mean(lengths, mean):
    shares = [(n + 0.5) / 10_000 for n in range(10_000)]
    assert sum(map(lengths.at, shares)) / 10_000 == pytest.approx(mean, rel=0.01)


def test_a_seed_gives_the_same_requests_at_every_rate():
    slow, fast = (
        Demand.poisson(rate, 100, Lognormal(1000, 1), Uniform(200), seed=7)
        for rate in (1, 4)
    )
    for one, other in zip(slow.requests, fast.requests, strict=True):
        assert one.arrival == pytest.approx(4 * other.arrival)
        assert (one.input, one.output) == (other.input, other.output)
    assert Demand.poisson(1, 100, 10, 10, seed=8) != Demand.poisson(
        1, 100, 10, 10, seed=9
    )


def test_a_client_waits_for_its_answer():
    demand = Demand.closed_loop(3, 30, 100, Uniform(50, 0.1), think=1.0)
    result = simulate(lambda b: 0.1, Engine(2), demand)
    assert result.in_system < 3
    times = [one.request.arrival for one in result.served]
    assert times == sorted(times)
    assert times[:4] == [
        0,
        0,
        0,
        pytest.approx(min(o.finish for o in result.served) + 1),
    ]


# Results -----------------------------------------------------------------------------


def test_a_target_counts_requests_that_keep_both_times():
    result = simulate(roof, Engine(8), Demand.poisson(6, 400, 1000, Uniform(200, 0.1)))
    target = LatencyTarget(ttft=result.ttft(70), tpot=result.tpot(60), share=0.5)
    kept = [
        one
        for one in result.served
        if one.first - one.request.arrival <= target.ttft
        and (one.finish - one.first) / (one.request.output - 1) <= target.tpot
    ]
    assert result.kept(target) == pytest.approx(len(kept) / 400)
    assert result.goodput(target) == pytest.approx(len(kept) / result.duration)
    assert result.meets(target) == (len(kept) >= 200)
    assert result.kept(replace(target, ttft=1e9, tpot=1e9)) == 1


def test_dollars_and_joules_are_one_division():
    result = simulate(roof, Engine(8), Demand.closed_loop(8, 80, 100, 101))
    seconds_per_million = 1e6 / (8080 / result.duration)
    assert result.dollars(36.0) == pytest.approx(36 / 3600 * seconds_per_million)
    assert result.joules(700.0) == pytest.approx(700 * seconds_per_million)


def test_the_middle_of_a_simulation_is_faster_than_all_of_it():
    engine = Engine(32, budget=4096)
    result = simulate(roof, engine, Demand.closed_loop(32, 320, 500, Uniform(300)))
    full = 32 * 270 / (result.mean_ttft + 269 * result.mean_tpot)
    assert result.steady() == pytest.approx(full, rel=0.03)
    assert result.steady() > result.throughput
    assert result.steady(0, 1) == pytest.approx(result.throughput, rel=0.01)


def test_busy_is_no_measure_of_load():
    """At a tenth of the load the server already steps for most of the time."""
    light = simulate(roof, Engine(64), Demand.poisson(1, 300, 500, 200))
    heavy = simulate(roof, Engine(64), Demand.poisson(10, 300, 500, 200))
    assert light.busy > 0.7
    assert heavy.busy < 1.5 * light.busy
    assert heavy.decoding > 8 * light.decoding


# What cannot be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Engine(0), "slots = 0: must be a whole number from 1"),
        (lambda: Engine(64, budget=64), "budget = 64 tokens: must be above the 64"),
        (
            lambda: Engine(64, budget=300, speculation=Speculation(4, 0.5)),
            "budget = 300 tokens: must be above the 320",
        ),
        (lambda: Engine(8, speculation=4), "speculation = 4: must be a Speculation"),
        (lambda: Speculation(4, 1.5), "acceptance = 1.5: must be from 0 to 1"),
        (lambda: Request(0, 10, 0), "output = 0: must be a whole number from 1"),
        (lambda: Request(0, 10, 5, "a", 11), "shared = 11: must be at most the 10"),
        (lambda: Request(0, 10, 5, shared=5), "shared = 5: needs the name"),
        (
            lambda: Demand.trace([(1, 5, 5), (0, 5, 5)]),
            "request 1 arrives at 0 s",
        ),
        (lambda: Demand(()), "must have at least one request"),
        (lambda: Demand((3,)), "3 must be a Request"),
        (
            lambda: Demand((Request(0, 9, 1, "a", 4), Request(0, 9, 1, "a", 5))),
            "prefix 'a': has 4 shared tokens in one request and 5 in another",
        ),
        (
            lambda: Demand.poisson(0, 5, 5, 5),
            "rate = 0: must be a finite",
        ),
        (
            lambda: Demand.poisson(1, 5, 0, 5),
            "input = 0: must be a whole number from 1",
        ),
        (lambda: Demand.closed_loop(0, 5, 5, 5), "clients = 0: must be a whole"),
        (
            lambda: Demand.closed_loop(1, 5, 5, 5, think=-1),
            "think = -1: must be a finite",
        ),
        (lambda: Uniform(100, 1.5), "low = 1.5: must be above 0 and at most 1"),
        (lambda: Sampled(()), "must have at least one length"),
        (lambda: LatencyTarget(1, 0), "tpot = 0: must be a finite number above 0"),
        (lambda: LatencyTarget(1, 1, 2), "share = 2: must be above 0 and at most 1"),
        (lambda: Pools(1, 0), "decode = 0: must be a whole number from 1"),
        (lambda: Pools(1, 1, (-1, 0)), "transfer = -1: must be a finite number from 0"),
        (lambda: Pools(1, 1, 5), "transfer = 5: must be two times"),
        (lambda: percentile((1, 2), 101), "percent = 101: must be from 0 to 100"),
        (
            lambda: simulate(roof, Engine(8, 10), Demand.closed_loop(1, 1, 150, 20)),
            "request 0 needs 11 pages for 169 tokens, but the server has only 10",
        ),
        (
            lambda: simulate(lambda b: 0, ONE, Demand.closed_loop(1, 1, 5, 5)),
            "seconds = 0: must be a finite number above 0",
        ),
        (
            lambda: simulate(3, ONE, Demand.closed_loop(1, 1, 5, 5)),
            "must be a function of",
        ),
    ],
)
def test_nonsense_is_refused_with_what_was_given(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("wrong", [nan, inf, 0.0, -0.01])
def test_a_time_that_is_no_time_ends_the_simulation(wrong):
    demand = Demand.poisson(4, 8, 20, 5)
    with pytest.raises(ValueError, match=r"seconds\(Batch\(.* = .*: must be a finite"):
        simulate(lambda b: 0.01 if b.tokens <= 1 else wrong, Engine(8), demand)
    with pytest.raises(ValueError, match="engine = 8: must be an Engine"):
        simulate(roof, 8, demand)
    with pytest.raises(ValueError, match=r"demand = .*: must be a Demand"):
        simulate(roof, Engine(8), list(demand.requests))


def test_a_prefix_that_gives_no_hit_takes_its_pages():
    """A prompt of one token has no token to spare for a hit, so it reads no prefix."""
    rows = Request(0.0, 1, 2, "p", 1), Request(0.5, 1, 2, "p", 1)
    engine = Engine(4, pages=2, page=1, budget=100, prefix_cache=True)
    result = simulate(lambda batch: 1.0, engine, Demand(rows))
    assert [one.finish for one in result.served] == [2.0, 4.0]
