"""Strategies: which dimension of which arrays lies over which mesh axis, no more."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..base.units import flags, positive_int, short_repr
from ..sharding.notation import subscript
from ..transformer.flops import one_of

Names = tuple[str, ...]
Layout = Mapping[str, Names]  # mesh axes by the name of a dimension, major first
HEADS = ("N", "K", "F", "V")  # what tensor parallelism splits: columns, then rows
WORDS = {
    "weights": "weights",
    "gradients": "gradients",
    "state": "optimizer state",
    "stream": "residual stream",
    "inner": "inside the blocks",
    "attention": "attention",
}
PLACES = tuple(WORDS)
# Beside B: tokens of the stream, and heads that attend, by tensor parallelism as well.
IN_TURN = ("S", "stream"), ("N", "attention"), ("K", "attention")
ATTENTIONS = ("ring", "gather", "ulysses")
COPIES = ("copies", "state", "shards")


@dataclass(frozen=True)
class Strategy:
    """Where the arrays of a Transformer lie; `data`, `fsdp`, `tensor` … make one.

    Each layout gives mesh axes by the name of a dimension, as in ``{"D": "X"}``. What a
    layout does not name is whole on every chip.

    Args:
        name: what to call it.
        weights: where weights rest between their uses, in the forward's format.
        gradients: where the gradients of weights are added up to.
        state: where the optimizer keeps its state.
        stream: the activations between the blocks, those with a dimension D.
        inner: the activations inside a block: heads, hidden layer, logits. Experts E
            are split in arrays that have them first, and then over no other dimension.
        attention: queries S, keys T and heads while they attend; as `inner` says if not
            given. Keys that lie over an axis of the queries go round it in a ring.
        layers: mesh axes over which the layers are cut into stages.

    >>> print(fsdp("X"))
    fsdp over X: weights D_X, gradients D_X, optimizer state D_X, \
