"""One step from seconds to microseconds, in twelve pictures of the same size.

Each starts with a ruler that shows how long its subject takes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin

from ...base.units import short_repr, show
from ...training.pipeline_schedules.ops import Span
from ..objects.pipeline import INKS, cell, painted
from ..objects.zoomed_step import MEASURED, ZoomedStep
from ..picture import WIDEST, Picture, picture
from ..shapes import box, circle, framed, label, line, written
from ..svg import Axis
from ..theme import paint

HIGH = 336
LEFT, RIGHT = 6, 410  # of what lies on a clock
TOP = 96  # below the ruler
RULER = Axis("seconds", 1e-6, 10, unit="s", stops=[10.0**n for n in range(-6, 2)])
BAR = 26
PARTS = {  # of the whole step: words, colour, opacity, parts of the prediction
    "matmuls": ("math", 0.85, ("math",)),
    "attention": ("math", 0.45, ("attention",)),
    "memory and launches": ("HBM", 0.85, ("memory", "launches", "optimizer")),
    "exchanges inside a layer": ("network", 0.85, ("tensor",)),
    "exchanges once a step": ("network", 0.45, ("update",)),
    "waiting for other stages": ("ink", 0.3, ("bubble",)),
}

Parts = Iterator[str]


def zoom(name: str, one: ZoomedStep) -> Picture:
    """The picture of one part of a step.

    Args:
        name: one of `ZOOMS`.
        one: the step.

    Raises:
        ValueError: there is no such picture.
    """
    if name not in ZOOMS:
        known = ", ".join(ZOOMS)
        raise ValueError(f"name = {short_repr(name)}: must be one of {known}")
    found = ZOOMS[name]
    took, title = found.seconds(one), found.title
    desc = f"{show(took, 's')} on a ruler from 1 µs to 10 s. {found.said(one)}"
    parts = [*_ruler(title, took), *found.draw(one)]
    return picture(title, desc, framed(title, desc, parts, WIDEST, HIGH))


def _ruler(title: str, seconds: float) -> Parts:
    """The title, and the duration on a logarithmic scale."""
    yield written(LEFT, 16, title, bold=True)
    yield line((LEFT, 54), (RIGHT, 54), width=1, opacity=0.5)
    for n, tick in enumerate(RULER.ticks()):
        x = LEFT + (RIGHT - LEFT) * RULER.share(tick)
        yield line((x, 49), (x, 59), width=1, opacity=0.5)
        if n % 2 == 0:
            anchor = "middle" if n else "start"
            yield written(x, 76, RULER.text(tick), anchor=anchor)
    x = LEFT + (RIGHT - LEFT) * RULER.share(seconds)
    yield line((LEFT, 54), (x, 54), width=4)
    yield circle(x, 54, 6)
    said = show(seconds, "s")
    yield written(min(x, RIGHT - 30), 42, said, anchor="middle", bold=True)


def _across(share: float) -> float:
    return LEFT + (RIGHT - LEFT) * share


def _lane(
    top: float, some: Sequence[tuple[float, float, str, float]], whole: float
) -> Parts:
    """Boxes on a clock that shows `whole` seconds.

    Args:
        top: of the lane.
        some: (start, end, colour, opacity) of each box.
        whole: the seconds that the width shows.
    """
    for start, end, colour, fill in some:
        yield box(_across(start / whole), top, _across(end / whole), top + BAR, colour,
                  fill=fill, edge=0.9, round=0)  # fmt: skip


def _bounded(top: float, colour: str, bound: float, seconds: float) -> Parts:
    """A predicted time, with its lower bound in a darker shade."""
    some = [(0, bound, colour, 0.7), (bound, seconds, colour, 0.2)]
    yield from _lane(top, some, seconds)


def _key(y: float, colour: str, fill: float, words: str, at: float = LEFT) -> Parts:
    yield box(at, y - 11, at + 14, y + 2, colour, fill=fill, edge=0.9, round=0)
    yield written(at + 21, y, words)


# The whole step ----------------------------------------------------------------------


def _shares(one: ZoomedStep) -> Mapping[str, float]:
    parts = one.prediction.parts
    return {words: sum(parts[name] for name in names)
            for words, (_, _, names) in PARTS.items()}  # fmt: skip


def _step(one: ZoomedStep) -> Parts:
    likely, begun, lane = one.prediction, 0.0, []
    shares = _shares(one)
    for words, (colour, fill, _) in PARTS.items():
        lane.append((begun, begun + shares[words], colour, fill))
        begun += shares[words]
    yield from _lane(TOP, lane, begun)
    for n, (words, (colour, fill, _)) in enumerate(PARTS.items()):
        y = TOP + BAR + 28 + 24 * n
        yield from _key(y, colour, fill, words)
        yield written(260, y, show(shares[words], "s"), anchor="end")
        yield written(320, y, f"{shares[words] / likely.seconds:.0%}", anchor="end")
    ends = f"{show(likely.low, 's')} to {show(likely.high, 's')}"
    yield written(LEFT, HIGH - 32, f"8 of 10 runs: {ends}")
    yield written(LEFT, HIGH - 12, f"bound: {show(likely.bound, 's')}")


def _step_said(one: ZoomedStep) -> str:
    shares = ", ".join(f"{words} {show(s, 's')}" for words, s in _shares(one).items())
    return f"The predicted step: {shares}. {str(one.prediction).capitalize()}."


# The pipeline ------------------------------------------------------------------------


def _runs(
    spans: Sequence[Span], kind: str, apart: float
) -> Iterator[tuple[float, float]]:
    """(start, end) of runs in which a stage has passes of a kind, also if others come
    between them. Runs are separated by pauses longer than `apart`."""
    begun = ended = None
    for span in spans:
        if span.op.kind != kind:
            continue
        if ended is None or span.start - ended > apart:
            if ended is not None:
                yield begun, ended
            begun = span.start
        ended = span.end
    if ended is not None:
        yield begun, ended


def _rows(one: ZoomedStep, stages: Sequence[int], pitch: float) -> Parts:
    """Stages below each other, with forward passes in the upper half of a row and
    backward passes in the lower."""
    played = one.played
    apart = 1.5 * sum(one.passes) / played.chunks
    wide = (RIGHT - LEFT - 30) / played.seconds
    for kind, low, high in (("F", 0.0, 0.5), ("B", 0.5, 1.0)):
        path = ""
        for n, stage in enumerate(stages):
            top = TOP + pitch * n
            for start, end in _runs(played.spans[stage], kind, apart):
                left, right = (LEFT + 30 + wide * at for at in (start, end))
                upper, lower = (top + (pitch - 4) * at for at in (low, high))
                path += cell(left, upper, right, lower)
        yield painted(path, INKS[kind], 0.55)


def _stages(one: ZoomedStep) -> Parts:
    count, pitch = one.played.stages, 11
    yield from _rows(one, range(count), pitch)
    for n in (0, count - 1):
        yield written(LEFT, TOP + pitch * n + 10, f"{n}")
    bottom = TOP + pitch * count
    yield written(LEFT + 30, bottom + 16, "0 s")
    yield written(RIGHT, bottom + 16, show(one.played.seconds, "s"), anchor="end")
    yield from _key(bottom + 40, INKS["F"], 0.55, "forward", LEFT)
    yield from _key(bottom + 40, INKS["B"], 0.55, "backward", 110)
    yield written(210, bottom + 40, "a row is a stage")


def _stages_said(one: ZoomedStep) -> str:
    played = one.played
    return (
        f"{played.stages} stages run {played.microbatches} microbatches in "
        f"{played.chunks} chunks each. The forward passes begin on stage 0, the last "
        f"backward passes end there, and in between both take turns. Played with the "
        f"predicted passes of its stages, the schedule takes "
        f"{show(played.seconds, 's')}."
    )


def _idle(one: ZoomedStep, stage: int) -> list[tuple[float, float]]:
    """When a stage waits, before, between and after its passes."""
    played = one.played
    ends = [0.0, *(span.end for span in played.spans[stage])]
    starts = [*(span.start for span in played.spans[stage]), played.seconds]
    return [(end, start) for end, start in zip(ends, starts, strict=True)
            if start - end > 1e-9 * played.seconds]  # fmt: skip


def _bubble(one: ZoomedStep) -> Parts:
    played, pitch = one.played, 50
    some = (0, played.stages // 2, played.stages - 1)
    for n, stage in enumerate(some):
        top = TOP + pitch * n
        waits = sum(end - start for start, end in _idle(one, stage))
        said = f"stage {stage} waits {show(waits, 's')}"
        yield written(LEFT, top + 12, said)
        yield box(LEFT, top + 18, RIGHT, top + 36, "hue3", fill=0.45, edge=0.7, round=0)
        path = "".join(
            cell(_across(start / played.seconds), top + 18,
                 _across(end / played.seconds), top + 36)
            for start, end in _idle(one, stage)
        )  # fmt: skip
        yield f'<path d="{path}" fill="{paint("hue8")}" fill-opacity="0.85"/>'
    p, v, M = played.stages, played.chunks, played.microbatches
    y = TOP + pitch * len(some) + 22
    yield from _key(y, "hue8", 0.85, "waiting", LEFT)
    yield from _key(y, "hue3", 0.45, "passes, forward and backward", 110)
    share = (p - 1) / (v * M)
    yield written(LEFT, y + 32, f"(p − 1) / (v · M) = {p - 1} / {v * M} = {share:.1%}")
    yield written(LEFT, y + 54, "of the time in which a stage works")


def _bubble_said(one: ZoomedStep) -> str:
    waits = [
        f"stage {n} {show(sum(end - start for start, end in _idle(one, n)), 's')}"
        for n in (0, one.played.stages // 2, one.played.stages - 1)
    ]
    predicted = show(one.prediction.parts["bubble"], "s")
    return (
        f"In the schedule as it is played, {', '.join(waits)} wait. The prediction "
        f"counts {predicted}, by the closed form of the interleaved schedule."
    )


# One microbatch, one layer -----------------------------------------------------------


def _microbatch(one: ZoomedStep) -> Parts:
    F, B = one.passes
    yield from _lane(
        TOP + 22, [(0, F, INKS["F"], 0.5), (F, F + B, INKS["B"], 0.5)], F + B
    )
    yield written(LEFT, TOP + 12, f"forward {show(F, 's')}")
    yield written(_across(F / (F + B)), TOP + 12, f"backward {show(B, 's')}")
    for n in range(1, one.layers):
        for begun, long in ((0, F), (F, B)):
            x = _across((begun + long * n / one.layers) / (F + B))
            yield line((x, TOP + 22), (x, TOP + 22 + BAR), width=1, opacity=0.5)
    y = TOP + 84
    yield written(LEFT, y, f"one microbatch on stage {one.stage}: {one.layers} layers,")
    yield written(LEFT, y + 20, "with the exchanges that they wait for")
    many = one.played.microbatches
    each = (RIGHT - LEFT) / many
    for n in range(many):
        x = LEFT + each * n
        cut = x + each * F / (F + B)
        yield box(x, y + 44, cut, y + 44 + BAR, INKS["F"], fill=0.5, round=0)
        yield box(cut, y + 44, x + each, y + 44 + BAR, INKS["B"], fill=0.5, round=0)
    total = show(many * (F + B), "s")
    yield written(LEFT, y + 92, f"{many} microbatches × {show(F + B, 's')} = {total}")


def _microbatch_said(one: ZoomedStep) -> str:
    F, B = one.passes
    return (
        f"On stage {one.stage}, the busiest, the forward pass of a microbatch takes "
        f"{show(F, 's')} and the backward pass {show(B, 's')}, over {one.layers} "
        f"layers. {one.played.microbatches} microbatches take "
        f"{show(one.played.microbatches * (F + B), 's')}."
    )


def _in_layer(one: ZoomedStep) -> list[tuple[str, str, float, float]]:
    """(name, lane, start, end) for each part of a layer's forward pass."""
    at, took, found = 0.0, one.products, []
    rest = (one.layer.memory + one.layer.launches) / 2
    order = [
        ("gather", "network", one.gather_seconds),
        ("norm", "HBM", rest),
        ("q k v", "math", took["q"] + took["k"] + took["v"]),
        ("attention", "math", one.layer.attention),
        ("o", "math", took["o"]),
        ("scatter", "network", one.gather_seconds),
        ("gather", "network", one.gather_seconds),
        ("norm", "HBM", rest),
        ("gate", "math", took["gate"]),
        ("up", "math", took["up"]),
        ("down", "math", took["down"]),
        ("scatter", "network", one.gather_seconds),
    ]
    for name, lane, seconds in order:
        found.append((name, lane, at, at + seconds))
        at += seconds
    return found


