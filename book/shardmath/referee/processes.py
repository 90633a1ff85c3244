"""Runs one JAX program in several processes of this machine, each acting as a host.

    def worker(where, steps):
        jax.distributed.initialize(**where)  # before any other use of JAX
        ...
        yield loss                           # reaches the caller even after a crash

    first, second = run(worker, 2, 20)
    first.values

The processes share no memory, one can be killed while the others continue, and they
communicate over TCP on this machine, with gloo. All of them end before `run` returns.
"""

import contextlib
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.extras import missing
from ..base.units import positive, positive_int, short_repr

try:
    import cloudpickle
except ImportError as error:
    raise missing("shardmath.referee.processes", error) from error

HOST = "127.0.0.1"
POLL = 0.02  # seconds between two checks of the processes
JOINING = 60  # seconds in which all processes must have started
CHILD = "from shardmath.referee import processes; processes.child()"
NOISE = re.compile(r"\s*(@|\*\*\*|PC:|\[Gloo\]|$)")  # stack frames, and gloo's greeting
LOGGED = re.compile(r"^[EFIW]\d{4} [\d:.]+ +\d+ [\w./]+:\d+\] ")  # time, thread, file


@dataclass(frozen=True)
class ProcessOutcome:
    """How one process ended.

    Args:
        process: its number, from 0. Process 0 is the coordinator.
        values: everything that it yielded, even if it died afterwards.
        code: its exit code, or minus the signal's number if a signal ended it; None if
            it had not ended when `run` ended.
        ended: seconds from its launch until it ended or was stopped.
        lines: what it wrote to stdout and stderr, without stack frames of C++.
    """

    process: int
    values: tuple
    code: int | None
    ended: float
    lines: tuple[str, ...]

    @property
    def last_line(self) -> str:
        """The last line that it wrote, or "nothing"."""
        return self.lines[-1] if self.lines else "nothing"

    def __str__(self) -> str:
        """How it ended, in words.

        >>> print(ProcessOutcome(1, (), -9, 2.5, ()))
        process 1 was ended by SIGKILL
        """
        if self.code is None:
            return f"process {self.process} had not ended"
        if self.code < 0:
            name = signal.Signals(-self.code).name
            return f"process {self.process} was ended by {name}"
        how = f" with exit code {self.code}" if self.code else ""
        return f"process {self.process} ended{how}"


def run(
    worker: Callable[..., Iterator],
    n: int,
    *arguments: object,
    devices: int = 1,
    heartbeat: int = 10,
    timeout: float = 120,
    check: bool = True,
) -> list[ProcessOutcome]:
    """Run `worker(where, *arguments)` in n new processes, and wait for them.

    Args:
        worker: a generator function. Its argument `where` holds the arguments of
            `jax.distributed.initialize`. The function is sent by value, with everything
            that it uses. It must yield picklable values other than JAX arrays.
        n: the number of processes.
        arguments: passed on to every process.
        devices: virtual CPU devices of each process.
        heartbeat: seconds without a heartbeat after which a process counts as dead.
        timeout: seconds after which processes that have not ended are killed.
        check: whether to raise an error if a process fails. If False, you see a failure
            only in the outcome of the process.

    Returns:
        An outcome for each process, in order.

    Assumes:
        This machine is the whole cluster. `run` does not wait for a process that is
        stopped (SIGSTOP); on Windows it can't detect this.

    Raises:
        ValueError: n, devices, heartbeat or timeout is not positive, or `worker` is not
            a generator function.
        ChildProcessError: a process failed and `check` is True. The message quotes the
            last line that it wrote.

    >>> def worker(where, word):
    ...     yield f"{word} from {where['process_id']} of {where['num_processes']}"
    >>> [one.values for one in run(worker, 2, "hello")]
    [('hello from 0 of 2',), ('hello from 1 of 2',)]
    """
    n, devices, heartbeat = positive_int(n=n, devices=devices, heartbeat=heartbeat)
    (timeout,) = positive(timeout=timeout)
    if not _generates(worker):
        raise ValueError(
            f"worker = {short_repr(worker)}: must be a generator function, "
            "which yields its results"
        )
    job = _Job(worker, n, arguments, devices, heartbeat, timeout, check)
    outcomes = job.play()
    if _lost_its_port(outcomes):
        outcomes = job.play()
    failed = [one for one in outcomes if one.code != 0]
    if check and failed:
        first = min(failed, key=lambda one: (one.code is None, one.ended))
        raise ChildProcessError(f"{first} (of {n}): {first.last_line}")
    return outcomes


def _generates(worker: object) -> bool:
    """Whether calling `worker` returns a generator."""
    code = getattr(worker, "__code__", None)
    return code is not None and bool(code.co_flags & 0x20)


def _lost_its_port(outcomes: Sequence[ProcessOutcome]) -> bool:
    """Whether another program took the coordinator's port before it could be used.

    The coordinator then fails, in Python or by a signal, before any process yields.
    """
    first = outcomes[0]
    early = not any(one.values for one in outcomes)
    said = any("Failed to start RPC server" in line for line in first.lines)
    return early and (said or first.code == -signal.SIGSEGV)


