"""Functions as readers write them, typed out: what is wrong with each is named."""

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest

from shardmath import exercises
from shardmath.exercises import answers
from shardmath.exercises.kinds.wrong_results import diagnose


def weights_alone(B, D, F, peak, bandwidth):  # 01.9
    arithmetic, memory = 2 * B * D * F / peak, D * F * 2 / bandwidth
    return max(arithmetic, memory), arithmetic + memory


def critical(none):  # 01.10
    def batch(intensity, D, F):
        below = 1 - intensity * (1 / D + 1 / F)
        return intensity / below if below > 0 else none

    return batch


def critical_without_else(intensity, D, F):  # noqa: RET503
    below = 1 - intensity * (1 / D + 1 / F)
    if below > 0:
        return intensity / below


def moved_bytes(B, D, F, b, f):  # 01.11
    columns, rows = math.ceil(F / f), math.ceil(B / b)
    return 2 * (columns * B * D + rows * D * F + B * F)


def divided_result(B, D, F, n):  # 06.9
    weights = 2 * D * F
    activations = 2 * B * D / n + 2 * B * F / n
    return weights * (n - 1) / n, activations * (n - 1) / n


def keys_rounded(S, window):  # 07.4
    return sum(min(query + 1, window) for query in range(S)) // S


def keys_as_fraction(S, window):
    return Fraction(sum(min(query + 1, window) for query in range(S)), S)


def keys_by_jax(S, window):
    return jnp.minimum(jnp.arange(S) + 1, window).mean()


def keys_by_numpy(S, window):
    return np.minimum(np.arange(S) + 1, window).mean()


def keys_a_little_off(S, window):
    return 1.00002 * keys_by_jax(S, window)


def swapped_stages(stage, params, n):  # 09.2
    optimizer, gradient, weight = 12 * params, 2 * params, 2 * params
    if stage == 1:
        gradient /= n
    if stage >= 2:
        optimizer, gradient = optimizer / n, gradient / n
    if stage == 3:
        weight /= n
    return optimizer + gradient + weight


def stage_two_scattered_once(stage, params, n, parts):  # 09.9
    once = 2 * params * (n - 1) / n
    return {1: 2, 2: 2, 3: 3 * parts}[stage] * once


def always_some_chips(params, hbm, stage):  # 09.16
    whole = [16, 4, 2, 0][stage] * params
    return max(1, math.ceil((16 * params - whole) / (hbm - whole)))


def perhaps_negative_chips(params, hbm, stage):
    whole = [16, 4, 2, 0][stage] * params
    return math.ceil((16 * params - whole) / (hbm - whole))


def no_chips_is_none(params, hbm, stage):  # noqa: RET503
    whole = [16, 4, 2, 0][stage] * params
    if hbm > whole:
        return max(1, math.ceil((16 * params - whole) / (hbm - whole)))


def search(rounds=8, together=max, alone=True):  # 10.15
    def split(P, D, t, w_x, w_y):
        def seconds(y):
            weights = 6 * P / y / w_x
            activations = rounds * 2 * D * t * y / w_y
            return together((weights, 0 if y == 1 and alone else activations))

        return min([1, 2, 4, 8, 16, 32, 64], key=seconds)

    return split


def merged_at_scale_one(m1, l1, u1, m2, l2, u2):  # 11.1
    a, b = math.exp(m1), math.exp(m2)
    return max(m1, m2), a * l1 + b * l2, a * u1 + b * u2


def merged_by_numpy(m1, l1, u1, m2, l2, u2):
    with np.errstate(over="ignore"):
        a, b = np.exp(np.float64(m1)), np.exp(np.float64(m2))
    return max(m1, m2), a * l1 + b * l2, a * u1 + b * u2


def ring_or_ulysses(hops=0, carried=2, outputs=2, own=False):  # 11.6
    def sent(N, K, H, t, n):
        ring = 2 * carried * K * H * t * (n - 1 + hops)
        all_of_it = 2 * (outputs * N + carried * max(K, n)) * H * t
        return ring, all_of_it * (1 if own else (n - 1) / n)

    return sent


def serial(times, M):  # 12.4
    return sum(M * time for time in times)


def whole_state(P, x, p, y, shards):  # 14.2
    chips = p * y * (x if shards == "fsdp" else 1)
    return (2 + 2 + 4 + 4 + 4) * P / chips


