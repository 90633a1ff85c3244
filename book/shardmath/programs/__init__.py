"""Lower, compile, read: a JAX function on a mesh, and what the compiler made of it.

    a, b = programs.drawn(mesh, op.a, op.b)
    program = programs.compiled(fn, a, b)
    program.against(op.collectives)         # the ledger
    program.result                          # what it computes

A placement is written as in the book, ``"A[I_X, J]"``, or taken from an array of
`sharding`, a `jax.P` or its arguments in a tuple.
"""

from .running import Placement, Program, abstract, by_hand, compiled, drawn, place, spec

__all__ = [
    "Placement",
    "Program",
    "abstract",
    "by_hand",
    "compiled",
    "drawn",
    "place",
    "spec",
]
