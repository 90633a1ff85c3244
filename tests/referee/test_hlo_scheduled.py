"""Schedules: every operation counted once, and played as a clock would play them."""

import random
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from shardmath.hardware import chips
from shardmath.referee import hlo
from shardmath.referee.hlo import ScheduledOp

STORE = Path(__file__).parents[1] / "data" / "hlo"
MESH = {"X": 4, "Y": 2}
STORED = {
    "by_hand.cpu": MESH,
    "by_hand.h100": MESH,
    "by_hand.v5e-2x4": MESH,
    "fsdp.cpu": MESH,
    "fsdp.h100": MESH,
    "fsdp.v5e-2x4": MESH,
    "gather_matmul.v5e-2x4": {"X": 8, "Y": 1},
    "nested.cpu": MESH,
    "nested.h100": MESH,
    "nested.v5e-2x4": MESH,
    "tree.h100": MESH,
}
each_text = pytest.mark.parametrize("name", STORED)


def text_of(name: str) -> str:
    return (STORE / f"{name}.txt").read_text()


def schedule_of(name: str) -> list[ScheduledOp]:
    return hlo.schedule(text_of(name), STORED[name])


@each_text
def test_every_collective_is_sent_as_often_as_the_reader_finds_it(name):
    """Loops and fusions are opened on another path than in `read`."""
    found = Counter(op.op for op in schedule_of(name) if op.op)
    read = hlo.collectives_in(text_of(name), STORED[name])
    launches = {(one.instruction, one.loops, one.collective.op) for one in
                hlo.read(text_of(name), STORED[name])}  # fmt: skip
    times = Counter()
    for _, loops, op in launches:
        turns = 1
        for n in loops:
            turns *= n
        times[op] += turns
    assert found == times
    sent = sum(op.sent for op in schedule_of(name))
    assert sent == pytest.approx(sum(one.total_sent for one in read))


@each_text
def test_flops_of_the_operations_add_up(name):
    total = sum(op.flops for op in schedule_of(name))
    assert total == pytest.approx(hlo.flops(text_of(name)))


@each_text
def test_what_ends_was_begun_once(name):
    open_ = set()
    for op in schedule_of(name):
        if op.ends:
            open_.remove(op.ends)  # KeyError if nothing of this name is under way
        elif op.begins:
            assert op.name not in open_
            open_.add(op.name)
    assert not open_


@pytest.mark.parametrize("name", ["fsdp.h100", "fsdp.v5e-2x4"])
def test_matmuls_between_start_and_end_are_those_of_the_overlaps(name):
    """The reader of overlaps looks at the text, this test at the schedule's order."""
    under_way, between = {}, {}
    for op in schedule_of(name):
        if op.begins and op.op:
            under_way[op.name] = 0
        elif op.ends in under_way:
            between[op.ends] = under_way.pop(op.ends)
        else:
            under_way = {one: n + op.matmul for one, n in under_way.items()}
    read = {one.start: one.matmuls for one in hlo.overlaps(text_of(name))}
    assert between == read
    assert any(between.values())


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (lambda a, b: a @ b, [(64, 32), (32, 48)]),
        (lambda x: x * x + 3 * x - x / 2, [(48, 64)]),
        (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), [(5, 8, 16), (5, 16, 4)]),
        (lambda a: jnp.tanh(a @ a) @ a, [(256, 256)]),
    ],
)
def test_bytes_are_those_of_xlas_own_count(fn, shapes):
    """On a CPU, all memory is one: the count must equal `cost_analysis`."""
    arguments = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    program = jax.jit(fn).lower(*arguments).compile()
    ops = hlo.schedule(program.as_text(), {"X": 1})
    counted = program.cost_analysis()["bytes accessed"]
    assert sum(op.hbm for op in ops) == pytest.approx(counted, rel=0.02)


def test_a_loop_is_listed_turn_by_turn():
    def fn(x):
        return lax.scan(lambda c, _: (c @ c, None), x, length=5)[0]

    square = jax.ShapeDtypeStruct((64, 64), "float32")
    text = jax.jit(fn).lower(square).compile().as_text()
    assert sum(op.matmul for op in hlo.schedule(text, {"X": 1})) == 5


