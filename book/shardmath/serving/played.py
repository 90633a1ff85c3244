"""The simulation of one server, step by step, with admission and preemption.

A step of the engine begins with the sequences in decode. Those that need a page take
one, and if none is free, the sequence that was admitted last is preempted. Chunks of
prompts fill the rest of the budget: first those of admitted requests, then those of the
queue, in order, as long as slots and pages are free. The step ends for all sequences at
the same time, and a sequence whose prompt is then complete gets its next token.

While no prompt waits for a step and nothing else changes, steps differ only in their
context, and we simulate all of them at once.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import floor, inf
from random import Random
from typing import NamedTuple

from ..base.units import short_repr
from ..inference import Batch
from .engine import Engine
from .pages import PagePool
from .requests import Request
from .stretch import stretch


class Stretch(NamedTuple):
    """One or more equal steps of an engine.

    Args:
        start, end: start and end in seconds.
        steps: the number of steps.
        decode: sequences in decode.
        prefill: tokens of prompts in the step.
        tokens: output tokens from all these steps.
        slots: sequences that hold a slot.
        queue: requests that wait for a slot at the end of the steps.
        pages: pages that sequences hold at the end of the steps; None if the simulation
            does not count them.
    """

    start: float
    end: float
    steps: int
    decode: int
    prefill: int
    tokens: float
    slots: int
    queue: int
    pages: int | None


class Sequence:
    """A request on a server, with its progress and its pages.

    Args:
        request: the request.
        number: its index in the demand.
        produced: tokens of its answer that exist already.
        arrived: whether it comes with its cache from a server that did its prefill.
    """

    def __init__(
        self, request: Request, number: int, produced: int = 0, arrived: bool = False
    ) -> None:
        self.request = request
        self.number = number
        self.produced = produced
        self.arrived = arrived
        self.admitted = self.first = inf
        self.order = self.preemptions = self.hits = 0
        self.reset()

    def reset(self) -> None:
        """Forget all progress in the cache, when the sequence leaves the server."""
        self.done = self.own = self.shared = 0
        self.reads = ""
        self.length, self.begun, self.rounds, self.due = 0, -1, 0, 0
        self.growth = 1.0

    @property
    def goal(self) -> int:
        """Tokens that prefill has to put into the cache."""
        return self.request.input + self.produced

    @property
    def held(self) -> int:
        """Pages that it holds, including those of a shared prefix."""
        return self.own + self.shared


class PlayedServer:
    """A simulated server. You submit requests, and it runs until a given time.

    Args:
        seconds: a function that gives the seconds of an engine step for any batch.
        engine: the settings of the server.
        seed: seed of the rounds of speculation.
        skip: whether equal steps are simulated at once. The result is the same.
        pages: whether `stretches` count the pages that are held. All else is the same,
            but a server with many sequences takes several times as long to simulate.

    Sequences in decode take a page every few steps. As long as there are pages for all
    of them until they end (`_due`), none can be preempted. If the stretches don't count
    pages, the sequences take them later, when it matters how many are free.
    """

    def __init__(
        self,
        seconds: Callable[[Batch], float],
        engine: Engine,
        seed: int = 0,
        skip: bool = True,
        pages: bool = True,
    ) -> None:
        self.seconds, self.engine, self.seed, self.skip = seconds, engine, seed, skip
        self.counts = pages
        self._waits = not pages  # whether pages may be taken later
        self.clock = 0.0
        self.queue: deque[Sequence] = deque()
        self.admitted: dict[int, Sequence] = {}  # by order of admission
        self.prefilling: dict[int, Sequence] = {}
        self.pool = PagePool(engine.pages)
        self.stretches: list[Stretch] = []
        self.computed = self.hits = 0  # tokens computed in prefill; found in prefixes
        self._orders = count(1)
        self._tick = 0  # decode steps so far
        self._base, self._slope, self._decoding = 0.0, 0.0, 0
        self._ends: list[tuple[int, int]] = []  # tick, order of admission
        self._turns: list[tuple[int, int]] = []  # tick of the next page, order
        self._due = 0  # pages that sequences in decode take until they end, at most

    # ------------------------------------------------------------------ public methods

    def submit(self, sequence: Sequence, now: float) -> None:
        """Add a request to the end of the queue.

        Raises:
            ValueError: the request needs more pages than the server has.
        """
        engine, request = self.engine, sequence.request
        pages = engine.paged(request.cached)
        if pages > self.pool.total:
            raise ValueError(
                f"request {sequence.number} needs {pages:,} pages for "
                f"{request.cached:,} tokens, but the server has only {engine.pages:,}"
            )
        if request.prefix and engine.prefix_cache:
            self._waits = False  # a page that is taken drops a prefix, now or later
        if not self.busy:
            self.clock = max(self.clock, now)
        self.queue.append(sequence)

    @property
    def busy(self) -> bool:
        """Whether the server has any request."""
        return bool(self.queue or self.admitted)

    @property
    def load(self) -> int:
        """Tokens still to be computed; a router chooses a server by this number."""
        return sum(
            one.goal - one.done + one.request.output - one.produced
            for one in (*self.queue, *self.admitted.values())
        )

    def run(self, until: float = inf) -> list[Sequence]:
        """Simulate steps that start before `until`, until one completes an answer.

        Returns:
            The sequences that are complete at `clock`; none if `until` is reached or no
            request is left.
        """
        while self.busy and self.clock < until:
            complete = self._step(until)
            if complete:
                return complete
        return []

    # ------------------------------------------------------------------------ a step

    def _step(self, until: float) -> list[Sequence]:
        self._join()
        mixed = self.engine.chunked
        if not mixed and self._prompt_waits():  # prefill comes first
            chunks = self._chunks(0)
            return self._play(self._timed(self._batch(0, 0, chunks)), 1, 0, chunks)
        self._turn_pages(1)
        chunks = self._chunks(self._decoding) if mixed else []
        if not chunks:
            return self._decode(until)
        seconds = self._timed(self._batch(self._decoding, 0, chunks))
        return self._play(seconds, 1, self._decoding, chunks)

    def _decode(self, until: float) -> list[Sequence]:
        """Simulate steps with only decode, as many as are equal.

        If prefill comes first and this step preempted a sequence, the freed pages may
        admit a prompt before the next step.
        """
        waits = not self.engine.chunked and self._prompt_waits()
        most = self._ends[0][0] - self._tick if self.skip and not waits else 1

        def seconds(step: int) -> float:
            return self._timed(self._batch(self._decoding, step, []))

        steps, elapsed = stretch(seconds, most, until - self.clock)
        room = self._turn_pages(steps)
        if room < steps:
            steps, elapsed = stretch(seconds, room)
        return self._play(elapsed, steps, self._decoding, [])

    def _play(
        self,
        seconds: float,
        steps: int,
        decoding: int,
        chunks: list[tuple[Sequence, int]],
    ) -> list[Sequence]:
        """Advance the clock by these steps. Returns the sequences they complete."""
        start, self.clock = self.clock, self.clock + seconds
        slots, complete, tokens = len(self.admitted), [], 0.0
        if decoding:
            tokens = self._slope * steps
            self._tick += steps
            complete = self._completed()
        for one, taken in chunks:
            tokens += self._advance(one, taken, complete)
        prefill = sum(taken for _, taken in chunks)
        self.stretches.append(
            Stretch(start, self.clock, steps, decoding, prefill, tokens, slots,
                    len(self.queue), self.pool.held if self.counts else None)
        )  # fmt: skip
        for one in complete:
            self._leave(one)
        return complete

    def _batch(
        self, decoding: int, ahead: int, chunks: list[tuple[Sequence, int]]
    ) -> Batch:
        """The batch of the step after `ahead` more decode steps."""
        if not decoding:
            return Batch(0, 0, _sizes(chunks))
        context = self._base + self._slope * (self._tick + ahead + 1)
        return Batch(decoding, context, _sizes(chunks))

    def _timed(self, batch: Batch) -> float:
        """Seconds of a step, including the guesses of a draft model if there is one."""
        spec, found = self.engine.speculation, 0.0
        if spec is not None and batch.decode:
            found = spec.draft * spec.cost * self._asked(batch._replace(prefill=()))
            batch = batch._replace(decode=batch.decode * (1 + spec.draft))
        return found + self._asked(batch)

    def _asked(self, batch: Batch) -> float:
        seconds = self.seconds(batch)
        if not 0 < seconds < inf:
            raise ValueError(
                f"seconds({batch}) = {short_repr(seconds)}: must be a finite number "
                "above 0"
            )
        return seconds

    # ----------------------------------------------------------------------- prefill

    def _prompt_waits(self) -> bool:
        """Whether a prompt is in prefill, or the next one of the queue could be."""
        return bool(self.prefilling) or bool(self.queue and self._fits(self.queue[0]))

    def _chunks(self, taken: int) -> list[tuple[Sequence, int]]:
        """The chunks of a step. Requests from the queue are admitted for them."""
        engine = self.engine
        room = engine.budget - taken * engine.verified
        chunks: list[tuple[Sequence, int]] = []
        for one in self.prefilling.values():
            tokens = min(one.goal - one.done, room)
            if tokens > 0:
                chunks.append((one, tokens))
                room -= tokens
        while self.queue and room > 0 and self._fits(self.queue[0]):
            if self.queue[0].arrived:  # `_join` admits it before the next step
                break
            left = self._left(self.queue[0])
            if not engine.chunked and left > room and chunks:
                break
            one = self._admit(self.queue.popleft())
            self.prefilling[one.order] = one
            tokens = min(left, room) if engine.chunked else left
            chunks.append((one, tokens))
            room -= tokens
        return chunks

    def _join(self) -> None:
        """Admit sequences that come with their cache and need no prefill."""
        while self.queue and self.queue[0].arrived and self._fits(self.queue[0]):
            one = self._admit(self.queue.popleft())
            one.done = one.goal - 1  # the next step reads its last token
            one.length = one.done
            self._start_decode(one)

    def _fits(self, one: Sequence) -> bool:
        """Whether a slot and enough pages are free for a sequence."""
        if len(self.admitted) >= self.engine.slots:
            return False
        if self.engine.pages is None:
            return True
        kept = self.pool.prefixes.get(one.request.prefix)
        found = 0
        if kept and self.engine.prefix_cache:
            found = kept.pages if kept.readers and self._hit(one) else 0
        needed = self._pages_of(one) - found
        if needed > self.pool.available - self._due:
            self._take_pages(0)
        return needed <= self.pool.available

    def _pages_of(self, one: Sequence) -> int:
        """Pages that admission takes, for the prompt or for the whole request."""
        whole = one.request.cached if self.engine.reserve else one.goal - one.arrived
        return self.engine.paged(whole)

    def _left(self, one: Sequence) -> int:
        """Tokens that prefill would compute; at least one, to get the next token."""
        return one.goal - self._hit(one)

    def _hit(self, one: Sequence) -> int:
        kept = self.pool.prefixes.get(one.request.prefix)
        if not (kept and self.engine.prefix_cache):
            return 0
        return min(kept.pages * self.engine.page, one.request.shared, one.goal - 1)

    def _admit(self, one: Sequence) -> Sequence:
        one.order = next(self._orders)
        one.admitted = min(one.admitted, self.clock)
        one.done = self._hit(one)
        one.hits += one.done
        self.hits += one.done
        if one.done:
            one.shared = self.pool.read(one.request.prefix)
            one.reads = one.request.prefix
        one.own = self._pages_of(one) - one.shared
        taken = self.pool.take(one.own)
        assert taken, "admitted without room"
        self.admitted[one.order] = one
        return one

    def _advance(self, one: Sequence, tokens: int, complete: list[Sequence]) -> bool:
        """Finish a chunk. Returns whether it was the last one, which gives a token."""
        one.done += tokens
        self.computed += tokens
        self._keep_prefix(one)
        if one.done < one.goal:
            return False
        del self.prefilling[one.order]
        one.length = one.goal
        one.produced += 1
        one.first = min(one.first, self.clock)
        if one.produced == one.request.output:
            complete.append(one)
        else:
            self._start_decode(one)
        return True

    def _keep_prefix(self, one: Sequence) -> None:
        request, engine = one.request, self.engine
        if not (engine.prefix_cache and request.prefix) or one.reads:
            return
        pages = request.shared // engine.page
        if one.done < pages * engine.page:
            return
        if self.pool.keep(request.prefix, pages, self.clock):
            one.reads, one.shared = request.prefix, pages
            one.own -= pages

    # ------------------------------------------------------------------------ decode

    def _start_decode(self, one: Sequence) -> None:
        left = one.request.output - one.produced
        one.begun, one.rounds = self._tick, left
        if self.engine.speculation:
            random = Random(f"{self.seed} {one.number} {one.produced}")
            one.rounds = self.engine.speculation.rounds(left, random)
        one.growth = left / one.rounds
        self._decoding += 1
        self._base += one.length - one.growth * one.begun
        self._slope += one.growth
        heappush(self._ends, (one.begun + one.rounds, one.order))
        if self.engine.pages is not None and not self.engine.reserve:
            one.due = max(0, self.engine.paged(one.length + left) - one.held)
            self._due += one.due
            self._next_page(one)

    def _stop_decode(self, one: Sequence) -> None:
        self._decoding -= 1
        self._base -= one.length - one.growth * one.begun
        self._slope -= one.growth
        self._due -= one.due
        if not self._decoding:
            self._base = self._slope = 0.0

    def _next_page(self, one: Sequence) -> None:
        """Note the step whose token no longer fits into the pages of a sequence."""
        room = one.held * self.engine.page - one.length
        turn = one.begun + floor(room / one.growth + 1e-9)
        if turn < one.begun + one.rounds:
            heappush(self._turns, (turn, one.order))

    def _turn_pages(self, steps: int) -> int:
        """Make sure of the pages that the next decode steps need; see `_take_pages`."""
        if self._waits and self._due <= self.pool.available:
            return steps
        return self._take_pages(steps)

    def _take_pages(self, steps: int) -> int:
        """Take the pages that the next decode steps need.

        Returns:
            The number of steps for which there are pages. If there are not enough for
            the first one, sequences are preempted until there are.
        """
        while self._turns and self._turns[0][0] < self._tick + steps:
            turn, order = self._turns[0]
            one = self.admitted.get(order)
            if one is None:  # it was preempted or is complete
                heappop(self._turns)
            elif self.pool.take(1):
                heappop(self._turns)
                one.own += 1
                one.due -= 1
                self._due -= 1
                self._next_page(one)
            elif turn > self._tick:
                return turn - self._tick
            else:
                self._preempt(self.admitted[max(self.admitted)])
        return steps

    def _preempt(self, one: Sequence) -> None:
        """Take all pages from a sequence and put it back at the front of the queue."""
        if one.begun >= 0:
            made = one.growth * (self._tick - one.begun)
            one.produced += floor(made + 1e-9)
            self._stop_decode(one)
        self._leave(one)
        self.prefilling.pop(one.order, None)
        one.preemptions += 1
        one.arrived = False
        one.reset()
        self.queue.appendleft(one)

    def _completed(self) -> list[Sequence]:
        """The sequences that got their last token in this step."""
        complete = []
        while self._ends and self._ends[0][0] <= self._tick:
            _, order = heappop(self._ends)
            one = self.admitted.get(order)
            if one is not None and one.begun >= 0:
                self._stop_decode(one)
                one.produced = one.request.output
                complete.append(one)
        return complete

    def _leave(self, one: Sequence) -> None:
        del self.admitted[one.order]
        self.pool.give(one.own)
        if one.reads:
            self.pool.leave(one.reads, self.clock)


def _sizes(chunks: list[tuple[Sequence, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((tokens, one.done) for one, tokens in chunks)
