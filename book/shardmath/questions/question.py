"""Question records: what is asked, what is right, what goes wrong, and how to judge.

Every kind of question has the same three steps, so that a notebook, a folder of
submissions and a page share one grader:

* ``draw(seed)``: the task, what the answer is tried on;
* ``collect(answer, task)``: the evidence. The only step that touches the reader's
  objects or runs the reader's code;
* ``judge(evidence, task)``: the finding. Believes nothing but what it computes.

Task and evidence are JSON values: the second step may run in another process.
"""

from dataclasses import dataclass

from .calling import is_blank

TODO = {"todo": True}


@dataclass(frozen=True)
class Finding:
    """What the judge found: "correct", "wrong", "todo" or "invalid", and why."""

    verdict: str
    message: str
    slip: str = ""


def unusable(evidence: dict, wanted: str) -> Finding | None:
    """The finding where there is nothing to judge: no answer, or none of its kind."""
    if evidence.get("todo"):
        return Finding("todo", wanted)
    if "invalid" in evidence:
        return Finding("invalid", str(evidence["invalid"]))
    return None


def code_or(answer: object, wanted: str) -> dict | None:
    """The evidence where `answer` is no code to try; None where it is."""
    if answer is None or answer is ... or is_blank(answer):
        return TODO
    if not callable(answer):
        kind = type(answer).__name__
        return {"invalid": f"{kind} is not a function: give {wanted}"}
    return None
