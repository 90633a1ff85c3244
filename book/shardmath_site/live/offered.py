"""Runs inside Pyodide, under Node: which cells of a chapter a page's Python can run.

A cell is offered where it gives what the notebook stores, after no more than the cells
that it needs. What it needs is found by names first. Where that is not enough, as with
random numbers that are drawn one after the other, all that is offered before it is.
"""

import builtins

from shardmath.draw.live.prompt import Session
from shardmath.draw.picture import MIME as PICTURE_MIME
from shardmath.draw.picture import in_page

SLOW = 8.0  # seconds; a page stops after ten


def busy() -> float:
    """Seconds of CPU so far, which other work on the machine does not make longer."""
    from js import process  # Node's; tests read this module without it

    used = process.cpuUsage()
    return (used.user + used.system) / 1e6


def stored(outputs: list[dict]) -> dict[str, str]:
    """What `Session.run` says where a notebook has these outputs."""
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
    """The cells that can be tried, each with those that it needs, by their index.

    Args:
        cells: those with code, in order: `index`, `source`, `outputs`, and the names
            that it has from elsewhere, `uses`, and that it gives a value, `makes`. What
            the first one imports stands ready for all.
    """
    first, *others = cells
    found: dict[int, list[int]] = {}
    by_index = {cell["index"]: cell for cell in cells}

    def seconds(cell: dict, needs: list[int]) -> float | None:
        """How long the cell runs; None if it does not give what is stored."""
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
    """Those of the `earlier` cells that make a name that `cell` uses, or they do."""
    wanted, needs = set(cell["uses"]), []
    for other in reversed(earlier):
        if wanted & set(other["makes"]):
            wanted |= set(other["uses"])
            needs.append(other["index"])
    return needs[::-1]
