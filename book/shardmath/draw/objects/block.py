"""A layer as a picture: the shapes of its weights, and the FLOPs per token in each."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...base.units import show
from ...transformer.architecture import Model
from ...transformer.flops import Flops, flops
from ...transformer.lines import Matmul
from ..labels import text_width
from ..picture import WIDEST, Picture, picture
from ..shapes import box, framed, label, line, written

STREAM = 18  # where the residual stream runs down
LEFT, RIGHT = 48, WIDEST - 6  # of attention and MLP
INNER = LEFT + 8
WEIGHT = 190  # width of the box of a weight
BARS = INNER + WEIGHT + 10  # where the bars begin
LONGEST = 84  # bar of the most FLOPs
ROW, HIGH = 27, 21  # from one row to the next, and the height of its box
HEAD, FOOT = 28, 8  # above the first row of a part, below its last
GAP = 28  # between parts
NUMBER = RIGHT - 8  # where numbers end


@dataclass(frozen=True)
class FigureRow:
    """A matmul: its text in the box, FLOPs per token, and whether it has weights."""

    text: str
    flops: float
    weights: bool = True

    @property
    def name(self) -> str:
        """The name of the weight, or of the product if it has none."""
        return self.text.partition("[")[0]


def transformer_block(model: Model, seq: int, attention: str) -> Picture:
    """One layer of a model and its head: weights with shapes, and FLOPs per token.

    Bars compare the matmuls of the layer. The head, which occurs once, has no bar.

    Args:
        model: if its first layers are dense and others have experts, a layer with
            experts is drawn.
        seq, attention: as for `flops`: sequence length, and which keys are counted.

    Raises:
        ValueError: as for `flops`.

    >>> from shardmath.transformer import model
    >>> print(transformer_block(model("llama 3 8b"), 8192, "causal").desc[-53:])
    A token forward 17.2 GFLOPs, in training 51.5 GFLOPs.
    """
    counted = flops(model, seq, attention)
    parts = block_rows(model, seq, attention)
    most = max(row.flops for rows in parts.values() for row in rows)
    title, beside = f"{model.name}: one of {model.layers} layers", "FLOPs a token"
    if 6 + text_width(title, bold=True) + 6 > NUMBER - text_width(beside):
        beside = "FLOPs"  # room for a long name; the sums below say "per token"
    drawn = [
        written(6, 20, title, bold=True),
        written(NUMBER, 20, beside, "math", "end"),
    ]
    y, spans = 34.0 + GAP, []
    for name, rows in parts.items():
        bottom = y + HEAD + ROW * len(rows) + FOOT
        drawn.append(box(LEFT, y, RIGHT, bottom, fill=0.04, edge=0.4))
        drawn.append(written(INNER, y + 19, name, bold=True))
        drawn += _drawn(rows, y + HEAD, most)
        spans.append((y, bottom))
        y = bottom + GAP
    y += 4
    drawn += _stream(spans, model, y + HIGH / 2)
    drawn += _drawn([_row(model, model.head_line)], y)
    y += ROW + 12
    lines = [*_notes(model), *_sums(model, counted)]
    for text in lines:
        y += 19
        drawn.append(written(6, y, text))
    desc = _said(model, parts, lines)
    return picture(title, desc, framed(title, desc, drawn, WIDEST, y + 8))


def block_rows(model: Model, seq: int, attention: str) -> dict[str, list[FigureRow]]:
    """Title → rows, for attention and for the part of the layer after it.

    Args:
        model, seq, attention: as for `transformer_block`.

    Raises:
        ValueError: as for `flops`.
    """
    counted = flops(model, seq, attention)
    lines = [_row(model, one) for one in model.layer]
    cut = [one.weight.name for one in model.layer].index("o")
    values = model.latent.value if model.latent else model.head
    share = counted.attention / model.layers / (model.head + values)
    own = [
        FigureRow("Q · K", share * model.head, weights=False),
        FigureRow("P · V", share * values, weights=False),
    ]
    title = f"attention, {attention}, {seq:,} tokens"
    behind = "MLP"
    if model.experts:
        behind = f"{model.experts.count} experts, {model.experts.per_token} a token"
    return {title: [*lines[:cut], *own, lines[cut]], behind: lines[cut + 1 :]}


def _row(model: Model, one: Matmul) -> FigureRow:
    sizes = ", ".join(str(model.dims[dim]) for dim in one.weight.dims)
    return FigureRow(f"{one.weight.name}[{sizes}]", 2.0 * model.met(one))


def _drawn(rows: Iterable[FigureRow], top: float, most: float = 0) -> Iterator[str]:
    """Boxes from `top` down, with bars next to them if `most` is above 0."""
    for n, row in enumerate(rows):
        y = top + ROW * n
        spot = INNER, y, INNER + WEIGHT, y + HIGH
        fill = 0.14 if row.weights else 0
        yield box(*spot, "math", fill=fill, dashed=not row.weights)
        yield label(*spot, row.text)
        if most:
            end = BARS + max(1.0, LONGEST * row.flops / most)
            bar = BARS, y + 3, end, y + HIGH - 3
            yield box(*bar, "math", fill=0.55, edge=0, round=0, key=row.text)
        yield written(NUMBER, y + 16, show(row.flops), "math", "end")


def _stream(
    spans: list[tuple[float, float]], model: Model, end: float
) -> Iterator[str]:
    """The residual stream: what is read from it, what is added to it, and the head."""
    yield line((STREAM, 30), (STREAM, end), (INNER, end), width=3, heads="end")
    (first, middle), (_, last) = spans
    for top, bottom in spans:
        into = first - 8 if model.parallel else top - 8
        turn, at = LEFT - 10, (top + bottom) / 2
        yield line((STREAM, into), (turn, into), (turn, at), (LEFT, at), heads="end")
        out = bottom + 7
        yield line((INNER, bottom), (INNER, out), (STREAM, out), heads="end")
    shape = f"[B, S, {model.d_model}]"
    before = "" if model.norm_after else "norm of "
    added = "norm of " if model.norms_behind else ""
    yield written(INNER, first - 8, f"x = {before}the stream {shape}")
    z = "" if model.parallel else f"; z = {before}the sum"
    yield written(INNER + 8, middle + 18, f"+ {added}y{shape}{z}")
    yield written(INNER + 8, last + 18, f"+ {added}m{shape}")


def _notes(model: Model) -> Iterator[str]:
    """Notes on what the rows do not show."""
    if model.experts and model.experts.dense_layers:
        first = model.experts.dense_layers
        name = "The first layer has" if first == 1 else f"The first {first} layers have"
        yield f"{name} an MLP of {model.experts.dense_d_ff} instead."
    if model.experts and model.experts.every > 1:
        name = f"1 layer in {model.experts.every} has experts"
        yield f"{name}, the others an MLP of {model.experts.dense_d_ff}."
    if local := model.local_layers:
        yield (
            f"Mean of {model.global_layers} global layers and {local} that see "
            f"{model.window:,} keys."
        )


def _sums(model: Model, counted: Flops) -> Iterator[str]:
    layers = show(counted.weights + counted.attention)
    yield f"All {model.layers} layers {layers}, head {show(counted.head)}."
    forward, training = (show(n, "FLOPs") for n in (counted.forward, counted.training))
    yield f"A token forward {forward}, in training {training}."


def _said(model: Model, parts: dict[str, list[FigureRow]], lines: list[str]) -> str:
    every = {**parts, "head": [_row(model, model.head_line)]}
    rows = "; ".join(
        f"{name}: " + ", ".join(f"{row.text} {show(row.flops)}" for row in rows)
        for name, rows in every.items()
    )
    reads = "Each reads it and adds its result"
    if model.parallel:
        reads = "Both read it at once and add their results"
    return (
        f"A residual stream of {model.d_model} values a token runs past attention and "
        f"what follows it. {reads}. FLOPs of a token: {rows}. "
        f"{' '.join(lines)}"
    )
