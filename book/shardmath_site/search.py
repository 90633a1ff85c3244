"""Writes the search index of all sections, as a script that also works from files.

For each section it holds the title, the prose, bold terms, symbols, and the numbers of
formulas and figures with their anchors. Code and outputs are left out, and formulas in
the prose are written as a line of text. `search.js` ranks and shows the sections.
"""

import json
import re
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

from .numbering import STEM
from .render import live_block

INDEX = "sections.js"  # under _static
ALIASES = "book/search.toml"
SKIPPED = (nodes.section, nodes.title, nodes.literal_block, nodes.raw, nodes.comment)
SKIPPED += (nodes.system_message, live_block)
LONGEST = 40  # characters of a bold term, and of a formula in a line of text
WORDS_IN_TEX = re.compile(r"\\(?:text|mathrm|operatorname)\{([^{}]*)\}")
SIGNS = {r"\times": "×", r"\cdot": "·", r"\approx": "≈", r"\le": "≤", r"\ge": "≥"}
SIGNS |= {r"\to": "→", r"\mu": "µ", r"\,": " ", r"\;": " ", r"\%": "%", "^*": "*"}
SYMBOL = re.compile(r"[A-Za-z](?:_\{?[A-Za-z0-9]+\}?)?(?:\^\*)?")


def symbols(tex: str) -> list[str]:
    r"""The symbols of a formula with more than one letter, as a reader would type them.

    >>> symbols(r"B^* = \frac{I^* w}{2} W_\text{hbm}")
    ['B*', 'I*', 'W_hbm']
    """
    plain = re.sub(r"\\[A-Za-z]+", " ", WORDS_IN_TEX.sub(r"\1", tex))
    found = (re.sub(r"[{}^]", "", symbol) for symbol in SYMBOL.findall(plain))
    return list(dict.fromkeys(symbol for symbol in found if len(symbol) > 1))


def in_a_line(tex: str) -> str:
    r"""A formula as a line of text, or "…" if that is not possible.

    >>> in_a_line(r"B^* \approx 240"), in_a_line(r"\frac{a}{b}")
    ('B* ≈ 240', '…')
    """
    plain = WORDS_IN_TEX.sub(r"\1", tex)
    for command, sign in SIGNS.items():
        plain = re.sub(re.escape(command) + r"(?![A-Za-z])", sign, plain)
    plain = " ".join(plain.replace("{", "").replace("}", "").split())
    return "…" if "\\" in plain or len(plain) > LONGEST else plain


def prose(node) -> list[str]:
    """The text of `node`, without code, outputs and subsections."""
    if isinstance(node, nodes.Text):
        return [str(node)]
    if isinstance(node, nodes.math):
        return [in_a_line(node.astext())]
    if isinstance(node, (*SKIPPED, nodes.math_block)):
        return []
    if node.get("nb_element") == "cell_code":
        found = [part for one in node.findall(nodes.caption) for part in prose(one)]
        return [*found, " "]
    found = [part for child in node.children for part in prose(child)]
    return found if isinstance(node, nodes.Inline) else [*found, " "]


def _own(section, kind):
    """Nodes of `kind` in a section but not in its subsections."""
    for child in section.children:
        if not isinstance(child, nodes.section):
            yield from child.findall(kind)


def sections(doctree) -> list[dict]:
    """The entries of a page's sections in the index, the top section first."""
    found = []
    for section in doctree.findall(nodes.section):
        formulas = [*_own(section, nodes.math), *_own(section, nodes.math_block)]
        tex = [formula.astext() for formula in formulas]
        bold = [one.astext() for one in _own(section, nodes.strong)]
        numbers = {one["tag"]: one["ids"][0] for one in formulas if one.get("tag")}
        for figure in [*_own(section, nodes.figure), *_own(section, live_block)]:
            mark = figure.next_node(nodes.reference)
            said = figure.get("number") or (mark.astext() if mark else "")
            if re.fullmatch(r"Figure [\d.]+", said) and figure["ids"]:
                numbers[said.lower()] = figure["ids"][0]
        found.append(
            {
                "anchor": section["ids"][0],
                "title": section.next_node(nodes.title).astext(),
                "text": " ".join("".join(map("".join, map(prose, section))).split()),
                "terms": [t for t in dict.fromkeys(bold) if _is_term(t)],
                "symbols": [*dict.fromkeys(s for t in tex for s in symbols(t))],
                "numbers": numbers,
            }
        )
    return found


def _is_term(bold: str) -> bool:
    return len(bold) <= LONGEST and not bold.endswith((".", ":", "?"))


def _kind(name: str, root: str) -> str:
    found = STEM.match(name)
    return found[1] if found else "front" if name == root else "reference"


def add_aliases(rows: list[dict], aliases: dict[str, list[str]]) -> None:
    """Add to sections of chapters, by their titles, more words by which they are found.

    Raises:
        ExtensionError: no section of a chapter has one of the titles.
    """
    left = dict(aliases)
    for row in rows:
        for section in row["sections"] if row["kind"] == "chapters" else ():
            if words := left.pop(section["title"], None):
                section["aliases"] = [word.lower() for word in words]
    if left:
        raise ExtensionError(f"{ALIASES}: no section of a chapter is called {[*left]}")


def _collect(app, doctree):
    held = app.env.__dict__.setdefault("shardmath_sections", {})
    held[app.env.docname] = sections(doctree)


def _forget(app, env, name):
    getattr(env, "shardmath_sections", {}).pop(name, None)


def _write(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    held = app.env.shardmath_sections
    rows = [
        {
            "page": held[name][0]["title"],
            "kind": _kind(name, app.config.root_doc),
            "url": app.builder.get_target_uri(name),
            "sections": held[name],
        }
        for name in sorted(held)
        if held[name]
    ]
    file = Path(app.srcdir, ALIASES)
    if file.exists():
        add_aliases(rows, tomllib.loads(file.read_text("utf-8"))["aliases"])
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    file = Path(app.outdir, "_static", INDEX)
    file.write_text(f"globalThis.shardmathSections={text};\n", encoding="utf-8")


def _replace(app, config):
    config.html_additional_pages = {"search": "search.html"}


def setup(app):
    """Replace Sphinx's index, which lists only whole pages."""
    app.connect("config-inited", _replace)
    app.connect("doctree-read", _collect, priority=900)
    app.connect("env-purge-doc", _forget)
    app.connect("build-finished", _write)
