"""Folds code that a reader may want to skip into one line, as in JupyterLab.

Four kinds of cells fold: the first cell of a notebook if it imports, into "Setup"; a
cell whose output has lines "✓ …", into these lines; a cell with metadata
``{"shardmath": {"fold": "What this code does"}}``, into these words; and a cell that
only calls ``live(…)``. Outputs stay visible. The folded code of a picture or a table is
put below it, and "Setup" below the opening of the page. Cells that show only checks are
collected at the end of their section, in a fold whose line counts the checks. A section
called "Going deeper: …" is for some readers only, so its text folds below its heading.
"""

from html import escape

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform

from shardmath.base.folds import HELD, SETUP, fold_words

DEEPER = "Going deeper"


class folded(nodes.General, nodes.Element):  # noqa: N801
    """Folded code. Attributes: `held`, the ✓ lines, and `words`, the summary."""


class checks(nodes.General, nodes.Element):  # noqa: N801
    """The folded checks of a section. Attribute: `count`."""


class deeper(nodes.General, nodes.Element):  # noqa: N801
    """The text of a section that only some readers need."""


class FoldCells(SphinxTransform):
    """Wrap the code of cells that fold, and take their ✓ lines from the output."""

    default_priority = 430

    def apply(self, **kwargs):
        cells = [
            cell
            for cell in self.document.findall(nodes.container)
            if cell.get("nb_element") == "cell_code"
            and cell.children[0].get("nb_element") == "cell_code_source"
        ]
        for rank, cell in enumerate(cells):
            source = cell.children[0].astext()
            words = fold_words(source, rank == 0, self._title(cell))
            held = _take_held(cell)
            if held or words:
                code = cell.children[0]
                fold = folded(held=held, words=words or "")
                cell.replace(code, fold)
                fold += code
                if not held:
                    cell.remove(fold)
                    cell += fold
            if words == SETUP:
                _put_below_opening(cell)

    def _title(self, cell):
        """The title of the fold in the cell's metadata, or None."""
        metadata = cell.get("cell_metadata", {}).get("shardmath", {})
        if "fold" not in metadata:
            return None
        words = metadata["fold"]
        if isinstance(words, str) and words.strip():
            return words.strip()
        raise ExtensionError(
            f"{self.env.docname}, cell {cell['cell_index'] + 1}: `fold` is {words!r}; "
            'it must say what the code does, such as "How the table is made"'
        )


class GatherChecks(SphinxTransform):
    """Collect cells that show only checks at the end of their section, in one fold."""

    default_priority = 431  # after FoldCells

    def apply(self, **kwargs):
        for section in [*self.document.findall(nodes.section)]:
            if cells := [node for node in section if _only_checks(node)]:
                count = sum(len(cell.children[0]["held"]) for cell in cells)
                for cell in cells:
                    section.remove(cell)
                section.insert(_end_of_own(section), checks("", *cells, count=count))


def _only_checks(node) -> bool:
    """Whether a cell shows only its ✓ lines."""
    if not isinstance(node, nodes.container) or len(node) != 1:
        return False
    return isinstance(node.children[0], folded) and bool(node.children[0]["held"])


def _end_of_own(section) -> int:
    """The place before a section's first subsection, or its end."""
    inner = (n for n, one in enumerate(section) if isinstance(one, nodes.section))
    return next(inner, len(section))


def _put_below_opening(cell):
    """Move a cell to the place right before the first section."""
    parent = cell.parent
    parent.remove(cell)
    at = next(
        (n for n, one in enumerate(parent) if isinstance(one, nodes.section)),
        len(parent),
    )
    parent.insert(at, cell)


def _take_held(cell):
    """Remove the ✓ lines from the cell's printed output, and return them."""
    held = []
    for out in cell.findall(nodes.container):
        if out.get("nb_element") != "cell_code_output":
            continue
        for printed in [*out.findall(_is_printed)]:
            text = printed.astext()
            held += [line.strip() for line in HELD.findall(text)]
            rest = HELD.sub("", text)
            if rest.strip():
                printed.rawsource = rest
                printed.clear()
                printed += nodes.Text(rest)
            else:
                printed.parent.remove(printed)
        if not out.children:
            cell.remove(out)
            break
    return held


def _is_printed(node):
    return isinstance(node, nodes.literal_block) and "stream" in node["classes"]


def visit(self, node):
    """Open ``<details>`` with the ✓ lines, if there are any, and the words."""
    held, words = node["held"], escape(node["words"])
    marks = "".join(
        f'<span class="sm-held"><span aria-hidden="true">✓</span> '
        f'<span class="sm-unseen">Checked: </span>{escape(line[2:])}</span>'
        for line in held
    )
    said = f'<span class="sm-fold-words">{words or "code"}</span>'
    kind = "sm-fold sm-fold-check" if held else "sm-fold"
    self.body.append(f'<details class="{kind}"><summary>{marks}{said}</summary>')


def depart(self, node):
    """Close it."""
    self.body.append("</details>\n")


def _open_checks(self, node):
    passed = (
        "1 check passed" if node["count"] == 1 else f"{node['count']} checks passed"
    )
    mark = '<span aria-hidden="true">✓</span>'
    line = f"<summary>{mark} {passed}</summary>"
    self.body.append(f'<details class="sm-checks">{line}\n')


def fold_deeper(app, doctree, docname):
    """Fold the text of each section called "Going deeper: …" below its heading."""
    for section in [*doctree.findall(nodes.section)]:
        title, *text = section.children
        if title.astext().startswith(DEEPER):
            for one in text:
                section.remove(one)
            section += deeper("", *text)


def _open_deeper(self, node):
    self.body.append('<details class="sm-deeper"><summary>Read this section</summary>')


def setup(app):
    """Fold in every notebook. Builders other than HTML show the code."""
    app.add_node(folded, html=(visit, depart), override=True)
    app.add_node(checks, html=(_open_checks, depart), override=True)
    app.add_node(deeper, html=(_open_deeper, depart), override=True)
    app.connect("doctree-resolved", fold_deeper, priority=900)
    app.add_transform(FoldCells)
    app.add_transform(GatherChecks)
