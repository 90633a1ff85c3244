"""Questions of chapter 08, "Data parallelism"."""

import math

from shardmath.collectives import Collective
from shardmath.exercises.kinds import (
    Chapter,
    Function,
    Number,
    Sharded,
    Slip,
    scaled,
    slips,
    stated,
)
from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Cluster, NVLinkDomain, Torus

CHAPTER = Chapter(
    title="Data parallelism",
    topics=(
        "data parallelism: bytes of a step, tokens per chip that hide them, memory, "
        "slices, stragglers and batches, and five programs graded on what they "
        "compile to"
    ),
    intro="""
        from the bytes of one AllReduce to an AllReduce over two levels. Answers are in
        base units: bytes, seconds, tokens. FLOPs are 6 · params per token, without
        attention and without recompute, unless a task says otherwise.

        08.8 to 08.12 are programs for eight virtual devices. They are graded on their
        result and on what XLA compiles them to, array by array.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

EIGHT = {"X": 8}


def _sent(params: float, n: int, nbytes: float = 2) -> float:
    return 2 * nbytes * params * (n - 1) / n


SENT = Number(
    id="08.1",
    title="What a chip sends",
    task=r"""
        **Given** a model of $3 \cdot 10^9$ parameters that is trained with data
        parallelism over 64 chips. Gradients are summed in bf16.

        **Wanted** the number of bytes that each chip sends in a step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    rtol=0.005,
    expected=lambda: _sent(3e9, 64),
    slips=(
        scaled(
            "one of two rounds",
            1 / 2,
            "That is what a ReduceScatter sends. But every chip needs the whole sum.",
        ),
        scaled(
            "own part sent too",
            64 / 63,
            "A chip doesn't have to send anything to itself, so one of the n parts "
            "stays where it is.",
        ),
        scaled("four bytes per value", 2, "How many bytes does a value take in bf16?"),
        scaled(
            "a chip's share", 1 / 64, "Every chip has gradients for all the parameters."
        ),
        scaled(
            "parameters for bytes",
            1 / 4,
            "That is about the number of parameters. How many bytes does each "
            "gradient take, and how often is it sent?",
        ),
    ),
    hint="A step has one AllReduce of an array as large as the weights. How many "
    "bytes does a chip send for it?",
    solution="""
        In each of its two rounds, the AllReduce sends 63/64 of the gradients.

        ```python
        V = 2 * 3e9
        nbytes = 2 * V * 63 / 64
        ```
    """,
)

_V5E = Mesh(Torus(chips.TPU_V5E, (16, 16)), {"X": 256})


def _threshold() -> float:
    n, peak = 256, chips.TPU_V5E.flops["bf16"]
    return 2 / 3 * (n - 1) / n * peak / _V5E.bandwidth("X")


