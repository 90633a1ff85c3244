"""A gather before a matmul and inside it, as two time lines on one scale."""

from collections.abc import Iterator

from ...base.units import show
from ...sharding.matmul_timeline import CollectiveMatmul, Seconds
from ..labels import text_width
from ..picture import WIDEST, Picture, picture
from ..shapes import box, framed, label, line, written

EDGE, LANE = 12, 26


def collective_matmul(overlap: CollectiveMatmul) -> Picture:
    """The gather before the matmul, and the collective matmul, on one scale."""
    both = {
        "gather, then multiply": overlap.in_turn,
        "collective matmul": overlap.inside,
    }
    ends = {name: _end(lanes) for name, lanes in both.items()}
    title = f"{overlap.op.plan.product}, {show(overlap.op.a.sizes[0])} rows"
    left = EDGE + text_width("network") + 8
    scale = (WIDEST - EDGE - left) / max(ends.values())
    parts, y = [], 0.0
    for name, lanes in both.items():
        said = f"{name}: {show(ends[name], 's')}"
        parts.append(written(EDGE, y + 18, said, bold=True))
        y += 28
        for resource, spans in lanes.items():
            parts.append(written(left - 8, y + 18, resource, resource, "end"))
            parts += _lane(f"{name} {resource}", resource, spans, left, scale, y)
            y += LANE + 4
        x = left + scale * ends[name]
        parts.append(line((x, y - 2 * LANE - 8), (x, y), width=1.2, dashed=True))
        y += 10
    desc = (
        f"{overlap.op.plan.product} on {overlap.parts} devices. Gather, then multiply: "
        f"{show(overlap.gather, 's')} of network and then "
        f"{show(overlap.parts * overlap.product, 's')} of math. Collective matmul: "
        f"{overlap.parts - 1} hops of {show(overlap.hop, 's')} beside {overlap.parts} "
        f"products of {show(overlap.product, 's')}, "
        f"{show(ends['collective matmul'], 's')} in all."
    )
    return picture(title, desc, framed(title, desc, parts, WIDEST, y))


def _end(lanes: dict[str, list[Seconds]]) -> float:
    return max(end for spans in lanes.values() for _, end in spans)


def _lane(
    name: str,
    resource: str,
    spans: list[Seconds],
    left: float,
    scale: float,
    top: float,
) -> Iterator[str]:
    """The spans of one resource as boxes, numbered where there is room."""
    many = len(spans) > 1
    for n, (start, end) in enumerate(spans):
        spot = (left + scale * start, top, left + scale * end, top + LANE)
        key = f"{name} {n}"
        yield box(*spot, resource, fill=0.3, edge=0.9, round=1, key=key)
        words = str(n + (resource == "network")) if many else show(end - start, "s")
        if text_width(words) + 4 < spot[2] - spot[0]:
            yield label(*spot, words)
