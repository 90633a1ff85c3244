"""Rematerialisation: what a layer keeps for its backward pass, and what it does again.

The forward pass of a layer is written down as a list of values: what each is computed
from, and which values its gradient reads. One walk answers both questions. It starts at
everything that a gradient reads and stops wherever a policy keeps a value: those values
are **saved**, and the ones that it had to pass through are **computed again**.

>>> from shardmath.transformer import LLAMA_3_8B
>>> for line in recompute(LLAMA_3_8B, LLAMA_3_8B.layer, "Q K V y").lines:
...     print(line)
z[B, S, D] · gate[D, F] -> g[B, S, F]
z[B, S, D] · up[D, F] -> u[B, S, F]
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from ..base.units import PRECISION_BYTES, flags, short_repr
from .architecture import Model, checked
from .lines import Array, Matmul

REMAT = ("none", "elementwise", "dots", "selective", "full")
KERNELS = ("fused", "unfused")
WIDTHS = PRECISION_BYTES | {"bool": 1.0, "int32": 4.0}

STREAM = ("B", "S", "D")
SCORES = ("B", "K", "G", "S", "T")
SUMS = SCORES[:-1]
INSIDE = ("exp", "sums", "slopes", "P", "lse")  # what attention alone reads
# Steps of an unfused activation, one array of the hidden layer's shape each. With a
# gate h = silu(g) · u, where silu(g) = g · sigmoid(g); without one h = u · share, where
# share = (1 + tanh(cubic)) / 2.
STEPS = {
    True: ("sigmoid", "its slope", "silu"),
    False: ("cubic", "tanh", "1 − tanh", "share"),
}


class Saved(NamedTuple):
    """An array that waits for the backward pass, and the format that it is kept in.

    >>> Saved(Array("x", ("B", "S", "D")), "bf16").nbytes({"B": 2, "S": 8, "D": 64})
    2048.0
    """

    array: Array
    format: str

    @property
    def width(self) -> float:
        """Bytes of one value."""
        return WIDTHS[self.format]

    def nbytes(self, sizes: Mapping[str, int]) -> float:
        """Bytes of all of it, where its dimensions have these sizes."""
        return self.width * self.array.count(sizes)

    def __str__(self) -> str:
        return f"{self.format} {self.array}"


class Value(NamedTuple):
    """One value of a layer's forward pass.

    Args:
        array: its name and dimensions.
        made_from: the names of the values that it is computed from.
        reads: the names of the values that the gradients of those read.
        format: in which it is kept.
        line: the matmul that computes it, if one does.
    """

    array: Array
    made_from: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    format: str = "bf16"
    line: Matmul | None = None

    @property
    def weighted(self) -> bool:
        """Whether it is the result of a matmul with a weight: attention's have none."""
        return self.line is not None and self.line.reads.name not in ("Q", "P")


class Recompute(NamedTuple):
    """What one layer computes a second time in its backward pass.

    Args:
        lines: the matmuls with weights, in the order of the forward pass.
        attention: the products without weights, of `Model.attention`; empty where
            attention is not done again.
        values: the names of all values that are computed again, those that cost no
            matmul among them, in the same order. What is gathered or sent to compute
            them moves again: x and z where sequences are split, t to the experts.
    """

    lines: tuple[Matmul, ...]
    attention: tuple[Matmul, ...]
    values: tuple[str, ...]


