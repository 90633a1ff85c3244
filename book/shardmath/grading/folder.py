"""Grades a folder of submissions: ``python -m shardmath.grading DIR``.

A submission is an exercise notebook (.ipynb), or the progress file that the website
saves (.json). Each one runs alone in a sandbox that bubblewrap builds; without
bubblewrap, nothing is graded unless you pass --unsafe. Results are written as they
arrive, so an interrupted run continues where it stopped. Anything that has changed in
the meantime is graded again.

A notebook's code cells run from top to bottom, as the student ran them, so imports,
helper cells and earlier variables work. The value that `check` receives is the answer.
Shell commands, such as `!pip install`, do nothing. The points are those of this run.
"Ever right" adds the answers that were right according to the verdicts stored in the
file. Anybody can edit these verdicts.

Results are totals.csv (a line per student), answers.csv (a line per answer), index.html
(for you) and feedback/ (a page per file, for its student).

An answer can read this package, including the worked solutions, because the exercises
are open book. It can also read Python and the system's libraries and programs, but no
other file on this machine, and no other submission.
"""

import argparse
import functools
import hashlib
import json
import math
import os
import queue
import secrets
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from . import feedback, sandbox, sheets
from .grade import grade, questions, references
from .gradebook import ATTEMPTS, REPLACED, standing, turns
from .isolation import PACKAGE, Isolation, isolation
from .manual import manual_points
from .results import Graded, ResultStore, write
from .students import clashes, enrolled, found_by_number, look_alikes, roster
from .submissions import LeftOut, Submission, found, printable

_LEAST_MEMORY = 2  # GiB; with less, JAX may not start
_REFUSED = 3  # exit status if nothing was graded because there is no isolation
_CPUS = 4  # at most, per slot: XLA's threads, and so its memory, grow with them


def main(arguments: list[str] | None = None) -> int:
    """Grade a folder. Returns 0 if it was graded, whatever the verdicts."""
    parser = _parser()
    told = parser.parse_args(arguments)
    try:
        rung = _isolation(told.unsafe)
    except OSError as error:
        _say(_NO_ISOLATION.format(error))
        return _REFUSED
    try:
        reference = _chosen(references(told.reference), told.chapters)
        students = roster(told.roster) if told.roster else {}
        limits = _limits(told)
        out = _place(told.folder, told.out)
        by_hand = manual_points(path) if (path := _by_hand(out, told.points)) else []
        seed = _seed(out, told.seed)
        store = ResultStore(out / "results")
    except ValueError as error:
        parser.error(printable(str(error)))
    except OSError as error:
        parser.error(printable(f"cannot write {error.filename}: {error.strerror}"))
    there, left_out = found(told.folder)
    if not there and not any(one.owner for one in left_out):
        lacks = "holds no notebook (.ipynb) and no saved progress (.json)"
        parser.error(printable(f"{told.folder}: {lacks}"))
    numbered = found_by_number((one.owner for one in there), students)
    submissions = [
        replace(one, owner=enrolled(one.owner, students, numbered)) for one in there
    ]
    left_out = [_enrolled(one, students, numbered) for one in left_out]
    _say(rung.said)
    if short := _short_of_memory(told.jobs, told.memory):
        _say(short)

    context = f"{rung.name} {seed} {limits} {_digest()}"

    def key(one: Submission) -> str:
        asked = {c: reference[c] for c in sorted(one.chapters & reference.keys())}
        about = f"{context} {json.dumps(asked)} {one.digest}"
        return hashlib.sha256(about.encode()).hexdigest()

    run, replaced = turns(submissions, told.attempts, reference)
    graded, unkept = _graded(
        run,
        functools.partial(
            grade, reference=reference, seed=seed, limits=limits, rung=rung
        ),
        key,
        store,
        told.jobs,
    )
    graded += [Graded(one, problem=REPLACED) for one in replaced]
    graded.sort(key=lambda one: one.notebook)
    asked = questions(reference) if told.chapters else ()
    group = standing(graded, told.attempts, students, asked, left_out, by_hand)
    notices = _notices(there, submissions, left_out, students, [*group.notices])
    for line in [*group.left_out, *notices]:
        _say(line)
    try:
        sheets.answers_csv(out / "answers.csv", graded)
        sheets.totals_csv(out / "totals.csv", group)
        pages = feedback.feedback_pages(out / "feedback", graded, group)
        feedback.overview(
            out / "index.html", graded, group, left_out, pages, seed, rung, notices
        )
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}: {_kept(len(run), unkept)}")
        return 1
    where = ", ".join(str(out / f) for f in ("totals.csv", "answers.csv", "index.html"))
    more = f", {len(replaced)} replaced by a later one" if replaced else ""
    more += f", {len(left_out)} things left out" if left_out else ""
    if problems := sum(bool(one.problems) for one in group.students):
        more += f", {problems} students with a problem (totals.csv says which)"
    print(printable(f"{len(run)} submissions graded{more}: {where}"))
    if unkept:
        _say(_kept(len(run), unkept))
    return 0


