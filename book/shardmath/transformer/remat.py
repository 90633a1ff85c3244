"""Rematerialisation: what a layer saves for its backward pass, and what it recomputes.

The forward pass of a layer is a list of values. For each value, we know from which
values it is computed and which values its gradient reads. One walk finds both answers:
it starts at all values that a gradient reads, and stops wherever a policy keeps a
value. The values where it stops are **saved**, and those that it passes are
**recomputed**.

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
INSIDE = ("exp", "sums", "slopes", "P", "lse")  # values that only attention reads
# Steps of an unfused activation, each an array with the shape of the hidden layer. With
# a gate h = silu(g) · u, where silu(g) = g · sigmoid(g); without one h = u · share,
# where share = (1 + tanh(cubic)) / 2.
STEPS = {
    True: ("sigmoid", "its slope", "silu"),
    False: ("cubic", "tanh", "1 − tanh", "share"),
}


class Saved(NamedTuple):
    """An array that is kept for the backward pass, and its format.

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
        """Bytes of the array, if its dimensions have these sizes."""
        return self.width * self.array.count(sizes)

    def __str__(self) -> str:
        return f"{self.format} {self.array}"


class Value(NamedTuple):
    """One value of a layer's forward pass.

    Args:
        array: its name and dimensions.
        made_from: the names of the values from which it is computed.
        reads: the names of the values that the gradients of `made_from` read.
        format: the format in which it is kept.
        line: the matmul that computes it, if there is one.
    """

    array: Array
    made_from: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    format: str = "bf16"
    line: Matmul | None = None

    @property
    def weighted(self) -> bool:
        """Whether a matmul with a weight computes it, and not one inside attention."""
        return self.line is not None and self.line.reads.name not in ("Q", "P")


class Recompute(NamedTuple):
    """What one layer recomputes in its backward pass.

    Args:
        lines: the matmuls with weights, in the order of the forward pass.
        attention: the products of `Model.attention`, which have no weights; empty if
            attention is not recomputed.
        values: the names of all recomputed values, with or without a matmul, in the
            same order. If a value had to be gathered or sent, this is done again: x and
            z are gathered if sequences are split, and t is sent to the experts.
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
    """The matmuls of one layer that its backward pass recomputes.

    A product is recomputed if its result is not kept, and if a gradient or another
    recomputed value reads it. So the last product of a layer is not recomputed, unless
    a norm follows it. Nor is the last product of attention if the MLP does not read the
    stream to which that product is added.

    Args:
        model: dense, with experts, or with latent attention.
        matmuls: those of one layer, as in `Model.layer` or `Model.stack`.
        remat: "none" keeps all values that the backward pass reads. "elementwise" keeps
            the results of matmuls and of attention, and the tokens sent to experts, and
            recomputes norms, activations and positions. "dots" keeps only the results
            of matmuls with weights. "selective" keeps all values except those inside
            attention (Megatron's policy, which recomputes scores, softmax and weighted
            sum). "full" keeps only the stream before the layer. Any other text names
            the results that are kept with that stream, such as "Q K V y"; A is the
            result of attention, and t are the tokens sent to experts.
        kernel: the kind of kernel for attention and the activation. "fused" attention
            computes scores and weighted sum together or not at all; "unfused" attention
            can compute one without the other.
        bound: False counts what an implementation such as JAX's autodiff computes, in
            which the gradient of a gate reads the result of its expert. True counts
            only what no implementation can avoid: the gradient of a gate can also be
            computed from the values before the expert's last product, and if the result
            of attention is kept, only the scores are needed again.

    Assumes:
        The backward pass of a fused kernel computes scores block by block a second time
        under every policy. This is part of the kernel and is not counted here.

    Raises:
        ValueError: the policy, kernel or flag is unknown, or `model` is not a Model.

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
        matmuls: those of the layer, as in `Model.stack`; by default `Model.layer`,
            which has experts if the model has any.
        kernel: "fused" attention keeps its result and, for each query head and token,
            the logarithm of a sum of exponentials in fp32. A "fused" activation
            (SwiGLU, GELU) keeps its inputs and its result. "unfused" keeps what JAX's
            autodiff keeps: the softmax, with arrays over S and T, and every step of the
            activation.

    Returns:
        Arrays in the order of the forward pass. These names are fixed: "stream" is the
        residual stream before the layer and "middle" the residual stream after
        attention; x and z are the normed streams that attention and the MLP read; t are
        the tokens as experts receive them.

    Assumes:
        The layer is `programs.block.layer`: RMSNorm, causal softmax in f32, SiLU with a
        gate and GELU without, bf16 elsewhere; every policy recomputes the values inside
        norms. For dense layers and an unfused kernel, the arrays are those that JAX's
        autodiff keeps in a loop over layers; they equal those of
        `jax.ad_checkpoint.print_saved_residuals` to the byte. See also `saved_once`. A
        compiler may keep fewer: XLA fuses cheap operations into the backward pass.
        Experts get equally many tokens, sorted by expert. A router's softmax is kept in
        fp32, its choices in int32 and its gates in bf16. For a layer with experts, JAX
        keeps two more arrays: a second copy of the index of every slot's token, and
        zeros to which results are added. Rotary positions, sinks and biases need no
        kept arrays. JAX's policy `dots_with_no_batch_dims_saveable` is "dots" for
        layers without experts; products of experts have a batch dimension, E.

    Raises:
        ValueError: as for `recompute`.

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
    """The arrays that "none" keeps only once for all layers, in addition to `saved`.

    Args:
        model, remat, kernel: as for `saved`. A fused kernel keeps nothing here. An
            unfused kernel keeps its causal mask, which takes 5 bytes per score. With
            the 6 bytes of `saved`, a model of one layer keeps 11 bytes per score.

    Raises:
        ValueError: as for `saved`.

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
    """`remat`, if it is a policy or names results in the layers of `model`.

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
            f"of the results that are kept, among {' '.join(known)}"
        )
    return remat


