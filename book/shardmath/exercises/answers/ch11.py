"""Questions of chapter 11, "Context parallelism"."""

import math

from shardmath.collectives import Collective, all_to_all
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
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Torus
from shardmath.training import context, step
from shardmath.training.causal_ring import CausalRing
from shardmath.transformer import LLAMA_3_8B, LLAMA_3_70B, flops

CHAPTER = Chapter(
    title="Context parallelism",
    topics=(
        "context parallelism: online softmax, rings and their hops, causal work and "
        "its order, AllGather and Ulysses, when a hop hides, and four programs graded "
        "on what they compile to"
    ),
    intro="""
        from partial results to the time of a ring. Answers are in base units: bytes,
        seconds, tokens.

        11.9 to 11.12 are programs for eight virtual devices. They are graded on their
        result and on what XLA compiles them to.
    """,
    setup="""
        import jax
        import jax.numpy as jnp

        from shardmath.exercises import check, report
        from shardmath.hardware import chips

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

EIGHT = {"Z": 8}


def _merge(m1, l1, u1, m2, l2, u2) -> list[float]:
    m = max(m1, m2)
    a, b = math.exp(m1 - m), math.exp(m2 - m)
    return [m, a * l1 + b * l2, a * u1 + b * u2]


def _exp(score: float) -> float:
    return math.exp(score) if score < 700 else math.inf


MERGE = Function(
    id="11.1",
    title="Merge two partial results",
    task=r"""
        **Given** partial results of one query over two sets of keys, for one value of a
        head: the largest score $m$, $\ell = \sum e^{s-m}$ and $U = \sum e^{s-m} v$ of
        each.

        **Wanted** a function that returns the three numbers $m$, $\ell$, $U$ of both
        sets together. Scores may be large: $e^m$ alone overflows.
    """,
    stub="def merge(m1, l1, u1, m2, l2, u2): ...",
    spec=_merge,
    gives=(("m", ""), ("ℓ", ""), ("U", "")),
    cases=lambda rng: (
        float(rng.randint(-3, 3)),
        1 + rng.random() * 8,
        rng.random() * 8 - 4,
        float(rng.randint(-3, 3)) + 0.5,
        1 + rng.random() * 8,
        rng.random() * 8 - 4,
    ),
    examples=((0.0, 2.0, 1.0, 1.0, 3.0, -1.0), (900.0, 1.0, 1.0, 898.0, 4.0, 2.0)),
    rtol=1e-5,  # so that `jnp` with its float32 will do
    slips=(
        Slip(
            "sums of two scales",
            lambda m1, l1, u1, m2, l2, u2: [max(m1, m2), l1 + l2, u1 + u2],
            "The two sums have been divided by different exponentials.",
        ),
        Slip(
            "scales swapped",
            lambda m1, l1, u1, m2, l2, u2: [
                max(m1, m2),
                math.exp(m2 - max(m1, m2)) * l1 + math.exp(m1 - max(m1, m2)) * l2,
                math.exp(m2 - max(m1, m2)) * u1 + math.exp(m1 - max(m1, m2)) * u2,
            ],
            "Each sum is brought from its own scale to the common one.",
        ),
        Slip(
            "nothing taken out",
            lambda m1, l1, u1, m2, l2, u2: [
                max(m1, m2),
                _exp(m1) * l1 + _exp(m2) * l2,
                _exp(m1) * u1 + _exp(m2) * u2,
            ],
            "The sums are wanted at the scale of the larger m: take it out of both "
            "exponents.",
        ),
        Slip(
            "the mean of results",
            lambda m1, l1, u1, m2, l2, u2: [
                max(m1, m2),
                _merge(m1, l1, u1, m2, l2, u2)[1],
                u1 / l1 + u2 / l2,
            ],
            "U is a sum, not yet divided by ℓ.",
        ),
        Slip(
            "already divided",
            lambda *parts: [
                *_merge(*parts)[:2],
                _merge(*parts)[2] / _merge(*parts)[1],
            ],
            "U is a sum; it is divided by ℓ once all parts are merged.",
        ),
    ),
    hint="Bring both to the larger m: multiply by e to the difference.",
    solution="""
        ```python
        import math

        def merge(m1, l1, u1, m2, l2, u2):
            m = max(m1, m2)
            a, b = math.exp(m1 - m), math.exp(m2 - m)
            return m, a * l1 + b * l2, a * u1 + b * u2
        ```
    """,
)

_BUSY = CausalRing("contiguous", 16, 65_536)

BUSIEST = Number(
    id="11.2",
    title="The busiest chip",
    task="""
        **Given** a causal sequence of 65,536 tokens over 16 chips, in contiguous order.
        A query sees the keys at its own position and before.

        **Wanted** how many pairs of query and key the busiest chip computes, if it
        leaves out what no query sees.
    """,
    stub="pairs = ...",
    unit="pairs",
    expected=lambda: max(_BUSY.work),
    slips=(
        Slip("the mean", lambda right: float(_BUSY.mean), "All chips have the mean in "
             "zig-zag order. Here the last chip sees nearly all keys."),
        Slip("nothing left out", lambda right: 4096 * 65_536,
             "Of its own block it computes about half."),
        Slip("without its own block", lambda right: 15 * 4096**2,
             "A chip's queries see its own keys, too, up to themselves."),
        Slip("the first chip", lambda right: min(_BUSY.work),
             "The first chip sees its own keys alone. Who sees most?"),
    ),
    hint="Fifteen whole blocks of keys, and a triangle.",
    solution="""
        ```python
        t = 65_536 // 16
        pairs = 15 * t**2 + t * (t + 1) // 2
        ```
    """,
)  # fmt: skip


def _chunks(chip: int, n: int) -> list[int]:
    return [chip, 2 * n - 1 - chip]


ZIGZAG = Function(
    id="11.3",
    title="Who gets which chunks",
    task="""
        **Given** a sequence in $2n$ chunks, numbered from 0, over $n$ chips, numbered
        from 0, in zig-zag order.

        **Wanted** a function that returns a pair: the numbers of the two chunks of a
        chip, the smaller one first.
    """,
    stub="def chunks(chip, n): ...",
    spec=_chunks,
    gives=(("first chunk", ""), ("second chunk", "")),
    cases=lambda rng: (rng.randint(0, 7), rng.randint(8, 64)),
    examples=((0, 4), (3, 4), (1, 8)),
    slips=(
        Slip(
            "neighbours",
            lambda chip, n: [2 * chip, 2 * chip + 1],
            "That is contiguous order: the last chip sees most keys.",
        ),
        Slip(
            "n apart",
            lambda chip, n: [chip, n + chip],
            "Then the last chip has the later of both halves.",
        ),
        Slip(
            "off by one",
            lambda chip, n: [chip, 2 * n - chip],
            "Chunks are numbered from 0 to 2n - 1.",
        ),
    ),
    hint="The numbers of a chip's chunks add up to the same for all chips.",
    solution="""
        ```python
        def chunks(chip, n):
            return chip, 2 * n - 1 - chip
        ```
    """,
)


def _around(way: str, seq: int, remat: str) -> float:
    """Bytes of a layer of Llama 3.1 8B around attention, on eight chips."""
    one = step(
        context("Z", way),
        LLAMA_3_8B,
        EIGHT,
        1,
        seq,
        attention="causal",
        remat=remat,
        vocabulary=False,
    )
    names = "QKVA"
    moved = (m.collective for m in one.moves if m.array.removeprefix("d") in names)
    return sum(c.total_sent for c in moved) / LLAMA_3_8B.layers


RING_BYTES = Number(
    id="11.4",
    title="What a ring sends",
    task="""
        **Given** one layer of Llama 3.1 8B, 32 query heads and 8 KV heads of 128, in
        bf16, and a sequence of 65,536 tokens over a ring of 8 chips. Nothing is
        computed again.

        **Wanted** the bytes that each chip sends around attention in both passes.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _around("ring", 65_536, "none"),
    slips=(
        scaled("n hops", 8 / 7, "After how many hops has a chip seen all keys?"),
        scaled(
            "forward alone, or keys alone",
            1 / 2,
            "Keys and values go round, and backward their gradients do.",
        ),
        scaled(
            "query heads",
            4,
            "Queries stay where they are: what goes round has the KV heads.",
        ),
        scaled(
            "keys go round twice",
            3 / 2,
            "That is so if the layer is computed again.",
        ),
        scaled("one hop", 1 / 7, "A ring of n chips takes n - 1 hops."),
        scaled("the whole sequence", 8, "Of the tokens a chip has an eighth."),
        scaled(
            "an eighth in each hop",
            1 / 8,
            "A hop carries all keys and values that a chip then holds.",
        ),
    ),
    hint="Seven hops of a chip's keys and values, and seven of their gradients.",
    solution="""
        ```python
        t = 65_536 / 8
        a_hop = 2 * 2 * 8 * 128 * t
        nbytes = 2 * 7 * a_hop
        ```
    """,
)

