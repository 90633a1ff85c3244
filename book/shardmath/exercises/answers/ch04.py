"""Questions of chapter 04, "Networks"."""

import math

from shardmath.collectives import Collective, all_gather, all_reduce
from shardmath.exercises.kinds import (
    Chapter,
    Function,
    Number,
    Sharded,
    Slip,
    slips,
    stated,
)
from shardmath.hardware import chips
from shardmath.hardware.mesh import Mesh
from shardmath.hardware.networks import Cluster, NVLinkDomain, Torus

CHAPTER = Chapter(
    title="Networks",
    topics=(
        "networks: links, bisection, hops, crossing nodes and pods, latency, and two "
        "programs judged by their compiled collectives"
    ),
    intro="""
        from one link to an AllReduce that is graded on what it compiles to. Answers are
        in base units: bytes, bytes/s, seconds; every bandwidth is one-way unless the
        question says otherwise. `chips` holds the links:
        `chips.TPU_V5P.link_bandwidth`, `chips.H100.scale_up_bandwidth`,
        `chips.B200.scale_out_bandwidth`.
    """,
    setup="""
        import jax

        from shardmath.exercises import check, report
        from shardmath.hardware import chips

        jax.config.update("jax_num_cpu_devices", 8)  # eight virtual chips
    """,
)

# Given in the tasks.
GATHERED, REDUCED = 4e6, 10e9  # bytes
HOP = 1e-6  # seconds of latency, given in the task
SWEEP_ALPHA, SWEEP_RATE, SWEEP_GPUS = 20e-6, 400e9, 16

LINK = Number(
    id="04.1",
    title="One link, one way",
    task="""
        **Given** a Trillium, whose page prints 800 GB/s of inter-chip bandwidth: 4
        links, both directions added up.

        **Wanted** the one-way bandwidth of one link.
    """,
    stub="link = ...",
    unit="bytes/s",
    expected=lambda: chips.TPU_V6E.link_bandwidth,
    slips=(
        slips.both_directions(2),
        slips.scaled("all links", 4, "That is what all four links carry together."),
        slips.scaled(
            "the printed figure",
            8,
            "That adds up all four links, and both directions of each.",
        ),
        slips.bits_for_bytes(1 / 8),
        slips.other_link(chips.TPU_V6E.fact("link_bandwidth"), 1),
        slips.half_of_other_link(chips.TPU_V6E.fact("link_bandwidth"), 1),
    ),
    hint="The printed figure adds up all links, and both directions of each.",
    solution="""
        Four links, two directions each.

        ```python
        link = 800e9 / (4 * 2)
        ```

        The record says 100 GB/s, and what the page prints.
    """,
)

POD = Number(
    id="04.2",
    title="What a pod says about a link",
    task="""
        **Given** a TPU v4 pod of 4,096 chips with 6 links each, and its page, which
        prints an all-reduce bandwidth of 1.1 PB/s for the pod.

        **Wanted** the one-way bandwidth of one link that this figure implies.
    """,
    stub="link = ...",
    unit="bytes/s",
    expected=lambda: (
        chips.TPU_V4.fact("domain_allreduce").value
        / (chips.TPU_V4.fact("domain").value * chips.TPU_V4.links)
    ),
    slips=(
        slips.scaled(
            "links forgotten", 6, "That is a chip's share. How many links carry it?"
        ),
        slips.scaled(
            "halved once more",
            1 / 2,
            "The pod's figure is one-way already: every link counts once, out of its "
            "chip.",
        ),
        Slip(
            "the record's link",
            lambda right: chips.TPU_V4.link_bandwidth,
            "That is the link as the v4 paper states it. What does the pod's figure "
            "say?",
        ),
    ),
    hint="The printed figure is the sum of all links of all chips, one-way.",
    solution="""
        ```python
        link = 1.1e15 / (4096 * 6)
        ```

        44.8 GB/s, a tenth less than the 50 GB/s that the v4 paper states.
    """,
)

BISECTION = Number(
    id="04.3",
    title="The thinnest cut of a long slice",
    task=r"""
        **Given** a v5p slice of $8 \times 8 \times 24$ chips.

        **Wanted** its bisection bandwidth, one-way.
    """,
    given=stated(chips.TPU_V5P, "link_bandwidth"),
    stub="bisection = ...",
    unit="bytes/s",
    expected=lambda: Torus(chips.TPU_V5P, (8, 8, 24)).bisection,
    slips=(
        slips.both_directions(2),
        slips.scaled(
            "no wraparound",
            1 / 2,
            "A ring is cut in two places. Do the sides of this slice wrap?",
        ),
        slips.scaled(
            "the wrong cut",
            3,
            "You cut a short side, where more links cross. Look for the fewest.",
        ),
        slips.other_link(chips.TPU_V5P.fact("link_bandwidth"), 1),
        slips.half_of_other_link(chips.TPU_V5P.fact("link_bandwidth"), 1),
    ),
    hint="Cut across the longest side. How many rings run along it, and in how many "
    "places does a cut into halves meet each?",
    solution="""
        $8 \\cdot 8$ rings run along the side of 24, and halves meet each in two places.

        ```python
        bisection = 8 * 8 * 2 * chips.TPU_V5P.link_bandwidth
        ```

        As much as a cube of 512 has, for three times the chips.
    """,
)

