"""Which mesh: every one that a model admits on a network, ranked and explained."""

import gc
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..base.tables import Table, compare
from ..base.units import pluralize, positive, positive_int, short_repr, show
from ..hardware.chips import Chip
from ..hardware.mesh import Mesh
from ..hardware.networks import Network, network
from ..hardware.networks.wiring import Switch
from ..training import Step, StepMemory
from ..training.job import Job
from ..training.pipeline_schedules import schedule as orders
from ..training.step import derived
from ..training.strategy import ATTENTIONS
from ..transformer import Model, flops
from ..transformer import model as find_model
from ..transformer.flops import one_of
from .patterns import ORDER, strategy
from .search import Search, Trial

LEFT_OUT = (
    "other orders of the axes on the network, and meshes whose axes share a ring "
    "without being neighbours on it",
    "data parallelism over copies beside ZeRO-1, KV heads copied where there are more "
    "chips than heads, tensor parallelism without sequence parallelism",
    "how well kernels do, what a compiler adds, stragglers, failures: the times are "
    "bounds, and chapter 14 shows how far published steps are above them",
)
KILO = {"k": 2**10, "m": 2**20, "g": 2**30}


@dataclass(frozen=True, eq=False)
class Plan:
    """The best meshes of a job on a network; `plan` makes one.

    Args:
        job: what is trained.
        network: on what.
        ranking: the best meshes, the best first; empty where none fits.
        search: the search that found them.
        nearest: what would fit, where nothing does.
    """

    job: Job
    network: Network
    ranking: tuple[Trial, ...]
    search: Search
    nearest: tuple[str, ...] = ()

    @property
    def best(self) -> Trial:
        """The best mesh.

        Raises:
            ValueError: none fits; says what would.
        """
        if not self.ranking:
            raise ValueError(self.verdict)
        return self.ranking[0]

    @property
    def tokens(self) -> int:
        return self.job.seqs * self.job.seq

    @property
    def flops(self) -> float:
        """FLOPs of a step that a model needs, nothing computed twice."""
        once = flops(self.job.model, self.job.seq, self.job.attention)
        return once.training * self.tokens

    def mfu(self, trial: Trial) -> float:
        """The most that a mesh can reach: needed FLOPs over the peak, at the bound."""
        return self.flops / (self.network.chips * self.search.peak * trial.lower)

    def mesh(self, trial: Trial) -> Mesh:
        """A mesh on the network."""
        return self.search.links.mesh(trial.sizes)

    def step(self, trial: Trial | None = None) -> Step:
        """The derivation of a mesh, of the best if none is given."""
        trial = trial or self.best
        found = strategy(trial.shards, tuple(trial.axes), self.search.keys)
        return derived(self.job, found, self.mesh(trial), trial.microbatches)

    def why(self, trial: Trial) -> str:
        """What sets the time of a mesh, beside the best one."""
        return _why(trial, self.best)

    def why_not(self, **sizes: int) -> str:
        """Why the best mesh is none with these sizes of axes.

        >>> print(plan("llama 3 8b", "h100:2x8", "1M").why_not(tensor=16))
        tensor 16 does not divide 8 KV heads

        Raises:
            ValueError: no sizes, an unknown axis, sizes that do not divide the chips.
        """
        if not sizes:
            raise ValueError("why_not(): needs sizes of axes, such as tensor=16")
        sizes = _fixed(sizes, self.network)
        if self.ranking and all(self.best.sizes[a] == n for a, n in sizes.items()):
            return f"it is: the best mesh has {_said(sizes)}"
        search = Search(
            self.job, self.network, sizes, self.search.capacity, self.search.keys
        )
        found = search.best(1)
        if found:
            mesh = _mesh(found[0])
            if not self.ranking:
                return f"{mesh} fits"
            slower = found[0].lower / self.best.lower
            again = "as long" if slower < 1.005 else f"{slower:.2f} times as long"
            return f"{mesh} takes {again}: {_why(found[0], found[0])}"
        if search.least[1]:
            return _too_large(search)
        (why, _), *_ = search.obstacles.most_common(1) or [("no such mesh", 0)]
        return why

    @property
    def table(self) -> Table:
        """The best meshes side by side."""
        columns = {
            "bound": ("lower", "s"),
            "math": ("math", "s"),
            "network": ("network", "s"),
            "HBM": ("hbm", "s"),
            "waits": ("waiting", ".1%"),
            "MFU at best": (self.mfu, ".1%"),
            "held": (lambda t: sum(t.memory.values()), "capacity"),
            "why": self.why,
        }
        rows = {(_mesh(t), t.microbatches): t for t in self.ranking}
        if not rows:
            raise ValueError(self.verdict)
        return compare(rows, columns, of=("mesh", "microbatches"))

    def memory(self, trial: Trial | None = None) -> StepMemory:
        """What a chip holds, part by part, on a mesh; on the best if none is given."""
        return StepMemory((trial or self.best).memory, self.search.capacity)

    @property
    def title(self) -> str:
        job, chips = self.job, self.network.chips
        return (
            f"{job.model.name}, {pluralize(f'{job.seqs:,}', 'sequences')} of "
            f"{pluralize(f'{job.seq:,}', 'tokens')} on {self.network.name} "
            f"({pluralize(f'{chips:,}', 'chips')}), remat {job.remat}"
        )

    @property
    def verdict(self) -> str:
        """The best mesh in a sentence, or that none fits, and what would."""
        if not self.ranking:
            return "\n  ".join((_too_large(self.search), *self.nearest))
        best = self.best
        return (
            f"best: {_mesh(best)}, {_parts(best)}: at least {show(best.lower, 's')} a "
            f"step, MFU at most {self.mfu(best):.1%}, "
            f"{show(sum(best.memory.values()), 'capacity')} of "
            f"{show(self.search.capacity, 'capacity')} held"
        )

    @property
    def counted(self) -> str:
        """How many meshes there are, and how many of them are possible."""
        some = self.search.counts
        return (
            f"{some['tried']:,} meshes: {some['admitted']:,} admitted by model and "
            f"network, {some['fitting']:,} of them fit in memory"
        )

    @property
    def limits(self) -> tuple[str, ...]:
        """What keeps the axes from being larger, most meshes first."""
        return tuple(why for why, _ in self.search.obstacles.most_common(5))

    @property
    def left_out(self) -> tuple[str, ...]:
        """What was not looked at."""
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
    remat: str = "full",
    precision: str = "bf16",
    schedule: str = "1f1b",
    chunks: int | None = None,
    capacity: float = 1.0,
    keys: str = "ring",
    kernel: str = "fused",
    loss: str = "once",
    formats: Mapping[str, str] | None = None,
    copy: bool = True,
    node_limit: int | None = None,
    hbm: float | None = None,
    fixed: Mapping[str, int] | None = None,
    top: int = 5,
) -> Plan:
    """The best meshes for training a model on a network.

    Every factorisation of the chips over data, pipeline, ZeRO-1 or FSDP, expert,
    context and tensor parallelism is tried that the model admits, in this order on the
    network, outermost first. Of those that fit in memory the one with the least bound
    of a step is the best: max of math, with what a pipeline waits, HBM and network. Of
    equals it is the one that has least to hide.

    Args:
        model: a model or its name, as `transformer.model` knows it.
        machine: a network or its name, such as "v5p:8x8x8", "h100:64x8", "gb200:72".
        tokens: of a step, on all chips, in whole sequences; "4M" is 4 · 2^20.
        seq: tokens of a sequence.
        attention, remat, precision: as for `training.step`.
        schedule, chunks: of a pipeline, see `pipeline_schedules.schedule`.
        capacity, kernel, loss, formats, copy, node_limit: as for `training.step`.
        keys: what context parallelism does with them: "ring", "gather" or "ulysses".
        hbm: bytes of memory that may be used; what a program can have if not given.
        fixed: sizes of axes that are given, such as ``{"tensor": 8}``.
        top: how many of the best to keep.

    Returns:
        A Plan; of each of its meshes `Plan.step` gives the derivation.

    Assumes:
        As `training.step`, which derives what moves, once for all meshes with the
        same axes. With FSDP, chips that share a sequence or have other experts share
        weights too; with ZeRO-1 each has a copy of the weights, and all of them share
        the optimizer's state. See `Plan.left_out`.

    Raises:
        ValueError: an unknown model or machine, tokens that are no whole number of
            sequences, a word or size that is none of those above, chunks that the
            schedule does not have, a capacity of a model without experts.

    >>> print(plan("llama 3 8b", "v5p:4x4x4", "1M"))
    Llama 3.1 8B, 128 sequences of 8,192 tokens on TPU v5p 4x4x4 (64 chips), remat full
      287 meshes: 264 admitted by model and network, 263 of them fit in memory
      best: zero 64, compute-bound: at least 2.28 s a step, MFU at most 80.7%, \
46.5 GiB of 95 GiB held
    """
    model = find_model(model) if isinstance(model, str) else model
    if not isinstance(model, Model):
        raise ValueError(f"model = {short_repr(model)}: must be a `transformer.Model`")
    found = network(machine)
    if not isinstance(found.chip, Chip):
        raise ValueError(f"machine = {found.name}: must be made of one kind of chip")
    one_of(ATTENTIONS, keys=keys)
    (seq, top) = positive_int(seq=seq, top=top)
    job = Job(
        model,
        _sequences(tokens, seq),
        seq,
        attention,
        remat,
        precision,
        kernel,
        loss,
        {} if formats is None else formats,
        copy,
        schedule,
        chunks,
        capacity,
        node_limit,
    )
    orders(schedule, 2, 4, chunks)  # says which chunks it has
    (space,) = positive(hbm=found.chip.memory_bytes if hbm is None else hbm)
    sizes = _fixed({} if fixed is None else fixed, found)
    search = Search(job, found, sizes, space, keys)
    with _uncollected():
        best = tuple(search.best(top))
    return Plan(job, found, best, search, () if best else nearest(search))


