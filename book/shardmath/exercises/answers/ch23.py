"""Questions of chapter 23, "Precision"."""

import math

from shardmath.exercises.kinds import Chapter, Function, Number, Slip
from shardmath.hardware.number_formats import E4M3, E5M2, NumberFormat

CHAPTER = Chapter(
    title="Precision",
    topics=(
        "values and errors of number formats, scales and blocks, sums that stall, "
        "stochastic rounding, and what a narrower format gains"
    ),
    intro="""
        from the values of a format to the time of a training step. Answers are in base
        units, and shares are numbers between 0 and 1. In 23.12 to 23.14 you write a
        number format, a rounding, and a quantizer yourself.
    """,
    setup="""
        import math

        from shardmath.exercises import check, report
        from shardmath.hardware import chips
    """,
)

LARGEST = Number(
    id="23.1",
    title="The largest value",
    task=r"""
        **Given** a format of 8 bits: a sign, three bits of exponent with a bias of 3,
        and four bits of mantissa. No code is set aside for infinity or NaN.

        **Wanted** the largest value of this format.
    """,
    stub="largest = ...",
    unit="",
    expected=lambda: NumberFormat("e3m4", 3, 4, "saturation").largest,
    rtol=1e-6,
    slips=(
        Slip(
            "a code for infinity",
            lambda right: 15.5,
            "Did you reserve the largest exponent for infinity and NaN? Here it is "
            "used for values.",
        ),
        Slip(
            "the power of two alone",
            lambda right: 16.0,
            "That is the start of the highest binade. How far does the mantissa reach?",
        ),
        Slip(
            "the next power of two",
            lambda right: 32.0,
            "The mantissa stops one step below the next power of two.",
        ),
        Slip(
            "no bias",
            lambda right: right * 8,
            "Did you subtract the bias from the stored exponent?",
        ),
    ),
    hint="The largest stored exponent is 7, and the largest mantissa is 15.",
    solution=r"""
        The exponent is $7 - 3 = 4$, and the mantissa adds 15 sixteenths.

        ```python
        largest = 2**4 * (1 + 15 / 16)
        ```
    """,
)

NEXT = Number(
    id="23.2",
    title="The next value",
    task=r"""
        **Given** the format e4m3, with three bits of mantissa.

        **Wanted** its smallest value above 20.
    """,
    stub="following = ...",
    unit="",
    expected=lambda: 20.0 + E4M3.spacing(20.0),
    rtol=1e-6,
    slips=(
        Slip(
            "whole numbers",
            lambda right: 21.0,
            "Is 21 in the format? The binade from 16 to 32 has eight steps.",
        ),
        Slip(
            "two bits of mantissa",
            lambda right: 24.0,
            "That is the next value of a format with two bits of mantissa.",
        ),
        Slip(
            "the next power of two",
            lambda right: 32.0,
            "That is the start of the next binade. There are values in between.",
        ),
    ),
    hint="Into how many steps is the binade from 16 to 32 divided?",
    solution="""
        The binade from 16 to 32 has eight steps of 2.

        ```python
        following = 20 + 16 / 2**3
        ```
    """,
)

RELATIVE = Number(
    id="23.3",
    title="A typical error",
    task=r"""
        **Given** a float with five bits of mantissa, and values whose logarithms are
        spread evenly.

        **Wanted** the rms of the relative error after rounding to the nearest value.
    """,
    stub="error = ...",
    unit="",
    expected=lambda: NumberFormat("e5m5", 5, 5).rms_error,
    slips=(
        Slip(
            "at the lower end of a binade",
            lambda right: right / math.sqrt(3 / (8 * math.log(2))),
            "That is the error at the lower end of a binade, where it is largest.",
        ),
        Slip(
            "the largest error",
            lambda right: 1 / 64,
            "That is half a step, which is the largest error and not the typical one.",
        ),
        Slip(
            "a whole step",
            lambda right: 2 * right,
            "Is a value moved by up to a whole step? The nearest value is at most half "
            "a step away.",
        ),
    ),
    hint="Use formula (23.2).",
    solution=r"""
        The first factor of (23.2) is $2^{-6}/\sqrt3$, because $m$ is 5.

        ```python
        error = 2**-6 / math.sqrt(3) * math.sqrt(3 / (8 * math.log(2)))
        ```
    """,
)

