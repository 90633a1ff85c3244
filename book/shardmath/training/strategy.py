"""Strategies: which mesh axes shard which dimensions of which arrays."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..base.units import flags, positive_int, short_repr
from ..sharding.notation import subscript
from ..transformer.flops import one_of

Names = tuple[str, ...]
Layout = Mapping[str, Names]  # mesh axes by the name of a dimension, major first
HEADS = ("N", "K", "F", "V")  # the dimensions that tensor parallelism splits
WORDS = {
    "weights": "weights",
    "gradients": "gradients",
    "state": "optimizer state",
    "stream": "residual stream",
    "inner": "inside the blocks",
    "attention": "attention",
}
PLACES = tuple(WORDS)
# Besides B, several strategies may split the stream's tokens and the attention's heads,
# because tensor parallelism splits these as well.
IN_TURN = ("S", "stream"), ("N", "attention"), ("K", "attention")
ATTENTIONS = ("ring", "gather", "ulysses")
COPIES = ("copies", "state", "shards")


@dataclass(frozen=True)
class Strategy:
    """How the arrays of a Transformer are sharded; made by `data`, `fsdp`, `tensor` …

    Each layout maps names of dimensions to mesh axes, as in ``{"D": "X"}``. Dimensions
    that a layout does not name are whole on every chip.

    Args:
        name: the name under which it is printed.
        weights: the layout of weights between their uses.
        gradients: the layout in which gradients of weights are added up.
        state: the layout of the optimizer's state.
        stream: the layout of activations between the blocks; these have a dimension D.
        inner: the layout of activations inside a block: heads, hidden layer, logits.
            Its axes for the dimension of experts, E, apply only to arrays that start
            with E, and split no other dimension of these arrays.
        attention: the layout of queries S, keys T and heads in attention; by default,
            `inner`. If an axis splits both queries and keys, the keys go round that
            axis in a ring.
        layers: mesh axes over which the layers are cut into stages.

    Raises:
        ValueError: a layout does not map dimensions to names of mesh axes, or names an
            axis twice for one dimension.

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
        """The mesh axes that the strategy uses."""
        layouts = [getattr(self, place) for place in reversed(PLACES)]
        found = (a for one in layouts for axes in one.values() for a in axes)
        return tuple(dict.fromkeys((*found, *self.layers)))

    @property
    def ring(self) -> Names:
        """The mesh axes along which keys go round, so all queries meet all keys."""
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
    """Data parallelism: `axes` shard the sequences, and each chip has all weights.

    >>> print(data("X"))
    data over X: residual stream B_X, inside the blocks B_X
    """
    axes = _names(axes)
    batch = {"B": axes}
    return Strategy(f"data over {_over(axes)}", stream=batch, inner=batch)


