"""Questions whose answer is code for a mesh, graded on its result and its collectives.

The devices are virtual, as threads of this CPU. They compute what real devices would,
and XLA compiles the program's collectives for them.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...base.units import short_repr, show
from ...collectives import Collective
from ...referee.hlo import UnknownTurnsError
from ...referee.ledger import compare
from . import jax_export
from .program_result import Spec
from .question import Finding, Question, code_or
from .slips import Slip

# `jax.checkpoint` puts a barrier between a computation and its recomputation. On CPUs
# an early pass of XLA removes the barrier, and a later pass merges the two, so the
# program would keep what it should recompute. Disabling the early pass prevents this.
_KEEP_BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
DEVICES = 8  # that a notebook's kernel must have, and that the sandbox has
_WANTED = {
    "manual": "a JAX function of the local parts",
    "explicit": "a JAX function of arrays whose types carry their shardings",
    "automatic": "a JAX function of sharded arrays",
}
Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Sharded(Question):
    """JAX code over mesh axes, graded on its result and on its compiled collectives.

    The evidence is the exported program (StableHLO) for all devices. The judge shards
    new arrays, compiles the program for virtual CPU devices, compares each device's
    result with that of `spec`, and reads the collectives from the HLO.

    Args:
        mesh: size by axis name; at most `DEVICES` devices.
        shapes: draws the shapes of the whole float32 arguments of one case.
        in_specs: how each argument is sharded, one entry per dimension: `("X", None)`.
        out_spec: how the result must be sharded. With `()`, every device has all of it.
        spec: a naive function from whole NumPy arrays to the whole right result.
        collectives: called with the shapes, returns what the program may send.
        view: what the reader writes. "manual" is the function that each device runs on
            its parts, the body of `jax.shard_map`. If it passes JAX's check of varying
            types, this check stays on, because gradients of sums depend on it.
            "explicit" and "automatic" are functions of the whole arrays, on axes of
            that type, with the mesh set.
        at_most: whether sending fewer bytes, or as many in other pieces, is right too.
            Otherwise arrays, axes and counts must be exactly those of `collectives`.
        by_axes: with `at_most`, whether only the bytes over each set of axes count, no
            matter in which operations they are sent.
        holds: called with the shapes, returns the bytes that the compiled program may
            need on a device in addition to arguments and result. None sets no limit.
        neighbours: whether every permute must send to a neighbour on the ring.
        largest_product: called with the shapes, returns the FLOPs that one product on a
            device may have. None sets no limit.
        slips: each is called with the shapes, and returns the collectives that a known
            wrong program sends.
        values: wrong results that readers are known to compute, as functions of the
            arguments of `spec`. They return the whole result, or a list of what each
            device holds.
        rtol: how far off a value may be, relative to the largest value of the result.

    Raises:
        ValueError: `view` is unknown, the mesh has too many devices, or as for
            `Question`.
    """

    mesh: Mapping[str, int]
    shapes: Callable[[random.Random], tuple[Shape, ...]]
    in_specs: tuple[Spec, ...]
    out_spec: Spec
    spec: Callable
    collectives: Callable[..., list[Collective]]
    view: str = "manual"
    at_most: bool = False
    by_axes: bool = False
    holds: Callable[..., float] | None = None
    neighbours: bool = False
    largest_product: Callable[..., float] | None = None
    values: tuple[Slip, ...] = ()
    rtol: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.view not in _WANTED:
            raise ValueError(
                f"view {short_repr(self.view)}: must be one of "
                f"{', '.join(map(repr, _WANTED))}"
            )
        if math.prod(self.mesh.values()) > DEVICES:
            said = f"must have at most {DEVICES} devices"
            raise ValueError(f"mesh {short_repr(dict(self.mesh))}: {said}")

    @property
    def form(self) -> str:
        return f"Answer with {_WANTED[self.view]}. It is graded on what it compiles to."

    @property
    def known_slips(self) -> tuple[Slip, ...]:
        return (*self.slips, *self.values)

    def draw(self, seed: str) -> list:
        rng = random.Random(f"{self.id} {seed}")
        return [list(shape) for shape in self.shapes(rng)]

    def collect(self, answer: object, task: list) -> dict:
        if evidence := code_or(answer, f"{_WANTED[self.view]}, without calling it"):
            return evidence
        import jax  # not at the top: a page judges numbers without it

        try:
            mesh = self._mesh()
        except RuntimeError as error:
            return {"invalid": str(error)}
        arguments = self._arguments(mesh, task)
        with jax.set_mesh(mesh):
            manual = self.view == "manual"
            function = self._body(answer, mesh, arguments) if manual else answer
            return jax_export.evidence_of(function, answer, arguments)

    def judge(self, evidence: dict, task: list) -> Finding:
        shapes = [tuple(shape) for shape in task]
        found = jax_export.opened(evidence, self.form, shapes)
        if isinstance(found, Finding):
            return found
        at = ", ".join(str(list(shape)) for shape in shapes)
        if said := self._misplaced(found.program.out_avals[0]):
            return Finding("wrong", f"for {at} {said}")
        mesh = self._mesh()
        arguments = self._arguments(mesh, task)
        program = jax_export.run(
            found,
            arguments,
            self,
            at,
            mesh=mesh,
            in_specs=self.in_specs,
            out=self.out_spec,
            options=_KEEP_BARRIERS if self.holds else None,
        )
        if isinstance(program, Finding):
            return program
        try:
            sent = program.collectives
        except UnknownTurnsError:
            return jax_export.uncounted("sends", "bytes")
        except ValueError as error:
            said = f"the result is right, but what it sends cannot be read: {error}"
            return Finding("wrong", said)
        finding = self._priced(sent, self.collectives(*shapes), shapes, at)
        if finding.verdict != "correct":
            return finding
        if self.neighbours and (far := _far(program)):
            return Finding("wrong", f"{finding.message}, but {far}", "no ring")
        if self.largest_product:
            most = self.largest_product(*shapes)
            flops = jax_export.largest_product(found)
            if flops > most:
                said = (
                    f"{finding.message}, but for {at} one matmul on a device has "
                    f"{flops:,.0f} FLOPs. Split the work into matmuls of at most "
                    f"{most:,.0f} FLOPs."
                )
                return Finding("wrong", said, "no loop")
        if self.holds:
            return self._held(finding, program, shapes, at)
        return finding

    def _held(self, finding: Finding, program, shapes, at: str) -> Finding:
        """The finding on a right program, depending on the memory that it needs."""
        needed, allowed = program.memory["temporaries"], self.holds(*shapes)
        if needed <= allowed:
            said = f"and needs {show(needed, 'bytes')} besides arguments and result"
            return Finding("correct", f"{finding.message}, {said}")
        slip = self._sent_by_slip(program.collectives, shapes)
        said = (
            f"{finding.message}, but for {at} it needs {show(needed, 'bytes')} besides "
            f"arguments and result; wanted at most {show(allowed, 'bytes')}."
        )
        if slip:
            return Finding("wrong", f"{said} {slip.says}", slip.name)
        return Finding("wrong", said, "too much held at once")

    def _priced(self, sent, allowed, shapes, at: str) -> Finding:
        """The finding on a right result, depending on what the program sends."""
        if compare(allowed, sent).exact or (
            self.at_most and _within(sent, allowed, self.by_axes)
        ):
            return Finding(
                "correct", f"the result is right, and it sends {_said(sent)}"
            )
        said = (
            f"the result is right, but for {at} it sends {_said(sent)}; "
            f"wanted {'at most ' if self.at_most else ''}{_said(allowed)}."
        )
        if slip := self._sent_by_slip(sent, shapes):
            return Finding("wrong", f"{said} {slip.says}", slip.name)
        return Finding("wrong", said)

    def _sent_by_slip(self, sent: list[Collective], shapes) -> Slip | None:
        """The known wrong program that sends exactly this, or None."""
        for slip in self.slips:
            if compare(slip.wrong(*shapes), sent).exact:
                return slip
        return None

    def _body(self, answer: Callable, mesh, arguments: list) -> Callable:
        """`answer` in `jax.shard_map`, with JAX's check of varying types if it passes.

        JAX's check fails if JAX cannot infer that a result is replicated, for example
        after permutes. Such an answer runs without the check.
        """
        import jax

        from ...referee.programs import by_hand

        specs = mesh, self.in_specs, self.out_spec
        checked = by_hand(answer, *specs)
        try:
            jax.eval_shape(checked, *arguments)
        except Exception:  # an error of the answer itself is raised again on export
            return by_hand(answer, *specs, check=False)
        return checked

    def _misplaced(self, result) -> str:
        """What is wrong with the sharding in the result's type, or ""."""
        if self.view != "explicit":
            return ""
        spec, wanted = result.sharding.spec, self.out_spec
        if spec.unreduced:
            over = ", ".join(sorted(spec.unreduced))
            return f"the result is not yet reduced over {over}. Finish its sum."
        got = tuple(spec)
        wanted += (None,) * (len(got) - len(wanted))
        if got == wanted:
            return ""
        return f"the result is sharded as {_p(got)}, not as {_p(wanted)}."

    def _arguments(self, mesh, task: list) -> list:
        import jax

        return [
            jax.ShapeDtypeStruct(
                tuple(shape),
                "float32",
                sharding=jax.NamedSharding(mesh, jax.P(*spec)),
            )
            for shape, spec in zip(task, self.in_specs, strict=True)
        ]

    def _mesh(self):
        """The JAX mesh of the question, on virtual CPU devices."""
        import jax

        devices, wanted = jax.devices("cpu"), math.prod(self.mesh.values())
        if len(devices) < wanted:
            raise RuntimeError(
                f"{wanted} devices are needed, and this kernel has {len(devices)}: "
                f'restart it and run jax.config.update("jax_num_cpu_devices", '
                f"{DEVICES}) before any other use of JAX"
            )
        kind = jax.sharding.AxisType
        types = kind.Auto if self.view == "automatic" else kind.Explicit
        return jax.make_mesh(
            tuple(self.mesh.values()),
            tuple(self.mesh),
            axis_types=(types,) * len(self.mesh),
            devices=devices[:wanted],
        )


