"""Questions of chapter 10, "Tensor parallelism"."""

import math
from collections.abc import Callable

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
from shardmath.training import step, tensor
from shardmath.transformer import LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B

CHAPTER = Chapter(
    title="Tensor parallelism",
    topics=(
        "tensor parallelism: the traffic of a layer, sequence parallelism, heads and "
        "vocabulary, how far it goes, the best split with FSDP, and four programs "
        "graded on what they compile to"
    ),
    intro="""
        from the bytes of one layer to the best split of a machine. Answers are in base
        units: bytes, seconds, tokens.

        In 10.8 to 10.11 you write programs for eight virtual devices. They are graded
        on their results and on each collective that XLA compiles them to.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

EIGHT = {"Y": 8}


def _moved(model, seqs, seq, remat, sequence, ways=8) -> float:
    """Bytes that a chip sends in one layer, both passes, derived from the model."""
    found = step(
        tensor("Y", sequence),
        model,
        {"Y": ways},
        seqs,
        seq,
        attention="causal",
        remat=remat,
        vocabulary=False,
    )
    return found.sent / model.layers


LAYER_BYTES = Number(
    id="10.1",
    title="The traffic of a layer",
    task="""
        **Given** one layer of Llama 3.1 70B with $D = 8192$, in bf16, with tensor
        parallelism over $|Y| = 8$ chips, without sequence parallelism. The batch has
        4,096 tokens, and nothing is computed again.

        **Wanted** the bytes that each chip sends in both passes together.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _moved(LLAMA_3_70B, 1, 4096, "none", sequence=False),
    slips=(
        scaled(
            "the forward pass alone, or one round of each AllReduce",
            1 / 2,
            "The backward pass has AllReduces as well, and each of them sends its "
            "array about twice.",
        ),
        scaled(
            "two factors of two left out",
            1 / 4,
            "There are two blocks and two passes, and each AllReduce sends its array "
            "about twice. Did you count all of these?",
        ),
        scaled(
            "own part sent too",
            8 / 7,
            "A chip doesn't send anything to itself, so one of its n parts stays where "
            "it is.",
        ),
        scaled(
            "the hidden layer",
            28_672 / 8192,
            "Each AllReduce adds up an array that is as wide as the residual stream, "
            "not as wide as the hidden layer.",
        ),
        scaled(
            "an AllReduce for each projection",
            7 / 4,
            "The gradients through Q, K and V, or through gate and up, are terms of "
            "one array. Add them up on the chip first.",
        ),
    ),
    hint="How many AllReduces does a layer have in the forward and in the backward "
    "pass? How large is the array of each?",
    solution="""
        There are two AllReduces in the forward pass, after attention and after the MLP.
        There are two more in the backward pass, for the gradients of the two blocks'
        inputs. Each adds up $2BD$ bytes for $B$ tokens.

        ```python
        V = 2 * 4096 * 8192
        nbytes = 4 * 2 * V * 7 / 8
        ```
    """,
)

