"""Puts all published runs in one table: bound, prediction, measured time and error.

``{runs}`` on a page is replaced by the table when the site is built. ``hardware.js``
sorts and filters it, like the overview of accelerators, but it reads well without it.
"""

from html import escape
from importlib.resources import files

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from shardmath.measured.fit_rows import Row, rows
from shardmath.training.efficiencies import efficiencies

from .hardware import FILTER, _html, _row, _table

HEADS = {
    "Run": "",
    "Bound": "s",
    "Predicted": "s",
    "Measured": "s",
    "Error": "%",
    "Chips": "",
    "Tokens": "million a step",
}


def overview() -> list[nodes.Node]:
    """A row for each run that can be predicted, and the field that filters them."""
    heads = [
        f'{name}<br><span class="sm-unit">{unit}</span>' for name, unit in HEADS.items()
    ]
    table = _table("All published runs", heads, map(_run, rows()))
    filter_ = FILTER.replace(
        "Filter by name, vendor or year", "Filter by model, chip, framework or source"
    )
    return [_html(filter_ + table, "sm-hardware", "sm-runs")]


def _run(row: Row) -> str:
    run, predicted = row.run, row.predicted(efficiencies())
    again = run.remat and f"remat {run.remat}"
    if run.remat_share:
        again += f" for {run.remat_share:.0%} of the layers"
    settings = ", ".join(filter(None, (run.layout, run.precision, again)))
    about = f"{run.system}, {run.chips:,} {run.chip.name}, {settings}"
    if row.assumed:
        about += f". Assumed: {'; '.join(row.assumed)}"
    first = f"{escape(run.model.name)}"
    first += f'<span class="sm-note">{escape(about)}</span>'
    words = f"{run.model.name} {about} {row.source} {run.source.title} {run.release}"
    numbers = (
        f"{row.bound:.3g}",
        f"{predicted:.3g}",
        f"{row.measured:.3g}",
        f"{100 * (predicted / row.measured - 1):+.1f}",
        f"{run.chips:,}",
        f"{run.tokens / 1e6:.3g}",
    )
    return _row(first, *numbers, attributes=f' data-words="{escape(words.lower())}"')


class Runs(SphinxDirective):
    """``{runs}`` inserts the table."""

    def run(self) -> list[nodes.Node]:
        for name in ("measured/workloads.json", "training/efficiencies.toml"):
            self.env.note_dependency(str(files("shardmath") / name))
        return overview()


def setup(app) -> None:
    """Add the directive. `hardware` adds script and style to pages with its class."""
    app.add_directive("runs", Runs)