DIAMETER = Number(
    id="04.4",
    title="The longest way",
    task=r"""
        **Given** a v5p slice of $12 \times 16 \times 20$ chips.

        **Wanted** the number of hops between the two chips that are farthest apart.
    """,
    stub="hops = ...",
    unit="hops",
    expected=lambda: float(Torus(chips.TPU_V5P, (12, 16, 20)).diameter),
    slips=(
        Slip(
            "no wraparound",
            lambda right: 11 + 15 + 19,
            "On a ring nobody is farther away than half of its length.",
        ),
        slips.scaled("all sides", 2, "Half of a ring is far enough."),
        Slip(
            "longest side alone",
            lambda right: 10,
            "The chip opposite differs in all three coordinates.",
        ),
    ),
    hint="On a ring of n chips the farthest is n/2 hops away; on a torus the ways "
    "along the sides add up.",
    solution="""
        ```python
        hops = 12 // 2 + 16 // 2 + 20 // 2
        ```
    """,
)


def _gather(shape):
    mesh = Mesh(Torus(chips.TPU_V5E, shape), {"X": shape[0], "Y": shape[1]})
    return all_gather(GATHERED, mesh, "X")


LINE = Number(
    id="04.5",
    title="An AllGather on an open side",
    task=r"""
        **Given** a v5e slice of $8 \times 8$ and an AllGather of 4 MB along one side:
        4 MB is the gathered array. Assume a latency of one microsecond per hop.

        **Wanted** the time that you expect, latency included.
    """,
    given=stated(chips.TPU_V5E, "link_bandwidth"),
    stub="seconds = ...",
    unit="s",
    rtol=0.005,
    expected=lambda: _gather((8, 8)).expected,
    slips=(
        Slip(
            "a ring",
            lambda right: _gather((8, 8)).bandwidth_seconds / 2 + 4 * HOP,
            "A side of 8 does not wrap on a v5e.",
        ),
        Slip(
            "twice the link",
            lambda right: _gather((8, 8)).bandwidth_seconds / 2 + 7 * HOP,
            "The end of a line has one neighbour on it, and the link is one-way.",
        ),
        Slip(
            "a hop too many",
            lambda right: _gather((8, 8)).bandwidth_seconds + 8 * HOP,
            "Eight chips in a line: how many links lie between them?",
        ),
        Slip(
            "hops of a ring",
            lambda right: _gather((8, 8)).bandwidth_seconds + 4 * HOP,
            "On a line nothing leads back: how far is one end from the other?",
        ),
        Slip(
            "one hop",
            lambda right: _gather((8, 8)).bandwidth_seconds + HOP,
            "The part of the first chip must reach the last one.",
        ),
        Slip(
            "latency left out",
            lambda right: _gather((8, 8)).bandwidth_seconds,
            "At 4 MB the hops are not small change.",
        ),
        Slip(
            "own part counted",
            lambda right: GATHERED / chips.TPU_V5E.link_bandwidth + 7 * HOP,
            "A chip has one part already. How much is left to arrive?",
        ),
    ),
    hint="Use formula (4.3) for the line. How many hops lie between the ends?",
    solution="""
        ```python
        link = chips.TPU_V5E.link_bandwidth
        seconds = 4e6 / link * 7 / 8 + 7 * 1e-6
        ```
    """,
)

UNIT = Number(
    id="04.6",
    title="What a SuperPOD unit sends to the spine",
    task="""
        **Given** a unit of 32 nodes; each node has 8 H100 with one network card of 400
        Gb/s each, and the tree above is full.

        **Wanted** the bytes/s that the unit can push, one-way, into the spine.
    """,
    stub="egress = ...",
    unit="bytes/s",
    expected=lambda: Cluster(NVLinkDomain(chips.H100), (4, 32)).egress("spine"),
    slips=(
        slips.scaled(
            "one card a node",
            1 / 8,
            "That gives each node one card. How many has a node?",
        ),
        slips.bits_for_bytes(8),
        slips.scaled("all four units", 4, "One unit is asked for, not all of them."),
        slips.scaled("one node", 1 / 32, "One node sends that. A unit has 32."),
    ),
    hint="There are 32 nodes with 8 cards of 400 Gb/s each.",
    solution="""
        ```python
        egress = 32 * 8 * 400e9 / 8
        ```

        The first 8 counts cards, the second turns bits into bytes.
    """,
)


