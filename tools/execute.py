"""Execute notebooks in place and normalise them, so a diff shows what changed.

    python tools/execute.py chapters/01_rooflines.ipynb … [--measure]

A new kernel computes the outputs, cells are numbered 1, 2, 3 …, metadata that editors
leave behind is dropped, numbered formulas get the anchors that Jupyter needs, and code,
captions and guesses get the form that JupyterLab needs (form.py). Running it twice
gives the same bytes. Cells tagged `nbval-ignore-output` (measurements) keep their
stored outputs as long as the source of none of them changes, unless --measure renews
them. They are renewed together, because a figure from one run may contradict a table
from another. A notebook with a claim that does not hold (`shardmath.base.claims`) is
not stored.
"""

import argparse
import hashlib
import os
import re
import sys
from pathlib import Path

import nbformat
from form import formed, untitled
from nbclient import NotebookClient

from shardmath.base.claims import FAILS

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "PYTHONHASHSEED": "0",
    "SHARDMATH_PROGRESS": "",  # in memory, so the user's progress file is not changed
    "SHARDMATH_STATIC": "1",
}
NOISY = "nbval-ignore-output"
KEPT_METADATA = ("tags", "mystnb", "shardmath", "raises-exception")

NUMBERED = re.compile(
    r"""(?msx) ^(?: <a\ id="eq-[^"]*"></a>\n\n )?
    ( \$\$ (?:(?!\$\$).)* \\tag\{([\d.]+)\} (?:(?!\$\$).)* \$\$ )"""
)


def source_digest(cell) -> str:
    title = cell.metadata.get("shardmath", {}).get("fold")
    return hashlib.sha256(untitled(cell.source, title).encode()).hexdigest()[:12]


def unchanged(cell) -> bool:
    """Whether a measurement's stored output comes from its current source."""
    return cell.metadata.get("shardmath", {}).get("measured") == source_digest(cell)


def execute(notebook, folder: Path):
    """A copy of `notebook` with the outputs of a fresh run in `folder`."""
    fresh = nbformat.from_dict(notebook)
    NotebookClient(
        fresh,
        timeout=300,
        kernel_name="python3",
        extra_arguments=["--log-level=ERROR"],  # or it warns about TCP, even if local
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return fresh


def anchored(source: str) -> str:
    """Markdown with anchors for numbered formulas, for links such as
    ``[(1.2)](#eq-1.2)``. The site adds its own anchors and drops these."""
    return NUMBERED.sub(r'<a id="eq-\2"></a>\n\n\1', source)


def normalise(fresh, stored, measure: bool = False):
    """`fresh` with stable numbering and metadata, and with measurements of `stored`."""
    old = {cell.id: cell for cell in stored.cells}
    noisy = [cell for cell in fresh.cells if NOISY in cell.metadata.get("tags", [])]
    keep = not measure and all(map(unchanged, noisy))
    count = 0
    for cell in fresh.cells:
        kept = {k: v for k, v in cell.metadata.items() if k in KEPT_METADATA}
        cell.metadata = nbformat.from_dict(kept)
        if cell.cell_type == "markdown":
            cell.source = anchored(cell.source)
        if cell.cell_type != "code":
            continue
        count += 1
        if NOISY in cell.metadata.get("tags", []):
            if keep:
                cell.outputs = old[cell.id].outputs
            cell.metadata.setdefault("shardmath", {})["measured"] = source_digest(cell)
        cell.execution_count = count
        for output in cell.outputs:
            if "execution_count" in output:
                output["execution_count"] = count
            if output.output_type == "error":
                output["traceback"] = [f"{output.ename}: {output.evalue}"]
    kept = {k: v for k, v in stored.metadata.items() if k == "description"}
    fresh.metadata = nbformat.from_dict(
        kept | {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    )
    return fresh


def shown(cell) -> str:
    """All text output of a code cell."""
    texts = (o.get("text") or o.get("data", {}).get("text/plain") for o in cell.outputs)
    return "\n".join(filter(None, texts))


def broken(notebook) -> list[str]:
    """The claims that do not hold, each with its cell."""
    return [
        f"cell {cell.id}: {line}"
        for cell in notebook.cells
        if cell.cell_type == "code"
        for line in shown(cell).splitlines()
        if line.startswith(FAILS)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--measure", action="store_true", help="renew measurements too")
    args = parser.parse_args()
    os.environ |= ENVIRONMENT
    failed = 0
    for path in args.notebooks:
        stored = nbformat.read(path, as_version=4)
        fresh = normalise(execute(stored, path.parent), stored, args.measure)
        if path.parent.name != "exercises":  # readers edit those, so nothing folds
            fresh.cells = formed(fresh.cells, path.stem)
        if claims := broken(fresh):
            failed = 1
            print(f"{path}: not stored", *claims, sep="\n  ", file=sys.stderr)
            continue
        before, after = path.read_text(), nbformat.writes(fresh).rstrip("\n") + "\n"
        path.write_text(after)
        print(f"{path}: {'unchanged' if before == after else 'rewritten'}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
