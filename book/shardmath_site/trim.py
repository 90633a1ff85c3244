"""Removes what no page uses, and puts all style into one file.

The theme has 391 kB of style, mostly icon names and Bootstrap rules that match nothing
in the book, an icon script of 1.5 MB, and source maps.
"""

import hashlib
import posixpath
import re
from fnmatch import fnmatch
from pathlib import Path

from sphinx.errors import ExtensionError

UNUSED = (
    "**/*.map",
    "**/*.LICENSE.txt",
    "scripts/fontawesome.js",
    "scripts/bootstrap.js",
    "vendor/fontawesome/**/*",
    "locales/**/*",
    "searchtools.js",
    "language_data.js",
    "images/logo_*",
    "sbt-webpack-macros.html",
    "webpack-macros.html",
)
# All style sheets that pages link, in this order. In one file, they need one request
# instead of eleven, and the browser has it for the next page.
STYLES = (
    "basic.css",
    "styles/pydata-sphinx-theme.css",
    "pygments.css",
    "styles/sphinx-book-theme.css",
    "katex/katex.css",
    "copybutton.css",
    "mystnb.*.css",
    "guess.css",
    "progress.css",
    "live/*/live.css",
    "live/*/functions.css",
    "glossary.css",
    "hardware.css",
    "shardmath.css",
    "front.css",
    "zoom.css",
    "icons.css",
)
ALL_STYLES = "all.css"
APART = {"print.css", "noscript.css"}  # only for printing, and without scripts
# The theme checks every box for scrolling and marks it before it checks the next one,
# which takes 40 layouts of a page. book.js needs only one.
SLOW = re.compile(
    r'"complete"===document\.readyState\?(\w+)\(\)'
    r':window\.addEventListener\("load",\1\)'
)
THEME_SCRIPT = "scripts/pydata-sphinx-theme.js"
WORD = re.compile(r"[A-Za-z_][\w-]*")
CLASS_LIST = re.compile(r'class="([^"]*)"')
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CLASS = re.compile(r"\.((?:\\.|[\w-])+)")
ICON_FONT = re.compile(r"@font-face\{[^}]*(?:fontawesome|Font Awesome)[^}]*\}")
CUT = '"book.js finds what scrolls"'
CHARSET = re.compile(r'@charset "[^"]*";')
RELATIVE = re.compile(r"""url\((["']?)(?!data:|#|/|\w+:)([^"')]+)\1\)""")
STYLE_LINK = re.compile(r'<link\b[^>]*\bhref="([^"?]*)[^"]*"[^>]*>\s*')
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
EMPTY_GROUP = re.compile(r"@(?:media|supports)[^{}]*\{\}")
SOURCE_MAP = re.compile(r"/[/*]# sourceMappingURL=\S+(?: ?\*/)?")


def without_unused(style, words):
    """`style` without the rules of which no selector can match the classes in `words`.

    >>> without_unused(".a{x:1}.b,.a .c{y:2}@media print{.b{z:3}}", {"a", "c"})
    '.a{x:1}.a .c{y:2}'
    """

    def keep(match):
        selectors, body = match.groups()
        if selectors.lstrip().startswith("@"):
            return match.group()
        used = [s for s in _split(selectors) if set(_classes(s)) <= words]
        return f"{','.join(used)}{{{body}}}" if used else ""

    licences = "".join(c for c in COMMENT.findall(style) if c.startswith("/*!"))
    rules = COMMENT.sub("", CHARSET.sub("", style))
    rules = ICON_FONT.sub("", rules)
    return licences + EMPTY_GROUP.sub("", RULE.sub(keep, rules))


def _split(selectors):
    """Split at the commas outside parentheses."""
    return re.split(r",(?![^(]*\))", selectors)


def _classes(selector):
    """Class names that a match must have, except those in ``:not()`` or ``:is()``."""
    plain = re.sub(r":(?:not|is|where)\((?:[^()]|\([^()]*\))*\)", "", selector)
    return (name.replace("\\", "") for name in CLASS.findall(plain))


def words_of(out):
    """The classes in the pages, and all words in the scripts, which may set classes."""
    found = set()
    for page in out.rglob("*.html"):
        for classes in CLASS_LIST.findall(page.read_text(encoding="utf-8")):
            found.update(classes.split())
    for script in (out / "_static").rglob("*.js"):
        found.update(WORD.findall(script.read_text(encoding="utf-8")))
    return found


def _trim(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    static = out / "_static"
    for pattern in UNUSED:
        for file in static.glob(pattern):
            if file.is_file():
                file.unlink()
    for empty in sorted((p for p in static.rglob("*") if p.is_dir()), reverse=True):
        if not any(empty.iterdir()):
            empty.rmdir()
    for file in [*static.rglob("*.css"), *static.rglob("*.js")]:
        text = file.read_text(encoding="utf-8")
        if SOURCE_MAP.search(text):
            file.write_text(SOURCE_MAP.sub("", text), encoding="utf-8")
    without_slow(static / THEME_SCRIPT)
    _bundle(out, static)


def without_slow(script):
    """Remove the slow part from the theme's script.

    Raises:
        ExtensionError: the script does not contain this part.
    """
    text = script.read_text(encoding="utf-8")
    cut, count = SLOW.subn(CUT, text)
    if not count and CUT not in text:
        raise ExtensionError(f"{script.name} has changed: it lacks {SLOW.pattern}")
    script.write_text(cut, encoding="utf-8")


def _bundle(out, static):
    """Put all style sheets into one, without unused rules, and link it."""
    files = [file for pattern in STYLES for file in sorted(static.glob(pattern))]
    if not (static / STYLES[0]).exists():
        return  # no page was written, so nothing has changed
    words = words_of(out)
    parts = []
    for file in files:
        style = without_unused(file.read_text(encoding="utf-8"), words)
        parts.append(moved(style, file.relative_to(static).parent.as_posix()))
        file.unlink()
    text = "\n".join(parts)
    (static / ALL_STYLES).write_text(text, encoding="utf-8")
    version = hashlib.sha256(text.encode()).hexdigest()[:8]
    for page in out.rglob("*.html"):
        before = page.read_text(encoding="utf-8")
        after = linked(before, version)
        if after != before:
            page.write_text(after, encoding="utf-8")


def linked(page, version):
    """The HTML of a page with one link that replaces those to its style sheets.

    Raises:
        ExtensionError: the page links a style sheet that is not in `STYLES`.
    """
    first = True

    def replaced(match):
        nonlocal first
        top, _, name = match[1].rpartition("_static/")
        if 'rel="stylesheet"' not in match[0] or name in APART:
            return match[0]
        known = name == ALL_STYLES or any(fnmatch(name, s) for s in STYLES)
        if not known:
            raise ExtensionError(f"{name} is not among the STYLES of trim.py")
        link = f'<link rel="stylesheet" href="{top}_static/{ALL_STYLES}?v={version}"/>'
        text, first = f"{link}\n" if first else "", False
        return text

    return STYLE_LINK.sub(replaced, page)


def moved(style, base):
    """`style` with its relative addresses changed for moving it out of folder `base`.

    >>> moved("a{src:url(fonts/A.woff2)}b{src:url('../c.svg')}", "katex")
    "a{src:url(katex/fonts/A.woff2)}b{src:url('c.svg')}"
    """

    def rebased(match):
        quote, path = match.groups()
        return f"url({quote}{posixpath.normpath(posixpath.join(base, path))}{quote})"

    return RELATIVE.sub(rebased, style)


def setup(app):
    """Trim the copied files after all pages are written."""
    app.connect("build-finished", _trim, priority=900)