_NO_ISOLATION = (
    "Nothing was graded, because answers cannot be isolated here: {}. They could read "
    "other submissions, these results and your files. Install bubblewrap (on Linux, "
    "for example `apt-get install bubblewrap`), or pass --unsafe if you trust "
    "everybody who handed something in."
)


def _isolation(unsafe: bool) -> Isolation:
    """The safest isolation that works here, or none if `unsafe` allows that.

    Raises:
        OSError: no isolation works here.
    """
    try:
        return isolation()
    except OSError:
        if unsafe:
            return isolation("none")
        raise


def _limits(told: argparse.Namespace) -> sandbox.Limits:
    total = 10 * told.seconds if told.total is None else told.total
    if total < told.seconds:
        raise ValueError(f"--total {total:g}: must be at least --seconds")
    return sandbox.Limits(told.seconds, total, int(told.memory * 2**30))


def _by_hand(out: Path, told: Path | None) -> Path | None:
    """The file with points given by hand, if there is one."""
    usual = out / "by_hand.csv"
    return told or (usual if usual.exists() else None)


def _enrolled(
    one: LeftOut, students: dict[str, str], numbered: frozenset[str]
) -> LeftOut:
    return replace(one, owner=one.owner and enrolled(one.owner, students, numbered))


def _notices(there, submissions, left_out, students, more: list[str]) -> list[str]:
    """What the instructor should check: names that are ambiguous or look alike."""
    owners = [one.owner for one in [*submissions, *left_out] if one.owner]
    told = [one.notice for one in owners if one.notice]
    told += clashes([one.owner for one in there], students)
    told += look_alikes({*students, *(one.student for one in owners)})
    return [*dict.fromkeys([*told, *more])]


def _kept(graded: int, unkept: int) -> str:
    """Which results a second run need not compute again."""
    if not unkept:
        return "the results are kept, so run the same again"
    if unkept == graded:
        return "no result is kept: make room, and run the same again"
    kept = f"{graded - unkept} of {graded} results are kept"
    return f"{kept}; the other {unkept} are graded again in the next run"


def _graded(
    submissions, grade, key, store: ResultStore, jobs: int
) -> tuple[list[Graded], int]:
    """Every submission's result, and how many of them could not be saved.

    Results are saved as they arrive, and no submission stops another.
    """
    unkept: list[str] = []
    slots: queue.SimpleQueue = queue.SimpleQueue()
    for slot in _slots(jobs):
        slots.put(slot)

    def one(submission: Submission) -> tuple[Graded, str]:
        slot, began = slots.get(), time.monotonic()
        try:
            name = key(submission)
            if known := store.known(name, submission):
                return known, "graded before"
            result = grade(submission, slot=slot)
        except Exception as error:  # one submission must not stop the others
            why = f"the grader met {type(error).__name__}: {error!s:.200}"
            return Graded(submission, problem=why), "not graded"
        finally:
            slots.put(slot)
        try:
            store.keep(name, result)
        except Exception as error:  # a full disk, or no memory for it
            why = getattr(error, "strerror", None) or type(error).__name__
            unkept.append(submission.notebook)
            _say(f"{store.folder}: {why}: this result is not kept")
        return result, f"{time.monotonic() - began:.0f} s"

    done: dict[int, Graded] = {}
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(one, each): n for n, each in enumerate(submissions)}
        try:
            for future in as_completed(running):
                result, how = future.result()
                done[running[future]] = result
                _say(f"{len(done)}/{len(submissions)} {result.notebook}: {how}")
        except KeyboardInterrupt:
            _say("Stopped. Results are kept: run the same command again to continue.")
            os._exit(130)  # running submissions die with this process
    return [done[number] for number in sorted(done)], len(unkept)


