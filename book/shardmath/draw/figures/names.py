"""The figures by name. Each is imported when it is needed."""

from importlib import import_module

from ...base.units import short_repr
from .controls import Figure

NAMES = (
    "roofline",
    "systolic",
    "waves",
    "collective",
    "cases",
    "sharded_matmul",
    "ring",
    "tokens",
    "split",
    "memory",
    "ring_load",
    "experts",
    "pipeline",
    "planner",
    "predictions",
    "lanes",
    "race",
    "mesh",
    "block",
    "links",
    "front",
    "report",
    "calendar",
    "goodput",
    "server",
    "slots",
    "pools",
    "crash",
    "kernel",
    "number_line",
    "serve",
    "short_kernels",
    "fronts",
    "accelerators",
    "trace",
)


def find(name: str) -> Figure:
    """The figure called `name`.

    Raises:
        ValueError: no figure has this name. The message lists all names.

    >>> find("roofline").draw(chip="v5e", B=16).data["chips"][0]["bound"]
    'memory-bound'
    """
    if name not in NAMES:
        known = ", ".join(NAMES)
        raise ValueError(
            f"no live figure is called {short_repr(name)}; there are: {known}"
        )
    return import_module(f".{name}", __package__).FIGURE
