"""The ledger: collectives that were predicted against those that were compiled."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..base.tables import Table, table
from ..base.units import short_repr, show
from ..collectives import NAMES, Collective
from .hlo import CompiledCollective

_HEADER = ("collective", "axes", "devices", "runs", "predicted", "compiled")
Key = tuple[str, frozenset[str], int]  # op, axes in any order, devices of a group


@dataclass(frozen=True)
class LedgerRow:
    """All collectives of one operation over the same axes.

    Args:
        op: a key of `collectives.NAMES`.
        axes: names of mesh axes.
        group: devices that take part in one group.
        predicted, compiled: how often an array of so many bytes is moved.
        dtypes: HLO's names of the compiled element types, where they are known. Twice
            the bytes of a prediction in bf16 are, as a rule, the same values in f32.
    """

    op: str
    axes: tuple[str, ...]
    group: int
    predicted: Counter[float]
    compiled: Counter[float]
    dtypes: tuple[str, ...] = ()

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

    @property
    def same_bytes(self) -> bool:
        """Whether one device sends as many bytes, in whatever pieces."""
        return _equal(self.compiled_sent, self.predicted_sent)

    @property
    def same_runs(self) -> bool:
        """Whether collectives run equally often, of whatever size.

        With the same bytes in fewer runs the compiler has put arrays together.
        """
        return self.predicted.total() == self.compiled.total()

    def _sent(self, arrays: Counter[float]) -> float:
        return sum(
            Collective(self.op, self.axes, nbytes, self.group, times).total_sent
            for nbytes, times in arrays.items()
        )


@dataclass(frozen=True)
class Sum:
    """Rows of a ledger together: those over the same axes, or all of them."""

    rows: tuple[LedgerRow, ...]

    @property
    def axes(self) -> tuple[str, ...]:
        return self.rows[0].axes

    @property
    def dtypes(self) -> tuple[str, ...]:
        return tuple(sorted({dtype for row in self.rows for dtype in row.dtypes}))

    @property
    def predicted_sent(self) -> float:
        """Bytes that one device sends, as predicted."""
        return sum(row.predicted_sent for row in self.rows)

    @property
    def compiled_sent(self) -> float:
        """Bytes that one device sends, as compiled."""
        return sum(row.compiled_sent for row in self.rows)

    @property
    def ratio(self) -> float:
        """Compiled over predicted bytes; `inf` where nothing was predicted."""
        return _ratio(self.compiled_sent, self.predicted_sent)


@dataclass(frozen=True)
class Ledger:
    """Predicted against compiled, a row per operation and axes; prints as a table."""

    rows: tuple[LedgerRow, ...]

    @property
    def ratio(self) -> float:
        """Compiled over predicted bytes sent by one device, of all rows together.

        1.0 where both are nothing; `inf` where nothing was predicted. Rows that are too
        high and too low can add up to 1: ask `exact`.
        """
        return Sum(self.rows).ratio

    @property
    def exact(self) -> bool:
        """Whether each array predicted is moved, as often, and no other."""
        return all(row.exact for row in self.rows)

    @property
    def same_bytes(self) -> bool:
        """Whether every row has the bytes that were predicted, in whatever pieces."""
        return all(row.same_bytes for row in self.rows)

    @property
    def same_runs(self) -> bool:
        """Whether every row runs as often as predicted."""
        return all(row.same_runs for row in self.rows)

    def by_axes(self) -> "ByAxes":
        """The sums of the rows over the same axes, whatever the operations.

        A compiler that sends a gather as permutes leaves one row without a compiled
        side and one without a predicted side: over the axes the two can be compared.
        """
        groups: dict[frozenset[str], list[LedgerRow]] = {}
        for row in self.rows:
            groups.setdefault(frozenset(row.axes), []).append(row)
        return ByAxes(tuple(Sum(tuple(rows)) for rows in groups.values()))

    @property
    def predicted_sent(self) -> float:
        """Bytes that one device sends in all, as predicted."""
        return Sum(self.rows).predicted_sent

    @property
    def compiled_sent(self) -> float:
        """Bytes that one device sends in all, as compiled."""
        return Sum(self.rows).compiled_sent

    @property
    def table(self) -> Table:
        """A row per operation and axes, and their sum; bytes sent by one device.

        The last column says what agrees: "yes" all, "bytes" the bytes but not the
        pieces they are sent in. Where one side has nothing, there is no ratio.
        """
        typed = any(row.dtypes for row in self.rows)
        lines = [(*_named(row), *_cells([row], row, typed)) for row in self.rows]
        lines.append(("all", "", "–", *_cells(self.rows, self, typed)))
        header = (*_HEADER, *(["dtype"] if typed else []), "ratio", "same")
        return table(header, lines)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


@dataclass(frozen=True)
class ByAxes:
    """The sums of a ledger, a row for each set of axes; prints as a table."""

    rows: tuple[Sum, ...]

    @property
    def table(self) -> Table:
        """Bytes that one device sends over each set of axes."""
        lines = [
            (
                " ".join(row.axes),
                show(row.predicted_sent, "bytes"),
                show(row.compiled_sent, "bytes"),
                _said(row),
                " → ".join(dict.fromkeys(NAMES[r.op] for r in row.rows)),
            )
            for row in self.rows
        ]
        return table(("axes", "predicted", "compiled", "ratio", "collectives"), lines)

    def __str__(self) -> str:
        return str(self.table)

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def compare(
    predicted: Iterable[Collective],
    compiled: Iterable[Collective | CompiledCollective],
) -> Ledger:
    """Hold predicted collectives against compiled ones, array by array.

    Two records are the same if operation, axes (in any order), devices and bytes are;
    how often they run is added up. `when` does not matter. Groups of one device move
    nothing and are left out.

    Args:
        predicted: what was derived, from `sharding` or by hand.
        compiled: what `hlo.collectives_in` read, or `hlo.read`, which knows the dtypes.

    Raises:
        ValueError: no lists, or something else than collectives in them.

    >>> gather = Collective("all_gather", ("X",), 1e6, group=4, times=2)
    >>> twice = [Collective("all_gather", ("X",), 1e6, group=4)] * 2
    >>> print(compare([gather], twice).ratio, compare([gather], twice).exact)
    1.0 True
    >>> halves = [Collective("all_gather", ("X",), 5e5, group=4, times=4)]
    >>> found = compare([gather], halves)
    >>> print(found.exact, found.same_bytes, found.same_runs)
    False True False
    """
    predicted, compiled = _listed("predicted", predicted), _listed("compiled", compiled)
    bare = [c.collective if isinstance(c, CompiledCollective) else c for c in compiled]
    left, right = _grouped(predicted), _grouped(bare)
    dtypes: dict[Key, set[str]] = {}
    for one in compiled:
        if isinstance(one, CompiledCollective) and one.dtype:
            dtypes.setdefault(_key(one.collective), set()).add(one.dtype)
    rows = []
    for key in dict.fromkeys([*left, *right]):  # predicted first, in the order given
        op, axes, group = key
        none = Counter()
        pair = left.get(key, none), right.get(key, none)
        types = tuple(sorted(dtypes.get(key, ())))
        rows.append(LedgerRow(op, tuple(sorted(axes)), group, *pair, types))
    return Ledger(tuple(rows))


def _listed(name: str, records: object) -> list:
    if isinstance(records, str) or not isinstance(records, Iterable):
        raise ValueError(
            f"{name} = {short_repr(records)}: must be a list of collectives, as in "
            f"[{name}]"
        )
    return list(records)


def _key(one: Collective) -> Key:
    return one.op, frozenset(one.axes), one.group


def _grouped(records: Iterable[Collective]) -> dict[Key, Counter[float]]:
    found: dict[Key, Counter[float]] = {}
    for one in records:
        if not isinstance(one, Collective):
            raise ValueError(
                f"{one!r}: must be a Collective; of compiled text, hlo.collectives_in "
                "returns them"
            )
        if one.group > 1:
            found.setdefault(_key(one), Counter())[one.nbytes] += one.times
    return found


def _equal(compiled: float, predicted: float) -> bool:
    return math.isclose(compiled, predicted, rel_tol=1e-9)


def _ratio(compiled: float, predicted: float) -> float:
    if predicted:
        return compiled / predicted
    return math.inf if compiled else 1.0


def _named(row: LedgerRow) -> tuple[str, str, int]:
    return NAMES[row.op], " ".join(row.axes), row.group


def _said(row: LedgerRow | Sum | Ledger) -> str:
    """The ratio in print: none where there is nothing on one side."""
    return f"{row.ratio:.3f}" if 0 < row.ratio < math.inf else "–"


def _agreement(row: LedgerRow | Ledger) -> str:
    if row.exact:
        return "yes"
    if row.same_bytes:
        return "bytes"
    if not row.predicted_sent:
        return "not predicted"
    return "no" if row.compiled_sent else "not compiled"


def _cells(
    rows: Iterable[LedgerRow], whole: LedgerRow | Ledger, typed: bool
) -> tuple[str, ...]:
    """Runs, bytes and verdict of a row of the table, or of all rows."""
    predicted = sum(row.predicted.total() for row in rows)
    compiled = sum(row.compiled.total() for row in rows)
    dtypes = sorted({dtype for row in rows for dtype in row.dtypes})
    return (
        f"{predicted} → {compiled}",
        show(whole.predicted_sent, "bytes"),
        show(whole.compiled_sent, "bytes"),
        *([" ".join(dtypes)] if typed else []),
        _said(whole),
        _agreement(whole),
    )
