"""The live figure of all chips on one roofline: its numbers, its order, its marks."""

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.accelerators import DECODE, EVERY, MATMUL, PROMPT
from shardmath.draw.picture import Picture
from shardmath.hardware import chips, roofline
from shardmath.inference import Formats, Server, alone
from shardmath.transformer import LLAMA_3_70B

FIGURE = figures.find("accelerators")
EXTREMES = [
    {"tokens": 1, "among": EVERY, "versus": "V100"},
    {"tokens": 65_536, "workload": PROMPT, "among": EVERY, "precision": "fp8"},
    {"tokens": 65_536, "context": 131_072},
    {"tokens": 1, "workload": MATMUL, "versus": "Groq LPU", "precision": "fp8"},
    {"tokens": 1024, "workload": MATMUL, "versus": "TPU v2", "among": EVERY},
    {"versus": "MI355X"},
]


@pytest.mark.parametrize("params", [{}, *FIGURE.presets.values(), *EXTREMES])
def test_it_can_be_read(params):
    """Names of two roofs at the same height would lie on each other."""
    drawing = FIGURE.draw(**params)
    drawn.check(Picture("accelerators", drawing.summary, (drawing.svg,)))


@pytest.mark.parametrize("tokens", [1, 64, 4096])
@pytest.mark.parametrize("workload", [DECODE, PROMPT, MATMUL])
def test_the_bounds_are_those_of_the_cost_model(workload, tokens):
    """In 16 bits, by the chip's own server or matmul and not by that of an H100."""
    found = FIGURE.draw(workload=workload, tokens=tokens, among=EVERY).data["chips"]
    compared = 0
    for row in found:
        chip = chips.find(row["chip"])
        if "bf16" not in chip.flops or chip.without_hbm:
            continue
        if workload == MATMUL:
            one = roofline.matmul(tokens, 8192, 28_672, chip)
            assert row["seconds"] == pytest.approx(one.lower / tokens)
        else:
            server = Server(LLAMA_3_70B, alone(chip), formats=Formats("bf16"))
            step = (
                server.decode(tokens, tokens * 4096)
                if workload == DECODE
                else server.prefill(tokens)
            )
            assert row["seconds"] == pytest.approx(step.bound / tokens)
        compared += 1
    assert compared > 25


@pytest.mark.parametrize("tokens", [64, 16_384])
def test_in_fp8_the_bound_counts_attention_in_fp8_too_and_says_so(tokens):
    """It is never above that of a server whose attention stays in 16 bits."""
    drawing = FIGURE.draw(workload=PROMPT, tokens=tokens, precision="fp8")
    assert "Attention counts as if it ran in fp8 too." in drawing.summary
    for row in drawing.data["chips"]:
        chip = chips.find(row["chip"])
        if not chip.without_hbm:
            server = Server(LLAMA_3_70B, alone(chip), formats=Formats("fp8"))
            assert row["seconds"] <= 1.001 * server.prefill(tokens).bound / tokens


def test_chips_are_sorted_and_limits_follow_the_ridge():
    for params in ({}, *FIGURE.presets.values()):
        drawing = FIGURE.draw(**params)
        rows = drawing.data["chips"]
        assert [r["seconds"] for r in rows] == sorted(r["seconds"] for r in rows)
        for row in rows:
            chip = chips.find(row["chip"])
            rate = chip.flops.get("bf16") or chip.flops["fp16"]
            math = drawing.data["intensity"] >= rate / chip.memory_bandwidth
            assert row["limit"] == ("math" if math else "HBM")


def test_which_chip_is_best_depends_on_the_workload():
    """The one sentence of the chapter: an LPU wins for one user and not for many."""
    first = [
        FIGURE.draw(workload=DECODE, tokens=n).data["chips"][0]["chip"] for n in (1, 64)
    ]
    assert first == ["Groq LPU", "MI355X"]


def test_chips_to_hold_follow_from_the_weights():
    """141 GB of weights and one short cache, over the memory of each."""
    rows = FIGURE.draw(tokens=1, context=1024).data["chips"]
    held = {row["chip"]: row["holding"] for row in rows}
    weights = 2 * LLAMA_3_70B.params
    assert held["H100"] == -(-(weights + 2 * 80 * 2 * 8 * 128 * 1024) // (80 * 2**30))
    assert 600 < weights / 230_686_720 < held["Groq LPU"] < 620


def test_who_has_no_peak_is_named():
    assert "TPU 8t, WSE-3" in FIGURE.draw(among=EVERY).summary
    assert FIGURE.draw(precision="fp8").data["lacking"] == [
        "MI250X", "MTT S4000", "Groq LPU", "WSE-3",
    ]  # fmt: skip
    alone_in_16 = FIGURE.draw(precision="fp8", versus="MI250X")
    assert "no chip is compared with the MI250X" in alone_in_16.summary


def test_the_cache_counts_in_a_decode_step_alone():
    assert FIGURE.draw(workload=PROMPT).idle.keys() == {"context"}
    assert not FIGURE.draw(workload=DECODE).idle
