"""Questions of chapter 15, "Training Llama"."""

import math

from shardmath.exercises.kinds import Chapter, Function, Number, Slip

CHAPTER = Chapter(
    title="Training Llama",
    topics=(
        "days from tokens and from steps, failures and checkpoints, goodput, and the "
        "bill of a run"
    ),
    intro="""
        from the FLOPs of a run to its days and its bill. Answers are in base units,
        such as seconds and bytes, or in days where the question says so. In 15.8 to
        15.11 you write functions: 15.9 replays a run failure by failure, and 15.11
        finds the best number of chips.
    """,
    setup="""
        from shardmath.exercises import check, report
    """,
)

HOUR, DAY = 3600, 86_400

AT_MFU = Number(
    id="15.1",
    title="Days from an MFU",
    task=r"""
        **Given** a model of 70 billion parameters, 15 trillion tokens, and 2,048 H100s
        with a peak of 989 TFLOPs/s each. The run reaches an MFU of 40 %, counted with 6
        FLOPs per parameter and token.

        **Wanted** the number of days that the training takes.
    """,
    stub="days = ...",
    unit="days",
    expected=lambda: 6 * 70e9 * 15e12 / (2048 * 989e12 * 0.4) / DAY,
    slips=(
        Slip(
            "the forward pass alone",
            lambda right: right / 3,
            "Did you count only the forward pass? The backward pass takes twice as "
            "many FLOPs, which makes 6 per parameter and token.",
        ),
        Slip(
            "at the peak",
            lambda right: 0.4 * right,
            "That is the time at the peak. The chips reach 40 % of it.",
        ),
        Slip(
            "divided by the MFU twice",
            lambda right: right / 0.4,
            "Did you divide by the MFU twice?",
        ),
        Slip(
            "one chip",
            lambda right: 2048 * right,
            "That is the time on a single chip.",
        ),
        Slip(
            "recomputation counted",
            lambda right: right * 8 / 6,
            "Eight FLOPs per parameter include recomputation. MFU counts six.",
        ),
    ),
    hint="How many FLOPs does the whole run need according to (15.1), and how many "
    "does the machine do per second?",
    solution="""
        The run needs $6PT$ FLOPs for $P$ parameters and $T$ tokens. The machine reaches
        its peak rate times the MFU.

        ```python
        flops = 6 * 70e9 * 15e12
        days = flops / (2048 * 989e12 * 0.40) / 86_400
        ```
    """,
)

RAMP = Number(
    id="15.2",
    title="A batch that grows",
    task=r"""
        **Given** a run of 2 trillion tokens. The first 500 billion are trained with
        $4\cdot10^6$ tokens per step, and each step takes 3.5 s. The rest is trained
        with $16\cdot10^6$ tokens per step, and each step takes 9.0 s.

        **Wanted** the number of days that all steps take together.
    """,
    stub="days = ...",
    unit="days",
    expected=lambda: (500e9 / 4e6 * 3.5 + 1500e9 / 16e6 * 9.0) / DAY,
    slips=(
        Slip(
            "the large batch throughout",
            lambda right: 2000e9 / 16e6 * 9.0 / DAY,
            "Did you use the large batch for all tokens? The first 500 billion take "
            "smaller steps.",
        ),
        Slip(
            "all tokens in the second phase",
            lambda right: (500e9 / 4e6 * 3.5 + 2000e9 / 16e6 * 9.0) / DAY,
            "Did you train the first 500 billion tokens twice? Only 1.5 trillion are "
            "left for the second phase.",
        ),
        Slip(
            "only the second phase",
            lambda right: 1500e9 / 16e6 * 9.0 / DAY,
            "Did you leave out the first phase?",
        ),
        Slip(
            "the small batch throughout",
            lambda right: 2000e9 / 4e6 * 3.5 / DAY,
            "Did you use the small batch for all tokens?",
        ),
    ),
    hint="How many steps does each phase have, and how long does each of them take?",
    solution="""
        The number of steps in a phase is its tokens divided by the tokens per step.

        ```python
        first = 500e9 / 4e6 * 3.5
        second = 1_500e9 / 16e6 * 9.0
        days = (first + second) / 86_400
        ```
    """,
)

