"""Every way to train a model within the memory of a network, ranked by prediction.

On each mesh that the model admits, the search tries sizes of a microbatch and chunks of
a pipeline, each with only as much recomputation as memory requires. A candidate ties
with the fastest one if the shortest time is well inside the band of the candidate's own
prediction: in its inner half if the candidate divides the work on a sequence, by
pipeline, context or tensor parallelism, and else in its inner three quarters. Among the
ties the search recommends the one with the fewest such axes, because each is one more
thing to get right. A mesh without a pipeline comes before one with as many axes and a
pipeline, which needs a schedule and many microbatches. If several are about equally
fast, it recommends the one that divides a sequence among the fewest chips, as the guide
of Megatron Core for mixtures of experts advises: keep model parallelism small, and use
the rest of the chips for data parallelism.

We cannot tell how accurate the prediction for a mesh is if no published run resembles
this mesh. So the search proposes two things only if nothing else fits: kinds of
parallelism that no published run on chips of the same vendor uses, and pieces of a
sequence that are shorter than in any published run.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, inf, prod

from ..base.divisors import divisors
from ..hardware.networks import Network
from ..training.amounts import Names, Sizes
from ..training.derivation import Derivation
from ..training.efficiencies import band, efficiencies
from ..training.job import Job
from ..training.prediction import Clock, Software
from ..transformer import Model
from .candidates import (
    LATENT,
    NOTHING_AGAIN,
    SHARING,
    Candidate,
    Common,
    OnMesh,
    RematShare,
    Sharing,
    least_passes,
    nbytes_of,
    predicted,
    share_of_keys,
)
from .links import Links
from .patterns import COPIES, FOLDS, LAID, ORDER, SHARDS, merged, pattern, with_copies

PRUNED = 1.05  # candidates that take this many times as long as a tie are left out
# Shares of the band within which meshes tie, without and with model parallelism.
UNDIVIDED, DIVIDED = 0.75, 0.5
SAME = 1.03  # two releases of one framework differ by this factor with equal settings
DIVIDING = ("pipeline", "context", "tensor")  # axes whose chips share sequences
UNTRIED = {"Google": ("pipeline",)}  # kinds that no published run uses, by vendor
# Least recomputation first. "full" may apply to a share of the layers, because some
# published runs say that they recompute only some.
RECOMPUTES = (
    NOTHING_AGAIN,
    RematShare("elementwise", 1.0),
    RematShare("full", 0.25),
    RematShare("full", 0.5),
    RematShare("full", 0.75),
    RematShare("full", 1.0),
)
LATENTS = ("cq", "ckv")
FILLED = ("gpipe", "1f1b", "interleaved")  # schedules that wait (p − 1)/v passes
SHORTEST = 512  # the fewest tokens of a sequence that context parallelism leaves a chip
PUBLISHED = 4096  # the fewest tokens of a split sequence on a chip in a published run
# The most ways of tensor parallelism with copied KV heads, which never leave a node.
MOST_WITH_COPIES = 32
MOST_CHUNKS = 8  # chunks of layers per stage
MOST_SEQUENCES = {"Google": 64}  # sequences of a microbatch on one rank; elsewhere 16


def recomputes(model: Model) -> tuple[RematShare, ...]:
    """The choices of what is computed again, least recomputation first.

    With latent attention, the next choice after norms and activations is to expand the
    queries, keys and values of all heads a second time, because they are many times as
    large as the latents and cheap to compute. The choice after this one also computes
    the results of the experts again. Only the gradient of a gate reads these results
    one by one; everything else reads their sum.

    Source:
        DeepSeek-V3 (arXiv:2412.19437), section 3.2.3; Megatron's modules layernorm,
        moe_act and mla_up_proj.

    >>> from shardmath.transformer import DEEPSEEK_V3, LLAMA_3_8B
    >>> len(recomputes(LLAMA_3_8B))
    6
    >>> for again in recomputes(DEEPSEEK_V3)[2:4]:
    ...     print(again.remat)
    A t cq ckv R y g u m r gs us ms
    A t cq ckv R y g u r gs us
    """
    if not model.latent:
        return RECOMPUTES
    lines = [line for _, stack in model.stack for line in stack]
    kept = dict.fromkeys(
        line.result.name for line in lines if line.reads.name not in LATENTS
    )
    kept = ["A", *["t"] * bool(model.experts), *kept]
    heads = RematShare(" ".join(kept), 1.0, LATENT)
    if not model.experts:
        return *RECOMPUTES[:2], heads, *RECOMPUTES[2:]
    fewer = " ".join(name for name in kept if name[0] != "m")
    answers = RematShare(fewer, 1.0, f"{LATENT}, answers of experts")
    return *RECOMPUTES[:2], heads, answers, *RECOMPUTES[2:]


def factorisations(n: int, slots: int) -> Iterator[tuple[int, ...]]:
    """Every way to write n as a product of `slots` numbers, whose order counts.

    >>> list(factorisations(4, 2))
    [(1, 4), (2, 2), (4, 1)]
    """
    if slots == 1:
        yield (n,)
        return
    for first in divisors(n):
        for rest in factorisations(n // first, slots - 1):
            yield first, *rest


@dataclass(frozen=True)
class Space:
    """What a search may choose in addition to the sizes of the mesh axes.

    Args:
        recomputes: choices of what is computed again, least recomputation first.
        keys: what context parallelism may do with keys.
        chunks: chunks of layers per stage; None for any number up to 8.
        sequences: sequences of a microbatch on one rank; None for every divisor of the
            rank's sequences up to 16, or up to 64 on a TPU.
        software: what the framework overlaps.
        every: whether to include candidates that are far slower than the fastest.
    """

    recomputes: tuple[RematShare, ...] = RECOMPUTES
    keys: tuple[str, ...] = ("ring", "gather", "ulysses")
    chunks: int | None = None
    sequences: int | None = None
    software: Software = field(default_factory=Software)
    every: bool = False


class Search:
    """The ways to run one job on one network.

    Args:
        job: the model, its batch and its numerics; `space` sets recomputation and
            chunks.
        network: the network of the chips.
        fixed: sizes of axes that the search must use, such as ``{"tensor": 8}``.
        capacity: bytes of HBM per chip that may be used.
        space: what else may be chosen.
    """

    def __init__(
        self,
        job: Job,
        network: Network,
        fixed: Sizes,
        capacity: float,
        space: Space | None = None,
    ):
        self.job, self.network, self.fixed = job, network, dict(fixed)
        self.capacity, self.space = capacity, space or Space()
        chip = network.chip
        self.peak = chip.flops[job.precision]
        self.links = tuple(
            Links(network, LAID, job, blocks) for blocks in (False, True)
        )  # in rows, and with tensor parallelism in a block of a torus
        clock = Clock(chip, job.precision, self.space.software, efficiencies())
        self.common = Common(job, clock)
        self.most_sequences = MOST_SEQUENCES.get(chip.vendor, 16)
        # We use this band even with experts, whose band is wider, because most of that
        # error is the same on every mesh of a job.
        self.ties = 1 / band(experts=False)[0]
        self.untried = tuple(
            axis for axis in UNTRIED.get(chip.vendor, ()) if axis not in fixed
        )
        if job.model.kv_heads > 1 and "tensor" not in fixed:
            self.untried += ("copies",)  # only PaLM, with one KV head, has copies
        self.patterns: dict[tuple, Derivation] = {}
        self.failed: dict[tuple, str] = {}
        self.counts: Counter[str] = Counter()  # of meshes: tried, admitted, fitting
        self.obstacles: Counter[str] = Counter()  # why meshes are not admitted
        self.least = inf, {}, 0  # bytes of the mesh that comes nearest to fitting

    def elsewhere(self, network: Network) -> "Search":
        """The same search on another network of such chips. It need not derive again
        what does not depend on the network."""
        other = Search(self.job, network, self.fixed, self.capacity, self.space)
        other.patterns, other.failed = self.patterns, self.failed
        other.common = self.common
        return other

    @cached_property
    def least_work(self) -> float:
        """Seconds of a step if all chips shared its work evenly, in the largest
        microbatches, without recomputation and without exchanges."""
        alone, layout = dict.fromkeys(LAID, 1), Sharing("zero")
        found = self.pattern(layout, alone, self.space.keys[0])
        if isinstance(found, str):
            return 0.0
        keys = self.space.keys[0]
        mesh = OnMesh(layout, keys, found, alone, self.links[0], self.common)
        (stage,) = self.common.stages(1, 1)
        many = max(1, self.job.seqs // self.most_sequences)
        return many * mesh.taken(stage, many, NOTHING_AGAIN).passes / self.network.chips

    def meshes(self) -> Iterator[tuple[Sharing, dict[str, int]]]:
        """Every factorisation of the chips over the axes, for each way to keep weights.

        If chips of tensor or context parallelism can also split the experts, a mesh
        that does so follows as well.
        """
        experts, kv_heads = self.job.model.experts, self.job.model.kv_heads
        most = min(MOST_WITH_COPIES, int(self.network.chip.domain))
        seen = set()
        for shards, names in SHARDS.items():
            axes = [a for a in ORDER if a == "pipeline" or a in names]
            axes = [a for a in axes if a != "expert" or experts]
            # Beside ZeRO-1, data parallelism takes only what `_whole_rows` leaves it.
            axes = [a for a in axes if a != "data" or shards == "fsdp"]
            axes = [a for a in axes if a not in self.fixed]
            left, rest = divmod(self.network.chips, prod(self.fixed.values()))
            if rest or any(n > 1 and a not in (*names, "pipeline")
                           for a, n in self.fixed.items()):  # fmt: skip
                continue
            for sizes in (
                factorisations(left, len(axes)) if axes else [()] * (left == 1)
            ):
                found = dict.fromkeys(ORDER, 1) | self.fixed
                found |= dict(zip(axes, sizes, strict=True))
                found |= self._whole_rows(found)
                if found["tensor"] <= most or "tensor" in self.fixed:
                    found = with_copies(found, kv_heads)
                else:
                    found["copies"] = 1
                key = tuple(found.values())
                sharing = [axis for axis in SHARING if found[axis] > 1]
                if key in seen and not sharing:  # both `shards` would be the same mesh
                    continue
                seen.add(key)
                yield Sharing(shards), found
                if folded := self._folded(found):
                    yield Sharing(shards, folded), found

    def _whole_rows(self, sizes: Sizes) -> dict[str, int]:
        """The sizes of "data" and "zero" if ZeRO-1 can't divide the weights' rows.

        On 72 GPUs, the rows of 4,096 numbers are sharded over 8 and copied 9 times, as
        Megatron does if it is told so. (By default, it shards one padded array instead,
        and needs less memory.) MaxText has no such setting.
        """
        n, fixed = sizes["zero"], {"data", "zero"} & self.fixed.keys()
        if n == 1 or fixed or self.network.chip.vendor == "Google":
            return {}
        others = sizes["context"] * sizes["expert"]
        rows = self.job.model.d_model
        ways = max([m for m in divisors(n) if rows % (m * others) == 0], default=n)
        return {"data": n // ways, "zero": ways}

    def _folded(self, sizes: Sizes) -> Names:
        """The axes of tensor parallelism, or that of context parallelism, if they can
        also split the experts; none if a mesh has both."""
        some = tuple(axis for axis in FOLDS if sizes[axis] > 1)
        both = "context" in some and len(some) > 1
        if not (self.job.model.experts and some) or both:
            return ()
        ways = prod(sizes[axis] for axis in ("expert", *some))
        return some if self.job.model.experts.count % ways == 0 else ()

    def best(self, top: int) -> tuple[list[Candidate], Candidate | None]:
        """The best candidates, at most one per mesh, and the fastest of all.

        The recommended one comes first. Then come the others that tie with the fastest,
        in the order of `_preferred`, and then all others in order of predicted time.
        """
        by_mesh: dict[tuple, Candidate] = {}
        for one in self.fitting():
            key = one.shards, one.folded, tuple(one.sizes.values())
            if key not in by_mesh or one.seconds < by_mesh[key].seconds:
                by_mesh[key] = one
        found = sorted(by_mesh.values(), key=lambda one: one.seconds)
        if not found:
            return [], None
        tied = [one for one in found if self._ties(one, found[0])]
        others = [one for one in found if not self._ties(one, found[0])]
        first = _preferred(tied, self.job.seqs, int(self.network.chip.domain))
        return [*first, *others][:top], found[0]

    def _ties(self, one: Candidate, fastest: Candidate) -> bool:
        """Whether a candidate is about as fast as the fastest one."""
        divides = any(one.sizes[axis] > 1 for axis in DIVIDING)
        longer = (self.ties - 1) * (DIVIDED if divides else UNDIVIDED)
        return one.seconds <= (1 + longer) * fastest.seconds

    def pattern(self, layout: Sharing, sizes: Sizes, keys: str) -> Derivation | str:
        """The derivation of all meshes with these axes, or why there is none."""
        axes = tuple(a for a in LAID if sizes[a] > 1 and a != "pipeline")
        known = layout, axes, keys if sizes["context"] > 1 else ""
        if known not in self.patterns:
            least = {axis: divisors(sizes[axis])[1] for axis in axes}
            key = (*known, tuple(least.items()))
            if key in self.failed:
                return self.failed[key]
            try:
                self.patterns[known] = pattern(
                    self.job, layout.shards, axes, least, keys, layout.folded
                )
            except ValueError as error:
                self.failed[key] = str(error).partition("\n")[0]
                return self.failed[key]
        return self.patterns[known]

    def obstacle(self, layout: Sharing, sizes: Sizes) -> str:
        """Why the model or the network does not admit a mesh; "" if both do."""
        if sizes["expert"] > 1 and not self.job.model.experts:
            return f"expert {sizes['expert']}: {self.job.model.name} has no experts"
        shortest = min(self.job.seq, SHORTEST)
        if self.job.seq < sizes["context"] * shortest and "context" not in self.fixed:
            return f"context {sizes['context']}: under {shortest} tokens on a chip"
        if sizes["pipeline"] > self.job.model.layers:
            return f"pipeline {sizes['pipeline']}: {self.job.model.layers} layers"
        why = ""
        for keys in self.space.keys:
            found = self.pattern(layout, sizes, keys)
            why = found if isinstance(found, str) else self._divides(found, sizes)
            if not why or sizes["context"] == 1:
                break
        return why or min((links.obstacle(sizes) for links in self.links), key=len)

    def _divides(self, found: Derivation, sizes: Sizes) -> str:
        """A sentence on what the sizes of the axes do not divide; "" if they divide
        everything."""
        for axes, most in found.strictest.items():
            n = prod([sizes[axis] for axis in axes])
            if most % n:
                what = next(one for one in found.limits[axes] if one[1] % n)
                return f"{_over(axes, sizes)} does not divide {_named(*what)}"
        return ""

    @cached_property
    def admitted(self) -> list[tuple[Sharing, dict[str, int]]]:
        """Meshes that the model and the network admit, sorted by three keys: those like
        published runs come first, then those without context parallelism, and then
        those with few axes."""
        found = []
        for layout, sizes in self.meshes():
            self.counts["tried"] += 1
            why = self.obstacle(layout, sizes)
            if why:
                self.obstacles[why] += 1
            else:
                found.append((layout, sizes))
        self.counts["admitted"] = len(found)
        return sorted(
            found,
            key=lambda one: (
                self.is_untried(one[1]), one[1]["context"] > 1,
                simplicity(one[1], self.job.seqs),
            ),
        )  # fmt: skip

    def fits_in_part(self, part: int) -> bool:
        """Whether a mesh fits with 1/part of the batch, in the smallest microbatches.

        A smaller batch saves memory only where it has too few microbatches to fill a
        pipeline.
        """
        return any(
            nbytes_of(mesh, many, chunks, again, part) <= self.capacity
            and _can_be_timed(mesh, many, chunks, again)
            for layout, sizes in self.admitted
            for links in self._ways_to_lay(sizes)
            for mesh in self._derived(layout, sizes, links)
            if mesh.seqs % part == 0
            for many in self._microbatches(mesh)[-1:]
            for chunks in self._chunks(mesh, many // part)[-1:]
            for again in self._recomputes(mesh)
        )

    def is_untried(self, sizes: Sizes) -> bool:
        """Whether a mesh has a kind of axis that no published run on such chips uses,
        or splits sequences into shorter pieces than any published run."""
        split = sizes["context"] > 1 and "context" not in self.fixed
        short = split and self.job.seq < PUBLISHED * sizes["context"]
        return short or any(sizes[axis] > 1 for axis in self.untried)

    def fitting(self) -> Iterator[Candidate]:
        """Candidates that fit in memory. Those that are far slower than the fastest are
        left out, unless `space.every` includes them.

        Meshes like published runs with few axes come first. Since one of them is
        usually close to the fastest, we can leave most others out without a closer
        look.
        """
        fits: set[tuple] = set()
        known = False  # whether a mesh fits that is like published runs
        fastest = inf
        worst = inf if self.space.every else PRUNED * self.ties
        for layout, sizes in self.admitted:
            untried = self.is_untried(sizes)
            if known and untried:
                self.counts["left out"] += 1
                continue
            try:
                for one in self._on_sizes(layout, sizes, worst * fastest):
                    known = known or not untried
                    fits.add((layout, *sizes.values()))
                    fastest = min(fastest, one.seconds)
                    yield one
            except ValueError as error:
                self.obstacles[str(error)] += 1
        self.counts["fitting"] = len(fits)

    def _on_sizes(
        self, layout: Sharing, sizes: dict[str, int], worst: float
    ) -> Iterator[Candidate]:
        """Candidates on one mesh, in rows, and in a block if it has more wires."""
        for links in self._ways_to_lay(sizes):
            yield from self._laid(layout, sizes, links, worst)

    def _ways_to_lay(self, sizes: Sizes) -> Iterator[Links]:
        rows, blocks = self.links
        if not rows.obstacle(sizes):
            yield rows
        if blocks.block(sizes)[1] and not blocks.obstacle(sizes):
            yield blocks

    def _derived(
        self, layout: Sharing, sizes: dict[str, int], links: Links
    ) -> Iterator[OnMesh]:
        """The mesh with every choice for keys that the model admits."""
        for keys in self.space.keys if sizes["context"] > 1 else self.space.keys[:1]:
            found = self.pattern(layout, sizes, keys)
            if not isinstance(found, str) and not self._divides(found, sizes):
                yield OnMesh(layout, keys, found, sizes, links, self.common)

    def _laid(
        self, layout: Sharing, sizes: dict[str, int], links: Links, worst: float
    ) -> Iterator[Candidate]:
        """Candidates on axes laid by `links`, for every choice for keys that may be
        fast enough."""
        for mesh in self._derived(layout, sizes, links):
            shapes = self._shapes(mesh, worst)
            agains = self._that_fit(mesh, shapes)
            some = self._promising(mesh, shapes, agains, worst)
            promising = [one for one in some if one[0] <= worst]
            yield from self._on(mesh, sorted(promising), agains, worst)
            if not promising:
                return  # even without any time for keys, this mesh is too slow

    def _shapes(self, mesh: OnMesh, worst: float) -> list[tuple[int, int, float]]:
        """Microbatches and chunks, the largest microbatch first, each with a lower
        bound of the pipeline's waits as a share of its passes."""
        fills = (mesh.stages - 1) * (self.job.schedule in FILLED)
        shapes = (
            (many, chunks, fills / (chunks * many))
            for many in self._microbatches(mesh)
            for chunks in self._chunks(mesh, many)
        )
        return [one for one in shapes if self.least_work * (1 + one[2]) <= worst]

    def _that_fit(
        self, mesh: OnMesh, shapes: list[tuple[int, int, float]]
    ) -> list[RematShare]:
        """The choices of recomputation with which the mesh may fit, least first. One
        that does not fit with the smallest microbatch and the fewest chunks never
        fits."""
        if not shapes:
            return []
        many, chunks, _ = min(shapes, key=lambda one: (-one[0], one[1]))
        every = list(self._recomputes(mesh))
        for at, again in enumerate(every):
            nbytes = nbytes_of(mesh, many, chunks, again)
            if nbytes < self.least[0]:
                self.least = nbytes, merged(mesh.sizes), many
            if nbytes <= self.capacity:
                return every[at:]
        return []

    def _promising(
        self,
        mesh: OnMesh,
        shapes: list[tuple[int, int, float]],
        agains: list[RematShare],
        worst: float,
    ) -> Iterator[tuple[float, int, int]]:
        """Microbatches and chunks, each with seconds that no recomputation that fits
        and no choice for keys can beat.

        Matmuls are never less efficient in a larger microbatch, so the passes of the
        largest one are a lower bound for any number of microbatches.
        """
        if not agains:
            return
        least = agains[0]
        floor = least_passes(mesh, *shapes[0][:2], least)
        for many, chunks, waits in shapes:
            if floor * (1 + waits) <= worst:
                seconds, _ = predicted(mesh, many, chunks, least)
                if mesh.sizes["context"] > 1:
                    seconds *= 1 - share_of_keys(mesh, many, chunks, least)
                yield seconds, many, chunks

    def _on(
        self,
        mesh: OnMesh,
        shapes: list[tuple[float, int, int]],
        agains: list[RematShare],
        worst: float,
    ) -> Iterator[Candidate]:
        """Candidates on one mesh, each faster than the previous one. For a microbatch
        and a number of chunks, we take the least recomputation that fits.

        Args:
            mesh: the mesh.
            shapes: lower bound of the seconds, microbatches and chunks, fastest first.
            agains: choices of recomputation, least first.
            worst: predicted seconds above which a candidate is left out.
        """
        for least, many, chunks in shapes:
            if least > worst:
                return
            for again in agains:
                nbytes = nbytes_of(mesh, many, chunks, again)
                if nbytes > self.capacity:
                    continue
                seconds, exposed = predicted(mesh, many, chunks, again)
                if seconds <= worst:
                    worst = seconds
                    yield Candidate(
                        mesh.layout.shards, mesh.sizes, mesh.keys, mesh.layout.folded,
                        mesh.block, many, chunks, again, nbytes, seconds, exposed,
                    )  # fmt: skip
                break

    def _recomputes(self, mesh: OnMesh) -> Iterator[RematShare]:
        """The choices of recomputation, least first, without shares that round to the
        same number of layers."""
        layers = ceil(self.job.model.layers / mesh.stages)
        seen = set()
        for again in self.space.recomputes:
            key = again.remat, ceil(round(layers * again.share, 9))
            if key not in seen:
                seen.add(key)
                yield again

    def _microbatches(self, mesh: OnMesh) -> list[int]:
        """The numbers of microbatches to try, the largest microbatch first."""
        seqs, given = mesh.seqs, self.space.sequences
        if given:
            return [seqs // given] if seqs % given == 0 else []
        sizes = [n for n in divisors(seqs) if n <= self.most_sequences]
        return [seqs // size for size in reversed(sizes)]

    def _chunks(self, mesh: OnMesh, many: int) -> list[int]:
        """The numbers of chunks per stage that the schedule admits, largest first."""
        stages = mesh.stages
        if stages == 1 or self.job.schedule not in ("1f1b", "interleaved"):
            some = [1]
        else:
            some = divisors(ceil(self.job.model.layers / stages))
            some = [n for n in reversed(some) if n <= MOST_CHUNKS]
            if self.space.chunks:
                some = [self.space.chunks]
        return [n for n in some if self.common.pipeline(n).possible(stages, many)
                and self._cuts(n, stages)]  # fmt: skip

    def _cuts(self, chunks: int, stages: int) -> bool:
        """Whether the layers can be cut into these stages and chunks."""
        try:
            self.common.stages(chunks, stages)
        except ValueError as error:
            self.obstacles[str(error)] += 1
            return False
        return True


def _can_be_timed(
    mesh: OnMesh, microbatches: int, chunks: int, again: RematShare
) -> bool:
    """Whether there is a prediction, which a candidate needs."""
    try:
        predicted(mesh, microbatches, chunks, again)
    except ValueError:
        return False
    return True


def _preferred(tied: list[Candidate], seqs: int, domain: int) -> list[Candidate]:
    """The ties, fewest axes first, and of those with equally many axes, the ones
    without a pipeline. Of these, the ones within a factor `SAME` of their fastest come
    first. Meshes with several copies of the weights in one domain of fast links are the
    last of them. The others are in order of the chips that work on a sequence, and if
    these are equally many, the experts are divided over as many chips as possible.
    Then groups of chips that share weights, each with a copy, come after one group. At
    the end, the least exposed time decides."""

    def by(one: Candidate) -> tuple[bool, int, int, bool, float]:
        ways = one.ways
        copied, chips = copied_within(ways, domain), chips_per_sequence(ways)
        several = ways.get("data", 1) > 1 and one.shards == "fsdp"
        return copied, chips, -one.experts_over, several, one.exposed

    found = []
    axes = {
        id(one): (simplicity(one.sizes, seqs, domain), one.sizes["pipeline"] > 1)
        for one in tied
    }
    for count in sorted({*axes.values()}):
        some = [one for one in tied if axes[id(one)] == count]
        least = min(one.seconds for one in some)
        same = [one for one in some if one.seconds <= SAME * least]
        found += sorted(same, key=by)
        found += [one for one in some if one.seconds > SAME * least]
    return found


def simplicity(sizes: Sizes, seqs: int, domain: int | None = None) -> int:
    """The number of axes of a mesh that someone has to get right.

    Data parallelism does not count, and neither does expert parallelism, whose chips
    have sequences of their own. Context parallelism counts as three axes if it is not
    needed, that is, if the batch has at least one sequence for each rank and stage. It
    then only replaces data parallelism, which is simpler. Tensor parallelism counts as
    two axes if it leaves a domain of fast links.

    Args:
        sizes: the sizes of the mesh axes.
        seqs: sequences of a step.
        domain: chips of a domain of fast links; any number if not given.

    >>> eight = {"fsdp": 8, "context": 2}
    >>> simplicity(eight, 256), simplicity(eight, 8)
    (3, 1)
    >>> simplicity({"fsdp": 8, "tensor": 16}, 256, domain=8)
    2
    """
    axes = {axis for axis, size in merged(sizes).items() if size > 1}
    ways = ("context", "pipeline", "expert", *COPIES)
    spare = seqs >= prod(sizes.get(axis, 1) for axis in ways)
    needless = 2 * ("context" in axes and spare)
    split = sizes.get("tensor", 1) * sizes.get("copies", 1)
    leaves = domain is not None and split > domain
    return len(axes & set(DIVIDING)) + needless + leaves


def chips_per_sequence(ways: Mapping[str, int]) -> int:
    """The number of chips that work on a sequence: the degree of model parallelism.

    >>> chips_per_sequence({"zero": 8, "pipeline": 4, "context": 1, "tensor": 8})
    32
    """
    return prod(ways.get(axis, 1) for axis in DIVIDING)


def copied_within(ways: Mapping[str, int], domain: int) -> bool:
    """Whether a domain holds several copies of the weights or of their shards.

    Links that are as fast would also reach the chips of the other copies.

    >>> [copied_within({"data": 2, "fsdp": n}, domain=8) for n in (4, 8)]
    [True, False]
    """
    inside = prod(n for axis, n in ways.items() if axis not in ("data", "pipeline"))
    return ways.get("data", 1) > 1 and inside < domain


WORDS = {
    "B": "sequences",
    "S": "tokens of a sequence",
    "T": "tokens of a sequence",
    "N": "query heads",
    "K": "KV heads",
    "E": "experts",
    "V": "words of the vocabulary",
}


def _named(dim: str, size: int) -> str:
    return f"{size:,} {WORDS[dim]}" if dim in WORDS else f"{dim} = {size:,}"


def _over(axes: Names, sizes: Sizes) -> str:
    ways = merged({axis: sizes[axis] for axis in axes})
    some = [axis for axis, n in ways.items() if n > 1]
    each = " x ".join(f"{axis} {ways[axis]}" for axis in some)
    total = prod(ways.values())
    return f"{each} = {total}" if len(some) > 1 else each
