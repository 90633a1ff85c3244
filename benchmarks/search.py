"""Time the search of the built site, key by key: writes search.json beside this file.

Run it by `make bench`. A key's time goes from the key to the results laid out.
"""

import gzip
import json
import os
import shutil
import statistics
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
HTML = HERE.parent / "_build" / "html"
QUERIES = (
    "critical batch",
    "ring",
    "quantization",
    "reduce scatter",
    "tensor parallel",
)
TYPE = """([selector, queries]) => {
    const field = document.querySelector(selector);
    const times = [];
    for (const query of queries)
        for (let end = 1; end <= query.length; end++) {
            const began = performance.now();
            field.value = query.slice(0, end);
            field.dispatchEvent(new Event("input"));
            document.body.getBoundingClientRect();
            times.push(performance.now() - began); }
    return times; }"""
FIELD = "main form.bd-search input"


def main() -> None:
    """Measure in a page that is opened as a file, and say what was found."""
    script = (HTML / "_static" / "sections.js").read_bytes()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.goto((HTML / "search.html").as_uri() + "?q=ring")
        page.locator("main [role=option]").first.wait_for()
        times = page.evaluate(TYPE, [FIELD, QUERIES])
        browser.close()
    found = {
        "load": round(os.getloadavg()[0], 1),
        "index_bytes": len(script),
        "index_wire_bytes": len(gzip.compress(script, 6)),
        "keys": len(times),
        "median_ms": round(statistics.median(times), 1),
        "slowest_ms": round(max(times), 1),
    }
    (HERE / "search.json").write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
