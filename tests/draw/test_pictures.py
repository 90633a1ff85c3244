"""Pictures of chips and of what runs on them: their numbers, sizes and words."""

import itertools
import re
from xml.etree import ElementTree

import pytest

from shardmath.base.estimate import Estimate, Leg
from shardmath.base.units import show
from shardmath.draw import pictures
from shardmath.draw.labels import FONT, overlap, text_width
from shardmath.draw.picture import Picture, size
from shardmath.hardware import chips, roofline, systolic
from shardmath.transformer import keys_per_query

SVG = "{http://www.w3.org/2000/svg}"
GPUS = [chips.V100, chips.A100_80GB, chips.H100, chips.H200, chips.B200]
TPUS = [chip for chip in chips.ALL if chip.vendor == "Google" and chip.id != "tpu_8t"]
SMALL = roofline.matmul(24, 8192, 8192, chips.TPU_V5E)
LARGE = roofline.matmul(4096, 8192, 8192, chips.TPU_V5E)
SPLIT = roofline.split_matmul(4096, 16_384, 8192, chips.TPU_V5E)
LATE = Estimate(
    "late", (Leg("math", 3, 1), Leg("network", 2, 1, slack=1.5))
)  # latency, say
IN_TILES = roofline.tiled_matmul(
    8192, 8192, 8192, chips.TPU_V5E, tile=(512, 512), inner=(128, 128)
)
HEADLINE = {
    "TPU v5p, bf16": chips.TPU_V5P.flops["bf16"],
    "Ironwood, as the headline counts": chips.TPU_7X.flops["fp8"],
    "our bf16 matmul on Ironwood": None,
}

SQUARE = 8192, 8192, 8192
FIVE = "v4", "v5e", "Ironwood", "B200", "MI300X"

DRAWN = {
    **{f"gpu_parts {gpu.name}": (pictures.gpu_parts, gpu) for gpu in GPUS},
    **{f"tpu_parts {tpu.name}": (pictures.tpu_parts, tpu) for tpu in TPUS},
    "masks": (pictures.masks, 12, 4),
    "memories": (pictures.memories, chips.H100, chips.TPU_V5P),
    "memories of five": (pictures.memories, *map(chips.find, FIVE)),
    **{
        f"overlap {name}": (pictures.overlap, op)
        for name, op in zip(
            ("small", "large", "split", "tiles"),
            (SMALL, LARGE, SPLIT, IN_TILES),
            strict=True,
        )
    },
    "padding": (pictures.padding, 64),
    "padding both": (pictures.padding, 64, 64),
    "padding nothing": (pictures.padding, 128, 128, (128,)),
    "streaming": (pictures.streaming, *SQUARE, chips.TPU_V5E, (512, 512)),
    "streaming oblong": (
        pictures.streaming,
        *(4096, 8192, 8192),
        chips.H100,
        (1024, 2048),
        "fp8",
    ),
    "two chips": (pictures.two_chips, 4096, 16_384, 8192, chips.TPU_V5E),
    "two GPUs": (pictures.two_chips, 16, 8192, 8192, chips.H100, 450e9),
    "bars": (pictures.bars, "A matmul", SMALL.seconds, "s"),
    "bars with a question": (pictures.bars, "A headline", HEADLINE, "FLOPs/s"),
}
ROLES = "keeps", "sends", "finished", "arrives"
each_picture = pytest.mark.parametrize("name", DRAWN)


def drawn(name: str) -> Picture:
    make, *arguments = DRAWN[name]
    return make(*arguments)


