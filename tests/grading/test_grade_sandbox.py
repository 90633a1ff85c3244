"""Walls and limits: what an answer reaches, and what it costs the others."""

import errno
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from grading_material import (
    ENDLESS,
    NUMBER,
    RIGHT,
    kill_with_an_answer_running,
    reference,
    submission,
)

from shardmath.exercises import answers
from shardmath.grading import grade as grading
from shardmath.grading import isolation, sandbox, syscalls
from shardmath.grading.grade import references

LIMITS = sandbox.Limits(seconds=20, memory=2**31, disk=2**22)
RUNGS = {
    ("root" if rung.prefix.keywords["as_root"] else "user")
    + "-plain" * ("counted" in rung.prefix.keywords): rung
    for rung in isolation._ladder()
}
LINUX = pytest.mark.skipif(not syscalls.known(), reason="the filter is Linux's")


@pytest.fixture(params=["root", "user"])
def closed(request):
    """Each way to build walls, where it works."""
    return working(request.param)


def working(name):
    if name not in RUNGS or isolation._fault(RUNGS[name]):
        pytest.skip(f"{name}: not on this system")
    return RUNGS[name]


@pytest.fixture
def host(tmp_path):
    """What must not be reached: a file, a Unix socket, a port; and a tally of calls."""
    place = tmp_path / "with a space"
    place.mkdir()
    (place / "other.ipynb").write_text("secret")
    unix, port = socket.socket(socket.AF_UNIX), socket.create_server(("127.0.0.1", 0))
    unix.bind(str(place / "s"))
    unix.listen()
    yield {
        "file": str(place / "other.ipynb"),
        "unix": str(place / "s"),
        "port": port.getsockname(),
        "package": answers.__file__,
    }
    unix.close()
    port.close()


TRIES = """
import ctypes, mmap, os, socket, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)

def call(*told):
    if libc[told[0]](*told[1:]) < 0:
        raise OSError(ctypes.get_errno(), told[0])

def fill():
    for n in range(9):
        with open(f"/tmp/{n}", "wb") as file:
            for _ in range(4):
                file.write(bytes(2**18))

def number(x86_64, aarch64):
    return {"x86_64": x86_64, "aarch64": aarch64}[os.uname().machine]

def many_files():
    kept = [os.dup(0) for _ in range(300)]

tries = {
    "keys": lambda: call("syscall", number(248, 217), b"user", b"x", b"hello", 5, -4),
    "keys of others": lambda: call("syscall", number(250, 219), 0, -4, 1),
    "key request": lambda: call("syscall", number(249, 218), b"user", b"x", None, -4),
    "messages": lambda: call("msgget", 0, 0o1600),
    "semaphores": lambda: call("semget", 0, 9, 0o1600),
    "open files": many_files,
    "remount": lambda: call("mount", None, b"/", None, 32 | 4096, None),
    "own namespace": lambda: call("unshare", 0x10000000 | 0x20000),
    "other file": lambda: open(host["file"]).read(),
    "processes": lambda: os.listdir("/proc/1"),
    "the rest of /proc": lambda: open("/proc/self/status"),
    "package": lambda: open(host["package"], "a"),
    "disk": lambda: open("/notes", "w"),
    "devices": lambda: open("/dev/shm/x", "w"),
    "unix": lambda: socket.socket(socket.AF_UNIX).connect(host["unix"]),
    "network": lambda: socket.create_connection(host["port"], 1),
    "fork": os.fork,
    "program": lambda: subprocess.run(["/bin/true"]),
    "hidden memory": lambda: os.memfd_create("x"),
    "memory": lambda: mmap.mmap(-1, 2**32),
    "disk in all": fill,
    "files without end": lambda: [os.mknod(f"/tmp/f{n}") for n in range(10**4)],
    "one large file": lambda: open("large", "wb").write(bytes(2**23)),
}
def threads():
    threading.stack_size(2**15)
    for _ in range(1500):
        threading.Thread(target=halt.wait, daemon=True).start()

halt = threading.Event()
tries["threads"] = threads
threading.Thread(target=int).start()  # a process may have threads, though not many
reached = []
for name in names:
    try:
        tries[name]()
        reached.append(name)
    except (OSError, MemoryError, RuntimeError):
        pass
halt.set()
raise ValueError(f"reached {reached}")
"""


