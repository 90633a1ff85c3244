"""Requests, and the open and closed loops in which they come to a server."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from random import Random

from ..base.records import kept
from ..base.units import (
    non_negative_int,
    number,
    positive,
    positive_int,
    short_repr,
    text,
)
from ..hardware.networks.wiring import not_negatives
from .lengths import Fixed, Lengths

MOST = 1_000_000  # requests of a simulation, which take about a minute


@dataclass(frozen=True)
class Request:
    """One prompt and its answer.

    Args:
        arrival: the time of arrival in seconds; not used in a closed loop.
        input: tokens of its prompt.
        output: tokens of its answer, including the first one.
        prefix: a name for the tokens with which the prompt begins; "" for none.
        shared: the number of these tokens. All requests with the same `prefix` begin
            with the same tokens.

    Raises:
        ValueError: a negative arrival, a number of tokens that is not whole and above
            zero, more shared tokens than the prompt has, or shared tokens without the
            name of a prefix.
    """

    arrival: float
    input: int
    output: int
    prefix: str = ""
    shared: int = 0

    def __post_init__(self) -> None:
        if self._is_usual:  # a search simulates hundreds of thousands of requests
            return
        kept(self, not_negatives, "arrival")
        kept(self, positive_int, "input", "output")
        kept(self, non_negative_int, "shared")
        text("prefix", self.prefix)
        if self.shared > self.input:
            raise ValueError(
                f"shared = {self.shared}: must be at most the {self.input} tokens of "
                "the prompt"
            )
        if self.shared and not self.prefix:
            raise ValueError(f"shared = {self.shared}: needs the name of a prefix")

    @property
    def _is_usual(self) -> bool:
        """Whether all is right at first sight, and no prompt is shared."""
        return (
            type(self.arrival) is float
            and 0 <= self.arrival < inf
            and type(self.input) is type(self.output) is int
            and self.input > 0 < self.output
            and self.prefix == ""
            and type(self.shared) is int
            and not self.shared
        )

    @property
    def cached(self) -> int:
        """Tokens in the cache at the end: all but the last one, which no step reads."""
        return self.input + self.output - 1


@dataclass(frozen=True)
class Demand:
    """All requests of a simulation.

    Args:
        requests: the requests in order of arrival.
        clients: the number of clients of a closed loop. Each sends its next request
            when the answer to its last one is complete, and the arrivals of the
            requests are not used. None for an open loop, where each request comes at
            its arrival time.
        think: seconds that a client of a closed loop waits before it sends again.

    Raises:
        ValueError: no requests, arrivals out of order, requests with one prefix but
            different numbers of shared tokens, a number of clients that is not whole
            and above zero, or a negative `think`.
    """

    requests: tuple[Request, ...]
    clients: int | None = None
    think: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.requests, str) or not isinstance(self.requests, Iterable):
            raise ValueError(
                f"requests = {short_repr(self.requests)}: must be a list of requests"
            )
        object.__setattr__(self, "requests", tuple(self.requests))
        if not self.requests:
            raise ValueError("requests = (): must have at least one request")
        shared: dict[str, int] = {}
        for one in self.requests:
            if not isinstance(one, Request):
                raise ValueError(f"requests: {short_repr(one)} must be a Request")
            if one.prefix and shared.setdefault(one.prefix, one.shared) != one.shared:
                raise ValueError(
                    f"prefix {short_repr(one.prefix)}: has {shared[one.prefix]} shared "
                    f"tokens in one request and {one.shared} in another; must have the "
                    "same number in all"
                )
        kept(self, not_negatives, "think")
        if self.clients is not None:
            kept(self, positive_int, "clients")
            return
        last = 0.0
        for place, one in enumerate(self.requests):
            if one.arrival < last:
                raise ValueError(
                    f"request {place} arrives at {one.arrival:g} s, before the "
                    f"previous one at {last:g} s: must be in order of arrival"
                )
            last = one.arrival

    @classmethod
    def poisson(
        cls,
        rate: float,
        count: int,
        input: int | Lengths,
        output: int | Lengths,
        seed: int = 0,
    ) -> "Demand":
        """Requests of independent users, which arrive as a Poisson process.

        Args:
            rate: mean requests per second.
            count: the number of requests, at most 1,000,000.
            input, output: tokens of prompts and answers, a number or a distribution.
            seed: seed of the random numbers. Another rate with the same seed gives the
                same requests in the same order, only closer together or farther apart.

        Raises:
            ValueError: a rate that is not positive, a seed that is not whole, or
                another number that is not whole and above zero.

        >>> demand = Demand.poisson(rate=4, count=1000, input=1000, output=200)
        >>> round(demand.requests[-1].arrival)
        252
        """
        (rate,) = positive(rate=rate)
        random = _seeded(seed)
        clock, found = 0.0, []
        for one in _drawn(random, count, input, output):
            clock += random.expovariate(1.0) / rate
            found.append(Request(clock, *one))
        return cls(tuple(found))

    @classmethod
    def closed_loop(
        cls,
        clients: int,
        count: int,
        input: int | Lengths,
        output: int | Lengths,
        seed: int = 0,
        think: float = 0.0,
    ) -> "Demand":
        """Requests of a fixed number of clients, as in benchmarks at one concurrency.

        Args:
            clients: the number of clients, each with one request at a time.
            count: requests of all clients together, at most 1,000,000.
            input, output: tokens of prompts and answers, a number or a distribution.
            seed: seed of the random lengths.
            think: seconds from an answer to the client's next request.

        Raises:
            ValueError: a number that is not whole and above zero, a seed that is not
                whole, or a negative `think`.

        >>> Demand.closed_loop(clients=8, count=100, input=1000, output=200).clients
        8
        """
        found = (
            Request(0.0, *one) for one in _drawn(_seeded(seed), count, input, output)
        )
        return cls(tuple(found), clients, think)

    @classmethod
    def trace(cls, rows: Iterable[tuple[float, int, int]]) -> "Demand":
        """Observed requests, from rows of arrival in seconds and tokens of prompt and
        answer.

        Raises:
            ValueError: a row that is not like this, or rows out of order.

        >>> Demand.trace([(0.0, 2048, 28), (0.4, 1155, 211)]).requests[1].output
        211
        """
        if isinstance(rows, str) or not isinstance(rows, Iterable):
            raise ValueError(f"rows = {short_repr(rows)}: must be a list of rows")
        found = []
        for row in rows:
            if not (isinstance(row, Sequence) and len(row) == 3):
                raise ValueError(
                    f"rows: {short_repr(row)} must be three numbers: arrival in "
                    "seconds, tokens of the prompt, tokens of the answer"
                )
            found.append(Request(*row))
        return cls(tuple(found))


def _seeded(seed: object) -> Random:
    found = number("seed", seed)
    if not isinstance(found, int):
        raise ValueError(f"seed = {short_repr(seed)}: must be a whole number")
    return Random(found)


def _drawn(
    random: Random, count: int, input: int | Lengths, output: int | Lengths
) -> Iterable[tuple[int, int]]:
    (count,) = positive_int(count=count)
    if count > MOST:
        raise ValueError(
            f"count = {short_repr(count)}: must be at most {MOST:,} requests"
        )
    prompts, answers = _lengths("input", input), _lengths("output", output)
    for _ in range(count):
        yield prompts.at(random.random()), answers.at(random.random())


def _lengths(name: str, given: int | Lengths) -> Lengths:
    if hasattr(given, "at"):
        return given
    (tokens,) = positive_int(**{name: given})
    return Fixed(tokens)
