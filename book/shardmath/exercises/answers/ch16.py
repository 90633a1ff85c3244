"""Questions of chapter 16, "Reading training reports"."""

from shardmath.exercises.kinds import Chapter, Function, Number, Slip

CHAPTER = Chapter(
    title="Reading training reports",
    topics=(
        "MFU by three conventions, whole runs from hours and days, and reports whose "
        "numbers do not all agree"
    ),
    intro="""
        from a rate of tokens to the audit of a table. A share is a number between 0 and
        1, so 40 % is 0.4. 6N means 6 FLOPs for each of a model's $N$ parameters.
        Answers are in base units. In 16.9 to 16.12 you write functions that check
        reports.
    """,
    setup="""
        from shardmath.exercises import check, report
    """,
)

DAY = 86_400

MFU_6N = Number(
    id="16.1",
    title="An MFU from a rate",
    task=r"""
        **Given** a model of 13 billion parameters that is trained on H100s. Each H100
        processes 4,200 tokens per second and has a peak of 989 TFLOPs/s.

        **Wanted** the MFU as a share, if 6N FLOPs are counted per token.
    """,
    stub="mfu = ...",
    unit="",
    expected=lambda: 6 * 13e9 * 4200 / 989e12,
    slips=(
        Slip(
            "the forward pass alone",
            lambda right: right / 3,
            "Did you count two FLOPs per parameter? The backward pass takes four more.",
        ),
        Slip(
            "recomputation counted",
            lambda right: right * 8 / 6,
            "Eight FLOPs per parameter include recomputation, which an MFU leaves out.",
        ),
        Slip(
            "the sparse peak",
            lambda right: right / 2,
            "Did you use the peak with sparsity? The dense peak is 989 TFLOPs/s.",
        ),
        Slip(
            "in percent",
            lambda right: 100 * right,
            "That is a percentage. The answer is a share.",
        ),
    ),
    hint="How many FLOPs does a token take, and how many does an H100 then do per "
    "second?",
    solution="""
        ```python
        mfu = 6 * 13e9 * 4_200 / 989e12
        ```
    """,
)

RATE = Number(
    id="16.2",
    title="A rate from an MFU",
    task=r"""
        **Given** a run of a model with 32 billion parameters on 512 TPU v5p chips,
        which have a peak of 459 TFLOPs/s each. The report prints an MFU of 55 %,
        for which it counts 6N FLOPs per token.

        **Wanted** the tokens per second of the whole machine.
    """,
    stub="rate = ...",
    unit="tokens/s",
    expected=lambda: 0.55 * 512 * 459e12 / (6 * 32e9),
    slips=(
        Slip(
            "one chip",
            lambda right: right / 512,
            "That is the rate of one chip. The question asks for the rate of the whole "
            "machine.",
        ),
        Slip(
            "at the peak",
            lambda right: right / 0.55,
            "That is the rate at the peak. The chips reach 55 % of it.",
        ),
        Slip(
            "the forward pass alone",
            lambda right: 3 * right,
            "Did you count two FLOPs per parameter? Training takes six.",
        ),
    ),
    hint="Solve (16.1) for the tokens per second.",
    solution="""
        ```python
        rate = 0.55 * 512 * 459e12 / (6 * 32e9)
        ```
    """,
)

