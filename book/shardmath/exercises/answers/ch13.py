"""Questions of chapter 13, "Expert parallelism"."""

import math

from shardmath.collectives import Collective
from shardmath.exercises.kinds import (
    Chapter,
    Function,
    Number,
    Sharded,
    Slip,
    scaled,
    stated,
)
from shardmath.hardware import chips
from shardmath.transformer import DEEPSEEK_V3, QWEN_3_235B_A22B

CHAPTER = Chapter(
    title="Expert parallelism",
    topics=(
        "expert parallelism: slots, capacity and balance, what the exchange sends and "
        "takes, nodes and fp8, FSDP against it, and three programs graded on what they "
        "compile to"
    ),
    intro="""
        from the bytes of one layer to the choice between moving tokens and moving
        weights. Answers are in base units: bytes, seconds, tokens.

        13.8 to 13.10 are programs for eight virtual devices. They are graded on their
        result and on what XLA compiles them to, array by array.
    """,
    setup="""
        import math

        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

EIGHT = {"X": 8}
OWN_PART = "A chip need not send anything to itself: one part of n stays."

_LAYER = 4 * 8 * 2 * 4096 * DEEPSEEK_V3.D * 7 / 8

LAYER_BYTES = Number(
    id="13.1",
    title="What a layer moves",
    task="""
        **Given** one layer of DeepSeek-V3, $D = 7168$, with 8 experts a token, over 8
        chips with 4,096 tokens each, in bf16. Nothing is dropped, no slot is empty,
        nothing is computed again, and experts are chosen evenly.

        **Wanted** the bytes that each chip sends in both passes together, one copy of a
        token for each expert.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _LAYER,
    slips=(
        scaled(
            "one pass, or one byte a value",
            1 / 2,
            "Both passes send tokens there and back, in two bytes a value.",
        ),
        scaled(
            "the dispatch alone",
            1 / 4,
            "What the experts make of the tokens comes home, and the gradients travel "
            "the same two ways.",
        ),
        scaled("one copy", 1 / 8, "A token goes to eight experts, one copy to each."),
        scaled("own part sent too", 8 / 7, OWN_PART),
        scaled("full remat", 6 / 4, "That is with the layer computed again."),
        scaled(
            "all tokens",
            8,
            "Each chip sends its own tokens; those of the others they send themselves.",
        ),
    ),
    hint="Two AllToAlls in each pass. How large is a chip's part of each?",
    solution="""
        ```python
        own = 4096 * 8 * 2 * 7168  # bytes of a chip's copies
        nbytes = 4 * own * 7 / 8
        ```
    """,
)


def _slots(f: float, k: int, t: int, E: int) -> list:
    slots = math.ceil(f * k * t / E)
    return [slots, slots * E / (k * t)]


SLOTS = Function(
    id="13.2",
    title="Slots",
    task="""
        **Given** a capacity factor $f$, $k$ experts a token, $t$ tokens on a chip and
        $E$ experts.

        **Wanted** a function that returns a pair: the slots that a chip has for each
        expert, and how many times as many slots as choices it then has in all.
    """,
    stub="def slots(f, k, t, E): ...",
    spec=_slots,
    gives=(("slots for each expert", ""), ("slots over choices", "")),
    cases=lambda rng: (
        rng.choice([1.0, 1.25, 1.5, 2.0]),
        rng.randint(1, 8),
        rng.randint(100, 5000),
        rng.choice([8, 16, 64, 256]),
    ),
    examples=((1.25, 2, 1000, 16), (1.0, 8, 4096, 256)),
    slips=(
        Slip(
            "rounded down",
            lambda f, k, t, E: [int(f * k * t / E), int(f * k * t / E) * E / (k * t)],
            "Half a slot holds no token: round up, or an even choice would drop some.",
        ),
        Slip(
            "one expert a token",
            lambda f, k, t, E: [math.ceil(f * t / E), math.ceil(f * t / E) * E / t],
            "Every token makes k choices.",
        ),
        Slip(
            "the factor itself",
            lambda f, k, t, E: [math.ceil(f * k * t / E), f],
            "Rounding up makes it a little more than f.",
        ),
    ),
    hint="k · t choices, E experts.",
    solution="""
        ```python
        def slots(f, k, t, E):
            each = math.ceil(f * k * t / E)
            return each, each * E / (k * t)
        ```
    """,
)


