"""Questions of chapter 17, "How right is this book?"."""

from statistics import fmean, median

from shardmath.exercises.kinds import Chapter, Function, Number, Slip

CHAPTER = Chapter(
    title="How right is this book?",
    topics=(
        "predictions put together from their parts, a model fitted by hand, and the "
        "error of a prediction on runs that it has not seen"
    ),
    intro="""
        from the parts of a prediction to a model that you fit yourself. Answers are in
        base units: seconds, tokens, shares. In 17.4 you fit two numbers and predict
        runs that were not in the fit; in 17.5 you measure how wrong such a model is on
        sources that it has not seen.
    """,
    setup="""
        from shardmath.exercises import check, report
    """,
)

_F, _B, _M, _P, _V = 0.11, 0.24, 8, 4, 2

STEP = Number(
    id="17.1",
    title="A step from its parts",
    task=r"""
        **Given** a pipeline of $p = 4$ even stages, interleaved with $v = 2$ chunks
        each, and $M = 8$ microbatches. One microbatch takes a stage 0.11 s forward and
        0.24 s backward. The exposed part of the exchange of gradients takes 0.3 s, and
        the optimizer takes 0.05 s.

        **Wanted** the predicted seconds of a step.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: (_M + (_P - 1) / _V) * (_F + _B) + 0.35,
    slips=(
        Slip(
            "no chunks",
            lambda right: (_M + _P - 1) * (_F + _B) + 0.35,
            "Interleaving divides the bubble by the number of chunks.",
        ),
        Slip(
            "no bubble",
            lambda right: _M * (_F + _B) + 0.35,
            "A stage waits while the pipeline fills and drains.",
        ),
        Slip(
            "the bubble for all stages",
            lambda right: (_M + _P / _V) * (_F + _B) + 0.35,
            "The first stage waits for p − 1 others.",
        ),
        Slip(
            "only what repeats",
            lambda right: (_M + (_P - 1) / _V) * (_F + _B),
            "The exchange of gradients and the optimizer come once in a step.",
        ),
        Slip(
            "once a microbatch",
            lambda right: (_M + (_P - 1) / _V) * (_F + _B + 0.35),
            "Gradients are exchanged once a step, and not for every microbatch.",
        ),
    ),
    hint="(17.1): microbatches, then (p − 1)/v more for the bubble, then what is once.",
    solution="""
        ```python
        seconds = (8 + (4 - 1) / 2) * (0.11 + 0.24) + 0.3 + 0.05
        ```
    """,
)

GATHER = Number(
    id="17.2",
    title="What a gather leaves exposed",
    task=r"""
        **Given** FSDP, where the gathers of the forward pass keep the links busy for
        1.5 s at their full rate. Large collectives reach 75 % of that rate. The work
        that may hide the gathers takes 1.8 s, and the share $x = 0.75$ of a gather
        stays exposed even where there is enough work.

        **Wanted** the exposed seconds, $\max(0, g - F) + x\,g$, where $g$ is the time
        of the gathers and $F$ that of the work.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 2.0 - 1.8 + 0.75 * 2.0,
    slips=(
        Slip(
            "links at their full rate",
            lambda right: 0.75 * 1.5,
            "The links reach 75 % of their rate, so the gathers take 2 s.",
        ),
        Slip(
            "only what exceeds the work",
            lambda right: 2.0 - 1.8,
            "The share x of the whole gather stays exposed as well.",
        ),
        Slip(
            "only the share",
            lambda right: 0.75 * 2.0,
            "The gathers take longer than the work, so the excess is exposed, too.",
        ),
        Slip(
            "the hidden share",
            lambda right: 2.0 - 1.8 + 0.25 * 2.0,
            "x is the share that stays exposed, and not the one that is hidden.",
        ),
        Slip(
            "all of it",
            lambda right: 2.0,
            "Some of a gather hides: 0.25 of it, as far as there is work.",
        ),
    ),
    hint="First g: 1.5 s at the full rate, and the links reach 75 % of it.",
    solution="""
        ```python
        g = 1.5 / 0.75
        seconds = max(0, g - 1.8) + 0.75 * g
        ```
    """,
)

