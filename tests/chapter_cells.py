"""The code cells of a chapter, run in this process as far as they need no JAX."""

import ast
import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

CHAPTERS = sorted((Path(__file__).parents[1] / "chapters").glob("*.ipynb"))
APART = {"jax", "jnp", "programs", "compilers", "compile_for"}  # these need JAX


def code_cells(path: Path) -> dict[int, str]:
    """The code cells of a notebook by their place in it."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return {
        place: "".join(cell["source"])
        for place, cell in enumerate(cells)
        if cell["cell_type"] == "code"
    }


def with_chip(source: str, name: str) -> str:
    """A set-up cell in which the one chip that it names is another.

    >>> with_chip("v5e = chips.TPU_V5E", "H100")
    'v5e = chips.H100'
    """
    return re.sub(r"\bchips\.(?!ALL\b)[A-Z][A-Z0-9_]+\b", f"chips.{name}", source)


def chips_named(source: str) -> list[str]:
    """The records of chips that a cell names.

    >>> chips_named("one = chips.H100; many = chips.ALL")
    ['H100']
    """
    return re.findall(r"\bchips\.(?!ALL\b)([A-Z][A-Z0-9_]+)\b", source)


def runnable(cells: dict[int, str]) -> Iterator[tuple[int, ast.Module]]:
    """Each cell's statements that need no JAX, nor anything made with it."""
    tainted = set(APART)
    for place, source in cells.items():
        kept = []
        for statement in ast.parse(source).body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                away = [a for a in statement.names if _needs_jax(statement, a)]
                tainted |= {alias.asname or alias.name for alias in away}
                statement.names = [a for a in statement.names if a not in away]
                kept += [statement] if statement.names else []
            elif _names(statement, ast.Load) & tainted:
                tainted |= _names(statement, ast.Store)
            else:
                tainted -= _names(statement, ast.Store)
                kept.append(statement)
        yield place, ast.Module(kept, [])


def run(cells: dict[int, str]) -> dict[int, Exception]:
    """The cells run in order, in one namespace; the error of each that has one."""
    names, errors = {"__name__": "__main__"}, {}
    for place, module in runnable(cells):
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                *body, last = module.body or [None]
                exec(compile(ast.Module(body, []), f"cell {place}", "exec"), names)
                if isinstance(last, ast.Expr):
                    code = compile(ast.Expression(last.value), f"cell {place}", "eval")
                    str(eval(code, names))
                elif last is not None:
                    exec(
                        compile(ast.Module([last], []), f"cell {place}", "exec"), names
                    )
            except Exception as error:
                errors[place] = error
    return errors


def _names(node: ast.AST, kind: type[ast.expr_context]) -> set[str]:
    """Names that a statement reads or sets, but for those of its own inner scopes."""
    inner = set()
    for part in ast.walk(node):
        if isinstance(part, ast.arg):
            inner.add(part.arg)
        elif isinstance(part, ast.comprehension):
            inner |= {n.id for n in ast.walk(part.target) if isinstance(n, ast.Name)}
    found = {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, kind)
    }
    if kind is ast.Store and isinstance(node, ast.FunctionDef | ast.ClassDef):
        found.add(node.name)
    return found - inner


def _needs_jax(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    path = f"{getattr(statement, 'module', None) or ''}.{alias.name}".split(".")
    return bool(APART & set(path))
