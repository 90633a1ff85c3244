"""Adds a form to a *Predict* note, and shows the answer after the reader's guess.

A notebook cell that shows `shardmath.base.guess.guess(…)` belongs to the nearest
*Predict* note above it. The note gets a form. The answer is put in a block right below,
which only a script hides. It starts with the answer in one line and the paragraph that
explains it, followed by pictures and tables, the code and checks in a fold, and
everything up to the last place in the section that repeats the number. The cell that
calls `guess` is removed from the page.
"""

import hashlib
import json
import re
from html import escape

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

from shardmath.base.claims import HOLDS

from .notes import is_aside

LEAST_DIGITS = 3  # a number with fewer digits may repeat an answer by coincidence
_TAG = re.compile(r"<[^>]*>")  # of HTML and SVG, whose coordinates reveal no answer
REMEMBER = "what to remember"  # the summary of guesses is put before this section
# This runs before the first paint, so no answer appears and then vanishes. Answers stay
# visible on file://, on paper, if the reader wants it, and if guess.js does not load.
EARLY = """
if (location.protocol !== "file:") {
  const root = document.documentElement;
  let asks = true;
  try { asks = localStorage.getItem("shardmath.guesses.asks") !== "no"; } catch {}
  root.classList.toggle("sm-guessing", asks);
  const isSet = () => document.querySelector(".sm-behind.sm-set");
  addEventListener("load", () => isSet() || root.classList.remove("sm-guessing"));
}
"""


class guess_answer(nodes.General, nodes.Element):  # noqa: N801
    """The answer as one line. Attributes: `anchor` and `record`."""


class guess_form(nodes.General, nodes.Element):  # noqa: N801
    """The form for a guess. Attributes: `anchor`, `record`, `key` and `title`."""


class guess_behind(nodes.General, nodes.Element):  # noqa: N801
    """The block that opens after a guess. Attribute: `anchor`."""


class guess_known(nodes.General, nodes.Element):  # noqa: N801
    """The fold "How we know": checks, and code without a picture or table."""


class guess_summary(nodes.General, nodes.Element):  # noqa: N801
    """The summary of the reader's guesses on the page."""


class JoinGuesses(SphinxTransform):
    """Join every guess with its *Predict* note."""

    default_priority = 420  # after notes are classified, before cells are folded

    def apply(self, **kwargs):
        answers = list(self.document.findall(guess_answer))
        for place, answer in enumerate(answers, 1):
            try:
                self._join(answer, f"guess-{place}")
            except ValueError as error:
                raise ExtensionError(f"{self.env.docname}: {error}") from None
        if answers:
            _place_summary(self.document)

    def _join(self, answer, anchor):
        record, cell = answer["record"], _cell_of(answer)
        named = f"the guess of cell {cell['cell_index'] + 1}"
        if record["truth"] is None:
            raise ValueError(f"{named}: exactly one of its choices must be true")
        output = next(part for part in cell if _element(part) == "cell_code_output")
        if len(output) != 1:
            raise ValueError(f"{named}: must be the only output of its cell")
        section, at = cell.parent, cell.parent.index(cell)
        start = next((i for i in range(at, -1, -1) if _is_predict(section[i])), None)
        if start is None:
            raise ValueError(f"{named}: its section has no Predict note above it")
        note = section[start]
        if any(note.findall(guess_form)):
            raise ValueError(f"{named}: its Predict note already has a guess")
        end = _end_of_reading(section, at + 1)
        end = _end_of_telling(section, end, record)
        line = guess_answer(anchor=anchor, record=record)
        kept = _in_order(line, section[start + 1 : at], section[at + 1 : end])
        section[start + 1 : end] = [guess_behind("", *kept, anchor=anchor)]
        note["ids"].append(anchor)
        note += guess_form(
            anchor=anchor,
            record=record,
            key=_kept_key(cell) or self._key(note, record),
            title=section.next_node(nodes.title).astext(),
        )

    def _key(self, note, record) -> str:
        """The key for storing a reader's guess, if the cell's metadata has none."""
        asked = [record.get("choices"), record.get("unit")]
        words = " ".join(note.astext().split())
        text = json.dumps([self.env.docname, words, *asked])
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _kept_key(cell) -> str | None:
    """The key in the metadata of a guess's cell, independent of the wording."""
    return cell.get("cell_metadata", {}).get("shardmath", {}).get("key")


def _in_order(line, before, after) -> list:
    """The answer, its explanation, pictures and tables, code and checks, the rest.

    Args:
        line: the line with the answer.
        before: the nodes between the question and the guess's cell.
        after: the nodes after that cell.
    """
    checks = [node for node in after if _is_check(node)]
    rest = [node for node in after if not _is_check(node)]
    while rest and _is_cell(rest[0]):
        before = [*before, rest.pop(0)]
    reading, rest = rest[:1], rest[1:]
    while rest and is_aside(rest[0]):
        reading.append(rest.pop(0))
    plumbing = [node for node in before if _is_plumbing(node)]
    shown = [node for node in before if not _is_plumbing(node)]
    known = [guess_known("", *plumbing, *checks)] if plumbing or checks else []
    return [line, *reading, *shown, *known, *rest]


def _is_plumbing(node) -> bool:
    """Whether a cell has checks or shows nothing.

    Pictures, tables and printed lines other than checks are for reading, so their cells
    stay visible.
    """
    if _element(node) != "cell_code":
        return False
    return _is_check(node) or not any(
        _element(part) == "cell_code_output" and len(part) for part in node
    )


