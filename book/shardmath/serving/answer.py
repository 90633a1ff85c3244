"""How one layout of a machine serves a model at a given rate of requests.

The bound of the time per output token assumes that only decode runs, with the number of
sequences that Little's law gives for this rate:

    TPOT ≥ bound of a step with B sequences,  B = rate · (output − 1) · TPOT

The bound of the time to first token is that of a step with only the prompt. The
prediction is a simulation in which requests come at random times, and each step takes
its predicted time.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..base.units import positive
from ..inference import Server, held
from ..inference.efficiencies import table
from ..transformer.flops import one_of
from .copies import Deployment
from .engine import Engine
from .requests import Demand
from .result import LatencyTarget, ServingResult
from .simulate import simulate

FEWEST, MOST = 400, 4000  # requests that are simulated for an answer
LIVES = 4  # requests come for this many times the time of an answer at the target
WAVES = 3  # times that requests fill all slots, to find the capacity
PARTS = 64  # the largest rate is sought among so many parts of the capacity
STEPS = 30  # steps of the search for a bound
METRICS = ("ttft", "tpot")
TARGET = LatencyTarget(ttft=2.0, tpot=0.05)


@dataclass(frozen=True)
class LayoutAnswer:
    """One layout of a machine at a given rate of requests.

    Args:
        deployment: the copies of a server.
        rate: requests per second to the whole machine.
        input, output: tokens of a prompt and of an answer.
        target: the latency target.
        seed: seed of the arrivals.
    """

    deployment: Deployment
    rate: float
    input: int
    output: int
    target: LatencyTarget
    seed: int = 0

    @property
    def server(self) -> Server:
        """One copy of the model."""
        return self.deployment.server

    @property
    def each(self) -> float:
        """Requests per second to one copy."""
        return self.rate / self.deployment.copies

    @cached_property
    def engine(self) -> Engine:
        """The settings of one copy."""
        return self.deployment.engine(self.input, self.output)

    @cached_property
    def slots(self) -> int:
        """How many requests of mean length fit in the memory of one copy."""
        return self.server.slots(held(self.input, self.output))

    def played(self, rate: float) -> ServingResult:
        """The simulation of one copy at `rate` requests per second to this copy."""
        lives = LIVES * rate * self.output * self.target.tpot
        count = int(min(max(FEWEST, lives), MOST))
        demand = Demand.poisson(rate, count, self.input, self.output, self.seed)
        return simulate(self.deployment.seconds, self.engine, demand, pages=False)

    @cached_property
    def result(self) -> ServingResult:
        """The simulation of one copy at its share of the rate.

        Raises:
            ValueError: a rate that is not below the capacity, which the message states.
        """
        if self.rate >= self.capacity:
            raise ValueError(
                f"rate = {self.rate:g} requests/s: {self.deployment.words} on "
                f"{self.deployment.machine.name} completes at most "
                f"{self.capacity:.3g} requests/s of {self.input:,} + {self.output:,} "
                "tokens"
            )
        return self.played(self.each)

    @cached_property
    def capacity(self) -> float:
        """The largest rate that the machine is predicted to complete, in requests/s.

        Each copy has as many clients as slots, so there is always a request to admit.
        """
        clients = min(self.engine.slots, max(self.slots, 1))
        demand = Demand.closed_loop(clients, WAVES * clients, self.input, self.output)
        result = simulate(self.deployment.seconds, self.engine, demand, pages=False)
        return self.deployment.copies * result.steady() / self.output

    @cached_property
    def most(self) -> float:
        """The largest rate that meets the target, in requests per second; 0 if even a
        single request misses it.

        It is sought among 64ths of the capacity. The next one to be simulated is where
        a line through the logarithms of the latencies reaches the limit; every third
        time it is the one in the middle.
        """
        alone = self._of_capacity(1 / 1000)
        if not alone.meets(self.target):
            return 0.0
        low, high, looks = 0, PARTS, 0
        below, above = alone.ratio_to(self.target), math.inf
        guess = PARTS - 1  # many layouts keep the target almost up to the capacity
        while high - low > 1:
            result = self._of_capacity(guess / PARTS)
            if result.meets(self.target):
                low, below = guess, result.ratio_to(self.target)
            else:
                high, above = guess, result.ratio_to(self.target)
            looks += 1
            share = 1 / 2
            if looks % 3 and below < above < math.inf:
                share = -math.log(below) / math.log(above / below)
            guess = min(max(low + round(share * (high - low)), low + 1), high - 1)
        return self.capacity * low / PARTS

    def _of_capacity(self, share: float) -> ServingResult:
        return self.played(share * self.capacity / self.deployment.copies)

    # ---------------------------------------------------------- bounds and predictions

    @cached_property
    def decoding(self) -> float:
        """The mean number of sequences that decode at a time, while a copy decodes."""
        (steps,) = self.result.stretches
        busy = [one for one in steps if one.decode]
        time = sum(one.end - one.start for one in busy)
        return sum(one.decode * (one.end - one.start) for one in busy) / time

    @cached_property
    def tpot_bound(self) -> float:
        """Mean seconds per output token that no server with this layout can beat."""
        length = held(self.input, self.output)
        found = 0.0
        for _ in range(STEPS):
            seqs = max(1.0, self.each * (self.output - 1) * found)
            found = self.server.decode(seqs, seqs * length).bound
        return found

    @cached_property
    def ttft_bound(self) -> float:
        """Seconds to the first token that no server with this layout can beat."""
        return self.server.prefill(self.input).bound

    def bound(self, metric: str) -> float:
        """`ttft_bound` for "ttft", and `tpot_bound` for "tpot".

        Raises:
            ValueError: another metric.
        """
        one_of(METRICS, metric=metric)
        return {"ttft": self.ttft_bound, "tpot": self.tpot_bound}[metric]

    def predicted(self, metric: str) -> float:
        """The median "ttft" or "tpot" of all requests, in seconds.

        Raises:
            ValueError: another metric.
        """
        one_of(METRICS, metric=metric)
        return getattr(self.result, metric)(50)

    def low(self, metric: str) -> float | None:
        """Seconds that 9 of 10 servers like this exceed; at least the bound.

        `metric` is as for `band`, and so are the errors.
        """
        return self._banded(metric, 0)

    def high(self, metric: str) -> float | None:
        """Seconds that 9 of 10 servers like this stay within; at least the bound.

        `metric` is as for `band`, and so are the errors.
        """
        return self._banded(metric, 1)

    def _banded(self, metric: str, end: int) -> float | None:
        found = self.band(metric)
        if found is None:
            return None
        return max(found[end] * self.predicted(metric), self.bound(metric))

    def band(self, metric: str) -> tuple[float, float] | None:
        """The range of measured ÷ predicted that holds 8 of 10 published servers.

        Args:
            metric: "tpot" or "ttft".

        Returns:
            The two ends; None if there are no published servers like this.

        Raises:
            ValueError: another metric.
        """
        one_of(METRICS, metric=metric)
        kind = "experts" if self.server.model.experts else "dense"
        return table().get("bands", {}).get(f"{metric} {kind} together")

    # --------------------------------------------------------------------------- price

    def dollars(self, price: float, rate: float | None = None) -> float:
        """Dollars per million output tokens.

        Args:
            price: dollars per chip and hour.
            rate: requests per second; those of this answer if None.

        Raises:
            ValueError: a price or a rate that is not positive.
        """
        rate = self.rate if rate is None else rate
        price, rate = positive(price=price, rate=rate)
        tokens = rate * self.output
        return price * self.deployment.machine.chips / 3600 / tokens * 1e6

    @property
    def joules(self) -> float | None:
        """Joules per million output tokens at this rate, if all chips draw their rated
        power; None if no source states this power."""
        chip = self.server.chip
        if "power" not in chip.facts:
            return None
        watts = chip.power * self.deployment.machine.chips
        return watts / (self.rate * self.output) * 1e6

    # -------------------------------------------------------------------------- a step

    @property
    def parts(self) -> Mapping[str, float]:
        """Seconds of a step with the mean number of sequences, by part."""
        seqs = max(1.0, self.decoding)
        length = held(self.input, self.output)
        return self.server.decode(seqs, seqs * length).parts

    @property
    def goes_to(self) -> str:
        """The two largest parts of a step, in words."""
        whole = sum(self.parts.values())
        two = sorted(self.parts, key=self.parts.get, reverse=True)[:2]
        return " and ".join(f"{name} {self.parts[name] / whole:.0%}" for name in two)
