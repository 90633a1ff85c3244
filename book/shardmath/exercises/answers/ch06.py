"""Questions of chapter 06, "Sharding"."""

import math

from shardmath import collectives
from shardmath.collectives import Collective, all_gather
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
from shardmath.hardware.networks import Torus
from shardmath.sharding import array, contract

CHAPTER = Chapter(
    title="Sharding",
    topics=(
        "sharding: bytes on a chip, collectives of a sharded matmul, weights or "
        "activations, idle axes, and seven programs graded on what they compile to"
    ),
    intro="""
        from one division to a matmul that hides its own collective. Answers are in base
        units: bytes, seconds, tokens.

        06.10 to 06.15 and 06.18 are programs for eight virtual devices. They are graded
        on their result and on what XLA compiles them to, array by array.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

XYZ = {"X": 4, "Y": 8, "Z": 2}
RING = {"X": 8}
HOP = 1e-6  # seconds of latency in the torus of a TPU, as the chapters have it

LOCAL = Number(
    id="06.1",
    title="What one chip holds",
    task="""
        **Given** a mesh with $|X| = 4$, $|Y| = 8$, $|Z| = 2$, and the weights
        $W[D_X, F_Y]$ in bf16, with $D = 8192$ and $F = 32{,}768$.

        **Wanted** the number of bytes of $W[D_X, F_Y]$ that one chip holds.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: array("W[D_X, F_Y]", XYZ, D=8192, F=32_768).local_nbytes,
    slips=(
        scaled(
            "copies counted as parts, or one byte per value",
            1 / 2,
            "W[D_X, F_Y] doesn't name Z. What do two chips hold that differ only in "
            "their place along Z? And how many bytes does a value take?",
        ),
        scaled(
            "X alone, or bits",
            8,
            "The second dimension is split, too, and the answer has to be in bytes.",
        ),
        scaled("Y alone", 4, "The first dimension is split, too."),
        scaled(
            "the whole array",
            32,
            "That is one whole copy of W. How much of it does a single chip hold?",
        ),
    ),
    hint="How many bytes does one copy of W take? Divide them by the size of every "
    "axis that W[D_X, F_Y] names.",
    solution="""
        $X$ splits the rows into 4 parts, and $Y$ splits the columns into 8. The chips
        along $Z$ hold copies, so $Z$ doesn't make a chip's part any smaller.

        ```python
        nbytes = 2 * (8192 // 4) * (32_768 // 8)
        ```
    """,
)

COPIES = Number(
    id="06.2",
    title="How many chips hold the same block",
    task="""
        **Given** the activations $A[B_X, D]$ on the mesh of 06.1, with $|X| = 4$,
        $|Y| = 8$, $|Z| = 2$.

        **Wanted** the number of chips that hold the same block of $A$.
    """,
    stub="copies = ...",
    unit="chips",
    expected=lambda: array("A[B_X, D]", XYZ, B=1024, D=8192).copies,
    slips=(
        scaled(
            "the blocks",
            1 / 4,
            "That is the number of different blocks. How many chips share one of them?",
        ),
        scaled(
            "all chips",
            4,
            "That is the number of all chips. They don't all hold the same block, "
            "because X splits the rows.",
        ),
        scaled(
            "Y alone",
            1 / 2,
            "Which axes does A[B_X, D] leave out? The chips along "
            "all of them hold copies.",
        ),
        scaled(
            "Z alone", 1 / 8, "A[B_X, D] leaves out Z, but not only Z. What about Y?"
        ),
    ),
    hint="There are 64 chips. Into how many different blocks does A[B_X, D] cut A?",
    solution="""
        Only $X$ splits $A$, so the $4 \\cdot 8 \\cdot 2 = 64$ chips hold 4 different
        blocks, and each block is on 16 chips.

        ```python
        copies = 4 * 8 * 2 // 4
        ```
    """,
)


def _sums():
    line = "A[B, D_X] · W[D_X, F] -> C[B, F]"
    return contract(line, RING, B=2048, D=8192, F=16_384)