def nearest(search: Search) -> tuple[str, ...]:
    """What would fit where nothing does: another remat, a smaller batch, more chips."""
    job, found = search.job, []
    if job.remat != "full" and _fits(search, remat="full"):
        found.append("remat 'full' fits")
    for part in (2, 4, 8):
        if job.seqs % part == 0 and _fits(search, seqs=job.seqs // part):
            tokens = job.seqs // part * job.seq
            found.append(f"a batch of {tokens:,} tokens fits, 1/{part} of it")
            break
    for times in (2**n for n in range(1, 11)):
        chips = times * search.network.chips
        more = Network((Switch(chips, 1.0, 0.0),), "more chips", search.network.chip)
        larger = Search(job, more, search.fixed, search.capacity, search.keys)
        larger.patterns = search.patterns  # which do not depend on the network
        if any(True for _ in larger.fitting()):
            found.append(f"{chips:,} chips fit, {times} times as many")
            break
    return tuple(found)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without looks for objects that point at each other in a circle: a search makes
    none, and a tenth of its time would go into looking."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _fits(search: Search, **change: object) -> bool:
    if search.fixed_bytes > search.capacity and "seqs" in change:
        return False  # what does not depend on the batch is too much
    other = replace(search.job, **change)
    some = Search(
        other, search.network, search.fixed, search.capacity, search.keys
    ).fitting()
    return any(True for _ in some)


def _sequences(tokens: int | str, seq: int) -> int:
    """Whole sequences in a batch of so many tokens."""
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
            f"tokens = {short_repr(tokens)}: must be a whole number from 1, or one "
            "such "
            "as '4M', which is 4 · 2^20"
        ) from None
    if count % seq:
        near = max(1, round(count / seq)) * seq
        raise ValueError(
            f"tokens = {short_repr(tokens)}: must be whole sequences of {seq:,}, such "
            "as "
            f"{near:,}"
        )
    return count // seq


