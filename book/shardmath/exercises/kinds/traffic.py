"""Questions answered by a program for `Scratchpad`, graded on the bytes it moves."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .calling import outcome
from .question import Finding, Question, code_or, unusable
from .scratchpad import Matrix, Scratchpad
from .wrong_values import times

_MOST_OPERATIONS = 200_000


@dataclass(frozen=True, kw_only=True)
class Traffic(Question):
    """A program for `Scratchpad`, graded on its result and on the bytes it moves.

    The reader writes ``def program(machine, *sizes)``. Only its trace is judged, by
    replaying it on values that the program has never seen.

    Args:
        cases: draws the sizes of one case from a `random.Random`.
        capacity: called with the sizes, returns the bytes of scratchpad.
        arrays: called with the sizes, returns name → (rows, columns). The arrays are
            filled with drawn whole numbers.
        result: called with the initial arrays by name, returns name → the array at the
            end.
        at_most: called with the sizes, returns the bytes that may move.
        draws: how many cases are drawn.
        slips: each is called with the sizes, and returns the bytes that a known
            inefficient program moves.
    """

    cases: Callable[[random.Random], tuple]
    capacity: Callable[..., int]
    arrays: Callable[..., Mapping[str, tuple[int, int]]]
    result: Callable[..., Mapping[str, Matrix]]
    at_most: Callable[..., float]
    draws: int = 3
    form = "Answer with a program for the machine; its bytes moved count."

    def draw(self, seed: str) -> list:
        rng = random.Random(f"{self.id} {seed}")
        return [list(self.cases(rng)) for _ in range(self.draws)]

    def machine(self, *sizes: int, rng: random.Random | None = None) -> Scratchpad:
        """A fresh machine at these sizes, with drawn whole numbers in its memory."""
        rng = rng or random.Random(0)
        shapes = self.arrays(*sizes).items()
        filled = {
            name: [
                [float(rng.randint(-9, 9)) for _ in range(cols)] for _ in range(rows)
            ]
            for name, (rows, cols) in shapes
        }
        return Scratchpad(self.capacity(*sizes), filled)

    def collect(self, answer: object, case: list) -> dict:
        if evidence := code_or(answer, "the program, without calling it"):
            return evidence
        runs = []
        for sizes in case:
            machine = self.machine(*sizes)
            ran = outcome(answer, [machine, *sizes])
            if len(machine.trace) > _MOST_OPERATIONS:
                ran = {"error": f"more than {_MOST_OPERATIONS:,} operations"}
            trace = {"trace": machine.trace}
            runs.append({"error": ran["error"]} if "error" in ran else trace)
        return {"runs": runs}

    def judge(self, evidence: dict, case: list) -> Finding:
        if finding := unusable(evidence, self.form):
            return finding
        moved = most = 0.0
        for sizes, run in zip(case, evidence["runs"], strict=True):
            if "error" in run:
                return Finding("wrong", f"at {_sizes(sizes)}: {run['error']}")
            machine = self.machine(*sizes, rng=random.Random(f"values {sizes}"))
            start = {n: [r[:] for r in a] for n, a in machine.arrays.items()}
            wanted = self.result(**{n: [r[:] for r in a] for n, a in start.items()})
            try:
                machine.replay(run["trace"])
            except (ValueError, MemoryError, IndexError, TypeError) as error:
                return Finding("invalid", f"the trace does not run: {error}")
            if found := _difference(wanted, machine.arrays, start):
                difference, name = found
                return Finding("wrong", f"at {_sizes(sizes)}: {difference}", name)
            moved, most = machine.moved, self.at_most(*sizes)
            if moved > most:
                said = (
                    f"the result is right, but at {_sizes(sizes)} {moved:,} bytes "
                    f"move; at most {most:,.0f} are needed."
                )
                for slip in self.slips:
                    if moved == slip.wrong(*sizes):
                        return Finding("wrong", f"{said} {slip.says}", slip.name)
                return Finding("wrong", said)
        return Finding(
            "correct",
            f"the result is right, and {moved:,} bytes move at {_sizes(sizes)} "
            f"(at most {most:,.0f})",
        )


def _sizes(sizes: list) -> str:
    return f"size {sizes[0]}" if len(sizes) == 1 else f"sizes {tuple(sizes)}"


def _difference(
    wanted: Mapping[str, Matrix], arrays: Mapping[str, Matrix], start: Mapping
) -> tuple[str, str] | None:
    """A message on the first wrong value, and a slip's name; None if all are right."""
    for name, right in wanted.items():
        got = arrays[name]
        for i, row in enumerate(right):
            for j, value in enumerate(row):
                if got[i][j] != value:
                    said = f"{name}[{i}, {j}] must be {value:g}, but is {got[i][j]:g}."
                    slip, says = _seen(name, right, got, start[name])
                    return f"{said} {says}".strip(), slip
    return None


def _seen(name: str, right: Matrix, got: Matrix, start: Matrix) -> tuple[str, str]:
    """How a wrong array differs from the right one: a slip's name and explanation."""
    if got == start:
        return "nothing stored", f"{name} still has all its values from the start."
    if got == [list(column) for column in zip(*right, strict=True)]:
        return "transposed", f"Rows and columns of {name} are swapped."
    pairs = [
        (a, b)
        for rows in zip(right, got, strict=True)
        for a, b in zip(*rows, strict=True)
    ]
    ratios = {b / a if a else b for a, b in pairs if a or b}
    if len(ratios) == 1:
        (ratio,) = ratios
        said = f"Every value of {name} is {times(ratio)} the right one."
        return "a constant factor", said if ratio else f"Every value of {name} is zero."
    places = sum(a == b for a, b in pairs) / len(pairs)
    if places >= 1 / 16:
        return "right in places", f"{places:.0%} of the values of {name} are right."
    return "", ""
