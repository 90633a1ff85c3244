"""Lower, compile, read: a JAX function on a mesh, and what the compiler made of it.

    a, b = programs.drawn(mesh, op.a, op.b)
    program = programs.compiled(fn, a, b)
    program.against(op.collectives)         # the ledger
    program.result                          # what it computes

`gradients` and `train_step` are those of the reference Transformer (`block`), its
arrays lying as a strategy of `parallelism` says.

A placement is written as in the book, ``"A[I_X, J]"``, or taken from an array of
`sharding`, a `jax.P` or its arguments in a tuple.
"""

from .pins import Pins
from .running import Placement, Program, abstract, by_hand, compiled, drawn, place, spec
from .steps import gradients, train_step

__all__ = [
    "Pins",
    "Placement",
    "Program",
    "abstract",
    "by_hand",
    "compiled",
    "drawn",
    "gradients",
    "place",
    "spec",
    "train_step",
]