CONVENTION = Number(
    id="15.3",
    title="What a rate means in seconds",
    task=r"""
        **Given** a published rate of 420 TFLOPs/s per GPU on 1,024 GPUs. A step has
        4,194,304 tokens. A token needs 420 GFLOPs for the weights. Both passes of
        causal attention need another 30 GFLOPs per token on average, and full attention
        counts twice as many.

        **Wanted** the time of a step in seconds, if the report counted attention in
        full.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 4_194_304 * 480e9 / (1024 * 420e12),
    slips=(
        Slip(
            "weights alone",
            lambda right: right * 420 / 480,
            "Did you leave out attention? The rate was counted with it.",
        ),
        Slip(
            "causal attention",
            lambda right: right * 450 / 480,
            "That is the time if attention was counted causally. Full attention "
            "counts twice as many FLOPs.",
        ),
        Slip(
            "one GPU",
            lambda right: 1024 * right,
            "That is the time on a single GPU. The rate is per GPU.",
        ),
        Slip(
            "both kinds of attention",
            lambda right: right * 510 / 480,
            "Did you add causal and full attention? Full attention includes the "
            "causal part.",
        ),
    ),
    hint="How many FLOPs did the report count for each token?",
    solution="""
        Full attention counts 60 GFLOPs per token, so the report counted 480 GFLOPs per
        token in all. The time of a step is the FLOPs of all its tokens divided by the
        rate of all GPUs.

        ```python
        seconds = 4_194_304 * (420e9 + 2 * 30e9) / (1024 * 420e12)
        ```
    """,
)

MTBF = Number(
    id="15.4",
    title="A larger machine",
    task=r"""
        **Given** a cluster of 2,000 GPUs that had 60 unexpected interruptions in 30
        days. GPUs fail independently of each other, and nothing else fails.

        **Wanted** the mean time in seconds between two interruptions of a job that uses
        12,000 GPUs of the same kind.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 30 * DAY / 60 / 6,
    slips=(
        Slip(
            "the small cluster",
            lambda right: 6 * right,
            "That is the mean time on 2,000 GPUs. A machine with six times as many "
            "fails six times as often.",
        ),
        Slip(
            "longer with more GPUs",
            lambda right: 36 * right,
            "Did you multiply by six? More GPUs fail more often, so the time between "
            "failures gets shorter.",
        ),
        Slip(
            "one GPU",
            lambda right: 6 * 2000 * right,
            "That is the mean time of a single GPU.",
        ),
    ),
    hint="How often does the small cluster fail? According to (15.3), how does this "
    "change with the number of GPUs?",
    solution="""
        The small cluster fails every 12 hours. With six times as many GPUs, failures
        come six times as often, which is every 2 hours.

        ```python
        seconds = 30 * 86_400 / 60 * 2_000 / 12_000
        ```
    """,
)

BYTES = Number(
    id="15.5",
    title="How fast must the storage be?",
    task=r"""
        **Given** a model of 70 billion parameters. A checkpoint holds the weights in
        bf16 and Adam's state, which consists of weights and two moments in fp32. The
        training must not stop for more than 5 s while a checkpoint is written.

        **Wanted** the lowest bandwidth in bytes/s that the storage needs.
    """,
    stub="bandwidth = ...",
    unit="bytes/s",
    expected=lambda: 14 * 70e9 / 5,
    slips=(
        Slip(
            "weights alone",
            lambda right: right / 7,
            "Did you save only the weights? Without the optimizer's state the run "
            "can't continue as before.",
        ),
        Slip(
            "gradients too",
            lambda right: right * 16 / 14,
            "Did you save the gradients? They are computed again in the next step.",
        ),
        Slip(
            "two moments for the state",
            lambda right: right * 10 / 14,
            "Besides its two moments, Adam's state includes the weights in fp32.",
        ),
        Slip(
            "no bf16 copy",
            lambda right: right * 12 / 14,
            "The checkpoint also holds the weights in bf16.",
        ),
    ),
    hint="How many bytes does a parameter take in the checkpoint?",
    solution="""
        A parameter takes 2 bytes in bf16 and 12 bytes of optimizer state, and all of
        them must be written within 5 s.

        ```python
        bandwidth = 14 * 70e9 / 5
        ```
    """,
)

