"""Facts: one value, where it was read, and what other sources print instead."""

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Source:
    """Where a value was read, and how close to the maker of the chip that is.

    `kind` is "vendor" (its documents), "vendor-code" (its published code), "paper",
    "secondary" (somebody who cites or measured it) or "measured" (by the reader).
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
    """One value in base units, its source, and what other sources print instead."""

    value: float
    source: Source
    note: str = ""
    disagrees: tuple[tuple[float, Source], ...] = ()

    def __repr__(self) -> str:
        parts = [f"{self.value:.6g}", self.note, f"source: {self.source}"]
        parts += [f"{source.key} says {v:.6g}" for v, source in self.disagrees]
        return "; ".join(part for part in parts if part)
