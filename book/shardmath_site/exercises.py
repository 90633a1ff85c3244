"""On the site, puts the answer to a question between its task and its hint.

In a notebook, a question is a task with folds, followed by an answer cell and a check
cell. A page can't run these cells, so they are removed, and a live block for the answer
is put before the first fold that helps. The section with the score is removed too.
"""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

from shardmath.exercises import CHECK_MIME

from .render import live_block

HELPS = re.compile(r"<summary>(Hint|Worked solution)</summary>")


class PlaceAnswers(SphinxTransform):
    """In a notebook with questions, replace the cells by places for answers."""

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
            elif len(section) == 1:  # only a title is left
                section.parent.remove(section)


def _question(cell) -> str | None:
    """The question that a cell checks, or None."""
    mark = cell.get("cell_metadata", {}).get("shardmath", {})
    return mark["question"] if mark.get("role") == "check" else None


def _end_of_task(section) -> int:
    """The place of the first fold that helps, or the end."""
    for place, node in enumerate(section):
        if isinstance(node, nodes.raw) and HELPS.search(node.astext()):
            return place
    return len(section)


def setup(app):
    """Apply it to every page. Pages without questions are not changed."""
    app.add_transform(PlaceAnswers)
