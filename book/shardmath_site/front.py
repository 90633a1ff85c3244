"""The numbers on the front page, and its live figure.

``{counted}`name` `` is a number that is counted when the page is written, from the
records or from the chapters' stored outputs. None of these numbers is typed.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import takewhile
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective, SphinxRole

from shardmath.draw.live import MIME
from shardmath.exercises import answers
from shardmath.hardware import chips
from shardmath.hardware.networks import NVSWITCHES
from shardmath.measured import RUNS
from shardmath.training.efficiencies import table

from .render import live_block

PACKAGE = files("shardmath")
LEDGER = re.compile(r"^collective .* predicted  compiled .*$")
TARGETS = re.compile(
    r"^(?=.*\b(target|compiled for)\b)(?=.*\bderived\b).*(ratio|compiled over derived)"
)
RATIO = re.compile(r"(?<= )\d+\.\d{3}\b(?!.* \d+\.\d{3}\b)")  # the last in a row
AS_PREDICTED = "1.000"


def counts(chapters: list[Path], least: float, runs: int) -> dict[str, str]:
    """Name → the counted number, as it is printed.

    Args:
        chapters: the notebooks of the book.
        least, runs: the result of `bounds`, passed in because it takes seconds.
    """
    same = [f" {AS_PREDICTED} " in f"{row} " for row in rows(chapters)]
    targets = [*ratios(chapters)]
    records = (*chips.ALL, *NVSWITCHES)
    facts = [fact for record in records for fact in record.facts.values()]
    questions = answers.questions().values()
    whole = {
        "ledger rows": len(same),
        "ledger rows as predicted": sum(same),
        "target rows": len(targets),
        "target rows as predicted": targets.count(AS_PREDICTED),
        "chips": len(chips.ALL),
        "switches": len(NVSWITCHES),
        "values": len(facts),
        "disagreements": sum(len(fact.disagrees) for fact in facts),
        "questions": len(questions),
        "slips": sum(len(getattr(one, "slips", ())) for one in questions),
        "runs": runs,
    }
    printed = {name: f"{number:,}" for name, number in whole.items()}
    worst = max(targets, key=float, default=AS_PREDICTED)
    fitted = table()["fit"]
    return printed | {
        "nearest run": f"{least:.3f}",
        "target at worst": worst,
        "unseen error": f"{fitted['mean']:.1%}",
        "unseen rows": f"{fitted['rows']:,}",
    }


def rows(chapters: list[Path]) -> Iterator[str]:
    """The rows of every ledger in the chapters' outputs, without the final sum."""
    for lines in map(iter, _texts(chapters)):
        if any(map(LEDGER.match, lines)):
            yield from takewhile(lambda row: not row.startswith("all "), lines)


def ratios(chapters: list[Path]) -> Iterator[str]:
    """The ratios of compiled over derived bytes in every table of target programs."""
    for lines in map(iter, _texts(chapters)):
        if any(map(TARGETS.match, lines)):
            yield from (found[0] for row in lines if (found := RATIO.search(row)))


def _texts(chapters: list[Path]) -> Iterator[list[str]]:
    """The lines of each output of the chapters' cells."""
    for file in chapters:
        for cell in json.loads(file.read_text("utf-8"))["cells"]:
            for output in cell.get("outputs", ()):
                text = output.get("data", {}).get("text/plain", output.get("text", ""))
                yield "".join(text).splitlines()


def bounds() -> tuple[float, int]:
    """The least ratio of a published step to its bound, and the number of steps."""
    found = [run.over_bound for run in RUNS if run.timed]
    return min(found), len(found)


def _digest(folder: Path) -> str:
    """A hash of the package's code and data."""
    kinds = ("*.py", "*.toml", "*.csv", "golden/*.json")
    found = sorted(file for kind in kinds for file in folder.rglob(kind))
    return hashlib.sha256(b"".join(map(Path.read_bytes, found))).hexdigest()


class Counted(SphinxRole):
    """``{counted}`values` `` gives the number called "values"."""

    def run(self):
        if "counts" not in self.env.temp_data:  # kept while this page is read
            self.env.temp_data["counts"] = self._counts()
        known = self.env.temp_data["counts"]
        if self.text in known:
            return [nodes.Text(known[self.text])], []
        said = f"{self.text!r} is not counted: must be one of {', '.join(known)}"
        return [], [self.inliner.reporter.error(said, line=self.lineno)]

    def _counts(self) -> dict[str, str]:
        documents = sorted(self.env.found_docs)
        chapters = [
            Path(self.env.doc2path(name))
            for name in documents
            if name.startswith("chapters/")
        ]
        for file in chapters:
            self.env.note_dependency(str(file))
        kept = self.env.shardmath_front
        if "bounds" not in kept:
            kept["bounds"] = bounds()
        return counts(chapters, *kept["bounds"])


class LiveFigure(SphinxDirective):
    """``{live} roofline`` puts a live figure on a page that is not a notebook.

    It has no title, presets and tools unless the option ``:tools:`` is set.
    """

    required_arguments = 1
    option_spec: ClassVar = {"tools": directives.flag}

    def run(self):
        content = {"name": self.arguments[0], "params": {}}
        bare = "tools" not in self.options
        return [live_block(mime=MIME, content=content, bare=bare)]


def _add_style(app, pagename, templatename, context, doctree):
    if pagename == app.config.root_doc:
        app.add_css_file("front.css")


def _look(app, env, added, changed, removed):
    """Read the front page again if the package or the set of chapters has changed."""
    digest = _digest(Path(str(PACKAGE)))
    kept = getattr(env, "shardmath_front", {})
    if kept.get("package") != digest:
        env.shardmath_front = {"package": digest}
    elif not (added | removed):
        return []
    return [app.config.root_doc]


def setup(app):
    """Add the role and the directive, and count again after changes."""
    app.add_role("counted", Counted())
    app.add_directive("live", LiveFigure)
    app.connect("env-get-outdated", _look)
    app.connect("html-page-context", _add_style)
