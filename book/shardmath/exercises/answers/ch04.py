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
        "networks: links, bisection, hops, traffic between nodes and pods, latency, "
        "and two programs judged by their compiled collectives"
    ),
    intro="""
        from one link to an AllReduce that is graded on what it compiles to. Answers are
        in base units: bytes, bytes/s, seconds. Every bandwidth is one-way unless the
        question says otherwise. `chips` holds the bandwidths of the links:
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
        **Given** a Trillium, whose page prints 800 GB/s of inter-chip bandwidth for its
        4 links, with both directions added up.

        **Wanted** the one-way bandwidth of one link.
    """,
    stub="link = ...",
    unit="bytes/s",
    expected=lambda: chips.TPU_V6E.link_bandwidth,
    slips=(
        slips.both_directions(2),
        slips.scaled(
            "all links",
            4,
            "That is what all four links carry together in one direction.",
        ),
        slips.scaled(
            "the printed figure",
            8,
            "That is the printed figure, which adds up all four links and both "
            "directions of each.",
        ),
        slips.bits_for_bytes(1 / 8),
        slips.other_link(chips.TPU_V6E.fact("link_bandwidth"), 1),
        slips.half_of_other_link(chips.TPU_V6E.fact("link_bandwidth"), 1),
    ),
    hint="The printed figure adds up all the links, and both directions of each. By "
    "what do you have to divide it?",
    solution="""
        There are four links, and the printed figure counts two directions for each of
        them:

        ```python
        link = 800e9 / (4 * 2)
        ```

        The chip's record states both these 100 GB/s and the printed figure.
    """,
)

POD = Number(
    id="04.2",
    title="From a pod's figure to a link",
    task="""
        **Given** a TPU v4 pod of 4,096 chips with 6 links each, and its page, which
        prints an all-reduce bandwidth of 1.1 PB/s for the pod.

        **Wanted** the one-way bandwidth of one link that follows from this figure.
    """,
    stub="link = ...",
    unit="bytes/s",
    expected=lambda: (
        chips.TPU_V4.fact("domain_allreduce").value
        / (chips.TPU_V4.fact("domain").value * chips.TPU_V4.links)
    ),
    slips=(
        slips.scaled(
            "links forgotten",
            6,
            "That is the bandwidth of one chip. Over how many links does a chip send?",
        ),
        slips.scaled(
            "halved once more",
            1 / 2,
            "The pod's figure is one-way already, because it counts each link of a "
            "chip once, in the direction out of that chip.",
        ),
        Slip(
            "the record's link",
            lambda right: chips.TPU_V4.link_bandwidth,
            "That is the bandwidth of a link as the v4 paper states it. Which "
            "bandwidth follows from the pod's figure?",
        ),
    ),
    hint="The printed figure is the one-way sum of all the links of all the chips. How "
    "many links does it count?",
    solution="""
        The printed figure counts 6 links for each of 4,096 chips, one-way:

        ```python
        link = 1.1e15 / (4096 * 6)
        ```

        This is 44.8 GB/s, a tenth less than the 50 GB/s that the v4 paper states.
    """,
)

