"""Writes copies of the notebooks that install what they need in their first cell.

    python tools/colab.py ADDRESS

ADDRESS is where pip finds this repository: the address of an archive, `git+https://…`,
or a folder. The copies go to `_build/colab`. In each, the reader runs the first cell,
which installs the package from ADDRESS, and the few others that a machine with Jupyter
and JAX may lack. The book's notebooks have no such cell.
"""

import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell

from shardmath.base.colab import setup_cell

TO = Path("_build", "colab")


def carried(notebook, address: str):
    """A copy of `notebook` that starts with a cell to install what it needs."""
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
