r"""Typesets formulas with KaTeX while the site is built, so pages need no script.

A display formula is numbered by TeX's ``\tag{1.2}``, which Jupyter and GitHub show as
well. On the site, the tag becomes the formula's number and its anchor ``eq-1.2``.
"""

import json
import re
import shutil
import subprocess
import sys
from functools import partial
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from .units import UNIT

LOGGER = logging.getLogger(__name__)
TAG = re.compile(r"\s*\\tag\{([^{}]+)\}")
ANCHOR = re.compile(r'<a id="eq-[\d.]+">')
OPENS = re.compile(r"[(\[“‘]+$")
CLOSES = re.compile(rf"^(?=\S| {UNIT})(?: {UNIT})?[.,;:!?)\]”’%–-]*")
STARLESS = re.compile(r"\\(begin|end)\{(align|alignat|equation|gather)\}")
OTHER_FORMATS = re.compile(r',url\([^)]*\) format\("(?:woff|truetype)"\)')
NO_TEX = re.compile(r"</?semantics>|<annotation .*?</annotation>", re.DOTALL)
FIRST_BASE, LAST_BASE = '<span class="base">', "</span></span></span>"
KATEX_SERVER = Path(__file__).with_name("katex.mjs")


class NumberFormulas(SphinxTransform):
    """Turn the ``\\tag`` of a display formula into its number and anchor."""

    default_priority = 400  # before links to anchors are resolved

    def apply(self, **kwargs):
        for node in self.document.findall(nodes.math_block):
            tex = node.astext()
            if len(TAG.findall(tex)) != 1:
                continue
            tag = TAG.search(tex).group(1)
            node.clear()
            node += nodes.Text(TAG.sub("", tex))
            node["tag"] = tag
            node["names"].append(f"eq-{tag}")
            self.document.note_explicit_target(node, node)  # warns about duplicates
            slugs = self.env.metadata[self.env.docname].setdefault("myst_slugs", {})
            slugs[f"eq-{tag}"] = (node.line, node["ids"][0], f"({tag})")


class DropAnchors(SphinxTransform):
    """Remove the anchors ``<a id="eq-1.2"></a>``, which only Jupyter needs.

    They would duplicate the ids on the site and leave a gap above each formula.
    """

    default_priority = 390

    def apply(self, **kwargs):
        for opening in list(self.document.findall(_is_anchor)):
            line, at = opening.parent, opening.parent.index(opening)
            del line[at : at + 2]  # with its </a>
            if not line.astext().strip():
                line.parent.remove(line)


def _is_anchor(node):
    return isinstance(node, nodes.raw) and ANCHOR.fullmatch(node.astext())


class KeepPunctuation(SphinxTransform):
    """Move punctuation next to a formula into it, so no line breaks between them."""

    default_priority = 420

    def apply(self, **kwargs):
        for node in self.document.findall(nodes.math):
            line, at = node.parent, node.parent.index(node)
            if at > 0:
                node["before"] = _take(line, at - 1, OPENS)
            if at + 1 < len(line):
                node["after"] = _take(line, at + 1, CLOSES)


def _take(line, at, marks):
    """Remove the marks from the text at place `at` of a line, and return them.

    The place is needed because texts of a line may be equal, such as commas in a list.
    """
    found = isinstance(line[at], nodes.Text) and marks.search(line[at])
    if not found or not found.group():
        return ""
    line[at] = nodes.Text(marks.sub("", line[at]))
    return found.group()


