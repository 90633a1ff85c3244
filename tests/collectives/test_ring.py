"""The ring on a circle: its blocks, words and clock are those of the simulator."""

import cmath
import json
import math
import re
from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardmath import collectives
from shardmath.base.units import show
from shardmath.collectives.simulator import simulate
from shardmath.collectives.simulator.terms import complete, finished, held, parcels
from shardmath.draw import figures
from shardmath.draw.figures.ring import BOTH
from shardmath.draw.labels import FONT, overlap
from shardmath.draw.objects.circle import CELL, LANE, LETTERS, panel, said
from shardmath.draw.pictures import circle
from shardmath.hardware.chips import TPU_V5E, TPU_V5P
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import LATENCY, Network, Ring, Torus

FIGURE = figures.find("ring")
STEP, OP, WAYS, CHIPS, SIZE = FIGURE.controls
OPS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")
SVG = "{http://www.w3.org/2000/svg}"
WIRES = TPU_V5P.link_bandwidth, LATENCY["ICI"].value


def ring(op, n, one_way, nbytes=8e6, **more):
    mesh = Mesh(Network((Ring(n, *WIRES),)), {"X": n})
    return simulate(op, nbytes, mesh, "X", one_way=one_way, **more)


@st.composite
def traces(draw):
    n = draw(st.integers(3, 8))
    return ring(draw(st.sampled_from(OPS)), n, draw(st.booleans()))


def texts(svg):
    root = ElementTree.fromstring(svg)
    return [text.text for text in root.iter(f"{SVG}text")]


@given(traces())
@settings(max_examples=15)
def test_what_is_held_is_what_the_simulator_holds(trace):
    """Every number of every state is the sum of the terms said to be in it."""
    for step in range(len(trace.steps) + 1):
        state = trace.state(step)
        for chip, blocks in enumerate(held(trace, step)):
            assert set(blocks) == {block.name for block in state[chip]}
            for block, number in state[chip].items():
                terms = blocks[block.name][block.half]
                assert number == sum(trace.start[c][block] for c in terms)


@given(traces())
@settings(max_examples=15)
def test_parcels_are_what_the_links_carry(trace):
    n, halves = trace.group.size, trace.group.halves
    names = n * n if trace.priced.collective.op == "all_to_all" else n
    for step in trace.steps:
        carried = Counter()
        for parcel in parcels(trace, step.number):
            carried[0, parcel.source, parcel.target] += sum(map(bool, parcel.halves))
        half = trace.priced.collective.nbytes / names / halves
        assert set(carried) == set(step.loads)
        for link, count in carried.items():
            assert count * half == pytest.approx(step.loads[link])


@given(traces())
@settings(max_examples=15)
def test_every_block_is_drawn_on_its_chip_once(trace):
    """The letters on a plate are the blocks that the chip holds, and no others."""
    n = trace.group.size
    pieces = trace.priced.collective.op == "all_to_all"
    for step in range(len(trace.steps) + 1):
        found = drawn(panel(trace, step), n)
        for chip, blocks in enumerate(held(trace, step)):
            names = (divmod(name, n) if pieces else (name, "") for name in blocks)
            assert found[chip] == {f"{LETTERS[a]}{b}" for a, b in names}


def drawn(svg, n):
    """The blocks on every plate, by where their letters stand."""
    found, places = [set() for _ in range(n)], {}
    boxes = plates(svg)
    for text, x, y in written(svg):
        for chip, (left, top, right, bottom) in enumerate(boxes):
            inside = left < x < right and top < y < bottom
            if inside and text.text != f"chip {chip}":
                found[chip].add(text.text)
                for (u, v), other in places.items():
                    apart = math.hypot(x - u, y - v)
                    assert apart > 20 or (apart < 0.2 and other == text.text)
                places[x, y] = text.text
    return found


def plates(svg):
    """The boxes of the chips, in their order."""
    rects = (r for r in ElementTree.fromstring(svg).iter(f"{SVG}rect"))
    boxes = (
        [float(r.get(k)) for k in ("x", "y", "width", "height")]
        for r in rects
        if r.get("rx") == "6"
    )
    return [(x, y, x + wide, y + high) for x, y, wide, high in boxes]


