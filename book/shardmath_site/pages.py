"""What a page's HTML needs beyond the theme: a description, sized images."""

import re
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.util.images import get_image_size

FOLDS = Path(__file__).with_name("folds.js")
DESCRIPTION_LENGTH = 160  # about what search engines show
IMAGE = re.compile(r'<img (?=[^>]*src="[^"]*_images/([^"]+)")')
# What the highlighter colours as it does plain text, or nearly: names, punctuation.
PLAIN_CODE = re.compile(r'<span class="(?:n|nn|nx|o|p|w)">([^<]*)</span>|<span></span>')
VIEWPORT = re.compile(r'<meta name="viewport"[^>]*>')
EMPTY_HEADER = re.compile(r'<th class="head[^"]*">(?:<p></p>)?</th>')


def describe(doctree):
    """The first paragraph as one line of at most 160 characters, cut at a word."""
    for paragraph in doctree.findall(nodes.paragraph):
        if not any(paragraph.findall(nodes.math)) and paragraph.astext().strip():
            text = " ".join(paragraph.astext().split())
            if isinstance(paragraph.parent, nodes.block_quote):  # less its lead word
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
    # Markdown tables may leave the corner empty; an empty header is none.
    body = EMPTY_HEADER.sub("<td></td>", context.get("body", ""))
    # A list of role "list" needs items of role "listitem"; docutils says otherwise.
    body = body.replace('role="doc-biblioentry"', 'role="listitem"')
    body = PLAIN_CODE.sub(r"\1", body)  # a third of a chapter's elements
    context["has_folds"] = 'class="sm-fold' in body
    context["folds_script"] = FOLDS.read_text(encoding="utf-8")
    sources = {name: path for path, name in app.builder.images.items()}
    context["body"] = IMAGE.sub(
        lambda match: _size(Path(app.srcdir, sources[match.group(1)])), body
    )
    # Sphinx's layout has said it already.
    tags = context.get("metatags") or ""
    context["metatags"] = VIEWPORT.sub("", tags)
    context["default_mode"] = "auto"  # the theme logs an error when it is empty


def _defer_scripts(app, pagename, templatename, context, doctree):
    """Text shows before scripts run, and nothing is refused when opened as a file."""
    # The theme's inline script could not wait; it serves a version menu we lack.
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
    """The start of an ``<img>`` that holds its place and loads when it comes near."""
    size = get_image_size(image)
    place = f'width="{size[0]}" height="{size[1]}" ' if size else ""
    return f'<img {place}loading="lazy" decoding="async" '


def setup(app):
    """Add to every page's context."""
    app.connect("html-page-context", _complete_context)
    app.connect("html-page-context", _defer_scripts, priority=950)