ATTENTION = Number(
    id="16.3",
    title="How much attention adds",
    task=r"""
        **Given** a model with 80 layers, 64 heads of size 128, and 70 billion
        parameters. It trains on sequences of 8,192 tokens. In the forward pass, full
        attention takes $4\cdot S\cdot n\cdot H$ FLOPs per token and layer, where $S$ is
        the length of the sequence, $n$ the number of heads and $H$ their size. The
        backward pass takes twice as many.

        **Wanted** the FLOPs per token, which are 6N plus full attention, divided by 6N.
    """,
    stub="ratio = ...",
    unit="",
    expected=lambda: 1 + 3 * 80 * 4 * 8192 * 64 * 128 / (6 * 70e9),
    slips=(
        Slip(
            "causal",
            lambda right: 1 + (right - 1) / 2,
            "That counts attention causally. Full attention takes about twice as many "
            "FLOPs.",
        ),
        Slip(
            "the forward pass of attention alone",
            lambda right: 1 + (right - 1) / 3,
            "Did you leave out the backward pass of attention?",
        ),
        Slip(
            "one layer",
            lambda right: 1 + (right - 1) / 80,
            "Did you count one layer? The model has 80.",
        ),
        Slip(
            "attention alone",
            lambda right: right - 1,
            "That is what attention adds. The full count includes the 6N as well.",
        ),
    ),
    hint="How many FLOPs does attention take per token in all layers and both passes?",
    solution="""
        In each of the 80 layers, both passes of attention take three times the FLOPs of
        the forward pass.

        ```python
        attention = 3 * 80 * 4 * 8_192 * 64 * 128
        ratio = 1 + attention / (6 * 70e9)
        ```
    """,
)

BETTER = Number(
    id="16.4",
    title="Two labs",
    task=r"""
        **Given** two reports of runs on the same chip. Lab A prints an MFU of 46 % and
        counts full attention, which gives 1.15 times 6N for its model. Lab B prints
        41 % and counts 6N.

        **Wanted** the MFU of lab A divided by the MFU of lab B, if you count 6N for
        both.
    """,
    stub="ratio = ...",
    unit="",
    expected=lambda: 0.46 / 1.15 / 0.41,
    slips=(
        Slip(
            "as printed",
            lambda right: 0.46 / 0.41,
            "Those are the printed shares, which were counted in different ways.",
        ),
        Slip(
            "times the attention",
            lambda right: 0.46 * 1.15 / 0.41,
            "Did you multiply by 1.15? 6N leaves attention out, so lab A's share gets "
            "smaller.",
        ),
        Slip(
            "upside down",
            lambda right: 1 / right,
            "That is lab B over lab A.",
        ),
    ),
    hint="What would lab A have printed if it had counted 6N?",
    solution="""
        If you count 6N, lab A reaches 40 %, so lab B ran slightly better.

        ```python
        ratio = 0.46 / 1.15 / 0.41
        ```
    """,
)

RUN_MFU = Number(
    id="16.5",
    title="The MFU of a whole run",
    task=r"""
        **Given** a model of 65.2 billion parameters, 1.4 trillion tokens and 1,022,362
        GPU-hours on A100s, whose peak is 312 TFLOPs/s each.

        **Wanted** the MFU over all these hours as a share, if 6N FLOPs are counted per
        token.
    """,
    stub="mfu = ...",
    unit="",
    expected=lambda: 6 * 65.2e9 * 1.4e12 / (1_022_362 * 3600 * 312e12),
    slips=(
        Slip(
            "hours for seconds",
            lambda right: 3600 * right,
            "Did you convert the hours to seconds? The peak is per second.",
        ),
        Slip(
            "the forward pass alone",
            lambda right: right / 3,
            "Did you count two FLOPs per parameter? Training takes six.",
        ),
        Slip(
            "recomputation counted",
            lambda right: right * 8 / 6,
            "Eight FLOPs per parameter include recomputation, which an MFU leaves out.",
        ),
    ),
    hint="Use formula (16.2), with the hours in seconds.",
    solution="""
        We divide the FLOPs of the run by the peak FLOPs of all GPU-hours.

        ```python
        mfu = 6 * 65.2e9 * 1.4e12 / (1_022_362 * 3_600 * 312e12)
        ```
    """,
)