ALL_REDUCE = Number(
    id="06.3",
    title="A sum that is finished",
    task=r"""
        **Given** $A[B, D_X] \cdot W[D_X, F] \to C[B, F]$ in bf16 with $B = 2048$,
        $D = 8192$, $F = 16{,}384$, over $|X| = 8$ chips.

        **Wanted** the number of bytes that each chip sends, if no operand is moved.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _sums().sent,
    slips=(
        scaled(
            "one of two rounds",
            1 / 2,
            "That is what a ReduceScatter sends. But here every chip needs the whole "
            "result.",
        ),
        scaled(
            "own part sent too",
            8 / 7,
            "A chip doesn't have to send anything to itself, so one of the n parts "
            "stays where it is.",
        ),
        Slip(
            "the weights, or four bytes per value",
            lambda right: 2 * 8192 * 16_384 * 7 / 8,
            "That is what a gather of W would send. But both operands are split along "
            "D, so only the result has to travel, with two bytes per value.",
        ),
        Slip(
            "the activations",
            lambda right: 2 * 2048 * 8192 * 7 / 8,
            "That is what a gather of A would send. But both operands are split along "
            "D, so only the result has to travel.",
        ),
        scaled(
            "a chip's share",
            1 / 8,
            "Did you divide C among the chips? Each chip's partial sum has the full "
            "size of C.",
        ),
        scaled(
            "the array once",
            4 / 7,
            "That is the size of C. An AllReduce has two rounds, and in each of them "
            "one of the n parts stays where it is.",
        ),
        scaled(
            "whole terms to everybody",
            4,
            "That is what a chip sends if it sends its whole term to all the others. "
            "An AllReduce finishes one part of the sum on each chip first.",
        ),
    ),
    hint="Which case is it, which array travels, and how often does an AllReduce send "
    "this array?",
    solution="""
        Both operands are split along the contraction, which is case 3. Every chip
        computes a partial sum with the full size of $C$, and an AllReduce, in two
        rounds, adds up these sums.

        ```python
        V = 2 * 2048 * 16_384
        nbytes = 2 * V * 7 / 8
        ```
    """,
)

_V5P = Mesh(Torus(chips.TPU_V5P, (4, 4, 8)), {"Y": 16, "X": 8})


def _gather():
    line = "A[B_X, D] · W[D_X, F] -> C[B_X, F]"
    op = contract(line, _V5P, busy=True, B=4096, D=8192, F=16_384)
    (weights,) = op.collectives
    return collectives.price(weights, _V5P).bandwidth_seconds


GATHER_TIME = Number(
    id="06.4",
    title="Fetching the weights",
    task=r"""
        **Given** $A[B_X, D] \cdot W[D_X, F] \to C[B_X, F]$ in bf16 with $B = 4096$,
        $D = 8192$, $F = 16{,}384$, on eight TPU v5p chips that form a closed ring. A
        chip sends in both directions at once, at `chips.TPU_V5P.link_bandwidth` in
        each. The links of other axes can't be used.

        **Wanted** the time of the AllGather that this case usually takes, without the
        latency of the hops.
    """,
    given=stated(chips.TPU_V5P, "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    rtol=0.004,
    expected=_gather,
    slips=(
        slips.one_direction(2),
        scaled(
            "own part sent too",
            8 / 7,
            "Each chip already has one of the n parts. How many parts does it lack?",
        ),
        scaled(
            "a chip's share",
            1 / 8,
            "Every chip needs all the weights in the end. How many of their bytes must "
            "arrive at each chip?",
        ),
        scaled(
            "the activations",
            1 / 4,
            "That is the time to gather A. Which operand is split along the "
            "contraction?",
        ),
        slips.other_link(chips.TPU_V5P.fact("link_bandwidth"), -1),
        slips.half_of_other_link(chips.TPU_V5P.fact("link_bandwidth"), -1),
        scaled(
            "all six links",
            1 / 3,
            "The ring is only one axis of the torus, and only two of a chip's six "
            "links lie along it.",
        ),
    ),
    hint="Which operand has to be gathered? Each chip sends (n − 1)/n of its bytes. "
    "How fast can a chip send if the ring runs in both directions?",
    solution="""
        Only $W$ is split along the contraction (case 2), so each chip gathers $W$ over
        its two links.

        ```python
        from shardmath.hardware import chips

        V = 2 * 8192 * 16_384
        seconds = V * 7 / 8 / (2 * chips.TPU_V5P.link_bandwidth)
        ```
    """,
)


def _crossing() -> float:
    line = "bf16[B_X, D] · int8[D_X, F] -> bf16[B_X, F]"
    (cross,) = contract(line, RING, B=1024, D=4096, F=14_336).crossings("B")
    return cross.size


CROSSING = Number(
    id="06.5",
    title="Weights or activations",
    task=r"""
        **Given** $A[B_X, D] \cdot W[D_X, F] \to C[B_X, F]$ with $D = 4096$,
        $F = 14{,}336$ and $|X| = 8$. The weights are stored and gathered in int8, and
        the activations and the result are in bf16.

        **Wanted** the number of tokens $B$, over all the chips, at which a chip sends
        the same number of bytes whether the weights or the activations move.
    """,
    stub="tokens = ...",
    unit="tokens",
    expected=_crossing,
    slips=(
        scaled(
            "formats forgotten",
            2,
            "Did you use the same format for both? A weight takes one byte here, and "
            "an activation takes two.",
        ),
        scaled(
            "formats swapped",
            4,
            "Did you swap the formats? Smaller weights are cheaper to send, so moving "
            "them pays off with fewer tokens.",
        ),
        Slip(
            "AllToAll left out",
            lambda right: 4096 / 2,
            "Did you leave out the AllToAll? The activations have to travel before "
            "they can be multiplied.",
        ),
        Slip(
            "the rule alone",
            lambda right: 4096,
            "The two plans are equal near B = D only if weights and activations have "
            "the same format. Here they don't.",
        ),
        Slip(
            "an AllReduce",
            lambda right: 4096 * 14_336 / (4096 / 8 + 2 * 14_336) / 2,
            "The result may stay scattered over the tokens, so no chip needs all the "
            "sums.",
        ),
        Slip(
            "an AllGather of the activations",
            lambda right: 4096 * 14_336 / (14_336 + 4096) / 2,
            "No chip needs the whole array when a split moves from one dimension to "
            "another.",
        ),
    ),
    hint="Set the bytes of an AllGather of W equal to those of an AllToAll of A and a "
    "ReduceScatter of C.",
    solution="""
        Moving the weights takes an AllGather of $W$. Moving the activations takes an
        AllToAll of $A$ and a ReduceScatter of $C$. The factor $(n-1)/n$ is on both
        sides and cancels, so $1 \\cdot D F = 2\\,(D / n + F)\\,B$.

        ```python
        D, F, n = 4096, 14_336, 8
        tokens = D * F / (2 * (D / n + F))
        ```
    """,
)


def _two_axes() -> float:
    line = "A[B_X, D_Y] · W[D_X, F_Y] -> C[B_X, F_Y]"
    op = contract(line, {"X": 16, "Y": 4}, B=4096, D=8192, F=32_768)
    return next(c.sent for c in op.collectives if c.axes == ("X",))


TWO_AXES = Number(
    id="06.6",
    title="Two axes at once",
    task=r"""
        **Given** $A[B_X, D_Y] \cdot W[D_X, F_Y] \to C[B_X, F_Y]$ in bf16 with
        $B = 4096$, $D = 8192$, $F = 32{,}768$, $|X| = 16$, $|Y| = 4$.

        **Wanted** the number of bytes that each chip sends over $X$.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=_two_axes,
    slips=(
        scaled(
            "Y forgotten",
            4,
            "The columns of W stay split over Y, so a chip gathers only its own "
            "columns.",
        ),
        scaled(
            "own part sent too",
            16 / 15,
            "A chip doesn't have to send anything to itself, so one of the n parts "
            "stays where it is.",
        ),
        scaled(
            "a chip's share",
            1 / 16,
            "That is about what a chip holds before the gather. How many bytes does it "
            "send until every chip has all the parts?",
        ),
        Slip(
            "the traffic over Y alone",
            lambda right: 2 * 4096 * 8192 / 16 * 3 / 4,
            "That is the gather of the activations over Y. The question asks for the "
            "bytes over X.",
        ),
        Slip(
            "the traffic over Y, too",
            lambda right: right + 2 * 4096 * 8192 / 16 * 3 / 4,
            "Did you add the gather of the activations over Y? The question asks for "
            "the bytes over X alone.",
        ),
    ),
    hint="For the weights, X is case 2. How large is the array that a group of chips "
    "along X gathers?",
    solution="""
        $X$ splits the contraction only in $W[D_X, F_Y]$, so the rows of $W$ are
        gathered over $X$. Its columns stay split over $Y$.

        ```python
        V = 2 * 8192 * 32_768 / 4
        nbytes = V * 15 / 16
        ```
    """,
)

