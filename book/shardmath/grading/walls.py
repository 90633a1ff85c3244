"""Walls around a program: which files it sees, no network, no privileges.

Inside stand Python, this package and the system's libraries, read-only, and an empty
``/tmp`` of limited size; no ``/proc``, no other file. Bubblewrap builds this where it
is installed, else a few lines of shell on the namespaces of ``unshare``. Both die with
the grader. Where neither works, the line that says so is part of what comes back.
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
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_FIRST_USER = 61184  # up to 65519 nobody's: systemd gives them out and takes them back
_USERS = 4336
_PLAIN = "in bubblewrap, which counts no files"
_PRIVILEGES = ("--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
_WORKS = """
from importlib.util import find_spec
assert all(map(find_spec, ("IPython", "jax", "shardmath.grading.sandboxed")))
"""


@dataclass(frozen=True)
class Room:
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
class Walls:
    """A way to keep a program apart.

    Attributes:
        name: "bubblewrap", "namespaces" or "none".
        prefix: the command to put before the program, of a room.
        said: one line: what is closed, or what is not.
    """

    name: str
    prefix: Callable[[Room], list[str]]
    said: str

    @property
    def closed(self) -> bool:
        return self.name != "none"


def seen() -> list[str]:
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


def bubblewrap(room: Room, *, as_root: bool, counted: bool = True) -> list[str]:
    """The command of bwrap. Root's programs run as a user that nobody is.

    Args:
        counted: limit how many files there are in its ``/tmp``, which bwrap itself
            cannot: it takes the namespaces of ``unshare``, too.
    """
    place = ["--perms", "0777", "--size", str(room.disk), "--tmpfs", "/tmp"]
    outer: list[str] = []
    if counted:
        place = ["--bind", room.folder, "/tmp"]
        mapped = [] if as_root else ["--map-root-user"]
        outer = ["unshare", *mapped, "--mount", "sh", "-ec", _SMALL, "sh"]
        outer += [str(room.disk), room.folder]
    namespaces = ["--unshare-all"]
    if as_root:
        kinds = ("pid", "net", "ipc", "uts", "cgroup-try")
        namespaces = [f"--unshare-{kind}" for kind in kinds]
    else:
        namespaces += ["--unshare-user", "--disable-userns"]
    view = []
    for path in seen():
        for parent in [*reversed(Path(path).parents)][1:]:
            view += ["--perms", "0755", "--dir", str(parent)]
        view += ["--ro-bind", path, path]
    changes_user = ("SETUID", "SETGID", "SETPCAP") if as_root else ()
    return [
        *(*outer, "bwrap", *namespaces, "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL"),
        *(word for cap in changes_user for word in ("--cap-add", f"CAP_{cap}")),
        *place,
        *(*view, "--dev", "/dev", "--remount-ro", "/dev"),  # some may lie in /tmp
        *("--remount-ro", "/", "--chdir", "/tmp"),
        *(["setpriv", *_user(room), *_PRIVILEGES] if as_root else []),
    ]


_VIEW = """
set -e
umask 022
disk=$1 root=$2
shift 2
mount -t tmpfs -o mode=755 none "$root"
mkdir "$root/tmp"
mount -t tmpfs -o "size=$disk,nr_inodes=9999,mode=1777" none "$root/tmp"
while [ "$1" != -- ]; do
    mkdir -p "$root${1%/*}"
    if [ -d "$1" ]; then mkdir -p "$root$1"; else : >"$root$1"; fi
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
    shift
done
shift
mount -o remount,bind,ro "$root"
chroot "$root" "$@"
exit 0
"""  # not exec: the first process of a namespace ends all others, so it is ours


def namespaces(room: Room, *, as_root: bool) -> list[str]:
    """The command of unshare, to the same view."""
    mapped = [] if as_root else ["--map-root-user"]
    kinds = [f"--{kind}" for kind in ("mount", "pid", "net", "ipc", "uts", "cgroup")]
    return [
        *("setpriv", "--pdeathsig=KILL", "unshare", *mapped, *kinds),
        *("--fork", "--kill-child", "sh", "-c", _VIEW, "sh"),
        *(str(room.disk), room.folder, *seen(), *_DEVICES, "--"),
        *("setpriv", *(_user(room) if as_root else []), *_PRIVILEGES),
    ]


def _user(room: Room) -> list[str]:
    number = _FIRST_USER + (os.getpid() + room.slot) % _USERS
    return [f"--reuid={number}", f"--regid={number}", "--clear-groups"]


def nothing(room: Room) -> list[str]:
    """No walls; the program dies with the grader where the system can do that."""
    return ["setpriv", "--pdeathsig=KILL"] if shutil.which("setpriv") else []


def _ladder() -> list[Walls]:
    """From the safest down."""
    users = (True, False) if os.name == "posix" and os.geteuid() == 0 else (False,)
    limits = "" if syscalls.known() else " Memory is limited per process only."
    limits += " What the kernel holds for them, such as file locks, has no limit."
    rungs = [
        Walls(
            name,
            functools.partial(tool, as_root=as_root),
            f"Answers run {how}: no network, no files but Python's and this "
            f"package's.{limits}",
        )
        for name, tool, how in (
            ("bubblewrap", bubblewrap, "in bubblewrap"),
            ("bubblewrap", functools.partial(bubblewrap, counted=False), _PLAIN),
            ("namespaces", namespaces, "in namespaces of unshare"),
        )
        for as_root in users
    ]
    network = "" if syscalls.known() else " and reach the network"
    return [
        *rungs,
        Walls(
            "none",
            nothing,
            "UNSAFE: this system grants no namespaces, so answers can read and write "
            f"what you can{network}. Grade only people you trust, or grade on Linux "
            f"with bubblewrap.{limits}",
        ),
    ]


@functools.cache
def walls(name: str = "") -> Walls:
    """The safest walls that work here, or those of this name.

    Raises:
        OSError: none of this name work here.
    """
    for rung in _ladder():
        if name in ("", rung.name) and _works(rung):
            return rung
    raise OSError(f"no walls {name!r} can be built on this system")


def _works(rung: Walls) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = [*rung.prefix(Room(os.path.realpath(folder), 2**20)), PYTHON]
        try:
            tried = subprocess.run(
                [*command, "-c", _WORKS],
                env=environment(folder, rung),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return tried.returncode == 0


def environment(folder: str, rung: Walls) -> dict[str, str]:
    """Nothing of ours but what finds the interpreter: it may hold secrets."""
    home = "/tmp" if rung.closed else folder
    return {
        "PATH": os.environ.get("PATH", os.defpath),
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
