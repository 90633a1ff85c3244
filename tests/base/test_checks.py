"""Claims: what holds is one line, what does not stops nothing, the rest is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

from shardmath.base.claims import holds


@pytest.mark.parametrize(
    "conditions",
    [
        (True,),
        (True, 2 > 1),
        (np.float64(2) > 1,),
        (np.array(2) > 1, np.array([2]) > 1),
        (jnp.array(2) > 1, jnp.arange(3).sum() == 3),
    ],
)
def test_what_holds_is_one_line(capsys, conditions):
    assert holds("two is more than one", *conditions) is None
    assert capsys.readouterr().out == "✓ two is more than one\n"


@pytest.mark.parametrize("no", [False, np.bool_(False), jnp.array(1) > 2, 1 == 2])
def test_what_does_not_hold_says_so_and_stops_nothing(capsys, no):
    assert holds("one is two", no) is None
    first, second = capsys.readouterr().out.splitlines()
    assert first == "✗ one is two: not with these numbers."
    assert "if you changed one of them, read on" in second


def test_of_several_conditions_those_that_fail_are_named(capsys):
    holds("all three", False, True, False)
    assert "(condition 1, 3 of 3)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "condition", [[False], (c for c in [False]), "no", 1, None, print, np.int64(1)]
)
def test_a_condition_that_would_always_pass_is_refused(condition):
    with pytest.raises(ValueError, match=r"condition 2 = .*: must be True or False"):
        holds("never looked at", True, condition)


@pytest.mark.parametrize(
    "several", [np.array([True, False]), jnp.array([True, True]), np.array([])]
)
def test_an_array_must_say_whether_all_or_any(several):
    with pytest.raises(ValueError, match=r"condition 1 has \d values: .*\.all\(\)"):
        holds("an array", several)


@pytest.mark.parametrize("claim", ["", " ", "two\nlines", True])
def test_a_claim_is_words_on_one_line(claim):
    with pytest.raises(ValueError, match="must be words, on one line"):
        holds(claim, True)


def test_a_claim_without_conditions_is_refused():
    with pytest.raises(ValueError, match="'nothing': must have at least one condition"):
        holds("nothing")