def _reduce(nodes):
    mesh = Mesh(Cluster(NVLinkDomain(chips.B200), nodes), {"X": 8 * nodes})
    return all_reduce(REDUCED, mesh, "X").lower


CROSSING = Number(
    id="04.7",
    title="An AllReduce over four nodes",
    task="""
        **Given** 32 B200 in four nodes of 8, and an AllReduce of 10 GB over all of
        them. The GPUs do the adding.

        **Wanted** the lower bound of its time, which counts only the bytes.
    """,
    given=stated(chips.B200, "scale_up_bandwidth", "scale_out_bandwidth"),
    stub="seconds = ...",
    unit="s",
    expected=lambda: _reduce(4),
    slips=(
        slips.scaled(
            "one card for all",
            8,
            "Each GPU of a node has a card of its own and carries an eighth.",
        ),
        Slip(
            "NVLink alone",
            lambda right: 2 * REDUCED * 31 / 32 / chips.B200.scale_up_bandwidth,
            "That is the pace inside the nodes. Which level is slower?",
        ),
        Slip(
            "one node alone",
            lambda right: 2 * REDUCED * 7 / 8 / chips.B200.scale_up_bandwidth,
            "Each node needs that by NVLink for its own sum. What crosses to the other "
            "nodes, and over what?",
        ),
        slips.scaled(
            "GPUs for nodes",
            (7 / 8) / (3 / 4),
            "7/8 is the share that crosses between eight GPUs. Between four nodes?",
        ),
        slips.scaled("one pass", 1 / 2, "That gathers or scatters. An AllReduce does?"),
        Slip(
            "both levels added",
            lambda right: right + 2 * REDUCED * 7 / 8 / chips.B200.scale_up_bandwidth,
            "That is the time if one level waits for the other. The least time lets "
            "them work at once, on different parts.",
        ),
        Slip(
            "own node counted",
            lambda right: right * 4 / 3,
            "A node keeps one part of what it sums up: 3 of 4 parts cross.",
        ),
        Slip(
            "one ring for all",
            lambda right: right * (31 / 32) / (3 / 4),
            "A ring through all GPUs takes this long. Less has to cross if each node "
            "sums up first.",
        ),
    ),
    hint="Sum up inside the nodes first: each GPU then holds an eighth, and reduces it "
    "over four nodes with its own card.",
    solution="""
        After a ReduceScatter in the node each GPU holds $V/8$. It is reduced over 4
        nodes by 8 cards at once, while NVLink has time to spare.

        ```python
        part = 10e9 / 8
        seconds = 2 * part * 3 / 4 / chips.B200.scale_out_bandwidth
        ```

        37.5 ms, 1.9 times what one node needs.
    """,
)


def _h200(reduces):
    mesh = Mesh(NVLinkDomain(chips.H200, 6, reduces=reduces), {"X": 6})
    return all_reduce(1e15, mesh, "X").bus_bandwidth  # so large that hops do not count


SHARP = Number(
    id="04.8",
    title="How far busbw can exceed the wire",
    task="""
        **Given** an AllReduce over *six* H200 of one node, large, with switches that
        add. According to (4.8), a GPU sends its array of $V$ bytes once, and no more.

        **Wanted** the highest `busbw` that (4.8) allows.
    """,
    given=stated(chips.H200, "scale_up_bandwidth"),
    stub="limit = ...",
    unit="bytes/s",
    expected=lambda: _h200(reduces=True),
    slips=(
        Slip(
            "the wire",
            lambda right: _h200(reduces=False),
            "That is the limit if the GPUs do the adding.",
        ),
        Slip(
            "twice the wire",
            lambda right: 2 * _h200(reduces=False),
            "That is the limit for very many GPUs.",
        ),
        Slip(
            "four GPUs",
            lambda right: 3 / 2 * _h200(reduces=False),
            "Six GPUs take part, and the share that stays in place is a sixth.",
        ),
        Slip(
            "eight GPUs",
            lambda right: 7 / 4 * _h200(reduces=False),
            "How many GPUs take part here?",
        ),
        Slip(
            "as NCCL does it",
            lambda right: right * 6 / 7,
            "NCCL's algorithm sends one part more. What if a GPU sends V and no more?",
        ),
        Slip(
            "as NCCL does it, over eight",
            lambda right: 7 / 4 * 8 / 9 * _h200(reduces=False),
            "That is the limit of NCCL's algorithm on eight GPUs. Here six take part, "
            "and each sends V and no more.",
        ),
    ),
    hint="busbw counts 2 V (n - 1)/n bytes; a GPU really sends V.",
    solution="""
        ```python
        limit = 2 * 5 / 6 * chips.H200.scale_up_bandwidth
        ```
    """,
)