def _layer(one: ZoomedStep) -> Parts:
    some = _in_layer(one)
    whole = some[-1][3]
    lanes = {"math": ("math", "matmuls and attention"), "HBM": ("HBM", "memory, norms"),
             "network": ("network", "exchanges between 8 GPUs")}  # fmt: skip
    for n, (lane, (colour, words)) in enumerate(lanes.items()):
        top = TOP + 22 + 66 * n
        own = [one for one in some if one[1] == lane]
        total = show(sum(end - start for _, _, start, end in own), "s")
        yield written(LEFT, top - 6, f"{words}: {total}", colour)
        yield box(LEFT, top, RIGHT, top + BAR, fill=0.04, edge=0.25, round=0)
        boxes = [(start, end, colour, 0.35) for _, _, start, end in own]
        yield from _lane(top, boxes, whole)
        for name, _, start, end in own:
            left, right = _across(start / whole), _across(end / whole)
            if name in ("gate", "up", "down"):
                yield label(left, top, right, top + BAR, name)
    yield written(LEFT, HIGH - 10, f"0 s to {show(whole, 's')}: nothing overlaps here")


def _layer_said(one: ZoomedStep) -> str:
    took = ", ".join(f"{name} {show(s, 's')}" for name, s in one.products.items())
    return (
        f"The forward pass of one layer in three lanes. Matmuls by weight: {took}; "
        f"attention {show(one.layer.attention, 's')}. The chip waits for "
        f"{one.exchanges} exchanges, {show(one.gather_seconds, 's')} each and "
        f"{show(one.layer.tensor, 's')} together. Norms and sums, which are one number "
        "in the prediction, are drawn half before attention and half before the MLP."
    )


