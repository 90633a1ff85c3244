"""The live figure "race": five ways to run one step, in lanes on one clock."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...base.units import show
from ...transformer import DEEPSEEK_V3, LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B
from ..labels import text_width
from ..objects.race import BATCHES, MACHINES, MODELS, Runner, runners
from ..picture import WIDEST
from ..shapes import box, circle, framed, keyed, line, number, written
from ..theme import paint
from .controls import Choice, Drawing, Figure, Slider

SHOWN = 24  # moments from the start to the last finish
ROUNDS = 8  # into which the work of a step is divided
NO_BET = "no bet yet"
NAMES = {
    "data": "data parallelism",
    "FSDP": "FSDP",
    "tensor": "tensor parallelism",
    "pipeline": "pipeline",
    "mixture": "a mixture",
}
TIMES = {  # colour → parts of a prediction that occur in every round
    "math": ("math", "attention"),
    "HBM": ("memory", "launches"),
    "network": ("tensor", "context", "experts", "weights"),
}
EDGE, ROW, BAR = 6, 48, 16
HUES = {"math": "math", "HBM": "HBM", "network": "network", "waiting": "ink"}
LEGEND = {
    "math": "math", "HBM": "memory", "network": "exposed network", "waiting": "waiting"
}  # fmt: skip
FILL = {"math": 0.85, "HBM": 0.85, "network": 1.0, "waiting": 0.3}


def draw(bet: str, moment: int, model: str, machine: str) -> Drawing:
    """The race up to a moment. Without a bet, every lane waits at the start."""
    some = runners(model, machine)
    started = bet != NO_BET
    race = Race(some, moment / SHOWN if started else 0.0)
    title = f"{model} on {machine}"
    summary = f"{_setting(model, machine)} {_said(race, bet, moment)}"
    data = {
        "lanes": {one.family: _data(one, race) for one in some},
        "now": race.now,
        "order": [one.family for one in race.finished],
    }
    desc = (
        f"{summary} {_lanes_said(race)} Each lane draws its step in {ROUNDS} equal "
        "rounds of math, memory and exposed network. A pipeline's waiting is drawn "
        "half before and half after them, and the update of the weights at the end."
    )
    high = 30 + ROW * len(some) + 48
    picture = framed(title, desc, _drawn(title, race, started), WIDEST, high)
    last = SHOWN if started else 0
    return Drawing(picture, summary, _readout(race), {"race": data}, last)


@dataclass(frozen=True)
class Race:
    """The lanes, and the time on the clock.

    Args:
        runners: all lanes.
        share: the time, as a share of the slowest lane's predicted time.
    """

    runners: tuple[Runner, ...]
    share: float

    @property
    def running(self) -> list[Runner]:
        """The lanes that start, the fastest first."""
        some = [one for one in self.runners if one.runs]
        return sorted(some, key=lambda one: one.prediction.seconds)

    @property
    def seconds(self) -> float:
        """Predicted seconds of the slowest lane, or 0 if none starts."""
        return max((one.prediction.seconds for one in self.running), default=0.0)

    @property
    def now(self) -> float:
        return self.share * self.seconds

    @property
    def finished(self) -> list[Runner]:
        """The lanes that have finished, fastest first. At the start, there are none."""
        if not self.share:
            return []
        return [one for one in self.running if self.is_done(one)]

    def is_done(self, one: Runner) -> bool:
        if not (self.share and one.runs):
            return False
        return one.prediction.seconds <= self.now * (1 + 1e-12)

    @property
    def ties(self) -> list[Runner]:
        """The lanes that follow the first one within the error of predictions."""
        first, *others = self.running
        most = first.prediction.seconds / first.prediction.band[0]
        return [one for one in others if one.prediction.seconds <= most]


def segments(parts: Mapping[str, float], seconds: float) -> list[tuple[str, float]]:
    """A step as a list of (key of `HUES`, seconds), in order.

    Args:
        parts: the parts of a prediction.
        seconds: the seconds of the step. If the bound is longer than all parts
            together, the parts are stretched to it.

    >>> from shardmath.training.prediction import PARTS
    >>> parts = dict.fromkeys(PARTS, 0.0) | {"math": 8.0, "bubble": 2.0}
    >>> some = segments(parts, 10.0)
    >>> some[0], some[1], sum(seconds for _, seconds in some)
    (('waiting', 1.0), ('math', 1.0), 10.0)
    """
    stretch = seconds / sum(parts.values())
    found = [("waiting", parts["bubble"] / 2)]
    for _ in range(ROUNDS):
        for kind, names in TIMES.items():
            found.append((kind, sum(parts[name] for name in names) / ROUNDS))
    found.append(("waiting", parts["bubble"] / 2))
    found += [("network", parts["update"]), ("HBM", parts["optimizer"])]
    return [(kind, stretch * each) for kind, each in found]


# Words -------------------------------------------------------------------------------


def _setting(model: str, machine: str) -> str:
    seqs, seq = BATCHES[model]
    batch = f"{seqs:,} sequences of {seq:,} tokens"
    return f"{model} trains on {machine}, with {batch} in a step."


def _said(race: Race, bet: str, moment: int) -> str:
    """A text that reveals only what is known at this moment."""
    out = [one for one in race.runners if not one.runs]
    if bet == NO_BET:
        lanes = "lane does" if len(out) == 1 else "lanes do"
        none = f"{len(out)} {lanes} not start. " if out else "All five lanes start. "
        return f"{none}Which one finishes first? Place your bet, then play."
    if not race.running:
        return "No lane starts, so nobody wins."
    if moment < SHOWN:
        there = ", ".join(NAMES[one.family] for one in race.finished)
        return (
            f"Your bet is {bet}. At {show(race.now, 's')}, "
            f"{'finished: ' + there if there else 'no lane has finished'}."
        )
    return _result(race, bet)


def _result(race: Race, bet: str) -> str:
    first, ties = race.running[0], race.ties
    likely = first.prediction
    name = NAMES[first.family]
    said = [
        f"{name[0].upper()}{name[1:]} finishes first by prediction, with "
        f"{show(likely.seconds, 's')} (8 of 10 runs: {show(likely.low, 's')} to "
        f"{show(likely.high, 's')}; bound {show(likely.bound, 's')})."
    ]
    if bet == name:
        said.append("You bet on it.")
    elif bet in [NAMES[one.family] for one in ties]:
        said.append(f"Your bet, {bet}, is so close that predictions cannot tell them "
                    "apart.")  # fmt: skip
    else:
        other = next(one for one in race.runners if NAMES[one.family] == bet)
        why = other.entry.why
        if not why:
            ratio = other.prediction.seconds / likely.seconds
            why = f"is predicted to take {ratio:.2f} times as long"
        said.append(f"Your bet, {bet}, {why}.")
    others = [NAMES[one.family] for one in ties if NAMES[one.family] != bet]
    if others:
        words = " and ".join(others)
        are = "is" if len(others) == 1 else "are"
        said.append(f"{words[0].upper()}{words[1:]} {are} too close to call as well.")
    return " ".join(said)


def _lanes_said(race: Race) -> str:
    said = []
    for one in race.runners:
        state = one.entry.why or "at the start"
        if race.share and one.runs:
            state = "finished" if race.is_done(one) else "running"
            if race.is_done(one):
                state += f" after {show(one.prediction.seconds, 's')}"
        said.append(f"{NAMES[one.family]} ({one.mesh}): {state}.")
    return " ".join(said)


def _data(one: Runner, race: Race) -> dict[str, object]:
    found = {
        "mesh": dict(one.entry.sizes),
        "runs": one.runs,
        "why": one.entry.why,
        "held": one.entry.held,
        "room": one.entry.room,
    }
    if race.is_done(one):
        likely = one.prediction
        found |= {
            "seconds": likely.seconds,
            "band": [likely.low, likely.high],
            "bound": likely.bound,
        }
    return found


def _readout(race: Race) -> tuple[tuple[str, ...], ...]:
    room = show(race.runners[0].entry.room, "capacity")
    rows = [("lane", "mesh", "settings", f"a chip holds, of {room}", "predicted",
             "8 of 10 runs", "bound")]  # fmt: skip
    for one in race.runners:
        entry = one.entry
        held = show(entry.held, "capacity") if entry.held else ""
        times = ("", "", "")
        if race.is_done(one):
            likely = one.prediction
            ends = f"{show(likely.low, 's')} to {show(likely.high, 's')}"
            times = show(likely.seconds, "s"), ends, show(likely.bound, "s")
        elif not one.runs:
            times = (entry.why.partition(":")[0], "", "")
        settings = "; ".join((entry.settings, *entry.warnings)).removeprefix("; ")
        rows.append((NAMES[one.family], one.mesh, settings, held, *times))
    return tuple(rows)


# The picture -------------------------------------------------------------------------


def _drawn(title: str, race: Race, started: bool) -> Iterator[str]:
    yield written(EDGE, 16, title, bold=True)
    longest = max((one.prediction.high for one in race.running), default=1.0)
    wide = (WIDEST - 2 * EDGE) / longest
    top = 30
    for one in race.runners:
        yield from _lane(one, race, top, wide if started else 0.0)
        top += ROW
    bottom = top
    if started:
        x = number(EDGE + wide * race.now)
        tracks = (30 + ROW * n + 16 for n, one in enumerate(race.runners) if one.runs)
        path = "".join(f"M{x} {number(top)}v{BAR + 8}" for top in tracks)
        yield f'<path d="{path}"{keyed("playhead")} stroke="{paint("ink")}"/>'
    said = f"at {show(race.now, 's')}" if started else "place your bet to start"
    yield written(EDGE, bottom + 14, said, key="time")
    yield from _legend(bottom + 38)


def _lane(one: Runner, race: Race, top: float, wide: float) -> Iterator[str]:
    """A name, a mesh, a track, and the progress of the lane."""
    name = one.family
    called = NAMES[name].removeprefix("a ")
    yield written(EDGE, top + 14, called, bold=True, key=f"{name}'s")
    x = EDGE + text_width(called, bold=True) + 8
    done = race.is_done(one)
    place = f"{race.finished.index(one) + 1}. " if done else ""
    words = f"{place}{show(one.prediction.seconds, 's')}" if done else ""
    mesh, room = one.mesh, WIDEST - EDGE - x - text_width(words, bold=True) - 8
    if text_width(mesh) > room:
        mesh = " × ".join(f"{size:,}" for size in one.entry.sizes.values())
    yield written(x, top + 14, mesh, key=f"{name} mesh")
    if done:
        yield written(WIDEST - EDGE, top + 14, words, anchor="end", bold=True,
                      key=f"{name} finish")  # fmt: skip
    upper, lower = top + 20, top + 20 + BAR
    middle = (upper + lower) / 2
    yield box(EDGE, upper, WIDEST - EDGE, lower, fill=0.05, edge=0.25, round=0,
              dashed=not one.runs)  # fmt: skip
    if not one.runs:
        yield written(EDGE + 8, lower - 3, one.entry.why, "hue8", key=f"{name} out")
        return
    if wide:
        yield from _bar(one, race, upper, wide)
    x = EDGE + wide * min(race.now, one.prediction.seconds)
    yield circle(x, middle, 5, key=f"{name} runner")
    if done:
        likely = one.prediction
        low, high = EDGE + wide * likely.low, EDGE + wide * likely.high
        yield line((low, lower + 4), (high, lower + 4), width=2, key=f"{name} band")


def _bar(one: Runner, race: Race, top: float, wide: float) -> Iterator[str]:
    """The work of the lane so far, with one growing shape for each kind."""
    paths: dict[str, str] = {}
    begun = 0.0
    for kind, seconds in segments(one.prediction.parts, one.prediction.seconds):
        left = EDGE + wide * min(begun, race.now)
        right = EDGE + wide * min(begun + seconds, race.now)
        begun += seconds
        paths[kind] = paths.get(kind, "") + (
            f"M{number(left)} {number(top)}h{number(right - left)}v{BAR}"
            f"h-{number(right - left)}z"
        )
    for kind, path in paths.items():
        yield (
            f'<path d="{path}"{keyed(f"{one.family} {kind}")} '
            f'fill="{paint(HUES[kind])}" fill-opacity="{FILL[kind]:g}"/>'
        )


def _legend(y: float) -> Iterator[str]:
    x = EDGE
    for kind, words in LEGEND.items():
        yield box(x, y - 11, x + 14, y + 2, HUES[kind], fill=FILL[kind], edge=0,
                  round=0)  # fmt: skip
        yield written(x + 20, y, words)
        x += 20 + text_width(words) + 16


def _preset(model: str, machine: str) -> dict[str, str | int]:
    return {"model": model, "machine": machine, "bet": NO_BET, "moment": 0}


FIGURE = Figure(
    "race",
    "A race of strategies",
    (
        Choice("bet", "Your bet", (NO_BET, *NAMES.values()), NO_BET,
               lambda name: NAMES.get(name, name)),
        Slider("moment", "Moment", "", 0, SHOWN, 0, step=1, play=True,
               printed=lambda stop: f"{stop} of {SHOWN}"),
        Choice("model", "Model", tuple(MODELS), LLAMA_3_8B.name),
        Choice("machine", "Machine", tuple(MACHINES), next(iter(MACHINES))),
    ),
    draw,
    first="bet",
    carries=("moment",),
    presets={
        "8B on 64 v5p": _preset(LLAMA_3_8B.name, "64 TPU v5p"),
        "70B on 512 H100": _preset(LLAMA_3_70B.name, "512 H100"),
        "405B on 16,384 H100": _preset(LLAMA_3_405B.name, "16,384 H100"),
        "DeepSeek-V3 on 2,048 H800": _preset(DEEPSEEK_V3.name, "2,048 H800"),
    },
)  # fmt: skip