def keeps(remat: str, value: Value) -> bool:
    """Whether a policy keeps a value that the backward pass reads.

    Args:
        remat: as `checked_remat` returns it.
        value: one of `layer_values`.
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
    """The values that are saved and those that are recomputed, in forward order."""
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
        model: decides on norms, latent attention and parallel blocks.
        matmuls: those of the layer, which show whether it has a gate and experts.
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
    """The result of a recurrent layer's state; its kernel recomputes the states."""
    given = ("Q", "K", "V", "b", "a")
    yield Value(Array("A", output.reads.dims), given, given)


def _mlp_block(
    model: Model, matmuls: tuple[Matmul, ...], kernel: str
) -> Iterator[Value]:
    """From the stream after attention to what the MLP or the experts add to it."""
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
    # The gradient of a gate reads the result of its expert, and the other way round.
    reads = ("m", *gates) if routed else ()
    yield Value(Array("answer", STREAM), answers + gates, reads)
    if model.norms_behind:
        yield _norm("answer normed", "answer" if routed else answers[0], STREAM)


def _routing(z: str) -> Iterator[Value]:
    """From the scores r of a router to the tokens t as experts receive them.

    Every token has k picks, each with an expert and a gate. Sorted by expert, they fill
    the slots; "tokens" is the index of the token in each slot.
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
    """The input h of the last matmul of an MLP, from g and u or only from u.

    A fused kernel computes the gradient from its inputs, and keeps no step in between.
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
    """The result of a line; `other` maps names in the line to those read instead."""
    read = (other or {}).get(line.reads.name, line.reads.name)
    if read in ("cq", "ckv"):
        read = f"{read} normed"
    return Value(line.result, (read,), (read,), line=line)


def _is_normed(model: Model, name: str) -> bool:
    """Whether the result of a projection is normed before it is used."""
    return name in ("cq", "ckv") or (bool(model.qk_norm) and name in ("Q", "K"))


def _result_of_attention(model: Model) -> tuple[str, ...]:
    return ("B", "S", "N", "value" if model.latent else "H")


def _checked_kernel(kernel: str) -> None:
    if kernel not in KERNELS:
        known = ", ".join(KERNELS)
        raise ValueError(f"kernel = {short_repr(kernel)}: must be one of {known}")
