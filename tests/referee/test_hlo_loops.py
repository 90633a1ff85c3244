"""How often loops run: the compiler's word, the loop's own arithmetic, or an error."""

import re

import hlo_programs as programs
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from shardmath.referee import hlo
from shardmath.referee.hlo.text import parse
from shardmath.referee.hlo.trip_counts import trip_count, unknown

MESH = {"X": 4, "Y": 2}
KNOWN = re.compile(r',?"known_trip_count":\{"n":"\d+"\}')
STORED = [f"{p}.{t}" for p in ("by_hand", "nested", "fsdp") for t in ("cpu", "h100")]


def stored(name: str) -> str:
    return (programs.STORE / f"{name}.txt").read_text()


def fresh(program) -> str:
    return programs.compiled(program, programs.mesh_on("cpu", (4, 2)))


@pytest.mark.parametrize("name", STORED)
def test_followed_counters_agree_with_known_trip_counts(name):
    """Without the compiler's word, the loops' own arithmetic gives the same."""
    text = stored(name)
    assert KNOWN.search(text)
    assert hlo.read(KNOWN.sub("", text), MESH) == hlo.read(text, MESH)


def test_loops_are_followed_where_the_compiler_is_silent():
    text = stored("nested.v5e-2x4")
    assert "known_trip_count" not in text
    assert {one.loops for one in hlo.read(text, MESH)} == {(4, 3)}


def until_small(mesh):
    """Collectives in a loop that data ends, one in the condition."""

    def f(x):
        return lax.while_loop(
            lambda x: lax.psum(x, "X").sum() > 1,
            lambda x: lax.ppermute(x / 2, "Y", [(0, 1), (1, 0)]),
            x,
        )

    f = programs.shard_map(f, mesh=mesh, in_specs=P("X", "Y"), out_specs=P("X", "Y"))
    return f, (programs.arg(mesh, P("X", "Y"), 32, 8),)


def test_a_loop_that_data_ends_needs_a_number():
    text = fresh(until_small)
    with pytest.raises(ValueError, match=r"trips=\{\"while") as error:
        hlo.read(text, MESH)
    name = re.search(r'trips=\{"([^"]+)"', str(error.value))[1]
    found = hlo.collectives_in(text, MESH, trips={name: 10})
    assert {one.op: one.times for one in found} == {"permute": 10, "all_reduce": 11}
    assert hlo.collectives_in(text, MESH, trips={name: 0})[0].times == 1


def triangle(mesh):
    """A loop of 0, 1, 2, 3 turns inside a loop of 4."""

    def outer(i, c):
        return lax.fori_loop(0, i, lambda _, c: lax.psum(c, "X") / 5, c)

    f = programs.shard_map(
        lambda x: lax.fori_loop(0, 4, outer, x),
        mesh=mesh,
        in_specs=P("X"),
        out_specs=P("X"),
    )
    return f, (programs.arg(mesh, P("X"), 32, 8),)


def test_turns_that_change_from_turn_to_turn_are_not_guessed():
    with pytest.raises(ValueError, match="trips="):
        hlo.read(fresh(triangle), MESH)


def test_a_swapped_bound_is_not_taken_for_a_constant():
    """Two bounds change places every turn: 1 turn, then 3, which no count says."""
    with pytest.raises(ValueError, match="%inner"):
        hlo.read(SWAPPED, {"X": 2})
    straight = SWAPPED.replace("tuple(%inext, %b, %a, ", "tuple(%inext, %a, %b, ")
    (found,) = hlo.read(straight, {"X": 2})
    assert found.loops == (2, 1)


