"""Weigh the built site and time its build: writes site.json beside this file.

Run it by `make bench`; with `--reading` it only prints how each chapter reads.
Lighthouse comes from package.json here, by `npm ci`.
"""

import functools
import gzip
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import yaml
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parent
HTML = ROOT / "_build" / "html"
sys.path.insert(0, str(ROOT / "tests" / "site"))

from measure import reading  # noqa: E402

RUNS = 3  # of Lighthouse: one run in a busy moment says little
METRICS = ("first-contentful-paint", "largest-contentful-paint", "total-blocking-time")
COMPRESSED = {".html", ".css", ".js", ".mjs", ".svg", ".json", ".wasm", ".txt"}


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves as a web host does: text compressed, everything cacheable."""

    def log_message(self, *args):
        """Stay silent."""

    def do_GET(self):
        """Send a file, gzipped where that is usual."""
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        body = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Cache-Control", "max-age=600")
        if path.suffix in COMPRESSED:
            body = gzip.compress(body, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def documents(entry: dict) -> list[str]:
    """The place of every document of the table of contents."""
    found = ["index"] if "root" in entry else []
    found += [entry["file"]] if "file" in entry else []
    for key in ("parts", "chapters", "sections"):
        for child in entry.get(key, []):
            found += documents(child)
    return found


def weigh(browser, url: str) -> dict:
    """Bytes over the wire and requests of one page, before any touch."""
    page = browser.new_page()
    sizes = []
    page.on("requestfinished", lambda r: sizes.append(r.sizes()["responseBodySize"]))
    page.goto(url, wait_until="networkidle")
    page.close()
    return {"bytes": sum(sizes), "requests": len(sizes)}


def read(browser, url: str, chapters: list[str]) -> dict:
    """How each chapter reads on a screen: code, pictures, what should be better."""
    found = {}
    for name in chapters:
        page = browser.new_page()
        measured = reading(page, f"{url}{name}.html")
        page.close()
        found[name] = {
            "screens": round(measured.screens, 1),
            "open code, share": round(measured.code, 3),
            "longest stretch without a picture, screens": round(measured.stretch, 1),
            "picture on the first screen": measured.opens_with_picture,
        }
        print(
            f"{name}: {measured.screens:.1f} screens, open code {measured.code:.0%}, "
            f"{measured.stretch:.1f} screens without a picture;",
            "; ".join(measured.faults()) or "as it should be",
        )
    return found


def closed(browser, url: str, chapters: list[str]) -> dict:
    """Screens of 1280 x 900 that each chapter has before any guess is answered."""
    found = {}
    for name in chapters:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{url}{name}.html")
        high = page.evaluate("document.documentElement.scrollHeight / innerHeight")
        found[name] = round(high, 1)
        page.close()
    return found


def lighthouse(url: str, chromium: str) -> dict:
    """Lighthouse's scores of one page, 0 to 100: of all runs, that in the middle."""
    runs = sorted(
        (one_lighthouse(url, chromium) for _ in range(RUNS)),
        key=lambda scores: scores["performance"],
    )
    return runs[RUNS // 2]


def one_lighthouse(url: str, chromium: str) -> dict:
    """Lighthouse's scores of one page in one run."""
    if not (HERE / "node_modules").is_dir():
        subprocess.run(["npm", "ci", "--silent"], cwd=HERE, check=True)
    flags = "--headless=new --no-sandbox --disable-background-networking"
    command = ["npx", "lighthouse", url, "--quiet", "--output=json"]
    command.append(f"--chrome-flags={flags}")
    done = subprocess.run(
        command,
        cwd=HERE,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"CHROME_PATH": chromium},
    )
    report = json.loads(done.stdout)
    scores = {k: round(100 * v["score"]) for k, v in report["categories"].items()}
    for name in METRICS:
        scores[name] = report["audits"][name]["displayValue"].replace("\xa0", " ")
    return scores


def build(tree: Path) -> float:
    """Seconds of one build of `tree`."""
    builder = Path(sys.executable).with_name("jupyter-book")
    start = time.perf_counter()
    command = [builder, "build", ".", "--keep-going", "--quiet"]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    return round(time.perf_counter() - start, 1)


def build_times() -> dict:
    """A cold and a warm build of the book, in a copy of its sources."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("book", "chapters", "exercises"):
            shutil.copytree(ROOT / name, tree / name)
        for name in ("_config.yml", "_toc.yml"):
            shutil.copy(ROOT / name, tree)
        (tree / "node_modules").symlink_to(ROOT / "node_modules")
        return {"cold": build(tree), "warm": build(tree)}


def main() -> None:
    """Measure, print, and keep the result."""
    names = documents(yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8")))
    chapter = next(name for name in names if name.startswith("chapters/"))
    handler = functools.partial(Handler, directory=HTML)
    result = {"cpus": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        with sync_playwright() as playwright:
            own = playwright.chromium.executable_path
            chromium = shutil.which("chromium") or own
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox"]
            )
            chapters = [name for name in names if name.startswith("chapters/")]
            result["reading"] = read(browser, url, chapters)
            result["screens with guesses closed"] = closed(browser, url, chapters)
            if "--reading" in sys.argv:
                return
            pages = {name: weigh(browser, f"{url}{name}.html") for name in names}
            browser.close()
        result["gzip"] = pages
        result[f"lighthouse, mobile, median of {RUNS}"] = {
            name: lighthouse(f"{url}{name}.html", chromium)
            for name in (names[0], chapter)
        }
        server.shutdown()
    result["build, seconds"] = build_times()
    text = json.dumps(result, indent=2)
    (HERE / "site.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
