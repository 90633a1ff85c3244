"""Processes of this machine: what they yield, how they end, and that all of them end.

The workers are made of text, because what a test module defines cannot be imported by
another process. Most do without JAX, so that they start in a tenth of a second.
"""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import types
from pathlib import Path

import pytest

from shardmath.referee import processes

BOOK = Path(__file__).parents[2] / "book"


def made(source: str):
    """The function `worker` of a text, as a notebook would define it."""
    module = types.ModuleType("__main__")
    exec(textwrap.dedent(source), module.__dict__)
    return module.worker


COUNTS = made("""
    def worker(where, upto):
        for n in range(upto):
            yield where["process_id"], n
""")
SLEEPS = made("""
    import os
    import time

    def worker(where, to_be_killed=None):
        yield os.getpid()
        time.sleep(600)
""")
TROUBLED = made("""
    import os
    import signal

    def worker(where, name):
        yield "before"
        if where["process_id"] == 1:
            os.kill(os.getpid(), getattr(signal, name))
        yield "after"
""")
FAILS = made("""
    import time

    def worker(where):
        yield "before"
        if where["process_id"] == 1:
            raise RuntimeError("the disk is full")
        time.sleep(600)
""")


def alive(pid: int) -> bool:
    """Whether a process is there that does something; a zombie does not."""
    try:
        state = (
            Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()[0]
        )
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def gone(pids: list[int]) -> bool:
    """Whether all have ended; the system may take a moment to notice."""
    for _ in range(1000):
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.01)
    return False


def test_each_process_yields_to_the_caller():
    first, second = processes.run(COUNTS, 2, 3)
    assert first.values == ((0, 0), (0, 1), (0, 2))
    assert second.values == ((1, 0), (1, 1), (1, 2))
    assert (first.code, second.code) == (0, 0)


def test_a_failure_is_one_sentence_that_quotes_the_last_line():
    """And the others, which would wait for ten minutes, are ended at once."""
    with pytest.raises(ChildProcessError) as caught:
        processes.run(FAILS, 2)
    said = "process 1 ended with exit code 1 (of 2): RuntimeError: the disk is full"
    assert str(caught.value) == said


def test_what_a_killed_process_has_yielded_is_not_lost():
    first, second = processes.run(TROUBLED, 2, "SIGKILL", check=False)
    assert first.values == ("before", "after")
    assert (second.values, second.code) == (("before",), -signal.SIGKILL)
    assert str(second) == "process 1 was ended by SIGKILL"


def test_a_stopped_process_is_seen_and_ended():
    _, second = processes.run(TROUBLED, 2, "SIGSTOP", check=False)
    assert (second.values, second.code) == (("before",), None)
    assert str(second) == "process 1 had not ended"


def test_out_of_time_says_who_had_not_ended():
    with pytest.raises(ChildProcessError, match=r"process 0 had not ended \(of 1\)"):
        processes.run(SLEEPS, 1, timeout=0.5)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_no_process_outlives_an_interrupted_call(monkeypatch, error):
    """Interrupted while it waits, as by the button of a notebook."""
    started = []
    usual = processes.subprocess.Popen

    def noted(*arguments, **more):
        started.append(usual(*arguments, **more))
        return started[-1]

    def interrupted(seconds):
        raise error

    monkeypatch.setattr(processes.subprocess, "Popen", noted)
    monkeypatch.setattr(processes.time, "sleep", interrupted)
    with pytest.raises(error):
        processes.run(SLEEPS, 2)
    monkeypatch.undo()
    assert len(started) == 2
    assert gone([one.pid for one in started])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_no_process_outlives_a_killed_caller(tmp_path):
    """Nobody runs a `finally` after kill -9: the processes notice it themselves."""
    script = f"""
        import sys, time, os
        sys.path.insert(0, {str(BOOK)!r})
        from shardmath.referee import processes

        def worker(where):
            open({str(tmp_path)!r} + f"/{{os.getpid()}}", "w").close()
            time.sleep(600)
            yield

        processes.run(worker, 2)
    """
    caller = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
    try:
        while len(list(tmp_path.iterdir())) < 2:
            assert caller.poll() is None
            time.sleep(0.01)
    finally:
        caller.kill()
        caller.wait()
    assert gone([int(path.name) for path in tmp_path.iterdir()])


def test_a_port_that_somebody_took_is_tried_again_once(monkeypatch):
    """JAX itself meets the port: process 0 fails before anybody yields."""
    worker = made("""
        import jax

        def worker(where):
            jax.distributed.initialize(**where)
            yield jax.device_count()
    """)
    usual, asked = processes.free_port, []
    with socket.socket() as taken:
        taken.bind((processes.HOST, 0))
        taken.listen()

        def free_port():
            asked.append(1)
            return taken.getsockname()[1] if len(asked) == 1 else usual()

        monkeypatch.setattr(processes, "free_port", free_port)
        (only,) = processes.run(worker, 1, devices=3)
    assert (only.values, len(asked)) == ((3,), 2)


def test_a_failure_of_the_worker_is_not_tried_again(monkeypatch):
    played = []
    usual = processes._Job.play
    monkeypatch.setattr(
        processes._Job, "play", lambda job: played.append(1) or usual(job)
    )
    with pytest.raises(ChildProcessError):
        processes.run(FAILS, 2)
    assert len(played) == 1


def test_the_stack_of_an_abort_is_not_its_last_line():
    log = [
        "E1128 01:20:33.448170   40 coordination.cc:77] a heartbeat is missing",
        "[Gloo] Rank 0 is connected to 1 peer ranks.",
        "*** Check failure stack trace: ***",
        "    @     0x7f8d2d4ee709  absl::internal()",
    ]
    said = [processes.LOGGED.sub("", one) for one in log]
    kept = [one for one in said if not processes.NOISE.match(one)]
    assert kept == ["a heartbeat is missing"]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"n": 0}, "n"),
        ({"n": 1.5}, "n"),
        ({"n": True}, "n"),
        ({"devices": 0}, "devices"),
        ({"heartbeat": -1}, "heartbeat"),
        ({"timeout": 0}, "timeout"),
        ({"worker": len}, "worker"),
        ({"worker": lambda where: 1}, "worker"),
        ({"worker": None}, "worker"),
    ],
)
def test_bad_arguments_are_refused_before_anything_starts(monkeypatch, changes, word):
    monkeypatch.setattr(processes.subprocess, "Popen", None)
    given = {"worker": SLEEPS, "n": 1} | changes
    worker, n = given.pop("worker"), given.pop("n")
    with pytest.raises(ValueError, match=word):
        processes.run(worker, n, **given)


def test_no_process_is_left_by_these_tests():
    if not Path("/proc").exists():
        pytest.skip("needs /proc")
    mine = str(os.getpid())
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = (path / "stat").read_text("utf-8").rsplit(")", 1)[1].split()[1]
            command = (path / "cmdline").read_text("utf-8")
        except (FileNotFoundError, ProcessLookupError):
            continue
        assert parent != mine or processes.CHILD not in command