def words(svg: str) -> list[str]:
    """Every line of text in a panel."""
    root = ElementTree.fromstring(svg)
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def spans(svg: str) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Every line of text with the box that it takes at most."""
    found = []
    for text in ElementTree.fromstring(svg).iter(f"{SVG}text"):
        said = "".join(text.itertext())
        wide = text_width(said) * (1.06 if text.get("font-weight") else 1)
        x, y = float(text.get("x")), float(text.get("y"))
        left = x - wide * {"middle": 0.5, "end": 1}.get(text.get("text-anchor"), 0)
        found.append((said, (left, y - 0.78 * FONT, left + wide, y + 0.22 * FONT)))
    return found


def boxes(svg: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of every box."""
    rects = ElementTree.fromstring(svg).iter(f"{SVG}rect")
    named = [
        [float(rect.get(name)) for name in ("x", "y", "width", "height")]
        for rect in rects
    ]
    return [(x, y, x + wide, y + high) for x, y, wide, high in named]


@each_picture
def test_no_words_overlap_or_leave_the_picture(name):
    for panel in drawn(name).panels:
        wide, high = size(panel)
        for said, (left, top, right, bottom) in spans(panel):
            inside = left >= 0 and top >= 0 and right <= wide and bottom <= high
            assert inside, f"{said!r} leaves the picture"
        for (one, a), (other, b) in itertools.combinations(spans(panel), 2):
            assert overlap(a, b) == 0, f"{one!r} lies over {other!r}"


@each_picture
def test_words_stay_in_the_box_that_they_begin_in(name):
    """The smallest box around the middle of a line holds all of the line."""
    for panel in drawn(name).panels:
        for said, (left, top, right, bottom) in spans(panel):
            across, down = (left + right) / 2, (top + bottom) / 2
            around = [
                box
                for box in boxes(panel)
                if box[0] <= across <= box[2] and box[1] <= down <= box[3]
            ]
            if around:
                box = min(around, key=lambda b: (b[2] - b[0]) * (b[3] - b[1]))
                within = box[0] <= left and right <= box[2]
                assert within, f"{said!r} leaves its box"


@each_picture
def test_boxes_stay_in_the_picture_and_colours_in_the_theme(name):
    for panel in drawn(name).panels:
        wide, high = size(panel)
        for left, top, right, bottom in boxes(panel):
            inside = left >= 0 and top >= 0 and right <= wide and bottom <= high
            assert inside, (left, top, right, bottom)
        assert not re.search(r'(fill|stroke)="#', panel)


@each_picture
def test_a_picture_says_what_it_shows(name):
    picture = drawn(name)
    assert len(picture.desc.split()) >= 12
    assert picture.title
    # Every number in a panel is told to who does not see it.
    numbers = r"\d[\d.,]*\d(?: [kMGTP]i?[A-Z][\w/]*)?|\d"
    for panel in picture.panels:
        for line in words(panel):
            for number in re.findall(numbers, line):
                assert number in f"{picture.title} {picture.desc}", (number, line)


def test_an_h100_as_its_maker_draws_it():
    """132 SMs of four subpartitions with 16 Ki registers, 32 lanes, a Tensor Core."""
    (panel,) = pictures.gpu_parts(chips.H100).panels
    said = words(panel)
    for line in ("HBM, 80 GiB", "3.35 TB/s", "L1 with SMEM, 256 KiB", "18 NVLinks"):
        assert said.count(line) == 1
    assert "5.5 TB/s (measured)" in said  # by others; NVIDIA publishes none
    assert f"one of 132 SMs: {show(989.4e12 / 132, 'FLOPs/s')} in bf16" in said
    for line in ("scheduler", "registers,", "64 KiB", "32 lanes", "1 Tensor", "Core"):
        assert said.count(line) == 4


def test_numbers_inside_of_a_tensorcore_are_those_of_one():
    """A v5p has two, with half of the MXUs, the VMEM and the registers each."""
    (panel,) = pictures.tpu_parts(chips.TPU_V5P).panels
    said = words(panel)
    for line in ("TPU v5p: 459 TFLOPs/s in bf16", "6 ICI links", "100 GB/s each"):
        assert line in said
    for line in ("one of 2 TensorCores", "VMEM, 64 MiB", "4 MXUs", "230 TFLOPs/s"):
        assert line in said
    assert "vector registers (VREGs), 256 KiB" in said
    (panel,) = pictures.tpu_parts(chips.TPU_V5E).panels
    assert {"4 MXUs", "197 TFLOPs/s", "17.8 TB/s", "6.14 TOPs/s"} <= set(words(panel))


