"""The time and memory of a step, evaluated from its derivation.

The printed step, the planner's search, the published runs and the live figures all use
`StepCost`. It gives one lower bound each for math, HBM and network: the time that this
resource needs if it never waits. A step takes at least as long as the longest of the
three.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import inf

from .amounts import Names, evaluate
from .derivation import Share
from .memory import PARTS
from .rates import Rate
from .stages import Pipelines


class StepCost:
    """A step on one mesh, stage by stage.

    Args:
        shares: the sum of the parts of each stage.
        pipelines: the stages and their schedule.
        microbatches: microbatches of a step, M.
        ways: into how many parts given mesh axes split an array.
        batch: the share of the derived batch that is computed in one pass, keyed by "",
            "B" and "slots".

    All FLOPs, bytes and seconds are those of one chip.
    """

    def __init__(
        self,
        shares: Sequence[Share],
        pipelines: Pipelines,
        microbatches: int,
        ways: Callable[[Names], int],
        batch: Mapping[str, float],
    ):
        self.shares, self.pipelines, self.microbatches = shares, pipelines, microbatches
        self.ways, self.batch = ways, batch
        self._passes: dict[int, tuple[float, float, float]] = {}

    @property
    def count(self) -> int:
        """The number of stages, p."""
        return len(self.shares)

    @cached_property
    def rounds(self) -> float:
        """How many microbatches take each path through the stages."""
        return self.microbatches / self.pipelines.paths(self.count)

    def flops(self, stage: int) -> dict[str, float]:
        """FLOPs of a stage in a step, by pass."""
        return {
            when: self.rounds * evaluate(amounts, self.ways, self.batch)
            for when, amounts in self.shares[stage].flops.items()
        }

    def one_pass(self, stage: int) -> tuple[float, float, float]:
        """FLOPs for one microbatch of each path: forward (F), for gradients of inputs
        (I), and for gradients of weights (W). I includes recomputation. Stages with
        equal contents are evaluated only once."""
        share = self.shares[stage]
        if id(share) not in self._passes:
            self._passes[id(share)] = tuple(
                evaluate(amounts, self.ways, self.batch)
                for amounts in (
                    share.flops["forward"],
                    share.input_flops,
                    share.weight_flops,
                )
            )
        return self._passes[id(share)]

    @cached_property
    def passes(self) -> list[tuple[float, float, float]]:
        """F, I and W of every stage."""
        return list(map(self.one_pass, range(self.count)))

    @cached_property
    def busiest(self) -> int:
        """The stage with the most FLOPs; in a tie, the one that sends most often."""
        sends = [
            sum(times for _, times in stage.sends)
            for stage in self.pipelines.contents(self.count)
        ]
        return max(range(self.count), key=lambda n: (sum(self.passes[n]), sends[n]))

    @cached_property
    def busy_flops(self) -> float:
        """FLOPs of the busiest stage in a step."""
        return sum(self.passes[self.busiest]) * self.rounds

    @cached_property
    def math_flops(self) -> float:
        """Seconds of the step's math, with pipeline waits, times peak FLOPs/s."""
        return self.pipelines.seconds(self.count, self.microbatches, self.passes)

    @property
    def working(self) -> float:
        """The share of the step in which the busiest stage computes."""
        return self.busy_flops / self.math_flops

    @property
    def bubble(self) -> float:
        """Idle ÷ busy time of all stages if math runs at its peak; 0 for one stage."""
        busy = sum(map(sum, self.passes)) * self.rounds
        return self.count * self.math_flops / busy - 1

    def memory(self, stage: int) -> dict[str, float]:
        """Bytes that a chip of a stage holds at the peak of the step, by part."""
        share = self.shares[stage]
        held = {
            part: evaluate(amounts, self.ways, self.batch)
            for part, amounts in share.added_up.items()
        }
        held["saved"] *= self._in_flight(stage) / self.pipelines.paths(self.count)
        held["saved"] += evaluate(share.once, self.ways, self.batch)
        for part, some in share.largest.items():
            held[part] = max(evaluate(one, self.ways, self.batch) for one in some)
        return {part: held[part] for part in PARTS if part in held}

    @cached_property
    def most_memory(self) -> dict[str, float]:
        """Bytes that a chip holds on the stage that holds the most, by part."""
        ends: dict[int, list[int]] = defaultdict(list)  # stages with equal contents
        for stage, share in enumerate(self.shares):
            ends[id(share)].append(stage)
        some = {stage for same in ends.values() for stage in (same[0], same[-1])}
        return max(map(self.memory, sorted(some)), key=lambda held: sum(held.values()))

    def hbm_bytes(self, stage: int) -> float:
        """A lower bound on the bytes to and from HBM. State, gradients and saved
        activations are written and read once, and the copy of the weights is written
        once. Each pass of a microbatch, forward or backward, reads each matrix once."""
        held, share = self.memory(stage), self.shares[stage]
        read = 2 * self.rounds * evaluate(share.read, self.ways, self.batch)
        saved = held["saved"] / self._in_flight(stage) * self.microbatches
        return read + 2 * (held["state"] + held["gradients"] + saved) + held["weights"]

    def network(
        self, stage: int, rate: Callable[[tuple], Rate | None], enough: float = inf
    ) -> float | None:
        """Seconds for which the busiest links of a stage work.

        This is a lower bound: collectives on all other links overlap with these.

        Args:
            stage: the stage.
            rate: seconds per byte of a collective on each dimension of the network.
            enough: seconds after which we may stop, because a longer time is ruled out.

        Returns:
            The seconds; None if mesh axes share a ring, because we then have no price.
        """
        busy: dict[int, float] = defaultdict(float)
        for wire, traffic in self.shares[stage].traffic.items():
            found = rate(wire)
            if found is None:
                return None
            hops = self.ways(wire[1]) - 1
            often = {"": 1, "M": self.rounds, "n": hops, "Mn": self.rounds * hops}
            nbytes = sum(
                amount / self.ways(axes) * self.batch[kind] * often[how]
                for ((axes, kind), how), amount in traffic.nbytes.items()
            )
            for link, seconds in found.items():
                busy[link] += nbytes * seconds
            if max(busy.values(), default=0.0) > enough:
                break
        return max(busy.values(), default=0.0)

    @cached_property
    def sending(self) -> list[int]:
        """The stages that may have the most traffic. A stage is left out if another
        stage moves all that it moves."""
        found: list[int] = []
        for n, share in enumerate(self.shares):
            if any(share.sends_within(self.shares[other]) for other in found):
                continue
            found = [m for m in found if not self.shares[m].sends_within(share)] + [n]
        return found

    def _in_flight(self, stage: int) -> float:
        return self.pipelines.in_flight(self.count, self.microbatches)[stage]