SWAPPED = """HloModule toy, num_partitions=2
%step (s: (s32[], s32[], f32[4])) -> (s32[], s32[], f32[4]) {
  %s = (s32[], s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] get-tuple-element(%s), index=1
  %x = f32[4] get-tuple-element(%s), index=2
  %one = s32[] constant(1)
  %inext = s32[] add(%i, %one)
  %y = f32[4] all-reduce(%x), replica_groups={{0,1}}
  ROOT %out = (s32[], s32[], f32[4]) tuple(%inext, %n, %y)
}
%below (s: (s32[], s32[], f32[4])) -> pred[] {
  %s = (s32[], s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %n = s32[] get-tuple-element(%s), index=1
  ROOT %go = pred[] compare(%i, %n), direction=LT
}
%turn (t: (s32[], s32[], s32[], f32[4])) -> (s32[], s32[], s32[], f32[4]) {
  %t = (s32[], s32[], s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %a = s32[] get-tuple-element(%t), index=1
  %b = s32[] get-tuple-element(%t), index=2
  %x = f32[4] get-tuple-element(%t), index=3
  %zero = s32[] constant(0)
  %start = (s32[], s32[], f32[4]) tuple(%zero, %a, %x)
  %inner = (s32[], s32[], f32[4]) while(%start), condition=%below, body=%step
  %y = f32[4] get-tuple-element(%inner), index=2
  %one = s32[] constant(1)
  %inext = s32[] add(%i, %one)
  ROOT %out = (s32[], s32[], s32[], f32[4]) tuple(%inext, %b, %a, %y)
}
%two (t: (s32[], s32[], s32[], f32[4])) -> pred[] {
  %t = (s32[], s32[], s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %two = s32[] constant(2)
  ROOT %go = pred[] compare(%i, %two), direction=LT
}
ENTRY %main (x: f32[4]) -> (s32[], s32[], s32[], f32[4]) {
  %x = f32[4] parameter(0)
  %zero = s32[] constant(0)
  %one = s32[] constant(1)
  %three = s32[] constant(3)
  %start = (s32[], s32[], s32[], f32[4]) tuple(%zero, %one, %three, %x)
  ROOT %outer = (s32[], s32[], s32[], f32[4]) while(%start), condition=%two, body=%turn
}
"""


def test_the_compilers_word_on_a_loop_is_taken():
    text = stored("nested.cpu")
    more = text.replace('"known_trip_count":{"n":"4"}', '"known_trip_count":{"n":"6"}')
    assert {one.loops for one in hlo.read(more, MESH)} == {(6, 3)}


@pytest.mark.parametrize(
    ("start", "step", "test", "turns"),
    [
        ("s32[] constant(0)", "add", "direction=LT", 10),
        ("s32[] constant(10)", "add", "direction=LT", 0),
        ("s32[] constant(7)", "add", "direction=NE", 3),
        ("s32[] constant(25)", "subtract", "direction=GE", 16),
        ("s32[] constant(-2)", "add", "direction=LT", 12),
        ("u32[] constant(3)", "subtract", "direction=LT", 4),  # 0 − 1 is the largest
        ("s32[] parameter(0)", "add", "direction=LT", None),
        ("f32[] constant(0)", "add", "direction=LT", None),
    ],
)
def test_counters_are_followed_with_their_bits(start, step, test, turns):
    kind = start[:3]
    module = parse(f"""HloModule toy
%body (s: ({kind}[])) -> ({kind}[]) {{
  %s = ({kind}[]) parameter(0)
  %i = {kind}[] get-tuple-element(%s), index=0
  %one = {kind}[] constant(1)
  %next = {kind}[] {step}(%i, %one)
  ROOT %out = ({kind}[]) tuple(%next)
}}
%test (s: ({kind}[])) -> pred[] {{
  %s = ({kind}[]) parameter(0)
  %i = {kind}[] get-tuple-element(%s), index=0
  %ten = {kind}[] constant(10)
  ROOT %go = pred[] compare(%i, %ten), {test}
}}
ENTRY %main (x: {kind}[]) -> ({kind}[]) {{
  %x = {start}
  %init = ({kind}[]) tuple(%x)
  ROOT %while = ({kind}[]) while(%init), condition=%test, body=%body
}}""")
    entry = module.entry
    assert trip_count(module, entry, entry.root, unknown) == turns
