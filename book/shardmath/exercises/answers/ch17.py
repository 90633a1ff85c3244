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
        from the parts of a prediction to a model that you fit yourself. Each question
        names the unit of its answer. In 17.4 you fit two numbers and predict runs that
        were not in the fit. In 17.5 you measure how wrong such a model is on sources
        that it has not seen.
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
        **Given** a pipeline of $p = 4$ equal stages, interleaved with $v = 2$ chunks
        per stage, and $M = 8$ microbatches. With both of its chunks, a stage takes
        0.11 s for the forward pass of a microbatch and 0.24 s for the backward pass.
        The exposed part of the gradient exchange takes 0.3 s, and the optimizer takes
        0.05 s.

        **Wanted** the predicted time of a step in seconds.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: (_M + (_P - 1) / _V) * (_F + _B) + 0.35,
    slips=(
        Slip(
            "no chunks",
            lambda right: (_M + _P - 1) * (_F + _B) + 0.35,
            "Did you leave out the chunks? Interleaving divides the bubble by the "
            "number of chunks per stage.",
        ),
        Slip(
            "no bubble",
            lambda right: _M * (_F + _B) + 0.35,
            "Did you leave out the bubble? A stage waits while the pipeline fills and "
            "drains.",
        ),
        Slip(
            "the bubble for all stages",
            lambda right: (_M + _P / _V) * (_F + _B) + 0.35,
            "Did you count every stage? The first stage waits for only p − 1 others.",
        ),
        Slip(
            "everything divided by the chunks",
            lambda right: (_M + _P - 1) / _V * (_F + _B) + 0.35,
            "Did you divide everything by the chunks? They shorten the bubble, but "
            "not the work of a stage.",
        ),
        Slip(
            "only what repeats",
            lambda right: (_M + (_P - 1) / _V) * (_F + _B),
            "Did you leave out what happens once per step? The gradient exchange and "
            "the optimizer take time, too.",
        ),
        Slip(
            "once per microbatch",
            lambda right: (_M + (_P - 1) / _V) * (_F + _B + 0.35),
            "Did you count the gradient exchange and the optimizer for every "
            "microbatch? They come only once per step.",
        ),
    ),
    hint="Formula (12.6) says how long a stage waits for the others. Which parts of "
    "(17.1) come only once per step?",
    solution="""
        A stage waits for $p-1$ others, and interleaving divides this wait by $v$. So
        the bubble takes as long as $(p-1)/v$ more microbatches. The gradient exchange
        and the optimizer come once per step.

        ```python
        seconds = (8 + (4 - 1) / 2) * (0.11 + 0.24) + 0.3 + 0.05
        ```
    """,
)