STORED = Number(
    id="23.4",
    title="Through the scale and back",
    task=r"""
        **Given** an array whose largest magnitude is 0.9, stored in e4m3 with one scale
        as in (23.3). The largest value of e4m3 is 448, and the format has three bits of
        mantissa. One value of the array is 0.0217.

        **Wanted** what this value becomes after scaling, rounding, and scaling back.
    """,
    stub="value = ...",
    unit="",
    expected=lambda: E4M3.round(0.0217 * 448 / 0.9) * 0.9 / 448,
    rtol=1e-4,
    slips=(
        Slip(
            "not rounded",
            lambda right: 0.0217,
            "That is the value itself. Which value of e4m3 is nearest to it after it "
            "has been scaled?",
        ),
        Slip(
            "not scaled back",
            lambda right: 11.0,
            "That is the stored value. Multiply it by the scale.",
        ),
        Slip(
            "rounded down",
            lambda right: 10 * 0.9 / 448,
            "Did you cut off what doesn't fit? Take the nearest value.",
        ),
        Slip(
            "without a scale",
            lambda right: E4M3.round(0.0217),
            "Did you round the value without dividing it by the scale?",
        ),
    ),
    hint="Divide by the scale, find the binade and its step, round, and multiply.",
    solution="""
        The scaled value is 10.8. This is in the binade from 8 to 16, whose eight steps
        are 1 apart, so it becomes 11.

        ```python
        s = 0.9 / 448
        value = round(0.0217 / s) * s
        ```
    """,
)

ZEROS = Number(
    id="23.5",
    title="How many become zero?",
    task=r"""
        **Given** a Gaussian array with a standard deviation of 1, in which a single
        outlier has a magnitude of 60. The array is stored as int8 with one scale, so
        the outlier becomes 127.

        **Wanted** the share of the ordinary values that become zero. A Gaussian value
        has a magnitude below $t$ with probability `math.erf(t / math.sqrt(2))`.
    """,
    stub="share = ...",
    unit="",
    expected=lambda: math.erf(60 / 127 / 2 / math.sqrt(2)),
    slips=(
        Slip(
            "a whole step",
            lambda right: math.erf(60 / 127 / math.sqrt(2)),
            "Which values are rounded to zero? Those below half of a step.",
        ),
        Slip(
            "the scale of 256 codes",
            lambda right: math.erf(60 / 256 / 2 / math.sqrt(2)),
            "The outlier becomes 127, so the scale is its magnitude over 127.",
        ),
        Slip(
            "what is left",
            lambda right: 1 - right,
            "That is the share that does not become zero.",
        ),
    ),
    hint="Find the scale, then the magnitude below which a value is rounded to zero.",
    solution="""
        The scale is 60/127, and every magnitude below half of it becomes zero.

        ```python
        s = 60 / 127
        share = math.erf(s / 2 / math.sqrt(2))
        ```
    """,
)

BITS = Number(
    id="23.6",
    title="Bits per value",
    task=r"""
        **Given** weights of 4 bits in blocks of 64. Each block has a scale in fp16 and
        a zero point of 4 bits.

        **Wanted** the bits per value, including scales and zero points.
    """,
    stub="bits = ...",
    unit="",
    expected=lambda: 4 + (16 + 4) / 64,
    rtol=1e-4,
    slips=(
        Slip(
            "no zero point",
            lambda right: 4 + 16 / 64,
            "Did you leave out the zero point?",
        ),
        Slip(
            "values alone",
            lambda right: 4.0,
            "That leaves out what each block stores besides its values.",
        ),
        Slip(
            "a scale for each value",
            lambda right: 4.0 + 16 + 4,
            "How many values share a scale and a zero point?",
        ),
    ),
    hint="Use formula (23.4) with everything that a block stores.",
    solution="""
        ```python
        bits = 4 + (16 + 4) / 64
        ```
    """,
)