REMAT_BYTES = Number(
    id="10.2",
    title="The traffic of a layer under full remat",
    task="""
        **Given** one layer of Llama 3.1 8B with $D = 4096$, in bf16, with tensor and
        sequence parallelism over $|Y| = 8$ chips and full remat. The batch has 8,192
        tokens.

        **Wanted** the bytes that each chip sends in both passes together.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _moved(LLAMA_3_8B, 1, 8192, "full", sequence=True),
    slips=(
        scaled(
            "nothing computed again",
            8 / 11,
            "That is the traffic without remat. What does full remat send again?",
        ),
        scaled(
            "matmul results kept",
            10 / 11,
            "That would be right if the results of matmuls were kept. Under full "
            "remat, one of the scatters is needed again, too.",
        ),
        scaled(
            "all scatters again",
            12 / 11,
            "The result of the layer's last scatter is added to the residual stream. "
            "Does the layer's backward pass need it?",
        ),
        scaled(
            "AllReduces",
            20 / 11,
            "Did you count AllReduces? Sequence parallelism has gathers and scatters, "
            "and each of them sends only half as much.",
        ),
        scaled(
            "own part sent too",
            8 / 7,
            "A chip doesn't send anything to itself, so one of its n parts stays where "
            "it is.",
        ),
    ),
    hint="Without remat there are 4 gathers and 4 scatters. Which of them are needed "
    "to compute the hidden layer once more?",
    solution="""
        Without remat there are 4 gathers and 4 scatters. Computing the layer again
        repeats the gathers of both blocks' inputs and the scatter after attention. That
        makes 6 gathers and 5 scatters.

        ```python
        V = 2 * 8192 * 4096
        nbytes = 11 * V * 7 / 8
        ```
    """,
)


def _farthest(model, chip, bandwidth) -> float:
    weights = sum(line.weight.count(model.dims) for line in model.layer)
    return 1 + 3 / 8 * weights / model.D * bandwidth / chip.flops["bf16"]


_B200_405B = _farthest(LLAMA_3_405B, chips.B200, chips.B200.scale_up_bandwidth)

FARTHEST = Number(
    id="10.3",
    title="How far tensor parallelism goes",
    task=r"""
        **Given** Llama 3.1 405B in bf16 with tensor parallelism on B200s. A layer has
        $P$ matmul weights, with $P/D = 194{,}560$. Nothing is computed again, and
        attention scores are left out. A GPU sends `chips.B200.scale_up_bandwidth`
        bytes/s into its NVLink domain.

        **Wanted** the $|Y|$ at which the network takes as long as the math over both
        passes, at peak rates. It doesn't have to be a whole number.
    """,
    given=stated(chips.B200, "flops.bf16", "scale_up_bandwidth"),
    stub="ways = ...",
    unit="chips",
    expected=lambda: _B200_405B,
    slips=(
        Slip(
            "one block, or both directions of NVLink",
            lambda right: 1 + 2 * (right - 1),
            "Attention and the MLP each gather and scatter once in each pass. Also, a "
            "GPU sends at the one-way rate, which is half of the printed rate.",
        ),
        Slip(
            "the forward pass alone",
            lambda right: 1 + (right - 1) * 2 / 3,
            "The backward pass has twice the math for the same traffic.",
        ),
        Slip(
            "own part sent too",
            lambda right: right - 1,
            "A chip doesn't send anything to itself, so one of its n parts stays where "
            "it is.",
        ),
        Slip(
            "sparse peak",
            lambda right: 1 + (right - 1) / 2,
            "Did you use the peak for sparse matrices? Ordinary matrices are "
            "multiplied at the dense rate.",
        ),
        Slip(
            "HBM for NVLink",
            lambda right: (
                1
                + (right - 1) * chips.B200.hbm_bandwidth / chips.B200.scale_up_bandwidth
            ),
            "Did you use the HBM's bandwidth? Which links carry the activations?",
        ),
    ),
    hint="For B tokens on n chips, a chip computes 6PB/n FLOPs and takes part in 8 "
    "collectives (gathers and scatters) of 2BD bytes each. What cancels if the math "
    "and the network take equally long?",
    solution="""
        For $B$ tokens on $n$ chips, a chip computes $6PB/n$ FLOPs and takes part in 8
        collectives (gathers and scatters) of $2BD$ bytes each. With a peak $C$ and a
        bandwidth $W_Y$, the math and the network take equally long if
        $6PB/(nC) = 8\\cdot2BD\\,\\frac{n-1}{n}/W_Y$, so
        $n = 1 + \\frac38\\frac PD\\frac{W_Y}C$.

        ```python
        from shardmath.hardware import chips

        rate = chips.B200.scale_up_bandwidth / chips.B200.flops["bf16"]
        ways = 1 + 3 / 8 * 194_560 * rate
        ```

        That is more than the 8 GPUs of a B200's domain, so the domain sets the limit.
    """,
)


def _orders(first: str, second: str, B: int, D: int, F: int, n: int) -> float:
    share = (n - 1) / n
    if first == "columns":
        hidden = 0 if second == "rows" else 2 * B * F  # gathered for the columns
    else:
        hidden = 2 * B * F if second == "rows" else 2 * 2 * B * F
    out = 2 * 2 * B * D if second == "rows" else 2 * B * D
    return (hidden + out) * share


ORDERS = Function(
    id="10.4",
    title="Columns or rows",
    task=r"""
        **Given** an MLP of two matrices, $\text{up}[D, F]$ and $\text{down}[F, D]$, and
        $B$ tokens in bf16. `first` and `second` say whether each matrix is cut over $n$
        chips into `"columns"` or `"rows"`. The input is whole on every chip, and the
        result must be, too. The activation function in between works value by value.
        The weights don't move. After each product, the chips use the cheapest
        collective that gives the next step its input, or none if they have it already.

        **Wanted** a function that returns the bytes that each chip sends.
    """,
    stub="def sent(first, second, B, D, F, n): ...",
    spec=_orders,
    gives=(("what each chip sends", "bytes"),),
    cases=lambda rng: (
        rng.choice(["columns", "rows"]),
        rng.choice(["columns", "rows"]),
        64 * rng.randint(1, 64),
        64 * rng.randint(1, 64),
        64 * rng.randint(1, 64),
        rng.choice([2, 4, 8, 16]),
    ),
    examples=(
        ("columns", "rows", 64, 64, 256, 8),
        ("rows", "columns", 64, 64, 256, 8),
        ("columns", "columns", 64, 64, 256, 8),
        ("rows", "rows", 64, 64, 256, 8),
    ),
    slips=(
        Slip(
            "every sum an AllReduce",
            lambda first, second, B, D, F, n: (
                _orders(first, second, B, D, F, n)
                + (first == second == "rows") * 2 * B * F * (n - 1) / n
            ),
            "If both matrices are cut into rows, which part of the hidden layer does "
            "a chip need?",
        ),
        Slip(
            "one round of an AllReduce",
            lambda first, second, B, D, F, n: (
                (2 * B * F * ((first, second) != ("columns", "rows")) + 2 * B * D)
                * (n - 1)
                / n
            ),
            "Every chip needs the whole sum, so the sum is scattered and then "
            "gathered.",
        ),
        Slip(
            "own part sent too",
            lambda first, second, B, D, F, n: (
                _orders(first, second, B, D, F, n) * n / (n - 1)
            ),
            "A chip doesn't send anything to itself, so one of its n parts stays where "
            "it is.",
        ),
        Slip(
            "one byte per value",
            lambda first, second, B, D, F, n: _orders(first, second, B, D, F, n) / 2,
            "A value in bf16 takes two bytes.",
        ),
    ),
    hint="If a matrix is cut into columns, a chip gets columns of the result. If it is "
    "cut into rows, a chip gets one term of a sum. Which part of its input does the "
    "second matrix need on each chip?",
    solution="""
        ```python
        def sent(first, second, B, D, F, n):
            hidden, out = 2 * B * F, 2 * B * D
            if first == "columns":
                between = 0 if second == "rows" else hidden  # AllGather
            else:  # ReduceScatter or AllReduce
                between = hidden if second == "rows" else 2 * hidden
            end = 2 * out if second == "rows" else out  # AllReduce or AllGather
            return (between + end) * (n - 1) / n
        ```
    """,
)


def _heads(N: int, K: int, n: int) -> list[int]:
    return [N // n, max(1, K // n)]


HEADS = Function(
    id="10.5",
    title="Heads on a chip",
    task="""
        **Given** $N$ query heads and $K$ KV heads on $n \\le N$ chips, where $N$, $K$
        and $n$ are powers of two. If there are more chips than KV heads, KV heads are
        copied.

        **Wanted** a function that returns a pair: the number of query heads and the
        number of KV heads that one chip holds.
    """,
    stub="def heads(N, K, n): ...",
    spec=_heads,
    gives=(("query heads", ""), ("KV heads", "")),
    cases=lambda rng: (
        2 ** rng.randint(5, 7),
        2 ** rng.randint(0, 5),
        2 ** rng.randint(0, 5),
    ),
    examples=((64, 8, 8), (64, 8, 16), (32, 8, 2), (64, 1, 8)),
    slips=(
        Slip(
            "parts of heads",
            lambda N, K, n: [N // n, K / n],
            "A chip can't hold a part of a head.",
        ),
        Slip(
            "no KV head",
            lambda N, K, n: [N // n, K // n],
            "With more than K chips, K // n is 0. But the query heads of a chip read "
            "at least one KV head, so it is copied.",
        ),
        Slip(
            "all KV heads copied",
            lambda N, K, n: [N // n, K if n > K else K // n],
            "Which KV heads do the query heads of one chip read?",
        ),
        Slip(
            "a KV head for each query head",
            lambda N, K, n: [N // n, N // n],
            "Several query heads share a KV head.",
        ),
    ),
    hint="Neighbouring query heads share a KV head. How many KV heads do N/n query "
    "heads read?",
    solution="""
        With more chips than KV heads, each chip holds a copy of one.

        ```python
        def heads(N, K, n):
            return N // n, max(1, K // n)
        ```
    """,
)


def _stream() -> float:
    whole, split = (
        step(
            tensor("Y", sequence),
            LLAMA_3_405B,
            EIGHT,
            2,
            8192,
            attention="causal",
            vocabulary=False,
        ).memory.parts["saved"]
        for sequence in (False, True)
    )
    return whole - split


SAVED = Number(
    id="10.6",
    title="What sequence parallelism saves",
    task=r"""
        **Given** Llama 3.1 405B with $L = 126$ and $D = 16{,}384$, in bf16, with full
        remat and tensor parallelism over $|Y| = 8$ chips. The batch has two sequences
        of 8,192 tokens.

        **Wanted** the bytes of activations that each chip no longer keeps for the
        backward pass with sequence parallelism.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=_stream,
    slips=(
        scaled(
            "what is left",
            1 / 7,
            "That is what a chip still keeps. How much has it saved?",
        ),
        scaled(
            "what there was",
            8 / 7,
            "That is what a chip kept without sequence parallelism. How much of it is "
            "saved?",
        ),
        scaled(
            "one sequence",
            1 / 2,
            "There are two sequences, and each value takes two bytes.",
        ),
        scaled(
            "both blocks",
            2,
            "Under full remat, the input of a layer is kept, and nothing inside the "
            "layer.",
        ),
        scaled(
            "one layer",
            1 / 126,
            "Every layer keeps its input until the backward pass reaches it.",
        ),
    ),
    hint="Full remat keeps only each layer's input. Which part of it does a chip keep "
    "with sequence parallelism?",
    solution="""
        Each layer keeps its input of $B \\times D$ values. If the input is split over
        the sequence, a chip keeps only an eighth of it.

        ```python
        nbytes = 126 * 2 * 8192 * 16_384 * 2 * 7 / 8
        ```
    """,
)