def test_a_rate_that_nobody_states_is_said_to_be_missing():
    said = words(pictures.tpu_parts(chips.TPU_V5P).panels[0])
    assert said.count("no source states a rate") == 1  # VMEM to the units
    ironwood = words(pictures.tpu_parts(chips.TPU_7X).panels[0])
    assert ironwood.count("states a rate") == 1  # PCIe


@pytest.mark.parametrize(
    ("make", "chip", "message"),
    [
        (pictures.gpu_parts, chips.TPU_V5P, "gpu = TPU v5p.*: must be an NVIDIA GPU"),
        (pictures.gpu_parts, chips.MI300X, "must be an NVIDIA GPU"),
        (pictures.gpu_parts, "H100", "gpu = 'H100': must be an NVIDIA GPU"),
        (pictures.gpu_parts, chips.H800, "H800: no source states"),
        (pictures.tpu_parts, chips.H100, "tpu = H100.*: must be a TPU"),
        (pictures.tpu_parts, chips.TPU_8T, "TPU 8t: no source states"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, chip, message):
    with pytest.raises(ValueError, match=message):
        make(chip)


def sides(svg: str) -> list[tuple[float, float]]:
    """Width and height of every box."""
    return [(right - left, end - top) for left, top, right, end in boxes(svg)]


def test_areas_of_memories_are_to_one_scale_in_all_panels():
    """A square for each memory, its side within a tenth of a unit of the root."""
    picture = pictures.memories(chips.H100, chips.TPU_V5P)
    h100, v5p = (sides(panel) for panel in picture.panels)
    scale = v5p[-1][0] ** 2 / chips.TPU_V5P.hbm_bytes
    held = (
        (chips.H100, h100, ("registers_bytes", "l1_bytes", "l2_bytes", "hbm_bytes")),
        (chips.TPU_V5P, v5p, ("registers_bytes", "onchip_bytes", "hbm_bytes")),
    )
    for chip, squares, names in held:
        for (wide, high), name in zip(squares, names, strict=True):
            side = (scale * chip.fact(name).value) ** 0.5
            assert (wide, high) == pytest.approx((side, side), abs=0.11)


def test_memories_name_what_a_record_holds_and_nothing_else():
    h100, v5e = pictures.memories(chips.H100, chips.TPU_V5E).panels
    assert words(h100)[:4] == [
        "H100, areas to scale",
        "registers, 33 MiB",
        "L1 with SMEM, 33 MiB, 30.9 TB/s",
        "L2, 50 MiB, 5.5 TB/s",
    ]
    assert "VMEM, 128 MiB, 17.8 TB/s" in words(v5e)
    assert not any("registers" in line for line in words(v5e))  # nobody states them


@pytest.mark.parametrize("op", [SMALL, LARGE, SPLIT, IN_TILES, LATE])
def test_bars_of_an_estimate_are_to_the_scale_of_time(op):
    """First the legs at once, then each from where the one before it ends."""
    bars = boxes(pictures.overlap(op).panels[0])
    count = len(op.legs)
    at_once, in_turn = bars[:count], bars[count:]
    begin, end = in_turn[0][0], in_turn[-1][2]
    unit = (end - begin) / op.upper
    lengths = sorted((right - left) / unit for left, _, right, _ in in_turn)
    turns = sorted(leg.seconds + leg.slack for leg in op.legs)
    assert lengths == pytest.approx(turns, abs=0.3 / unit)
    assert all(left == begin for left, *_ in at_once)
    assert max(right for *_, right, _ in at_once) - begin == pytest.approx(
        op.lower * unit, abs=0.2
    )
    for (_, _, right, _), (left, *_) in itertools.pairwise(in_turn):
        assert left == pytest.approx(right, abs=0.2)


def test_an_estimate_is_drawn_in_the_colours_of_its_resources():
    (panel,) = pictures.overlap(SPLIT).panels
    fills = [
        rect.get("fill") for rect in ElementTree.fromstring(panel).iter(f"{SVG}rect")
    ]
    order = [re.match(r"var\(--sm-(\w+),", fill)[1] for fill in fills]
    assert order == ["hbm", "math", "network"] * 2


def test_bars_say_a_published_number_in_all_of_its_digits():
    """13.95 of a float is a little less, and became 13.9."""
    said = pictures.bars("A step", {"pairs": 13.95}, "s", digits=4).desc
    assert "pairs: 13.95 s" in said


def test_bars_are_to_scale_and_what_is_unknown_is_empty():
    (panel,) = pictures.bars("A headline", HEADLINE, "FLOPs/s").panels
    (small, _), (large, _), (whole, _) = sides(panel)
    old, new, _ = HEADLINE.values()
    assert small / large == pytest.approx(old / new, abs=0.001)
    assert whole == large
    assert panel.count("stroke-dasharray") == 1
    assert "our bf16 matmul on Ironwood?" in words(panel)
    assert "TPU v5p, bf16: 459 TFLOPs/s" in words(panel)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pictures.memories(), "must be given at least one chip"),
        (lambda: pictures.memories("H100"), "chip = 'H100': must be a Chip"),
        (
            lambda: pictures.padding(64, 200),
            r"\[64, 200\]: must fit an array",
        ),
        (lambda: pictures.padding(129), "must fit an array of side 128, one tile"),
        (lambda: pictures.padding(64, sizes=()), "must hold the side of an array"),
        (
            lambda: pictures.streaming(*SQUARE, chips.H100, (16, 16)),
            "tiles of 16 × 16: a part is too small to be drawn to scale",
        ),
        (
            lambda: pictures.streaming(*SQUARE, chips.H100, (9000, 16)),
            "must fit into the result",
        ),
        (lambda: pictures.bars("t", {"a": None}, "s"), "must hold a number to draw"),
        (lambda: pictures.bars("t", {"a": 0}, "s"), "a = 0: must be a finite number"),
        (lambda: pictures.bars("t", {"a" * 60: 1}, "s"), "is wider than the picture"),
        # As wide in regular letters as the picture, and wider in a title's:
        (lambda: pictures.bars("a" * 48, {"a": 1}, "s"), "is wider than the picture"),
    ],
)
def test_what_would_mislead_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("F", [None, 32])
def test_the_share_of_an_array_that_works_is_the_share_of_its_area(F):
    picture = pictures.padding(64, F)
    for side, panel in zip((128, 256), picture.panels, strict=True):
        (array, _), (wide, high) = sides(panel)
        assert wide * high / array**2 == pytest.approx(
            systolic.useful(64, F or side, side), rel=0.01
        )
    small, large = (sides(panel)[0][0] for panel in picture.panels)
    assert small * 2 == large  # one scale for both


