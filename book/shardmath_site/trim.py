"""Ship only what the pages use.

The theme brings 391 kB of style, most of it icon names and Bootstrap rules that no page
of the book can match, an icon script of 1.5 MB, and source maps.
"""

import re
from pathlib import Path

UNUSED = (
    "**/*.map",
    "**/*.LICENSE.txt",
    "scripts/fontawesome.js",
    "scripts/bootstrap.js",
    "vendor/fontawesome/**/*",
    "locales/**/*",
    "images/logo_*",
    "sbt-webpack-macros.html",
    "webpack-macros.html",
)
STYLES = (
    "styles/pydata-sphinx-theme.css",
    "styles/sphinx-book-theme.css",
    "mystnb.*.css",
)
WORD = re.compile(r"[A-Za-z_][\w-]*")
CLASS_LIST = re.compile(r'class="([^"]*)"')
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CLASS = re.compile(r"\.((?:\\.|[\w-])+)")
FONT_FACE = re.compile(r"@font-face\{[^}]*\}")
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
EMPTY_GROUP = re.compile(r"@(?:media|supports)[^{}]*\{\}")
SOURCE_MAP = re.compile(r"/[/*]# sourceMappingURL=\S+(?: ?\*/)?")


def without_unused(style, words):
    """`style` less the rules whose every selector names a class not in `words`.

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
    rules = FONT_FACE.sub("", COMMENT.sub("", style))
    return licences + EMPTY_GROUP.sub("", RULE.sub(keep, rules))


def _split(selectors):
    """Split at the commas outside parentheses."""
    return re.split(r",(?![^(]*\))", selectors)


def _classes(selector):
    """Class names a match must have; those inside ``:not()`` may be absent."""
    plain = re.sub(r":(?:not|is|where)\((?:[^()]|\([^()]*\))*\)", "", selector)
    return (name.replace("\\", "") for name in CLASS.findall(plain))


def words_of(out):
    """The classes in the pages and every word in the scripts, which may set one."""
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
    words = words_of(out)
    for file in (file for pattern in STYLES for file in static.glob(pattern)):
        style = file.read_text(encoding="utf-8")
        file.write_text(without_unused(style, words), encoding="utf-8")


def setup(app):
    """Trim what Sphinx has copied, once all pages are written."""
    app.connect("build-finished", _trim, priority=900)