HIDDEN = Number(
    id="06.7",
    title="A gather that hides",
    task=r"""
        **Given** $A[B_X, D] \cdot W[D, F_X] \to C[B, F_X]$ in bf16, on a ring of 16
        Trillium chips (`chips.TPU_V6E`). In each step, a chip multiplies one block of
        $A$ at its peak and sends it to the next chip at the same time.

        **Wanted** the smallest $F$ at which a step's math takes at least as long as
        sending the block.
    """,
    given=stated(chips.TPU_V6E, "flops.bf16", "link_bandwidth"),
    stub="F = ...",
    unit="columns",
    expected=lambda: 16 * chips.TPU_V6E.flops["bf16"] / chips.TPU_V6E.link_bandwidth,
    slips=(
        scaled(
            "on one chip",
            1 / 16,
            "That is the number of columns that each chip needs. F counts the columns "
            "of all the chips.",
        ),
        slips.both_directions(1 / 2),
        Slip(
            "HBM for the link",
            lambda right: 16 * chips.TPU_V6E.intensity("bf16"),
            "You divided by the bandwidth of the HBM. Over what do the blocks travel?",
        ),
        slips.other_link(chips.TPU_V6E.fact("link_bandwidth"), -1),
        slips.half_of_other_link(chips.TPU_V6E.fact("link_bandwidth"), -1),
    ),
    hint="In each step, a chip multiplies a block of tokens by F/n columns, for n "
    "chips, and sends the block once. What cancels if the math and the network take "
    "equally long?",
    solution="""
        In each step, a chip computes $2 (B/n) D (F/n)$ FLOPs and sends $2 (B/n) D$
        bytes. At the peak rate $C_\\text{peak}$, the math and the network take equally
        long if $F / n = C_\\text{peak} / W_\\text{link}$.

        ```python
        from shardmath.hardware import chips

        F = 16 * chips.TPU_V6E.flops["bf16"] / chips.TPU_V6E.link_bandwidth
        ```
    """,
)


def _case(in_a: str, in_b: str) -> int:
    if "J" in (in_a, in_b):
        return 3 if in_a == in_b else 2
    return 4 if in_a and in_b else 1


def _case_either_alone(in_a: str, in_b: str) -> int:
    if in_a == in_b == "J":
        return 3
    return 2 if "J" in (in_a, in_b) and "" in (in_a, in_b) else 1


