"""How long a reader waits for a live figure, and what comes over the wire.

    .venv/bin/python benchmarks/live.py        (after `make book`; writes live.json)

Times are in milliseconds, from a key on a control to the new picture, in headless
Chromium against a server on this machine that compresses as hosts do. A first visit has
an empty profile; a later visit has the browser's caches, but starts Python again, as
every page does. `carried` is a stop whose answer the page brings; all else is asked of
Python: at once, as the first thing that a reader does on a page that starts Python only
then, or on a line of 10 Mb/s and 40 ms. `redraws` has a control of every figure of the
book, once Python runs.
"""

import functools
import gzip
import http.server
import json
import os
import platform
import shutil
import statistics
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
HTML = ROOT / "_build" / "html"
PAGE = "chapters/01_rooflines.html"
MIME = "application/vnd.shardmath.live+json"
RUNS = 3
TARGETS = {"first_visit": 2500, "later_visit": 1000, "update": 50, "line_first": 4000}
LINE = {
    "offline": False,
    "latency": 40,
    "downloadThroughput": 10e6 / 8,
    "uploadThroughput": 10e6 / 8,
}
# Python waits for a hand, so that its start is in the time.
SAVING = "Object.defineProperty(navigator, 'connection', {value: {saveData: true}})"

# Moves the slider `name` of a figure to `value`; resolves to the time until the picture
# is new.
MOVE = """([name, value, figure = 0]) => new Promise((resolve) => {
    const block = document.querySelectorAll(".sm-live")[figure];
    const started = performance.now();
    new MutationObserver((_, observer) => {
        observer.disconnect();
        resolve(performance.now() - started);
    }).observe(block.querySelector(".sm-picture"), { childList: true });
    const control = block.querySelector(`[name=${name}]`);
    control.dispatchEvent(new FocusEvent("focusin", { bubbles: true }));
    control.value = value;
    control.dispatchEvent(new Event("input", { bubbles: true }));
})"""


class Host(http.server.SimpleHTTPRequestHandler):
    """Compresses what hosts compress, and says how long it may be kept."""

    protocol_version = "HTTP/1.1"
    sent: dict[str, int]

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        content, packed = path.read_bytes(), path.suffix != ".pack"
        if packed:
            content = compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        self.send_header("Cache-Control", "max-age=600")
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.sent[self.path] = len(content)
        self.wfile.write(content)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args):
        """Browsers hang up when a page is closed."""


@functools.cache
def compressed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), 6)


def opened(context, url: str, slow: bool = False, waiting: bool = True):
    """A page with its controls on; where it is `waiting`, Python is not started yet."""
    page = context.new_page()
    if waiting:
        page.add_init_script(SAVING)
    if slow:
        context.new_cdp_session(page).send("Network.emulateNetworkConditions", LINE)
    page.goto(url)
    page.wait_for_selector(".sm-controls:not(:disabled)", state="attached")
    return page


def first_answer(context, url: str, control: str = "D", slow: bool = False) -> float:
    """Milliseconds to the first answer on a page that was just opened."""
    page = opened(context, url, slow)
    waited = page.evaluate(MOVE, [control, 3])
    page.close()
    return waited


def updates(context, url: str) -> list[float]:
    """Milliseconds of each of 50 updates of a figure that runs."""
    page = opened(context, url)
    page.evaluate(MOVE, ["D", 3])
    found = [page.evaluate(MOVE, ["D", n % 9]) for n in range(50)]
    page.close()
    return found


# For each figure of a page its name, and a slider whose answers the page lacks.
SLIDERS = """() => [...document.querySelectorAll(".sm-live")].map((block) => {
    const played = block.querySelector(".sm-player")?.dataset.plays;
    const sliders = [...block.querySelectorAll("input[type=range]:enabled")];
    const first = block.querySelector(".sm-row [name]");
    const free = sliders.filter((s) => s !== first && s.name !== played);
    const chosen = free[0] ?? sliders[0];
    return [block.dataset.figure, chosen.name, Number(chosen.max)]; })"""


