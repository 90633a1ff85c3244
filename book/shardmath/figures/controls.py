"""What a figure with controls is made of: its controls, its settings, its drawing."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """One of `options`. `find` may turn another spelling into an option."""

    name: str
    label: str
    options: tuple[str, ...]
    default: str
    find: Callable[[str], str] | None = None

    def check(self, value: str) -> str:
        """The option that `value` means, or a ValueError that lists them."""
        if value in self.options:
            return value
        found = self.find(value) if self.find else None
        if found not in self.options:
            raise ValueError(
                f"{self.name} = {value!r}: must be one of {', '.join(self.options)}"
            )
        return found


@dataclass(frozen=True)
class Slider:
    """Whole numbers from `low` to `high`, by doubling or, with `step`, by adding."""

    name: str
    label: str
    unit: str
    low: int
    high: int
    default: int
    step: int | None = None

    @property
    def stops(self) -> tuple[int, ...]:
        """Every value the slider can take.

        >>> Slider("B", "B", "tokens", 1, 8, 2).stops
        (1, 2, 4, 8)
        """
        if self.step:
            return tuple(range(self.low, self.high + 1, self.step))
        doublings = (self.high // self.low).bit_length()
        return tuple(self.low << n for n in range(doublings))

    def check(self, value: int) -> int:
        """`value` as one of the stops, or a ValueError that names the nearest."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and value in self.stops:
            return int(value)
        raise ValueError(
            f"{self.name} = {value!r}: must be one of the slider's stops, "
            f"{', '.join(map(str, self.stops))}"
        )


@dataclass(frozen=True)
class Drawing:
    """What one setting gives.

    `summary` is the result in a sentence or two; `readout` a table, its first row the
    heading, or empty; `data` the unrounded numbers, ready for JSON.
    """

    svg: str
    summary: str
    readout: tuple[tuple[str, ...], ...]
    data: dict[str, object]


@dataclass(frozen=True)
class Figure:
    """A named figure: its controls, and the function that draws a setting of them."""

    name: str
    title: str
    controls: tuple[Choice | Slider, ...]
    paint: Callable[..., Drawing]

    def settings(self, **params) -> dict[str, str | int]:
        """Every control's value: `params`, checked, and the defaults for the rest."""
        known = {control.name: control for control in self.controls}
        for name in params:
            if name not in known:
                raise ValueError(
                    f"figure {self.name!r} has no control {name!r}; "
                    f"it has {', '.join(known)}"
                )
        return {n: c.check(params.get(n, c.default)) for n, c in known.items()}

    def draw(self, **params) -> Drawing:
        """The drawing of one setting; ValueError for what no control can say."""
        return self.paint(**self.settings(**params))