CASE = Function(
    id="06.8",
    title="Which case is it?",
    task=r"""
        **Given** $A[I, J] \cdot_J B[J, K]$ and one mesh axis. `in_a` is the dimension
        of $A$ that the axis splits: `"I"`, `"J"`, or `""` if it splits neither. In the
        same way, `in_b` is `"J"`, `"K"` or `""` for $B$.

        **Wanted** a function that returns the number of the case, from 1 to 4.
    """,
    stub="def case(in_a, in_b): ...",
    spec=_case,
    gives=(("the case", ""),),
    cases=lambda rng: (rng.choice(["I", "J", ""]), rng.choice(["J", "K", ""])),
    examples=(("I", "K"), ("J", "J"), ("I", "J"), ("J", "K"), ("", "")),
    slips=(
        Slip(
            "case 4 forgotten",
            lambda in_a, in_b: {4: 1}.get(_case(in_a, in_b), _case(in_a, in_b)),
            "An axis that splits I in A can still be in the way. What must it not "
            "split in B?",
        ),
        Slip(
            "case 3 forgotten",
            lambda in_a, in_b: {3: 2}.get(_case(in_a, in_b), _case(in_a, in_b)),
            "Does either operand have to be gathered if both are split along J?",
        ),
        Slip(
            "split elsewhere",
            _case_either_alone,
            "The axis may split one operand along J and the other along another "
            "dimension. What does a chip still need for the product?",
        ),
    ),
    hint="Is J split in neither operand, in one, or in both? Look at I and K only if "
    "J is split in neither.",
    solution="""
        A split along $J$ decides. Without one, the axis is in the way only if it splits
        both $I$ and $K$.

        ```python
        def case(in_a, in_b):
            if in_a == "J" and in_b == "J":
                return 3
            if in_a == "J" or in_b == "J":
                return 2
            return 4 if in_a and in_b else 1
        ```
    """,
)


def _both_plans(B: int, D: int, F: int, n: int) -> list[float]:
    share = (n - 1) / n
    return [2 * D * F * share, 2 * (D / n + F) * B * share]


PLANS = Function(
    id="06.9",
    title="The bytes of both plans",
    task=r"""
        **Given** $A[B_X, D] \cdot W[D_X, F] \to C[B_X, F]$ in bf16 and $n = |X|$.

        **Wanted** a function that returns a pair: the number of bytes that each chip
        sends if the weights travel, and the number that it sends if the activations
        travel.
    """,
    stub="def plans(B, D, F, n): ...",
    spec=_both_plans,
    gives=(("weights", "bytes"), ("activations", "bytes")),
    cases=lambda rng: (
        64 * rng.randint(1, 64),
        64 * rng.randint(1, 64),
        64 * rng.randint(1, 64),
        rng.choice([2, 4, 8, 16]),
    ),
    examples=((64, 64, 64, 1),),
    slips=(
        Slip(
            "own part sent too",
            lambda B, D, F, n: [2 * D * F, 2 * (D / n + F) * B],
            "One of the n parts stays where it is. Try your function with a single "
            "chip.",
        ),
        Slip(
            "an AllReduce",
            lambda B, D, F, n: [
                2 * D * F * (n - 1) / n,
                2 * (D / n + 2 * F) * B * (n - 1) / n,
            ],
            "The result may stay scattered over the tokens, so no chip needs all the "
            "sums.",
        ),
        Slip(
            "AllToAll left out",
            lambda B, D, F, n: [2 * D * F * (n - 1) / n, 2 * F * B * (n - 1) / n],
            "Did you leave out the AllToAll? The activations have to travel before "
            "they can be multiplied.",
        ),
        Slip(
            "one byte per value",
            lambda B, D, F, n: [v / 2 for v in _both_plans(B, D, F, n)],
            "A value in bf16 takes two bytes.",
        ),
        Slip(
            "the result divided by n",
            lambda B, D, F, n: [
                2 * D * F * (n - 1) / n,
                2 * (D / n + F / n) * B * (n - 1) / n,
            ],
            "Every chip has a partial sum for the whole of C, with B × F values, and "
            "the ReduceScatter adds up all of these. Only A is already in n parts when "
            "it is sent.",
        ),
        Slip(
            "the other way round",
            lambda B, D, F, n: _both_plans(B, D, F, n)[::-1],
            "In the pair, the weights come first and the activations second.",
        ),
        Slip(
            "AllToAll as a gather",
            lambda B, D, F, n: [
                2 * D * F * (n - 1) / n,
                2 * (D + F) * B * (n - 1) / n,
            ],
            "In an AllToAll, a chip sends only 1/n of its own part to each other chip.",
        ),
    ),
    hint=(
        "The first plan is an AllGather of W. The second is an AllToAll of A and "
        "then a ReduceScatter of C. How many bytes does a chip send for each of "
        "these?"
    ),
    solution="""
        Each chip has only $1/n$ of $A$ to send, but its partial sum is as large as all
        of $C$.

        ```python
        def plans(B, D, F, n):
            share = (n - 1) / n
            return 2 * D * F * share, 2 * (D / n + F) * B * share
        ```
    """,
)


# Programs. Values are float32: four bytes each.


def _matmul_shapes(rng):
    I, J, K = (8 * rng.randint(2, 6) for _ in range(3))
    return (I, J), (J, K)


NOTHING = Sharded(
    id="06.10",
    title="Nothing moves",
    task="""
        **Given** $A[I, J]$ and $B[J, K]$, whole on every device.

        **Wanted** a function of the whole arrays that returns the product $C[I_X, K]$
        and compiles to no collective at all. The types of the arrays carry their
        shardings.
    """,
    stub="def product(a, b): ...",
    mesh=RING,
    shapes=_matmul_shapes,
    in_specs=((), ()),
    out_spec=("X", None),
    spec=lambda a, b: a @ b,
    collectives=lambda a, b: [],
    view="explicit",
    hint="The type of the result must be sharded. How can you tell `jnp.einsum`, which "
    "takes an `out_sharding`?",
    solution="""
        Every device has all of $A$ and $B$, so it can compute its rows of $C$ without
        receiving anything from another device.

        ```python
        def product(a, b):
            return jnp.einsum("ij,jk->ik", a, b, out_sharding=jax.P("X", None))
        ```
    """,
)


