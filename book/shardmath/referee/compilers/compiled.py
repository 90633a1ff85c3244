"""The result of compiling a program for a machine that is not present."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...base.units import show
from ...collectives import NAMES, Collective
from .. import ledger
from ..hlo import CompiledCollective, ScheduledOp
from .targets import Target


@dataclass(frozen=True)
class CompiledMemory:
    """Bytes that one device holds, as the compiler plans them.

    Args:
        arguments: weights, optimizer state, data and other arguments of the program.
        results: what the program returns. Donated arguments share their memory with
            results.
        shared: bytes counted both in `arguments` and in `results`.
        temporaries: all other buffers. Some use the same memory at different times.
        peak: the most bytes held at once, to be compared with a device's memory.
            XLA:TPU's peak agrees with its refusal of programs that do not fit, and
            XLA:GPU's peak is less exact. XLA:CPU's leaves out temporaries, so `peak` is
            None.
    """

    arguments: int
    results: int
    shared: int
    temporaries: int
    peak: int | None

    def __str__(self) -> str:
        peak = "peak unknown" if self.peak is None else f"peak {_held(self.peak)}"
        return f"memory of a device: arguments {_held(self.arguments)}, {peak}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class OutOfMemory:
    """The TPU compiler's refusal: the bytes that one device needs, and those it has.

    Args:
        needed, available: bytes, to 1/100 of the unit that the compiler prints. The
            compiler reports the first sum that does not fit, so the whole program may
            need more than `needed`.
        memory: the memory that is too small: "HBM", or "VMEM" for the blocks and the
            scratch memory of one kernel.
    """

    needed: int
    available: int
    memory: str = "HBM"

    def __str__(self) -> str:
        where = "" if self.memory == "HBM" else f" {self.memory}"
        return (
            f"out of{where or ' memory'}: {_held(self.needed)} of "
            f"{_held(self.available)} a device"
        )

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class Overlapped:
    """Asynchronous collectives of one kind in the schedule.

    Args:
        op: a key of `collectives.NAMES`, or HLO's name if it is not among them.
        pairs: how many have a start and an end. A collective in a loop counts once.
        hidden: how many of these have a matmul between start and end.
    """

    op: str
    pairs: int
    hidden: int

    def __str__(self) -> str:
        name = NAMES.get(self.op, self.op)
        return f"{self.hidden} of {self.pairs} {name} over a matmul"


@dataclass(frozen=True, repr=False)
class CompilerResult:
    """A program compiled for a target: what it sends and what it holds. It is not run.

    Args:
        name: the program's name.
        target: the machine that it is compiled for.
        mesh: size by axis name, in device order.
        launches: its collectives, with the compiler's details; see `hlo.read`.
        flops: FLOPs of one device in one run, including all iterations of loops; see
            `hlo.flops`. None if the program has an operation that can't be counted,
            such as a custom kernel.
        memory: that of one device, or None if the program is out of memory.
        out_of_memory: the TPU compiler's refusal, or None.
        overlaps: asynchronous collectives in the schedule, and how many have a matmul
            between start and end. None if there is no schedule; see `compile_for`.
        seconds: CPU time that the compiler took when this result was made.
        compiler: package name → version.
        options: the compiler's options.
        kept: whether this is a stored result.
        ops: the operations that a device runs, in order; see `hlo.schedule`. None if
            `compile_for` was called without `ops`.
    """

    name: str
    target: Target
    mesh: Mapping[str, int]
    launches: tuple[CompiledCollective, ...]
    flops: float | None
    memory: CompiledMemory | None
    out_of_memory: OutOfMemory | None
    overlaps: tuple[Overlapped, ...] | None
    seconds: float
    compiler: Mapping[str, str]
    options: Mapping[str, object]
    kept: bool
    ops: tuple[ScheduledOp, ...] | None = None

    @property
    def collectives(self) -> list[Collective]:
        """Its collectives. Those in a loop count in every iteration.

        Raises:
            ValueError: the program is out of memory, so its collectives are unknown.
        """
        if self.out_of_memory:
            raise ValueError(
                f"{self.name} for {self.target.name}: {self.out_of_memory}"
            )
        return [one.collective for one in self.launches]

    @property
    def sent(self) -> float:
        """Bytes that one device sends in one run."""
        return sum(one.total_sent for one in self.collectives)

    def against(self, predicted: Iterable[Collective]) -> ledger.Ledger:
        """The ledger that compares predicted collectives with the compiled ones."""
        _ = self.collectives  # raises if the program is out of memory
        return ledger.compare(predicted, self.launches)

    @property
    def fits(self) -> bool:
        """Whether the program fits into a device's memory.

        On a TPU this is the compiler's verdict, which accounts for memory that the
        system reserves. XLA:GPU refuses nothing, so on a GPU the planned peak is
        compared with the whole HBM.

        Raises:
            ValueError: the target is the devices here, whose peak is unknown.
        """
        if self.out_of_memory or self.target.platform == "tpu":
            return self.out_of_memory is None
        if self.memory.peak is None or self.target.memory is None:
            raise ValueError(f"{self.name}: XLA:CPU does not say what is held at once")
        return self.memory.peak <= self.target.memory

    def __str__(self) -> str:
        axes = " × ".join(f"{axis} {size}" for axis, size in self.mesh.items())
        lines = [f"{self.name} for {self.target}, {axes}"]
        if self.out_of_memory:
            lines.append(f"  {self.out_of_memory}")
        else:
            lines += [f"  {line}" for line in _moved(self.collectives)]
            lines.append(f"  {self.memory}")
        if self.overlaps:
            lines.append(f"  schedule: {', '.join(map(str, self.overlaps))}")
        by = ", ".join(f"{name} {v}" for name, v in self.compiler.items())
        how = f"kept result of {by}" if self.kept else f"compiled here by {by or 'XLA'}"
        lines.append(f"  {how}, in {show(self.seconds, 's', 2)} of CPU time")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{str(self).partition(chr(10))[0]}>"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def _moved(collectives: list[Collective]) -> list[str]:
    """A line per operation and axes: how often it runs, and what a device sends."""
    if not collectives:
        return ["nothing is sent"]
    sums: dict[tuple[str, tuple[str, ...]], tuple[int, float]] = {}
    for one in collectives:
        runs, sent = sums.get((one.op, one.axes), (0, 0.0))
        sums[one.op, one.axes] = runs + one.times, sent + one.total_sent
    return [
        f"{NAMES[op]} over {' '.join(axes)}: {runs:,} times, a device sends "
        + show(sent, "bytes")
        for (op, axes), (runs, sent) in sums.items()
    ]


def _held(nbytes: float) -> str:
    return show(nbytes, "capacity", 4)
