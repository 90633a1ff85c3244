"""Prepares a chapter so that JupyterLab shows it like the site.

JupyterLab shows neither the titles of folded code nor the captions of figures, because
they are metadata, and it shows a result before the reader has guessed it. So `formed`
collapses code that the site folds, with its title as the first line, which JupyterLab
then shows. It writes each caption into a separate cell, which the site leaves out. And
it collapses the outputs between a *Predict* note and its guess. It also gives each
guess the key under which the site stores what a reader guessed, so the guess is still
found after the question is reworded.
"""

import hashlib
import re

import nbformat
from nbformat.v4 import new_markdown_cell

from shardmath.base.folds import HELD, fold_words
from shardmath.base.guess import MIME as GUESS

PREDICT = re.compile(r"^> \*\*Predict\.\*\*", re.MULTILINE)
HEADING = re.compile(r"^##+ ", re.MULTILINE)


def formed(cells: list, chapter: str = "") -> list:
    """The cells of a chapter, collapsed and captioned. Repeating it changes nothing."""
    cells = [cell for cell in cells if not is_caption(cell)]
    behind = _behind_guesses(cells)
    is_first, shown = True, []
    for n, cell in enumerate(cells):
        shown.append(cell)
        if cell.cell_type != "code":
            continue
        title = cell.metadata.get("shardmath", {}).get("fold")
        cell.source = titled(cell.source, title)
        if _is_guess(cell):
            mine = cell.metadata.setdefault("shardmath", nbformat.from_dict({}))
            mine.setdefault("key", _digest(f"{chapter} {cell.id}"))
        hidden = {
            "source_hidden": bool(fold_words(cell.source, is_first, title))
            or _is_guess(cell)
            or bool(HELD.search(_printed(cell))),
            "outputs_hidden": n in behind,
        }
        if hidden := {key: True for key, is_so in hidden.items() if is_so}:
            cell.metadata["jupyter"] = nbformat.from_dict(hidden)
        is_first = False
        shown += _caption(cell, n in behind)
    return shown


def titled(source: str, title: str | None) -> str:
    """`source` with the title of its fold as a comment in the first line.

    >>> titled("x = 1", "How x is found")
    '# How x is found\\nx = 1'
    >>> titled(titled("x = 1", "How x is found"), "How x is found")
    '# How x is found\\nx = 1'
    """
    return f"# {title}\n{untitled(source, title)}" if title else source


def untitled(source: str, title: str | None) -> str:
    """`source` without the title in the first line."""
    return source.removeprefix(f"# {title}\n") if title else source


def is_caption(cell) -> bool:
    """Whether `formed` has written this cell."""
    return "caption_of" in cell.metadata.get("shardmath", {})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _is_guess(cell) -> bool:
    return any(GUESS in output.get("data", {}) for output in cell.get("outputs", []))


def _printed(cell) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


def _behind_guesses(cells) -> set[int]:
    """The places of the cells between a *Predict* note and its guess."""
    behind, waiting = set(), None
    for n, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            notes = list(PREDICT.finditer(cell.source))
            heads = list(HEADING.finditer(cell.source))
            if heads:
                waiting = None
            if notes and (not heads or notes[-1].start() > heads[-1].start()):
                waiting = n
        elif _is_guess(cell) and waiting is not None:
            behind |= set(range(waiting + 1, n))
            waiting = None
    return behind


def _caption(cell, is_hidden: bool) -> list:
    """A cell with the caption and the anchor of a figure, if `cell` shows one."""
    figure = cell.metadata.get("mystnb", {}).get("figure", {})
    if not figure.get("caption"):
        return []
    caption = new_markdown_cell(
        f'<a id="{figure["name"]}"></a>\n*{figure["caption"]}*',
        id=f"{cell.id[:50]}-caption",
        metadata={"tags": ["remove-cell"], "shardmath": {"caption_of": cell.id}},
    )
    if is_hidden:
        caption.metadata["jupyter"] = nbformat.from_dict({"source_hidden": True})
    return [caption]