def _dropped(loads: list, f: float) -> float:
    slots = math.ceil(f * sum(loads) / len(loads))
    return sum(max(0, load - slots) for load in loads) / sum(loads)


def _no_ceiling(loads: list, f: float) -> float:
    slots = f * sum(loads) / len(loads)
    return sum(max(0, load - slots) for load in loads) / sum(loads)


def _rounded_down(loads: list, f: float) -> float:
    slots = math.floor(f * sum(loads) / len(loads))
    return sum(max(0, load - slots) for load in loads) / sum(loads)


DROPPED = Function(
    id="13.3",
    title="Dropped",
    task="""
        **Given** how many choices of one chip's tokens fall on each expert, `loads`,
        and a capacity factor `f`.

        **Wanted** a function that returns the share of all choices that is dropped.
    """,
    stub="def dropped(loads, f): ...",
    spec=_dropped,
    gives=(("share of the choices", ""),),
    cases=lambda rng: (
        [rng.randint(0, 90) for _ in range(rng.choice([4, 8, 16]))] + [101],
        rng.choice([1.0, 1.25, 1.5, 2.0, 4.0]),
    ),
    examples=(([40, 10, 10, 5], 1.0), ([40, 10, 10, 5], 2.0), ([7, 7, 7, 7], 1.25)),
    slips=(
        Slip(
            "share of the experts",
            lambda loads, f: (
                sum(load > math.ceil(f * sum(loads) / len(loads)) for load in loads)
                / len(loads)
            ),
            "Count choices that find no slot, not experts that are full.",
        ),
        Slip(
            "no whole slots",
            _no_ceiling,
            "Slots are whole: the capacity is rounded up.",
        ),
        Slip(
            "rounded down",
            _rounded_down,
            "The capacity is rounded up: an even choice would drop some otherwise.",
        ),
        Slip(
            "empty slots filled",
            lambda loads, f: 0.0,
            "A free slot of one expert does not help a token that chose another.",
        ),
    ),
    hint="For each expert, what stands above its slots.",
    solution="""
        ```python
        def dropped(loads, f):
            slots = math.ceil(f * sum(loads) / len(loads))
            return sum(max(0, load - slots) for load in loads) / sum(loads)
        ```
    """,
)


def _chosen(scores: list, biases: list, k: int) -> list:
    loads = [0] * len(biases)
    for token in scores:
        judged = [score + bias for score, bias in zip(token, biases, strict=True)]
        for expert in sorted(range(len(judged)), key=lambda e: -judged[e])[:k]:
            loads[expert] += 1
    return loads


CHOSEN = Function(
    id="13.4",
    title="Who is chosen",
    task="""
        **Given** the scores of each token for each expert, a list of rows, the bias of
        each expert, and $k$. No two sums in a row are equal.

        **Wanted** a function that returns how many tokens choose each expert.
    """,
    stub="def loads(scores, biases, k): ...",
    spec=_chosen,
    gives=(("tokens of each expert", ""),),
    cases=lambda rng: (
        [[round(rng.random(), 3) for _ in range(4)] for _ in range(5)],
        [round(rng.uniform(-0.4, 0.4), 4) for _ in range(4)],
        rng.randint(1, 2),
    ),
    examples=(([[0.9, 0.8, 0.1], [0.7, 0.2, 0.1]], [0.0, 0.0, 0.65], 1),),
    slips=(
        Slip(
            "biases forgotten",
            lambda scores, biases, k: _chosen(scores, [0.0] * len(biases), k),
            "The bias decides who is chosen.",
        ),
        Slip(
            "bias taken off",
            lambda scores, biases, k: _chosen(scores, [-b for b in biases], k),
            "The bias is added: a popular expert gets a negative one.",
        ),
        Slip(
            "one expert a token",
            lambda scores, biases, k: _chosen(scores, biases, 1),
            "Each token chooses k experts.",
        ),
    ),
    hint="Sort each row by score and bias together, and count the first k.",
    solution="""
        ```python
        def loads(scores, biases, k):
            found = [0] * len(biases)
            for token in scores:
                judged = [score + bias for score, bias in zip(token, biases)]
                best = sorted(range(len(judged)), key=judged.__getitem__)[-k:]
                for expert in best:
                    found[expert] += 1
            return found
        ```
    """,
)


