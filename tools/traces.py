"""Writes the schedules that the live figure `trace` plays, from kept results.

    python tools/traces.py

It reads the TPU compiler's results for the programs of chapter 21, and keeps of each
operation only the fields that playing needs. `make referee` makes the results.
"""

import json
from dataclasses import asdict, fields
from pathlib import Path

from shardmath.referee.hlo import ScheduledOp

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "book" / "shardmath" / "referee" / "compilers" / "golden"
TRACES = ROOT / "book" / "shardmath" / "draw" / "figures" / "trace.toml"
CASES = {  # the figure's name of a case: the program's name, and its options
    "FSDP, quick level": ("gathered", {"optimization_level": "O1"}),
    "FSDP": ("gathered", {}),
    "AllReduce": ("summed", {}),
    "collective matmul": ("scattered", {}),
}
HEAD = """# Written by tools/traces.py: two layers on eight TPU v5e.
# Each operation once, then the order in which a device runs them.
"""


def kept(program: str, options: dict) -> dict:
    """The one kept result of a program that includes its operations."""
    rows = [
        json.loads(file.read_text("utf-8"))
        for file in sorted(GOLDEN.glob(f"v5e-2x4.{program}.*.json"))
    ]
    (found,) = (row for row in rows if "ops" in row and row["options"] == options)
    return found


def played(row: dict) -> tuple[list[dict], list[int]]:
    """The operations that are played, and their order."""
    ops = [ScheduledOp(**one) for one in row["ops"]]
    fetches = {one.name for one in ops if one.fetch}
    used = [n for n, one in enumerate(ops) if not {one.name, one.ends} & fetches]
    place = {n: at for at, n in enumerate(used)}
    order = [place[n] for n in row["order"] if n in place]
    return [brief(ops[n]) for n in used], order


def brief(op: ScheduledOp) -> dict:
    """The fields that playing needs: the estimate, or what bounds the time without."""
    usual = {one.name: one.default for one in fields(ScheduledOp)}
    unused = {"line", "vmem"} | ({"flops", "hbm"} if op.cycles or op.op else set())
    return {
        name: value
        for name, value in asdict(op).items()
        if value != usual[name] and name not in unused
    }


def text() -> str:
    """The whole file."""
    parts = [HEAD]
    for case, (program, options) in CASES.items():
        ops, order = played(kept(program, options))
        parts.append(f"\n[{json.dumps(case)}]\norder = {order}\nops = [\n")
        parts += [f"  {{ {inline(one)} }},\n" for one in ops]
        parts.append("]\n")
    return "".join(parts)


def inline(row: dict) -> str:
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in row.items())


if __name__ == "__main__":
    TRACES.write_text(text(), "utf-8")
    print(f"{TRACES.relative_to(ROOT)}: {len(CASES)} schedules")