WALLED = (
    "remount",
    "own namespace",
    "other file",
    "processes",
    "the rest of /proc",
    "package",
    "disk",
    "devices",
    "disk in all",
)
ALONE = (
    *("fork", "program", "unix", "network", "hidden memory", "memory"),
    *("keys", "keys of others", "key request", "messages", "semaphores", "open files"),
)


def reached(host, rung, names):
    """Which of these an answer reaches, as it says itself."""
    code = f"host, names = {host!r}, {names!r}\n{TRIES}"
    job = {"cells": [{"at": "x", "code": code}], "tasks": {}, "skip": [], "have": []}
    ran = sandbox.run("shardmath.grading.sandboxed", job, ["x"], LIMITS, rung=rung)
    assert not ran.ended
    return re.search(r"reached (\[.*?\])", ran.results["x"]["raises"])[1]


@LINUX
def test_an_answer_reaches_nothing_but_its_own_process(closed, host):
    exempt = os.geteuid() == 0 and closed.prefix.keywords["as_root"] is False
    names = WALLED + ALONE + (() if exempt else ("threads",))  # root has no limit
    assert reached(host, closed, (*names, "files without end")) == "[]"


@LINUX
def test_without_a_limit_on_files_an_answer_reaches_nothing_either(host):
    assert reached(host, working("user-plain"), WALLED + ALONE) == "[]"


@LINUX
def test_without_walls_there_is_still_one_process_without_network(host):
    bare = isolation.isolation("none")
    assert bare.said.startswith("UNSAFE")
    assert not bare.closed
    assert reached(host, bare, (*ALONE, "one large file")) == "[]"


def test_each_way_to_run_says_what_has_no_limit():
    ways = [*isolation._ladder(), isolation.isolation("none")]
    assert all("Kernel objects, such as" in rung.said for rung in ways)


@pytest.fixture
def no_tools(tmp_path, monkeypatch):
    """A PATH on which there is nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    isolation.isolation.cache_clear()
    yield
    isolation.isolation.cache_clear()


def test_without_walls_nothing_runs_unless_somebody_asks_for_it(no_tools):
    with pytest.raises(OSError, match="bwrap is not on the PATH"):
        isolation.isolation()
    given = {NUMBER.id: RIGHT[NUMBER.id]}
    with pytest.raises(OSError, match="bwrap is not on the PATH"):
        grading.grade(submission(given), reference(NUMBER.id), "x", LIMITS)
    job = {"cells": [], "tasks": {}, "skip": [], "have": []}
    with pytest.raises(OSError, match="bwrap is not on the PATH"):
        sandbox.run("shardmath.grading.sandboxed", job, [], LIMITS)


def test_tools_that_are_links_from_somewhere_else_build_the_same_walls(
    closed, tmp_path, monkeypatch
):
    for name in ("bwrap", "unshare", "setpriv", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert isolation._fault(closed) == ""


@LINUX
def test_calls_that_could_win_privileges_are_refused_before_they_are_looked_at():
    """Without the filter the same calls end with an error of their own."""
    table = {"x86_64": (272, 308, 321), "aarch64": (97, 268, 280)}
    told = f"""
import ctypes
from shardmath.grading import syscalls
libc = ctypes.CDLL(None, use_errno=True)
for limited in range(2):
    for number in {table[os.uname().machine]}:  # unshare, setns, bpf
        libc.syscall(number, -1, None, 0)
        print(ctypes.get_errno())
    if not limited:
        syscalls.forbid()
"""
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, check=True)
    *before, unshare, setns, bpf = map(int, ran.stdout.split())
    assert before[:2] == [errno.EINVAL, errno.EBADF]
    assert unshare == setns == bpf == errno.EPERM


CAUSAL = "07.15"  # attention in four blocks, in JAX


def test_a_right_program_is_right_within_walls_as_it_is_outside(closed):
    """XLA must know the processor: else kernels for larger shapes refuse to run."""
    question = answers.find(CAUSAL)
    seed = max("abcdef", key=lambda each: math.prod(question.draw(each)[0]))
    assert question.draw(seed)[0][0] > question.draw("a")[0][0], "a larger shape"
    chapter = references(Path("exercises"))
    one = submission({CAUSAL: question.code})
    limits = sandbox.Limits(seconds=60)
    graded = grading.grade(one, chapter, seed, limits, rung=closed)
    found = {row.question: row.finding for row in graded.rows}
    assert found[CAUSAL].verdict == "correct", found[CAUSAL].message


def test_what_lies_in_the_systems_tmp_is_seen(closed, monkeypatch):
    """Somebody's clone or environment may lie there; the walls' own /tmp is empty."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        os.chmod(place, 0o755)
        file = Path(place, "module.py")
        file.write_text("")
        seen = isolation.visible_paths()
        monkeypatch.setattr(isolation, "visible_paths", lambda: [*seen, place])
        room = isolation.Workdir(os.path.realpath(tempfile.mkdtemp(dir=place)), 2**20)
        code = f"import os; assert os.listdir({place!r}); open('/tmp/x', 'w')"
        command = [*closed.prefix(room), isolation.PYTHON, "-c", code]
        subprocess.run(command, check=True)