THRESHOLD = Number(
    id="08.2",
    title="Tokens that hide an AllReduce",
    task=r"""
        **Given** a slice of $16 \times 16$ TPU v5e chips, a closed torus, with data
        parallelism over all 256 chips. Each of a chip's four links has a one-way
        bandwidth of `chips.TPU_V5E.link_bandwidth`. Gradients are summed in bf16, and
        the math runs at the peak. Leave out the latency.

        **Wanted** the smallest number of tokens per chip at which the AllReduce of a
        step takes no longer than the math of the whole step.
    """,
    given=stated(chips.TPU_V5E, "flops.bf16", "link_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    rtol=0.0015,
    expected=_threshold,
    slips=(
        scaled(
            "half of the links",
            2,
            "Two rings run through each chip of a torus, and each ring has two "
            "directions. Did you use all four links?",
        ),
        scaled(
            "backward alone",
            3 / 2,
            "You hid the AllReduce behind the backward pass alone. The task asks for "
            "the whole step.",
        ),
        scaled("one of two rounds", 1 / 2, "An AllReduce sends its array about twice."),
        scaled(
            "multiply-add",
            3,
            "A token takes 2 FLOPs per parameter in the forward pass and twice as "
            "many in the backward pass.",
        ),
        scaled(
            "all chips",
            256,
            "That is the batch of all the chips. How many tokens does one chip need?",
        ),
        scaled(
            "own part sent too",
            256 / 255,
            "A chip doesn't have to send anything to itself, so one of the n parts "
            "stays where it is.",
        ),
    ),
    hint="Write down how long the math takes for t tokens, and how long the AllReduce "
    "takes over all four links. What cancels if you set them equal?",
    solution="""
        With $P$ parameters, the math of $t$ tokens takes $6Pt/C$, and the AllReduce
        takes $4P/W \\cdot 255/256$ over four links.

        ```python
        from shardmath.hardware import chips

        W = 4 * chips.TPU_V5E.link_bandwidth
        tokens = 4 / 6 * 255 / 256 * chips.TPU_V5E.flops["bf16"] / W
        ```
    """,
)

LARGEST = Number(
    id="08.3",
    title="The largest model",
    task="""
        **Given** the HBM of a B200, and training with data parallelism alone. Weights
        and gradients are held in bf16, and a copy of the weights and the two moments of
        Adam are held in f32. Ignore the activations.

        **Wanted** the largest number of parameters that the model can have.
    """,
    given=stated(chips.B200, "hbm_bytes"),
    stub="params = ...",
    unit="params",
    rtol=0.002,
    expected=lambda: chips.B200.hbm_bytes / 16,
    slips=(
        scaled(
            "the copy and the gradients left out",
            16 / 10,
            "That many parameters fit if neither the copy in f32 nor the gradients "
            "are held.",
        ),
        scaled("gradients left out", 16 / 14, "The gradients are in memory, too."),
        scaled(
            "weights alone",
            16 / 2,
            "That would be the largest model for inference. What else does training "
            "hold?",
        ),
        scaled(
            "all in f32",
            16 / 20,
            "Two of the five arrays are held in bf16.",
        ),
        scaled(
            "GB for GiB",
            1e9 / 2**30,
            "Capacities are in GiB here: 1 GiB is 2³⁰ bytes.",
        ),
        Slip(
            "192 GB",
            lambda right: 192e9 / 16,
            "That many would fit in the 192 GB of the package. The task gives the "
            "memory that a program can use, in GiB. If you rounded, keep one more "
            "digit.",
        ),
        Slip(
            "192 GiB",
            lambda right: chips.B200.fact("hbm_bytes").said("book_gpu") / 16,
            "Another text counts all of the memory in the package. The task gives the "
            "memory that a program can use.",
        ),
    ),
    hint="Five arrays have a value for every parameter. How many bytes does a value "
    "take in each of them?",
    solution="""
        With data parallelism, every chip holds all five arrays in full. That is
        $2 + 2 + 4 + 4 + 4 = 16$ bytes per parameter.

        ```python
        from shardmath.hardware import chips

        params = chips.B200.hbm_bytes / 16
        ```
    """,
)

STRAGGLER = Number(
    id="08.4",
    title="What one slow chip costs",
    task="""
        **Given** 1,024 identical chips that train with data parallelism and are
        compute-bound. One of them slows down to 80 % of its speed, and its part of the
        batch stays the same.

        **Wanted** the number of chips whose work is lost, as if the machine had that
        many fewer chips.
    """,
    stub="lost = ...",
    unit="chips",
    rtol=0.005,
    expected=lambda: 1024 * (1 - 0.8),
    slips=(
        Slip(
            "the slow one alone",
            lambda right: 0.2,
            "That is the loss of the slow chip alone. What do the other chips do in "
            "the meantime?",
        ),
        Slip(
            "time for rate",
            lambda right: 1024 * (1 / 0.8 - 1),
            "A step takes a quarter longer. By how much does the rate fall?",
        ),
        Slip(
            "one chip",
            lambda right: 1.0,
            "The slow chip still does most of its work. What do the other chips do "
            "while they wait?",
        ),
        scaled(
            "what is left",
            4,
            "That is how many chips' worth of work is left. How much is lost?",
        ),
    ),
    hint="All the chips wait for the slowest one. What share of its rate does the "
    "whole machine keep?",
    solution="""
        All the chips wait for the slowest one, so a step takes 1/0.8 times as long, and
        the machine runs at 80 % of its rate.

        ```python
        lost = 1024 * (1 - 0.8)
        ```
    """,
)


def _of_step(params: int, n: int, parts: int, early: bool) -> float:
    return _sent(params, n) * (parts if early else 1)


ACCUMULATED = Function(
    id="08.5",
    title="Bytes with microbatches",
    task=r"""
        **Given** data parallelism over `n` chips for a model of `params` parameters,
        with gradients summed in bf16 and a batch that is cut into `parts` microbatches.
        `early` says whether the gradients are summed over the chips after every
        microbatch (`True`) or only once at the end (`False`).

        **Wanted** a function that returns the bytes that each chip sends in a step.
    """,
    stub="def sent(params, n, parts, early): ...",
    spec=_of_step,
    gives=(("what each chip sends", "bytes"),),
    cases=lambda rng: (
        rng.randint(1, 400) * 10**8,
        2 ** rng.randint(1, 9),
        rng.randint(2, 16),
        rng.choice([True, False]),
    ),
    examples=((10**9, 8, 4, True), (10**9, 8, 4, False), (10**9, 1, 4, True)),
    slips=(
        Slip(
            "the other way round",
            lambda params, n, parts, early: _of_step(params, n, parts, not early),
            "If the gradients are summed over the chips after every microbatch, how "
            "many AllReduces does a step have?",
        ),
        Slip(
            "early or late alike",
            lambda params, n, parts, early: _of_step(params, n, parts, False),
            "Is the gradient of a microbatch a smaller array than the gradient of a "
            "batch?",
        ),
        Slip(
            "one of two rounds",
            lambda params, n, parts, early: _of_step(params, n, parts, early) / 2,
            "That is what a ReduceScatter sends. How much does an AllReduce send?",
        ),
        Slip(
            "own part sent too",
            lambda params, n, parts, early: 4 * params * (parts if early else 1),
            "One of the n parts stays where it is. Try your function with a single "
            "chip.",
        ),
        Slip(
            "parts of the bytes",
            lambda params, n, parts, early: _sent(params, n) / (1 if early else parts),
            "The gradients are as large as the weights, however many tokens they are "
            "computed from.",
        ),
    ),
    hint="A step has one AllReduce of 2 · params bytes, or as many of them as there "
    "are microbatches. Which is it if `early` is `True`?",
    solution="""
        The gradients of a microbatch are as large as those of the whole batch.

        ```python
        def sent(params, n, parts, early):
            once = 2 * 2 * params * (n - 1) / n
            return once * parts if early else once
        ```
    """,
)


def _in_time(L: int, f: float, d: float, r: float) -> float:
    return L * f + d + (L - 1) * max(d, r) + r


BEHIND = Function(
    id="08.6",
    title="Behind the backward pass",
    task=r"""
        **Given** `L` identical layers. Each takes `f` seconds in the forward pass and
        `d` seconds in the backward pass. The AllReduce of a layer's gradients takes `r`
        seconds and may start when the backward pass of this layer is done. Only one
        AllReduce runs at a time.

        **Wanted** a function that returns the seconds that the whole step takes.
    """,
    stub="def seconds(L, f, d, r): ...",
    spec=_in_time,
    gives=(("the step", "s"),),
    cases=lambda rng: (
        rng.randint(2, 100),
        rng.randint(1, 50) / 1000,
        rng.randint(2, 100) / 1000,
        rng.randint(1, 150) / 1000,
    ),
    examples=((1, 0.01, 0.02, 0.05), (32, 0.01, 0.02, 0.05), (32, 0.01, 0.02, 0.005)),
    slips=(
        Slip(
            "no overlap",
            lambda L, f, d, r: L * (f + d + r),
            "While the gradients of one layer travel, the backward pass of the next "
            "layer can run.",
        ),
        Slip(
            "perfect overlap",
            lambda L, f, d, r: max(L * (f + d), L * r),
            "What does the network do until the first gradients are ready?",
        ),
        Slip(
            "hidden by the backward pass alone",
            lambda L, f, d, r: L * f + max(L * d, L * r),
            "The last gradients are ready only when the backward pass has ended, so "
            "nothing hides their AllReduce.",
        ),
        Slip(
            "the last one forgotten",
            lambda L, f, d, r: L * f + d + (L - 1) * max(d, r),
            "When the backward pass has ended, one AllReduce still has to run.",
        ),
    ),
    hint="Draw two lanes for three layers, one for the math and one for the network. "
    "Which of the two is never idle once the first gradients are ready?",
    solution="""
        The forward pass comes first, and then the backward pass of the last layer. From
        there on, the slower of math and network sets the pace for the other $L - 1$
        layers. One AllReduce is left at the end.

        ```python
        def seconds(L, f, d, r):
            return L * f + d + (L - 1) * max(d, r) + r
        ```
    """,
)


def _of_slice() -> float:
    chip, k = chips.TPU_V5P, 4
    return 2 / 3 * (k - 1) / k * chip.flops["bf16"] / chip.scale_out_bandwidth


BETWEEN = Number(
    id="08.7",
    title="Four slices",
    task=r"""
        **Given** four slices of 256 TPU v5p chips. The model is sharded over the chips
        of a slice, and there is data parallelism between the slices. A chip's one-way
        bandwidth into the data-centre network is `chips.TPU_V5P.scale_out_bandwidth`.
        Gradients are summed in bf16, and the math runs at the peak.

        **Wanted** the smallest number of tokens per **slice** at which the exchange
        between the slices takes no longer than the math of the whole step.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "scale_out_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=_of_slice,
    slips=(
        scaled(
            "tokens of a chip",
            1 / 256,
            "That is the number of tokens that one chip needs. How many does a whole "
            "slice need?",
        ),
        scaled("tokens of all slices", 4, "That is the batch of all four slices."),
        scaled(
            "own part sent too",
            4 / 3,
            "Each of the four slices keeps one part of the sum and doesn't have to "
            "send it.",
        ),
        scaled(
            "backward alone",
            3 / 2,
            "You hid the exchange behind the backward pass alone. The task asks for "
            "the whole step.",
        ),
        scaled("one of two rounds", 1 / 2, "An AllReduce sends its array about twice."),
        scaled(
            "all gradients on a chip",
            256,
            "Each chip of a slice holds only 1/256 of the gradients, and it sends no "
            "more than that.",
        ),
    ),
    hint="A chip holds 1/256 of the gradients and works on 1/256 of the slice's "
    "tokens. How long do its exchange and its math take?",
    solution="""
        For $T$ tokens in a slice and $P$ parameters, the math takes
        $6\\,P\\,T / (256\\,C)$ seconds at the peak $C$. A chip exchanges 1/256 of the
        gradients, which takes $4\\,(P / 256)\\,(3/4) / W_\\text{out}$ seconds. If the
        two are equal, $P$ and the number of chips cancel.

        ```python
        from shardmath.hardware import chips

        C, W = chips.TPU_V5P.flops["bf16"], chips.TPU_V5P.scale_out_bandwidth
        tokens = 4 / 6 * 3 / 4 * C / W
        ```
    """,
)


# Programs. Values are float32: four bytes each.


def _all_reduce(nbytes: float, n: int = 8, axes=("X",), times: int = 1) -> Collective:
    return Collective("all_reduce", axes, nbytes, n, times)


def _batch(rng):
    """Tokens x[B, D], targets y[B, F] and a weight w[D, F]."""
    B, D, F = 8 * rng.randint(2, 6), 8 * rng.randint(2, 6), 8 * rng.randint(2, 6)
    return (B, D), (B, F), (D, F)


def _square_gradient(x, y, w):
    return 2 * x.T @ (x @ w - y) / y.size


BY_HAND = Sharded(
    id="08.8",
    title="Gradients by hand",
    task=r"""
        **Given** each device's part of the tokens $x[B_X, D]$ and the targets
        $y[B_X, F]$, and all of the weight $w[D, F]$. The loss is the mean of
        $(x w - y)^2$ over all $B F$ values of the whole batch.

        **Wanted** the function that every device runs. It returns the gradient of $w$,
        whole on every device, and compiles to exactly one AllReduce of $4 D F$ bytes.
    """,
    stub="def gradient(x, y, w): ...",
    mesh=EIGHT,
    shapes=_batch,
    in_specs=(("X", None), ("X", None), (None, None)),
    out_spec=(None, None),
    spec=_square_gradient,
    collectives=lambda x, y, w: [_all_reduce(4 * math.prod(w))],
    slips=(
        Slip(
            "the batch gathered",
            lambda x, y, w: [
                Collective("all_gather", ("X",), 4 * math.prod(one), 8)
                for one in (x, y)
            ],
            "Your program gathers the batch, so every device computes everything. "
            "Which sum can be left to the end instead?",
        ),
        Slip(
            "summed twice",
            lambda x, y, w: [_all_reduce(4 * math.prod(w))] * 2,
            "JAX has already made one of the two sums: the gradient of a weight that "
            "all the devices share arrives summed.",
        ),
    ),
    hint="`jax.lax.pcast(w, 'X', to='varying')` gives each device its own copy of the "
    "weight, and `jax.lax.pmean` takes the mean over the devices. Are all the "
    "parts of the batch equally large?",
    solution="""
        The parts of the batch are equally large, so the mean of their gradients is the
        gradient of the mean loss.

        ```python
        def gradient(x, y, w):
            own = jax.lax.pcast(w, "X", to="varying")
            loss = lambda w: jnp.mean((x @ w - y) ** 2)
            return jax.lax.pmean(jax.grad(loss)(own), "X")
        ```
    """,
)


def _weighted_gradient(x, y, w, m):
    weight = m**2
    return 2 * x.T @ (weight[:, None] * (x @ w - y)) / weight.sum()


UNEQUAL = Sharded(
    id="08.9",
    title="Tokens that count differently",
    task=r"""
        **Given** each device's part of the tokens $x[B_X, D]$, of the targets
        $y[B_X, F]$ and of $m[B_X]$, and all of the weight $w[D, F]$. Token $i$ has the
        weight $m_i^2$ in the loss, which is $\sum_i m_i^2\,|x_i w - y_i|^2 / \sum_i
        m_i^2$. Both sums run over the whole batch, and $|\cdot|^2$ is the sum of the
        squares of a token's $F$ values. The devices' parts have different total
        weights, as in batches with padding.

        **Wanted** the function that every device runs. It returns the gradient of $w$,
        whole on every device, and compiles to exactly one AllReduce of $4 D F$ bytes
        and one of 4 bytes.
    """,
    stub="def gradient(x, y, w, m): ...",
    mesh=EIGHT,
    shapes=lambda rng: (lambda x, y, w: (x, y, w, x[:1]))(*_batch(rng)),
    in_specs=(("X", None), ("X", None), (None, None), ("X",)),
    out_spec=(None, None),
    spec=_weighted_gradient,
    collectives=lambda x, y, w, m: [_all_reduce(4 * math.prod(w)), _all_reduce(4)],
    slips=(
        Slip(
            "the weights of the tokens gathered",
            lambda x, y, w, m: [
                _all_reduce(4 * math.prod(w)),
                Collective("all_gather", ("X",), 4 * m[0], 8),
            ],
            "The other devices need to know only the sum of the tokens' weights.",
        ),
    ),
    hint="Add up the gradient of the numerator over all the devices, and also the "
    "weights of the tokens. When do you have to divide?",
    solution="""
        The devices' parts have different total weights, so the mean of their means
        would be wrong. Add up both sums first, and divide at the end.

        ```python
        def gradient(x, y, w, m):
            own = jax.lax.pcast(w, "X", to="varying")
            error = lambda w: jnp.sum(m[:, None] ** 2 * (x @ w - y) ** 2)
            total = jax.lax.psum(jax.grad(error)(own), "X")
            return total / jax.lax.psum(jnp.sum(m**2), "X")
        ```
    """,
)

PARTS = 4


def _microbatches(rng):
    """Many tokens and a wide result: all of x w at once is far more than a gradient."""
    B, D, F = 64 * rng.randint(8, 12), 8 * rng.randint(1, 2), 8 * rng.randint(4, 6)
    return (PARTS, B, D), (D, F)


def _one_at_a_time(x, w) -> float:
    """Bytes on a device of two microbatches' x w, of all of x, and of two gradients."""
    (parts, B, D), (_, F) = x, w
    return 4 * (2 * B / 8 * F + parts * B / 8 * D + 2 * D * F)


def _half_square_gradient(x, w):
    rows = x.reshape(-1, x.shape[-1])
    return rows.T @ (rows @ w)


LATE = Sharded(
    id="08.10",
    title="One sum for all microbatches",
    task=r"""
        **Given** each device's part of four microbatches, $x[4, B_X, D]$, and all of
        the weight $w[D, F]$. The loss of a microbatch is the sum of $(x w)^2 / 2$.

        **Wanted** the function that every device runs. It returns the gradient of the
        sum over all the microbatches, whole on every device, and compiles to exactly
        one AllReduce of $4 D F$ bytes. It works on one microbatch at a time. Besides
        the arguments and the result, the compiled program may take as much memory on a
        device as $x w$ of two microbatches, a copy of $x$ and two gradients need
        together, which is $B F + 2 B D + 8 D F$ bytes.
    """,
    stub="def gradient(x, w): ...",
    mesh=EIGHT,
    shapes=_microbatches,
    in_specs=((None, "X", None), (None, None)),
    out_spec=(None, None),
    spec=_half_square_gradient,
    collectives=lambda x, w: [_all_reduce(4 * math.prod(w))],
    holds=_one_at_a_time,
    slips=(
        Slip(
            "a sum in every turn",
            lambda x, w: [_all_reduce(4 * math.prod(w), times=PARTS)],
            "Your program adds up each microbatch's gradient over the devices on its "
            "own. Give each device its own copy of the weight before the loop, and "
            "sum over the devices after it.",
        ),
    ),
    hint="Use `jax.lax.scan` over the microbatches, with a total that differs from "
    "device to device. This total can start as `jnp.zeros_like` of a device's own copy "
    "of the weight. A Python loop is unrolled, and XLA may hold all of its turns at "
    "once.",
    solution="""
        Each device adds up its own gradients in the loop, and `psum` sums them.

        ```python
        def gradient(x, w):
            own = jax.lax.pcast(w, "X", to="varying")
            slope = jax.grad(lambda w, x: jnp.sum((x @ w) ** 2) / 2)
            add = lambda total, x: (total + slope(own, x), None)
            total, _ = jax.lax.scan(add, jnp.zeros_like(own), x)
            return jax.lax.psum(total, "X")
        ```
    """,
)

AUTOMATIC = Sharded(
    id="08.11",
    title="Gradients by the compiler",
    task=r"""
        **Given** the whole arrays $x[B_X, D]$, $y[B_X, F]$ and $w[D, F]$, with the
        tokens split over a mesh axis for which the compiler itself puts in the
        collectives. The loss is the mean of $(x w - y)^2$.

        **Wanted** a function of the whole arrays that returns the gradient of $w$,
        whole on every device, and compiles to exactly one AllReduce of $4 D F$ bytes.
    """,
    stub="def gradient(x, y, w): ...",
    mesh=EIGHT,
    shapes=_batch,
    in_specs=(("X", None), ("X", None), (None, None)),
    out_spec=(None, None),
    spec=_square_gradient,
    collectives=lambda x, y, w: [_all_reduce(4 * math.prod(w))],
    view="automatic",
    slips=(
        Slip(
            "the batch gathered",
            lambda x, y, w: [
                Collective("all_gather", ("X",), 4 * math.prod(one), 8)
                for one in (x, y)
            ],
            "Your program makes the compiler gather the tokens. Does a constraint in "
            "it ask for that?",
        ),
    ),
    hint="Write the program as if for one device. Does it have to mention any sharding "
    "besides that of the result?",
    solution="""
        Split tokens leave partial sums, so the compiler puts in the AllReduce.

        ```python
        def gradient(x, y, w):
            loss = lambda w: jnp.mean((x @ w - y) ** 2)
            return jax.grad(loss)(w)
        ```
    """,
)

SLICES = {"Z": 2, "X": 4}


def _in_levels(x, w) -> list[Collective]:
    V = 4 * math.prod(w)
    return [
        Collective("reduce_scatter", ("X",), V, 4),
        Collective("all_reduce", ("Z",), V / 4, 2),
        Collective("all_gather", ("X",), V, 4),
    ]


LEVELS = Sharded(
    id="08.12",
    title="An AllReduce in two levels",
    points=2,
    task=r"""
        **Given** two slices, $|Z| = 2$, of four devices each, $|X| = 4$. Each device
        has its part of the tokens $x[B_{ZX}, D]$ and all of the weight $w[D, F]$. The
        loss is the sum of $(x w)^2 / 2$ over the whole batch.

        **Wanted** the function that every device runs. It returns the gradient of $w$,
        whole on every device. Between the slices, over $Z$, each device sends no more
        than a quarter of the gradients. The function compiles to exactly one
        ReduceScatter over $X$ of $4 D F$ bytes, one AllReduce over $Z$ of $D F$ bytes,
        and one AllGather over $X$ of $4 D F$ bytes.
    """,
    stub="def gradient(x, w): ...",
    mesh=SLICES,
    shapes=lambda rng: (lambda x, y, w: (x, w))(*_batch(rng)),
    in_specs=((("Z", "X"), None), (None, None)),
    out_spec=(None, None),
    spec=lambda x, w: _half_square_gradient(x, w),
    collectives=_in_levels,
    slips=(
        Slip(
            "one AllReduce over both axes",
            lambda x, w: [_all_reduce(4 * math.prod(w), 8, ("Z", "X"))],
            "From a single collective over both axes, one can't see how many bytes go "
            "between the slices. Use a separate collective for each axis.",
        ),
        Slip(
            "whole gradients between the slices",
            lambda x, w: [
                _all_reduce(4 * math.prod(w), 4),
                _all_reduce(4 * math.prod(w), 2, ("Z",)),
            ],
            "All four devices of a slice send the same bytes to the other slice. Let "
            "each of them finish a quarter of the sum.",
        ),
    ),
    hint="Scatter the sum inside a slice first. Each device needs its own copy of the "
    "weight over both axes.",
    solution="""
        Each device sends only a quarter of its slice's sum to the other slice.

        ```python
        def gradient(x, w):
            own = jax.lax.pcast(w, ("Z", "X"), to="varying")
            g = jax.grad(lambda w: jnp.sum((x @ w) ** 2) / 2)(own)
            part = jax.lax.psum_scatter(g, "X", scatter_dimension=0, tiled=True)
            part = jax.lax.psum(part, "Z")
            return jax.lax.all_gather(part, "X", axis=0, tiled=True)
        ```
    """,
)


# Several steps.

_NODES = Mesh(Cluster(NVLinkDomain(chips.H100), 64), {"X": 512})
_RATE = _NODES.bandwidth("X")  # of a GPU over all 512
_TOKENS = 2 / 3 * chips.H100.flops["bf16"] / _RATE


def _days(batch: float = 2**22, share: float = 0.5) -> float:
    used = batch / _TOKENS
    flops = 6 * 8e9 * 15e12
    return flops / (used * share * chips.H100.flops["bf16"])


SOONEST = Number(
    id="08.13",
    title="How soon can it be done?",
    points=2,
    task=r"""
        **Given** a model of $8 \cdot 10^9$ parameters, $15 \cdot 10^{12}$ tokens to
        train on, and a batch of $2^{22}$ tokens that must not grow. The training uses
        data parallelism over H100s in many nodes, where a GPU's one-way bandwidth in an
        AllReduce over all of them is 406 GB/s. Gradients are summed in bf16. Leave out
        the factor $(n-1)/n$. The number of GPUs is chosen for math at the peak: it is
        the largest number for which the AllReduce takes no longer than all the math of
        the step. In training, the math then runs at half of the peak, and all of the
        AllReduce is hidden.

        **Wanted** the seconds that training takes.
    """,
    given=stated(chips.H100, "flops.bf16"),
    stub="seconds = ...",
    unit="s",
    rtol=0.01,
    expected=_days,
    slips=(
        scaled(
            "the peak in both places or in none, or one of two rounds",
            1 / 2,
            "Use the peak for the number of GPUs, and half of it for the time. Also, "
            "an AllReduce sends its array about twice.",
        ),
        scaled(
            "backward alone",
            3 / 2,
            "That hides the AllReduce behind the backward pass alone. In the task, "
            "the whole step hides it.",
        ),
        scaled(
            "forward alone",
            1 / 3,
            "A token takes 2 FLOPs per parameter in the forward pass and twice as "
            "many in the backward pass.",
        ),
        scaled(
            "one GPU's time",
            2**22 / _TOKENS,
            "That is the time that a single GPU would take.",
        ),
    ),
    hint="How many tokens does a GPU need to hide the AllReduce? How many GPUs does "
    "the batch then feed? Divide the FLOPs of all the tokens by the rate of these "
    "GPUs.",
    solution="""
        ```python
        from shardmath.hardware import chips

        C, W = chips.H100.flops["bf16"], 406e9
        tokens_of_a_gpu = 2 / 3 * C / W
        gpus = 2**22 / tokens_of_a_gpu
        seconds = 6 * 8e9 * 15e12 / (gpus * C / 2)
        ```

        It takes about 2,600 GPUs and six and a half days. At half of the peak, the math
        takes twice as long as the AllReduce, so up to twice as many GPUs would still
        finish earlier. Beyond that, the AllReduce sets the pace, and more GPUs save no
        time.

        Each GPU works on whole sequences, so this takes sequences of at most 1,600
        tokens. With sequences of 4,096 tokens, the batch has only 1,024 sequences and
        feeds no more GPUs than that.
    """,
)


def _lost() -> float:
    chip = chips.TPU_V5E
    exchange = 2 * 2 * 70e9 / 256 * 7 / 8 / chip.scale_out_bandwidth
    math_ = 6 * 70e9 * 2**18 / (256 * 0.5 * chip.flops["bf16"])
    return exchange / (exchange + math_)


LOST = Number(
    id="08.14",
    title="An exchange that nothing hides",
    points=2,
    task=r"""
        **Given** eight slices of 256 TPU v5e chips and a model of $70 \cdot 10^9$
        parameters. The model is sharded inside a slice, and there is data parallelism
        between the slices. Each slice works on $2^{18}$ tokens per step, at half of its
        peak. The gradients are exchanged only after that, in bf16, and each chip's
        one-way bandwidth is `chips.TPU_V5E.scale_out_bandwidth`.

        **Wanted** the share of the step's time that the exchange takes, between 0 and
        1.
    """,
    given=stated(chips.TPU_V5E, "flops.bf16", "scale_out_bandwidth"),
    stub="share = ...",
    unit="",
    rtol=0.01,
    expected=_lost,
    slips=(
        Slip(
            "over the math alone",
            lambda right: right / (1 - right),
            "You divided the time of the exchange by that of the math. The step "
            "contains both.",
        ),
        Slip(
            "at the full peak",
            lambda right: 2 * right / (1 + right),
            "A slice works at only half of its peak.",
        ),
        Slip(
            "one of two rounds",
            lambda right: right / (2 - right),
            "An AllReduce sends its array about twice.",
        ),
        Slip(
            "own part sent too",
            lambda right: 8 * right / (7 + right),
            "Each of the eight slices keeps one part of the sum and doesn't have to "
            "send it.",
        ),
        Slip(
            "all gradients on a chip",
            lambda right: 256 * right / (1 + 255 * right),
            "Each chip of a slice holds only 1/256 of the gradients.",
        ),
        slips.percent(),
    ),
    hint="How many bytes does a chip send in the AllReduce of the gradients that it "
    "holds? How long does that take, and how long does a slice take for its FLOPs?",
    solution="""
        Each chip sends 7/8 of its 1/256 of the gradients twice.

        ```python
        from shardmath.hardware import chips

        chip = chips.TPU_V5E
        held = 2 * 70e9 / 256
        exchange = 2 * held * 7 / 8 / chip.scale_out_bandwidth
        math = 6 * 70e9 * 2**18 / (256 * chip.flops["bf16"] / 2)
        share = exchange / (exchange + math)
        ```
    """,
)

CRITICAL = Number(
    id="08.15",
    title="A batch beyond the critical one",
    task=r"""
        **Given** a law: to reach a given loss with a batch of $B$, a run takes
        $S = S_\text{min}(1 + B_c / B)$ steps and $E = E_\text{min}(1 + B / B_c)$
        tokens, where $B_c$ is the critical batch. A run with $B = B_c$ is repeated with
        four times the batch on four times as many chips. Each chip works on the same
        number of tokens, so a step takes as long as before.

        **Wanted** the factor by which the second run reaches the loss faster than the
        first.
    """,
    stub="times = ...",
    unit="times",
    rtol=0.005,
    expected=lambda: 2 / 1.25,
    slips=(
        Slip(
            "no limit",
            lambda right: 4.0,
            "That would be right for batches far below the critical one. How many "
            "steps does the law give at the critical batch and above it?",
        ),
        Slip(
            "tokens for steps",
            lambda right: 5 / 2,
            "That is the second run's number of tokens, divided by the first run's. "
            "The time depends on the number of steps.",
        ),
        slips.inverse("The second run is the faster one."),
        Slip(
            "compared with the fewest",
            lambda right: 1.25,
            "That is the number of steps of the second run, divided by the smallest "
            "possible number. Compare the two runs instead.",
        ),
    ),
    hint="A step takes equally long in both runs. How many steps does each run take?",
    solution="""
        A step takes equally long in both runs, so only the number of steps counts. The
        first run takes $(1 + 1)\\,S_\\text{min}$ steps, and the second takes
        $(1 + 1/4)\\,S_\\text{min}$.

        ```python
        times = 2 / 1.25
        ```

        The second run takes 2.5 times as many tokens, and so 2.5 times as much energy.
    """,
)
