"""The same jobs on different meshes: 2,127 runs of one framework on one cluster.

They show what other published runs cannot: which of two meshes is faster, and how much
memory a mesh takes. Predictions that leave out the host are far too fast for these
runs, because the host is slow in this framework. `Host` has three latencies that belong
to the host and its network, and not to the chip.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from statistics import fmean

from ..base.tables import Absent
from ..hardware.chips import H100
from ..hardware.mesh import Mesh
from ..hardware.networks import Cluster, NVLinkDomain
from ..training import Prediction, Step, combine, data, pipeline, step, tensor, zero
from ..transformer import Model
from .rows import named_rows

SEQS, SEQ, NODE = 256, 4096, 8
VOCAB = 131_072
MODELS = {  # layers, D, F, heads, and whether head and embedding share their weights
    "1B": (16, 2048, 8192, 32, True),
    "3B": (28, 3072, 8192, 32, True),
    "8B": (32, 4096, 14_336, 32, False),
    "80B": (80, 8192, 28_672, 64, False),
}
BUSY = ("math", "attention", "memory", "launches", "tensor")  # parts of a microbatch
EXCHANGES = 10  # exchanges of tensor parallelism in a layer, forward and backward
CLOSE = 1.05  # times that differ by a smaller factor are not ordered
# Bytes that the framework holds. Its code has 18·D + 8·F and 6 + 12/n. A fit to these
# very runs adds four constants for what its allocator and the backward pass also keep.
SAVED_D, SAVED_F = 20, 11  # per token and layer, times D and times F
LOGIT, RESTING, SHARED = 14, 8, 12  # per logit; per parameter; per parameter, sharded
ALWAYS = 0.35 * 2**30
LIMIT = 79 * 2**30  # bytes that a GPU can give to the framework


@dataclass(frozen=True)
class Host:
    """Latencies of the framework and the network; they are not settings of a job.

    Args:
        layer: the minimum time in seconds that the host needs per layer and microbatch,
            forward and backward together, with tensor parallelism.
        hop: seconds of a hop of tensor parallelism that leaves the node.
        bucket: seconds of a hop of data parallelism for each bucket.
        nbytes: bytes of a bucket of gradients or weights.

    Source:
        The values were fitted to the runs in the table that use no pipeline. They are
        at the upper end of what others measured. For comparison, the network's latency
        for a hop between nodes is 4 µs.
    """

    layer: float = 4.5e-3
    hop: float = 43e-6
    bucket: float = 5e-6
    nbytes: float = 25e6


NO_HOST = Host(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class MeshRun:
    """One run.

    Args:
        model: a key of `MODELS`.
        nodes: the number of nodes, each of eight H100s.
        tensor, pipeline, data: the size of each kind of parallelism.
        zero: 1 if the data-parallel ranks shard the optimizer's state, else 0.
        microbatch: sequences of a microbatch.
        microbatches: microbatches of a step.
        tokens: tokens/s of one GPU; None if it did not run.
        memory: bytes on the first rank; None if they were not recorded.
        stalled: whether it took over twice as long as similar runs.
        refused: whether the framework refuses such a mesh, even if it fits in memory.
    """

    model: str
    nodes: int
    tensor: int
    pipeline: int
    data: int
    zero: int
    microbatch: int
    microbatches: int
    tokens: float | None
    memory: float | None
    stalled: bool
    refused: bool

    @property
    def shape(self) -> Model:
        layers, D, F, heads, tied = MODELS[self.model]
        return Model(self.model, layers, D, F, heads, heads, D // heads, VOCAB,
                     tied=tied)  # fmt: skip

    @property
    def seconds(self) -> float:
        """Measured seconds of a step.

        Raises:
            Absent: a ValueError; it did not run.
        """
        if self.tokens is None:
            raise Absent(f"{self}: it did not run")
        return SEQS * SEQ / (NODE * self.nodes * self.tokens)

    @cached_property
    def step(self) -> Step:
        """The derived step."""
        makers = {
            "pipeline": (self.pipeline, pipeline),
            "data": (
                self.data,
                lambda axis: zero(1, axis) if self.zero else data(axis),
            ),
            "tensor": (self.tensor, tensor),
        }
        axes = {axis: n for axis, (n, _) in makers.items() if n > 1} or {"data": 1}
        node = NVLinkDomain(H100, NODE)
        network = Cluster(node, self.nodes) if self.nodes > 1 else node
        return step(
            combine(*(makers[axis][1](axis) for axis in axes)),
            self.shape,
            Mesh(network, axes),
            SEQS,
            SEQ,
            attention="causal",
            remat="none",
            microbatches=self.microbatches,
            formats={"gradients": "fp32"},
        )

    @property
    def prediction(self) -> Prediction:
        return self.step.prediction

    def predicted(self, host: Host = NO_HOST) -> float:
        """Predicted seconds of a step, with the latencies of a host.

        Assumes:
            With a `host`, ZeRO-1 gathers its weights after the step, where nothing
            hides the gather, because this framework does so.
        """
        parts, layers = self.prediction.parts, self.shape.layers / self.pipeline
        passes = layers * self.microbatches
        busy = sum(parts[name] for name in BUSY)
        longer = busy
        if self.tensor > NODE:
            longer += passes * EXCHANGES * (self.tensor - 1) * host.hop
        if self.tensor > 1:
            longer = max(longer, passes * host.layer)
        wait = parts["bubble"] * longer / busy
        found = self.prediction.seconds - busy - parts["bubble"] + longer + wait
        if host is not NO_HOST and self.data > 1 and self.zero:
            found += self._gather(host)
        return found

    def _gather(self, host: Host) -> float:
        """Seconds to gather the weights of a chip once per step."""
        nbytes = 2 * self.shape.params / self.tensor / self.pipeline
        inside = self.data * self.tensor <= NODE
        rate = H100.scale_up_bandwidth if inside else H100.scale_out_bandwidth
        hops = nbytes / host.nbytes * (self.data - 1)
        return nbytes * (1 - 1 / self.data) / rate + hops * host.bucket

    def held(self, stage: int = 0) -> float:
        """Bytes on a chip of a stage, derived from the framework's code and the fit."""
        _, D, F, _, tied = MODELS[self.model]
        own, heads = self._stages
        weights = own[stage] * (4 * D * D + 3 * D * F)
        weights += VOCAB * D * (stage == 0)
        weights += VOCAB * D * (heads[stage] and not (tied and self.pipeline == 1))
        ranks = self.data if self.zero else 1
        tokens = self.microbatch * SEQ
        flying = min(self.microbatches, self.pipeline - stage)
        saved = tokens * (SAVED_D * D + SAVED_F * F) * own[stage] * flying
        logits = tokens * VOCAB * LOGIT * heads[stage]
        resting = weights * (RESTING + SHARED / ranks)
        return (resting + saved + logits) / self.tensor + ALWAYS

    @property
    def fits(self) -> bool:
        """Whether every stage fits in `LIMIT` according to `held`."""
        return max(map(self.held, range(self.pipeline))) <= LIMIT

    @cached_property
    def _stages(self) -> tuple[list[int], list[bool]]:
        """The layers of each stage, and whether it has the head, which is one block."""
        layers, D, F, *_ = MODELS[self.model]
        costs = [4 * D * D + 3 * D * F] * layers + [VOCAB * D]
        share = sum(costs) / self.pipeline
        own, heads = [0] * self.pipeline, [False] * self.pipeline
        stage, passed = 0, 0.0
        for block, cost in enumerate(costs):
            if passed + cost / 2 > share * (stage + 1) and stage < self.pipeline - 1:
                stage += 1
            passed += cost
            own[stage] += block < layers
            heads[stage] |= block == layers
        return own, heads

    def __str__(self) -> str:
        return (
            f"{self.model} on {self.nodes} nodes: tensor {self.tensor}, pipeline "
            f"{self.pipeline}, data {self.data}, microbatches of {self.microbatch}"
        )


