"""The front page says what the package computes and the table of contents holds."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from shardmath import chips, roofline
from shardmath_site import map as book_map

ROOT = Path(__file__).parents[2]
PLAN = tomllib.loads((ROOT / "book" / "plan.toml").read_text("utf-8"))
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))


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


# The map ------------------------------------------------------------------------------


def test_the_map_links_every_chapter_that_is_written(site):
    page = (site / "index.html").read_text("utf-8")
    table = page.partition('class="sm-map')[2].partition("</table>")[0]
    links = re.findall(r'href="(chapters/\w+)\.html">(\d\d)\xa0', table)
    assert [file for file, _ in links] == [*book_map.written(TOC).values()]
    assert all(int(file[9:11]) == int(number) for file, number in links)


def test_parts_are_called_the_same_in_plan_and_contents():
    captions = [caption for caption, _ in book_map.rows(PLAN, TOC)]
    assert [part["caption"] for part in TOC["parts"]][:-1] == captions[
        : len(TOC["parts"]) - 1
    ]


def test_the_plan_counts_from_one_without_a_gap():
    names = [name for part in PLAN["parts"] for name in part["chapters"]]
    assert [int(name.split()[0]) for name in names] == list(range(1, len(names) + 1))


def contents(*files):
    return {"parts": [{"chapters": [{"file": file} for file in files]}]}


def test_a_chapter_is_linked_from_the_day_it_is_listed():
    plan = {"parts": [{"caption": "I", "chapters": ["1 A", "2 B"]}]}
    assert list(book_map.rows(plan, contents("chapters/02_b", "book/notation"))) == [
        ("I", [("1 A", ""), ("2 B", "chapters/02_b")])
    ]


@pytest.mark.parametrize(
    ("file", "said"), [("chapters/03_c", "no chapter"), ("chapters/c", "NN_slug")]
)
def test_a_chapter_outside_the_plan_is_named(file, said):
    plan = {"parts": [{"caption": "I", "chapters": ["1 A"]}]}
    with pytest.raises(ValueError, match=said):
        list(book_map.rows(plan, contents(file)))


# Adding a chapter ---------------------------------------------------------------------

NAMED_IN = ("_toc.yml", "prose_numbers.toml", "plan.toml")
KINDS = ("*.py", "*.js", "*.mjs", "*.css", "*.html", "*.md", "*.toml", "*.yml")


def test_nothing_else_names_the_chapters_one_by_one():
    """A new one touches its notebook, its answers and `_toc.yml`."""
    stems = [file.removeprefix("chapters/") for file in book_map.written(TOC).values()]
    tops = ("book", "tests", "tools", "benchmarks")
    files = [f for top in tops for kind in KINDS for f in (ROOT / top).rglob(kind)]
    files += [f for kind in KINDS for f in ROOT.glob(kind)] + [ROOT / "Makefile"]
    for file in files:
        if file.name in NAMED_IN or "node_modules" in file.parts:
            continue
        text = file.read_text("utf-8")
        named = [stem for stem in stems if stem in text]
        assert len(named) <= 2, f"{file}: {named}"
        modules = set(re.findall(r"\bch(\d\d)\b", text))
        assert len(modules) <= 2, f"{file}: ch{sorted(modules)}"
