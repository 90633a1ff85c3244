"""Searches again for the meshes of the live figure "mesh", and writes them.

    python tools/meshes.py

The planner searches for the settings of every mesh that the figure offers. This takes
some minutes, so the figure reads the result from ``draw/objects/meshes.toml``.
"""

from itertools import product
from pathlib import Path

from shardmath.draw.objects import meshes, race_search
from shardmath.draw.objects.race import RaceEntry
from shardmath.training.prediction import PARTS

HEAD = """\
# Meshes of the live figure "mesh", by the sizes of their tensor, context and pipeline
# axes, with the settings that a search found. `python tools/meshes.py` writes this
# file, and tests/draw/test_mesh_figure.py holds it to the search. Seconds stand in the
# order of `prediction.PARTS`; numbers have five digits.
"""


def searched(tensor: int, context: int, pipeline: int) -> RaceEntry:
    """The search's result for one mesh."""
    fixed = {"tensor": tensor, "context": context, "pipeline": pipeline}
    return race_search.entry_of(fixed, meshes.MODEL, meshes.MACHINE)


def row(found: RaceEntry) -> dict[str, object]:
    """An entry as a row of the file, without empty values."""
    seconds = [_rounded(found.parts.get(part, 0.0)) for part in PARTS]
    values = {
        "why": found.why,
        "sizes": dict(found.sizes),
        "settings": found.settings,
        "held": _rounded(found.held),
        "seconds": seconds if found.parts else [],
        "bound": _rounded(found.bound),
        "warnings": list(found.warnings),
    }
    return {name: value for name, value in values.items() if value}


def _rounded(value: float) -> float:
    return float(f"{value:.4e}")


def text() -> str:
    """The text of the file."""
    lines = [HEAD, f"room = {race_search.usable(meshes.MACHINE)}\n"]
    for sizes in product(meshes.TENSOR, meshes.CONTEXT, meshes.PIPELINE):
        values = row(searched(*sizes))
        said = ", ".join(f"{name} = {_said(value)}" for name, value in values.items())
        lines.append(f'"{" ".join(map(str, sizes))}" = {{ {said} }}\n')
        print(*sizes, values.get("why", ""), flush=True)
    return "".join(lines)


def _said(value: object) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{name} = {_said(one)}" for name, one in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_said, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


if __name__ == "__main__":
    path = Path(meshes.__file__).with_name("meshes.toml")
    path.write_text(text(), "utf-8")
