"""Gives every page a policy for what it may load and run.

With this content security policy, scripts and styles must come from the site. Inline
scripts run only in the head, which only templates write, and only if they are the same
as when the site was built, because the policy has their hashes. A script in the text,
for example in a notebook's output, does not run.

The page's Python runs under the same policy, because engine.js starts its worker from a
script in the page. A worker that is loaded from a file would have only the policy that
the server sends with this file.

The policy also works if a page is opened as a file, because browsers then treat all
files as 'self'.
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
        "style-src-attr": "'unsafe-inline'",  # KaTeX and pictures need it for layout
        "style-src": "'self' 'unsafe-inline'",  # for browsers without the two above
        "img-src": "'self' data:",  # pictures within style sheets
        "font-src": "'self'",
        "connect-src": "'self'",
        "worker-src": "'self' blob:",  # scripts in the page, and their imports
        "form-action": "'self'",
        "base-uri": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def guarded(page: str) -> str:
    """The HTML of a page with its policy right after its character set.

    Raises:
        ValueError: the page does not declare its character set.
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
    """Write the policies after all other changes to the pages."""
    app.connect("build-finished", _guard, priority=950)