FITS = Number(
    id="23.7",
    title="How much room for the cache?",
    task=r"""
        **Given** a model of 120 billion parameters on one GPU with 80 GiB of HBM. Its
        weights are stored as values of 4 bits in blocks of 32, each with a scale of 8
        bits. A token of the KV cache takes 72 KiB.

        **Wanted** the number of tokens that fit next to the weights, if nothing else
        needs memory.
    """,
    stub="tokens = ...",
    unit="tokens",
    expected=lambda: (80 * 2**30 - 120e9 * 4.25 / 8) / (72 * 2**10),
    slips=(
        Slip(
            "no scales",
            lambda right: (80 * 2**30 - 120e9 * 4 / 8) / (72 * 2**10),
            "Did you leave out the scales of the blocks?",
        ),
        Slip(
            "GB for GiB",
            lambda right: (80e9 - 120e9 * 4.25 / 8) / (72 * 2**10),
            "The capacity is in GiB, which is 2^30 bytes.",
        ),
        Slip(
            "blocks of 16",
            lambda right: (80 * 2**30 - 120e9 * (4 + 8 / 16) / 8) / (72 * 2**10),
            "How many values share a scale? Blocks of 32 add a quarter of a bit.",
        ),
        Slip(
            "an empty GPU",
            lambda right: 80 * 2**30 / (72 * 2**10),
            "The weights are in the same memory. How much of it is left?",
        ),
    ),
    hint="How many bytes do the weights take, with their scales?",
    solution="""
        With its share of a scale, a weight takes 4.25 bits. So the weights take 63.75
        of the 85.9 GB.

        ```python
        weights = 120e9 * (4 + 8 / 32) / 8
        tokens = (80 * 2**30 - weights) / (72 * 2**10)
        ```
    """,
)

PRODUCT = Number(
    id="23.8",
    title="Two formats in one matmul",
    task=r"""
        **Given** a matmul whose activations are rounded to e4m3 (three bits of
        mantissa) and whose gradients are rounded to e5m2 (two bits). The signs of the
        products are random, the sum is exact, and formula (23.2) gives the relative
        error of each input.

        **Wanted** the rms error of the result divided by its rms value.
    """,
    stub="error = ...",
    unit="",
    expected=lambda: math.hypot(E4M3.rms_error, E5M2.rms_error),
    slips=(
        Slip(
            "added",
            lambda right: E4M3.rms_error + E5M2.rms_error,
            "Did you add the errors? They are independent, so their squares add.",
        ),
        Slip(
            "one input alone",
            lambda right: E5M2.rms_error,
            "That is the error of the gradients alone.",
        ),
        Slip(
            "both in e4m3",
            lambda right: math.sqrt(2) * E4M3.rms_error,
            "That is the error if both inputs are in e4m3.",
        ),
        Slip(
            "both in e5m2",
            lambda right: math.sqrt(2) * E5M2.rms_error,
            "That is the error if both inputs are in e5m2.",
        ),
    ),
    hint="Each product has one error from each of its factors.",
    solution=r"""
        The errors of the two factors are independent, so their squares add.

        ```python
        e4m3, e5m2 = (0.7355 * 2 ** -(m + 1) / math.sqrt(3) for m in (3, 2))
        error = math.sqrt(e4m3**2 + e5m2**2)
        ```
    """,
)

STALL = Number(
    id="23.9",
    title="Where the sum stops",
    task=r"""
        **Given** a sum that starts at 0 and is kept in fp16, which has ten bits of
        mantissa. The same value, 1/8, is added to it again and again, and each result
        is rounded to the nearest value, ties to even.

        **Wanted** the value at which the sum stops growing.
    """,
    stub="stop = ...",
    unit="",
    expected=lambda: 2.0**11 / 8,
    rtol=1e-6,
    slips=(
        Slip(
            "adding ones",
            lambda right: 2048.0,
            "That is where a sum of ones stops. Here the terms are smaller.",
        ),
        Slip(
            "one binade too early",
            lambda right: right / 2,
            "In the binade below, 1/8 is a whole step, so the sum still grows.",
        ),
        Slip(
            "one binade too late",
            lambda right: right * 2,
            "The sum already stops where the term is exactly half a step, because the "
            "tie goes back to the even neighbour.",
        ),
    ),
    hint="Where are the values of fp16 twice as far apart as the term?",
    solution=r"""
        The sum stops in the first binade whose step is twice the term. A step is
        $2^{e-10}$, so $2^{e-10} = 1/4$ and $e = 8$.

        ```python
        stop = 2**8
        ```
    """,
)

