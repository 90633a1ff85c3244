"""How long `hlo` takes to read a module: seconds per 5 MB of compiled text.

python benchmarks/hlo.py
"""

import re
import time
from pathlib import Path

from shardmath.referee import hlo

STORE = Path(__file__).parents[1] / "tests" / "data" / "hlo"
MESH = {"X": 4, "Y": 2}
SIZE = 5_000_000


def enlarged(text: str, nbytes: int) -> tuple[str, int]:
    """A module that calls as many copies of `text` as fill `nbytes`, and how many."""
    copies = -(-nbytes // len(text))
    head, body = re.split(r"\n+(?=%|ENTRY)", text, maxsplit=1)
    entry = re.search(r"^ENTRY %(\S+)", body, re.MULTILINE)[1]
    parts = [head]
    for copy in range(copies):
        renamed = re.sub(r"%([^\s,(){}=]+)", rf"%\1.copy{copy}", body)
        parts.append(renamed.replace("ENTRY ", ""))
    calls = [f"%c{i} = f32[] call(), to_apply=%{entry}.copy{i}" for i in range(copies)]
    lines = [*calls, "ROOT %done = f32[] constant(0)"]
    parts.append("ENTRY %all () -> f32[] {\n  " + "\n  ".join(lines) + "\n}\n")
    return "\n".join(parts), copies


def main() -> None:
    for name in ("fsdp.cpu", "fsdp.h100", "fsdp.v5e-2x4", "fsdp.tpu7x-2x2x1"):
        text, _ = enlarged((STORE / f"{name}.txt").read_text(), SIZE)
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            found = hlo.read(text, MESH)
            seconds.append(time.perf_counter() - start)
        print(
            f"{name}: {len(text) / 1e6:.2f} MB, {len(found)} collectives, "
            f"best of 5: {min(seconds):.2f} s"
        )


if __name__ == "__main__":
    main()
