"""The live figure "waves": the tiles of a matmul on the SMs of a GPU."""

from ...base.units import show
from ...hardware import chips
from ...hardware.waves import TiledMatmul, dispatch
from ..objects.waves import timeline
from .controls import Choice, Drawing, Figure, Slider

D = 4096  # the contracted size, which scales all times by the same factor
TILES = {f"{b} × {f}": (b, f) for b, f in ((64, 64), (128, 128), (128, 256))}
STEP = 64


def draw(chip: str, tile: str, B: int, F: int) -> Drawing:
    """The time line of a [B, D] · [D, F] matmul in bf16, with a row for each SM."""
    op = TiledMatmul(B, D, F, chips.find(chip), TILES[tile])
    waves = op.waves
    drawn = dispatch([op.tile_seconds] * waves.tiles, waves.sms)
    summary = f"{waves} {show(op.seconds, 's')} where {show(op.ideal, 's')} is ideal."
    rows = (
        ("", op.chip.name),
        ("tiles", f"{waves.tiles:,}"),
        ("SMs", str(waves.sms)),
        ("waves", str(waves.waves)),
        ("tiles in the last wave", str(waves.last)),
        ("time of one tile", show(op.tile_seconds, "s")),
        ("time", show(op.seconds, "s")),
        ("ideal time", show(op.ideal, "s")),
        ("tiles filled by the result", f"{op.covered:.1%}"),
        ("SM time spent on tiles", f"{waves.used:.1%}"),
        ("share of the peak, the product of the two", f"{op.efficiency:.1%}"),
    )
    data = {
        "tiles": waves.tiles,
        "sms": waves.sms,
        "waves": waves.waves,
        "last": waves.last,
        "seconds": op.seconds,
        "simulated": drawn.seconds,
        "ideal": op.ideal,
        "covered": op.covered,
        "used": waves.used,
        "efficiency": op.efficiency,
    }
    title = f"[{B}, {D}] · [{D}, {F}] in tiles of {tile} on {op.chip.name}"
    return Drawing(timeline(drawn, title), summary, rows, data)


def _name(text: str) -> str:
    return chips.find(text).name


_NAMES = tuple(
    chip.name
    for chip in chips.ALL
    if chip.vendor == "NVIDIA" and {"cores", "flops.bf16"} <= set(chip.facts)
)

FIGURE = Figure(
    "waves",
    "Tiles and waves",
    (
        Choice("chip", "GPU", _NAMES, "H100", _name, machine=True),
        Choice("tile", "Tile", tuple(TILES), "128 × 128"),
        Slider("B", "B", "tokens", STEP, 4096, 896, STEP),
        Slider("F", "F, output", "", STEP, 4096, 2432, STEP),
    ),
    draw,
    first="B",
    presets={
        "one tile too many": {"chip": "H100", "tile": "128 × 128", "B": 896, "F": 2432},
        "one full wave": {"chip": "H100", "tile": "128 × 128", "B": 1408, "F": 1536},
        "decode, 64 tokens": {"tile": "64 × 64", "B": 64, "F": 4096},
    },
)
