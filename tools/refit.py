"""Fits the efficiencies of the prediction to the published runs again.

    python tools/refit.py [--check] [--plans]

It derives the work of every run in the table that can be predicted, and writes it to
``measured/workloads.json``. Then it fits the efficiencies, and writes them to
``training/efficiencies.toml``, with their range over fits that leave out one source. It
does the same with the rows of servers for ``inference/efficiencies.toml``. ``--plans``
also runs the planner for every published job, which takes some minutes, and writes its
recommendations to ``measured/planned.json``. ``--check`` writes nothing and lists the
files that would change.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from shardmath.inference import efficiencies as serving_efficiencies
from shardmath.inference.efficiencies import calibration
from shardmath.measured import fit_rows, serving_fit
from shardmath.measured.fit import Errors, errors, fit, left_out, quantiles
from shardmath.measured.fit_rows import Row
from shardmath.measured.planned import outcome, public_jobs
from shardmath.measured.serving import serving
from shardmath.training import efficiencies as training
from shardmath.training.efficiencies import FITTED, Efficiencies

PACKAGE = Path(fit_rows.__file__).parent.parent
WORKLOADS = PACKAGE / "measured" / "workloads.json"
PLANNED = PACKAGE / "measured" / "planned.json"
EFFICIENCIES = PACKAGE / "training" / "efficiencies.toml"
SERVERS = PACKAGE / "inference" / "efficiencies.toml"
DIGITS = 3
FINE = 1e-5  # a fit that is kept ends here, so that a second one finds the same digits
FEWEST = 30  # rows that a regime needs to have a separate band
NEVER = 1e-9  # practically zero
ABLATIONS = {  # a simplifying assumption → the numbers that express it
    "nothing is left out": {},
    "attention is as fast as matmuls": {"attention": 1.0, "old_attention": 1.0},
    "all attention kernels are alike": {"old_attention": 1.0},
    "passes over memory take no time": {"memory": 1 / NEVER},
    "moving tokens to experts takes no time": {"trips": NEVER},
    "few tokens per expert are no slower": {"rows": NEVER},
    "gathers hide behind other work": {"exposed": NEVER},
    "exchanges take no time": {"network": 1 / NEVER, "exposed": NEVER},
    "links reach their full rate": {"network": 1.0},
    "kernels start at once": {"launch": NEVER},
}


def written(
    text: str,
    rows: Sequence[Row],
    whole: Efficiencies,
    without: Mapping[str, Efficiencies],
) -> str:
    """The file of training efficiencies, with the values that these rows give.

    Args:
        text: the current text of the file.
        rows: of all runs.
        whole: the efficiencies fitted to all rows.
        without: source → the efficiencies fitted without its rows.
    """
    for name in FITTED:
        folds = [getattr(one, name) for one in without.values()]
        values = {"value": getattr(whole, name), "folds": [min(folds), max(folds)]}
        text = _replaced(text, f"fitted.{name}", values)
    text = _table(text, "without", without)
    text = _table(text, "without_generation", left_out(rows, "generation", close=FINE))
    text = _errors(text, rows, whole)
    off = errors(rows, lambda row: without[row.source])
    text = _replaced(text, "fit", {
        "chips": sorted({row.chip.id for row in rows}),
        "rows": len(rows),
        "sources": len(without),
        "longest": max(row.run.seq for row in rows),
        "mean": off.mean,
        "median": off.median,
        "alike": off.by_source,
    })  # fmt: skip
    for kind, experts in (("dense", False), ("experts", True)):
        ratios = [
            row.measured / row.predicted(without[row.source])
            for row in rows
            if row.experts is experts
        ]
        text = _replaced(text, "bands", {kind: quantiles(ratios)})
    return text


def served(text: str) -> str:
    """The file of inference efficiencies, with the values that the servers' rows give.

    Args:
        text: the current text of the file.
    """
    rows = serving_fit.derived(serving(), calibration())
    inside = [row for row in rows if serving_fit.fitted_to(row)]
    whole = serving_fit.fit(inside)
    without = serving_fit.left_out(rows, serving_fit.GROUPS["family"])
    for name in serving_efficiencies.FITTED:
        folds = [getattr(one, name) for one in without.values()]
        some = getattr(whole, name), min(folds), max(folds)
        value, low, high = (float(f"{one:.{DIGITS}g}") for one in some)
        values = {"value": Exact(value), "folds": [Exact(low), Exact(high)]}
        text = _replaced(text, f"fitted.{name}", values)
    families = {row.row.family for row in inside}
    text = _replaced(text, "fit", {"rows": len(inside), "families": len(families)})
    found = serving_fit.errors(rows, lambda row: row.regime)
    lines = (f'"{name}" = {_said(_line(one))}\n' for name, one in found.items())
    text = _lines(text, "errors", lines)
    bands = (
        f'"{name}" = {_said(_band(one))}\n'
        for name, one in found.items()
        if one.rows >= FEWEST
    )
    text = _lines(text, "bands", bands)
    unseen = (
        (group, serving_fit.errors(inside, lambda row: row.row.metric, group))
        for group in ("family", "model", "generation")
    )
    lines = (
        f'"{name} by {group}" = {_said(_line(one))}\n'
        for group, some in unseen
        for name, one in some.items()
    )
    return _lines(text, "unseen", lines)


def _line(one: Errors) -> tuple[int, float, float]:
    """The number of rows, and the mean and median error, as in the file."""
    return one.rows, one.mean, one.median


def _band(one: Errors) -> tuple[float, float]:
    """The band of some rows, extended so that it contains the prediction."""
    low, high = one.band
    return min(1.0, low), max(1.0, high)


class Exact(float):
    """A number that is written with all its digits."""


def _replaced(text: str, table: str, values: Mapping[str, object]) -> str:
    """`text` with new values for some keys of a table."""
    head, mark, tail = text.partition(f"[{table}]\n")
    assert mark, f"no table {table}"
    for key, value in values.items():
        line = f"{key} = {_said(value)}\n"
        tail, found = re.subn(
            rf"(?m)^{key} = .*\n", lambda _, new=line: new, tail, count=1
        )
        assert found, f"no key {key} in {table}"
    return head + mark + tail


def _errors(text: str, rows: Sequence[Row], whole: Efficiencies) -> str:
    """`text` with new errors in its table of ablations."""
    lines = []
    for name, change in ABLATIONS.items():
        free = [number for number in FITTED if number not in change]
        at = fit(rows, replace(whole, **change), free)
        off = errors(rows, lambda row, at=at: at)
        lines.append(f'"{name}" = {_said([off.mean, off.by_source])}\n')
    return _lines(text, "ablation", lines)


def _table(text: str, table: str, some: Mapping[str, Efficiencies]) -> str:
    """`text` with new rows in a table, each with a name and the fitted numbers."""
    lines = (
        f'"{name}" = {_said([getattr(one, key) for key in FITTED])}\n'
        for name, one in some.items()
    )
    return _lines(text, table, lines)


def _lines(text: str, table: str, lines: Iterable[str]) -> str:
    """`text` with new lines in a table."""
    head, mark, tail = text.partition(f"[{table}]\n")
    rest = tail[re.search(r"(?m)^(#|\[)|\Z", tail).start() :]
    return head + mark + "".join(lines) + "\n" + rest


def _said(value: object) -> str:
    if isinstance(value, Exact):
        return repr(float(value))
    if isinstance(value, float):
        return f"{value:.{DIGITS}f}"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    return f"[{', '.join(map(_said, value))}]"


def _kept(files: Mapping[Path, str], check: bool) -> list[Path]:
    """The files whose text is another one now; they are written unless `check`."""
    wrong = [path for path, text in files.items() if path.read_text("utf-8") != text]
    for path in wrong:
        if not check:
            path.write_text(files[path], "utf-8")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--plans", action="store_true", help="run the planner too")
    args = parser.parse_args()
    derived = fit_rows.derived()
    rows = tuple(derived.values())
    whole = fit(rows, close=FINE)
    without = left_out(rows, "source", close=FINE)
    files = {
        WORKLOADS: fit_rows.to_json(derived),
        EFFICIENCIES: written(EFFICIENCIES.read_text("utf-8"), rows, whole, without),
    }
    wrong = _kept(files, args.check)
    for cached in (training.table, training.efficiencies, training.without):
        cached.cache_clear()  # what follows uses the new numbers
    files = {SERVERS: served(SERVERS.read_text("utf-8"))}
    if args.plans:
        jobs = [*public_jobs(rows), *public_jobs(rows, divided=False)]
        found = ",\n".join(json.dumps(outcome(job)) for job in jobs)
        files[PLANNED] = f"[\n{found}\n]\n"
    wrong += _kept(files, args.check)
    if args.check:
        print(*(f"{path.name}: differs from a new fit" for path in wrong), sep="\n")
        return bool(wrong)
    print("in the fit:    ", errors(rows, lambda row: whole))
    print("one source out:", errors(rows, lambda row: without[row.source]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