def recompute(
    model: Model,
    matmuls: tuple[Matmul, ...],
    remat: str,
    kernel: str = "fused",
    *,
    bound: bool = False,
) -> Recompute:
    """The matmuls of one layer that its backward pass computes again.

    A product is computed again if its result is not kept, and either a gradient or
    another value that is computed again reads it. So the last product of a layer is
    left out unless a norm stands behind it, and so is the one that ends attention
    where the layer's own MLP does not read what it adds to the stream.

    Args:
        model: dense, with experts or with latent attention.
        matmuls: those of one layer, as in `Model.layer` or `Model.stack`.
        remat: "none" keeps all that the backward pass reads. "elementwise" keeps the
            results of matmuls and of attention, and the tokens that experts were
            sent, and does norms, activations and positions again. "dots" keeps the
            results of matmuls with weights alone. "selective" keeps all but what is
            inside attention (Megatron's policy: scores, softmax and weighted sum are
            done again). "full" keeps the stream before the layer. Otherwise it is the
            names of the results that are kept beside that stream, such as "Q K V y";
            A is attention's, and t are the tokens that experts were sent.
        kernel: of attention and of the activation. "fused" attention computes scores
            and weighted sum together or not at all; "unfused" attention does one
            without the other.
        bound: False counts what an implementation computes, as JAX's autodiff
            does: the gradient of a gate reads the answer of its expert. True counts
            what no implementation can leave out: that gradient can also be had from the
            values before the expert's last product, and where the result of attention
            is kept its scores alone are needed again.

    Assumes:
        The backward pass of a fused kernel computes scores block by block a second time
        under every policy. That belongs to the kernel and is not counted here.

    Raises:
        ValueError: a policy, kernel or flag that is not known; what is no Model.

    Source:
        "selective": Korthikanti et al. (arXiv:2205.05198), section 5.

    >>> from shardmath.transformer import DEEPSEEK_V3, LLAMA_3_8B
    >>> for remat in REMAT:
    ...     lines, attention, _ = recompute(LLAMA_3_8B, LLAMA_3_8B.layer, remat)
    ...     print(remat, *(line.result.name for line in (*lines, *attention)))
    none
    elementwise
    dots P A
    selective P A
    full Q K V y g u P A
    >>> last = DEEPSEEK_V3.layer[-4]
    >>> print(last)
    h[E, slots, F] · down[E, F, D] -> m[E, slots, D]
    >>> for bound in (False, True):
    ...     found = recompute(DEEPSEEK_V3, DEEPSEEK_V3.layer, "full", bound=bound)
    ...     print(last in found.lines)
    True
    False
    """
    (bound,) = flags(bound=bound)
    values = layer_values(model, matmuls, kernel)
    if bound and "gates" in values:
        values = values | {"answer": values["answer"]._replace(reads=())}
    again = _walk(values, checked_remat(model, remat))[1]
    products = [values[name].line for name in again if values[name].line]
    attention = tuple(line for line in model.attention if line in products)
    if attention and kernel == "fused" and not bound:
        attention = model.attention
    return Recompute(tuple(one for one in matmuls if one in products), attention, again)


def saved(
    model: Model,
    remat: str,
    matmuls: tuple[Matmul, ...] | None = None,
    kernel: str = "fused",
) -> tuple[Saved, ...]:
    """The arrays of one layer that are kept for its backward pass.

    Args:
        model: dense, with experts or with latent attention.
        remat: as for `recompute`.
        matmuls: those of the layer, as in `Model.stack`; `Model.layer` by default, a
            layer with experts where some layers have none.
        kernel: "fused" keeps of attention its result and, for each query head and
            token, one log of a sum of exponentials in fp32, and of the activation
            (SwiGLU, GELU) what goes in and what comes out. "unfused" keeps what JAX's
            autodiff does: the softmax, which takes arrays over S and T, and every step
            of the activation.

    Returns:
        Arrays in the order of the forward pass. These names do not change: "stream" is
        the residual stream before the layer and "middle" the one behind attention; x
        and z are what attention and the MLP read of them, behind a norm; t are the
        tokens as experts get them.

    Assumes:
        The layer is `programs.block.layer`: RMSNorm, causal softmax in f32, SiLU with a
        gate and GELU without, bf16 elsewhere; norms are done again under each policy.
        For dense layers and an unfused kernel it is what JAX's autodiff keeps in a loop
        over layers, equal to `jax.ad_checkpoint.print_saved_residuals` to the byte; see
        `saved_once`. A compiler may keep less: XLA fuses what is cheap into the
        backward pass. Experts get equally many tokens, sorted by expert; a router's
        softmax is kept in fp32, its choices in int32, its gates in bf16. Of a layer
        with experts JAX keeps two arrays more, the index of every slot's token a second
        time and zeros that answers are added to. Rotary positions, sinks and biases
        keep nothing. JAX's own policy `dots_with_no_batch_dims_saveable` is "dots" for
        layers without experts: the products of experts have a batch dimension, E.

    Raises:
        ValueError: as `recompute`.

    >>> tiny = Model("tiny", 2, 64, 256, 4, 2, 16, 1000)
    >>> print(*saved(tiny, "dots")[:3], sep=", ")
    bf16 stream[B, S, D], bf16 Q[B, S, N, H], bf16 K[B, S, K, H]
    >>> [len(saved(tiny, remat)) for remat in REMAT]
    [12, 9, 7, 11, 1]
    >>> [str(one) for one in saved(tiny, "none") if one.format == "fp32"]
    ['fp32 lse[B, S, N]']
    """
    matmuls = checked(model).layer if matmuls is None else matmuls
    values = layer_values(model, matmuls, kernel)
    kept = _walk(values, checked_remat(model, remat))[0]
    return tuple(Saved(values[name].array, values[name].format) for name in kept)


