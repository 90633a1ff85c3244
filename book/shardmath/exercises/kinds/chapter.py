"""What the exercises of a chapter say before their first question."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """The head of a chapter's exercise notebook; the questions are counted for it.

    Args:
        title: the chapter's.
        topics: what the questions are about, for the page's description.
        intro: Markdown that goes on after "Thirteen questions on chapter 01, ".
        setup: the first code cell, with all imports of the notebook.
    """

    title: str
    topics: str
    intro: str
    setup: str
