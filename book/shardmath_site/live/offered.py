"""Runs inside Pyodide, under Node, and finds the cells that a page's Python can run.

A cell is offered if it gives the outputs stored in the notebook after only the cells
that it needs have run. These are found by the names that it uses. If that is not
enough, for example because of random numbers, it needs all cells offered before it.
"""

import builtins

from shardmath.draw.live.prompt import Session
from shardmath.draw.picture import MIME as PICTURE_MIME
from shardmath.draw.picture import in_page

SLOW = 8.0  # seconds; a page stops a cell after ten


def busy() -> float:
    """CPU seconds so far, which do not depend on other work on the machine."""
    from js import process  # Node's; tests read this module without it

    used = process.cpuUsage()
    return (used.user + used.system) / 1e6


def stored(outputs: list[dict]) -> dict[str, str]:
    """The result of `Session.run` that corresponds to a notebook's outputs."""
    answer = {"printed": ""}
    for output in outputs:
        if output["output_type"] == "stream":
            answer["printed"] += output["text"]
            continue
        data = output.get("data", {})
        if PICTURE_MIME in data:
            answer["html"] = in_page(data[PICTURE_MIME]["panels"])
        elif "text/html" in data:
            answer["html"] = data["text/html"]
        else:
            answer["text"] = data.get("text/plain", "")
    return answer


def offered(cells: list[dict]) -> dict[int, list[int]]:
    """Index of each cell that can be tried → indices of the cells that it needs.

    Args:
        cells: the cells with code, in order, each with its `index`, `source` and
            `outputs`, the global names that it `uses`, and those that it binds,
            `makes`. The imports of the first one are available to all.
    """
    first, *others = cells
    found: dict[int, list[int]] = {}
    by_index = {cell["index"]: cell for cell in cells}

    def seconds(cell: dict, needs: list[int]) -> float | None:
        """How long the cell runs, or None if it does not give the stored outputs."""
        session = Session()
        session.prepare({"setup": first["source"]})
        if session.absent_in(cell["source"]):
            return None
        for index in needs:
            session.run(by_index[index]["source"])
        began = busy()
        right = session.run(cell["source"]) == stored(cell["outputs"])
        return busy() - began if right else None

    known = {*dir(builtins), *first["makes"]}
    for cell in others:
        if not known.issuperset(set(cell["uses"]) - set(cell["makes"])):
            continue  # it needs a cell that is not offered
        needs = needed(cell, [by_index[index] for index in found])
        took = seconds(cell, needs)
        if took is None:
            needs = list(found)
            took = seconds(cell, needs)
        if took is not None and took < SLOW:
            found[cell["index"]] = needs
            known |= set(cell["makes"])
    return found


def needed(cell: dict, earlier: list[dict]) -> list[int]:
    """The `earlier` cells that bind names used by `cell`, directly or indirectly."""
    wanted, needs = set(cell["uses"]), []
    for other in reversed(earlier):
        if wanted & set(other["makes"]):
            wanted |= set(other["uses"])
            needs.append(other["index"])
    return needs[::-1]
