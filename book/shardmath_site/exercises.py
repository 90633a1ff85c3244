"""On the site a question is answered below its task, before its hint and solution.

In a notebook a question is a task with its folds, then a cell to answer in and one
that checks. A page cannot run them: the place for an answer stands before the first
fold that helps, and the notebook's cells leave the page, with the section of the score.
"""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

from shardmath.exercises import CHECK_MIME

from .render import live_block

HELPS = re.compile(r"<summary>(Hint|Worked solution)</summary>")


class PlaceAnswers(SphinxTransform):
    """In a notebook with questions, put answers where a reader looks for them."""

    default_priority = 428  # before cells fold

    def apply(self, **kwargs):
        cells = [
            node
            for node in self.document.findall(nodes.container)
            if node.get("nb_element") == "cell_code"
        ]
        if not any(map(_question, cells)):
            return
        for cell in cells:
            section = cell.parent
            section.remove(cell)
            if question := _question(cell):
                content = {"question": question}
                place = live_block(mime=CHECK_MIME, content=content)
                section.insert(_end_of_task(section), place)
            elif len(section) == 1:  # a title alone
                section.parent.remove(section)


def _question(cell) -> str | None:
    """The question that a cell checks, if it does."""
    mark = cell.get("cell_metadata", {}).get("shardmath", {})
    return mark["question"] if mark.get("role") == "check" else None


def _end_of_task(section) -> int:
    """Before the first fold that helps, or at the end."""
    for place, node in enumerate(section):
        if isinstance(node, nodes.raw) and HELPS.search(node.astext()):
            return place
    return len(section)


def setup(app):
    """Look at every page; one without questions stays as it is."""
    app.add_transform(PlaceAnswers)
