"""What a comparison of outputs lets through: the stored state of every notebook.

nbval passes a cell that was never run and never compares images. These tests hold
every notebook to the form of the book, without executing anything.
"""

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent
CHAPTERS = sorted(ROOT.glob("chapters/*.ipynb"))
NOTEBOOKS = CHAPTERS + sorted(ROOT.glob("exercises/*.ipynb"))
FORBIDDEN = {
    "an install command": r"^\s*[%!]\s*pip\b|^\s*!",
    "a change of the import path": r"\bsys\.path\b",
    "a network call": r"\b(?:requests|urllib|http\.client|socket)\b",
}

pytestmark = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def code_cells(path):
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]


def test_every_cell_was_run_in_order(path):
    """A cell without a number has outputs from nobody knows when."""
    counts = [cell.execution_count for cell in code_cells(path)]
    assert counts == list(range(1, len(counts) + 1))


def test_an_error_is_stored_only_where_it_is_meant(path):
    for cell in code_cells(path):
        raised = any(output.output_type == "error" for output in cell.outputs)
        assert raised == ("raises-exception" in cell.metadata.get("tags", []))


def test_every_image_has_alt_text_and_caption(path):
    """Alt text must say what the figure shows, so a few words will not do."""
    for cell in code_cells(path):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            shown = cell.metadata.get("mystnb", {})
            assert len(shown["image"]["alt"].split()) >= 15, cell.source
            assert shown["figure"]["caption"].strip()


def test_every_image_carries_the_digest_of_its_data(path):
    """The text beside an image is compared by nbval; without it a picture can rot."""
    for cell in code_cells(path):
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                assert re.fullmatch(r"<figure: .*digest \w{8}>", data["text/plain"])


def test_only_measurements_escape_the_comparison(path):
    """A cell whose output is not compared says which source its output is from."""
    for cell in code_cells(path):
        tags = cell.metadata.get("tags", [])
        assert "nbval-skip" not in tags
        if "nbval-ignore-output" in tags:
            assert cell.metadata["shardmath"]["measured"]


def test_outputs_hold_no_paths_and_no_warnings(path):
    for cell in code_cells(path):
        text = str(cell.outputs)
        assert not re.search(r"/(?:home|root|tmp|work|Users)/\w", text), cell.source
        assert "Warning:" not in text


def test_cells_keep_to_the_limits(path):
    """At most 20 lines of code, 88 columns, and no suppressed output with ';'."""
    for cell in code_cells(path):
        lines = [line for line in cell.source.splitlines() if line.strip()]
        assert len(lines) <= 20, cell.source
        assert all(len(line) <= 88 for line in lines), cell.source
        assert not cell.source.rstrip().endswith(";")


def test_code_stays_within_the_house(path):
    for cell in code_cells(path):
        for what, pattern in FORBIDDEN.items():
            assert not re.search(pattern, cell.source, re.M), f"{what}: {cell.source}"


def test_imports_stand_in_the_first_code_cell(path):
    for cell in code_cells(path)[1:]:
        assert not re.search(r"^(?:import|from) ", cell.source, re.M), cell.source


def test_prose_divides_the_code(path):
    """At most three code cells in a row, and one first-level heading."""
    cells = nbformat.read(path, as_version=4).cells
    kinds = "".join(cell.cell_type[0] for cell in cells)
    assert "cccc" not in kinds
    prose = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert len(re.findall(r"^# ", "\n".join(prose), re.M)) == 1


def test_a_chapter_is_neither_thin_nor_long(path):
    """1,500 to 3,500 words of prose; exercises are as long as they are."""
    if path not in CHAPTERS:
        return
    cells = nbformat.read(path, as_version=4).cells
    words = sum(len(c.source.split()) for c in cells if c.cell_type == "markdown")
    assert 1500 <= words <= 3500
