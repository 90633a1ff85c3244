"""Code that a reader may want to skip: the site folds it, JupyterLab collapses it."""

import re

from .claims import HOLDS

HELD = re.compile(rf"^{HOLDS} .*\n?", re.MULTILINE)
IMPORT = re.compile(r"(import|from) ")
LIVE = re.compile(r"\s*live\([^()]*\)\s*")
SETUP = "Setup"
LIVE_WORDS = "The function call behind this figure"


def fold_words(source: str, is_first: bool, title: str | None = None) -> str | None:
    """The title shown in place of a cell's code; None if the code stays visible.

    Args:
        source: the code of the cell.
        is_first: whether this is the first code cell of its notebook.
        title: the ``fold`` of the cell's metadata, if it has one.

    >>> fold_words("import jax", is_first=True), fold_words('live("ring")', False)
    ('Setup', 'The function call behind this figure')
    >>> fold_words("x = 1", False, title="How the table is computed")
    'How the table is computed'
    >>> fold_words("x = 1", is_first=True)
    """
    if title:
        return title
    if is_first and IMPORT.match(source):
        return SETUP
    return LIVE_WORDS if LIVE.fullmatch(source) else None
