"""A server: what one engine step costs, as a bound and as a prediction.

    bound      = max(HBM, math, network), each leg at the full rate
    prediction = kernels · t_k + hops + Σ max(bytes / (e_h · W), FLOPs / (e_m · P))
                 + network / e_n

The sum runs over what a step does one after the other: the layers' matmuls, those of
the experts, the head, and attention over the cache and over prompts.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from ..base.units import show
from ..hardware.chips import Chip
from ..hardware.networks import Network, network
from ..training.efficiencies import efficiencies, sustained
from ..transformer import Model
from ..transformer.architecture import checked
from .capacity import PAGE, RESERVE, Capacity, capacity, held
from .derivation import Amounts, Wires, amounts, network_of, wires
from .efficiencies import Calibration, calibration
from .setting import WIDE, Batch, Formats, Layout


class StepTime(NamedTuple):
    """Seconds of one engine step.

    Args:
        hbm, math, network: legs of the bound, each at the full rate of its resource.
        launches: predicted: kernels, collectives and their hops, beyond their work.
        weights: predicted: matmuls with weights of the layers and of the head.
        experts: predicted: matmuls of routed experts.
        cache: predicted: attention of the sequences that decode.
        prompts: predicted: attention of the prompts' chunks.
        exchanges: predicted: bytes on the network.
    """

    hbm: float
    math: float
    network: float
    launches: float
    weights: float
    experts: float
    cache: float
    prompts: float
    exchanges: float

    @property
    def bound(self) -> float:
        """Seconds that no step can beat."""
        return max(self.hbm, self.math, self.network)

    @property
    def parts(self) -> dict[str, float]:
        """Predicted seconds by part."""
        return dict(zip(self._fields[3:], self[3:], strict=True))

    @property
    def seconds(self) -> float:
        """Predicted seconds: the sum of the parts, and never below the bound."""
        return max(sum(self[3:]), *self[:3])

    def __str__(self) -> str:
        return f"bound {show(self.bound, 's')}; likely {show(self.seconds, 's')}"


def keys_seen(new: float, behind: float, window: int = 0) -> float:
    """Keys that the queries of a chunk see, together: Σ min(behind + i, window).

    >>> keys_seen(4, 0), keys_seen(2, 10), keys_seen(4, 0, window=2)
    (10.0, 23.0, 7.0)
    """
    if not window or behind + new <= window:
        return new * behind + new * (new + 1) / 2
    free = max(0.0, window - behind)  # queries that see all keys
    return free * behind + free * (free + 1) / 2 + (new - free) * window


class Server:
    """One copy of a model on some chips.

    Args:
        model: any of `transformer.model`.
        on: the network of the server, or its name ("h100:8"), or a chip, of which the
            layout's number are taken.
        layout, formats: see there.
        at: the efficiencies; those that were fitted if not given.
        reserve: the share of the memory that the engine keeps, see `Capacity`.

    Assumes:
        Tokens choose experts evenly and apart from one another. Everything of a step
        runs one after the other: what engines overlap is part of the fitted numbers.

    Raises:
        ValueError: a layout that is not of as many chips as the network, or does not
            go with the model.

    >>> from shardmath.transformer import model
    >>> server = Server(model("llama 3 8b"), "h100:1", formats=Formats("fp8"))
    >>> server.decode(64, 64 * 1000).bound < server.decode(64, 64 * 1000).seconds
    True
    """

    def __init__(
        self,
        model: Model,
        on: Network | Chip | str,
        layout: Layout = Layout(),  # noqa: B008  frozen
        formats: Formats = Formats(),  # noqa: B008  frozen
        at: Calibration | None = None,
        reserve: float = RESERVE,
    ):
        self.model, self.layout, self.formats = checked(model), layout, formats
        self.network = network_of(on, layout) if isinstance(on, Chip) else network(on)
        self.chip: Chip = self.network.chip
        if self.network.chips != layout.chips:
            raise ValueError(
                f"layout of {layout.chips} chips ({layout}): must be the "
                f"{self.network.chips} chips of {self.network.name}"
            )
        self.amounts: Amounts = amounts(model, self.chip, layout, formats)
        self.wires: Wires = wires(model, self.network, layout, self.amounts)
        self.at, self.reserve = at or calibration(), reserve

    # ------------------------------------------------------------------- coefficients

    @cached_property
    def _linear(self) -> tuple[float, ...]:
        """Everything of a step that does not depend on the batch."""
        chip, one = self.chip, self.amounts
        inner = [p for p in one.products if p.kind not in ("experts", "head")]
        routed = [p for p in one.products if p.kind == "experts"]
        (head,) = (p for p in one.products if p.kind == "head")

        def held(some: Iterable) -> float:
            return sum(p.nbytes * p.layers for p in some) / chip.hbm_bandwidth

        def math(some: Iterable, rate) -> float:
            return sum(p.flops * p.layers / rate(p.precision) for p in some)

        def printed(precision: str) -> float:
            return chip.flops[precision]

        def reached(precision: str) -> float:
            return sustained(chip, precision)

        wide = WIDE if WIDE in chip.flops else "fp16"
        return (
            held(inner), math(inner, printed), math(inner, reached),
            held(routed), math(routed, printed), math(routed, reached),
            held([head]), math([head], printed), math([head], reached),
            1 / printed(wide), 1 / reached(wide),
        )  # fmt: skip

    def touched(self, tokens: float) -> float:
        """The share of a layer's experts that some tokens touch: 1 − (1 − k/E)^tokens.

        >>> from shardmath.transformer import model
        >>> server = Server(model("deepseek v3"), "h200:8", Layout(8), Formats("fp8"))
        >>> [round(server.touched(n), 2) for n in (8, 32, 128)]
        [0.22, 0.64, 0.98]
        """
        experts = self.model.experts
        if not experts:
            return 0.0
        return 1.0 - (1.0 - experts.per_token / experts.count) ** tokens

    # ---------------------------------------------------------------------- the step

    def step(self, batch: Batch) -> StepTime:
        """Bound and prediction of one engine step.

        Args:
            batch: what it works on.
        """
        return self._step(batch.decode, batch.context, batch.prefill)

    def _step(
        self, decode: float, context: float, prefill: tuple[tuple[float, float], ...]
    ) -> StepTime:
        (W, f, g, We, fe, ge, Wh, fh, gh, per_flop, per_real) = self._linear
        one, at, layout = self.amounts, self.at, self.layout
        groups = layout.data * layout.pipeline
        memory, math = 1 / at.memory, 1 / at.math
        # The busiest group of sequences: at least one whole sequence, if there is any.
        rank = max(decode / groups, min(decode, 1.0))
        seen = context * (rank / decode) if decode else 0.0
        window = self.model.window
        local = min(seen, window * rank) if window else 0.0
        read = (one.cache[0] * seen + one.cache[1] * local) / self.chip.hbm_bandwidth
        scored = one.scores[0] * seen + one.scores[1] * local
        tokens, rows, pairs, behind_read = rank, rank, 0.0, 0.0
        new_all = decode / layout.pipeline
        if prefill:
            tokens += sum(new for new, _ in prefill) / groups
            new_all += sum(new for new, _ in prefill) / layout.pipeline
            rows += len(prefill) / groups
            pairs = self._pairs(prefill) / groups
        share = self.touched(new_all)
        hbm = W + We * share + Wh + read + behind_read
        math_leg = tokens * f + new_all * fe + rows * fh + (scored + pairs) * per_flop
        net = tokens * (self.wires.summed + self.wires.dealt + self.wires.sent)
        launches = (one.kernels + self.wires.calls) * at.launch + self.wires.latency
        return StepTime(
            hbm,
            math_leg,
            net,
            launches,
            max(W * memory, tokens * g * math) + max(Wh * memory, rows * gh * math),
            max(We * share * memory, new_all * ge * math),
            max(read * memory, scored * per_real * math),
            pairs * per_real * math,
            net / efficiencies().network,
        )

    def _pairs(self, prefill: tuple[tuple[float, float], ...]) -> float:
        """FLOPs of attention of the chunks, in the cheaper of both forms."""
        one, window = self.amounts, self.model.window
        whole = [keys_seen(new, behind) for new, behind in prefill]
        local = [keys_seen(new, behind, window) for new, behind in prefill]
        absorbed = expanded = 0.0
        for n, (_, behind) in enumerate(prefill):
            absorbed += one.scores[0] * whole[n] + one.scores[1] * local[n]
            expanded += one.expanded[0] * whole[n] + one.expanded[1] * local[n]
            expanded += one.expanding * behind
        return min(absorbed, expanded)

    @cached_property
    def memory(self) -> Capacity:
        """What its chips hold, and the sequences that they have room for."""
        return capacity(
            self.model, self.chip, self.layout, self.formats, self.amounts, self.reserve
        )

    def slots(self, length: float, page: int = PAGE) -> int:
        """Sequences of so many tokens that it holds at once; see `Capacity.slots`."""
        return self.memory.slots(length, page)

    def decode(self, seqs: float, context: float) -> StepTime:
        """A step that gives each of some sequences one token.

        Args:
            seqs: how many.
            context: tokens in all their caches together.
        """
        return self._step(seqs, context, ())

    def prefill(self, tokens: float, behind: float = 0) -> StepTime:
        """A step that reads a prompt, or a chunk of one behind so many tokens."""
        return self._step(0.0, 0.0, ((tokens, behind),))

    def request_bound(
        self, prompt: float, output: float, concurrency: float = 1
    ) -> float:
        """Seconds of a request, TTFT + output · TPOT, that no server can beat in the
        mean while so many requests are always in flight.

            max over HBM, math and network of all the work of these requests

        A prompt's work may ride on the steps of others that decode, and a step reads
        the weights once for all of them.

        Args:
            prompt, output: tokens of a request.
            concurrency: requests in flight.

        Assumes:
            All of them decode at once. If fewer do, the others wait, and the mean is
            longer: a step reads the weights for fewer tokens.
        """
        steps = self.decode(concurrency, concurrency * held(prompt, output))
        once = self.prefill(prompt)
        return max(
            output * steps.hbm,
            output * steps.math + concurrency * once.math,
            output * steps.network + concurrency * once.network,
        )