ROWS = Number(
    id="17.3",
    title="When a matmul waits for its weights",
    task=r"""
        **Given** an H100 whose large matmuls sustain 795 TFLOPs/s in bf16, of which the
        matmuls of a layer reach $e_g = 0.77$, and whose HBM has 3.35 TB/s, of which
        passes reach $e_h = 0.47$. A matmul of $m$ tokens with a weight of $16{,}384
        \times 16{,}384$ reads the weight from HBM. Leave out what it reads and writes
        of the tokens.

        **Wanted** the number of tokens $m$ at which reading the weight takes as long as
        the math.
    """,
    stub="tokens = ...",
    unit="tokens",
    expected=lambda: 0.77 * 795e12 / (0.47 * 3.35e12),
    slips=(
        Slip(
            "at the peaks",
            lambda right: 795e12 / 3.35e12,
            "Both run at a share of what they can do: e_g and e_h.",
        ),
        Slip(
            "one FLOP a value",
            lambda right: 2 * 0.77 * 795e12 / (0.47 * 3.35e12),
            "A matmul of m tokens takes 2·m FLOPs for every value of the weight.",
        ),
        Slip(
            "one byte a value",
            lambda right: 0.5 * 0.77 * 795e12 / (0.47 * 3.35e12),
            "A value in bf16 has two bytes.",
        ),
        Slip(
            "memory at its peak",
            lambda right: 0.77 * 795e12 / 3.35e12,
            "The memory reaches the share e_h of its bandwidth.",
        ),
        Slip(
            "upside down",
            lambda right: 0.47 * 3.35e12 / (0.77 * 795e12),
            "That is bytes per FLOP.",
        ),
    ),
    hint="2·m·k·n FLOPs against 2·k·n bytes: k and n cancel.",
    solution="""
        ```python
        tokens = 0.77 * 795e12 / (0.47 * 3.35e12)
        ```
    """,
)


def _fitted(rows: list, new: list) -> list:
    """Two shares by least squares of relative errors, and times of other runs."""
    aa = ab = bb = at = bt = 0.0
    for math, memory, seconds in rows:
        a, b = math / seconds, memory / seconds
        aa, ab, bb, at, bt = aa + a * a, ab + a * b, bb + b * b, at + a, bt + b
    det = aa * bb - ab * ab
    x, y = (at * bb - bt * ab) / det, (aa * bt - ab * at) / det
    return [x * math + y * memory for math, memory in new]


def _absolute(rows: list, new: list) -> list:
    aa = ab = bb = at = bt = 0.0
    for a, b, seconds in rows:
        aa, ab, bb = aa + a * a, ab + a * b, bb + b * b
        at, bt = at + a * seconds, bt + b * seconds
    det = aa * bb - ab * ab
    x, y = (at * bb - bt * ab) / det, (aa * bt - ab * at) / det
    return [x * math + y * memory for math, memory in new]


def _one_number(rows: list, new: list) -> list:
    ratios = [seconds / (math + memory) for math, memory, seconds in rows]
    return [fmean(ratios) * (math + memory) for math, memory in new]


def _rows(rng) -> tuple:
    """Runs with two true numbers and some noise, and runs to predict."""
    x, y = rng.uniform(1.1, 1.6), rng.uniform(1.5, 3)

    def one():
        return round(rng.uniform(1, 60), 2), round(rng.uniform(0.2, 20), 2)

    rows = []
    for _ in range(6):
        math, memory = one()
        rows.append(
            [math, memory, round((x * math + y * memory) * rng.uniform(0.9, 1.1), 2)]
        )
    return rows, [list(one()) for _ in range(2)]


FIT = Function(
    id="17.4",
    title="Fit it yourself",
    task=r"""
        **Given** `rows` of published runs: for each the seconds of its math at the
        sustained rate, the seconds of its passes over memory at the full bandwidth, and
        the measured seconds of a step. The model is $T = a\cdot\text{math} +
        b\cdot\text{memory}$, so that $1/a$ and $1/b$ are the shares that matmuls and
        passes reach.

        **Wanted** a function that finds $a$ and $b$ from `rows` and returns the
        predicted seconds of each of the `new` runs, which were not in the fit and are
        given by math and memory alone. Take the $a$ and $b$ that minimise the sum of
        squares of the *relative* errors, predicted over measured minus one.
    """,
    stub="def predict(rows, new): ...",
    spec=_fitted,
    gives=(("the predictions", "s"),),
    cases=_rows,
    examples=(([[10.0, 1.0, 14.0], [2.0, 4.0, 10.4], [5.0, 5.0, 16.0]], [[1.0, 1.0]]),),
    rtol=1e-6,
    slips=(
        Slip(
            "absolute errors",
            _absolute,
            "The largest runs decide then. Divide each row by its measured time first.",
        ),
        Slip(
            "one number for both",
            _one_number,
            "Math and memory have a number each.",
        ),
        Slip(
            "nothing fitted",
            lambda rows, new: [math + memory for math, memory in new],
            "That is the sum at full rates. Find a and b from the rows.",
        ),
    ),
    hint="""
        Divide math and memory of each row by its measured time. Then you look for the
        two numbers whose combination comes nearest to one in every row: two equations
        with two unknowns, or `numpy.linalg.lstsq`.
    """,
    solution="""
        ```python
        def predict(rows, new):
            aa = ab = bb = at = bt = 0.0
            for math, memory, seconds in rows:
                a, b = math / seconds, memory / seconds
                aa, ab, bb = aa + a * a, ab + a * b, bb + b * b
                at, bt = at + a, bt + b
            det = aa * bb - ab * ab
            x = (at * bb - bt * ab) / det
            y = (aa * bt - ab * at) / det
            return [x * math + y * memory for math, memory in new]
        ```
    """,
)


