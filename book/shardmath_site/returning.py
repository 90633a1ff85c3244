"""Repeats questions from earlier chapters, at most five, at the start of a chapter.

The questions are guesses that can be understood without their chapter. The script
returning.js chooses them from a list shared by all chapters. The choice depends on how
the reader's guesses went, which only the browser stores.
"""

import json
import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

from .guesses import guess_form

QUESTIONS = "earlier.js"  # under _static
CHAPTER = re.compile(r"chapters/(\d\d)_")
LEAST_WORDS = 8  # a shorter question usually depends on the text before it
LEANS = re.compile(
    r"\b(?:here|these|this|such runs|that can|opening|133 tiles|winners|good way"
    r"|the (?:three|four|six|program|product|paper|two counts))\b"
    r"|\(\d+\.\d\)|\bnaive\b|\bpsum\b"
)


class returning(nodes.General, nodes.Element):  # noqa: N801
    """The place of the questions. Attribute: `chapter`, the number of this chapter."""


class PlaceReturning(SphinxTransform):
    """Put the place before the first section of each chapter except the first."""

    default_priority = 432  # after "Setup", which is put there too

    def apply(self, **kwargs):
        chapter = CHAPTER.match(self.env.docname)
        top = self.document.next_node(nodes.section)
        if not chapter or int(chapter[1]) == 1 or top is None:
            return
        inner = (n for n, one in enumerate(top) if isinstance(one, nodes.section))
        top.insert(next(inner, len(top)), returning(chapter=chapter[1]))


def stands_alone(text: str) -> bool:
    """Whether a reader can understand a question without its context.

    >>> stands_alone("Llama 3.1 8B knows 128,256 tokens. What share of its parameters?")
    True
    >>> stands_alone("Which of the three sends something?")
    False
    """
    return len(text.split()) >= LEAST_WORDS and not LEANS.search(text.lower())


def asked(doctree: nodes.document) -> list[dict]:
    """The questions of a chapter that may be repeated, as rows for returning.js."""
    found = []
    for form in doctree.findall(guess_form):
        note = form.parent
        if any(note.findall(nodes.math)):
            continue  # questions are repeated as plain text
        text = " ".join(
            " ".join(one.astext() for one in note if one is not form).split()
        )
        text = text.removeprefix("Predict.").strip()
        if text.endswith("?") and stands_alone(text):
            parts = ("anchor", "key", "title", "record")
            found.append({part: form[part] for part in parts} | {"question": text})
    return found


def _collect(app, doctree):
    if CHAPTER.match(app.env.docname):
        kept = app.env.__dict__.setdefault("shardmath_returning", {})
        kept[app.env.docname] = asked(doctree)


def _forget(app, env, name):
    getattr(env, "shardmath_returning", {}).pop(name, None)


def _write(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    kept = getattr(app.env, "shardmath_returning", {})
    rows = [
        {"chapter": CHAPTER.match(name)[1], "url": app.builder.get_target_uri(name)}
        | one
        for name in sorted(kept)
        for one in kept[name]
    ]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    file = Path(app.outdir, "_static", QUESTIONS)
    file.write_text(f"globalThis.shardmathEarlier={text};\n", encoding="utf-8")


def _visit(self, node):
    chapter = escape(node["chapter"])
    self.body.append(
        f'<details class="sm-returning" data-chapter="{chapter}" hidden>'
        "<summary>Before you start: a few questions from earlier chapters</summary>"
        '<ol></ol><p class="sm-returning-note" role="status"></p></details>\n'
    )
    raise nodes.SkipNode


def _add_files(app, pagename, templatename, context, doctree):
    if doctree and any(doctree.findall(returning)):
        app.add_css_file("guess.css")
        app.add_js_file("guess.js")
        app.add_js_file("returning.js", loading_method="defer")


def setup(app):
    """Add the questions from earlier chapters."""
    app.add_node(returning, html=(_visit, None))
    app.add_transform(PlaceReturning)
    app.connect("doctree-read", _collect, priority=900)
    app.connect("env-purge-doc", _forget)
    app.connect("build-finished", _write)
    app.connect("html-page-context", _add_files)
