"""The record of a collective: who takes part, how many bytes, how often."""

from dataclasses import dataclass

from ..base.units import number, positive, positive_int, short_repr, show
from .link_load import Pairs

NAMES = {
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "all_reduce": "AllReduce",
    "all_to_all": "AllToAll",
    "permute": "Permute",
}
AxisNames = str | tuple[str, ...]


@dataclass(frozen=True)
class Collective:
    """One collective of a program: who takes part, how many bytes, how often.

        AllGather, ReduceScatter  sent = V·(n−1)/n      AllToAll  sent = V/n·(n−1)/n
        AllReduce                 sent = 2·V·(n−1)/n    Permute   sent = V

    Args:
        op: a key of `NAMES`, such as "all_gather".
        axes: names of the mesh axes that it runs over.
        nbytes: V, bytes of the array without the sharding over `axes`; it may be
            sharded over other axes. The array is the result of an AllGather, the input
            of a ReduceScatter or AllReduce, and the whole array of an AllToAll, n times
            the local part. For a permute, V is what one device sends.
        group: n, the devices in one group: the product of the axes' sizes.
        times: how often it runs.
        when: the part of the step in which it runs, such as "forward".
        pairs: (from, to) of a permute: places in the group over `axes`, row-major. Each
            is at most once a source and at most once a target. By default, each device
            sends to the next, and the last to the first.

    Raises:
        ValueError: an unknown op, axes that are not names, bytes not above 0, a count
            that is not whole, `pairs` for an op other than permute, or pairs outside
            the group.

    >>> print(Collective("all_gather", ("X",), 1e6, group=4))
    AllGather over X (4 devices), 1 MB: each sends 750 kB
    """

    op: str
    axes: tuple[str, ...]
    nbytes: float
    group: int
    times: int = 1
    when: str = ""
    pairs: Pairs = ()

    def __post_init__(self) -> None:
        if not isinstance(self.op, str) or self.op not in NAMES:
            raise ValueError(
                f"op {short_repr(self.op)}: must be one of {', '.join(NAMES)}"
            )
        if not isinstance(self.axes, str | tuple | list):
            raise ValueError(
                f"axes = {short_repr(self.axes)}: must be names of mesh axes"
            )
        axes = (self.axes,) if isinstance(self.axes, str) else tuple(self.axes)
        if not all(isinstance(name, str) for name in axes):
            raise ValueError(
                f"axes = {short_repr(self.axes)}: must be names of mesh axes"
            )
        if not isinstance(self.when, str):
            raise ValueError(
                f"when = {short_repr(self.when)}: must be a word, such as 'forward'"
            )
        object.__setattr__(self, "axes", axes)
        (nbytes,) = positive(nbytes=self.nbytes)
        group, times = positive_int(group=self.group, times=self.times)
        found = {"nbytes": nbytes, "group": group, "times": times}
        found["pairs"] = _pairs(self.op, self.pairs, group)
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def sent(self) -> float:
        """Bytes that one device has to send when the collective runs once.

        Devices that forward the parts of others send more.
        """
        n = self.group
        others = self.nbytes * (n - 1) / n
        return {
            "all_gather": others,
            "reduce_scatter": others,
            "all_reduce": 2 * others,
            "all_to_all": others / n,
            "permute": self.nbytes if self._moves else 0.0,
        }[self.op]

    @property
    def _moves(self) -> bool:
        """Whether a permute takes anything to another device."""
        return any(a != b for a, b in self.pairs) if self.pairs else self.group > 1

    @property
    def total_sent(self) -> float:
        """Bytes that one device sends in all `times` runs."""
        return self.sent * self.times

    @property
    def title(self) -> str:
        """The name, axes, devices and bytes in words."""
        over = " ".join(self.axes) or "no axis"
        size = show(self.nbytes, "bytes")
        text = f"{NAMES[self.op]} over {over} ({self.group} devices), {size}"
        text += f", {self.times} times" if self.times > 1 else ""
        return f"{text}, {self.when}" if self.when else text

    def __str__(self) -> str:
        return f"{self.title}: each sends {show(self.sent, 'bytes')}"

    def _repr_pretty_(self, printer, cycle):
        printer.text(str(self))


def _pairs(op: str, given: object, group: int) -> Pairs:
    """`given` as tuples of ints; raises unless each is a place of the group, once."""
    try:
        pairs = tuple((_place(a), _place(b)) for a, b in given)
        if not all(0 <= place < group for pair in pairs for place in pair):
            raise ValueError(pairs)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"pairs = {short_repr(given)}: must be (from, to) with places 0 to "
            f"{group - 1}"
        ) from error
    if pairs and op != "permute":
        raise ValueError(
            f"pairs = {short_repr(given)}: must be for permute, not for {op}"
        )
    for end, what in ((0, "sources"), (1, "targets")):
        if len({pair[end] for pair in pairs}) < len(pairs):
            raise ValueError(f"pairs = {short_repr(given)}: must not name {what} twice")
    return pairs


def _place(value: object) -> int:
    place = value if type(value) is int else number("place", value)
    if not isinstance(place, int):
        raise ValueError(value)
    return place
