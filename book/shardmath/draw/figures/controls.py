"""What a figure with controls is made of: its controls, its settings, its drawing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...base.units import pluralize

IN_ROW = 3  # controls that stand under a picture, unless a figure names its own


@dataclass(frozen=True)
class Choice:
    """One of `options`. `find` may turn another spelling into an option.

    A choice that names the reader's `machine` is remembered by the pages.
    """

    name: str
    label: str
    options: tuple[str, ...]
    default: str
    find: Callable[[str], str] | None = None
    machine: bool = False

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
    """Whole numbers from `low` to `high`, by doubling or, with `step`, by adding.

    A doubling may be made in `parts`, equal ones, as far as they are whole. With
    `play`, the stops are steps of a sequence: the host plays them one by one, up to the
    `last` of the drawing. `printed` says a stop in words of its own.
    """

    name: str
    label: str
    unit: str
    low: int
    high: int
    default: int
    step: int | None = None
    play: bool = False
    printed: Callable[[int], str] | None = None
    parts: int = 1

    @property
    def stops(self) -> tuple[int, ...]:
        """Every value the slider can take.

        >>> Slider("B", "B", "tokens", 1, 8, 2).stops
        (1, 2, 4, 8)
        >>> Slider("B", "B", "tokens", 1, 16, 2, parts=4).stops
        (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
        """
        if self.step:
            return tuple(range(self.low, self.high + 1, self.step))
        doublings = (self.high // self.low).bit_length()
        starts = [self.low << n for n in range(doublings)]
        found = [
            start + start * part // self.parts
            for start in starts
            for part in range(self.parts)
            if start * part % self.parts == 0
        ]
        return tuple(stop for stop in found if stop <= self.high)

    def text(self, stop: int) -> str:
        """How a stop is printed.

        >>> Slider("B", "B", "tokens", 1, 2048, 2).text(2048)
        '2,048 tokens'
        """
        return self.printed(stop) if self.printed else pluralize(f"{stop:,}", self.unit)

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
    heading, or empty; `data` the unrounded numbers, ready for JSON. `last` is the last
    step of a sequence at these settings, to which the host holds a slider that plays.

    Elements of `svg` with the same `data-key` in two drawings are one thing that moved.
    One with `data-drag`, the name of a slider, can be dragged along the places of its
    stops, `data-drag-at`: each "x", or "x,y" where they lie in the plane.

    `idle` says of controls that change nothing at these settings why they do not: the
    host switches them off. `used` are settings that were drawn in place of those asked
    for, where these do not go together: the host moves the controls there.
    """

    svg: str
    summary: str
    readout: tuple[tuple[str, ...], ...]
    data: dict[str, object]
    last: int | None = None
    idle: Mapping[str, str] = field(default_factory=dict)
    used: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A named figure: its controls, and the function that draws a setting of them.

    `first` is the control that a reader moves first: the pages carry its answers, and
    `carries` names others whose values they carry with each of these.
    `presets` are settings worth a look, by name; controls that one leaves out stay.
    `row` names the controls that stand right under the picture, see `in_row`.
    """

    name: str
    title: str
    controls: tuple[Choice | Slider, ...]
    paint: Callable[..., Drawing]
    first: str
    presets: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)
    carries: tuple[str, ...] = ()
    row: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.settings()
        for name in (self.first, *self.carries, *self.row):
            self.control(name)
        for name in self._leading:
            if self.row and name not in self.row:
                raise ValueError(
                    f"row = {self.row!r}: must have {name!r}, "
                    "which a reader moves first"
                )
        for name, preset in self.presets.items():
            try:
                self.settings(**preset)
            except ValueError as error:
                raise ValueError(f"preset {name!r}: {error}") from None

    @property
    def plays(self) -> Slider | None:
        """The slider whose stops are steps of a sequence, if there is one."""
        found = (c for c in self.controls if isinstance(c, Slider) and c.play)
        return next(found, None)

    @property
    def _leading(self) -> tuple[str, ...]:
        """The control that is moved first, and the one that plays."""
        names = [self.first, *([self.plays.name] if self.plays else [])]
        return tuple(dict.fromkeys(names))

    @property
    def in_row(self) -> tuple[Choice | Slider, ...]:
        """The controls right under the picture; a host keeps the others closed.

        Those that `row` names. Without it, the control that is moved first, the one
        that plays, and further ones in their order: three in all.
        """
        names = self.row
        if not names:
            every = (*self._leading, *(control.name for control in self.controls))
            names = tuple(dict.fromkeys(every))[:IN_ROW]
        return tuple(self.control(name) for name in names)

    def control(self, name: str) -> Choice | Slider:
        """The control called `name`."""
        known = {control.name: control for control in self.controls}
        if name not in known:
            raise ValueError(
                f"figure {self.name!r} has no control {name!r}; "
                f"it has {', '.join(known)}"
            )
        return known[name]

    def settings(self, **params) -> dict[str, str | int]:
        """Every control's value: `params`, checked, and the defaults for the rest."""
        for name in params:
            self.control(name)
        return {
            control.name: control.check(params.get(control.name, control.default))
            for control in self.controls
        }

    def draw(self, **params) -> Drawing:
        """The drawing of one setting; ValueError for what no control can say."""
        drawing = self.paint(**self.settings(**params))
        for name in drawing.idle:
            self.control(name)
        self.settings(**drawing.used)
        return drawing
