"""The front page says what the package computes and the table of contents holds."""

from pathlib import Path

from shardmath import chips, roofline

ROOT = Path(__file__).parents[2]


def test_front_page_numbers_are_the_package_s():
    """The numbers that invite the reader are those that the book computes."""
    text = (ROOT / "book" / "index.md").read_text("utf-8")
    bend = {
        name: chips.find(name).intensity("bf16") for name in ("v5e", "H100", "H200")
    }
    v5e = chips.find("v5e")
    estimate = roofline.matmul(B=64, D=8192, F=8192, chip=v5e)
    low, high = estimate.lower * 1e6, estimate.upper * 1e6
    for fact in (
        f"about **{round(bend['v5e'], -1):.0f} tokens**",
        f"H200 needs **{bend['H200']:.0f}**",
        f"H100 needs **{bend['H100']:.0f}**",
        f"{v5e.flops['bf16'] / 1e12:.0f} TFLOPs/s over {v5e.hbm_bandwidth / 1e9:.0f}",
        f"**{low:.0f} to {high:.0f} µs**",
    ):
        assert fact in text, fact
