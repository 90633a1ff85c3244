"""Real compilers for machines that are not here.

    found = compilers.compile_for("v5p:8x8x8", fn, *shapes, mesh={"X": 8, "Y": 64})
    found.against(predicted)                # the ledger
    found.memory, found.out_of_memory       # of one device

XLA:TPU and XLA:GPU compile without an accelerator. What they say is kept, a small file
for each program and target, so that it can be read where neither is installed: on any
system, for exactly this program. `make referee` compiles everything again.

What is read here is bytes and order. It is no time: nothing runs.
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
