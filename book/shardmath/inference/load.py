"""A server under load, in closed form: how many sequences decode, and how fast.

In a closed loop, each of C clients sends a request, waits for its last token, and sends
the next. If answers have O tokens, Little's law gives the number B of requests that
decode at a time. The prompts of the other requests lengthen the steps:

    B = C · O · TPOT / (TTFT + O · TPOT)
    TPOT = step(B) + share of steps with prompts · (mixed step − step(B))

`serving` simulates the same server event by event; this form takes milliseconds.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from ..base.records import kept, must_be
from ..base.units import (
    flags,
    non_negative_int,
    pluralize,
    positive,
    short_repr,
    show,
)
from .capacity import PAGE, held
from .server import Server

ROUNDS = 100  # rounds of the search for B
CLOSE = 1e-4  # the relative change of B at which the search ends
ACCEPTED = 0.8  # the probability that a draft is accepted if all before it were
BUSIEST = 0.95  # the largest utilization in the formula for the queue of prompts


@dataclass(frozen=True)
class Requests:
    """The requests of the clients.

    Args:
        prompt, output: mean tokens of a prompt and an answer.
        alike: whether all requests have the same length, so those that start together
            end together.
        waves: how many requests each client sends, one after the other. The first
            requests of all clients arrive at once.

    Raises:
        ValueError: a number that is not above zero, or `alike` that is no bool.

    >>> Requests(1024, 1024).waves  # InferenceX sends 10 for each client
    10
    """

    prompt: float
    output: float
    alike: bool = False
    waves: float = 10

    def __post_init__(self) -> None:
        kept(self, positive, "prompt", "output", "waves")
        kept(self, flags, "alike")


@dataclass(frozen=True)
class Scheduler:
    """How an engine puts steps together.

    Args:
        budget: the largest number of tokens in a step.
        mixed: whether prompts share steps with sequences that decode. If not, all
            waiting prompts are read first, and no sequence decodes meanwhile.
        sequences: the most sequences that decode at once; the number of slots if not
            given.
        drafts: tokens per sequence that modules of the model draft in a step
            (multi-token prediction), and that the next step checks.

    Source:
        8,192 tokens is the default of vLLM on H100 and later, of SGLang on GPUs of
        80 GB, and of TensorRT-LLM. DeepSeek-V3 (arXiv:2412.19437, section 5.4.3) gives
        1.8 tokens for one draft.

    Raises:
        ValueError: `budget` or `sequences` that is not above zero, or `drafts` that is
            not a whole number from 0.
    """

    budget: float = 8192
    mixed: bool = True
    sequences: float | None = None
    drafts: int = 0

    def __post_init__(self) -> None:
        kept(self, positive, "budget")
        if self.sequences is not None:
            kept(self, positive, "sequences")
        kept(self, non_negative_int, "drafts")
        kept(self, flags, "mixed")

    @property
    def tokens(self) -> float:
        """The mean tokens per step of a sequence: Σ ACCEPTED^i for i from 0 to drafts.

        >>> Scheduler(drafts=1).tokens, round(Scheduler(drafts=3).tokens, 2)
        (1.8, 2.95)
        """
        return sum(ACCEPTED**n for n in range(self.drafts + 1))


class Load(NamedTuple):
    """The means of a server under some load.

    Args:
        tpot: seconds from a token of a request to its next.
        ttft: seconds from the arrival of a request to its first token.
        decoding: sequences that decode at a time.
        rate: requests that are completed per second.
        parts: seconds of `tpot`, by part of a step.
        waits: seconds of `ttft`: for a slot, for other prompts, for the request's own
            prompt, and for the host.
    """

    tpot: float
    ttft: float
    decoding: float
    rate: float
    parts: dict[str, float]
    waits: dict[str, float]

    def __str__(self) -> str:
        return (
            f"TPOT {show(self.tpot, 's')}, TTFT {show(self.ttft, 's')}, "
            f"{self.decoding:.3g} sequences decode, "
            f"{pluralize(f'{self.rate:.3g}', 'requests')} a second"
        )


def slots(server: Server, requests: Requests, scheduler: Scheduler) -> float:
    """The most sequences that can decode at once.

    Raises:
        ValueError: an argument of the wrong type; the weights do not fit, or no request
            fits next to them.

    >>> from shardmath.hardware.networks import network
    >>> from shardmath.inference import Formats, Layout
    >>> from shardmath.transformer import LLAMA_3_70B
    >>> node = Server(LLAMA_3_70B, network("h100:8"), Layout(8), Formats())
    >>> slots(node, Requests(1000, 200), Scheduler())
    1312
    """
    must_be(Requests, requests=requests)
    must_be(Server, server=server)
    must_be(Scheduler, scheduler=scheduler)
    length = held(requests.prompt, requests.output)
    found = server.slots(length, PAGE)
    if found < 1:
        raise ValueError(
            f"a request of {requests.prompt:,.0f} + {requests.output:,.0f} tokens does "
            f"not fit in the {show(server.memory.free, 'bytes')} that the weights leave"
        )
    return min(found, scheduler.sequences or found)


def closed_loop(
    server: Server,
    concurrency: float,
    requests: Requests,
    scheduler: Scheduler = Scheduler(),
    room: float | None = None,
) -> Load:
    """A server with a fixed number of clients, each with one request at a time.

    Args:
        server: the server.
        concurrency: the number of clients, C.
        requests: their requests.
        scheduler: how steps are put together.
        room: the most sequences that decode at once; as many as fit if not given.

    Assumes:
        Every quantity is equal to its mean. The wait for other prompts is that of a
        queue with random arrivals and a fixed service time (M/D/1). At the start, C
        prompts wait for one another.

    Raises:
        ValueError: a number of clients or room for them that is not above zero; or as
            `slots`.

    >>> from shardmath.hardware.networks import network
    >>> from shardmath.inference import Formats, Layout
    >>> from shardmath.transformer import LLAMA_3_70B
    >>> node = Server(LLAMA_3_70B, network("h100:8"), Layout(8), Formats())
    >>> for clients in (8, 32):
    ...     print(closed_loop(node, clients, Requests(1000, 200)))
    TPOT 12.1 ms, TTFT 148 ms, 7.54 sequences decode, 3.13 requests a second
    TPOT 17.1 ms, TTFT 208 ms, 30.2 sequences decode, 8.84 requests a second
    """
    if not isinstance(requests, Requests):
        raise ValueError(f"requests = {short_repr(requests)}: must be Requests")
    must_be(Server, server=server)
    must_be(Scheduler, scheduler=scheduler)
    (clients,) = positive(concurrency=concurrency)
    room = slots(server, requests, scheduler) if room is None else room
    (room,) = positive(room=room)
    one = _Prompts(server, requests, scheduler)
    most = min(clients, room)
    decoding = most
    for _ in range(ROUNDS):
        found = one.load(clients, decoding, room)
        better = min(found.decoding, most)
        if abs(better - decoding) < CLOSE * decoding:
            break
        decoding = (decoding + better) / 2
    return found


def open_loop(
    server: Server,
    rate: float,
    requests: Requests,
    scheduler: Scheduler = Scheduler(),
) -> Load:
    """A server to which requests come at random times, at a given mean rate.

    Args:
        server, requests, scheduler: as for `closed_loop`.
        rate: requests per second.

    Raises:
        ValueError: a rate above the server's capacity, which the message states; or as
            `slots`.

    >>> from shardmath.hardware.networks import network
    >>> from shardmath.inference import Formats, Layout
    >>> from shardmath.transformer import LLAMA_3_70B
    >>> node = Server(LLAMA_3_70B, network("h100:8"), Layout(8), Formats())
    >>> for rate in (1, 4):
    ...     print(open_loop(node, rate, Requests(1000, 200)))
    TPOT 10.9 ms, TTFT 121 ms, 2.06 sequences decode, 1 request a second
    TPOT 12.6 ms, TTFT 126 ms, 9.61 sequences decode, 4 requests a second
    """
    (rate,) = positive(rate=rate)
    room = slots(server, requests, scheduler)
    one = _Prompts(server, requests, scheduler)
    most = one.load(room, room, room, burst=False)
    if rate >= most.decoding / (requests.output * most.tpot):
        best = most.decoding / (requests.output * most.tpot)
        raise ValueError(
            f"rate = {short_repr(rate)} requests per second: must be below {best:.3g}, "
            f"which the server reaches when {room:,.0f} sequences decode"
        )
    low, high = 0.0, room
    for _ in range(ROUNDS):
        decoding = (low + high) / 2
        found = one.load(decoding, decoding, room, burst=False)
        if decoding / (requests.output * found.tpot) < rate:
            low = decoding
        else:
            high = decoding
    return found._replace(rate=rate)


def disaggregated(
    reader: Server,
    writer: Server,
    concurrency: float,
    requests: Requests,
    readers: float = 1,
    writers: float = 1,
    scheduler: Scheduler = Scheduler(),
) -> Load:
    """Separate servers for prefill and for decode, under a closed loop.

    Args:
        reader, writer: one server for prefill, and one for decode.
        concurrency: the clients of all servers together.
        requests, scheduler: as for `closed_loop`.
        readers, writers: the number of servers of each kind.

    Assumes:
        Clients are spread evenly over servers. The cache is sent to its decode server
        during prefill, and sending the last bytes takes no time.

    Raises:
        ValueError: a number that is not above zero; or as `slots`.

    >>> from shardmath.hardware.networks import network
    >>> from shardmath.inference import Formats, Layout
    >>> from shardmath.transformer import LLAMA_3_70B
    >>> node = Server(LLAMA_3_70B, network("h100:8"), Layout(8), Formats())
    >>> print(disaggregated(node, node, 32, Requests(1000, 200)))
    TPOT 11.9 ms, TTFT 193 ms, 29.6 sequences decode, 12.4 requests a second
    """
    clients, readers, writers = positive(
        concurrency=concurrency, readers=readers, writers=writers
    )
    must_be(Server, reader=reader, writer=writer)
    room = writers * slots(writer, requests, scheduler)
    prompts = _Prompts(reader, requests, scheduler)
    output = requests.output
    decoding = min(clients, room)
    for _ in range(ROUNDS):
        each = decoding / writers
        step = writer.mixed(
            each,
            each * held(requests.prompt, output),
            verified=1 + scheduler.drafts,
        )
        tpot = step.seconds / scheduler.tokens
        # Prompts come at the rate at which answers end, unless prefill is the slowest.
        busy = decoding / (output * tpot) * prompts.work / readers
        own = prompts.alone
        queue = min(busy, BUSIEST) * own / (2 * (1 - min(busy, BUSIEST)))
        first = (clients / readers + 1) / 2 * prompts.work
        wait = queue + (first - queue) / requests.waves
        ttft = own + wait + reader.first_token_delay
        # Requests beyond the rate of the prefill servers queue in front of them.
        ttft = max(ttft, clients * prompts.work / readers - output * tpot)
        better = min(clients * output * tpot / (ttft + output * tpot), room)
        if abs(better - decoding) < CLOSE * decoding:
            break
        decoding = (decoding + better) / 2
    slot = output * tpot * (clients / room - 1) if clients > room else 0.0
    waits = {
        "slot": slot,
        "others": wait,
        "prompt": own,
        "host": reader.first_token_delay,
    }
    ttft += slot
    parts = {name: part / scheduler.tokens for name, part in step.parts.items()}
    return Load(tpot, ttft, decoding, decoding / (output * tpot), parts, waits)


class _Prompts:
    """The prompts of some requests on a server, and the load from them.

    Args:
        server, requests, scheduler: as for `closed_loop`.
    """

    def __init__(self, server: Server, requests: Requests, scheduler: Scheduler):
        self.server, self.requests, self.scheduler = server, requests, scheduler
        self.chunks = max(1, math.ceil(requests.prompt / scheduler.budget))
        self.chunk = requests.prompt / self.chunks
        self.scored = server.scored(((requests.prompt, 0.0),)) / self.chunks
        self.length = held(requests.prompt, requests.output)
        self.alone = self.chunks * self._reading(1.0).seconds
        # The chunks that fill a step, on all groups of chips together.
        self.most = max(1.0, scheduler.budget / self.chunk) * server.layout.data
        self.work = self.chunks * self._reading(self.most).seconds / self.most

    def _reading(self, chunks: float, decode: float = 0.0):
        """A step with some chunks of prompts, and sequences that decode with them."""
        return self.server.mixed(
            decode,
            decode * self.length,
            chunks * self.chunk,
            chunks,
            chunks * self.scored,
            1 + self.scheduler.drafts,
        )

    def load(
        self, clients: float, decoding: float, room: float, burst: bool = True
    ) -> Load:
        """The load if `decoding` sequences decode. Its own `decoding` is the number
        that follows by Little's law."""
        output, mixed = self.requests.output, self.scheduler.mixed
        tokens = self.scheduler.tokens
        step = self.server.mixed(
            decoding, decoding * self.length, verified=1 + self.scheduler.drafts
        )
        # The chunks of other sequences per step, and the share of steps with chunks,
        # if chunks come at random and at most fill a step.
        others = max(0.0, decoding - min(1.0, decoding))
        came = others * tokens / output * self.chunks
        most = self.most
        share = min(came, max(1 - math.exp(-came), came / most)) if came else 0.0
        full = came / share if share else 1.0
        both = self._reading(full, decoding) if share else step
        parts = {
            name: ((1 - share) * some + share * part) / tokens
            for (name, some), part in zip(
                step.parts.items(), both.parts.values(), strict=True
            )
        }
        tpot = max(sum(parts.values()), step.bound / tokens)
        wait = tpot * tokens
        beside = decoding if mixed else 0.0
        own = self.chunks * self._reading(1.0, beside).seconds
        busy = min(BUSIEST, share * both.seconds / wait)
        queue = wait / 2 + busy * own / (2 * (1 - busy))
        first = 0.0
        if burst:  # the prompts of all clients, or of those that have a slot
            at_once = min(clients, room)
            steps = max(1.0, at_once * self.chunks / most)
            reading = self._reading(min(at_once, most), beside / 2).seconds
            first = max(0.0, (steps + 1) / 2 * reading - own)
            if self.requests.alike and not mixed:
                queue = first  # requests that end together start together again
            queue += (first - queue) / self.requests.waves
        slot = output * tpot * (clients / room - 1) if clients > room else 0.0
        host = self.server.first_token_delay
        waits = {"slot": slot, "others": queue, "prompt": own, "host": host}
        ttft = sum(waits.values())
        decodes = clients * output * tpot / (ttft + output * tpot)
        rate = min(decodes, room) / (output * tpot)
        return Load(tpot, ttft, min(decodes, room), rate, parts, waits)
