"""Every mesh that a model admits on a network: what it takes, and which are the best.

Memory comes first, then the math with the bubble, then HBM and the network: a mesh that
is already slower than the ones found so far is not looked at any further.
"""

from bisect import insort
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, prod

from ..hardware.networks import Network
from ..training.amounts import Names, Sizes, Ways
from ..training.cost import StepCost, fixed_and_shrinking
from ..training.derivation import Derivation
from ..training.job import Job
from ..training.stages import Pipelines
from .links import Links
from .patterns import ORDER, SHARDS, batch_shares, pattern


@dataclass(frozen=True)
class Trial:
    """One mesh with its numbers; seconds of a step on one chip.

    Args:
        shards, sizes, microbatches: what it is, sizes of all axes of `ORDER`.
        math: FLOPs at the peak, waiting for other stages of a pipeline included.
        hbm: as in `Step.estimate`, of the busiest stage.
        network: likewise, of the stage that it takes longest for.
        waiting: share of the step in which the busiest stage waits for others.
        uneven: FLOPs of the busiest stage over those of a mean one.
        memory: bytes by part, of the stage that holds most.
    """

    shards: str
    sizes: Mapping[str, int]
    microbatches: int
    math: float
    hbm: float
    network: float
    waiting: float
    uneven: float
    memory: Mapping[str, float]

    @property
    def lower(self) -> float:
        """Seconds if all three work at once: no step is faster."""
        return max(self.math, self.hbm, self.network)

    @property
    def rank(self) -> tuple:
        """By the bound, to ten digits; of equals by what has to be hidden to meet it,
        then by how many axes there are to get right."""
        together = self.math + self.hbm + self.network
        axes = sum(size > 1 for size in self.sizes.values())
        return float(f"{self.lower:.9e}"), together, axes

    @property
    def axes(self) -> dict[str, int]:
        """The sizes of the axes that are larger than 1, outermost first."""
        return {axis: n for axis, n in self.sizes.items() if n > 1}


CLOSE = 1e-9  # as far apart as the same number may come out by two ways
# Of F, I and W, how many a stage waits for in those before it, by schedule.
FILLED = {"1f1b": 3, "gpipe": 3, "zb-h1": 2}


