"""Facts: a value, where it was read, and the values that other sources state.

`VOCABULARY` defines which facts a chip can have, with the words, unit and meaning of
each.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .tables import Absent
from .units import PRECISION_BYTES, short_repr


class Unpublished(Absent):
    """Raised if no source states such a value."""


@dataclass(frozen=True, repr=False)
class Source:
    """Where a value was read, and how close that source is to the maker of the chip.

    `kind` is "vendor" (its documents), "vendor-code" (its published code), "paper",
    "secondary" (somebody who cites or measured the value) or "measured" (by the
    reader).
    """

    key: str
    title: str
    url: str
    kind: str
    read: str

    def __repr__(self) -> str:
        return f"{self.title} ({self.kind}, read {self.read}) {self.url}".strip()


@dataclass(frozen=True, repr=False)
class Fact:
    """One value in base units, its source, and the values that other sources state."""

    value: float
    source: Source
    note: str = ""
    disagrees: tuple[tuple[float, Source], ...] = ()

    def said(self, source: str) -> float:
        """The value that the source with this key states, whether we use it or not.

        Raises:
            Unpublished: this source states no value here; the message lists the sources
                that do.

        >>> from shardmath.hardware.chips import TPU_V5E
        >>> fact = TPU_V5E.fact("link_bandwidth")
        >>> fact.value, fact.said("book"), fact.said("gcp_v5e")
        (50000000000.0, 45000000000.0, 50000000000.0)
        """
        stated = {self.source.key: self.value}
        stated |= {other.key: value for value, other in self.disagrees}
        if not isinstance(source, str) or source not in stated:
            known = ", ".join(stated)
            given = short_repr(source)
            raise Unpublished(f"{given} states no value here; known: {known}")
        return stated[source]

    def __repr__(self) -> str:
        parts = [f"{self.value:.6g}", self.note, f"source: {self.source}"]
        parts += [f"{source.key} says {v:.6g}" for v, source in self.disagrees]
        return "; ".join(part for part in parts if part)


def recorded(
    sources: Mapping[str, Source],
    value: float,
    source: str,
    note: str = "",
    disagrees: Iterable[tuple[float, str]] = (),
) -> Fact:
    """The fact that one line of a record states, with its sources given by key."""
    others = tuple((other, sources[key]) for other, key in disagrees)
    return Fact(value, sources[source], note, others)


class Term(NamedTuple):
    """A kind of fact: its words, its unit ("" for a count) and its meaning.

    In `words`, {onchip} stands for the chip's name of the memory next to the matrix
    units, {cores} for its name of the cores, and {precision} for a precision.
    """

    words: str
    unit: str
    meaning: str


VOCABULARY = {
    "year": Term("Year of release", "", "of the announcement where the note says so"),
    "flops": Term("{precision} peak", "FLOPs/s", "dense, of the matrix units"),
    "sparse": Term(
        "{precision} with sparsity", "FLOPs/s", "printed beside the dense peak"
    ),
    "achieved": Term(
        "{precision} matmul, best measured", "FLOPs/s", "by anybody, on any shape"
    ),
    "flops_per_clock": Term(
        "FLOPs per clock of one core", "", "bf16 (or fp16), matrix units, dense"
    ),
    "devices_per_chip": Term("JAX devices per chip", "", "1 where a record has none"),
    "hbm_bytes": Term("HBM capacity", "capacity", "main memory, whatever its kind"),
    "hbm_usable_bytes": Term(
        "HBM that a program can have", "capacity", "the runtime keeps the rest"
    ),
    "hbm_bandwidth": Term(
        "HBM bandwidth", "bytes/s", "peak, reads and writes together"
    ),
    "hbm_latency": Term("HBM latency of a read", "clocks", "one read, nothing else on"),
    "onchip_bytes": Term(
        "{onchip} capacity", "capacity", "managed by software, all cores together"
    ),
    "onchip_bandwidth": Term("{onchip} bandwidth", "bytes/s", "all cores together"),
    "registers_bytes": Term("Registers, capacity", "capacity", "all cores together"),
    "tmem_bytes": Term("TMEM capacity", "capacity", "of Tensor Cores, all together"),
    "cmem_bytes": Term("CMEM capacity", "capacity", "shared by the cores"),
    "l1_bytes": Term(
        "L1 and {onchip} together, capacity", "capacity", "all cores together"
    ),
    "l1_latency": Term("L1 latency of a read", "clocks", "one read, nothing else on"),
    "l2_bytes": Term("L2 capacity", "capacity", "cache shared by the cores"),
    "l2_bandwidth": Term("L2 bandwidth", "bytes/s", "reads"),
    "l2_latency": Term("L2 latency of a read", "clocks", "one read, nothing else on"),
    "llc_bytes": Term("Last-level cache, capacity", "capacity", "before the HBM"),
    "llc_bandwidth": Term("Last-level cache, bandwidth", "bytes/s", "peak"),
    "cores": Term("{cores}", "", "TensorCores, SMs, compute units, NeuronCores"),
    "tensor_cores": Term("Tensor Cores", "", "NVIDIA's matrix units, whole chip"),
    "lanes": Term("fp32 lanes of one core", "", "of its vector units"),
    "warps": Term("Warps resident on one core", "", "at most"),
    "warp_threads": Term("Threads of a warp", "", "in step"),
    "mxus": Term("Matrix units", "", "systolic arrays, whole chip"),
    "mxu_size": Term("Side of a matrix unit", "", "cells"),
    "clock": Term("Clock", "Hz", "that of the peak; the note says which"),
    "nvlink": Term("NVLink generation", "", "that its links and their switches speak"),
    "links": Term("Scale-up links", "", "ICI, NVLink, Infinity Fabric"),
    "link_bandwidth": Term("One link, one-way", "bytes/s", "of scale-up"),
    "scale_up_bandwidth": Term("Scale-up, one-way", "bytes/s", "all links of a chip"),
    "scale_up_printed": Term(
        "Scale-up, direction not stated", "bytes/s", "one-way or both, nobody says"
    ),
    "scale_out_bandwidth": Term(
        "Scale-out, one-way", "bytes/s", "data-centre network, one chip's share"
    ),
    "host_bandwidth": Term(
        "Link to the host, one-way", "bytes/s", "PCIe, one chip's own or its share"
    ),
    "domain": Term(
        "Chips in the largest scale-up network", "", "TPU pod, NVLink domain"
    ),
    "switches": Term("Switches of that network", "", "NVSwitches of an NVLink domain"),
    "domain_total": Term(
        "Total of that network, one-way", "bytes/s", "all links, as printed for it"
    ),
    "domain_allreduce": Term(
        "AllReduce bandwidth of that network, one-way",
        "bytes/s",
        "all links of a TPU pod, as printed for it",
    ),
    "domain_reduce": Term(
        "AllReduce in that network, array over time",
        "bytes/s",
        "of one array, as printed for it",
    ),
    "domain_bisection": Term(
        "Bisection bandwidth of that network, one-way",
        "bytes/s",
        "between its halves, as printed for it",
    ),
    "power": Term("Power", "W", "TDP or board power; a measured maximum says so"),
}


def term(name: str, vocabulary: Mapping[str, Term] = VOCABULARY) -> Term:
    """The vocabulary's entry for a fact such as ``"hbm_bytes"`` or ``"flops.int8"``.

    Raises:
        AttributeError: no fact has this name.

    >>> term("flops.int8").words, term("flops.int8").unit, term("hbm_bytes").unit
    ('int8 peak', 'OPs/s', 'capacity')
    """
    if not isinstance(name, str):
        raise AttributeError(
            f"no fact is called {short_repr(name)}: a name is a string"
        )
    kind, _, precision = name.partition(".")
    by_precision = kind in vocabulary and "{precision}" in vocabulary[kind].words
    known = not by_precision or precision in PRECISION_BYTES
    if kind not in vocabulary or bool(precision) != by_precision or not known:
        raise AttributeError(
            f"no fact is called {short_repr(name)}: see facts.VOCABULARY"
        )
    words, unit, meaning = vocabulary[kind]
    if by_precision:
        words = words.replace("{precision}", precision)
        unit = "OPs/s" if precision.startswith("int") else unit
    return Term(words, unit, meaning)
