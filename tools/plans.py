"""Searches again for the plans that the planner's page shows, and writes them.

    python tools/plans.py

The search of every job takes some minutes, so the page reads the result from
``draw/objects/plans.json``.
"""

from itertools import product
from pathlib import Path

from shardmath.draw.objects import plans


def rows() -> dict[str, dict[str, object]]:
    """Key → row, for every job that fits on some mesh."""
    found = {}
    for model, chip, count in product(plans.MODELS.values(), plans.CHIPS, plans.COUNTS):
        one = plans.searched(model, chip, count, plans.TOKENS, plans.SEQ, None)
        print(plans.key(model, chip, count), one.fitting, flush=True)
        if one.fitting:
            found[plans.key(model, chip, count)] = plans.row(one)
    return found


if __name__ == "__main__":
    path = Path(plans.__file__).with_name("plans.json")
    path.write_text(plans.text(rows()), "utf-8")