# One matmul --------------------------------------------------------------------------


def _sizes(one: ZoomedStep) -> tuple[int, int, int]:
    """Rows, inner dimension and columns of the gate's product on a chip."""
    job, axes = one.step.job, one.step.mesh.axes
    rows = job.tokens // axes["data"] // one.step.microbatches
    return rows, job.model.D, job.model.F // axes["tensor"]


def _matmul(one: ZoomedStep) -> Parts:
    amount, bound, seconds = one.product("gate")
    m, k, n = _sizes(one)
    scale = 110 / max(m, k, n)
    top = TOP + 14
    places = [("x", m, k, LEFT), ("gate", k, n, 170), ("result", m, n, 300)]
    for (name, high, wide, left), sign in zip(places, ("", "·", "="), strict=True):
        yield box(left, top, left + scale * wide, top + scale * high, "math",
                  fill=0.15 if name != "result" else 0.45)  # fmt: skip
        yield label(left, top, left + scale * wide, top + scale * high, name)
        if sign:
            yield written(left - 24, top + 34, sign, anchor="middle")
    y = top + 134
    yield written(
        LEFT, y, f"[{m:,} × {k:,}] · [{k:,} × {n:,}]: {show(amount, 'FLOPs')}"
    )
    yield from _bounded(y + 34, "math", bound, seconds)
    yield written(LEFT, y + 26, f"at peak rate, a bound: {show(bound, 's')}", "math")
    yield written(RIGHT, y + 78, f"predicted: {show(seconds, 's')}", anchor="end",
                  bold=True)  # fmt: skip


