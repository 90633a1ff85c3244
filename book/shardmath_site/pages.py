"""Completes the theme's HTML: adds descriptions and image sizes, and defers scripts."""

import re
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.util.images import get_image_size

FOLDS = Path(__file__).with_name("folds.js")
DESCRIPTION_LENGTH = 160  # roughly what search engines show
IMAGE = re.compile(r'<img (?=[^>]*src="[^"]*_images/([^"]+)")')
# Names and punctuation, which the highlighter colours almost like plain text.
PLAIN_CODE = re.compile(r'<span class="(?:n|nn|nx|o|p|w)">([^<]*)</span>|<span></span>')
VIEWPORT = re.compile(r'<meta name="viewport"[^>]*>')
EMPTY_HEADER = re.compile(r'<th class="head[^"]*">(?:<p></p>)?</th>')


def describe(doctree):
    """The first paragraph as one line of at most 160 characters, cut at a word."""
    for paragraph in doctree.findall(nodes.paragraph):
        if not any(paragraph.findall(nodes.math)) and paragraph.astext().strip():
            text = " ".join(paragraph.astext().split())
            if isinstance(paragraph.parent, nodes.block_quote):  # without its lead word
                lead = paragraph.next_node(nodes.strong)
                text = text.removeprefix(lead.astext() if lead else "").strip()
            if len(text) > DESCRIPTION_LENGTH:
                text = text[:DESCRIPTION_LENGTH].rpartition(" ")[0].rstrip(",;:") + " …"
            return text
    return ""


def _complete_context(app, pagename, templatename, context, doctree):
    meta = context.get("meta") or {}
    given = meta.get("description")
    context["description"] = given or (describe(doctree) if doctree else "")
    # Markdown tables may have an empty corner, which should not be a header cell.
    body = EMPTY_HEADER.sub("<td></td>", context.get("body", ""))
    # A list with the role "list" needs "listitem"; docutils writes another role.
    body = body.replace('role="doc-biblioentry"', 'role="listitem"')
    body = PLAIN_CODE.sub(r"\1", body)  # a third of a chapter's elements
    context["has_folds"] = 'class="sm-fold' in body
    context["folds_script"] = FOLDS.read_text(encoding="utf-8")
    sources = {name: path for path, name in app.builder.images.items()}
    context["body"] = IMAGE.sub(
        lambda match: _size(Path(app.srcdir, sources[match.group(1)])), body
    )
    # Sphinx's layout already has a viewport tag.
    tags = context.get("metatags") or ""
    context["metatags"] = VIEWPORT.sub("", tags)
    context["default_mode"] = "auto"  # the theme logs an error when it is empty


def _defer_scripts(app, pagename, templatename, context, doctree):
    """Defer scripts, so text appears first and pages opened as files have no errors."""
    # The theme's inline script can't be deferred. It is only for a version menu.
    context["script_files"] = [
        script
        for script in context["script_files"]
        if not script.attributes.get("body", "").startswith("DOCUMENTATION_OPTIONS")
    ]
    for script in context["script_files"]:
        if script.attributes.get("type") == "module":
            script.attributes["type"] = "shardmath/module"  # book.js imports it
        elif script.filename:
            script.attributes["defer"] = "defer"


@cache
def _size(image):
    """The start of an ``<img>`` that reserves its space and loads lazily."""
    size = get_image_size(image)
    place = f'width="{size[0]}" height="{size[1]}" ' if size else ""
    return f'<img {place}loading="lazy" decoding="async" '


def setup(app):
    """Complete every page's context."""
    app.connect("html-page-context", _complete_context)
    app.connect("html-page-context", _defer_scripts, priority=950)
