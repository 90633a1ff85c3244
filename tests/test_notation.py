"""The page of symbols: one row and one sense each, and every symbol of a formula."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
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
    terms = re.findall(r"^\*\*.*\*\*.*\n: ", PAGE, re.M)
    assert any(f"**{word}**" in term for term in terms)