BISECTION = Number(
    id="04.3",
    title="The thinnest cut of a long slice",
    task=r"""
        **Given** a v5p slice of $8 \times 8 \times 24$ chips.

        **Wanted** its one-way bisection bandwidth.
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
            "You cut every ring in one place. How often does a cut into halves meet a "
            "ring?",
        ),
        slips.scaled(
            "the wrong cut",
            3,
            "You cut across a short side, where more links cross. Look for the cut "
            "with the fewest links.",
        ),
        slips.other_link(chips.TPU_V5P.fact("link_bandwidth"), 1),
        slips.half_of_other_link(chips.TPU_V5P.fact("link_bandwidth"), 1),
    ),
    hint="Cut across the longest side. How many rings run along it, and in how many "
    "places does a cut into halves meet each ring?",
    solution="""
        There are $8 \\cdot 8$ rings along the side of 24, and a cut into halves meets
        each of them in two places:

        ```python
        bisection = 8 * 8 * 2 * chips.TPU_V5P.link_bandwidth
        ```

        That is as much as a cube of 512 chips has, although this slice has three times
        as many chips.
    """,
)

DIAMETER = Number(
    id="04.4",
    title="The longest path",
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
            "The sides wrap, so no chip is farther away than half of a ring.",
        ),
        slips.scaled(
            "all sides",
            2,
            "You counted the whole length of every ring. The other way round is "
            "shorter for all chips beyond the middle.",
        ),
        Slip(
            "longest side alone",
            lambda right: 10,
            "You counted only the hops along the longest side. The farthest chip is "
            "half a ring away along all three sides.",
        ),
    ),
    hint="How many hops away is the farthest chip on a ring of n chips? On a torus, "
    "the hops along the sides add up.",
    solution="""
        Along each side, the farthest chip is half a ring away, and the hops along the
        three sides add up:

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
        **Given** a v5e slice of $8 \times 8$ chips and an AllGather along one side,
        with a result of 4 MB. Assume a latency of 1 µs per hop.

        **Wanted** the time that you expect, including the latency.
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
            "The chip at the end of a line has only one neighbour on that line, so "
            "everything arrives at the one-way bandwidth of a single link.",
        ),
        Slip(
            "a hop too many",
            lambda right: _gather((8, 8)).bandwidth_seconds + 8 * HOP,
            "There are eight chips in a line. How many links join them?",
        ),
        Slip(
            "hops of a ring",
            lambda right: _gather((8, 8)).bandwidth_seconds + 4 * HOP,
            "You counted the hops of a ring. On a line, nothing leads back, so how far "
            "is one end from the other?",
        ),
        Slip(
            "one hop",
            lambda right: _gather((8, 8)).bandwidth_seconds + HOP,
            "You counted a single hop. The first chip's part of the array has to reach "
            "the last chip.",
        ),
        Slip(
            "latency left out",
            lambda right: _gather((8, 8)).bandwidth_seconds,
            "You left out the latency. For an array of 4 MB, it is not negligible.",
        ),
        Slip(
            "own part counted",
            lambda right: GATHERED / chips.TPU_V5E.link_bandwidth + 7 * HOP,
            "Each chip already has one part. How much of the array is left to arrive?",
        ),
    ),
    hint="Does a side of 8 wrap on a v5e? Use the line of formula (4.3) that fits, and "
    "count the hops to the farthest chip.",
    solution="""
        A side of 8 does not wrap on a v5e. So the chip at an end receives seven of the
        eight parts through one link, and the farthest part takes seven hops:

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
        **Given** a unit of 32 nodes. Each node has eight H100s with one network card of
        400 Gb/s each. The network above the nodes is a full tree, which has as many
        links up as down at every level.

        **Wanted** the one-way rate, in bytes/s, at which the unit can send into the
        spine.
    """,
    stub="egress = ...",
    unit="bytes/s",
    expected=lambda: Cluster(NVLinkDomain(chips.H100), (4, 32)).egress("spine"),
    slips=(
        slips.scaled(
            "one card per node",
            1 / 8,
            "You counted one card for each node. How many cards does a node have?",
        ),
        slips.bits_for_bytes(8),
        slips.scaled(
            "all four units",
            4,
            "The question asks for the rate of one unit, not of all four.",
        ),
        slips.scaled(
            "one node", 1 / 32, "That is what one node sends. A unit has 32 nodes."
        ),
    ),
    hint="There are 32 nodes, and each has 8 cards of 400 Gb/s. How many bytes per "
    "second can all of them send together?",
    solution="""
        The tree is full, so all the cards of the unit can send into the spine at their
        full rate at once:

        ```python
        egress = 32 * 8 * 400e9 / 8
        ```

        The first 8 is the number of cards in a node, and the second 8 turns bits into
        bytes.
    """,
)


