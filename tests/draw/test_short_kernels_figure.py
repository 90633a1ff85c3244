"""The live figure of timed operations: its law, its error, its dots."""

import drawn
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.short_kernels import (
    ALLREDUCE,
    CHIPS,
    OPERATIONS,
    SERVERS,
    law,
)
from shardmath.draw.picture import Picture
from shardmath.measured.ops import bins

FIGURE = figures.find("short_kernels")
EXTREMES = [
    {"start": 300, "share": 20, "operation": ALLREDUCE},
    {"start": 0, "share": 100},
    {"operation": "matmuls in fp8", "chip": "A100 80GB"},
]


@pytest.mark.parametrize("params", [{}, *FIGURE.presets.values(), *EXTREMES])
def test_it_can_be_read(params):
    drawing = FIGURE.draw(**params)
    drawn.check(Picture("kernels", drawing.summary, (drawing.svg,)))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_has_dots(operation):
    assert FIGURE.draw(operation=operation).data["points"] > 500


def test_a_gpu_without_the_operation_says_so():
    assert "A100 80GB" in CHIPS
    drawing = FIGURE.draw(operation="matmuls in fp8", chip="A100 80GB")
    assert drawing.summary.startswith("There are no timed operations")


def test_two_numbers_describe_a_million_matmuls_within_a_tenth():
    """Without the start the law is off by more than a quarter, so the start counts."""
    good = FIGURE.draw(operation="matmuls in bf16", start=30, share=75).data
    none = FIGURE.draw(operation="matmuls in bf16", start=0, share=75).data
    assert good["points"] > 1e6
    assert good["mean"] < 0.1 < 0.25 < none["mean"]


def test_the_error_is_that_of_the_bins_by_hand():
    some = bins("matmul", "H100", "bf16")
    off = [
        abs((3e-6 + one.bound / 0.75) / (one.bound * one.median) - 1) for one in some
    ]
    mean = FIGURE.draw(operation="matmuls in bf16", chip="H100").data["mean"]
    assert mean == pytest.approx(sum(off) / len(off))
    assert law(1.0, 0.0, 0.5) == 2.0


def test_whole_servers_follow_the_same_law():
    """A start for each kernel and a share of the rates, as for a single operation."""
    good = FIGURE.draw(operation=SERVERS, start=50, share=70).data
    none = FIGURE.draw(operation=SERVERS, start=0, share=70).data
    assert good["mean"] < 0.2 < 0.5 < none["mean"]
