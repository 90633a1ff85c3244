"""Walls around a program: which files it sees, no network, no privileges.

Inside stand Python, this package and the system's libraries, read-only, and an empty
``/tmp`` of limited size; no other file, and nothing in ``/proc`` but what the processor
is. Bubblewrap builds this, and what runs in it dies with the grader. Where bubblewrap
does not work, there are no walls: `isolation` then raises an error that says why.

What bubblewrap does not close, such as other processes, keyrings and memory that no
limit counts, the filter in `syscalls` closes.
"""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import syscalls

PYTHON = os.path.realpath(sys.executable)
PACKAGE = Path(__file__).resolve().parents[1]
_LIBRARIES = [
    os.path.realpath(path)
    for path in sys.path
    if os.path.basename(path) in ("site-packages", "dist-packages")
]
IMPORTS = os.pathsep.join([str(PACKAGE.parent), *_LIBRARIES])
# XLA reads in the last one which instructions it has: without it, some of its kernels
# compile and then refuse to run.
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/proc/cpuinfo")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FIRST_USER = 61184  # up to 65519 nobody's: systemd gives them out and takes them back
_USERS = 4336
_PRIVILEGES = ("--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
_WORKS = """
from importlib.util import find_spec
assert all(map(find_spec, ("IPython", "jax", "shardmath.grading.sandboxed")))
"""


@dataclass(frozen=True)
class Workdir:
    """Where one program runs.

    Args:
        folder: an empty one. Within walls it is not seen: work is done in ``/tmp``.
        disk: bytes that may be written, all files together.
        slot: tells programs apart that run at one time.
    """

    folder: str
    disk: int
    slot: int = 0


@dataclass(frozen=True)
class Isolation:
    """A way to keep a program apart.

    Attributes:
        name: "bubblewrap", "bubblewrap without a limit on files" or "none". Results
            carry it, and a result of one is never used for another.
        prefix: the command to put before the program, of a room.
        said: one line: what is closed, or what is not.
    """

    name: str
    prefix: Callable[[Workdir], list[str]]
    said: str

    @property
    def closed(self) -> bool:
        return self.name != "none"


def program(name: str) -> str:
    """Where a program lies.

    Raises:
        FileNotFoundError: it is not on the PATH.
    """
    if found := shutil.which(name):
        return found
    raise FileNotFoundError(f"{name} is not on the PATH")


def visible_paths() -> list[str]:
    """The paths a program sees within walls, outer ones first."""
    homes = (sys.base_prefix, sys.prefix, *_LIBRARIES, PACKAGE)
    wanted = {*_SYSTEM, *(os.path.realpath(home) for home in homes)}
    there = sorted(path for path in wanted if os.path.exists(path))
    return [
        path
        for path in there
        if not any(path.startswith(f"{outer}/") for outer in there)
    ]


_SMALL = """
mount -t tmpfs -o "size=$1,nr_inodes=9999,mode=1777" none "$2"
shift 2
exec "$@"
"""


def bubblewrap(room: Workdir, *, as_root: bool, counted: bool = True) -> list[str]:
    """The command of bwrap. Root's programs run as a user that nobody is.

    Args:
        counted: limit how many files there are in its ``/tmp``, which bwrap itself
            cannot: it takes the namespaces of ``unshare``, too.

    Raises:
        FileNotFoundError: one of the programs that it takes is not on the PATH.
    """
    place = ["--perms", "0777", "--size", str(room.disk), "--tmpfs", "/tmp"]
    outer: list[str] = []
    if counted:
        place = ["--bind", room.folder, "/tmp"]
        mapped = [] if as_root else ["--map-root-user"]
        outer = [program("unshare"), *mapped, "--mount"]
        outer += [program("sh"), "-ec", _SMALL, "sh"]
        outer += [str(room.disk), room.folder]
    namespaces = ["--unshare-all"]
    if as_root:
        kinds = ("pid", "net", "ipc", "uts", "cgroup-try")
        namespaces = [f"--unshare-{kind}" for kind in kinds]
    else:
        namespaces += ["--unshare-user", "--disable-userns"]
    view = []
    for path in visible_paths():
        for parent in [*reversed(Path(path).parents)][1:]:
            view += ["--perms", "0755", "--dir", str(parent)]
        view += ["--ro-bind", path, path]
    changes_user = ("SETUID", "SETGID", "SETPCAP") if as_root else ()
    # It runs inside, where a link from somewhere else on the PATH is not seen.
    setpriv = [os.path.realpath(program("setpriv"))] if as_root else []
    return [
        *(*outer, program("bwrap"), *namespaces, "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL"),
        *(word for cap in changes_user for word in ("--cap-add", f"CAP_{cap}")),
        *place,
        *(*view, "--dev", "/dev", "--remount-ro", "/dev"),  # some may lie in /tmp
        *("--remount-ro", "/", "--chdir", "/tmp"),
        *([*setpriv, *_user(room), *_PRIVILEGES] if as_root else []),
    ]


def _user(room: Workdir) -> list[str]:
    number = _FIRST_USER + (os.getpid() + room.slot) % _USERS
    return [f"--reuid={number}", f"--regid={number}", "--clear-groups"]


def nothing(room: Workdir) -> list[str]:
    """No walls; the program dies with the grader where the system can do that."""
    return ["setpriv", "--pdeathsig=KILL"] if shutil.which("setpriv") else []


def _ladder() -> list[Isolation]:
    """The ways in which bubblewrap may work, from the safest down."""
    users = (True, False) if os.name == "posix" and os.geteuid() == 0 else (False,)
    kinds = (
        ("bubblewrap", bubblewrap),
        (
            "bubblewrap without a limit on files",
            functools.partial(bubblewrap, counted=False),
        ),
    )
    return [
        Isolation(
            name,
            functools.partial(tool, as_root=as_root),
            f"Answers run in {name}: no network, and no files but Python's and this "
            f"package's.{_unlimited()}",
        )
        for name, tool in kinds
        for as_root in users
    ]


def _none() -> Isolation:
    network = "" if syscalls.known() else " and reach the network"
    return Isolation(
        "none",
        nothing,
        "UNSAFE: answers run without isolation and can read and write what you can"
        f"{network}, other submissions and these results included.{_unlimited()}",
    )


def _unlimited() -> str:
    limits = "" if syscalls.known() else " Memory is limited per process only."
    return f"{limits} What the kernel holds for them, such as file locks, has no limit."


@functools.cache
def isolation(name: str = "") -> Isolation:
    """The safest walls that work here; "none" where this is the name.

    Raises:
        OSError: bubblewrap does not work here; says why.
    """
    if name == "none":
        return _none()
    for rung in _ladder():
        why = _fault(rung)
        if not why:
            return rung
    raise OSError(why)  # of the last one, which takes the least


def _fault(rung: Isolation) -> str:
    """Why these walls do not stand, or ""."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            room = Workdir(os.path.realpath(folder), 2**20)
            tried = subprocess.run(
                [*rung.prefix(room), PYTHON, "-c", _WORKS],
                env=environment(folder, rung),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    said = tried.stderr.strip().splitlines() or [f"it ends with {tried.returncode}"]
    return said[-1] if tried.returncode else ""


def environment(folder: str, rung: Isolation) -> dict[str, str]:
    """Nothing of ours but what finds the interpreter: it may hold secrets."""
    home = "/tmp" if rung.closed else folder
    return {
        "PATH": _PATH,
        "PYTHONPATH": IMPORTS,
        "LANG": "C.UTF-8",
        "HOME": home,
        "TMPDIR": home,
        "IPYTHONDIR": home,
        "JAX_PLATFORMS": "cpu",
        "MPLBACKEND": "agg",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SHARDMATH_PROGRESS": "",
    }