def _moved(biases: list, loads: list, speed: float) -> list:
    mean = sum(loads) / len(loads)
    return [
        bias + speed * ((load < mean) - (load > mean))
        for bias, load in zip(biases, loads, strict=True)
    ]


def _in_proportion(biases: list, loads: list, speed: float) -> list:
    mean = sum(loads) / len(loads)
    return [
        b + speed * (mean - load) / mean for b, load in zip(biases, loads, strict=True)
    ]


BIASES = Function(
    id="13.5",
    title="The next biases",
    task="""
        **Given** the biases of the experts, their loads in the step that has ended, and
        the speed $\\gamma$.

        **Wanted** a function that returns the biases of the next step, as DeepSeek-V3
        moves them.
    """,
    stub="def moved(biases, loads, speed): ...",
    spec=_moved,
    gives=(("the new biases", ""),),
    cases=lambda rng: (
        [rng.uniform(-0.3, 0.3) for _ in range(5)],
        [rng.randint(0, 60) for _ in range(4)] + [75],
        rng.choice([0.001, 0.01]),
    ),
    examples=(([0.0, 0.1, 0.0], [5, 1, 3], 0.001),),
    slips=(
        Slip(
            "the wrong way",
            lambda biases, loads, speed: _moved(biases, loads, -speed),
            "An expert with too many tokens must get fewer.",
        ),
        Slip(
            "in proportion",
            _in_proportion,
            "DeepSeek-V3 moves every bias by the same step: only the sign counts.",
        ),
        Slip(
            "in proportion to the tokens",
            lambda biases, loads, speed: [
                bias + speed * (sum(loads) / len(loads) - load)
                for bias, load in zip(biases, loads, strict=True)
            ],
            "Every bias moves by the same step, however far its load is from the mean.",
        ),
        Slip(
            "the mean moved, too",
            lambda biases, loads, speed: [
                bias + (-speed if load > sum(loads) / len(loads) else speed)
                for bias, load in zip(biases, loads, strict=True)
            ],
            "An expert that has exactly the mean is left where it is.",
        ),
        Slip(
            "from zero",
            lambda biases, loads, speed: _moved([0.0] * len(loads), loads, speed),
            "A bias goes on from where it is.",
        ),
    ),
    hint="Compare each load with the mean.",
    solution="""
        ```python
        def moved(biases, loads, speed):
            mean = sum(loads) / len(loads)
            signs = ((load < mean) - (load > mean) for load in loads)
            return [bias + speed * sign for bias, sign in zip(biases, signs)]
        ```
    """,
)

_B200 = 4 / 9 * chips.B200.flops["bf16"] / chips.B200.scale_up_bandwidth

WIDTH = Number(
    id="13.6",
    title="How wide an expert must be",
    task=r"""
        **Given** experts of three matrices, gate, up and down, in bf16, spread over the
        8 B200 of a node, nothing dropped and nothing computed again. A GPU sends
        `chips.B200.scale_up_bandwidth` into NVLink.

        **Wanted** the width $F$ of an expert at which the exchange takes as long as the
        math of the experts, both passes at peak rates, without the factor $(n-1)/n$.
        It need not be a whole number.
    """,
    given=stated(chips.B200, "flops.bf16", "scale_up_bandwidth"),
    stub="width = ...",
    unit="columns",
    expected=lambda: _B200,
    slips=(
        scaled(
            "forward alone, or two matrices",
            3 / 2,
            "The backward pass has twice the math for the same traffic; and an expert "
            "has a gate beside its up-projection.",
        ),
        scaled(
            "forward math alone",
            3,
            "Both passes: six FLOPs a weight and token for four exchanges.",
        ),
        scaled("an n-th at home", 7 / 8, "The task leaves the factor out."),
        scaled(
            "the dispatch alone, or one byte a value",
            1 / 2,
            "Tokens go there and come back, in both passes, two bytes a value.",
        ),
        scaled(
            "one FLOP a weight, or the sparse peak",
            2,
            "A multiply and the add that follows are two FLOPs, and ordinary matrices "
            "run at the dense rate.",
        ),
        scaled(
            "eight copies and one expert",
            8,
            "With the copies grow the experts that compute: k cancels.",
        ),
        scaled(
            "HBM for NVLink",
            chips.B200.scale_up_bandwidth / chips.B200.hbm_bandwidth,
            "That divides by the bandwidth of the HBM. What do the tokens travel on?",
        ),
    ),
    hint="18 k D F FLOPs a token, four times k copies of 2 D bytes.",
    solution="""
        $18\\,kDF/C = 4\\,k\\cdot2D/W_\\text{AllToAll}$, so
        $F = \\frac49\\,C/W_\\text{AllToAll}$.

        ```python
        from shardmath.hardware import chips

        width = 4 / 9 * chips.B200.flops["bf16"] / chips.B200.scale_up_bandwidth
        ```
    """,
)

