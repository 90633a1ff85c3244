"""The memory of a server for KV caches, in pages, and prefixes that several share."""

from dataclasses import dataclass
from math import inf


@dataclass
class KeptPrefix:
    """Pages of a prefix: how many, how many sequences read them, when it was last."""

    pages: int
    readers: int
    last: float


class PagePool:
    """Which pages are free, which sequences hold, and which only keep a prefix.

    A prefix that no sequence reads stays until its pages are needed; the one that was
    read longest ago goes first.

    Args:
        pages: how many there are; None for as many as one wants.
    """

    def __init__(self, pages: int | None) -> None:
        self.total: float = inf if pages is None else pages
        self.held = 0  # by sequences, each prefix in use counted once
        self.prefixes: dict[str, KeptPrefix] = {}
        self.unread = 0  # pages of prefixes that no sequence reads

    @property
    def available(self) -> float:
        """Pages that are free, or would be without the prefixes that nobody reads."""
        return self.total - self.held

    def take(self, pages: int) -> bool:
        """Hold so many more pages, if there are as many; prefixes make room."""
        if pages > self.total - self.held:
            return False
        self.held += pages
        while self.held + self.unread > self.total:
            name = min(
                (name for name, one in self.prefixes.items() if not one.readers),
                key=lambda name: self.prefixes[name].last,
            )
            self.unread -= self.prefixes.pop(name).pages
        return True

    def give(self, pages: int) -> None:
        """Let go of pages."""
        self.held -= pages

    def read(self, name: str) -> int:
        """Pages of a prefix that is kept, which one more sequence reads now; or 0."""
        kept = self.prefixes.get(name)
        if kept is None:
            return 0
        if not kept.readers:
            self.unread -= kept.pages
            self.held += kept.pages
        kept.readers += 1
        return kept.pages

    def keep(self, name: str, pages: int, now: float) -> bool:
        """Make pages that a sequence holds those of a prefix, unless it is kept."""
        if name in self.prefixes or not pages:
            return False
        self.prefixes[name] = KeptPrefix(pages, 1, now)
        return True

    def leave(self, name: str, now: float) -> None:
        """One sequence fewer reads a prefix."""
        kept = self.prefixes[name]
        kept.readers -= 1
        kept.last = now
        if not kept.readers:
            self.held -= kept.pages
            self.unread += kept.pages