def _matmul_said(one: ZoomedStep) -> str:
    amount, bound, seconds = one.product("gate")
    m, k, n = _sizes(one)
    return (
        f"The product with the gate's weights on one GPU: {m:,} tokens of {k:,} "
        f"values, times {k:,} by {n:,}, {show(amount, 'FLOPs')}. At peak rate it takes "
        f"{show(bound, 's')}, which is a bound, and by prediction {show(seconds, 's')}."
    )


# One AllGather, one hop --------------------------------------------------------------


def _gather(one: ZoomedStep) -> Parts:
    count, side = one.group, 17
    for n in range(count):
        left = LEFT + n * 51
        yield written(left + 10, TOP + 10, str(n))
        for block in range(count):
            top = TOP + 18 + block * (side - 3)
            own = block == n
            yield box(left, top, left + 32, top + side - 6, "network",
                      fill=0.85 if own else 0.06, edge=0.7 if own else 0.35,
                      dashed=not own, round=0)  # fmt: skip
    y = TOP + 158
    total = show(one.gather.collective.nbytes, "bytes")
    yield written(LEFT, y, f"GPU 0 to {count - 1}: each has an eighth of {total}")
    bound, seconds = one.gather_bound, one.gather_seconds
    yield written(LEFT, y + 24, f"at full rate, a bound: {show(bound, 's')}", "network")
    yield from _bounded(y + 30, "network", bound, seconds)
    yield written(RIGHT, y + 74, f"predicted: {show(seconds, 's')}", anchor="end",
                  bold=True)  # fmt: skip


