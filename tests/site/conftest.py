"""The built site, served; and pages of a real browser that complain."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
from docutils import nodes
from filelock import FileLock
from live_book import awake, ready, server, small, view  # noqa: F401  fixtures
from pdf import SHELL, find_chromium
from playwright.sync_api import Error, sync_playwright
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from shardmath_site.builder import FINISHED

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"
SOURCES = ("book", "chapters", "exercises", "_config.yml", "_toc.yml", "package.json")
PAGE_EXTENSIONS = tuple(
    f"shardmath_site.{name}"
    for name in ("folding", "formulas", "notes", "numbering", "units")
)
NO_BROWSER = (
    "No Chromium found, and neither `playwright install chromium` nor apt could "
    "install one: install Chromium and run again."
)
# Each window would load pages of the browser's own besides: half of what a page costs.
# The list replaces Playwright's, so what concerns us of it stands here again.
LEAN = (
    "--disable-background-networking",
    "--disable-gpu",
    "--js-flags=--liftoff-only",  # Python of a page starts for a fifth less
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,"
    "AimEnabled,HttpsUpgrades,OptimizationHints,PaintHolding,PreconnectToSearch",
)


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the built site; built first where it is older than its sources."""
    HTML.parent.mkdir(exist_ok=True)
    with FileLock(HTML.parent / "site.lock"):
        if _is_stale():
            _build()
    return HTML


def _is_stale() -> bool:
    built = HTML / FINISHED
    if not built.exists():
        return True
    tops = [ROOT / name for name in SOURCES]
    files = [f for top in tops for f in (top.rglob("*") if top.is_dir() else [top])]
    used = (f for f in files if f.is_file() and "__pycache__" not in f.parts)
    return max(f.stat().st_mtime for f in used) > built.stat().st_mtime


def _build() -> None:
    builder = Path(sys.executable).with_name("jupyter-book")
    command = [builder, "build", ".", "-W", "-n", "--keep-going", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(f"The site does not build:\n{done.stderr[-4000:]}", pytrace=False)


class _Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
        ".woff2": "font/woff2",
        ".svg": "image/svg+xml",
    }

    def log_message(self, *args):
        pass


class Built(NamedTuple):
    """One page that was built by itself."""

    html: str
    doctree: nodes.document
    warnings: str


@pytest.fixture
def build_page(tmp_path, site):
    """Build one page of Markdown, or a notebook, as ``index`` or under a name."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "node_modules").symlink_to(ROOT / "node_modules")

    def run(text, suffix="md", name="index"):
        file = source / f"{name}.{suffix}"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        warnings = (tmp_path / "warnings").open("w+", encoding="utf-8")
        with docutils_namespace(), warnings:
            app = Sphinx(
                source,
                None,
                tmp_path / "html",
                tmp_path / "doctrees",
                "html",
                status=None,
                warning=warnings,
                freshenv=True,
                confoverrides={
                    "root_doc": name,
                    "extensions": ["myst_nb", *PAGE_EXTENSIONS],
                    "nb_execution_mode": "off",
                    "myst_enable_extensions": ["dollarmath", "amsmath"],
                    "exclude_patterns": ["node_modules"],
                    "html_math_renderer": "shardmath",
                    "html_theme": "basic",
                },
            )
            app.build()
            warnings.seek(0)
            html = (tmp_path / "html" / f"{name}.html").read_text("utf-8")
            return Built(html, app.env.get_doctree(name), warnings.read())

    return run


@pytest.fixture(scope="session")
def site_url(site):
    """Where the site is served, with a slash at the end."""
    handler = functools.partial(_Handler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}/"
        serving.shutdown()


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium: the system's, Playwright's, or one that gets installed.

    The one without windows first, which takes a tenth less time over a page.
    """
    with sync_playwright() as playwright:
        path = _find_browser(playwright) or _install_browser(playwright)
        if path is None:
            pytest.fail(NO_BROWSER, pytrace=False)
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        args = [*LEAN, *["--no-sandbox"] * is_root]
        browser = playwright.chromium.launch(executable_path=path, args=args)
        yield browser
        browser.close()


def _find_browser(playwright) -> str | None:
    return shutil.which(SHELL) or find_chromium(playwright)


def _install_browser(playwright) -> str | None:
    """The path of a browser that was installed; one worker does it, the others wait."""
    attempts = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if shutil.which("apt-get") and os.geteuid() == 0:
        install = ["apt-get", "install", "-y"]
        attempts += [["apt-get", "update"], [*install, SHELL], [*install, "chromium"]]
    with FileLock(HTML.parent / "browser.lock"):
        found = _find_browser(playwright)
        for attempt in attempts:
            if not found:
                subprocess.run(attempt, capture_output=True)
                found = _find_browser(playwright)
    return found


@pytest.fixture
def new_page(browser, site_url):
    """Open a page: ``new_page(width=390, scheme="dark", scripts=False)``.

    At the end the test fails if any of its pages logged an error, threw, or asked
    for anything that is not the site's.
    """
    contexts, complaints = [], []

    def new(width=1280, height=900, scheme="light", scripts=True):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=scripts,
        )
        contexts.append(context)
        return _watched(context, site_url, complaints)

    yield new
    for context in contexts:
        try:
            context.close()
        except Error as error:
            complaints.append(str(error))
    _fail_of(complaints)


def _watched(context, site_url: str, complaints: list[str]):
    """A page of the context; what it complains of is added to the list."""
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(f"threw: {error}"))
    page.on("console", lambda m: m.type == "error" and complaints.append(m.text))
    own = (site_url, "file:", "data:", "blob:", "about:")
    context.on(
        "request",
        lambda request: (
            request.url.startswith(own)
            or complaints.append(f"foreign request: {request.url}")
        ),
    )
    return page


def _fail_of(complaints: list[str]) -> None:
    told = "\n".join(dict.fromkeys(complaints))
    complaints.clear()
    if told:
        pytest.fail(told, pytrace=False)


@pytest.fixture
def page(new_page):
    """One page, 1280 wide, light, scripts on; see `new_page`."""
    return new_page()


@pytest.fixture(scope="session")
def _unscripted(browser, site_url):
    with browser.new_context(java_script_enabled=False) as context:
        complaints = []
        yield _watched(context, site_url, complaints), complaints


@pytest.fixture
def unscripted(_unscripted):
    """A page without scripts, of which nothing is left behind: one for all tests."""
    page, complaints = _unscripted
    yield page
    _fail_of(complaints)
