"""The tables that measurements are kept in."""

from importlib.resources import files


def rows(name: str) -> list[list[str]]:
    """The cells of a table of this room, its comments and head left out."""
    text = files(__package__).joinpath(name).read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [line.split(",") for line in lines[1:]]
