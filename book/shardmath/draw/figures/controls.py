"""The parts of a figure with controls: its controls, its settings and its drawing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...base.units import pluralize, short_repr

IN_ROW = 3  # controls right below a picture, unless the figure names them in `row`


@dataclass(frozen=True)
class Choice:
    """A choice of one of `options`. `find` may turn another spelling into an option.

    If `machine` is True, this is the choice of the reader's machine, and pages remember
    it.
    """

    name: str
    label: str
    options: tuple[str, ...]
    default: str
    find: Callable[[str], str] | None = None
    machine: bool = False

    def check(self, value: str) -> str:
        """The option that `value` means.

        Raises:
            ValueError: there is no such option. The message lists the options.
        """
        if value in self.options:
            return value
        found = self.find(value) if self.find else None
        if found not in self.options:
            raise ValueError(
                f"{self.name} = {short_repr(value)}: must be one of "
                f"{', '.join(self.options)}"
            )
        return found


@dataclass(frozen=True)
class Slider:
    """Whole numbers from `low` to `high`. Each is twice the one before, or `step` more.

    A doubling may be divided into `parts` equal increments, if these are whole numbers.
    With `play`, the stops are steps of a sequence, which the host plays one by one up
    to the `last` of the drawing. `printed` returns the text of a stop.
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
        """The text of a stop.

        >>> Slider("B", "B", "tokens", 1, 2048, 2).text(2048)
        '2,048 tokens'
        """
        return self.printed(stop) if self.printed else pluralize(f"{stop:,}", self.unit)

    def check(self, value: int) -> int:
        """`value`, if it is one of the stops.

        Raises:
            ValueError: it is not one of them. The message lists the stops.
        """
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and value in self.stops:
            return int(value)
        raise ValueError(
            f"{self.name} = {short_repr(value)}: must be one of the slider's stops, "
            f"{', '.join(map(str, self.stops))}"
        )


@dataclass(frozen=True)
class Drawing:
    """The result of one setting.

    `summary` is the result in a sentence or two. `readout` is a table whose first row
    is the heading, or empty. `data` are the unrounded numbers, ready for JSON. `last`
    is the last step of a sequence at these settings, where the host stops playing.

    Elements of `svg` with the same `data-key` in two drawings are one thing that moves.
    An element whose `data-drag` names a slider can be dragged. Its `data-drag-at` lists
    the places of the slider's stops, each as "x" or, in two dimensions, "x,y".

    `idle` maps controls that have no effect at these settings to the reason, and the
    host disables them. `used` are the settings that were drawn because the chosen ones
    can't be combined, and the host moves the controls to them.
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

    `first` is the control that readers probably move first. Pages store the answers for
    its values, combined with all values of the controls in `carries`. `presets` are
    interesting settings, by name; controls that a preset leaves out keep their values.
    `row` names the controls right below the picture; see `in_row`.

    Raises:
        ValueError: `row` lacks a control that must be in it, or a preset is invalid.
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
                    f"row = {short_repr(self.row)}: must have {short_repr(name)}, "
                    "which readers move first"
                )
        for name, preset in self.presets.items():
            try:
                self.settings(**preset)
            except ValueError as error:
                raise ValueError(f"preset {short_repr(name)}: {error}") from None

    @property
    def plays(self) -> Slider | None:
        """The slider whose stops are steps of a sequence, or None."""
        found = (c for c in self.controls if isinstance(c, Slider) and c.play)
        return next(found, None)

    @property
    def _leading(self) -> tuple[str, ...]:
        """The names of the control that is moved first and of the one that plays."""
        names = [self.first, *([self.plays.name] if self.plays else [])]
        return tuple(dict.fromkeys(names))

    @property
    def in_row(self) -> tuple[Choice | Slider, ...]:
        """The controls right below the picture. A host folds the others.

        They are those named in `row`. If `row` is empty, they are the control that is
        moved first, the one that plays, and others in order, up to three in total.
        """
        names = self.row
        if not names:
            every = (*self._leading, *(control.name for control in self.controls))
            names = tuple(dict.fromkeys(every))[:IN_ROW]
        return tuple(self.control(name) for name in names)

    def control(self, name: str) -> Choice | Slider:
        """The control called `name`.

        Raises:
            ValueError: there is no such control. The message lists the controls.
        """
        known = {control.name: control for control in self.controls}
        if not isinstance(name, str) or name not in known:
            raise ValueError(
                f"figure {self.name!r} has no control {short_repr(name)}; "
                f"it has {', '.join(known)}"
            )
        return known[name]

    def settings(self, **params) -> dict[str, str | int]:
        """The value of every control: that in `params`, if any, or else its default."""
        for name in params:
            self.control(name)
        return {
            control.name: control.check(params.get(control.name, control.default))
            for control in self.controls
        }

    def draw(self, **params) -> Drawing:
        """The drawing of one setting.

        Raises:
            ValueError: a control does not exist or can't have the value.
        """
        drawing = self.paint(**self.settings(**params))
        for name in drawing.idle:
            self.control(name)
        self.settings(**drawing.used)
        return drawing