ULYSSES_BYTES = Number(
    id="11.5",
    title="What Ulysses sends",
    task="""
        **Given** one layer of Llama 3.1 8B, 32 query heads and 8 KV heads of 128, in
        bf16, and a sequence of 65,536 tokens over 8 chips by Ulysses. Under full remat
        the forward pass is computed again, its AllToAlls too.

        **Wanted** the bytes that each chip sends around attention in a step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _around("ulysses", 65_536, "full"),
    slips=(
        scaled("no remat", 2 / 3, "That is without remat."),
        scaled("forward alone", 1 / 3, "The gradients go the same ways back."),
        scaled(
            "queries and results left out",
            8 / 40,
            "An AllToAll before attention for queries, keys and values each, one after "
            "it for the result.",
        ),
        scaled(
            "keys and values left out",
            64 / 80,
            "The keys and values of all tokens are needed, too.",
        ),
        scaled("all of it", 8 / 7, "A chip keeps the heads that it computes itself."),
        scaled(
            "to each other chip",
            8,
            "To each other chip goes an eighth of what a chip has, not all of it.",
        ),
        scaled(
            "a KV head for each query head",
            64 / 40,
            "Keys and values have 8 heads, queries and results 32.",
        ),
        scaled(
            "the result left out",
            48 / 80,
            "After attention its result goes back to the tokens, too.",
        ),
    ),
    hint="Four arrays, in three passes. A chip sends seven eighths of its part.",
    solution="""
        ```python
        t = 65_536 / 8
        heads = 2 * 32 + 2 * 8
        nbytes = 3 * 2 * heads * 128 * t * 7 / 8
        ```
    """,
)


def _two(N: int, K: int, H: int, t: int, n: int) -> list[float]:
    copied = max(K, n)
    return [
        2 * 2 * K * H * t * (n - 1),
        2 * 2 * (N + copied) * H * t * (n - 1) / n,
    ]


TWO_WAYS = Function(
    id="11.6",
    title="Ring or Ulysses",
    task="""
        **Given** $N$ query heads and $K$ KV heads of $H$ values in bf16, all powers of
        two, over $n \\le N$ chips with $t$ tokens each. For Ulysses, where there are
        more chips than KV heads, each is repeated before the AllToAll until there are
        $n$ of them.

        **Wanted** a function that returns a pair: the bytes that a chip sends forward
        by a ring, and by Ulysses.
    """,
    stub="def sent(N, K, H, t, n): ...",
    spec=_two,
    gives=(("ring", "bytes"), ("Ulysses", "bytes")),
    cases=lambda rng: (
        2 ** rng.randint(5, 7),
        2 ** rng.randint(0, 5),
        128,
        1024 * rng.randint(1, 16),
        2 ** rng.randint(1, 5),
    ),
    examples=((64, 8, 128, 8192, 8), (64, 8, 128, 8192, 16), (32, 32, 128, 1024, 4)),
    slips=(
        Slip(
            "no copies",
            lambda N, K, H, t, n: [
                2 * 2 * K * H * t * (n - 1),
                2 * 2 * (N + K) * H * t * (n - 1) / n,
            ],
            "Beyond K chips each KV head is sent more than once.",
        ),
        Slip(
            "n hops",
            lambda N, K, H, t, n: [2 * 2 * K * H * t * n, _two(N, K, H, t, n)[1]],
            "After n - 1 hops a chip has seen all keys.",
        ),
        Slip(
            "copies in the ring",
            lambda N, K, H, t, n: [
                2 * 2 * max(K, n) * H * t * (n - 1),
                _two(N, K, H, t, n)[1],
            ],
            "A ring does not care for whole heads: keys go round as they are.",
        ),
        Slip(
            "A forgotten",
            lambda N, K, H, t, n: [
                2 * 2 * K * H * t * (n - 1),
                2 * (N + 2 * max(K, n)) * H * t * (n - 1) / n,
            ],
            "Ulysses brings what attention gives back to the tokens: A is as large as "
            "Q, and it is sent, too.",
        ),
        Slip(
            "keys alone",
            lambda N, K, H, t, n: [
                2 * K * H * t * (n - 1),
                2 * (2 * N + max(K, n)) * H * t * (n - 1) / n,
            ],
            "Values travel with the keys, and are as large.",
        ),
        Slip(
            "own part sent too",
            lambda N, K, H, t, n: [
                2 * 2 * K * H * t * (n - 1),
                2 * 2 * (N + max(K, n)) * H * t,
            ],
            "A chip keeps the heads that it computes itself.",
        ),
    ),
    hint="Keys and values, n - 1 times; or Q, K, V and A, an n-th to each other chip.",
    solution="""
        ```python
        def sent(N, K, H, t, n):
            ring = 2 * 2 * K * H * t * (n - 1)
            copied = max(K, n)
            ulysses = 2 * (2 * N + 2 * copied) * H * t * (n - 1) / n
            return ring, ulysses
        ```
    """,
)


def _hides(N: int, K: int, peak: float, bandwidth: float) -> float:
    return 2 * K / N * peak / bandwidth


HIDES = Function(
    id="11.7",
    title="When a hop hides",
    task="""
        **Given** $N$ query heads and $K$ KV heads in bf16, causal attention in zig-zag
        order on chips of `peak` FLOPs/s, each of which sends `bandwidth` to its
        neighbour, one way.

        **Wanted** a function that returns the tokens a chip at which a step of the
        forward pass takes as long as a hop. Half of the scores of a step are computed.
    """,
    stub="def tokens(N, K, peak, bandwidth): ...",
    spec=_hides,
    gives=(("tokens a chip", ""),),
    units={"peak": "FLOPs/s", "bandwidth": "bytes/s"},
    cases=lambda rng: (
        2 ** rng.randint(5, 7),
        2 ** rng.randint(0, 5),
        rng.randint(1, 20) * 1e14,
        rng.randint(1, 20) * 5e10,
    ),
    examples=((64, 8, 459e12, 1e11), (128, 8, 989.4e12, 450e9)),
    slips=(
        Slip(
            "full attention",
            lambda N, K, peak, bandwidth: _hides(N, K, peak, bandwidth) / 2,
            "Half of the scores of a step are computed. What is sent are keys and "
            "values, all the same way.",
        ),
        Slip(
            "one FLOP for a multiply and its add",
            lambda N, K, peak, bandwidth: _hides(N, K, peak, bandwidth) * 2,
            "A score takes a multiply and an add, and its value as many again: 4 H "
            "FLOPs a pair.",
        ),
        Slip(
            "as many KV heads",
            lambda N, K, peak, bandwidth: 2 * peak / bandwidth,
            "Queries that share a KV head share what is sent.",
        ),
        Slip(
            "heads the wrong way round",
            lambda N, K, peak, bandwidth: 2 * N / K * peak / bandwidth,
            "More query heads are more math, more KV heads more bytes.",
        ),
    ),
    hint="A step: 4 N H t²/2 FLOPs. A hop: K and V of t tokens, 2 bytes a value.",
    solution="""
        $2NHt^2/C = 4KHt/W_\\text{link}$.

        ```python
        def tokens(N, K, peak, bandwidth):
            return 2 * K / N * peak / bandwidth
        ```
    """,
)

KEPT = Number(
    id="11.8",
    title="What waits for the backward pass",
    task="""
        **Given** one sequence of 524,288 tokens through the 80 layers of Llama 3.1 70B,
        $D = 8192$, in bf16 under full remat, over 32 chips by context parallelism.

        **Wanted** the bytes of layers' inputs that each chip keeps for the backward
        pass.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: step(
        context("Z"), LLAMA_3_70B, {"Z": 32}, 1, 524_288, attention="causal"
    ).memory.parts["saved"],
    slips=(
        scaled("not divided", 32, "The stream is split over the tokens."),
        scaled("one layer", 1 / 80, "Every layer keeps its input."),
        scaled("one byte a value", 1 / 2, "A value in bf16 has two bytes."),
        scaled(
            "keys and values instead",
            1 / 4,
            "Under full remat the input of a layer is kept; keys and values are made "
            "again from it.",
        ),
    ),
    hint="One array of the stream for each layer.",
    solution="""
        ```python
        nbytes = 80 * 2 * 524_288 * 8192 / 32
        ```
    """,
)