def written(svg):
    """Every text and where it stands, in the units of the picture."""
    root = ElementTree.fromstring(svg)
    for group in [root, *root.iter(f"{SVG}g")]:
        for text in group.findall(f"{SVG}text"):
            place = complex(float(text.get("x")), float(text.get("y")))
            place = moved(group.get("transform", ""), place)
            yield text, place.real, place.imag


def moved(transform, place):
    """A point of the complex plane after a list of translations and rotations."""
    for what, by in reversed(re.findall(r"(\w+)\(([^)]*)\)", transform)):
        numbers = [float(number) for number in by.split()]
        if what == "translate":
            place += complex(*numbers)
        else:
            place *= cmath.rect(1, math.radians(*numbers))
    return place


@given(traces())
@settings(max_examples=15)
def test_no_words_cover_others_or_leave_the_picture(trace):
    """A block that arrived may have its letter twice, at the same place."""
    for step in range(len(trace.steps) + 1):
        svg = panel(trace, step)
        root = ElementTree.fromstring(svg)
        _, _, wide, high = map(float, root.get("viewBox").split())
        boxes = [around(*found) for found in written(svg)]
        for left, top, right, bottom in boxes:
            assert 0 <= left < right <= wide
            assert 0 <= top < bottom <= high
        for one, other in combinations(boxes, 2):
            same = math.dist(one, other) < 0.3
            assert same or overlap(one, other) < 4, (step, one, other)


def around(text, x, y):
    """The box of a text, if its letters are as wide as most are."""
    size = float(text.get("font-size", FONT))
    half = 0.5 * 0.52 * size * len(text.text)
    return x - half, y - 0.75 * size, x + half, y


@pytest.mark.parametrize("op", ["all_gather", "reduce_scatter", "all_to_all"])
def test_a_block_has_the_colour_of_its_letter(op):
    trace = ring(op, 8, False)
    seen = set()
    for step in range(len(trace.steps) + 1):
        root = ElementTree.fromstring(panel(trace, step))
        for group in [root, *root.iter(f"{SVG}g")]:
            for back, text in pairwise(group):
                if text.tag == f"{SVG}text" and "--sm-paper" in text.get("fill", ""):
                    hue = LETTERS.index(text.text[0]) + 1
                    assert back.get("fill").startswith(f"var(--sm-hue{hue},")
                    seen.add(hue)
    assert seen == set(range(1, 9))


@pytest.mark.parametrize("n", [4, 7])
def test_a_sum_is_filled_as_far_as_it_is_added(n):
    """Every term is one column of its slot."""
    trace = ring("reduce_scatter", n, True)
    for step in range(len(trace.steps)):
        area = sum(
            float(rect.get("width")) * float(rect.get("height"))
            for rect in ElementTree.fromstring(panel(trace, step)).iter(f"{SVG}rect")
            if rect.get("fill-opacity") == "0.45"
        )
        terms = [
            len(half)
            for blocks in held(trace, step)
            for halves in blocks.values()
            for half in halves
        ]
        assert area == pytest.approx(CELL**2 * sum(terms) / n, rel=0.02)


@given(traces())
@settings(max_examples=15)
def test_an_arrow_is_as_wide_as_its_load(trace):
    """From 1 for nothing to 4 for the fullest link of all steps."""
    most = max(load for played in trace.steps for load in played.loads.values())
    for played in trace.steps:
        widths = [
            float(path.get("stroke-width"))
            for path in ElementTree.fromstring(panel(trace, played.number)).iter()
            if "network" in path.get("stroke", "") and path.tag == f"{SVG}path"
        ]
        right = [1 + 3 * load / most for load in played.loads.values()]
        assert sorted(widths) == pytest.approx(sorted(right), abs=0.06)


