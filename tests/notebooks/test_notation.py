"""The page of symbols: one row and one sense each, and every symbol of a formula."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "book" / "notation.md").read_text("utf-8")
ROWS = re.findall(r"^\| (\$[^|]+|[a-z]+) \|", PAGE, re.M)
SYMBOLS = [symbol for row in ROWS for symbol in re.findall(r"\$([^$]+)\$", row)]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))


def formulas(path):
    """The numbered formulas of a notebook, without the words in them."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            yield from re.findall(r"\$\$(.*?)\$\$", text, re.S)


def test_each_symbol_has_one_row():
    whole = [symbol.split(" = ")[0] for symbol in SYMBOLS]
    assert len(whole) > 40
    assert len(set(whole)) == len(whole)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_rate_and_time_of_a_formula_stands_in_the_table(path):
    """W and T with a word below them: W_link, T_math; a collective's name is a word."""
    known = set(re.findall(r"[WT]_\\text\{(\w+)\}", " ".join(SYMBOLS)))
    words = {"AllGather", "ReduceScatter", "AllReduce", "AllToAll", "ring", "line"}
    words |= {"ideal", "one way", "needed"}  # said in the text beside them
    used = set(re.findall(r"[WT]_\\text\{([\w ]+)\}", " ".join(formulas(path))))
    assert used - words <= known


@pytest.mark.parametrize(
    "word", ["ring", "hop", "rail", "slice", "DCN", "lane", "warp", "ledger", "HLO"]
)
def test_words_that_chapters_use_are_defined(word):
    glossary = (ROOT / "book" / "glossary.md").read_text("utf-8")
    assert f"\n{word}\n  " in glossary


ELSEWHERE = {"x", "y", "z", "e", "h", "i"}  # arrays; Euler's number, indices


def letters(formula):
    """Latin and Greek letters, without what is below them and without words."""
    words = (
        r"\\(?:text|tag|begin|end|operatorname|mathcal)\{?[^}]*\}?|_\{[^}]*\}|_\\?\w+"
    )
    greek = r"\\(?:alpha|gamma|lambda|ell)\b"
    plain = re.sub(words, " ", formula)
    return {
        *re.findall(greek, plain),
        *re.findall(r"[A-Za-z]", re.sub(r"\\\w+", " ", plain)),
    }


@pytest.mark.parametrize("path", CHAPTERS[10:], ids=lambda path: path.stem)
def test_every_letter_of_a_formula_stands_in_the_table(path):
    assert letters(" ".join(formulas(path))) <= letters(" ".join(SYMBOLS)) | ELSEWHERE


@pytest.mark.parametrize("path", CHAPTERS[9:], ids=lambda path: path.stem)
def test_no_bandwidth_of_a_formula_stands_bare(path):
    """A bare W is a time of a schedule, in its two formulas alone."""
    bare = [one for one in formulas(path) if re.search(r"\bW(?![_\[A-Za-z])", one)]
    assert [one for one in bare if r"\tag{12.7}" not in one and "3W)" not in one] == []
