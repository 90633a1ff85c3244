"""A machine that serves a model with one or more copies of a server."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ..base.units import show
from ..hardware.networks import Network, network
from ..hardware.networks.usual import usual
from ..inference import Batch, Formats, Layout, Server, held
from ..transformer import Model
from .engine import Engine

SEQUENCES = 256  # vLLM's default of sequences that decode at once
BUDGET = 2048  # vLLM's default of tokens per step with chunked prefill


@dataclass(frozen=True)
class Deployment:
    """Copies of one server that fill a machine; each takes an equal share of requests.

    Args:
        machine: the network of all chips.
        server: one copy of the model.
        copies: the number of copies.
    """

    machine: Network
    server: Server
    copies: int

    def seconds(self, batch: Batch) -> float:
        """The predicted time of a step of one copy."""
        return self.server.step(batch).seconds

    def engine(self, input: int, output: int) -> Engine:
        """An engine with vLLM's default settings and as many pages as fit.

        Args:
            input, output: tokens of a prompt and of an answer.

        Raises:
            ValueError: the weights do not fit, or no request fits next to them.
        """
        length = input + output
        slots = self.server.slots(held(input, output))
        page = Engine(1).page
        memory = self.server.memory
        per_page = memory.sequence(length, page) / Engine(1).paged(length)
        pages = int(memory.groups * memory.free / per_page)
        if not slots or pages < Engine(1).paged(length):
            raise ValueError(
                f"a request of {length:,} tokens takes "
                f"{show(memory.sequence(length), 'capacity')} on each chip, but "
                f"{self.words} leaves {show(memory.free, 'capacity')} for caches"
            )
        groups = self.server.layout.data * self.server.layout.pipeline
        return Engine(
            min(SEQUENCES * groups, pages),
            pages,
            budget=BUDGET * groups,
            delay=self.server.first_token_delay,
        )

    @property
    def words(self) -> str:
        """Copies and layout in words, such as "2 copies of tensor 4"."""
        one = str(self.server.layout)
        return f"{self.copies} copies of {one}" if self.copies > 1 else one

    @cached_property
    def tokens(self) -> int:
        """Tokens that the caches of all copies can hold together."""
        return int(self.copies * self.server.memory.tokens)


def deployed(
    model: Model, on: Network, layout: Layout, formats: Formats, reserve: float | None
) -> Deployment:
    """As many copies of a layout as the machine has room for.

    Args:
        model, formats: model and formats of every copy.
        on: the machine.
        layout: the layout of one copy.
        reserve: the share of memory that engines keep; `inference.RESERVE` if None.

    Raises:
        ValueError: a layout that does not divide the machine, or does not suit the
            model.
    """
    copies, left = divmod(on.chips, layout.chips)
    if left or not copies:
        raise ValueError(
            f"layout of {layout.chips} chips ({layout}): must divide the {on.chips} "
            f"chips of {on.name}"
        )
    one = on if copies == 1 else network(usual(on.chip, layout.chips))
    given = {} if reserve is None else {"reserve": reserve}
    return Deployment(on, Server(model, one, layout, formats, **given), copies)


def layouts(model: Model, on: Network) -> Iterable[Layout]:
    """The layouts to try; their sizes are powers of two that divide the machine.

    Tensor parallelism stays within a node and splits query heads evenly. Experts are
    spread over all chips of a copy, which may form several groups for attention.
    """
    node = int(on.chip.domain) if "domain" in on.chip.facts else on.chips
    for tensor in _powers(min(on.chips, node)):
        if model.heads % tensor or on.chips % tensor:
            continue
        yield Layout(tensor)
        if model.experts:
            for data in list(_powers(on.chips // tensor))[1:]:
                expert = tensor * data
                if model.experts.count % expert == 0 and on.chips % expert == 0:
                    yield Layout(tensor, data=data, expert=expert)


def across_nodes(model: Model, on: Network) -> Iterable[Layout]:
    """The layouts to try if none of `layouts` fits: a copy takes several nodes.

    They form the stages of a pipeline, or tensor parallelism goes across them.
    """
    node = int(on.chip.domain) if "domain" in on.chip.facts else on.chips
    tensor = max(n for n in _powers(min(node, on.chips)) if model.heads % n == 0)
    for stages in list(_powers(on.chips // tensor))[1:]:
        if on.chips % (tensor * stages):
            continue
        if stages <= model.layers:
            yield Layout(tensor, pipeline=stages)
        if model.heads % (tensor * stages) == 0:
            yield Layout(tensor * stages)


def _powers(most: int) -> Iterable[int]:
    return (2**n for n in range(most.bit_length()))
