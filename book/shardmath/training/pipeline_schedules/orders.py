"""The orders of the published schedules: what each stage does, first to last.

Each function takes the stages p and microbatches M, and answers with an order for every
stage and the paths of the microbatches. Stages are counted from 0 here.
"""

from collections import Counter, deque
from collections.abc import Iterator

from .ops import Op, StagePlace

Orders = tuple[tuple[Op, ...], ...]
Paths = tuple[tuple[StagePlace, ...], ...]


def laps(stages: int, chunks: int = 1) -> Paths:
    """Chunk by chunk, each time through all stages from the first."""
    return (tuple((s, c) for c in range(chunks) for s in range(stages)),)


def there_and_back(stages: int) -> Paths:
    """A V: through the first chunks to the last stage, and back to the first."""
    there = [(s, 0) for s in range(stages)]
    return ((*there, *((s, 1) for s, _ in reversed(there))),)


def both_ways(stages: int) -> Paths:
    """Half of the microbatches from the first stage, half from the last."""
    there = tuple((s, 0) for s in range(stages))
    return there, tuple((s, 1) for s in reversed(range(stages)))


def gpipe(p: int, M: int) -> tuple[Orders, Paths]:
    """All forward, then all backward, last microbatch first (Huang et al., 2018)."""
    forward = tuple(Op("F", m) for m in range(M))
    backward = tuple(Op("B", m) for m in reversed(range(M)))
    return (forward + backward,) * p, laps(p)


def one_f_one_b(p: int, M: int) -> tuple[Orders, Paths]:
    """One forward, one backward: a stage begins to go back as early as it can.

    Stage s first does p − 1 − s forward passes, then one of each in turn.
    """
    return interleaved(p, M, chunks=1)


def interleaved(p: int, M: int, chunks: int) -> tuple[Orders, Paths]:
    """1F1B over chunks: p microbatches through a chunk, then through the next.

    Narayanan et al., 2021. With chunks the microbatches go in groups of p, so p must
    divide M.
    """

    def forward(n: int) -> Op:
        group, within = divmod(n, p * chunks)
        return Op("F", group * p + within % p, within // p)

    def backward(n: int) -> Op:
        op = forward(n)
        return Op("B", op.microbatch, chunks - 1 - op.chunk)

    ahead, back = (tuple(map(f, range(M * chunks))) for f in (forward, backward))

    def order(stage: int) -> tuple[Op, ...]:
        until = p - 1 - stage  # the first gradient can be back
        if chunks > 1:
            until = 2 * until + (chunks - 1) * p
        return tuple(_in_turn(iter(ahead), iter(back), until))

    return tuple(map(order, range(p))), laps(p, chunks)


def _in_turn(forward: Iterator[Op], backward: Iterator[Op], ahead: int) -> Iterator[Op]:
    """`ahead` forward passes, then one and one, then what is left backward."""
    for n, op in enumerate(forward):
        yield op
        if n >= ahead:
            yield next(backward)
    yield from backward


def zb_h1(p: int, M: int) -> tuple[Orders, Paths]:
    """1F1B with the gradients of weights put off, by s microbatches on stage s.

    Qi et al., 2024, section 2.1: at most p microbatches are held, as in 1F1B.
    """

    orders, paths = one_f_one_b(p, M)

    def order(stage: int) -> Iterator[Op]:
        later: deque[Op] = deque()
        for op in orders[stage]:
            if op.kind == "F":
                yield op
                continue
            yield Op("I", op.microbatch)
            later.append(Op("W", op.microbatch))
            if len(later) > stage:
                yield later.popleft()
        yield from later

    return tuple(tuple(order(s)) for s in range(p)), paths


def zb_v(p: int, M: int) -> tuple[Orders, Paths]:
    """Zero bubble on a V: the first stage is also the last (Qi et al., 2024, sec. 6).

    For F = I = W. The order is made for 2p − 1 microbatches or more; with fewer, the
    ops of those that are not there are left out.
    """
    full = max(M, 2 * p - 1)
    return tuple(
        tuple(op for op in _v_order(p, full, s) if op.microbatch < M) for s in range(p)
    ), there_and_back(p)


def _v_order(p: int, M: int, stage: int) -> Iterator[Op]:
    done: Counter[str] = Counter()

    def each(times: int, words: str) -> Iterator[Op]:
        """So many times these ops, kind and chunk, each with its next microbatch."""
        for word in words.split() * times:
            kind, chunk = word
            yield Op(kind, done[word], int(chunk))
            done[word] += 1

    ahead = 2 * p - stage - 1  # microbatches that the first chunk begins with
    yield from each(ahead - stage, "F0")
    yield from each(stage, "F1 F0")
    yield from each(p - stage, "F1 I1 W1")
    yield from each(M - ahead, "F0 I0 W0 F1 I1 W1")
    yield from each(p - stage - 1, "I0 W0 F1 I1 W1")
    yield from each(stage, "I0 I1")
    yield from each(p - stage, "I0 W0")
    yield from each(stage, "W1")
    yield from each(stage, "W0")


def dualpipe(p: int, M: int) -> tuple[Orders, Paths]:
    """Microbatches from both ends, a forward and a backward pass side by side.

    DeepSeek-V3 (2024), section 3.2.1, in the eight steps of its published code. Every
    stage holds the layers of two: its own, and those of its mirror image.
    """
    return tuple(tuple(_dual_order(p, M, s)) for s in range(p)), both_ways(p)


def _dual_order(p: int, M: int, stage: int) -> Iterator[Op]:
    near = int(stage >= p // 2)  # the direction that enters on this side
    far, half = 1 - near, M // 2
    inward = min(stage, p - 1 - stage)  # from the nearer end
    to_middle = p // 2 - 1 - inward
    at: dict[tuple[str, int], int] = {}
    later: deque[Op] = deque()

    def op(kind: str, way: int, beside: bool = False) -> Op:
        passes = "F" if kind == "F" else "B"
        n = at[passes, way] = at.get((passes, way), -1) + 1
        return Op(kind, way * half + n, way, beside)

    def split(way: int) -> Op:
        one = op("I", way)
        later.append(Op("W", one.microbatch, way))
        return one

    def pair(forward: int, backward: int) -> Iterator[Op]:
        yield op("F", forward)
        yield op("B", backward, beside=True)

    for _ in range(2 * to_middle):
        yield op("F", near)
    for _ in range(inward + 1):
        yield op("F", near)
        yield op("F", far)
    for _ in range(to_middle):
        yield split(far)
        yield later.popleft()
        yield op("F", far)
    for n in range(half - p + inward + 1):
        if n == 0 and to_middle == 0:  # apart, so that nobody waits for the pair
            yield op("F", near)
            yield op("B", far)
        else:
            yield from pair(near, far)
        yield from pair(far, near)
    for _ in range(to_middle):
        yield op("B", far)
        yield from pair(far, near)
    for n in range(2 * (inward + 1)):
        way = near if n % 2 else far
        yield split(way) if n > inward else op("B", way)
    for _ in range(to_middle):
        yield later.popleft()
        yield split(near)
    yield from later
