"""What a compiler said of a program for a machine that is not here."""

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
        arguments: what the program is given: weights, optimizer state, data.
        results: what it returns. Where an argument is given up for it (donated), both
            are one; `shared` says how many bytes.
        shared: counted in `arguments` and in `results`.
        temporaries: all buffers besides, of which some share a place in time.
        peak: the most that is held at once. This is the number to compare with what a
            device has. XLA:TPU's is right where it refuses what does not fit; XLA:GPU's
            is looser; XLA:CPU's leaves out temporaries, so here it is None.
    """

    arguments: int
    results: int
    shared: int
    temporaries: int
    peak: int | None

    def __str__(self) -> str:
        peak = "peak not known" if self.peak is None else f"peak {_held(self.peak)}"
        return f"memory of a device: arguments {_held(self.arguments)}, {peak}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


@dataclass(frozen=True)
class OutOfMemory:
    """The TPU compiler's refusal: bytes that one device needs, and that it has.

    Args:
        needed, available: bytes, to 1/100 of the unit that the compiler prints. It
            reports the first sum that does not fit, so that less may not be enough for
            the rest.
        memory: which memory is too small: "HBM", or "VMEM" for the blocks and the
            scratch of one kernel.
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
        op: a key of `collectives.NAMES`, or HLO's name of another.
        pairs: how many have a start and an end; those of a loop count once.
        hidden: of these, how many have a matmul between start and end.
    """

    op: str
    pairs: int
    hidden: int

    def __str__(self) -> str:
        name = NAMES.get(self.op, self.op)
        return f"{self.hidden} of {self.pairs} {name} over a matmul"


@dataclass(frozen=True, repr=False)
class CompilerResult:
    """A program compiled for a target: what it moves and holds; nothing of it runs.

    Args:
        name: what the program is called.
        target: what it is compiled for.
        mesh: size by axis name, in device order.
        launches: its collectives, with the compiler's detail; see `hlo.read`.
        flops: of one device in one run, loops counted; see `hlo.flops`. None where the
            program has an operation that is not counted, such as a custom kernel.
        memory: of one device; None where it is out of memory.
        out_of_memory: the TPU compiler's refusal; None where there is none.
        overlaps: what the schedule puts between start and end of collectives; None
            where the compiler was not asked for one, see `compile_for`.
        seconds: CPU time that the compiler took, there and then.
        compiler: versions, by the name of the package.
        options: what the compiler was told.
        kept: whether this is a stored result of this very program.
        ops: what a device runs, in order; see `hlo.schedule`. None where the compiler
            was not asked for it.
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
        """Its collectives; loops count as often as they run.

        Raises:
            ValueError: there is no program, as it is out of memory.
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
        """The ledger: predicted collectives against the compiled ones."""
        _ = self.collectives  # raises where there are none to compare
        return ledger.compare(predicted, self.launches)

    @property
    def fits(self) -> bool:
        """Whether a device can hold it.

        On a TPU by the compiler's verdict, which knows what the system keeps. XLA:GPU
        refuses nothing: there the planned peak is compared with all of the HBM.

        Raises:
            ValueError: the devices here, whose peak is not known.
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
    """A line per operation and axes: how often, and the bytes that a device sends."""
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
