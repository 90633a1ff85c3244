"""A server: how long one engine step takes, as a bound and as a prediction.

    bound      = max(HBM, math, network), each resource at its full rate
    prediction = kernels · t_k + hops + sequences · t_s
                 + Σ max(bytes / (e_h · W), FLOPs / (e · P)) + network / e_n

The sum is over the operations of a step: the layers' matmuls, those of the experts, the
head, and attention over the cache and over prompts. A kernel takes t_k in addition to
its work, and the host takes t_s for each sequence. A step without prompts is replayed
from a recorded graph. In a step with prompts, each kernel is launched separately and
takes another t_k. W is the HBM bandwidth and P the sustained rate of matmuls. The
shares e are the efficiencies of `training`, except for e_h, which is `MEMORY`, and that
of experts, which is `EXPERTS`.
"""

from collections.abc import Callable, Iterable
from copy import copy
from functools import cached_property
from typing import NamedTuple

from ..base.units import short_repr, show
from ..hardware.chips import Chip
from ..hardware.networks import Network, network
from ..hardware.networks.wiring import not_negative
from ..training.efficiencies import efficiencies, sustained
from ..transformer import Model
from ..transformer.architecture import checked
from .capacity import PAGE, RESERVE, Capacity, capacity, held, share_kept
from .derivation import Amounts, Kernel, Wires, amounts, network_of, wires
from .efficiencies import EXPERTS, MEMORY, Calibration, calibration
from .setting import Batch, Formats, Layout

NETWORK = efficiencies().network


class StepTime(NamedTuple):
    """Seconds of one engine step.

    Args:
        hbm, math, network: lower bounds, each at the full rate of its resource.
        launches: predicted time of kernels, collectives and their hops in addition to
            their work.
        sequences: predicted time of the host for the sequences that decode.
        weights: predicted time of the matmuls of layers and head, without experts.
        experts: predicted time of the matmuls of routed experts.
        cache: predicted time of attention of the sequences that decode.
        prompts: predicted time of attention of the prompts' chunks.
        exchanges: predicted time of the bytes on the network.
    """

    hbm: float
    math: float
    network: float
    launches: float
    sequences: float
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
        """Predicted seconds: the sum of the parts, but never below the bound."""
        return max(sum(self[3:]), *self[:3])

    def __str__(self) -> str:
        return f"bound {show(self.bound, 's')}; likely {show(self.seconds, 's')}"


def keys_seen(new: float, behind: float, window: int = 0) -> float:
    """Keys that all queries of a chunk see, added up: Σ min(behind + i, window).

    Args:
        new: tokens of the chunk, whose queries are i = 1 to `new`.
        behind: tokens before the chunk.
        window: the most keys that a query sees; 0 for no limit.

    >>> keys_seen(4, 0), keys_seen(2, 10), keys_seen(4, 0, window=2)
    (10.0, 23.0, 7.0)
    """
    if not window or behind + new <= window:
        return new * behind + new * (new + 1) / 2
    free = max(0.0, window - behind)  # queries that see all keys
    return free * behind + free * (free + 1) / 2 + (new - free) * window


class Linear(NamedTuple):
    """The coefficients of a step's seconds, which are linear in the step's totals; see
    `Server.mixed`.

    Args:
        weights, flops, work: seconds of the layers' matmuls without experts: to read
            their weights at the full bandwidth, for the math of one token at the peak
            rate, and for the same math at the likely rate.
        experts, expert_flops, expert_work: the same three for all experts of the chip,
            with the math of one token of the server.
        head, head_flops, head_work: the same three for the head, with one row.
        per_flop, per_work: seconds per FLOP of attention, at the two rates.
        network: seconds per token of a chip's group.
    """

    weights: float
    flops: float
    work: float
    experts: float
    expert_flops: float
    expert_work: float
    head: float
    head_flops: float
    head_work: float
    per_flop: float
    per_work: float
    network: float


def _suits(model: Model, layout: Layout) -> None:
    """Raise unless a model can be split in this way."""
    if layout.pipeline > model.layers:
        raise ValueError(
            f"pipeline = {layout.pipeline}: must be at most the {model.layers} layers "
            f"of {model.name}"
        )
    # With a latent, every chip may hold the same caches, whatever its heads.
    if model.heads % layout.tensor and not model.latent:
        raise ValueError(
            f"tensor = {layout.tensor}: must divide the {model.heads} query heads of "
            f"{model.name}"
        )


