"""Questions of chapter 18, "Inference"."""

from shardmath.exercises.kinds import Chapter, Function, Number, Slip

CHAPTER = Chapter(
    title="Inference",
    topics=(
        "prefill and decode, the KV cache and its slots, batch and latency, short "
        "kernels, sharding and formats for decode, speculative decoding, and pages"
    ),
    intro="""
        from the bound of a step to the prediction of a server. Answers are in base
        units: bytes, seconds, tokens per second. In 18.12 to 18.14 you fit the law of
        short kernels and write the rule of speculative decoding yourself.
    """,
    setup="""
        from shardmath.exercises import check, report
        from shardmath.hardware import chips
    """,
)


def _rate_at_most(nbytes: int) -> float:
    sequence = 2176 * 2 * 32 * 8 * 128 * nbytes
    fit = (80e9 * 0.9 - 8.6e9) / sequence
    return fit / ((8.6e9 + fit * sequence) / 3.35e12)


def _by_position(shares: tuple[float, ...]) -> float:
    tokens = product = 1.0
    for share in shares:
        product *= share
        tokens += product
    return tokens


STEP = Number(
    id="18.1",
    title="The shortest step",
    task=r"""
        **Given** a dense model with 32 billion parameters in bf16, split evenly over
        four H100s. Each H100 reads 3.35 TB/s. A single sequence is decoded. Ignore its
        cache.

        **Wanted** the shortest time that a step can take.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 2 * 32e9 / (4 * 3.35e12),
    slips=(
        Slip(
            "a byte per weight",
            lambda right: right / 2,
            "How many bytes does a weight take in bf16?",
        ),
        Slip(
            "one chip",
            lambda right: 4 * right,
            "The four chips read their parts of the weights at the same time.",
        ),
        Slip(
            "the math",
            lambda right: 2 * 32e9 / (4 * 989.4e12),
            "That is the time of the math. For a single token, reading the weights "
            "takes longer.",
        ),
    ),
    hint="Which side of (18.1) is larger for a single token?",
    solution="""
        Each of the four chips reads a quarter of the weights.

        ```python
        seconds = 2 * 32e9 / (4 * 3.35e12)
        ```
    """,
)

CACHE = Number(
    id="18.2",
    title="Bytes of a token",
    task=r"""
        **Given** a model with 64 layers, 40 query heads, 8 KV heads, and heads of size
        128. The cache is in fp8.

        **Wanted** the bytes that one token takes in the cache.
    """,
    stub="nbytes = ...",
    unit="bytes",
    expected=lambda: 2 * 64 * 8 * 128,
    slips=(
        Slip(
            "keys alone",
            lambda right: right / 2,
            "Did you count both keys and values?",
        ),
        Slip(
            "query heads",
            lambda right: right * 5,
            "Only the KV heads are cached. Several query heads share each of them.",
        ),
        Slip(
            "two bytes",
            lambda right: right * 2,
            "A value in fp8 takes one byte.",
        ),
        Slip(
            "one layer",
            lambda right: right / 64,
            "Every layer has a cache.",
        ),
    ),
    hint="Use formula (18.2).",
    solution="""
        Every layer caches a key and a value per KV head.

        ```python
        nbytes = 2 * 64 * 8 * 128 * 1
        ```
    """,
)

SLOTS = Number(
    id="18.3",
    title="How many conversations?",
    task=r"""
        **Given** a server of two GPUs with 80 GB of HBM each. The engine keeps 10 % of
        the memory for itself. The weights take 70 GB in all, and a token takes 160,000
        bytes in the cache. Each conversation has a prompt of 2,000 tokens and an answer
        of 1,000. A conversation takes pages one by one, so on average it holds its
        prompt and half of its answer.

        **Wanted** how many conversations fit on average. Don't round.
    """,
    stub="slots = ...",
    unit="",
    expected=lambda: (2 * 80e9 * 0.9 - 70e9) / (2500 * 160e3),
    slips=(
        Slip(
            "the engine's share",
            lambda right: (2 * 80e9 - 70e9) / (2500 * 160e3),
            "Did you leave out the memory that the engine keeps?",
        ),
        Slip(
            "reserved to the end",
            lambda right: right * 2500 / 3000,
            "Did you reserve room for the whole answer? Pages are taken one by one.",
        ),
        Slip(
            "one GPU",
            lambda right: (80e9 * 0.9 - 70e9) / (2500 * 160e3),
            "The server has two GPUs, and each holds half of the weights.",
        ),
        Slip(
            "prompts alone",
            lambda right: right * 2500 / 2000,
            "The tokens of the answer are cached as well.",
        ),
    ),
    hint="Use formula (18.3). How many tokens does a conversation hold on average?",
    solution="""
        ```python
        free = 2 * 80e9 * 0.9 - 70e9
        slots = free / ((2_000 + 1_000 / 2) * 160e3)
        ```
    """,
)

IMPOSSIBLE = Number(
    id="18.4",
    title="A row that cannot be true",
    task=r"""
        **Given** a published measurement: Qwen3-32B in fp8 on two GPUs with 141 GB of
        HBM each, 448 conversations at once, with prompts of 15,000 tokens. The weights
        take 32.8 GB, and the model has 64 layers with 8 KV heads of size 128. Assume
        that the cache is in fp8 and that the engine takes no memory at all.

        **Wanted** the largest number of prompts whose caches could fit.
    """,
    stub="most = ...",
    unit="",
    expected=lambda: (2 * 141e9 - 32.8e9) / (15_000 * 2 * 64 * 8 * 128),
    slips=(
        Slip(
            "a cache in bf16",
            lambda right: right / 2,
            "The cache is in fp8, which takes one byte for each value.",
        ),
        Slip(
            "no weights",
            lambda right: 2 * 141e9 / (15_000 * 2 * 64 * 8 * 128),
            "Did you leave out the weights?",
        ),
        Slip(
            "keys alone",
            lambda right: right * 2,
            "Did you count both keys and values?",
        ),
        Slip(
            "one GPU",
            lambda right: (141e9 - 32.8e9) / (15_000 * 2 * 64 * 8 * 128),
            "There are two GPUs, and each holds half of the heads.",
        ),
    ),
    hint="How many bytes does a prompt of 15,000 tokens take in the cache?",
    solution="""
        Only 126 of the 448 conversations fit, even if the engine needs no memory. The
        others wait, so 448 is the number of clients and not the number of sequences
        that are being decoded.

        ```python
        token = 2 * 64 * 8 * 128
        most = (2 * 141e9 - 32.8e9) / (15_000 * token)
        ```
    """,
)

LITTLE = Number(
    id="18.5",
    title="Who is decoding?",
    task=r"""
        **Given** 512 clients. Each sends a request, waits for the last of its 1,024
        tokens, and sends the next. The mean time to the first token is 23.8 s, and each
        further token takes 5.61 ms.

        **Wanted** the average number of requests that are decoding.
    """,
    stub="decoding = ...",
    unit="",
    expected=lambda: 512 * 1023 * 5.61e-3 / (23.8 + 1023 * 5.61e-3),
    rtol=0.01,
    slips=(
        Slip(
            "all",
            lambda right: 512.0,
            "Most clients wait for their first token.",
        ),
        Slip(
            "those that wait",
            lambda right: 512 - right,
            "Those are the requests that wait for their first token.",
        ),
        Slip(
            "over the wait",
            lambda right: 512 * 1023 * 5.61e-3 / 23.8,
            "Divide by the whole time of a request, which includes the decoding.",
        ),
    ),
    hint="What share of its time does a request spend decoding?",
    solution="""
        A request decodes for 5.7 of its 29.5 seconds. So on average 99 decode, and 413
        wait.

        ```python
        decode = 1_023 * 5.61e-3
        decoding = 512 * decode / (23.8 + decode)
        ```
    """,
)

CACHE_FORMAT = Number(
    id="18.6",
    title="Which format did the cache have?",
    task=r"""
        **Given** Llama 3.1 8B with weights in fp8 on one H100. The GPU reads 3.35 TB/s
        and has 80 GB, of which the engine keeps 10 %. Its 32 layers have 8 KV heads of
        size 128. A sequence holds 2,176 tokens on average, and as many sequences as fit
        are decoded at once. The weights take 8.6 GB. A report prints 14,325 tokens per
        second for this server, and does not say whether the cache was in bf16 or fp8.

        **Wanted** the largest possible rate in tokens per second with a cache in
        bf16.
    """,
    stub="rate = ...",
    unit="tokens/s",
    expected=lambda: _rate_at_most(2),
    rtol=0.02,
    slips=(
        Slip(
            "a cache in fp8",
            lambda right: _rate_at_most(1),
            "That is the rate with a cache in fp8, which is above the reported one.",
        ),
        Slip(
            "weights for each sequence",
            lambda right: 3.35e12 / (8.6e9 + 2176 * 131_072),
            "All sequences share the weights of a step.",
        ),
        Slip(
            "one sequence's step",
            lambda right: right / (63.4e9 / (2176 * 131_072)),
            "That is the rate of one sequence. All of them get a token in each step.",
        ),
    ),
    hint="How many sequences fit, and how many bytes does a step with all of them "
    "read?",
    solution="""
        The step reads the weights and all caches, 72 GB, so it takes at least 21.5 ms.
        In this time 222 sequences get a token. The report's 14,325 tokens per second
        are above this limit, so the cache was not in bf16.

        ```python
        sequence = 2_176 * 2 * 32 * 8 * 128 * 2
        fit = (80e9 * 0.9 - 8.6e9) / sequence
        rate = fit / ((8.6e9 + fit * sequence) / 3.35e12)
        ```
    """,
)


COPIES = Number(
    id="18.7",
    title="Copies of a latent cache",
    task=r"""
        **Given** DeepSeek-V3 in fp8 on eight H200s with 141 GB of HBM each, of which
        the engine keeps 10 %. The weights take 671 GB, an eighth on each GPU. A token
        takes 70,272 bytes of cache, one vector per layer that all heads share. With
        tensor parallelism over eight GPUs, each of them holds the cache of every
        sequence. With data-parallel attention, each holds an eighth of the sequences,
        and also a full copy of the 14 GB of attention weights instead of an eighth.

        **Wanted** the factor by which data-parallel attention raises the number of
        tokens that the eight GPUs can cache.
    """,
    stub="ratio = ...",
    unit="",
    expected=lambda: (
        8 * (141e9 * 0.9 - 671e9 / 8 - 14e9 * 7 / 8) / (141e9 * 0.9 - 671e9 / 8)
    ),
    slips=(
        Slip(
            "weights for free",
            lambda right: 8.0,
            "Did you leave out the copies of the attention weights?",
        ),
        Slip(
            "no copies of the cache",
            lambda right: right / 8,
            "With tensor parallelism the same tokens are on all eight GPUs.",
        ),
        Slip(
            "all of the copy",
            lambda right: (
                8 * (141e9 * 0.9 - 671e9 / 8 - 14e9) / (141e9 * 0.9 - 671e9 / 8)
            ),
            "Each GPU has an eighth of these weights already.",
        ),
    ),
    hint="How much memory is free for caches on each GPU, in both cases?",
    solution="""
        With data-parallel attention, each GPU has less room, but all cache different
        tokens.

        ```python
        usable = 141e9 * 0.9
        tensor = usable - 671e9 / 8
        data = usable - 671e9 / 8 - 14e9 * 7 / 8
        ratio = 8 * data / tensor
        ```
    """,
)

KERNELS = Number(
    id="18.8",
    title="Twice the kernels",
    task=r"""
        **Given** two models whose decode steps have the same roofline bound of 2 ms on
        the same GPU. One has 32 wide layers, the other 80 narrow ones. Every layer has
        9 kernels, every kernel takes 4.7 µs in addition to its work, and the work runs
        at 88 % of the bound's rate.

        **Wanted** the predicted step time of the deep model divided by that of the wide
        one.
    """,
    stub="ratio = ...",
    unit="",
    expected=lambda: (80 * 9 * 4.7e-6 + 2e-3 / 0.88) / (32 * 9 * 4.7e-6 + 2e-3 / 0.88),
    slips=(
        Slip(
            "the bound",
            lambda right: 1.0,
            "Their bounds are equal, but one model runs more kernels.",
        ),
        Slip(
            "kernels alone",
            lambda right: 80 / 32,
            "The work of the kernels takes time as well.",
        ),
        Slip(
            "at the full rate",
            lambda right: (80 * 9 * 4.7e-6 + 2e-3) / (32 * 9 * 4.7e-6 + 2e-3),
            "The work runs at 88 % of the full rate.",
        ),
        Slip(
            "one kernel per layer",
            lambda right: (80 * 4.7e-6 + 2e-3 / 0.88) / (32 * 4.7e-6 + 2e-3 / 0.88),
            "Each layer has nine kernels.",
        ),
    ),
    hint="Use formula (18.5), without the terms for the sequences and the network.",
    solution="""
        ```python
        work = 2e-3 / 0.88
        ratio = (80 * 9 * 4.7e-6 + work) / (32 * 9 * 4.7e-6 + work)
        ```
    """,
)

CROSSING = Number(
    id="18.9",
    title="When does the cache outweigh the weights?",
    task=r"""
        **Given** Llama 3.1 70B with 141 GB of weights and 327,680 bytes of cache per
        token, both in bf16. Every sequence holds 8,192 tokens.

        **Wanted** the number of sequences at which a decode step reads as many bytes of
        cache as of weights.
    """,
    stub="sequences = ...",
    unit="",
    expected=lambda: 141e9 / (8192 * 327_680),
    rtol=0.012,
    slips=(
        Slip(
            "one token each",
            lambda right: right * 8192,
            "Each step reads the cache of all 8,192 tokens of a sequence.",
        ),
        Slip(
            "keys alone",
            lambda right: right * 2,
            "The 327,680 bytes are keys and values together.",
        ),
        Slip(
            "parameters for bytes",
            lambda right: right / 2,
            "The weights take 141 GB, two bytes for each parameter.",
        ),
    ),
    hint="How many bytes of cache does one sequence add to a step?",
    solution="""
        ```python
        sequences = 141e9 / (8_192 * 327_680)
        ```
    """,
)

DRAFTS = Number(
    id="18.10",
    title="Is the draft worth it?",
    task=r"""
        **Given** a server whose decode step takes 12 ms. A draft model takes 2 ms per
        step. In each round it guesses 3 tokens, and each guess is accepted with
        probability 0.7. The step that then checks them takes 13 ms.

        **Wanted** the factor by which drafts raise the server's tokens per second.
    """,
    stub="speed_up = ...",
    unit="",
    expected=lambda: (1 - 0.7**4) / 0.3 / (13 + 3 * 2) * 12,
    slips=(
        Slip(
            "drafts for free",
            lambda right: (1 - 0.7**4) / 0.3 * 12 / 13,
            "The draft model's steps take time as well.",
        ),
        Slip(
            "without the last token",
            lambda right: (0.7 + 0.7**2 + 0.7**3) / (13 + 3 * 2) * 12,
            "Even if every guess is rejected, the large model adds a token.",
        ),
        Slip(
            "all guesses right",
            lambda right: 4 / (13 + 3 * 2) * 12,
            "A guess counts only if all guesses before it were accepted.",
        ),
        Slip(
            "guesses apart",
            lambda right: (1 + 3 * 0.7) / (13 + 3 * 2) * 12,
            "The second guess counts only if the first was accepted.",
        ),
    ),
    hint="How many tokens does a round produce, and how long does it take?",
    solution="""
        A round produces 2.53 tokens in 19 ms. In the same time, plain decoding produces
        1.58.

        ```python
        tokens = (1 - 0.7**4) / (1 - 0.7)
        speed_up = tokens / (13 + 3 * 2) * 12
        ```
    """,
)

HEADS = Number(
    id="18.11",
    title="Acceptance by position",
    task=r"""
        **Given** a server that drafts five tokens. The shares of rounds in which the
        first, second, third, fourth and fifth guess is accepted, *given that all
        guesses before it were*, are 0.80, 0.70, 0.62, 0.57 and 0.55.

        **Wanted** the average number of tokens that a round produces.
    """,
    stub="tokens = ...",
    unit="",
    expected=lambda: _by_position((0.80, 0.70, 0.62, 0.57, 0.55)),
    slips=(
        Slip(
            "shares added",
            lambda right: 1 + 0.80 + 0.70 + 0.62 + 0.57 + 0.55,
            "These shares are conditional. How likely is it that the first two guesses "
            "are both accepted?",
        ),
        Slip(
            "the first for all",
            lambda right: _by_position((0.80,) * 5),
            "The shares fall with the position.",
        ),
        Slip(
            "without the last token",
            lambda right: right - 1,
            "The large model adds a token in every round.",
        ),
    ),
    hint="The guess at a position counts if all guesses up to it are accepted.",
    solution="""
        The product of all shares up to a guess is the probability that it counts. The
        large model adds one token.

        ```python
        reached = [1.0]
        for share in (0.80, 0.70, 0.62, 0.57, 0.55):
            reached.append(reached[-1] * share)
        tokens = sum(reached)
        ```
    """,
)


def _line(bounds: list, times: list) -> list:
    n = len(bounds)
    mx, my = sum(bounds) / n, sum(times) / n
    square = sum((x - mx) ** 2 for x in bounds)
    slope = sum(
        (x - mx) * (y - my) for x, y in zip(bounds, times, strict=True)
    ) / square  # fmt: skip
    return [my - slope * mx, 1 / slope]


def _slope_for_share(bounds: list, times: list) -> list:
    t0, share = _line(bounds, times)
    return [t0, 1 / share]


def _through_zero(bounds: list, times: list) -> list:
    square = sum(x * x for x in bounds)
    return [0.0, square / sum(x * y for x, y in zip(bounds, times, strict=True))]


def _two_points(bounds: list, times: list) -> list:
    slope = (times[-1] - times[0]) / (bounds[-1] - bounds[0])
    return [times[0] - slope * bounds[0], 1 / slope]


def _timed(rng) -> tuple:
    t0, share = rng.uniform(2, 8), rng.uniform(0.4, 0.9)
    bounds = sorted(round(rng.uniform(0.5, 40), 3) for _ in range(6))
    times = [round((t0 + x / share) * rng.uniform(0.92, 1.08), 3) for x in bounds]
    return bounds, times


FIT = Function(
    id="18.12",
    title="Fit the law of short kernels",
    task=r"""
        **Given** the roofline `bounds` of some operations and their measured `times`,
        both in microseconds.

        **Wanted** a function that fits the law $t = t_0 + \text{bound}/e$ and returns
        `[t0, e]`. The sum of the squared differences from the times has to be as small
        as possible.
    """,
    stub="def fit(bounds, times): ...",
    spec=_line,
    cases=_timed,
    examples=(
        ([1.0, 10.0, 100.0], [4.3, 16.3, 136.3]),
        ([0.5, 2.0, 8.0, 32.0], [3.8, 5.5, 14.1, 45.0]),
    ),
    slips=(
        Slip(
            "the slope for e",
            _slope_for_share,
            "The slope of the line is 1/e.",
        ),
        Slip(
            "through zero",
            _through_zero,
            "Did you fit a line through zero? An operation without work takes t0.",
        ),
        Slip(
            "first and last",
            _two_points,
            "Did you use only two operations? Least squares uses all of them.",
        ),
    ),
    hint="The slope is the covariance of bounds and times divided by the variance of "
    "the bounds, and the line goes through the point of both means.",
    solution="""
        The slope of the line is $1/e$, and it reaches $t_0$ at a bound of zero.

        ```python
        def fit(bounds, times):
            n = len(bounds)
            mx, my = sum(bounds) / n, sum(times) / n
            square = sum((x - mx) ** 2 for x in bounds)
            both = sum((x - mx) * (y - my) for x, y in zip(bounds, times))
            slope = both / square
            return [my - slope * mx, 1 / slope]
        ```
    """,
)


def _after_rejection(p: list, q: list) -> list:
    rest = [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]
    return [one / sum(rest) for one in rest]


def _large_alone(p: list, q: list) -> list:
    return list(p)


def _not_scaled(p: list, q: list) -> list:
    return [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]


def _all_differences(p: list, q: list) -> list:
    rest = [abs(a - b) for a, b in zip(p, q, strict=True)]
    return [one / sum(rest) for one in rest]


def _two_models(rng) -> tuple:
    both = []
    for _ in range(2):
        some = [rng.uniform(0.05, 1) for _ in range(4)]
        both.append([one / sum(some) for one in some])
    return tuple(both)


REJECTED = Function(
    id="18.13",
    title="What to draw after a rejection",
    task=r"""
        **Given** the probabilities `p` of the large model and `q` of the draft for each
        token of a small vocabulary. The two lists differ.

        **Wanted** a function that returns a list: the probability with which each token
        is drawn after the draft's token has been rejected. It is proportional to the
        part of `p` that exceeds `q`.
    """,
    stub="def rest(p, q): ...",
    spec=_after_rejection,
    cases=_two_models,
    examples=(([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), ([0.6, 0.2, 0.2], [0.3, 0.4, 0.3])),
    slips=(
        Slip(
            "the large model's own",
            _large_alone,
            "Did you draw from p? The tokens that the draft favours were accepted "
            "often enough, so this would make them too frequent.",
        ),
        Slip(
            "not scaled",
            _not_scaled,
            "Do your probabilities add up to 1?",
        ),
        Slip(
            "differences of both signs",
            _all_differences,
            "Where q is above p, the draft already produces the token often enough.",
        ),
    ),
    hint="What is left of p where q is larger? Scale the result so that it adds up to "
    "1.",
    solution=r"""
        Accepted guesses already produce each token with probability $\min(p, q)$, so
        $\max(p - q, 0)$ is missing.

        ```python
        def rest(p, q):
            more = [max(a - b, 0.0) for a, b in zip(p, q)]
            return [x / sum(more) for x in more]
        ```
    """,
)


def _pages(lengths: list, page: int) -> float:
    taken = sum(-(-n // page) * page for n in lengths)
    return taken / sum(lengths) - 1


def _whole_pages_down(lengths: list, page: int) -> float:
    return sum(n // page * page for n in lengths) / sum(lengths) - 1


def _one_more(lengths: list, page: int) -> float:
    return sum((n // page + 1) * page for n in lengths) / sum(lengths) - 1


def _of_the_taken(lengths: list, page: int) -> float:
    taken = sum(-(-n // page) * page for n in lengths)
    return 1 - sum(lengths) / taken


def _lengths(rng) -> tuple:
    page = rng.choice([4, 16])
    some = [rng.randint(1, 90) for _ in range(rng.randint(3, 8))]
    return [*some, page * rng.randint(1, 5)], page


WASTE = Function(
    id="18.14",
    title="What pages waste",
    task=r"""
        **Given** the `lengths` of some sequences in tokens, and the number of tokens in
        a `page`.

        **Wanted** a function that returns how many places in their pages stay unused,
        divided by the number of tokens.
    """,
    stub="def waste(lengths, page): ...",
    spec=_pages,
    cases=_lengths,
    examples=(([37, 5, 64], 16), ([16, 32], 16)),
    slips=(
        Slip(
            "pages rounded down",
            _whole_pages_down,
            "A page takes memory even if it isn't full.",
        ),
        Slip(
            "a page too many",
            _one_more,
            "A sequence that fills its last page needs no further one.",
        ),
        Slip(
            "a share of the memory",
            _of_the_taken,
            "That is a share of the memory taken. Divide by the number of tokens.",
        ),
    ),
    hint="How many pages does each sequence take?",
    solution="""
        ```python
        def waste(lengths, page):
            taken = sum(-(-n // page) * page for n in lengths)
            return taken / sum(lengths) - 1
        ```
    """,
)

TARGET = Number(
    id="18.15",
    title="How many users at 20 tokens per second?",
    task=r"""
        **Given** a server whose decode step with $B$ sequences takes
        $4.2 + 6.0 + 0.021 B + 0.042 B$ ms. The terms are kernels, weights, the engine's
        work for each sequence, and the cache. Every user should get at least 20 tokens
        per second. The server has 1,000 slots.

        **Wanted** the tokens per second of the whole server, with as many sequences as
        the target allows.
    """,
    stub="rate = ...",
    unit="tokens/s",
    expected=lambda: 20 * (50 - 10.2) / 0.063,
    rtol=0.01,
    slips=(
        Slip(
            "all slots",
            lambda right: 1000 / (10.2e-3 + 1000 * 0.063e-3),
            "With all slots in use, no user gets 20 tokens per second.",
        ),
        Slip(
            "the cache alone",
            lambda right: 20 * (50 - 10.2) / 0.042,
            "Did you leave out the engine's work for each sequence?",
        ),
        Slip(
            "no kernels",
            lambda right: 20 * (50 - 6.0) / 0.063,
            "Did you leave out the time of the kernels?",
        ),
        Slip(
            "one user",
            lambda right: 20.0,
            "That is the rate of one user.",
        ),
    ),
    hint="How long may a step take?",
    solution="""
        A step may take 50 ms, which allows about 632 sequences.

        ```python
        sequences = (50 - 4.2 - 6.0) / (0.021 + 0.042)
        rate = 20 * sequences
        ```
    """,
)

QUESTIONS = (
    STEP,
    CACHE,
    SLOTS,
    IMPOSSIBLE,
    LITTLE,
    CACHE_FORMAT,
    COPIES,
    KERNELS,
    CROSSING,
    DRAFTS,
    HEADS,
    FIT,
    REJECTED,
    WASTE,
    TARGET,
)