LOST = Number(
    id="16.6",
    title="How much time was lost?",
    task=r"""
        **Given** a run on 1,024 chips, which together train on 1.2 million tokens per
        second when nothing interrupts them. From the first step to the last, the run
        took 40 days for 3.6 trillion tokens.

        **Wanted** the goodput of the run, as a share.
    """,
    stub="goodput = ...",
    unit="",
    expected=lambda: 3.6e12 / 1.2e6 / DAY / 40,
    slips=(
        Slip(
            "what was lost",
            lambda right: 1 - right,
            "That is the share that was lost.",
        ),
        Slip(
            "upside down",
            lambda right: 1 / right,
            "No run is faster than its steps. Did you divide the wrong way round?",
        ),
        Slip(
            "one chip",
            lambda right: right / 1024,
            "The given rate is already that of all chips.",
        ),
    ),
    hint="How many days would the tokens take at that rate?",
    solution="""
        At the given rate the tokens would take 34.7 days, and the run took 40.

        ```python
        days = 3.6e12 / 1.2e6 / 86_400
        goodput = days / 40
        ```
    """,
)

TWICE = Number(
    id="16.7",
    title="An HFU in disguise",
    task=r"""
        **Given** a report that prints 160 TFLOPs/s per A100. A step of 2,048 sequences
        of 2,048 tokens takes 98 s on 384 A100s, whose peak is 312 TFLOPs/s. The model
        has 176 billion parameters. In the backward pass, the model's layers are
        computed a second time.

        **Wanted** the MFU as a share, if 6N FLOPs are counted per token.
    """,
    stub="mfu = ...",
    unit="",
    expected=lambda: 6 * 176e9 * 2048 * 2048 / (98 * 384 * 312e12),
    slips=(
        Slip(
            "the printed rate",
            lambda right: 160 / 312,
            "That is the printed rate over the peak, which counts recomputation.",
        ),
        Slip(
            "corrected in the wrong direction",
            lambda right: right * 8 / 6 * 8 / 6,
            "Did you correct the rate in the wrong direction? Without recomputation, "
            "there are fewer FLOPs.",
        ),
        Slip(
            "one sequence",
            lambda right: right / 2048,
            "Did you count one sequence? A step has 2,048 of them.",
        ),
    ),
    hint="How many tokens does one GPU train on per second?",
    solution="""
        The printed rate counts recomputation, so we start from a GPU's tokens per
        second.

        ```python
        tokens = 2_048 * 2_048 / (98 * 384)
        mfu = 6 * 176e9 * tokens / 312e12
        ```
    """,
)

MISSING = Number(
    id="16.8",
    title="The row that is missing",
    task=r"""
        **Given** a model card with three rows: 200,000 GPU-hours and 34 t of CO₂,
        400,000 GPU-hours and 68 t, 1,600,000 GPU-hours and 272 t. Its totals are
        3,000,000 GPU-hours and 493.2 t. The emissions are proportional to hours times
        power, and the GPUs of the three rows draw 400 W each.

        **Wanted** the power in watts of each GPU whose hours appear in no row.
    """,
    stub="watts = ...",
    unit="W",
    expected=lambda: 400 * (493.2 - 374) / 0.8e6 / (34 / 200e3),
    slips=(
        Slip(
            "the same as the others",
            lambda right: 400.0,
            "That is the power of the three rows. Do the missing hours have the same "
            "emissions per GPU-hour?",
        ),
        Slip(
            "the mean of all",
            lambda right: 400 * 493.2 / 3e6 / (34 / 200e3),
            "That is the mean over all hours. Subtract the rows first.",
        ),
        Slip(
            "upside down",
            lambda right: 400 * 400 / right,
            "Did you divide the wrong way round? The missing hours emit less.",
        ),
    ),
    hint="How many hours and how many tonnes are missing, and what is their ratio?",
    solution="""
        The missing 800,000 hours emit 119.2 t, which is 0.149 kg per hour. The three
        rows emit 0.17 kg per hour, and their GPUs draw 400 W.

        ```python
        missing = (493.2 - 374) / 800_000
        watts = 400 * missing / (34 / 200_000)
        ```
    """,
)


def _count(params: float, attention: float, convention: str) -> float:
    extra = {"6N": 0.0, "causal": attention / 2, "full": attention}[convention]
    return 6 * params + extra