# Programs. Values are float32: four bytes each.


def _ring_shapes(rng):
    S, D = 8 * rng.randint(2, 5), rng.choice([3, 5])
    return (S, D), (S, D), (S, D + 4)


def _hops(times: int):
    def collectives(q, k, v):
        return [
            Collective("permute", ("Z",), 4 * k[0] * k[1] / 8, 8, times=times),
            Collective("permute", ("Z",), 4 * v[0] * v[1] / 8, 8, times=times),
        ]

    return collectives


ROTATE = Sharded(
    id="11.9",
    title="Keys go round",
    task=r"""
        **Given** each device's tokens of $q[S_Z, D]$, $k[S_Z, D]$ and $v[S_Z, E]$.

        **Wanted** the function that every device runs, returning its rows of
        $\max(q\,k^\top, 0)\,v$, an attention whose weights need no softmax: keys and
        values go round by `jax.lax.ppermute`, from neighbour to neighbour, and in no
        other way. It may send no more than a ring must.
    """,
    stub="def attention(q, k, v): ...",
    mesh=EIGHT,
    shapes=_ring_shapes,
    in_specs=(("Z", None),) * 3,
    out_spec=("Z", None),
    spec=lambda q, k, v: (q @ k.T).clip(0) @ v,
    collectives=_hops(7),
    at_most=True,
    neighbours=True,
    values=(
        Slip(
            "negative scores kept",
            lambda q, k, v: q @ k.T @ v,
            "Negative scores become zero before they meet the values.",
        ),
    ),
    slips=(
        Slip(
            "n hops",
            _hops(8),
            "With the last hop keys come home, where nobody needs them.",
        ),
        Slip(
            "gathered",
            lambda q, k, v: [
                Collective("all_gather", ("Z",), 4 * math.prod(k), 8),
                Collective("all_gather", ("Z",), 4 * math.prod(v), 8),
            ],
            "These are the same bytes, all at once. Here they shall go round.",
        ),
    ),
    hint="Compute with the keys that you have; between two computations, one hop.",
    solution="""
        ```python
        def attention(q, k, v):
            to_the_next = [(i, (i + 1) % 8) for i in range(8)]
            found = jax.nn.relu(q @ k.T) @ v
            for _ in range(7):
                k, v = jax.lax.ppermute((k, v), "Z", to_the_next)
                found += jax.nn.relu(q @ k.T) @ v
            return found
        ```
    """,
)


