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
        "expert parallelism: slots, capacity and balance, the bytes and the time of "
        "the exchange, nodes and fp8, a comparison with FSDP, and three programs "
        "graded on what they compile to"
    ),
    intro="""
        from the bytes of one layer to the choice between moving tokens and moving
        weights. Answers are in base units: bytes, seconds, tokens.

        In 13.8 to 13.10 you write programs for eight virtual devices. They are graded
        on their results and on the collectives that XLA compiles them to. All arrays
        are in float32, and the bytes of a collective count its whole array.
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
OWN_PART = (
    "A chip doesn't send anything to itself, so one of its n parts stays where it is."
)

_LAYER = 4 * 8 * 2 * 4096 * DEEPSEEK_V3.D * 7 / 8

LAYER_BYTES = Number(
    id="13.1",
    title="The traffic of a layer",
    task="""
        **Given** one layer of DeepSeek-V3 with $D = 7168$ and 8 experts per token. Its
        experts are spread over 8 chips, each of which has 4,096 tokens, and values are
        in bf16. All experts are chosen equally often, no choice is dropped, and no slot
        is empty. One copy of a token goes to each of its experts. The layer isn't
        computed again in the backward pass.

        **Wanted** the bytes that each chip sends in both passes together.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _LAYER,
    slips=(
        scaled(
            "one pass, or one byte per value",
            1 / 2,
            "Did you count both passes? Each of them sends tokens there and back, and "
            "a value takes two bytes.",
        ),
        scaled(
            "the dispatch alone",
            1 / 4,
            "Those are only the bytes of the dispatch. The experts' outputs come back, "
            "and in the backward pass the gradients travel both ways.",
        ),
        scaled(
            "one copy",
            1 / 8,
            "Did you send only one copy of a token? One copy goes to each of its eight "
            "experts.",
        ),
        scaled("own part sent too", 8 / 7, OWN_PART),
        scaled(
            "full remat",
            6 / 4,
            "That would be right if the backward pass computed the layer again.",
        ),
        scaled(
            "all tokens",
            8,
            "Each chip sends only its own tokens. The others send theirs.",
        ),
    ),
    hint="Each pass has two AllToAlls. How many bytes does a chip send in each?",
    solution="""
        Each pass has a dispatch and a combine, which makes four AllToAlls. In each of
        them a chip sends seven eighths of its copies, because it holds one eighth of
        the experts itself.

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
        **Given** a capacity factor $f$, $k$ experts per token, $t$ tokens on a chip and
        $E$ experts.

        **Wanted** a function that returns a pair: the slots that a chip reserves for
        each expert, and the ratio of all its slots to the choices of its tokens.
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
            "A slot can't be cut in half. If you round down, some tokens are dropped "
            "even when all experts are chosen equally often, so round up.",
        ),
        Slip(
            "one expert per token",
            lambda f, k, t, E: [math.ceil(f * t / E), math.ceil(f * t / E) * E / t],
            "Did you count all choices? Every token makes k of them.",
        ),
        Slip(
            "the factor itself",
            lambda f, k, t, E: [math.ceil(f * k * t / E), f],
            "Because slots are rounded up, the ratio is a little larger than f.",
        ),
    ),
    hint="The tokens make k · t choices, which are shared by E experts. How many are "
    "there for each expert?",
    solution="""
        An expert gets $kt/E$ choices on average, and the factor $f$ leaves some room
        above that. Slots are whole, so we round up.

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
    title="Dropped choices",
    task="""
        **Given** a list `loads`, which says how often the tokens of one chip choose
        each expert, and a capacity factor `f`.

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
            "Count the choices that find no slot instead of the experts that are full.",
        ),
        Slip(
            "no whole slots",
            _no_ceiling,
            "An expert has a whole number of slots, so round the capacity up.",
        ),
        Slip(
            "rounded down",
            _rounded_down,
            "Round the capacity up, because otherwise some choices are dropped even "
            "when all experts are chosen equally often.",
        ),
        Slip(
            "empty slots filled",
            lambda loads, f: 0.0,
            "Did you let full experts use the free slots of others? A free slot "
            "doesn't help a token that chose another expert.",
        ),
    ),
    hint="How many slots does each expert have? Count the choices beyond that number.",
    solution="""
        A choice is dropped if its expert has no slot left. Free slots of other experts
        don't help, so we count expert by expert.

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
        **Given** a list of rows, each with the scores of one token for all experts, the
        bias of each expert, and $k$. Within a row, no two sums of score and bias are
        equal.

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
            "Did you add the biases? They take part in the choice.",
        ),
        Slip(
            "bias taken off",
            lambda scores, biases, k: _chosen(scores, [-b for b in biases], k),
            "Add the bias instead of subtracting it. A popular expert has a negative "
            "bias.",
        ),
        Slip(
            "one expert per token",
            lambda scores, biases, k: _chosen(scores, biases, 1),
            "Did you count only the best expert? Each token chooses k experts.",
        ),
    ),
    hint="Sort each row by the sum of score and bias, and count the k best experts.",
    solution="""
        The biases take part in the choice, so each token chooses by the sum of score
        and bias.

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
        **Given** the biases of the experts, their loads in the step that has just
        ended, and the step size $\\gamma$, called `speed`.

        **Wanted** a function that returns the biases for the next step, by the rule of
        DeepSeek-V3.
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
            "That moves the biases the wrong way. An expert with too many tokens "
            "should get fewer.",
        ),
        Slip(
            "in proportion",
            _in_proportion,
            "DeepSeek-V3 moves every bias by the same amount. Only the sign of the "
            "difference from the mean load matters.",
        ),
        Slip(
            "in proportion to the tokens",
            lambda biases, loads, speed: [
                bias + speed * (sum(loads) / len(loads) - load)
                for bias, load in zip(biases, loads, strict=True)
            ],
            "Every bias moves by the same amount, however far its load is from the "
            "mean.",
        ),
        Slip(
            "the mean moved, too",
            lambda biases, loads, speed: [
                bias + (-speed if load > sum(loads) / len(loads) else speed)
                for bias, load in zip(biases, loads, strict=True)
            ],
            "If an expert has exactly the mean load, its bias doesn't move.",
        ),
        Slip(
            "from zero",
            lambda biases, loads, speed: _moved([0.0] * len(loads), loads, speed),
            "Did you start from zero? Each bias starts from its old value.",
        ),
    ),
    hint="Compare each load with the mean load. In which direction should the "
    "expert's bias move?",
    solution="""
        An expert with more than the mean load should get fewer tokens, so its bias goes
        down by $\\gamma$. If it has less, its bias goes up by as much.

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
        **Given** experts with three matrices of $D \times F$ weights each, gate, up and
        down, in bf16. They are spread over the 8 B200s of a node. No choice is dropped,
        and the layer isn't computed again in the backward pass. A GPU sends
        `chips.B200.scale_up_bandwidth` bytes/s over NVLink.

        **Wanted** the width $F$ of an expert at which the exchanges of both passes take
        as long as the math of the experts, at peak rates and without the factor
        $(n-1)/n$. It needn't be a whole number.
    """,
    given=stated(chips.B200, "flops.bf16", "scale_up_bandwidth"),
    stub="width = ...",
    unit="columns",
    expected=lambda: _B200,
    slips=(
        scaled(
            "forward alone, or two matrices",
            3 / 2,
            "Did you count both passes and all three matrices? The backward pass has "
            "twice the math for the same traffic.",
        ),
        scaled(
            "forward math alone",
            3,
            "Did you count the math of both passes? Four exchanges go with six FLOPs "
            "per weight and token.",
        ),
        scaled(
            "the factor (n − 1)/n counted",
            7 / 8,
            "Did you include the factor (n − 1)/n? The question leaves it out.",
        ),
        scaled(
            "the dispatch alone, or one byte per value",
            1 / 2,
            "Did you count all four exchanges? In each pass, tokens go to the experts "
            "and come back, and a value takes two bytes.",
        ),
        scaled(
            "one FLOP per weight, or the sparse peak",
            2,
            "A multiplication and the addition that follows are two FLOPs, and "
            "ordinary matrices are multiplied at the dense rate.",
        ),
        scaled(
            "k copies and one expert",
            8,
            "Did you count the k copies only in the traffic? Each copy also has an "
            "expert that computes with it, so k cancels.",
        ),
        scaled(
            "HBM for NVLink",
            chips.B200.scale_up_bandwidth / chips.B200.hbm_bandwidth,
            "You divided by the bandwidth of the HBM. Which links carry the tokens?",
        ),
    ),
    hint="A token takes 18 k D F FLOPs. It makes four trips, each with k copies of 2 D "
    "bytes. At which F do math and traffic take equally long?",
    solution="""
        Both the math and the traffic grow with the tokens, so it is enough to look at
        one token. At $C$ FLOPs/s and $W_\\text{AllToAll}$ bytes/s, we set its two times
        equal, $18\\,kDF/C = 4\\,k\\cdot2D/W_\\text{AllToAll}$, and get
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
        **Given** 512 TPU v5p chips in a torus of $8 \times 8 \times 8$, in which every
        side is a closed ring. Each chip has 1,024 tokens of $D = 4096$ values in bf16.
        Each token is sent to 8 experts, and the copies are spread evenly over all
        chips. Along each side, a chip sends `chips.TPU_V5P.link_bandwidth` bytes/s in
        each of the two directions.

        **Wanted** a lower bound on the time of one dispatch in seconds, without
        latency.
    """,
    given=stated(chips.TPU_V5P, "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    rtol=0.002,
    expected=lambda: _CUBE,
    slips=(
        scaled(
            "one hop over six links",
            1 / 6,
            "Did you count the hops? Few chips are neighbours. On a ring of 8, a part "
            "travels two hops on average, and it does so along each of three sides.",
        ),
        scaled(
            "one side after the other",
            3,
            "All three sides work at the same time, each on a different part of the "
            "data.",
        ),
        scaled(
            "the work divided among three sides",
            1 / 3,
            "The sides don't share the work, because every part travels along all "
            "three.",
        ),
        scaled(
            "one direction, or four hops",
            2,
            "Did you use both directions of the ring? If you do, the longest path has "
            "four hops, and the average path has two.",
        ),
        scaled(
            "one way round",
            4,
            "If you use both directions of a ring, each chip has two links, and the "
            "paths are half as long.",
        ),
        scaled(
            "hops to the others alone",
            8 / 7,
            "Did you average over all eight positions? An eighth of the parts doesn't "
            "move along a given side, so the average is two hops.",
        ),
        scaled(
            "one copy, or an eighth of the tokens",
            1 / 8,
            "Did you count all copies? Each token is sent to eight experts.",
        ),
        scaled(
            "a ring of all",
            64,
            "The chips don't form a single ring. A chip reaches any other chip in a "
            "few hops along each side.",
        ),
    ),
    hint="Along one side, how many hops does a byte travel on average? On a ring of 8 "
    "it travels 8/4, and a chip has two links along the side.",
    solution="""
        Every part travels along all three sides, which work at the same time, so the
        time of one side is the time of the dispatch. Along a side, each byte takes 8/4
        hops on average, and a chip has two links.

        ```python
        from shardmath.hardware import chips

        own = 1024 * 8 * 2 * 4096
        seconds = own * (8 / 4) / (2 * chips.TPU_V5P.link_bandwidth)
        ```

        A slice of 64 chips takes half as long, and one of 4,096 chips twice as long.
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

        **Wanted** the function that every device runs. It returns the device's own
        slots of $m[E, S_X, F]$. Each slot of $m$ is the same slot of $t$, multiplied by
        the weights of its expert. It uses exactly two AllToAlls, of $4ESD$ and $4ESF$
        bytes.
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
            "You gathered the weights, as FSDP does. Here the experts stay and the "
            "tokens travel.",
        ),
        Slip(
            "slots gathered",
            lambda t, w: [
                Collective("all_gather", ("X",), 4 * math.prod(t), 8),
                Collective("all_to_all", ("X",), 4 * t[0] * t[1] * w[2], 8),
            ],
            "You gathered all slots, but a device needs only the slots of its own "
            "experts.",
        ),
    ),
    hint="Use `jax.lax.all_to_all(t, 'X', split_axis, concat_axis, tiled=True)`. Which "
    "dimension is split, and along which dimension are the parts joined?",
    solution="""
        The first AllToAll splits the slots by experts and joins the parts of all
        devices. After the matmul, the second one reverses this, so every device gets
        its own slots back.

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
        $g[B_X, E]$, and the weights of its own experts, $w[E_X, D, F]$. A token goes to
        nearly all experts, so it is simplest to send it to every device.

        **Wanted** the function that every device runs. It returns the device's tokens
        of $y_b = \sum_e g_{be}\,z_b w_e$. It uses exactly one AllGather of $4BD$ bytes,
        one AllToAll of $4BE$ bytes, and one ReduceScatter of $4BF$ bytes. An AllToAll
        is enough for the gates, because a device needs only those of its own experts.
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
            "You gathered the weights, as FSDP does. Here the experts stay and the "
            "tokens travel.",
        ),
        Slip(
            "gates gathered",
            lambda z, gates, w: [
                Collective("all_gather", ("X",), 4 * math.prod(z), 8),
                Collective("all_gather", ("X",), 4 * math.prod(gates), 8),
                Collective("reduce_scatter", ("X",), 4 * z[0] * w[2], 8),
            ],
            "You gathered all gates. A device discards seven eighths of them, because "
            "it needs only those of its own experts.",
        ),
        Slip(
            "sum, then slice",
            lambda z, gates, w: [
                Collective("all_gather", ("X",), 4 * math.prod(z), 8),
                Collective("all_to_all", ("X",), 4 * math.prod(gates), 8),
                Collective("all_reduce", ("X",), 4 * z[0] * w[2], 8),
            ],
            "Every device gets the whole sum and discards most of it. Which "
            "collective leaves each device only its own tokens?",
        ),
    ),
    values=(
        Slip(
            "gates left out",
            lambda z, gates, w: _weighted(z, 0 * gates + 1, w),
            "Did you use the gates? Your result gives every expert the same weight.",
        ),
    ),
    hint="Gather the tokens. Split the gates by experts and join them by tokens. Which "
    "term of the sum does each device then have, and how does it get only its own "
    "tokens?",
    solution="""
        Each device computes with its own experts for all tokens, so it gathers the
        tokens and exchanges the gates. Its result is one term of the sum over the
        experts, and the ReduceScatter completes the sum and returns each token to its
        device.

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
        **Given** the scores of each device's tokens, $s[B_X, E]$. The loads of the
        whole batch are needed to move the biases of the experts.

        **Wanted** the function that every device runs. For each expert, it returns the
        number of tokens of all devices whose best score is for this expert, as $E$
        values in float32 that are the same on every device. It uses exactly one
        AllReduce of $4E$ bytes.
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
            "You gathered the scores. Each device can count its own tokens, so only "
            "the counts have to be sent.",
        ),
        Slip(
            "choices gathered",
            lambda scores: [Collective("all_gather", ("X",), 4 * scores[0], 8)],
            "You gathered the choices. That is less than all scores, but it grows "
            "with the batch, whereas the counts don't.",
        ),
    ),
    values=(
        Slip(
            "scores added up",
            lambda scores: scores.sum(0),
            "You added up scores. Count each token once, at the expert with its best "
            "score.",
        ),
        Slip(
            "best scores added up",
            lambda scores: (scores * (scores == scores.max(1, keepdims=True))).sum(0),
            "You added up the best scores. Count each token as 1.",
        ),
    ),
    hint="What can each device count without the others? Add up the counts of all "
    "devices.",
    solution="""
        The counts of different devices simply add up, and there are only $E$ of them.
        So each device counts its own tokens first.

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
        **Given** $E$ experts spread evenly over $m$ nodes, where $m$ divides $E$. The
        $k$ experts of a token are all different and drawn at random. The token's own
        node is equally likely to be any of the $m$ nodes.

        **Wanted** a function that returns a pair: the mean number of nodes that a token
        visits, and the mean number of its copies that cross a network card. Each node
        that it visits, except its own, gets one copy over a card.
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
            "Did you send a copy to each expert? Experts in the same node share one "
            "copy.",
        ),
        Slip(
            "drawn with repeats",
            lambda m, E, k: [
                m * (1 - (1 - 1 / m) ** k),
                (m - 1) * (1 - (1 - 1 / m) ** k),
            ],
            "The k experts are all different, so a node is missed less often than if "
            "each expert were drawn independently.",
        ),
        Slip(
            "own node over the cards",
            lambda m, E, k: [_nodes(m, E, k)] * 2,
            "The copy for the token's own node doesn't cross a card.",
        ),
        Slip(
            "own node counted out as a whole",
            lambda m, E, k: [_nodes(m, E, k), _nodes(m, E, k) - 1],
            "You always subtracted the token's own node. Does a token always have an "
            "expert there?",
        ),
    ),
    hint="When is a node missed? All k experts are then among the E − E/m experts of "
    "other nodes.",
    solution="""
        It is easier to count the nodes that a token misses. It misses a node if all of
        its experts are in other nodes. Each of the $m$ nodes is missed with the same
        probability, and one of the $m$ is the token's own, which needs no card.

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
        **Given** one layer of DeepSeek-V3 with $D = 7168$ on 64 H800s in 8 nodes, with
        4,096 tokens per GPU. Each token goes to exactly 4 nodes, and its own node is
        one of them as often as any other. One copy crosses the card for each of these
        nodes except its own. In both passes, values travel to the experts in fp8 with
        one byte each, and back in bf16. Each GPU has a card that sends
        `chips.H800.scale_out_bandwidth` bytes/s.

        **Wanted** the seconds that the card is busy in both passes together, as a lower
        bound.
    """,
    given=stated(chips.H800, "scale_out_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: _CARD,
    slips=(
        scaled(
            "bf16 both ways", 4 / 3, "On the way there, a value takes only one byte."
        ),
        scaled("fp8 both ways", 2 / 3, "On the way back, a value takes two bytes."),
        scaled(
            "the forward pass alone",
            1 / 2,
            "Did you count the backward pass? Its gradients travel there and back as "
            "well.",
        ),
        scaled(
            "own node over the card",
            8 / 7,
            "One of eight copies stays in its own node and doesn't cross the card.",
        ),
        scaled(
            "a copy for each expert",
            2,
            "Did you send a copy to each expert? Each node gets one copy, and NVLink "
            "distributes it there.",
        ),
        scaled(
            "own node always among the four",
            6 / 7,
            "You assumed that one copy always stays in its own node. The token's own "
            "node is among the four in only half of the cases.",
        ),
        Slip(
            "over NVLink",
            lambda right: (
                right * chips.H800.scale_out_bandwidth / chips.H800.scale_up_bandwidth
            ),
            "You divided by the rate of NVLink. Which link connects two nodes?",
        ),
        scaled(
            "one card for a node",
            8,
            "Did you let the GPUs of a node share one card? Each GPU has its own "
            "card, which sends the copies of its own tokens.",
        ),
    ),
    hint="Each token sends 4 · 7/8 copies over the card. How many bytes does a value "
    "of a copy take there and back, and in how many passes?",
    solution="""
        Each of a token's four copies goes to the token's own node in one of eight
        cases, and then it doesn't cross the card. The other copies carry one byte per
        value there and two bytes back, in each of two passes.

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
        **Given** Qwen3 235B-A22B, in which each layer has 2,487,746,560 matmul weights.
        Each of its 128 experts has $3\cdot4096\cdot1536$ of them. A token uses 8
        experts and all other weights. FSDP gathers all weights twice in bf16 and
        scatters their gradients once. It uses three sides of a torus of v5p chips. Each
        side is a closed ring with `chips.TPU_V5P.link_bandwidth` bytes/s in each
        direction. The layer isn't computed again. Leave out the scores of attention and
        the factor $(n-1)/n$.

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
            "That is the threshold of a dense model. FSDP gathers all weights, but a "
            "token uses few of them.",
        ),
        Slip(
            "all weights idle alike",
            lambda right: right * 16 * _MET / _QWEN,
            "Did you divide all weights by 16? A token uses only some experts, but it "
            "uses all weights of attention.",
        ),
        scaled(
            "gathered once",
            2 / 3,
            "Did you count both gathers? Weights are gathered for each pass.",
        ),
        scaled(
            "one of three",
            1 / 3,
            "Did you count all three collectives? FSDP gathers the weights twice and "
            "scatters their gradients once.",
        ),
        scaled(
            "one direction of each link",
            2,
            "Did you use only one direction of each ring? Both directions work at the "
            "same time.",
        ),
        scaled(
            "one side, or forward math alone",
            3,
            "Did you use all three sides of the torus, and the math of both passes? "
            "The two passes take six FLOPs per weight and token.",
        ),
        scaled(
            "one link",
            6,
            "Did you use all links? There are three sides with two directions each.",
        ),
        scaled(
            "full remat",
            6 / 8,
            "The layer isn't computed again, so count six FLOPs instead of eight.",
        ),
    ),
    hint="Every weight is sent three times, with two bytes. Every active weight takes "
    "six FLOPs per token. For how many tokens do the network and the math take equally "
    "long?",
    solution="""
        FSDP moves all the weights $P$, but the math uses only the active ones. For $t$
        tokens per chip, we set the two times equal,
        $3\\cdot2P/W_X = 6P_\\text{active}\\,t/C$, and solve for $t$.

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
        **Given** a layer of $E$ experts with three matrices of $D \times F$ each, $k$
        experts per token and $t$ tokens per chip. All values are in bf16, and there are
        many chips. `remat` says whether the backward pass computes the layer again,
        including dispatch and combine.

        **Wanted** a function that returns whichever takes fewer bytes in both passes
        together: `"tokens"`, which travel to the experts and back, or `"weights"`,
        which FSDP gathers twice and whose gradients it scatters once. Leave out the
        factors $(n-1)/n$. If both take the same, return `"weights"`.
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
            "Did you count the backward pass? Its gradients travel there and back as "
            "well.",
        ),
        Slip(
            "weights gathered once",
            _cargo_with(4, 1),
            "Did you count all three collectives? FSDP gathers the weights for each "
            "pass and scatters their gradients.",
        ),
        Slip(
            "nothing computed again",
            lambda E, k, D, F, t, remat: _cargo(E, k, D, F, t, False),
            "Did you use `remat`? If the layer is computed again, tokens make six "
            "trips instead of four.",
        ),
        Slip(
            "two matrices, or no scatter",
            _cargo_with(4, 2),
            "Did you count three matrices per expert, two gathers and one scatter of "
            "the gradients?",
        ),
        Slip(
            "experts in use",
            _cargo_with(4, 3, experts=False),
            "Did you count all experts? FSDP gathers every expert, because it doesn't "
            "know which ones will be chosen.",
        ),
    ),
    hint="The k copies of a token make four trips, or six if the layer is computed "
    "again. How often do the weights of all experts move?",
    solution="""
        The traffic of the tokens grows with their number, and that of the weights
        doesn't. FSDP moves the weights of all experts, because it doesn't know which
        ones will be chosen.

        ```python
        def cargo(E, k, D, F, t, remat):
            tokens = (6 if remat else 4) * k * 2 * t * D
            weights = 3 * 2 * E * 3 * D * F
            return "tokens" if tokens < weights else "weights"
        ```
    """,
)
