"""The live figure "slots": memory, the sequences that fit, and admitted clients."""

from collections.abc import Iterator
from functools import lru_cache
from math import ceil

from ...base.units import pluralize, show
from ...hardware import chips
from ...hardware.networks import network
from ...hardware.networks.usual import usual
from ...inference import Formats, Layout, Server, held
from ...transformer import LLAMA_3_70B
from .. import svg
from ..labels import text_width
from ..objects.servers import CHIPS, MODELS
from ..picture import WIDEST
from ..shapes import box, framed, keyed, number, written
from ..theme import paint
from .controls import Choice, Drawing, Figure, Slider

PAGED, RESERVED = "page by page", "to the end, at admission"
EDGE, THICK, HIGH = 6, 28, 314
ACROSS, DOWN, GRID = 40, 9, 144  # dots of the grid, and where it begins
PARTS = {"weights": "hue5", "caches": "hue3", "reserve": "hue7"}


@lru_cache(32)
def served(model: str, chip: str, tensor: int, weights: str, cache: str) -> Server:
    """A server on `tensor` chips, with tensor parallelism over all of them."""
    on = network(usual(CHIPS[chip], tensor))
    return Server(MODELS[model], on, Layout(tensor), Formats(weights, cache=cache))


def draw(
    clients: int,
    model: str,
    chip: str,
    tensor: int,
    weights: str,
    cache: str,
    input: int,
    output: int,
    pages: str,
) -> Drawing:
    """The contents of a chip's memory, the slots in it, and the clients in them."""
    machine = pluralize(f"{tensor:,}", f"{chip}s") if tensor > 1 else f"one {chip}"
    title = f"{model} on {machine}"
    try:
        server = served(model, chip, tensor, weights, cache)
    except ValueError as error:
        said = f"{error}."
        return Drawing(svg.message(title, said), said, (), {"slots": None})
    memory = server.memory
    length = held(input, output, reserved=pages == RESERVED)
    slots = server.slots(length) if memory.fits else 0
    admitted = min(clients, slots)
    step = server.decode(admitted, admitted * held(input, output)) if admitted else None
    data = {
        "slots": slots,
        "admitted": admitted,
        "waiting": clients - admitted,
        "weights": memory.weights,
        "free": max(memory.free, 0.0),
        "memory": memory.memory,
        "sequence": memory.sequence(length),
        "bound": step and step.bound,
        "predicted": step and step.seconds,
    }
    left, each = (
        show(memory.free, "capacity"),
        show(memory.sequence(length), "capacity"),
    )
    room = f"The weights leave {left} of each chip for caches"
    if step:
        summary = (
            f"{room}, and a sequence of {length:,.0f} tokens takes {each}. So there "
            f"are {pluralize(f'{slots:,}', 'slots')}: {admitted:,} of {clients:,} "
            f"clients are admitted. A step for all of them takes at least "
            f"{show(step.bound, 's')} and likely {show(step.seconds, 's')}."
        )
    elif memory.fits:
        summary = f"{room}, less than the {each} of a sequence of {length:,.0f} tokens."
    else:
        summary = f"The model does not fit: {_lacking(server, length)}."
    parts = (
        written(EDGE, 16, title, bold=True),
        *_bar(server, length, admitted),
        *_dots(slots, clients),
        *_said(step, admitted),
    )
    drawn = framed(title, summary, parts, WIDEST, HIGH)
    return Drawing(drawn, summary, _readout(data), data)


def _lacking(server: Server, length: float) -> str:
    """A text on the bytes that the server lacks."""
    try:
        server.slots(length)
    except ValueError as error:
        return str(error)
    return ""


def _readout(data: dict) -> tuple[tuple[str, ...], ...]:
    rows = [
        ("", "on each chip"),
        ("memory", show(data["memory"], "capacity")),
        ("weights", show(data["weights"], "capacity")),
        ("left for caches", show(data["free"], "capacity")),
        ("a sequence", show(data["sequence"], "capacity")),
        ("slots", f"{data['slots']:,}"),
        ("admitted", f"{data['admitted']:,}"),
        ("waiting", f"{data['waiting']:,}"),
    ]
    if data["bound"]:
        rows += [
            ("a step, bound", show(data["bound"], "s")),
            ("a step, predicted", show(data["predicted"], "s")),
            ("tokens/s for each user", f"{1 / data['predicted']:.3g}"),
            ("tokens/s of all", f"{data['admitted'] / data['predicted']:,.0f}"),
        ]
    return tuple(rows)


