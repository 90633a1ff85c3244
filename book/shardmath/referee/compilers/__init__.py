"""Compiles programs for machines that are not present, with their real compilers.

    found = compilers.compile_for("v5p:8x8x8", fn, *shapes, mesh={"X": 8, "Y": 64})
    found.against(predicted)                # the ledger
    found.memory, found.out_of_memory       # of one device

XLA:TPU and XLA:GPU compile without an accelerator. Their results are kept in a small
file for each program and target. So any system can read them without these compilers,
but only for exactly the same program. `make referee` compiles everything again.

The results are bytes and the order of operations, but no times, because nothing runs.
"""

from .compiled import CompiledMemory, CompilerResult, OutOfMemory, Overlapped
from .compiling import NotCompiledError, compile_for
from .targets import Target, target

__all__ = [
    "CompiledMemory",
    "CompilerResult",
    "NotCompiledError",
    "OutOfMemory",
    "Overlapped",
    "Target",
    "compile_for",
    "target",
]