def redraws(url: str) -> dict[str, dict[str, float]]:
    """Milliseconds of 20 updates of every figure, by its name."""
    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        context = browser.new_context(reduced_motion="reduce")
        for notebook in sorted(ROOT.glob("[bc]*/*.ipynb")):
            if MIME not in notebook.read_text("utf-8"):
                continue
            place = notebook.relative_to(ROOT).with_suffix(".html")
            page = opened(context, f"{url}{place}")
            for figure, (name, control, last) in enumerate(page.evaluate(SLIDERS)):
                stops = [n % (last + 1) for n in range(21)]
                times = [page.evaluate(MOVE, [control, n, figure]) for n in stops]
                found[name] = summary(times[1:])
            page.close()
        browser.close()
    return found


def summary(times: list[float]) -> dict[str, float]:
    return {
        "min": round(min(times), 1),
        "median": round(statistics.median(times), 1),
        "max": round(max(times), 1),
    }


def measure(url: str) -> dict[str, dict[str, float]]:
    names = ("carried", "first_visit", "later_visit", "line_first", "line_later")
    found = {name: [] for name in (*names, "update")}
    with sync_playwright() as playwright:
        launch = functools.partial(
            playwright.chromium.launch_persistent_context,
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-background-networking"],
        )
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as profile:
                context = launch(profile)
                found["carried"].append(first_answer(context, url, "B"))
                context.close()
            with tempfile.TemporaryDirectory() as profile:
                context = launch(profile)
                found["first_visit"].append(first_answer(context, url))
                first_answer(context, url)  # Chromium keeps compiled wasm from here on
                found["later_visit"].append(first_answer(context, url))
                found["update"] += updates(context, url)
                context.close()
            with tempfile.TemporaryDirectory() as profile:
                context = launch(profile)
                found["line_first"].append(first_answer(context, url, slow=True))
                first_answer(context, url)
                found["line_later"].append(first_answer(context, url, slow=True))
                context.close()
    return {name: summary(times) for name, times in found.items()}


def weights(url: str, sent: dict[str, int]) -> dict[str, int]:
    """Bytes on the wire: of the page, with a figure near, and after it was used."""
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        sent.clear()
        page = opened(browser.new_context(), url)
        page.wait_for_load_state("networkidle")
        found = {"before_near": sum(sent.values())}
        page.locator(".sm-live").first.hover()
        page.wait_for_load_state("networkidle")
        page.evaluate(MOVE, ["D", 3])
        found["near"] = sum(sent.values()) - found["before_near"]
        carried = (size for path, size in sent.items() if path.endswith(".json"))
        found["of_it_carried_answers"] = sum(carried)
        browser.close()
    return found


def sizes() -> dict[str, dict[str, int]]:
    """Bytes of every file of the runtime, as they are and with gzip -6."""
    folder = HTML / "_static" / "live"
    return {
        path.name: {
            "bytes": path.stat().st_size,
            "gzip": len(gzip.compress(path.read_bytes(), 6)),
        }
        for path in sorted(folder.glob("*/*"))
    }


def main() -> None:
    sent: dict[str, int] = {}
    host = type("Served", (Host,), {"sent": sent})
    handler = functools.partial(host, directory=HTML)
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_port}/"
        redrawn = redraws(root)
        wire = weights(root + PAGE, sent)
        times = measure(root + PAGE)
        server.shutdown()
    result = {
        "cpus": os.cpu_count(),
        "runs": RUNS,
        "load": round(os.getloadavg()[0], 1),
        "system": platform.system(),
        "targets_ms": TARGETS,
        "times_ms": times,
        "redraws_ms": redrawn,
        "wire_bytes": wire,
        "files": sizes(),
    }
    text = json.dumps(result, indent=2) + "\n"
    Path(__file__).with_suffix(".json").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