def saved_once(model: Model, remat: str, kernel: str = "fused") -> tuple[Saved, ...]:
    """What "none" keeps for all layers together, beside `saved` for each of them.

    Args:
        model, remat, kernel: as for `saved`. A fused kernel keeps nothing here; an
            unfused one keeps its causal mask, 5 bytes a score. One layer by itself
            keeps 11 bytes a score, with the 6 of `saved`.

    Raises:
        ValueError: as `saved`.

    >>> tiny = Model("tiny", 2, 64, 256, 4, 2, 16, 1000)
    >>> print(*saved_once(tiny, "none", kernel="unfused"), sep=", ")
    bool mask[B, K, G, S, T], fp32 zeros[B, K, G, S, T]
    """
    _checked_kernel(kernel)
    kept = checked_remat(model, remat)
    if kernel == "fused" or kept != "none":
        return ()
    # The zeros are the gradient of a masked score.
    return Saved(Array("mask", SCORES), "bool"), Saved(Array("zeros", SCORES), "fp32")


def checked_remat(model: Model, remat: str) -> str:
    """`remat`, if it is a policy, or names of results that layers of `model` have.

    >>> checked_remat(Model("tiny", 2, 64, 256, 4, 2, 16, 1000), "Q K")
    'Q K'
    """
    if isinstance(remat, str) and remat in REMAT:
        return remat
    known = dict.fromkeys(
        name
        for _, lines in checked(model).stack
        for line in lines
        for name in (line.reads.name * (line.reads.name in "At"), line.result.name)
        if name
    )
    names = remat.split() if isinstance(remat, str) else ()
    if not names or not {*names} <= {*known}:
        raise ValueError(
            f"remat = {short_repr(remat)}: must be one of {', '.join(REMAT)}, or names "
            "of "
            f"the results that are kept, among {' '.join(known)}"
        )
    return remat


def keeps(remat: str, value: Value) -> bool:
    """Whether a policy keeps a value that the backward pass reads.

    Args:
        remat: as `checked_remat` returns it.
        value: of `layer_values`.
    """
    name = value.array.name
    if name == "stream" or remat == "none":
        return True
    if remat == "dots":
        return value.weighted
    if remat == "elementwise":
        return value.weighted or name in ("A", "lse", "t")
    if remat == "selective":
        return name not in INSIDE
    names = () if remat == "full" else remat.split()
    return name in names or (name == "lse" and "A" in names)


