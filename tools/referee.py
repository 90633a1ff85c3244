"""Compile all programs with kept results again, and compare.

    python tools/referee.py COMPILERS [--write] [file …]

Runs the notebooks, tests and modules that call `compilers.compile_for`, or the files
named, with the compilers in the folder COMPILERS (`tools/setup.py compilers`). These
calls determine which programs are compiled. It fails if a result differs from the kept
one, if a program has no kept result, or if a kept result belongs to no program any
more. With --write, it updates the kept results instead.
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distributions
from pathlib import Path

from shardmath.referee.compilers import golden_results
from shardmath.referee.compilers.targets import COMPILERS

ROOT = Path(__file__).parents[1]
PLACES = (
    "chapters/*.ipynb",
    "exercises/*.ipynb",
    "tests/**/test_*.py",
    "book/shardmath/**/*.py",
)
COMPILES = re.compile(r"\bcompile_for\b|\bimport\b[^#\n]*\bcompilers\b")
PYTEST = (
    "-q -n 2 -p no:cacheprovider -o addopts= --doctest-modules "
    "--nbval-lax --nbval-current-env --nbval-cell-timeout=900"
)


def that_compile() -> list[str]:
    """The files that use `compilers`."""
    return [
        str(path.relative_to(ROOT))
        for place in PLACES
        for path in sorted(ROOT.glob(place))
        if COMPILES.search(path.read_text("utf-8"))
    ]


def other_versions(folder: Path) -> str:
    """Which compilers in `folder` have other versions than the kept results, or ""."""
    path = [str(folder), *sys.path]
    found = {one.name: one.version for one in reversed([*distributions(path=path)])}
    wanted = {k: v for versions in COMPILERS.values() for k, v in versions.items()}
    return ", ".join(
        f"{name} is {found.get(name, 'missing')}, not {version}"
        for name, version in wanted.items()
        if found.get(name) != version
    )


def run(files: list[str], compilers: Path, results: Path) -> int:
    """Run `files`, so that each program is compiled and its result put in `results`."""
    path = [str(compilers.resolve()), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        golden_results.REFEREE: str(results),
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }
    command = [sys.executable, "-m", "pytest", *PYTEST.split(), *files]
    return subprocess.call(command, cwd=ROOT, env=environment)


def read(folder: Path) -> dict[str, dict]:
    """File name → result, for all results in a folder."""
    files = sorted(folder.glob("*.json"))
    return {file.name: json.loads(file.read_text("utf-8")) for file in files}


def lasting(row: dict) -> str:
    """The part of a result on which two runs must agree: everything but the seconds."""
    return golden_results.text(
        {name: value for name, value in row.items() if name != "seconds"}
    )


def differences(fresh: dict, stored: dict, everything: bool) -> list[str]:
    """The differences between kept and new results, a paragraph for each program."""
    found = []
    for name, row in fresh.items():
        if name not in stored:
            found.append(f"{name}: nothing is kept of this program")
        elif lasting(row) != lasting(stored[name]):
            texts = (lasting(one).splitlines() for one in (stored[name], row))
            lines = difflib.unified_diff(*texts, "kept", "now", n=0, lineterm="")
            found.append("\n    ".join([f"{name}: differs", *lines]))
    unused = stored.keys() - fresh.keys() if everything else ()
    return found + [f"{name}: no program compiles to it" for name in sorted(unused)]


def write(results: Path, fresh: dict, stored: dict, everything: bool, to: Path) -> None:
    """Keep the new results. Files that agree are not changed, not even the seconds."""
    to.mkdir(exist_ok=True)
    for name, row in fresh.items():
        if name not in stored or lasting(row) != lasting(stored[name]):
            (to / name).write_text((results / name).read_text("utf-8"), "utf-8")
    for name in stored.keys() - fresh.keys() if everything else ():
        (to / name).unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("compilers", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--write", action="store_true", help="keep what was compiled")
    args = parser.parse_intermixed_args()
    if wrong := other_versions(args.compilers):
        sys.exit(f"shardmath: {wrong}. `make clean`, then `make referee`")
    everything, to = not args.files, Path(str(golden_results.FOLDER))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        failed = run(args.files or that_compile(), args.compilers, results)
        fresh, stored = read(results), read(to)
        everything = everything and not failed
        found = differences(fresh, stored, everything)
        if args.write:
            write(results, fresh, stored, everything, to)
    for one in found:
        print(("written: " if args.write else "") + one)
    spent = f"{(time.monotonic() - began) / 60:.1f} min"
    slow = sorted(fresh.values(), key=lambda row: row["seconds"])[-3:]
    named = ", ".join(f"{r['name']} for {r['target']} {r['seconds']:g} s" for r in slow)
    total = sum(row["seconds"] for row in fresh.values())
    verdict = f"{len(found)} not as kept" if found else "all as kept"
    print(
        f"referee: {len(fresh)} programs compiled in {spent}, {total:.0f} s of CPU "
        f"time ({named}); {verdict}"
    )
    if failed:
        print("referee: some of the files above failed, so nothing was deleted")
    return int(bool(failed or (found and not args.write)))


if __name__ == "__main__":
    sys.exit(main())