def _gather_said(one: ZoomedStep) -> str:
    return (
        f"Before the AllGather each of {one.group} GPUs has one of {one.group} blocks, "
        f"{show(one.hop_bytes, 'bytes')} of "
        f"{show(one.gather.collective.nbytes, 'bytes')}; after it, each has all. At "
        f"the full rate of {one.gather.level} it takes {show(one.gather_bound, 's')}, "
        f"which is a bound, and by prediction {show(one.gather_seconds, 's')}."
    )


def _ring(one: ZoomedStep) -> Parts:
    count, radius, centre = one.group, 62, (WIDEST / 2, TOP + 82)
    places = [(centre[0] + radius * sin(2 * pi * n / count),
               centre[1] - radius * cos(2 * pi * n / count))
              for n in range(count)]  # fmt: skip
    for n, here in enumerate(places):
        there = places[(n + 1) % count]
        dx, dy = there[0] - here[0], there[1] - here[1]
        yield line((here[0] + 0.3 * dx, here[1] + 0.3 * dy),
                   (here[0] + 0.72 * dx, here[1] + 0.72 * dy), colour="network",
                   heads="end")  # fmt: skip
        yield circle(*here, 11, fill=0, edge=0.8)
        yield label(here[0] - 11, here[1] - 11, here[0] + 11, here[1] + 11, str(n))
    y = TOP + 186
    each = one.gather_bound / one.hops
    lane = [(n * each, (n + 1) * each, "network", 0.85 if n == 0 else 0.25)
            for n in range(one.hops)]  # fmt: skip
    yield from _lane(y, lane, one.gather_bound)
    said = f"{one.hops} hops × {show(one.hop, 's')} = {show(one.gather_bound, 's')}"
    yield written(LEFT, y + 48, said)


def _ring_said(one: ZoomedStep) -> str:
    return (
        f"{one.group} GPUs in a ring. In each of {one.hops} hops every GPU passes a "
        f"block of {show(one.hop_bytes, 'bytes')} to the next. A hop takes "
        f"{show(one.hop, 's')} at the full rate of {one.gather.level}, and all of them "
        f"{show(one.gather_bound, 's')}."
    )


