"""Find the layout with which a machine serves a model best at a given rate."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ..base.garbage import uncollected
from ..base.records import must_be
from ..base.units import positive, positive_int, show
from ..hardware.networks import Network, network
from ..inference import Formats, Layout
from ..inference.capacity import share_kept
from ..transformer import Model
from ..transformer import model as found_model
from .answer import TARGET, LayoutAnswer
from .copies import across_nodes, deployed, layouts
from .result import LatencyTarget

LEFT_OUT = (
    "The lengths of all prompts and answers are those given, without any spread.",
    "Prompts share no prefix, and no draft model guesses tokens.",
    "Requests are spread evenly over copies, and tokens reach the client at once.",
)


@dataclass(frozen=True)
class ServingPlan:
    """The layouts of a machine for a model, the best first.

    Args:
        model: the model.
        machine: the network of all chips.
        formats: formats of weights, matmuls and cache.
        ranking: layouts that fit and keep up with the rate, ordered by the largest rate
            that meets the target.
        refused: the layouts that do not fit, each with the reason.
        asked: whether the layout was given, so there is no choice.
    """

    model: Model
    machine: Network
    formats: Formats
    ranking: tuple[LayoutAnswer, ...]
    refused: tuple[tuple[str, str], ...] = ()
    asked: bool = False

    @property
    def best(self) -> LayoutAnswer:
        """The layout that meets the target at the largest rate."""
        return self.ranking[0]

    @cached_property
    def why(self) -> str:
        """Why the best layout is better than the second best, in a few sentences."""
        if not self.best.most:
            return f"No layout that fits keeps the target. {_misses(self.best)}"
        if len(self.ranking) < 2:
            return "" if self.asked else "No other layout fits and keeps up."
        best, second = self.ranking[:2]
        share = second.most / best.most
        words = (
            f"The second best is {second.deployment.words}, which keeps the target up "
            f"to {second.most:.3g} requests/s"
        )
        words += ", as many." if share > 0.995 else f", {1 - share:.0%} fewer."
        found = best.band("tpot")
        if found and share > 1 / found[1]:
            words += " The difference is smaller than the error of the predictions."
        return f"{words} {_compared(best, second)}"


def _misses(one: LayoutAnswer) -> str:
    alone = one.played(one.capacity / one.deployment.copies / 1000)
    return (
        f"A request alone already has a TTFT of {show(alone.ttft(50), 's')} and a TPOT "
        f"of {show(alone.tpot(50), 's')} with {one.deployment.words}."
    )


def _compared(best: LayoutAnswer, second: LayoutAnswer) -> str:
    """The largest parts of a step of both layouts, and the tokens in their caches."""
    return (
        f"With {best.deployment.words}, a step goes to {best.goes_to}, and with "
        f"{second.deployment.words} to {second.goes_to}. The caches hold "
        f"{best.deployment.tokens:,} tokens with the former and "
        f"{second.deployment.tokens:,} with the latter."
    )


def serve(
    model: str | Model,
    machine: str | Network,
    rate: float,
    input: int,
    output: int,
    *,
    weights: str = "bf16",
    cache: str | None = None,
    activations: str | None = None,
    tensor: int | None = None,
    data: int = 1,
    expert: int = 1,
    pipeline: int = 1,
    target: LatencyTarget = TARGET,
    reserve: float | None = None,
    seed: int = 0,
) -> ServingPlan:
    """The layouts in which a machine can serve a model at a given rate of requests.

    Args:
        model: a model, or a name for `transformer.model`.
        machine: a network, or a name for `networks.network`.
        rate: requests per second to the whole machine.
        input, output: tokens of each prompt and answer.
        weights, cache, activations: see `inference.Formats`.
        tensor, data, expert, pipeline: see `inference.Layout`. Copies of this layout
            fill the machine and share the requests. If none of the four is given,
            several layouts are compared: those of `copies.layouts` or, if none of them
            fits, those of `copies.across_nodes`.
        target: the latency target. Layouts are ranked by the largest rate that meets
            it.
        reserve: the share of memory that engines keep, from 0 to below 1;
            `inference.RESERVE` if None.
        seed: seed of the arrivals.

    Raises:
        ValueError: a model that does not fit, with the missing bytes and the smallest
            layout that fits; a rate that is not below the capacity, which the message
            states; answers of a single token, which have no time per output token; or
            an argument that cannot be read.

    >>> found = serve("llama3-8b", "h100:1", rate=4, input=1000, output=200, tensor=1)
    >>> answer = found.best
    >>> answer.tpot_bound < answer.result.tpot(50) < 0.05
    True
    """
    one = model if isinstance(model, Model) else found_model(model)
    on = network(machine)
    (rate,) = positive(rate=rate)
    input, output = positive_int(input=input, output=output)
    if output == 1:
        raise ValueError(
            "output = 1: must be at least 2 tokens, because the time per output token "
            "is counted from the first token on"
        )
    if reserve is not None:
        share_kept(reserve)
    must_be(LatencyTarget, target=target)
    layout = Layout(1 if tensor is None else tensor, pipeline, expert, data)
    formats = Formats(weights, activations, cache)
    given = tensor is not None or layout.chips > 1
    choices: list[Iterable[Layout]] = [[layout]]
    if not given:
        choices = [layouts(one, on), across_nodes(one, on)]
    answers, refused = [], {}
    for tried in choices:
        for layout in tried if not answers else ():
            try:
                deployment = deployed(one, on, layout, formats, reserve)
                deployment.engine(input, output)
            except ValueError as error:
                refused[str(layout)] = str(error)
            else:
                answers.append(
                    LayoutAnswer(deployment, rate, input, output, target, seed)
                )
    if not answers:
        last = list(refused.values())[-1]
        if not given:
            last += f"; a layout must divide the {on.chips} chips of {on.name}"
        raise ValueError(last)
    with uncollected():
        able = [answer for answer in answers if answer.capacity > rate]
        if not able:
            # No layout keeps up, so this raises and states the largest capacity.
            _ = max(answers, key=lambda answer: answer.capacity).result
        if len(able) > 1:  # each takes several simulations
            able.sort(key=lambda answer: -answer.most)
    return ServingPlan(one, on, formats, tuple(able), tuple(refused.items()), given)
