"""Adds a button to each code cell that a reader can try in the page.

`make tries` finds these cells by running them in the page's Python (live/offered.py).
They are stored in tries.json, by their ids, with a digest of the code and outputs of
their notebook. If the digest of a chapter differs from the stored one, the chapter has
no buttons, and a test fails.
"""

import hashlib
import json
import symtable
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

KEPT = Path(__file__).with_name("tries.json")
FOLDER = "live"  # under _static
NAME = "prompt.js"
LONG = 76  # a last line with more columns leaves no room for a button


def code_cells(notebook: dict) -> list[dict]:
    """The cells with code, in the form that `live/offered.py` needs."""
    cells = []
    for index, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            uses, makes = names(source)
            outputs = json.loads(json.dumps(cell["outputs"]))
            for output in outputs:
                _join(output)
            cells.append(
                {
                    "id": cell["id"],
                    "index": index,
                    "source": source,
                    "outputs": outputs,
                    "uses": sorted(uses),
                    "makes": sorted(makes),
                }
            )
    return cells


def _join(output: dict) -> None:
    """Join the lists of lines that notebooks store into strings."""
    for held in (output, output.get("data", {})):
        for name, value in held.items():
            if isinstance(value, list):
                held[name] = "".join(value)


def names(source: str) -> tuple[set[str], set[str]]:
    """The global names that `source` uses, also in functions, and those that it binds.

    >>> uses, makes = names("rows = [f(chip) for chip in CHIPS]")
    >>> sorted(uses), sorted(makes)
    (['CHIPS', 'f'], ['rows'])
    """
    uses, makes = set(), set()
    left = [symtable.symtable(source, "cell", "exec")]
    while left:
        table = left.pop()
        left += table.get_children()
        at_top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (at_top or symbol.is_global()):
                uses.add(symbol.get_name())
            if at_top and (symbol.is_assigned() or symbol.is_imported()):
                makes.add(symbol.get_name())
    return uses, makes


def digest(cells: list[dict]) -> str:
    """A hash of the code and the stored outputs of a notebook."""
    said = [[cell["source"], cell["outputs"]] for cell in cells]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def offered(document: str, cells: list[dict]) -> dict[int, list[int]]:
    """Index of each cell that can be tried → indices of the cells that it needs.

    Empty if the notebook has changed since `make tries`.
    """
    kept = json.loads(KEPT.read_text("utf-8")).get(document, {})
    if kept.get("digest") != digest(cells):
        return {}
    index = {cell["id"]: cell["index"] for cell in cells}
    return {
        index[cell]: [index[other] for other in needs]
        for cell, needs in kept["cells"].items()
    }


class OfferCells(SphinxTransform):
    """Put a button into each cell that can be tried."""

    default_priority = 440  # after code is folded

    def apply(self, **kwargs):
        path = Path(self.env.doc2path(self.env.docname))
        if path.suffix != ".ipynb":
            return
        cells = code_cells(json.loads(path.read_text("utf-8")))
        found = offered(self.env.docname, cells)
        if not found:
            return
        needed = {cells[0]["index"], *found}
        self.document["tries"] = {
            "setup": cells[0]["index"],
            "cells": {
                cell["index"]: {
                    "source": cell["source"],
                    "needs": found.get(cell["index"], []),
                }
                for cell in cells
                if cell["index"] in needed
            },
        }
        sources = [
            cell
            for cell in self.document.findall(nodes.container)
            if cell.get("nb_element") == "cell_code" and cell["cell_index"] in found
        ]
        for rank, cell in enumerate(sources, 1):
            for source in cell.findall(nodes.container):
                if source.get("nb_element") == "cell_code_source":
                    source += _button(cell["cell_index"], rank, source.astext())


def _button(index: int, rank: int, source: str) -> nodes.raw:
    above = " sm-above" if len(source.rpartition("\n")[2]) > LONG else ""
    return nodes.raw(
        "",
        f'<button type="button" class="sm-try{above}" data-cell="{index}" '
        f'aria-label="Try it: code {rank}" '
        'title="Take this code to a Python prompt in the page">Try it</button>',
        format="html",
    )


def _name_prompt(app, pagename, templatename, context, doctree):
    """Add to the page the address of the prompt's script and of the page's cells."""
    folder = f"_static/{FOLDER}/{app.shardmath_runtime.scripts}"
    context["prompt_script"] = context["pathto"](f"{folder}/{NAME}", 1)
    context["prompt_cells"] = ""
    tries = doctree.get("tries") if doctree is not None else None
    if tries:
        content = json.dumps(tries, ensure_ascii=False).encode()
        name = pagename.rpartition("/")[2]
        file = f"cells-{name}-{hashlib.sha256(content).hexdigest()[:12]}.json"
        app.shardmath_answers[file] = content
        context["prompt_cells"] = escape(file)


def setup(app):
    """Add the buttons, and the prompt's script on every page."""
    app.add_transform(OfferCells)
    app.connect("html-page-context", _name_prompt)
