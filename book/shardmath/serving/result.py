"""The result of a simulation: times of requests, use of the server, and the price.

TTFT and TPOT are defined as a client next to the server would measure them:

* TTFT, time to first token: from the arrival of a request to the end of the step that
  gives its first token. It includes the wait in the queue and all of prefill.
* TPOT, time per output token: from the first token of a request to its last one,
  divided by the number of tokens after the first. A request with one token has no TPOT.

Percentiles are over requests, not over tokens, and are interpolated linearly between
values.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, fsum, nan

from ..base.records import kept, must_be
from ..base.units import number, positive, short_repr
from .played import Stretch
from .requests import Request


@dataclass(frozen=True)
class LatencyTarget:
    """The latencies that users are promised.

    Args:
        ttft: the limit of the time to first token, in seconds.
        tpot: the limit of the time per output token after the first, in seconds.
        share: the share of all requests that have to meet both limits.

    Raises:
        ValueError: times that are not positive, or a share that is not above 0 and at
            most 1.
    """

    ttft: float
    tpot: float
    share: float = 0.9

    def __post_init__(self) -> None:
        kept(self, positive, "ttft", "tpot", "share")
        if self.share > 1:
            raise ValueError(
                f"share = {short_repr(self.share)}: must be above 0 and at most 1"
            )


@dataclass(frozen=True)
class Served:
    """A request and the times at which it was served.

    Args:
        request: the request, with its arrival in this simulation.
        admitted: the time in seconds at which it first got a slot.
        first: the time in seconds of its first token.
        finish: the time in seconds of its last token.
        preemptions: how often it was preempted.
        hits: tokens of its prompt that were found in a kept prefix.
    """

    request: Request
    admitted: float
    first: float
    finish: float
    preemptions: int = 0
    hits: int = 0

    @property
    def ttft(self) -> float:
        """Seconds from its arrival to its first token."""
        return self.first - self.request.arrival

    @property
    def tpot(self) -> float | None:
        """Seconds per token after the first one; None if there is only one."""
        after = self.request.output - 1
        return (self.finish - self.first) / after if after else None

    @property
    def wait(self) -> float:
        """Seconds in the queue before its first admission."""
        return self.admitted - self.request.arrival

    def keeps(self, target: LatencyTarget) -> bool:
        """Whether it meets both limits of a target.

        Raises:
            ValueError: `target` is not a LatencyTarget.
        """
        must_be(LatencyTarget, target=target)
        return self.ttft <= target.ttft and (self.tpot or 0.0) <= target.tpot


@dataclass(frozen=True)
class ServingResult:
    """The result of a finished simulation.

    Args:
        served: all requests, in the order of the demand.
        stretches: for each server, its steps in order.
        pages: the pages of each server; None if there were always enough.
        computed: tokens that went through prefill, including those computed again.
    """

    served: tuple[Served, ...]
    stretches: tuple[tuple[Stretch, ...], ...]
    pages: int | None
    computed: int

    # -------------------------------------------------------------------------- times

    @cached_property
    def ttfts(self) -> tuple[float, ...]:
        """Seconds to the first token of every request, sorted."""
        return tuple(sorted(one.ttft for one in self.served))

    @cached_property
    def tpots(self) -> tuple[float, ...]:
        """Seconds per output token of every request with more than one, sorted."""
        return tuple(sorted(t for one in self.served if (t := one.tpot) is not None))

    def ttft(self, percent: float = 50) -> float:
        """A percentile of the time to first token, in seconds."""
        return percentile(self.ttfts, percent)

    def tpot(self, percent: float = 50) -> float:
        """A percentile of the seconds per output token; NaN if no request has any."""
        return percentile(self.tpots, percent) if self.tpots else nan

    @property
    def mean_ttft(self) -> float:
        """Mean seconds to the first token."""
        return fsum(self.ttfts) / len(self.ttfts)

    @property
    def mean_tpot(self) -> float:
        """Mean seconds per output token, over requests; NaN if there are none."""
        return fsum(self.tpots) / len(self.tpots) if self.tpots else nan

    @property
    def mean_wait(self) -> float:
        """Mean seconds in the queue before admission."""
        return fsum(one.wait for one in self.served) / len(self.served)

    # ------------------------------------------------------------------------- amounts

    @property
    def start(self) -> float:
        """The time of the first arrival, in seconds."""
        return min(one.request.arrival for one in self.served)

    @property
    def end(self) -> float:
        """The time of the last token, in seconds."""
        return max(one.finish for one in self.served)

    @property
    def duration(self) -> float:
        """Seconds from the first arrival to the last token."""
        return self.end - self.start

    @cached_property
    def output(self) -> int:
        """Tokens of all answers."""
        return sum(one.request.output for one in self.served)

    @property
    def recomputed(self) -> int:
        """Tokens that the server computed again because of preemption."""
        wanted = sum(one.request.input for one in self.served)
        return self.computed + sum(one.hits for one in self.served) - wanted

    @property
    def preemptions(self) -> int:
        """How often a sequence was preempted."""
        return sum(one.preemptions for one in self.served)

    @property
    def throughput(self) -> float:
        """Output tokens per second, from the first arrival to the last token."""
        return self.output / self.duration

    def steady(self, low: float = 0.25, high: float = 0.75) -> float:
        """Output tokens per second in the middle of the simulation.

        This leaves out the beginning, when the server fills up, and the end, when it
        runs empty.

        Args:
            low, high: start and end of the middle, as shares of the duration.

        Raises:
            ValueError: shares that are not in order or not from 0 to 1.
        """
        ends = number("low", low), number("high", high)
        if not 0 <= ends[0] < ends[1] <= 1:
            raise ValueError(
                f"low, high = {short_repr(low)}, {short_repr(high)}: must be in order, "
                "from 0 to 1"
            )
        first, last = (self.start + share * self.duration for share in ends)
        made = 0.0
        for one in (one for steps in self.stretches for one in steps):
            inside = min(last, one.end) - max(first, one.start)
            made += one.tokens * max(inside, 0.0) / (one.end - one.start)
        return made / (last - first)

    def goodput(self, target: LatencyTarget) -> float:
        """Requests per second that meet both limits of the target."""
        return self.kept(target) * len(self.served) / self.duration

    def kept(self, target: LatencyTarget) -> float:
        """The share of requests that meet both limits of the target."""
        return sum(one.keeps(target) for one in self.served) / len(self.served)

    def meets(self, target: LatencyTarget) -> bool:
        """Whether at least `target.share` of all requests meet both limits."""
        return self.kept(target) >= target.share

    def ratio_to(self, target: LatencyTarget) -> float:
        """The factor on both limits with which the target would only just be met.

        It is at most 1 if the target is met, except for rounding.
        """
        ratios = sorted(
            max(one.ttft / target.ttft, (one.tpot or 0.0) / target.tpot)
            for one in self.served
        )
        return ratios[ceil(target.share * len(ratios)) - 1]

    # ------------------------------------------------------------------ time averages

    @property
    def busy(self) -> float:
        """The share of the duration in which servers run steps, as a mean over servers.

        This share says little about load, because a server with one request in decode
        is as busy as a server with a hundred.
        """
        return self._average(lambda one: 1.0) / len(self.stretches)

    @property
    def decoding(self) -> float:
        """Sequences in decode on all servers, as a mean over time."""
        return self._average(lambda one: one.decode)

    @property
    def in_slots(self) -> float:
        """Sequences with a slot on all servers, as a mean over time."""
        return self._average(lambda one: one.slots)

    @property
    def in_system(self) -> float:
        """Requests that have arrived and are not complete, as a mean over time.

        This number is counted from one arrival or completion to the next, independently
        of Little's law in `little`.
        """
        changes = [(one.request.arrival, 1) for one in self.served]
        changes += [(one.finish, -1) for one in self.served]
        changes.sort()
        area, here, last = 0.0, 0, self.start
        for at, change in changes:
            area += here * (at - last)
            here, last = here + change, at
        return area / self.duration

    @property
    def little(self) -> float:
        """λ · W: requests per second times the mean seconds from arrival to end."""
        times = fsum(one.finish - one.request.arrival for one in self.served)
        return (len(self.served) / self.duration) * (times / len(self.served))

    @property
    def most_pages(self) -> int:
        """The most pages that the sequences of one server held at once.

        Raises:
            ValueError: the simulation did not count pages.
        """
        pages = [one.pages for steps in self.stretches for one in steps]
        if None in pages:
            raise ValueError("pages = False: this simulation did not count pages")
        return max(pages)

    @property
    def longest_queue(self) -> int:
        """The most requests that waited for one server at once."""
        return max(one.queue for steps in self.stretches for one in steps)

    def _average(self, amount) -> float:
        area = fsum(
            amount(one) * (one.end - one.start)
            for steps in self.stretches
            for one in steps
        )
        return area / self.duration

    # --------------------------------------------------------------------------- price

    def dollars(self, per_hour: float) -> float:
        """Dollars per million output tokens.

        Args:
            per_hour: dollars per hour that you pay for all chips together.

        Assumes:
            You pay for the chips from the first arrival to the last token.

        Raises:
            ValueError: a price that is not positive.
        """
        (per_hour,) = positive(per_hour=per_hour)
        return per_hour / 3600 / self.throughput * 1e6

    def joules(self, watts: float) -> float:
        """Joules per million output tokens.

        Args:
            watts: the power of all chips together.

        Assumes:
            The chips draw this power all the time. With their rated power, the result
            is more than a meter would show.

        Raises:
            ValueError: a power that is not positive.
        """
        (watts,) = positive(watts=watts)
        return watts / self.throughput * 1e6


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` % of sorted values do not exceed, with interpolation.

    >>> percentile((1.0, 2.0, 4.0), 50), percentile((1.0, 2.0, 4.0), 75)
    (2.0, 3.0)

    Raises:
        ValueError: no values, values that are not numbers, or a percentage outside 0 to
            100.
    """
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise ValueError(f"values = {short_repr(values)}: must be a list of numbers")
    share = number("percent", percent)
    if not 0 <= share <= 100:
        raise ValueError(f"percent = {short_repr(percent)}: must be from 0 to 100")
    place = (len(values) - 1) * share / 100
    below = int(place)
    above = min(below + 1, len(values) - 1)
    low, high = (number(f"values[{n}]", values[n]) for n in (below, above))
    return low + (high - low) * (place - below)