PROMOTION = Number(
    id="23.10",
    title="What promotion costs",
    task=r"""
        **Given** a chip whose matmuls reach 4,500 TFLOPs/s in fp8 and whose vector
        units have a peak of 75 TFLOPs/s, which counts a multiply-add as two FLOPs.
        After every 256 products of a dot product, the vector units add the partial sum
        to a number in fp32. An addition takes as long as a multiply-add.

        **Wanted** the time of these additions divided by the time of the products.
    """,
    stub="share = ...",
    unit="",
    expected=lambda: (2 / 75e12) / (2 * 256 / 4500e12),
    slips=(
        Slip(
            "one FLOP for an addition",
            lambda right: right / 2,
            "An addition occupies a unit as long as a multiply-add, which the peak "
            "counts as two FLOPs.",
        ),
        Slip(
            "one FLOP for a product",
            lambda right: right * 2,
            "A product and its addition are two FLOPs of the matmul.",
        ),
        Slip(
            "after every product",
            lambda right: right * 256,
            "The vector units do one addition for every 256 products.",
        ),
        Slip(
            "upside down",
            lambda right: 1 / right,
            "Did you divide the wrong way round?",
        ),
    ),
    hint="How long do 256 products take, and how long does one addition take?",
    solution="""
        An addition takes as long as two FLOPs of the vector units.

        ```python
        products = 2 * 256 / 4_500e12
        addition = 2 / 75e12
        share = addition / products
        ```
    """,
)

SPREAD = Number(
    id="23.11",
    title="The noise of stochastic rounding",
    task=r"""
        **Given** a bf16 weight of 1.0 that receives 512 updates of $2^{-10}$ with
        stochastic rounding. From 1 to 2, the values of bf16 are $2^{-7}$ apart. Each
        update is rounded up with the probability in (23.7), independently of the
        others.

        **Wanted** the standard deviation of the weight after all updates.
    """,
    stub="spread = ...",
    unit="",
    expected=lambda: 2**-7 * math.sqrt(512 * (1 / 8) * (7 / 8)),
    slips=(
        Slip(
            "an update at a time",
            lambda right: 2**-10 * math.sqrt(512 * (1 / 8) * (7 / 8)),
            "By how much does the weight move when it is rounded up? By a whole step.",
        ),
        Slip(
            "a fair coin",
            lambda right: 2**-7 * math.sqrt(512 / 4),
            "How likely is it that an update is rounded up?",
        ),
        Slip(
            "one update",
            lambda right: right / math.sqrt(512),
            "That is the spread that a single update adds. The variances of all "
            "updates add up.",
        ),
        Slip(
            "the variance",
            lambda right: right**2,
            "That is the variance, not the standard deviation.",
        ),
    ),
    hint="The number of updates that are rounded up has a binomial distribution.",
    solution=r"""
        An update is an eighth of a step, so it is rounded up with probability 1/8. The
        number of steps has the variance $512 \cdot 1/8 \cdot 7/8 = 56$.

        ```python
        spread = 2**-7 * math.sqrt(512 * 1 / 8 * 7 / 8)
        ```
    """,
)


def _values(exponent: int, mantissa: int) -> list[float]:
    bias, found = 2 ** (exponent - 1) - 1, []
    for stored in range(2**exponent):
        for M in range(2**mantissa):
            if stored:
                found.append(2.0 ** (stored - bias) * (1 + M / 2**mantissa))
            else:
                found.append(2.0 ** (1 - bias) * M / 2**mantissa)
    return found


def _no_subnormals(exponent: int, mantissa: int) -> list[float]:
    bias = 2 ** (exponent - 1) - 1
    return [
        2.0 ** (stored - bias) * (1 + M / 2**mantissa)
        for stored in range(2**exponent)
        for M in range(2**mantissa)
    ]


def _low_subnormals(exponent: int, mantissa: int) -> list[float]:
    bias, right = 2 ** (exponent - 1) - 1, _values(exponent, mantissa)
    low = [2.0**-bias * M / 2**mantissa for M in range(2**mantissa)]
    return low + right[2**mantissa :]


def _ieee(exponent: int, mantissa: int) -> list[float]:
    return _values(exponent, mantissa)[: -(2**mantissa)]


def _some_bits(rng) -> tuple:
    return rng.randint(2, 4), rng.randint(1, 4)


