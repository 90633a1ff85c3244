"""Runs other people's code in one isolated process with limits on time and memory.

Each step, which is a code cell or a question, has a time limit, and the clock starts
when the program prints a line that names the step. Each step can be named only once,
and all steps together have a limit too, so forged lines can't extend that limit.
"""

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass

from ..exercises.kinds.sharded import DEVICES
from . import syscalls
from .isolation import PYTHON, Isolation, Workdir, environment, isolation

_TO_START = 120  # seconds until the first step, while only our own code runs
RETURNED = 2**22  # bytes that a submission may return; right answers need 2**19
_LINE = 2**20  # bytes of a result; parsed, it takes up to 50 times as much memory
_THREADS = 1024
_FILES = 256  # open at once; each socket and pipe holds kernel memory


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Args:
        seconds: wall-clock seconds for each code cell, and for judging each answer.
        total: seconds for all code cells of a submission, including restarts, and as
            many seconds again for judging its answers.
        memory: bytes of address space of the submission's only process.
        disk: bytes of all its files together.
    """

    seconds: float = 30
    total: float = 300
    memory: int = 4 * 2**30
    disk: int = 2**25

    def apply(self) -> None:
        """Limit this process permanently, as far as the system supports the limits."""
        import resource  # not on Windows

        for kind, most in (
            ("RLIMIT_AS", self.memory),
            ("RLIMIT_FSIZE", self.disk),
            ("RLIMIT_NPROC", _THREADS),
            ("RLIMIT_NOFILE", _FILES),
            ("RLIMIT_CORE", 0),
        ):
            with contextlib.suppress(ValueError, OSError, AttributeError):
                which = getattr(resource, kind)
                hard = resource.getrlimit(which)[1]
                if hard != resource.RLIM_INFINITY:
                    most = min(most, hard)
                resource.setrlimit(which, (most, most))
        if syscalls.known():
            syscalls.forbid()


@dataclass(frozen=True)
class Slot:
    """A place where one submission runs at a time.

    Args:
        number: a different number for each slot.
        cpus: the CPUs that the slot uses; if empty, any.
    """

    number: int = 0
    cpus: tuple[int, ...] = ()


ANYWHERE = Slot()


@dataclass(frozen=True)
class Ran:
    """What the program returned.

    Attributes:
        results: name → result, a JSON value, for the names that were asked for. Results
            larger than 1 MiB are left out.
        at: the last step that the program reached, or "".
        ended: why it ended early, or "".
        seconds: the time that the steps took.
        size: bytes that the program returned.
    """

    results: dict
    at: str
    ended: str
    seconds: float
    size: int = 0


def run(
    module: str,
    job: dict,
    asked: Collection[str],
    limits: Limits,
    slot: Slot = ANYWHERE,
    rung: Isolation | None = None,
    seconds: float = math.inf,
    returned: int = RETURNED,
) -> Ran:
    """Run `python -m module` on `job` in the sandbox.

    Args:
        module: its program reads two lines of JSON from standard input, first the
            "limits" and "cpus" that it applies to itself, then its job. It writes lines
            of JSON: ``{"at": …}`` before each step, ``{"question": …, "result": …}``
            for each result, and finally ``{"end": true}``. Other lines are ignored.
        job: a JSON value.
        asked: the steps and questions that it may name.
        limits: the limits on each step's time, and on memory and disk.
        slot: the place where it runs.
        rung: the isolation; by default the safest that works here.
        seconds: the time that all steps together may take.
        returned: bytes that the program may return.

    Raises:
        OSError: no isolation is given, and none works here.
    """
    rung = rung or isolation()
    bounds = json.dumps({"limits": asdict(limits), "cpus": slot.cpus})
    folder = tempfile.mkdtemp()
    try:
        with tempfile.TemporaryFile() as given:
            given.write(f"{bounds}\n{json.dumps(job)}\n".encode())
            given.seek(0)
            room = Workdir(os.path.realpath(folder), limits.disk, slot.number)
            process = subprocess.Popen(
                [*rung.prefix(room), PYTHON, "-m", module],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env={
                    **environment(folder, rung),
                    "JAX_NUM_CPU_DEVICES": str(DEVICES),
                },
                start_new_session=True,
            )
        try:
            with process.stdout:
                return _listen(process, frozenset(asked), limits, seconds, returned)
        finally:
            _end(process)
    finally:  # shutil recurses, and an answer may nest folders too deeply for that
        subprocess.run(["rm", "-rf", folder], stderr=subprocess.DEVNULL)


def _listen(
    process, asked: frozenset[str], limits: Limits, granted: float, returned: int
) -> Ran:
    """Read lines until the program ends or a time limit is reached."""
    results, seen, at, rest, size, began = {}, set(), "", bytearray(), 0, math.inf
    now = time.monotonic()
    until = now + _TO_START

    def ran(ended: str) -> Ran:
        return Ran(results, at, ended, max(0, time.monotonic() - began), size)

    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while True:
            now = time.monotonic()
            if now >= until:
                if at and now >= began + granted:
                    return ran("earlier steps hit the time limit")
                spent = limits.seconds if at else _TO_START
                return ran(f"stopped after {spent:g} s, the limit")
            if not ready.select(until - now):
                continue
            block = os.read(process.stdout.fileno(), 2**16)
            if not block:
                return ran(_status(process, until))
            size += len(block)
            if size > returned:
                return ran(f"it returned more than {RETURNED >> 20} MiB")
            rest += block
            if b"\n" not in block:
                continue
            *whole, rest = rest.split(b"\n")
            for line in map(_object, whole):
                if "end" in line:
                    return ran("")
                named = line.get("at", line.get("question"))
                if not isinstance(named, str) or named not in asked:
                    continue
                if "at" in line and named not in seen:
                    seen.add(named)
                    at, now = named, time.monotonic()
                    began = min(began, now)
                    until = min(now + limits.seconds, began + granted)
                elif "result" in line:
                    results[named] = line["result"]


def _status(process, until: float) -> str:
    try:
        code = process.wait(max(0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return "it closed its output"
    return f"the process ended early (status {code})" if code else "it ended early"


def _end(process: subprocess.Popen) -> None:
    """Kill what is left of the process group that we started, and nothing else."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _object(line: bytearray) -> dict:
    """A line as a JSON object, empty if it is none or is too long."""
    if len(line) > _LINE:
        return {}
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
