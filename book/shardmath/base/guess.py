"""A guess before the result: a choice between answers, or a number.

The cell of a guess follows the cells that answer a *Predict* note. On the site, the
note asks for the reader's guess. Once it is made, the site opens all cells from the
note to this one, and shows the guess next to the answer. In a notebook, no kernel is
needed: each choice is a line that opens and says whether it is right, and a number is
one such line. Without HTML, the answer is printed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from .units import positive, short_repr, show

MIME = "application/vnd.shardmath.guess+json"
MOST_CHOICES = 4
CLOSE, NEAR = 1.25, 2.0  # factors
MARKUP = frozenset("$`\n")  # a button shows its text as it is


@dataclass(frozen=True, repr=False)
class Choices:
    """A few answers, and which of them is true.

    Args:
        labels: all answers, as the reader sees them.
        true: the true answers: exactly one, unless a reader changed the numbers.
    """

    labels: tuple[str, ...]
    true: tuple[str, ...]

    def __repr__(self) -> str:
        others = "; ".join(label for label in self.labels if label not in self.true)
        if len(self.true) == 1:
            return f"Answer: {self.true[0]} (not: {others})"
        if not self.true:
            return f"With these numbers none of the choices holds: {others}"
        return f"With these numbers several choices hold: {'; '.join(self.true)}"

    def record(self) -> dict[str, object]:
        """The data for the site; `truth` is None unless exactly one choice is true."""
        truth = self.true[0] if len(self.true) == 1 else None
        return {"kind": "choice", "choices": list(self.labels), "truth": truth}

    def html(self) -> str:
        """For each choice, a line that opens; "" unless exactly one choice is true."""
        if len(self.true) != 1:
            return ""
        verdicts = (
            "Right." if label in self.true else f"No. The answer is: {self.true[0]}."
            for label in self.labels
        )
        opened = map(_to_open, self.labels, verdicts)
        return "<p>Which do you expect? Open one.</p>" + "".join(opened)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return _bundle(self)


@dataclass(frozen=True, repr=False)
class NumberGuess:
    """A quantity to guess, in its base unit; for "%", a fraction (0.5 is 50 %).

    Args:
        value: the true value.
        unit: as in `units.show`, or "%", or "times".
        within: a guess is close if it is too high or low by at most this factor.
    """

    value: float
    unit: str
    within: float = CLOSE

    @property
    def shown(self) -> str:
        """The true value as printed: "454 tokens", "43.6 µs", "3.1%", "2.2 times"."""
        if self.unit == "%":
            return f"{show(100 * self.value)}%"
        if self.unit == "times":
            return f"{show(self.value)} times"
        return show(self.value, self.unit)

    def __repr__(self) -> str:
        return f"Answer: {self.shown}"

    def record(self) -> dict[str, object]:
        """The data for the site; `value` is rounded as printed, for "%" in percent."""
        value = 100 * self.value if self.unit == "%" else self.value
        return {
            "kind": "number",
            "truth": self.shown,
            "value": float(f"{value:.2e}"),
            "unit": "bytes" if self.unit == "capacity" else self.unit,
            "close": self.within,
            "near": NEAR,
        }

    def html(self) -> str:
        """One line, which the reader opens after writing down a number."""
        factor = f"a factor of {self.within:g}"
        return _to_open(
            f"Write your guess down{_in_unit(self.record()['unit'])}, then open",
            f"The answer is {self.shown}. A guess within {factor} of it is right.",
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        return _bundle(self)


def _to_open(line: str, behind: str) -> str:
    return (
        f"<details><summary>{escape(line)}</summary><p>{escape(behind)}</p></details>"
    )


def _in_unit(unit: str) -> str:
    """The unit as a reader is told it: ", in tokens"; empty for a ratio."""
    named = {"s": "seconds", "%": "percent", "times": "times"}.get(unit, unit)
    return f", in {named}" if named and named != "times" else ""


def _bundle(said: "Choices | NumberGuess") -> dict[str, object]:
    """The outputs that a notebook stores for a guess."""
    shown = {"text/html": said.html()} if said.html() else {}
    return {"text/plain": repr(said), MIME: said.record()} | shown


def guess(
    truth: Mapping[str, bool] | float, unit: str = "", within: float = CLOSE
) -> Choices | NumberGuess:
    """The answer to a *Predict* note, in a separate cell after those that compute it.

    Args:
        truth: two to four choices, each with a condition that the chapter computes;
            exactly one condition is true. Or the number to guess, above zero.
        unit: the unit of a number, as in `units.show`: "tokens", "s", "bytes/s",
            "capacity". Use "%" for a fraction, and "times" or "" for a ratio.
        within: a guessed number is right if it is too high or too low by at most this
            factor, and near if it is within a factor of 2.

    Returns:
        An object that prints the answer in one line. If a reader changed numbers so
        that no choice or several choices are true, it prints this instead; the site is
        never built with such numbers.

    Raises:
        ValueError: choices with a unit or a factor, too few or too many choices, a
            label that is not plain text, a condition that is neither True nor False, a
            number that is not finite and above zero, or a factor not between 1 and 2.

    >>> exact = 454
    >>> guess({"a little above 240": exact < 300, "twice as large": 400 < exact < 600})
    Answer: twice as large (not: a little above 240)
    >>> guess(exact, "tokens"), guess(0.976, "%"), guess(43.6e-6, "s", within=1.1)
    (Answer: 454 tokens, Answer: 97.6%, Answer: 43.6 µs)
    """
    if isinstance(truth, Mapping):
        if unit or within != CLOSE:
            raise ValueError(
                f"unit = {short_repr(unit)}, within = {short_repr(within)}: must not "
                "be given with choices"
            )
        return _choices(truth)
    if not isinstance(unit, str):
        raise ValueError(f"unit = {short_repr(unit)}: must be text, such as 'tokens'")
    (value,) = positive(truth=truth)
    (factor,) = positive(within=within)
    if not 1 < factor < NEAR:
        raise ValueError(
            f"within = {short_repr(within)}: must be above 1 and below {NEAR:g}"
        )
    return NumberGuess(float(value), unit, float(factor))


def _choices(conditions: Mapping[str, bool]) -> Choices:
    if not 2 <= len(conditions) <= MOST_CHOICES:
        raise ValueError(
            f"{len(conditions)} choices, {short_repr(list(conditions))}: must be 2 to "
            f"{MOST_CHOICES}"
        )
    for label in conditions:
        if not isinstance(label, str) or not label.strip() or set(label) & MARKUP:
            raise ValueError(
                f"choice {short_repr(label)}: must be plain text, one line without $ "
                "and `"
            )
    true = [label for label, met in conditions.items() if _truth(label, met)]
    return Choices(tuple(conditions), tuple(true))


def _truth(label: str, condition: object) -> bool:
    """The condition as Python's own bool; scalars of NumPy and JAX are accepted."""
    scalar = getattr(condition, "shape", None) == ()
    met = condition.item() if scalar else condition
    if not isinstance(met, bool):
        raise ValueError(
            f"choice {short_repr(label)}: {short_repr(condition)}: must be a "
            "condition, True or False"
        )
    return met
