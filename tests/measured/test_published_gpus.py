"""Published answers about GPU hardware, recomputed from our records.

The answers are those of How to Scale Your Model, chapter 12 (GPUs), quiz 1. Where it
prints a rounded value, the tolerance says how far the exact one lies from it; where its
text and its question disagree, the comment says which one is meant.
"""

import pytest

from shardmath.hardware import chips, roofline
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Cluster, NVLinkDomain

H100, B200, V5P = chips.H100, chips.B200, chips.TPU_V5P


def fact(chip, name):
    return chip.fact(name).value


def lanes(chip):
    return fact(chip, "cores") * fact(chip, "lanes")


@pytest.mark.parametrize(
    ("chip", "published"), [(H100, 16_896), (B200, 18_944), (V5P, 8192)]
)
def test_quiz_1_1_lanes_of_a_chip(chip, published):
    assert lanes(chip) == published


def test_quiz_1_2_vector_rate_without_multiply_adds():
    """33.5 TFLOPs/s at the higher clock, half the data sheet; 26.9 at 1.59 GHz."""
    boost = max(clock for clock, _ in H100.fact("clock").disagrees)
    assert lanes(H100) * boost == pytest.approx(33.5e12, rel=0.01)
    assert lanes(H100) * 1.59e9 == pytest.approx(26.9e12, rel=0.01)
    assert 2 * lanes(H100) * boost == pytest.approx(H100.flops["fp32"], rel=0.01)


@pytest.mark.parametrize(
    ("chip", "precision", "published"),
    [(H100, "fp16", 295), (B200, "fp16", 281), (H100, "fp8", 590), (B200, "fp8", 562)],
)
def test_quiz_1_3_critical_intensities(chip, precision, published):
    assert chip.intensity(precision) == pytest.approx(published, rel=0.003)


@pytest.mark.parametrize(
    ("tokens", "bound", "published"),
    [(64, "memory-bound", 8.6e-6), (512, "compute-bound", 15e-6)],
)
def test_quiz_1_4_matmuls_on_a_b200(tokens, bound, published):
    """It divides by 2.3 PFLOPs/s, we by the 2.25 that its own question 3 uses."""
    op = roofline.matmul(tokens, 4096, 8192, B200, "fp16")
    assert op.bound == bound
    assert op.lower == pytest.approx(published, rel=0.02)


def test_quiz_1_5_registers_and_shared_memory():
    """33 MB printed for 132 x 256 KiB, which is 34.6 MB: 33 is MiB."""
    for name in ("registers_bytes", "l1_bytes"):
        assert fact(H100, name) == pytest.approx(34.603e6, rel=1e-4)
        assert fact(H100, name) / 2**20 == 33
    both = fact(H100, "registers_bytes") + fact(H100, "l1_bytes")
    assert both == pytest.approx(67.584e6, rel=0.028)  # 66 printed
    # 256 kB for all of a TPU is one of its two cores, as chapter 2 of that book says.
    assert V5P.fact("registers_bytes").said("book_gpu") == 256 * 2**10
    assert V5P.registers_bytes / V5P.cores == 256 * 2**10


def test_quiz_1_6_the_clock_behind_the_vector_peak_of_a_b200():
    """2.1 GHz rests on 80 TFLOPs/s; the data sheet's 75 gives 1.98."""
    other = B200.fact("flops.fp32").said("stas")
    assert other == 80e12
    assert other / (2 * lanes(B200)) == pytest.approx(2.1e9, rel=0.01)
    needed = B200.flops["fp32"] / (2 * lanes(B200))
    assert needed == pytest.approx(fact(B200, "clock"), rel=0.01)


@pytest.mark.parametrize(
    ("n", "published"), [(65_536, 0.234756e-6), (2**30, 3.84624e-3)]
)
def test_quiz_1_7_an_addition_of_fp32_vectors(n, published):
    """Its question says N = 1024, its answer 65,536; it measured 1.5 µs and 4.1 ms."""
    op = roofline.elementwise(n, H100, reads=2, precision="tf32")  # four bytes, too
    assert op.intensity == pytest.approx(1 / 12)
    assert op.bound == "memory-bound"
    assert op.seconds["HBM"] == pytest.approx(published, rel=1e-4)


