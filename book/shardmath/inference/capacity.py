"""How many sequences a server holds at once, in the memory that weights leave."""

import math
from dataclasses import dataclass

from ..base.units import positive, show
from ..hardware.chips import Chip
from ..transformer import Model
from .derivation import Amounts, amounts
from .setting import Formats, Layout

RESERVE = 0.1  # vLLM's default takes 90 % of the memory, and others take about as much
PAGE = 16  # tokens of a page, vLLM's default
LARGEST = 64  # chips that the search for a layout tries


@dataclass(frozen=True)
class Capacity:
    """Bytes on one chip of a server, and the sequences that they allow.

    Args:
        memory: of the chip.
        reserve: the share of it that the engine keeps from weights and caches: the
            context of the process, activations, graphs, buffers of collectives.
        weights: bytes of weights, with the embedding.
        cache: bytes that a token takes on its chip: in layers that see all tokens, and
            in those that see a window.
        state: bytes that a sequence takes, however long it is.
        window: tokens that local layers see.
        groups: of chips, each with caches of its own (data-parallel attention).
        chip, layout: in words, for what is said where it does not fit.
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
        """Bytes for caches; below zero where the weights do not fit."""
        return self.usable - self.weights

    @property
    def fits(self) -> bool:
        return self.free > 0

    def sequence(self, length: float, page: int = PAGE) -> float:
        """Bytes of one sequence of `length` tokens on its chip, in whole pages."""
        pages = math.ceil(round(length / page, 9)) * page
        local = min(pages, self.window + page) if self.window else 0
        return self.cache[0] * pages + self.cache[1] * local + self.state

    @property
    def tokens(self) -> float:
        """Tokens that all caches hold together, where no window shortens them."""
        return self.groups * max(0.0, self.free) / sum(self.cache)

    def slots(self, length: float, page: int = PAGE) -> int:
        """Sequences of so many tokens that the server holds at once.

        Args:
            length: tokens that a sequence holds in the mean: input + output / 2 where
                pages are taken one by one, input + output where room is reserved to
                the end; see `held`.
            page: tokens of a page.

        Raises:
            ValueError: the weights alone do not fit; says by how much, and the smallest
                layout that does.
        """
        (length,) = positive(length=length)
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
    """Tokens that the cache of a request holds in the mean while it decodes.

    >>> held(1000, 200), held(1000, 200, reserved=True)
    (1100.0, 1200.0)
    """
    return prompt + output / (1 if reserved else 2)


def capacity(
    model: Model,
    chip: Chip,
    layout: Layout,
    formats: Formats,
    one: Amounts | None = None,
    reserve: float = RESERVE,
) -> Capacity:
    """What the chips of a server hold.

    Args:
        model, chip, layout, formats: of the server.
        one: its amounts, where they are known.
        reserve: see `Capacity`.
    """
    one = one or amounts(model, chip, layout, formats)
    found = _capacity(model, chip, layout, formats, one, reserve)
    if found.fits:
        return found
    smallest = smallest_layout(model, chip, formats, reserve)
    words = f"{smallest} on {smallest.chips} chips" if smallest else ""
    return _capacity(model, chip, layout, formats, one, reserve, words)


def _capacity(
    model: Model,
    chip: Chip,
    layout: Layout,
    formats: Formats,
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
    else:  # the stage with the most: an even share of the layers, and one of the tables
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
    """The layout of fewest chips whose weights fit: tensor parallelism inside a node,
    and then a pipeline of nodes; None if none of up to `LARGEST` chips does."""
    domain = int(chip.domain) if "domain" in chip.facts else LARGEST
    count = 1
    while count <= LARGEST:
        tensor = min(count, domain, model.heads)
        layout = Layout(tensor, count // tensor)
        one = amounts(model, chip, layout, formats)
        if _capacity(model, chip, layout, formats, one, reserve).fits:
            return layout
        count *= 2
    return None
