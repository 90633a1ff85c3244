"""Set up the project's own environment: the steps behind `make`, one clear line each.

    python tools/setup.py python | notebook | site | all | node | book FOLDER
    python tools/setup.py compilers FOLDER

One `make` at a time: a second one waits, and does not do again what the first has done.
Runs on the system's Python before anything is installed: standard library only, and
syntax that any Python can read far enough to be told that it is too old.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time

OLDEST = (3, 11)
COST = {  # measured without a cache: x86-64 Linux, Python 3.11
    "requirements-notebook.txt": " (about 1.0 GB, a minute)",
    "requirements-referee.txt": " (about 1.1 GB, a minute)",
    "requirements-site.txt": " (about 0.2 GB, half a minute)",
    "requirements.txt": " (about 1.3 GB, a minute or two)",
}
BUILD = "requirements-build.txt"  # hatchling, and what it needs
ROOM = 2000  # MB: with less on the disk, what fails may fail for that
LOCK = os.path.join("_build", "site.lock")  # tests that build the site take it too
NO_WHEEL = (
    "Without a network nothing can be fetched. With one, a package may have no wheel "
    "for this Python and system: 3.11 to 3.13 are covered (see the lines above)."
)


def say(line):
    sys.stdout.write("shardmath: {}\n".format(line))
    sys.stdout.flush()


def run(command, hint):
    """Run `command`; if it fails, say in one line what is likely missing and stop."""
    if subprocess.call(command):
        told = "shardmath: `{}` failed. {}".format(" ".join(command[:4]), hint)
        sys.exit(" ".join([told] + scarce()))


def scarce():
    """What to say of a disk that is nearly full, on which a step may have failed."""
    said = "Only {:.0f} MB are free on the disk of {}: that may be why."
    places = (os.getcwd(), tempfile.gettempdir())
    free = [(shutil.disk_usage(place).free / 1e6, place) for place in places]
    return [said.format(*found) for found in free if found[0] < ROOM][:1]


def alone(step, folder, marker):
    """Run `step(folder)` and write its `marker` while no other `make` is at work here.

    A step whose marker was written while this one waited is not done again.
    """
    import fcntl  # not on Windows, where `make` is that of WSL

    os.makedirs(os.path.dirname(LOCK), exist_ok=True)
    began = time.time()
    with open(LOCK, "a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another make is at work here; waiting until it has done this step")
            fcntl.flock(held, fcntl.LOCK_EX)
        if marker and os.path.exists(marker) and os.path.getmtime(marker) >= began:
            return
        step(folder)
        if marker:
            mark(marker)


def mark(marker):
    """Leave an empty file, or make it new."""
    with open(marker, "w"):
        pass


def home_is_writable():
    return os.access(os.path.expanduser("~"), os.W_OK)


def pip(folder):
    """uv where it is there, plain pip where it is not."""
    python = os.path.join(folder, "bin", "python")
    if shutil.which("uv"):
        cache = [] if home_is_writable() else ["--cache-dir", folder + "/cache/uv"]
        return ["uv", "pip", "install", "--quiet"] + cache + ["--python", python]
    return [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def size(folder):
    """Megabytes of all files under `folder`."""
    files = [os.path.join(at, n) for at, _, names in os.walk(folder) for n in names]
    return sum(os.lstat(file).st_size for file in files) / 1e6


def packages(file, folder):
    """Exactly what `file` lists, each download checked against its hash.

    And `import shardmath` means this checkout. What installs it is locked as well: the
    step that does so runs what is installed by then, and fetches nothing.
    """
    began = time.time()
    say("installing {} into {}{}".format(file, folder, COST.get(file, "")))
    run(pip(folder) + ["--require-hashes", "-r", file, "-r", BUILD], NO_WHEEL)
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    run(pip(folder) + offline + ["--editable", "."], "The lines above say why.")
    spent = time.time() - began
    say("done in {:.0f} s; {} has {:.0f} MB".format(spent, folder, size(folder)))


def python(folder):
    """An environment of this Python."""
    hint = "On Debian and Ubuntu the package python3-venv brings it."
    run([sys.executable, "-m", "venv", "--clear", folder], hint)


def notebook(folder):
    """What runs the notebooks, and grades them."""
    packages("requirements-notebook.txt", folder)


def site(folder):
    """What builds the site."""
    packages("requirements-site.txt", folder)


def everything(folder):
    """Both, and what tests them; `lab` and `book` then find their parts done."""
    packages("requirements.txt", folder)
    for part in ("notebook", "site"):
        mark(STEPS[part][1].format(folder))


def compilers(folder):
    """XLA's compilers for TPUs and GPUs, in a folder of their own.

    JAX looks for accelerators wherever it sees them, so that only `make referee` and
    `make lab` put this folder on their path.
    """
    file, apart = "requirements-referee.txt", os.path.join(folder, "compilers")
    machine = "{} {}".format(platform.system(), platform.machine())
    if machine != "Linux x86_64":
        sys.exit(
            "shardmath: there are compilers for TPUs and GPUs for Linux x86-64 alone, "
            "this is {}. What they say of the book's programs is kept with it.".format(
                machine
            )
        )
    began = time.time()
    say("installing {} into {}{}".format(file, apart, COST.get(file, "")))
    shutil.rmtree(apart, ignore_errors=True)
    options = ["--target", apart, "--no-deps", "--require-hashes", "-r", file]
    run(pip(folder) + options, NO_WHEEL)
    spent = time.time() - began
    say("done in {:.0f} s; {} has {:.0f} MB".format(spent, apart, size(apart)))


def node(folder):
    """`npm ci`, with Node from the system or else, by pip, from the environment."""
    if not (shutil.which("npm") and shutil.which("node")):
        say("no Node.js here, installing it by pip")
        hint = "Install Node.js 20 or newer, or check the network."
        run(pip(folder) + ["--require-hashes", "-r", "requirements-node.txt"], hint)
    npm = shutil.which("npm") or os.path.join(folder, "bin", "npm")
    cache = [] if home_is_writable() else ["--cache", folder + "/cache/npm"]
    hint = "It fetches math, fonts and the page's Python: check the network."
    run([npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"] + cache, hint)


def book(folder):
    """The site, in _build/html."""
    builder = os.path.join(folder, "bin", "jupyter-book")
    options = ["-W", "-n", "--keep-going", "--quiet"]
    run([builder, "build", "."] + options, "The lines above say where.")


STEPS = {
    "python": (python, "{}/python.ok"),
    "notebook": (notebook, "{}/notebook.ok"),
    "site": (site, "{}/site.ok"),
    "all": (everything, "{}/all.ok"),
    "compilers": (compilers, "{}/compilers.ok"),
    "node": (node, "node_modules/ok"),
    "book": (book, ""),
}


def main(step, folder):
    if step == "python" and sys.version_info < OLDEST:
        sys.exit(
            "shardmath: Python {}.{} is too old, 3.11 or newer is needed. Name another "
            "one: make {} PYTHON=python3.12".format(
                sys.version_info[0], sys.version_info[1], os.environ.get("GOAL", "book")
            )
        )
    do, marker = STEPS[step]
    try:
        alone(do, folder, marker.format(folder))
    except OSError as error:
        sys.exit(
            "shardmath: {}. make must be able to write in this folder, and there must "
            "be room on its disk.".format(error)
        )


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in STEPS:
        sys.exit(__doc__)
    main(*sys.argv[1:])