def test_quiz_1_7_intensity_of_the_lanes():
    """10 counts an addition a clock and lane: half of the data sheet's rate."""
    assert H100.flops["fp32"] / 2 / H100.hbm_bandwidth == pytest.approx(10, rel=0.02)


def test_peaks_derived_from_first_principles_or_said_why_not():
    """The data sheet within 2 %; fp32 lanes run at another clock than Tensor Cores."""
    for name in ("V100", "A100 40GB", "A100 80GB", "H100", "H200"):
        chip = chips.find(name)
        rate = chip.flops.get("bf16") or chip.flops["fp16"]
        per_clock = fact(chip, "cores") * fact(chip, "flops_per_clock")
        assert per_clock * fact(chip, "clock") == pytest.approx(rate, rel=0.02)
    # Blackwell: nothing published. Twice Hopper's a clock is what the source infers,
    # and then both peaks take a lower clock than the device reports.
    for chip, clock in ((B200, 1.86e9), (chips.GB200, 2.01e9)):
        assert chip.flops_per_clock == 2 * H100.flops_per_clock
        needed = chip.flops["bf16"] / (chip.cores * chip.flops_per_clock)
        assert needed == pytest.approx(clock, rel=0.003)
        assert f"takes {clock / 1e9:.2f} GHz" in chip.fact("clock").note


def test_a_lower_clock_gives_the_peak_that_is_stated_under_load():
    """The H800 is the H100's die; its source prints 865 TFLOPs/s at about 1.6 GHz."""
    assert "865 under load, at about 1.6 GHz" in chips.H800.fact("flops.bf16").note
    per_clock = H100.cores * H100.flops_per_clock
    assert per_clock * 1.6e9 == pytest.approx(865e12, rel=1e-3)


@pytest.mark.parametrize(
    ("chip", "dollars", "published"),
    [(H100, 10.8, 9.1e13), (V5P, 4.2, 1.09e14), (chips.TPU_V5E, 1.2, 1.64e14)],
)
def test_flops_for_a_dollar_an_hour(chip, dollars, published):
    """Chapter 8 of that book: list prices of Google Cloud, February 2025."""
    assert chip.flops["bf16"] / dollars == pytest.approx(published, rel=0.01)


def test_sparse_is_twice_dense_until_fp4_on_blackwell_ultra():
    broken = set()
    for chip in chips.ALL:
        for name, sparse in chip.facts.items():
            if name.startswith("sparse.") and chip.flops:  # no dense peak of a WSE-3
                dense = chip.flops[name.removeprefix("sparse.")]
                if sparse.value != pytest.approx(2 * dense, rel=0.001):
                    broken.add((chip.id, name))
                    assert 1.3 < sparse.value / dense < 1.5
    assert broken == {(chip, "sparse.fp4") for chip in ("b300", "gb300", "rubin")}


@pytest.mark.parametrize("chip", [H100, chips.H200, B200], ids=lambda chip: chip.id)
def test_parts_of_an_sm_add_up(chip):
    assert fact(chip, "tensor_cores") == 4 * fact(chip, "cores")
    assert fact(chip, "registers_bytes") == 2**18 * fact(chip, "cores")
    if "l1_bytes" in chip.facts:  # of which SMEM is a part
        assert fact(chip, "onchip_bytes") < fact(chip, "l1_bytes")


def test_quiz_3_1_the_leaf_of_a_superpod_counts_all_nodes():
    """413 GB/s printed: it divides by 1 − 1/32, one unit, where 128 nodes take part."""
    pod = Cluster(NVLinkDomain(H100), (4, 32))
    paces = Mesh(pod, {"X": 1024}).binding("X").paces
    found = {pace.level: pace.array_bandwidth for pace in paces}
    assert found["NVLink"] == pytest.approx(514e9, rel=1e-3)
    assert found["spine"] == pytest.approx(17.1e12, rel=3e-3)
    node = pod.egress("leaf")
    assert node / (1 - 1 / 32) == pytest.approx(413e9, rel=1e-3)
    assert found["leaf"] == node / (1 - 1 / 128)  # 403
