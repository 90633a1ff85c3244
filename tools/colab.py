"""Copies of the notebooks that run anywhere, after their first cell.

    python tools/colab.py ADDRESS

ADDRESS is where pip finds this repository: an archive's address, `git+https://…`, a
folder. The copies lie in `_build/colab`; the first cell of each, which the reader runs,
installs the package from there, and the few others that a machine with Jupyter and JAX
may lack. The notebooks of the book hold no such cell.
"""

import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

from shardmath.base.colab import setup_cell

TO = Path("_build", "colab")


def carried(notebook, address: str):
    """A copy of `notebook` with the cell in front that fetches what it needs."""
    copy = nbformat.from_dict(notebook)
    copy.cells.insert(0, new_code_cell(setup_cell(address), id="install"))
    return copy


def main(address: str) -> None:
    for path in sorted(Path().glob("[ce]*/[0-9][0-9]_*.ipynb")):
        to = TO / path
        to.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(carried(nbformat.read(path, as_version=4), address), to)
        print(to)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].strip() or " " in sys.argv[1]:
        sys.exit(__doc__)
    main(sys.argv[1])
