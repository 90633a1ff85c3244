"""What readers really answer, and what they must be told: a row for each."""

import math
import operator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from shardmath import exercises
from shardmath.exercises import answers
from shardmath.exercises.kinds import Number, slips
from shardmath.hardware import chips

H100, B200, TPU_7X, V5P = chips.H100, chips.B200, chips.TPU_7X, chips.TPU_V5P
H200, V5E, V6E = chips.H200, chips.TPU_V5E, chips.TPU_V6E
CLOCK_1980 = H100.fact("clock").said("book_gpu")
WAVE = 2 * 128 * 256 * 8192 * 132 / H100.flops["bf16"]  # of tiles 128 x 256
MIXED = V5P.flops["bf16"] / V6E.hbm_bandwidth
LAYER_IN_INT8 = MIXED / (2 - MIXED * (1 / 8192 + 1 / 28672))
LAYER = 855_638_016  # weights of a layer of Llama 3.1 70B
FETCHED = 2 * LAYER * 511 / 512 / (6 * V5P.link_bandwidth)  # over 512 v5p
FORWARD = 2 * LAYER * 640 / V5P.flops["bf16"]
SPLIT = 2 * LAYER * 1024 / H100.flops["bf16"]  # the math of 8,192 tokens over 8 H100
SUMS = 4 * 2**27 * 7 / 8 / H100.scale_up_bandwidth
EXCHANGED = 4 * 2 * 32 * 128 * 4096 * 16 / 8 / V5P.link_bandwidth
STEP_405B = 6 * 405_853_388_800 * 512 * 8192 / 1024 / H100.flops["bf16"]
P_70B = 70_553_706_496
MATH_70B = 6 * P_70B * 4096 / H100.flops["bf16"]
SUMS_70B = 8 * 2 * 8192 * 80 * 4096 * 7 / H100.scale_up_bandwidth
ONCE_70B = 2 * 2 * P_70B / 64 * 3 / 4 / H100.scale_out_bandwidth
SENT = 2 * 1e9 * 7 / 8