residual stream B_X, inside the blocks B_X
    """

    name: str
    weights: Layout = field(default_factory=dict)
    gradients: Layout = field(default_factory=dict)
    state: Layout = field(default_factory=dict)
    stream: Layout = field(default_factory=dict)
    inner: Layout = field(default_factory=dict)
    attention: Layout | None = None
    layers: Names = ()

    def __post_init__(self) -> None:
        if self.attention is None:
            object.__setattr__(self, "attention", self.inner)
        for place in PLACES:
            layout = _layout(place, getattr(self, place))
            object.__setattr__(self, place, MappingProxyType(layout))
        object.__setattr__(self, "layers", _names(self.layers))

    @property
    def axes(self) -> Names:
        """The mesh axes that it uses."""
        layouts = [getattr(self, place) for place in reversed(PLACES)]
        found = (a for one in layouts for axes in one.values() for a in axes)
        return tuple(dict.fromkeys((*found, *self.layers)))

    @property
    def ring(self) -> Names:
        """The mesh axes over which keys go round, past the queries of every chip."""
        keys = self.attention.get("T", ())
        return tuple(axis for axis in self.attention.get("S", ()) if axis in keys)

    def __str__(self) -> str:
        told = [place for place in PLACES if getattr(self, place)]
        if self.attention == self.inner:
            told = [place for place in told if place != "attention"]
        said = [f"{WORDS[place]} {_said(getattr(self, place))}" for place in told]
        if self.layers:
            said.append(f"layers over {_over(self.layers)}")
        return f"{self.name}: {', '.join(said) or 'every chip has all'}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self).replace(": ", ":\n", 1).replace(", ", ",\n"))


def data(axes: str | Iterable[str]) -> Strategy:
    """Data parallelism: sequences over `axes`, everything else whole on every chip.

    >>> print(data("X"))
    data over X: residual stream B_X, inside the blocks B_X
    """
    axes = _names(axes)
    batch = {"B": axes}
    return Strategy(f"data over {_over(axes)}", stream=batch, inner=batch)


def zero(stage: int, axes: str | Iterable[str]) -> Strategy:
    """ZeRO: data parallelism whose chips share what they would all hold alike.

    Stage 1 splits the optimizer state, stage 2 the gradients too, stage 3 the weights
    too (FSDP). What is split is the dimension D, which every matrix has.

    Raises:
        ValueError: another stage than 1, 2 or 3.
    """
    found = 0
    with suppress(ValueError):
        (found,) = positive_int(stage=stage)
    if found not in (1, 2, 3):
        raise ValueError(f"stage = {short_repr(stage)}: must be 1, 2 or 3")
    axes = _names(axes)
    batch, split = {"B": axes}, {"D": axes}
    return Strategy(
        f"zero-{found} over {_over(axes)}",
        weights=split if found == 3 else {},
        gradients=split if found >= 2 else {},
        state=split,
        stream=batch,
        inner=batch,
    )


def fsdp(axes: str | Iterable[str]) -> Strategy:
    """Fully sharded data parallelism: sequences over `axes`, and D of every weight.

    A weight is gathered where it is used and forgotten after; see `zero`, stage 3.
    """
    axes = _names(axes)
    batch, split = {"B": axes}, {"D": axes}
    return Strategy(f"fsdp over {_over(axes)}", split, split, split, batch, batch)


def hybrid(replicas: str | Iterable[str], shards: str | Iterable[str]) -> Strategy:
    """Hybrid sharding (HSDP): FSDP over `shards`, copies of it over `replicas`."""
    return combine(data(replicas), fsdp(shards))


def tensor(
    axes: str | Iterable[str],
    sequence: bool = True,
    kv: str | Iterable[str] | None = None,
) -> Strategy:
    """Tensor parallelism: heads, hidden layer and vocabulary over `axes`.

    Args:
        axes: one mesh axis or several.
        sequence: split the residual stream over the sequence between the blocks
            (sequence parallelism); else every chip of `axes` holds all of it.
        kv: those of the axes that split the KV heads; along the others lie copies of
            them, as it must be where there are more chips than KV heads. All of the
            axes if not given.

    Raises:
        ValueError: `kv` names other axes, or not the first of them; `sequence` is
            neither True nor False.

    >>> print(tensor("Y", sequence=False))
    tensor over Y: weights {N,K,F,V}_Y, gradients {N,K,F,V}_Y, \
