"""The systolic array: it multiplies, and its cycles are those of the closed form."""

import itertools
import random
from xml.etree import ElementTree

import numpy as np
import pytest

from shardmath.draw import figures, labels, svg
from shardmath.hardware import systolic

SEEDS = pytest.mark.parametrize("seed", range(40))
FIGURE = figures.find("systolic")


def drawn(seed: int):
    """Arrays of whole numbers, a side of the array, and whether it prefetches."""
    draw = random.Random(seed)
    B, D, F = (draw.randint(1, 9) for _ in range(3))
    size = draw.randint(1, 5)
    X = [[draw.randint(-9, 9) for _ in range(D)] for _ in range(B)]
    W = [[draw.randint(-9, 9) for _ in range(F)] for _ in range(D)]
    return X, W, size, draw.random() < 0.5


def plain_product(X, W):
    columns = list(zip(*W, strict=True))
    return tuple(
        tuple(
            sum(x * w for x, w in zip(row, column, strict=True)) for column in columns
        )
        for row in X
    )


def tiles_of(W, size):
    return (systolic.padded(len(W), size) * systolic.padded(len(W[0]), size)) // size**2


@SEEDS
def test_the_array_multiplies(seed):
    """Sizes that do not divide, one token or many, with prefetch and without."""
    X, W, size, prefetch = drawn(seed)
    assert systolic.multiply(X, W, size, prefetch).result == plain_product(X, W)


@SEEDS
def test_counted_cycles_and_utilization_are_the_closed_forms(seed):
    X, W, size, prefetch = drawn(seed)
    run, tiles = systolic.multiply(X, W, size, prefetch), tiles_of(W, size)
    assert run.cycles == systolic.cycles(len(X), tiles, size, prefetch)
    assert run.utilization == systolic.utilization(len(X), tiles, size, prefetch)


@SEEDS
def test_every_multiplication_happens_once_and_padding_is_the_rest(seed):
    X, W, size, prefetch = drawn(seed)
    done = sum(systolic.multiply(X, W, size, prefetch).busy)
    B, D, F = len(X), len(W), len(W[0])
    deep, far = systolic.padded(D, size), systolic.padded(F, size)
    assert done == B * deep * far
    assert systolic.useful(D, F, size) == D * F / (deep * far)


@SEEDS
def test_each_cell_hands_on_in_one_cycle_what_it_got(seed):
    """Nothing jumps: an activation moves one cell right, a weight one cell down."""
    X, W, size, prefetch = drawn(seed)
    states = list(systolic.steps(X, W, size, prefetch))
    for before, after in itertools.pairwise(states):
        for i in range(size):
            for j in range(size):
                entered = before.cells[i][j - 1].activation if j else before.beside[i]
                assert after.cells[i][j].activation == entered
                weight = before.cells[i - 1][j].falling if i else before.above[j]
                kept = weight is not None and weight.row == i
                assert after.cells[i][j].falling == (None if kept else weight)


def test_the_wave_runs_along_the_diagonals():
    X, W = [[1] * 4], [[1] * 4] * 4
    for state in systolic.steps(X, W, 4):
        for i, row in enumerate(state.cells):
            for j, cell in enumerate(row):
                # Four cycles of loading, then one token: it is where i + j says.
                assert (cell.activation is not None) == (state.number == 5 + i + j)


def test_weights_change_behind_the_last_token_without_a_gap():
    """Two tiles and B = size: from the first token on the corner never rests."""
    X, W = [[1] * 3] * 3, [[1] * 6] * 3
    corner = [state.cells[0][0].activation for state in systolic.steps(X, W, 3)]
    used = [n for n, activation in enumerate(corner) if activation]
    assert used == list(range(4, 10))