def _far(program) -> str:
    """What is wrong with permutes that do not send to a neighbour, or ""."""
    shifts = [one.shift for one in program.launches if one.collective.op == "permute"]
    far = sorted({abs(shift) for shift in shifts if shift and abs(shift) > 1})
    if far:
        places = ", ".join(map(str, far))
        return (
            f"some permutes send {places} places along the axis. Around a ring, "
            "each device sends only to its neighbour."
        )
    if None in shifts:
        return (
            "in some permutes the devices do not all send in the same direction, as "
            "they do around a ring."
        )
    return ""


def _within(sent: list[Collective], allowed: list[Collective], by_axes: bool) -> bool:
    """Whether no operation, or no set of axes, sends more bytes than allowed."""
    found = compare(allowed, sent)
    rows = found.by_axes().rows if by_axes else found.rows
    return all(row.compiled_sent <= row.predicted_sent * (1 + 1e-9) for row in rows)


def _said(sent: list[Collective]) -> str:
    """Collectives in words, with equal ones grouped."""
    times: dict[str, int] = {}
    for one in sent:
        title = Collective(one.op, one.axes, one.nbytes, one.group).title
        times[title] = times.get(title, 0) + one.times
    said = [title if n == 1 else f"{n} × {title}" for title, n in times.items()]
    return " and ".join(said) or "nothing"


def _p(spec: Spec) -> str:
    return f"P({', '.join(map(repr, spec))})"
