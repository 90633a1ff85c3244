"""Questions of chapter 24, "Other accelerators"."""

import math

from shardmath.exercises.kinds import Chapter, Function, Number, Slip

CHAPTER = Chapter(
    title="Other accelerators",
    topics=(
        "devices and chips, the speed-up between two chips, claims and their parts, "
        "and chips whose memory is SRAM"
    ),
    intro="""
        from one device to the speed-up on a slide. Answers are in base units, and a
        share is a number between 0 and 1. All rates are dense unless a task says
        otherwise. In 24.3, 24.12 and 24.15 you write functions.
    """,
    setup="""
        from shardmath.exercises import check, report
    """,
)

SHARE = Number(
    id="24.1",
    title="A share of a machine",
    task=r"""
        **Given** a supercomputer with 2,000 nodes of four chips each. A chip has 128 GB
        of memory and consists of two dies. Each die has its own half of the memory, and
        programs see each die as a GPU. A report says that a job "ran on 4,000 GPUs with
        64 GB each".

        **Wanted** the share of the machine that the job used.
    """,
    stub="share = ...",
    unit="",
    expected=lambda: 4000 / (2000 * 4 * 2),
    slips=(
        Slip(
            "dies over chips",
            lambda right: 4000 / (2000 * 4),
            "That divides dies by chips. How many GPUs of 64 GB does the machine have?",
        ),
        Slip(
            "divided by nodes",
            lambda right: 4000 / 2000,
            "That is more than the whole machine. A node has several GPUs.",
        ),
        Slip(
            "two chips for a GPU",
            lambda right: 4000 * 2 / (2000 * 4),
            "A GPU of this report is half a chip, not two chips.",
        ),
    ),
    hint="Which part of the machine has 64 GB of memory?",
    solution="""
        A GPU with 64 GB is one die, so the machine has eight of them in each node.

        ```python
        dies = 2_000 * 4 * 2
        share = 4_000 / dies
        ```
    """,
)

DAYS = Number(
    id="24.2",
    title="How long would it train?",
    task=r"""
        **Given** a report on a model with 30 billion parameters, whose training steps
        reached 41 % of the peak of 512 devices. Two devices form one chip, and the peak
        of a chip is 190 TFLOPs/s. Training takes 6 FLOPs per parameter and token.

        **Wanted** the days that a training run on 2 trillion tokens would take at the
        reported speed.
    """,
    stub="days = ...",
    unit="",
    expected=lambda: 6 * 30e9 * 2e12 / (512 * 0.41 * 95e12) / 86_400,
    slips=(
        Slip(
            "the peak of a chip",
            lambda right: right / 2,
            "Did you give each device the peak of a whole chip?",
        ),
        Slip(
            "at the full peak",
            lambda right: right * 0.41,
            "The devices reach only 41 % of their peak.",
        ),
        Slip(
            "the forward pass alone",
            lambda right: right / 3,
            "Did you count two FLOPs per parameter and token? Training takes six.",
        ),
        Slip(
            "hours for days",
            lambda right: right * 24,
            "Those are hours.",
        ),
    ),
    hint="What is the peak of one device?",
    solution="""
        A device has half of the peak of a chip.

        ```python
        flops = 6 * 30e9 * 2e12
        rate = 512 * 0.41 * 190e12 / 2
        days = flops / rate / 86_400
        ```
    """,
)


def _speedup(flops: float, nbytes: float, old: list, new: list) -> float:
    def bound(chip: list) -> float:
        return max(flops / chip[0], nbytes / chip[1])

    return bound(old) / bound(new)


def _of_peaks(flops: float, nbytes: float, old: list, new: list) -> float:
    return new[0] / old[0]


def _of_bandwidths(flops: float, nbytes: float, old: list, new: list) -> float:
    return new[1] / old[1]


def _upside_down(flops: float, nbytes: float, old: list, new: list) -> float:
    return 1 / _speedup(flops, nbytes, old, new)


def _added(flops: float, nbytes: float, old: list, new: list) -> float:
    before, after = (flops / peak + nbytes / wide for peak, wide in (old, new))
    return before / after