HALF = Number(
    id="04.9",
    title="The half-bandwidth size",
    task=r"""
        **Given** a sweep of AllReduces over 16 GPUs, fitted with $\alpha = 20$ µs and a
        bus bandwidth of 400 GB/s.

        **Wanted** the size of the array at which half of the bandwidth is reached.
    """,
    stub="size = ...",
    unit="bytes",
    expected=lambda: SWEEP_ALPHA * SWEEP_RATE * SWEEP_GPUS / (2 * (SWEEP_GPUS - 1)),
    slips=(
        slips.scaled(
            "sent for size",
            2 * 15 / 16,
            "So many bytes are sent by a GPU. How large is the array?",
        ),
        slips.scaled(
            "factor upside down",
            (2 * 15 / 16) ** 2,
            "A GPU sends more than the array has. Which of the two is larger?",
        ),
        slips.scaled(
            "AllGather",
            2,
            "An AllReduce sends its array twice, nearly.",
        ),
        slips.scaled(
            "very many GPUs",
            15 / 16,
            "That holds for very many GPUs. Each of 16 keeps a sixteenth.",
        ),
    ),
    hint="Both terms of (4.7) are equal there.",
    solution="""
        ```python
        n = 16
        size = 20e-6 * 400e9 * n / (2 * (n - 1))
        ```
    """,
)


def _tie():
    """Chips of a slice whose ICI and DCN take equally long."""
    return chips.TPU_7X.scale_up_bandwidth / chips.TPU_7X.scale_out_bandwidth


SLICES = Number(
    id="04.10",
    title="When the crossing no longer binds",
    task="""
        **Given** slices of an Ironwood (`chips.TPU_7X`), many of them, joined by the
        DCN; every chip adds its share.

        **Wanted** how many chips a slice must have before an AllReduce over all slices
        is limited by ICI and no longer by the DCN. Many slices, large slices: leave out
        the factor $(n-1)/(n-g)$.
    """,
    given=stated(chips.TPU_7X, "links", "link_bandwidth", "scale_out_bandwidth"),
    stub="size = ...",
    unit="chips",
    expected=_tie,
    also=lambda: math.floor(_tie()) + 1,
    slips=(
        slips.scaled(
            "one link",
            1 / 6,
            "That compares one link. A chip pushes through all of them.",
        ),
        Slip(
            "whole cubes",
            lambda right: 64,
            "Slices are built from cubes of 64, and one cube is enough. At how many "
            "chips are the two times equal?",
        ),
        slips.both_directions(2),
        slips.inverse(),
    ),
    hint="What all chips of a slice push into the DCN must reach what one chip pushes "
    "into its links.",
    solution="""
        ```python
        chip = chips.TPU_7X
        size = chip.scale_up_bandwidth / chip.scale_out_bandwidth
        ```

        With 48 chips the two take equally long, and with 49 the ICI binds. Both are
        fewer than the 64 of one cube.
    """,
)


def _bisection(sides, wraps, link):
    total = math.prod(sides)
    ways = [2 if wrap else 1 for wrap in wraps]
    return min(w * link * total / n for n, w in zip(sides, ways, strict=True))


def _slice(rng):
    sides = [2 * rng.randint(2, 8) for _ in range(rng.choice((2, 3)))]
    return sides, [rng.random() < 0.5 for _ in sides], 1e9 * rng.randint(40, 200)


CUT = Function(
    id="04.11",
    title="The bisection of any slice",
    task="""
        **Given** the sides of a slice, all even, which of them wrap, and the one-way
        bandwidth of a link.

        **Wanted** a function that returns the one-way bisection bandwidth.
    """,
    stub="def bisection(sides, wraps, link): ...",
    spec=_bisection,
    units={"link": "bytes/s"},
    gives=(("the bisection", "bytes/s"),),
    cases=_slice,
    examples=(
        ([16, 16], [True, True], 50e9),
        ([8, 16], [False, True], 50e9),
        ([4, 16], [False, False], 50e9),
    ),
    slips=(
        Slip(
            "always wraps",
            lambda sides, wraps, link: _bisection(sides, [True] * len(sides), link),
            "An open side is cut in one place, not in two.",
        ),
        Slip(
            "never wraps",
            lambda sides, wraps, link: _bisection(sides, [False] * len(sides), link),
            "A side that wraps is cut in two places.",
        ),
        Slip(
            "both directions",
            lambda sides, wraps, link: 2 * _bisection(sides, wraps, link),
            "You counted both directions of the links. One-way is asked for.",
        ),
        Slip(
            "longest side",
            lambda sides, wraps, link: (
                (2 if wraps[sides.index(max(sides))] else 1)
                * link
                * math.prod(sides)
                / max(sides)
            ),
            "Cutting the longest side is not always the least: a shorter, open one may "
            "have fewer links. Try all.",
        ),
    ),
    hint="Try a cut across each side. It meets (product of the other sides) rows, each "
    "once or twice.",
    solution="""
        ```python
        import math


        def bisection(sides, wraps, link):
            total = math.prod(sides)
            cuts = []
            for n, wrap in zip(sides, wraps, strict=True):
                cuts.append((2 if wrap else 1) * link * total / n)
            return min(cuts)
        ```
    """,
)


