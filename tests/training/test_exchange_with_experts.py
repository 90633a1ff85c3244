"""What an exchange with experts costs at least: copies of tokens, formats, nodes."""

import random
from dataclasses import replace
from functools import cache

import pytest

from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Cluster, NVLinkDomain, Torus, network
from shardmath.planner import plan
from shardmath.training import combine, expert, pipeline, step, zero
from shardmath.training.experts import copies
from shardmath.transformer import DEEPSEEK_V3

SETTINGS = {"attention": "causal", "remat": "none", "vocabulary": False}
SPARSE = replace(DEEPSEEK_V3, layers=4)  # of which one has experts
NODES = Mesh(Cluster(NVLinkDomain(chips.H800), 8), {"E": 64})


@cache
def drawn(units, experts=256, per_token=8, tokens=4000):
    """Units that the experts of a token are in, counted over random tokens."""
    rng = random.Random(units)
    each = experts // units
    found = [
        len({pick // each for pick in rng.sample(range(experts), per_token)})
        for _ in range(tokens)
    ]
    return sum(found) / tokens


@pytest.mark.parametrize("units", [1, 2, 8, 16, 64, 256])
def test_copies_are_those_that_are_counted(units):
    assert copies(256, 8, units) == pytest.approx(drawn(units), rel=0.01)


def test_a_limit_of_nodes_bounds_the_copies():
    assert copies(256, 8, 8, limit=4) == 4
    assert copies(256, 8, 2, limit=4) == copies(256, 8, 2)


@pytest.mark.parametrize(
    ("given", "said"),
    [((8, 9, 2), "at most 8, the number of experts"), ((8, 2, 0), "units = 0")],
)
def test_what_cannot_be_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        copies(*given)


def on_cards(limit=None, there=2, back=2, tokens=4096):
    """Seconds on the card of a chip, by hand: both passes of a layer, in which every
    token goes to its nodes and the answers come back; 7 of 8 copies leave the node."""
    nodes = min(limit or 8, drawn(8, tokens=20_000))
    nbytes = 2 * (there + back) * nodes * 7 / 8 * DEEPSEEK_V3.D * tokens
    return nbytes / chips.H800.scale_out_bandwidth


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, on_cards()),
        ({"node_limit": 4}, on_cards(4)),
        ({"node_limit": 4, "formats": {"dispatch": "fp8"}}, on_cards(4, there=1)),
    ],
)
def test_one_copy_for_each_node_crosses_the_cards(settings, seconds):
    one = step(expert("E"), SPARSE, NODES, 64, 4096, **SETTINGS, **settings)
    moves = [m for m in one.moves if m.dealt]
    assert len(moves) == 4
    busy = one.rates(("all_to_all", ("E",), "dealt"))
    card = max(busy.values()) * sum(
        m.change.before.nbytes / m.change.before.ways(m.change.before.axes)
        * m.change.before.ways(("E",)) * m.times
        for m in moves
    )  # fmt: skip
    assert card == pytest.approx(seconds, rel=0.01)
    assert one.estimate.seconds["network"] >= card * (1 - 1e-9)


def test_the_record_of_an_exchange_has_a_copy_for_each_expert():
    """What a compiled program with fixed slots sends is not changed by the bound."""
    limited, free = (
        step(expert("E"), SPARSE, NODES, 64, 4096, **SETTINGS, node_limit=limit)
        for limit in (4, None)
    )
    assert limited.collectives == free.collectives
    cards = [max(one.rates(("all_to_all", ("E",), "dealt")).values())
             for one in (limited, free)]  # fmt: skip
    assert cards[0] < cards[1]


def test_a_chip_takes_copies_in_by_all_its_links():
    """No chip of a node can get its copies faster than NVLink and its card together."""
    one = step(expert("E"), SPARSE, NODES, 64, 4096, **SETTINGS)
    links = chips.H800.scale_up_bandwidth + chips.H800.scale_out_bandwidth
    rate = min(one.rates(("all_to_all", ("E",), "dealt")).values())
    assert rate == pytest.approx(63 / 64**2 / links * drawn(64) / 8, rel=0.01)


def test_on_a_torus_one_copy_goes_to_each_chip():
    cube = Mesh(Torus(chips.TPU_V5P, (4, 4, 4)), {"E": 64})
    one = step(expert("E"), SPARSE, cube, 64, 4096, **SETTINGS)
    rate = one.rates(("all_to_all", ("E",), "dealt"))
    plain = one.rates(("all_to_all", ("E",), ""))
    for dim, seconds in rate.items():
        assert seconds / plain[dim] == pytest.approx(drawn(64) / 8, rel=0.01)


def test_the_plan_of_a_published_step_takes_no_longer_than_it_was_measured():
    """DeepSeek-V3 on 2,048 H800: 19.926 s (arXiv:2505.09343, table 4)."""
    own = {"pipeline": 16, "expert": 64, "tensor": 1, "context": 1}
    for settings in ({}, {"node_limit": 4, "formats": {"dispatch": "fp8"}}):
        found = plan(DEEPSEEK_V3, "h800:256x8", 62_914_560, 4096, fixed=own, top=1,
                     **settings)  # fmt: skip
        assert found.best.lower < 19.926


@pytest.mark.parametrize("remat", ["none", "elementwise", "dots", "selective", "full"])
def test_every_policy_derives_a_step_of_experts_and_latents(remat):
    mesh = Mesh(network("h800:256x8"), {"P": 16, "X": 2, "E": 64})
    strategy = combine(pipeline("P"), zero(1, "X"), expert("E", "state"))
    one = step(strategy, DEEPSEEK_V3, mesh, 15_360, 4096, attention="causal",
               remat=remat, microbatches=120, schedule="dualpipe")  # fmt: skip
    assert one.estimate.lower < 19.926
    assert one.flops["recompute"] >= 0
    again = [m for m in one.moves if m.dealt and m.when == "recompute"]
    assert bool(again) == (remat in ("dots", "full"))
