"""The live figure "ring_load": which chips work and which wait in ring attention."""

from collections.abc import Iterator

from ...base.units import show
from ...hardware.chips import GB200, H100, TPU_7X, TPU_V5P, TPU_V6E, Chip
from ...training.causal_ring import ORDERS, CausalRing
from ...transformer import LLAMA_3_70B
from ..objects.causal_ring import loads, square
from ..picture import WIDEST
from ..shapes import box, framed, written
from .controls import Choice, Drawing, Figure, Slider

MODEL = LLAMA_3_70B
MACHINES: dict[str, tuple[Chip, float]] = {  # chip, and its bytes/s to the next chip
    "TPU v5p, a link one way": (TPU_V5P, TPU_V5P.link_bandwidth),
    "TPU v6e (Trillium), a link one way": (TPU_V6E, TPU_V6E.link_bandwidth),
    "TPU 7x (Ironwood), a link one way": (TPU_7X, TPU_7X.link_bandwidth),
    "H100, NVLink": (H100, H100.scale_up_bandwidth),
    "H100, its network card": (H100, H100.scale_out_bandwidth),
    "GB200, NVLink": (GB200, GB200.scale_up_bandwidth),
}
CHIPS = Slider("chips", "Chips of the ring", "", 2, 8, 4, 1)
EDGE, SIDE, TOP, ROW = 8, 190, 30, 20
RIGHT = EDGE + SIDE + 14  # of the bars
WIDE, HEIGHT = 124, 280


def pair_seconds(chip: Chip) -> float:
    """Seconds for the forward pass of a query and a key in bf16: 4 · N · H FLOPs."""
    return 4 * MODEL.N * MODEL.H / chip.flops["bf16"]


def hop_seconds(tokens: int, bandwidth: float) -> float:
    """Seconds for a chip to send its keys and values: 2 · 2 · K · H bytes per token."""
    return 2 * 2 * MODEL.K * MODEL.H * tokens / bandwidth


def draw(step: int, order: str, chips: int, tokens: int, machine: str) -> Drawing:
    """The work of every chip in a step, next to the hop that runs at the same time."""
    ring = CausalRing(order, chips, tokens * chips)
    step = min(step, chips - 1)
    chip, bandwidth = MACHINES[machine]
    a_pair = pair_seconds(chip)
    math = [pairs * a_pair for pairs in ring.step(step)]
    hop, last = hop_seconds(tokens, bandwidth), step == chips - 1
    summary = (
        f"Step {step + 1} of {chips}, {order}: a chip computes "
        f"{show(min(math), 's')} to {show(max(math), 's')}; "
        + (
            "nothing is sent any more. "
            if last
            else f"the hop takes {show(hop, 's')}. "
        )
        + f"Over all steps the busiest chip has {float(ring.imbalance):.3g} times the "
        "mean work."
    )
    data = {
        "step": step,
        "steps": chips,
        "math_seconds": math,
        "hop_seconds": hop,
        "hidden": max(math) >= hop,
        "imbalance": float(ring.imbalance),
        "lockstep_seconds": float(ring.lockstep * ring.mean) * a_pair,
        "mean_seconds": float(ring.mean) * a_pair,
    }
    title = f"Ring attention, step {step + 1} of {chips}"
    parts = _drawn(ring, step, math, 0 if last else hop, tokens**2 * a_pair)
    picture = framed(title, summary, parts, WIDEST, HEIGHT)
    return Drawing(picture, summary, _readout(data), data, chips - 1)


def _readout(data: dict) -> tuple[tuple[str, ...], ...]:
    hop, n, math = data["hop_seconds"], data["steps"], data["math_seconds"]
    lockstep, mean = data["lockstep_seconds"], data["mean_seconds"]
    last = data["step"] == n - 1
    here = 0.0 if last else hop
    hides = "none is left" if last else "yes" if data["hidden"] else "no"
    return (
        ("", "this step", "all steps"),
        ("busiest chip", show(max(math), "s"), show(lockstep, "s")),
        ("mean of the chips", show(sum(math) / n, "s"), show(mean, "s")),
        ("busiest over mean", f"{max(math) * n / sum(math):.2f}",
         f"{lockstep / mean:.2f}"),
        ("keys and values sent", show(here, "s"), show(hop * (n - 1), "s")),
        ("a hop hides", hides, ""),
    )  # fmt: skip


def _drawn(
    ring: CausalRing, step: int, math: list[float], hop: float, block: float
) -> Iterator[str]:
    """The square, the bars of this step next to it, and the hop on the same scale."""
    full = max(block, hop)
    yield written(EDGE, 18, f"step {step + 1} of {ring.chips}", bold=True, key="step")
    yield from square(ring, EDGE, TOP, SIDE, step)
    yield written(RIGHT, 18, "math of each chip", "math")
    words = tuple(show(one, "s") for one in math)
    yield from loads(tuple(math), full, RIGHT, TOP, WIDE, ROW, words)
    y = TOP + ROW * ring.chips
    yield written(RIGHT, y + 16, "keys and values sent", "network")
    right = RIGHT + WIDE * hop / full
    yield box(RIGHT, y + 24, right, y + 24 + ROW - 4, "network", fill=0.75, edge=0,
              round=0, key="hop")  # fmt: skip
    yield written(right + 6, y + 36, show(hop, "s"), key="hop's")
    yield written(EDGE, TOP + SIDE + 30, f"queries down, keys across, {ring.order}")
    yield written(
        EDGE,
        TOP + SIDE + 50,
        f"busiest chip over the mean, all steps: {float(ring.imbalance):.3g}",
    )


FIGURE = Figure(
    "ring_load",
    "Ring attention's load",
    (
        Slider("step", "Step", "", 0, CHIPS.high - 1, 1, step=1, play=True),
        Choice("order", "Who holds which tokens", ORDERS, "contiguous"),
        CHIPS,
        Slider("tokens", "Tokens a chip", "tokens", 256, 2**17, 8192),
        Choice("machine", "Chips and what joins them", tuple(MACHINES),
               "TPU v5p, a link one way"),
    ),
    draw,
    first="step",
    presets={
        "contiguous": {"order": "contiguous", "chips": 8, "step": 0},
        "zig-zag": {"order": "zig-zag", "chips": 8, "step": 0},
        "a hop that does not hide": {
            "order": "zig-zag",
            "tokens": 512,
            "machine": "TPU 7x (Ironwood), a link one way",
        },
    },
)  # fmt: skip
