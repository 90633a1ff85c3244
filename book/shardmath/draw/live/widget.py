"""The live figure in Jupyter, as a widget handled by the kernel. Needs anywidget."""

from importlib.resources import files

import anywidget
import traitlets

from . import StaticFigure, answer, block

_HERE = files(__package__)


class LiveFigure(anywidget.AnyWidget):
    """A `StaticFigure` with controls, whose values are in `settings`."""

    _esm = _HERE.joinpath("live.js").read_text("utf-8")
    _css = _HERE.joinpath("live.css").read_text("utf-8")
    html = traitlets.Unicode().tag(sync=True)

    def __init__(self, still: StaticFigure):
        super().__init__(html=block(still.name, still.settings))
        self.name, self.settings = still.name, still.settings
        self.on_msg(self._reply)

    def _reply(self, _widget, message: dict, _buffers) -> None:
        try:
            result = answer(self.name, message["settings"])
        except ValueError as error:
            self.send({"id": message["id"], "error": str(error)})
            return
        self.settings = message["settings"]
        self.html = block(self.name, self.settings)  # the start of another view
        self.send({"id": message["id"], "result": result})

    def bundle(self) -> dict[str, object]:
        """The current settings, as they are stored in the notebook."""
        return StaticFigure(self.name, self.settings).bundle()

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, **self.bundle()}, metadata