GATHER = Number(
    id="17.2",
    title="What a gather leaves exposed",
    task=r"""
        **Given** FSDP, where the gathers of the forward pass would take 1.5 s if the
        links ran at their full rate. Large collectives reach only 75 % of it. The work
        that can hide the gathers takes 1.8 s. Even with enough work, the share
        $x = 0.75$ of each gather stays exposed.

        **Wanted** the exposed seconds, $\max(0, g - F) + x\,g$, where $g$ is the time
        that the gathers really take, and $F$ is the time of the work.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 2.0 - 1.8 + 0.75 * 2.0,
    slips=(
        Slip(
            "links at their full rate",
            lambda right: 0.75 * 1.5,
            "The links reach only 75 % of their rate, so the gathers take 2 s.",
        ),
        Slip(
            "shorter instead of longer",
            lambda right: 0.75 * 1.5 * 0.75,
            "Did you multiply by 75 %? Below the full rate, the gathers take longer, "
            "so divide.",
        ),
        Slip(
            "a negative excess",
            lambda right: 1.5 - 1.8 + 0.75 * 1.5,
            "Can an excess be negative? Besides, the links reach only 75 % of their "
            "rate, so the gathers take 2 s.",
        ),
        Slip(
            "only what exceeds the work",
            lambda right: 2.0 - 1.8,
            "Did you leave out the share x? This part of all gathers stays exposed as "
            "well.",
        ),
        Slip(
            "only the share",
            lambda right: 0.75 * 2.0,
            "The gathers take longer than the work, so the excess is exposed as well.",
        ),
        Slip(
            "the hidden share",
            lambda right: 2.0 - 1.8 + 0.25 * 2.0,
            "Did you take x for the share that is hidden? It is the share that stays "
            "exposed.",
        ),
        Slip(
            "all of it",
            lambda right: 2.0,
            "Did you count the gathers as fully exposed? Only two parts are: the share "
            "x, and the time by which the gathers exceed the work.",
        ),
    ),
    hint="What is g? The gathers would take 1.5 s at the full rate, but the links "
    "reach only 75 % of it.",
    solution="""
        At 75 % of the full rate, the gathers take 2 s, which is 0.2 s longer than the
        work. This excess is exposed, and so is the share $x$ of the gathers.

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
        **Given** an H100 whose large matmuls sustain 795 TFLOPs/s in bf16. The matmuls
        of a layer reach the fraction $e_g = 0.77$ of that rate. Its HBM has a bandwidth
        of 3.35 TB/s, and reads and writes reach the fraction $e_h = 0.46$ of it. A
        matmul of $m$ tokens with a weight of $16{,}384 \times 16{,}384$ in bf16 reads
        the weight from HBM. Count only the bytes of the weight, not those of the
        activations.

        **Wanted** the number of tokens $m$ at which reading the weight takes as long as
        the math.
    """,
    stub="tokens = ...",
    unit="tokens",
    expected=lambda: 0.77 * 795e12 / (0.46 * 3.35e12),
    slips=(
        Slip(
            "at the peaks",
            lambda right: 795e12 / 3.35e12,
            "Did you use the full rates? The math and the memory reach only the "
            "fractions e_g and e_h of them.",
        ),
        Slip(
            "one FLOP per value",
            lambda right: 2 * 0.77 * 795e12 / (0.46 * 3.35e12),
            "Did you count one FLOP per value? A matmul of m tokens takes 2·m FLOPs "
            "for every value of the weight.",
        ),
        Slip(
            "one byte per value",
            lambda right: 0.5 * 0.77 * 795e12 / (0.46 * 3.35e12),
            "Did you count one byte per value? A value in bf16 takes two bytes.",
        ),
        Slip(
            "memory at its peak",
            lambda right: 0.77 * 795e12 / 3.35e12,
            "Did you use the full bandwidth? The memory reaches only the fraction e_h "
            "of it.",
        ),
        Slip(
            "math at its peak",
            lambda right: 795e12 / (0.46 * 3.35e12),
            "Did you use the full rate of the math? The matmuls of a layer reach only "
            "the fraction e_g of it.",
        ),
        Slip(
            "upside down",
            lambda right: 0.46 * 3.35e12 / (0.77 * 795e12),
            "That is a number of bytes per FLOP. Did you divide the wrong way round?",
        ),
    ),
    hint="With a weight of k × n values, the math takes 2·m·k·n FLOPs. How many bytes "
    "does the weight take? What cancels if you set the two times equal?",
    solution="""
        For every value of the weight, the matmul takes $2m$ FLOPs and reads 2 bytes.
        The factors of 2 cancel, so the two times are equal when $m$ is the rate that
        the math reaches, divided by the bandwidth that the memory reaches.

        ```python
        tokens = 0.77 * 795e12 / (0.46 * 3.35e12)
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
        **Given** `rows` of published runs. Each row has three times in seconds: that of
        the run's math at the sustained rate, that of its passes over memory at the full
        bandwidth, and the measured time of a step. The model is
        $T = a\cdot\text{math} + b\cdot\text{memory}$, so $1/a$ and $1/b$ are the
        fractions that matmuls and passes reach.

        **Wanted** a function that finds $a$ and $b$ from `rows` and returns the
        predicted seconds of each of the `new` runs. These runs were not in the fit, and
        only their math and memory are given. Take the $a$ and $b$ that minimise the sum
        of the squares of the *relative* errors. A relative error is the predicted time
        divided by the measured time, minus one.
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
            "Did you minimise the absolute errors? Then the longest runs dominate the "
            "fit. Divide each row by its measured time first.",
        ),
        Slip(
            "one number for both",
            _one_number,
            "Did you fit a single number? The model has two: a for the math and b for "
            "the memory.",
        ),
        Slip(
            "nothing fitted",
            lambda rows, new: [math + memory for math, memory in new],
            "That is the sum at full rates. Find a and b from the rows.",
        ),
    ),
    hint="""
        Divide the math and the memory of each row by its measured time. Which two
        numbers then bring a · math + b · memory nearest to one in all rows? You can
        solve two equations with two unknowns, or use `numpy.linalg.lstsq`.
    """,
    solution="""
        If you divide a row by its measured time, its relative error is the distance of
        the model from one. At the minimum of the sum of squares, its derivatives with
        respect to $a$ and $b$ are zero, which gives two equations.

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


def _mean_efficiency(rows: list) -> float:
    errors = []
    for source, bound, seconds in rows:
        others = [b / s for name, b, s in rows if name != source]
        errors.append(abs(bound / fmean(others) / seconds - 1))
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
        **Given** `rows`, one for each run: the name of the run's source, the lower
        bound on its step time and its measured step time, both in seconds. The model
        has a single parameter, an efficiency, and the step time that it predicts is the
        bound divided by the efficiency. The efficiency of a row is its bound divided by
        its measured time.

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
            "Did you take the median of all rows? Then the model has already seen the "
            "source that it predicts.",
        ),
        Slip(
            "only the row left out",
            _row_left_out,
            "Did you leave out only the row itself? The other rows of its source tell "
            "the model nearly as much, so leave them out too.",
        ),
        Slip(
            "the mean efficiency",
            _mean_efficiency,
            "Did you take the mean of the efficiencies? The task asks for the median.",
        ),
        Slip(
            "times the efficiency",
            _upside_down,
            "Did you multiply by the efficiency? An efficiency below one makes a step "
            "longer than its bound, so divide by it.",
        ),
    ),
    hint="Which rows may the model see when it predicts a row? Collect the "
    "efficiencies of all rows from other sources.",
    solution="""
        Rows of the same source resemble each other, so the model may see no row from
        the source of the row that it predicts. The efficiency comes only from the other
        sources.

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
        **Given** a prediction of 5.0 s per step. In 8 of 10 runs of this kind, the
        ratio of measured to predicted time is in the band from 0.85 to 1.15, and in one
        run out of ten it is above the band. You train for 1,000,000 steps.

        **Wanted** the number of days that the training takes if you plan for the
        slowest of the runs within the band.
    """,
    stub="days = ...",
    unit="days",
    expected=lambda: 5.0 * 1.15 * 1e6 / 86_400,
    slips=(
        Slip(
            "the prediction itself",
            lambda right: 5.0 * 1e6 / 86_400,
            "That is the prediction itself. About half of all runs take longer than "
            "predicted.",
        ),
        Slip(
            "the fastest",
            lambda right: 5.0 * 0.85 * 1e6 / 86_400,
            "That is the fastest of the runs within the band. Which end of the band "
            "do you need?",
        ),
        Slip(
            "divided by the band",
            lambda right: 5.0 / 0.85 * 1e6 / 86_400,
            "Did you divide by an end of the band? The band holds for the ratio of "
            "measured to predicted time, so multiply by its upper end.",
        ),
    ),
    hint="A day has 86,400 seconds. Which end of the band belongs to the slowest runs?",
    solution="""
        The band holds for the ratio of measured to predicted time. So the slowest run
        within it takes the predicted time, multiplied by the upper end.

        ```python
        days = 5.0 * 1.15 * 1_000_000 / 86_400
        ```
    """,
)

QUESTIONS = (STEP, GATHER, ROWS, FIT, LEFT_OUT, BET)
