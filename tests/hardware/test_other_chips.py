"""A reader changes the chip in a chapter's first cells and runs on to the end."""

from functools import cache

import pytest
from chapter_cells import CHAPTERS, chips_named, code_cells, run, with_chip

OTHERS = ("H100", "B200", "TPU_V6E", "MI300X")
FIRST = 2  # code cells in which a chapter sets itself up


def set_up(path) -> dict[int, str]:
    """The first cells of a chapter, if they name one chip."""
    first = dict(list(code_cells(path).items())[:FIRST])
    named = {name for source in first.values() for name in chips_named(source)}
    return first if len(named) == 1 else {}


OF_ONE_CHIP = [path for path in CHAPTERS if set_up(path)]
# Chapter 02 names each TPU generation; this is the one that its first section is about.
GENERATIONS = ("TPU_V4", "TPU_V5P", "TPU_V6E", "TPU_7X")


def stops(path, cells: dict[int, str]) -> str:
    """What stops the changed chapter and not the chapter as it is; a line for each."""
    if not (errors := run(cells)):
        return ""
    return "\n".join(
        f"cell {place}: {type(error).__name__}: {str(error)[:200]}"
        for place, error in errors.items()
        if place not in stopped_as_it_is(path)
    )


@cache
def stopped_as_it_is(path) -> frozenset[int]:
    """Cells that stop without any change, because they want what only JAX has made."""
    return frozenset(run(code_cells(path)))


def chips_for(path) -> tuple[str, ...]:
    """What may replace a chapter's chip: one that NVLink joins is replaced by such."""
    first = set_up(path).values()
    if any("NVLinkDomain(" in source for source in first):
        return ("B200",)
    own = {name for source in first for name in chips_named(source)}
    return tuple(chip for chip in OTHERS if chip not in own)


@pytest.mark.parametrize(
    ("path", "chip"),
    [(path, chip) for path in OF_ONE_CHIP for chip in chips_for(path)],
    ids=lambda one: getattr(one, "stem", one),
)
def test_another_chip_runs_to_the_end(path, chip):
    """What it lacks names the chip that has it, or a table shows a dash."""
    changed = {place: with_chip(cell, chip) for place, cell in set_up(path).items()}
    assert not stops(path, code_cells(path) | changed)


@pytest.mark.parametrize("chip", GENERATIONS)
def test_another_tpu_runs_to_the_end(chip):
    (path,) = (path for path in CHAPTERS if path.stem.startswith("02"))
    cells = code_cells(path)
    place = next(place for place, cell in cells.items() if "TPU_V5E" in cell)
    changed = cells[place].replace("chips.TPU_V5E", f"chips.{chip}")
    assert not stops(path, cells | {place: changed})


def test_a_chapter_that_asks_for_what_a_chip_lacks_is_seen():
    cells = {
        1: "from shardmath.hardware import chips\nv5e = chips.MI300X",
        2: "v5e.lanes",
    }
    (error,) = run(cells).values()
    assert "no source states 'lanes'" in str(error)


def test_chapters_of_one_chip_are_found():
    assert {path.stem[:2] for path in OF_ONE_CHIP} >= {"01", "03"}