_CUBE = 1024 * 8 * 2 * 4096 * (8 / 4) / (2 * chips.TPU_V5P.link_bandwidth)

CUBE = Number(
    id="13.7",
    title="A dispatch on a cube",
    task=r"""
        **Given** 512 chips of TPU v5p as $8 \times 8 \times 8$, every side a closed
        ring, 1,024 tokens a chip of $D = 4096$ in bf16, each sent to 8 experts, evenly
        over all chips. A chip sends `chips.TPU_V5P.link_bandwidth` in each direction of
        each side.

        **Wanted** the seconds of one dispatch, at best, without latency.
    """,
    given=stated(chips.TPU_V5P, "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    rtol=0.002,
    expected=lambda: _CUBE,
    slips=(
        scaled(
            "as if every chip were a neighbour",
            1 / 6,
            "Most parts are for chips that are not next to their own: on a ring of 8 a "
            "part travels two hops, on each of three sides.",
        ),
        scaled(
            "one side after the other",
            3,
            "All three sides work at once, on different parts.",
        ),
        scaled(
            "three sides share one way",
            1 / 3,
            "Every part has to travel along all three sides.",
        ),
        scaled(
            "one direction, or four hops",
            2,
            "A ring is used both ways round, so that four hops are the most, and two "
            "the mean.",
        ),
        scaled(
            "one way round",
            4,
            "Used both ways round, a ring has two links a chip and half the hops.",
        ),
        scaled(
            "hops to the others alone",
            8 / 7,
            "An eighth of the parts has no way to go along a side: the mean over all "
            "eight positions is two hops.",
        ),
        scaled(
            "one copy, or an eighth of the tokens",
            1 / 8,
            "Each token is sent to eight experts.",
        ),
        scaled(
            "a ring of all",
            64,
            "A chip reaches any other in a few hops along each side.",
        ),
    ),
    hint="Along one side a byte travels 8/4 hops on average, over two links.",
    solution="""
        ```python
        from shardmath.hardware import chips

        own = 1024 * 8 * 2 * 4096
        seconds = own * (8 / 4) / (2 * chips.TPU_V5P.link_bandwidth)
        ```

        A slice of 64 chips takes half of that, one of 4,096 twice.
    """,
)


# Programs. Values are float32: four bytes each.


def _slot_shapes(rng):
    E, S = 8 * rng.randint(1, 3), 8 * rng.choice([3, 5])
    D, F = 4 * rng.randint(2, 5), 4 * rng.randint(6, 9)
    return (E, S, D), (E, D, F)


THERE_AND_BACK = Sharded(
    id="13.8",
    title="There and back",
    task=r"""
        **Given** each device's slots for all experts, $t[E, S_X, D]$, and the weights
        of its own experts, $w[E_X, D, F]$.

        **Wanted** the function that every device runs, returning its own slots of
        $m[E, S_X, F]$, each multiplied by the weights of its expert: exactly two
        AllToAlls, of $4ESD$ and $4ESF$ bytes.
    """,
    stub="def experts(t, w): ...",
    mesh=EIGHT,
    shapes=_slot_shapes,
    in_specs=((None, "X", None), ("X", None, None)),
    out_spec=(None, "X", None),
    spec=lambda t, w: t @ w,
    collectives=lambda t, w: [
        Collective("all_to_all", ("X",), 4 * math.prod(t), 8),
        Collective("all_to_all", ("X",), 4 * t[0] * t[1] * w[2], 8),
    ],
    slips=(
        Slip(
            "weights gathered",
            lambda t, w: [Collective("all_gather", ("X",), 4 * math.prod(w), 8)],
            "Experts stay, tokens travel: gathering weights is FSDP.",
        ),
        Slip(
            "slots gathered",
            lambda t, w: [
                Collective("all_gather", ("X",), 4 * math.prod(t), 8),
                Collective("all_to_all", ("X",), 4 * t[0] * t[1] * w[2], 8),
            ],
            "A device needs the slots of its own experts alone.",
        ),
    ),
    hint="`jax.lax.all_to_all(t, 'X', split_axis, concat_axis, tiled=True)`: which "
    "dimension is cut up, and along which do the parts arrive?",
    solution="""
        ```python
        def experts(t, w):
            t = jax.lax.all_to_all(t, "X", 0, 1, tiled=True)
            m = jnp.einsum("esd,edf->esf", t, w)
            return jax.lax.all_to_all(m, "X", 1, 0, tiled=True)
        ```
    """,
)


def _dense_shapes(rng):
    B, E = 8 * rng.randint(2, 5), 8 * rng.randint(1, 2)
    D, F = 4 * rng.randint(3, 6), 4 * rng.randint(7, 9)
    return (B, D), (B, E), (E, D, F)


def _weighted(z, gates, w):
    import numpy as np  # not at the top: a page judges numbers without it

    return np.einsum("be,bd,edf->bf", gates, z, w)


ALL_OF_THEM = Sharded(
    id="13.9",
    title="Every token to every device",
    task=r"""
        **Given** each device's tokens $z[B_X, D]$, their gates for all experts,
        $g[B_X, E]$, and the weights of its own experts, $w[E_X, D, F]$. A token goes
        to nearly all experts, so that there is no point in choosing.

        **Wanted** the function that every device runs, returning its tokens of
        $y_b = \sum_e g_{be}\,z_b w_e$: exactly one AllGather, of $4BD$ bytes, one
        AllToAll of $4BE$, since a device needs the gates of its own experts alone, and
        one ReduceScatter of $4BF$.
    """,
    stub="def weighted(z, gates, w): ...",
    mesh=EIGHT,
    shapes=_dense_shapes,
    in_specs=(("X", None), ("X", None), ("X", None, None)),
    out_spec=("X", None),
    spec=_weighted,
    collectives=lambda z, gates, w: [
        Collective("all_gather", ("X",), 4 * math.prod(z), 8),
        Collective("all_to_all", ("X",), 4 * math.prod(gates), 8),
        Collective("reduce_scatter", ("X",), 4 * z[0] * w[2], 8),
    ],
    slips=(
        Slip(
            "weights gathered",
            lambda z, gates, w: [Collective("all_gather", ("X",), 4 * math.prod(w), 8)],
            "Experts stay, tokens travel: gathering weights is FSDP.",
        ),
        Slip(
            "gates gathered",
            lambda z, gates, w: [
                Collective("all_gather", ("X",), 4 * math.prod(z), 8),
                Collective("all_gather", ("X",), 4 * math.prod(gates), 8),
                Collective("reduce_scatter", ("X",), 4 * z[0] * w[2], 8),
            ],
            "A device throws seven eighths of these gates away: it needs those of its "
            "own experts.",
        ),
        Slip(
            "sum, then slice",
            lambda z, gates, w: [
                Collective("all_gather", ("X",), 4 * math.prod(z), 8),
                Collective("all_to_all", ("X",), 4 * math.prod(gates), 8),
                Collective("all_reduce", ("X",), 4 * z[0] * w[2], 8),
            ],
            "Every device gets the whole sum and throws most of it away.",
        ),
    ),
    values=(
        Slip(
            "gates left out",
            lambda z, gates, w: _weighted(z, 0 * gates + 1, w),
            "Every expert counts alike here: each token weighs them by its gates.",
        ),
    ),
    hint="Gather the tokens; cut the gates up by experts and join them by tokens; "
    "scatter the sum over the tokens.",
    solution="""
        ```python
        def weighted(z, gates, w):
            z = jax.lax.all_gather(z, "X", axis=0, tiled=True)
            gates = jax.lax.all_to_all(gates, "X", 1, 0, tiled=True)  # [B, E_X]
            y = jnp.einsum("be,bd,edf->bf", gates, z, w)
            return jax.lax.psum_scatter(y, "X", scatter_dimension=0, tiled=True)
        ```
    """,
)


def _score_shapes(rng):
    return ((16 * rng.randint(12, 20), rng.choice([24, 40, 72])),)


def _best_counts(scores):
    import numpy as np

    return np.bincount(scores.argmax(1), minlength=scores.shape[1]).astype("float32")


COUNTED = Sharded(
    id="13.10",
    title="Everyone's load",
    task=r"""
        **Given** each device's tokens' scores, $s[B_X, E]$. The biases of the experts
        shall be moved by the loads of the whole batch.

        **Wanted** the function that every device runs, returning how many tokens of all
        devices have their best score at each expert, as $E$ values in float32, whole on
        every device: exactly one AllReduce, of $4E$ bytes.
    """,
    stub="def loads(scores): ...",
    mesh=EIGHT,
    shapes=_score_shapes,
    in_specs=(("X", None),),
    out_spec=(None,),
    spec=_best_counts,
    collectives=lambda scores: [Collective("all_reduce", ("X",), 4 * scores[1], 8)],
    slips=(
        Slip(
            "scores gathered",
            lambda scores: [Collective("all_gather", ("X",), 4 * math.prod(scores), 8)],
            "Each device can count its own tokens; counts are all that has to cross.",
        ),
        Slip(
            "choices gathered",
            lambda scores: [Collective("all_gather", ("X",), 4 * scores[0], 8)],
            "One choice a token is less than all scores, but it grows with the batch; "
            "counts do not.",
        ),
    ),
    values=(
        Slip(
            "scores added up",
            lambda scores: scores.sum(0),
            "Those are sums of scores. A token counts once, where its score is best.",
        ),
        Slip(
            "best scores added up",
            lambda scores: (scores * (scores == scores.max(1, keepdims=True))).sum(0),
            "Those are sums of the best scores. A token counts once, as 1.",
        ),
    ),
    hint="Count your own, then add up.",
    solution="""
        ```python
        def loads(scores):
            best = jax.nn.one_hot(scores.argmax(1), scores.shape[1])
            return jax.lax.psum(best.sum(0), "X")
        ```
    """,
)


# Several steps.


def _nodes(m: int, E: int, k: int) -> float:
    return m * (1 - math.comb(E - E // m, k) / math.comb(E, k))


def _reached(m: int, E: int, k: int) -> list:
    missed = math.comb(E - E // m, k) / math.comb(E, k)
    reached = m * (1 - missed)
    return [reached, reached * (m - 1) / m]


NODES = Function(
    id="13.11",
    title="Nodes of a token",
    points=2,
    task=r"""
        **Given** $E$ experts spread evenly over $m$ nodes, $m$ a divisor of $E$. A
        token's $k$ experts are drawn evenly, all different, and its own node is one of
        the $m$, each as likely.

        **Wanted** a function that returns a pair: to how many nodes a token goes on
        average, and how many copies of it cross its node's cards if each other node
        gets one.
    """,
    stub="def nodes(m, E, k): ...",
    spec=_reached,
    gives=(("nodes", ""), ("copies over the cards", "")),
    cases=lambda rng: (
        rng.choice([2, 4, 8]),
        rng.choice([64, 128, 256]),
        rng.randint(2, 8),
    ),
    examples=((8, 256, 8), (2, 64, 2)),
    slips=(
        Slip(
            "a copy for each expert",
            lambda m, E, k: [k, k * (m - 1) / m],
            "Two experts in one node share a copy.",
        ),
        Slip(
            "drawn with repeats",
            lambda m, E, k: [
                m * (1 - (1 - 1 / m) ** k),
                (m - 1) * (1 - (1 - 1 / m) ** k),
            ],
            "The k experts are all different, so a node is missed a little less often.",
        ),
        Slip(
            "own node over the cards",
            lambda m, E, k: [_nodes(m, E, k)] * 2,
            "A copy for the token's own node crosses no card.",
        ),
        Slip(
            "own node counted out as a whole",
            lambda m, E, k: [_nodes(m, E, k), _nodes(m, E, k) - 1],
            "A token does not always have an expert in its own node.",
        ),
    ),
    hint="A node is missed if all k experts are among the others' E − E/m.",
    solution="""
        ```python
        def nodes(m, E, k):
            missed = math.comb(E - E // m, k) / math.comb(E, k)
            reached = m * (1 - missed)
            return reached, reached * (m - 1) / m
        ```
    """,
)

_CARD = 2 * 4096 * 4 * 7 / 8 * DEEPSEEK_V3.D * (1 + 2) / chips.H800.scale_out_bandwidth

CARD = Number(
    id="13.12",
    title="A layer over InfiniBand",
    points=2,
    task=r"""
        **Given** one layer of DeepSeek-V3, $D = 7168$, over 64 H800 in 8 nodes, 4,096
        tokens a GPU. Each token goes to exactly 4 nodes, its own being among them as
        often as any other, and one copy crosses the card for each other node. Forward
        and backward, tokens travel there in fp8, one byte a value, and back in bf16.
        A card sends `chips.H800.scale_out_bandwidth`.

        **Wanted** the seconds of both passes over the card, at best.
    """,
    given=stated(chips.H800, "scale_out_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: _CARD,
    slips=(
        scaled("bf16 both ways", 4 / 3, "On the way there a value has one byte."),
        scaled("fp8 both ways", 2 / 3, "On the way back a value has two bytes."),
        scaled("the forward pass alone", 1 / 2, "Gradients travel the same ways."),
        scaled(
            "own node over the card",
            8 / 7,
            "One of eight copies stays in its own node.",
        ),
        scaled(
            "a copy for each expert",
            2,
            "One copy for each node: NVLink deals it out there.",
        ),
        scaled(
            "always one at home",
            6 / 7,
            "The token's own node is among the four in half of the cases.",
        ),
        Slip(
            "over NVLink",
            lambda right: (
                right * chips.H800.scale_out_bandwidth / chips.H800.scale_up_bandwidth
            ),
            "Between nodes the network card sets the pace.",
        ),
        scaled(
            "one card for a node",
            8,
            "Each GPU has its own card, which carries the copies of its own tokens.",
        ),
    ),
    hint="4 · 7/8 copies; one byte there, two back, in two passes.",
    solution="""
        ```python
        from shardmath.hardware import chips

        copies = 4096 * 4 * 7 / 8
        nbytes = 2 * copies * 7168 * (1 + 2)
        seconds = nbytes / chips.H800.scale_out_bandwidth
        ```
    """,
)

_QWEN = sum(line.weight.count(QWEN_3_235B_A22B.dims) for line in QWEN_3_235B_A22B.layer)
_ROUTED = 128 * 3 * 4096 * 1536
_MET = _QWEN - _ROUTED + _ROUTED / 16
_FSDP = _QWEN / _MET * chips.TPU_V5P.flops["bf16"] / (6 * chips.TPU_V5P.link_bandwidth)

FSDP_TOKENS = Number(
    id="13.13",
    title="FSDP with idle experts",
    points=2,
    task=r"""
        **Given** Qwen3 235B-A22B, whose layer has 2,487,746,560 matmul weights, of
        which 128 experts have $3\cdot4096\cdot1536$ each; a token meets 8 of them and
        all the rest. FSDP gathers all weights twice in bf16 and scatters their
        gradients once, over three sides of a torus of v5p, each a closed ring with
        `chips.TPU_V5P.link_bandwidth` in each direction. Nothing is computed again;
        attention scores and the factor $(n-1)/n$ are left out.

        **Wanted** the tokens per chip at which the network takes as long as the math.
    """,
    given=stated(chips.TPU_V5P, "flops.bf16", "link_bandwidth"),
    stub="tokens = ...",
    unit="tokens",
    expected=lambda: _FSDP,
    slips=(
        Slip(
            "a dense model",
            lambda right: right * _MET / _QWEN,
            "All weights are gathered, but a token meets few of them.",
        ),
        Slip(
            "all weights idle alike",
            lambda right: right * 16 * _MET / _QWEN,
            "A token meets the weights of attention whole.",
        ),
        scaled("gathered once", 2 / 3, "Weights are gathered for both passes."),
        scaled(
            "one of three",
            1 / 3,
            "Two gathers and a scatter of the gradients.",
        ),
        scaled(
            "one direction of each link",
            2,
            "A ring sends both ways round.",
        ),
        scaled(
            "one side, or forward math alone",
            3,
            "Three sides of the torus work at once; both passes compute, six FLOPs a "
            "weight and token.",
        ),
        scaled("one link", 6, "Three sides, and both ways round each."),
        scaled("full remat", 6 / 8, "Nothing is computed again: six FLOPs, not eight."),
    ),
    hint="Three times two bytes of every weight; six FLOPs of every active one and "
    "token.",
    solution="""
        $3\\cdot2P/W_X = 6P_\\text{active}\\,t/C$.

        ```python
        from shardmath.hardware import chips

        weights = 2_487_746_560
        routed = 128 * 3 * 4096 * 1536
        active = weights - routed * (1 - 8 / 128)
        W_X = 6 * chips.TPU_V5P.link_bandwidth
        tokens = weights / active * chips.TPU_V5P.flops["bf16"] / W_X
        ```
    """,
)


def _cargo(E: int, k: int, D: int, F: int, t: int, remat: bool) -> str:
    tokens = (6 if remat else 4) * k * 2 * t * D
    weights = 3 * 2 * E * 3 * D * F
    return "tokens" if tokens < weights else "weights"


def _cargo_with(there: int, gathers: int, experts: bool = True):
    def wrong(E: int, k: int, D: int, F: int, t: int, remat: bool) -> str:
        times = there + 2 * remat * (there == 4)
        count = E if experts else k
        weights = gathers * 2 * count * 3 * D * F
        return "tokens" if times * k * 2 * t * D < weights else "weights"

    return wrong


CARGO = Function(
    id="13.14",
    title="Tokens or weights",
    points=2,
    task=r"""
        **Given** a layer of $E$ experts with three matrices of $D \times F$ each, $k$ a
        token, $t$ tokens per chip, all in bf16, over many chips; and whether the layer
        is computed again in the backward pass, dispatch and combine included.

        **Wanted** a function that says which cargo is lighter in both passes together,
        `"tokens"` to the experts and back, or the experts' `"weights"`, which FSDP
        gathers twice and whose gradients it scatters once. Factors $(n-1)/n$ are left
        out; if both are equal, say `"weights"`.
    """,
    stub="def cargo(E, k, D, F, t, remat): ...",
    spec=_cargo,
    gives=(("the lighter cargo", ""),),
    cases=lambda rng: (
        rng.choice([8, 64, 128, 256]),
        rng.choice([1, 2, 4, 8]),
        1024 * rng.randint(2, 8),
        512 * rng.randint(2, 28),
        2 ** rng.randint(12, 20),
        rng.choice([True, False]),
    ),
    examples=(
        (8, 2, 4096, 14_336, 100_000, True),
        (8, 2, 4096, 14_336, 100_000, False),
        (256, 8, 7168, 2048, 4096, True),
        (256, 8, 7168, 2048, 500_000, True),
        (8, 2, 4096, 14_336, 150_000, True),
        (8, 2, 4096, 14_336, 50_000, True),
    ),
    slips=(
        Slip(
            "one pass of the tokens",
            _cargo_with(2, 3),
            "Gradients travel both ways, too.",
        ),
        Slip(
            "weights gathered once",
            _cargo_with(4, 1),
            "Weights are gathered for both passes, and gradients scattered.",
        ),
        Slip(
            "nothing computed again",
            lambda E, k, D, F, t, remat: _cargo(E, k, D, F, t, False),
            "Under full remat tokens go there and back once more: six times.",
        ),
        Slip(
            "two matrices, or no scatter",
            _cargo_with(4, 2),
            "Three matrices of each expert; two gathers, and a scatter of gradients.",
        ),
        Slip(
            "experts in use",
            _cargo_with(4, 3, experts=False),
            "FSDP gathers every expert: it does not know who will be chosen.",
        ),
    ),
    hint="Four times k copies of a token, six if computed again; three times all "
    "experts.",
    solution="""
        ```python
        def cargo(E, k, D, F, t, remat):
            tokens = (6 if remat else 4) * k * 2 * t * D
            weights = 3 * 2 * E * 3 * D * F
            return "tokens" if tokens < weights else "weights"
        ```
    """,
)
