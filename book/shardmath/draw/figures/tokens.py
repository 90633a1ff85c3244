"""The live figure "tokens": how many tokens per chip it takes to hide the network."""

from collections.abc import Callable

from ...base.units import show
from ...hardware import chips
from ...hardware.mesh import Mesh
from ...hardware.networks import LATENCY, Cluster, Network, NVLinkDomain, Slices, Torus
from ...training import Step, Strategy, data, fsdp, step
from ...transformer import LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B
from .. import svg
from .controls import Choice, Drawing, Figure, Slider

SEQ = 4096  # tokens of a sequence; attention is causal
TOKENS = Slider("tokens", "Tokens a chip", "", 32, 65_536, 1024)
MODELS = {one.name: one for one in (LLAMA_3_8B, LLAMA_3_70B, LLAMA_3_405B)}
STRATEGIES: dict[str, Callable[..., Strategy]] = {"data": data, "FSDP": fsdp}


def _sides(chips: int, dims: int) -> tuple[int, ...]:
    """A power of two as a product of `dims` sides, as equal as possible, longest last.

    >>> _sides(128, 3), _sides(8, 2)
    ((4, 4, 8), (2, 4))
    """
    power = chips.bit_length() - 1
    return tuple(1 << ((power + n) // dims) for n in range(dims))


def _v5p(n: int) -> Network:
    return Torus(chips.TPU_V5P, _sides(n, 3))


def _v6e(n: int) -> Network:
    return Torus(chips.TPU_V6E, _sides(n, 2))


def _ironwood(n: int) -> Network:
    return Torus(chips.TPU_7X, _sides(n, 3))


def _slices(n: int) -> Network:
    slice_ = Torus(chips.TPU_V5P, (4, 4, 4))
    return Slices(slice_, n // slice_.chips, LATENCY["spine"].value)


def _h100(n: int) -> Network:
    node = NVLinkDomain(chips.H100)
    return node if n == node.chips else Cluster(node, n // node.chips)


def _nvl72(n: int) -> Network:
    return NVLinkDomain(chips.GB200, n)


# The networks of the machines, and their numbers of chips, which are powers of two.
MACHINES: dict[str, tuple[Callable[[int], Network], int, int]] = {
    "TPU v5p, one slice": (_v5p, 8, 4096),
    "TPU v6e (Trillium), one slice": (_v6e, 8, 256),
    "TPU 7x (Ironwood), one slice": (_ironwood, 8, 4096),
    "TPU v5p, slices of 64 on DCN": (_slices, 128, 4096),
    "H100, nodes of 8": (_h100, 8, 4096),
    "GB200 NVL72, one rack": (_nvl72, 8, 64),
}


def draw(model: str, machine: str, strategy: str, chips: int, tokens: int) -> Drawing:
    """Math and network time of a step against tokens per chip, and their crossing.

    If the machine can't have this number of chips, the summary says so.
    """
    wires, fewest, most = MACHINES[machine]
    title = f"{model}, {strategy} over {chips:,} chips: {machine}"
    if not fewest <= chips <= most:
        said = f"Not on these wires: {fewest:,} to {most:,} chips, not {chips:,}."
        return Drawing(svg.message(title, said), said, (), {"tokens": None})
    mesh = Mesh(wires(chips), {"X": chips})
    settings = {"attention": "causal", "remat": "none"}
    one = step(STRATEGIES[strategy]("X"), MODELS[model], mesh, chips, SEQ, **settings)
    network = one.estimate.seconds["network"]
    crossing = one.critical_tokens

    def math_(at: float) -> float:
        return one.estimate.seconds["math"] * at / SEQ

    binds = "math" if tokens >= crossing else "network"
    share = min(1.0, math_(tokens) / network)
    summary = (
        f"{tokens:,} tokens a chip, {tokens * chips:,} in all: math "
        f"{show(math_(tokens), 's')}, network {show(network, 's')}; "
        f"{binds} binds. They cross at {crossing:,.0f} tokens a chip."
    )
    found = {
        "chips": chips,
        "tokens_per_chip": tokens,
        "math_seconds": math_(tokens),
        "network_seconds": network,
        "critical_tokens": crossing,
        "sent": one.sent,
        "math_share": share,
        "binds": binds,
    }
    picture = _picture(title, summary, math_, network, crossing, tokens)
    return Drawing(picture, summary, _readout(one, found), {"tokens": found})


def _readout(one: Step, found: dict) -> tuple[tuple[str, ...], ...]:
    crossing = found["critical_tokens"]
    rows = [
        ("", "at best"),
        ("math", show(found["math_seconds"], "s")),
        ("network", show(found["network_seconds"], "s")),
        ("what binds", found["binds"]),
        ("share of the peak, at most", f"{found['math_share']:.0%}"),
        ("each chip sends", show(found["sent"], "bytes")),
        ("they cross at, tokens a chip", f"{crossing:,.0f}"),
        ("tokens of the batch there", show(crossing * found["chips"], "")),
    ]
    held = sum(one.memory.parts[part] for part in ("state", "weights", "gradients"))
    full = f"{show(held, 'capacity')} of {show(one.memory.capacity, 'capacity')}"
    return (*rows, ("a chip holds, without activations", full))


def _picture(
    title: str,
    summary: str,
    math_: Callable[[float], float],
    network: float,
    crossing: float,
    tokens: int,
) -> str:
    x = svg.Axis("tokens a chip", TOKENS.low, TOKENS.high)
    low = min(math_(x.low), network) / 2
    y = svg.Axis("time of a step, at best", low, max(math_(x.high), network) * 2.5,
                 unit="s")  # fmt: skip
    here = (tokens, max(math_(tokens), network))
    marks: list = [
        svg.PlotLine(
            [(x.low, math_(x.low)), (x.high, math_(x.high))], "math", key="math"
        ),
        svg.PlotLine([(x.low, network), (x.high, network)], "network", key="network"),
        svg.Label(x.high, math_(x.high), "math", "math", "nw", "math's"),
        svg.Label(x.high, network, "network", "network", "se", "network's"),
        svg.PlotLine([(tokens, y.low), here], dashed=True, width=1, key="tokens"),
        svg.Dot(*here, key="point"),
        svg.Label(
            tokens, y.low, f"{tokens:,} tokens a chip", toward="ne", key="tokens'"
        ),
        svg.Label(*here, show(here[1], "s"), toward="nw", key="point's"),
    ]
    if x.low < crossing < x.high:
        said = f"cross at {crossing:,.0f}"
        top = (crossing, y.high)
        marks += [
            svg.PlotLine(
                [(crossing, y.low), top], dashed=True, width=1, key="crossing"
            ),
            svg.Dot(crossing, network, hollow=True, key="cross"),
            svg.Label(*top, said, toward="sw", key="crossing's"),
        ]
    marks.append(svg.Handle(*here, TOKENS.name, TOKENS.stops))
    return svg.plot(title, summary, x, y, marks)


_FIRST = next(iter(MACHINES))

FIGURE = Figure(
    "tokens",
    "Tokens a chip, and what binds",
    (
        Choice("model", "Model", tuple(MODELS), LLAMA_3_8B.name),
        Choice("machine", "Chips and network", tuple(MACHINES), _FIRST),
        Choice("strategy", "Strategy", tuple(STRATEGIES), "data"),
        Slider("chips", "Chips on the axis", "", 8, 4096, 512),
        TOKENS,
    ),
    draw,
    first=TOKENS.name,
    presets={
        "one sequence a chip": {"tokens": 4096},
        "a node of H100": {"machine": "H100, nodes of 8", "chips": 8},
        "64 nodes of H100": {"machine": "H100, nodes of 8", "chips": 512},
        "8 slices over DCN": {"machine": "TPU v5p, slices of 64 on DCN", "chips": 512},
    },
)
