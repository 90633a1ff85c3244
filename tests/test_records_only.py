"""No number of a chip is typed where chips are the subject: it would not follow."""

import ast
from pathlib import Path

import nbformat
import pytest

from shardmath import chips

ROOT = Path(__file__).parent.parent
AUDITED = [ROOT / "chapters" / f"{name}.ipynb" for name in ("02_tpus", "03_gpus")]
CLAIMS = "# CLAIMS UNDER AUDIT"  # what was printed, quoted to be checked
# Rates and capacities; counts such as 8 or 256 are everybody's.
RECORDED = {
    fact.value for chip in chips.ALL for fact in chip.facts.values() if fact.value > 1e6
}


def typed_numbers(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node.value


def test_the_search_sees_a_typed_peak():
    assert chips.H100.hbm_bandwidth in set(typed_numbers("x = 2 * 3.35e12"))
    assert chips.H100.hbm_bandwidth in RECORDED


@pytest.mark.parametrize("path", AUDITED, ids=lambda path: path.stem)
def test_no_rate_or_capacity_of_a_record_is_typed(path):
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code" and not cell.source.startswith(CLAIMS):
            assert not RECORDED & set(typed_numbers(cell.source)), cell.source


@pytest.mark.parametrize("path", AUDITED, ids=lambda path: path.stem)
def test_claims_stand_in_one_cell(path):
    cells = nbformat.read(path, as_version=4).cells
    assert sum(cell.source.startswith(CLAIMS) for cell in cells) <= 1