def test_an_answer_dies_with_the_grader(closed):
    as_root = closed.prefix.keywords["as_root"]
    told = f"""
from shardmath.grading import sandbox, isolation as walls
rung = next(
    rung for rung in walls._ladder()
    if rung.name == {closed.name!r} and rung.prefix.keywords["as_root"] is {as_root}
)
cells = [{{"at": "x", "code": {ENDLESS!r}}}]
job = {{"cells": cells, "tasks": {{}}, "skip": [], "have": []}}
limits = sandbox.Limits(seconds=60)
sandbox.run("shardmath.grading.sandboxed", job, ["x"], limits, rung=rung)
"""
    kill_with_an_answer_running(subprocess.Popen([sys.executable, "-c", told]))


def test_nested_folders_without_end_are_cleared_away(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    nest = "import os\nfor _ in range(1200):\n    os.mkdir('d')\n    os.chdir('d')\n"
    given = {NUMBER.id: nest + RIGHT[NUMBER.id]}
    graded = grading.grade(
        submission(given),
        reference(NUMBER.id),
        "x",
        LIMITS,
        rung=isolation.isolation("none"),
    )
    assert [row.finding.verdict for row in graded.rows] == ["correct"]
    assert not list(tmp_path.iterdir())


def listen(script, asked, limits, granted=99):
    process = subprocess.Popen([sys.executable, "-uc", script], stdout=subprocess.PIPE)
    try:
        with process.stdout:
            return sandbox._listen(
                process, frozenset(asked), limits, granted, sandbox.RETURNED
            )
    finally:
        process.kill()
        process.wait()


def test_each_question_has_the_whole_limit():
    slow = """
import time
for q in "abc":
    print('{"at": "%s"}' % q)
    time.sleep(.7)
    print('{"question": "%s", "result": 1}' % q)
print('{"end": true}')
"""
    ran = listen(slow, "abc", sandbox.Limits(seconds=1.8))
    assert (ran.results, ran.ended) == ({"a": 1, "b": 1, "c": 1}, "")


def test_forged_lines_win_no_time():
    forged = """
import itertools
for n in itertools.count():
    print('{"at": "a"}')
    print('{"at": "%d"}' % n)
    print('{"at": []}\\\\n[1]\\\\n{{{\\\\n' + "[" * 999)
"""
    ran = listen(forged, "ab", sandbox.Limits(seconds=1))
    assert (ran.at, ran.results) == ("a", {})
    assert "limit" in ran.ended or "MiB" in ran.ended


def test_all_questions_together_have_an_end():
    hang = """print('{"at": "a"}'); import time; time.sleep(99)"""
    ran = listen(hang, "ab", sandbox.Limits(seconds=50), granted=0.2)
    assert ran.ended == "earlier steps hit the time limit"


def test_endless_answers_share_one_grant(monkeypatch):
    granted = []

    def hang(module, job, asked, limits, slot, rung, seconds, returned):
        granted.append(seconds)
        at = next(q for q in asked if q not in job["skip"])
        return sandbox.Ran({}, at, "stopped", min(limits.seconds * 2, seconds))

    monkeypatch.setattr(sandbox, "run", hang)
    questions = [f"01.{n}" for n in range(1, 14)]
    limits = sandbox.Limits(seconds=10)
    results, stopped = grading._rounds({}, questions, limits, sandbox.ANYWHERE, None)
    assert granted == [130, 110, 90, 70, 50, 30, 10]
    assert not results
    assert list(stopped) == questions


def test_a_submission_has_a_limit_however_many_answers_it_has(monkeypatch):
    granted = []

    def hang(module, job, asked, limits, slot, rung, seconds, returned):
        granted.append(seconds)
        at = next(q for q in asked if q not in job["skip"])
        return sandbox.Ran({}, at, "stopped", min(limits.seconds, seconds))

    monkeypatch.setattr(sandbox, "run", hang)
    cells = [f"code cell {n}" for n in range(450)]  # all that the book asks, endless
    limits = sandbox.Limits()
    _, stopped = grading._rounds({}, cells, limits, sandbox.ANYWHERE, None)
    assert sum(1 for _ in granted) == limits.total / limits.seconds == 10
    assert len(stopped) == 450
    assert stopped["code cell 449"] == "earlier steps hit the time limit"


def test_a_result_too_large_is_not_looked_at():
    large = """
print('{"at": "a"}\\n{"question": "a", "result": [' + "[]," * 2**19 + '0]}')
print('{"question": "b", "result": 1}\\n{"end": true}')
"""
    ran = listen(large, "ab", sandbox.Limits(seconds=5))
    assert (ran.results, ran.ended) == ({"b": 1}, "")
    assert ran.size > 2**20


def stopping(monkeypatch, size=0, slow=0):
    """How many rounds there are when each question ends its own after so much.

    The clock only moves by the `slow` seconds of a round, however busy the machine is.
    """
    rounds = []

    def stop(module, job, asked, limits, slot, rung, seconds, returned):
        rounds.append(returned)
        at = next((q for q in asked if q not in job["skip"]), "")
        return sandbox.Ran({}, at or asked[-1], "stopped" if at else "", 0, size)

    monkeypatch.setattr(sandbox, "run", stop)
    clock = SimpleNamespace(monotonic=lambda: slow * len(rounds))
    monkeypatch.setattr(grading, "time", clock)
    limits, questions = sandbox.Limits(seconds=0.02), [f"01.{n}" for n in range(10)]
    _, stopped = grading._rounds({}, questions, limits, sandbox.ANYWHERE, None)
    assert list(stopped) == questions
    return len(rounds), stopped["01.9"]


def test_all_rounds_share_what_may_come_back(monkeypatch):
    assert stopping(monkeypatch) == (11, "stopped")
    late = "earlier steps hit the output limit"
    assert stopping(monkeypatch, size=sandbox.RETURNED // 3) == (4, late)


def test_every_start_but_the_first_takes_of_the_grant(monkeypatch):
    late = "earlier steps hit the time limit"
    assert stopping(monkeypatch, slow=0.11) == (3, late)


@pytest.mark.parametrize(("lists", "at"), [(1, NUMBER.id), (2**22, "")])
def test_limits_bind_before_evidence_of_any_shape_is_read(lists, at):
    """As a value it takes up to 50 times as much memory as the line that brought it."""
    job = {"evidence": {NUMBER.id: [[]] * lists}, "tasks": {}, "skip": [], "have": []}
    ran = sandbox.run(
        *("shardmath.grading.sandboxed", job, [NUMBER.id]),
        sandbox.Limits(memory=2**28),
        rung=isolation.isolation("none"),
    )
    assert ran.at == at


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {"verdict": "correct"},
        {"verdict": "perfect", "message": "", "slip": ""},
        {"verdict": "correct", "message": [[]], "slip": ""},
    ],
)
def test_what_is_no_finding_is_no_verdict(said):
    found = grading._finding("01.1", True, {"01.1": said}, {})
    assert (found.verdict, found.slip) == ("invalid", "")


def test_long_words_are_cut():
    said = {"verdict": "wrong", "message": "x" * 2**20, "slip": ""}
    found = grading._finding("01.1", True, {"01.1": said}, {})
    assert (found.verdict, len(found.message)) == ("wrong", 2000)


def test_a_sandbox_that_does_not_start_is_no_verdict(monkeypatch):
    calls = []

    def forge(module, job, *rest):
        calls.append(job["skip"])
        return sandbox.Ran({}, "", "the process ended early", 0)

    monkeypatch.setattr(sandbox, "run", forge)
    limits = sandbox.Limits(seconds=1)
    with pytest.raises(RuntimeError, match="did not start: the process ended early"):
        grading._rounds({}, ["01.1"], limits, sandbox.ANYWHERE, None)
    assert calls == [[]]


def test_a_place_has_processors_of_its_own():
    from shardmath.grading.folder import _slots

    cpus = len(os.sched_getaffinity(0))
    slots = _slots(cpus)
    assert len({cpu for slot in slots for cpu in slot.cpus}) == cpus
    assert all(slot.cpus for slot in _slots(cpus + 3))