class Server:
    """One copy of a model on some chips.

    Args:
        model: a model of `transformer.model`.
        on: the network of the server or its name ("h100:8"); or a chip, for a network
            of as many chips as `layout` has.
        layout: how the model is split over the chips; see `Layout`.
        formats: formats of weights, matmuls and cache; see `Formats`.
        at: the three numbers of the prediction; the fitted ones if not given.
        reserve: the share of the memory that the engine keeps; see `Capacity`.

    Assumes:
        Tokens choose experts evenly and independently of one another. Prompts are
        spread evenly over groups of chips. All operations of a step run one after the
        other; the fitted numbers account for what engines overlap.

    Raises:
        ValueError: a layout with another number of chips than the network, or one that
            does not suit the model.

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
        at = calibration() if at is None else at
        kinds = {Layout: layout, Formats: formats, Calibration: at}
        for kind, value in kinds.items():
            if not isinstance(value, kind):
                raise ValueError(f"{short_repr(value)}: must be a {kind.__name__}")
        self.network = network_of(on, layout) if isinstance(on, Chip) else network(on)
        self.chip: Chip = self.network.chip
        if self.network.chips != layout.chips:
            raise ValueError(
                f"layout of {layout.chips} chips ({layout}): must have the "
                f"{self.network.chips} chips of {self.network.name}"
            )
        _suits(model, layout)
        self.amounts: Amounts = amounts(model, self.chip, layout, formats)
        self.wires: Wires = wires(model, self.network, layout, self.amounts)
        self.at, self.reserve = at, share_kept(reserve)

    def with_(self, at: Calibration) -> "Server":
        """The same server with other fitted numbers."""
        _ = self._linear  # both servers share it
        other = copy(self)
        other.__dict__.pop("_launched", None)
        other.at = at
        return other

    def with_reserve(self, reserve: float) -> "Server":
        """The same server with an engine that reserves another share of memory."""
        other = copy(self)
        other.__dict__.pop("memory", None)
        other.reserve = share_kept(reserve)
        return other

    @cached_property
    def _linear(self) -> "Linear":
        """The coefficients of a step, which depend neither on the batch nor on the
        fitted numbers."""
        chip, one, reached = self.chip, self.amounts, efficiencies()
        inner = [p for p in one.products if p.kind not in ("experts", "head")]
        routed = [p for p in one.products if p.kind == "experts"]
        head = [p for p in one.products if p.kind == "head"]

        def read(some: Iterable[Kernel]) -> float:
            return sum(p.nbytes * p.layers for p in some) / chip.hbm_bandwidth

        def math(some: Iterable[Kernel], rate: Callable[[str], float]) -> float:
            return sum(p.flops * p.layers / rate(p.precision) for p in some)

        def printed(precision: str) -> float:
            return chip.flops[precision]

        def likely(precision: str) -> float:
            return reached.matmul * sustained(chip, precision)

        return Linear(
            *(f(some) for some in (inner, routed, head)
              for f in (read, lambda x: math(x, printed), lambda x: math(x, likely))),
            1 / printed(chip.half),
            1 / (reached.attention * sustained(chip, chip.half)),
            self.wires.summed + self.wires.dealt + self.wires.sent,
        )  # fmt: skip

    def touched(self, tokens: float) -> float:
        """1 − (1 − k/E)^tokens: the expected share of a layer's experts in use.

        Each token uses k of the E experts.

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
            batch: the sequences and chunks of prompts in the step.
        """
        new = sum(new for new, _ in batch.prefill)
        scored = self.scored(batch.prefill) if batch.prefill else 0.0
        prompts = len(batch.prefill)
        return self.mixed(batch.decode, batch.context, new, prompts, scored)

    def mixed(
        self,
        decode: float,
        context: float,
        new: float = 0.0,
        prompts: float = 0.0,
        scored: float = 0.0,
        verified: float = 1.0,
    ) -> StepTime:
        """A step, computed from its totals in about 5 µs; `step` calls this method.

        Args:
            decode: sequences that decode.
            context: tokens in the caches of all these sequences together.
            new: tokens of prompts.
            prompts: the number of chunks that these tokens belong to.
            scored: FLOPs of attention of these chunks; see `scored`.
            verified: tokens that the step computes for each sequence; more than one if
                it checks drafted tokens.
        """
        at, one, layout, x = self.at, self.amounts, self.layout, self._linear
        groups = layout.data * layout.pipeline
        # The busiest group has at least one whole sequence, if there is any.
        rank = max(decode / groups, min(decode, 1.0))
        seen = context * (rank / decode) if decode else 0.0
        local = min(seen, one.limit * rank) if one.limit else 0.0
        nbytes = one.read[0] * seen + one.read[1] * local + 2 * one.state * rank
        read = nbytes / self.chip.hbm_bandwidth
        asked = one.scores[0] * seen + one.scores[1] * local + one.recurrence * rank
        asked *= verified
        tokens = rows = rank * verified
        all_tokens = decode * verified / layout.pipeline
        launch = self._launched + self.wires.latency
        share = self.touched(all_tokens)
        math, work = tokens * x.flops, tokens * x.work
        routed, experts = all_tokens * x.expert_flops, all_tokens * x.expert_work
        if new:
            prompt, all_new = new / groups, new / layout.pipeline
            tokens += prompt
            rows += prompts / groups
            share = self.touched(all_tokens + all_new)
            math += prompt * x.flops
            work += prompt * x.work
            scored /= groups
            routed += all_new * x.expert_flops
            experts += all_new * x.expert_work / self._grouped(all_new)
            launch += self._launched
        weights = x.weights + x.experts * share + x.head
        net = tokens * x.network
        return StepTime(
            weights + read,
            math + routed + rows * x.head_flops + (asked + scored) * x.per_flop,
            net,
            launch,
            at.sequence * rank,
            max(x.weights / MEMORY, work) + max(x.head / MEMORY, rows * x.head_work),
            max(x.experts * share / MEMORY, experts),
            max(read / MEMORY, asked * x.per_work),
            scored * x.per_work,
            net / NETWORK,
        )

    @property
    def first_token_delay(self) -> float:
        """Seconds that a first token waits in addition to the steps of its prompt.

        A prompt passes the front end and the scheduler, and its kernels are launched
        one by one. We assume that the wait is proportional to the number of kernels. It
        delays no other request.
        """
        return (self.amounts.kernels + self.wires.calls) * self.at.first

    @cached_property
    def _launched(self) -> float:
        """Seconds of a step's kernels in addition to their work. A step that is not
        replayed from a graph takes them twice."""
        return (self.amounts.kernels + self.wires.calls) * self.at.launch

    def _grouped(self, tokens: float) -> float:
        """The share of a large matmul's rate that experts reach with `tokens`."""
        experts = self.model.experts
        if not experts:
            return 1.0
        rows = tokens * experts.per_token / experts.count
        return EXPERTS / (1 + efficiencies().rows / rows)

    def scored(self, prefill: Iterable[tuple[float, float]]) -> float:
        """FLOPs of attention of some chunks on one chip, in the cheaper of two forms:
        with the latent as it is cached, or with keys and values computed from it.

        Args:
            prefill: for every chunk, its tokens and the tokens before it.
        """
        one = self.amounts
        absorbed = expanded = states = 0.0
        for new, behind in prefill:
            whole, local = keys_seen(new, behind), keys_seen(new, behind, one.limit)
            absorbed += one.scores[0] * whole + one.scores[1] * local
            expanded += one.expanded[0] * whole + one.expanded[1] * local
            expanded += one.expanding * behind
            states += one.recurrence * new
        return min(absorbed, expanded) + states

    @cached_property
    def memory(self) -> Capacity:
        """The bytes on each of its chips, and its room for sequences."""
        return capacity(
            self.model, self.chip, self.layout, self.formats, self.amounts, self.reserve
        )

    def slots(self, length: float, page: int = PAGE) -> int:
        """How many sequences of `length` tokens fit at once; see `Capacity.slots`."""
        return self.memory.slots(length, page)

    def decode(self, seqs: float, context: float) -> StepTime:
        """A step in which `seqs` sequences get one token each.

        Args:
            seqs: the number of sequences.
            context: tokens in the caches of all these sequences together.

        Raises:
            ValueError: a number that is negative or not finite.
        """
        return self.mixed(not_negative("seqs", seqs), not_negative("context", context))

    def prefill(self, tokens: float, behind: float = 0) -> StepTime:
        """A step with a prompt of `tokens` tokens, or with a chunk of a prompt that has
        `behind` tokens before this chunk.

        Raises:
            ValueError: a number that is negative or not finite.
        """
        tokens, behind = not_negative("tokens", tokens), not_negative("behind", behind)
        return self.step(Batch(prefill=((tokens, behind),)))

    def request_bound(
        self, prompt: float, output: float, concurrency: float = 1
    ) -> float:
        """A lower bound of the mean seconds of a request, TTFT + output · TPOT, if
        `concurrency` requests are always in flight.

            max over HBM, math and network of all the work of these requests

        The work of a prompt may share the steps of other requests that decode, and a
        step reads the weights once for all of them.

        Args:
            prompt, output: tokens of a request.
            concurrency: requests in flight.

        Assumes:
            All requests decode at once. If fewer do, the others wait, and the mean is
            longer, because a step then reads the weights for fewer tokens.
        """
        steps = self.decode(concurrency, concurrency * held(prompt, output))
        once = self.prefill(prompt)
        return max(
            output * steps.hbm,
            output * steps.math + concurrency * once.math,
            output * steps.network + concurrency * once.network,
        )