def _reduce(nodes):
    mesh = Mesh(Cluster(NVLinkDomain(chips.B200), nodes), {"X": 8 * nodes})
    return all_reduce(REDUCED, mesh, "X").lower


CROSSING = Number(
    id="04.7",
    title="An AllReduce over four nodes",
    task="""
        **Given** 32 B200s in four nodes of 8, and an AllReduce of 10 GB over all of
        them. The GPUs do the adding, not the switches.

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
            "You sent all the bytes of a node through one card. Every GPU has its own "
            "card.",
        ),
        Slip(
            "NVLink alone",
            lambda right: 2 * REDUCED * 31 / 32 / chips.B200.scale_up_bandwidth,
            "That is the time if everything went over NVLink. Which level of the "
            "network is slower?",
        ),
        Slip(
            "one node alone",
            lambda right: 2 * REDUCED * 7 / 8 / chips.B200.scale_up_bandwidth,
            "Each node needs that long over NVLink for its own sum. How many bytes go "
            "to the other nodes, and over which links?",
        ),
        slips.scaled(
            "GPUs for nodes",
            (7 / 8) / (3 / 4),
            "Between eight GPUs, each sends 7/8 of its bytes. What is this share "
            "between four nodes?",
        ),
        slips.scaled(
            "one pass",
            1 / 2,
            "That is the time of an AllGather or a ReduceScatter. What does an "
            "AllReduce do?",
        ),
        Slip(
            "both levels added",
            lambda right: right + 2 * REDUCED * 7 / 8 / chips.B200.scale_up_bandwidth,
            "That is the time if one level waits for the other. For the lower bound, "
            "they work at the same time, on different parts.",
        ),
        Slip(
            "own node counted",
            lambda right: right * 4 / 3,
            "Each node keeps one part of the sum for itself. How many of the four "
            "parts have to leave it?",
        ),
        Slip(
            "one ring for all",
            lambda right: right * (31 / 32) / (3 / 4),
            "That is the time of one ring through all the GPUs. If each node adds up "
            "its own arrays first, it sends fewer bytes to the others.",
        ),
    ),
    hint="Let the GPUs add up their arrays inside each node first. How much of the sum "
    "does each GPU then have to reduce over the four nodes, with its own card?",
    solution="""
        After a ReduceScatter inside the node, each GPU holds an eighth of the node's
        sum. The 8 cards of a node reduce these parts over the 4 nodes, all at once,
        while NVLink has time to spare:

        ```python
        part = 10e9 / 8
        seconds = 2 * part * 3 / 4 / chips.B200.scale_out_bandwidth
        ```

        This is 37.5 ms, 1.9 times as long as one node needs by itself.
    """,
)


def _h200(reduces):
    mesh = Mesh(NVLinkDomain(chips.H200, 6, reduces=reduces), {"X": 6})
    return all_reduce(1e15, mesh, "X").bus_bandwidth  # so large that hops do not count


SHARP = Number(
    id="04.8",
    title="How far busbw can exceed the bandwidth of the links",
    task="""
        **Given** a large AllReduce over *six* H200s of one node, whose switches do the
        adding. According to (4.8), a GPU then sends each of the $V$ bytes of its array
        only once.

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
            "That is the limit for four GPUs. How many GPUs take part here?",
        ),
        Slip(
            "eight GPUs",
            lambda right: 7 / 4 * _h200(reduces=False),
            "That is the limit for eight GPUs. How many GPUs take part here?",
        ),
        Slip(
            "as NCCL does it",
            lambda right: right * 6 / 7,
            "That is the limit of NCCL's algorithm, in which a GPU sends one part "
            "more. Here, it sends only V bytes.",
        ),
        Slip(
            "as NCCL does it, over eight",
            lambda right: 7 / 4 * 8 / 9 * _h200(reduces=False),
            "That is the limit of NCCL's algorithm on eight GPUs. Here, six GPUs take "
            "part, and each of them sends only V bytes.",
        ),
    ),
    hint="busbw counts 2 V (n - 1)/n bytes, but a GPU really sends only V. How much "
    "larger than the bandwidth of the links can busbw be?",
    solution="""
        A GPU sends $V$ bytes at the bandwidth of its links, and in the same time busbw
        counts $2V \\cdot 5/6$ bytes:

        ```python
        limit = 2 * 5 / 6 * chips.H200.scale_up_bandwidth
        ```
    """,
)

