"""DualPipe and DualPipeV: forward and backward passes that run together in pairs."""

from collections import deque
from collections.abc import Iterator

from .ops import Op
from .orders import Orders, Paths, both_ways, there_and_back


def dualpipe(p: int, M: int) -> tuple[Orders, Paths]:
    """Microbatches from both ends, whose forward and backward passes run together.

    DeepSeek-V3 (2024), section 3.2.1, in the eight steps of its published code. Every
    stage holds its own layers and those of its mirror image.
    """
    return tuple(tuple(_dual_order(p, M, s)) for s in range(p)), both_ways(p)


def dualpipev(p: int, M: int) -> tuple[Orders, Paths]:
    """DualPipe cut in half: a V, not two directions, so no weights are held twice.

    DeepSeek's DualPipe repository (3da1bbe, dualpipe/dualpipev.py), after Qi et al.,
    "DualPipe could be better without the Dual" (2025). It is the first half of DualPipe
    over 2p stages with 2M microbatches. Where DualPipe has microbatches from the far
    end, DualPipeV has its own M microbatches, which come back through the second chunk.
    """
    return tuple(
        tuple(
            Op(op.kind, op.microbatch % M, op.chunk, op.beside)
            for op in _dual_order(2 * p, 2 * M, stage)
        )
        for stage in range(p)
    ), there_and_back(p)


def _dual_order(p: int, M: int, stage: int) -> Iterator[Op]:
    near = int(stage >= p // 2)  # the direction that enters on this side
    far, half = 1 - near, M // 2
    inward = min(stage, p - 1 - stage)  # distance from the nearer end
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
        if n == 0 and to_middle == 0:  # apart, so no stage waits for the pair
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