def _sum_shapes(rng):
    (a, b), (c, d) = _matmul_shapes(rng)
    return (a, b), (c, d), (a, b), (c, d)


ONE_SUM = Sharded(
    id="06.11",
    title="Two products, one AllReduce",
    task="""
        **Given** $A[I, J_X]$ and $B[J_X, K]$, and $C$ and $D$ with the same shapes and
        shardings.

        **Wanted** a function of the whole arrays that returns $A B + C D$, whole on
        every device, and compiles to exactly one AllReduce, of $4 I K$ bytes.
    """,
    stub="def both(a, b, c, d): ...",
    mesh=RING,
    shapes=_sum_shapes,
    in_specs=((None, "X"), ("X", None), (None, "X"), ("X", None)),
    out_spec=(None, None),
    spec=lambda a, b, c, d: a @ b + c @ d,
    collectives=lambda a, b, c, d: [
        Collective("all_reduce", ("X",), 4 * a[0] * b[1], 8)
    ],
    view="explicit",
    slips=(
        Slip(
            "each product finished",
            lambda a, b, c, d: [
                Collective("all_reduce", ("X",), 4 * a[0] * b[1], 8, times=2)
            ],
            "Your program sums each product over the devices on its own. What can a "
            "device do with its two partial sums before that?",
        ),
    ),
    values=(
        Slip(
            "only the first product",
            lambda a, b, c, d: a @ b,
            "Did you leave out the product C D?",
        ),
        Slip(
            "only the second product",
            lambda a, b, c, d: c @ d,
            "Did you leave out the product A B?",
        ),
    ),
    hint='`jax.P(None, None, unreduced={"X"})` leaves a sum open, and `jax.reshard` '
    "finishes it. Does each product have to be finished before you add the two?",
    solution="""
        The sum of two partial sums is a partial sum of $A B + C D$, so one AllReduce is
        enough.

        ```python
        def both(a, b, c, d):
            open_ = jax.P(None, None, unreduced={"X"})
            first = jnp.einsum("ij,jk->ik", a, b, out_sharding=open_)
            second = jnp.einsum("ij,jk->ik", c, d, out_sharding=open_)
            return jax.reshard(first + second, jax.P(None, None))
        ```
    """,
)

SCATTERED = Sharded(
    id="06.12",
    title="Half of an AllReduce",
    task="""
        **Given** each device's part of $A[I, J_X]$ and $B[J_X, K]$.

        **Wanted** the function that every device runs. It returns the device's part of
        $C[I, K_X]$ and compiles to exactly one ReduceScatter.
    """,
    stub="def scattered(a, b): ...",
    mesh=RING,
    shapes=_matmul_shapes,
    in_specs=((None, "X"), ("X", None)),
    out_spec=(None, "X"),
    spec=lambda a, b: a @ b,
    collectives=lambda a, b: [Collective("reduce_scatter", ("X",), 4 * a[0] * b[1], 8)],
    slips=(
        Slip(
            "sum, then slice",
            lambda a, b: [Collective("all_reduce", ("X",), 4 * a[0] * b[1], 8)],
            "Every device gets the whole sum and throws most of it away.",
        ),
        Slip(
            "operands gathered",
            lambda a, b: [
                Collective("all_gather", ("X",), 4 * math.prod(a), 8),
                Collective("all_gather", ("X",), 4 * math.prod(b), 8),
            ],
            "Your program gathers both operands, so every device computes everything.",
        ),
    ),
    hint="`jax.lax.psum_scatter` adds up the devices' partial sums and scatters the "
    "result. Which dimension of the result is split?",
    solution="""
        A device's product is a partial sum of $C$, and the device needs only its
        columns of the total.

        ```python
        def scattered(a, b):
            return jax.lax.psum_scatter(a @ b, "X", scatter_dimension=1, tiled=True)
        ```
    """,
)

TRAVEL = Sharded(
    id="06.13",
    title="The activations travel",
    task="""
        **Given** each device's part of $A[B_X, D]$ and $W[D_X, F]$.

        **Wanted** the function that every device runs. It returns the device's part of
        $C[B_X, F]$. The weights stay where they are, and the function compiles to
        exactly one AllToAll of $A$ and one ReduceScatter of $C$.
    """,
    stub="def travel(a, w): ...",
    mesh=RING,
    shapes=_matmul_shapes,
    in_specs=(("X", None), ("X", None)),
    out_spec=("X", None),
    spec=lambda a, w: a @ w,
    collectives=lambda a, w: [
        Collective("all_to_all", ("X",), 4 * math.prod(a), 8),
        Collective("reduce_scatter", ("X",), 4 * a[0] * w[1], 8),
    ],
    slips=(
        Slip(
            "the weights travel",
            lambda a, w: [Collective("all_gather", ("X",), 4 * math.prod(w), 8)],
            "Your program moves the weights, but here they must stay where they are.",
        ),
        Slip(
            "activations gathered",
            lambda a, w: [
                Collective("all_gather", ("X",), 4 * math.prod(a), 8),
                Collective("reduce_scatter", ("X",), 4 * a[0] * w[1], 8),
            ],
            "Your program gathers all of A. A device needs all the tokens, but only "
            "its own part of D.",
        ),
        Slip(
            "sum, then slice",
            lambda a, w: [
                Collective("all_to_all", ("X",), 4 * math.prod(a), 8),
                Collective("all_reduce", ("X",), 4 * a[0] * w[1], 8),
            ],
            "Every device gets the whole sum and throws most of it away.",
        ),
    ),
    hint="First turn A[B_X, D] into A[B, D_X]. Which collective moves a split from "
    "one dimension to another?",
    solution="""
        After the AllToAll, a device has its part of $D$ for all tokens and computes a
        partial sum of $C$.

        ```python
        def travel(a, w):
            a = jax.lax.all_to_all(a, "X", 1, 0, tiled=True)
            return jax.lax.psum_scatter(a @ w, "X", scatter_dimension=0, tiled=True)
        ```
    """,
)


