"""A small book with live figures and a question, whose server can misbehave."""

import functools
import http.server
import json
import threading
import time
from io import StringIO
from pathlib import Path

import pytest
from filelock import FileLock
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from shardmath.draw import figures
from shardmath.draw.figures import Choice
from shardmath.draw.live import StaticFigure, answer
from shardmath.exercises import CHECK_MIME, answers

DEFAULTS = figures.find("roofline").settings()
NUMBERS = [q for q, record in answers.questions().items() if hasattr(record, "unit")]
QUESTION = NUMBERS[0]
CONF = f"""
from shardmath_site.render import setup_live as setup
project, html_theme = "small", "basic"
extensions = ["myst_nb", "shardmath_site.numbering", "shardmath_site.progress"]
html_static_path = ["{Path(__file__).parents[2] / "book/_static"}"]
nb_execution_mode = "off"
"""
SMALL = "# Small\n\nText before.\n\n```{toctree}\n:hidden:\nchapters/07_far\n```"
FAR = '<div style="height: 3000px"></div>'  # what follows is not near the screen
START = 60_000  # ms that Python may take on a busy machine


def write(folder: Path) -> None:
    """The book's sources: a figure and a question; and, far down, three figures."""
    question = {"text/plain": "todo", CHECK_MIME: {"question": QUESTION}}
    pages = {
        "index": [SMALL, StaticFigure("roofline", DEFAULTS).bundle(), question],
        "chapters/07_far": [
            f"# Far\n\nSee [](#fig-07-live-roofline-2).\n\n{FAR}",
            StaticFigure("systolic", figures.find("systolic").settings()).bundle(),
            StaticFigure("roofline", DEFAULTS).bundle(),
            StaticFigure("roofline", DEFAULTS | {"B": 64}).bundle(),
        ],
    }
    (folder / "chapters").mkdir(parents=True)
    (folder / "conf.py").write_text(CONF, "utf-8")
    for name, parts in pages.items():
        cells = [
            new_markdown_cell(part) if isinstance(part, str) else shows(part)
            for part in parts
        ]
        for n, cell in enumerate(cells):
            cell["id"] = f"cell-{n}"
        python = {"language_info": {"name": "python"}}
        notebook = new_notebook(cells=cells, metadata=python)
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook), "utf-8")


def shows(bundle: dict):
    outputs = [new_output("execute_result", bundle, execution_count=1)]
    return new_code_cell("show", outputs=outputs, execution_count=1)


def build(folder: Path, builder: str = "html") -> Path:
    """The book of `folder`/source, as `builder` makes it."""
    source, out = folder / "source", folder / builder
    if not source.exists():
        write(source)
    told = StringIO()
    with docutils_namespace():
        trees = out / ".doctrees"
        app = Sphinx(source, source, out, trees, builder, status=None, warning=told)
        app.build()
    assert not told.getvalue()
    return out


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Path:
    """The small book, built once for all workers."""
    base = tmp_path_factory.getbasetemp()
    top = (base.parent if base.name.startswith("popen-") else base) / "small"
    top.mkdir(exist_ok=True)
    with FileLock(top / "lock"):
        if not (top / "built").exists():
            build(top)
            (top / "built").touch()
    return top / "html"


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder; `faults` maps an end of a path to what goes wrong there."""

    daemon_threads = True

    def handle_error(self, *args):
        """Browsers hang up when a page is closed."""

    def __init__(self, folder: Path):
        handler = functools.partial(Handler, directory=folder)
        super().__init__(("127.0.0.1", 0), handler)
        self.faults: dict[str, object] = {}
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}/index.html"
        self.far = self.url.replace("index", "chapters/07_far")
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.SimpleHTTPRequestHandler):
    """A fault is a status, a number of seconds (a float), or a dict of headers.

    A fault that is a text is sent behind the file, as more of a script.
    """

    def do_GET(self):
        self.server.asked.append(self.path)
        fault = self.fault()
        if isinstance(fault, int):
            return self.send_error(fault)
        if isinstance(fault, float):
            time.sleep(fault)
        if isinstance(fault, str):
            return self.send_with(fault)
        return super().do_GET()

    def send_with(self, text: str) -> None:
        content = Path(self.translate_path(self.path)).read_bytes() + text.encode()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(self.path))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def fault(self):
        faults = self.server.faults.items()
        return next((f for end, f in faults if self.path.endswith(end)), None)

    def end_headers(self):
        fault = self.fault()
        if self.server.faults:
            self.send_header("Cache-Control", "no-store")  # the next fault is seen too
        for name, value in fault.items() if isinstance(fault, dict) else ():
            self.send_header(name, value)
        super().end_headers()

    def guess_type(self, path):
        fault = self.fault()
        if isinstance(fault, dict) and "Content-Type" in fault:
            return "application/octet-stream"
        return super().guess_type(path)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def awake(browser, small):
    """One page whose Python runs already, for the tests that need no fault."""
    with Server(small) as server:
        page = browser.new_page()
        page.set_default_timeout(START)
        page.goto(server.url)
        slider(page, "D").press("ArrowRight")  # the further controls are open from here
        wait_for(page, D=8192)
        yield page
        page.close()
        server.shutdown()


@pytest.fixture
def ready(awake):
    """That page, all controls at their defaults."""
    for control in figures.find("roofline").controls:
        field, value = awake.locator(f"[name={control.name}]"), DEFAULTS[control.name]
        if isinstance(control, Choice):
            field.select_option(value)
        else:
            field.fill(str(control.stops.index(value)))
    wait_for(awake)
    return awake


@pytest.fixture
def server(small):
    with Server(small) as server:
        yield server
        server.shutdown()


@pytest.fixture
def view(browser, server):
    """Open the small book; keyword arguments are those of a browser context."""
    contexts = []

    def open_page(url=None, prepare=None, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(START)
        if prepare:
            prepare(page)
        page.goto(url or server.url)
        return page

    yield open_page
    for context in contexts:
        context.close()


def slider(page, name="B"):
    """The slider once it is switched on: a key pressed before that is lost.

    The further controls are opened, for it may be one of them.
    """
    opened = "(all) => all.forEach((details) => (details.open = true))"
    page.locator(".sm-more").evaluate_all(opened)
    return page.locator(f".sm-live fieldset:enabled input[name={name}]")


def shown(page) -> str:
    return page.locator(".sm-readout").first.inner_html()


SAME = """([line, table, svg]) => {
    const is = (name, html) => {
        const wanted = document.createElement("div");
        wanted.innerHTML = html;
        return document.querySelector(name).innerHTML === wanted.innerHTML; };
    return is(".sm-line", line) && is(".sm-readout", table)
        && is(".sm-picture", svg); }"""


def expected(**params) -> list[str]:
    """What Python here says for `params`, for `SAME`."""
    wanted = answer("roofline", DEFAULTS | params)
    return [wanted["line"], wanted["table"], wanted["svg"]]


def wait_for(page, **params):
    """Until the page shows exactly what Python here says for `params`."""
    page.wait_for_function(SAME, arg=expected(**params))


def message(page) -> str:
    return page.locator(".sm-message").inner_text()


def expect_failure(page, words: str):
    """The message names the reason; picture and read-out are those of the build."""
    page.locator(".sm-message", has_text="could not start").wait_for()
    assert words in message(page)
    assert "keeps its last setting" in message(page)
    wait_for(page)
    assert page.locator(".sm-live").get_attribute("aria-busy") is None
