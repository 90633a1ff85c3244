"""Isolates a program: it sees few files and has no network and no privileges.

The program sees Python, this package and the system's libraries and programs, all
read-only, an empty ``/tmp`` of limited size and ``/proc/cpuinfo``, but no other file.
Bubblewrap builds this sandbox, which is killed when the grader ends. If bubblewrap does
not work, there is no isolation, and `isolation` raises an error that says why.

The filter in `syscalls` blocks what bubblewrap leaves open, such as starting processes,
using keyrings, and using memory that no limit counts.
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
# XLA reads the processor's instructions from /proc/cpuinfo. Without it, some of its
# kernels compile and then refuse to run.
_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/proc/cpuinfo")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FIRST_USER = 61184  # systemd assigns 61184 to 65519 dynamically, so they have no files
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
        folder: an empty folder. An isolated program sees it only as ``/tmp``.
        disk: bytes that may be written, for all files together.
        slot: distinguishes programs that run at the same time.
    """

    folder: str
    disk: int
    slot: int = 0


@dataclass(frozen=True)
class Isolation:
    """A way to isolate a program.

    Attributes:
        name: "bubblewrap", "bubblewrap without a limit on files" or "none". It is
            stored with each result, which is never reused under another isolation.
        prefix: workdir → the command to put before that of the program.
        said: one line for the instructor on what answers can and can't reach.
    """

    name: str
    prefix: Callable[[Workdir], list[str]]
    said: str

    @property
    def closed(self) -> bool:
        return self.name != "none"


def program(name: str) -> str:
    """The path of a program.

    Raises:
        FileNotFoundError: it is not on the PATH.
    """
    if found := shutil.which(name):
        return found
    raise FileNotFoundError(f"{name} is not on the PATH")


def visible_paths() -> list[str]:
    """The paths that an isolated program sees, none of them inside another."""
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
    """The command of bwrap.

    Args:
        room: where the program runs.
        as_root: whether the grader is root. The program then runs as an unused user.
        counted: whether to limit the number of files in ``/tmp``. Because bwrap can't
            do this itself, ``unshare`` mounts ``/tmp`` first.

    Raises:
        FileNotFoundError: a program that the command uses is not on the PATH.
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
    # Resolved, because inside the sandbox a link elsewhere on the PATH does not exist.
    setpriv = [os.path.realpath(program("setpriv"))] if as_root else []
    return [
        *(*outer, program("bwrap"), *namespaces, "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL"),
        *(word for cap in changes_user for word in ("--cap-add", f"CAP_{cap}")),
        *place,
        *(*view, "--dev", "/dev", "--remount-ro", "/dev"),  # after /tmp: may be inside
        *("--remount-ro", "/", "--chdir", "/tmp"),
        *([*setpriv, *_user(room), *_PRIVILEGES] if as_root else []),
    ]


def _user(room: Workdir) -> list[str]:
    number = _FIRST_USER + (os.getpid() + room.slot) % _USERS
    return [f"--reuid={number}", f"--regid={number}", "--clear-groups"]


def nothing(room: Workdir) -> list[str]:
    """No isolation. Where ``setpriv`` exists, the program dies with the grader."""
    return ["setpriv", "--pdeathsig=KILL"] if shutil.which("setpriv") else []


def _ladder() -> list[Isolation]:
    """The ways in which bubblewrap may work, the safest first."""
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
            f"Answers run in {name}, without a network. They see no files except "
            f"Python, this package and the system's libraries.{_unlimited()}",
        )
        for name, tool in kinds
        for as_root in users
    ]


def _none() -> Isolation:
    network = "" if syscalls.known() else " and reach the network"
    return Isolation(
        "none",
        nothing,
        f"UNSAFE: answers run without isolation. They can read and write whatever you "
        f"can, including other submissions and these results{network}.{_unlimited()}",
    )


def _unlimited() -> str:
    limits = "" if syscalls.known() else " Memory is limited only per process."
    return f"{limits} Kernel objects, such as file locks, are not limited."


@functools.cache
def isolation(name: str = "") -> Isolation:
    """The safest isolation that works here, or none at all if `name` is "none".

    Raises:
        OSError: bubblewrap does not work here. The message says why.
    """
    if name == "none":
        return _none()
    for rung in _ladder():
        why = _fault(rung)
        if not why:
            return rung
    raise OSError(why)  # of the last way, which needs the least


def _fault(rung: Isolation) -> str:
    """Why this isolation does not work, or ""."""
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
    """The program's environment variables. Ours may hold secrets and are not copied."""
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