FETCH = """HloModule jit_f, is_scheduled=true
ENTRY %main (w: bf16[64,64], x: bf16[8,64]) -> bf16[8,64] {
  %w = bf16[64,64]{1,0} parameter(0)
  %s = (bf16[64,64]{1,0:S(1)}, bf16[64,64]{1,0}, u32[]{:S(2)}) copy-start(%w)
  %x = bf16[8,64]{1,0} parameter(1)
  %d = bf16[64,64]{1,0:S(1)} copy-done(%s)
  ROOT %y = bf16[8,64]{1,0} dot(%x, %d), lhs_contracting_dims={1}
}"""


def test_a_fetch_counts_once_and_its_operand_in_vmem_not_again():
    fetch, done, dot = hlo.schedule(FETCH, {"X": 1})
    assert fetch.fetch
    assert (fetch.hbm, done.hbm, done.ends) == (2 * 64 * 64, 0, "s")
    assert (dot.hbm, dot.vmem) == (2 * 2 * 8 * 64, 2 * 64 * 64)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (FETCH.replace(", is_scheduled=true", ""), "does not say is_scheduled=true"),
        (text_of("branches.h100"), "the order of a conditional is not known"),
    ],
)
def test_a_text_without_an_order_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        hlo.schedule(text, MESH if "conditional" in text else {"X": 1})


# Playing -----------------------------------------------------------------------------


def ticked(ops: list[ScheduledOp]) -> tuple[int, int]:
    """When all is done and how long both worked, by a clock of whole ticks."""
    todo, queue, left = list(ops), [], {}
    now = both = 0
    working = None
    while todo or queue or working:
        while todo and (working is None):
            op = todo[0]
            if op.op and op.name not in left:
                left[op.name] = int(op.sent)
                queue.append(op.name)
                if op.begins:
                    todo.pop(0)
                    continue
            if op.op:  # it blocks
                if left[op.name]:
                    break
            elif op.ends:
                if left[op.ends]:
                    break
            elif op.flops:
                working = [op, int(op.flops)]
            todo.pop(0)
        if not (todo or queue or working):
            break
        both += bool(working and queue)
        if working:
            working[1] -= 1
            working = working if working[1] else None
        if queue:
            left[queue[0]] -= 1
            if not left[queue[0]]:
                queue.pop(0)
        now += 1
    return now, both


def some_schedule(rng: random.Random) -> list[ScheduledOp]:
    ops, under_way = [], []
    for n in range(rng.randint(2, 12)):
        kind = rng.choice(("math", "math", "start", "block", "done"))
        if kind == "done" and under_way:
            ops.append(ScheduledOp(f"d{n}", ends=under_way.pop(0)))
        elif kind in ("start", "block"):
            ops.append(ScheduledOp(f"c{n}", op="all_gather", sent=rng.randint(1, 6),
                                   begins=kind == "start"))  # fmt: skip
            under_way += [f"c{n}"] if kind == "start" else []
        else:
            ops.append(ScheduledOp(f"m{n}", flops=rng.randint(1, 6)))
    return ops + [ScheduledOp(f"e{name}", ends=name) for name in under_way]


def test_a_played_schedule_is_that_of_a_clock():
    rng = random.Random(21)
    for _ in range(300):
        ops = some_schedule(rng)
        played = hlo.play(ops, lambda op: op.flops + op.sent)
        assert (played.seconds, played.overlap) == ticked(ops), ops
        assert played.exposed == pytest.approx(played.network - played.overlap)


def test_opposite_permutes_run_together_and_equal_ones_in_turn():
    def pair(*shifts):
        ops = [
            ScheduledOp(f"p{n}", op="permute", sent=3.0, shift=shift, begins=True)
            for n, shift in enumerate(shifts)
        ]
        return hlo.play(ops, lambda op: op.sent).seconds

    assert pair(1, -1) == 3
    assert pair(1, 1) == 6


def test_a_gather_uses_both_directions_of_its_links_and_a_permute_one():
    link = chips.TPU_V5E.link_bandwidth
    gather = ScheduledOp("g", op="all_gather", sent=link)
    permute = ScheduledOp("p", op="permute", sent=link, shift=1)
    assert hlo.seconds(gather, chips.TPU_V5E) == 0.5
    assert hlo.seconds(permute, chips.TPU_V5E) == 1.0


def test_what_the_compiler_does_not_estimate_takes_its_bound():
    copy = ScheduledOp("c", hbm=chips.TPU_V5E.hbm_bandwidth)
    assert hlo.seconds(copy, chips.TPU_V5E) == 1.0
