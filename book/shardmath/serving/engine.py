"""The settings of a serving engine: how much it may hold, and how it fills a step."""

from dataclasses import dataclass
from math import ceil
from random import Random

from ..base.records import kept
from ..base.units import flags, number, positive_int, short_repr
from ..hardware.networks.wiring import not_negatives


@dataclass(frozen=True)
class Speculation:
    """A draft model guesses tokens, and the model checks all of them in one step.

    Args:
        draft: the number γ of tokens that are guessed in a round.
        acceptance: the probability α that a guess is right if all earlier guesses of
            its round are right. Guesses are independent.
        cost: seconds of one guess as a share of a decode step of the model.

    Raises:
        ValueError: a number of tokens that is not whole and above zero, a probability
            outside 0 to 1, or a negative cost.
    """

    draft: int
    acceptance: float
    cost: float = 0.05

    def __post_init__(self) -> None:
        kept(self, positive_int, "draft")
        kept(self, not_negatives, "cost")
        acceptance = number("acceptance", self.acceptance)
        if not 0 <= acceptance <= 1:
            raise ValueError(
                f"acceptance = {short_repr(self.acceptance)}: must be from 0 to 1"
            )
        object.__setattr__(self, "acceptance", acceptance)

    @property
    def tokens(self) -> float:
        """(1 − α^(γ+1)) / (1 − α): the mean number of tokens from a round.

        >>> round(Speculation(4, 0.8).tokens, 2)
        3.36
        """
        if self.acceptance == 1:
            return self.draft + 1.0
        return (1 - self.acceptance ** (self.draft + 1)) / (1 - self.acceptance)

    def rounds(self, tokens: int, random: Random) -> int:
        """How many rounds it takes to get `tokens` tokens, drawn at random.

        >>> Speculation(4, 1.0).rounds(200, Random(0))
        40
        """
        made = count = 0
        while made < tokens:
            made += 1
            for _ in range(self.draft):
                if random.random() >= self.acceptance:
                    break
                made += 1
            count += 1
        return count


@dataclass(frozen=True)
class Engine:
    """The settings of an engine.

    Args:
        slots: how many sequences at most may be in prefill or decode at once.
        pages: pages of memory for KV caches; None if there are always enough.
        page: tokens whose keys and values a page holds.
        budget: the largest number of tokens in a step. Sequences in decode come first,
            and chunks of prompts fill the rest.
        chunked: whether prompts are cut into chunks and share steps with decode. If
            not, prefill comes first: while prompts wait and have room, a step holds
            only whole prompts, as many as the budget allows but at least one.
        reserve: whether admission reserves the pages of the whole answer. If not, a
            sequence takes a page when it needs one. If none is free, the sequence that
            was admitted last is preempted: it loses its pages, goes back to the front
            of the queue, and its prompt and answer so far are computed again.
        prefix_cache: whether pages of named prefixes are kept and used again.
        speculation: a draft model, or None.
        delay: seconds that the front end needs before the engine may admit a request.
            It delays no other request.

    Raises:
        ValueError: a number that is not whole and above zero, a negative delay, a flag
            that is not True or False, a `speculation` of another type, or a budget that
            leaves no token for prompts when all slots decode.
    """

    slots: int
    pages: int | None = None
    page: int = 16
    budget: int = 2048
    chunked: bool = True
    reserve: bool = False
    prefix_cache: bool = False
    speculation: Speculation | None = None
    delay: float = 0.0

    def __post_init__(self) -> None:
        kept(self, not_negatives, "delay")
        kept(self, positive_int, "slots", "page", "budget")
        if self.pages is not None:
            kept(self, positive_int, "pages")
        kept(self, flags, "chunked", "reserve", "prefix_cache")
        spec = self.speculation
        if not (spec is None or isinstance(spec, Speculation)):
            raise ValueError(
                f"speculation = {short_repr(spec)}: must be a Speculation or None"
            )
        if self.chunked and self.budget <= self.slots * self.verified:
            raise ValueError(
                f"budget = {self.budget} tokens: must be above the "
                f"{self.slots * self.verified} that {self.slots} slots in decode take; "
                "otherwise prompts would never start"
            )

    @property
    def verified(self) -> int:
        """Tokens of a sequence in a decode step: one, plus the guesses."""
        return 1 + (self.speculation.draft if self.speculation else 0)

    def paged(self, tokens: int) -> int:
        """The number of pages for `tokens` tokens.

        >>> Engine(slots=8).paged(1000)
        63
        """
        return ceil(tokens / self.page)
