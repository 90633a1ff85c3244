"""Writes the plans that the planner's page knows without a search again.

    python tools/plans.py

The search of every job takes some minutes, so the page reads the result from
``draw/objects/plans.json``.
"""

from itertools import product
from pathlib import Path

from shardmath.draw.objects import plans


def rows() -> dict[str, dict[str, object]]:
    """A row for every job for which a mesh fits."""
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