def _rate(one: ZoomedStep) -> float:
    return one.hop_bytes / one.hop


def _hop(one: ZoomedStep) -> Parts:
    whole = one.latency + one.hop
    lane = [(0, one.latency, "ink", 0.6), (one.latency, whole, "network", 0.6)]
    yield from _lane(TOP + 50, lane, whole)
    yield written(LEFT, TOP + 14, f"first byte, about {show(one.latency, 's')}")
    yield line((LEFT + 4, TOP + 20), (LEFT + 4, TOP + 48), width=1)
    words = f"bytes, at least {show(one.hop, 's')}"
    yield written(RIGHT, TOP + 40, words, "network", anchor="end")
    y = TOP + 110
    yield written(
        LEFT,
        y,
        f"{show(one.hop_bytes, 'bytes')} at {show(_rate(one), 'bytes/s')}, one-way",
    )
    micro = _across(1e-6 / whole) - LEFT
    yield box(LEFT, y + 24, LEFT + micro, y + 24 + BAR, "network", fill=0.85, edge=0,
              round=0)  # fmt: skip
    said = f"1 µs of it carries {show(_rate(one) * 1e-6, 'bytes')}"
    yield written(LEFT + micro + 8, y + 42, said)


def _hop_said(one: ZoomedStep) -> str:
    return (
        f"One hop. The first byte is there after about {show(one.latency, 's')}, which "
        f"is an estimate. {show(one.hop_bytes, 'bytes')} at "
        f"{show(_rate(one), 'bytes/s')} take {show(one.hop, 's')}, which is a bound. "
        f"A microsecond carries {show(_rate(one) * 1e-6, 'bytes')}."
    )


# Between nodes -----------------------------------------------------------------------


def _chunk(one: ZoomedStep) -> float:
    """Predicted seconds of the forward pass of one chunk."""
    return one.passes[0] / one.played.chunks


def _send(one: ZoomedStep) -> Parts:
    nbytes, seconds = one.send
    chunk = _chunk(one)
    yield written(LEFT, TOP + 14, f"next chunk, forward: {show(chunk, 's')}", "math")
    yield from _lane(TOP + 22, [(0, chunk, "math", 0.5)], chunk)
    yield written(LEFT, TOP + 82, f"send, at full rate, a bound: {show(seconds, 's')}",
                  "network")  # fmt: skip
    yield from _lane(TOP + 90, [(0, seconds, "network", 0.85)], chunk)
    rate = show(nbytes / seconds, "bytes/s")
    yield written(LEFT, TOP + 150, f"{show(nbytes, 'bytes')} through a network card")
    yield written(LEFT, TOP + 170, f"of {rate}, one-way")


def _send_said(one: ZoomedStep) -> str:
    nbytes, seconds = one.send
    return (
        f"A stage sends {show(nbytes, 'bytes')} to the next, which takes at least "
        f"{show(seconds, 's')}. Meanwhile it works on the next chunk, whose forward "
        f"pass takes {show(_chunk(one), 's')} by prediction."
    )


def _update(one: ZoomedStep) -> Parts:
    whole = max(one.update)
    F, B = one.passes
    reduced, returned = one.update
    rows = (
        ("reduce gradients", reduced, "backward", B),
        ("return weights", returned, "forward", F),
    )
    for n, (name, busy, when, hides) in enumerate(rows):
        top = TOP + 100 * n
        yield written(LEFT, top + 14, f"{name}: {show(busy, 's')}", "network")
        late = max(0.0, busy - hides)
        hidden = (0, min(busy, hides), "network", 0.3)
        shown = [hidden, (busy - late, busy, "network", 0.85)] if late else [hidden]
        yield from _lane(top + 20, shown, whole)
        behind = f"{show(min(busy, hides), 's')} behind a {when} pass"
        said = f"{behind}, {show(late, 's')} exposed"
        yield written(LEFT, top + 66, said)
    total = show(one.prediction.parts["update"], "s")
    yield written(
        LEFT, HIGH - 12, f"exposed once a step, predicted: {total}", bold=True
    )


