"""FLOPs of compiled programs: XLA's own count, times the turns of loops."""

import re

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from shardmath.referee import hlo

N = 64
SQUARE = jax.ShapeDtypeStruct((N, N), "float32")
PRODUCT = 2 * N**3


def compiled(fn, *shapes):
    arguments = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    return jax.jit(fn).lower(*(arguments or [SQUARE])).compile()


def normalised(x):
    return (x - x.mean(1, keepdims=True)) / jnp.sqrt(x.var(1, keepdims=True) + 1e-5)


def with_holes(a, b):
    dilated = {"lhs_dilation": (1, 2), "rhs_dilation": (2, 1)}
    return lax.conv_general_dilated(a, b, (2, 1), [(1, 2), (0, 3)], **dilated)


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (lambda a, b: a @ b, [(64, 32), (32, 48)]),
        (lambda a, b: (a @ b)[-1], [(64, 32), (32, 48)]),
        (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), [(5, 8, 16), (5, 16, 4)]),
        (lambda a, b: (a[:, :, None] * b[None]).sum(1), [(64, 32), (32, 48)]),
        (lambda a, b: lax.conv(a, b, (1, 1), "VALID"), [(2, 3, 9, 9), (8, 3, 3, 3)]),
        (lambda a, b: lax.conv(a, b, (2, 1), "SAME"), [(2, 3, 9, 8), (8, 3, 3, 3)]),
        (with_holes, [(2, 3, 9, 9), (8, 3, 3, 3)]),
        (lambda a: a @ a, [(512, 512)]),
        (lambda x: x * x + 3 * x - x / 2, [(48, 64)]),
        (lambda x: jnp.cumsum(x, 0), [(48, 64)]),
        (normalised, [(48, 64)]),
        (jax.nn.softmax, [(48, 64)]),
        (jax.grad(lambda a, b: jnp.tanh(a @ b).sum()), [(64, 32), (32, 48)]),
    ],
)
def test_without_loops_xlas_own_count_is_found(fn, shapes):
    """XLA keeps exp, tanh and the like in a sum of their own; we add the two."""
    program = compiled(fn, *shapes)
    cost = program.cost_analysis()
    assert hlo.flops(program.as_text()) == cost["flops"] + cost.get(
        "transcendentals", 0
    )


def scan(step, x, turns):
    return lax.scan(lambda c, _: (step(c), None), x, None, length=turns)[0]


def fori(step, x, turns):
    return lax.fori_loop(0, turns, lambda _, c: step(c), x)


def while_(step, x, turns):
    def one(state):
        return state[0] - 1, step(state[1])

    return lax.while_loop(lambda state: state[0] > 0, one, (turns, x))[1]


LOOPS = {"scan": scan, "fori_loop": fori, "while_loop": while_}


@pytest.mark.parametrize("outer", LOOPS)
@pytest.mark.parametrize("inner", LOOPS)
def test_bodies_of_loops_count_as_often_as_they_run(outer, inner):
    """XLA's own count is 2 N³, of one turn."""

    def nested(x):
        def turn(c):
            return LOOPS[inner](lambda d: d @ d, c, 3)

        return LOOPS[outer](turn, x, 7)

    program = compiled(nested)
    assert hlo.flops(program.as_text()) == 21 * PRODUCT
    assert program.cost_analysis()["flops"] < 2 * PRODUCT


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_the_condition_of_a_loop_runs_once_more_than_its_body(turns):
    """A matmul in the condition: before each turn, and once to find the end."""

    def loop(x):
        def goes_on(state):
            n, c = state
            return (n < turns) & ((c @ c)[0, 0] < jnp.inf)

        return lax.while_loop(goes_on, lambda state: (state[0] + 1, state[1]), (0, x))

    text = compiled(loop).as_text()
    trips = dict.fromkeys(re.findall(r"%?([\w.-]+) = \S.* while\(", text), turns)
    assert len(trips) == 1
    assert hlo.flops(text, trips=trips) == (turns + 1) * PRODUCT


def test_a_map_over_rows_counts_every_row():
    def rows(a, b, v):
        return lax.map(lambda row: (row @ b) @ v, a)

    counted = hlo.flops(compiled(rows, (64, 32), (32, 64), (64,)).as_text())
    assert counted >= 2 * 64 * 32 * 64


def test_the_dearest_branch_counts():
    def branches(x):
        return lax.cond(x[0, 0] > 3, lambda c: c @ c @ c, lambda c: c + 1, x)

    assert hlo.flops(compiled(branches).as_text()) == 2 * PRODUCT


def until_small(x):
    return lax.while_loop(lambda c: c[0, 0] > 1, lambda c: c @ c, x)


def triangle(x):
    return fori(lambda c: c, x, 1) + lax.fori_loop(
        0, 7, lambda i, c: lax.fori_loop(0, i, lambda _, d: d @ d, c), x
    )


@pytest.mark.parametrize("fn", [until_small, triangle])
def test_turns_that_data_decides_are_not_guessed(fn):
    with pytest.raises(ValueError, match=r"holds arithmetic.*trips=\{"):
        hlo.flops(compiled(fn).as_text())


def test_turns_may_be_given():
    text = compiled(until_small).as_text()
    name = re.search(r"%(while[\w.]*) = .* while\(", text)[1]
    assert hlo.flops(text, trips={name: 5}) == 5 * PRODUCT


def test_what_is_not_counted_is_not_passed_over():
    with pytest.raises(ValueError, match=r"the FLOPs of .* are not counted"):
        hlo.flops(compiled(jnp.linalg.inv).as_text())


@pytest.mark.parametrize(("kind", "counts"), [("s32", True), ("f32", False)])
def test_a_custom_call_that_gives_whole_numbers_computes_nothing(kind, counts):
    """Such as the number of the slice, or indices known to be in bounds."""
    text = f"""HloModule jit_f
ENTRY %main (a: {kind}[8]) -> {kind}[8] {{
  %a = {kind}[8]{{0}} parameter(0)
  ROOT %b = {kind}[8]{{0}} custom-call(%a), custom_call_target="Unheard"
}}"""
    if counts:
        assert hlo.flops(text) == 0
    else:
        with pytest.raises(ValueError, match="custom call Unheard are not counted"):
            hlo.flops(text)


@pytest.mark.parametrize(
    ("a", "b", "c", "window", "want"),
    [
        (  # scores of 16 heads for 2 sequences: the heads slide over holes
            "2,2048,16,128",
            "2,2048,16,128",
            "2,16,2048,2048",
            "size=2x16 stride=1x15 lhs_dilate=2x16}, dim_labels=0b1f_0o1i->01bf",
            2 * (2 * 16) * 2048 * 2048 * 128,
        ),
        (  # a projection to 16 heads: they slide over padding
            "2,2048,2048,1",
            "16,128,2048,1",
            "2,2048,16,128",
            "size=1x16 pad=0_0x15_15 rhs_reversal=0x1}, dim_labels=0bf1_1oi0->0b1f",
            2 * (2 * 2048) * (16 * 128) * 2048,
        ),
    ],
)
def test_a_batched_matmul_written_as_a_convolution(a, b, c, window, want):
    """As XLA:TPU does it: most places of the window meet no value."""
    text = f"""HloModule jit_f
ENTRY %main (a: bf16[{a}], b: bf16[{b}]) -> bf16[{c}] {{
  %a = bf16[{a}]{{3,2,1,0}} parameter(0)
  %b = bf16[{b}]{{3,2,1,0}} parameter(1)
  ROOT %c = bf16[{c}]{{3,2,1,0}} convolution(%a, %b), window={{{window}
}}"""
    assert hlo.flops(text) == want