INTERVAL = Number(
    id="15.6",
    title="When to save",
    task=r"""
        **Given** a machine that fails every 5 hours on average. A checkpoint takes 20 s
        to write.

        **Wanted** the interval between two checkpoints, in seconds, at which the least
        time is lost according to Young's formula.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: math.sqrt(2 * 20 * 5 * HOUR),
    slips=(
        Slip(
            "without the two",
            lambda right: right / math.sqrt(2),
            "Did you leave out the factor of two? A failure loses half an interval "
            "on average.",
        ),
        Slip(
            "no root",
            lambda right: right**2,
            "Did you forget the square root?",
        ),
        Slip(
            "hours",
            lambda right: right / 60,
            "Did you put the mean time between failures in hours? Both times must be "
            "in the same unit.",
        ),
        Slip(
            "four instead of two",
            lambda right: right * math.sqrt(2),
            "Did you assume that each failure loses a whole interval? On average, it "
            "loses half of one.",
        ),
    ),
    hint="Use formula (15.5), with both times in seconds.",
    solution="""
        Young's formula is $τ = \\sqrt{2δM}$, where $δ$ is the time to write a
        checkpoint and $M$ the mean time between failures.

        ```python
        seconds = (2 * 20 * 5 * 3_600) ** 0.5
        ```
    """,
)

KEEP_UP = Number(
    id="15.7",
    title="Saving while the training goes on",
    task=r"""
        **Given** a run that copies its state to the memory of its hosts, which stops
        the training for 2 s, and then writes this copy to storage in the background. A
        checkpoint takes up 5.6 TB. The machine fails every 4 hours on average. A new
        copy is made at the interval of Young's formula, and the checkpoint before it
        must be in storage by then.

        **Wanted** the bandwidth in bytes/s that the storage needs to keep up.
    """,
    stub="bandwidth = ...",
    unit="bytes/s",
    expected=lambda: 5.6e12 / math.sqrt(2 * 2 * 4 * HOUR),
    slips=(
        Slip(
            "within the stop",
            lambda right: 5.6e12 / 2,
            "Did you write it within the 2 s of the copy? The storage has the whole "
            "interval.",
        ),
        Slip(
            "without the two",
            lambda right: 5.6e12 / math.sqrt(2 * 4 * HOUR),
            "Did you leave out the factor of two in Young's formula?",
        ),
        Slip(
            "between failures",
            lambda right: 5.6e12 / (4 * HOUR),
            "Did you use the time between failures as the interval? Checkpoints are "
            "much more frequent.",
        ),
    ),
    hint="In Young's formula, δ is only the time for which the training stops. How "
    "much time does the storage have?",
    solution="""
        Only the copy stops the training, so $δ=2$ s. The storage has a whole interval.

        ```python
        interval = (2 * 2 * 4 * 3_600) ** 0.5
        bandwidth = 5.6e12 / interval
        ```
    """,
)


def _goodput(interval: float, write: float, mtbf: float, restart: float) -> float:
    failures = math.expm1((interval + write) / mtbf)
    return interval / (failures * (mtbf + restart))


def _first_order(interval: float, write: float, mtbf: float, restart: float) -> float:
    return 1 - write / interval - interval / (2 * mtbf) - restart / mtbf


def _no_writing(interval: float, write: float, mtbf: float, restart: float) -> float:
    return interval / (math.expm1(interval / mtbf) * (mtbf + restart))


def _no_restart(interval: float, write: float, mtbf: float, restart: float) -> float:
    return interval / (math.expm1((interval + write) / mtbf) * mtbf)


def _saving_counts(interval: float, write: float, mtbf: float, restart: float) -> float:
    return (interval + write) / (
        math.expm1((interval + write) / mtbf) * (mtbf + restart)
    )


def _machine(rng) -> tuple:
    return (
        float(rng.randint(100, 8000)),
        float(rng.randint(1, 120)),
        float(rng.randint(2000, 40_000)),
        float(rng.randint(10, 2000)),
    )


GOODPUT = Function(
    id="15.8",
    title="The goodput of a run",
    task=r"""
        **Given** four times: the `interval` of work between two checkpoints, the time
        to `write` one, the mean time between failures while the machine works (`mtbf`),
        and the time of the `restart` after each failure. No failure happens during a
        restart.

        **Wanted** a function that returns the goodput, which is the share of the
        elapsed time that is spent on work that isn't lost. Use the exact formula.
    """,
    stub="def goodput(interval, write, mtbf, restart): ...",
    spec=_goodput,
    gives=(("the goodput", ""),),
    units={"interval": "s", "write": "s", "mtbf": "s", "restart": "s"},
    cases=_machine,
    examples=((1000.0, 50.0, 10_000.0, 300.0),),
    rtol=1e-6,
    slips=(
        Slip(
            "first order",
            _first_order,
            "That is the first-order formula, which is too low when a large part of "
            "the time is lost. Use (15.6).",
        ),
        Slip(
            "nothing lost while saving",
            _no_writing,
            "Did you leave the time for saving out of the exponent? An interval ends "
            "when its checkpoint is saved.",
        ),
        Slip(
            "no restart",
            _no_restart,
            "Did you leave out the restart? There is one after each failure.",
        ),
        Slip(
            "saving counted as work",
            _saving_counts,
            "Did you count saving as useful work? Only the interval is useful work.",
        ),
    ),
    hint="How many failures does an interval have on average, and what does each of "
    "them cost? `math.expm1(x)` is e to the power of x, minus one.",
    solution="""
        An interval $τ$ with a write of $δ$ has $e^{(τ+δ)/M}-1$ failures on average. For
        each of them, $M$ seconds of work and $R$ seconds of restart elapse.

        ```python
        import math

        def goodput(interval, write, mtbf, restart):
            failures = math.expm1((interval + write) / mtbf)
            return interval / (failures * (mtbf + restart))
        ```
    """,
)


def _replayed(
    failures: list, interval: int, write: int, restart: int, elapsed: int
) -> int:
    """Second by second: what is done, what is saved, and when it stops."""
    saved = worked = written = waiting = 0
    times = set(failures)
    for second in range(elapsed):
        if second in times:
            worked = written = 0
            waiting = restart
        if waiting:
            waiting -= 1
        elif worked < interval:
            worked += 1
        else:
            written += 1
        if worked == interval and written == write:
            saved += interval
            worked = written = 0
    return saved


def _never_lost(
    failures: list, interval: int, write: int, restart: int, elapsed: int
) -> int:
    lost = restart * len(failures)
    return (elapsed - lost) // (interval + write) * interval


def _restart_added(
    failures: list, interval: int, write: int, restart: int, elapsed: int
) -> int:
    """A failure during a restart is waited for in addition."""
    at = saved = 0
    for stop in [*sorted(failures), elapsed]:
        done = max(0, stop - at) // (interval + write)
        saved += done * interval
        at = max(at, stop) + restart
    return saved


def _a_run(rng) -> tuple:
    elapsed = rng.randint(200, 600)
    some = sorted(rng.sample(range(10, elapsed), rng.randint(1, 6)))
    return some, rng.randint(10, 60), rng.randint(1, 10), rng.randint(5, 40), elapsed


REPLAY = Function(
    id="15.9",
    title="Replay a run",
    task=r"""
        **Given** the seconds at which `failures` happen, in ascending order, and four
        times in seconds: the `interval` of work between two checkpoints, the time to
        `write` one (at least one second), the time of a `restart`, and the `elapsed`
        time of the whole run. All are whole numbers.

        The run works for `interval` seconds, writes a checkpoint, and goes on. A
        failure at second $t$ begins a restart at $t$ and loses everything since the
        last complete checkpoint. After a failure during a restart, the restart begins
        again. A checkpoint that is finished exactly at the second of a failure is
        saved.

        **Wanted** a function that returns the seconds of work that are saved in
        checkpoints at the end.
    """,
    stub="def saved(failures, interval, write, restart, elapsed): ...",
    spec=_replayed,
    gives=(("the saved work", "s"),),
    cases=_a_run,
    examples=(
        ([50], 20, 5, 10, 100),
        ([30, 35], 20, 5, 10, 100),
        ([], 30, 5, 10, 100),
    ),
    slips=(
        Slip(
            "nothing lost",
            _never_lost,
            "Did you subtract only the restarts? A failure also loses the work since "
            "the last checkpoint.",
        ),
        Slip(
            "restarts added up",
            _restart_added,
            "After a failure during a restart, the restart begins again. So the two "
            "restarts overlap, and their times don't add up.",
        ),
    ),
    hint="Between two stops of the run, how many whole intervals with their "
    "checkpoints fit? When does the run work again after a failure?",
    solution="""
        Between two failures, only whole intervals with their checkpoints count. After a
        failure at $t$, the run works again at $t$ plus the restart, even if the failure
        came during a restart.

        ```python
        def saved(failures, interval, write, restart, elapsed):
            total = begin = 0
            for stop in [*failures, elapsed]:
                whole = max(0, stop - begin) // (interval + write)
                total += whole * interval
                begin = stop + restart
            return total
        ```
    """,
)


def _odd_rows(counts: list, printed: list) -> list:
    total = sum(counts)
    return [
        at
        for at, (count, share) in enumerate(zip(counts, printed, strict=True))
        if abs(100 * count / total - share) > 0.1
    ]


def _by_largest(counts: list, printed: list) -> list:
    total = sum(counts)
    off = [abs(100 * c / total - s) for c, s in zip(counts, printed, strict=True)]
    return [off.index(max(off))]


def _of_printed(counts: list, printed: list) -> list:
    total = sum(printed)
    whole = sum(counts)
    return [
        at
        for at, (count, share) in enumerate(zip(counts, printed, strict=True))
        if abs(100 * count / whole - 100 * share / total) > 0.1
    ]


def _a_table(rng) -> tuple:
    counts = [rng.randint(5, 200) for _ in range(rng.randint(4, 8))]
    printed = [round(100 * count / sum(counts), 1) for count in counts]
    for at in rng.sample(range(len(counts)), rng.randint(0, 2)):
        printed[at] = round(printed[at] + rng.choice([-4.2, -1.5, 0.9, 3.1]), 1)
    return counts, printed


AUDIT = Function(
    id="15.10",
    title="Which rows are wrong?",
    task=r"""
        **Given** the `counts` of a table and the `printed` percentages next to them,
        each rounded to one decimal place. The counts are right.

        **Wanted** a function that returns the list of the indices (from 0, in ascending
        order) of the rows whose printed percentage differs from the true percentage of
        its count by more than 0.1 percentage points.
    """,
    stub="def wrong_rows(counts, printed): ...",
    spec=_odd_rows,
    cases=_a_table,
    examples=(([148, 72, 54, 145], [30.1, 17.2, 12.9, 34.6]),),
    slips=(
        Slip(
            "only the worst",
            _by_largest,
            "Did you return only the worst row? There may be none, or several.",
        ),
        Slip(
            "shares of the printed sum",
            _of_printed,
            "Did you divide the printed percentages by their sum? If one of them is "
            "wrong, all others then look wrong, too.",
        ),
    ),
    hint="Which percentage should be printed next to a count?",
    solution="""
        The true percentage of a row is its count divided by the sum of all counts.

        ```python
        def wrong_rows(counts, printed):
            total = sum(counts)
            return [
                row
                for row, (count, share) in enumerate(zip(counts, printed))
                if abs(100 * count / total - share) > 0.1
            ]
        ```
    """,
)


def _best_count(sizes: list, write: float, chip: float, restart: float) -> int:
    def rate(n: int) -> float:
        mtbf = chip / n
        interval = math.sqrt(2 * write * mtbf)
        return n * _goodput(interval, write, mtbf, restart)

    return max(sizes, key=rate)


def _most_chips(sizes: list, write: float, chip: float, restart: float) -> int:
    return max(sizes)


def _best_goodput(sizes: list, write: float, chip: float, restart: float) -> int:
    return min(sizes)


def _failing_alike(sizes: list, write: float, chip: float, restart: float) -> int:
    def rate(n: int) -> float:
        mtbf, interval = chip / n, math.sqrt(2 * write * chip)
        never = interval > 500 * mtbf  # beyond which e^x is no float
        return 0 if never else n * _goodput(interval, write, mtbf, restart)

    return max(sizes, key=rate)


def _sizes(rng) -> tuple:
    sizes = [2**k for k in range(rng.randint(7, 10), 20)]
    return (
        sizes,
        float(rng.randint(5, 120)),
        round(rng.uniform(0.5, 6) * 365 * DAY, -4),
        float(rng.randint(120, 2400)),
    )


CHIPS = Function(
    id="15.11",
    title="When more chips make a run slower",
    task=r"""
        **Given** `sizes`, a list of chip counts. The work of a step is divided evenly
        over $n$ chips, without any loss. A checkpoint stops the run for `write`
        seconds, a single chip fails once in `chip` seconds on average, and the restart
        after each failure takes `restart` seconds. The run saves at Young's interval
        for its own size, and formula (15.6) gives its goodput.

        **Wanted** a function that returns the size at which the run does the most
        useful work per second.
    """,
    stub="def best_size(sizes, write, chip, restart): ...",
    spec=_best_count,
    gives=(("the best size", "chips"),),
    units={"write": "s", "chip": "s", "restart": "s"},
    cases=_sizes,
    examples=(
        ([1024, 4096, 16_384, 65_536, 262_144, 1_048_576], 60.0, 1.8e8, 2400.0),
        ([1024, 4096, 16_384, 65_536, 262_144], 5.0, 1.8e8, 60.0),
    ),
    slips=(
        Slip(
            "the largest",
            _most_chips,
            "Did you take the largest size? With enough chips, failures come faster "
            "than the run can restart.",
        ),
        Slip(
            "the best goodput",
            _best_goodput,
            "That is the size with the best goodput. A larger machine loses a larger "
            "share and may still do more work.",
        ),
        Slip(
            "the interval of a single chip",
            _failing_alike,
            "Did you compute the interval from the mean time of a single chip? The "
            "machine fails n times as often.",
        ),
    ),
    hint="How much useful work does a machine of n chips do per second? Its speed "
    "grows with n, and its goodput falls.",
    solution="""
        A machine of $n$ chips works $n$ times as fast as a single one, and a share $G$
        of its time is useful. So we look for the largest $n·G(n)$.

        ```python
        import math

        def best_size(sizes, write, chip, restart):
            def work(n):
                mtbf = chip / n
                interval = math.sqrt(2 * write * mtbf)
                failures = math.expm1((interval + write) / mtbf)
                return n * interval / (failures * (mtbf + restart))

            return max(sizes, key=work)
        ```
    """,
)

_PER_DAY = 4096 * 24 * 2.5

FASTER_RESTART = Number(
    id="15.12",
    title="What is a faster restart worth?",
    task=r"""
        **Given** 4,096 GPUs at 2.50 dollars per GPU-hour. The run needs 60 days of
        useful work. The machine fails every 6 hours of work on average, and a restart
        takes 30 minutes. Leave out the time for checkpoints and for repeating lost
        work.

        **Wanted** the dollars that you save if a restart takes 10 minutes instead.
    """,
    stub="dollars = ...",
    unit="dollars",
    expected=lambda: 60 * 4 * (20 / 60 / 24) * _PER_DAY,
    slips=(
        Slip(
            "all restarts",
            lambda right: right * 1.5,
            "That is the cost of all restarts of 30 minutes. A restart still takes "
            "10 minutes.",
        ),
        Slip(
            "what remains",
            lambda right: right / 2,
            "That is what restarts of 10 minutes cost. How much do you save?",
        ),
        Slip(
            "one failure a day",
            lambda right: right / 4,
            "Did you count one failure a day? There are four in 24 hours of work.",
        ),
        Slip(
            "elapsed days",
            lambda right: right / (1 + 0.5 / 6),
            "Did you count the failures of 60 elapsed days? The run needs 60 days of "
            "useful work, and the restarts come on top.",
        ),
    ),
    hint="How many failures are there in 60 days of work, and how much time does a "
    "faster restart save each time?",
    solution="""
        In 60 days of work there are 240 failures, and each of them costs all GPUs 20
        minutes less.

        ```python
        hours = 60 * 24 / 6 * (30 - 10) / 60
        dollars = hours * 4_096 * 2.5
        ```
    """,
)

ENERGY = Number(
    id="15.13",
    title="The energy of waiting",
    task=r"""
        **Given** 8,192 GPUs that draw 700 W each while they work, and 150 W each while
        they wait. The run takes 50 days, and its goodput is 80 %. During the other
        20 % of the time all GPUs wait.

        **Wanted** the energy of the whole run in kWh.
    """,
    stub="kilowatt_hours = ...",
    unit="kWh",
    expected=lambda: 8192 * 50 * 24 * (0.8 * 0.7 + 0.2 * 0.15),
    slips=(
        Slip(
            "working all the time",
            lambda right: 8192 * 50 * 24 * 0.7,
            "Did you let the GPUs work all the time? They wait for 20 % of it.",
        ),
        Slip(
            "no energy while waiting",
            lambda right: 8192 * 50 * 24 * 0.8 * 0.7,
            "Did you leave out the energy of waiting? A waiting GPU draws 150 W.",
        ),
        Slip(
            "the shares swapped",
            lambda right: 8192 * 50 * 24 * (0.2 * 0.7 + 0.8 * 0.15),
            "Did you swap the shares? The GPUs work for 80 % of the time.",
        ),
    ),
    hint="What is the mean power of a GPU over the 50 days?",
    solution="""
        A GPU draws 700 W for 80 % of the time and 150 W for the rest.

        ```python
        kilowatts = 0.8 * 0.7 + 0.2 * 0.15
        kilowatt_hours = 8_192 * kilowatts * 50 * 24
        ```
    """,
)

TPU_DAYS = Number(
    id="15.14",
    title="The name of a slice",
    task=r"""
        **Given** a slice that is called v4-4096, where the number counts cores and each
        chip has two. A chip has a peak of 275 TFLOPs/s. A model of 32 billion
        parameters is trained on 6 trillion tokens at an MFU of 50 %, counted with 6
        FLOPs per parameter and token. The goodput is 92 %.

        **Wanted** the number of days until the training is done.
    """,
    stub="days = ...",
    unit="days",
    expected=lambda: 6 * 32e9 * 6e12 / (2048 * 275e12 * 0.5) / 0.92 / DAY,
    slips=(
        Slip(
            "cores for chips",
            lambda right: right / 2,
            "Did you use the number in the name as the number of chips? It counts "
            "cores, and a chip has two.",
        ),
        Slip(
            "without the goodput",
            lambda right: 0.92 * right,
            "Did you leave out the goodput? Only 92 % of the elapsed time is useful.",
        ),
        Slip(
            "times the goodput",
            lambda right: 0.92**2 * right,
            "Did you multiply by the goodput? Lost time makes the run longer.",
        ),
        Slip(
            "all FLOPs at the peak",
            lambda right: right / 4,
            "Did you use the number in the name as the number of chips, and the peak "
            "as the rate?",
        ),
    ),
    hint="How many chips does the slice have, and how much of the elapsed time is "
    "useful?",
    solution="""
        The slice has 2,048 chips. The days of useful work divided by the goodput are
        the elapsed days.

        ```python
        flops = 6 * 32e9 * 6e12
        days = flops / (2_048 * 275e12 * 0.50) / 0.92 / 86_400
        ```
    """,
)

_BETWEEN = 60_000 * HOUR / 8192  # seconds between failures of the whole machine
_INTERVAL = math.sqrt(2 * 10 * _BETWEEN)
_KEPT = 1 - 10 / _INTERVAL - _INTERVAL / (2 * _BETWEEN) - 12 * 60 / _BETWEEN

WHOLE_BILL = Number(
    id="15.15",
    title="From failures to the bill",
    task=r"""
        **Given** 8,192 GPUs at 2.00 dollars per GPU-hour. A single GPU stops the run
        once in 60,000 hours on average. A checkpoint stops the training for 10 s, and
        you save at the interval of Young's formula. A restart takes 12 minutes. The run
        needs 40 days of useful work. To first order, the lost share of the time is
        $δ/τ + τ/(2M) + R/M$, for checkpoints of $δ$ seconds, an interval of $τ$,
        restarts of $R$, and a mean time $M$ between failures.

        **Wanted** the price of the run in dollars, including all the time that is lost.
    """,
    stub="dollars = ...",
    unit="dollars",
    expected=lambda: 40 / _KEPT * 24 * 8192 * 2.0,
    slips=(
        Slip(
            "no time lost",
            lambda right: 40 * 24 * 8192 * 2.0,
            "That is the price of the useful work. The time that is lost has to be "
            "paid too.",
        ),
        Slip(
            "times the goodput",
            lambda right: right * _KEPT**2,
            "Did you multiply by the goodput? Lost time makes the run longer.",
        ),
        Slip(
            "no restarts",
            lambda right: right * _KEPT / (_KEPT + 12 * 60 / _BETWEEN),
            "Did you leave out the restarts? Each failure costs 12 minutes besides "
            "the work that is lost.",
        ),
        Slip(
            "one hour a day",
            lambda right: right / 24,
            "Did you use days as hours? A day has 24 hours.",
        ),
    ),
    hint="How often does the whole machine fail, at which interval do you save, and "
    "what share of the time is then lost?",
    solution="""
        The machine fails 8,192 times as often as one GPU, every 7.3 hours. Young's
        interval is then 12 minutes. Saving and lost work take 1.4 % of the time each,
        and restarts take 2.7 %.

        ```python
        between = 60_000 * 3_600 / 8_192
        interval = (2 * 10 * between) ** 0.5
        lost = 10 / interval + interval / (2 * between) + 12 * 60 / between
        dollars = 40 / (1 - lost) * 24 * 8_192 * 2.0
        ```
    """,
)

QUESTIONS = (
    AT_MFU,
    RAMP,
    CONVENTION,
    MTBF,
    BYTES,
    INTERVAL,
    KEEP_UP,
    GOODPUT,
    REPLAY,
    AUDIT,
    CHIPS,
    FASTER_RESTART,
    ENERGY,
    TPU_DAYS,
    WHOLE_BILL,
)
