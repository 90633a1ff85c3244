"""Guesses: one truth, in one line and in a record that a fresh run repeats."""

import math
import re
from pathlib import Path

import execute
import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from shardmath.base.guess import MIME, NumberGuess, guess

ROOT = Path(__file__).parents[2]
SIZES = {"a little above 240": False, "about twice": True, "ten times": False}


def bundle(shown) -> tuple[str, dict]:
    """The line and the record."""
    given = shown._repr_mimebundle_()
    assert set(given) - {"text/html"} == {"text/plain", MIME}
    return given["text/plain"], given[MIME]


def test_a_choice_says_what_is_true_and_what_is_not():
    assert bundle(guess(SIZES)) == (
        "Answer: about twice (not: a little above 240; ten times)",
        {"kind": "choice", "choices": list(SIZES), "truth": "about twice"},
    )


def test_a_notebook_offers_each_choice_and_says_which_is_right():
    """No line in sight has the answer; each opens to it."""
    html = guess(SIZES)._repr_mimebundle_()["text/html"]
    opened = dict(re.findall(r"<summary>(.*?)</summary><p>(.*?)</p>", html))
    wrong = "No. The answer is: about twice."
    assert list(opened) == list(SIZES)
    assert list(opened.values()) == [wrong, "Right.", wrong]


def test_a_notebook_asks_for_a_number_in_its_unit():
    html = guess(454.3, "tokens")._repr_mimebundle_()["text/html"]
    summary, behind = re.findall(r"<(?:summary|p)>(.*?)</", html)
    assert summary == "Write your guess down, in tokens, then open"
    assert behind.startswith(
        "The answer is 454 tokens. A guess within a factor of 1.25"
    )


def test_a_label_is_no_markup_in_a_notebook():
    html = guess({"n < 8": True, "n & 1": False})._repr_mimebundle_()["text/html"]
    assert "n &lt; 8" in html
    assert "n &amp; 1" in html


@pytest.mark.parametrize(
    ("conditions", "said"),
    [
        ((False, False), "With these numbers none of the choices holds: a; b"),
        ((True, True), "With these numbers several choices hold: a; b"),
    ],
)
def test_changed_numbers_do_not_stop_the_reader(conditions, said):
    """No exception; but no truth either, so that the site refuses it."""
    line, record = bundle(guess(dict(zip("ab", conditions, strict=True))))
    assert line == said
    assert record["truth"] is None


@pytest.mark.parametrize(
    ("given", "line", "value", "unit"),
    [
        ((454.3, "tokens"), "Answer: 454 tokens", 454, "tokens"),
        ((4.3624e-5, "s"), "Answer: 43.6 µs", 4.36e-5, "s"),
        ((0.97655, "%"), "Answer: 97.7%", 97.7, "%"),
        ((1, "times"), "Answer: 1 times", 1, "times"),
        ((2.2,), "Answer: 2.2", 2.2, ""),
        ((2**37, "capacity"), "Answer: 128 GiB", 1.37e11, "bytes"),
    ],
)
def test_a_number_is_rounded_as_printed(given, line, value, unit):
    """The last bits of another machine change neither the line nor the record."""
    value_, *unit_ = given
    for shaken in (value_, math.nextafter(value_, math.inf)):
        said, record = bundle(guess(shaken, *unit_))
        assert (said, record["value"], record["unit"]) == (line, value, unit)
        assert (record["close"], record["near"]) == (1.25, 2.0)


def test_numpy_is_welcome():
    assert guess({"a": np.float32(1) > 2, "b": np.bool_(True)}).true == ("b",)
    assert guess(np.int64(8), "tokens", within=1.1) == NumberGuess(8.0, "tokens", 1.1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (({},), "0 choices"),
        (({"a": True},), r"1 choices, \['a'\]: must be 2 to 4"),
        ((dict.fromkeys("abcde", True),), "5 choices"),
        (({"a": True, 2: False},), "choice 2: must be plain text"),
        (({"a": True, " ": False},), "choice ' ': must be plain text"),
        (({"$n$": True, "b": False},), r"choice '\$n\$': must be plain text"),
        (({"a": True, "b": 0},), "choice 'b': 0: must be a condition"),
        (({"a": True, "b": np.array([True])},), "choice 'b': array"),
        ((SIZES, "tokens"), "unit = 'tokens', within = 1.25: must not be given"),
        ((SIZES, "", 1.1), "unit = '', within = 1.1: must not be given"),
        ((math.inf, "s"), "truth = inf: must be a finite number above 0"),
        ((math.nan, "s"), "truth = nan"),
        ((0, "s"), "truth = 0"),
        (("8", "s"), "truth = '8'"),
        ((8, 8), "unit = 8: must be text"),
        ((8, "s", 1), "within = 1: must be above 1 and below 2"),
        ((8, "s", 2), "within = 2"),
    ],
)
def test_a_malformed_call_says_what_is_valid(given, message):
    with pytest.raises(ValueError, match=message):
        guess(*given)


def test_a_second_run_of_the_notebook_changes_nothing():
    """Both outputs are compared by the tests, so `make execute` must keep them."""
    source = "from shardmath.base.guess import guess\nguess(454.3, 'tokens')"
    blank = new_notebook(cells=[new_code_cell(source)])
    first = execute.normalise(execute.execute(blank, ROOT), blank)
    second = execute.normalise(execute.execute(first, ROOT), first)
    assert nbformat.writes(first) == nbformat.writes(second)
    (output,) = first.cells[0].outputs
    assert output.data["text/plain"] == "Answer: 454 tokens"
    assert output.data[MIME]["truth"] == "454 tokens"