def _layer_shapes(rng):
    B, D, F = (8 * rng.randint(2, 5) for _ in range(3))
    return (B, D), (D, 2 * F), (2 * F, D)


LAYER = Sharded(
    id="06.14",
    title="A layer of two matmuls",
    task=r"""
        **Given** each device's part of $A[B, D_X]$, $W_1[D, F_X]$ and $W_2[F_X, D]$.

        **Wanted** the function that every device runs. It returns the device's part of
        $\max(A W_1, 0)\,W_2$ as $C[B, D_X]$ and compiles to exactly one AllGather, of
        $4 B D$ bytes, and one ReduceScatter.
    """,
    stub="def layer(a, w1, w2): ...",
    mesh=RING,
    shapes=_layer_shapes,
    in_specs=((None, "X"), (None, "X"), ("X", None)),
    out_spec=(None, "X"),
    spec=lambda a, w, v: (a @ w).clip(0) @ v,
    collectives=lambda a, w, v: [
        Collective("all_gather", ("X",), 4 * math.prod(a), 8),
        Collective("reduce_scatter", ("X",), 4 * a[0] * v[1], 8),
    ],
    slips=(
        Slip(
            "sum, then slice",
            lambda a, w, v: [
                Collective("all_gather", ("X",), 4 * math.prod(a), 8),
                Collective("all_reduce", ("X",), 4 * a[0] * v[1], 8),
            ],
            "Every device gets the whole sum and throws most of it away.",
        ),
        Slip(
            "hidden layer gathered",
            lambda a, w, v: [
                Collective("all_gather", ("X",), 4 * math.prod(a), 8),
                Collective("all_gather", ("X",), 4 * a[0] * w[1], 8),
                Collective("reduce_scatter", ("X",), 4 * a[0] * v[1], 8),
            ],
            "Your program gathers the result of the first matmul. It is split in the "
            "same way as the rows of W₂, so it can stay split.",
        ),
    ),
    values=(
        Slip(
            "no activation",
            lambda a, w, v: a @ w @ v,
            "That is the product of all three matrices. Between the two matmuls, "
            "negative values must become zero.",
        ),
    ),
    hint="Which case is each of the two matmuls? Nothing has to move between them.",
    solution="""
        In the first matmul, the contraction is split only in $A$. This is case 2, and
        $A$ is gathered. In the second, it is split both in $W_2[F_X, D]$ and in
        $H[B, F_X]$, the result of the first. This is case 3, and the sum is scattered.

        ```python
        def layer(a, w1, w2):
            a = jax.lax.all_gather(a, "X", axis=1, tiled=True)
            h = jax.nn.relu(a @ w1)
            return jax.lax.psum_scatter(h @ w2, "X", scatter_dimension=1, tiled=True)
        ```
    """,
)

RING_SUM = Sharded(
    id="06.15",
    title="A sum that travels around the ring",
    task="""
        **Given** each device's part of $A[I, J_X]$ and $B[J_X, K]$ on eight devices.

        **Wanted** the function that every device runs. It returns the device's part of
        the product $C[I_X, K]$, and the sums travel around the ring while the devices
        multiply. The function compiles to exactly seven permutes of $4 I K / 8$ bytes
        each. The result and the bytes are graded, but not whether a sum starts to
        travel before the last product is computed.
    """,
    stub="def ring(a, b): ...",
    mesh=RING,
    shapes=_matmul_shapes,
    in_specs=((None, "X"), ("X", None)),
    out_spec=("X", None),
    spec=lambda a, b: a @ b,
    collectives=lambda a, b: [
        Collective("permute", ("X",), 4 * a[0] * b[1] / 8, 8, times=7)
    ],
    slips=(
        Slip(
            "one ReduceScatter",
            lambda a, b: [Collective("reduce_scatter", ("X",), 4 * a[0] * b[1], 8)],
            "A ReduceScatter sends as many bytes, but it starts only after the whole "
            "product is computed.",
        ),
        Slip(
            "all the way round",
            lambda a, b: [
                Collective("permute", ("X",), 4 * a[0] * b[1] / 8, 8, times=8)
            ],
            "A sum that has visited all eight devices is finished, so it doesn't have "
            "to be sent again.",
        ),
        Slip(
            "whole products sent",
            lambda a, b: [Collective("permute", ("X",), 4 * a[0] * b[1], 8, times=7)],
            "Your program sends sums for all the rows. Each step should send the sum "
            "for only one block of rows.",
        ),
    ),
    neighbours=True,
    hint="The sum for a device starts on the next device and travels around the ring "
    "to the device that it is for. Every device that it visits adds its own product "
    "for those rows. Which rows does device d add in the first step?",
    solution="""
        The sum for device $d$ starts on device $d + 1$ and ends on device $d$. So in
        step $s$, counted from 0, device $d$ adds to the sum for device $d - 1 - s$,
        counted around the ring.

        ```python
        def ring(a, b):
            n, me, rows = 8, jax.lax.axis_index("X"), a.shape[0] // 8
            hop = [(i, (i + 1) % n) for i in range(n)]
            total = jnp.zeros((rows, b.shape[1]))
            for step in range(n):
                if step:
                    total = jax.lax.ppermute(total, "X", hop)
                at = (me - 1 - step) % n * rows
                block = jax.lax.dynamic_slice_in_dim(a, at, rows, axis=0)
                total = total + block @ b
            return total
        ```
    """,
)


