"""Answers that are JAX functions, exported in one process and judged in another.

The evidence is the exported program (StableHLO). The judge compiles it, runs it on new
arrays, and reads the compiled program.
"""

import base64
import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .calling import describe
from .program_result import ProgramResult, devices
from .question import Finding, unusable
from .slips import Slip
from .wrong_values import diagnose, diagnose_shape

_PRODUCT = re.compile(
    r"stablehlo\.dot_general .*?contracting_dims = \[([\d, ]*)\] x .*?"
    r": \(tensor<([\dx]*)[a-z]\w*>, .*-> tensor<([\dx]*)[a-z]\w*>"
)
_ELEMENTWISE = re.compile(r"stablehlo\.multiply .*: tensor<([\dx]*)[a-z]\w*>")
MOST_BYTES = 2**30  # of temporary memory that an answer may use on one device
# Machine code that isn't optimised. A case is small and runs once, so compiling it
# takes much longer than running it.
_QUICK = {
    "xla_backend_optimization_level": "0",
    "xla_cpu_use_fusion_emitters": "False",
}


def evidence_of(function: Callable, answer: Callable, arguments: Sequence) -> dict:
    """The evidence on a reader's function: its exported program, or its error.

    Args:
        function: the function to export, `answer` or a wrapper of it.
        answer: the reader's function. The message of an error quotes a line of it.
        arguments: `jax.ShapeDtypeStruct`s, with shardings if there is a mesh.

    Returns:
        A dict with the key "program", "error" or "invalid".
    """
    import jax  # not at the top: a page judges numbers without it
    from jax import export

    try:
        program = export.export(jax.jit(function), platforms=["cpu"])(*arguments)
    except Exception as error:  # the reader's code may raise anything
        return {"error": describe(error, answer)}
    try:
        stored = _stored(export.deserialize(program.serialize()))
        return {"program": base64.b64encode(stored).decode()}
    except ImportError:
        said = "JAX exports programs with the package flatbuffers; install it to check"
        return {"invalid": said}
    except Exception as error:  # the program cannot be serialized
        return {"error": describe(error, answer)}


@dataclass(frozen=True, eq=False)
class Exported:
    """A program as it was submitted, and the seed of the arrays on which it is tested.

    The seed is a SHA-256 digest of the program and of a secret that only the judge has.
    So a program cannot contain its results as constants, because changing a constant
    changes the seed and therefore the results.
    """

    program: object
    seed: int


def _stored(program) -> bytes:
    """The bytes of a program, always the same after it has been read once."""
    return bytes(program.serialize())


def _seed(stored: bytes, secret: str) -> int:
    """The seed from which the arrays are drawn.

    >>> _seed(b"program", "one secret") == _seed(b"program", "another")
    False
    """
    told = secret.encode() + b"\0" + stored
    return int.from_bytes(hashlib.sha256(told).digest(), "big")


def opened(
    evidence: dict, form: str, shapes: list[tuple[int, ...]]
) -> Exported | Finding:
    """The exported program of the evidence, or a Finding if it can't be used.

    When a folder is graded, the evidence also holds the judge's "secret". A program
    with superfluous bytes, for example after its end, is refused.

    Args:
        evidence: as from `evidence_of`.
        form: what the question asks for, which is the message if there is no answer
            yet.
        shapes: the shapes of the arguments that the program must have.
    """
    if finding := unusable(evidence, form):
        return finding
    if "error" in evidence:
        return Finding("wrong", f"your function raises {evidence['error']}")
    from jax import export

    try:
        stored = base64.b64decode(evidence["program"], validate=True)
        program = export.deserialize(bytearray(stored))
        holds_more = _stored(program) != stored
    except Exception:  # untrusted bytes may cause any error
        return Finding("invalid", "this is not an exported JAX program")
    if holds_more:
        return Finding("invalid", "the exported program holds bytes that it never uses")
    if [a.shape for a in program.in_avals] != shapes or len(program.out_avals) != 1:
        return Finding("invalid", "the function must return one array")
    return Exported(program, _seed(stored, str(evidence.get("secret", ""))))


