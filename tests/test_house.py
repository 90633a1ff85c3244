"""The layers of the package: who imports whom, and what a name stands for."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

BOOK = Path(__file__).parents[1] / "book"
PACKAGE = BOOK / "shardmath"

# Each package imports only from itself and from those above it in this list.
LAYERS = [
    "base",
    "hardware",
    "transformer",
    "collectives",
    "sharding",
    "training",
    "inference",
    "serving",
    "planner",
    "measured",
    "referee",
    "draw",
    "exercises",
    "grading",
    "__main__",
]
MOST_PACKAGES = 16

# Pictures are for readers: the cost model, and what judges it, do without them.
MAY_DRAW = {"draw", "exercises", "grading", "__main__"}

# Beside the standard library: what may be imported, and where. "late": in a function.
OUTSIDE = {
    "draw": {"anywidget", "traitlets", "IPython late"},
    "draw.plots": {"matplotlib", "numpy"},
    "referee.compilers": {"jax", "jaxlib", "numpy"},
    "referee.programs": {"jax", "numpy"},
    "referee.processes": {"cloudpickle"},
    "referee.checkpoints": {"jax"},
    "exercises": {
        *("IPython", "filelock", "jinja2", "platformdirs"),
        *("jax late", "numpy late", "flatbuffers late"),
    },
    "grading": {"IPython", "filelock", "jinja2", "platformdirs"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    """The name of a module inside the package; "" for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(path: Path) -> list[str]:
    """The package that a module is in, in parts."""
    return ["shardmath", *path.relative_to(PACKAGE).parts[:-1]]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imports(
    tree: ast.AST, package: list[str], late: bool = False
) -> Iterator[tuple[str, bool]]:
    """Every name that a module of `package` imports, absolute, and whether late.

    An import inside a function is late. What a module takes from another is given as
    the other module's name, a dot, and the name that is taken.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base += node.module.split(".") if node.module else []
            for alias in node.names:
                yield ".".join([*base, alias.name]), late
        elif not isinstance(node, ast.expr):
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from imports(node, package, late or function)


def violations(module: str, tree: ast.Module, package: list[str]) -> list[str]:
    """Imports of `module` that the layers or `OUTSIDE` do not allow."""
    own = module.split(".")[0]
    found = []
    for name, late in imports(tree, package):
        top, *below = name.split(".")
        if top == "shardmath":
            other = below[0] if below else ""
            if (
                other in (own, "__version__") or not module
            ):  # the whole package's version
                continue
            if other not in LAYERS or LAYERS.index(other) >= LAYERS.index(own):
                found.append(f"{module} imports {name}, which is not a lower layer")
            elif other == "draw" and own not in MAY_DRAW:
                found.append(f"{module} imports {name}, which draws")
        elif top not in sys.stdlib_module_names:
            allowed = set()
            for place, names in OUTSIDE.items():
                if f"{module}.".startswith(f"{place}."):
                    allowed |= names
            if top not in allowed and not (late and f"{top} late" in allowed):
                found.append(f"{module} imports {name}" + " at once" * (not late))
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import one another, directly or through others."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        path.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in number:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in path:
                lowest[module] = min(lowest[module], number[other])
        if lowest[module] == number[module]:
            group = path[path.index(module) :]
            del path[path.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph):
        if module not in number:
            visit(module)
    return found


def test_each_module_imports_from_lower_layers_alone():
    found = []
    for path in MODULES:
        module = dotted(path)
        if module and module.split(".")[0] not in LAYERS:
            found.append(f"{module}: its package has no layer")
        else:
            found += violations(module, parsed(path), package_of(path))
    assert not found, "\n".join(found)


def test_the_top_of_the_package_is_small():
    names = {dotted(path).split(".")[0] for path in MODULES} - {""}
    assert len(names) <= MOST_PACKAGES, sorted(names)


def test_no_module_imports_itself_through_others():
    """Imports inside functions count: they hide a circle, they do not break it."""
    names = {dotted(path) for path in MODULES}
    graph = defaultdict(set)
    for path in MODULES:
        module = dotted(path)
        for name, _ in imports(parsed(path), package_of(path)):
            top, _, inner = name.partition(".")
            if top != "shardmath":
                continue
            target = inner if inner in names else inner.rpartition(".")[0]
            # A package's own modules may be imported by its `__init__`.
            if target and target != module and path.name != "__init__.py":
                graph[module].add(target)
    assert circles(graph) == []


def test_the_site_imports_the_package_and_not_the_other_way_round():
    for path in MODULES:
        assert "shardmath_site" not in path.read_text("utf-8"), path


def test_the_init_of_a_package_holds_a_docstring_and_names():
    with_code = set()
    for path in MODULES:
        if path.name != "__init__.py":
            continue
        name = dotted(path)
        docstring, *rest = parsed(path).body
        assert isinstance(docstring, ast.Expr), f"{name} has no docstring"
        for node in rest:
            names = isinstance(node, ast.Import | ast.ImportFrom)
            if isinstance(node, ast.Assign):
                names = ast.unparse(node.targets[0]) in ("__all__", "__version__")
            if not names:
                with_code.add(name)
    assert with_code == set()


def test_every_folder_with_code_is_a_package():
    for path in MODULES:
        assert (path.parent / "__init__.py").is_file(), path


def test_no_two_classes_share_a_name():
    homes = defaultdict(list)
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(dotted(path))
    assert {name: some for name, some in homes.items() if len(some) > 1} == {}


@pytest.mark.parametrize(
    ("module", "source", "said"),
    [
        ("hardware", "from ..sharding import array", "which is not a lower layer"),
        ("base", "from shardmath import hardware", "which is not a lower layer"),
        ("base", "def f():\n    from ..hardware.mesh import Mesh", "not a lower layer"),
        ("referee", "from ..draw import picture", "which is not a lower layer"),
        ("planner", "import jax.numpy as jnp", "planner imports jax.numpy at once"),
        ("exercises", "import jax", "exercises imports jax at once"),
        ("referee.hlo", "import jax", "referee.hlo imports jax at once"),
        ("planner", "def f():\n    import numpy", "planner imports numpy"),
    ],
)
def test_a_forbidden_import_is_found(module, source, said):
    package = ["shardmath", *module.split(".")]
    (found,) = violations(module, ast.parse(source), package)
    assert said in found


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("sharding", "import math\nfrom ..hardware.mesh import Mesh\nfrom .x import y"),
        ("exercises", "def judge():\n    import jax"),
        ("draw.plots", "import matplotlib.pyplot as plt"),
    ],
)
def test_an_allowed_import_passes(module, source):
    package = ["shardmath", *module.split(".")]
    assert violations(module, ast.parse(source), package) == []


def test_a_circle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert circles(graph) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set()}) == []
