"""What a machine does with a model under a rate of requests, and in which layout.

The bound of the time per output token lets nothing but decode run, with as many
sequences as Little's law says for this rate:

    TPOT ≥ bound of a step with B sequences,  B = rate · (output − 1) · TPOT

The bound of the time to first token is that of the prompt alone. The prediction is a
simulation of requests that come at random times, each of whose steps takes its
predicted time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..base.units import positive
from ..inference import Server, held
from ..inference.efficiencies import table
from .copies import Deployment
from .engine import Engine
from .requests import Demand
from .result import LatencyTarget, ServingResult
from .simulate import simulate

FEWEST, MOST = 400, 4000  # requests that are played for an answer
LIVES = 4  # how many times longer they come than an answer at the target takes
WAVES = 3  # of requests through all slots, to see what a full server completes
CLOSE = 0.02  # of the capacity, between two rates where the search for one ends
STEPS = 30  # of the search for a bound
TARGET = LatencyTarget(ttft=2.0, tpot=0.05)


@dataclass(frozen=True)
class LayoutAnswer:
    """One layout of a machine under a rate of requests.

    Args:
        deployment: the copies of a server.
        rate: requests per second to the whole machine.
        input, output: tokens of a request.
        target: what users are promised.
        seed: of the arrivals.
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
        """Requests that the memory of one copy has room for, at their mean length."""
        return self.server.slots(held(self.input, self.output))

    def played(self, rate: float) -> ServingResult:
        """One copy under so many requests per second of its own."""
        lives = LIVES * rate * self.output * self.target.tpot
        count = int(min(max(FEWEST, lives), MOST))
        demand = Demand.poisson(rate, count, self.input, self.output, self.seed)
        return simulate(self.deployment.seconds, self.engine, demand)

    @cached_property
    def result(self) -> ServingResult:
        """One copy under its share of the rate.

        Raises:
            ValueError: a rate above the capacity; says what that is.
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
        """Requests per second that the machine completes at most, predicted.

        Each copy has as many clients as slots, so that there is always a request to
        admit.
        """
        clients = min(self.engine.slots, max(self.slots, 1))
        demand = Demand.closed_loop(clients, WAVES * clients, self.input, self.output)
        result = simulate(self.deployment.seconds, self.engine, demand)
        return self.deployment.copies * result.steady() / self.output

    @cached_property
    def most(self) -> float:
        """The largest rate at which the target is kept, in requests per second; 0 if
        it is not even kept by a request alone."""
        low, high = 0.0, self.capacity / self.deployment.copies
        if not self._keeps(high / 1000):
            return 0.0
        while high - low > CLOSE * self.capacity / self.deployment.copies:
            middle = (low + high) / 2
            low, high = (middle, high) if self._keeps(middle) else (low, middle)
        return low * self.deployment.copies

    def _keeps(self, rate: float) -> bool:
        return self.played(rate).meets(self.target)

    # ---------------------------------------------------------- bounds and predictions

    @cached_property
    def decoding(self) -> float:
        """Sequences that decode at a time, in the mean over a copy's time in decode."""
        (steps,) = self.result.stretches
        busy = [one for one in steps if one.decode]
        time = sum(one.end - one.start for one in busy)
        return sum(one.decode * (one.end - one.start) for one in busy) / time

    @cached_property
    def tpot_bound(self) -> float:
        """Seconds per output token that no server of this layout beats in the mean."""
        length = held(self.input, self.output)
        found = 0.0
        for _ in range(STEPS):
            seqs = max(1.0, self.each * (self.output - 1) * found)
            found = self.server.decode(seqs, seqs * length).bound
        return found

    @cached_property
    def ttft_bound(self) -> float:
        """Seconds to the first token that no server of this layout beats."""
        return self.server.prefill(self.input).bound

    def bound(self, metric: str) -> float:
        """`ttft_bound` or `tpot_bound`."""
        return {"ttft": self.ttft_bound, "tpot": self.tpot_bound}[metric]

    def predicted(self, metric: str) -> float:
        """The median of all requests, "ttft" or "tpot", in seconds."""
        return getattr(self.result, metric)(50)

    def low(self, metric: str) -> float | None:
        """Seconds that 9 of 10 published servers take at least, or the bound."""
        return self._banded(metric, 0)

    def high(self, metric: str) -> float | None:
        """Seconds that 9 of 10 published servers take at most."""
        return self._banded(metric, 1)

    def _banded(self, metric: str, end: int) -> float | None:
        found = self.band(metric)
        if found is None:
            return None
        return max(found[end] * self.predicted(metric), self.bound(metric))

    def band(self, metric: str) -> tuple[float, float] | None:
        """Measured over predicted of 8 in 10 published servers, "tpot" or "ttft".

        None where no band was fitted to published servers.
        """
        kind = "experts" if self.server.model.experts else "dense"
        return table().get("bands", {}).get(f"{metric} {kind} together")

    # --------------------------------------------------------------------------- price

    def dollars(self, price: float, rate: float | None = None) -> float:
        """Dollars per million tokens of answers.

        Args:
            price: dollars for an hour of a chip.
            rate: requests per second, the rate asked for if None.
        """
        positive(price=price)
        tokens = (rate or self.rate) * self.output
        return price * self.deployment.machine.chips / 3600 / tokens * 1e6

    @property
    def joules(self) -> float | None:
        """Joules per million tokens of answers at this rate, if all chips draw the
        power that they are rated for; None if no source states it."""
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