def _two_chips(rng) -> tuple:
    peaks = [rng.randint(100, 2500) * 1e12 for _ in range(2)]
    wide = [rng.randint(8, 80) * 1e11 for _ in range(2)]
    nbytes = rng.randint(1, 200) * 1e9
    flops = nbytes * 10 ** rng.uniform(0, 4)
    return flops, nbytes, [peaks[0], wide[0]], [peaks[1], wide[1]]


SPEEDUP = Function(
    id="24.3",
    title="The speed-up from one chip to another",
    task=r"""
        **Given** a workload with `flops` FLOPs and `nbytes` bytes of memory traffic.
        The chips `old` and `new` are lists of two numbers: the dense peak in FLOPs/s
        and the memory bandwidth in bytes/s.

        **Wanted** a function that returns the speed-up from the old chip to the new
        one, if the workload takes its lower bound on both chips.
    """,
    stub="def speedup(flops, nbytes, old, new): ...",
    spec=_speedup,
    gives=(("the speed-up", ""),),
    cases=_two_chips,
    examples=(
        (1e15, 1e11, [989.4e12, 3.35e12], [1835e12, 3.7e12]),
        (1e12, 1e11, [989.4e12, 3.35e12], [1835e12, 3.7e12]),
    ),
    rtol=1e-9,
    slips=(
        Slip(
            "the ratio of the peaks",
            _of_peaks,
            "That is right only if the workload is compute-bound on both chips.",
        ),
        Slip(
            "the ratio of the bandwidths",
            _of_bandwidths,
            "That is right only if the workload is memory-bound on both chips.",
        ),
        Slip(
            "upside down",
            _upside_down,
            "Divide the time on the old chip by the time on the new one.",
        ),
        Slip(
            "both times added",
            _added,
            "Math and memory traffic can overlap. The bound is the larger of the two.",
        ),
    ),
    hint="Compute the bound on each chip first.",
    solution="""
        On each chip, the bound is the longer of the two times.

        ```python
        def speedup(flops, nbytes, old, new):
            before = max(flops / old[0], nbytes / old[1])
            after = max(flops / new[0], nbytes / new[1])
            return before / after
        ```
    """,
)

BETWEEN = Number(
    id="24.4",
    title="Between two ridges",
    task=r"""
        **Given** an H100 with 989.4 TFLOPs/s and 3.35 TB/s, an MI325X with
        1,307.4 TFLOPs/s and 6.0 TB/s, and a workload with 240 FLOPs per byte.

        **Wanted** how many times as fast the workload runs on the MI325X, if it takes
        its lower bound on both chips.
    """,
    stub="times = ...",
    unit="",
    expected=lambda: 1307.4e12 / (240 * 3.35e12),
    slips=(
        Slip(
            "the ratio of the peaks",
            lambda right: 1307.4 / 989.4,
            "The H100 doesn't reach its peak with 240 FLOPs per byte.",
        ),
        Slip(
            "the ratio of the bandwidths",
            lambda right: 6.0 / 3.35,
            "The MI325X is compute-bound with 240 FLOPs per byte.",
        ),
        Slip(
            "upside down",
            lambda right: 1 / right,
            "Divide the time on the H100 by the time on the MI325X.",
        ),
    ),
    hint="On which of the two chips is the workload memory-bound?",
    solution="""
        The ridge of the H100 is 295 FLOPs per byte, so the workload is memory-bound
        there. The ridge of the MI325X is 218, so there it is compute-bound.

        ```python
        slow = min(989.4e12, 240 * 3.35e12)
        fast = min(1_307.4e12, 240 * 6.0e12)
        times = fast / slow
        ```
    """,
)

