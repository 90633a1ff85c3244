"""Setting up a notebook on a machine that has Jupyter and JAX, but not this book."""

LACKING = (  # names on PyPI
    "anywidget",
    "cloudpickle",
    "filelock",
    "flatbuffers",
    "grain",
    "matplotlib",
    "orbax-checkpoint",
    "platformdirs",
)


def setup_cell(address: str) -> str:
    """The setup cell that a reader puts in front of a notebook on such a machine.

    Args:
        address: where pip finds this repository: `git+https://…`, an archive, a folder.

    Jupyter loads widgets when a page opens, so a page that was opened earlier cannot
    show them.

    >>> print(setup_cell("git+https://example.org/book"))  # doctest: +ELLIPSIS
    # Once in a new session: this book's package, and what it needs beside JAX.
    from importlib.util import find_spec
    <BLANKLINE>
    had_widgets = find_spec("anywidget") is not None
    %pip install --quiet --no-deps git+https://example.org/book
    %pip install --quiet anywidget cloudpickle ... orbax-checkpoint platformdirs
    if not had_widgets:
        print("For live figures that move: reload this page, then run all cells again.")
    """
    return f"""\
# Once in a new session: this book's package, and what it needs beside JAX.
from importlib.util import find_spec

had_widgets = find_spec("anywidget") is not None
%pip install --quiet --no-deps {address}
%pip install --quiet {" ".join(LACKING)}
if not had_widgets:
    print("For live figures that move: reload this page, then run all cells again.")"""
