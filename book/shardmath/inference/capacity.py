"""How many sequences a server can hold in the memory that weights leave free."""

import math
from dataclasses import dataclass
from functools import lru_cache

from ..base.records import must_be
from ..base.units import number, positive, positive_int, short_repr, show
from ..hardware.chips import Chip, require_chip
from ..hardware.networks.wiring import not_negative
from ..transformer import Model
from ..transformer.architecture import checked
from .derivation import Amounts, amounts
from .setting import Formats, Layout

RESERVE = 0.1  # vLLM uses 90 % of the memory by default, and others about as much
PAGE = 16  # tokens of a page, vLLM's default
LARGEST = 64  # the most chips that the search for a layout tries


@dataclass(frozen=True)
class Capacity:
    """Bytes on one chip of a server, and the sequences that they allow.

    Args:
        memory: bytes of memory of the chip.
        reserve: the share of the memory that weights and caches may not use. This part
            holds the context of the process, activations, graphs and buffers of
            collectives.
        weights: bytes of weights, with the embedding.
        cache: bytes of cache per token on its chip, in layers that see all tokens and
            in layers that see a window.
        state: bytes per sequence that do not depend on its length.
        window: tokens that local layers see; 0 if there are none.
        groups: groups of chips with separate caches (data-parallel attention).
        chip, layout: chip and layout in words, for error messages.
        smallest: the smallest layout that fits, in words.
    """

    memory: float
    reserve: float
    weights: float
    cache: tuple[float, float]
    state: float
    window: int
    groups: int
    chip: str
    layout: str
    smallest: str = ""

    @property
    def usable(self) -> float:
        """Bytes that weights and caches may take."""
        return self.memory * (1 - self.reserve)

    @property
    def free(self) -> float:
        """Bytes for caches; below zero if the weights do not fit."""
        return self.usable - self.weights

    @property
    def fits(self) -> bool:
        return self.free > 0

    def sequence(self, length: float, page: int = PAGE) -> float:
        """Bytes of a sequence of `length` tokens on its chip, in whole pages."""
        pages = max(math.ceil(round(length / page, 9)), length > 0) * page
        local = min(pages, self.window + page) if self.window else 0
        return self.cache[0] * pages + self.cache[1] * local + self.state

    @property
    def tokens(self) -> float:
        """Tokens that all caches can hold together, if no window shortens them."""
        return self.groups * max(0.0, self.free) / sum(self.cache)

    def slots(self, length: float, page: int = PAGE) -> int:
        """How many sequences of `length` tokens the server can hold at once.

        Args:
            length: mean tokens of a sequence in the cache: input + output / 2 if pages
                are taken one by one, or input + output if they are reserved at the
                start; see `held`.
            page: tokens of a page.

        Raises:
            ValueError: the length or the page is not above zero, or the weights do not
                fit even without a cache. The message names the missing bytes and the
                smallest layout that fits.
        """
        (length,) = positive(length=length)
        (page,) = positive_int(page=page)
        if not self.fits:
            more = f"; the smallest layout that fits: {self.smallest}"
            raise ValueError(
                f"{show(self.weights, 'bytes')} of weights on each {self.chip} "
                f"({self.layout}) are {show(-self.free, 'bytes')} more than the "
                f"{show(self.usable, 'bytes')} that the engine may use"
                f"{more if self.smallest else ''}"
            )
        return self.groups * int(self.free // self.sequence(length, page))


def held(prompt: float, output: float, reserved: bool = False) -> float:
    """The mean number of tokens that a request has in the cache while it decodes.

    With `reserved`, the pages of the whole answer are taken at the start.

    Raises:
        ValueError: a number of tokens that is negative or not finite.

    >>> held(1000, 200), held(1000, 200, reserved=True)
    (1100.0, 1200.0)
    """
    prompt, output = not_negative("prompt", prompt), not_negative("output", output)
    return prompt + output / (1 if reserved else 2)


def share_kept(reserve: float) -> float:
    """The share of memory that an engine keeps; raise unless it is from 0 to below 1.

    >>> share_kept(1.5)
    Traceback (most recent call last):
    ValueError: reserve = 1.5: must be from 0 to below 1
    """
    if not 0 <= (found := number("reserve", reserve)) < 1:
        raise ValueError(f"reserve = {short_repr(reserve)}: must be from 0 to below 1")
    return found


def capacity(
    model: Model,
    chip: Chip,
    layout: Layout,
    formats: Formats,
    one: Amounts | None = None,
    reserve: float = RESERVE,
) -> Capacity:
    """The bytes on each chip of a server, and its room for sequences.

    Args:
        model, chip, layout, formats: model, chip, layout and formats of the server.
        one: the amounts of one chip; derived if not given.
        reserve: as in `Capacity`.

    Raises:
        ValueError: an argument of the wrong type, or an invalid `reserve`.

    >>> from shardmath.hardware.chips import H100
    >>> from shardmath.transformer import LLAMA_3_70B
    >>> found = capacity(LLAMA_3_70B, H100, Layout(8), Formats())
    >>> f"{found.weights / 1e9:.1f} GB of weights, room for {found.tokens:,.0f} tokens"
    '17.6 GB of weights, room for 1,448,502 tokens'
    """
    checked(model)
    require_chip(chip)
    must_be(Layout, layout=layout)
    must_be(Formats, formats=formats)
    one = amounts(model, chip, layout, formats) if one is None else one
    must_be(Amounts, one=one)
    reserve = share_kept(reserve)
    found = _capacity(model, chip, layout, one, reserve)
    if found.fits:
        return found
    smallest = smallest_layout(model, chip, formats, reserve)
    words = f"{smallest} on {smallest.chips} chips" if smallest else ""
    return _capacity(model, chip, layout, one, reserve, words)


def _capacity(
    model: Model,
    chip: Chip,
    layout: Layout,
    one: Amounts,
    reserve: float,
    smallest: str = "",
) -> Capacity:
    table = 2.0 * model.vocab * model.d_model / layout.tensor
    looked_up = 0.0 if model.tied else table
    head = sum(p.nbytes for p in one.products if p.kind == "head")
    stages = layout.pipeline
    if stages == 1:
        weights = one.weights + looked_up
    else:  # the stage with the most has an even share of the layers and one table
        weights = (one.weights - head) / stages + max(head, looked_up)
    return Capacity(
        chip.memory_bytes,
        reserve,
        weights,
        tuple(nbytes / stages for nbytes in one.cache),
        one.state / stages,
        model.window,
        layout.data,
        chip.name,
        str(layout),
        smallest,
    )


def smallest_layout(
    model: Model, chip: Chip, formats: Formats, reserve: float = RESERVE
) -> Layout | None:
    """The layout with the fewest chips on which the weights fit: tensor parallelism
    inside a node, and then a pipeline of nodes. None if no layout of up to `LARGEST`
    chips fits.

    Raises:
        ValueError: an argument of the wrong type, or an invalid `reserve`.

    >>> from shardmath.hardware.chips import H100
    >>> from shardmath.transformer import LLAMA_3_405B
    >>> for weights in ("bf16", "fp8"):
    ...     print(smallest_layout(LLAMA_3_405B, H100, Formats(weights)))
    tensor 8, pipeline 2
    tensor 8
    """
    must_be(Formats, formats=formats)
    found = checked(model), require_chip(chip), formats, share_kept(reserve)
    return _smallest_layout(*found)


@lru_cache(maxsize=256)
def _smallest_layout(
    model: Model, chip: Chip, formats: Formats, reserve: float
) -> Layout | None:
    domain = int(chip.domain) if "domain" in chip.facts else LARGEST
    count = 1
    while count <= LARGEST:
        tensor = min(count, domain, model.heads)
        layout = Layout(tensor, count // tensor)
        one = amounts(model, chip, layout, formats)
        if _capacity(model, chip, layout, one, reserve).fits:
            return layout
        count *= 2
    return None