def zero(stage: int, axes: str | Iterable[str]) -> Strategy:
    """ZeRO: data parallelism that shards what every chip would otherwise hold in full.

    Stage 1 shards the optimizer state, stage 2 also shards the gradients, and stage 3
    (FSDP) also shards the weights. All are sharded along the dimension D, which every
    matrix has.

    Raises:
        ValueError: a stage other than 1, 2 or 3.

    >>> print(zero(1, "X"))
    zero-1 over X: optimizer state D_X, residual stream B_X, inside the blocks B_X
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
    """Fully sharded data parallelism: `axes` shard the sequences and D of every weight.

    A weight is gathered when it is used and then freed; see `zero`, stage 3.

    >>> fsdp("X").name
    'fsdp over X'
    """
    axes = _names(axes)
    batch, split = {"B": axes}, {"D": axes}
    return Strategy(f"fsdp over {_over(axes)}", split, split, split, batch, batch)


def hybrid(replicas: str | Iterable[str], shards: str | Iterable[str]) -> Strategy:
    """Hybrid sharding (HSDP): FSDP over `shards`, with copies over `replicas`.

    >>> hybrid("Z", "X").name
    'data over Z × fsdp over X'
    """
    return combine(data(replicas), fsdp(shards))


def tensor(
    axes: str | Iterable[str],
    sequence: bool = True,
    kv: str | Iterable[str] | None = None,
) -> Strategy:
    """Tensor parallelism: heads, hidden layer and vocabulary over `axes`.

    Args:
        axes: one mesh axis or several.
        sequence: whether `axes` also split the tokens of the residual stream between
            the blocks (sequence parallelism). If not, every chip of `axes` holds all
            tokens.
        kv: the leading axes, which also split the KV heads; by default, all axes. Along
            the other axes, KV heads are copied, as is necessary if there are more chips
            than KV heads.

    Raises:
        ValueError: `kv` is not the leading axes; `sequence` is neither True nor False.

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
    """Context parallelism: `axes` shard the tokens of a sequence, even in attention.

    Args:
        axes: one mesh axis or several.
        attention: how queries on one chip meet keys on another. "ring": keys and values
            go round, one hop after the other; "gather": keys and values are gathered;
            "ulysses": an AllToAll before attention gathers tokens and splits heads, and
            an AllToAll after attention does the reverse.
        weights: "copies" on every chip; "state" for copies whose optimizer state is
            sharded over D, as in ZeRO-1; or "shards" over D as in FSDP.
        kv: with "ulysses", the leading axes, which split the KV heads; by default, all
            axes. Along the other axes, the KV heads are copied.

    Raises:
        ValueError: `attention` or `weights` has another value; `kv` is given without
            "ulysses" or is not the leading axes.

    >>> print(context("C", "ulysses"))
    context (ulysses) over C: residual stream S_C, inside the blocks S_C, attention \
{N,K}_C
    """
    axes = _names(axes)
    one_of(ATTENTIONS, attention=attention)
    one_of(COPIES, weights=weights)
    if kv is not None and attention != "ulysses":
        raise ValueError(
            f"kv = {short_repr(kv)}: can be given only with attention = 'ulysses'"
        )
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
    """Expert parallelism: `axes` shard the experts, and the sequences too.

    Tokens go to their experts and back by AllToAlls.

    Args:
        axes: one mesh axis or several.
        dense: how weights that belong to no expert are held: "copies" on every chip;
            "state" for copies whose optimizer state is sharded over D, as in ZeRO-1; or
            "shards" over D as in FSDP.

    Raises:
        ValueError: another value of `dense`.

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
    """Also shard the experts over mesh axes that have another use elsewhere.

    Attention keeps its layout on all chips. But the chips of `axes` hold whole experts
    instead of a part of each expert, so matmuls stay large, and tokens go straight to
    the chip that has their expert. Megatron calls this parallel folding.

    Args:
        strategy: a strategy that uses these axes for tensor or context parallelism.
        axes: one mesh axis or several, placed after those that already split the
            experts.

    Raises:
        ValueError: the strategy does not use the axes, or they already split experts.

    >>> print(fold_experts(combine(expert("X"), tensor("Y")), "Y").weights["E"])
    ('X', 'Y')
    """
    axes = _names(axes)
    for axis in axes:
        if axis not in strategy.axes:
            known = _over(strategy.axes)
            raise ValueError(f"axis {short_repr(axis)}: must be one of {known}")
        if axis in strategy.weights.get("E", ()):
            raise ValueError(f"axis {axis}: already splits the experts")
    folded = {
        place: {**layout, "E": layout.get("E", ()) + axes}
        for place, layout in ((one, getattr(strategy, one)) for one in PLACES)
    }
    name = f"{strategy.name}, experts over {_over(folded['weights']['E'])}"
    return replace(strategy, name=name, **folded)


def pipeline(axes: str | Iterable[str]) -> Strategy:
    """Pipeline parallelism: the layers are cut into stages over `axes`.

    >>> print(pipeline("P"))
    pipeline over P: layers over P
    """
    axes = _names(axes)
    return Strategy(f"pipeline over {_over(axes)}", layers=axes)


def combine(*strategies: Strategy) -> Strategy:
    """Several strategies at once, each over its own mesh axes.

    Several strategies may split sequences, their tokens and D. The strategy named first
    makes the major split. Only sequence parallelism, which gathers tokens inside the
    blocks, always makes the minor split of the tokens.

    Raises:
        ValueError: no strategy is given, or an argument is not one; two strategies use
            the same mesh axis, both split another dimension, or both cut the layers.

    >>> print(combine(fsdp("X"), tensor("Y")).weights["D"])
    ('X',)
    """
    if not strategies:
        raise ValueError("combine(): needs strategies, such as fsdp('X')")
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
            # Axes that also split this dimension inside the blocks come first.
            layout[dim] = tuple(sorted(layout[dim], key=lambda a: a not in kept[dim]))
    cut = tuple(axis for one in strategies for axis in one.layers)
    return Strategy(" × ".join(one.name for one in strategies), **found, layers=cut)


def _check(one: Strategy, other: Strategy) -> None:
    """Raise if two strategies cannot be combined."""
    for axis in one.axes:
        if axis in other.axes:
            raise ValueError(
                f"mesh axis {axis}: is used by both {one.name} and {other.name}"
            )
    if one.layers and other.layers:
        raise ValueError(f"layers: are cut by both {one.name} and {other.name}")
    for place, what in WORDS.items():
        for dim in getattr(one, place):
            if dim in getattr(other, place) and not _in_turn(dim, place, one, other):
                raise ValueError(
                    f"dimension {dim} ({what}): is split by both {one.name} and "
                    f"{other.name}; give both axes to one of them"
                )


def _in_turn(dim: str, place: str, one: Strategy, other: Strategy) -> bool:
    """Whether two strategies may split the same dimension, one after the other."""
    if dim == "D":  # two strategies that are both plain FSDP should be one instead
        return any({"S", "E"} & {*s.stream, *s.inner} for s in (one, other))
    return dim == "B" or (dim, place) in IN_TURN


def _layout(place: str, given: object) -> dict[str, Names]:
    """A layout whose every value is a tuple of axes, none of them twice."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{place} = {given!r}: must map dimensions to axes, as in {{'D': 'X'}}"
        )
    found = {dim: _names(axes) for dim, axes in given.items()}
    return {dim: axes for dim, axes in found.items() if axes}