def _named(
    params: float, attention: float, rate: float, peak: float, printed: float
) -> str:
    shares = {
        way: rate * _count(params, attention, way) / peak
        for way in ("6N", "causal", "full")
    }
    return min(shares, key=lambda way: abs(shares[way] - printed))


def _always_full(
    params: float, attention: float, rate: float, peak: float, printed: float
) -> str:
    return "full"


def _largest_below(
    params: float, attention: float, rate: float, peak: float, printed: float
) -> str:
    ways = ("6N", "causal", "full")
    below = [w for w in ways if rate * _count(params, attention, w) / peak <= printed]
    return below[-1] if below else "6N"


def _attention_twice(
    params: float, attention: float, rate: float, peak: float, printed: float
) -> str:
    return _named(params, 2 * attention, rate, peak, printed)


def _a_print(rng) -> tuple:
    params = round(rng.uniform(5, 400)) * 1e9
    attention = round(6 * params * rng.uniform(0.08, 0.6), -9)
    peak = rng.choice([312e12, 459e12, 989e12])
    way = rng.choice(["6N", "causal", "full"])
    share = rng.uniform(0.3, 0.55)
    rate = round(share * peak / _count(params, attention, way), 1)
    printed = rate * _count(params, attention, way) / peak
    return params, attention, rate, peak, round(printed, 3)


NAME_IT = Function(
    id="16.9",
    title="Which convention?",
    task=r"""
        **Given** the `params` of a model, the FLOPs of full `attention` per token in
        training, the `rate` of one chip, its `peak`, and the `printed` MFU as a share.
        Causal attention takes half of the FLOPs of full attention.

        **Wanted** a function that returns `"6N"`, `"causal"` or `"full"`, whichever
        convention comes nearest to the printed share.
    """,
    stub="def convention(params, attention, rate, peak, printed): ...",
    spec=_named,
    units={"attention": "FLOPs", "rate": "tokens/s", "peak": "FLOPs/s"},
    cases=_a_print,
    examples=((13e9, 16e9, 3600.0, 989e12, 0.313), (70e9, 60e9, 800.0, 989e12, 0.34)),
    slips=(
        Slip(
            "always full",
            _always_full,
            "Many reports count in full, but not all of them.",
        ),
        Slip(
            "the largest that is not above",
            _largest_below,
            "Did you take the largest share that isn't above the printed one? Rounding "
            "can go either way.",
        ),
        Slip(
            "attention twice",
            _attention_twice,
            "Did you double the FLOPs of attention? The given FLOPs are already those "
            "of full attention.",
        ),
    ),
    hint="Compute the MFU in all three ways. Which is nearest?",
    solution="""
        ```python
        def convention(params, attention, rate, peak, printed):
            extra = {"6N": 0, "causal": attention / 2, "full": attention}

            def off(way):
                return abs(rate * (6 * params + extra[way]) / peak - printed)

            return min(extra, key=off)
        ```
    """,
)


def _goodput_of(
    params: float, tokens: float, mfu: float, hours: float, peak: float
) -> float:
    return 6 * params * tokens / (hours * 3600 * peak) / mfu


def _run_share(
    params: float, tokens: float, mfu: float, hours: float, peak: float
) -> float:
    return 6 * params * tokens / (hours * 3600 * peak)


def _multiplied(
    params: float, tokens: float, mfu: float, hours: float, peak: float
) -> float:
    return 6 * params * tokens / (hours * 3600 * peak) * mfu


def _in_hours(
    params: float, tokens: float, mfu: float, hours: float, peak: float
) -> float:
    return 6 * params * tokens / (hours * peak) / mfu


def _a_run(rng) -> tuple:
    params, tokens = rng.randint(3, 400) * 1e9, rng.randint(1, 150) * 1e11
    mfu, peak = round(rng.uniform(0.25, 0.6), 3), rng.choice([312e12, 459e12, 989e12])
    hours = 6 * params * tokens / (3600 * peak * mfu * rng.uniform(0.5, 0.98))
    return params, tokens, mfu, float(round(hours)), peak