def free_port() -> int:
    """A port of this machine that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


@dataclass(frozen=True)
class _Job:
    """The arguments of `run`."""

    worker: Callable[..., Iterator]
    n: int
    arguments: tuple
    devices: int
    heartbeat: int
    timeout: float
    check: bool

    def play(self) -> list[ProcessOutcome]:
        """Start the processes, and wait until they have ended."""
        with (
            tempfile.TemporaryDirectory() as folder,
            _children(self, Path(folder)) as children,
        ):
            until = time.monotonic() + self.timeout
            while time.monotonic() < until and not self._over(children):
                time.sleep(POLL)
            return [one.outcome() for one in children]

    def _over(self, children: list["_Child"]) -> bool:
        """Whether there is nothing left to wait for."""
        for one in children:
            one.look()
        failed = any(one.code not in (None, 0) for one in children)
        return all(one.ended for one in children) or (self.check and failed)


@contextlib.contextmanager
def _children(job: _Job, folder: Path) -> Iterator[list["_Child"]]:
    """The processes of a job, all of which are killed when the block is left."""
    children: list[_Child] = []
    port = free_port()
    try:
        for i in range(job.n):
            children.append(_Child(i, folder))
            children[-1].start(job, port)
        yield children
    finally:
        for one in children:
            one.kill()


class _Child:
    """One process, which the launcher starts and must end."""

    def __init__(self, number: int, folder: Path):
        self.number = number
        self.values = folder / f"values-{number}"
        self.log = folder / f"log-{number}"
        self.code: int | None = None
        self.ended: float | None = None
        self._began = time.monotonic()
        self._process: subprocess.Popen | None = None

    def start(self, job: _Job, port: int) -> None:
        """Start it in its own process group, and send it its work."""
        where = {
            "coordinator_address": f"{HOST}:{port}",
            "num_processes": job.n,
            "process_id": self.number,
            "heartbeat_timeout_seconds": job.heartbeat,
            "initialization_timeout": JOINING,
        }
        work = cloudpickle.dumps((job.worker, (where, *job.arguments)))
        asked = {
            "JAX_PLATFORMS": "cpu",
            "JAX_NUM_CPU_DEVICES": str(job.devices),
            "PYTHONUNBUFFERED": "1",
        }
        group = {"process_group": 0} if os.name == "posix" else {}
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", CHILD, str(self.values)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | asked,
                **group,
            )
        with contextlib.suppress(BrokenPipeError):  # it died, and its log says why
            self._process.stdin.write(len(work).to_bytes(8, "big") + work)
            self._process.stdin.flush()

    def look(self) -> None:
        """Check whether it has ended or been stopped."""
        if self.ended is not None:
            return
        if os.name != "posix":
            self.code = self._process.poll()
        else:
            pid, status = os.waitpid(self._process.pid, os.WNOHANG | os.WUNTRACED)
            if pid and not os.WIFSTOPPED(status):
                self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
            elif not pid:
                return
        if self.code is not None or os.name == "posix":
            self.ended = time.monotonic() - self._began

    def kill(self) -> None:
        """Kill it and everything that it started, whether stopped or running."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        if self._process.returncode is None:
            self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def outcome(self) -> ProcessOutcome:
        """How it ended, with its values and its log."""
        lines = self.log.read_text("utf-8", "replace").splitlines()
        said = tuple(LOGGED.sub("", one) for one in lines if not NOISE.match(one))
        ended = time.monotonic() - self._began if self.ended is None else self.ended
        return ProcessOutcome(
            self.number, tuple(self._yielded()), self.code, ended, said
        )

    def _yielded(self) -> Iterator[object]:
        """The values that it wrote. The last one is left out if it was cut off."""
        if not self.values.exists():
            return
        with open(self.values, "rb") as file:
            while True:
                try:
                    yield pickle.load(file)
                except (EOFError, pickle.UnpicklingError):
                    return


def child() -> None:
    """The main function of a process that `run` starts.

    An error ends the process at once, without the barrier at which JAX waits for the
    other processes. But they wait for this process elsewhere, so the barrier would be a
    deadlock.
    """
    with open(0, "rb", buffering=0, closefd=False) as pipe:
        size = int.from_bytes(_exactly(pipe, 8), "big")
        work = _exactly(pipe, size)
    threading.Thread(target=_end_with_the_launcher, daemon=True).start()
    try:
        worker, arguments = pickle.loads(work)
        with open(sys.argv[1], "ab") as file:
            for value in worker(*arguments):
                file.write(pickle.dumps(value))
                file.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _exactly(pipe, size: int) -> bytes:
    """`size` bytes of an unbuffered pipe."""
    found = b""
    while len(found) < size:
        part = pipe.read(size - len(found))
        if not part:
            os._exit(1)  # the launcher has ended
        found += part
    return found


def _end_with_the_launcher() -> None:
    """Wait until the pipe is closed, which also happens if the launcher is killed."""
    while os.read(0, 1):
        pass
    os._exit(1)