def _bar(server: Server, length: float, admitted: int) -> Iterator[str]:
    """The memory of one chip, with its parts end to end and caches in use darker."""
    memory = server.memory
    reserve = memory.reserve * memory.memory
    needed = max(memory.memory, memory.weights + reserve)
    scale = (WIDEST - 2 * EDGE) / needed
    top, x = 46, EDGE + scale * memory.weights
    said = f"each chip has {show(memory.memory, 'capacity')}"
    yield written(EDGE, 38, said, key="memory's")
    yield box(EDGE, top, x, top + THICK, PARTS["weights"], fill=0.8, edge=0, round=0,
              key="weights")  # fmt: skip
    used = admitted / server.layout.data * memory.sequence(length)
    middle = x + scale * min(used, max(memory.free, 0.0))
    end = x + scale * max(memory.free, 0.0)
    yield box(x, top, middle, top + THICK, PARTS["caches"], fill=0.85, edge=0, round=0,
              key="caches in use")  # fmt: skip
    yield box(middle, top, end, top + THICK, PARTS["caches"], fill=0.25, edge=0,
              round=0, key="caches")  # fmt: skip
    yield box(end, top, end + scale * reserve, top + THICK, PARTS["reserve"], fill=0.5,
              edge=0, round=0, key="reserve")  # fmt: skip
    right = EDGE + scale * memory.memory
    yield box(EDGE, top - 3, right, top + THICK + 3, "HBM", fill=0, edge=1, round=0,
              key="HBM")  # fmt: skip
    y, at = top + THICK + 20, float(EDGE)
    for name, amount in (
        ("weights", memory.weights),
        ("caches", max(memory.free, 0.0)),
        ("reserve", reserve),
    ):
        words = f"{'engine' if name == 'reserve' else name} {show(amount, 'capacity')}"
        yield written(at, y, words, PARTS[name], key=f"{name}'s")
        at += text_width(words) + 16


def _dots(slots: int, clients: int) -> Iterator[str]:
    """A dot for each slot, filled if a client has it, and dots for waiting clients."""
    waiting = max(0, clients - slots)
    each = max(1, ceil(max(slots, clients) / (ACROSS * DOWN)))
    one = "a dot is a slot" if each == 1 else f"a dot is {each:,} slots"
    said = pluralize(f"{slots:,}", "slots")
    yield written(EDGE, GRID - 22, f"{said}; {one}", bold=True, key="slots")
    if waiting:
        words = f"{waiting:,} wait"
        yield written(WIDEST - EDGE, GRID - 22, words, "hue8", "end", key="waiting's")
    full = ceil(min(slots, clients) / each)
    free = max(0, ceil(slots / each) - full)
    more = min(ceil(waiting / each), ACROSS * (DOWN + 1) - full - free)
    yield _spots(0, full, PARTS["caches"], 1, "admitted")
    yield _spots(full, free, "ink", 0.3, "free")
    yield _spots(full + free, more, "hue8", 0.8, "waiting")


def _spots(first: int, count: int, colour: str, opacity: float, key: str) -> str:
    path = []
    for place in range(first, first + count):
        row, column = divmod(place, ACROSS)
        path.append(f"M{number(EDGE + 5 + 10.1 * column)} {number(GRID + 12 * row)}h0")
    return (
        f'<path d="{"".join(path) or "M0 0"}" fill="none" stroke="{paint(colour)}" '
        f'stroke-opacity="{opacity:g}" stroke-width="7" stroke-linecap="round"'
        f"{keyed(key)}/>"
    )


def _said(step, admitted: int) -> Iterator[str]:
    y = GRID + 12 * (DOWN + 1) + 20
    if not step:
        yield written(EDGE, y, "no sequence can be admitted", "hue8", key="step")
        return
    words = f"a step for {admitted:,}: bound {show(step.bound, 's')}, likely "
    words += show(step.seconds, "s")
    yield written(EDGE, y, words, key="step")
    words = f"{1 / step.seconds:.3g} tokens/s for each user, "
    words += f"{admitted / step.seconds:,.0f} for all"
    yield written(EDGE, y + 20, words, key="rate")


FIGURE = Figure(
    "slots",
    "From memory to slots to the admitted batch",
    (
        Slider("clients", "Clients", "clients", 1, 4096, 128, parts=2),
        Choice("model", "Model", tuple(MODELS), LLAMA_3_70B.name),
        Choice("chip", "Chip", tuple(CHIPS), "H100", lambda name: chips.find(name).name,
               machine=True),
        Slider("tensor", "Tensor parallel over", "chips", 1, 16, 2),
        Choice("weights", "Weights", ("bf16", "fp8", "int8", "int4", "nvfp4"), "fp8"),
        Choice("cache", "Cache", ("bf16", "fp8"), "bf16"),
        Slider("input", "Prompt", "tokens", 128, 65_536, 1024, parts=2),
        Slider("output", "Answer", "tokens", 32, 16_384, 1024, parts=2),
        Choice("pages", "Memory is taken", (PAGED, RESERVED), PAGED),
    ),
    draw,
    first="clients",
    presets={
        "70B on two H100s": {"model": LLAMA_3_70B.name, "chip": "H100", "tensor": 2,
                             "weights": "fp8", "cache": "bf16", "input": 1024},
        "with an fp8 cache": {"model": LLAMA_3_70B.name, "chip": "H100", "tensor": 2,
                              "weights": "fp8", "cache": "fp8", "input": 1024},
        "long prompts": {"model": LLAMA_3_70B.name, "chip": "H100", "tensor": 2,
                         "weights": "fp8", "cache": "bf16", "input": 16_384},
        "too large": {"model": LLAMA_3_70B.name, "chip": "H100", "tensor": 1,
                      "weights": "bf16"},
    },
    row=("clients", "model", "chip", "tensor"),
)  # fmt: skip