def _softmax_shapes(rng):
    S, H = 8 * rng.randint(2, 5), rng.choice([3, 5])
    return (S, H), (S, H), (S, H + 4)


def _causal(q, k, v):
    import numpy as np  # not at the top: a page judges numbers without it

    return _seeing(np.tri(len(q)), q, k, v)


def _from_the_first(q, k, v):
    """Causal attention whose queries are all taken for those of the first device."""
    import numpy as np  # not at the top: a page judges numbers without it

    return _seeing(np.tile(np.tri(len(q) // 8, len(k)), (8, 1)), q, k, v)


def _seeing(mask, q, k, v):
    """Attention in which a query sees the keys where `mask` is not zero."""
    import numpy as np  # not at the top: a page judges numbers without it

    scores = np.where(mask, q @ k.T, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


GATHERED = Sharded(
    id="11.10",
    title="Keys gathered",
    task=r"""
        **Given** each device's tokens of $q[S_Z, H]$, $k[S_Z, H]$ and $v[S_Z, E]$ of
        one head, in contiguous order.

        **Wanted** the function that every device runs, returning its rows of causal
        attention, $\text{softmax}(q\,k^\top)\,v$ without a scale: a query sees the keys
        at its own position and before. Exactly two AllGathers, of $4SH$ and $4SE$
        bytes, or as many bytes at once.
    """,
    stub="def attention(q, k, v): ...",
    mesh=EIGHT,
    shapes=_softmax_shapes,
    in_specs=(("Z", None),) * 3,
    out_spec=("Z", None),
    spec=_causal,
    collectives=lambda q, k, v: [
        Collective("all_gather", ("Z",), 4 * math.prod(k), 8),
        Collective("all_gather", ("Z",), 4 * math.prod(v), 8),
    ],
    at_most=True,
    slips=(
        Slip(
            "queries gathered too",
            lambda q, k, v: [
                Collective("all_gather", ("Z",), 4 * math.prod(k), 8, times=2),
                Collective("all_gather", ("Z",), 4 * math.prod(v), 8),
            ],
            "Queries may stay: each device wants the rows of its own.",
        ),
    ),
    values=(
        Slip(
            "no mask",
            lambda q, k, v: _seeing(q[:, :1] == q[:, :1], q, k, v),
            "Every query sees all keys here, the later ones too.",
        ),
        Slip(
            "positions from zero on every device",
            _from_the_first,
            "The mask takes the queries of every device for the first ones of the "
            "sequence. On which device are they?",
        ),
    ),
    hint="`jax.lax.axis_index` tells which positions a device's queries have.",
    solution="""
        ```python
        def attention(q, k, v):
            k = jax.lax.all_gather(k, "Z", axis=0, tiled=True)
            v = jax.lax.all_gather(v, "Z", axis=0, tiled=True)
            first = jax.lax.axis_index("Z") * q.shape[0]
            queries = first + jnp.arange(q.shape[0])
            sees = queries[:, None] >= jnp.arange(k.shape[0])
            return jax.nn.softmax(jnp.where(sees, q @ k.T, -jnp.inf)) @ v
        ```
    """,
)


def _head_shapes(rng):
    return ((8 * rng.randint(2, 5), 8 * rng.randint(1, 2), rng.choice([3, 5])),)


def _sorted(x):
    import numpy as np  # not at the top: a page judges numbers without it

    return np.sort(x, axis=0)


ULYSSES = Sharded(
    id="11.11",
    title="From tokens to heads and back",
    task=r"""
        **Given** each device's tokens of $x[S_Z, N, H]$: all heads of some tokens.

        **Wanted** the function that every device runs, returning its part of $x$ with
        the values of each head sorted over all tokens. Sorting needs all tokens of a
        head in one place, as attention does: exactly two AllToAlls of $4SNH$ bytes.
    """,
    stub="def sort_tokens(x): ...",
    mesh=EIGHT,
    shapes=_head_shapes,
    in_specs=(("Z", None, None),),
    out_spec=("Z", None, None),
    spec=_sorted,
    collectives=lambda x: [
        Collective("all_to_all", ("Z",), 4 * math.prod(x), 8, times=2)
    ],
    slips=(
        Slip(
            "gathered",
            lambda x: [Collective("all_gather", ("Z",), 4 * math.prod(x), 8)],
            "Then every device sorts every head. Let each have some heads whole.",
        ),
        Slip(
            "gathered after",
            lambda x: [
                Collective("all_to_all", ("Z",), 4 * math.prod(x), 8),
                Collective("all_gather", ("Z",), 4 * math.prod(x), 8),
            ],
            "Back to the tokens it is the same exchange the other way.",
        ),
    ),
    hint="`jax.lax.all_to_all(x, axis, split_axis, concat_axis, tiled=True)`.",
    solution="""
        ```python
        def sort_tokens(x):
            whole = jax.lax.all_to_all(x, "Z", 1, 0, tiled=True)
            return jax.lax.all_to_all(jnp.sort(whole, 0), "Z", 0, 1, tiled=True)
        ```
    """,
)


def _partial_shapes(rng):
    S, H = rng.randint(8, 16), rng.choice([9, 11])
    return (8, S), (8, S), (8, S, H)


def _merged(m, total, U):
    import numpy as np  # not at the top: a page judges numbers without it

    scale = np.exp(100 * (m - m.max(0)))
    total = 1 + total**2
    return (scale[..., None] * U).sum(0) / (scale * total).sum(0)[..., None]


MERGED = Sharded(
    id="11.12",
    title="Partial results of eight chips",
    task=r"""
        **Given** one row of $m[8_Z, S]$, of $r[8_Z, S]$ and of $U[8_Z, S, H]$ on each
        device: the partial result of $S$ queries over the keys that this device holds.
        Scores are large: the largest is $100\,m$. The sum of exponentials, one of them
        $e^0$, is $\ell = 1 + r^2$.

        **Wanted** the function that every device runs, returning $A[S, H]$ over the
        keys of all devices, whole on each: AllReduces of $4S$, $4S$ and $4SH$ bytes, or
        as many bytes in fewer. So one token's queries attend to keys that lie on many
        chips.
    """,
    stub="def merged(m, r, U): ...",
    mesh=EIGHT,
    shapes=_partial_shapes,
    in_specs=(("Z", None), ("Z", None), ("Z", None, None)),
    out_spec=(None, None),
    spec=_merged,
    collectives=lambda m, r, U: [
        Collective("all_reduce", ("Z",), 4 * m[1], 8, times=2),
        Collective("all_reduce", ("Z",), 4 * U[1] * U[2], 8),
    ],
    at_most=True,
    slips=(
        Slip(
            "all gathered",
            lambda m, r, U: [
                Collective("all_gather", ("Z",), 4 * 8 * m[1], 8, times=2),
                Collective("all_gather", ("Z",), 4 * math.prod(U), 8),
            ],
            "Sums can be added up on the way: gather nothing.",
        ),
    ),
    values=(
        Slip(
            "without the largest",
            lambda m, r, U: U.sum(0) / (1 + r**2).sum(0)[..., None],
            "Partial results of different devices stand at different scales, each at "
            "its own largest score. Bring them to the largest of all first.",
        ),
        Slip(
            "m for 100 m",
            lambda m, r, U: _merged(m / 100, r, U),
            "The largest score of a device is 100 m.",
        ),
    ),
    hint=(
        "The largest of all devices by `jax.lax.pmax`; then both sums, each at that "
        "scale."
    ),
    solution="""
        ```python
        def merged(m, r, U):
            m, total, U = 100 * m[0], 1 + r[0] ** 2, U[0]
            scale = jnp.exp(m - jax.lax.pmax(m, "Z"))
            total = jax.lax.psum(scale * total, "Z")
            return jax.lax.psum(scale[:, None] * U, "Z") / total[:, None]
        ```
    """,
)


# Several steps.

_TOKENS, _RING = 2048, 8
_HOP = 2 * 2 * 8 * 128 * _TOKENS / chips.TPU_7X.link_bandwidth
_MATH = 4 * 64 * 128 * _TOKENS**2 / 2 / chips.TPU_7X.flops["bf16"]

RING_TIME = Number(
    id="11.13",
    title="A ring that the hops bind",
    points=2,
    task=r"""
        **Given** attention of one layer of Llama 3.1 70B, 64 query heads and 8 KV heads
        of 128, forward in bf16: 16,384 tokens in zig-zag order over a ring of 8 TPU 7x
        (Ironwood). A chip sends `chips.TPU_7X.link_bandwidth` to the next, one way.
        It computes half of the scores of each step, while the keys for the next one
        travel.

        **Wanted** the seconds of all steps, at peak rates.
    """,
    given=stated(chips.TPU_7X, "flops.bf16", "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: (_RING - 1) * max(_HOP, _MATH) + _MATH,
    slips=(
        Slip(
            "math alone",
            lambda right: _RING * _MATH,
            "Compare a hop with the math beside it: which takes longer?",
        ),
        Slip(
            "n hops",
            lambda right: _RING * _HOP,
            "In the last step nothing is sent any more.",
        ),
        Slip(
            "the last step left out",
            lambda right: (_RING - 1) * max(_HOP, _MATH),
            "The keys that the last hop brings still have to be computed with.",
        ),
        Slip(
            "nothing overlaps",
            lambda right: (_RING - 1) * _HOP + _RING * _MATH,
            "Keys for the next step travel while this one is computed.",
        ),
        Slip(
            "both directions",
            lambda right: (_RING - 1) * max(_HOP / 2, _MATH) + _MATH,
            "Keys and values all go the same way here.",
        ),
        Slip(
            "query heads sent",
            lambda right: (_RING - 1) * 8 * _HOP + _MATH,
            "What goes round has 8 KV heads, not 64.",
        ),
        Slip(
            "all scores",
            lambda right: (_RING - 1) * max(_HOP, 2 * _MATH) + 2 * _MATH,
            "Half of the scores of a step are seen by no query.",
        ),
    ),
    hint="Seven steps take the longer of math and hop, the last one its math.",
    solution="""
        ```python
        from shardmath.hardware import chips

        t = 16_384 / 8
        hop = 2 * 2 * 8 * 128 * t / chips.TPU_7X.link_bandwidth
        math = 4 * 64 * 128 * t**2 / 2 / chips.TPU_7X.flops["bf16"]
        seconds = 7 * max(hop, math) + math
        ```

        A hop takes nearly three times as long as the math. With three times the tokens
        it would hide.
    """,
)


def _attention_share() -> float:
    found = flops(LLAMA_3_70B, 131_072, "causal")
    return found.attention / found.forward


_SHARE = _attention_share()

ORDER_GAIN = Number(
    id="11.14",
    title="What the order is worth",
    points=2,
    task=r"""
        **Given** Llama 3.1 70B on sequences of 131,072 tokens, each over a ring of 8
        chips. A token costs, forward, $1.39\cdot10^{11}$ FLOPs in all matmuls with
        weights, the head's among them, and $1.72\cdot10^{11}$ in causal attention, in
        the mean. Both passes have the same shares. All math runs at the same rate, the
        network is hidden, and each layer waits for its slowest chip.

        **Wanted** how many times as fast a step becomes if contiguous order is replaced
        by zig-zag, for long sequences.
    """,
    stub="times = ...",
    unit="",
    expected=lambda: 1 - _SHARE + _SHARE * 15 / 8,
    slips=(
        Slip(
            "attention alone",
            lambda right: 15 / 8,
            "The matmuls with weights are even in either order.",
        ),
        Slip(
            "twice",
            lambda right: 1 + _SHARE,
            "The busiest of 8 chips has 15/8 of the mean, not twice.",
        ),
        Slip(
            "twice, and attention alone",
            lambda right: 2,
            "The busiest of 8 chips has 15/8 of the mean, and the matmuls with weights "
            "are even in either order.",
        ),
        Slip(
            "how much faster",
            lambda right: right - 1,
            "That is what is gained. How many times as fast is it?",
        ),
        Slip(
            "shares swapped",
            lambda right: _SHARE + (1 - _SHARE) * 15 / 8,
            "Which part of the math is uneven?",
        ),
        Slip(
            "one over it",
            lambda right: 1 / right,
            "That is what is left of the time. How many times as fast is it?",
        ),
    ),
    hint="A step takes the weights' math and attention on the busiest chip.",
    solution="""
        ```python
        weights, attention = 1.39e11, 1.72e11
        times = (weights + attention * 15 / 8) / (weights + attention)
        ```
    """,
)


def _exchange() -> float:
    mesh = Mesh(Torus(chips.TPU_V5P, (4, 4, 16)), {"X": 16, "Z": 16})
    heads = 2 * (32 + 32)
    return all_to_all(2 * heads * 128 * 4096 * 16, mesh, "Z").bandwidth_seconds


_V = 2 * 128 * 128 * 4096 * 16
_W = chips.TPU_V5P.link_bandwidth

EXCHANGE = Number(
    id="11.15",
    title="Ulysses on a torus",
    points=2,
    task=r"""
        **Given** one layer with 32 query heads and 32 KV heads of 128, in bf16, and
        4,096 tokens on each of the 16 TPU v5p of a closed ring. A chip sends
        `chips.TPU_V5P.link_bandwidth` in each direction. Every byte takes the shorter
        way round.

        **Wanted** the seconds that the wires take for the AllToAlls of Ulysses forward,
        one after another, without latency.
    """,
    given=stated(chips.TPU_V5P, "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    rtol=0.002,
    expected=_exchange,
    slips=(
        Slip(
            "as on a switch",
            lambda right: _V / 16 * 15 / 16 / (2 * _W),
            "On a ring most bytes pass through chips on their way, and over their "
            "links.",
        ),
        scaled(
            "one direction, or both passes",
            2,
            "A ring has two directions; and forward alone is wanted.",
        ),
        scaled(
            "one array",
            1 / 4,
            "Queries, keys and values before attention, and its result after.",
        ),
        scaled(
            "the result left out",
            3 / 4,
            "After attention the result goes back to the tokens.",
        ),
        scaled(
            "a chip's part for the whole",
            1 / 16,
            "An AllToAll of the array of all 16 chips: all of it has to move.",
        ),
        scaled(
            "own part left out",
            15 / 16,
            "What a chip keeps crosses no link: the formula has left it out already.",
        ),
        scaled(
            "as an AllGather",
            4 * 15 / 16,
            "That gathers all of it on every chip. To each chip goes its part alone.",
        ),
    ),
    hint="A closed ring takes V / 8W_link for an AllToAll of V bytes in all, W_link "
    "one way.",
    solution="""
        Four arrays as large as the queries of all 16 chips.

        ```python
        from shardmath.hardware import chips

        V = 4 * 2 * 32 * 128 * 4096 * 16
        seconds = V / (8 * chips.TPU_V5P.link_bandwidth)
        ```
    """,
)
