"""The ledger: collectives that were predicted against those that were compiled."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .collectives import NAMES, Collective
from .tables import Table, table
from .units import show

_HEADER = (
    "collective",
    "axes",
    "devices",
    "runs",
    "predicted",
    "compiled",
    "ratio",
    "exact",
)
Key = tuple[str, frozenset[str], int]  # op, axes in any order, devices of a group


@dataclass(frozen=True)
class Row:
    """All collectives of one operation over the same axes.

    Args:
        op: a key of `collectives.NAMES`.
        axes: names of mesh axes.
        group: devices that take part in one group.
        predicted, compiled: how often an array of so many bytes is moved.
    """

    op: str
    axes: tuple[str, ...]
    group: int
    predicted: Counter[float]
    compiled: Counter[float]

    @property
    def predicted_sent(self) -> float:
        """Bytes that one device sends, as predicted."""
        return self._sent(self.predicted)

    @property
    def compiled_sent(self) -> float:
        """Bytes that one device sends, as compiled."""
        return self._sent(self.compiled)

    @property
    def ratio(self) -> float:
        """Compiled over predicted bytes; `inf` where nothing was predicted."""
        return _ratio(self.compiled_sent, self.predicted_sent)

    @property
    def exact(self) -> bool:
        """Whether the same arrays are moved equally often, not the same sum alone."""
        return self.predicted == self.compiled

    def _sent(self, arrays: Counter[float]) -> float:
        return sum(
            Collective(self.op, self.axes, nbytes, self.group, times).total_sent
            for nbytes, times in arrays.items()
        )


@dataclass(frozen=True)
class Ledger:
    """Predicted against compiled, a row per operation and axes; prints as a table."""

    rows: tuple[Row, ...]

    @property
    def ratio(self) -> float:
        """Compiled over predicted bytes sent by one device, of all rows together.

        1.0 where both are nothing; `inf` where nothing was predicted. Rows that are too
        high and too low can add up to 1: ask `exact`.
        """
        return _ratio(self.compiled_sent, self.predicted_sent)

    @property
    def exact(self) -> bool:
        """Whether each array predicted is moved, as often, and no other."""
        return all(row.exact for row in self.rows)

    @property
    def predicted_sent(self) -> float:
        """Bytes that one device sends in all, as predicted."""
        return sum(row.predicted_sent for row in self.rows)

    @property
    def compiled_sent(self) -> float:
        """Bytes that one device sends in all, as compiled."""
        return sum(row.compiled_sent for row in self.rows)

    @property
    def table(self) -> Table:
        """A row per operation and axes, and their sum; bytes sent by one device."""
        lines = [
            (NAMES[row.op], " ".join(row.axes), row.group, *_cells([row], row))
            for row in self.rows
        ]
        return table(_HEADER, [*lines, ("all", "", "–", *_cells(self.rows, self))])

    def __str__(self) -> str:
        return str(self.table)

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def compare(predicted: Iterable[Collective], compiled: Iterable[Collective]) -> Ledger:
    """Hold predicted collectives against compiled ones, array by array.

    Two records are the same if operation, axes (in any order), devices and bytes are;
    how often they run is added up. `when` does not matter. Groups of one device move
    nothing and are left out.

    Args:
        predicted: what was derived, from `sharding` or by hand.
        compiled: what `hlo.collectives_in` read.

    >>> gather = Collective("all_gather", ("X",), 1e6, group=4, times=2)
    >>> twice = [Collective("all_gather", ("X",), 1e6, group=4)] * 2
    >>> print(compare([gather], twice).ratio, compare([gather], twice).exact)
    1.0 True
    """
    left, right = _grouped(predicted), _grouped(compiled)
    rows = []
    for key in dict.fromkeys([*left, *right]):  # predicted first, in the order given
        op, axes, group = key
        none = Counter()
        pair = left.get(key, none), right.get(key, none)
        rows.append(Row(op, tuple(sorted(axes)), group, *pair))
    return Ledger(tuple(rows))


def _grouped(records: Iterable[Collective]) -> dict[Key, Counter[float]]:
    found: dict[Key, Counter[float]] = {}
    for one in records:
        if not isinstance(one, Collective):
            raise ValueError(
                f"{one!r}: must be a Collective; of compiled text, hlo.collectives_in "
                "returns them"
            )
        if one.group > 1:
            key = one.op, frozenset(one.axes), one.group
            found.setdefault(key, Counter())[one.nbytes] += one.times
    return found


def _ratio(compiled: float, predicted: float) -> float:
    if predicted:
        return compiled / predicted
    return math.inf if compiled else 1.0


def _cells(rows: Iterable[Row], whole: Row | Ledger) -> tuple[str, ...]:
    """Runs, bytes and verdict of a row of the table, or of all rows."""
    predicted = sum(row.predicted.total() for row in rows)
    compiled = sum(row.compiled.total() for row in rows)
    return (
        f"{predicted} → {compiled}",
        show(whole.predicted_sent, "bytes"),
        show(whole.compiled_sent, "bytes"),
        f"{whole.ratio:.3f}",
        "yes" if whole.exact else "no",
    )
