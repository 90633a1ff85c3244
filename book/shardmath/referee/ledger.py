"""The ledger: compares predicted collectives with compiled ones."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..base.tables import Table, table
from ..base.units import short_repr, show
from ..collectives import NAMES, Collective
from .hlo import CompiledCollective

_HEADER = ("collective", "axes", "devices", "runs", "predicted", "compiled")
Key = tuple[str, frozenset[str], int]  # op, axes in any order, devices per group


@dataclass(frozen=True)
class LedgerRow:
    """All collectives of one operation over the same axes.

    Args:
        op: a key of `collectives.NAMES`.
        axes: names of mesh axes.
        group: devices per group.
        predicted, compiled: bytes of an array → how often arrays of that size are sent.
        dtypes: HLO's names of the compiled element types, if they are known. If twice
            the bytes predicted for bf16 are sent, the type is usually f32.
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
        """Compiled over predicted bytes; `inf` if only the predicted ones are zero."""
        return _ratio(self.compiled_sent, self.predicted_sent)

    @property
    def exact(self) -> bool:
        """Whether arrays of each size are sent exactly as often as predicted."""
        return self.predicted == self.compiled

    @property
    def same_bytes(self) -> bool:
        """Whether one device sends the predicted bytes, in arrays of any size."""
        return _equal(self.compiled_sent, self.predicted_sent)

    @property
    def same_runs(self) -> bool:
        """Whether collectives run as often as predicted, whatever their sizes.

        If the bytes agree but there are fewer runs, the compiler has merged arrays.
        """
        return self.predicted.total() == self.compiled.total()

    def _sent(self, arrays: Counter[float]) -> float:
        return sum(
            Collective(self.op, self.axes, nbytes, self.group, times).total_sent
            for nbytes, times in arrays.items()
        )


@dataclass(frozen=True)
class Sum:
    """The sum of some rows of a ledger: those over the same axes, or all of them."""

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
        """Compiled over predicted bytes; `inf` if only the predicted ones are zero."""
        return _ratio(self.compiled_sent, self.predicted_sent)


@dataclass(frozen=True)
class Ledger:
    """Predicted and compiled bytes, a row per operation and axes. Prints as a table."""

    rows: tuple[LedgerRow, ...]

    @property
    def ratio(self) -> float:
        """Compiled over predicted bytes that one device sends, for all rows together.

        It is 1.0 if both are zero, and `inf` if only the predicted bytes are zero.
        Because errors in different rows can cancel, check `exact` too.
        """
        return Sum(self.rows).ratio

    @property
    def exact(self) -> bool:
        """Whether exactly the predicted arrays are sent, each as often as predicted."""
        return all(row.exact for row in self.rows)

    @property
    def same_bytes(self) -> bool:
        """Whether every row has as many bytes as predicted, in arrays of any size."""
        return all(row.same_bytes for row in self.rows)

    @property
    def same_runs(self) -> bool:
        """Whether every row runs as often as predicted."""
        return all(row.same_runs for row in self.rows)

    def by_axes(self) -> "ByAxes":
        """The sums of the rows over the same axes, for all operations together.

        If a compiler implements a gather by permutes, one row has no compiled bytes,
        and another row has no predicted bytes. The sums over the axes can still be
        compared.
        """
        groups: dict[frozenset[str], list[LedgerRow]] = {}
        for row in self.rows:
            groups.setdefault(frozenset(row.axes), []).append(row)
        return ByAxes(tuple(Sum(tuple(rows)) for rows in groups.values()))

    @property
    def predicted_sent(self) -> float:
        """Bytes that one device sends in total, as predicted."""
        return Sum(self.rows).predicted_sent

    @property
    def compiled_sent(self) -> float:
        """Bytes that one device sends in total, as compiled."""
        return Sum(self.rows).compiled_sent

    @property
    def table(self) -> Table:
        """One row per operation and axes, and their sum, in bytes sent by one device.

        In the last column, "yes" means that everything agrees, and "bytes" means that
        the bytes agree but the sizes of arrays do not. If one side is zero, no ratio is
        shown.
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
    """The sums of a ledger, one row per set of axes. Prints as a table."""

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
    """Compare predicted collectives with compiled ones, array by array.

    Two records are of the same arrays if their operation, axes (in any order), devices
    and bytes are equal; then their `times` are added. `when` does not matter. Groups of
    one device send nothing and are left out.

    Args:
        predicted: collectives derived from `sharding` or by hand.
        compiled: collectives from `hlo.collectives_in`, or from `hlo.read`, which also
            gives dtypes.

    Raises:
        ValueError: an argument is not a list, or holds anything other than collectives.

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
                f"{short_repr(one)}: must be a Collective; use hlo.collectives_in to "
                "read them from compiled text"
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
    """The ratio as text, or a dash if one side is zero."""
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
    """Runs, bytes and verdict for one row of the table, or for all rows."""
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
