"""The live figure "number_line": an array, and under it the values of a format."""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

from ...hardware.number_formats import FORMATS, NumberFormat
from ..shapes import box, framed, line, written
from .controls import Choice, Drawing, Figure, Slider

EXPONENT = Slider("exponent", "Bits of exponent", "bits", 0, 8, 4, step=1)
MANTISSA = Slider("mantissa", "Bits of mantissa", "bits", 0, 10, 3, step=1)
SCALE = Slider(
    "scale",
    "The scale",
    "",
    -12,
    4,
    0,
    step=1,
    printed=lambda stop: "the array just fits" if not stop else f"2^{stop} of that",
)
GAUSSIAN, OUTLIER = "Gaussian", "Gaussian with one outlier"
ARRAY = Choice("array", "The array", (GAUSSIAN, OUTLIER), GAUSSIAN)
COUNT = 1000  # values of the array, which are quantiles, the same in every drawing
LARGER = 100  # the outlier, in standard deviations
LOW, HIGH = -14, 8  # binades that are drawn, in standard deviations
LEFT, RIGHT, WIDE = 12, 404, 416
TOP, BASE, LINE, TALL = 74, 178, 196, 26  # of the histogram, its base, and the ticks
BOTTOM = 262
TALLEST = 0.19  # share of the array in the tallest bar
PARTS = 2  # bars of the histogram in a binade
CLOSE = 1.6  # units between ticks, below which a binade is drawn as a block
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SEEN = {"kept": "hue3", "flushed": "hue8", "clipped": "hue4"}


def magnitudes(kind: str) -> tuple[float, ...]:
    """Magnitudes of a Gaussian array, in units of its standard deviation, ascending.

    Args:
        kind: an option of `ARRAY`.
    """
    normal = NormalDist()
    places = ((COUNT + n + 0.5) / (2 * COUNT) for n in range(COUNT))
    found = [normal.inv_cdf(place) for place in places]
    if kind == OUTLIER:
        found[-1] = float(LARGER)
    return tuple(found)


def named(exponent: int, mantissa: int) -> NumberFormat:
    """The known format with these bits, or one without a common name."""
    for one in FORMATS:
        if (one.exponent, one.mantissa) == (exponent, mantissa):
            return one
    if not exponent:
        return NumberFormat(f"int{mantissa + 1}", 0, mantissa, "saturation")
    bits = 1 + exponent + mantissa
    overflow = "infinity" if bits > 8 else "saturation"
    return NumberFormat(f"e{exponent}m{mantissa}", exponent, mantissa, overflow)


def rounded(
    values: Sequence[float], form: NumberFormat, scale: float
) -> tuple[float, ...]:
    """The values after scaling, rounding and scaling back, clipped if too large.

    Args:
        values: the values of the array.
        form: the format to round to.
        scale: a value is divided by this before it is rounded.
    """
    return tuple(scale * form.round(x / scale, saturate=True) for x in values)


def draw(exponent: int, mantissa: int, scale: int, array: str) -> Drawing:
    """The histogram of an array over the values of a format, and the error."""
    used = {}
    if exponent + mantissa < 2:
        mantissa = 2 - exponent
        used = {"mantissa": mantissa}
    form, values = named(exponent, mantissa), magnitudes(array)
    fits = values[-1] / form.largest
    by = fits * 2.0**scale
    kept = rounded(values, form, by)
    ordinary = [(x, q) for x, q in zip(values, kept, strict=True) if x < LARGER]
    square = sum(x * x for x, _ in ordinary)
    error = math.sqrt(sum((q - x) ** 2 for x, q in ordinary) / square)
    flushed = sum(q == 0 for q in kept) / COUNT
    clipped = sum(x > by * form.largest * (1 + 1e-12) for x in values) / COUNT
    title = f"{form.name}: {form.bits} bits"
    summary = (
        f"{title}. The rms error of the array is {_percent(error)} of its rms value. "
        f"Of its values, {_said(flushed, 'becomes 0')} and "
        f"{_said(clipped, 'is clipped')}."
    )
    rows = (
        ("", form.name),
        ("bits", str(form.bits)),
        ("largest over smallest value", f"{form.largest / form.smallest:,.4g}"),
        ("values in a binade", f"{2**mantissa:,}" if exponent else "it varies"),
        ("rms error over rms value", _percent(error)),
        ("becomes 0", _percent(flushed)),
        ("is clipped", _percent(clipped)),
    )
    data = {
        "name": form.name,
        "bits": form.bits,
        "error": error,
        "flushed": flushed,
        "clipped": clipped,
        "scale": by,
    }
    parts = (
        *_histogram(values, by * form.smallest / 2, by * form.largest),
        *_ticks(form, by),
        *_words(title, error, flushed, clipped),
    )
    svg = framed(title, summary, parts, WIDE, BOTTOM)
    return Drawing(svg, summary, rows, data, used=used)


