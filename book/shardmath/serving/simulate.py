"""A server, or pools of servers, under a demand: from requests to times and use."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf

from ..base.units import positive, positive_int, short_repr
from ..hardware.networks.wiring import not_negative
from ..inference import Batch
from .engine import Engine
from .played import PlayedServer, Sequence
from .requests import Demand
from .result import Served, ServingResult

StepSeconds = Callable[[Batch], float]


def simulate(
    seconds: StepSeconds,
    engine: Engine,
    demand: Demand,
    *,
    seed: int = 0,
    skip: bool = True,
) -> ServingResult:
    """Play all requests of a demand on one server, until the last one is complete.

    Args:
        seconds: how long a step takes, for any batch, such as the prediction or the
            bound of an `inference` server. It must be convex and piecewise linear in
            the context of decode, as the largest of several amounts is.
        engine: what the server may hold, and what a step takes up.
        demand: requests, in an open or a closed loop.
        seed: of the rounds that speculation takes.
        skip: whether equal steps are played at once. It changes nothing but the time
            that the simulation takes.

    Assumes:
        Requests are admitted in the order of their arrival. The next step starts when
        one ends, and nothing on the host adds to it. Tokens reach the client at once.

    Raises:
        ValueError: a request that needs more pages than the server has, with both
            numbers, or a step that takes no time.

    >>> from .requests import Demand
    >>> demand = Demand.poisson(rate=4, count=500, input=1000, output=200)
    >>> result = simulate(
    ...     lambda batch: 0.01 + 1e-5 * batch.tokens + 1e-8 * batch.context,
    ...     Engine(slots=64),
    ...     demand,
    ... )
    >>> f"{result.ttft(50):.3f} s, {1000 * result.tpot(50):.1f} ms"
    '0.026 s, 10.6 ms'
    """
    server = PlayedServer(_checked(seconds), engine, seed, skip)
    if demand.clients is None:
        done = _open([server], _sequences(demand))
    else:
        done = _closed(server, demand)
    return _result(done, [server], engine.pages, server.computed)


@dataclass(frozen=True)
class Pools:
    """Servers that only do prefill, and servers that only decode.

    Args:
        prefill, decode: how many servers of both kinds.
        transfer: seconds to move the cache of a prompt from one to the other: fixed,
            and per token of the prompt.

    Raises:
        ValueError: no whole numbers, or negative times.
    """

    prefill: int
    decode: int
    transfer: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        positive_int(prefill=self.prefill, decode=self.decode)
        if not (isinstance(self.transfer, tuple) and len(self.transfer) == 2):
            raise ValueError(
                f"transfer = {short_repr(self.transfer)}: must be two times, fixed and "
                "per token"
            )
        for one in self.transfer:
            not_negative("transfer", one)

    def moving(self, tokens: int) -> float:
        """Seconds that the cache of so many tokens takes from pool to pool.

        >>> Pools(1, 1, (0.001, 1e-6)).moving(2000)
        0.003
        """
        return self.transfer[0] + self.transfer[1] * tokens


def simulate_pools(
    prefill: tuple[StepSeconds, Engine],
    decode: tuple[StepSeconds, Engine],
    pools: Pools,
    demand: Demand,
    *,
    seed: int = 0,
    skip: bool = True,
) -> ServingResult:
    """Play a demand on separate pools for prefill and decode.

    A request goes to the server of the first pool that has the fewest tokens left to
    compute, then its cache moves, and then it goes to such a server of the second pool.

    Args:
        prefill, decode: for a server of each pool, seconds of a step and settings.
        pools: how many servers there are, and how long a cache takes between them.
        demand: an open loop.
        seed, skip: as for `simulate`.

    Assumes:
        The first token is there when prefill ends. The transfer, and the wait for a
        slot to decode in, count as time per output token. A prompt does not hold pages
        of the first pool while it waits for the second. Transfers do not share links.

    Raises:
        ValueError: a closed loop, or as for `simulate`.
    """
    if demand.clients is not None:
        raise ValueError(
            f"clients = {demand.clients}: pools can only be simulated in an open loop"
        )
    first = [PlayedServer(_checked(prefill[0]), prefill[1], seed, skip)
             for _ in range(pools.prefill)]  # fmt: skip
    second = [PlayedServer(_checked(decode[0]), decode[1], seed, skip)
              for _ in range(pools.decode)]  # fmt: skip
    prompts = [
        (at, Sequence(replace(one.request, output=1), one.number))
        for at, one in _sequences(demand)
    ]
    done = dict(_open(first, prompts))
    moved = []
    for number, request in enumerate(demand.requests):
        if request.output > 1:
            at = done[number].finish + pools.moving(request.input)
            moved.append((at, Sequence(request, number, produced=1, arrived=True)))
    moved.sort(key=lambda one: (one[0], one[1].number))
    for number, answer in _open(second, moved):
        prompt = done[number]
        done[number] = replace(
            answer, admitted=prompt.admitted, first=prompt.first, hits=prompt.hits,
            preemptions=answer.preemptions + prompt.preemptions,
        )  # fmt: skip
    servers = [*first, *second]
    computed = sum(one.computed for one in servers)
    return _result(list(done.items()), servers, decode[1].pages, computed)


# --------------------------------------------------------------------------- the loops

Arrival = tuple[float, Sequence]


def _sequences(demand: Demand) -> list[Arrival]:
    return [
        (one.arrival, Sequence(one, number))
        for number, one in enumerate(demand.requests)
    ]


def _open(
    servers: list[PlayedServer], arrivals: list[Arrival]
) -> list[tuple[int, Served]]:
    """Requests that come at their own times, each to the server with least to do."""
    done = []
    for arrival, one in arrivals:
        at = arrival + servers[0].engine.delay
        for server in servers:
            done += _until(server, at)
        least = servers[0] if len(servers) == 1 else min(servers, key=_load)
        least.submit(one, at)
    for server in servers:
        done += _until(server, inf)
    return done


def _until(server: PlayedServer, at: float) -> list[tuple[int, Served]]:
    done = []
    while complete := server.run(at):
        done += [_served(one, one.request.arrival, server.clock) for one in complete]
    return done


def _load(server: PlayedServer) -> int:
    return server.load


def _closed(server: PlayedServer, demand: Demand) -> list[tuple[int, Served]]:
    """Clients that each send a request when their last one is answered."""
    waiting = list(_sequences(demand))[::-1]
    delay = server.engine.delay
    due = [(delay, client) for client in range(demand.clients)]  # at the engine
    starts: dict[int, float] = {}
    owners: dict[int, int] = {}
    done = []
    while waiting or server.busy:
        while waiting and due and (due[0][0] <= server.clock or not server.busy):
            at, client = heappop(due)
            _, one = waiting.pop()
            starts[one.number], owners[one.number] = at - delay, client
            server.submit(one, at)
        complete = server.run(due[0][0] if due and waiting else inf)
        for one in complete:
            done.append(_served(one, starts[one.number], server.clock))
            heappush(due, (server.clock + demand.think + delay, owners[one.number]))
    return done


def _served(one: Sequence, arrival: float, finish: float) -> tuple[int, Served]:
    request = replace(one.request, arrival=arrival)
    times = one.admitted, one.first, finish
    return one.number, Served(request, *times, one.preemptions, one.hits)


def _result(
    done: list[tuple[int, Served]],
    servers: list[PlayedServer],
    pages: int | None,
    computed: int,
) -> ServingResult:
    done.sort(key=lambda one: one[0])
    stretches = tuple(tuple(one.stretches) for one in servers)
    return ServingResult(tuple(one for _, one in done), stretches, pages, computed)


def _checked(seconds: StepSeconds) -> StepSeconds:
    """`seconds`, which must be above zero for a batch of one token at least."""
    if not callable(seconds):
        raise ValueError(
            f"seconds = {short_repr(seconds)}: must be a function of a batch"
        )
    positive(seconds=seconds(Batch(1, 1)))
    return seconds