def _fixed(sizes: Mapping[str, int], network: Network) -> dict[str, int]:
    if not isinstance(sizes, Mapping):
        raise ValueError(
            f"fixed = {short_repr(sizes)}: must be sizes, as {{'tensor': 8}}"
        )
    for axis in sizes:
        if axis not in ORDER:
            given = short_repr(axis)
            raise ValueError(f"axis {given}: must be one of {', '.join(ORDER)}")
    if not sizes:
        return {}
    found = dict(zip(sizes, positive_int(**sizes), strict=True))
    if network.chips % math.prod(found.values()):
        raise ValueError(f"{_said(found)}: must divide {network.chips:,} chips")
    return found


def _said(sizes: Mapping[str, int]) -> str:
    return " x ".join(f"{axis} {n}" for axis, n in sizes.items())


def _mesh(trial: Trial) -> str:
    """A mesh in words; who shares the weights is said where its axes do not."""
    said = _said(trial.axes) or "one chip"
    split = {"expert", "context"} & trial.axes.keys()
    if split and not {"zero", "fsdp"} & trial.axes.keys():
        said += ", weights " + ("shared" if trial.shards == "fsdp" else "copied")
    return said


def _parts(trial: Trial) -> str:
    times = {"compute-bound": trial.math, "memory-bound": trial.hbm}
    times["comms-bound"] = trial.network
    return max(times, key=times.get)


def _why(trial: Trial, best: Trial) -> str:
    """What sets the time of a mesh: the longest of its parts, beside the math alone."""
    alone = trial.math * (1 - trial.waiting)
    if trial.lower == trial.network:
        said = f"network {trial.network / alone:.2f} times the math"
    elif trial.lower == trial.hbm:
        said = f"HBM {trial.hbm / alone:.2f} times the math"
    elif trial.waiting > 0.001:
        said = f"stages wait {trial.waiting:.1%} of the step"
        if trial.uneven > 1.05:
            said += f", and the longest has {trial.uneven:.2f} times its share"
    else:
        said = f"network {trial.network / alone:.2f} of the math, to be hidden"
    if trial is not best and trial.lower > 1.005 * best.lower:
        said = f"{trial.lower / best.lower:.2f} times the best: {said}"
    return said


def _too_large(search: Search) -> str:
    """By how much the mesh that holds least exceeds the memory."""
    total, sizes, many = search.least
    if not sizes:
        (why, _), *_ = search.obstacles.most_common(1) or [("no mesh", 0)]
        return f"no mesh is admitted: {why}"
    said = _said({axis: n for axis, n in sizes.items() if n > 1}) or "one chip"
    return (
        f"no mesh fits: {said} with {many:,} microbatches comes nearest and "
        f"needs {show(total, 'capacity')} of {show(search.capacity, 'capacity')}"
    )
