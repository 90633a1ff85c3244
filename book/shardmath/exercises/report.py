"""The reader's score, from the progress file, and text that displays itself."""

from dataclasses import dataclass

from ..base.units import short_repr
from . import answers
from .kinds import Question


@dataclass(frozen=True)
class Text:
    """Text that displays itself, as Markdown if `markdown` is true."""

    text: str
    markdown: bool = False

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        kinds = ("text/plain", *["text/markdown"] * self.markdown)
        return dict.fromkeys(kinds, self.text)


def report(chapter: str = "") -> Text:
    """The score: points for answers that were ever right, and for those right now.

    An answer was "ever right" if any check said so, and it is "right now" if the last
    check in this kernel said so. `make grade` counts only the notebook's current
    answers.

    Args:
        chapter: a chapter's number, such as "01"; by default, all chapters.

    Returns:
        Two sentences and a small table with one row per chapter, as text that displays
        itself.

    Raises:
        ValueError: no chapter with questions has this number. The message lists these
            chapters.
    """
    from . import progress

    store = progress.store()
    entries, note = store.entries()
    standing = store.standing()
    chapters: dict[str, list[Question]] = {}
    for question, record in answers.questions().items():
        chapters.setdefault(question.partition(".")[0], []).append(record)
    if chapter and (not isinstance(chapter, str) or chapter not in chapters):
        known = ", ".join(chapters)
        raise ValueError(
            f"chapter {short_repr(chapter)}: the ones with questions are {known}"
        )
    if chapter:
        chapters = {chapter: chapters[chapter]}
    rows = [
        _Score.of(name, records, entries, standing)
        for name, records in chapters.items()
    ]
    asked = [record for records in chapters.values() for record in records]
    total = _Score.of("all", asked, entries, standing)
    lines = [
        f"Ever right: {total.done} of {len(asked)} questions, {total.points} of "
        f"{total.possible} points; {total.tried} tried, {total.todo} to do.",
        f"In this notebook as it stands: {total.standing} of {total.possible} points, "
        "by the checks run since its kernel started.",
        "",
        f"{'chapter':<8}{'done':>6}{'tried':>7}{'to do':>7}{'ever':>9}{'now':>9}",
        *(row.line() for row in rows),
    ]
    return Text("\n".join([*lines, *([note] if note else [])]))


@dataclass(frozen=True)
class _Score:
    chapter: str
    done: int
    tried: int
    todo: int
    points: int
    standing: int
    possible: int

    @classmethod
    def of(
        cls,
        chapter: str,
        records: list[Question],
        entries: dict,
        standing: frozenset[str],
    ) -> "_Score":
        done = [r for r in records if r.id in entries and entries[r.id].done]
        tried = [r for r in records if r.id in entries and not entries[r.id].done]
        return cls(
            chapter,
            len(done),
            len(tried),
            len(records) - len(done) - len(tried),
            sum(record.points for record in done),
            sum(record.points for record in records if record.id in standing),
            sum(record.points for record in records),
        )

    def line(self) -> str:
        ever, now = (f"{n}/{self.possible}" for n in (self.points, self.standing))
        counts = f"{self.done:>6}{self.tried:>7}{self.todo:>7}"
        return f"{self.chapter:<8}{counts}{ever:>9}{now:>9}"
