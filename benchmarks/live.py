"""How long a reader waits for a live figure, and what comes over the wire.

    .venv/bin/python benchmarks/live.py        (after `make book`; writes live.json)

Times are in milliseconds, from the first key on a control to the new picture, in
headless Chromium against a server on this machine. A first visit has an empty profile;
a later visit has the browser's caches, but starts Python again, as every page does.
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
RUNS = 5
TARGETS = {"first_visit": 2500, "later_visit": 1000, "update": 50}

# Moves the slider `name` to `value`; resolves to the time until the picture is new.
MOVE = """([name, value]) => new Promise((resolve) => {
    const block = document.querySelector(".sm-live");
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


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def visit(context, url: str) -> float:
    """Milliseconds to the first answer on a page that was just opened."""
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector(".sm-controls:not(:disabled)")
    waited = page.evaluate(MOVE, ["B", 3])
    page.close()
    return waited


def updates(context, url: str) -> list[float]:
    """Milliseconds of each of 50 updates of a figure that runs."""
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector(".sm-controls:not(:disabled)")
    page.evaluate(MOVE, ["B", 3])
    found = [page.evaluate(MOVE, ["B", n % 17]) for n in range(50)]
    page.close()
    return found


def summary(times: list[float]) -> dict[str, float]:
    return {
        "min": round(min(times), 1),
        "median": round(statistics.median(times), 1),
        "max": round(max(times), 1),
    }


def measure(url: str) -> dict[str, dict[str, float]]:
    first, later = [], []
    with sync_playwright() as playwright:
        launch = functools.partial(
            playwright.chromium.launch_persistent_context,
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-background-networking"],
        )
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as profile:
                context = launch(profile)
                first.append(visit(context, url))
                visit(context, url)  # Chromium keeps compiled wasm from here on
                later.append(visit(context, url))
                moved = updates(context, url)
                context.close()
    return {
        "first_visit": summary(first),
        "later_visit": summary(later),
        "update": summary(moved),
    }


def sizes() -> dict[str, dict[str, int]]:
    """Bytes of every file of the runtime, as they are and with gzip -6."""
    folder = HTML / "_static" / "live"
    found = {}
    for path in sorted(folder.glob("*/*")):
        content = path.read_bytes()
        found[path.name] = {
            "bytes": len(content),
            "gzip": len(gzip.compress(content, 6)),
        }
    return found


def main() -> None:
    handler = functools.partial(Quiet, directory=HTML)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        times = measure(f"http://127.0.0.1:{server.server_port}/{PAGE}")
        server.shutdown()
    files = sizes()
    result = {
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": platform.system(),
        "targets_ms": TARGETS,
        "times_ms": times,
        "wire_bytes_gzip": sum(file["gzip"] for file in files.values()),
        "files": files,
    }
    text = json.dumps(result, indent=2) + "\n"
    Path(__file__).with_suffix(".json").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