CROSSING = Number(
    id="24.5",
    title="Where two roofs cross",
    task=r"""
        **Given** a Trainium3 with 671 TFLOPs/s and 4.9 TB/s, and a Gaudi 3 with
        1,835 TFLOPs/s and 3.7 TB/s, both in bf16. With few FLOPs per byte, the bound is
        shorter on the Trainium3. With many, it is shorter on the Gaudi 3.

        **Wanted** the FLOPs per byte at which both bounds are equal.
    """,
    stub="intensity = ...",
    unit="",
    expected=lambda: 671e12 / 3.7e12,
    slips=(
        Slip(
            "the ridge of the Trainium3",
            lambda right: 671 / 4.9,
            "At this intensity, the Gaudi 3 reaches only 3.7/4.9 of 671 TFLOPs/s.",
        ),
        Slip(
            "the ridge of the Gaudi 3",
            lambda right: 1835 / 3.7,
            "At its ridge, the Gaudi 3 is already 2.7 times as fast.",
        ),
        Slip(
            "the other two numbers",
            lambda right: 1835 / 4.9,
            "Which flat roof is lower, and which slope reaches it last?",
        ),
    ),
    hint="Draw both roofs. The slope of one meets the flat part of the other.",
    solution="""
        The roof of the Trainium3 rises faster, but becomes flat at 137 FLOPs per byte.
        The roof of the Gaudi 3 goes on rising and reaches the same rate later.

        ```python
        intensity = 671e12 / 3.7e12
        ```
    """,
)

REPLACE = Number(
    id="24.6",
    title="How many chips replace 100 H100s?",
    task=r"""
        **Given** compute-bound work in bf16 on 100 H100s. An H100 has a peak of
        989.4 TFLOPs/s, and its fastest matmul in a search reached 794.5 TFLOPs/s. An
        MI300X has a peak of 1,307.4 TFLOPs/s, and its fastest matmul in the same search
        reached 668.4 TFLOPs/s. Suppose that the work runs at the rate of these matmuls
        and that the network takes no time.

        **Wanted** the smallest number of MI300Xs that is at least as fast as 100 H100s.
    """,
    stub="chips = ...",
    unit="",
    expected=lambda: math.ceil(100 * 794.5 / 668.4),
    rtol=0,
    slips=(
        Slip(
            "by the peaks",
            lambda right: float(math.ceil(100 * 989.4 / 1307.4)),
            "That is the number that follows from the data sheets. Which rates do the "
            "chips reach?",
        ),
        Slip(
            "rounded down",
            lambda right: 118.0,
            "118 chips are slightly too slow. Round up.",
        ),
        Slip(
            "upside down",
            lambda right: float(math.ceil(100 * 668.4 / 794.5)),
            "If the new chip is slower, you need more of them, not fewer.",
        ),
    ),
    hint="Which two of the four rates does the work run at?",
    solution="""
        Compare the rates that the chips reach, and round up.

        ```python
        import math

        chips = math.ceil(100 * 794.5 / 668.4)
        ```
    """,
)

SERVERS = Number(
    id="24.7",
    title="Two servers on a slide",
    task=r"""
        **Given** a slide that says "5 times the compute". A new server with 96 chips is
        compared with an old server with 32 chips. The new server's rate is in fp8, and
        the old server's is in bf16. On the old chip, fp8 is twice as fast as bf16. All
        the rates are dense peaks.

        **Wanted** the fp8 peak of one new chip divided by that of one old chip.
    """,
    stub="times = ...",
    unit="",
    expected=lambda: 5 / (96 / 32) / 2,
    slips=(
        Slip(
            "the format left out",
            lambda right: 2 * right,
            "The old server is in bf16. What is its peak in fp8?",
        ),
        Slip(
            "the count left out",
            lambda right: 3 * right,
            "The new server has three times as many chips.",
        ),
        Slip(
            "the format on the wrong side",
            lambda right: 4 * right,
            "In fp8, the old chip is faster, so the ratio becomes smaller.",
        ),
        Slip(
            "as printed",
            lambda right: 5.0,
            "That is the factor on the slide. Which parts does it consist of?",
        ),
    ),
    hint="Write the factor as a product: count, format and chip.",
    solution="""
        The slide's factor is the product of 3 for the number of chips, 2 for the
        format, and the ratio of the chips. This ratio is 0.83, so the new chip is in
        fact slower.

        ```python
        times = 5 / (96 / 32) / 2
        ```
    """,
)