def _percent(share: float) -> str:
    """A share in percent, with enough digits for a format with many bits."""
    return f"{share:.2%}" if share >= 1e-4 else f"{100 * share:.1g}%"


def _said(share: float, becomes: str) -> str:
    return f"{_percent(share)} {becomes}" if share else f"nothing {becomes}"


def _place(x: float) -> float:
    """Where a magnitude lies, on a scale of binades."""
    share = (math.log2(x) - LOW) / (HIGH - LOW)
    return LEFT + (RIGHT - LEFT) * min(1.0, max(0.0, share))


def _histogram(values: Sequence[float], least: float, most: float) -> Iterator[str]:
    """Bars over the binades; values that become 0 or are clipped in their colours."""
    count = (HIGH - LOW) * PARTS
    bars: dict[int, list[float]] = {}
    for x in values:
        at = math.floor((math.log2(x) - LOW) * PARTS)
        bars.setdefault(min(count - 1, max(0, at)), []).append(x)
    for at, some in sorted(bars.items()):
        middle = some[len(some) // 2]
        kind = "flushed" if middle < least else "clipped" if middle > most else "kept"
        left, right = (
            LEFT + (RIGHT - LEFT) * (at + edge) / count for edge in (0.06, 0.94)
        )
        high = (BASE - TOP) * min(1.0, len(some) / COUNT / TALLEST)
        spot = (left, BASE - max(3.0, high), right, BASE)
        yield box(*spot, SEEN[kind], fill=0.75, edge=0, round=0, key=f"bar{at}")


def _ticks(form: NumberFormat, by: float) -> Iterator[str]:
    """The values of the format, as ticks, or as a block if they are dense."""
    binade = (RIGHT - LEFT) / (HIGH - LOW)
    window = 2.0**LOW, 2.0**HIGH
    yield line((LEFT, LINE + TALL), (RIGHT, LINE + TALL), width=1, opacity=0.4)
    low = math.frexp(form.smallest)[1] - 1
    high = math.frexp(form.largest)[1] - 1
    for e in range(low, high + 1):
        start, step = 2.0**e, form.spacing(2.0**e)
        end = min(2.0 * start, form.largest + step)
        if not (by * start < window[1] and by * end > window[0]):
            continue
        count = round((end - start) / step)
        name = e - high
        if binade / max(1, count) < CLOSE:
            left, right = _place(max(window[0], by * start)), _place(by * end)
            yield box(
                left, LINE, right, LINE + TALL, "math", fill=0.55, edge=0, round=0,
                key=f"block{name}",
            )  # fmt: skip
            continue
        for n in range(count):
            x = by * (start + n * step)
            if not window[0] <= x <= window[1]:
                continue
            at = _place(x)
            tall = TALL if n == 0 else 0.6 * TALL
            yield line(
                (at, LINE + TALL - tall), (at, LINE + TALL), colour="math", width=1.5,
                key=f"tick{name}.{n}",
            )  # fmt: skip


def _words(title: str, error: float, flushed: float, clipped: float) -> Iterator[str]:
    yield written(LEFT, 18, title, bold=True)
    said = f"rms error {_percent(error)}"
    yield written(RIGHT, 18, said, anchor="end", bold=True, key="error")
    yield written(LEFT, 40, "values of the array", SEEN["kept"])
    yield written(LEFT, 60, _said(flushed, "becomes 0"), SEEN["flushed"], key="flushed")
    yield written(
        RIGHT, 60, _said(clipped, "is clipped"), SEEN["clipped"], "end", key="clipped"
    )
    yield written(RIGHT, 40, "values of the format", "math", "end")
    for e in range(LOW + 2, HIGH, 4):
        at = _place(2.0**e)
        words = f"2{str(e).translate(RAISED)}" if e else "1"
        yield written(at, LINE + TALL + 18, words, anchor="middle")
    yield written(LEFT, BOTTOM - 4, "magnitude, in standard deviations of the array")


FIGURE = Figure(
    "number_line",
    "A number format over an array",
    (EXPONENT, MANTISSA, SCALE, ARRAY),
    draw,
    first="mantissa",
    presets={
        "fp8 e4m3": {"exponent": 4, "mantissa": 3, "scale": 0},
        "int8": {"exponent": 0, "mantissa": 7, "scale": 0},
        "int8 with an outlier": {"exponent": 0, "mantissa": 7, "array": OUTLIER},
        "fp4 with an outlier": {"exponent": 2, "mantissa": 1, "array": OUTLIER},
    },
    row=("exponent", "mantissa", "scale"),
)