HALF = Number(
    id="04.9",
    title="The half-bandwidth size",
    task=r"""
        **Given** a sweep of AllReduces over 16 GPUs. A fit of (4.7) to it gives a
        latency of $\alpha = 20$ µs and a bus bandwidth of 400 GB/s.

        **Wanted** the size of the array at which an AllReduce reaches half of this
        bandwidth.
    """,
    stub="size = ...",
    unit="bytes",
    expected=lambda: SWEEP_ALPHA * SWEEP_RATE * SWEEP_GPUS / (2 * (SWEEP_GPUS - 1)),
    slips=(
        slips.scaled(
            "sent for size",
            2 * 15 / 16,
            "That is the number of bytes that a GPU sends. How large is the array?",
        ),
        slips.scaled(
            "factor upside down",
            (2 * 15 / 16) ** 2,
            "A GPU sends more bytes than the array has. Which of the two does the "
            "question ask for?",
        ),
        slips.scaled(
            "AllGather",
            2,
            "That would be right for an AllGather. In an AllReduce, a GPU sends nearly "
            "twice the array.",
        ),
        slips.scaled(
            "very many GPUs",
            15 / 16,
            "That would be right for very many GPUs. With only 16 GPUs, each of them "
            "keeps a sixteenth of the array and doesn't send it.",
        ),
    ),
    hint="At half of the bandwidth, an AllReduce takes twice as long as sending its "
    "bytes alone would. How large are the two terms of (4.7) then?",
    solution="""
        Half of the bandwidth is reached where sending the bytes takes as long as the
        latency:

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
    title="When the DCN is no longer the limit",
    task="""
        **Given** many slices of Ironwood chips (`chips.TPU_7X`), joined by the DCN. All
        the chips of a slice can send into the DCN at the same time.

        **Wanted** the number of chips that a slice must have before an AllReduce over
        all slices is limited by ICI and no longer by the DCN. There are many slices,
        and they are large, so leave out the factor $(n-1)/(n-g)$, where $n$ counts all
        the chips and $g$ those of a slice.
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
            "You compared the DCN with a single ICI link. A chip can send through all "
            "its links at once.",
        ),
        Slip(
            "whole cubes",
            lambda right: 64,
            "Slices are built from cubes of 64 chips, and one cube is enough. But at "
            "how many chips are the two times equal?",
        ),
        slips.both_directions(2),
        slips.inverse("A slice has more than one chip."),
    ),
    hint="How fast can a slice of g chips send into the DCN? At which g is this as "
    "fast as one chip can send into its ICI links?",
    solution="""
        The DCN is no longer the limit once all the chips of a slice together can send
        as much into the DCN as one chip sends into its ICI links:

        ```python
        chip = chips.TPU_7X
        size = chip.scale_up_bandwidth / chip.scale_out_bandwidth
        ```

        With 48 chips, ICI and DCN take equally long, and with 49 chips the ICI is the
        limit. Both numbers are below the 64 chips of one cube.
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
        **Given** the sides of a slice, which are all even numbers, a list that says
        which of them wrap, and the one-way bandwidth of a link.

        **Wanted** a function that returns the one-way bisection bandwidth of the slice.
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
            "You counted both directions of the links. The question asks for the "
            "one-way bandwidth.",
        ),
        Slip(
            "longest side",
            lambda sides, wraps, link: (
                (2 if wraps[sides.index(max(sides))] else 1)
                * link
                * math.prod(sides)
                / max(sides)
            ),
            "A cut across the longest side does not always cross the fewest links. A "
            "shorter side that is open may have fewer. Try all the sides.",
        ),
    ),
    hint="Try a cut across each side. The number of rows that it meets is the product "
    "of the other sides. Does it meet each row once or twice?",
    solution="""
        A cut across a side meets every row along that side, twice if the side wraps and
        once if it does not. The bisection is the cut with the least bandwidth:

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
        **Given** two AllReduces over $n$ GPUs, one of a small array and one of a large
        array, with the size of each array in bytes and the time of each AllReduce in
        seconds.

        **Wanted** a function that returns the latency $\alpha$ in seconds and the *bus*
        bandwidth in bytes/s, as a pair, such that (4.7) gives both times.
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
            "Those are bytes of the array per second. Bus bandwidth counts the bytes "
            "that a GPU sends.",
        ),
        Slip(
            "smallest time for alpha",
            lambda n, small, t, large, u: (t, _fit(n, small, t, large, u)[1]),
            "You took the smaller time for α. But even the smaller array has bytes to "
            "send.",
        ),
        Slip(
            "each time for one number",
            lambda n, small, t, large, u: (t, 2 * (n - 1) / n * large / u),
            "Each of the two times contains both a delay and the time for the bytes. "
            "Solve for both numbers together.",
        ),
        Slip(
            "one pass",
            lambda n, *case: (_fit(n, *case)[0], _fit(n, *case)[1] / 2),
            "In an AllGather, a GPU sends (n − 1)/n of the array. How much does it "
            "send in an AllReduce?",
        ),
    ),
    hint="You have two equations of the form t = α + c V, one for each size V. What is "
    "left if you subtract one from the other?",
    solution="""
        Both times contain the same $\\alpha$, so it cancels out if you subtract one
        time from the other:

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
    title="An AllReduce that spares the slow link",
    task="""
        **Given** 8 devices as a mesh of 2 nodes with 4 GPUs each, on the axes `node`
        and `gpu`. The function runs on each device, inside `jax.shard_map`, and gets
        the device's own row `x` of shape `[1, m]`, where $m$ is a multiple of 8.

        **Wanted** a function that leaves the sum of all eight rows, of shape `[m]`, on
        every device, with only $m/4$ of its values in the collective between the nodes.
        The bytes are counted in the compiled program.
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
            "From a single AllReduce over both axes, one cannot see how many bytes go "
            "from node to node. Use a separate collective between the nodes.",
        ),
        Slip(
            "whole array across",
            lambda x: [
                Collective("all_reduce", ("gpu",), 4 * x[1], 4),
                Collective("all_reduce", ("node",), 4 * x[1], 2),
            ],
            "Every GPU sends the whole array to the other node. A quarter from each "
            "GPU is enough.",
        ),
    ),
    hint="Try three steps: `psum_scatter` inside the node, `psum` across the nodes, "
    "and `all_gather` inside the node, with `tiled=True`. How large is the array in "
    "each of them?",
    solution="""
        If the GPUs of a node add up their arrays first, each of them holds a quarter of
        the node's sum. So each GPU has to exchange only this quarter with the other
        node:

        ```python
        def hierarchical(x):
            part = jax.lax.psum_scatter(x[0], "gpu", tiled=True)
            part = jax.lax.psum(part, "node")
            return jax.lax.all_gather(part, "gpu", tiled=True)
        ```

        The slow link between the nodes carries a quarter of the array for each GPU, as
        in (4.6).
    """,
)

