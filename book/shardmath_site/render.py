"""Puts live figures and answer fields into the built pages.

A cell's output contains only the name and settings of a figure, or the id of a
question. The page's block is computed when the page is written, so it is never out of
date. So are a figure's first answers, in a file that the page loads when the figure is
about to come into view.
"""

import hashlib
import json

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.osutil import relative_uri

from shardmath.base.guess import MIME as GUESS_MIME
from shardmath.draw.live import MIME, Place, block, first_answers
from shardmath.draw.picture import MIME as PICTURE_MIME
from shardmath.exercises import CHECK_MIME

from . import pictures, runtime
from .guesses import guess_answer
from .question import place
from .sharing import addresses

HTML_BUILDERS = ("html", "dirhtml", "singlehtml")
FOLDER = "live"  # under _static


def _figure(app: Sphinx, node: nodes.Element) -> str:
    """HTML of the figure. Its first answers are collected for `_install`."""
    name, params = node["content"]["name"], node["content"]["params"]
    found = json.dumps(first_answers(name, params), ensure_ascii=False).encode()
    file = f"{name}-{hashlib.sha256(found).hexdigest()[:12]}.json"
    app.shardmath_answers[file] = found
    anchor = node["ids"][0] if node["ids"] else ""
    place = Place(file, anchor, node.get("number", ""), node.get("bare", False))
    return block(name, params, place)


def _question(app: Sphinx, node: nodes.Element) -> str:
    name = app.builder.current_docname
    notebook = f"{name}.ipynb"
    here = app.builder.get_target_uri(name)
    return place(
        node["content"]["question"],
        relative_uri(here, f"_sources/{notebook}"),
        addresses(app.config).colab(notebook),
    )


BLOCKS = {MIME: _figure, CHECK_MIME: _question}


class live_block(nodes.General, nodes.Element):  # noqa: N801
    """A block whose HTML is computed when the page is written.

    Attributes: `mime`, `content`, and for a numbered figure `number`, such as
    "Figure 5.2" (numbering.py).
    """


class Renderer:
    """A plug-in of MyST-NB, which prefers our outputs to text, images and widgets."""

    mime_priority_overrides = tuple(
        (builder, mime, 1)
        for builder in HTML_BUILDERS
        for mime in (*BLOCKS, GUESS_MIME, PICTURE_MIME)
    )

    @staticmethod
    def handle_mime(renderer, data, inline):
        if data.mime_type == GUESS_MIME:
            return [guess_answer(record=dict(data.content))]
        if not inline and data.mime_type == PICTURE_MIME:
            return [pictures.node(data.content, data.cell_metadata)]
        if inline or data.mime_type not in BLOCKS:
            return None
        return [live_block(mime=data.mime_type, content=dict(data.content))]


def setup_live(app: Sphinx) -> None:
    """Connect live figures to the build; call it from the extension's `setup`."""
    app.add_node(live_block, html=(_write, None))
    # The digest of all live code, so a change rewrites every page.
    app.add_config_value("shardmath_live_digest", "", "html")
    app.connect("config-inited", _make)
    app.connect("html-page-context", _add_scripts)
    app.connect("build-finished", _install)


def _make(app: Sphinx, config) -> None:
    try:
        made = runtime.build()
    except runtime.MissingToolError as error:
        raise ExtensionError(str(error)) from None
    app.shardmath_runtime = made
    app.shardmath_answers = {}
    config.shardmath_live_digest = made.scripts


def _write(translator, node: live_block) -> None:
    try:
        app = translator.builder.app
        translator.body.append(BLOCKS[node["mime"]](app, node))
    except ValueError as error:
        raise ExtensionError(f"{translator.builder.current_docname}: {error}") from None
    raise nodes.SkipNode


def _add_scripts(app: Sphinx, pagename, templatename, context, doctree) -> None:
    if doctree is None or next(doctree.findall(live_block), None) is None:
        return
    folder = f"{FOLDER}/{app.shardmath_runtime.scripts}"
    app.add_css_file(f"{folder}/live.css")
    app.add_css_file(f"{folder}/functions.css")
    app.add_js_file(f"{folder}/host.js", type="module", loading_method="none")


def _install(app: Sphinx, exception) -> None:
    if exception is None and app.builder.format == "html":
        app.shardmath_runtime.install(
            app.outdir / "_static" / FOLDER, app.shardmath_answers
        )