optimizer state {N,K,F,V}_Y, inside the blocks {N,K,F,V}_Y
    >>> tensor(("Y", "Z"), kv="Y").weights["K"]
    ('Y',)
    """
    axes = _names(axes)
    (sequence,) = flags(sequence=sequence)
    heads = _first(axes, kv)
    split = dict.fromkeys(HEADS, axes) | {"K": heads}
    stream = {"S": axes} if sequence else {}
    name = f"tensor over {_over(axes)}"
    name += " with sequence parallelism" if sequence else ""
    return Strategy(name, split, split, split, stream, split)


def context(
    axes: str | Iterable[str],
    attention: str = "ring",
    weights: str = "copies",
    kv: str | Iterable[str] | None = None,
) -> Strategy:
    """Context parallelism: the tokens of a sequence over `axes`, attention too.

    Args:
        axes: one mesh axis or several.
        attention: what queries of one chip do about keys of another. "ring": keys and
            values go round, one hop after the other; "gather": they are gathered;
            "ulysses": tokens are gathered and heads split, by AllToAlls before and
            after.
        weights: "copies" on every chip; "state" for copies whose optimizer state is
            sharded over D, as in ZeRO-1; or "shards" over D as in FSDP.
        kv: of "ulysses", those of the axes that split the KV heads; along the others
            each chip has all of them. All of the axes if not given.

    Raises:
        ValueError: another word; `kv` without "ulysses", or not the first of the axes.

    >>> print(context("C", "ulysses"))
    context (ulysses) over C: residual stream S_C, inside the blocks S_C, attention \
{N,K}_C
    """
    axes = _names(axes)
    one_of(ATTENTIONS, attention=attention)
    one_of(COPIES, weights=weights)
    if kv is not None and attention != "ulysses":
        raise ValueError(f"kv = {kv!r}: is for attention 'ulysses' alone")
    heads = _first(axes, kv)
    attend = {
        "ring": {"S": axes, "T": axes},
        "gather": {"S": axes},
        "ulysses": {"N": axes, "K": heads},
    }
    split = {"D": axes} if weights == "shards" else {}
    state = {"D": axes} if weights != "copies" else {}
    tokens, name = {"S": axes}, f"context ({attention}) over {_over(axes)}"
    return Strategy(name, split, split, state, tokens, tokens, attend[attention])


def expert(axes: str | Iterable[str], dense: str = "copies") -> Strategy:
    """Expert parallelism: the experts over `axes`, and the sequences too.

    Tokens go to their experts and back by AllToAlls.

    Args:
        axes: one mesh axis or several.
        dense: weights that belong to no expert: "copies" on every chip; "state" for
            copies whose optimizer state is sharded over D, as in ZeRO-1; or "shards"
            over D as in FSDP.

    Raises:
        ValueError: another word.

    >>> print(expert("X"))
    expert over X: weights E_X, gradients E_X, optimizer state E_X, residual stream \
{B,E}_X, inside the blocks {B,E}_X
    """
    axes = _names(axes)
    one_of(COPIES, dense=dense)
    split = {"E": axes} | ({"D": axes} if dense == "shards" else {})
    state = {"E": axes} | ({"D": axes} if dense != "copies" else {})
    batch = {"B": axes, "E": axes}
    return Strategy(f"expert over {_over(axes)}", split, split, state, batch, batch)


def fold_experts(strategy: Strategy, axes: str | Iterable[str]) -> Strategy:
    """Experts over mesh axes that split something else outside the experts, too.

    Attention keeps its layout on all chips. In the experts the chips of `axes` hold
    whole experts instead of parts of each: matmuls stay large, and tokens go straight
    to the chip that has their expert. Megatron calls it parallel folding.

    Args:
        strategy: that uses these axes for tensor or context parallelism.
        axes: one mesh axis or several, behind those that split the experts already.

    Raises:
        ValueError: axes that the strategy does not use, or that split experts already.

    >>> print(fold_experts(combine(expert("X"), tensor("Y")), "Y").weights["E"])
    ('X', 'Y')
    """
    axes = _names(axes)
    for axis in axes:
        if axis not in strategy.axes:
            known = _over(strategy.axes)
            raise ValueError(f"axis {short_repr(axis)}: must be one of {known}")
        if axis in strategy.weights.get("E", ()):
            raise ValueError(f"axis {axis}: splits the experts already")
    folded = {
        place: {**layout, "E": layout.get("E", ()) + axes}
        for place, layout in ((one, getattr(strategy, one)) for one in PLACES)
    }
    name = f"{strategy.name}, experts over {_over(folded['weights']['E'])}"
    return replace(strategy, name=name, **folded)


def pipeline(axes: str | Iterable[str]) -> Strategy:
    """Pipeline parallelism: the layers cut into stages over `axes`.

    >>> print(pipeline("P"))
    pipeline over P: layers over P
    """
    axes = _names(axes)
    return Strategy(f"pipeline over {_over(axes)}", layers=axes)


def combine(*strategies: Strategy) -> Strategy:
    """Several strategies at once, each over mesh axes of its own.

    Sequences, their tokens and D may be split by several of them, first by the one
    named first; tokens last by sequence parallelism, which gathers them in the blocks.

    Raises:
        ValueError: no strategy at all; a mesh axis, or another dimension, that two of
            them split; layers that two of them cut.

    >>> print(combine(fsdp("X"), tensor("Y")).weights["D"])
    ('X',)
    """
    if not strategies:
        raise ValueError("combine(): must be given strategies, such as fsdp('X')")
    for one in strategies:
        if not isinstance(one, Strategy):
            raise ValueError(f"{one!r}: must be a strategy, such as fsdp('X')")
    found: dict[str, dict[str, Names]] = {place: {} for place in PLACES}
    for n, one in enumerate(strategies):
        for other in strategies[:n]:
            _check(other, one)
        for place, layout in found.items():
            for dim, axes in getattr(one, place).items():
                layout[dim] = layout.get(dim, ()) + axes
    kept = {dim: found["inner"].get(dim, ()) for dim in ("S", "N", "K")}
    for place in ("stream", "attention"):
        layout = found[place]
        for dim in kept.keys() & layout:
            # What stays split inside the blocks is split first.
            layout[dim] = tuple(sorted(layout[dim], key=lambda a: a not in kept[dim]))
    cut = tuple(axis for one in strategies for axis in one.layers)
    return Strategy(" × ".join(one.name for one in strategies), **found, layers=cut)


def _check(one: Strategy, other: Strategy) -> None:
    """Do two strategies leave one another alone?"""
    for axis in one.axes:
        if axis in other.axes:
            raise ValueError(
                f"mesh axis {axis}: is taken by {one.name} and by {other.name}"
            )
    if one.layers and other.layers:
        raise ValueError(f"layers: are cut by {one.name} and by {other.name}")
    for place, what in WORDS.items():
        for dim in getattr(one, place):
            if dim in getattr(other, place) and not _in_turn(dim, place, one, other):
                raise ValueError(
                    f"dimension {dim} ({what}): is split by {one.name} and by "
                    f"{other.name}; give one of them both axes"
                )


def _in_turn(dim: str, place: str, one: Strategy, other: Strategy) -> bool:
    """May two strategies split a dimension, one after the other?"""
    if dim == "D":  # as FSDP does; two that do no more are one
        return any({"S", "E"} & {*s.stream, *s.inner} for s in (one, other))
    return dim == "B" or (dim, place) in IN_TURN


def _layout(place: str, given: object) -> dict[str, Names]:
    """A layout with every value a tuple of axes, none of them twice."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{place} = {given!r}: must be axes by dimension, {{'D': 'X'}}"
        )
    found = {dim: _names(axes) for dim, axes in given.items()}
    return {dim: axes for dim, axes in found.items() if axes}