GOODPUT = Function(
    id="16.10",
    title="From two MFUs to the goodput",
    task=r"""
        **Given** the `params` of a model, the `tokens` of the run, the `mfu` while it
        trains steadily, counted by 6N, all chip-`hours` of the run, and the `peak` of a
        chip.

        **Wanted** a function that returns the goodput of the run, as a share.
    """,
    stub="def goodput(params, tokens, mfu, hours, peak): ...",
    spec=_goodput_of,
    gives=(("the goodput", ""),),
    units={"tokens": "tokens", "peak": "FLOPs/s"},
    cases=_a_run,
    examples=((540e9, 780e9, 0.457, 8_404_992.0, 275e12),),
    rtol=1e-6,
    slips=(
        Slip(
            "the MFU of the run",
            _run_share,
            "That is the MFU of the whole run. How does it compare with the steady "
            "one?",
        ),
        Slip(
            "multiplied",
            _multiplied,
            "Did you multiply the two shares? The goodput is their ratio.",
        ),
        Slip(
            "hours for seconds",
            _in_hours,
            "Did you convert the hours to seconds? The peak is per second.",
        ),
    ),
    hint="How does (16.2) relate the MFU of the whole run to the steady one?",
    solution="""
        ```python
        def goodput(params, tokens, mfu, hours, peak):
            run_mfu = 6 * params * tokens / (hours * 3_600 * peak)
            return run_mfu / mfu
        ```
    """,
)


def _contradicts(mfu: float, rate: float, params: float, step: list) -> list:
    """Which of three rates disagree: by MFU, as printed, by the step."""
    peak, seconds, batch, chips = step
    found = [mfu * peak / (6 * params), rate, batch / (chips * seconds)]
    return [
        place
        for place, value in enumerate(found)
        if all(
            abs(value / other - 1) > 0.05
            for at, other in enumerate(found)
            if at != place
        )
    ]


def _against_the_first(mfu: float, rate: float, params: float, step: list) -> list:
    peak, seconds, batch, chips = step
    found = [mfu * peak / (6 * params), rate, batch / (chips * seconds)]
    return [at for at, value in enumerate(found) if abs(value / found[0] - 1) > 0.05]


def _no_chips(mfu: float, rate: float, params: float, step: list) -> list:
    return _contradicts(mfu, rate, params, [*step[:3], 1])


def _three(rng) -> tuple:
    params, peak = rng.randint(5, 300) * 1e9, rng.choice([312e12, 989e12])
    mfu, chips = round(rng.uniform(0.25, 0.55), 3), 2 ** rng.randint(6, 12)
    rate = mfu * peak / (6 * params)
    batch = 2.0 ** rng.randint(20, 24)
    seconds = batch / (chips * rate)
    wrong = rng.choice([0, 1, 2, 3])
    factor = rng.choice([0.5, 0.8, 0.93, 0.97, 1.03, 1.07, 1.3, 2.0])
    mfu *= factor if wrong == 0 else 1
    rate *= factor if wrong == 1 else 1
    seconds *= factor if wrong == 2 else 1
    return (
        round(mfu, 4),
        round(rate, 2),
        params,
        [peak, round(seconds, 4), batch, chips],
    )