VALUES = Function(
    id="23.12",
    title="Enumerate a format",
    task=r"""
        **Given** the number of bits of the `exponent` (two or more) and of the
        `mantissa` of a float whose bias is `2**(exponent - 1) - 1`. No code is set
        aside for infinity or NaN.

        **Wanted** a function that returns the list of all its values from 0 upward,
        including the subnormal ones.
    """,
    stub="def values(exponent, mantissa): ...",
    spec=_values,
    cases=_some_bits,
    examples=((2, 1), (4, 3)),
    slips=(
        Slip(
            "no subnormal values",
            _no_subnormals,
            "Where is 0? With a stored exponent of 0 the leading one is missing.",
        ),
        Slip(
            "subnormal values too small",
            _low_subnormals,
            "The subnormal values have the exponent of the lowest binade, 1 − bias.",
        ),
        Slip(
            "codes for infinity",
            _ieee,
            "Did you leave out the largest exponent? Here its codes are values.",
        ),
    ),
    hint="Go through the stored exponents and mantissas in order, and use (23.1) for "
    "all but the lowest exponent.",
    solution="""
        A stored exponent of 0 has no leading one, and the same steps as a stored
        exponent of 1.

        ```python
        def values(exponent, mantissa):
            bias, found = 2 ** (exponent - 1) - 1, []
            for stored in range(2**exponent):
                for M in range(2**mantissa):
                    implied = 1 if stored else 0
                    e = max(stored, 1) - bias
                    found.append(2.0**e * (implied + M / 2**mantissa))
            return found
        ```
    """,
)


def _nearest(x: float, mantissa: int) -> float:
    if not x:
        return 0.0
    step = 2.0 ** (math.floor(math.log2(abs(x))) - mantissa)
    return round(x / step) * step


def _cut(x: float, mantissa: int) -> float:
    if not x:
        return 0.0
    step = 2.0 ** (math.floor(math.log2(abs(x))) - mantissa)
    return math.trunc(x / step) * step


def _half_up(x: float, mantissa: int) -> float:
    if not x:
        return 0.0
    step = 2.0 ** (math.floor(math.log2(abs(x))) - mantissa)
    return math.copysign(math.floor(abs(x) / step + 0.5) * step, x)


def _fixed(x: float, mantissa: int) -> float:
    step = 2.0**-mantissa
    return round(x / step) * step


def _a_value(rng) -> tuple:
    """Values of many binades; every third one is a tie."""
    mantissa, e = rng.randint(2, 7), rng.randint(-6, 6)
    steps = rng.randint(2**mantissa, 2 ** (mantissa + 1) - 1)
    part = rng.choice([0.5, rng.uniform(0.05, 0.45), rng.uniform(0.55, 0.95)])
    sign = rng.choice([-1, 1])
    return sign * (steps + part) * 2.0 ** (e - mantissa), mantissa


ROUND = Function(
    id="23.13",
    title="Round to a few bits",
    task=r"""
        **Given** a number `x` and the number of bits of a `mantissa`. The exponent has
        no limits.

        **Wanted** a function that returns the nearest value with that many bits of
        mantissa. If two values are equally near, it returns the one whose last bit is
        0.
    """,
    stub="def nearest(x, mantissa): ...",
    spec=_nearest,
    cases=_a_value,
    examples=((300.0, 3), (17.0, 3), (19.0, 3), (-0.7, 2), (0.0, 3)),
    slips=(
        Slip(
            "cut off",
            _cut,
            "Did you cut off the bits that don't fit? That always makes a number "
            "smaller.",
        ),
        Slip(
            "halves rounded up",
            _half_up,
            "Which neighbour do you take if both are equally near? Rounding such ties "
            "away from zero makes sums grow.",
        ),
        Slip(
            "the same step everywhere",
            _fixed,
            "The step depends on the binade of the number.",
        ),
    ),
    hint="Find the binade with `math.frexp` or `math.log2`, then its step. Python's "
    "`round` takes ties to the even neighbour.",
    solution="""
        Divide by the step of the binade, and only rounding to a whole number is left.

        ```python
        import math

        def nearest(x, mantissa):
            if x == 0:
                return 0.0
            e = math.frexp(abs(x))[1] - 1
            step = 2.0 ** (e - mantissa)
            return round(x / step) * step
        ```
    """,
)


def _quantized(xs: list, block: int, largest: int) -> list:
    found = []
    for start in range(0, len(xs), block):
        some = xs[start : start + block]
        s = max(map(abs, some)) / largest
        found += [round(x / s) * s if s else 0.0 for x in some]
    return found


def _one_scale(xs: list, block: int, largest: int) -> list:
    return _quantized(xs, len(xs), largest)


