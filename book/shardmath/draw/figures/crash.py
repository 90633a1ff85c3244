"""The live figure "crash": four processes, a crash, and the resumed run."""

from collections.abc import Iterator
from dataclasses import dataclass

from ...base.units import pluralize
from ..shapes import box, framed, keyed, line, number, written
from .controls import Choice, Drawing, Figure, Slider

PROCESSES = 4
RESTART = 3.0  # seconds, of one step each, until all processes compute again
KILLED, SILENT = "is killed", "stops responding"
HOW = Choice("how", "Process 3", (KILLED, SILENT), KILLED)
CRASH = Slider("crash", "In second", "", 1, 20, 13, step=1)
EVERY = Slider("every", "Save every", "steps", 2, 10, 5, step=1)
WRITE = Slider("write", "A save takes", "seconds", 1, 6, 1, step=1)
HEARTBEAT = Slider("heartbeat", "Heartbeat timeout", "seconds", 2, 10, 6, step=1)
KINDS = {  # kinds of boxes, in colours that colour-blind readers can distinguish
    "kept": "hue3",
    "lost": "hue8",
    "repeated": "hue2",
    "saving": "hue5",
}
WIDE, HIGH, LEFT, RIGHT, END = 416, 318, 78, 410, 48
TOP, LANE, SAVES, AXIS = 52, 24, 156, 184


@dataclass(frozen=True)
class Life:
    """A run from its start to a crash. Times are in seconds. A step takes one second.

    Args:
        steps: start of each step. The last one may not have ended.
        saves: (step, start, end) of each save. The last one may not have ended.
        crash: when a process fails.
    """

    steps: tuple[float, ...]
    saves: tuple[tuple[int, float, float], ...]
    crash: float

    @property
    def resumes(self) -> int:
        """The number of steps in the last complete save, or 0."""
        return max(
            (step for step, _, end in self.saves if end <= self.crash), default=0
        )

    @property
    def begun(self) -> int:
        """The number of steps that had begun."""
        return len(self.steps)

    @property
    def again(self) -> float:
        """The number of steps to repeat. The last one may count as a fraction."""
        last = min(1.0, self.crash - self.steps[-1])
        return self.begun - 1 + last - self.resumes


def life(crash: float, every: int, write: float) -> Life:
    """The run until `crash`, in which saves are written while the next steps run.

    Args:
        crash: seconds from the start.
        every: steps between the starts of two saves.
        write: seconds from the start of a save until it is complete. A save waits for
            the previous one, and the training waits too.

    >>> life(12.5, every=5, write=1).resumes, life(10.5, every=5, write=1).resumes
    (10, 5)
    """
    now, written_until, steps, saves = 0.0, 0.0, [], []
    while now < crash:
        steps.append(now)
        now += 1
        if len(steps) % every == 0 and now < crash:
            now = max(now, written_until)
            if now < crash:
                written_until = now + write
                saves.append((len(steps), now, written_until))
    return Life(tuple(steps), tuple(saves), crash)


def draw(how: str, crash: int, every: int, write: int, heartbeat: int) -> Drawing:
    """Four lanes of steps, the saves below them, and the steps to repeat."""
    run = life(crash - 0.5, every, write)
    waits = heartbeat if how == SILENT else 0.0
    seen = run.crash + waits
    back = seen + RESTART + run.again
    title = "Four processes and a crash"
    summary = _told(run, how, waits, back)
    data = {
        "resumes": run.resumes,
        "begun": run.begun,
        "again": run.again,
        "seen": seen,
        "back": back,
        "saves": run.saves,
    }
    rows = (
        ("", "in this run"),
        ("step under way at the failure", f"{run.begun}"),
        ("steps in the last complete save", f"{run.resumes}"),
        ("steps to be done again", f"{run.again:.1f}"),
        ("the others notice after", "no time" if not waits else f"{waits:.0f} s"),
        ("back where it was after", f"{back - run.crash:.1f} s"),
    )
    parts = (*_lanes(run, seen, back), *_saves(run), *_frame(title, run, back))
    svg = framed(title, summary, parts, WIDE, HIGH)
    idle = {} if how == SILENT else {"heartbeat": "a broken connection is seen at once"}
    return Drawing(svg, summary, rows, data, idle=idle)


def _told(run: Life, how: str, waits: float, back: float) -> str:
    noticed = (
        f"The others notice after {pluralize(f'{waits:.0f}', 'seconds')}."
        if waits
        else "The others notice at once."
    )
    kept = (
        f"The last complete save is that of step {run.resumes}, so the run resumes "
        "there"
        if run.resumes
        else "No save is complete yet, so the run begins anew"
    )
    return (
        f"Process 3 {how} after {run.crash:.1f} seconds, in step {run.begun}. "
        f"{noticed} {kept} and does {run.again:.1f} steps again. It is back where it "
        f"was {back - run.crash:.1f} seconds after the failure."
    )


def _x(seconds: float) -> float:
    return LEFT + (RIGHT - LEFT) * min(seconds, END) / END