@pytest.mark.parametrize(
    ("question", "answer", "slip"),
    [
        ("01.2", 2 * (4096 * 16384 + 512 * 16384), "input left out"),
        ("01.3", 512 * 4096 * 16384 / H100.flops["bf16"], "half of the math"),
        # The sparse peak, and then the longer of the two times:
        ("01.3", 155_189_248 / H100.hbm_bandwidth, "the HBM's time"),
        ("01.4", V6E.intensity() / 4, "half a byte"),
        ("01.6", 2 * 8.03e9 / H100.hbm_bandwidth, "upside down"),
        ("01.8", V5P.flops["bf16"] / V5P.link_bandwidth, "no slower than one"),
        ("01.8", 2 * V5P.flops["bf16"] / V5P.link_bandwidth, "twice as fast"),
        ("01.8", 1.5 * V5P.flops["bf16"] / V5P.link_bandwidth / 2, "both directions"),
        ("01.8", 6 * V5P.flops["bf16"] / V5P.link_bandwidth, "nothing hidden"),
        ("01.14", V5P.flops["bf16"] / V6E.hbm_bandwidth / 2, "activations left out"),
        ("01.14", LAYER_IN_INT8, "int8 activations"),
        ("01.8", 13_770, "all of the sums, there and back"),
        ("01.14", 83, "the v5p's rule of thumb"),
        ("01.14", 280, "the Trillium's rule of thumb"),
        ("01.14", 307, "the Trillium's critical batch, or the int8 peak"),
        ("01.15", (141e9 - 32e9) // 1.2e9, "room alone, GB for GiB"),
        ("01.15", 0.03 * 0.85 * H200.hbm_bandwidth // 33.2e9, "weights for every user"),
        ("01.15", (H200.hbm_bytes - 32e9) // 1.2e9, "room alone"),
        ("01.15", (0.03 * 0.85 * H200.hbm_bandwidth - 32e9) / 1.2e9, None),
        # A slip's value in two or three digits, where the tolerance is narrower:
        ("05.3", "1.94 ms", "half of it"),
        ("05.6", "250 us", "a ring"),
        ("07.1", 14.7e9, "no gate"),
        ("02.1", 512 + 128 + 127, "one way across"),
        ("02.1", 896, "steps for cells"),
        ("02.1", 512 + 2 * 127, "loading left out"),
        ("02.1", 895, "close, not exact"),
        ("02.3", 0.26, None),
        ("02.3", 26, "percent"),
        ("02.3", 80 / 256, "the contracted side alone"),
        ("02.4", V5P.flops["bf16"] / (2 * 4 * 128**2), "a clock doubled"),
        ("02.4", V5P.flops["int8"] / (2 * 8 * 128**2), "a clock doubled"),
        ("02.4", V5P.flops["bf16"] / (2 * 16 * 128**2), "cores counted twice"),
        ("02.5", V6E.flops["int8"] / (2 * 256**2 * 1.75e9), "twice as many"),
        ("02.6", 12, "rounded up"),
        ("02.6", V5E.flops["bf16"] / V5E.onchip_bandwidth / 2, "the bf16 peak"),
        ("02.7", 4 * 256 * 2048 * 1.05e9 / 275e12, "half of it"),
        ("02.7", 4 * 256 * 2 * 2048 * 2.1e9 / 275e12, "two operations per cycle"),
        ("02.7", 275e12 / (2 * 2048 * 1.05e9), "for one operation"),
        ("02.8", 193, "close, not exact"),
        ("02.9", 514, "close, not exact"),
        ("02.9", 256, "chips"),
        ("02.14", (340e9 + 32e9) / 32 / (0.8 * 819e9), "the time of a step"),
        ("02.15", 2880 / 3072 * 918e12 / (2 * 32e9), "one side padded"),
        ("03.1", 2 * 132 * 4096, "sparse peak"),
        ("03.1", H100.flops["bf16"] / CLOCK_1980, "the highest clock"),
        ("03.1", 528 * 4096, "of a Tensor Core"),
        ("03.1", 2 * 132 * 128, "the lanes"),
        ("03.2", B200.flops["bf16"] / (148 * 8192), "clock of the bf16 peak"),
        ("03.3", 20, None),
        ("03.3", 21, "the file as one"),
        ("03.3", 2**18 / (4 * 96 * 32), "not rounded"),
        ("03.3", 84, "bytes for registers"),
        ("03.3", 20 / 64, "the occupancy"),
        ("03.5", 132 * 8 * 32 * 4 * 1.83e9 / 700, "loads of four bytes"),
        ("03.5", 132 * 32 * 16 * 1.83e9 / 700, "one warp per SM"),
        ("03.6", 79, "percent"),
        ("03.6", 1 - 256 / 324, "the idle share"),
        ("03.6", 324 / 256, "upside down"),
        ("03.7", "215 us", None),
        ("03.7", WAVE / 2 * 3, "sparse peak, or one FLOP"),
        ("03.7", WAVE * 3 * 1.83 / 1.98, "the highest clock"),
        ("03.7", WAVE / 2 * 5, "square tiles"),
        ("03.7", WAVE, "one wave"),
        ("03.7", WAVE * 2, "waves rounded down"),
        ("03.7", WAVE * 288 / 132, "idle SMs at work"),
        ("03.7", WAVE * 3 / 132, "the whole chip on each tile"),
        ("03.8", 13.5e15 / 8e12 / 4, "critical batch"),
        ("03.8", 2250e12 / 8e12, "the 16-bit peak"),
        ("03.15", 4 * 143.252 / 35.314, None),
        ("03.15", "$16.2 an hour", None),
        ("03.15", "4 dollars/h * 143.252 / 35.314", None),
        ("03.15", 4 * (143.252 + 28.563) / (35.314 + 17.138), "times added up"),
        ("03.16", 1e9 / 3.35e12, "the data sheet alone"),
        (
            "03.9",
            B200.fact("sparse.bf16").value * 2 / 256,
            "sparse peak, or bytes for values",
        ),
        (
            "04.7",
            2 * 10e9 * (3 / 4 / 8 / B200.scale_out_bandwidth)
            + 2 * 10e9 * 7 / 8 / B200.scale_up_bandwidth,
            "both levels added",
        ),
        ("04.1", 800e9, "the printed figure"),
        ("04.2", 1.1e15 / 4096 / 12, "halved once more"),
        ("04.4", 3, ""),
        ("04.5", 42e-6, "twice the link"),
        ("04.5", 71e-6, "one hop"),
        ("04.5", 74e-6, "hops of a ring"),
        ("04.5", 78e-6, "a hop too many"),
        ("04.7", 2 * 10e9 * 31 / 32 / 400e9, "one ring for all"),
        ("04.6", 400e9, "one node"),
        ("04.7", 2 * 10e9 * 7 / 8 / 900e9, "one node alone"),
        ("04.7", 19.4e-3, "one node alone"),
        ("04.7", 43.75e-3, "GPUs for nodes"),
        ("04.8", "750 GB/s", None),
        ("04.8", 2 * 3 / 4 * 450e9, "four GPUs"),
        ("04.8", 2 * 5 / 7 * 450e9, "as NCCL does it"),
        ("04.8", 643e9, "as NCCL does it"),
        ("04.8", 700e9, "as NCCL does it, over eight"),
        ("04.9", 20e-6 * 400e9 / 2, "very many GPUs"),
        ("04.10", 6, ""),
        ("04.10", 64, "whole cubes"),
        ("04.15", 2e9 / 112e9 / 2 * 15 / 16, "the side of 16"),
        ("04.15", 2e9 / (3.5e12 / 8 / 4) * 7 / 8, "two digits"),
        ("04.15", "15.6 ms", None),
        ("04.17", 0.0163, None),
        ("04.17", 0.016, "two digits"),
        ("04.17", 0.00233, "taper forgotten"),
        ("04.17", 0.0023, "taper forgotten, two digits"),
        ("04.18", "3.6 TB/s", None),
        ("04.18", 14.4e12, "the printed figure"),
        ("04.18", 7.2e12, "half of it"),
        ("04.18", 1.8e12, "an eighth"),
        ("04.18", 900e9, "one GPU"),
        ("04.18", 450e9, "half a GPU"),
        ("04.18", 28.8e12, "doubled"),
        ("05.3", SENT / (8 * H100.scale_up_bandwidth), "all eight at once"),
        ("05.3", "31.1 ms", "all eight arrays together"),
        ("05.2", 2**27 * 15 / 16 / (2 * V5P.link_bandwidth) + 8e-6, "latency too"),
        ("05.3", "3.889 ms", None),
        ("05.4", 2**28 / 8 / V5E.link_bandwidth + 8e-6, "latency too"),
        ("05.4", 256e6 / 8 / V5E.link_bandwidth, "MB for MiB"),
        ("05.5", 16 * V5E.link_bandwidth * 1e-6, "many chips"),
        ("05.5", 2 * V5E.link_bandwidth * 1e-6, "one hop, two links"),
        ("05.5", 16 * V5E.link_bandwidth * 1e-6 * 15 / 16, "fifteen for sixteen"),
        ("05.6", 32e6 * 3 / 4 / V5E.link_bandwidth, "MB for MiB"),
        ("05.7", 1e9 / (4 * V5P.link_bandwidth), "own part too"),
        ("05.7", 1e9 * 7 / 8 / (2 * V5P.link_bandwidth), "one axis alone"),
        ("05.8", "473 GB/s", None),
        ("05.8", 1e9 / 3.7e-3, "bytes over time"),
        ("05.16", "8.53 MB", None),
        ("05.16", 10 * 8e-6 * V5E.link_bandwidth * 16 / 15, "one half's hops"),
        ("05.16", 10 * 16 * V5E.link_bandwidth * 1e-6, "many chips"),
        ("05.18", 7 * 0.3 * 4000 * 7168 * 2 / H100.scale_up_bandwidth, "fp8 both ways"),
        ("04.10", 49, None),
        ("04.10", 47, ""),
        ("04.10", 49.4, ""),
        ("04.6", "102.4 Tb/s", None),
        ("05.8", "3784 Gb/s", None),
        ("05.8", "450 GB/s", "the wire"),
        ("08.1", "94.5 Gbit", None),
        ("07.1", "19.51B", None),
        ("07.6", "5.873 B", None),
        ("08.3", "12.08B", None),
        ("08.3", "180 GiB / 16 B", None),
        ("07.7", "ceil(16 * 53e9 / 80 GiB)", None),
        ("07.7", "ceil(16 * 53 GB / 80 GiB)", None),
        ("07.7", "math.ceil(16 * 53e9 / (80 * 2**30))", None),
        ("07.9", "1.252", None),
        ("07.1", 19.3e9, ""),  # no nearer to a slip than 0.5 %
        ("01.15", 75.41, "not a whole number"),  # and never rounded
        ("06.1", 8192 * 32_768 / 32, "copies counted as parts, or one byte per value"),
        ("06.1", 8 * 2**24, "X alone, or bits"),
        ("06.2", 2, "Z alone"),
        ("06.2", 32, "a factor of 2"),
        ("06.2", 128, "a factor of 8"),
        ("06.7", 18_360, ""),
        ("06.1", "16 MiB", None),
        ("06.3", 2 * 2048 * 8192 * 7 / 8, "the activations"),
        ("06.3", 2 * 4 * 2048 * 16_384 * 7 / 8, "the weights, or four bytes per value"),
        ("06.4", "1174 us", None),
        ("06.4", 2 * 4096 * 8192 * 7 / 8 / 2e11, "the activations"),
        ("06.4", 2 * 8192 * 16_384 * 7 / 8 / 6e11, "all six links"),
        ("06.4", 2 * 8192 * 16_384 * 7 / 8 / 1e11, "one direction"),
        ("06.5", 4096, "the rule alone"),
        ("06.5", 4096 * 14_336 / 2 / (512 + 2 * 14_336), "an AllReduce"),
        ("06.5", 1977, None),
        ("06.6", 2**27 * 15 / 16 + 2 * 256 * 8192 * 3 / 4, "the traffic over Y, too"),
        ("06.7", "146,880", None),
        ("06.7", 8 * 9180, "both directions"),
        ("06.16", "20,625", None),
        ("06.16", "20.6k", None),
        ("06.16", 16_500, "bytes of X alone"),
        ("06.16", 20_625 / 4, "columns of all chips"),
        ("07.1", 19_208_411_136, "keys alone"),
        ("07.1", 19_117_185_024, "one table"),
        ("07.9", 1.25853, "the head, too"),
        ("07.9", 1.2524, None),
        ("07.13", "33.15%", None),
        ("07.13", 0.3271, "the head twice"),
        ("07.14", "28.4 h", None),
        ("07.14", 28.4, "hours"),
        ("08.4", 819.2, "what is left"),
        ("08.4", 1, "one chip"),
        ("08.15", "1.6x", None),
        ("09.1", 4 * 8_030_261_248, "the split state forgotten"),
        ("09.1", 4.125 * 8_030_261_248, "the copy left out"),
        ("09.3", "14 H100", None),
        ("09.18", 80 * (FETCHED + 3 * FORWARD), None),
        ("09.18", 80 * (FETCHED + 2.7255 * FORWARD), "the last matmul not again"),
        ("09.18", 80 * 4 * FORWARD, "both passes as one"),
        ("10.3", "30.2 GPUs", None),
        ("10.13", SPLIT + SUMS / 2, "one block, or both directions of NVLink"),
        ("10.13", SPLIT / 2 + SUMS, "one FLOP per weight, or the sparse peak"),
        ("11.5", 3 * 2 * 64 * 128 * 8192 * 7 / 8, "keys and values left out"),
        ("11.14", 2, "twice, and attention alone"),
        ("11.14", 1.72 * 7 / 8 / 3.11, "how much faster"),
        ("11.15", EXCHANGED * 15 / 16, "own part left out"),
        ("12.2", 23 / 0.04, "without chunks, and no multiple of 24"),
        ("12.12", STEP_405B * (1 + 15 / 128), None),
        ("12.12", STEP_405B * (1 + 16 / 128), "all stages wait"),
        ("12.12", STEP_405B / (1 - 15 / 128), "a share of the step"),
        ("12.13", 1.32, None),
        (
            "12.13",
            7 * (14 / 97 + 1.99 / 23 - 3 * 0.48 / 23),
            "gradients of inputs for a backward pass",
        ),
        (
            "12.13",
            7 * (14 / 97 + 1.99 / 23 - 2 * 0.48 / 15),
            "weight gradients of whole passes left out",
        ),
        ("14.1", 4 * P_70B / 32 + 8 * P_70B / 256, "two moments for the state"),
        ("14.11", "4 stages", None),
        ("14.13", MATH_70B * (1 + 7 / 64) + SUMS_70B + ONCE_70B, None),
        (
            "14.13",
            MATH_70B / (1 - 7 / 64) + SUMS_70B + ONCE_70B,
            "the bubble as a share of the step",
        ),
        (
            "14.13",
            MATH_70B * (1 + 7 / 64) + SUMS_70B + ONCE_70B / 2,
            "one pass of the data axis",
        ),
        ("14.13", MATH_70B * (1 + 7 / 64) + ONCE_70B, "no sums"),
        ("14.13", MATH_70B * (1 + 7 / 64), "all of it hidden"),
    ],
)
def test_what_a_reader_answers_is_named(question, answer, slip):
    found = exercises.examine(answers.find(question), answer)
    wanted = ("correct", "") if slip is None else ("wrong", slip)
    assert (found.verdict, found.slip) == wanted, found


TABLE = Path(__file__).parents[1] / "data" / "wrong_numbers.txt"
NUMBERS = {q: r for q, r in answers.questions().items() if isinstance(r, Number)}


def typed_wrong():
    """Question → (what a reader types, the slip to be named), from the table."""
    rows = {}
    for line in TABLE.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            question, answer, slip = map(str.strip, line.split("|"))
            rows.setdefault(question, []).append((answer, slip))
    return rows


WRONG = typed_wrong()


@pytest.mark.parametrize("question", NUMBERS)
def test_every_slip_of_a_number_is_named_for_an_answer_worked_out_without_it(question):
    """test_grading asks a slip for its own value, which no fault in it can change."""
    rows = WRONG.get(question, [])
    for answer, slip in rows:
        found = exercises.examine(NUMBERS[question], answer)
        assert (found.verdict, found.slip) == ("wrong", slip), (answer, found)
    without = {slip.name for slip in NUMBERS[question].slips} - {s for _, s in rows}
    assert not without, (
        f"question {question}: {sorted(without)} have no row in "
        f"tests/data/{TABLE.name}; write one for each, with a wrong "
        "answer worked out from the task alone; "
        'see "Add a question" in CONTRIBUTING.md'
    )


def test_the_table_of_wrong_numbers_is_about_questions_that_exist():
    assert WRONG.keys() <= NUMBERS.keys()


@pytest.mark.parametrize("question", ["05.2", "05.3", "05.4", "05.6", "05.7", "06.16"])
def test_latency_is_not_let_through_where_it_is_to_be_left_out(question):
    """Twice 3.33 µs over NVLink, and a microsecond for each hop of a torus."""
    asked = NUMBERS[question]
    told = " ".join(asked.task.split()).lower()
    assert "leave out the latency" in told or "without the latency" in told
    more = {"05.3": 6.66e-6, "05.6": 3e-6, "06.16": 131}  # of tokens, in the last
    late = asked.expected() + more.get(question, 8e-6)
    assert exercises.examine(asked, late).slip == "latency too"
    three_digits = float(f"{asked.expected():.2e}")
    assert exercises.examine(asked, three_digits).verdict == "correct"


@pytest.mark.parametrize(
    ("question", "factor", "bits", "eights"),
    [
        ("12.3", 1 / 64, False, False),  # no factor of 8 at all
        ("12.3", 1 / 8, True, True),
        ("13.12", 1 / 8, True, True),
        ("14.1", 1 / 8, True, True),
        ("06.2", 8, False, True),  # a count of chips, over |Y| = 8
        ("12.7", 8, True, True),
        ("06.6", 8, True, False),  # nothing comes in eights here
    ],
)
def test_a_factor_of_8_is_bits_or_what_comes_in_eights(question, factor, bits, eights):
    asked = NUMBERS[question]
    found = exercises.examine(asked, factor * asked.expected())
    assert ("a byte has 8" in found.message) == bits, found
    assert ("Something comes in eights here" in found.message) == eights, found


@pytest.mark.parametrize(
    ("question", "answer", "twos"),
    [
        (
            "01.1",
            None,
            "What comes in twos here? For example, the multiply and the add.",
        ),
        ("06.2", 32, "What comes in twos here?"),
        ("10.3", None, "What comes in twos here?"),
        ("04.2", None, "the two directions of a link or the bytes of a 16-bit"),
    ],
)
def test_what_comes_in_twos_is_what_the_unit_counts(question, answer, twos):
    asked = answers.find(question)
    right = asked.expected()
    says = [
        slip.says
        for slip in slips.generic(answer or 2 * right, right, asked.unit)
        if slip.name == "a factor of 2"
    ]
    assert len(says) == 1
    assert twos in says[0]
    assert ("multiply" in says[0]) == ("multiply" in twos)


@pytest.mark.parametrize("unit", ["bytes", "bytes/s", "s", "FLOPs/byte"])
def test_bits_are_taken_for_bytes_where_bytes_are_counted(unit):
    assert "a factor of 8" in {slip.name for slip in slips.generic(8.0, 1.0, unit)}


@pytest.mark.parametrize("unit", ["chips", "hops", "columns", "tokens", "", "FLOPs"])
def test_bits_are_taken_for_bytes_nowhere_else(unit):
    for value in (8.0, 1 / 8):
        found = {slip.name for slip in slips.generic(value, 1.0, unit)}
        assert "a factor of 8" not in found


@pytest.mark.parametrize(
    ("unit", "named"), [("bytes", True), ("s", True), ("chips", False), ("hops", False)]
)
def test_nobody_counts_chips_in_1024s(unit, named):
    found = {slip.name for slip in slips.generic(24.0 * 1024, 24.0, unit)}
    assert ("a power of 1024" in found) == named


@pytest.mark.parametrize(
    ("value", "right", "unit", "named"),
    [
        (1e9, 2**30, "bytes", True),
        (1e6, 2**20, "bytes", True),
        (1e9, 1.024**2 * 1e9, "bytes", False),  # MiB for MB among gigabytes
        (473e9 / 1.024**3, 473e9, "bytes/s", False),  # no rate is in GiB/s
        (1e3, 1.024e3, "bytes", False),
    ],
)
def test_a_binary_prefix_is_named_where_it_could_have_been_written(
    value, right, unit, named
):
    found = {slip.name for slip in slips.generic(value, right, unit)}
    assert ("a binary prefix" in found) == named


def times(B, D, F, peak, bandwidth):
    return 2 * B * D * F / peak, 2 * (B * D + D * F + B * F) / bandwidth


def one_flop(B, D, F, peak, bandwidth):
    math, memory = times(B, D, F, 2 * peak, bandwidth)
    return max(math, memory), math + memory


def one_byte(B, D, F, peak, bandwidth):
    math, memory = times(B, D, F, peak, 2 * bandwidth)
    return max(math, memory), math + memory


def fp32(B, D, F, peak, bandwidth):
    math, memory = times(B, D, F, peak, bandwidth / 2)
    return max(math, memory), math + memory


def whole_batch(intensity, D, F):
    room = D * F - intensity * (D + F)
    return math.ceil(intensity * D * F / room) if room > 0 else math.inf


def padded(B, D, F, b, f):
    return -(-B // b) * -(-F // f) * (b * D + D * f + b * f)


def whole_tiles_only(B, D, F, b, f):
    return (F // f) * B * D + (B // b) * D * F + B * F


def unwritten(B, D, F, b, f):
    return -(-F // f) * B * D + -(-B // b) * D * F


def smaller(*case):
    return min(times(*case)), sum(times(*case))


def tiles(D, F, size):
    return -(-D // size) * -(-F // size)


def last_waits(B, D, F, size):
    return size + tiles(D, F, size) * max(B, size) + 2 * size - 2


def rounded_once(B, D, F, size):
    return size + (-(-D * F // size**2) - 1) * max(B, size) + B + 2 * size - 2


def without_crossing(B, D, F, size):
    return size + (tiles(D, F, size) - 1) * max(B, size) + B


def one_more(peak, side, fastest):
    return int(peak / (2 * side**2 * fastest)) + 1


def narrow_activations(B, D, F, w, size, mxus, clock, bandwidth):
    math = tiles(D, F, size) * max(B, size) / mxus / clock
    return max(math, w * (D * F + B * D + B * F) / bandwidth)


def padded_weights(B, D, F, w, size, mxus, clock, bandwidth):
    cells = tiles(D, F, size) * size**2
    math = cells / size**2 * max(B, size) / mxus / clock
    return max(math, (w * cells + 2 * B * D + 2 * B * F) / bandwidth)


def four_wide(machine, b, n):
    """Columns of half a block: every weight once, and X twice as often."""
    for f in range(0, n, 4):
        sums = [machine.zeros(8, 4) for _ in range(0, b, 8)]
        for d in range(0, n, 8):
            tile = machine.load("W", rows=(d, d + 8), cols=(f, f + 4))
            for i, c in enumerate(sums):
                x = machine.load("X", rows=(8 * i, 8 * i + 8), cols=(d, d + 8))
                machine.multiply_add(c, x, tile)
                machine.free(x)
            machine.free(tile)
        for i, c in enumerate(sums):
            machine.store(c, "Y", row=8 * i, col=f)
            machine.free(c)


def left(B, F, b, f, sms):
    count = -(-B // b) * -(-F // f)
    return B * F / (b * f * sms * -(-count // sms))


def fitting(registers, smem, threads, file, shared, most, parts=4, nbytes=4):
    warps = -(-threads // 32)
    fit = parts * (file // parts // (nbytes * 32 * registers))
    return min(fit // warps, most // warps, shared // max(smem, 1))


def share(n):
    return (n - 1) / n


def without_alltoall(B, D, F, n):
    return 2 * D * F * share(n), 2 * F * B * share(n)


def activations_first(B, D, F, n):
    return 2 * (D / n + F) * B * share(n), 2 * D * F * share(n)


def int8_plans(B, D, F, n):
    return D * F * share(n), (D / n + F) * B * share(n)


def turned_by_gather(B, D, F, n):
    return min(2 * D * F, 4 * B * F, 2 * D * F + 2 * B * F) * share(n)


def no_sums(in_a, in_b):
    if "J" in (in_a, in_b):
        return 2
    return 4 if in_a and in_b else 1


@pytest.mark.parametrize(
    ("question", "answer", "slip"),
    [
        ("02.11", last_waits, "the last tile waits"),
        ("02.11", rounded_once, "rounded up once"),
        ("02.11", without_crossing, "crossing left out"),
        ("02.12", one_more, "always one more"),
        ("02.13", four_wide, "columns narrower than 8"),
        ("02.16", narrow_activations, "activations as narrow as weights"),
        ("02.16", padded_weights, "padding moved too"),
        ("01.9", times, "the two times"),
        ("01.9", one_flop, "multiply-add"),
        ("01.9", one_byte, "bytes per value"),
        ("01.9", smaller, "minimum for maximum"),
        ("01.9", fp32, "four bytes per value"),
        ("01.10", whole_batch, "rounded up"),
        ("01.11", padded, "padded tiles"),
        ("01.11", whole_tiles_only, "edge left out"),
        ("01.11", unwritten, "result left out"),
        ("05.9", lambda V, n, W, a: V / 2 / W * (n - 1) / n, "no latency"),
        ("05.9", lambda V, n, W, a: V / 2 / W * (n - 1) / n + a, "one hop"),
        ("05.10", lambda n: n // 2 * (n // 2 + 1), "the opposite twice"),
        ("05.10", lambda n: n * (n * n // 4), "of all chips"),
        (
            "05.17",
            lambda V, k, g, up, out: 2 * V * (1 - 1 / k / g) / g / out,
            "shared by all",
        ),
        ("03.11", lambda *case: 100 * left(*case), "percent"),
        ("03.11", lambda *case: 1 - left(*case), "the share lost"),
        ("03.12", lambda *case: fitting(*case, parts=1), "the file as one"),
        ("03.12", lambda *case: fitting(*case, nbytes=1), "bytes for registers"),
        ("03.12", lambda *case: fitting(*case[:5], 10**9), "resident warps left out"),
        ("06.8", no_sums, "case 3 forgotten"),
        ("06.9", without_alltoall, "AllToAll left out"),
        ("06.9", activations_first, "the other way round"),
        ("06.9", int8_plans, "one byte per value"),
        (
            "06.17",
            turned_by_gather,
            "the third plan left out, or its AllToAll as a gather",
        ),
    ],
)
def test_what_a_reader_writes_is_named(question, answer, slip):
    found = exercises.examine(answers.find(question), answer)
    assert (found.verdict, found.slip) == ("wrong", slip), found


def test_a_right_count_of_blocks_is_accepted():
    found = exercises.examine(answers.find("03.12"), fitting)
    assert found.verdict == "correct", found


def through_both(n, small, small_seconds, large, large_seconds):
    """α and the bus bandwidth: the right answer to 04.12."""
    per_byte = (large_seconds - small_seconds) / (large - small)
    return small_seconds - small * per_byte, 2 * (n - 1) / n / per_byte


def smallest_cut(sides, wraps, link):
    """The right answer to 04.11."""
    links = [1 + wrap for wrap in wraps]
    return link * math.prod(sides) * min(map(operator.truediv, links, sides))


@pytest.mark.parametrize(
    ("question", "answer", "slip"),
    [
        ("01.10", lambda i, D, F: i * D * F / (D * F - i * (D + F)), "negative batch"),
        ("04.11", smallest_cut, None),
        ("04.11", lambda *case: 2 * smallest_cut(*case), "both directions"),
        (
            "04.11",
            lambda sides, wraps, link: link * math.prod(sides) / max(sides),
            "never wraps",
        ),
        ("04.12", through_both, None),
        ("04.12", lambda *case: (through_both(*case)[0], 400e9), ""),
        ("04.12", lambda n, v, t, V, T: (t, 2 * (n - 1) / n * V / T), "each time for"),
        (
            "04.12",
            lambda *case: (through_both(*case)[0], through_both(*case)[1] / 2),
            "one pass",
        ),
        (
            "04.16",
            lambda V, g, nodes, pods, up, out, taper: max(
                2 * V * (1 - 1 / (g * nodes * pods)) / up,
                2 * V * (1 - 1 / (nodes * pods)) / (g * out),
                2 * V * (1 - 1 / pods) * taper / (g * nodes * out),
            ),
            "all of it by NVLink",
        ),
        (
            "04.16",
            lambda V, g, nodes, pods, up, out, taper: max(
                2 * V * (1 - 1 / (nodes * pods)) / (g * out),
                2 * V * (1 - 1 / pods) * taper / (g * nodes * out),
            ),
            "the node forgotten",
        ),
    ],
)
def test_what_a_function_computes_is_named(question, answer, slip):
    found = exercises.examine(answers.find(question), answer)
    assert found.verdict == ("correct" if slip is None else "wrong"), found
    assert found.slip.startswith(slip or ""), found


def by_jax(B, D, F, peak, bandwidth):
    both = jnp.array(times(B, D, F, peak, bandwidth))
    return both.max(), both.sum()


def test_an_answer_in_fp32_is_right_too():
    assert exercises.examine(answers.find("01.9"), by_jax).verdict == "correct"


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("02.13", "once for each block column of 8"),
        ("03.12", "Three things limit the blocks"),
        ("05.8", "450 GB/s"),
        ("03.4", "HBM latency of a read: 860 clocks"),
        ("03.2", "fp32 lanes of one core: 128"),
        ("04.8", "*six* H200"),
        ("06.16", "One AllGather fetches the weights"),
    ],
)
def test_a_task_gives_what_its_answer_needs(question, word):
    assert word in answers.find(question).asked


# 04.13: a quarter of the array may cross the nodes, by whatever operations


def scattered_across(x):
    part = jax.lax.psum_scatter(x[0], "gpu", tiled=True)
    part = jax.lax.psum_scatter(part, "node", tiled=True)
    part = jax.lax.all_gather(part, "node", tiled=True)
    return jax.lax.all_gather(part, "gpu", tiled=True)


def exchanged(x):
    part = jax.lax.psum_scatter(x[0], "gpu", tiled=True)
    part += jax.lax.ppermute(part, "node", [(0, 1), (1, 0)])
    return jax.lax.all_gather(part, "gpu", tiled=True)


def whole_across(x):
    return jax.lax.psum(jax.lax.psum(x[0], "gpu"), "node")


def flat(x):
    return jax.lax.psum(x[0], ("node", "gpu"))


def gathered(x):
    return jnp.sum(jax.lax.all_gather(x[0], ("node", "gpu")), 0)


@pytest.mark.parametrize(
    ("answer", "verdict", "slip"),
    [
        (scattered_across, "correct", ""),
        (exchanged, "correct", ""),
        (whole_across, "wrong", "whole array across"),
        (flat, "wrong", "flat"),
        (gathered, "wrong", ""),
    ],
)
def test_bytes_across_nodes_count_and_not_the_way(answer, verdict, slip):
    found = exercises.examine(answers.find("04.13"), answer)
    assert (found.verdict, found.slip) == (verdict, slip), found


def test_a_sum_left_open_is_a_wrong_answer_and_no_fault_of_the_judge():
    left_open = jax.P(None, None, unreduced={"X"})

    def both(a, b, c, d):
        first = jnp.einsum("ij,jk->ik", a, b, out_sharding=left_open)
        return first + jnp.einsum("ij,jk->ik", c, d, out_sharding=left_open)

    found = exercises.examine(answers.find("06.11"), both)
    assert found.verdict == "wrong", found
    assert "not yet reduced over X" in found.message