# Several steps.

_CUBE = Mesh(Torus(chips.TPU_V4, (4, 4, 4)), {"X": 4, "Y": 4, "Z": 4})


_COLUMNS = 2 * 8192 * 32_768 / 4  # bytes of the weights that a chip multiplies
_A_TOKEN = _COLUMNS / 16 / chips.TPU_V4.flops["bf16"]  # seconds of math


def _hidden_gather() -> float:
    return all_gather(_COLUMNS, _CUBE, ("X", "Z")).bandwidth_seconds / _A_TOKEN


_PER_BYTE = chips.TPU_V4.flops["bf16"] / chips.TPU_V4.link_bandwidth

HIDDEN_GATHER = Number(
    id="06.16",
    title="Copies that help to gather",
    points=2,
    task=r"""
        **Given** $A[B_{XZ}, D] \cdot W[D_X, F_Y] \to C[B_{XZ}, F_Y]$ in bf16 with
        $D = 8192$, $F = 32{,}768$, on $4 \times 4 \times 4$ TPU v4 chips. $X$, $Y$ and
        $Z$ are the three sides, and each is a closed ring. A chip sends in both
        directions of a ring at once, at `chips.TPU_V4.link_bandwidth` in each. The
        links of $Y$ carry other traffic. One AllGather fetches the weights, and it runs
        as fast as the links of $X$ and $Z$ allow.

        **Wanted** the smallest number of tokens $B$, over all the chips, at which the
        gather can hide behind the product. The math of the product runs at the peak.
        Leave out the latency of the hops.
    """,
    given=stated(chips.TPU_V4, "flops.bf16", "link_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    rtol=0.002,
    expected=_hidden_gather,
    slips=(
        Slip(
            "links of Z unused",
            lambda right: 6 * _PER_BYTE,
            "The chips along Z hold copies of the weights. What can each of them "
            "drop, and then fetch back over the links of Z?",
        ),
        Slip(
            "bytes of X alone",
            lambda right: 3 * _PER_BYTE,
            "If the links of Z help, 16 chips take part in the AllGather. Which share "
            "of the bytes does each of them send?",
        ),
        slips.one_direction(2),
        scaled(
            "tokens of a chip",
            1 / 16,
            "That is the number of tokens that each chip multiplies. B counts the "
            "tokens of all the chips.",
        ),
        scaled(
            "Y forgotten",
            4,
            "The columns of W stay split over Y, so a chip gathers only its own "
            "columns.",
        ),
        scaled(
            "columns of all chips",
            1 / 4,
            "The product is split over Y, too, so a chip computes only its own "
            "columns.",
        ),
        scaled(
            "own part sent too",
            16 / 15,
            "A chip doesn't have to send anything to itself, so one of the n parts "
            "stays where it is.",
        ),
        Slip(
            "latency too",
            lambda right: right + 4 * HOP / _A_TOKEN,
            "Did you count the latency of the hops? It is left out here.",
        ),
    ),
    hint="Suppose each chip drops all but its part of the split over X and Z. How much "
    "of its columns does it then lack, and over how many rings does that arrive? D and "
    "F cancel.",
    solution="""
        The chips along $Z$ hold copies of $W[D_X, F_Y]$. Each chip drops all but its
        part, $W[D_{XZ}, F_Y]$, without sending anything. Then 16 chips gather over two
        rings, each in both directions:

        ```python
        from shardmath.hardware import chips

        D, F = 8192, 32_768
        V = 2 * D * F / 4
        gather = V * 15 / 16 / (2 * 2 * chips.TPU_V4.link_bandwidth)
        math_of_a_token = 2 * D * F / 4 / 16 / chips.TPU_V4.flops["bf16"]
        tokens = gather / math_of_a_token
        ```

        A gather over $X$ alone would take 1.6 times as many tokens. If the chips kept
        the quarter that they already hold, which a single AllGather doesn't allow, 0.8
        times as many tokens would be enough.
    """,
)


def _fewest(B: int, D: int, F: int, n: int) -> float:
    share = (n - 1) / n
    weights = 2 * D * F * share
    sums = 2 * (2 * B * F) * share
    columns = (2 * D * F / n + 2 * B * F) * share
    return min(weights, sums, columns)


def _without_columns(B: int, D: int, F: int, n: int) -> float:
    return min(2 * D * F, 4 * B * F) * (n - 1) / n


FEWEST = Function(
    id="06.17",
    title="The fewest bytes for the whole result",
    points=2,
    task=r"""
        **Given** $A[B, D] \cdot W[D_X, F] \to C[B, F]$ in bf16 and $n = |X|$. Every
        chip has all the tokens, and every chip needs the whole result. There are three
        plans. You can gather the weights. You can let each chip multiply by the weights
        that it already has, and add up the partial results of all chips. Or you can
        reshard the weights so that they are split by columns, multiply, and gather the
        columns of the result.

        **Wanted** a function that returns the number of bytes that each chip sends in
        the plan that sends the fewest.
    """,
    stub="def fewest(B, D, F, n): ...",
    spec=_fewest,
    gives=(("what each chip sends", "bytes"),),
    cases=lambda rng: (
        64 * rng.randint(1, 64),
        64 * rng.randint(16, 64),
        64 * rng.randint(1, 64),
        rng.choice([2, 4, 8, 16]),
    ),
    examples=((64, 1024, 64, 8), (512, 1024, 64, 8), (4096, 1024, 64, 8)),
    slips=(
        Slip(
            "the third plan left out, or its AllToAll as a gather",
            _without_columns,
            "There is a third plan: if the columns of the weights are split, the "
            "product needs no collective. An AllToAll reshards them in this way and "
            "sends only 1/n of the bytes of a gather.",
        ),
        Slip(
            "one of two rounds",
            lambda B, D, F, n: min(2 * D * F, 2 * B * F) * (n - 1) / n,
            "You counted a ReduceScatter. But every chip needs the whole result.",
        ),
        Slip(
            "own part sent too",
            lambda B, D, F, n: min(2 * D * F, 4 * B * F, 2 * D * F / n + 2 * B * F),
            "A chip doesn't have to send anything to itself, so one of the n parts "
            "stays where it is.",
        ),
        Slip(
            "one byte per value",
            lambda B, D, F, n: _fewest(B, D, F, n) / 2,
            "A value in bf16 takes two bytes.",
        ),
    ),
    hint="Write each plan as a series of collectives and add up the bytes. The third "
    "plan has an AllToAll of the weights and an AllGather of the result.",
    solution="""
        The first plan is an AllGather of the weights, and the second is an AllReduce of
        $C[B, F]$. The third is an AllToAll of the weights to $W[D, F_X]$, a product
        that needs no collective (case 1), and an AllGather of $C[B, F_X]$. The third
        plan wins where $B$ is neither small nor large.

        ```python
        def fewest(B, D, F, n):
            share = (n - 1) / n
            gather = 2 * D * F
            finish = 2 * 2 * B * F
            turn = 2 * D * F / n + 2 * B * F
            return min(gather, finish, turn) * share
        ```
    """,
)

GRID = {"X": 4, "Y": 2}


def _grid_shapes(rng):
    B, D, F = (8 * rng.randint(2, 5) for _ in range(3))
    return (B, D), (D, F)


def _gathered_weights(a, w) -> Collective:
    return Collective("all_gather", ("X",), 4 * math.prod(w) / 2, 4)


TWO_STEPS = Sharded(
    id="06.18",
    title="Two axes, two collectives",
    points=2,
    task=r"""
        **Given** each device's part of $A[B_X, D_Y]$ and $W[D_{YX}, F]$ on a mesh with
        $|X| = 4$, $|Y| = 2$.

        **Wanted** the function that every device runs. It returns the device's part of
        $C[B_X, F_Y]$ and compiles to exactly one AllGather over $X$, which leaves
        $W[D_Y, F]$, and one ReduceScatter over $Y$, of $4\,(B/4)\,F$ bytes.
    """,
    stub="def step(a, w): ...",
    mesh=GRID,
    shapes=_grid_shapes,
    in_specs=(("X", "Y"), (("Y", "X"), None)),
    out_spec=("X", "Y"),
    spec=lambda a, w: a @ w,
    collectives=lambda a, w: [
        _gathered_weights(a, w),
        Collective("reduce_scatter", ("Y",), a[0] * w[1], 2),
    ],
    slips=(
        Slip(
            "sum, then slice",
            lambda a, w: [
                _gathered_weights(a, w),
                Collective("all_reduce", ("Y",), a[0] * w[1], 2),
            ],
            "Both devices of a pair get the whole sum, and each throws half of it "
            "away.",
        ),
        Slip(
            "weights gathered over both axes",
            lambda a, w: [
                Collective("all_gather", ("X", "Y"), 4 * math.prod(w), 8),
                Collective("all_gather", ("Y",), math.prod(a), 2),
            ],
            "Your program gathers both operands over Y. But Y splits the contraction "
            "in both of them. Which case is that?",
        ),
        Slip(
            "everything gathered, axis by axis",
            lambda a, w: [
                _gathered_weights(a, w),
                Collective("all_gather", ("Y",), 4 * math.prod(w), 2),
                Collective("all_gather", ("Y",), math.prod(a), 2),
            ],
            "Your program gathers both operands, so nothing is left to add up. But Y "
            "splits the contraction in both of them. Which case is that?",
        ),
    ),
    hint="Which case is it on each axis? D is cut over Y first, and then each part is "
    "cut over X. Over which of the two axes must the parts of W be gathered?",
    solution="""
        $X$ splits the contraction in $W$ but not in $A$. This is case 2, and the
        weights are gathered. $X$ is the minor axis of $D_{YX}$, so the parts along it
        are neighbours in $D$, and the gather leaves $W[D_Y, F]$. $Y$ splits the
        contraction in both operands. This is case 3, and the sum is scattered. With
        $D_{XY}$, the same gather would put together rows that don't belong to the
        columns of $A$ on that device.

        ```python
        def step(a, w):
            w = jax.lax.all_gather(w, "X", axis=0, tiled=True)
            return jax.lax.psum_scatter(a @ w, "Y", scatter_dimension=1, tiled=True)
        ```
    """,
)
