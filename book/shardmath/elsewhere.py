"""Notebooks on a machine that has JAX, NumPy and Matplotlib but not this book."""

LACKING = ("anywidget", "filelock", "flatbuffers", "platformdirs")


def setup_cell(address: str) -> str:
    """The cell that a reader runs first there; no notebook of the book holds it.

    Args:
        address: where pip finds this repository: `git+https://…`, an archive, a folder.

    >>> print(setup_cell("git+https://example.org/book"))
    # Once in a new session: this book's package, and what it needs beside JAX.
    %pip install --quiet --no-deps git+https://example.org/book
    %pip install --quiet anywidget filelock flatbuffers platformdirs
    """
    return (
        "# Once in a new session: this book's package, and what it needs beside JAX.\n"
        f"%pip install --quiet --no-deps {address}\n"
        f"%pip install --quiet {' '.join(LACKING)}"
    )