CONTRADICTION = Function(
    id="16.11",
    title="Which figure disagrees?",
    task=r"""
        **Given** three figures of one run: the `mfu`, which counts 6N FLOPs per token,
        the `rate` of one chip in tokens per second, and a `step`, which is a list of
        the peak of a chip, the seconds that a step takes, its tokens, and the number of
        chips. The model has `params` parameters. Each figure gives the tokens per
        second of one chip.

        **Wanted** a function that returns the list of those figures whose implied rate
        differs from those of both others by more than 5 %, that is,
        `abs(own / other - 1) > 0.05` for both. Use 0 for the MFU, 1 for the rate, and 2
        for the step. If all agree, the list is empty.
    """,
    stub="def disagrees(mfu, rate, params, step): ...",
    spec=_contradicts,
    cases=_three,
    examples=(
        (0.40, 400.0, 100e9, [989e12, 10.0, 4194304.0, 1024]),
        (0.40, 659.3, 100e9, [989e12, 6.212, 4194304.0, 1024]),
    ),
    slips=(
        Slip(
            "against the first alone",
            _against_the_first,
            "Did you compare all figures with the MFU? It may be the MFU that is "
            "wrong.",
        ),
        Slip(
            "the whole machine",
            _no_chips,
            "Did you leave out the number of chips? The step gives the rate of all of "
            "them together.",
        ),
    ),
    hint="Turn each figure into tokens per second of one chip, and compare each with "
    "the two others.",
    solution="""
        ```python
        def disagrees(mfu, rate, params, step):
            peak, seconds, batch, chips = step
            rates = [mfu * peak / (6 * params), rate, batch / (chips * seconds)]
            found = []
            for place, own in enumerate(rates):
                others = [r for at, r in enumerate(rates) if at != place]
                if all(abs(own / other - 1) > 0.05 for other in others):
                    found.append(place)
            return found
        ```
    """,
)