def factorisations(n: int, slots: int) -> Iterator[tuple[int, ...]]:
    """Every way to write n as a product of `slots` numbers, in order.

    >>> list(factorisations(4, 2))
    [(1, 4), (2, 2), (4, 1)]
    """
    if slots == 1:
        yield (n,)
        return
    for first in divisors(n):
        for rest in factorisations(n // first, slots - 1):
            yield first, *rest


def divisors(n: int) -> list[int]:
    """The divisors of n, smallest first.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return small + [n // d for d in reversed(small) if d * d < n]


class Search:
    """The meshes of one job on one network.

    Args:
        job: what is trained.
        network: on what.
        fixed: sizes of axes that are given, such as ``{"tensor": 8}``.
        capacity: bytes of HBM that may be used.
        keys: what context parallelism does with keys, see `training.context`.
    """

    def __init__(
        self, job: Job, network: Network, fixed: Sizes, capacity: float, keys: str
    ):
        self.job, self.network, self.fixed = job, network, dict(fixed)
        self.capacity, self.keys = capacity, keys
        self.peak = network.chip.flops[job.precision]
        self.bandwidth = network.chip.hbm_bandwidth
        self.links = Links(network, ORDER, job)
        self.pipelines = Pipelines(job.model, job.schedule, job.chunks)
        self.patterns: dict[tuple[str, Names], Derivation] = {}
        self.batches: dict[tuple, dict[str, float]] = {}
        self.sending: dict[tuple[Derivation, int], list[int]] = {}
        self.failed: dict[tuple, str] = {}
        self.counts: Counter[str] = Counter()  # of meshes: tried, admitted, fitting …
        self.obstacles: Counter[str] = Counter()  # why meshes are not admitted
        self.least = inf, {}, 0  # bytes of the mesh that comes nearest to fitting
        self.fixed_bytes = inf  # the least that is held of what no batch makes smaller

    def meshes(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Every factorisation of the chips over the axes there are; each mesh once."""
        experts = self.job.model.experts
        seen = set()
        for shards, names in SHARDS.items():
            axes = [a for a in ORDER if a == "pipeline" or a in names]
            axes = [a for a in axes if a != "expert" or experts]
            axes = [a for a in axes if a not in self.fixed]
            left, rest = divmod(self.network.chips, prod(self.fixed.values()))
            if rest or any(n > 1 and a not in (*names, "pipeline")
                           for a, n in self.fixed.items()):  # fmt: skip
                continue
            for sizes in (
                factorisations(left, len(axes)) if axes else [()] * (left == 1)
            ):
                found = dict.fromkeys(ORDER, 1) | self.fixed
                found |= dict(zip(axes, sizes, strict=True))
                key = tuple(found.values())
                sharing = [a for a in ("fsdp", "zero", "expert", "context")
                           if found[a] > 1]  # fmt: skip
                if key in seen and not sharing:  # nothing that could be shared or not
                    continue
                seen.add(key)
                yield shards, found

    def best(self, top: int) -> list[Trial]:
        """The best meshes, the best first."""
        found: list[Trial] = []
        every = sorted(self.fitting(), key=lambda one: one[:2])
        worst = inf
        for least, _, *mesh in every:
            if least > worst:
                break
            trial = self.trial(*mesh, worst)
            if trial is not None:
                insort(found, trial, key=lambda one: one.rank)
                del found[top:]
            if len(found) == top:
                worst = found[-1].lower * (1 + CLOSE)
        return found

    def pattern(self, shards: str, sizes: Sizes) -> Derivation | str:
        """What is common to all meshes with these axes, or what does not divide."""
        axes = tuple(a for a in ORDER if sizes[a] > 1 and a != "pipeline")
        if (shards, axes) in self.patterns:
            return self.patterns[shards, axes]
        least = {axis: divisors(sizes[axis])[1] for axis in axes}
        key = shards, tuple(least.items())
        if key not in self.failed:
            try:
                found = pattern(self.job, shards, axes, least, self.keys)
                self.patterns[shards, axes] = found
                return found
            except ValueError as error:
                self.failed[key] = str(error).partition("\n")[0]
        return self.failed[key]

    def fitting(self) -> Iterator[tuple[float, int, str, dict, int]]:
        """Meshes that are admitted and fit, with the least time that they may take."""
        for shards, sizes in self.meshes():
            self.counts["tried"] += 1
            why = self.obstacle(shards, sizes)
            if why:
                self.obstacles[why] += 1
                continue
            self.counts["admitted"] += 1
            fits = 0
            for least, many in self._microbatches(shards, sizes):
                fits += 1
                yield least, self.counts["admitted"], shards, sizes, many
            self.counts["fitting"] += bool(fits)

    def obstacle(self, shards: str, sizes: Sizes) -> str:
        """Why the model does not admit a mesh; "" where it does."""
        if sizes["expert"] > 1 and not self.job.model.experts:
            return f"expert {sizes['expert']}: {self.job.model.name} has no experts"
        if sizes["pipeline"] > self.job.model.layers:
            return f"pipeline {sizes['pipeline']}: {self.job.model.layers} layers"
        try:
            self.pipelines.few(sizes["pipeline"])
        except ValueError as error:  # more chunks than layers; stages that are odd
            return str(error)
        found = self.pattern(shards, sizes)
        if isinstance(found, str):
            return found
        for axes, most in found.strictest.items():
            n = prod([sizes[axis] for axis in axes])
            if most % n:
                what = next(one for one in found.limits[axes] if one[1] % n)
                return f"{_over(axes, sizes)} does not divide {_named(*what)}"
        return self.links.obstacle(sizes)

    def _microbatches(
        self, shards: str, sizes: dict[str, int]
    ) -> Iterator[tuple[float, int]]:
        """Least time and microbatches, where the mesh fits in memory with so many.

        Of a mesh without a pipeline the fewest: more parts move weights more often and
        gain nothing. In a pipeline each number, as more parts shorten the bubble.
        """
        derivation, count = self.pattern(shards, sizes), sizes["pipeline"]
        ways = Ways(sizes)
        whole = self.batch(derivation, 1, ways)
        shares = derivation.shares(self.pipelines.contents(count))
        some = sorted({0, min(1, count - 1), count - 1})
        held = [fixed_and_shrinking(shares[n], ways, whole) for n in some]
        fixed = max(one for one, _, _ in held)
        self.fixed_bytes = min(self.fixed_bytes, fixed)
        if fixed > self.capacity and fixed > self.least[0]:
            return  # no number makes it fit, nor come nearest to it
        bounds, paths = None, self.pipelines.paths(count)
        for many in divisors(self.job.seqs // ways(derivation.batch_axes)):
            if not self.pipelines.possible(count, many):
                continue
            flight = self.pipelines.in_flight(count, many)
            total = max(
                [
                    fixed + (shrinking + saved * flight[n] / paths) / many
                    for n, (fixed, shrinking, saved) in zip(some, held, strict=True)
                ]
            )
            if total < self.least[0]:
                self.least = total, sizes, many
            if total <= self.capacity:
                if bounds is None:
                    cost = StepCost(shares, self.pipelines, 1, ways, whole)
                    bounds = self._bounds(cost.passes)
                yield max(work + fill / many for fill, work in bounds), many
                if count == 1:
                    return

    def batch(self, derivation: Derivation, microbatches: int, ways) -> dict:
        """The share of one microbatch in an amount, by what divides it."""
        key = microbatches, ways(derivation.dealt_over), derivation.slots
        if key not in self.batches:
            self.batches[key] = batch_shares(derivation, *key[:2])
        return self.batches[key]

    def _bounds(self, passes: list[tuple[float, ...]]) -> list[tuple[float, float]]:
        """Seconds that no order of the passes undercuts: the first microbatch has to
        come to a stage, and the last has to get back from there.

        Args:
            passes: FLOPs of F, I and W by stage, of the whole batch in one.

        Returns:
            Stage by stage what has to be done before and after, for one microbatch, and
            what on the stage for all; of stages that do alike the last alone.
        """
        paths, fill = self.pipelines.paths(len(passes)), 0.0
        drains, found = FILLED.get(self.job.schedule, 0), {}
        for each in passes:
            found[sum(each) / paths / self.peak] = fill / self.peak
            fill += sum(each[:drains])
        return [(fill, work) for work, fill in found.items()]

    def trial(
        self, shards: str, sizes: Sizes, many: int, worst: float = inf
    ) -> Trial | None:
        """One mesh with its numbers; None where it takes longer than `worst`, or where
        axes share a ring so that there is no price."""
        derivation, count = self.pattern(shards, sizes), sizes["pipeline"]
        ways = Ways(sizes)
        shares = derivation.shares(self.pipelines.contents(count))
        batch = self.batch(derivation, many, ways)
        cost = StepCost(shares, self.pipelines, many, ways, batch)
        hbm = cost.hbm_bytes(cost.busiest) / self.bandwidth
        if hbm > worst:
            return None
        network = self._network(cost, derivation, sizes, worst)
        if network is None or network > worst:
            return None
        math = cost.math_flops / self.peak
        if math > worst:
            return None
        memory = cost.most_memory
        uneven = count * sum(cost.passes[cost.busiest]) / sum(map(sum, cost.passes))
        waiting = 1 - cost.working
        return Trial(shards, sizes, many, math, hbm, network, waiting, uneven, memory)

    def _network(
        self, cost: StepCost, derivation: Derivation, sizes: Sizes, worst: float
    ) -> float | None:
        """Seconds of the busiest links, of the stage where they take longest."""
        inside, chips = {}, 1
        for axis in reversed(ORDER):
            inside[axis] = chips
            chips *= sizes[axis]

        def rate(wire):
            found = self.links.rate(wire, sizes, inside)
            if found is None:
                self.obstacles[f"{' and '.join(wire[1])} share a ring"] += 1
            return found

        key = derivation, sizes["pipeline"]
        if key not in self.sending:
            self.sending[key] = cost.sending
        most = 0.0
        for stage in self.sending[key]:
            found = cost.network(stage, rate, worst)
            if found is None or found > worst:
                return found
            most = max(most, found)
        return most


WORDS = {
    "B": "sequences",
    "S": "tokens of a sequence",
    "T": "tokens of a sequence",
    "N": "query heads",
    "K": "KV heads",
    "E": "experts",
    "V": "words of the vocabulary",
}


def _named(dim: str, size: int) -> str:
    return f"{size:,} {WORDS[dim]}" if dim in WORDS else f"{dim} = {size:,}"


def _over(axes: Names, sizes: Sizes) -> str:
    some = [axis for axis in axes if sizes[axis] > 1]
    each = " x ".join(f"{axis} {sizes[axis]}" for axis in some)
    total = prod(sizes[axis] for axis in some)
    return f"{each} = {total}" if len(some) > 1 else each
