"""Read the tables of measurements in this package."""

from importlib.resources import files


def rows(name: str) -> list[list[str]]:
    """The cells of a table of this package, without its comments and head."""
    return _cells(name)[1:]


def named_rows(name: str) -> list[dict[str, str]]:
    """The cells of a table, each under the name of its column."""
    head, *some = _cells(name)
    return [dict(zip(head, row, strict=True)) for row in some]


def _cells(name: str) -> list[list[str]]:
    text = files(__package__).joinpath(name).read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [line.split(",") for line in lines]
