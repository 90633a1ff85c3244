"""Find out which cells of the chapters can be tried in a page: `make tries`.

    python tools/tries.py [--all]

The cells of changed notebooks, or of all, run in the page's Python, under Node. The
result is in book/shardmath_site/tries.json.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "book"))

from shardmath_site import runtime, trying  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="also unchanged notebooks")
    again = parser.parse_args().all
    kept = json.loads(trying.KEPT.read_text("utf-8")) if trying.KEPT.exists() else {}
    cells = {
        f"chapters/{path.stem}": trying.code_cells(json.loads(path.read_text("utf-8")))
        for path in sorted(ROOT.glob("chapters/*.ipynb"))
    }
    digests = {name: trying.digest(found) for name, found in cells.items()}
    asked = {
        name: found
        for name, found in cells.items()
        if again or kept.get(name, {}).get("digest") != digests[name]
    }
    if asked:
        for name, found in found_by_running(asked).items():
            ids = {cell["index"]: cell["id"] for cell in cells[name]}
            kept[name] = {
                "digest": digests[name],
                "cells": {
                    ids[int(index)]: [ids[other] for other in needs]
                    for index, needs in found.items()
                },
            }
    kept = {name: kept[name] for name in cells}
    trying.KEPT.write_text(written(kept), "utf-8")


def found_by_running(cells: dict[str, list[dict]]) -> dict[str, dict[str, list[int]]]:
    """Chapter → the cells that can be tried, each with the cells that it needs."""
    packs = runtime.packed(runtime.pages())
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder, "cells.json")
        given.write_text(json.dumps(cells), "utf-8")
        command = [runtime.node(), runtime.HERE / "offered.mjs", runtime.PYODIDE]
        done = subprocess.run(
            [*command, packs, given], stdout=subprocess.PIPE, check=True
        )
    return json.loads(done.stdout)


def written(kept: dict[str, dict]) -> str:
    """The result as JSON, with a line for each chapter."""
    rows = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in kept.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    main()