def test_many_tiles_reach_the_limits():
    for B, size in ((32, 128), (128, 128), (512, 128)):
        full = systolic.utilization(B, 10**6, size)
        assert full == pytest.approx(min(1, B / size), rel=1e-3)
        bare = systolic.utilization(B, 10**6, size, prefetch=False)
        assert bare == pytest.approx(B / (B + size), rel=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: systolic.cycles(0, 1, 4), "B = 0: must be a whole number from 1"),
        (lambda: systolic.cycles(4, 1, 2.5), "size = 2.5"),
        (lambda: systolic.padded(True, 4), "length = True"),
        (lambda: systolic.multiply([], [], 2), "neither empty"),
        (lambda: systolic.multiply([[1]], [[]], 2), "neither empty"),
        (lambda: systolic.multiply([[1, 2]], [[1]], 2), r"X has rows of \[2\] values"),
        (lambda: systolic.multiply([[1], [1, 2]], [[1]], 2), r"rows of \[1, 2\]"),
        (lambda: systolic.multiply([[1]], [[1]], 0), "size = 0"),
        (lambda: systolic.multiply([[1]], [[1]], 10**6), "must be at most 1024"),
        (lambda: systolic.multiply([[1]], [[1]], 10**400), "that a float can hold"),
        (lambda: systolic.multiply(3, [[1]], 2), "X = 3: must be rows of numbers"),
        (lambda: systolic.multiply([[1]], [1, 2], 2), r"W = \[1, 2\]: must be rows"),
        (lambda: systolic.multiply([["1"]], [[1]], 2), "X = '1': must be a number"),
    ],
)
def test_bad_input_is_refused_with_what_would_be_valid(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# The live figure


@pytest.mark.parametrize("seed", range(30))
def test_the_figure_shows_the_simulation(seed):
    draw = random.Random(seed)
    given = {c.name: draw.choice(c.stops) for c in FIGURE.controls}
    drawing = FIGURE.draw(**given)
    ElementTree.fromstring(drawing.svg)
    data = drawing.data
    size, B = given["size"], given["B"]
    assert data["cycles"] == systolic.cycles(B, 1, size)
    assert data["cycle"] == min(given["step"], data["cycles"])
    assert data["utilization"] == systolic.utilization(B, 1, size)
    assert drawing == FIGURE.draw(**given)


@pytest.mark.parametrize("step", [0, 5, 20, 38])
def test_all_text_of_the_figure_stays_inside(step):
    for size in (2, 8):
        root = ElementTree.fromstring(FIGURE.draw(size=size, B=16, step=step).svg)
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            wide = labels.text_width(text.text)
            share = {"start": 0, "middle": 0.5, "end": 1}[
                text.get("text-anchor", "start")
            ]
            left = float(text.get("x")) - share * wide
            assert left >= 0, text.text
            assert left + wide <= svg.WIDTH, text.text
            assert 0 < float(text.get("y")) < svg.HEIGHT, text.text


def test_the_slider_reaches_the_last_cycle_of_every_setting():
    size, B, step = FIGURE.controls
    assert step.high >= systolic.cycles(B.high, 1, size.high)


def test_a_busy_cell_is_drawn_with_its_token():
    """Cycle 5 of a 4 × 4 array: token 0 is in the corner, and nowhere else."""
    drawing = FIGURE.draw(size=4, B=4, step=5)
    assert drawing.data["busy"] == 1
    assert "1 of 16 cells" in drawing.summary


@pytest.mark.parametrize("convert", [np.int8, np.int32])
def test_numbers_of_fixed_width_do_not_overflow(convert):
    """127 · 127, summed, is past int8; the sizes are numbers of the same kind."""
    X = np.full((3, 4), 127, convert)
    run = systolic.multiply(X, X.T, convert(2))
    assert run.result == ((4 * 127**2,) * 3,) * 3
    large = np.int32(2**20)
    assert systolic.cycles(large, large, np.int32(128)) == systolic.cycles(
        2**20, 2**20, 128
    )
    assert systolic.useful(large, large, np.int32(128)) == 1
    assert 0 < systolic.utilization(large, large, np.int32(128)) <= 1