def test_strips_lie_in_line_with_the_tile_and_all_is_to_one_scale():
    b, f = 1024, 2048
    (panel,) = pictures.streaming(4096, 8192, 8192, chips.H100, (b, f)).panels
    X, Y, Z, rows, columns, tile = boxes(panel)
    unit = (X[2] - X[0]) / 8192
    for box, (high, wide) in (
        (X, (4096, 8192)),
        (Y, (8192, 8192)),
        (Z, (4096, 8192)),
        (rows, (b, 8192)),
        (columns, (8192, f)),
        (tile, (b, f)),
    ):
        assert box[2] - box[0] == pytest.approx(unit * wide, abs=0.2)
        assert box[3] - box[1] == pytest.approx(unit * high, abs=0.2)
    assert (rows[1], rows[3]) == pytest.approx((tile[1], tile[3]), abs=0.2)
    assert (columns[0], columns[2]) == (tile[0], tile[2])
    assert Z[0] <= tile[0]
    assert tile[2] <= Z[2]


def test_the_numbers_of_a_tile_are_those_of_the_tiled_matmul():
    (panel,) = pictures.streaming(*SQUARE, chips.TPU_V5E, (512, 512)).panels
    op = roofline.tiled_matmul(*SQUARE, chips.TPU_V5E, (512, 512))
    said = " ".join(words(panel))
    assert show(op.flops, "FLOPs") in said
    assert show(op.nbytes, "bytes") in said
    assert f"{op.intensity:.0f} FLOPs per byte" in said
    assert "512 values of X, 512 values of Y, for 524,288 FLOPs." in said