def _fit(n, small, small_seconds, large, large_seconds):
    rate = (large - small) / (large_seconds - small_seconds)
    return small_seconds - small / rate, rate * 2 * (n - 1) / n


def _measured(rng):
    n, alpha = rng.choice((4, 8, 16)), rng.uniform(5e-6, 5e-5)
    rate = 1e9 * rng.randint(100, 800)
    small, large = 2 ** rng.randint(15, 20), 2 ** rng.randint(28, 34)
    seconds = [alpha + 2 * (n - 1) / n * V / rate for V in (small, large)]
    return n, small, seconds[0], large, seconds[1]


FIT = Function(
    id="04.12",
    title="Two numbers from two measurements",
    task=r"""
        **Given** $n$ GPUs and two AllReduces: a small and a large array, in bytes, and
        the seconds that each took.

        **Wanted** a function that returns $\alpha$ in seconds and the *bus* bandwidth
        in bytes/s, as a pair, such that (4.7) meets both.
    """,
    stub="def fit(n, small, small_seconds, large, large_seconds): ...",
    spec=_fit,
    units={
        "small": "bytes",
        "small_seconds": "s",
        "large": "bytes",
        "large_seconds": "s",
    },
    gives=(("alpha", "s"), ("the bus bandwidth", "bytes/s")),
    cases=_measured,
    rtol=1e-6,
    slips=(
        Slip(
            "array over time",
            lambda n, *case: (_fit(n, *case)[0], _fit(n, *case)[1] * n / (2 * (n - 1))),
            "That is bytes of the array per second. Bus bandwidth counts what a GPU "
            "sends.",
        ),
        Slip(
            "smallest time for alpha",
            lambda n, small, t, large, u: (t, _fit(n, small, t, large, u)[1]),
            "Even the smallest array has bytes to send.",
        ),
        Slip(
            "each time for one number",
            lambda n, small, t, large, u: (t, 2 * (n - 1) / n * large / u),
            "Each of the two times holds both: a delay and bytes. Solve for both.",
        ),
        Slip(
            "one pass",
            lambda n, *case: (_fit(n, *case)[0], _fit(n, *case)[1] / 2),
            "An AllGather sends (n − 1)/n of the array. An AllReduce?",
        ),
    ),
    hint="You have two equations, t = α + c V at two sizes. Subtract them to get c.",
    solution="""
        ```python
        def fit(n, small, small_seconds, large, large_seconds):
            rate = (large - small) / (large_seconds - small_seconds)  # of the array
            alpha = small_seconds - small / rate
            return alpha, rate * 2 * (n - 1) / n
        ```
    """,
)

MESH = {"node": 2, "gpu": 4}


def _vectors(rng):
    return ((8, 8 * rng.randint(2, 32)),)


def _hierarchical(x):
    nbytes = 4 * x[1]
    return [
        Collective("reduce_scatter", ("gpu",), nbytes, 4),
        Collective("all_reduce", ("node",), nbytes / 4, 2),
        Collective("all_gather", ("gpu",), nbytes, 4),
    ]


HIERARCHY = Sharded(
    id="04.13",
    title="An AllReduce that knows its wires",
    task="""
        **Given** 8 devices as a mesh of 2 nodes and 4 GPUs, axes `node` and `gpu`. The
        function runs on each device, inside `jax.shard_map`, and gets its own row `x`
        of shape `[1, m]`, with $m$ a multiple of 8.

        **Wanted** the sum of all eight rows, of shape `[m]`, on every device, with only
        $m/4$ values of it in the collective that crosses the nodes. The compiler
        counts.
    """,
    stub="def hierarchical(x): ...",
    mesh=MESH,
    shapes=_vectors,
    in_specs=((("node", "gpu"), None),),
    out_spec=(),
    spec=lambda x: x.sum(axis=0),
    collectives=_hierarchical,
    at_most=True,
    by_axes=True,
    slips=(
        Slip(
            "flat",
            lambda x: [Collective("all_reduce", ("node", "gpu"), 4 * x[1], 8)],
            "One AllReduce over both axes does not say what crosses the nodes.",
        ),
        Slip(
            "whole array across",
            lambda x: [
                Collective("all_reduce", ("gpu",), 4 * x[1], 4),
                Collective("all_reduce", ("node",), 4 * x[1], 2),
            ],
            "Every GPU sends the whole array to the other node. A quarter each is "
            "enough.",
        ),
    ),
    hint="Three steps: `psum_scatter` inside the node, `psum` across, `all_gather` "
    "inside, with `tiled=True`.",
    solution="""
        ```python
        def hierarchical(x):
            part = jax.lax.psum_scatter(x[0], "gpu", tiled=True)
            part = jax.lax.psum(part, "node")
            return jax.lax.all_gather(part, "gpu", tiled=True)
        ```

        The thin wire carries a quarter of the array for each GPU, as in (4.6).
    """,
)

