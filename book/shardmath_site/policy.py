"""What a page may load and run: its own, and nothing else.

Every page carries a content security policy. Scripts and styles come from the site;
those written into a page run only in its head, where templates alone write, and only as
they were when the site was built: the policy has their hashes. A script that comes into
the text, by a notebook's output or otherwise, does not run.

The page's Python runs under the same policy: engine.js starts its worker from a script
that the page holds, and such a worker has its page's policy, where one that is loaded
has only what its server sends with it.

Opened from a folder, a page has the policy too: browsers take 'self' to be all files.
"""

import hashlib
import re
from base64 import b64encode
from pathlib import Path

INLINE = re.compile(r"<(script|style)\b(?![^>]*\bsrc=)[^>]*>(.*?)</\1>", re.DOTALL)
CHARSET = re.compile(r'<meta charset="[^"]*"\s*/?>')
META = '<meta http-equiv="Content-Security-Policy" content="{}"/>'
WRITTEN = re.compile(r"\s*" + re.escape(META).replace(r"\{\}", '[^"]*'))


def policy(head: str) -> str:
    """The policy of a page with this head.

    >>> policy("<head><script>go()</script></head>").split("; ")[1].split()[-1]
    "'sha256-5KYv+PUboo5h+0+YAtGRPbwv5d/QxzHslP4YGnUaxRw='"
    """
    allowed = {"script": ["'self'", "'wasm-unsafe-eval'"], "style": ["'self'"]}
    for kind, content in INLINE.findall(head):
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        allowed[kind].append(f"'sha256-{digest}'")
    rules = {
        "default-src": "'none'",
        "script-src": " ".join(allowed["script"]),
        "style-src-elem": " ".join(allowed["style"]),
        "style-src-attr": "'unsafe-inline'",  # KaTeX and pictures place by it
        "style-src": "'self' 'unsafe-inline'",  # where the two above are not known
        "img-src": "'self' data:",  # pictures within style sheets
        "font-src": "'self'",
        "connect-src": "'self'",
        "worker-src": "'self' blob:",  # what the page holds, and what that imports
        "form-action": "'self'",
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def guarded(page: str) -> str:
    """The HTML of a page with its policy, first thing in its head.

    Raises:
        ValueError: it does not say its character set, behind which the policy stands.
    """
    bare = WRITTEN.sub("", page)  # of an earlier build
    place = CHARSET.search(bare)
    if not place:
        raise ValueError("no <meta charset> in the page")
    meta = META.format(policy(bare.partition("</head>")[0]))
    return f"{bare[: place.end()]}\n{meta}{bare[place.end() :]}"


def _guard(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    for file in Path(app.outdir).rglob("*.html"):
        before = file.read_text(encoding="utf-8")
        after = guarded(before)
        if after != before:
            file.write_text(after, encoding="utf-8")


def setup(app):
    """Write the policies when nothing else changes the pages any more."""
    app.connect("build-finished", _guard, priority=950)