JOULES = Number(
    id="24.8",
    title="Tokens per joule",
    task=r"""
        **Given** a chip with 6 TB/s of memory bandwidth and a rated power of 1,000 W. A
        decode step for 32 users reads 141 GB of weights and 43 GB of cache and is
        memory-bound.

        **Wanted** the tokens per joule, if each step takes its lower bound and the chip
        draws its rated power.
    """,
    stub="tokens = ...",
    unit="",
    expected=lambda: 32 / (184e9 / 6e12 * 1000),
    slips=(
        Slip(
            "one token",
            lambda right: right / 32,
            "The step produces a token for each of the users.",
        ),
        Slip(
            "weights alone",
            lambda right: 32 / (141e9 / 6e12 * 1000),
            "The step reads the cache as well.",
        ),
        Slip(
            "tokens per second",
            lambda right: right * 1000,
            "Those are tokens per second. In a second, the chip uses 1,000 joules.",
        ),
        Slip(
            "joules per token",
            lambda right: 1 / right,
            "Those are joules per token.",
        ),
    ),
    hint="How long does a step take, and how much energy does the chip use in it?",
    solution="""
        A step takes 31 ms and therefore 31 joules. It produces 32 tokens.

        ```python
        seconds = (141e9 + 43e9) / 6e12
        tokens = 32 / (seconds * 1_000)
        ```
    """,
)

SERIAL = Number(
    id="24.9",
    title="One user on a pipeline of SRAM chips",
    task=r"""
        **Given** a model with 8 billion parameters in 16 bits, on chips with 230 MB of
        SRAM at 80 TB/s each. The chips form a pipeline, and every token takes one pass
        over the weights.

        **Wanted** an upper bound on the tokens per second of one user.
    """,
    stub="rate = ...",
    unit="",
    expected=lambda: 80e12 / 16e9,
    slips=(
        Slip(
            "aggregate bandwidth",
            lambda right: right * math.ceil(16e9 / 230e6),
            "Did you add up the bandwidth of all the chips? A token is on one chip at "
            "a time.",
        ),
        Slip(
            "one byte per parameter",
            lambda right: 2 * right,
            "16 bits are two bytes.",
        ),
        Slip(
            "bits for bytes",
            lambda right: right / 8,
            "Did you count bits? The bandwidth is in bytes per second.",
        ),
    ),
    hint="Use the first line of formula (24.2).",
    solution="""
        The token is on one chip at a time.

        ```python
        nbytes = 2 * 8e9
        rate = 80e12 / nbytes
        ```
    """,
)

HOLDING = Number(
    id="24.10",
    title="Chips that hold a model",
    task=r"""
        **Given** a model with 47 billion parameters in 8 bits and 20 GB of KV cache, on
        chips with 230 MB of SRAM and no other memory.

        **Wanted** the smallest number of chips that holds both.
    """,
    stub="chips = ...",
    unit="",
    expected=lambda: math.ceil(67e9 / 230e6),
    rtol=0,
    slips=(
        Slip(
            "the cache left out",
            lambda right: float(math.ceil(47e9 / 230e6)),
            "Where is the KV cache? The chips have no other memory.",
        ),
        Slip(
            "two bytes per parameter",
            lambda right: float(math.ceil(114e9 / 230e6)),
            "8 bits are one byte.",
        ),
        Slip(
            "rounded down",
            lambda right: right - 1,
            "That is one chip too few. The last bytes need a chip as well.",
        ),
    ),
    hint="Add the bytes of the weights and of the cache.",
    solution="""
        ```python
        import math

        chips = math.ceil((47e9 + 20e9) / 230e6)
        ```
    """,
)

HOPS = Number(
    id="24.11",
    title="Hops from chip to chip",
    task=r"""
        **Given** a pipeline of 300 chips that hold 60 GB of weights together. Each chip
        reads its SRAM with 80 TB/s. From each chip to the next one, a token's
        activations of 12,288 bytes travel over a link with 15 GB/s. For a single user,
        nothing overlaps.

        **Wanted** the tokens per second of one user.
    """,
    stub="rate = ...",
    unit="",
    expected=lambda: 1 / (60e9 / 80e12 + 299 * 12_288 / 15e9),
    slips=(
        Slip(
            "no hops",
            lambda right: 80e12 / 60e9,
            "The token also travels from chip to chip.",
        ),
        Slip(
            "hops alone",
            lambda right: 1 / (299 * 12_288 / 15e9),
            "That counts only the hops. Each chip also reads its weights.",
        ),
        Slip(
            "all weights in each chip",
            lambda right: 1 / (300 * 60e9 / 80e12 + 299 * 12_288 / 15e9),
            "Does each chip read the whole model? Together they hold 60 GB.",
        ),
    ),
    hint="How long does a token spend on the chips, and how long on the links between "
    "them?",
    solution="""
        All chips together read the 60 GB once, one chip after another. Between them,
        there are 299 hops.

        ```python
        reading = 60e9 / 80e12
        travelling = 299 * 12_288 / 15e9
        rate = 1 / (reading + travelling)
        ```
    """,
)


