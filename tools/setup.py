"""Set up the project's own environment: the steps behind `make`, one clear line each.

    python tools/setup.py venv DIR | lock DIR FILE | package DIR | node DIR

Runs on the system's Python before anything is installed: standard library only, and
syntax that an old Python can read far enough to be told that it is too old.
"""

import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
NO_WHEEL = (
    "Without a network nothing can be fetched. With one, a package may have no wheel "
    "for this Python and system: 3.11 to 3.13 are covered (see the lines above)."
)


def run(command, hint):
    """Run `command`; if it fails, say in one line what is likely missing and stop."""
    if subprocess.call(command):
        sys.exit("shardmath: `{}` failed. {}".format(" ".join(command[:4]), hint))


def pip(folder):
    """uv where it is there, plain pip where it is not."""
    python = os.path.join(folder, "bin", "python")
    if shutil.which("uv"):
        return ["uv", "pip", "install", "--quiet", "--python", python]
    return [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def venv(folder):
    if sys.version_info < OLDEST:
        sys.exit(
            "shardmath: Python {}.{} is too old, 3.11 or newer is needed. Name another "
            "one: make book PYTHON=python3.12".format(*sys.version_info)
        )
    hint = "On Debian and Ubuntu the package python3-venv brings it."
    run([sys.executable, "-m", "venv", "--clear", folder], hint)


def lock(folder, file):
    """Install exactly what `file` lists, each download checked against its hash."""
    print(f"shardmath: installing {file} into {folder}", flush=True)
    run([*pip(folder), "--require-hashes", "-r", file], NO_WHEEL)


def package(folder):
    """Make `import shardmath` mean this checkout."""
    run([*pip(folder), "--no-deps", "--editable", "."], NO_WHEEL)


def node(folder):
    """`npm ci`, with Node from the system or else, by pip, from the environment."""
    if not (shutil.which("npm") and shutil.which("node")):
        print("shardmath: no Node.js here, installing it by pip", flush=True)
        hint = "Install Node.js 20 or newer, or check the network."
        run([*pip(folder), "--require-hashes", "-r", "requirements-node.txt"], hint)
    npm = shutil.which("npm") or os.path.join(folder, "bin", "npm")
    hint = "It fetches math, fonts and the page's Python: check the network."
    run([npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], hint)


if __name__ == "__main__":
    steps = {"venv": venv, "lock": lock, "package": package, "node": node}
    if len(sys.argv) < 3 or sys.argv[1] not in steps:
        sys.exit(__doc__)
    steps[sys.argv[1]](*sys.argv[2:])
