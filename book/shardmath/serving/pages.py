"""A server's memory for KV caches, in pages, with prefixes that sequences share."""

from dataclasses import dataclass
from math import inf


@dataclass
class KeptPrefix:
    """A kept prefix: its pages, how many sequences read it, and its last use."""

    pages: int
    readers: int
    last: float


class PagePool:
    """All pages: free ones, those that sequences hold, and those that keep a prefix.

    A prefix that no sequence reads stays until its pages are needed. The prefix that
    was least recently read is dropped first.

    Args:
        pages: the number of pages; None for no limit.
    """

    def __init__(self, pages: int | None) -> None:
        self.total: float = inf if pages is None else pages
        self.held = 0  # held by sequences, with each prefix in use counted once
        self.prefixes: dict[str, KeptPrefix] = {}
        self.unread = 0  # pages of prefixes that no sequence reads

    @property
    def available(self) -> float:
        """Pages that are free or only keep a prefix that no sequence reads."""
        return self.total - self.held

    def take(self, pages: int) -> bool:
        """Hold more pages if enough are available, and drop unread prefixes for them.

        Returns whether there were enough.
        """
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
        """Free pages that were held."""
        self.held -= pages

    def read(self, name: str) -> int:
        """Let one more sequence read a prefix. Returns its pages, or 0 if not kept."""
        kept = self.prefixes.get(name)
        if kept is None:
            return 0
        if not kept.readers:
            self.unread -= kept.pages
            self.held += kept.pages
        kept.readers += 1
        return kept.pages

    def keep(self, name: str, pages: int, now: float) -> bool:
        """Keep pages of a sequence as a prefix, unless the prefix is kept already."""
        if name in self.prefixes or not pages:
            return False
        self.prefixes[name] = KeptPrefix(pages, 1, now)
        return True

    def leave(self, name: str, now: float) -> None:
        """Let one sequence stop reading a prefix."""
        kept = self.prefixes[name]
        kept.readers -= 1
        kept.last = now
        if not kept.readers:
            self.held -= kept.pages
            self.unread += kept.pages
