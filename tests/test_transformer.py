"""A Transformer in numbers: its lines, and counts against ones made another way."""

import math

import pytest

from shardmath import transformer
from shardmath.sharding import contract
from shardmath.transformer import Experts, Latent, Model, matmul

TINY = Model("tiny", 2, 64, 256, 4, 2, 16, 1000)
SPARSE = Model(
    "sparse", 4, 64, 96, 4, 2, 16, 1000, experts=Experts(8, 2, 1, 1, 256, True)
)
LATENT = Model("latent", 4, 64, 256, 4, 4, 24, 1000, latent=Latent(40, 32, 16, 8, 20))
each_model = pytest.mark.parametrize(
    "model", [TINY, SPARSE, LATENT, *transformer.ALL], ids=lambda model: model.name
)


@each_model
def test_each_line_is_one_that_the_notation_reads_with_the_same_flops(model):
    sizes = model.sizes(8, 128)
    lines = {line for _, lines in model.stack for line in lines} | {model.head_line}
    for line in lines:
        for one in (line, *line.backward):
            assert matmul(one.line) == one
            op = contract(one.line, {}, **{d: sizes[d] for d in one.dims})
            assert op.flops == one.flops(sizes) == line.flops(sizes)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kv_heads": 3}, "K = 3 KV heads does not divide N = 4 heads"),
        ({"d_ff": 2.5}, "d_ff = 2.5: must be a whole number from 1"),
        ({"qk_norm": "rms"}, "qk_norm = 'rms': must be one of"),
        ({"global_every": 2}, "global_every = 2: must come with a window"),
        ({"positions": -1}, "positions = -1: must be a whole number from 0"),
        ({"latent": Latent(1, 1, 1, 1, 1)}, "head = 16: with a latent"),
        ({"experts": Experts(4, 1, 0, 2, 8)}, "must be fewer than the 2 layers"),
    ],
)
def test_what_cannot_be_is_refused(wrong, said):
    sizes = {
        name: getattr(TINY, name) for name in ("heads", "kv_heads", "head", "d_ff")
    }
    with pytest.raises(ValueError, match=said):
        Model("wrong", 2, 64, **{"vocab": 10, **sizes, **wrong})


def test_experts_that_get_no_equal_share_are_refused():
    with pytest.raises(ValueError, match="8 experts do not divide 1 · 3 tokens · 2"):
        SPARSE.sizes(1, 3)
    assert SPARSE.sizes(1, 4)["slots"] == 1
    with pytest.raises(ValueError, match="per_token = 9: must be at most 8"):
        Experts(8, 9)


def test_backward_costs_twice_the_forward_pass():
    for line in TINY.layer:
        sizes = TINY.sizes(2, 8)
        assert sum(one.flops(sizes) for one in line.backward) == 2 * line.flops(sizes)
        assert math.prod(sizes[d] for d in line.backward[1].result.dims) == (
            line.weight.count(sizes)
        )