def _pipeline(users: int, chips: int, nbytes: float, bandwidth: float) -> float:
    return min(users, chips) * bandwidth / nbytes


def _every_chip(users: int, chips: int, nbytes: float, bandwidth: float) -> float:
    return chips * bandwidth / nbytes


def _every_user(users: int, chips: int, nbytes: float, bandwidth: float) -> float:
    return users * bandwidth / nbytes


def _one_user(users: int, chips: int, nbytes: float, bandwidth: float) -> float:
    return bandwidth / nbytes


def _some_users(rng) -> tuple:
    chips = rng.randint(2, 700)
    users = rng.choice((1, rng.randint(2, chips), chips, rng.randint(chips, 2000)))
    return users, chips, rng.randint(10, 400) * 1e9, rng.randint(3, 100) * 1e12


PIPELINE = Function(
    id="24.12",
    title="All users of a pipeline",
    task=r"""
        **Given** the number of `users` that decode at the same time, the number of
        `chips` in a pipeline, a model of `nbytes` bytes that is spread evenly over
        these chips, and the `bandwidth` of one chip's memory in bytes/s. Each chip
        reads its weights once for each token. A user's next token can start only when
        the token before it is finished.

        **Wanted** a function that returns an upper bound on the tokens per second of
        all users together.
    """,
    stub="def rate(users, chips, nbytes, bandwidth): ...",
    spec=_pipeline,
    gives=(("tokens per second", ""),),
    cases=_some_users,
    examples=((1, 609, 140e9, 80e12), (609, 609, 140e9, 80e12), (2000, 4, 1e11, 2e13)),
    rtol=1e-9,
    slips=(
        Slip(
            "all chips always busy",
            _every_chip,
            "With fewer users than chips, some of the chips have nothing to do.",
        ),
        Slip(
            "every user at the full rate",
            _every_user,
            "With more users than chips, tokens have to wait for a chip.",
        ),
        Slip(
            "one user",
            _one_user,
            "That is the rate of one user. Other users' tokens are on other chips.",
        ),
    ),
    hint="How many tokens can be on their way through the chips at the same time?",
    solution="""
        A user has one token on its way, and a chip works on one token at a time.

        ```python
        def rate(users, chips, nbytes, bandwidth):
            return min(users, chips) * bandwidth / nbytes
        ```
    """,
)

LARGEST = Number(
    id="24.13",
    title="The largest speed-up that can be true",
    task=r"""
        **Given** a slide that says "2.5 times as fast", because the new chip has
        5 PFLOPs/s in fp8 and the old one has 2 PFLOPs/s. The first rate is with 2:4
        sparsity, which doubles it, and the second rate is dense. The new chip has
        4.8 TB/s of memory bandwidth, and the old one has 3.35 TB/s. Your matrices are
        dense.

        **Wanted** the largest speed-up that formula (24.1) allows for any of your
        workloads in fp8.
    """,
    stub="times = ...",
    unit="",
    expected=lambda: max(2.5 / 2, 4.8 / 3.35),
    slips=(
        Slip(
            "sparse over dense",
            lambda right: 2.5,
            "Your matrices are dense. What is the dense peak of the new chip?",
        ),
        Slip(
            "the ratio of the peaks",
            lambda right: 1.25,
            "That is for compute-bound work. Is there a workload that gains more?",
        ),
        Slip(
            "both ratios multiplied",
            lambda right: 1.25 * 4.8 / 3.35,
            "A workload can't gain both factors at the same time.",
        ),
    ),
    hint="Compute the ratio of the dense peaks and the ratio of the bandwidths.",
    solution="""
        The new chip has a dense peak of 2.5 PFLOPs/s. By (24.1), no workload gains more
        than the larger of the two ratios.

        ```python
        peaks = 5e15 / 2 / 2e15
        bandwidths = 4.8e12 / 3.35e12
        times = max(peaks, bandwidths)
        ```
    """,
)

