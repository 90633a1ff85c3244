"""A serving plan as text and as plain data, as the command line prints it."""

from ..base.tables import Table, table
from ..base.units import positive, show
from .answer import LayoutAnswer
from .serve import LEFT_OUT, ServingPlan

PERCENTS = (50, 90, 99)
METRICS = ("ttft", "tpot")


def plain(plan: ServingPlan, price: float | None = None) -> dict[str, object]:
    """The plan as plain data in base units, ready for JSON.

    Args:
        plan: a plan from `serve`.
        price: dollars per chip and hour that you pay; None leaves dollars out.

    Raises:
        ValueError: a price that is not positive.

    >>> from shardmath.serving import serve
    >>> plan = serve("llama3-8b", "h100:1", rate=4, input=1000, output=200, tensor=1)
    >>> plain(plan)["layouts"][0]["layout"]["tensor"]
    1
    """
    formats, first = plan.formats, plan.best
    return {
        "model": plan.model.name,
        "machine": plan.machine.name,
        "chips": plan.machine.chips,
        "weights": formats.weights,
        "cache": formats.cache or "bf16",
        "rate": first.rate,
        "input": first.input,
        "output": first.output,
        "target": {
            "ttft": first.target.ttft,
            "tpot": first.target.tpot,
            "share": first.target.share,
        },
        "layouts": [plain_layout(one, price) for one in plan.ranking],
        "refused": dict(plan.refused),
        "why": plan.why,
        "left_out": list(LEFT_OUT),
    }


def plain_layout(one: LayoutAnswer, price: float | None = None) -> dict[str, object]:
    """One layout of a plan as plain data in base units."""
    layout = one.server.layout
    found: dict[str, object] = {
        "layout": {**vars(layout), "copies": one.deployment.copies},
        "slots": one.slots * one.deployment.copies,
        "decoding": one.decoding * one.deployment.copies,
        "capacity": one.capacity,
        "most": one.most,
        "parts": dict(one.parts),
        "tokens_per_chip": one.rate * one.output / one.deployment.machine.chips,
        "joules_per_million": one.joules,
    }
    for metric in METRICS:
        found[metric] = {
            "bound": one.bound(metric),
            "predicted": one.predicted(metric),
            "low": one.low(metric),
            "high": one.high(metric),
            **{f"p{n}": getattr(one.result, metric)(n) for n in PERCENTS},
        }
    if price is not None:
        found["dollars_per_million"] = one.dollars(price)
    return found


def text(plan: ServingPlan, price: float | None = None) -> str:
    """The plan as text to read: the best layout in numbers, and why it is the best.

    Args:
        plan, price: as for `plain`.

    Raises:
        ValueError: a price that is not positive.

    >>> from shardmath.serving import serve
    >>> plan = serve("llama3-8b", "h100:1", rate=4, input=1000, output=200, tensor=1)
    >>> print(text(plan).splitlines()[0])
    Llama 3.1 8B on 1 H100 on NVLink: weights bf16, cache bf16
    """
    one, formats = plan.best, plan.formats
    target = one.target
    head = (
        f"{plan.model.name} on {plan.machine.name}: weights {formats.weights}, cache "
        f"{formats.cache or 'bf16'}\n"
        f"{one.rate:g} requests/s of {one.input:,} + {one.output:,} tokens; target: "
        f"{target.share:.0%} of requests with a TTFT of {show(target.ttft, 's')} and a "
        f"TPOT of {show(target.tpot, 's')} at most"
    )
    label = "layout" if plan.asked else "best layout"
    parts = [head, f"{label}: {one.deployment.words}", str(times(one))]
    parts.append("\n".join(_amounts(one, price)))
    if plan.why:
        parts.append(plan.why)
    if len(plan.ranking) > 1:
        parts.append(str(ranked(plan, price)))
    lines = [f"does not fit: {layout}" for layout, _ in plan.refused]
    lines += [f"left out: {what}" for what in LEFT_OUT]
    return "\n\n".join([*parts, "\n".join(lines)])


def times(one: LayoutAnswer) -> Table:
    """Bound, prediction and percentiles of TTFT and TPOT of a layout."""
    rows = []
    for metric in METRICS:
        percents = [show(getattr(one.result, metric)(n), "s") for n in PERCENTS[1:]]
        rows.append((
            metric.upper(),
            show(one.bound(metric), "s"),
            show(one.predicted(metric), "s"),
            _between(one.low(metric), one.high(metric)),
            *percents,
        ))  # fmt: skip
    columns = (
        "",
        "bound",
        "likely",
        "8 of 10 servers",
        *(f"p{n}" for n in PERCENTS[1:]),
    )
    return table(columns, rows)


def _between(low: float | None, high: float | None) -> str:
    return "–" if low is None else f"{show(low, 's')} to {show(high, 's')}"


def ranked(plan: ServingPlan, price: float | None = None) -> Table:
    """The layouts of a plan side by side."""
    header = ["layout", "in target", "at most", "TTFT", "TPOT", "slots",
              "a step goes to"]  # fmt: skip
    rows = []
    for one in plan.ranking:
        rows.append([
            one.deployment.words,
            f"{_figures(one.most)}/s",
            f"{_figures(one.capacity)}/s",
            show(one.predicted("ttft"), "s"),
            show(one.predicted("tpot"), "s"),
            f"{one.slots * one.deployment.copies:,}",
            one.goes_to.replace(" and ", ", "),
        ])  # fmt: skip
        if price is not None:
            rows[-1].append(f"${one.dollars(price):.2f}")
    if price is not None:
        header.append("per M tokens")
    return table(header, rows)


def _figures(value: float) -> str:
    """Three figures, or all those before the point."""
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def _amounts(one: LayoutAnswer, price: float | None) -> list[str]:
    copies, chips = one.deployment.copies, one.deployment.machine.chips
    length = one.input + one.output // 2
    each = one.rate * one.output / chips
    kept = f"the target is kept up to {_figures(one.most)} requests/s"
    if not one.most:
        kept = "the target is not kept, even by a request alone"
    found = [
        f"slots: {one.slots * copies:,} requests of {length:,} tokens in the mean; "
        f"{_figures(one.decoding * copies)} decode at a time",
        f"rate: {kept}, and {_figures(one.capacity)} requests/s are completed at most",
        f"tokens: {_figures(1 / one.predicted('tpot'))}/s for each user, "
        f"{_figures(each)}/s for "
        + (f"each of the {chips:,} chips" if chips > 1 else "the chip"),
        f"a step goes to: {one.goes_to}",
    ]
    if price is not None:
        (price,) = positive(price=price)
        found.append(
            f"dollars: {one.dollars(price):.3g} per million tokens of answers at this "
            f"rate, {one.dollars(price, one.most or one.rate):.3g} at the largest rate "
            "in the target"
        )
    if one.joules is not None:
        found.append(
            f"energy: {one.joules / 1e6:.3g} MJ per million tokens, at the power that "
            "the chips are rated for"
        )
    return found
