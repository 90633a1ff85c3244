"""Compiles a JAX function on a mesh, and reads the compiled program.

    a, b = programs.drawn(mesh, op.a, op.b)
    program = programs.compiled(fn, a, b)
    program.against(op.collectives)         # the ledger
    program.result                          # what it computes

`gradients` and `train_step` are programs of the reference Transformer (`block`), whose
arrays are placed by a strategy of `training`.

A placement is a line in the book's notation such as ``"A[I_X, J]"``, an array of
`sharding`, a `jax.P`, or a tuple of the arguments of `jax.P`.
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
