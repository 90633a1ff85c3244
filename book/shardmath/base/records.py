"""Records: things with a name and stated facts, and how to find one by its name."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, TypeVar

from .facts import VOCABULARY, Fact, Term, Unpublished, term
from .units import short_repr, shortened, text

Named = TypeVar("Named")  # any record with a `name`


class HasFacts:
    """A thing with a `name` and with `facts`, which are looked up by their names.

    `vocabulary` lists the facts that such a thing can have.
    """

    vocabulary: ClassVar[Mapping[str, Term]] = VOCABULARY
    name: str
    facts: Mapping[str, Fact]

    def fact(self, name: str) -> Fact:
        """The fact called `name`: its value and source, a note, and differing values.

        Raises:
            Unpublished: a ValueError; no source states the fact. The message lists
                those that are stated.
            ValueError: there is no fact of this name; tables do not catch this error.

        >>> from shardmath.hardware.chips import TPU_V5E
        >>> TPU_V5E.fact("hbm_bandwidth").source.key
        'gcp_v5e'
        """
        if isinstance(name, str) and name in self.facts:
            return self.facts[name]
        whose = shortened(self.name)
        known = shortened(", ".join(self.facts), 300)
        try:
            term(name, self.vocabulary)
        except AttributeError:
            wrong = f"{whose}: no fact is called {short_repr(name)}; known: {known}"
            raise ValueError(wrong) from None
        raise Unpublished(f"{whose}: no source states {name!r}; known: {known}")


def kept(of: object, check: Callable[..., list], *names: str) -> None:
    """Replace arguments of a frozen record by what `check` returns for them.

    This keeps Python's numbers, which do not overflow as those of NumPy do.
    """
    found = check(**{name: getattr(of, name) for name in names})
    for name, value in zip(names, found, strict=True):
        object.__setattr__(of, name, value)


def must_be(kind: type, **given: object) -> None:
    """Raise a ValueError, which quotes the value, unless all values are of a kind.

    >>> must_be(Fact, fact=3)
    Traceback (most recent call last):
    ValueError: fact = 3: must be a Fact
    """
    for name, value in given.items():
        if not isinstance(value, kind):
            article = "an" if kind.__name__[0] in "AEIO" else "a"
            wanted = f"must be {article} {kind.__name__}"
            raise ValueError(f"{name} = {short_repr(value)}: {wanted}")


def plain(name: str) -> str:
    """A name in lower case, without spaces and punctuation.

    >>> plain("Llama-3.1 8B")
    'llama318b'
    """
    return re.sub(r"[^a-z0-9]", "", text("name", name).casefold())


def named(
    kind: str,
    name: object,
    by_key: Mapping[str, Named],
    some: str,
    bare: Callable[[str], str] = plain,
) -> Named:
    """The record that `name` means; a unique beginning of its name is enough.

    A beginning that ends inside a number matches nothing: 7 is not short for 70. If 7
    could mean 70 or 72, the message asks which. A single letter or digit matches
    nothing either.

    Args:
        kind: the kind of record, such as "chip", for the message.
        name: as somebody wrote it; anything but a string matches nothing.
        by_key: all records, under each of their names as `bare` returns it.
        some: the end of the message if no name is similar.
        bare: a function that returns the part of a name that matters.

    Raises:
        ValueError: no record has this name, or several begin with it. The message lists
            these, or at most five with similar names.
    """
    asked = bare(name) if isinstance(name, str) else ""
    if asked in by_key:
        return by_key[asked]
    given = short_repr(name)
    keys = [key for key in by_key if asked and key.startswith(asked)]
    begun = _by_name(by_key[key] for key in keys)
    cut = len(asked) < 2 or all(_cuts_a_number(asked, key) for key in keys)
    if len(begun) == 1 and not cut:
        return next(iter(begun.values()))
    one_number = cut and len({key[: len(asked) + 1] for key in keys}) == 1
    if len(begun) > 1 and not one_number:
        raise ValueError(f"{kind} {given} could be {', '.join(begun)}: say which")
    near = keys[:5] or difflib.get_close_matches(asked, by_key, n=5, cutoff=0.6)
    if near:
        nearest = ", ".join(_by_name(by_key[k] for k in near))
        raise ValueError(f"no {kind} is called {given}; nearest: {nearest}")
    raise ValueError(f"no {kind} is called {given} or anything similar; {some}")


def _cuts_a_number(asked: str, key: str) -> bool:
    """Whether `asked` ends in a digit and `key` continues with another one.

    >>> _cuts_a_number("llama37", "llama370b"), _cuts_a_number("llama370", "llama370b")
    (True, False)
    """
    return asked[-1:].isdigit() and key[len(asked) : len(asked) + 1].isdigit()


def _by_name(records: Iterable[Named]) -> dict[str, Named]:
    return {record.name: record for record in records}
