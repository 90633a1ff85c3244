"""Runs what others wrote: apart, without network, under limits of time and memory.

Linux closes the network, the process tree and, but for one folder, the disk, with the
namespaces of `unshare` where the system grants them. What could not be closed is said
by `isolation`, and the limits of `resource` hold in any case.
"""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from ..questions.sharded import DEVICES

_READ_ONLY = """
mount --bind "$0" "$0" || exit 125
while read -r _ place _; do
    [ "$place" = "$0" ] || mount -o remount,bind,ro "$place" 2>/dev/null
done </proc/self/mounts
cd "$0" && exec "$@"
"""
_NAMESPACES = ("unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child")
_LADDER = (  # from the safest down; the folder goes between the command and the program
    ((*_NAMESPACES, "--mount", "sh", "-c", _READ_ONLY), ""),
    (
        (*_NAMESPACES, "sh", "-c", 'exec "$@"'),
        "Submissions run without network, but can write where you can.",
    ),
    (
        ("sh", "-c", 'exec "$@"'),
        "This system grants no namespaces: submissions can reach the network and "
        "write where you can. Grade only people you trust, or grade on Linux.",
    ),
)


@dataclass(frozen=True)
class Limits:
    """What one run may use.

    Args:
        seconds: of wall clock, then the whole process group is killed.
        memory: bytes of address space of each process.
        written: bytes of each file, and of what comes back.
    """

    seconds: float = 60
    memory: int = 4 * 2**30
    written: int = 2**25

    def apply(self) -> None:
        """Bind this process and its children."""
        import resource  # not on Windows

        for kind, most in (
            (resource.RLIMIT_AS, self.memory),
            (resource.RLIMIT_FSIZE, self.written),
            (resource.RLIMIT_CORE, 0),
        ):
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            with contextlib.suppress(ValueError, OSError):  # not every system has all
                resource.setrlimit(kind, (most, most))


@functools.cache
def isolation() -> tuple[tuple[str, ...], str]:
    """The safest command prefix that works here, and what it leaves open, or ""."""
    for prefix, left_open in _LADDER:
        with tempfile.TemporaryDirectory() as folder:
            try:
                tried = subprocess.run([*prefix, folder, "true"], capture_output=True)
            except OSError:
                continue
        if tried.returncode == 0:
            return prefix, left_open
    raise OSError("no way to run a program apart: grading needs a POSIX shell")


def run(module: str, job: dict, limits: Limits) -> tuple[list, str]:
    """`python -m module` on `job` in the sandbox.

    Args:
        module: reads its job as JSON from standard input, writes a JSON value a line.
        job: its job; "limits" is added to it.

    Returns:
        The lines that came back, as far as they are JSON, and why the run ended.
    """
    prefix, _ = isolation()
    told = json.dumps(
        {**job, "limits": [limits.seconds, limits.memory, limits.written]}
    )
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as came_back,  # no name: it cannot be swapped
    ):
        given.write(told.encode())
        given.seek(0)
        process = subprocess.Popen(
            [*prefix, os.path.realpath(folder), sys.executable, "-m", module],
            stdin=given,
            stdout=came_back,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
        try:
            code = process.wait(limits.seconds)
            ended = (
                f"the process ended early (status {code})" if code else "it ended early"
            )
        except subprocess.TimeoutExpired:
            ended = f"stopped after {limits.seconds:g} s, the limit"
        finally:
            _end(process)
        came_back.seek(0)
        return _lines(came_back.read(limits.written)), ended


def _environment(folder: str) -> dict[str, str]:
    """Nothing of ours but what finds the interpreter: it may hold secrets."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": folder,
        "TMPDIR": folder,
        "IPYTHONDIR": folder,
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": str(DEVICES),
        "MPLBACKEND": "agg",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SHARDMATH_PROGRESS": "",
    }


def _end(process: subprocess.Popen) -> None:
    """Kill what is left of the group that we started, and only that."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _lines(written: bytes) -> list:
    lines = []
    for line in written.splitlines():
        try:
            lines.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return lines