SCATTERED = Sharded(
    id="04.14",
    title="Sums that stay where they are",
    task="""
        **Given** the same devices and rows.

        **Wanted** the same sum, but left scattered: over `gpu` first, then over `node`,
        each in a separate collective. Each device ends with $m/8$ values and no more
        than $m/4$ are in the one that crosses the nodes.
    """,
    stub="def scattered(x): ...",
    mesh=MESH,
    shapes=_vectors,
    in_specs=((("node", "gpu"), None),),
    out_spec=(("gpu", "node"),),
    spec=lambda x: x.sum(axis=0),
    collectives=lambda x: [
        Collective("reduce_scatter", ("gpu",), 4 * x[1], 4),
        Collective("reduce_scatter", ("node",), x[1], 2),
    ],
    slips=(
        Slip(
            "flat",
            lambda x: [Collective("reduce_scatter", ("node", "gpu"), 4 * x[1], 8)],
            "One collective over both axes does not say what crosses the nodes.",
        ),
        Slip(
            "summed across, then cut",
            lambda x: _hierarchical(x)[:2],
            "An AllReduce across the nodes brings back what the other node keeps.",
        ),
        Slip(
            "gathered and cut",
            _hierarchical,
            "The whole array on every GPU is more than is asked for.",
        ),
    ),
    hint="Nobody needs the whole array, so nobody gathers it. Scatter inside the node "
    "first, then across.",
    solution="""
        ```python
        def scattered(x):
            part = jax.lax.psum_scatter(x[0], "gpu", tiled=True)
            return jax.lax.psum_scatter(part, "node", tiled=True)
        ```

        Half of the bytes of an AllReduce, on both wires.
    """,
)

PRINTED = 3584e9  # bits/s of a Trillium, as an older page of it had it


def _headline(link=PRINTED / 8 / 4):
    slice_ = Torus(chips.TPU_V6E, (8, 16), bandwidth=link)
    return all_gather(2e9, Mesh(slice_, {"X": 8, "Y": 16}), "X").bandwidth_seconds


HEADLINE = Number(
    id="04.15",
    title="From a headline to an AllGather",
    task=r"""
        **Given** an older page for Trillium, which printed 3584 Gb/s of inter-chip
        bandwidth a chip, one-way over all 4 links; a headline made "3.5 Tb/s" of it.
        Further a slice of $8 \times 16$ such chips, and an AllGather along its side of
        **8** that ends with 2 GB on each chip.

        **Wanted** the seconds that it takes by the page's figure, without latency.
    """,
    stub="seconds = ...",
    unit="s",
    rtol=0.005,
    expected=_headline,
    slips=(
        slips.bits_for_bytes(1 / 8),
        slips.scaled(
            "a ring",
            1 / 2,
            "On a Trillium a side wraps only if it is 16 long. How many neighbours has "
            "the chip at the end of a line?",
        ),
        slips.scaled(
            "all links",
            1 / 4,
            "The page counts four links. How many of them carry bytes along this side?",
        ),
        slips.scaled(
            "own part counted",
            8 / 7,
            "Each chip has an eighth of the array already.",
        ),
        Slip(
            "the side of 16",
            lambda right: right / 2 * (15 / 16) / (7 / 8),
            "That is along the side of 16, which is a ring.",
        ),
        slips.scaled(
            "two digits",
            3584 / 3500,
            "Rounded too early, or the headline's 3.5? The page has four digits.",
        ),
        Slip(
            "the record's link",
            lambda right: _headline(chips.TPU_V6E.link_bandwidth),
            "That is today's figure. What did the older page say?",
        ),
    ),
    hint="First the rate of one link in bytes/s. Then: does this side close to a ring?",
    solution="""
        ```python
        link = 3584e9 / 8 / 4  # bits to bytes, then one of four links
        seconds = 2e9 / link * 7 / 8  # a line: its ends have one neighbour
        ```

        One link has 112 GB/s, 12 % above the record, since the page has been revised.
        The side of 16 would take about half as long.
    """,
    points=2,
)


def _reduce_seconds(nbytes, gpus, nodes, pods, up, out, taper):
    """GPUs of a node, nodes of a pod, pods; `taper` for the level between the pods."""
    per_pod = gpus * nodes
    in_node = 2 * nbytes * (1 - 1 / gpus) / up
    out_of_node = 2 * nbytes * (1 - 1 / (nodes * pods)) / (gpus * out)
    out_of_pod = 2 * nbytes * (1 - 1 / pods) / (per_pod * out / taper)
    return max(in_node, out_of_node, out_of_pod)