def _left_out(rows: list) -> float:
    """Mean error if each source is predicted by the median of the others."""
    errors = []
    for source, bound, seconds in rows:
        others = [b / s for name, b, s in rows if name != source]
        errors.append(abs(bound / median(others) / seconds - 1))
    return fmean(errors)


def _in_the_fit(rows: list) -> float:
    share = median(bound / seconds for _, bound, seconds in rows)
    return fmean(abs(bound / share / seconds - 1) for _, bound, seconds in rows)


def _row_left_out(rows: list) -> float:
    errors = []
    for at, (_, bound, seconds) in enumerate(rows):
        others = [b / s for n, (_, b, s) in enumerate(rows) if n != at]
        errors.append(abs(bound / median(others) / seconds - 1))
    return fmean(errors)


def _upside_down(rows: list) -> float:
    errors = []
    for source, bound, seconds in rows:
        others = [b / s for name, b, s in rows if name != source]
        errors.append(abs(bound * median(others) / seconds - 1))
    return fmean(errors)


def _sources(rng) -> tuple:
    rows = []
    for source in "ABC"[: rng.randint(2, 3)]:
        share = rng.uniform(0.2, 0.8)
        for _ in range(rng.randint(2, 4)):
            bound = round(rng.uniform(1, 50), 2)
            seconds = round(bound / share * rng.uniform(0.9, 1.1), 2)
            rows.append([source, bound, seconds])
    return (rows,)


LEFT_OUT = Function(
    id="17.5",
    title="The error on sources that were not seen",
    task=r"""
        **Given** `rows` of runs, each with the name of its source, the bound of its
        step and the measured seconds. The model has one number, an efficiency: it
        predicts the bound over the efficiency. The efficiency of a row is its bound
        over its measured time.

        **Wanted** a function that returns the mean over all rows of
        $|\text{predicted}/\text{measured} - 1|$, where each row is predicted with the
        median efficiency of the rows of all *other* sources.
    """,
    stub="def error(rows): ...",
    spec=_left_out,
    gives=(("the mean error", ""),),
    cases=_sources,
    examples=(([["A", 1.0, 2.0], ["A", 2.0, 4.4], ["B", 3.0, 4.0], ["B", 1.0, 1.5]],),),
    rtol=1e-6,
    slips=(
        Slip(
            "its own source in the fit",
            _in_the_fit,
            "The model has then seen the very source that it predicts.",
        ),
        Slip(
            "only the row left out",
            _row_left_out,
            "The other rows of the same source tell nearly as much as the row itself. "
            "Leave out all rows of its source.",
        ),
        Slip(
            "times the efficiency",
            _upside_down,
            "An efficiency below one makes a step longer than its bound: divide by it.",
        ),
    ),
    hint="For each row, collect the efficiencies of the rows whose source differs.",
    solution="""
        ```python
        from statistics import fmean, median

        def error(rows):
            errors = []
            for source, bound, seconds in rows:
                others = [b / s for name, b, s in rows if name != source]
                predicted = bound / median(others)
                errors.append(abs(predicted / seconds - 1))
            return fmean(errors)
        ```
    """,
)

BET = Number(
    id="17.6",
    title="How late may it be?",
    task=r"""
        **Given** a prediction of 5.0 s for a step. In 8 of 10 runs of this kind,
        measured over predicted time lies between 0.85 and 1.15, and one run in ten is
        above. You train for 1,000,000 steps.

        **Wanted** the number of days that the training takes if you plan for the
        slowest of these 8 in 10 runs.
    """,
    stub="days = ...",
    unit="days",
    expected=lambda: 5.0 * 1.15 * 1e6 / 86_400,
    slips=(
        Slip(
            "the prediction itself",
            lambda right: 5.0 * 1e6 / 86_400,
            "About every second run takes longer than its prediction.",
        ),
        Slip(
            "the fastest",
            lambda right: 5.0 * 0.85 * 1e6 / 86_400,
            "That is the other end of the band.",
        ),
        Slip(
            "divided by the band",
            lambda right: 5.0 / 0.85 * 1e6 / 86_400,
            "The band is measured over predicted, so multiply by its upper end.",
        ),
    ),
    hint="86,400 seconds a day; the upper end of the band times the prediction.",
    solution="""
        ```python
        days = 5.0 * 1.15 * 1_000_000 / 86_400
        ```
    """,
)

QUESTIONS = (STEP, GATHER, ROWS, FIT, LEFT_OUT, BET)