def _element(node) -> str:
    return node.get("nb_element", "") if isinstance(node, nodes.Element) else ""


def _cell_of(node):
    while _element(node) != "cell_code":
        node = node.parent
    return node


def _is_predict(node) -> bool:
    return isinstance(node, nodes.Element) and "sm-lead-predict" in node["classes"]


def _is_cell(node) -> bool:
    return _element(node) == "cell_code"


def _is_check(node) -> bool:
    return _element(node) == "cell_code" and HOLDS in node.astext()


def _end_of_reading(section, at) -> int:
    """The place after the nodes that explain the answer: pictures and tables, a
    paragraph, its source notes, and the checks between them."""
    read, end = False, at
    while at < len(section):
        one = section[at]
        if isinstance(one, nodes.paragraph) and not read:
            read = True
        elif not _is_check(one) and not (is_aside(one) if read else _is_cell(one)):
            break
        at += 1
        if read or _is_check(one):
            end = at
    return end


def _end_of_telling(section, at, record) -> int:
    """The place after the last node before the next question that has the number."""
    if record["kind"] != "number":
        return at
    number = record["truth"].rstrip("%").split()[0]
    if sum(map(str.isdigit, number.lstrip("0.,"))) < LEAST_DIGITS:
        return at
    tells = re.compile(rf"(?<![\d.,]){re.escape(number)}(?!\d|[.,]\d)")
    end = at
    while at < len(section):
        one = section[at]
        if isinstance(one, nodes.section) or _is_predict(one):
            break
        at += 1
        if tells.search(_TAG.sub(" ", one.astext())):
            end = at
    return end


def _place_summary(document):
    """Put the summary before *What to remember*, or at the end of the page."""
    for section in document.findall(nodes.section):
        if section.next_node(nodes.title).astext().lower() == REMEMBER:
            section.parent.insert(section.parent.index(section), guess_summary())
            return
    document.next_node(nodes.section).append(guess_summary())


def answer_line(anchor: str, record: dict) -> str:
    """HTML of the answer as it is shown without a guess."""
    text = f"The answer: {record['truth']}."
    return f'<p class="sm-guess-line" id="{anchor}-answer">{escape(text)}</p>\n'


def form(anchor: str, record: dict, key: str, title: str) -> str:
    """HTML of the form, which guess.js handles. Without scripts it is hidden."""
    if record["kind"] == "choice":
        buttons = "".join(
            f'<button value="{place}">{escape(label)}</button>'
            for place, label in enumerate(record["choices"])
        )
        field = f"<fieldset><legend>Your guess</legend>{buttons}</fieldset>"
    else:
        field = (
            "<fieldset><label>Your guess "
            '<input name="number" size="9" autocomplete="off" spellcheck="false" '
            f'aria-describedby="{anchor}-said"> {escape(record["unit"])}</label>'
            "<button>Show the result</button></fieldset>"
        )
    return (
        f'<form class="sm-guess" data-anchor="{anchor}" data-key="{key}" '
        f'data-title="{escape(title)}" data-record="{escape(json.dumps(record))}">'
        f'{field}<p class="sm-guess-more">'
        f'<span class="sm-guess-said" id="{anchor}-said" role="status"></span> '
        '<button type="button" value="skip" aria-keyshortcuts="Escape">'
        'Skip <kbd aria-hidden="true">Esc</kbd></button>'
        '<button type="button" value="again" hidden>Guess again</button>'
        '<button type="button" value="off">Do not ask again</button></p></form>\n'
    )


SUMMARY = (
    '<div class="sm-guesses" role="group" aria-label="Your guesses" hidden>'
    '<p><strong>Your guesses.</strong> <span class="sm-guesses-count"></span></p>'
    '<ol></ol><p class="sm-guesses-note" role="status"></p>'
    '<p class="sm-guess-more"><button type="button">Start over</button>'
    '<label><input type="checkbox" checked> Ask me to guess</label></p></div>\n'
)


def _write_answer(translator, node):
    translator.body.append(answer_line(node["anchor"], node["record"]))
    raise nodes.SkipNode


def _write_form(translator, node):
    told = (node[name] for name in ("anchor", "record", "key", "title"))
    translator.body.append(form(*told))
    raise nodes.SkipNode


def _open_behind(translator, node):
    translator.body.append(
        f'<div class="sm-behind" id="{node["anchor"]}-behind" role="group" '
        'aria-label="The result">\n'
    )


def _close_behind(translator, node):
    translator.body.append("</div>\n")


def _open_known(translator, node):
    translator.body.append('<details class="sm-known"><summary>How we know</summary>\n')


def _close_known(translator, node):
    translator.body.append("</details>\n")


def _write_summary(translator, node):
    translator.body.append(SUMMARY)
    raise nodes.SkipNode


def _add_files(app, pagename, templatename, context, doctree):
    """Add the script and style to pages with a guess."""
    if doctree and any(doctree.findall(guess_form)):
        app.add_css_file("guess.css")
        app.add_js_file(None, body=EARLY)
        app.add_js_file("guess.js")


def setup(app):
    """Join the guesses on every page."""
    app.add_node(guess_answer, html=(_write_answer, None))
    app.add_node(guess_form, html=(_write_form, None))
    app.add_node(guess_behind, html=(_open_behind, _close_behind))
    app.add_node(guess_known, html=(_open_known, _close_known))
    app.add_node(guess_summary, html=(_write_summary, None))
    app.add_transform(JoinGuesses)
    app.connect("html-page-context", _add_files)
