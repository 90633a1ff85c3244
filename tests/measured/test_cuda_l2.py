"""CUDA-L2's ratios: as published, and what they come to in time."""

import math
from statistics import fmean

import pytest

from shardmath.hardware import chips
from shardmath.measured import cuda_l2
from shardmath.measured.cuda_l2 import LIBRARIES, MODES, RELEASES, SHAPES, amdahl
from shardmath.measured.rows import named_rows

SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 12_288, 16_384)


def test_every_combination_of_ten_sizes_is_there_once():
    found = [(shape.m, shape.n, shape.k) for shape in SHAPES]
    assert len(found) == len(set(found)) == 1000
    assert {size for shape in found for size in shape} == set(SIZES)
    columns = len(RELEASES) * len(MODES) * len(LIBRARIES)
    assert {len(shape.speedups) for shape in SHAPES} == {columns}


def test_means_are_those_that_the_readme_prints():
    """All but the first release's, whose columns give other means than its README."""
    for key in ("a100_f32", "h100_f32"):
        release = RELEASES[key]
        for (mode, library), printed in release.printed.items():
            found = release.mean(library, mode) - 1
            assert round(100 * found, 1) == pytest.approx(100 * printed)
    first = RELEASES["a100_f16"]
    off = {
        mode: max(abs(first.mean(one, mode) - 1 - first.printed[mode, one])
                  for one in LIBRARIES)
        for mode in MODES
    }  # fmt: skip
    assert off["offline"] < 0.0025
    assert 0.008 < off["server"] < 0.015


@pytest.mark.parametrize("key", RELEASES)
def test_gains_by_hand(key):
    """Straight from the table, and from peak and bandwidth."""
    release = RELEASES[key]
    peak, rate = release.chip.flops["fp16"], release.chip.hbm_bandwidth
    old = new = 0.0
    for row in named_rows("cuda_l2.csv"):
        m, n, k = (int(row[name]) for name in "mnk")
        t = max(2 * m * n * k / peak, 2 * (m * k + k * n + m * n) / rate)
        new, old = new + t, old + t * float(row[f"{key}_offline_autotuned"])
    assert release.gain("autotuned") == pytest.approx(old / new)


def test_the_mean_is_carried_by_short_calls():
    a100 = chips.A100_80GB
    assert sum(shape.memory_bound(a100) for shape in SHAPES) == 519
    assert sum(shape.memory_bound(chips.H100) for shape in SHAPES) == 685
    flops = sorted(shape.flops for shape in SHAPES)
    assert sum(flops[:500]) / sum(flops) == pytest.approx(0.0029, abs=5e-5)
    gains = [round(one.gain("autotuned"), 3) for one in RELEASES.values()]
    assert gains == [1.005, 0.992, 0.921]


def test_if_the_library_is_ideal_the_gain_is_nearly_the_same():
    for release in RELEASES.values():
        for library in LIBRARIES:
            times = [shape.ideal(release.chip) for shape in SHAPES]
            ratios = release.speedups(library)
            other = math.fsum(times) / math.fsum(
                t / s for t, s in zip(times, ratios, strict=True)
            )
            assert 0 <= release.gain(library) - other < 0.02


def test_shapes_may_be_chosen():
    some = SHAPES[:10]
    release = RELEASES["h100_f32"]
    ratios = [shape.speedups["h100_f32", "server", "torch"] for shape in some]
    assert release.mean("torch", "server", some) == pytest.approx(fmean(ratios))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: RELEASES["h100_f32"].mean("mkl"), "library = 'mkl': must be one of"),
        (lambda: RELEASES["h100_f32"].gain("torch", "x"), "mode = 'x': must be one of"),
        (lambda: amdahl(1.2, 2), "share = 1.2"),
        (lambda: amdahl(0.5, 0), "speedup = 0"),
    ],
)
def test_what_was_not_measured_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_amdahl_has_its_limits():
    assert amdahl(1, 2) == 0.5
    assert amdahl(0, 2) == 1
    assert amdahl(0.6, 1e12) == pytest.approx(0.4)
    assert cuda_l2.SOURCE.url.endswith("dbe017722194bb33bafadfbcbb4a65ab6df95dc3")
