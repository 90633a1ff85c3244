"""Worked answers of others, given again by the Transformer's functions.

"How to Scale Your Model" (jax-ml/scaling-book, July 2026), chapter 4. Where ours
is off by more than the printed answer's rounding, the line says why.
"""

import pytest

from shardmath.hardware.chips import H100
from shardmath.transformer import (
    DEEPSEEK_V3,
    Model,
    flops,
    kv_cache,
    mfu,
    model,
    saved_bytes,
)

PLAIN = Model("MHA", 64, 4096, 4 * 4096, 32, 32, 128, 32_000)  # D = N·H, F = 4D
WIDE = Model("MHA", 64, 8192, 4 * 8192, 64, 64, 128, 32_000)
GEMMA = Model("as the book has Gemma", 46, 4608, 4 * 4608, 36, 36, 128, 256_000)


def balance(m: Model) -> float:
    """Tokens at which full attention costs as much as the weights of the layers."""
    one = flops(m, 1, "full")
    return one.weights / one.attention


def scale(m: Model, tokens: float, remat: str) -> float:
    """Terabytes that all layers keep for so many tokens."""
    return m.layers * saved_bytes(m, 1, 1, remat) * tokens / 1e12


def projections(m: Model) -> float:
    """FLOPs of a token in q, k, v and o, over the layers."""
    return m.layers * sum(2.0 * m.met(line) for line in m.layer[:4])


def dots_again(seqs: int, seq: int) -> float:
    """FLOPs of one layer that the backward pass does again under "dots"."""
    return flops(WIDE, seq, "full").recomputed("dots") * seqs * seq / WIDE.layers


v3_hours = 2.79e6 * 3600
v3_tokens = 14.8e12

ANSWERS = {
    # what: (ours, printed, how far off, why where that is more than rounding)
    "1, params": (PLAIN.params, 16e9, 0.10, "D and F rounded to 4e3 and 16e3: 17.4e9"),
    "1, share of attention": (
        sum(2 * PLAIN.met(line) for line in PLAIN.layer[:4])
        / sum(2 * PLAIN.met(line) for line in PLAIN.layer),
        0.25,
        0,
        "",
    ),
    "1, int8 cache a token": (kv_cache(PLAIN, 1, "int8"), 524_288, 0, ""),
    "5, attention as q, k, v, o": (
        projections(PLAIN) / flops(PLAIN, 1, "full").attention,
        8192,  # 2·D
        0,
        "",
    ),
    "6, more with seven outputs saved": (
        dots_again(8, 1024),
        4 * 8 * 1024**2 * WIDE.N * WIDE.H,  # 4·B·T²·N·H
        0,
        "",
    ),
    "7, MFU of DeepSeek-V3": (
        mfu(v3_tokens / v3_hours, 6 * 37e9, 1.513e15),
        0.217,
        0.005,
        "",
    ),
    "7, on the chip that it had": (
        mfu(v3_tokens / v3_hours, 6 * 37e9, H100.flops["fp8"]),
        0.217,
        0.24,
        "1.513e15 is the PCIe card's rate, theirs 1.979e15 as the H100's: 16.5 %",
    ),
    "7, and with attention": (
        mfu(
            v3_tokens / v3_hours,
            flops(DEEPSEEK_V3, 4096, "causal").training,
            H100.flops["fp8"],
        ),
        0.217,
        0.15,
        "as above, and causal attention counted: 18.6 %",
    ),
    "checkpoints, TB": (scale(WIDE, 4e6, "full"), 4.2, 0.002, ""),
    "checkpoints, FLOPs": (
        6
        + 2
        * flops(WIDE, 1, "full").recomputed("full")
        / flops(WIDE, 1, "full").forward,
        8,
        0.01,
        "",  # the head is not done again
    ),
    "attention as all else, D 8192": (balance(WIDE), 64_000, 0.03, "8·D is 65,536"),
    "attention as all else, Gemma": (balance(GEMMA), 37_000, 0.004, ""),
    "the same for Gemma's real shape": (
        balance(model("gemma 2 27b")),
        37_000,
        0.9,
        "F is 8·D and N·H below D: 69,120, and twice that for its windows",
    ),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_worked_answers(what):
    ours, printed, off, why = ANSWERS[what]
    assert abs(ours / printed - 1) <= off
    if why:  # the printed answer is wrong, by nearly all of `off`
        assert abs(ours / printed - 1) > 0.8 * off


def test_corrected_answers():
    assert f"{PLAIN.params:.3g}" == "1.74e+10"
    assert balance(WIDE) == 65_536 == 8 * WIDE.D
    assert balance(model("gemma 2 27b")) == 69_120
    shares = [ANSWERS[f"7, {what}"][0] for what in ("on the chip that it had",)]
    shares.append(ANSWERS["7, and with attention"][0])
    assert [f"{share:.1%}" for share in shares] == ["16.5%", "18.6%"]