@cache
def mesh_runs() -> tuple[MeshRun, ...]:
    """All rows of the table, including those that did not run."""
    whole = ("nodes", "tensor", "pipeline", "data", "zero", "microbatch",
             "microbatches")  # fmt: skip
    return tuple(
        MeshRun(
            model=row["model"],
            **{name: int(row[name]) for name in whole},
            tokens=float(row["tokens"]) if row["tokens"] else None,
            memory=float(row["memory"]) * 2**30 if row["memory"] else None,
            stalled=bool(row["stalled"]),
            refused=bool(row["structure"]),
        )
        for row in named_rows("meshes.csv")
    )


@dataclass(frozen=True)
class Order:
    """How often an order of meshes is right.

    Args:
        pairs: pairs of runs of one job whose times differ by more than `CLOSE`.
        right: the share of these pairs that are ordered as measured.
        regret: measured time of the mesh that comes first ÷ that of the fastest, as a
            mean over jobs.
    """

    pairs: int
    right: float
    regret: float


def order(runs: Iterable[MeshRun], merit: Callable[[MeshRun], object]) -> Order:
    """How well a merit orders runs of the same job; a smaller merit is better.

    If several runs have the same merit, half of their pairs count as right. If several
    runs come first, their mean time counts.

    >>> some = [run for run in mesh_runs() if run.pipeline == 1 and run.tokens]
    >>> order(some, lambda run: run.seconds).right
    1.0
    """
    right, pairs, regrets = 0.0, 0, []
    for some in jobs(runs).values():
        told = [(merit(run), run.seconds) for run in some]
        for (one, took), (other, longer) in combinations(told, 2):
            if max(took, longer) > CLOSE * min(took, longer):
                pairs += 1
                right += 0.5 if one == other else (one < other) == (took < longer)
        if len(told) > 1:
            first = min(value for value, _ in told)
            picked = fmean(took for value, took in told if value == first)
            regrets.append(picked / min(took for _, took in told))
    return Order(pairs, right / pairs, sum(regrets) / len(regrets))


def jobs(runs: Iterable[MeshRun]) -> dict[tuple[str, int], list[MeshRun]]:
    """Runs by model and number of nodes."""
    found: dict[tuple[str, int], list[MeshRun]] = {}
    for run in runs:
        found.setdefault((run.model, run.nodes), []).append(run)
    return found


def measured() -> Iterator[MeshRun]:
    """The runs that test the order: those without a pipeline, on up to 32 nodes."""
    for run in mesh_runs():
        if run.pipeline == 1 and run.nodes <= 32 and run.tokens:
            yield run