def _tree(rng):
    nodes = rng.randint(2, 32)
    taper = rng.choice((1, 7, rng.randint(2 * nodes, 8 * nodes)))
    up, out = 1e9 * rng.choice((200, 450, 900)), 1e9 * rng.choice((25, 50, 100))
    return 1e9 * rng.randint(1, 64), 8, nodes, rng.randint(2, 8), up, out, taper


LEAST = Function(
    id="04.16",
    title="The least time of an AllReduce on any tree",
    task="""
        **Given** so many `pods` of `nodes` each, with `gpus` in a node. `up` is what a
        GPU has into its node's switch, `out` its network card, `taper` how many times
        too thin the level between the pods is (1: full). The GPUs do the adding.

        **Wanted** a function that returns the least seconds of an AllReduce of `nbytes`
        over all GPUs, without latency: all levels work at once.
    """,
    stub="def reduce_seconds(nbytes, gpus, nodes, pods, up, out, taper): ...",
    spec=_reduce_seconds,
    units={"nbytes": "bytes", "up": "bytes/s", "out": "bytes/s"},
    gives=(("the least time", "s"),),
    cases=_tree,
    examples=(
        (1e9, 8, 32, 4, 450e9, 50e9, 1),
        (1e9, 8, 8, 8, 450e9, 50e9, 56),
        (1e9, 8, 8, 2, 200e9, 50e9, 1),
    ),
    slips=(
        Slip(
            "levels added",
            lambda nbytes, gpus, nodes, pods, up, out, taper: (
                2 * nbytes * (1 - 1 / gpus) / up
                + 2 * nbytes * (1 - 1 / (nodes * pods)) / (gpus * out)
                + 2 * nbytes * (1 - 1 / pods) / (gpus * nodes * out / taper)
            ),
            "That is the time if each level waits for the one before it. The least "
            "time lets them work at once.",
        ),
        Slip(
            "one pod is all",
            lambda nbytes, gpus, nodes, pods, up, out, taper: max(
                2 * nbytes * (1 - 1 / gpus) / up,
                2 * nbytes * (1 - 1 / nodes) / (gpus * out),
                2 * nbytes * (1 - 1 / pods) / (gpus * nodes * out / taper),
            ),
            "A node takes in what all other nodes have, those of other pods too, and "
            "all of it through its own cards.",
        ),
        Slip(
            "all of it by NVLink",
            lambda nbytes, gpus, nodes, pods, up, out, taper: max(
                _reduce_seconds(nbytes, gpus, nodes, pods, up, out, taper),
                2 * nbytes * (1 - 1 / (gpus * nodes * pods)) / up,
            ),
            "What a GPU reduces with other nodes goes over its own card. Inside the "
            "node it keeps one part of `gpus`.",
        ),
        Slip(
            "the node forgotten",
            lambda nbytes, gpus, nodes, pods, up, out, taper: _reduce_seconds(
                nbytes, gpus, nodes, pods, math.inf, out, taper
            ),
            "Where a node has many cards and little NVLink, NVLink binds.",
        ),
        Slip(
            "taper forgotten",
            lambda nbytes, gpus, nodes, pods, up, out, taper: _reduce_seconds(
                nbytes, gpus, nodes, pods, up, out, 1
            ),
            "The level between the pods is thinner than the cards below it.",
        ),
        Slip(
            "one card a node",
            lambda nbytes, gpus, nodes, pods, up, out, taper: _reduce_seconds(
                nbytes, gpus, nodes, pods, up, out / gpus, taper
            ),
            "Every GPU has a card of its own, and they share the node's bytes.",
        ),
        Slip(
            "one pass",
            lambda *case: _reduce_seconds(*case) / 2,
            "That gathers or scatters. An AllReduce does both.",
        ),
    ),
    hint=(
        "There are three units with three ways out: a GPU in its node, a node, "
        "and a pod. What must enter each of them, and over how many cards?"
    ),
    solution="""
        ```python
        def reduce_seconds(nbytes, gpus, nodes, pods, up, out, taper):
            n = gpus * nodes * pods
            node, pod = gpus, gpus * nodes
            times = (
                (1 - 1 / gpus) / up,
                (1 - node / n) / (node * out),
                (1 - pod / n) / (pod * out / taper),
            )
            return 2 * nbytes * max(times)
        ```

        An AllReduce passes each way out twice. A full spine never binds: a pod has as
        much way out as all its nodes, and less to take in.
    """,
    points=2,
)

PARAMS, TOKENS, REACHED = 405e9, 16e6, 400e12
EIGHT_PODS = Cluster(NVLinkDomain(chips.H100), (8, 384), taper=(7, 1))