@pytest.mark.parametrize(
    ("question", "answer", "slip"),
    [
        ("01.9", weights_alone, "the weights alone"),
        ("01.10", critical(0), "zero for none"),
        ("01.10", critical_without_else, "None for none"),
        ("01.10", critical(math.inf), None),
        ("01.10", critical(-1), "not infinite"),
        ("01.10", lambda intensity, D, F: 7, ""),
        ("01.11", moved_bytes, "bytes for values"),
        ("06.9", divided_result, "the result divided by n"),
        ("06.9", lambda *a: [v / 3 for v in divided_result(*a)], ""),
        ("07.4", keys_as_fraction, None),
        ("07.4", keys_by_jax, None),
        ("07.4", keys_by_numpy, None),
        ("07.4", keys_a_little_off, "a constant factor"),
        ("07.4", keys_rounded, "rounded"),
        ("07.4", lambda S, window: window + 1 - keys_by_numpy(S, window), ""),
        ("09.2", swapped_stages, "gradients before the state"),
        ("09.9", stage_two_scattered_once, "stage 2 like stage 1"),
        ("09.16", always_some_chips, "no 0 where nothing fits"),
        ("09.16", perhaps_negative_chips, "a negative number of chips"),
        ("09.16", no_chips_is_none, "no return"),
        ("10.5", lambda N, K, n: (N // n, K // n), "no KV head"),
        ("10.15", search(together=sum), "both times added"),
        ("10.15", search(rounds=11), "eleven rounds of activations"),
        ("10.15", search(), None),
        ("10.15", search(alone=False), None),
        ("11.1", merged_at_scale_one, "nothing taken out"),
        ("11.1", merged_by_numpy, "nothing taken out"),
        ("11.6", ring_or_ulysses(hops=1), "n hops"),
        ("11.6", ring_or_ulysses(hops=1, own=True), "n hops"),
        ("11.6", ring_or_ulysses(carried=1), "keys alone"),
        ("11.6", ring_or_ulysses(outputs=1), "A forgotten"),
        ("12.4", serial, "one microbatch at a time"),
        ("14.2", whole_state, "ZeRO-1 as if nothing were split"),
    ],
)
def test_what_a_function_does_wrong_is_named(question, answer, slip):
    found = exercises.examine(answers.find(question), answer)
    wanted = ("correct", "") if slip is None else ("wrong", slip)
    assert (found.verdict, found.slip) == wanted, found


def test_two_slips_in_a_pair_are_both_told():
    wrong = ring_or_ulysses(hops=1, own=True)
    found = exercises.examine(answers.find("11.6"), wrong)
    assert "After n - 1 hops a chip has seen all keys." in found.message
    assert "A chip keeps the heads that it works on." in found.message


def test_what_has_no_name_is_told_in_how_many_cases_it_is_right():
    wrong = lambda times, M: M * max(times) + sum(times) - times[0]  # noqa: E731
    message = exercises.examine(answers.find("12.4"), wrong).message
    assert " of 24 cases." in message


def test_a_number_of_single_precision_has_no_more_room_than_it_needs():
    """An answer in double precision is held to the record's own tolerance."""
    keys = answers.find("07.4")
    for off, verdict in ((1e-7, "wrong"), (0, "correct")):
        found = exercises.examine(keys, lambda *a, o=off: (1 + o) * keys_by_numpy(*a))
        assert found.verdict == verdict


@pytest.mark.parametrize(
    ("wanted", "got", "name", "word"),
    [
        ([1.0, 2.0, 5.0], [0.5, 1.0, 2.5], "a constant factor", "1/2 of the right"),
        ([1, 2, 5], [2, 3, 6], "off by one", "1 more"),
        ([1, 2, 5], [4, 5, 8], "a constant apart", "3 more"),
        ([1.5, 2.5], [1, 2], "rounded", "rounded down"),
        ([1.5, 2.25], [2, 3], "rounded", "rounded up"),
        ([2, 3], [1.5, 2.25], "not rounded", "before it is rounded up"),
        ([1.0, 4.0], [1.0, 0.25], "upside down", "one over"),
        ([1.0, 4.0], [-1.0, -4.0], "the wrong sign", "wrong sign"),
        ([(1, 4), (2, 6)], [[4, 1], [6, 2]], "swapped", "are swapped"),
        ([(1, 4), (2, 6)], [[1, 8], [2, 12]], "a constant factor", "it is 2 times"),
        ([1, 2], [None, None], "no return", "It is None in every case"),
        ([1, 2], [1, None], "no return", "Does every branch return"),
        ([1.0, 2.0], [1.0, math.nan], "NaN or infinity", "divide by zero"),
        ([1.0, math.inf], [1.0, 9], "not infinite", "right result is finite"),
    ],
)
def test_what_wrong_results_have_in_common(wanted, got, name, word):
    found = diagnose(wanted, got)
    assert found.name == name, found
    assert word in found.says


@pytest.mark.parametrize(
    ("wanted", "got"),
    [
        ([1.0, 2.0, 5.0], [2.0, 3.0, 7.0]),
        ([1, 2], [3, None]),
        ([1.0, math.inf], [2.0, math.inf]),
        ([1.0, math.inf], [2.0, 9]),
        ([[1], [1, 2]], [[2], [2, 4]]),
        (["I", "J"], ["J", "I"]),
        ([True, False], [2, 0]),
        ([1, 2], ["1", "2"]),
    ],
)
def test_results_that_have_nothing_in_common_get_no_name(wanted, got):
    assert diagnose(wanted, got) is None
