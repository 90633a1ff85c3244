"""The recipes for contributors: short enough to follow, and about what there is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PROSE = re.sub(r"^```.*?^```$", "", TEXT, flags=re.M | re.S)
HEADINGS = re.findall(r"^#+ (.+)$", PROSE, re.M)
SECTIONS = dict(zip(HEADINGS, re.split(r"^#+ .+$", TEXT, flags=re.M)[1:], strict=True))
SCREEN = 60  # lines of about 100 characters


def test_the_contents_lead_to_every_recipe():
    anchors = {heading.lower().replace(" ", "-") for heading in HEADINGS}
    led_to = set(re.findall(r"\]\(#([a-z-]+)\)", TEXT)) - {"fig-"}
    parts = {"contributing", "chapters", "exercises", "figures", "facts"}
    parts |= {"the-package", "the-site"}
    assert led_to == anchors - parts


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_recipe_is_at_most_a_screen(heading):
    lines = sum(1 + len(line) // 100 for line in SECTIONS[heading].splitlines())
    assert lines <= SCREEN


def test_every_file_that_is_named_exists():
    named = re.findall(
        r"`((?:[\w.]+/)*[\w.]+\.(?:py|toml|md|txt|js|json|ipynb))`", TEXT
    )
    assert len(named) > 30
    folders = ("", "book", "book/shardmath", "book/_static", "book/shardmath_site")
    for name in named:
        if "NN" in name:  # any chapter's
            continue
        places = [ROOT / folder / name for folder in folders]
        found = any(place.exists() for place in places)
        found = found or any(ROOT.glob(f"book/shardmath*/**/{name}"))
        assert found, f"there is no {name}"


def test_every_target_of_make_that_is_named_exists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in set(re.findall(r"`make ([a-z]+)", TEXT)):
        assert re.search(rf"^{target}:", makefile, re.M), target
