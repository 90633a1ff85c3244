"""What the front page says in numbers, and the live figure that it opens with.

``{counted}`name` `` is a number that is counted when the page is written, from the
records or from what the chapters store: none of them is typed.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from importlib.resources import files
from itertools import takewhile
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from shardmath import answers, chips
from shardmath.live import MIME
from shardmath.published import RUNS
from shardmath.tables import Absent

from .render import live_block

PACKAGE = files("shardmath")
LEDGER = re.compile(r"^collective .* predicted  compiled .*$")
AS_PREDICTED = re.compile(r" 1\.000\b")


class Counts:
    """What can be counted, by name; each is found when it is asked for.

    Args:
        chapters: the notebooks of the book.
        bounds: called for the least of measured times over their bounds, and how many
            there are; it takes seconds.
    """

    def __init__(self, chapters: list[Path], bounds: Callable[[], tuple[float, int]]):
        self._chapters, self._bounds = chapters, bounds

    @cached_property
    def _rows(self) -> list[bool]:
        return [AS_PREDICTED.search(row) is not None for row in rows(self._chapters)]

    def say(self, name: str) -> str:
        """The number of that name as it is printed.

        Raises:
            ValueError: nothing is counted so; lists what is.
        """
        found = self._known().get(name)
        if found is None:
            known = ", ".join(self._known())
            raise ValueError(f"{name!r} is not counted: must be one of {known}")
        return found()

    def _known(self) -> dict[str, Callable[[], str]]:
        facts = [fact for chip in chips.ALL for fact in chip.facts.values()]
        questions = answers.questions().values()
        known: dict[str, Callable[[], int]] = {
            "ledger rows": lambda: len(self._rows),
            "ledger rows as predicted": lambda: sum(self._rows),
            "ledger rows that differ": lambda: len(self._rows) - sum(self._rows),
            "programs": lambda: len(programs()),
            "chips": lambda: len(chips.ALL),
            "values": lambda: len(facts),
            "sources": lambda: len(chips.SOURCES),
            "disagreements": lambda: sum(len(fact.disagrees) for fact in facts),
            "questions": lambda: len(questions),
            "slips": lambda: sum(len(getattr(q, "slips", ())) for q in questions),
            "runs": lambda: self._bounds()[1],
        }
        printed = {n: lambda count=count: f"{count():,}" for n, count in known.items()}
        return printed | {"nearest run": lambda: f"{self._bounds()[0]:.3f}"}


def rows(chapters: list[Path]) -> Iterator[str]:
    """The rows of every ledger that chapters store, less that of the sum, the last."""
    for file in chapters:
        for cell in json.loads(file.read_text("utf-8"))["cells"]:
            for output in cell.get("outputs", ()):
                text = output.get("data", {}).get("text/plain", output.get("text", ""))
                lines = iter("".join(text).splitlines())
                if any(map(LEDGER.match, lines)):
                    yield from takewhile(lambda row: not row.startswith("all "), lines)


def programs() -> list[str]:
    """The results of compilers that are kept with the book."""
    kept = PACKAGE.joinpath("compilers", "kept").iterdir()
    return [file.name for file in kept if file.name.endswith(".json")]


def bounds() -> tuple[float, int]:
    """The least of published steps over their bounds, and how many steps there are."""
    found = []
    for run in RUNS:
        with suppress(Absent):  # too little is published
            found.append(run.over_bound)
    return min(found), len(found)


def _digest(folder: Path) -> str:
    """Of the package: what it knows and how it computes."""
    kinds = ("*.py", "*.toml", "*.csv", "kept/*.json")
    found = sorted(file for kind in kinds for file in folder.rglob(kind))
    return hashlib.sha256(b"".join(map(Path.read_bytes, found))).hexdigest()


class Counted(SphinxRole):
    """``{counted}`values` ``: that number."""

    def run(self):
        env = self.env

        def kept_bounds():
            if "bounds" not in env.shardmath_front:  # they take seconds
                env.shardmath_front["bounds"] = bounds()
            return env.shardmath_front["bounds"]

        found = env.found_docs
        documents = sorted(name for name in found if name.startswith("chapters/"))
        chapters = [Path(env.doc2path(name)) for name in documents]
        for file in chapters:
            env.note_dependency(str(file))
        try:
            text = Counts(chapters, kept_bounds).say(self.text)
        except ValueError as error:
            report = self.inliner.reporter.error(str(error), line=self.lineno)
            return [], [report]
        return [nodes.Text(text)], []


class LiveFigure(SphinxDirective):
    """``{live} roofline``: a live figure, bare, on a page that is no notebook."""

    required_arguments = 1

    def run(self):
        content = {"name": self.arguments[0], "params": {}}
        return [live_block(mime=MIME, content=content, bare=True)]


def _add_style(app, pagename, templatename, context, doctree):
    if pagename == app.config.root_doc:
        app.add_css_file("front.css")


def _look(app, env, added, changed, removed):
    """Count anew what may have changed: the package, or which chapters there are."""
    digest = _digest(Path(str(PACKAGE)))
    kept = getattr(env, "shardmath_front", {})
    if kept.get("package") != digest:
        env.shardmath_front = {"package": digest}
    elif not (added | removed):
        return []
    return [app.config.root_doc]


def setup(app):
    """Add the role and the directive; count anew where something changed."""
    app.add_role("counted", Counted())
    app.add_directive("live", LiveFigure)
    app.connect("env-get-outdated", _look)
    app.connect("html-page-context", _add_style)