def _slots(jobs: int) -> list[sandbox.Slot]:
    """Slots to run in, each with its own CPUs if there are enough."""
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return [
        sandbox.Slot(number, tuple((cpus[number::jobs] or cpus)[:_CPUS]))
        for number in range(jobs)
    ]


def _short_of_memory(jobs: int, memory: float) -> str:
    """A warning if notebooks that run at once may need more memory than there is."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    except (AttributeError, ValueError, OSError):  # not every system can tell
        return ""
    if jobs * memory <= there:
        return ""
    return (
        f"UNSAFE: {jobs} notebooks of {memory:g} GiB do not fit in {there:.1f} GiB, "
        "so one could crash another. Use fewer --jobs."
    )


def _place(folder: Path, out: Path | None) -> Path:
    """Create the folder for the results, outside the folder of submissions.

    Raises:
        ValueError: `folder` does not exist, or `out` is missing or inside `folder`.
        OSError: it cannot be created.
    """
    folder = folder.resolve()
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    if out is None and not folder.name:
        raise ValueError(f"{folder}: say with --out where the results go")
    out = (out or folder.with_name(f"{folder.name}-graded")).resolve()
    if out.is_relative_to(folder):
        raise ValueError(f"--out {out}: must be outside the folder of submissions")
    out.mkdir(parents=True, exist_ok=True)
    return out


def _seed(out: Path, told: str) -> str:
    """The given seed, else that of the previous run, else a new one. It is saved."""
    path = out / "seed"
    try:
        seed = told or path.read_text("utf-8").strip()
    except FileNotFoundError:
        seed = ""
    seed = seed or secrets.token_hex(8)
    write(path, seed)
    return seed


def _chosen(reference: dict, chapters: list[str]) -> dict:
    """The exercises of these chapters, or of all if none is named.

    Raises:
        ValueError: a chapter has no exercises.
    """
    if unknown := sorted(set(chapters) - reference.keys()):
        there = ", ".join(reference)
        raise ValueError(f"--chapters {','.join(unknown)}: choose from {there}")
    return {c: cells for c, cells in reference.items() if c in chapters or not chapters}


def _digest() -> str:
    """A hash of the package's source files."""
    told = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        told.update(path.read_bytes())
    return told.hexdigest()


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m shardmath.grading",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("folder", type=Path, help="holds the submissions")
    add("--reference", type=Path, default=Path("exercises"), help="the exercises")
    add("--out", type=Path, help="default: the folder's name + -graded, beside it")
    add(
        "--chapters",
        type=lambda text: [number.strip().zfill(2) for number in text.split(",")],
        default=[],
        help="the ones that count, such as 01,02; no others run (default: all run, and "
        "those that more than half of the students handed in count)",
    )
    add("--attempts", choices=ATTEMPTS, default="latest", help="which one counts")
    add("--roster", type=Path, help='CSV with a column "student", optionally "name"')
    add(
        "--points",
        type=Path,
        help='CSV with columns "student" (as in totals.csv), "question", "points" and '
        'optionally "note": points given by hand, which replace the grader\'s '
        "(default: by_hand.csv among the results, if there is one)",
    )
    add(
        "--seconds",
        type=_least(float, 1),
        default=30,
        help="for each code cell, and for judging each answer (default: 30)",
    )
    add(
        "--total",
        type=_least(float, 1),
        help="seconds for all code cells of a submission, and as much again for "
        "judging its answers (default: ten times --seconds)",
    )
    add(
        "--memory",
        type=_least(float, _LEAST_MEMORY),
        default=4,
        help="GiB for each submission (default: 4)",
    )
    add("--jobs", type=_least(int, 1), default=2, help="submissions at a time (2)")
    add("--seed", default="", help="of an earlier run, to draw the same test cases")
    add(
        "--unsafe",
        action="store_true",
        help="grade even if answers cannot be isolated; the results say so, and a "
        "later run with isolation does not reuse them",
    )
    return parser


def _least(kind: type, least: float):
    """A function that reads a finite number of at least `least`."""
    what = "a whole number" if kind is int else "a number"

    def read(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not least <= value < math.inf:
            raise argparse.ArgumentTypeError(
                f"{text!r}: must be {what}, at least {least}"
            )
        return value

    return read
