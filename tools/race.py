"""Searches again for the meshes of the live figure "race", and writes them.

    python tools/race.py

The planner searches for every model and machine that the figure offers. This takes some
minutes, so the figure reads the result from ``draw/objects/race.toml``.
"""

from pathlib import Path

from shardmath.draw.objects import race, race_search

HEAD = """\
# Meshes of the live figure "race", found by search: the best of each kind by
# prediction, or the one that comes nearest to fitting. `python tools/race.py` writes
# this file, and tests/draw/test_race_figure.py holds it to the search.
"""


def text() -> str:
    """The text of the file."""
    parts = [HEAD]
    for model in race.MODELS:
        for machine in race.MACHINES:
            parts.append(f'\n["{model}"."{machine}"]\n')
            for family in race.FAMILIES:
                one = race_search.entry(family, model, machine)
                parts.append(f"{family} = {_inline(vars(one))}\n")
                print(model, machine, family, one.why, one.sizes, flush=True)
    return "".join(parts)


def _inline(values: dict) -> str:
    said = ", ".join(f"{name} = {_said(value)}" for name, value in values.items())
    return f"{{ {said} }}" if values else "{}"


def _said(value: object) -> str:
    if isinstance(value, dict):
        return _inline(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_said, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value}"


if __name__ == "__main__":
    path = Path(race.__file__).with_name("race.toml")
    path.write_text(text(), "utf-8")
