"""Questions of chapter 19, "Serving Llama"."""

from shardmath.exercises.kinds import Chapter, Function, Number, Slip

CHAPTER = Chapter(
    title="Serving Llama",
    topics=(
        "what a request sees, Little's law and utilisation, bursts in benchmarks, "
        "published rows and their gaps, pools, layouts for a target, and prices"
    ),
    intro="""
        from one request to the price of a million tokens. Answers are in base units:
        seconds, bytes, tokens per second. In 19.12 to 19.15 you write the small
        programs that such an analysis needs.
    """,
    setup="""
        from shardmath.exercises import check, report
        from shardmath.hardware import chips
    """,
)

PACE = Number(
    id="19.1",
    title="The TPOT of a request",
    task=r"""
        **Given** a request that arrives at 0 s, gets its first token after 3.0 s, and
        its last one after 4.2 s. Its answer has 40 tokens.

        **Wanted** its TPOT in seconds, as the chapter defines it.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 1.2 / 39,
    slips=(
        Slip(
            "the whole time",
            lambda right: 4.2 / 40,
            "Did you include the wait for the first token?",
        ),
        Slip(
            "all tokens",
            lambda right: 1.2 / 40,
            "How many tokens come after the first?",
        ),
        Slip(
            "from the arrival",
            lambda right: 4.2 / 39,
            "TPOT starts at the first token.",
        ),
    ),
    hint="How much time passes after the first token, and for how many tokens?",
    solution="""
        ```python
        seconds = (4.2 - 3.0) / (40 - 1)
        ```
    """,
)

STAY = Number(
    id="19.2",
    title="From the queue to the rate",
    task=r"""
        **Given** a server that holds 90 requests at a time on average, counted once per
        second over a day. A request has a TTFT of 0.3 s and an answer of 20 tokens with
        a TPOT of 28 ms.

        **Wanted** the number of requests that the server completes per second.
    """,
    stub="rate = ...",
    unit="",
    expected=lambda: 90 / (0.3 + 19 * 0.028),
    slips=(
        Slip(
            "no first token",
            lambda right: 90 / (19 * 0.028),
            "A request is also at the server while it waits for its first token.",
        ),
        Slip(
            "one token too many",
            lambda right: 90 / (0.3 + 20 * 0.028),
            "The TTFT includes the first token, so 19 are left.",
        ),
        Slip(
            "upside down",
            lambda right: (0.3 + 19 * 0.028) / 90,
            "Did you divide the wrong way round?",
        ),
        Slip(
            "tokens",
            lambda right: 90 * 20 / (0.3 + 19 * 0.028),
            "Those are the tokens per second.",
        ),
    ),
    hint="Use Little's law (19.1). How long does a request stay?",
    solution="""
        A request stays for its TTFT and for the time of 19 more tokens.

        ```python
        stay = 0.3 + 19 * 0.028
        rate = 90 / stay
        ```
    """,
)

MEMORY = Number(
    id="19.3",
    title="Four chips with 64 GB?",
    task=r"""
        **Given** a recipe that says that four TPU v6e chips have 64 GB of HBM in all.
        In fact, each v6e has 32 GB. The engine keeps 10 % of the memory. The model has
        16.1 GB of weights and takes 131,072 bytes of cache per token. Each request
        holds 4,096 tokens.

        **Wanted** how many requests really fit on the four chips. Don't round.
    """,
    stub="slots = ...",
    unit="",
    expected=lambda: (4 * 32e9 * 0.9 - 16.1e9) / (4096 * 131072),
    slips=(
        Slip(
            "as the recipe says",
            lambda right: (64e9 * 0.9 - 16.1e9) / (4096 * 131072),
            "The recipe's figure of 64 GB is wrong. How much memory do four chips of "
            "32 GB have?",
        ),
        Slip(
            "the engine's share",
            lambda right: (128e9 - 16.1e9) / (4096 * 131072),
            "Did you leave out the memory that the engine keeps?",
        ),
        Slip(
            "weights on each chip",
            lambda right: (128e9 * 0.9 - 4 * 16.1e9) / (4096 * 131072),
            "The weights are split over the chips, so count them only once.",
        ),
    ),
    hint="How much memory is left for caches, and how much does one request need?",
    solution="""
        With the recipe's number, you would expect 77 requests instead of 185.

        ```python
        free = 4 * 32e9 * 0.9 - 16.1e9
        slots = free / (4_096 * 131_072)
        ```
    """,
)

BURST = Number(
    id="19.4",
    title="A benchmark that starts at once",
    task=r"""
        **Given** 50 clients that all send a request at the same moment. The server
        reads one prompt after the other, each in 0.4 s, and does nothing else until all
        are read. A request gets its first token once its prompt is read. After that,
        each client sends seven more requests, one by one. These arrive at different
        times, and each has a TTFT of 0.5 s.

        **Wanted** the mean TTFT of all 400 requests.
    """,
    stub="mean = ...",
    unit="s",
    expected=lambda: (25.5 * 0.4 + 7 * 0.5) / 8,
    slips=(
        Slip(
            "no burst",
            lambda right: 0.5,
            "One request in eight belongs to the burst.",
        ),
        Slip(
            "the last of the burst",
            lambda right: (50 * 0.4 + 7 * 0.5) / 8,
            "The first client of the burst waits for only one prompt. What is the "
            "mean wait?",
        ),
        Slip(
            "the burst alone",
            lambda right: 25.5 * 0.4,
            "Each client sends seven more requests.",
        ),
        Slip(
            "one too few",
            lambda right: (25.5 * 0.4 + 6 * 0.5) / 7,
            "How many requests does each client send in all?",
        ),
    ),
    hint="The n-th prompt of the burst is read after n times 0.4 s.",
    solution="""
        The burst has a mean of 10.2 s. Still, the median of all 400 is 0.5 s, less than
        a third of their mean.

        ```python
        burst = (50 + 1) / 2 * 0.4
        mean = (burst + 7 * 0.5) / 8
        ```
    """,
)

SPLIT = Number(
    id="19.5",
    title="Pools for a coding assistant",
    task=r"""
        **Given** a service whose answers have 28 tokens on average. The first token
        comes from the prefill server. A prefill server reads a prompt in 96 ms. A
        decode server works on 256 requests at once, with steps of 30 ms.

        **Wanted** the number of prefill servers for each decode server that keeps both
        pools equally busy. Don't round it.
    """,
    stub="ratio = ...",
    unit="",
    expected=lambda: 256 / (27 * 0.030) * 0.096,
    slips=(
        Slip(
            "one request at a time",
            lambda right: 1 / (27 * 0.030) * 0.096,
            "A decode server works on 256 requests at once.",
        ),
        Slip(
            "upside down",
            lambda right: 27 * 0.030 / (256 * 0.096),
            "Which pool completes more requests per second with one server?",
        ),
        Slip(
            "the first token again",
            lambda right: 256 / (28 * 0.030) * 0.096,
            "The first token comes from the prefill server.",
        ),
        Slip(
            "one token",
            lambda right: 256 / 0.030 * 0.096,
            "A request needs a step for each token after the first.",
        ),
    ),
    hint="How many requests per second does one server of each kind complete?",
    solution="""
        A decode server completes 316 requests per second, and a prefill server 10.4.

        ```python
        answers = 256 / ((28 - 1) * 0.030)
        prompts = 1 / 0.096
        ratio = answers / prompts
        ```
    """,
)

DOLLARS = Number(
    id="19.6",
    title="The price of a million tokens",
    task=r"""
        **Given** eight GPUs at 3 dollars per GPU-hour. They complete 6 requests per
        second with answers of 400 tokens.

        **Wanted** the price of a million answer tokens, in dollars.
    """,
    stub="dollars = ...",
    unit="",
    expected=lambda: 8 * 3 / 3600 / (6 * 400) * 1e6,
    slips=(
        Slip(
            "one GPU",
            lambda right: 3 / 3600 / (6 * 400) * 1e6,
            "You pay for all eight GPUs.",
        ),
        Slip(
            "per request",
            lambda right: 8 * 3 / 3600 / 6 * 1e6,
            "That is the price of a million requests.",
        ),
        Slip(
            "an hour as a minute",
            lambda right: 8 * 3 / 60 / (6 * 400) * 1e6,
            "How many seconds are there in an hour?",
        ),
    ),
    hint="Use formula (19.3).",
    solution="""
        ```python
        per_second = 8 * 3 / 3600
        dollars = per_second / (6 * 400) * 1e6
        ```
    """,
)

WIDER = Number(
    id="19.7",
    title="When does the wider server win?",
    task=r"""
        **Given** two ways to use eight GPUs. With $B$ sequences, a server of four GPUs
        has a TPOT of $11 + 0.20\,B$ ms, and a server of eight has $8 + 0.12\,B$ ms.
        Users are promised a TPOT of 20 ms.

        **Wanted** the tokens per second of one server of eight GPUs, divided by those
        of two servers of four.
    """,
    stub="ratio = ...",
    unit="",
    expected=lambda: ((20 - 8) / 0.12) / (2 * (20 - 11) / 0.20),
    slips=(
        Slip(
            "one of the two",
            lambda right: ((20 - 8) / 0.12) / ((20 - 11) / 0.20),
            "There is room for two servers of four GPUs.",
        ),
        Slip(
            "without a target",
            lambda right: 0.20 / 0.12 / 2,
            "That is the ratio for very large batches, which miss the target.",
        ),
        Slip(
            "one sequence",
            lambda right: (11 + 0.20) / (8 + 0.12) / 2,
            "Each server takes as many sequences as the target allows.",
        ),
    ),
    hint="How many sequences does each server take at 20 ms?",
    solution="""
        Every sequence gets a token every 20 ms, so it is enough to compare the numbers
        of sequences. The wide server wins by 11 %. With a target of 30 ms, it would
        lose.

        ```python
        wide = (20 - 8) / 0.12
        narrow = 2 * (20 - 11) / 0.20
        ratio = wide / narrow
        ```
    """,
)

BUSY = Number(
    id="19.8",
    title="Busy with almost nothing",
    task=r"""
        **Given** requests that arrive at random, one every four seconds on average.
        Each stays for 6 s, however many others are there. The number of requests at the
        server then has a Poisson distribution.

        **Wanted** the share of time in which at least one request is at the server.
    """,
    stub="share = ...",
    unit="",
    expected=lambda: 1 - 2.718281828459045 ** (-1.5),
    slips=(
        Slip(
            "the mean number",
            lambda right: 1.5,
            "That is the average number of requests, by Little's law.",
        ),
        Slip(
            "empty",
            lambda right: 2.718281828459045 ** (-1.5),
            "That is the share of time in which the server is empty.",
        ),
        Slip(
            "one alone",
            lambda right: 1.5 * 2.718281828459045 ** (-1.5),
            "That is the share of time with exactly one request.",
        ),
    ),
    hint="Little's law gives the mean. How likely is it that a Poisson variable with "
    "this mean is zero?",
    solution="""
        With 1.5 requests on average, the server is empty for $e^{-1.5}$ of the time,
        and busy for 78 % of it.

        ```python
        mean = 6 / 4
        share = 1 - 2.718281828459045 ** -mean
        ```
    """,
)

LEG = Number(
    id="19.9",
    title="What share of the bound is left?",
    task=r"""
        **Given** eight H200s that reach 61 % of the bound on a benchmark, with 34,500
        tokens per second. Eight B200s, with weights in four bits, have a bound that is
        4.5 times as high, and produce 102,000 tokens per second.

        **Wanted** the share of their bound that the B200s reach.
    """,
    stub="share = ...",
    unit="",
    expected=lambda: 0.61 * 102000 / 34500 / 4.5,
    slips=(
        Slip(
            "as before",
            lambda right: 0.61,
            "Throughput grew less than the bound.",
        ),
        Slip(
            "upside down",
            lambda right: 0.61 * 4.5 * 34500 / 102000,
            "The share falls if the bound grows faster than the throughput.",
        ),
        Slip(
            "no share",
            lambda right: 102000 / 34500 / 4.5,
            "The H200s did not reach their whole bound either.",
        ),
    ),
    hint="What is the bound of the H200s, and what is that of the B200s?",
    solution="""
        The B200s reach only 40 % of their bound. One likely cause is that matmuls with
        four bits reach a smaller share of their peak than matmuls with eight bits.
        Another is that the time to start a kernel doesn't become shorter with faster
        chips. These two throughputs alone can't tell you which.

        ```python
        bound = 34_500 / 0.61 * 4.5
        share = 102_000 / bound
        ```
    """,
)

LABELS = Number(
    id="19.10",
    title="Identical labels",
    task=r"""
        **Given** two published rows of one model on the same chips, with the same
        engine, precision and load. The first says 14.65 ms per token, the second
        6.82 ms. Suppose that the second server drafts tokens (multi-token prediction),
        and that its steps take 1.15 times as long as those of the first.

        **Wanted** the tokens that each sequence gets per step on the second server.
    """,
    stub="tokens = ...",
    unit="",
    expected=lambda: 14.65 * 1.15 / 6.82,
    slips=(
        Slip(
            "steps as long",
            lambda right: 14.65 / 6.82,
            "Its steps take longer, because they check several tokens.",
        ),
        Slip(
            "upside down",
            lambda right: 6.82 / (14.65 * 1.15),
            "The second server needs fewer steps per token.",
        ),
        Slip(
            "shorter steps",
            lambda right: 14.65 / 1.15 / 6.82,
            "The steps of the second server take longer, not shorter.",
        ),
    ),
    hint="How long is a step of the second server?",
    solution="""
        A sequence gets about 2.5 tokens per step, which is plausible with three drafts.
        The labels left out the setting that matters most.

        ```python
        step = 14.65 * 1.15
        tokens = step / 6.82
        ```
    """,
)

DEVICES = Number(
    id="19.11",
    title="Tokens per chip",
    task=r"""
        **Given** a recipe for TPU 7x that starts a server with a tensor parallelism of
        8. The engine counts devices, and a chip has two of them. The server produces
        1,996 tokens per second.

        **Wanted** the tokens per second of each chip.
    """,
    stub="rate = ...",
    unit="tokens/s",
    expected=lambda: 1996 / 4,
    slips=(
        Slip(
            "devices for chips",
            lambda right: 1996 / 8,
            "The 8 are devices. How many chips do they make up?",
        ),
        Slip(
            "the whole server",
            lambda right: 1996.0,
            "That is the rate of all chips.",
        ),
        Slip(
            "two devices more",
            lambda right: 1996 / 16,
            "A chip has two devices, so there are fewer chips than devices.",
        ),
    ),
    hint="How many chips do eight devices make up?",
    solution="""
        ```python
        chips = 8 / 2
        rate = 1_996 / chips
        ```
    """,
)


def _times(arrival: float, tokens: list) -> list:
    return [tokens[0] - arrival, (tokens[-1] - tokens[0]) / (len(tokens) - 1)]


def _from_arrival(arrival: float, tokens: list) -> list:
    return [tokens[0] - arrival, (tokens[-1] - arrival) / len(tokens)]


def _all_counted(arrival: float, tokens: list) -> list:
    return [tokens[0] - arrival, (tokens[-1] - tokens[0]) / len(tokens)]


def _clock_zero(arrival: float, tokens: list) -> list:
    return [tokens[0], _times(arrival, tokens)[1]]


def _a_request(rng) -> tuple:
    arrival = round(rng.uniform(1, 9), 3)
    tokens = [round(arrival + rng.uniform(0.1, 2), 3)]
    for _ in range(rng.randint(2, 8)):
        tokens.append(round(tokens[-1] + rng.uniform(0.01, 0.2), 3))
    return arrival, tokens


TIMES = Function(
    id="19.12",
    title="Both times of a request",
    task=r"""
        **Given** the `arrival` of a request in seconds and the times of its `tokens`,
        also in seconds. There are at least two tokens.

        **Wanted** a function that returns `[ttft, tpot]` as the chapter defines them.
    """,
    stub="def times(arrival, tokens): ...",
    spec=_times,
    cases=_a_request,
    examples=((2.0, [2.5, 2.6, 2.8]), (0.0, [1.0, 1.5])),
    slips=(
        Slip(
            "the wait in the pace",
            _from_arrival,
            "Did you divide the whole time of the request by all tokens?",
        ),
        Slip(
            "all tokens",
            _all_counted,
            "How many tokens come after the first?",
        ),
        Slip(
            "a clock that starts at zero",
            _clock_zero,
            "The wait begins when the request arrives.",
        ),
    ),
    hint="TPOT starts at the first token.",
    solution="""
        ```python
        def times(arrival, tokens):
            first, last = tokens[0], tokens[-1]
            return [first - arrival, (last - first) / (len(tokens) - 1)]
        ```
    """,
)


def _queued(arrivals: list, service: float) -> list:
    free, found = 0.0, []
    for arrival in arrivals:
        free = max(free, arrival) + service
        found.append(free - arrival)
    return found


def _no_queue(arrivals: list, service: float) -> list:
    return [service for _ in arrivals]


def _never_idle(arrivals: list, service: float) -> list:
    return [(n + 1) * service - arrival for n, arrival in enumerate(arrivals)]


def _wait_alone(arrivals: list, service: float) -> list:
    return [one - service for one in _queued(arrivals, service)]


def _arrivals(rng) -> tuple:
    clock, found = 1.0, []
    for _ in range(rng.randint(4, 9)):
        clock += rng.choice([0.0, rng.uniform(0.1, 3)])
        found.append(round(clock, 3))
    return found, round(rng.uniform(0.3, 1.5), 3)


QUEUE = Function(
    id="19.13",
    title="A queue of prompts",
    task=r"""
        **Given** the `arrivals` of prompts in seconds, in order, and `service`, the
        seconds that the server takes to read a prompt. It reads one prompt after the
        other, in the order of their arrival.

        **Wanted** a function that returns the list of the times to first token. The
        first token is there when the prompt has been read.
    """,
    stub="def ttfts(arrivals, service): ...",
    spec=_queued,
    cases=_arrivals,
    examples=(([0.0, 0.0, 5.0], 1.0), ([1.0, 1.2, 1.4], 0.5)),
    slips=(
        Slip(
            "no queue",
            _no_queue,
            "A prompt that arrives while another is read has to wait.",
        ),
        Slip(
            "never idle",
            _never_idle,
            "The server can't read a prompt before it arrives.",
        ),
        Slip(
            "the wait alone",
            _wait_alone,
            "The first token is there when the prompt has been read.",
        ),
    ),
    hint="Keep track of the time at which the server is free again.",
    solution="""
        The server begins to read a prompt when it has arrived and the one before it is
        done.

        ```python
        def ttfts(arrivals, service):
            free, found = 0.0, []
            for arrival in arrivals:
                free = max(free, arrival) + service
                found.append(free - arrival)
            return found
        ```
    """,
)


def _in_system(arrivals: list, ends: list) -> float:
    stays = sum(ends) - sum(arrivals)
    return stays / (max(ends) - min(arrivals))


def _per_request(arrivals: list, ends: list) -> float:
    return (sum(ends) - sum(arrivals)) / len(arrivals)


def _whole_clock(arrivals: list, ends: list) -> float:
    return (sum(ends) - sum(arrivals)) / max(ends)


def _to_last_arrival(arrivals: list, ends: list) -> float:
    return (sum(ends) - sum(arrivals)) / (max(arrivals) - min(arrivals))


def _visits(rng) -> tuple:
    arrivals = sorted(round(rng.uniform(1, 20), 2) for _ in range(rng.randint(3, 8)))
    return arrivals, [round(one + rng.uniform(0.5, 9), 2) for one in arrivals]


SYSTEM = Function(
    id="19.14",
    title="Requests at the server",
    task=r"""
        **Given** the `arrivals` of some requests in seconds and their `ends`, in the
        same order.

        **Wanted** a function that returns how many of them are at the server on
        average, over the time from the first arrival to the last end.
    """,
    stub="def at_the_server(arrivals, ends): ...",
    spec=_in_system,
    cases=_visits,
    examples=(([1.0, 3.0], [5.0, 6.0]), ([2.0, 2.5, 9.0], [4.0, 3.0, 10.0])),
    slips=(
        Slip(
            "the mean stay",
            _per_request,
            "That is the mean time that a request stays. Multiply by the rate.",
        ),
        Slip(
            "from zero",
            _whole_clock,
            "The time starts at the first arrival.",
        ),
        Slip(
            "to the last arrival",
            _to_last_arrival,
            "The time ends when the last request does.",
        ),
    ),
    hint="By Little's law, multiply rate and mean stay. What cancels?",
    solution="""
        ```python
        def at_the_server(arrivals, ends):
            stays = sum(ends) - sum(arrivals)
            return stays / (max(ends) - min(arrivals))
        ```
    """,
)


def _best_split(prompts: float, answers: float, servers: int) -> float:
    return max(min(p * prompts, (servers - p) * answers) for p in range(1, servers))


def _evenly(prompts: float, answers: float, servers: int) -> float:
    return min(servers // 2 * prompts, (servers - servers // 2) * answers)


def _in_parts(prompts: float, answers: float, servers: int) -> float:
    return servers / (1 / prompts + 1 / answers)


def _added(prompts: float, answers: float, servers: int) -> float:
    return max(p * prompts + (servers - p) * answers for p in range(1, servers))


def _pool(rng) -> tuple:
    prompts, answers = rng.uniform(2, 20), rng.uniform(2, 60)
    return round(prompts, 2), round(answers, 2), rng.randint(3, 12)


POOL = Function(
    id="19.15",
    title="The best split",
    task=r"""
        **Given** the requests per second that one prefill server reads (`prompts`) and
        that one decode server completes (`answers`), and the number of `servers`, each
        of which is in one of the two pools.

        **Wanted** a function that returns the largest number of requests per second
        that a split can complete.
    """,
    stub="def most(prompts, answers, servers): ...",
    spec=_best_split,
    cases=_pool,
    examples=((17.4, 47.6, 8), (10.0, 10.0, 5)),
    slips=(
        Slip(
            "half and half",
            _evenly,
            "Did you try all splits?",
        ),
        Slip(
            "parts of a server",
            _in_parts,
            "A server belongs to one pool, so the numbers of servers are whole.",
        ),
        Slip(
            "both pools added",
            _added,
            "Each request needs both pools, so the slower one sets the rate.",
        ),
    ),
    hint="The slower pool sets the rate of a split.",
    solution="""
        ```python
        def most(prompts, answers, servers):
            return max(
                min(n * prompts, (servers - n) * answers) for n in range(1, servers)
            )
        ```
    """,
)

QUESTIONS = (
    PACE,
    STAY,
    MEMORY,
    BURST,
    SPLIT,
    DOLLARS,
    WIDER,
    BUSY,
    LEG,
    LABELS,
    DEVICES,
    TIMES,
    QUEUE,
    SYSTEM,
    POOL,
)
