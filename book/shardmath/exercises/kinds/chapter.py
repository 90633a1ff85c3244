"""The head of a chapter's exercise notebook, before its first question."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """The head of a chapter's exercise notebook; the question count is added later.

    Args:
        title: the chapter's title.
        topics: what the questions are about, for the page's description.
        intro: Markdown that continues "Thirteen questions on chapter 01, ".
        setup: the first code cell, with all imports of the notebook.
    """

    title: str
    topics: str
    intro: str
    setup: str
