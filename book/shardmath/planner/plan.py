"""Rank and explain every mesh that a model admits on a network."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ..base.garbage import uncollected
from ..base.records import must_be
from ..base.tables import Table, compare
from ..base.units import (
    flags,
    pluralize,
    positive,
    positive_int,
    short_repr,
    show,
    text,
)
from ..hardware.chips import Chip
from ..hardware.networks import Network, Slices, network
from ..hardware.networks.usual import usual
from ..hardware.networks.wiring import Switch
from ..training import Step, StepMemory
from ..training.job import Job, usual_formats
from ..training.pipeline_schedules import schedule as orders
from ..training.prediction import Prediction, Software
from ..training.step import derived
from ..training.strategy import ATTENTIONS
from ..transformer import Model, flops
from ..transformer import model as find_model
from ..transformer.flops import one_of
from .candidates import Candidate, RematShare, schedule_of
from .flags import maxtext, megatron
from .patterns import ORDER, strategy
from .search import DIVIDING, Search, Space, chips_per_sequence, recomputes

LEFT_OUT = (
    "other orders of the axes on the network, and meshes whose axes share a ring "
    "without being neighbours on it",
    "tensor parallelism without sequence parallelism, and schedules besides 1F1B and "
    "interleaved 1F1B unless one is named",
    "stragglers and failures, and what a compiler adds",
)
KILO = {"k": 2**10, "m": 2**20, "g": 2**30}
UNEVEN = 1.05  # work of the slowest stage ÷ the mean, above which we mention it
PADDED = 128  # Megatron pads the vocabulary to a multiple of this, so GPUs can share it
HEADROOM = 0.10  # the share of the memory that a plan leaves free


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to run a job: a mesh, its microbatches and other settings.

    Args:
        candidate: the candidate that the search found.
        search: the search that found it.
    """

    candidate: Candidate
    search: Search

    @cached_property
    def step(self) -> Step:
        """The derivation of a step."""
        one, search = self.candidate, self.search
        name, chunks = schedule_of(search.job, one.chunks)
        job = replace(
            search.job,
            remat=one.recompute.remat,
            remat_share=one.recompute.share,
            schedule=name,
            chunks=chunks,
        )
        axes = tuple(axis for axis, n in one.sizes.items() if n > 1)
        found = strategy(one.shards, axes, one.keys, one.folded)
        links = search.links[bool(one.block)]
        return derived(job, found, links.mesh(one.sizes), one.microbatches)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The size of each kind of parallelism in `ORDER`."""
        return self.candidate.ways

    @property
    def axes(self) -> dict[str, int]:
        """The sizes of the axes that are larger than 1, outermost first."""
        return {axis: n for axis, n in self.sizes.items() if n > 1}

    @property
    def shards(self) -> str:
        """How the weights are kept, as a key of `patterns.SHARDS`."""
        return self.candidate.shards

    @property
    def microbatches(self) -> int:
        return self.candidate.microbatches

    @property
    def chunks(self) -> int:
        """Chunks of layers per stage."""
        return self.candidate.chunks

    @property
    def recompute(self) -> RematShare:
        return self.candidate.recompute

    @cached_property
    def prediction(self) -> Prediction:
        """The predicted time of a step, with its bound and its band."""
        return self.step.predicted(self.search.space.software)

    @property
    def seconds(self) -> float:
        """Predicted seconds of a step, from the search."""
        return self.candidate.seconds

    @property
    def lower(self) -> float:
        """Seconds that no step with these settings can beat."""
        return self.step.estimate.lower

    @property
    def memory(self) -> StepMemory:
        """Bytes that a chip holds, part by part."""
        return self.step.memory

    @property
    def settings(self) -> str:
        """Microbatches, chunks, recomputation and more, in words."""
        said = [pluralize(f"{self.microbatches:,}", "microbatches")]
        if self.chunks > 1:
            said.append(f"{self.chunks} chunks a stage")
        if self.sizes["context"] > 1:
            said.append(f"keys by {self.candidate.keys}")
        if self.candidate.folded:
            kinds = dict.fromkeys(_kind(axis) for axis in self.candidate.folded)
            said.append(f"experts over {' and '.join(kinds)}")
        if (copies := self.candidate.sizes["copies"]) > 1:
            said.append(f"{copies} copies of KV heads")
        if self.candidate.block:
            said.append(f"tensor in a block of {_sides(self.candidate.block)}")
        return ", ".join((*said, f"recompute {self.recompute}"))

    def __str__(self) -> str:
        return f"{_mesh(self)}, {self.settings}"


@dataclass(frozen=True, eq=False)
class Plan:
    """The best ways to run a job on a network, as made by `plan`.

    Args:
        job: the model, its batch and its numerics.
        network: the network of the chips.
        ranking: the best meshes, the recommended one first; empty if none fits.
        fastest: the mesh with the shortest predicted time; None if none fits.
        search: the search that found these meshes.
        nearest: if no mesh fits, changes that would make one fit.
    """

    job: Job
    network: Network
    ranking: tuple[Trial, ...]
    fastest: Trial | None
    search: Search
    nearest: tuple[str, ...] = ()

    @property
    def best(self) -> Trial:
        """The recommended mesh.

        Raises:
            ValueError: no mesh fits. The message names changes that would make one fit.
        """
        if not self.ranking:
            raise ValueError(self.verdict)
        return self.ranking[0]

    @property
    def tokens(self) -> int:
        return self.job.seqs * self.job.seq

    @property
    def flops(self) -> float:
        """FLOPs that a step needs on all chips, if nothing is computed twice."""
        once = flops(self.job.model, self.job.seq, self.job.attention)
        return once.training * self.tokens

    def mfu(self, trial: Trial) -> float:
        """Needed FLOPs ÷ the FLOPs of all chips at peak during the predicted time."""
        return self.flops / (self.network.chips * self.search.peak * trial.seconds)

    def step(self, trial: Trial | None = None) -> Step:
        """The step of a mesh; of the recommended mesh if none is given."""
        return (trial or self.best).step

    def why(self, trial: Trial) -> str:
        """The largest parts of a step, and its time ÷ that of the recommended mesh."""
        return _why(trial, self.best)

    @property
    def reason(self) -> str:
        """Why the recommended mesh is recommended, in words."""
        best, fastest = self.best, self.fastest
        if best.candidate is fastest.candidate:
            return "Its predicted time is also the shortest."
        slower = best.seconds / fastest.seconds - 1
        axes, others = (len({*one.axes} & {*DIVIDING}) for one in (best, fastest))
        each, other = (chips_per_sequence(one.sizes) for one in (best, fastest))
        if axes < others:
            count, kind = pluralize(str(others - axes), "axes").split()
            reason = f"it has {count} fewer {kind} to get right"
        elif "context" in fastest.axes and "context" not in best.axes:
            reason = "it does not split sequences, of which there are enough"
        elif each < other:
            reason = f"{each} instead of {other} chips share the work on a sequence"
        elif "pipeline" in fastest.axes and "pipeline" not in best.axes:
            reason = "it needs no pipeline"
        elif best.candidate.exposed < fastest.candidate.exposed:
            reason = "it loses less time to exchanges that nothing hides and to waiting"
        else:
            reason = "it is simpler to run"
        return (
            f"The mesh with the shortest predicted time, "
            f"{show(fastest.seconds, 's')}, is {_mesh(fastest)} ({fastest.settings}). "
            f"The recommended mesh is {slower:.1%} slower, which is inside the "
            f"band of its prediction, and {reason}."
        )

    def why_not(self, **sizes: int) -> str:
        """Why the recommended mesh does not have these sizes of axes.

        >>> print(plan("llama 3 8b", "h100:2x8", "1M").why_not(tensor=3))
        Traceback (most recent call last):
        ValueError: tensor 3: must divide 16 chips
        >>> print(plan("mixtral 8x7b", "h100:2x8", "1M").why_not(expert=16))
        expert 16 does not divide 8 experts

        Raises:
            ValueError: no sizes, an unknown axis, both zero and fsdp, sizes that do not
                divide the chips.
        """
        if not sizes:
            raise ValueError("why_not(): needs sizes of axes, such as tensor=16")
        sizes = _fixed(sizes, self.network)
        if self.ranking and all(self.best.sizes[a] == n for a, n in sizes.items()):
            return f"it is: the recommended mesh has {_said(sizes)}"
        now = self.search
        search = Search(self.job, self.network, sizes, now.capacity, now.space)
        found, _ = search.best(1)
        if found:
            other = Trial(found[0], search)
            if not self.ranking:
                return f"{_mesh(other)} fits"
            ratio = other.seconds / self.best.seconds
            again = "as long" if 0.995 < ratio < 1.005 else f"{ratio:.2f} times as long"
            return f"{_mesh(other)} takes {again}: {_why(other, other)}"
        if search.least[1]:
            return _too_large(search)
        (why, _), *_ = search.obstacles.most_common(1) or [("no such mesh", 0)]
        return why

    @property
    def table(self) -> Table:
        """The best meshes side by side.

        Raises:
            ValueError: no mesh fits. The message names changes that would make one fit.
        """
        columns = {
            "bound": ("lower", "s"),
            "predicted": ("seconds", "s"),
            "8 of 10 runs": lambda t: (
                f"{show(t.prediction.low, 's')} to {show(t.prediction.high, 's')}"
            ),
            "MFU": (self.mfu, ".1%"),
            "held": (lambda t: t.memory.total, "capacity"),
            "time goes to": self.why,
        }
        rows = {(_mesh(t), t.settings): t for t in self.ranking}
        if not rows:
            raise ValueError(self.verdict)
        return compare(rows, columns, of=("mesh", "settings"))

    def flags(self, trial: Trial | None = None) -> str:
        """Flags that you can paste, for MaxText on TPUs and for Megatron on GPUs.

        Args:
            trial: the mesh; the recommended one if none is given.

        >>> found = plan("llama 3 70b", "h100:64", "1M", fixed={"tensor": 8})
        >>> print(*found.flags().split()[:3])
        Megatron: --tensor-model-parallel-size 8
        """
        one = (trial or self.best).candidate
        if self.network.chip.vendor == "Google":
            across = isinstance(self.network, Slices)
            slices = self.network.dims[0].size if across else 1
            devices = self.network.chip.devices_per_chip
            return f"MaxText: {maxtext(self.job, one, slices, devices)}"
        return f"Megatron: {megatron(self.job, one)}"

    @cached_property
    def fewer(self) -> "Plan | None":
        """The plan for the largest power of two below the number of chips, if faster.

        If the number of chips has odd factors, it may divide batch, heads and layers so
        badly that it is faster to leave some chips idle. The result is None if this is
        not so, if the number of chips is a power of two, or if sizes are fixed.
        """
        now = self.search
        below = 2 ** (self.network.chips.bit_length() - 1)
        if below == self.network.chips or now.fixed:
            return None
        try:
            other = network(usual(self.network.chip, below))
        except ValueError:
            return None
        search = now.elsewhere(other)
        with uncollected():
            best, fastest = search.best(1)
        if not best or (self.ranking and fastest.seconds >= self.fastest.seconds):
            return None
        return Plan(self.job, other, (Trial(best[0], search),),
                    Trial(fastest, search), search)  # fmt: skip

    def memory(self, trial: Trial | None = None) -> StepMemory:
        """Bytes that a chip holds on a mesh, part by part; on the recommended mesh if
        none is given."""
        return (trial or self.best).memory

    @property
    def title(self) -> str:
        job, chips = self.job, self.network.chips
        return (
            f"{job.model.name}, {pluralize(f'{job.seqs:,}', 'sequences')} of "
            f"{pluralize(f'{job.seq:,}', 'tokens')} on {self.network.name} "
            f"({pluralize(f'{chips:,}', 'chips')})"
        )

    @property
    def verdict(self) -> str:
        """The recommended mesh in words; or that none fits, and what would help."""
        if not self.ranking:
            said = [_too_large(self.search), *self.nearest]
        else:
            best = self.best
            held = show(best.memory.total, "capacity")
            said = [f"recommended: {best}", f"{best.prediction}; {held} held"]
            said += [*best.prediction.warnings, self.reason]
        if (fewer := self.fewer) is not None:
            time = show(fewer.fastest.seconds, "s")
            said.append(
                f"{fewer.network.chips:,} of the chips would be faster, with {time}: "
                f"{fewer.fastest}"
            )
        return "\n  ".join(said)

    @property
    def counted(self) -> str:
        """How many meshes were tried, how many were admitted, and how many fit."""
        some = self.search.counts
        tried = pluralize(f"{some['tried']:,}", "meshes")
        near = "" if self.search.space.every else " and are not far from the fastest"
        new = ""
        if some["left out"]:
            new = (
                f"; {some['left out']:,} were not timed, because no published run on "
                "such chips resembles them"
            )
        return (
            f"{tried}: {some['admitted']:,} admitted by model and network, "
            f"{some['fitting']:,} of them fit in memory{near}{new}"
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """The five commonest reasons why meshes are not admitted, in order."""
        return tuple(why for why, _ in self.search.obstacles.most_common(5))

    @property
    def left_out(self) -> tuple[str, ...]:
        """What the search does not consider."""
        return LEFT_OUT

    def __str__(self) -> str:
        return f"{self.title}\n  {self.counted}\n  {self.verdict}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(f"{self}\n\n{self.table}" if self.ranking else str(self))


def plan(
    model: Model | str,
    machine: Network | str,
    tokens: int | str,
    seq: int = 8192,
    *,
    attention: str = "causal",
    remat: str | None = None,
    precision: str = "bf16",
    schedule: str = "1f1b",
    chunks: int | None = None,
    capacity: float = 1.0,
    keys: str | None = None,
    kernel: str = "fused",
    loss: str = "once",
    formats: Mapping[str, str] | None = None,
    copy: bool = True,
    node_limit: int | None = None,
    hbm: float | None = None,
    fixed: Mapping[str, int] | None = None,
    sequences: int | None = None,
    overlap: Iterable[str] = (),
    top: int = 5,
    every: bool = False,
    known: Iterable[Candidate] = (),
) -> Plan:
    """The best ways to train a model on a network, ranked by predicted time.

    The search tries every factorisation of the chips over data, pipeline, ZeRO-1 or
    FSDP, expert, context and tensor parallelism that the model admits. The axes are
    mapped to the network in this order, outermost first. On each mesh the search tries
    sizes of the microbatch, numbers of chunks and choices for keys, with the least
    recomputation that fits. Chips of context or tensor parallelism may also split the
    experts, and on a torus, tensor parallelism may take a block of neighbours.

    Some kinds of meshes are proposed only if nothing else fits, because no published
    run has them: pipelines on TPUs, tensor parallelism with copies of KV heads if a
    model has several, and context parallelism with under 4,096 tokens of a sequence per
    chip. A mesh ties with the fastest one if the shortest predicted time is in the
    inner three quarters of the band of the mesh's own prediction, or in its inner half
    if the mesh has pipeline, context or tensor parallelism. Among the ties we recommend
    the mesh with the fewest axes, where data and expert parallelism do not count (see
    `search.simplicity`), and of those with equally few, one without a pipeline. If
    several are about equally fast, we recommend the one in which the fewest chips work
    on a sequence.

    Args:
        model: a model, or a name for `transformer.model`.
        machine: a network or its name, such as "v5p:8x8x8", "h100:64x8", "gb200:72".
        tokens: tokens of a step, on all chips, in whole sequences; "4M" is 4 · 2^20.
        seq: tokens of a sequence.
        attention, precision: as for `training.step`.
        remat: what is computed again; if not given, only as much as memory requires.
        schedule: the schedule of a pipeline; see `pipeline_schedules.schedule`. "1f1b"
            may be interleaved.
        chunks: chunks of layers per stage; any number up to 8 if not given.
        capacity, kernel, loss, copy, node_limit: as for `training.step`.
        formats: as for `training.step`; `usual_formats` if not given.
        keys: what context parallelism does with keys: "ring", "gather" or "ulysses";
            any of these if not given.
        hbm: bytes of memory per chip that may be used; nine tenths of the chip's memory
            if not given.
        fixed: sizes of axes that the search must use, such as ``{"tensor": 8}``.
        sequences: sequences of a microbatch on one data-parallel rank; if not given,
            every divisor of the rank's sequences up to 16, or up to 64 on a TPU.
        overlap: exchanges that the framework overlaps; see `training.Software`.
        top: how many of the best meshes to keep.
        every: whether to look closely also at meshes that are far slower than the
            fastest. The search then takes up to twice as long.
        known: candidates from an earlier search for the same job, best first, which
            replace the search.

    Returns:
        A `Plan`, whose `step` gives the derivation of each of its meshes.

    Assumes:
        All that `training.step` assumes. The vocabulary is padded to a multiple of 128,
        because tensor parallelism divides it. With FSDP, chips that share a sequence or
        have different experts also shard the other weights. With ZeRO-1 each of these
        chips has a copy of the other weights, and they shard only the optimizer state.
        Weights are sharded by whole rows, so with FSDP the number of chips has to
        divide the width of the model. ZeRO-1 on GPUs shards the state over the largest
        group of chips whose size divides the width. If a framework pads its arrays, it
        can use all chips, which takes less memory. See `Plan.left_out`.

    Raises:
        ValueError: an unknown model or machine, a machine of several kinds of chips,
            tokens that are not a whole number of sequences, a word or size other than
            those above, chunks that the schedule does not have, or a capacity for a
            model without experts.

    >>> print(plan("llama 3 405b", "h100:16384", "16M").best.axes)
    {'pipeline': 16, 'zero': 128, 'tensor': 8}
    """
    model = find_model(model) if isinstance(model, str) else model
    if not isinstance(model, Model):
        raise ValueError(f"model = {short_repr(model)}: must be a `transformer.Model`")
    model = replace(model, vocab=math.ceil(model.vocab / PADDED) * PADDED)
    found = network(machine)
    if not isinstance(found.chip, Chip):
        raise ValueError(f"machine = {found.name}: must be made of one kind of chip")
    if keys is not None:
        one_of(ATTENTIONS, keys=keys)
    if remat is not None:
        text("remat", remat)
    (seq, top) = positive_int(seq=seq, top=top)
    job = Job(
        model,
        _sequences(tokens, seq),
        seq,
        attention,
        remat or "full",
        precision,
        kernel,
        loss,
        usual_formats(found.chip, precision) if formats is None else formats,
        copy,
        schedule,
        chunks,
        capacity,
        node_limit,
    )
    if chunks is not None and schedule not in ("1f1b", "interleaved"):
        orders(schedule, 2, 4, chunks)  # raises if it cannot have these chunks
    usable = (1 - HEADROOM) * found.chip.memory_bytes
    (space,) = positive(hbm=usable if hbm is None else hbm)
    if sequences is not None:
        positive_int(sequences=sequences)
    flags(every=every)
    for name, given in (("overlap", overlap), ("known", known)):
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ValueError(f"{name} = {short_repr(given)}: must be a list or tuple")
    known = list(known)
    for one in known:
        must_be(Candidate, known=one)
    if chunks is not None and chunks > model.layers:
        raise ValueError(
            f"chunks = {chunks}: must be at most the {model.layers} layers of "
            f"{model.name}"
        )
    sizes = _fixed({} if fixed is None else fixed, found)
    choices = Space(
        recomputes(model) if remat is None else (RematShare(remat, 1.0),),
        ATTENTIONS if keys is None else (keys,),
        chunks,
        sequences,
        Software(tuple(overlap)),
        every,
    )
    search = Search(job, found, sizes, space, choices)
    if best := known:
        fastest = min(best, key=lambda one: one.seconds)
    else:
        with uncollected():
            best, fastest = search.best(top)
    trials = tuple(Trial(one, search) for one in best)
    quickest = next((t for t in trials if t.candidate is fastest), None)
    if fastest and not quickest:
        quickest = Trial(fastest, search)
    return Plan(job, found, trials, quickest, search, () if best else nearest(search))


def nearest(search: Search) -> tuple[str, ...]:
    """Changes that would make a mesh fit if none does: no headroom, more
    recomputation, a smaller batch, or more chips.

    There are none if the model or the network admits no mesh. None of these changes
    would help: an axis that divides the model in a smaller batch, or with twice as many
    chips, also does so here.
    """
    if search.counts["tried"] and not search.counts["admitted"]:
        return ()
    job, found = search.job, []
    fewest = least_chips(job, search.capacity)
    whole = search.network.chip.memory_bytes
    if search.least[0] <= whole and search.capacity < whole:
        found.append(f"it fits if no memory has to stay free: hbm={whole:.0f}")
    last = search.space.recomputes[-1]
    if last.remat != "full":
        all_again = replace(search.space, recomputes=(RematShare("full", 1.0),))
        other = Search(job, search.network, search.fixed, search.capacity, all_again)
        if any(True for _ in other.fitting()):
            found.append("remat 'full' fits")
    for part in (2, 4, 8):
        if job.seqs % part == 0 and search.fits_in_part(part):
            tokens = job.seqs // part * job.seq
            found.append(f"a batch of {tokens:,} tokens fits, 1/{part} of it")
            break
    for times in (2**n for n in range(1, 11)):
        chips = times * search.network.chips
        if chips < fewest:
            continue
        more = Network((Switch(chips, 1.0, 0.0),), "more chips", search.network.chip)
        if any(True for _ in search.elsewhere(more).fitting()):
            found.append(f"{chips:,} chips fit, {times} times as many")
            break
    return tuple(found)


def least_chips(job: Job, capacity: float) -> float:
    """The number of chips below which no mesh fits, however small the batch is: they
    have too little memory even if each weight, gradient and state is held only once.

    Args:
        job: the model, its batch and its numerics.
        capacity: bytes of HBM per chip that may be used.

    >>> from shardmath.transformer import LLAMA_3_8B
    >>> round(least_chips(Job(LLAMA_3_8B, 1, 8192), 80e9), 2)
    1.61
    """
    held = job.width("gradients") + job.state_width + job.copy * job.width("weights")
    return held * job.model.params / capacity


def _sequences(tokens: int | str, seq: int) -> int:
    """The number of sequences in a batch; raise unless it is whole."""
    count = tokens
    if isinstance(tokens, str):
        said = re.fullmatch(r"([\d.,_]+) ?([kmg]?)", tokens.strip().lower())
        try:
            number = float(re.sub("[,_]", "", said[1])) * KILO.get(said[2], 1)
        except (TypeError, ValueError):
            number = math.nan
        count = int(number) if number.is_integer() else number
    try:
        (count,) = positive_int(tokens=count)
    except ValueError:
        raise ValueError(
            f"tokens = {short_repr(tokens)}: must be a whole number from 1, or a "
            "string such as '4M', which is 4 · 2^20"
        ) from None
    if count % seq:
        near = max(1, round(count / seq)) * seq
        raise ValueError(
            f"tokens = {short_repr(tokens)}: must be a multiple of seq = {seq:,}, such "
            f"as {near:,}"
        )
    return count // seq


def _fixed(sizes: Mapping[str, int], network: Network) -> dict[str, int]:
    if not isinstance(sizes, Mapping):
        raise ValueError(
            f"fixed = {short_repr(sizes)}: must map axes to sizes, as in "
            "{'tensor': 8}"
        )
    for axis in sizes:
        if axis not in ORDER:
            given = short_repr(axis)
            raise ValueError(f"axis {given}: must be one of {', '.join(ORDER)}")
    if not sizes:
        return {}
    found = dict(zip(sizes, positive_int(**sizes), strict=True))
    if found.get("zero", 1) > 1 and found.get("fsdp", 1) > 1:
        raise ValueError(
            f"{_said(found)}: must not have both zero and fsdp, because weights are "
            "either copied or sharded"
        )
    if network.chips % math.prod(found.values()):
        raise ValueError(f"{_said(found)}: must divide {network.chips:,} chips")
    return found


def _kind(axis: str) -> str:
    """The kind of parallelism of an axis: copies of KV heads belong to tensor."""
    return "tensor" if axis == "copies" else axis


def _sides(block: tuple[int, ...]) -> str:
    return " x ".join(map(str, block))


def _said(sizes: Mapping[str, int]) -> str:
    return " x ".join(f"{axis} {n}" for axis, n in sizes.items())


def _mesh(trial: Trial) -> str:
    """A mesh in words. If its axes do not tell how weights are kept, it says so."""
    said = _said(trial.axes) or "one chip"
    split = {"expert", "context"} & trial.axes.keys()
    if split and not {"zero", "fsdp"} & trial.axes.keys():
        said += ", weights " + ("shared" if trial.shards == "fsdp" else "copied")
    return said


def _why(trial: Trial, best: Trial) -> str:
    """The four largest parts of a step, and how its time compares with the best's."""
    parts = trial.prediction.parts
    total = sum(parts.values())
    others = sorted(parts, key=parts.get, reverse=True)
    shares = [f"{name} {parts[name] / total:.0%}" for name in others[:4]]
    said = ", ".join(shares)
    work = [sum(flops) for flops in trial.step.cost.passes]
    if (uneven := max(work) * len(work) / sum(work)) > UNEVEN:
        said += f"; the longest stage has {uneven:.2f} times its share"
    if trial is not best and trial.seconds > 1.005 * best.seconds:
        said = f"{trial.seconds / best.seconds:.2f} times the recommended; {said}"
    return said


def _too_large(search: Search) -> str:
    """A sentence on how far the mesh that is nearest to fitting exceeds the memory."""
    total, sizes, many = search.least
    if not sizes:
        (why, _), *_ = search.obstacles.most_common(1) or [("no mesh", 0)]
        return f"no mesh is admitted: {why}"
    said = _said({axis: n for axis, n in sizes.items() if n > 1}) or "one chip"
    return (
        f"no mesh fits: {said} with {pluralize(f'{many:,}', 'microbatches')} comes "
        f"nearest and needs {show(total, 'capacity')} of "
        f"{show(search.capacity, 'capacity')}"
    )