SCATTERED = Sharded(
    id="04.14",
    title="Sums that stay where they are",
    task="""
        **Given** the same devices and rows as in question 04.13.

        **Wanted** a function that computes the same sum but leaves it scattered, over
        `gpu` first and then over `node`, each in a separate collective. Each device
        ends with $m/8$ values, and the collective between the nodes has no more than
        $m/4$ values.
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
            "From a single collective over both axes, one cannot see how many bytes go "
            "from node to node. Use a separate collective for each axis.",
        ),
        Slip(
            "summed across, then cut",
            lambda x: _hierarchical(x)[:2],
            "An AllReduce across the nodes also brings back the values that only the "
            "other node keeps.",
        ),
        Slip(
            "gathered and cut",
            _hierarchical,
            "Your program leaves the whole array on every GPU. Here, each GPU needs "
            "only an eighth of it.",
        ),
    ),
    hint="No device needs the whole array, so no device has to gather it. What if you "
    "scatter inside the node first, and then across the nodes?",
    solution="""
        Each device keeps only its own eighth of the sum, so both steps are a
        ReduceScatter, and nothing is gathered:

        ```python
        def scattered(x):
            part = jax.lax.psum_scatter(x[0], "gpu", tiled=True)
            return jax.lax.psum_scatter(part, "node", tiled=True)
        ```

        Both inside the nodes and between them, this sends half as many bytes as an
        AllReduce.
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
        bandwidth per chip, one-way over all 4 links. (A headline rounded it to "3.5
        Tb/s".) On a slice of $8 \times 16$ such chips, an AllGather runs along the side
        of **8** and ends with 2 GB on each chip.

        **Wanted** the seconds that the AllGather takes at the rate that follows from
        this page, without latency.
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
            "On a Trillium, a side wraps only if it is 16 long. How many neighbours "
            "does the chip at the end of a line have?",
        ),
        slips.scaled(
            "all links",
            1 / 4,
            "The page's figure is for four links. How many of them carry bytes along "
            "this side?",
        ),
        slips.scaled(
            "own part counted",
            8 / 7,
            "Each chip has an eighth of the array already.",
        ),
        Slip(
            "the side of 16",
            lambda right: right / 2 * (15 / 16) / (7 / 8),
            "That is the time along the side of 16, which is a ring. Is the side of 8 "
            "one, too?",
        ),
        slips.scaled(
            "two digits",
            3584 / 3500,
            "Did you round too early, or use the headline's 3.5? The page's figure has "
            "four digits.",
        ),
        Slip(
            "the record's link",
            lambda right: _headline(chips.TPU_V6E.link_bandwidth),
            "That uses today's figure. What did the older page say?",
        ),
    ),
    hint="What is the rate of one link in bytes/s? Does the side of 8 form a ring?",
    solution="""
        On a Trillium, a side of 8 does not wrap. So the chip at its end receives seven
        of the eight parts through a single link:

        ```python
        link = 3584e9 / 8 / 4  # bits to bytes, then one of four links
        seconds = 2e9 / link * 7 / 8  # a line: its ends have one neighbour
        ```

        One link carries 112 GB/s, 12 % more than in the record, because the page has
        been revised since. Along the side of 16, the AllGather would take about half as
        long.
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
        **Given** a tree of `pods` pods with `nodes` nodes each, and `gpus` GPUs in each
        node. The bandwidth of a GPU into its node's switch is `up`, and that of its
        network card is `out`. The level between the pods is oversubscribed `taper` to 1
        (a `taper` of 1 means that it is full). The GPUs do the adding, and no byte
        enters a node or a pod more often than it must.

        **Wanted** a function that returns the least time, in seconds, of an AllReduce
        of `nbytes` bytes over all the GPUs, without latency. All levels work at once.
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
            "That is the time if each level waits for the one before it. In the least "
            "time, all levels work at once.",
        ),
        Slip(
            "nodes of one pod",
            lambda nbytes, gpus, nodes, pods, up, out, taper: max(
                2 * nbytes * (1 - 1 / gpus) / up,
                2 * nbytes * (1 - 1 / nodes) / (gpus * out),
                2 * nbytes * (1 - 1 / pods) / (gpus * nodes * out / taper),
            ),
            "You counted only the nodes of one pod. The cards of a node also carry the "
            "sums from the nodes of all other pods.",
        ),
        Slip(
            "all of it by NVLink",
            lambda nbytes, gpus, nodes, pods, up, out, taper: max(
                _reduce_seconds(nbytes, gpus, nodes, pods, up, out, taper),
                2 * nbytes * (1 - 1 / (gpus * nodes * pods)) / up,
            ),
            "You counted too many bytes for NVLink. A GPU exchanges its part with "
            "other nodes over its own card, so inside the node it keeps one of `gpus` "
            "parts.",
        ),
        Slip(
            "both ways into a GPU",
            lambda nbytes, gpus, nodes, pods, up, out, taper: max(
                2 * nbytes * (1 - 1 / (gpus * nodes * pods)) / (up + out),
                _reduce_seconds(nbytes, gpus, nodes, pods, math.inf, out, taper),
            ),
            "A GPU's card and its NVLink cannot both be busy all the time. Bytes that "
            "the node already has would have to enter it again.",
        ),
        Slip(
            "the node forgotten",
            lambda nbytes, gpus, nodes, pods, up, out, taper: _reduce_seconds(
                nbytes, gpus, nodes, pods, math.inf, out, taper
            ),
            "Did you leave out the time inside the node? If NVLink is slow and the "
            "cards are fast, NVLink is the limit.",
        ),
        Slip(
            "taper forgotten",
            lambda nbytes, gpus, nodes, pods, up, out, taper: _reduce_seconds(
                nbytes, gpus, nodes, pods, up, out, 1
            ),
            "The level between the pods has less bandwidth than the cards below it.",
        ),
        Slip(
            "one card per node",
            lambda nbytes, gpus, nodes, pods, up, out, taper: _reduce_seconds(
                nbytes, gpus, nodes, pods, up, out / gpus, taper
            ),
            "You sent all the bytes of a node through one card. Every GPU has its own "
            "card, and all of them share the node's bytes.",
        ),
        Slip(
            "one pass",
            lambda *case: _reduce_seconds(*case) / 2,
            "That is the time of an AllGather or of a ReduceScatter. An AllReduce does "
            "both.",
        ),
    ),
    hint=(
        "Look at a GPU, a node and a pod in turn. How many bytes must enter each of "
        "them, and at which rate can it receive them?"
    ),
    solution="""
        A GPU, a node and a pod each have to receive the parts of the array that they do
        not have themselves. All levels work at once, so the slowest of the three
        determines the time:

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

        The factor of 2 is there because an AllReduce moves its array twice. A full
        spine is never the limit, because a pod can receive as fast as all its nodes
        together but has less to receive.
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
        **Given** 8 pods of 3,072 H100s, with one network card of 400 Gb/s per GPU. The
        network is full inside the pods and oversubscribed 7 to 1 between them. A model
        of 405 billion parameters is spread over the 3,072 GPUs of each pod, and each
        GPU holds an equal part of the gradients, in bf16. Once per step, an AllReduce
        sums each GPU's part with those of the seven GPUs that hold the same part in the
        other pods. A step takes 6 FLOPs for each parameter and token. It has 16 million
        tokens, and each GPU reaches 400 TFLOPs/s.

        **Wanted** the least time of these AllReduces, which all run at once, divided by
        the time of the step's math. Leave out latency.
    """,
    stub="share = ...",
    unit="",
    rtol=0.005,
    expected=_gradients,
    slips=(
        slips.scaled(
            "taper forgotten",
            1 / 7,
            "Between the pods, a GPU's share of the uplinks is a seventh of its card's "
            "bandwidth.",
        ),
        Slip(
            "taper forgotten, two digits",
            lambda right: float(f"{right / 7:.1e}"),
            "Between the pods, a GPU's share of the uplinks is a seventh of its card's "
            "bandwidth. Also give more than two digits.",
        ),
        slips.scaled(
            "one pass",
            1 / 2,
            "That is the time of an AllGather or a ReduceScatter. What does an "
            "AllReduce do?",
        ),
        slips.scaled(
            "own part counted",
            8 / 7,
            "One of the eight pods is the GPU's own, so the GPU has to receive only "
            "the parts of the seven others.",
        ),
        slips.scaled(
            "an eighth",
            1 / 8,
            "Did you take bits for bytes, or spread the parts over all the pods? A "
            "byte has 8 bits, and each pod holds all the parts on its 3,072 GPUs.",
        ),
        slips.scaled(
            "one card per node",
            8,
            "You counted one card for each node. Every GPU has its own card and sends "
            "its own part over it.",
        ),
        slips.scaled(
            "at the peak",
            chips.H100.flops["bf16"] / REACHED,
            "The GPUs reach less than their peak. The task says how much they reach.",
        ),
        Slip(
            "two digits",
            lambda right: right / (1 + right),
            "Did you round too early, or divide by the time of the AllReduces and the "
            "math together? The question asks for the time of the math alone.",
        ),
    ),
    hint="You need four numbers: the bytes of a part, the rate of a GPU between the "
    "pods, the factor of an AllReduce over eight pods, and the FLOPs of one GPU in a "
    "step. What are they?",
    solution="""
        Each GPU sends only its own part of the gradients between the pods, at a seventh
        of its card's bandwidth:

        ```python
        part = 405e9 * 2 / 3072
        rate = 400e9 / 8 / 7
        crossing = 2 * part * 7 / 8 / rate
        math = 6 * 405e9 * 16e6 / (8 * 3072 * 400e12)
        share = crossing / math
        ```

        The exchange takes 64.6 ms for 264 MB per GPU, compared with 3.96 s of math.
        Even at a seventh of the card's bandwidth, the gradients take only a small part
        of the step, because all the GPUs of a pod share them.
    """,
    points=2,
)

TOTAL = Number(
    id="04.18",
    title="From a printed total to a cut",
    task="""
        **Given** a DGX B200, whose page prints 14.4 TB/s of NVLink bandwidth for its 8
        GPUs. This figure adds up all their links in both directions.

        **Wanted** the one-way bisection bandwidth of these GPUs.
    """,
    stub="cut = ...",
    unit="bytes/s",
    expected=lambda: NVLinkDomain(chips.B200).bisection,
    slips=(
        slips.scaled(
            "the printed figure",
            4,
            "That is the printed figure. It adds up both directions, and the links of "
            "both halves.",
        ),
        slips.scaled(
            "half of it",
            2,
            "That is one direction of all the links, or both directions across the "
            "cut. Whose links lead across the cut in one direction?",
        ),
        slips.scaled(
            "an eighth",
            1 / 2,
            "That is the bandwidth of one GPU in both directions. How many GPUs send "
            "across the cut?",
        ),
        slips.scaled(
            "one GPU",
            1 / 4,
            "That is what one GPU sends. How many GPUs are on one side of the cut?",
        ),
        slips.scaled(
            "half a GPU",
            1 / 8,
            "That is half of what one GPU sends. The rate of 900 GB/s per GPU is "
            "one-way already, so do not halve it again.",
        ),
        slips.scaled(
            "doubled",
            8,
            "You doubled the printed figure, which has both directions already. Which "
            "part of it is one-way and leads across the cut?",
        ),
    ),
    hint="In one direction, the GPUs on one side of the cut send to those on the other "
    "side. How many GPUs send, and how fast does each of them send?",
    solution="""
        Half of the printed figure is one-way. Half of that belongs to the four GPUs on
        one side of the cut, and all that they send can cross it:

        ```python
        cut = 14.4e12 / 2 / 2
        ```

        Formula (4.2) gives the same, 900 GB/s per GPU times 8 / 2.
    """,
)