_LOSS = 3 * 2 * 4 * 8192 * 7 / 8

LOSS = Number(
    id="10.7",
    title="A loss without its logits",
    task="""
        **Given** 8,192 tokens, a vocabulary of 128,256 that is cut over $|Y| = 8$
        chips, and a loss that finds the largest logit, the sum of the exponentials and
        the logit of the right token, each with an AllReduce in f32. The rows that enter
        the head are whole on every chip.

        **Wanted** the bytes that each chip sends in the forward pass.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _LOSS,
    slips=(
        Slip(
            "logits gathered",
            lambda right: 4 * 8192 * 128_256 * 7 / 8,
            "That gathers every logit. Only three values per token have to travel.",
        ),
        scaled(
            "one of the three",
            1 / 3,
            "That is what a single AllReduce sends. Three values of each token are "
            "needed.",
        ),
        scaled(
            "two of the three",
            2 / 3,
            "Did you leave one out? The loss needs the largest logit, the sum, and "
            "the logit of the right token.",
        ),
        scaled(
            "one of two rounds, or two bytes per value",
            1 / 2,
            "An AllReduce sends its array about twice, and a value in f32 takes four "
            "bytes.",
        ),
        scaled(
            "own part sent too",
            8 / 7,
            "A chip doesn't send anything to itself, so one of its n parts stays where "
            "it is.",
        ),
    ),
    hint="There are three AllReduces of one value per token. How many bytes does a "
    "chip send for each of them?",
    solution="""
        Each AllReduce sends one value per token about twice.

        ```python
        V = 4 * 8192
        nbytes = 3 * 2 * V * 7 / 8
        ```
    """,
)


# Programs. Values are float32: four bytes each.


def _mlp_shapes(rng):
    B, D = 16 * rng.randint(1, 3), 8 * rng.choice([3, 5])  # never equal
    F = 16 * rng.randint(2, 5)
    return (B, D), (D, F), (F, D)


NO_ACTIVATION = (
    Slip(
        "no activation",
        lambda z, up, down: z @ up @ down,
        "That is the product of all three matrices. Between the two matmuls, "
        "negative values must become zero.",
    ),
)

PAIR = Sharded(
    id="10.8",
    title="Columns, then rows",
    task=r"""
        **Given** all of $z[B, D]$ and each device's part of $\text{up}[D, F_Y]$ and
        $\text{down}[F_Y, D]$.

        **Wanted** the function that every device runs. It returns all of
        $\max(z\,\text{up}, 0)\,\text{down}$ and compiles to exactly one AllReduce, of
        $4 B D$ bytes.
    """,
    stub="def mlp(z, up, down): ...",
    mesh=EIGHT,
    shapes=_mlp_shapes,
    in_specs=((), (None, "Y"), ("Y", None)),
    out_spec=(None, None),
    spec=lambda z, up, down: (z @ up).clip(0) @ down,
    collectives=lambda z, up, down: [
        Collective("all_reduce", ("Y",), 4 * z[0] * down[1], 8)
    ],
    slips=(
        Slip(
            "hidden layer gathered",
            lambda z, up, down: [
                Collective("all_gather", ("Y",), 4 * z[0] * up[1], 8),
                Collective("all_gather", ("Y",), 4 * math.prod(down), 8),
            ],
            "The hidden layer is cut in the same way as the rows of the second "
            "matrix. Can it stay where it is?",
        ),
        Slip(
            "weights gathered",
            lambda z, up, down: [
                Collective("all_gather", ("Y",), 4 * math.prod(up), 8),
                Collective("all_gather", ("Y",), 4 * math.prod(down), 8),
            ],
            "The weights must stay where they are. A program that gathers them is "
            "FSDP.",
        ),
    ),
    values=NO_ACTIVATION,
    hint="Each device can compute one term of the result. Which collective adds them "
    "up?",
    solution="""
        A device's columns of `up` match its rows of `down`, so only the last sum is
        sent.

        ```python
        def mlp(z, up, down):
            return jax.lax.psum(jax.nn.relu(z @ up) @ down, "Y")
        ```
    """,
)

SEQUENCE = Sharded(
    id="10.9",
    title="With sequence parallelism",
    task=r"""
        **Given** each device's part of the tokens $z[B_Y, D]$, of
        $\text{up}[D, F_Y]$ and of $\text{down}[F_Y, D]$.

        **Wanted** the function that every device runs. It returns the device's tokens
        of $\max(z\,\text{up}, 0)\,\text{down}$ and compiles to exactly one AllGather
        and one ReduceScatter, of $4 B D$ bytes each.
    """,
    stub="def mlp(z, up, down): ...",
    mesh=EIGHT,
    shapes=_mlp_shapes,
    in_specs=(("Y", None), (None, "Y"), ("Y", None)),
    out_spec=("Y", None),
    spec=lambda z, up, down: (z @ up).clip(0) @ down,
    collectives=lambda z, up, down: [
        Collective("all_gather", ("Y",), 4 * math.prod(z), 8),
        Collective("reduce_scatter", ("Y",), 4 * z[0] * down[1], 8),
    ],
    slips=(
        Slip(
            "sum, then slice",
            lambda z, up, down: [
                Collective("all_gather", ("Y",), 4 * math.prod(z), 8),
                Collective("all_reduce", ("Y",), 4 * z[0] * down[1], 8),
            ],
            "Every device gets the whole sum and throws most of it away.",
        ),
        Slip(
            "weights gathered",
            lambda z, up, down: [
                Collective("all_gather", ("Y",), 4 * math.prod(up), 8),
                Collective("all_gather", ("Y",), 4 * math.prod(down), 8),
            ],
            "The weights must stay where they are. A program that gathers them is "
            "FSDP.",
        ),
    ),
    values=NO_ACTIVATION,
    hint="The tokens are split along the first dimension. Which collective makes them "
    "whole, and which one adds up the results and splits them again?",
    solution="""
        The scatter adds up the devices' terms and leaves each device its own tokens.

        ```python
        def mlp(z, up, down):
            z = jax.lax.all_gather(z, "Y", axis=0, tiled=True)
            m = jax.nn.relu(z @ up) @ down
            return jax.lax.psum_scatter(m, "Y", scatter_dimension=0, tiled=True)
        ```
    """,
)


def _gated_shapes(rng):
    B, D, F = (8 * rng.randint(2, 5) for _ in range(3))
    return (B, F), (B, F), (D, F), (D, F)


INPUT_GRADIENT = Sharded(
    id="10.10",
    title="One gradient, one AllReduce",
    task=r"""
        **Given** each device's columns of the gradients $dg[B, F_Y]$ and $du[B, F_Y]$,
        and of the weights $\text{gate}[D, F_Y]$ and $\text{up}[D, F_Y]$. Both $g$ and
        $u$ were computed from the same input $z[B, D]$.

        **Wanted** the function that every device runs. It returns all of $dz =
        dg\,\text{gate}^\top + du\,\text{up}^\top$ and compiles to exactly one
        AllReduce, of $4 B D$ bytes.
    """,
    stub="def gradient(dg, du, gate, up): ...",
    mesh=EIGHT,
    shapes=_gated_shapes,
    in_specs=((None, "Y"),) * 4,
    out_spec=(None, None),
    spec=lambda dg, du, gate, up: dg @ gate.T + du @ up.T,
    collectives=lambda dg, du, gate, up: [
        Collective("all_reduce", ("Y",), 4 * dg[0] * gate[0], 8)
    ],
    slips=(
        Slip(
            "a sum for each product",
            lambda dg, du, gate, up: [
                Collective("all_reduce", ("Y",), 4 * dg[0] * gate[0], 8, times=2)
            ],
            "Terms of one array can be added up on the device before they are sent.",
        ),
    ),
    hint="Both products are terms of one sum. Can you add them up before anything is "
    "sent?",
    solution="""
        Both products are terms of $dz$, so a device adds them up first.

        ```python
        def gradient(dg, du, gate, up):
            return jax.lax.psum(dg @ gate.T + du @ up.T, "Y")
        ```
    """,
)


def _logit_shapes(rng):
    B, D, V = (8 * rng.randint(2, 5) for _ in range(3))
    return (B, D), (D, 4 * V)


def _log_sum(x, unembed):
    logits = x @ unembed
    top = logits.max(-1)
    terms = 2.718281828459045 ** (logits - top[:, None])
    return top + _log(terms.sum(-1))


def _log(values):
    import numpy as np  # not at the top: a page judges numbers without it

    return np.log(values)


def _own_largest(x, unembed) -> list:
    """Log-sums of devices that take out their own largest, and add up all the same."""
    import numpy as np  # not at the top: a page judges numbers without it

    logits = [x @ part for part in slips.parts(unembed, 8, 1)]
    tops = [one.max(-1) for one in logits]
    terms = [
        np.exp(one - top[:, None]).sum(-1)
        for one, top in zip(logits, tops, strict=True)
    ]
    total = np.log(sum(terms))
    return [top + total for top in tops]


LOG_SUM = Sharded(
    id="10.11",
    title="The logarithm of a sum that no device has",
    task=r"""
        **Given** all of $x[B, D]$ and each device's columns of
        $\text{unembed}[D, V_Y]$.

        **Wanted** the function that every device runs. It returns
        $\log\sum_v e^{\ell_v}$ for each row of $\ell = x\,\text{unembed}$, whole on
        every device. It compiles to exactly two AllReduces, of $4B$ bytes each. The
        largest logit of a row must be subtracted before anything is exponentiated.
    """,
    stub="def log_sum(x, unembed): ...",
    mesh=EIGHT,
    shapes=_logit_shapes,
    in_specs=((), (None, "Y")),
    out_spec=(None,),
    spec=_log_sum,
    collectives=lambda x, unembed: [
        Collective("all_reduce", ("Y",), 4 * x[0], 8, times=2)
    ],
    slips=(
        Slip(
            "logits gathered",
            lambda x, unembed: [
                Collective("all_gather", ("Y",), 4 * x[0] * unembed[1], 8)
            ],
            "Your program sends every logit. Which two values of a row are enough?",
        ),
        Slip(
            "without the largest",
            lambda x, unembed: [Collective("all_reduce", ("Y",), 4 * x[0], 8)],
            "If the largest logit isn't subtracted first, the exponentials of real "
            "logits overflow.",
        ),
    ),
    values=(
        Slip(
            "a maximum of its own",
            _own_largest,
            "Each device has subtracted its own largest logit, so the exponentials of "
            "two devices have different scales and can't be added. Subtract the "
            "largest of the whole row.",
        ),
        Slip(
            "the largest not put back",
            lambda x, unembed: _log_sum(x, unembed) - (x @ unembed).max(-1),
            "The largest logit was subtracted inside the exponentials, so it has to "
            "be added again after the logarithm.",
        ),
    ),
    hint="`jax.lax.pmax` finds the largest logit of all devices. Which sum do the "
    "devices need after that?",
    solution="""
        Sums of exponentials can be added up if every device has subtracted the same
        value.

        ```python
        def log_sum(x, unembed):
            logits = x @ unembed
            top = jax.lax.pmax(logits.max(-1), "Y")
            total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(-1), "Y")
            return top + jnp.log(total)
        ```
    """,
)


# Several steps.


def _best_split(w_x: float, w_y: float, tokens: float) -> float:
    weights = sum(line.weight.count(LLAMA_3_405B.dims) for line in LLAMA_3_405B.layer)
    return math.sqrt(3 / 11 * weights / LLAMA_3_405B.D * w_y / w_x / tokens)


_AXIS = 2 * chips.TPU_V5P.link_bandwidth

BEST_SPLIT = Number(
    id="10.12",
    title="The best split",
    points=2,
    task=r"""
        **Given** Llama 3.1 405B on a slice of TPU v5p chips with 256 tokens per chip. A
        layer has $P$ matmul weights, with $P/D = 194{,}560$. FSDP runs over two axes of
        the torus, and tensor parallelism with sequence parallelism runs over the third.
        The run uses full remat, and everything is in bf16. Each axis is a closed ring,
        and a chip sends `chips.TPU_V5P.link_bandwidth` bytes/s in each direction.

        **Wanted** the $|Y|$ at which sending the weights takes as long as sending the
        activations, without the factors $(n-1)/n$. $|Y|$ doesn't have to be a whole
        number.
    """,
    given=stated(chips.TPU_V5P, "link_bandwidth"),
    stub="ways = ...",
    unit="chips",
    expected=lambda: _best_split(2 * _AXIS, _AXIS, 256),
    slips=(
        scaled(
            "no remat",
            math.sqrt(11 / 8),
            "That would be right without remat. What does full remat send again?",
        ),
        scaled(
            "equal axes",
            math.sqrt(2),
            "FSDP has two axes of the torus, and tensor parallelism has one.",
        ),
        scaled(
            "axes the other way round",
            2,
            "Which of the two strategies has two axes?",
        ),
        Slip(
            "square root forgotten",
            lambda right: right**2,
            "Did you forget the square root? One time falls with |Y| and the other "
            "grows with it, so the equation contains |Y| squared.",
        ),
        scaled(
            "one gather",
            math.sqrt(1 / 3),
            "The weights are gathered for both passes, and their gradients are "
            "scattered.",
        ),
    ),
    hint="Tensor parallelism leaves each chip 1/|Y| of the weights. How long do three "
    "collectives of these take, and how long do eleven of the activations of |Y| chips "
    "take?",
    solution="""
        With full remat, each layer has three collectives of the weights and eleven of
        the activations. For $t$ tokens per chip, the times are equal if $3 \\cdot 2P /
        (|Y| W_X) = 11 \\cdot 2 D t |Y| / W_Y$, and $W_X$ is twice as large as $W_Y$.

        ```python
        ways = (3 / 11 * 194_560 * 1 / 2 / 256) ** 0.5
        ```
    """,
)


def _in_turn(bandwidth: float) -> float:
    weights = sum(line.weight.count(LLAMA_3_70B.dims) for line in LLAMA_3_70B.layer)
    tokens, n = 8192, 8
    math_ = 2 * weights * tokens / n / chips.H100.flops["bf16"]
    network = 4 * 2 * tokens * 8192 * (n - 1) / n / bandwidth
    return math_ + network


_NVLINK = chips.H100.scale_up_bandwidth
_NETWORK_SECONDS = 4 * 2 * 8192 * 8192 * 7 / 8 / _NVLINK
_MATH_SECONDS = _in_turn(_NVLINK) - _NETWORK_SECONDS

IN_TURN = Number(
    id="10.13",
    title="A forward pass that waits",
    points=2,
    task=r"""
        **Given** one layer of Llama 3.1 70B with $D = 8192$ and 855,638,016 weights in
        its matmuls, in bf16, with tensor and sequence parallelism over the 8 H100s of a
        node and 8,192 tokens in all. A GPU sends `chips.H100.scale_up_bandwidth`
        bytes/s over NVLink.

        **Wanted** the seconds that the forward pass takes at peak rates if nothing
        overlaps. Ignore attention scores and latency.
    """,
    given=stated(chips.H100, "flops.bf16", "scale_up_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: _in_turn(_NVLINK),
    slips=(
        Slip(
            "all overlapped",
            lambda right: max(_MATH_SECONDS, _NETWORK_SECONDS),
            "Each matmul waits for its gather, and each scatter waits for its matmul.",
        ),
        Slip(
            "one block, or both directions of NVLink",
            lambda right: _MATH_SECONDS + _NETWORK_SECONDS / 2,
            "Attention and the MLP each gather and scatter. Also, a GPU sends at the "
            "one-way rate, which is half of the printed rate.",
        ),
        Slip(
            "both passes",
            lambda right: 3 * _MATH_SECONDS + 2 * _NETWORK_SECONDS,
            "That is the time of both passes. The task asks for the forward pass "
            "alone.",
        ),
        Slip(
            "own part sent too",
            lambda right: _MATH_SECONDS + _NETWORK_SECONDS * 8 / 7,
            "A chip doesn't send anything to itself, so one of its n parts stays where "
            "it is.",
        ),
        Slip(
            "math of all chips",
            lambda right: 8 * _MATH_SECONDS + _NETWORK_SECONDS,
            "Each chip multiplies by only an eighth of the weights.",
        ),
        Slip(
            "one FLOP per weight, or the sparse peak",
            lambda right: _MATH_SECONDS / 2 + _NETWORK_SECONDS,
            "A multiply and the add that follows are two FLOPs, and ordinary matrices "
            "are multiplied at the dense rate.",
        ),
        Slip(
            "bits for bytes",
            lambda right: _MATH_SECONDS + 8 * _NETWORK_SECONDS,
            "Networks are sold in bits, but this rate is in bytes.",
        ),
    ),
    hint="Each weight takes 2 FLOPs per token, and each chip does an eighth of them. "
    "How long do these take, and how long do two gathers and two scatters take?",
    solution="""
        Nothing overlaps, so we add up the two times.

        ```python
        from shardmath.hardware import chips

        math = 2 * 855_638_016 * 8192 / 8 / chips.H100.flops["bf16"]
        V = 2 * 8192 * 8192
        network = 4 * V * 7 / 8 / chips.H100.scale_up_bandwidth
        seconds = math + network
        ```

        The network takes six tenths as long as the math, so without overlap more than a
        third of the time is lost.
    """,
)

_PIN = 80 * 2 * 2 * 8192 * 8192 * 7 / 8 / _NVLINK

ONE_PIN = Number(
    id="10.14",
    title="What a forgotten pin costs",
    points=2,
    task=r"""
        **Given** all 80 layers of Llama 3.1 70B with $D = 8192$, in bf16, with tensor
        and sequence parallelism over the 8 H100s of a node and 8,192 tokens in all.
        Nothing is computed again. The normed tokens are pinned only where they arrive,
        so in the forward pass the compiler gathers them in f32 for both blocks. A GPU
        sends `chips.H100.scale_up_bandwidth` bytes/s.

        **Wanted** the seconds that gathering in f32 instead of bf16 adds to the
        collectives of a step.
    """,
    given=stated(chips.H100, "scale_up_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: _PIN,
    slips=(
        scaled(
            "all of the gathers",
            2,
            "The same tokens would have been gathered in bf16 anyway, so only the "
            "difference is added.",
        ),
        scaled("one block", 1 / 2, "Both blocks gather their tokens."),
        scaled(
            "one layer",
            1 / 80,
            "That is the time of one layer. How many layers gather in f32?",
        ),
        scaled(
            "own part sent too",
            8 / 7,
            "A chip doesn't send anything to itself, so one of its n parts stays where "
            "it is.",
        ),
        scaled(
            "all collectives",
            4,
            "The scatters and the gradients still travel in bf16.",
        ),
    ),
    hint="How many more bytes does the array have in f32, and how often is it "
    "gathered in the forward pass?",
    solution="""
        A value takes two more bytes in f32 than in bf16, and each layer has two gathers
        in the forward pass.

        ```python
        from shardmath.hardware import chips

        more = 2 * 8192 * 8192
        seconds = 80 * 2 * more * 7 / 8 / chips.H100.scale_up_bandwidth
        ```
    """,
)


def _search(P: int, D: int, t: int, w_x: float, w_y: float) -> int:
    splits = [1, 2, 4, 8, 16, 32, 64]

    def longest(y: int) -> float:
        weights = 3 * 2 * P / y / w_x
        activations = 8 * 2 * D * t * y / w_y * (y > 1)
        return max(weights, activations)

    return min(splits, key=longest)


def _search_with(c: float, g: float, combine: Callable = max):
    def wrong(P: int, D: int, t: int, w_x: float, w_y: float) -> int:
        splits = [1, 2, 4, 8, 16, 32, 64]
        return min(
            splits,
            key=lambda y: combine(
                (g * 2 * P / y / w_x, c * 2 * D * t * y / w_y * (y > 1))
            ),
        )

    return wrong


SEARCH = Function(
    id="10.15",
    title="Search for the split",
    points=2,
    task=r"""
        **Given** a layer of width $D$ with $P$ matmul weights in bf16, $t$ tokens per
        chip, and the bandwidths $W_X$ and $W_Y$ that a chip has along the two axes.
        FSDP over $X$ gathers the weights twice and scatters the gradients once. Tensor
        parallelism over $Y$ gathers and scatters activations eight times in all. Each
        axis has its own links. Leave out the factors $(n-1)/n$.

        **Wanted** a function that returns the $|Y|$ among 1, 2, 4, 8, 16, 32 and 64 for
        which the slower of the two axes finishes soonest.
    """,
    stub="def split(P, D, t, w_x, w_y): ...",
    spec=_search,
    gives=(("|Y|", ""),),
    units={"w_x": "bytes/s", "w_y": "bytes/s"},
    cases=lambda rng: (
        rng.randint(1, 32) * 10**8,
        1024 * rng.randint(2, 16),
        2 ** rng.randint(4, 14),
        rng.randint(1, 8) * 5e10,
        rng.randint(1, 8) * 5e10,
    ),
    examples=(
        (855_638_016, 8192, 64, 4e11, 2e11),
        (855_638_016, 8192, 512, 4e11, 2e11),
        (855_638_016, 8192, 16_384, 4e11, 2e11),
    ),
    slips=(
        Slip(
            "weights gathered once",
            _search_with(8, 1),
            "The weights are gathered for both passes, and their gradients are "
            "scattered.",
        ),
        Slip(
            "activations once",
            _search_with(1, 3),
            "There are eight gathers and scatters of activations in all.",
        ),
        Slip(
            "both times added",
            _search_with(8, 3, combine=sum),
            "Each axis has its own links, so both send at the same time, and only the "
            "slower one counts.",
        ),
        Slip(
            "eleven rounds of activations",
            _search_with(11, 3),
            "There are only eight gathers and scatters of activations. The other "
            "three collectives move the weights and their gradients.",
        ),
        Slip(
            "both as large as they can be",
            lambda P, D, t, w_x, w_y: 64,
            "The weights shrink as |Y| grows, but each chip moves the tokens of |Y| "
            "chips.",
        ),
        Slip(
            "always alone",
            lambda P, D, t, w_x, w_y: 1,
            "Sending the weights takes longer without tensor parallelism than with it.",
        ),
    ),
    hint="Write both times as functions of |Y|. Which of the seven values makes the "
    "longer of the two times as short as possible?",
    solution="""
        ```python
        def split(P, D, t, w_x, w_y):
            def slower(y):
                weights = 3 * 2 * P / y / w_x
                activations = 8 * 2 * D * t * y / w_y if y > 1 else 0
                return max(weights, activations)

            return min((1, 2, 4, 8, 16, 32, 64), key=slower)
        ```

        At $|Y| = 1$, no activations are sent. Counting them there as well wouldn't
        change any answer: where they take longer than the weights at $|Y| = 1$, they
        take at least twice as long at every larger $|Y|$.
    """,
)