def _stored(xs: list, block: int, largest: int) -> list:
    found = []
    for start in range(0, len(xs), block):
        some = xs[start : start + block]
        s = max(map(abs, some)) / largest
        found += [float(round(x / s)) if s else 0.0 for x in some]
    return found


def _signed_maximum(xs: list, block: int, largest: int) -> list:
    found = []
    for start in range(0, len(xs), block):
        some = xs[start : start + block]
        s = abs(max(some)) / largest
        some = [
            max(-largest, min(largest, round(x / s))) * s if s else 0.0 for x in some
        ]
        found += some
    return found


def _an_array(rng) -> tuple:
    """With an outlier, sometimes a block of zeros, and sometimes a short last block."""
    block = rng.choice([4, 8])
    xs = [round(rng.gauss(0, 1), 4) for _ in range(3 * block + rng.choice([0, 3]))]
    xs[rng.randrange(len(xs))] = -round(rng.uniform(20, 40), 3)
    if rng.random() < 0.3:
        xs[:block] = [0.0] * block
    return xs, block, rng.choice([7, 127])


QUANTIZE = Function(
    id="23.14",
    title="Quantize in blocks",
    task=r"""
        **Given** a list `xs`, the size of a `block`, and the `largest` integer of a
        format, such as 127. Blocks are consecutive; the last one may be shorter. The
        scale of a block turns its largest magnitude into the largest integer.

        **Wanted** a function that returns the list after scaling, rounding to integers
        and scaling back. A block of zeros stays zero.
    """,
    stub="def quantize(xs, block, largest): ...",
    spec=_quantized,
    cases=_an_array,
    examples=(
        ([0.1, -0.4, 0.2, 30.0, 0.5, 0.25, -1.0, 0.125], 4, 7),
        ([0.0, 0.0, 1.0, 2.0], 2, 127),
    ),
    slips=(
        Slip(
            "one scale for all",
            _one_scale,
            "Did you use one scale for the whole list? Each block has its own.",
        ),
        Slip(
            "not scaled back",
            _stored,
            "Those are the stored integers. Multiply them by the scale of the block.",
        ),
        Slip(
            "the largest value, not magnitude",
            _signed_maximum,
            "Which value sets the scale? It may be negative.",
        ),
    ),
    hint="For each block, find the largest magnitude and the scale. Then divide, "
    "round and multiply.",
    solution="""
        ```python
        def quantize(xs, block, largest):
            found = []
            for start in range(0, len(xs), block):
                some = xs[start : start + block]
                s = max(abs(x) for x in some) / largest
                found += [round(x / s) * s if s else 0.0 for x in some]
            return found
        ```
    """,
)

AMDAHL = Number(
    id="23.15",
    title="From fp8 to fp4",
    task=r"""
        **Given** a step of 20 s in bf16. When its matmuls with weights changed from
        bf16 to fp8, they became twice as fast, and the step took 15 s. Nothing else
        changed. On a newer chip everything runs at the same speed, but these matmuls
        can also run in fp4, four times as fast as in bf16.

        **Wanted** the time of the step in fp4, in seconds.
    """,
    stub="seconds = ...",
    unit="s",
    expected=lambda: 20 - 10 * 3 / 4,
    rtol=1e-3,
    slips=(
        Slip(
            "the same gain again",
            lambda right: 15 * 15 / 20,
            "Is the gain the same again? The matmuls are a smaller part of the step by "
            "now.",
        ),
        Slip(
            "the whole step",
            lambda right: 20 / 4,
            "Only the matmuls with weights get faster.",
        ),
        Slip(
            "half of the step in fp8",
            lambda right: 15 / 2,
            "Only the matmuls with weights get faster, and not the whole step.",
        ),
    ),
    hint="How many seconds of the step in bf16 are matmuls with weights?",
    solution="""
        In fp8 the matmuls take half of their time, which saved 5 s. So they took 10 s
        in bf16 and take 2.5 s in fp4.

        ```python
        matmuls = 2 * (20 - 15)
        seconds = 20 - matmuls + matmuls / 4
        ```
    """,
)

QUESTIONS = (
    LARGEST,
    NEXT,
    RELATIVE,
    STORED,
    ZEROS,
    BITS,
    FITS,
    PRODUCT,
    STALL,
    PROMOTION,
    SPREAD,
    VALUES,
    ROUND,
    QUANTIZE,
    AMDAHL,
)
