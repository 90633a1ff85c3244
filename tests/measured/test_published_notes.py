"""Training runs: what tells two rows apart that look the same."""

import tomllib
from collections import Counter
from importlib.resources import files

import pytest

from shardmath.measured import RUNS
from shardmath.measured.rows import rows

CELLS = rows("training.csv")
NOTE = 16  # the column of notes
NOTES = tomllib.loads(
    (files("shardmath.measured") / "training.toml").read_text("utf-8")
)["notes"]
HOW = ("system", "model", "chip", "chips", "mesh", "seqs", "seq", "precision", "remat")
SETTINGS = (
    "release", "microbatches", "chunks", "schedule", "remat_share", "overlap",
    "offloads", "attention_kernel",
)  # fmt: skip


def how(run, *names: str) -> tuple:
    """What a record says of how it ran, the source first."""
    said = {name: getattr(run, name) for name in names or (*HOW, *SETTINGS, "note")}
    shown = {"model": run.model.name, "chip": run.chip.name}
    shown["mesh"] = tuple(sorted(run.mesh.items()))
    return (run.source.key, *(shown.get(name, value) for name, value in said.items()))


def of(source: str, tokens: float):
    """The one row of a source with a rate of tokens."""
    (run,) = (
        r for r in RUNS if (r.source.key, r.tokens_per_second) == (source, tokens)
    )
    return run


def test_no_two_rows_of_a_source_say_the_same_of_how_they_ran():
    seen = Counter(how(run) for run in RUNS)
    assert [one for one, count in seen.items() if count > 1] == []


def test_rows_that_share_chips_mesh_and_batch_say_what_differs():
    """Not by `remat` alone, which a table of runs need not show."""
    shared = Counter(how(run, *HOW[:-1]) for run in RUNS)
    silent = [
        run for run in RUNS
        if shared[how(run, *HOW[:-1])] > 1 and not (run.note or run.release)
    ]  # fmt: skip
    assert silent == []


def test_each_note_is_known_and_each_known_one_is_used():
    named = {key for cells in CELLS for key in cells[NOTE].split("; ")}
    assert named - {""} == set(NOTES)


def test_no_note_points_at_another_row():
    for note in NOTES.values():
        assert "row before" not in note
        assert "row above" not in note


def test_each_run_of_megatron_bridge_says_its_release_and_format():
    """The page has as many rows of Llama 3 in pre-training, by its headings."""
    releases = Counter()
    for run in (run for run in RUNS if run.source.key == "bridge"):
        if run.model.experts:
            continue
        releases[run.release] += 1
        form = run.note.partition("; ")[0]
        if run.release == "25.09":
            assert (run.precision, form) == ("fp8", NOTES["granularity"])
        else:
            names = {"fp4": ("NVFP4",), "fp8": ("FP8", "MXFP8", NOTES["FP8-CS"])}
            assert form in names[run.precision], run
    assert releases == {
        "26.06": 7,
        "26.04.01": 14,
        "26.04": 13,
        "26.02.01": 13,
        "26.02": 14,
        "25.11": 11,
        "25.09": 8,
    }


@pytest.mark.parametrize(
    ("source", "tokens", "settings"),
    [
        ("bridge", 843, {"release": "26.06", "note": "FP8", "chunks": 4}),
        ("bridge", 783, {"release": "26.06", "note": "MXFP8", "chunks": 8}),
        ("bridge", 4798, {"microbatches": 8}),
        ("titan_2024", 100, {"schedule": "1f1b"}),
        ("titan_2024", 128, {"schedule": "interleaved"}),
    ],
)
def test_the_settings_of_a_row_are_those_that_the_page_prints(source, tokens, settings):
    run = of(source, tokens)
    assert {name: getattr(run, name) for name in settings} == settings


@pytest.mark.parametrize(
    ("source", "tokens", "said", "not_said"),
    [
        ("titan_2024", 5762, "without torch.compile", "async"),
        ("titan_2024", 6667, "with torch.compile", "async"),
        ("titan_2024", 829, "with torch.compile", "async"),
        ("titan_2024", 876, "asynchronous tensor parallelism", "schedule"),
        ("titan_tp", 809.8, "one scale for a tensor", "async"),
        ("titan_tp", 942.4, "one scale for a tensor", "row"),
        ("titan_tp", 599.6, "a scale for each row", "async"),
        ("titan_tp", 624.8, "asynchronous tensor parallelism; float8", "tensor;"),
        ("titan_a100", 109, "95 in its footnote", "500 W"),
        ("titan_a100", 177, "95 in its footnote", "async"),
        ("titan_a100", 185, "asynchronous tensor parallelism", "500 W"),
    ],
)
def test_what_the_page_says_of_a_row(source, tokens, said, not_said):
    note = of(source, tokens).note
    assert said in note
    assert not_said not in note


def test_the_power_limit_stands_where_its_page_prints_it():
    held = {run.source.key for run in RUNS if "held to 500 W" in run.note}
    assert held == {"titan_2024", "titan_tp"}


@pytest.mark.parametrize(
    ("source", "layers", "ops"),
    [("titan_a100", 2904, 2973), ("titan_llama2", 1914, 1904)],
)
def test_recomputed_layers_are_not_recomputed_operations(source, layers, ops):
    """ "selective layer" of the page: whole layers, and how many is not printed."""
    assert of(source, layers).remat == ""
    assert "every k-th layer" in of(source, layers).note
    assert of(source, ops).remat == "Q V A g m"
    assert "by operation" in of(source, ops).note
