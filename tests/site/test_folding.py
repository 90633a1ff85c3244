"""Code folds to one line where it should, and only there."""

import json

import nbformat
import pytest
from measure import reading
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sphinx.errors import ExtensionError

CHECKED = "✓ 20 of 20 `crossings` agree\nand a table\n✓ a < b\n"


def cell(source, printed="", **ours):
    """A code cell that printed something, with metadata of ours."""
    outputs = [new_output("stream", name="stdout", text=printed)] if printed else []
    return new_code_cell(source, outputs=outputs, metadata={"shardmath": ours})


@pytest.fixture
def folds(build_page):
    """Build a notebook of such cells: its HTML, split before each cell."""

    def run(*cells):
        python = {"language_info": {"name": "python", "pygments_lexer": "python"}}
        cells = [new_markdown_cell("# A"), *cells]
        notebook = new_notebook(cells=cells, metadata=python)
        html = build_page(nbformat.writes(notebook), "ipynb").html
        return html.split('<div class="cell ')[1:]

    return run


def test_only_what_should_fold_folds(folds):
    """Imports, checks, and what an author names; text that is printed stays."""
    plain, check, named, late, setup = folds(
        cell("import math", "printed"),
        cell("a = 1", "✗ no: not with these numbers.\n"),
        cell("holds(…)", CHECKED),
        cell("table()", "ten rows\n", fold="How the <table> is made"),
        cell("import late"),
    )
    assert "<details" in setup
    assert ">Setup</span>" in setup
    assert "printed" in setup.partition("<details")[0]
    assert "<details" not in plain + late
    assert ">How the &lt;table&gt; is made</span></summary>" in named
    assert "ten rows" in named.partition("<details")[0]
    summary, _, shown = check.partition("</summary>")
    assert summary.count("sm-held") == 2
    assert "20 of 20 `crossings` agree" in summary
    assert "a &lt; b" in summary
    code, _, output = shown.partition("</details>")
    assert "holds" in code
    assert "and a table" in output
    assert "agree" not in output


def test_a_check_without_more_to_say_has_no_output(folds):
    """No empty box stands under the green line."""
    (check,) = folds(cell("holds(…)", "✓ yes\n"))
    assert "cell_output" not in check


def test_the_checks_of_a_section_stand_behind_one_line(build_page):
    """Counted at its end; a check that shows more stays beside what it shows."""
    cells = [
        new_markdown_cell("# A\n\n## B"),
        cell("holds(1)", "✓ one\n✓ two\n"),
        new_markdown_cell("Between."),
        cell("holds(2)", "✓ three\n"),
        cell("holds(3)", CHECKED),
        new_markdown_cell("Last.\n\n### C\n\nMore."),
        cell("holds(4)", "✓ four\n"),
    ]
    python = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    notebook = new_notebook(cells=cells, metadata=python)
    html = build_page(nbformat.writes(notebook), "ipynb").html
    before, first, last = html.split('<details class="sm-checks">')
    assert "Last." in before
    assert "20 of 20" in before
    assert "3 checks passed</summary>" in first
    places = [first.index(f"</span>{word}<") for word in ("one", "two", "three")]
    assert places == sorted(places)
    assert "1 check passed</summary>" in last
    assert "four" in last


def test_a_section_that_goes_deeper_folds_below_its_heading(build_page):
    """Its heading stays, and its text is one click away."""
    cells = [
        new_markdown_cell("# A\n\n## B\n\nFor everybody."),
        new_markdown_cell('## Going deeper: C\n\nFor some.\n\n<a id="far"></a>\nFar.'),
        new_markdown_cell("## D\n\nThe end."),
    ]
    python = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    notebook = new_notebook(cells=cells, metadata=python)
    html = build_page(nbformat.writes(notebook), "ipynb").html
    before, inside = html.split('<details class="sm-deeper">')
    inside, _, behind = inside.partition("</details>")
    assert "For everybody." in before
    assert "Going deeper: C" in before
    assert "For some." in inside
    assert "Far." in inside
    assert "The end." in behind


@pytest.mark.parametrize("words", ["", " ", True, ["Table"]])
def test_words_that_say_nothing_are_refused(folds, words):
    """The error names the notebook, the cell and what was given."""
    with pytest.raises(ExtensionError, match="index, cell 3: `fold` is") as refused:
        folds(cell("a"), cell("b", fold=words))
    assert repr(words) in str(refused.value)


def test_every_chapter_has_one_line_of_setup_below_its_opening(site):
    """Nobody reads imports first; the line comes from the cell, not from the author."""
    for page in sorted((site / "chapters").glob("*.html")):
        source = site / "_sources" / "chapters" / f"{page.stem}.ipynb"
        codes = [
            c
            for c in json.loads(source.read_text())["cells"]
            if c["cell_type"] == "code"
        ]
        assert "import" in codes[0]["source"][0]
        html = page.read_text("utf-8")
        opening = html.partition("<h1>")[2].partition("<h2>")[0]
        cells = opening.split('<div class="cell ')[1:]
        assert "Setup" in cells[-1], page.name
        assert len(cells) > 1, page.name
        assert html.count(">Setup</span>") == 1, page.name


PAGE = """<!doctype html><style>* {{ margin: 0 }} div {{ height: 900px }}</style>
<article><figure><div></div></figure><div class="{first}"></div>
<details class="sm-fold"><summary></summary><div class="cell_input"></div></details>
<div></div><div></div><div class="sm-drawing"></div></article>"""


def test_open_code_and_pictures_are_measured(page, tmp_path):
    """Folded code does not count, a picture ends a stretch, prose is neither."""
    file = tmp_path / "page.html"
    file.write_text(PAGE.format(first="cell_input"))
    found = reading(page, file.as_uri())
    assert found.screens == pytest.approx(5, rel=0.02)
    assert found.code == pytest.approx(1 / 5, rel=0.02)
    assert found.stretch == pytest.approx(3, rel=0.02)
    assert found.opens_with_picture
    assert found.faults()[0].startswith("open code is 20%")
    file.write_text(PAGE.format(first="sm-live"))
    found = reading(page, file.as_uri())
    assert (found.code, round(found.stretch)) == (0, 2)
    assert found.faults() == []
