"""The questions of every chapter: what is asked, what is right, what goes wrong."""

from .registry import chapter, chapters, find, heading, questions, records

__all__ = ["chapter", "chapters", "find", "heading", "questions", "records"]
