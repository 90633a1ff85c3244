"""Sets up the project's environment, in the steps that `make` runs.

    python tools/setup.py python | notebook | site | all | node | book FOLDER
    python tools/setup.py compilers FOLDER

Only one `make` works at a time. A second one waits, and does not repeat steps that the
first has done. This runs on the system's Python before anything is installed, so it
uses only the standard library, and a syntax that lets an old Python report its age.
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
BUILD = "requirements-build.txt"  # hatchling and its dependencies
ROOM = 2000  # MB; with less free, a failed step may be due to a full disk
LOCK = os.path.join("_build", "site.lock")  # tests that build the site take it too
NO_WHEEL = (
    "Is there a network? If so, a package may have no wheel for this system or this "
    "version of Python (3.11 to 3.13 are supported). See the lines above."
)


def say(line):
    sys.stdout.write("shardmath: {}\n".format(line))
    sys.stdout.flush()


def run(command, hint):
    """Run `command`. If it fails, exit with one line and a hint at the cause."""
    if subprocess.call(command):
        told = "shardmath: `{}` failed. {}".format(" ".join(command[:4]), hint)
        sys.exit(" ".join([told] + scarce()))


def scarce():
    """A sentence on a disk that is nearly full, which may be why a step has failed."""
    said = "Only {:.0f} MB are free on the disk of {}, which may be the cause."
    places = (os.getcwd(), tempfile.gettempdir())
    free = [(shutil.disk_usage(place).free / 1e6, place) for place in places]
    return [said.format(*found) for found in free if found[0] < ROOM][:1]


def alone(step, folder, marker):
    """Run `step(folder)` and write its `marker` while no other `make` runs here.

    If another `make` wrote the marker while this one waited, the step is skipped.
    """
    import fcntl  # not on Windows, where `make` runs in WSL

    os.makedirs(os.path.dirname(LOCK), exist_ok=True)
    began = time.time()
    with open(LOCK, "a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another make is running here; waiting until it has done this step")
            fcntl.flock(held, fcntl.LOCK_EX)
        if marker and os.path.exists(marker) and os.path.getmtime(marker) >= began:
            return
        step(folder)
        if marker:
            mark(marker)


def mark(marker):
    """Write an empty file, or renew its time."""
    with open(marker, "w"):
        pass


def home_is_writable():
    return os.access(os.path.expanduser("~"), os.W_OK)


def pip(folder):
    """The command to install packages: uv if it is installed, else pip."""
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
    """Install exactly the packages in `file`, checked by hashes, and this checkout.

    The build tools for the checkout are locked and installed first, so installing it
    downloads nothing.
    """
    began = time.time()
    say("installing {} into {}{}".format(file, folder, COST.get(file, "")))
    run(pip(folder) + ["--require-hashes", "-r", file, "-r", BUILD], NO_WHEEL)
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    run(pip(folder) + offline + ["--editable", "."], "The lines above say why.")
    spent = time.time() - began
    say("done in {:.0f} s; {} has {:.0f} MB".format(spent, folder, size(folder)))


def python(folder):
    """Create an environment with this Python."""
    hint = "On Debian and Ubuntu, install the package python3-venv."
    run([sys.executable, "-m", "venv", "--clear", folder], hint)


def notebook(folder):
    """Install what is needed to run and grade notebooks."""
    packages("requirements-notebook.txt", folder)


def site(folder):
    """Install what is needed to build the site."""
    packages("requirements-site.txt", folder)


def everything(folder):
    """Install both and the tests' packages. `lab` and `book` then need no more."""
    packages("requirements.txt", folder)
    for part in ("notebook", "site"):
        mark(STEPS[part][1].format(folder))


def compilers(folder):
    """Install XLA's compilers for TPUs and GPUs, in a separate folder.

    If JAX finds these compilers, it looks for accelerators. So only `make referee` and
    `make lab` put this folder on their path.
    """
    file, apart = "requirements-referee.txt", os.path.join(folder, "compilers")
    machine = "{} {}".format(platform.system(), platform.machine())
    if machine != "Linux x86_64":
        sys.exit(
            "shardmath: the compilers for TPUs and GPUs need Linux x86-64, and this is "
            "{}. Their results for the book's programs are kept with it.".format(
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
    """Run `npm ci`, with the system's Node, or else with one installed by pip."""
    if not (shutil.which("npm") and shutil.which("node")):
        say("Node.js is missing; installing it with pip")
        hint = "Install Node.js 20 or newer, or check the network."
        run(pip(folder) + ["--require-hashes", "-r", "requirements-node.txt"], hint)
    npm = shutil.which("npm") or os.path.join(folder, "bin", "npm")
    cache = [] if home_is_writable() else ["--cache", folder + "/cache/npm"]
    hint = "It downloads KaTeX, fonts and the page's Python. Check the network."
    run([npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"] + cache, hint)


def book(folder):
    """Build the site in _build/html."""
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
            "shardmath: Python {}.{} is too old; 3.11 or newer is needed. Choose "
            "another, for example: make {} PYTHON=python3.12".format(
                sys.version_info[0], sys.version_info[1], os.environ.get("GOAL", "book")
            )
        )
    do, marker = STEPS[step]
    try:
        alone(do, folder, marker.format(folder))
    except OSError as error:
        sys.exit(
            "shardmath: {}. make needs permission to write in this folder, and room on "
            "its disk.".format(error)
        )


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in STEPS:
        sys.exit(__doc__)
    main(*sys.argv[1:])
