"""The live figure "block": the matmuls of one layer, and their FLOPs per token."""

from collections.abc import Iterator, Mapping, Sequence

from ...base.units import show
from ...transformer import ALL, ATTENTION, LLAMA_3_8B, Model, flops, kv_cache
from ...transformer import model as find_model
from ..labels import text_width
from ..objects.block import FigureRow, block_rows
from ..picture import WIDEST
from ..shapes import box, framed, written
from .controls import Choice, Drawing, Figure, Slider

MODELS = {one.name: one for one in ALL if one.trains}
WIDTH = 2  # bytes of a value in bf16
EDGE, ROW, THICK = 6, 23, 15
BARS, LONGEST = 190, 116  # where the bars of the rows begin, and the longest of them
KINDS = {
    "weights": ("math", "with weights"),
    "attention": ("hue4", "attention's own"),
}


def draw(seq: int, model: str, attention: str) -> Drawing:
    """The matmuls of a layer, their FLOPs per token, and attention's share of these."""
    one = MODELS[model]
    try:
        parts = block_rows(one, seq, attention)
    except ValueError as error:
        raise ValueError(f"{model} with {seq:,} tokens: {error}") from None
    counted = flops(one, seq, attention)
    rows = [row for some in parts.values() for row in some]
    inside = counted.attention / one.layers
    layer = sum(row.flops for row in rows)
    cache = kv_cache(one, seq)
    summary = (
        f"{model} at {seq:,} tokens: a token takes {show(counted.training, 'FLOPs')} "
        f"in training. Of a layer's FLOPs, {inside / layer:.1%} are attention's own "
        f"products, which grow with the length. The model has {one.params:,} "
        f"parameters, {show(WIDTH * one.params, 'bytes')} in bf16, and keeps "
        f"{show(cache, 'bytes')} of keys and values for a sequence of this length."
    )
    data = {
        "training": counted.training,
        "forward": counted.forward,
        "share": inside / layer,
        "rows": {row.name: row.flops for row in rows},
        "params": one.params,
        "cache": cache,
    }
    drawn = _drawn(one, parts, inside / layer)
    high = 92 + sum(26 + ROW * len(some) for some in parts.values())
    picture = framed(f"A layer of {model}", summary, drawn, WIDEST, high)
    return Drawing(picture, summary, _readout(one, rows, layer), data)


def _readout(
    one: Model, rows: Sequence[FigureRow], layer: float
) -> tuple[tuple[str, ...], ...]:
    head = ("matmul", "parameters of a layer", "bytes in bf16", "FLOPs of a token",
            "share")  # fmt: skip
    counts = {line.weight.name: line.weight.count(one.dims) for line in one.layer}
    found = [head]
    for row in rows:
        count = counts.get(row.name, 0)
        found.append((
            row.text,
            f"{count:,}" if count else "none",
            show(WIDTH * count, "bytes") if count else "",
            show(row.flops, "FLOPs"),
            f"{row.flops / layer:.1%}",
        ))  # fmt: skip
    return tuple(found)


# The picture -------------------------------------------------------------------------


def _drawn(
    one: Model, parts: Mapping[str, Sequence[FigureRow]], share: float
) -> Iterator[str]:
    yield written(EDGE, 16, f"{one.name}: one of {one.layers} layers", bold=True)
    yield written(WIDEST - EDGE, 16, "of a token", "math", "end")
    yield from _shares(share)
    most = max(row.flops for some in parts.values() for row in some)
    y = 84.0
    for title, some in parts.items():
        yield written(EDGE, y + 14, title, bold=True, key=f"title {y:g}")
        y += 22
        for row in some:
            yield from _row(row, y, most)
            y += ROW
        y += 4


def _shares(share: float) -> Iterator[str]:
    """The FLOPs of the layer as one strip: with weights, and without."""
    cut = EDGE + (WIDEST - 2 * EDGE) * (1 - share)
    ends = {"weights": (EDGE, cut), "attention": (cut, WIDEST - EDGE)}
    x = EDGE
    for kind, (left, right) in ends.items():
        colour, words = KINDS[kind]
        yield box(left, 28, right, 50, colour, fill=0.6, edge=0, round=0,
                  key=f"share {kind}")  # fmt: skip
        part = share if kind == "attention" else 1 - share
        text = f"{words} {part:.1%}"
        yield box(x, 58, x + 12, 70, colour, fill=0.6, edge=0, round=0)
        yield written(x + 17, 70, text, key=f"share {kind}'s")
        x += 17 + text_width(f"{words} 00.0%") + 14


def _row(row: FigureRow, y: float, most: float) -> Iterator[str]:
    """A weight by name and shape, its bar, and its FLOPs."""
    colour = KINDS["weights" if row.weights else "attention"][0]
    yield written(EDGE + 8, y + 13, row.text, key=f"{row.name}'s")
    end = BARS + max(1.0, LONGEST * row.flops / most)
    yield box(BARS, y + 1, end, y + THICK, colour, fill=0.6, edge=0, round=0,
              key=row.name)  # fmt: skip
    yield written(WIDEST - EDGE, y + 13, show(row.flops, "FLOPs"), anchor="end",
                  key=f"{row.name} FLOPs")  # fmt: skip


def _preset(model: str, seq: int, attention: str = "causal") -> dict[str, str | int]:
    return {"model": model, "seq": seq, "attention": attention}


FIGURE = Figure(
    "block",
    "The matmuls of one layer",
    (
        Slider("seq", "Sequence", "tokens", 1024, 2**20, 8192),
        Choice("model", "Model", tuple(MODELS), LLAMA_3_8B.name,
               lambda name: find_model(name).name),
        Choice("attention", "Keys counted", ATTENTION, "causal"),
    ),
    draw,
    first="seq",
    presets={
        "8B, long": _preset(LLAMA_3_8B.name, 2**17),
        "405B": _preset("Llama 3.1 405B", 8192),
        "experts": _preset("Mixtral 8x7B", 8192),
        "latent attention": _preset("DeepSeek-V3", 4096),
    },
)  # fmt: skip