def test_two_chips_send_what_the_split_matmul_counts():
    """B·F values each way, at the rate of one link unless another is given."""
    said = words(pictures.two_chips(4096, 16_384, 8192, chips.TPU_V5E).panels[0])
    assert f"1 and 2 together: {show(2 * 4096 * 8192, 'bytes')} each way," in said
    assert f"{show(SPLIT.seconds['network'], 's')} at 50 GB/s one-way." in said
    assert said.count(f"half of D: {show(SPLIT.seconds['math'], 's')}") == 2
    other = pictures.two_chips(16, 8192, 8192, chips.H100, bandwidth=450e9)
    assert "at 450 GB/s" in other.desc


def test_each_half_is_sent_once_as_sums_and_once_as_result():
    """What one chip sends, the other keeps; arrows of a step run both ways."""
    (panel,) = pictures.two_chips(4096, 16_384, 8192, chips.TPU_V5E).panels
    said = [line for line in words(panel) if line in ROLES]
    for role in ROLES:
        assert said.count(role) == 2
    tips = re.findall(r'<path d="M([\d.]+) ([\d.]+)L[^"]*Z" fill="var\(--sm-net', panel)
    arrows = [(float(x), float(y)) for x, y in tips]
    assert [x < 208 for x, _ in arrows] == [True, False, False, True]
    heights = {text: [] for text in ROLES}
    for text, (left, top, _, bottom) in spans(panel):
        if text in ROLES:
            heights[text].append((left < 208, (top + bottom) / 2))
    # An arrow that points left ends beside what chip 0 keeps, and so on.
    for ends_left, y in ((x < 208, y) for x, y in arrows[:2]):
        beside = [at for on_left, at in heights["keeps"] if on_left == ends_left]
        assert min(abs(at - y) for at in beside) < 4
    for ends_left, y in ((x < 208, y) for x, y in arrows[2:]):
        beside = [at for on_left, at in heights["arrives"] if on_left == ends_left]
        assert min(abs(at - y) for at in beside) < 4


@pytest.mark.parametrize(("seq", "window"), [(12, 4), (7, 1), (16, 15)])
def test_filled_keys_are_those_that_are_counted(seq, window):
    """The area of each square that is filled is the mean of keys over all of them."""
    (panel,) = pictures.masks(seq, window).panels
    *rows, _ = [boxes(panel)[n :: seq + 1] for n in range(seq + 1)]
    side = max(right - left for left, _, right, _ in boxes(panel))
    for n, (attention, most) in enumerate(
        [("full", seq), ("causal", seq), ("causal", window)]
    ):
        wide = sum(row[n][2] - row[n][0] for row in rows)
        keys = keys_per_query(seq, attention, most)
        assert wide / side == pytest.approx(keys, abs=0.02)


def test_a_window_must_hide_something():
    with pytest.raises(ValueError, match="window = 12: must be fewer than the 12 keys"):
        pictures.masks(12, 12)