def run(
    exported: Exported,
    arguments: Sequence,
    question,
    at: str,
    *,
    mesh=None,
    in_specs: Sequence = (),
    out=None,
    options: Mapping[str, str] | None = None,
) -> object:
    """The compiled program if its result is right, else a Finding.

    Args:
        exported: what `opened` returned.
        arguments: `jax.ShapeDtypeStruct`s, with shardings if there is a mesh.
        question: its `spec` gives the right result for NumPy arrays, its `rtol` is how
            far off a value may be, relative to the largest value, and its `values` are
            known wrong results.
        at: the case in words.
        mesh: the JAX mesh, or None.
        in_specs: how the arguments are sharded over the mesh.
        out, options: as in `programs.compiled`.
    """
    import jax
    import numpy as np

    from ...referee import programs

    rng = np.random.default_rng(exported.seed)
    arrays = [rng.standard_normal(one.shape).astype("float32") for one in arguments]
    wanted = np.asarray(question.spec(*arrays))
    shape = exported.program.out_avals[0].shape
    if shape != wanted.shape:
        said = f"for {at} the shape is {list(shape)}, not {list(wanted.shape)}."
        sizes = {} if mesh is None else dict(mesh.shape)
        if diagnosis := diagnose_shape(shape, wanted.shape, sizes):
            return Finding("wrong", f"{said} {diagnosis.says}", diagnosis.name)
        return Finding("wrong", said)
    try:
        program = programs.compiled(
            exported.program.call,
            *arguments,
            mesh=mesh,
            out=out,
            options={**_QUICK, **(options or {})},
        )
        if program.memory["temporaries"] > MOST_BYTES:
            return Finding("wrong", "the function needs more than 1 GiB on a device")
        placed = [
            jax.device_put(array, one.sharding)
            for array, one in zip(arrays, arguments, strict=True)
        ]
        shards = list(program(*placed).addressable_shards)
    except jax.errors.JaxRuntimeError as error:
        return Finding("wrong", f"for {at} XLA cannot run it: {str(error)[:300]}")
    if any(np.iscomplexobj(shard.data) for shard in shards):
        return Finding("wrong", f"for {at} the values are complex numbers.")
    if mesh is not None:
        shards.sort(key=lambda shard: list(mesh.devices.flat).index(shard.device))
    found = ProgramResult(
        question.spec,
        arrays,
        wanted,
        [np.asarray(shard.data) for shard in shards],
        [shard.index for shard in shards],
        question.rtol,
        {} if mesh is None else dict(mesh.shape),
        in_specs,
    )
    return _wrong(found, question.values, at) if found.wrong else program


def _wrong(found: ProgramResult, values: Sequence[Slip], at: str) -> Finding:
    """The finding on wrong values, with a diagnosis if there is one."""
    where = devices(found.wrong, len(found.got))
    said = f"for {at} the values{f' on {where}' if where else ''} are not right."
    diagnosis = diagnose(found, values)
    if diagnosis is None:
        return Finding("wrong", said)
    return Finding("wrong", f"{said} {diagnosis.says}", diagnosis.name)


def largest_product(exported: Exported) -> float:
    """The FLOPs of the largest single product in an exported program.

    They are read from the StableHLO, in which loops are not unrolled and products are
    not merged. An elementwise product counts one FLOP per value.
    """
    text = exported.program.mlir_module()
    found = [float(math.prod(_dims(one))) for one in _ELEMENTWISE.findall(text)]
    for contracted, left, result in _PRODUCT.findall(text):
        terms = math.prod(_dims(left)[int(k)] for k in re.findall(r"\d+", contracted))
        found.append(2.0 * terms * math.prod(_dims(result)))
    return max(found, default=0.0)


def _dims(text: str) -> list[int]:
    """The sizes in the text of a tensor's type, such as "4x8x"."""
    return [int(size) for size in re.findall(r"\d+", text)]


def uncounted(does: str, what: str) -> Finding:
    """The finding on a right result of a loop whose trip count depends on values.

    Args:
        does: what the loop does in each iteration, such as "sends".
        what: the quantity that can't be counted for this reason, such as "bytes".
    """
    return Finding(
        "wrong",
        f"the result is right, but the values decide how often a loop {does}, so its "
        f"{what} cannot be counted. Give the loop a fixed number of iterations.",
    )
