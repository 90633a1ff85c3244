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
        "data parallelism: bytes of a step, tokens a chip that hide them, memory, "
        "slices, stragglers and batches, and five programs graded on what they "
        "compile to"
    ),
    intro="""
        from one AllReduce to one of three levels. Answers are in base units: bytes,
        seconds, tokens. FLOPs are 6 · params per token, without attention and without
        recompute, unless a task says otherwise.

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
        **Given** a model of $3 \cdot 10^9$ parameters, trained with data parallelism
        over 64 chips. Gradients are summed in bf16.

        **Wanted** the bytes that each chip sends in a step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    rtol=0.005,
    expected=lambda: _sent(3e9, 64),
    slips=(
        scaled(
            "one of two rounds",
            1 / 2,
            "So much a ReduceScatter sends. Every chip wants all of the sum.",
        ),
        scaled(
            "own part sent too",
            64 / 63,
            "A chip need not send anything to itself: one part of n stays.",
        ),
        scaled("four bytes a value", 2, "How many bytes has a value in bf16?"),
        scaled("a chip's share", 1 / 64, "Every chip has gradients of all parameters."),
        scaled(
            "parameters for bytes",
            1 / 4,
            "That is about the number of parameters. What is sent of each, and how "
            "often?",
        ),
    ),
    hint="One AllReduce of an array as large as the weights.",
    solution="""
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
        **Given** a slice of $16 \times 16$ TPU v5e, a closed torus, and data
        parallelism over all 256 chips. Each of the four links of a chip sends
        `chips.TPU_V5E.link_bandwidth` one-way. Gradients are summed in bf16; math runs
        at the peak; latency is left aside.

        **Wanted** how many tokens a chip needs before the AllReduce of a step takes no
        longer than the math of the whole step.
    """,
    given=stated(chips.TPU_V5E, "flops.bf16", "link_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    rtol=0.001,
    expected=_threshold,
    slips=(
        scaled(
            "half of the links",
            2,
            "A chip of a torus has two rings through it, and each ring two directions. "
            "Do all four links work?",
        ),
        scaled(
            "backward alone",
            3 / 2,
            "That lets the backward pass alone hide it. The task asks for the whole "
            "step.",
        ),
        scaled("one of two rounds", 1 / 2, "An AllReduce sends its array about twice."),
        scaled(
            "multiply-add",
            3,
            "A token takes 2 FLOPs a parameter forward, and twice as many backward.",
        ),
        scaled("all chips", 256, "That is the batch of all chips."),
        scaled(
            "own part sent too",
            256 / 255,
            "A chip need not send anything to itself: one part of n stays.",
        ),
    ),
    hint="Set 6 · params · t / C equal to 4 · params · (n − 1)/n / W_X. What cancels?",
    solution="""
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
        and gradients are held in bf16, a copy of the weights and the two moments of
        Adam in f32. Activations are left aside.

        **Wanted** how many parameters the model can have at most.
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
            "So much fits if neither a copy in f32 nor gradients are held.",
        ),
        scaled("gradients left out", 16 / 14, "Gradients lie in memory, too."),
        scaled("weights alone", 16 / 2, "That would be inference."),
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
            "192 GB are fitted to the package, but the task gives what a program can "
            "use, and in GiB.",
        ),
        Slip(
            "192 GiB",
            lambda right: chips.B200.fact("hbm_bytes").said("book_gpu") / 16,
            "Another text counts all of the memory that is fitted. The task gives what "
            "a program can use.",
        ),
    ),
    hint="Add up the bytes that a parameter takes, array by array: there are five.",
    solution="""
        $2 + 2 + 4 + 4 + 4 = 16$ bytes a parameter.

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
        **Given** 1,024 equal chips that train with data parallelism, compute-bound. One
        of them slows down to 80 % of its speed; its batch stays.

        **Wanted** how many chips' work is lost: by how many chips the machine seems to
        have shrunk.
    """,
    stub="lost = ...",
    unit="chips",
    rtol=0.005,
    expected=lambda: 1024 * (1 - 0.8),
    slips=(
        Slip(
            "the slow one alone",
            lambda right: 0.2,
            "So much the slow chip loses. What do the others do meanwhile?",
        ),
        Slip(
            "time for rate",
            lambda right: 1024 * (1 / 0.8 - 1),
            "A step takes a quarter longer. By how much does the rate fall?",
        ),
        Slip(
            "one chip",
            lambda right: 1.0,
            "It still does most of its work. What do the others do meanwhile?",
        ),
        scaled("what is left", 4, "So many chips' work is left. How much is lost?"),
    ),
    hint="All wait for the slowest. What share of its rate is left to the machine?",
    solution="""
        A step takes 1/0.8 as long, so the machine runs at 80 % of its rate.

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
        **Given** data parallelism over `n` chips, `params` parameters, gradients summed
        in bf16, and a batch in `parts` microbatches. `early` says whether the sums are
        finished in every microbatch (`True`) or once at the end (`False`).

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
            "When the sums are finished in every microbatch, how often is that?",
        ),
        Slip(
            "early or late alike",
            lambda params, n, parts, early: _of_step(params, n, parts, False),
            "Is the gradient of a microbatch smaller than that of a batch?",
        ),
        Slip(
            "one of two rounds",
            lambda params, n, parts, early: _of_step(params, n, parts, early) / 2,
            "So much a ReduceScatter sends.",
        ),
        Slip(
            "own part sent too",
            lambda params, n, parts, early: 4 * params * (parts if early else 1),
            "One part of n stays where it is. Try it with a single chip.",
        ),
        Slip(
            "parts of the bytes",
            lambda params, n, parts, early: _sent(params, n) / (1 if early else parts),
            "Gradients have the size of the weights, however many tokens they are of.",
        ),
    ),
    hint="One AllReduce of 2 · params bytes, or as many as there are microbatches.",
    solution="""
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
        **Given** `L` equal layers. Each takes `f` seconds forward, `d` backward and `r`
        for the AllReduce of its gradients, which may start when its backward is done.
        Only one AllReduce runs at a time.

        **Wanted** a function that returns the seconds of the whole step.
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
            "While a layer's gradients travel, the backward of the next can run.",
        ),
        Slip(
            "perfect overlap",
            lambda L, f, d, r: max(L * (f + d), L * r),
            "What is on the network before the first gradients are there?",
        ),
        Slip(
            "hidden by the backward pass alone",
            lambda L, f, d, r: L * f + max(L * d, L * r),
            "The gradients that come last have no backward left to hide behind.",
        ),
        Slip(
            "the last one forgotten",
            lambda L, f, d, r: L * f + d + (L - 1) * max(d, r),
            "After the last backward one AllReduce is still to be done.",
        ),
    ),
    hint="Draw two lanes for three layers. Which of the two is never idle once the "
    "first gradients are there?",
    solution="""
        Forward, then the backward of the last layer. From there on the slower of the
        two sets the pace for the other L − 1, and one AllReduce comes out behind.

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
        **Given** four slices of 256 TPU v5p. The model is sharded over the chips of a
        slice, and data-parallel between the slices. A chip sends
        `chips.TPU_V5P.scale_out_bandwidth` one-way into the data-centre network.
        Gradients are summed in bf16, math runs at the peak.

        **Wanted** how many tokens a **slice** needs, so that the exchange between the
        slices takes no longer than the math of the whole step.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "scale_out_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=_of_slice,
    slips=(
        scaled("tokens of a chip", 1 / 256, "That is what a chip needs. And a slice?"),
        scaled("tokens of all slices", 4, "That is the batch of all four slices."),
        scaled(
            "own part sent too",
            4 / 3,
            "Of four slices each keeps one part of the sum at home.",
        ),
        scaled("backward alone", 3 / 2, "That lets the backward pass alone hide it."),
        scaled("one of two rounds", 1 / 2, "An AllReduce sends its array about twice."),
        scaled(
            "all gradients on a chip",
            256,
            "Each chip of a slice holds 1/256 of the gradients, and sends no more.",
        ),
    ),
    hint="A chip has 1/256 of the parameters' gradients and 1/256 of the slice's "
    "tokens to work on.",
    solution="""
        Math: $6\\,P\\,T / (256\\,C)$. Network:
        $4\\,(P / 256)\\,(3/4) / W_\\text{out}$. Parameters and chips cancel.

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

        **Wanted** the function that every device runs, returning the gradient of $w$,
        whole on every device: exactly one AllReduce of $4 D F$ bytes.
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
            "Then every device computes everything. Which sum can be left to the end?",
        ),
        Slip(
            "summed twice",
            lambda x, y, w: [_all_reduce(4 * math.prod(w))] * 2,
            "One of the two sums JAX has made already: the gradient of a weight that "
            "all devices share arrives summed.",
        ),
    ),
    hint="`jax.lax.pcast(w, 'X', to='varying')` gives each device its own copy; "
    "`jax.lax.pmean` ends it. Are all parts of the batch equally large?",
    solution="""
        The parts are equal, so the mean of the parts' gradients is the gradient of the
        mean.

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
        **Given** the same parts, and each device's part of $m[B_X]$. Token $i$ counts
        $m_i^2$: the loss is $\sum_i m_i^2\,|x_i w - y_i|^2 / \sum_i m_i^2$, both sums
        over the whole batch and $|\cdot|^2$ over the $F$ values of a token. The
        devices' parts weigh differently, as batches with padding do.

        **Wanted** the function that every device runs, returning the gradient of $w$,
        whole on every device: one AllReduce of $4 D F$ bytes and one of 4 bytes.
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
            "Their sum is all that the others need to know.",
        ),
    ),
    hint="Sum the numerator's gradient over all devices, and the weights of the "
    "tokens. Divide last.",
    solution="""
        A mean of the devices' means would be wrong: add up both sums, then divide.

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

        **Wanted** the function that every device runs, returning the gradient of the
        sum over all microbatches, whole on every device. It sends exactly one AllReduce
        of $4 D F$ bytes. It also works on one microbatch at a time. Besides arguments
        and result, the compiled program needs at most the bytes of two microbatches' $x
        w$, of a copy of $x$ and of two gradients on a device, $B F + 2 B D + 8 D F$.
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
            "Each microbatch's gradient is added up over the devices on its own. Make "
            "the weight each device's own before the loop, and sum behind it.",
        ),
    ),
    hint="`jax.lax.scan` over the microbatches, with a total that differs from device "
    "to device: `jnp.zeros_like` of the weight that is a device's own. A Python loop "
    "is unrolled, and XLA may hold all turns at once.",
    solution="""
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
        **Given** the whole arrays $x[B_X, D]$, $y[B_X, F]$ and $w[D, F]$, the tokens
        split, on axes that the compiler shards over. The loss is the mean of
        $(x w - y)^2$.

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
            "A constraint made the tokens whole. Leave them split.",
        ),
    ),
    hint="Write the program of one device, and say nothing about shardings but that "
    "of the result, if that.",
    solution="""
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
    title="An AllReduce of two levels",
    points=2,
    task=r"""
        **Given** two slices, $|Z| = 2$, of four devices each, $|X| = 4$. Each device
        has its part of the tokens $x[B_{ZX}, D]$ and all of the weight $w[D, F]$. The
        loss is the sum of $(x w)^2 / 2$ over the whole batch.

        **Wanted** the function that every device runs, returning the gradient of $w$,
        whole on every device. Between the slices, over $Z$, each device sends no more
        than a quarter of the gradients: exactly a ReduceScatter over $X$ of $4 D F$
        bytes, an AllReduce over $Z$ of $D F$ bytes, and an AllGather over $X$ of
        $4 D F$ bytes.
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
            "In one collective nobody says what crosses between the slices.",
        ),
        Slip(
            "whole gradients between the slices",
            lambda x, w: [
                _all_reduce(4 * math.prod(w), 4),
                _all_reduce(4 * math.prod(w), 2, ("Z",)),
            ],
            "All four devices of a slice send the same bytes to the other slice. Let "
            "each of them finish a quarter.",
        ),
    ),
    hint="Scatter the sum inside the slice, finish it between the slices, put it "
    "together inside the slice. The weight must be a device's own over both axes.",
    solution="""
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
        train on, and a batch of $2^{22}$ tokens that shall not grow. Data parallelism
        over H100 in many nodes, where a GPU sends 406 GB/s one-way over the whole axis.
        Gradients are summed in bf16; leave $(n-1)/n$ aside. The number of GPUs is
        reckoned at the peak: as many as leave the AllReduce no longer than all math of
        the step. In training, math then runs at half of the peak, and all of the
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
            "The peak gives the number of GPUs, half of it the time; and an AllReduce "
            "sends its array about twice.",
        ),
        scaled(
            "backward alone",
            3 / 2,
            "That lets the backward pass alone hide the AllReduce. The task lets the "
            "whole step.",
        ),
        scaled(
            "forward alone",
            1 / 3,
            "A token takes 2 FLOPs a parameter forward, and twice as many backward.",
        ),
        scaled("one GPU's time", 2**22 / _TOKENS, "So long a single GPU would take."),
    ),
    hint="Tokens a GPU needs, from C and W; GPUs that the batch feeds; FLOPs of all "
    "tokens over the rate of these GPUs.",
    solution="""
        ```python
        from shardmath.hardware import chips

        C, W = chips.H100.flops["bf16"], 406e9
        tokens_of_a_gpu = 2 / 3 * C / W
        gpus = 2**22 / tokens_of_a_gpu
        seconds = 6 * 8e9 * 15e12 / (gpus * C / 2)
        ```

        It takes about 2,600 GPUs and six and a half days. At half of the peak, math
        takes twice as long as the AllReduce, so up to twice the GPUs would still finish
        earlier. Beyond that the AllReduce binds, and more GPUs save no time.

        Each GPU works on whole sequences, so this takes sequences of at most 1,600
        tokens. With sequences of 4,096 tokens the batch has 1,024 of them, and feeds no
        more GPUs than that.
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
        **Given** eight slices of 256 TPU v5e and a model of $70 \cdot 10^9$ parameters,
        sharded inside a slice and data-parallel between them. Each slice works on
        $2^{18}$ tokens per step, at half of its peak. Then, and only then, the
        gradients are exchanged in bf16 at the rate of the cards,
        `chips.TPU_V5E.scale_out_bandwidth` one-way for each chip.

        **Wanted** the share of the step that the exchange takes, between 0 and 1.
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
            "That is the exchange over the math. The step holds both.",
        ),
        Slip(
            "at the full peak",
            lambda right: 2 * right / (1 + right),
            "A slice works at half of its peak.",
        ),
        Slip(
            "one of two rounds",
            lambda right: right / (2 - right),
            "An AllReduce sends its array about twice.",
        ),
        Slip(
            "own part sent too",
            lambda right: 8 * right / (7 + right),
            "Of eight slices each keeps one part of the sum at home.",
        ),
        Slip(
            "all gradients on a chip",
            lambda right: 256 * right / (1 + 255 * right),
            "Each chip of a slice holds 1/256 of the gradients.",
        ),
        slips.percent(),
    ),
    hint="Bytes of gradients that a chip holds, and its two times (k − 1)/k of them; "
    "FLOPs of a slice over its rate; one over the sum of both.",
    solution="""
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
        **Given** $S = S_\text{min}(1 + B_c / B)$ steps and $E = E_\text{min}(1 + B /
        B_c)$ tokens to reach a loss. A run with $B = B_c$ is repeated with four times
        the batch on four times the chips, each with the same tokens, so a step takes as
        long as before.

        **Wanted** by what factor the second run reaches the loss faster.
    """,
    stub="times = ...",
    unit="times",
    rtol=0.005,
    expected=lambda: 2 / 1.25,
    slips=(
        Slip(
            "no limit",
            lambda right: 4.0,
            "So it would be far below the critical batch. What does the law say at and "
            "above it?",
        ),
        Slip(
            "tokens for steps",
            lambda right: 5 / 2,
            "That is how many times the tokens it takes. The time goes with the steps.",
        ),
        slips.inverse(),
        Slip(
            "beside the fewest",
            lambda right: 1.25,
            "That is its steps over the fewest there can be. Compare the two runs.",
        ),
    ),
    hint="A step takes as long in both. How many steps do they take?",
    solution="""
        $1 + 1 = 2$ times the fewest steps against $1 + 1/4$.

        ```python
        times = 2 / 1.25
        ```

        It takes 2.5 times the tokens, and so as much more energy.
    """,
)
