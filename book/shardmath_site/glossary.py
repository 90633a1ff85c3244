"""Links the first use of each glossary term in a chapter to its definition.

The definition appears when a reader points at the link or focuses it, and Escape hides
it (book.js).
"""

import re
from html import escape

from docutils import nodes
from sphinx import addnodes

from .numbering import STEM

PAGE = "book/glossary"
# Words that chapters also use in another sense, such as "stage 1 of ZeRO", or that are
# so common that a link would distract more than it helps.
UNMARKED = frozenset(
    {"peak", "stage", "slice", "chunk", "prediction", "wave", "slot", "core", "line"}
    | {"host", "leaf", "cube", "lane", "at best", "without overlap", "permute"}
)
LEFT_ALONE = (
    nodes.title,
    nodes.reference,
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    nodes.caption,
    nodes.table,
    addnodes.pending_xref,
)


def definitions(doctree) -> dict[str, tuple[str, str]]:
    """Term → its anchor and definition, from the glossary's page."""
    found = {}
    for item in doctree.findall(nodes.definition_list_item):
        said = item.next_node(nodes.definition).astext().strip()
        for term in item.findall(nodes.term):
            found[term.astext()] = term["ids"][0], said
    return found


def pattern(terms) -> re.Pattern:
    """A pattern that finds any of the terms, the longest first, also in the plural.

    Lower-case terms are also found at the start of a sentence, but "sm" is not found in
    "SM", and "SM" not in "SMEM".

    >>> found = pattern(["shard", "HBM", "pod"])
    >>> [one[0] for one in found.finditer("Shards in HBM, hbm and Podium")]
    ['Shards', 'HBM']
    """

    def either(term):
        text = re.escape(term)
        if term == term.lower():
            return f"[{term[0]}{term[0].upper()}]{re.escape(term[1:])}"
        return text

    some = "|".join(either(term) for term in sorted(terms, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])(?:{some})s?(?![\w-])")


def mark(doctree, terms: dict[str, tuple[str, str]], page: str) -> list[str]:
    """Mark the first use of each term in the text of a page. Returns the terms found.

    Args:
        doctree: of the page.
        terms: see `definitions`.
        page: the address of the glossary, relative to the page.
    """
    left = dict.fromkeys(term for term in terms if term not in UNMARKED)
    found: list[str] = []
    for text in [*doctree.findall(nodes.Text)]:
        if left and _is_prose(text):
            parts = list(_marked(text, left, terms, page, len(found)))
            here = [part["term"] for part in parts if isinstance(part, nodes.raw)]
            if here:
                text.parent.replace(text, parts)
            found += here
    return found


def _is_prose(text) -> bool:
    """Whether a text is in a paragraph, and neither in code nor in a link."""
    node, within = text.parent, False
    while node is not None:
        if isinstance(node, LEFT_ALONE):
            return False
        within = within or isinstance(node, nodes.paragraph)
        node = node.parent
    return within


def _marked(text, left, terms, page, count):
    """The parts of a text, with the first use of each term as raw HTML."""
    at, said = 0, str(text)
    for match in pattern(left).finditer(said) if left else ():
        term = _term(match[0], left)
        if term is None:  # a second use in this text
            continue
        del left[term]
        if match.start() > at:
            yield nodes.Text(said[at : match.start()])
        anchor, sentence = terms[term]
        yield _link(match[0], f"{page}#{anchor}", sentence, term, f"term-tip-{count}")
        count += 1
        at = match.end()
    if at < len(said):
        yield nodes.Text(said[at:])


def _term(word: str, left) -> str | None:
    """The term that a word stands for, which may be a plural or be capitalised."""
    for form in (word, word[0].lower() + word[1:]):
        for term in (form, form.removesuffix("s")):
            if term in left:
                return term
    return None


def _link(word: str, address: str, sentence: str, term: str, name: str):
    html = (
        f'<span class="sm-term"><a href="{escape(address)}" aria-describedby="{name}">'
        f'{escape(word)}</a><span class="sm-tip" role="tooltip" id="{name}">'
        f"{escape(sentence)}</span></span>"
    )
    return nodes.raw("", html, format="html", term=term)


def _mark_chapter(app, doctree, docname):
    stem = STEM.match(docname)
    if app.builder.format != "html" or not stem or stem[1] != "chapters":
        return
    if PAGE in app.env.all_docs:
        terms = definitions(app.env.get_doctree(PAGE))
        mark(doctree, terms, app.builder.get_relative_uri(docname, PAGE))


def _depend(app, doctree):
    """Rebuild a chapter when a definition changes."""
    stem = STEM.match(app.env.docname)
    if stem and stem[1] == "chapters":
        app.env.note_dependency(f"{PAGE}.md")


def setup(app):
    """Mark the chapters."""
    app.connect("doctree-read", _depend)
    app.connect("doctree-resolved", _mark_chapter, priority=800)
    app.add_css_file("glossary.css")
