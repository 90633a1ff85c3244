"""No number of a chip is typed where chips are the subject, the book's first part.

It would not follow its record. What others printed about pods is quoted there, and
none of it is the value of a record.
"""

import ast
from pathlib import Path

import nbformat
import pytest
import yaml

from shardmath.hardware import chips

ROOT = Path(__file__).parents[2]
FIRST_PART = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))["parts"][0]
AUDITED = [ROOT / f"{entry['file']}.ipynb" for entry in FIRST_PART["chapters"]]
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
        if cell.cell_type == "code":
            assert not RECORDED & set(typed_numbers(cell.source)), cell.source