def _walk(
    values: Mapping[str, Value], remat: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The values that are saved and those that are computed again, in forward order."""
    saved, again = set(), set()
    wanted = [name for value in values.values() for name in value.reads]
    while wanted:
        name = wanted.pop()
        if name in saved or name in again:
            continue
        if keeps(remat, values[name]):
            saved.add(name)
        else:
            again.add(name)
            wanted += values[name].made_from
    saved_in_order, again_in_order = (
        tuple(name for name in values if name in some) for some in (saved, again)
    )
    return saved_in_order, again_in_order


# ------------------------------------------------------------- the values of a layer


def layer_values(
    model: Model, matmuls: tuple[Matmul, ...], kernel: str
) -> Mapping[str, Value]:
    """Every value of a layer's forward pass by name, in order.

    Args:
        model: of which norms, latent attention and parallel blocks are read.
        matmuls: of the layer; of them, whether its MLP has a gate and experts.
        kernel: "fused" or "unfused".
    """
    _checked_kernel(kernel)
    return _values(checked(model), tuple(matmuls), kernel)


@lru_cache(maxsize=256)
def _values(
    model: Model, matmuls: tuple[Matmul, ...], kernel: str
) -> Mapping[str, Value]:
    found = (
        *_attention_block(model, matmuls, kernel),
        *_mlp_block(model, matmuls, kernel),
    )
    return MappingProxyType({value.array.name: value for value in found})


def _attention_block(
    model: Model, matmuls: tuple[Matmul, ...], kernel: str
) -> Iterator[Value]:
    """The stream, and attention up to what it adds to the stream."""
    yield Value(Array("stream", STREAM))
    if not model.norm_after:
        yield _norm("x", "stream", STREAM)
    output = next(line for line in matmuls if line.reads.name == "A")
    before = matmuls[: matmuls.index(output)]
    recurs = any(line.weight.name == "decay" for line in before)
    for line in before:
        name = line.result.name
        yield _product(line, {"x": "stream"} if model.norm_after else {})
        if _is_normed(model, name) and not recurs:
            yield _norm(f"{name} normed", name, line.result.dims)
    yield from _recurrence(output) if recurs else _attention(model, kernel)
    gated = any(line.result.name == "Z" for line in before)
    if gated:
        yield Value(Array("A gated", output.reads.dims), ("A", "Z"), ("A", "Z"))
    yield _product(output, {"A": "A gated"} if gated else {})
    if model.norms_behind:
        yield _norm("y normed", "y", STREAM)


def _attention(model: Model, kernel: str) -> Iterator[Value]:
    scores, weighted = model.attention
    Q, K = (f"{name} normed" if _is_normed(model, name) else name for name in "QK")
    if model.latent:  # the rotary part of the keys is the same in all heads
        K = "keys"
        yield Value(Array(K, ("B", "S", "N", "H")), ("K", "R"))
    inputs = (Q, K, "V")
    A = Array("A", _result_of_attention(model))
    if kernel == "fused":
        yield Value(scores.result, (Q, K), line=scores)
        yield Value(Array("lse", ("B", "S", "N")), ("P",), format="fp32")
        yield Value(A, ("P", "V"), (*inputs, "A", "lse"), line=weighted)
        return
    yield Value(Array("exp", SCORES), (Q, K), (Q, K), "fp32", scores)
    yield Value(Array("sums", SUMS), ("exp",), format="fp32")
    yield Value(Array("slopes", SUMS), ("sums",), format="fp32")  # of 1 / sum
    yield Value(Array("P", SCORES), ("exp", "sums"), ("exp", "sums", "slopes"))
    yield Value(A, ("P", "V"), ("P", "V"), line=weighted)


def _recurrence(output: Matmul) -> Iterator[Value]:
    """What a state gives, token by token; its kernel computes states a second time."""
    given = ("Q", "K", "V", "b", "a")
    yield Value(Array("A", output.reads.dims), given, given)


def _mlp_block(
    model: Model, matmuls: tuple[Matmul, ...], kernel: str
) -> Iterator[Value]:
    """From the stream behind attention to what the MLP or the experts add to it."""
    z = "x"
    if not model.parallel:
        behind = "y normed" if model.norms_behind else "y"
        yield Value(Array("middle", STREAM), ("stream", behind))
        z = "z"
        if not model.norm_after:
            yield _norm("z", "middle", STREAM)
    if model.norm_after:
        z = "stream" if model.parallel else "middle"
    output = next(line for line in matmuls if line.reads.name == "A")
    lines = matmuls[matmuls.index(output) + 1 :]
    routed = any(line.weight.name == "router" for line in lines)
    for line in lines:
        if line.reads.name[0] == "h":
            yield from _activation(line, {other.result.name for other in lines}, kernel)
        yield _product(line, {"x": z, "z": z})
        if line.weight.name == "router":
            yield from _routing(z)
    answers = tuple(one.result.name for one in lines if one.result.name[0] == "m")
    gates = ("gates",) if routed else ()
    # The gradient of a gate reads what its expert answers, and the other way round.
    reads = ("m", *gates) if routed else ()
    yield Value(Array("answer", STREAM), answers + gates, reads)
    if model.norms_behind:
        yield _norm("answer normed", "answer" if routed else answers[0], STREAM)


def _routing(z: str) -> Iterator[Value]:
    """From the scores r of a router to the tokens t as experts get them.

    Every token has k picks, each an expert and a gate. Sorted by expert, they fill the
    slots; "tokens" says which token lies in each.
    """
    slots, soft = ("E", "slots"), ("r exp", "r sums", "r slopes")
    yield Value(Array("r exp", ("B", "S", "E")), ("r",), format="fp32")
    yield Value(Array("r sums", ("B", "S")), ("r exp",), format="fp32")
    yield Value(Array("r slopes", ("B", "S")), ("r sums",), format="fp32")
    yield Value(Array("chosen", slots), soft[:2], (*soft, "chosen"), "int32")
    yield Value(Array("picks", slots), ("chosen",), format="int32")
    yield Value(Array("tokens", slots), ("picks",), format="int32")
    yield Value(Array("gates", slots), ("r exp", "r sums", "picks"), ("picks",))
    yield Value(Array("t", (*slots, "D")), (z, "tokens"), ("tokens",))


def _activation(down: Matmul, results: set[str], kernel: str) -> Iterator[Value]:
    """What the last matmul of an MLP reads: h, of g and u or of u alone.

    A fused kernel computes the gradient from what came in, and keeps no step between.
    """
    hidden = down.reads
    suffix = hidden.name[1:]  # "s" of a shared expert
    gated = f"g{suffix}" in results
    given = (f"g{suffix}", f"u{suffix}") if gated else (f"u{suffix}",)
    if kernel == "fused":
        yield Value(hidden, given, given)
        return
    steps = tuple(f"{'shared ' if suffix else ''}{step}" for step in STEPS[gated])
    before = given[:1]
    for step in steps:
        yield Value(Array(step, hidden.dims), before)
        before = (*before, step)
    yield Value(hidden, (*given, *steps), (*given, *steps))


def _norm(name: str, of: str, dims: tuple[str, ...]) -> Value:
    return Value(Array(name, dims), (of,), (of,))


def _product(line: Matmul, other: Mapping[str, str] | None = None) -> Value:
    """The result of a line; `other` has the names of values that it reads instead."""
    read = (other or {}).get(line.reads.name, line.reads.name)
    if read in ("cq", "ckv"):
        read = f"{read} normed"
    return Value(line.result, (read,), (read,), line=line)


def _is_normed(model: Model, name: str) -> bool:
    """Whether a norm stands between a projection and what reads it."""
    return name in ("cq", "ckv") or (bool(model.qk_norm) and name in ("Q", "K"))


def _result_of_attention(model: Model) -> tuple[str, ...]:
    return ("B", "S", "N", "value" if model.latent else "H")


def _checked_kernel(kernel: str) -> None:
    if kernel not in KERNELS:
        known = ", ".join(KERNELS)
        raise ValueError(f"kernel = {short_repr(kernel)}: must be one of {known}")