@given(traces())
@settings(max_examples=15)
def test_what_a_link_carries_is_written_between_its_chips(trace):
    """As often as it is carried, and nearer to the chips of the link than to others."""
    n, pieces = trace.group.size, trace.priced.collective.op == "all_to_all"
    for step in range(1, len(trace.steps) + 1):
        svg = panel(trace, step)
        middles = [((a + c) / 2, (b + d) / 2) for a, b, c, d in plates(svg)]
        names = [
            (text.text, (x, y - 5))
            for text, x, y in written(svg)
            if "network" in text.get("fill") and not text.get("font-size")
        ]
        links = {}
        for parcel in parcels(trace, step):
            links.setdefault((parcel.source, parcel.target), []).append(parcel)
        found = Counter()
        for text, place in names:
            near = sorted(range(n), key=lambda c: math.dist(place, middles[c]))
            found[frozenset(near[:2]), text] += 1
        wanted = Counter()
        for link, sent in links.items():
            halves = sum(bool(half) for parcel in sent for half in parcel.halves)
            blocks = halves / trace.group.halves
            a, b = divmod(sent[0].name, n) if pieces else (sent[0].name, "")
            one = "½" * (blocks < 1) + f"{LETTERS[a]}{b}"
            wanted[frozenset(link), one if len(sent) == 1 else f"{blocks:g}"] += 1
        assert found == wanted


