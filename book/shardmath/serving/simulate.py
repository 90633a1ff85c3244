"""Simulate a server, or pools of servers, that get all requests of a demand."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf

from ..base.records import kept, must_be
from ..base.units import flags, positive, positive_int, short_repr
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
    pages: bool = True,
) -> ServingResult:
    """Simulate all requests of a demand on one server, until the last one is complete.

    Args:
        seconds: a function that gives the seconds of a step for any batch, such as the
            prediction or the bound of an `inference` server. It must be convex and
            piecewise linear in the context of decode, as a maximum of linear amounts
            is.
        engine: the settings of the server.
        demand: the requests, in an open or a closed loop.
        seed: seed of the rounds of speculation.
        skip: whether equal steps are simulated at once. This changes only how long the
            simulation takes.
        pages: whether the result counts the pages that are held. Without them, the
            simulation of a large server takes a fraction of the time.

    Assumes:
        Requests are admitted in order of arrival. Each step starts when the one before
        it ends, without any delay by the host. Tokens reach the client at once.

    Raises:
        ValueError: a request that needs more pages than the server has (the message
            states both numbers); `seconds` that is not a function or gives no positive
            time.

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
    must_be(Engine, engine=engine)
    must_be(Demand, demand=demand)
    skip, pages = flags(skip=skip, pages=pages)
    server = PlayedServer(_checked(seconds), engine, seed, skip, pages)
    if demand.clients is None:
        done = _open([server], _sequences(demand))
    else:
        done = _closed(server, demand)
    return _result(done, [server], engine.pages, server.computed)


@dataclass(frozen=True)
class Pools:
    """Servers that only do prefill, and servers that only decode.

    Args:
        prefill, decode: the number of servers of each kind.
        transfer: seconds to send the cache of a prompt from a prefill server to a
            decode server: a fixed time, and a time per token of the prompt.

    Raises:
        ValueError: a number of servers that is not whole and above zero, or a
            `transfer` that is not a pair of times from 0.
    """

    prefill: int
    decode: int
    transfer: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        kept(self, positive_int, "prefill", "decode")
        if not (isinstance(self.transfer, tuple) and len(self.transfer) == 2):
            raise ValueError(
                f"transfer = {short_repr(self.transfer)}: must be two times in "
                "seconds, one fixed and one per token"
            )
        times = tuple(not_negative("transfer", one) for one in self.transfer)
        object.__setattr__(self, "transfer", times)

    def moving(self, tokens: int) -> float:
        """Seconds to send the cache of `tokens` tokens from pool to pool.

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
    """Simulate a demand on separate pools for prefill and decode.

    A request goes to the server of the first pool that has the fewest tokens left to
    compute. Then its cache is sent, and the request goes to the server of the second
    pool that has the fewest tokens left.

    Args:
        prefill, decode: seconds of a step and settings for a server of each pool.
        pools: the number of servers, and the time to send a cache between them.
        demand: the requests in an open loop.
        seed, skip: as for `simulate`.

    Assumes:
        Prefill ends with the first token. The transfer and the wait for a decode slot
        count as time per output token. A prompt does not hold pages of the first pool
        while it waits for the second. Transfers do not share links.

    Raises:
        ValueError: a closed loop; an argument of the wrong type; or as for `simulate`.

    >>> demand = Demand.poisson(rate=4, count=500, input=1000, output=200)
    >>> server = lambda batch: 0.01 + 1e-5 * batch.tokens, Engine(slots=64)
    >>> result = simulate_pools(server, server, Pools(1, 1, (0.002, 1e-6)), demand)
    >>> f"{result.ttft(50):.3f} s, {1000 * result.tpot(50):.1f} ms"
    '0.020 s, 10.1 ms'
    """
    for name, pair in (("prefill", prefill), ("decode", decode)):
        both = isinstance(pair, tuple | list) and len(pair) == 2
        if not both or not isinstance(pair[1], Engine):
            raise ValueError(
                f"{name} = {short_repr(pair)}: must be a function that gives the "
                "seconds of a step, and an Engine"
            )
    must_be(Pools, pools=pools)
    must_be(Demand, demand=demand)
    (skip,) = flags(skip=skip)
    if demand.clients is not None:
        raise ValueError(
            f"clients = {demand.clients}: must be None, because pools can be simulated "
            "only in an open loop"
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
    """Simulate an open loop; each request goes to the server with the least load."""
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
    """Simulate a closed loop; each client sends again when it has its answer."""
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
    request = one.request
    if request.arrival != arrival:  # in a closed loop, a request starts when it is sent
        request = replace(request, arrival=arrival)
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
    """The given `seconds`; raise unless it is a function and gives a positive time."""
    if not callable(seconds):
        raise ValueError(
            f"seconds = {short_repr(seconds)}: must be a function of a batch"
        )
    positive(seconds=seconds(Batch(1, 1)))
    return seconds
