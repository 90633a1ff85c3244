"""A number in a sentence is one that the chapter computes, or reads from a record.

`prose_numbers` says what is looked at and what counts as evidence. What is right all
the same (a number quoted to be refuted, one worked out in the reader's head) stands in
`prose_numbers.toml` with the reason.
"""

import tomllib
from functools import cache
from pathlib import Path

import nbformat
import prose_numbers
import pytest
from form import is_caption
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(ROOT.glob("chapters/*.ipynb"))
LISTED = tomllib.loads((ROOT / "tests" / "prose_numbers.toml").read_text("utf-8"))
ADVICE = """
Print it, or name it, in a code cell of its section; or write it to the precision that
is printed there; or say why it needs no evidence, in tests/prose_numbers.toml:

[[{chapter}]]
says = "…"  # words around the number, as above
because = "…"
"""
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


@cache
def passages_of(path):
    cells = nbformat.read(path, as_version=4).cells
    return list(prose_numbers.passages([c for c in cells if not is_caption(c)]))


def findings(path, allowed):
    return [
        finding
        for cell, text, evidence in passages_of(path)
        for finding in prose_numbers.unfounded(cell, text, evidence, allowed)
    ]


def listed(chapter: str) -> list[str]:
    return [entry["says"] for entry in LISTED.get(chapter, [])]


@each_chapter
def test_numbers_of_the_prose_stand_on_evidence(path):
    found = findings(path, listed(path.stem))
    lines = [f"{path.stem}: {finding}" for finding in found]
    advice = ADVICE.format(chapter=path.stem)
    assert not lines, "\n".join(["no evidence for", *lines]) + "\n" + advice


@each_chapter
def test_every_exception_is_needed_and_has_a_reason(path):
    """One that excuses nothing any more would excuse the next mistake."""
    for entry in LISTED.get(path.stem, []):
        assert entry.keys() == {"says", "because"}
        assert len(entry["because"].split()) >= 3, entry
        others = [words for words in listed(path.stem) if words != entry["says"]]
        found = findings(path, others)
        assert found, f"{path.stem}: says = {entry['says']!r} excuses nothing"


def test_exceptions_belong_to_a_chapter():
    assert set(LISTED) <= {path.stem for path in CHAPTERS}


def mutations(text: str):
    """`text` with one digit of a number raised by one, for each number.

    It is the first digit of the first number, the second of the second, and so on.
    Numbers of one digit are left out: nearly always the other stands somewhere too.
    """
    for n, number in enumerate(prose_numbers.numbers(text)):
        digits = enumerate(number.text, number.at)
        places = [at for at, sign in digits if sign.isdigit()]
        if number.counts or len(places) < 2:
            continue
        place = places[n % len(places)]
        raised = str(int(text[place]) % 9 + 1)
        yield text[:place] + raised + text[place + 1 :]


def test_a_changed_digit_is_noticed():
    """17 of 20, over all chapters: others happen to be another number's digits."""
    outcomes = []
    for path in CHAPTERS:
        allowed = listed(path.stem)
        for cell, text, evidence in passages_of(path):
            for changed in mutations(text):
                found = prose_numbers.unfounded(cell, changed, evidence, allowed)
                outcomes.append(any(found))
    assert len(outcomes) > 50 * len(CHAPTERS)
    noticed = sum(outcomes)
    assert noticed / len(outcomes) >= 0.85, f"{noticed} of {len(outcomes)}"


# The rules, on small texts


def code(source, text=""):
    outputs = [new_output("stream", text=text)]
    return new_code_cell(source, outputs=outputs, id="code")


def complaints(prose, *code_cells, listed=()):
    cells = [new_markdown_cell(prose, id="prose"), *code_cells]
    return [finding.what for finding in prose_numbers.findings(cells, listed)]


@pytest.mark.parametrize(
    ("prose", "shown"),
    [
        ("It takes 2.4 ms.", "time: 2.38 ms"),
        ("It takes 2,380 µs.", "time: 2.38 ms"),
        ("It reads 3.35 TB/s.", "3350 GB/s"),
        ("A share of 85 %.", "share 0.8512"),
        ("It is 8 % more.", "ratio 1.083"),
        ("About 240 tokens.", "240.5 tokens"),
        ("From 13 to 22 % are missing.", "0.131 0.22"),
        (r"That is $1.2 \times 10^{14}$.", "120 TFLOPs/s"),
        ("H100, 8t, fp32, v5e, 2D, chapter 47, [(3.21)](#eq-3.21), in 2024, 33rd.", ""),
        (r"$x^{37} + y_{41}$ for 8 chips, $2W_\text{hbm} \tag{4.77}$", ""),
        ("`code(4711)` and [a paper](https://x.org/4711)", ""),
        ("An H100 reads 3.35 TB/s.", ""),
    ],
)
def test_what_has_evidence_or_needs_none(prose, shown):
    assert complaints(prose, code("", shown)) == []


@pytest.mark.parametrize(
    ("prose", "shown"),
    [
        ("It takes 2.5 ms.", "2.38 ms"),
        ("It takes 2.38 µs.", "2.38 ms"),
        ("It takes 2.380 ms.", "2.384 ms"),
        ("It reads 38 GB.", "38 GB/s"),
        ("An H100 reads 3.36 TB/s.", ""),
        ("An A100 reads 3.35 TB/s.", ""),
    ],
)
def test_what_lacks_evidence(prose, shown):
    (found,) = complaints(prose, code("", shown))
    assert found in prose


def test_constants_of_the_code_are_evidence_and_products_of_them():
    cell = code("x = 2 * 512 * 4096\ny = 3.35e12")
    assert complaints("4,194,304 and 512 and 3.35 TB/s", cell) == []
    assert complaints("4,194,305", cell) == ["4,194,305"]


@pytest.mark.parametrize(
    "prose",
    [
        "So 96/384 = 25 % of them.",
        r"So $2 \cdot 96 \cdot 384 = 73{,}728$ bytes.",
        r"So $\frac{96}{384} = 0.25$.",
        "So 384 GB/s / 96 GB/s = 4.",
        "So 384 · 96 GB = 36.9 TB.",
        "384 / (96 * 2) ≈ 2.05",
    ],
)
def test_an_equation_gives_its_result_if_it_holds(prose):
    cell = code("n = 96, 384")
    assert complaints(prose, cell) == []
    for old, new in [("25", "26"), ("728", "729"), ("0.25", "0.35"), ("= 4", "= 7")]:
        if old in prose:
            assert "a wrong equation" in complaints(prose.replace(old, new), cell)


def test_an_exception_excuses_its_own_number_alone():
    prose = "The page prints 4711 TB, and also 4712."
    assert complaints(prose, listed=["prints 4711 TB"]) == ["4712"]
    assert complaints(prose, listed=["prints 471"]) == ["4711 TB", "4712"]


def test_evidence_is_of_the_same_section_but_for_opening_and_closing():
    cells = [
        new_markdown_cell("Opening 77.\n\n## One", id="a"),
        code("", "77"),
        new_markdown_cell("Still 77.\n\n## Two\n\nNo more 77.", id="b"),
        new_markdown_cell("## What to remember\n\n77", id="c"),
    ]
    (found,) = prose_numbers.findings(cells)
    assert (found.cell, found.line) == ("b", "No more 77.")