def _names(axes: object, what: str = "axes") -> Names:
    """Names of mesh axes as a tuple; a string is one name. Errors call them `what`."""
    if not isinstance(axes, Iterable):
        raise ValueError(f"{what} = {short_repr(axes)}: must be names of mesh axes")
    found = (axes,) if isinstance(axes, str) else tuple(axes)
    if not all(isinstance(axis, str) and axis for axis in found):
        raise ValueError(f"{what} = {short_repr(axes)}: must be names of mesh axes")
    if len(set(found)) < len(found):
        raise ValueError(f"{what} = {short_repr(axes)}: must not name an axis twice")
    return found


def _first(axes: Names, kv: str | Iterable[str] | None) -> Names:
    """The first of `axes`, as many as `kv` names, which split the KV heads."""
    heads = axes if kv is None else _names(kv, "kv")
    if axes[: len(heads)] != heads:
        raise ValueError(f"kv = {kv!r}: must be the first of the axes {_over(axes)}")
    return heads


def _over(axes: Names) -> str:
    return " ".join(axes) or "no axis"


def _said(layout: Layout) -> str:
    """A layout in short, with dimensions over the same axes together: "{N,F}_Y"."""
    by_axes: dict[Names, list[str]] = {}
    for dim, axes in layout.items():
        by_axes.setdefault(axes, []).append(dim)
    return " ".join(
        f"{dims[0] if len(dims) == 1 else '{' + ','.join(dims) + '}'}_{subscript(axes)}"
        for axes, dims in by_axes.items()
    )
