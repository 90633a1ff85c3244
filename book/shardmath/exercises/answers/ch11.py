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
        "context parallelism: online softmax, rings and their hops, how causal work "
        "is divided, AllGather and Ulysses, when a hop is hidden, and four programs "
        "graded on what they compile to"
    ),
    intro="""
        from partial results to the time of a ring. Answers are in base units: bytes,
        seconds, tokens.

        In 11.9 to 11.12 you write programs for eight virtual devices. They are graded
        on their results and on the collectives that XLA compiles them to.
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
        **Given** the partial results of one query over two sets of keys. To keep it
        simple, each value is a single number $v$. For each set you have the largest
        score $m$, the sum $\ell = \sum e^{s-m}$, and the sum $U = \sum e^{s-m} v$.

        **Wanted** a function that returns $m$, $\ell$, and $U$ for both sets together.
        Scores may be so large that $e^m$ overflows.
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
            "The two sums have different scales, because each set has subtracted its "
            "own largest score. Bring both to the same scale before you add them.",
        ),
        Slip(
            "scales swapped",
            lambda m1, l1, u1, m2, l2, u2: [
                max(m1, m2),
                math.exp(m2 - max(m1, m2)) * l1 + math.exp(m1 - max(m1, m2)) * l2,
                math.exp(m2 - max(m1, m2)) * u1 + math.exp(m1 - max(m1, m2)) * u2,
            ],
            "Did you swap the two factors? Each sum has to be multiplied by e to the "
            "power of its own largest score minus the common one.",
        ),
        Slip(
            "nothing taken out",
            lambda m1, l1, u1, m2, l2, u2: [
                max(m1, m2),
                _exp(m1) * l1 + _exp(m2) * l2,
                _exp(m1) * u1 + _exp(m2) * u2,
            ],
            "The sums should be at the scale of the larger m. Did you subtract it in "
            "both exponents?",
        ),
        Slip(
            "the mean of results",
            lambda m1, l1, u1, m2, l2, u2: [
                max(m1, m2),
                _merge(m1, l1, u1, m2, l2, u2)[1],
                u1 / l1 + u2 / l2,
            ],
            "Did you divide U by ℓ? U is a sum, and it is divided only at the very "
            "end.",
        ),
        Slip(
            "already divided",
            lambda *parts: [
                *_merge(*parts)[:2],
                _merge(*parts)[2] / _merge(*parts)[1],
            ],
            "U is divided by ℓ only after all parts are merged. Return the sum itself.",
        ),
    ),
    hint="The two sets have different scales. By which factor do you multiply the sums "
    "of each set to bring them to the scale of the larger m?",
    solution="""
        Each set has subtracted its own largest score, so we first bring the sums of
        both sets to the scale of the larger one.

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
        **Given** causal attention over a sequence of 65,536 tokens that is split over
        16 chips in contiguous order. Each query sees the keys at its own position and
        before it.

        **Wanted** the number of pairs of a query and a key that the busiest chip
        computes. It skips all pairs in which the query doesn't see the key.
    """,
    stub="pairs = ...",
    unit="pairs",
    expected=lambda: max(_BUSY.work),
    slips=(
        Slip("the mean", lambda right: float(_BUSY.mean), "That is the average. In "
             "zig-zag order every chip would have that many pairs, but here the "
             "queries of the last chip see nearly all keys."),
        Slip("nothing left out", lambda right: 4096 * 65_536,
             "Did you count the pairs that the mask hides? The chip computes only "
             "about half of the block with its own keys."),
        Slip("without its own block", lambda right: 15 * 4096**2,
             "Did you forget the chip's own keys? Each query also sees those up to "
             "its own position."),
        Slip("the first chip", lambda right: min(_BUSY.work),
             "That is the number for the first chip, which sees only its own keys. "
             "Which chip sees the most keys?"),
    ),
    hint="Which chip sees the most keys? It computes fifteen full blocks and one "
    "triangle.",
    solution="""
        The last chip is the busiest, because its queries see all keys of the fifteen
        chips before it. In its own block, each query sees the keys up to its own
        position, and these pairs form a triangle.

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
        **Given** a sequence that is cut into $2n$ chunks and dealt to $n$ chips in
        zig-zag order. Chunks and chips are both numbered from 0.

        **Wanted** a function that returns the numbers of the two chunks that a chip
        holds, the smaller one first.
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
            "That is contiguous order, in which the last chip has the most work.",
        ),
        Slip(
            "n apart",
            lambda chip, n: [chip, n + chip],
            "Then the last chip has the last chunk of each half, so it has the most "
            "work.",
        ),
        Slip(
            "off by one",
            lambda chip, n: [chip, 2 * n - chip],
            "The chunks are numbered from 0 to 2n - 1. Did you count from 1?",
        ),
    ),
    hint="For every chip, the two numbers have the same sum. What is that sum?",
    solution="""
        A later chunk has more work. To even this out, each chip gets a chunk from the
        front and the chunk that is just as far from the end.

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
        **Given** one layer of Llama 3.1 8B in bf16, with 32 query heads and 8 KV heads
        of 128 values each. A sequence of 65,536 tokens is split over a ring of 8 chips.
        Each chip keeps all the keys and values that it receives, so nothing is
        recomputed or sent again in the backward pass.

        **Wanted** the bytes that each chip sends for attention in both passes together.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _around("ring", 65_536, "none"),
    slips=(
        scaled(
            "n hops",
            8 / 7,
            "How many hops does it take before a chip has seen all keys? It starts "
            "with its own.",
        ),
        scaled(
            "forward alone, or keys alone",
            1 / 2,
            "Did you count keys and values, and also their gradients in the backward "
            "pass?",
        ),
        scaled(
            "query heads",
            4,
            "Queries stay on their chip. Only keys and values travel, and they have 8 "
            "heads.",
        ),
        scaled(
            "keys go round twice",
            3 / 2,
            "That would be right with full remat. Here nothing is recomputed, so the "
            "keys travel only once.",
        ),
        scaled(
            "one hop",
            1 / 7,
            "That is what a single hop sends. A ring of n chips needs n - 1 hops.",
        ),
        scaled(
            "the whole sequence", 8, "Each chip holds only one eighth of the tokens."
        ),
        scaled(
            "an eighth in each hop",
            1 / 8,
            "Each hop carries all the keys and values that a chip currently holds. "
            "Did you divide by the number of chips twice?",
        ),
    ),
    hint="A chip sends keys and values in seven hops, and their gradients in another "
    "seven. How many bytes does one hop carry?",
    solution="""
        A chip starts with its own keys and values, so it needs seven hops to get those
        of the other seven chips. The gradients of keys and values make seven hops as
        well.

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
        **Given** one layer of Llama 3.1 8B in bf16, with 32 query heads and 8 KV heads
        of 128 values each. Ulysses splits a sequence of 65,536 tokens over 8 chips.
        Full remat runs the forward pass a second time, including its AllToAlls.

        **Wanted** the bytes that each chip sends for attention in one training step.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: _around("ulysses", 65_536, "full"),
    slips=(
        scaled(
            "no remat",
            2 / 3,
            "That is the traffic without remat. Did you count the second forward pass?",
        ),
        scaled(
            "forward alone",
            1 / 3,
            "That counts only the forward pass. Did you count the one that full remat "
            "repeats, and the gradients in the backward pass?",
        ),
        scaled(
            "queries and results left out",
            8 / 40,
            "Did you count all four arrays? Queries, keys, and values are exchanged "
            "before attention, and the result after it.",
        ),
        scaled(
            "keys and values left out",
            64 / 80,
            "Did you forget the keys and values? Attention needs those of all tokens.",
        ),
        scaled(
            "all of it",
            8 / 7,
            "Did you count the part that stays? A chip keeps the heads that it works "
            "on.",
        ),
        scaled(
            "to each other chip",
            8,
            "A chip sends each of the others only one eighth of its data.",
        ),
        scaled(
            "a KV head for each query head",
            64 / 40,
            "Keys and values have only 8 heads. Queries and results have 32.",
        ),
        scaled(
            "the result left out",
            48 / 80,
            "Did you count the result of attention? It also has to return to the chips "
            "that hold the tokens.",
        ),
    ),
    hint="Four arrays are exchanged in each of three passes. A chip sends seven "
    "eighths of its part of each array.",
    solution="""
        Queries, keys, values and the result are exchanged in the forward pass, again
        when full remat repeats it, and as gradients in the backward pass. A chip keeps
        one eighth of its part, because it works on these heads itself.

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
        **Given** $N$ query heads and $K$ KV heads of $H$ values each in bf16, on
        $n \\le N$ chips with $t$ tokens each. All of these except $t$ are powers of
        two. If there are more chips than KV heads, Ulysses copies the KV heads before
        the AllToAll until there are $n$ of them.

        **Wanted** a function that returns the bytes that each chip sends for attention
        in the forward pass, first with a ring and then with Ulysses.
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
            "Did you consider n > K? With more chips than KV heads, Ulysses sends "
            "each KV head more than once.",
        ),
        Slip(
            "n hops",
            lambda N, K, H, t, n: [2 * 2 * K * H * t * n, _two(N, K, H, t, n)[1]],
            "After n - 1 hops a chip has seen all keys. Did you count one hop too "
            "many?",
        ),
        Slip(
            "copies in the ring",
            lambda N, K, H, t, n: [
                2 * 2 * max(K, n) * H * t * (n - 1),
                _two(N, K, H, t, n)[1],
            ],
            "A ring doesn't split the heads, so it needs no copies of them.",
        ),
        Slip(
            "A forgotten",
            lambda N, K, H, t, n: [
                2 * 2 * K * H * t * (n - 1),
                2 * (N + 2 * max(K, n)) * H * t * (n - 1) / n,
            ],
            "Did you count the result of attention? It is as large as the queries, and "
            "Ulysses sends it back to the chips that hold the tokens.",
        ),
        Slip(
            "keys alone",
            lambda N, K, H, t, n: [
                2 * K * H * t * (n - 1),
                2 * (2 * N + max(K, n)) * H * t * (n - 1) / n,
            ],
            "Did you count the values? They travel with the keys and are just as "
            "large.",
        ),
        Slip(
            "own part sent too",
            lambda N, K, H, t, n: [
                2 * 2 * K * H * t * (n - 1),
                2 * 2 * (N + max(K, n)) * H * t,
            ],
            "Did you count the part that stays? A chip keeps the heads that it works "
            "on.",
        ),
    ),
    hint=(
        "The ring sends keys and values n - 1 times. Ulysses sends 1/n of Q, K, V, "
        "and A to each of the other chips."
    ),
    solution="""
        In a ring, keys and values make $n-1$ hops, and each chip works on all heads.
        Ulysses splits the heads, so it needs at least $n$ KV heads, and it exchanges
        all four arrays.

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
        **Given** causal ring attention in zig-zag order and in bf16, with $N$ query
        heads and $K$ KV heads. Each chip computes `peak` FLOPs/s and sends `bandwidth`
        bytes/s to its neighbour, one way. In each step of the ring, a chip computes
        half of the scores between its queries and the keys that it holds.

        **Wanted** a function that returns the number of tokens per chip at which the
        math of such a step takes exactly as long as a hop, in the forward pass.
    """,
    stub="def tokens(N, K, peak, bandwidth): ...",
    spec=_hides,
    gives=(("tokens per chip", ""),),
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
            "Did you count all scores of a step, or only half of the bytes? A chip "
            "computes half of the scores, and it sends keys and values in the same "
            "direction.",
        ),
        Slip(
            "one FLOP for a multiply and its add",
            lambda N, K, peak, bandwidth: _hides(N, K, peak, bandwidth) * 2,
            "Did you count one FLOP for a multiply and its add? Each pair takes 2H "
            "FLOPs for its score and another 2H to weight the value.",
        ),
        Slip(
            "as many KV heads",
            lambda N, K, peak, bandwidth: 2 * peak / bandwidth,
            "Did you assume one KV head per query head? Only the K KV heads are sent.",
        ),
        Slip(
            "heads the wrong way round",
            lambda N, K, peak, bandwidth: 2 * N / K * peak / bandwidth,
            "Did you swap N and K? More query heads mean more math, and more KV heads "
            "mean more bytes.",
        ),
    ),
    hint=(
        "For heads of size H, a step takes 4 N H t²/2 FLOPs. A hop carries the keys "
        "and values of t tokens, with 2 bytes per value. When do the two take equally "
        "long?"
    ),
    solution="""
        For heads of size $H$, a step takes $2NHt^2$ FLOPs, and a hop carries $4KHt$
        bytes. We set the two times equal, $2NHt^2/C = 4KHt/W_\\text{link}$, and solve
        for $t$.

        ```python
        def tokens(N, K, peak, bandwidth):
            return 2 * K / N * peak / bandwidth
        ```
    """,
)

KEPT = Number(
    id="11.8",
    title="What is kept for the backward pass",
    task="""
        **Given** one sequence of 524,288 tokens that runs through the 80 layers of
        Llama 3.1 70B, with $D = 8192$, in bf16, and with full remat. Context
        parallelism splits the sequence over 32 chips.

        **Wanted** the bytes of layer inputs that each chip keeps for the backward pass.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: step(
        context("Z"), LLAMA_3_70B, {"Z": 32}, 1, 524_288, attention="causal"
    ).memory.parts["saved"],
    slips=(
        scaled(
            "not divided",
            32,
            "Did you divide by the number of chips? Each chip keeps only its own "
            "tokens.",
        ),
        scaled(
            "one layer",
            1 / 80,
            "Those are the bytes of one layer. Each of the 80 layers keeps its input.",
        ),
        scaled(
            "one byte per value",
            1 / 2,
            "Did you take one byte per value? A value in bf16 takes two.",
        ),
        scaled(
            "keys and values instead",
            1 / 4,
            "With full remat, each layer keeps its input and computes its keys and "
            "values from it again.",
        ),
    ),
    hint="Each layer keeps one array of tokens times D. How many of the tokens does "
    "one chip have?",
    solution="""
        With full remat, each of the 80 layers keeps only its input, and each chip keeps
        it only for its own tokens.

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
        **Given** each device's rows of $q[S_Z, D]$, $k[S_Z, D]$ and $v[S_Z, E]$, one
        row for each of its tokens.

        **Wanted** the function that every device runs. It returns the device's rows of
        $\max(q\,k^\top, 0)\,v$, which is attention without a softmax. Send keys and
        values around the ring with `jax.lax.ppermute`, only from neighbour to
        neighbour, and send no more than a ring needs.
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
            "Did you forget the maximum? Negative scores become zero before they are "
            "multiplied by the values.",
        ),
    ),
    slips=(
        Slip(
            "n hops",
            _hops(8),
            "Did you make one hop too many? The last hop returns the keys to their own "
            "device, which doesn't need them any more.",
        ),
        Slip(
            "gathered",
            lambda q, k, v: [
                Collective("all_gather", ("Z",), 4 * math.prod(k), 8),
                Collective("all_gather", ("Z",), 4 * math.prod(v), 8),
            ],
            "Your program uses an AllGather, which sends the same bytes all at once. "
            "Here the keys and values should travel around the ring.",
        ),
    ),
    hint="Compute with the keys that you have, then make one hop, and repeat.",
    solution="""
        A device starts with its own keys and values, so it computes with these first.
        Seven hops bring it the others.

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
        **Given** each device's rows of $q[S_Z, H]$, $k[S_Z, H]$ and $v[S_Z, E]$ of one
        head, one row for each of its tokens, in contiguous order.

        **Wanted** the function that every device runs. It returns the device's rows of
        causal attention, $\text{softmax}(q\,k^\top)\,v$, in which each query sees the
        keys at its own position and before it. Don't scale the scores. Use exactly two
        AllGathers, of $4SH$ and $4SE$ bytes, or a single one with as many bytes in all.
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
            "Did you gather the queries as well? Each device needs only its own.",
        ),
    ),
    values=(
        Slip(
            "no mask",
            lambda q, k, v: _seeing(q[:, :1] == q[:, :1], q, k, v),
            "Did you forget the mask? Your queries also see later keys.",
        ),
        Slip(
            "positions from zero on every device",
            _from_the_first,
            "Your mask gives every device the positions of the first one. Which "
            "positions do the queries of each device have?",
        ),
    ),
    hint="Which positions do a device's queries have? Use `jax.lax.axis_index` to "
    "find them.",
    solution="""
        Each device needs all keys and values, so it gathers them. Only the first
        device's queries start at position zero, so the mask needs the true positions.

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
        **Given** each device's part of $x[S_Z, N, H]$, which has all heads of the
        device's tokens.

        **Wanted** the function that every device runs. It returns the device's part of
        $x$ after the values of each head have been sorted over all tokens. Like
        attention, sorting needs all tokens of a head in one place. Use exactly two
        AllToAlls, of $4SNH$ bytes each.
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
            "You gathered everything, so every device sorts every head. Can you give "
            "each device all tokens of only some heads?",
        ),
        Slip(
            "gathered after",
            lambda x: [
                Collective("all_to_all", ("Z",), 4 * math.prod(x), 8),
                Collective("all_gather", ("Z",), 4 * math.prod(x), 8),
            ],
            "Did you gather after sorting? A second AllToAll returns the sorted values "
            "to the devices that hold their tokens.",
        ),
    ),
    hint=(
        "Use `jax.lax.all_to_all(x, axis, split_axis, concat_axis, tiled=True)` twice. "
        "Which dimension does each call split, and along which one does it join the "
        "parts?"
    ),
    solution="""
        The first AllToAll gives each device all tokens of some heads, so the device can
        sort these heads on its own. The second one returns the sorted values to the
        devices that hold their tokens.

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
        **Given** one row of $m[8_Z, S]$, one of $r[8_Z, S]$, and one of $U[8_Z, S, H]$
        on every device. They hold the partial results of $S$ queries over the device's
        own keys. The largest score of a query is $100\,m$, so large that its
        exponential can overflow. The sum of the exponentials is $\ell = 1 + r^2$.

        **Wanted** the function that every device runs. It returns the complete
        $A[S, H]$ over the keys of all devices. Use AllReduces of $4S$, $4S$, and $4SH$
        bytes, or fewer AllReduces with as many bytes in all. In this way, a query can
        attend to keys that are spread over many chips.
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
            "Did you gather the partial results? An AllReduce adds them up along the "
            "way and sends less.",
        ),
    ),
    values=(
        Slip(
            "without the largest",
            lambda m, r, U: U.sum(0) / (1 + r**2).sum(0)[..., None],
            "Each device has its own scale, because it has subtracted its own largest "
            "score. Did you bring all of them to the largest score first?",
        ),
        Slip(
            "m for 100 m",
            lambda m, r, U: _merged(m / 100, r, U),
            "Did you use m itself? The largest score of a device is 100 m.",
        ),
    ),
    hint=(
        "Which scale can all devices share? Find the largest score of each query over "
        "all devices with `jax.lax.pmax`, and bring both sums to that scale before you "
        "add them."
    ),
    solution="""
        Each device has subtracted its own largest score. So the devices first find the
        largest score of all. Then they bring their sums to that scale, add them up, and
        divide at the very end.

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
    title="A ring that is limited by its hops",
    points=2,
    task=r"""
        **Given** the attention of one layer of Llama 3.1 70B in the forward pass, in
        bf16, with 64 query heads and 8 KV heads of 128 values each. A sequence of
        16,384 tokens is split in zig-zag order over a ring of 8 TPU 7x chips
        (Ironwood). Each chip sends `chips.TPU_7X.link_bandwidth` bytes/s to the next
        one, one way. In each step of the ring, it computes half of the scores between
        its queries and the keys that it holds, while the keys and values for the next
        step travel.

        **Wanted** the seconds that all steps take together at peak rates.
    """,
    given=stated(chips.TPU_7X, "flops.bf16", "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: (_RING - 1) * max(_HOP, _MATH) + _MATH,
    slips=(
        Slip(
            "math alone",
            lambda right: _RING * _MATH,
            "Does the math of a step take longer than a hop? The chip waits for the "
            "slower of the two.",
        ),
        Slip(
            "n hops",
            lambda right: _RING * _HOP,
            "Did you count a hop in the last step? Nothing is sent in that step.",
        ),
        Slip(
            "the last step left out",
            lambda right: (_RING - 1) * max(_HOP, _MATH),
            "Did you forget the last step? The chip still has to compute with the "
            "keys and values that the last hop brings.",
        ),
        Slip(
            "nothing overlaps",
            lambda right: (_RING - 1) * _HOP + _RING * _MATH,
            "Did you add hops and math? The keys and values for the next step travel "
            "during the math of this one.",
        ),
        Slip(
            "both directions",
            lambda right: (_RING - 1) * max(_HOP / 2, _MATH) + _MATH,
            "Did you use both directions of the links? Here all keys and values "
            "travel the same way.",
        ),
        Slip(
            "query heads sent",
            lambda right: (_RING - 1) * 8 * _HOP + _MATH,
            "Did you send 64 heads? Keys and values have only 8.",
        ),
        Slip(
            "all scores",
            lambda right: (_RING - 1) * max(_HOP, 2 * _MATH) + 2 * _MATH,
            "Did you count all scores of a step? The mask hides half of them.",
        ),
    ),
    hint=(
        "Which takes longer in a step, the math or the hop? And which of the eight "
        "steps has no hop?"
    ),
    solution="""
        A hop runs at the same time as the math, so each of the first seven steps takes
        as long as the slower of the two. The last step has no hop.

        ```python
        from shardmath.hardware import chips

        t = 16_384 / 8
        hop = 2 * 2 * 8 * 128 * t / chips.TPU_7X.link_bandwidth
        math = 4 * 64 * 128 * t**2 / 2 / chips.TPU_7X.flops["bf16"]
        seconds = 7 * max(hop, math) + math
        ```

        A hop takes nearly three times as long as the math of a step. With three times
        as many tokens per chip, it would be hidden.
    """,
)


def _attention_share() -> float:
    found = flops(LLAMA_3_70B, 131_072, "causal")
    return found.attention / found.forward


_SHARE = _attention_share()

ORDER_GAIN = Number(
    id="11.14",
    title="What zig-zag order gains",
    points=2,
    task=r"""
        **Given** Llama 3.1 70B on sequences of 131,072 tokens, each split over a ring
        of 8 chips. In the forward pass, a token takes $1.39\cdot10^{11}$ FLOPs in all
        matmuls with weights, including the output head, and on average
        $1.72\cdot10^{11}$ FLOPs in causal attention. In the backward pass, the two
        parts have the same shares of the FLOPs. All math runs at the same rate, the
        network is hidden, and each layer waits for its slowest chip.

        **Wanted** the factor by which a training step becomes faster if you replace
        contiguous order with zig-zag order. For the busiest chip's work, use the limit
        for long sequences.
    """,
    stub="times = ...",
    unit="",
    expected=lambda: 1 - _SHARE + _SHARE * 15 / 8,
    slips=(
        Slip(
            "attention alone",
            lambda right: 15 / 8,
            "That is the factor for attention. Did you include the matmuls with "
            "weights, which are even in either order?",
        ),
        Slip(
            "twice",
            lambda right: 1 + _SHARE,
            "The busiest of 8 chips has 15/8 times the average work, not twice the "
            "average.",
        ),
        Slip(
            "twice, and attention alone",
            lambda right: 2,
            "The busiest of 8 chips has 15/8 times the average attention, and the "
            "matmuls with weights are even in either order.",
        ),
        Slip(
            "how much faster",
            lambda right: right - 1,
            "That is only the gain. The question asks for the factor by which the step "
            "becomes faster.",
        ),
        Slip(
            "shares swapped",
            lambda right: _SHARE + (1 - _SHARE) * 15 / 8,
            "Did you swap the two shares? Only attention is uneven.",
        ),
        Slip(
            "one over it",
            lambda right: 1 / right,
            "That is the new time as a share of the old one. Did you divide the wrong "
            "way round?",
        ),
    ),
    hint=(
        "A step takes the time of the matmuls with weights plus the time of attention "
        "on the busiest chip. How much more attention than the average does this chip "
        "compute in either order?"
    ),
    solution="""
        Each layer waits for its busiest chip. In contiguous order, this chip has
        $(2n-1)/n = 15/8$ of the average attention, and in zig-zag order it has the
        average. The matmuls with weights are even in either order.

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
        **Given** one layer in bf16 with 32 query heads and 32 KV heads of 128 values
        each, and 4,096 tokens on each of 16 TPU v5p chips in a closed ring. Each chip
        sends `chips.TPU_V5P.link_bandwidth` bytes/s in each direction, and every byte
        takes the shorter way around the ring.

        **Wanted** the seconds that the AllToAlls of Ulysses take in the forward pass,
        if they run one after another. Leave out the latency.
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
            "That is the time on a switch. On a ring, most bytes pass through other "
            "chips and use their links as well.",
        ),
        scaled(
            "one direction, or both passes",
            2,
            "Did you use only one direction of the ring, or count both passes? The "
            "links work in both directions, and the question is about the forward "
            "pass.",
        ),
        scaled(
            "one array",
            1 / 4,
            "That is the time of one array. Did you count queries, keys, values, and "
            "the result?",
        ),
        scaled(
            "the result left out",
            3 / 4,
            "Did you forget the result? After attention it returns to the chips that "
            "hold the tokens.",
        ),
        scaled(
            "a chip's part for the whole",
            1 / 16,
            "Did you use the part of one chip? V is the size of the array over all 16 "
            "chips.",
        ),
        scaled(
            "own part left out",
            15 / 16,
            "Did you subtract the part that a chip keeps? The formula already leaves "
            "it out.",
        ),
        scaled(
            "as an AllGather",
            4 * 15 / 16,
            "That is the time of an AllGather, which brings everything to every chip. "
            "An AllToAll brings each chip only its own part.",
        ),
    ),
    hint=(
        "On a closed ring, an AllToAll of an array of V bytes takes V / 8W_link, where "
        "W_link is the bandwidth of a link one way. How large is V for the arrays of "
        "all 16 chips together?"
    ),
    solution="""
        Ulysses exchanges queries, keys, values and the result. With as many KV heads as
        query heads, each of these four arrays is as large as the queries of all 16
        chips.

        ```python
        from shardmath.hardware import chips

        V = 4 * 2 * 32 * 128 * 4096 * 16
        seconds = V / (8 * chips.TPU_V5P.link_bandwidth)
        ```
    """,
)