@pytest.mark.parametrize("n", [4, 6, 8])
def test_half_a_piece_is_named_inside_the_picture_and_beside_its_arrow(n):
    """In wide letters: ½ of 0.97 of the size, a capital of 0.8, a digit of 0.64."""
    svg = panel(ring("all_to_all", n, False), n // 2)
    width = float(ElementTree.fromstring(svg).get("viewBox").split()[2])
    chips = [((a + c) / 2, (b + d) / 2) for a, b, c, d in plates(svg)]
    middle = width / 2, sum(y for _, y in chips) / n
    radius = math.dist(middle, chips[0])
    names = [(text.text, x, y) for text, x, y in written(svg) if "½" in text.text]
    assert len(names) == 2 * n
    for text, x, y in names:
        half = FONT * (0.97 + 0.8 + 0.64) / 2
        assert 0 <= x - half < x + half <= width, text
        outside = math.dist(middle, (x, y - 5)) > radius
        if outside and abs(y - 5 - middle[1]) < FONT / 2:
            assert abs(x - middle[0]) - half > radius + LANE, text


@given(traces())
@settings(max_examples=15)
def test_what_comes_has_set_off_in_the_picture_before(trace):
    """Arrivals have the keys of empty marks there: at the sender, in a held slot."""
    before = {}
    for step in range(len(trace.steps) + 1):
        root = ElementTree.fromstring(panel(trace, step))
        groups = [g for g in root.iter(f"{SVG}g") if g.get("data-key")]
        seen = [g.get("data-key") for g in groups if len(g)]
        unseen = [g.get("data-key") for g in groups if not len(g)]
        assert len(groups) == len(set(unseen + seen)) == len(unseen + seen)
        assert set(seen) == set(before)
        boxes = plates(panel(trace, step))
        for group in groups:
            x, y = corner(group)
            _, source, target, _ = map(int, group.get("data-key").split("-"))
            left, top, right, bottom = boxes[target if len(group) else source]
            assert left < x < right
            assert top < y < bottom
        before = {g.get("data-key") for g in groups if not len(g)}
    assert not before


def corner(group):
    place = moved(group.get("transform"), 0)
    return place.real, place.imag


@pytest.mark.parametrize("ways", WAYS.options)
@pytest.mark.parametrize("op", OP.options)
def test_the_clock_ends_at_the_closed_form(op, ways):
    for chips in CHIPS.stops:
        data = FIGURE.draw(op=op, ways=ways, chips=chips, step=STEP.high).data
        mesh = Mesh(Network((Ring(chips, *WIRES),)), {"X": chips})
        price = getattr(collectives, data["op"])
        right = price(1000 * SIZE.default, mesh, "X", one_way=ways == "one way")
        assert data["step"] == data["steps"] <= STEP.high
        assert data["closed_form"] == right.seconds
        assert data["exact"]
        assert data["elapsed"] == pytest.approx(right.seconds, rel=1e-9)


@given(traces())
@settings(max_examples=15)
def test_the_bar_is_filled_as_far_as_the_clock_says(trace):
    """Pale for the hops, dark for the bytes."""
    bars = [filled(panel(trace, step)) for step in range(len(trace.steps) + 1)]
    full = sum(bars[-1].values())
    for step, bar in enumerate(bars):
        late = sum(max(played.waits.values()) for played in trace.steps[:step])
        share = {"late": late, "sent": trace.elapsed(step) - late}
        for kind, seconds in share.items():
            right = seconds / trace.seconds
            assert bar[kind] / full == pytest.approx(right, abs=0.01)


def filled(svg):
    """The lengths of a bar that are filled, by kind."""
    found = Counter()
    for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        kind, _, _ = rect.get("data-key", "").partition("-")
        found[kind] += float(rect.get("width")) if kind else 0
    return found


def test_the_clock_goes_step_by_step():
    trace = ring("all_reduce", 6, False, 1000.0 * SIZE.default)
    drawings = [
        FIGURE.draw(op="AllReduce", ways=BOTH, chips=6, step=step).data
        for step in range(len(trace.steps) + 1)
    ]
    assert drawings[0]["elapsed"] == drawings[0]["sent"] == 0
    for (before, after), step in zip(pairwise(drawings), trace.steps, strict=True):
        assert after["elapsed"] - before["elapsed"] == pytest.approx(step.seconds)
        sent = 2 * max(step.loads.values())
        assert after["sent"] - before["sent"] == pytest.approx(sent)


@pytest.mark.parametrize("op", ["AllGather", "ReduceScatter", "AllReduce"])
def test_each_chip_sends_what_the_collective_says(op):
    """An AllToAll passes the blocks of others on, and sends more."""
    for chips in CHIPS.stops:
        data = FIGURE.draw(op=op, chips=chips, step=STEP.high).data
        one = collectives.Collective(data["op"], "X", 1000 * SIZE.default, chips)
        assert data["sent"] == data["sent_in_all"] == pytest.approx(one.sent)


@pytest.mark.parametrize("chips", CHIPS.stops)
def test_both_ways_halve_the_time_of_the_bytes(chips):
    one, both = (FIGURE.draw(chips=chips, ways=w).data for w in WAYS.options)
    seconds = [d["closed_form"] - d["latency_seconds"] for d in (one, both)]
    assert seconds[0] == pytest.approx(2 * seconds[1])


@pytest.mark.parametrize(
    ("op", "n", "one_way", "step", "words"),
    [
        ("all_gather", 8, True, 0, "every chip holds its own block of 8."),
        ("all_gather", 8, True, 1, "its own block to the next chip; each now holds 2"),
        ("all_gather", 8, True, 3, "Step 3 of 7: every chip passes on the block that"),
        ("all_gather", 8, True, 3, "that it received last; each now holds 4 of 8."),
        ("all_gather", 8, False, 1, "its own block both ways; each now holds 3 of 8."),
        ("all_gather", 8, False, 4, "passes on half of each block"),
        ("all_gather", 7, False, 3, "passes on each block that it received last; each"),
        ("reduce_scatter", 4, True, 1, "sends one term on, and its neighbour adds"),
        ("reduce_scatter", 4, True, 2, "passes on the sum that it added to"),
        ("reduce_scatter", 4, True, 2, "the fullest sums now have 3 of 4 terms."),
        ("reduce_scatter", 4, False, 1, "sends half a term each way"),
        ("reduce_scatter", 5, False, 1, "sends one term each way"),
        ("reduce_scatter", 4, False, 2, "one block complete, the sum of 4 terms."),
        ("all_reduce", 4, True, 4, "Step 4 of 6: every chip sends its own sum to the"),
        ("all_reduce", 4, True, 5, "sum that it received last; each now holds 3 of 4"),
        ("all_to_all", 8, False, 1, "sends 3.5 blocks on each way; each now has 3 of"),
        ("all_to_all", 8, False, 4, "sends half a block on each way; each now has 8"),
        ("all_to_all", 4, True, 3, "sends 1 block on; each now has 4 of the 4 blocks"),
    ],
)
def test_words_say_what_a_step_did(op, n, one_way, step, words):
    assert words in said(ring(op, n, one_way), step)


@given(traces())
@settings(max_examples=15)
def test_words_hold_for_every_chip(trace):
    """They speak of every chip, so all must do, and have, the same."""
    for step in range(1, len(trace.steps) + 1):
        sent, have = Counter(), set()
        for parcel in parcels(trace, step):
            sent[parcel.source] += Fraction(sum(map(bool, parcel.halves)), 2)
        assert len(set(sent.values())) == 1
        for chip, blocks in enumerate(held(trace, step)):
            own = [
                complete(trace, halves)
                for name, halves in blocks.items()
                if trace.priced.collective.op != "all_to_all"
                or name % trace.group.size == chip
            ]
            have.add(sum(own))
        assert have == {finished(trace, step)}


def test_the_last_step_leaves_all_blocks():
    for op, n in zip(OPS, (8, 1, 8, 8), strict=True):
        trace = ring(op, 8, False)
        assert finished(trace, len(trace.steps)) == n


def test_a_step_after_the_last_shows_the_last():
    early, late = (FIGURE.draw(chips=5, step=step) for step in (4, STEP.high))
    assert early == late
    assert early.last == 4


def test_the_figure_says_where_it_is():
    drawing = FIGURE.draw(op="AllGather", ways="one way", chips=8, step=3)
    assert drawing.summary == "AllGather, one way. " + said(
        ring("all_gather", 8, True), 3
    )
    assert "step 3 of 7" in texts(drawing.svg)
    json.dumps(drawing.data, allow_nan=False)


def test_the_bar_of_the_clock_can_be_dragged_from_step_to_step():
    """In the live figure alone; its places are the ends of the steps."""
    root = ElementTree.fromstring(FIGURE.draw(ways=BOTH, chips=6).svg)
    (bar,) = (r for r in root.iter(f"{SVG}rect") if r.get("data-drag"))
    assert bar.get("data-drag") == STEP.name
    left, wide = float(bar.get("x")), float(bar.get("width"))
    trace = ring("all_gather", 6, False, 1000.0 * SIZE.default)
    ends = [trace.elapsed(k) / trace.seconds for k in range(len(trace.steps) + 1)]
    places = [(float(at) - left) / wide for at in bar.get("data-drag-at").split()]
    assert places == pytest.approx(ends, abs=0.002)
    assert "data-drag=" not in circle(trace, (0,)).panels[0]


def test_a_picture_has_a_panel_a_step():
    picture = circle(ring("all_gather", 8, True), (0, 1, 7))
    assert len(picture.panels) == 3
    assert re.findall("step . of 7", " ".join(picture.panels)) == [
        f"step {k} of 7" for k in (0, 1, 7)
    ]


def test_a_picture_without_a_clock_gives_no_time_away():
    """A chapter that asks for the time shows what moves before it."""
    trace = ring("all_reduce", 8, False)
    told, untold = (
        texts(circle(trace, (8,), clock=clock).panels[0]) for clock in (True, False)
    )
    time = show(trace.seconds, "s")
    assert time in told
    assert f"closed form: {time}" in told
    assert not any(time in text or "closed form" in text for text in untold)
    assert {"step 8 of 8", "8 of 8 sums on each"} <= set(untold) & set(told)
    start = texts(circle(trace, (0,), clock=False).panels[0])
    assert {"step 0 of 8", "1 of 8 terms in each"} <= set(start)


@pytest.mark.parametrize(
    ("trace", "steps", "message"),
    [
        (ring("permute", 4, False), (0,), "Permute .* on ring of 4: a circle shows"),
        (ring("all_gather", 9, False), (0,), "on ring of 9: a circle .* 3 to 8 chips"),
        (
            simulate("all_gather", 8e6, Mesh(Torus(TPU_V5E, (4,) * 2), {"X": 16}), "X"),
            (0,),
            "on line of 4, line of 4",
        ),
        (ring("all_gather", 4, False), (3,), "step 3: must be from 0 to 2"),
        (ring("all_gather", 4, False), (), r"steps = \(\): must name states to show"),
        (ring("all_gather", 4, False), 2, "steps = 2: must name states to show"),
        (ring("all_gather", 4, False), 0, "steps = 0: must name states to show"),
        (None, (0,), "trace = None: must be a Trace; `simulate`"),
    ],
)
def test_what_no_circle_can_show_is_refused(trace, steps, message):
    with pytest.raises(ValueError, match=message):
        circle(trace, steps)