def _update_said(one: ZoomedStep) -> str:
    reduced, returned = one.update
    return (
        f"Over the data axis, the network is busy with gradients for "
        f"{show(reduced, 's')} and with returned weights for {show(returned, 's')}. "
        f"One backward and one forward pass hide most of it, and "
        f"{show(one.prediction.parts['update'], 's')} stay exposed."
    )


# Prediction and measurement ----------------------------------------------------------


def _measured(one: ZoomedStep) -> Parts:
    likely, whole = one.prediction, 8.0
    rows = (("bound", likely.bound, "no run is faster"),
            ("predicted", likely.seconds, "8 of 10 runs in the dark part"))  # fmt: skip
    for n, (name, seconds, why) in enumerate(rows):
        top = TOP + 66 * n
        yield written(LEFT, top + 14, f"{name}: {show(seconds, 's')}", bold=True)
        yield written(RIGHT, top + 14, why, anchor="end")
        yield from _lane(top + 20, [(0, seconds, "math", 0.25)], whole)
        if name == "predicted":
            yield from _lane(top + 20, [(likely.low, likely.high, "math", 0.4)], whole)
    top = TOP + 132
    ends = " and ".join(show(seconds, "s") for seconds in one.measured)
    yield written(LEFT, top + 14, f"measured: {ends}", bold=True)
    yield line((LEFT, top + 33), (RIGHT, top + 33), width=1, opacity=0.3)
    for seconds in one.measured:
        yield circle(_across(seconds / whole), top + 33, 6, "hue1")
    yield written(
        LEFT, top + 66, f"{show(MEASURED, 'FLOPs/s')} per GPU, as published; attention"
    )
    yield written(LEFT, top + 86, "is counted causally, or in full")


def _measured_said(one: ZoomedStep) -> str:
    ends = " or ".join(show(seconds, "s") for seconds in one.measured)
    return (
        f"{str(one.prediction).capitalize()}. At the published "
        f"{show(MEASURED, 'FLOPs/s')} a step takes {ends}, with attention counted "
        "causally or in full."
    )


@dataclass(frozen=True)
class Zoom:
    """One picture: its title, its duration, its drawing, and its description."""

    title: str
    seconds: Callable[[ZoomedStep], float]
    draw: Callable[[ZoomedStep], Parts]
    said: Callable[[ZoomedStep], str]


ZOOMS = {
    "step": Zoom(
        "One step, predicted", lambda one: one.prediction.seconds, _step, _step_said
    ),
    "stages": Zoom(
        "Sixteen stages", lambda one: one.played.seconds, _stages, _stages_said
    ),
    "bubble": Zoom(
        "The bubble, predicted",
        lambda one: one.prediction.parts["bubble"],
        _bubble,
        _bubble_said,
    ),
    "microbatch": Zoom(
        "A microbatch on a stage",
        lambda one: sum(one.passes),
        _microbatch,
        _microbatch_said,
    ),
    "layer": Zoom("A layer, forward", lambda one: sum(one.layer), _layer, _layer_said),
    "matmul": Zoom(
        "A matmul", lambda one: one.product("gate")[2], _matmul, _matmul_said
    ),
    "gather": Zoom(
        "An AllGather", lambda one: one.gather_seconds, _gather, _gather_said
    ),
    "ring": Zoom(
        "Seven hops, at full rate", lambda one: one.gather_bound, _ring, _ring_said
    ),
    "hop": Zoom("One hop", lambda one: one.latency + one.hop, _hop, _hop_said),
    "send": Zoom(
        "A send to the next stage", lambda one: one.send[1], _send, _send_said
    ),
    "update": Zoom(
        "Gradients, once a step",
        lambda one: one.prediction.parts["update"],
        _update,
        _update_said,
    ),
    "measured": Zoom(
        "The step, measured", lambda one: one.measured[0], _measured, _measured_said
    ),
}