def _outlier(rows: list) -> int:
    shares = [6 * params * tokens / hours for params, tokens, hours in rows]
    middle = sorted(shares)[len(shares) // 2]
    off = [max(share / middle, middle / share) for share in shares]
    return off.index(max(off))


def _largest_share(rows: list) -> int:
    shares = [params * tokens / hours for params, tokens, hours in rows]
    return shares.index(max(shares))


def _most_hours(rows: list) -> int:
    hours = [row[2] for row in rows]
    return hours.index(max(hours))


def _per_token(rows: list) -> int:
    shares = [tokens / hours for _, tokens, hours in rows]
    middle = sorted(shares)[len(shares) // 2]
    off = [max(share / middle, middle / share) for share in shares]
    return off.index(max(off))


def _far_by_difference(rows: list) -> int:
    shares = [params * tokens / hours for params, tokens, hours in rows]
    middle = sorted(shares)[len(shares) // 2]
    off = [abs(share - middle) for share in shares]
    return off.index(max(off))


def _family(rng) -> tuple:
    """One share far below the median, and one less far above it, as a ratio."""
    count = rng.choice([3, 5])
    shares = [rng.uniform(0.28, 0.3) for _ in range(count)]
    low, high = rng.sample(range(count), 2)
    shares[low] *= rng.uniform(0.4, 0.5)
    shares[high] *= rng.choice([1.0, rng.uniform(1.6, 1.9), 3.0])
    rows = []
    for share in shares:
        params, tokens = rng.randint(1, 400) * 1e9, rng.randint(5, 150) * 1e11
        hours = 6 * params * tokens / (3600 * 989e12 * share)
        rows.append([params, tokens, float(round(hours))])
    return (rows,)


OUTLIER = Function(
    id="16.12",
    title="The row that is unlike the others",
    task=r"""
        **Given** an odd number of `rows` of a model card. Each row has a model's number
        of parameters, its number of tokens, and its chip-hours. All rows are for the
        same kind of chip.

        **Wanted** a function that returns the index (from 0) of the row whose MFU over
        all its hours is farthest from the median MFU of all rows. Measure by ratio:
        half of the median is as far from it as twice the median.
    """,
    stub="def outlier(rows): ...",
    spec=_outlier,
    cases=_family,
    examples=(
        ([[8e9, 15e12, 1.46e6], [70e9, 15e12, 7.0e6], [405e9, 15.6e12, 30.84e6]],),
    ),
    slips=(
        Slip(
            "the largest share",
            _largest_share,
            "Did you take the row with the largest MFU? The outlier may also have the "
            "smallest.",
        ),
        Slip(
            "the largest difference",
            _far_by_difference,
            "Did you take the difference from the median? Half of the median is as far "
            "from it as twice the median, so compare ratios.",
        ),
        Slip(
            "the most hours",
            _most_hours,
            "A large model needs many hours. How many FLOPs per hour does it do?",
        ),
        Slip(
            "tokens per hour",
            _per_token,
            "Did you leave out the parameters? A token of a large model takes more "
            "FLOPs.",
        ),
    ),
    hint="The peak is the same for all rows, so it cancels in the ratios.",
    solution="""
        ```python
        def outlier(rows):
            shares = [p * tokens / hours for p, tokens, hours in rows]
            median = sorted(shares)[len(shares) // 2]
            off = [max(s / median, median / s) for s in shares]
            return off.index(max(off))
        ```
    """,
)

PEAK = Number(
    id="16.13",
    title="Which peak was meant?",
    task=r"""
        **Given** a slide about a run on H100s that says "460 TFLOPs/s per GPU, 46.5 %
        MFU". It also says that all matmuls ran in fp8. The dense peaks of an H100 are
        989 TFLOPs/s in bf16 and 1,979 TFLOPs/s in fp8.

        **Wanted** the share of the dense fp8 peak that the run reached.
    """,
    stub="share = ...",
    unit="",
    expected=lambda: 460 / 1979,
    rtol=0.02,
    slips=(
        Slip(
            "of the bf16 peak",
            lambda right: 0.465,
            "That is the printed share, which is relative to the bf16 peak.",
        ),
        Slip(
            "twice",
            lambda right: 0.93,
            "Did you double the share? The larger peak makes it smaller.",
        ),
        Slip(
            "of the sparse peak",
            lambda right: 460 / 3958,
            "That is the share of the sparse peak. The task asks for the dense one.",
        ),
    ),
    hint="Which peak do 460 TFLOPs/s and 46.5 % imply?",
    solution="""
        The slide divided by 989, the bf16 peak, although the matmuls ran in fp8.

        ```python
        share = 460 / 1_979
        ```
    """,
)

RATE_AND_DAYS = Number(
    id="16.14",
    title="From a printed rate to the lost days",
    task=r"""
        **Given** a report on a model of 30 billion parameters that was trained on 9
        trillion tokens with 2,048 GPUs. The report prints 430 TFLOPs/s per GPU. It
        counts attention in full, which adds 12 % to 6N. From the first step to the last
        the run took 27 days.

        **Wanted** the goodput of the run, as a share.
    """,
    stub="goodput = ...",
    unit="",
    expected=lambda: 9e12 * 6 * 30e9 * 1.12 / (430e12 * 2048) / DAY / 27,
    slips=(
        Slip(
            "attention left out",
            lambda right: right / 1.12,
            "The printed rate counts attention. A token needs 12 % more than 6N.",
        ),
        Slip(
            "attention taken off",
            lambda right: right / 1.12**2,
            "Did you divide by 1.12? Attention adds to the FLOPs of a token.",
        ),
        Slip(
            "what was lost",
            lambda right: 1 - right,
            "That is the share that was lost.",
        ),
        Slip(
            "the forward pass alone",
            lambda right: right / 3,
            "Did you count two FLOPs per parameter? Training takes six.",
        ),
    ),
    hint="To how many tokens per second does the printed rate correspond, and how many "
    "days do all tokens take at that rate?",
    solution="""
        A token takes 202 GFLOPs as the report counts them, so the GPUs train on 4.37
        million tokens per second. At that rate the run would have taken 23.8 days.

        ```python
        per_token = 6 * 30e9 * 1.12
        tokens = 430e12 * 2_048 / per_token
        days = 9e12 / tokens / 86_400
        goodput = days / 27
        ```
    """,
)

QUESTIONS = (
    MFU_6N,
    RATE,
    ATTENTION,
    BETTER,
    RUN_MFU,
    LOST,
    TWICE,
    MISSING,
    NAME_IT,
    GOODPUT,
    CONTRADICTION,
    OUTLIER,
    PEAK,
    RATE_AND_DAYS,
)