def _box(start: float, end: float, lane: int, kind: str, key: str = "") -> str:
    y = TOP + LANE * lane
    return box(_x(start), y, _x(end) - 0.8, y + LANE - 6, KINDS[kind], fill=0.75,
               edge=0, round=1, key=key)  # fmt: skip


def _lanes(run: Life, seen: float, back: float) -> Iterator[str]:
    """Steps before the failure, the wait, the restart, and the steps after it."""
    bottom = TOP + LANE * PROCESSES - 6
    for lane in range(PROCESSES):
        for n, begin in enumerate(run.steps):
            kind = "kept" if n < run.resumes else "lost"
            yield _box(begin, min(begin + 1, run.crash), lane, kind)
        y = TOP + LANE * lane
        if seen > run.crash:
            yield box(_x(run.crash), y, _x(seen) - 0.8, y + LANE - 6, "ink", fill=0,
                      edge=0.5, dashed=True, round=1)  # fmt: skip
        begin = seen + RESTART
        while begin < min(back, END) - 1e-9:
            yield _box(begin, min(begin + 1, back), lane, "repeated")
            begin += 1
        begin = back
        while begin < END - 1e-9:
            yield _box(begin, min(begin + 1, END), lane, "kept")
            begin += 1
    yield box(_x(seen), TOP, _x(seen + RESTART), bottom, "ink", fill=0.14, edge=0,
              key="restart")  # fmt: skip
    x, y = _x(run.crash), TOP + LANE * (PROCESSES - 1) + (LANE - 6) / 2
    yield line((x, TOP - 6), (x, AXIS), width=1.5, dashed=True, key="failure")
    for one, other in ((-6, 6), (6, -6)):
        yield line((x + one, y - 6), (x + other, y + 6), width=3,
                   key=f"cross{one}")  # fmt: skip
    stops = " ".join(number(_x(stop - 0.5)) for stop in CRASH.stops)
    yield (
        f'<circle cx="{number(x)}" cy="{number(y)}" r="18"{keyed("handle")} '
        f'data-drag="{CRASH.name}" data-drag-at="{stops}" fill="transparent"/>'
    )


def _saves(run: Life) -> Iterator[str]:
    """Each save as a bar: full where it is complete, broken off by the failure."""
    for step, start, end in run.saves:
        whole = end <= run.crash
        yield box(_x(start), SAVES, _x(min(end, run.crash)), SAVES + 14,
                  KINDS["saving"], fill=0.8 if whole else 0.15, edge=1,
                  dashed=not whole, round=1, key=f"save {step}")  # fmt: skip
    if run.resumes:
        ends = {step: end for step, _, end in run.saves}
        x = _x(ends[run.resumes])
        yield line((x, SAVES - 4), (x, SAVES + 20), colour=KINDS["saving"], width=2.5,
                   key="resumes")  # fmt: skip


def _frame(title: str, run: Life, back: float) -> Iterator[str]:
    yield written(2, 16, title, bold=True)
    yield written(2, 36, "A box is a step, which takes one second.")
    for lane in range(PROCESSES):
        yield written(2, TOP + LANE * lane + 14, f"process {lane}")
    yield written(2, SAVES + 12, "saves", KINDS["saving"])
    yield line((LEFT, AXIS), (RIGHT, AXIS), width=1, opacity=0.5)
    for tick in range(0, END, 10):
        yield line((_x(tick), AXIS), (_x(tick), AXIS + 4), width=1, opacity=0.5)
        yield written(_x(tick), AXIS + 18, f"{tick}", anchor="middle")
    yield written(2, AXIS + 18, "seconds")
    x = 2.0
    for kind, wide in (("kept", 62), ("lost", 58), ("repeated", 92)):
        yield box(x, 218, x + 12, 230, KINDS[kind], fill=0.75, edge=0, round=1)
        yield written(x + 17, 229, kind, KINDS[kind])
        x += wide
    yield box(x, 218, x + 12, 230, "ink", fill=0, edge=0.5, dashed=True, round=1)
    yield written(x + 17, 229, "waiting")
    x += 84
    yield box(x, 218, x + 12, 230, "ink", fill=0.14, edge=0, round=1)
    yield written(x + 17, 229, "restart")
    start = f"Resumes after step {run.resumes}" if run.resumes else "Begins anew"
    yield written(2, 262, start, bold=True, key="resumes's")
    yield written(2, 284, f"{run.again:.1f} steps are done again.", KINDS["repeated"],
                  key="again's")  # fmt: skip
    yield written(2, 306, f"Back where it was {back - run.crash:.1f} s after the "
                  "failure.", key="back's")  # fmt: skip


FIGURE = Figure(
    "crash",
    "Four processes and a crash",
    (HOW, CRASH, EVERY, WRITE, HEARTBEAT),
    draw,
    first="crash",
    presets={
        "killed in step 13": {"how": KILLED, "crash": 13, "every": 5, "write": 1},
        "an incomplete save": {"how": KILLED, "crash": 13, "every": 5, "write": 4},
        "a hang": {"how": SILENT, "crash": 13, "every": 5, "write": 1, "heartbeat": 10},
        "saves that queue up": {"how": KILLED, "crash": 16, "every": 2, "write": 6},
    },
    row=("crash", "every", "write"),
)
