"""The orders of the published schedules: the ops of each stage, from first to last.

Each function takes the numbers of stages p and microbatches M, and returns an order for
every stage and the paths of the microbatches. Stages are counted from 0 here.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator

from .ops import Op, StagePlace

Orders = tuple[tuple[Op, ...], ...]
Paths = tuple[tuple[StagePlace, ...], ...]


def laps(stages: int, chunks: int = 1) -> Paths:
    """The path through all stages, once for each chunk, each time from the first."""
    return (tuple((s, c) for c in range(chunks) for s in range(stages)),)


def there_and_back(stages: int) -> Paths:
    """The V-shaped path: through the first chunks to the last stage, and back."""
    there = [(s, 0) for s in range(stages)]
    return ((*there, *((s, 1) for s, _ in reversed(there))),)


def both_ways(stages: int) -> Paths:
    """The two paths of DualPipe, from the first stage and from the last."""
    there = tuple((s, 0) for s in range(stages))
    return there, tuple((s, 1) for s in reversed(range(stages)))


def gpipe(p: int, M: int) -> tuple[Orders, Paths]:
    """All forward passes, then all backward passes, starting with the last microbatch.

    Huang et al., 2018.
    """
    forward = tuple(Op("F", m) for m in range(M))
    backward = tuple(Op("B", m) for m in reversed(range(M)))
    return (forward + backward,) * p, laps(p)


def one_f_one_b(p: int, M: int) -> tuple[Orders, Paths]:
    """One forward, one backward: each stage starts its backward passes early.

    Stage s first does p − 1 − s forward passes, then forward and backward in turn.
    """
    return interleaved(p, M, chunks=1)


def eager_one_f_one_b(p: int, M: int) -> tuple[Orders, Paths]:
    """1F1B with about twice the warm-up, which gives sends time to arrive.

    Zhuang et al., 2022 (arXiv:2211.05322). Stage s does 2(p − s) − 1 forward passes
    before its first backward pass, as in the authors' code (alpa-projects/alpa,
    080cf63, pipeline_parallel/schedules.py).
    """
    forward, backward = (tuple(Op(kind, m) for m in range(M)) for kind in "FB")
    return tuple(
        tuple(_in_turn(iter(forward), iter(backward), 2 * (p - 1 - stage)))
        for stage in range(p)
    ), laps(p)


def interleaved(p: int, M: int, chunks: int) -> tuple[Orders, Paths]:
    """1F1B over chunks: p microbatches go through one chunk, then through the next.

    Narayanan et al., 2021. Because the microbatches go in groups of p, p must divide M
    if there are several chunks.
    """
    forward, backward = _in_groups(p, M, chunks)

    def order(stage: int) -> tuple[Op, ...]:
        until = p - 1 - stage  # forward passes before the first gradient can be back
        if chunks > 1:
            until = 2 * until + (chunks - 1) * p
        return tuple(_in_turn(iter(forward), iter(backward), until))

    return tuple(map(order, range(p))), laps(p, chunks)


def overlapped(p: int, M: int, chunks: int) -> tuple[Orders, Paths]:
    """Interleaved 1F1B whose forward and backward passes run together in pairs.

    Megatron Core calls it combined 1F1B (its guide to overlapping All-to-All). While
    one pass of a pair computes, the other exchanges tokens with the experts. The passes
    of a pair cannot wait for one another, so a stage has one more pass in flight than
    in interleaved 1F1B. With one chunk, it has one more pass in flight than in eager
    1F1B.
    """
    forward, backward = _in_groups(p, M, chunks)
    paired = tuple(Op("B", op.microbatch, op.chunk, beside=True) for op in backward)

    def order(stage: int) -> tuple[Op, ...]:
        alone = min(2 * (p - 1 - stage) + (chunks - 1) * p + 1, len(forward))
        pairs = zip(forward[alone:], paired, strict=False)
        together = (op for pair in pairs for op in pair)
        return (*forward[:alone], *together, *backward[len(forward) - alone :])

    return tuple(map(order, range(p))), laps(p, chunks)


def breadth_first(p: int, M: int, chunks: int) -> tuple[Orders, Paths]:
    """All microbatches go through a chunk, then all through the next; likewise back.

    Lamy-Poirier, 2022 (arXiv:2211.05953). With one chunk it is GPipe. The gradients of
    a chunk are complete when its last microbatch has passed, so data parallelism can
    reduce them while the other chunks compute.
    """
    forward = tuple(Op("F", m, c) for c in range(chunks) for m in range(M))
    backward = tuple(Op("B", op.microbatch, op.chunk) for op in reversed(forward))
    return (forward + backward,) * p, laps(p, chunks)


def _in_groups(p: int, M: int, chunks: int) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    """All forward and all backward passes of a stage, in groups of p microbatches."""

    def forward(n: int) -> Op:
        group, within = divmod(n, p * chunks)
        return Op("F", group * p + within % p, within // p)

    def backward(n: int) -> Op:
        op = forward(n)
        return Op("B", op.microbatch, chunks - 1 - op.chunk)

    ahead, back = (tuple(map(f, range(M * chunks))) for f in (forward, backward))
    return ahead, back


def _in_turn(forward: Iterator[Op], backward: Iterator[Op], ahead: int) -> Iterator[Op]:
    """`ahead` forward passes, then forward and backward in turn, then the rest."""
    for n, op in enumerate(forward):
        yield op
        if n >= ahead:
            yield next(backward)
    yield from backward


def zb_h1(p: int, M: int) -> tuple[Orders, Paths]:
    """1F1B that delays the gradients of weights by s microbatches on stage s.

    Qi et al., 2024, section 2.1: at most p microbatches are held, as in 1F1B.
    """
    orders, paths = one_f_one_b(p, M)
    return tuple(tuple(_put_off(orders[s], s)) for s in range(p)), paths


def zb_h2(p: int, M: int) -> tuple[Orders, Paths]:
    """Eager 1F1B that delays the gradients of weights by 2s microbatches on stage s.

    Qi et al., 2024, section 2.2: the stages have no gaps, but start one after the
    other, and at most 2p − 1 microbatches are held.
    """
    orders, paths = eager_one_f_one_b(p, M)
    return tuple(tuple(_put_off(orders[s], 2 * s)) for s in range(p)), paths


def _put_off(order: Iterable[Op], microbatches: int) -> Iterator[Op]:
    """The order with every B split, and W later than I by `microbatches`."""
    later: deque[Op] = deque()
    for op in order:
        if op.kind == "F":
            yield op
            continue
        yield Op("I", op.microbatch)
        later.append(Op("W", op.microbatch))
        if len(later) > microbatches:
            yield later.popleft()
    yield from later


def zb_v(p: int, M: int) -> tuple[Orders, Paths]:
    """Zero bubble on a V: the first stage is also the last (Qi et al., 2024, sec. 6).

    It is meant for F = I = W. The order is made for at least 2p − 1 microbatches. If
    there are fewer, the ops of the missing microbatches are left out.
    """
    full = max(M, 2 * p - 1)
    return tuple(
        tuple(op for op in _v_order(p, full, s) if op.microbatch < M) for s in range(p)
    ), there_and_back(p)


def _v_order(p: int, M: int, stage: int) -> Iterator[Op]:
    done: Counter[str] = Counter()

    def each(times: int, words: str) -> Iterator[Op]:
        """These ops (kind and chunk) repeatedly, each with its next microbatch."""
        for word in words.split() * times:
            kind, chunk = word
            yield Op(kind, done[word], int(chunk))
            done[word] += 1

    ahead = 2 * p - stage - 1  # forward passes with which the first chunk begins
    yield from each(ahead - stage, "F0")
    yield from each(stage, "F1 F0")
    yield from each(p - stage, "F1 I1 W1")
    yield from each(M - ahead, "F0 I0 W0 F1 I1 W1")
    yield from each(p - stage - 1, "I0 W0 F1 I1 W1")
    yield from each(stage, "I0 I1")
    yield from each(p - stage, "I0 W0")
    yield from each(stage, "W1")
    yield from each(stage, "W0")
