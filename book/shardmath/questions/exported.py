"""Answers that are JAX functions: exported where they are written, judged elsewhere.

The evidence is the exported program (StableHLO), not what somebody says about it: the
judge compiles it, runs it on arrays of its own, and reads what XLA made of it.
"""

import base64
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .calling import describe
from .question import Finding, unusable

MOST_BYTES = 2**30  # that an answer may take to run on one device


def evidence_of(function: Callable, answer: Callable, arguments: Sequence) -> dict:
    """What a reader's function exports to, or the error it raises.

    Args:
        function: what is exported: `answer`, or what wraps it.
        answer: the reader's own, whose line an error names.
        arguments: `jax.ShapeDtypeStruct`s, with shardings where there is a mesh.
    """
    import jax  # not at the top: a page judges numbers without it
    from jax import export

    try:
        program = export.export(jax.jit(function), platforms=["cpu"])(*arguments)
    except Exception as error:  # the reader's own: anything may come
        return {"error": describe(error, answer)}
    try:
        return {"program": base64.b64encode(program.serialize()).decode()}
    except ImportError:
        said = "JAX writes a program with the package flatbuffers: install it to check"
        return {"invalid": said}
    except Exception as error:  # a program that cannot be written
        return {"error": describe(error, answer)}


@dataclass(frozen=True, eq=False)
class Exported:
    """A program as it came, and the seed of the arrays that it is tried on.

    The seed depends on the program: it cannot hold the results as constants.
    """

    program: object
    seed: int


def opened(
    evidence: dict, form: str, shapes: list[tuple[int, ...]]
) -> Exported | Finding:
    """The exported program of the evidence, or the Finding where there is none."""
    if finding := unusable(evidence, form):
        return finding
    if "error" in evidence:
        return Finding("wrong", f"your function raises {evidence['error']}")
    from jax import export

    try:
        stored = base64.b64decode(evidence["program"])
        program = export.deserialize(bytearray(stored))
    except Exception:  # foreign bytes: anything may come
        return Finding("invalid", "this is no exported JAX program")
    if [a.shape for a in program.in_avals] != shapes or len(program.out_avals) != 1:
        return Finding("invalid", "the function must return one array")
    return Exported(program, zlib.crc32(stored))


def run(exported: Exported, arguments: Sequence, question, at: str, **where) -> object:
    """The compiled program where its result is right, else the Finding.

    Args:
        exported: what `opened` returned.
        arguments: shapes, with shardings where there is a mesh.
        question: its `spec` is the truth on NumPy arrays, its `rtol` how far off a
            value may be, relative to the largest.
        at: the case in words.
        where: `mesh` and `out` of `programs.compiled`.
    """
    import jax
    import numpy as np

    from .. import programs

    rng = np.random.default_rng(exported.seed)
    arrays = [rng.standard_normal(one.shape).astype("float32") for one in arguments]
    wanted = np.asarray(question.spec(*arrays))
    shape = exported.program.out_avals[0].shape
    if shape != wanted.shape:
        said = f"for {at} the shape is {list(shape)}, not {list(wanted.shape)}."
        return Finding("wrong", said)
    try:
        program = programs.compiled(exported.program.call, *arguments, **where)
        if program.memory["temporaries"] > MOST_BYTES:
            return Finding("wrong", "the function needs more than 1 GiB on a device")
        placed = [
            jax.device_put(array, one.sharding)
            for array, one in zip(arrays, arguments, strict=True)
        ]
        shards = program(*placed).addressable_shards
    except jax.errors.JaxRuntimeError as error:
        return Finding("wrong", f"for {at} XLA refuses it: {str(error)[:300]}")
    near = question.rtol * abs(wanted).max()
    for number, shard in enumerate(shards):
        if not np.allclose(shard.data, wanted[shard.index], rtol=0, atol=near):
            device = f" on device {number}" if len(shards) > 1 else ""
            return Finding("wrong", f"for {at} the values{device} are not right.")
    return program


def uncounted(does: str, what: str) -> Finding:
    """The finding on a right result whose loop turns as often as its values say.

    Args:
        does: what the loop does in a turn, such as "sends".
        what: what cannot be counted therefore, such as "bytes".
    """
    return Finding(
        "wrong",
        f"the result is right, but the values decide how often a loop of it {does}, "
        f"so its {what} cannot be counted: give the loop a number.",
    )
