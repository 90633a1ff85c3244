"""The live figure of number formats: its array, its error, its marks."""

import drawn
import jax.numpy as jnp
import numpy as np
import pytest

from shardmath.draw import figures
from shardmath.draw.figures.number_line import GAUSSIAN, OUTLIER, magnitudes
from shardmath.draw.picture import Picture
from shardmath.hardware.number_formats import E4M3

FIGURE = figures.find("number_line")
EXTREMES = [
    {"exponent": 0, "mantissa": 0},
    {"exponent": 8, "mantissa": 10, "scale": 4},
    {"exponent": 8, "mantissa": 0, "scale": -12},
    {"exponent": 2, "mantissa": 1, "scale": -12},
]


@pytest.mark.parametrize("params", [{}, *FIGURE.presets.values(), *EXTREMES])
def test_it_can_be_read(params):
    drawing = FIGURE.draw(**params)
    drawn.check(Picture("formats", drawing.summary, (drawing.svg,)))


def test_the_error_is_that_of_jax_on_the_same_array():
    """Rounded by JAX's own e4m3, after the same scaling."""
    x = np.array(magnitudes(GAUSSIAN))
    scale = x.max() / 448
    theirs = (x / scale).astype(jnp.float8_e4m3fn).astype(float) * scale
    expected = np.sqrt(((theirs - x) ** 2).sum() / (x**2).sum())
    assert FIGURE.draw().data["error"] == pytest.approx(expected, rel=1e-6)
    assert expected == pytest.approx(E4M3.rms_error, rel=0.05)


def test_an_outlier_hurts_integers_and_not_floats():
    """The error of the ordinary values, with and without one outlier."""

    def error(exponent: int, mantissa: int, kind: str) -> float:
        params = {"exponent": exponent, "mantissa": mantissa, "array": kind}
        return FIGURE.draw(**params).data["error"]

    assert error(0, 7, OUTLIER) > 20 * error(0, 7, GAUSSIAN)
    assert error(4, 3, OUTLIER) == pytest.approx(error(4, 3, GAUSSIAN), rel=0.05)


def test_marks_and_words_agree_with_the_numbers():
    small = FIGURE.draw(exponent=0, mantissa=7, array=OUTLIER)
    assert small.data["flushed"] > 0.2
    assert "becomes 0" in small.summary
    assert drawn.keyed(small.svg, "")["bar41"].get("fill").endswith("#00707a)")
    cut = FIGURE.draw(scale=-6)
    assert cut.data["clipped"] > 0.9
    assert "nothing is clipped" in FIGURE.draw().summary


def test_a_format_of_one_bit_is_moved_to_the_next_that_has_values():
    drawing = FIGURE.draw(exponent=0, mantissa=0)
    assert drawing.used == {"mantissa": 2}
    assert drawing.data["bits"] == 3