class Typesetter:
    """KaTeX in one Node process, which sets one formula at a time (about 1 ms each)."""

    def __init__(self):
        self.katex = self.process = None
        self.known = {}

    def __call__(self, node, tex, display):
        """HTML and MathML for `tex`. If it is wrong, its source and a warning."""
        key = tex, display
        if key not in self.known:
            self.known[key] = self._ask(tex, display)
        answer = self.known[key]
        if "error" in answer:
            LOGGER.warning("formula %r: %s", tex, answer["error"], location=node)
        return answer.get("html", f"<code>{escape(tex)}</code>")

    def _ask(self, tex, display):
        if self.process is None:
            self.process = subprocess.Popen(
                [_node(), KATEX_SERVER, self.katex],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
            )
        self.process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise ExtensionError("Node stopped while it set a formula; see above.")
        answer = json.loads(line)
        # The TeX is removed, because a search would find each formula twice.
        if "html" in answer:
            answer["html"] = NO_TEX.sub("", answer["html"])
        return answer

    def start(self, app):
        """Use the script and the style of the KaTeX in ``package-lock.json``."""
        if app.builder.format != "html":
            return
        dist = Path(app.srcdir) / "node_modules" / "katex" / "dist"
        if not dist.is_dir():
            raise ExtensionError(
                "KaTeX is missing: `make book` or `npm ci` installs it."
            )
        self.katex = dist / "katex.min.js"
        _copy_style(dist, Path(app.outdir) / "_static" / "katex")

    def stop(self, app, exception):
        """End the Node process."""
        if self.process is not None:
            self.process.communicate()


def _node():
    beside_python = str(Path(sys.executable).parent)
    node = shutil.which("node") or shutil.which("node", path=beside_python)
    if node is None:
        raise ExtensionError("Node is missing: `make book` installs it.")
    return node


def visit_inline(typeset, self, node):
    """Write a formula within a line."""
    self.body.append(self.starttag(node, "span", "", CLASS="math"))
    html = typeset(node, node.astext(), display=False)
    if before := node.get("before"):
        html = html.replace(FIRST_BASE, FIRST_BASE + _mark(before), 1)
    if after := node.get("after"):
        base, end, _ = html.rpartition(LAST_BASE)
        html = base + _mark(after) + end if end else html + after
    self.body.append(html + "</span>")
    raise nodes.SkipNode


def _mark(text):
    return f'<span class="sm-with">{text}</span>'


def visit_display(typeset, self, node):
    """Write a formula on its own line, in a box that scrolls, next to its number."""
    # Without a star, KaTeX would number these environments from 1 on every page.
    tex = STARLESS.sub(r"\\\1{\2*}", node.astext())
    number = node.get("tag")
    if number is None and node.get("number"):
        number = get_node_equation_number(self, node)
    self.body.append(self.starttag(node, "div", "", CLASS="sm-formula"))
    box = typeset(node, tex, display=True)
    self.body.append(f'<div class="sm-formula-box">{box}</div>')
    if number is not None:
        anchor = node["ids"][0]
        self.body.append(f'<a class="sm-eqno" href="#{anchor}">({number})</a>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def _copy_style(dist, out):
    """Copy KaTeX's style, fonts and licence. Fonts are woff2, which is enough."""
    (out / "fonts").mkdir(parents=True, exist_ok=True)
    style = (dist / "katex.min.css").read_text(encoding="utf-8")
    (out / "katex.css").write_text(OTHER_FORMATS.sub("", style), encoding="utf-8")
    for font in (dist / "fonts").glob("*.woff2"):
        shutil.copyfile(font, out / "fonts" / font.name)
    shutil.copyfile(dist.parent / "LICENSE", out / "LICENSE.txt")


def _add_style(app, pagename, templatename, context, doctree):
    """Add KaTeX's style to pages with a formula."""
    if doctree and next(doctree.findall(_is_formula), None):
        app.add_css_file("katex/katex.css", priority=400)


def _is_formula(node):
    return isinstance(node, nodes.math | nodes.math_block)


def setup(app):
    """Make this the math renderer."""
    typeset = Typesetter()
    app.add_html_math_renderer(
        "shardmath",
        (partial(visit_inline, typeset), None),
        (partial(visit_display, typeset), None),
    )
    app.add_transform(NumberFormulas)
    app.add_transform(DropAnchors)
    app.add_transform(KeepPunctuation)
    app.connect("builder-inited", typeset.start)
    app.connect("html-page-context", _add_style)
    app.connect("build-finished", typeset.stop)