def _gradients():
    mesh = Mesh(EIGHT_PODS, {"pod": 8, "gpu": 3072})
    crossing = all_reduce(2 * PARAMS / 3072, mesh, "pod").bandwidth_seconds
    return crossing / (6 * PARAMS * TOKENS / (EIGHT_PODS.chips * REACHED))


GRADIENTS = Number(
    id="04.17",
    title="Gradients over a thin spine",
    task="""
        **Given** 8 pods of 3,072 H100, one network card of 400 Gb/s a GPU, full inside
        the pods, oversubscribed 7 to 1 between them. A model of 405 billion parameters
        is spread over the 3,072 GPUs of each pod, and each holds an equal part of the
        gradients, in bf16. Once a step each GPU sums its part with the seven GPUs that
        hold the same part in the other pods. A step does 6 FLOPs for each parameter and
        token; it has 16 million tokens, and the GPUs reach 400 TFLOPs/s.

        **Wanted** the least time of these AllReduces, which all run at once, over the
        time of the step's math. Leave out latency.
    """,
    stub="share = ...",
    unit="",
    rtol=0.005,
    expected=_gradients,
    slips=(
        slips.scaled(
            "taper forgotten",
            1 / 7,
            "Between the pods a GPU's share of the uplinks is a seventh of its card.",
        ),
        Slip(
            "taper forgotten, two digits",
            lambda right: float(f"{right / 7:.1e}"),
            "Between the pods a GPU's share of the uplinks is a seventh of its card. "
            "And two digits are too few.",
        ),
        slips.scaled("one pass", 1 / 2, "That gathers or scatters. An AllReduce does?"),
        slips.scaled(
            "own part counted",
            8 / 7,
            "One of eight pods is its own: it takes in what the others have.",
        ),
        slips.scaled(
            "an eighth",
            1 / 8,
            "Bits for bytes, or parts spread over all pods? A byte has 8 bits; each "
            "pod holds all parts, over its 3,072 GPUs.",
        ),
        slips.scaled(
            "one card a node",
            8,
            "Every GPU has a card of its own, and sends its own part over it.",
        ),
        slips.scaled(
            "at the peak",
            chips.H100.flops["bf16"] / REACHED,
            "The GPUs reach less than their peak, and the task says how much.",
        ),
        Slip(
            "two digits",
            lambda right: right / (1 + right),
            "Rounded too early, or over crossing and math together? The math alone is "
            "asked for.",
        ),
    ),
    hint="Four numbers: bytes of a part, a GPU's rate between the pods, the factor of "
    "an AllReduce over eight, and the FLOPs of one GPU.",
    solution="""
        ```python
        part = 405e9 * 2 / 3072
        rate = 400e9 / 8 / 7
        crossing = 2 * part * 7 / 8 / rate
        math = 6 * 405e9 * 16e6 / (8 * 3072 * 400e12)
        share = crossing / math
        ```

        The exchange takes 64.6 ms for 264 MB per GPU, compared with 3.96 s of math.
        Even at a seventh of the card the gradients are a small part of the step, since
        the whole pod shares them.
    """,
    points=2,
)

TOTAL = Number(
    id="04.18",
    title="What a printed total says about a cut",
    task="""
        **Given** a DGX B200, whose page prints 14.4 TB/s of NVLink bandwidth for its 8
        GPUs: all their links, both directions.

        **Wanted** the bisection bandwidth of these GPUs, one-way.
    """,
    stub="cut = ...",
    unit="bytes/s",
    expected=lambda: NVLinkDomain(chips.B200).bisection,
    slips=(
        slips.scaled(
            "the printed figure",
            4,
            "That adds up both directions, and the links of both halves.",
        ),
        slips.scaled(
            "half of it",
            2,
            "That is one direction of all links, or both directions across the cut. "
            "Whose links lead across it, one-way?",
        ),
        slips.scaled(
            "an eighth",
            1 / 2,
            "That is one GPU, both directions. How many GPUs send across the cut?",
        ),
        slips.scaled(
            "one GPU", 1 / 4, "One GPU sends that. How many are on one side of the cut?"
        ),
        slips.scaled(
            "half a GPU",
            1 / 8,
            "That is half of what one GPU sends: both halvings are in its 900 GB/s.",
        ),
        slips.scaled(
            "doubled",
            8,
            "The printed figure has both directions already. What of it is one-way and "
            "leads across the cut?",
        ),
    ),
    hint="Across the cut, one-way, goes what the GPUs on one side of it send.",
    solution="""
        Half for one direction. Half of that for the four GPUs on one side of the cut:
        all that they send can go across.

        ```python
        cut = 14.4e12 / 2 / 2
        ```

        (4.2) gives as much: 900 GB/s a GPU, times 8 / 2.
    """,
)