LINK = Number(
    id="24.14",
    title="From one chip to another without a switch",
    task=r"""
        **Given** a node with eight chips. Each chip has a direct link to each of the
        seven others, with 64 GB/s in each direction. There is no switch, and no chip
        forwards data for others. One chip sends 6 GB to one other chip.

        **Wanted** the seconds that the transfer takes.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 6e9 / 64e9,
    slips=(
        Slip(
            "all seven links",
            lambda right: right / 7,
            "Only one of the seven links leads to this chip.",
        ),
        Slip(
            "both directions",
            lambda right: right / 2,
            "The data goes only one way.",
        ),
        Slip(
            "one link shared by seven",
            lambda right: right * 7,
            "Each of the seven links carries 64 GB/s.",
        ),
    ),
    hint="Which links lead from one of the two chips to the other?",
    solution="""
        Only one link leads from one chip to the other.

        ```python
        seconds = 6e9 / 64e9
        ```
    """,
)


def _ranking(flops: float, nbytes: float, chips: list) -> list:
    def bound(chip: list) -> float:
        return max(flops / chip[1], nbytes / chip[2])

    return [chip[0] for chip in sorted(chips, key=bound)]


def _by_peak(flops: float, nbytes: float, chips: list) -> list:
    return [chip[0] for chip in sorted(chips, key=lambda chip: -chip[1])]


def _by_bandwidth(flops: float, nbytes: float, chips: list) -> list:
    return [chip[0] for chip in sorted(chips, key=lambda chip: -chip[2])]


def _slowest_first(flops: float, nbytes: float, chips: list) -> list:
    return _ranking(flops, nbytes, chips)[::-1]


def _some_chips(rng) -> tuple:
    """Chips with a high peak or a fast memory; no two have the same bound."""
    count = rng.randint(3, 6)
    peaks = rng.sample(range(100, 2500, 7), count)
    wide = sorted(rng.sample(range(8, 80), count))
    peaks.sort(reverse=True)
    chips = [
        [name, peak * 1e12, rate * 1e11]
        for name, peak, rate in zip("ABCDEF", peaks, wide, strict=False)
    ]
    rng.shuffle(chips)
    nbytes = rng.randint(1, 200) * 1e9
    return nbytes * 10 ** rng.uniform(1.5, 3), nbytes, chips


RANKING = Function(
    id="24.15",
    title="Sort chips by your workload",
    task=r"""
        **Given** a workload with `flops` FLOPs and `nbytes` bytes of memory traffic.
        The list `chips` has an entry for each chip: its name, its dense peak in FLOPs/s
        and its memory bandwidth in bytes/s. No two chips have the same bound.

        **Wanted** a function that returns the list of the names, from the chip with the
        lowest bound to the one with the highest.
    """,
    stub="def ranking(flops, nbytes, chips): ...",
    spec=_ranking,
    cases=_some_chips,
    examples=(
        (2e13, 1e11, [["A", 1e15, 2e12], ["B", 2e14, 5e12]]),
        (1e11, 1e11, [["A", 1e15, 2e12], ["B", 2e14, 5e12]]),
    ),
    slips=(
        Slip(
            "by the peak",
            _by_peak,
            "A chip with a high peak may wait for its memory.",
        ),
        Slip(
            "by the bandwidth",
            _by_bandwidth,
            "A chip with a fast memory may be limited by its math.",
        ),
        Slip(
            "slowest first",
            _slowest_first,
            "The chip with the lowest bound comes first.",
        ),
    ),
    hint="Sort by the larger of two times.",
    solution="""
        ```python
        def ranking(flops, nbytes, chips):
            def bound(chip):
                return max(flops / chip[1], nbytes / chip[2])

            return [chip[0] for chip in sorted(chips, key=bound)]
        ```
    """,
)

QUESTIONS = (
    SHARE,
    DAYS,
    SPEEDUP,
    BETWEEN,
    CROSSING,
    REPLACE,
    SERVERS,
    JOULES,
    SERIAL,
    HOLDING,
    HOPS,
    PIPELINE,
    LARGEST,
    LINK,
    RANKING,
)