def _names(axes: object, what: str = "axes") -> Names:
    """Names of mesh axes as a tuple, one of them for a string; `what` they are for."""
    if not isinstance(axes, Iterable):
        raise ValueError(f"{what} = {short_repr(axes)}: must be names of mesh axes")
    found = (axes,) if isinstance(axes, str) else tuple(axes)
    if not all(isinstance(axis, str) and axis for axis in found):
        raise ValueError(f"{what} = {short_repr(axes)}: must be names of mesh axes")
    if len(set(found)) < len(found):
        raise ValueError(f"{what} = {short_repr(axes)}: must not name one twice")
    return found


def _first(axes: Names, kv: str | Iterable[str] | None) -> Names:
    """Those of `axes` that split the KV heads."""
    heads = axes if kv is None else _names(kv, "kv")
    if axes[: len(heads)] != heads:
        raise ValueError(f"kv = {kv!r}: must be the first of the axes {_over(axes)}")
    return heads


def _over(axes: Names) -> str:
    return " ".join(axes) or "no axis"


def _said(layout: Layout) -> str:
    """A layout in a few words, dimensions of the same axes together: "{N,F}_Y"."""
    by_axes: dict[Names, list[str]] = {}
    for dim, axes in layout.items():
        by_axes.setdefault(axes, []).append(dim)
    return " ".join(
        f"{dims[0] if len(dims) == 1 else '{' + ','.join(dims) + '}'}_{subscript(axes)}"
        for axes, dims in by_axes.items()
    )
