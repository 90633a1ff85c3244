"""The floors of the package: each room imports only from rooms below its own."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BOOK = Path(__file__).parents[1] / "book"
PACKAGE = BOOK / "shardmath"

FLOORS = """
__main__
grading
answers
questions
live
figures plots pictures
objects
planner inference published
compilers
programs
parallelism
pipeline_schedules
sharding simulator
ledger
hlo
collectives
mesh
networks
transformer
roofline waves systolic causal_ring
estimate
chips
records
facts
drawing
tables guess checks
units elsewhere extras
"""  # top floor first; rooms beside each other do not know of each other
FLOOR = {
    room: -height
    for height, rooms in enumerate(FLOORS.split("\n"))
    for room in rooms.split()
}

# Beside the standard library: what may be imported, and where. "late": in a function.
OUTSIDE = {
    "grading": {"IPython", "filelock", "jinja2", "platformdirs"},
    "answers": {"numpy late"},  # truths of questions are said in NumPy
    "questions": {"jax late", "numpy late", "flatbuffers late"},
    "live": {"anywidget", "traitlets", "IPython late"},
    "plots": {"matplotlib", "numpy"},
    "compilers": {"jax", "jaxlib", "numpy"},
    "programs": {"jax", "numpy"},
}
MODULES = sorted(PACKAGE.rglob("*.py"))
each_module = pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE))
)


def imports(source: str, package: list[str]) -> Iterator[tuple[str, bool]]:
    """Every absolute name that a module of `package` imports, and whether late."""
    tree = ast.parse(source)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    late = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, functions)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base += node.module.split(".") if node.module else []
            names = [[alias.name] for alias in node.names] if len(base) == 1 else [[]]
            yield from ((".".join(base + name), node in late) for name in names)


def trespasses(room: str, source: str, package: list[str]) -> list[str]:
    """Imports of a module of `room` that the floors or `OUTSIDE` do not allow."""
    found = []
    for name, late in imports(source, package):
        top, *below = name.split(".")
        if top == "shardmath":
            other = below[0] if below else ""
            own = (room, "__version__")  # the version is the whole package's
            if other not in own and FLOOR.get(other, 1) >= FLOOR[room]:
                found.append(f"{room} imports {name}, which is not below it")
        elif top not in sys.stdlib_module_names:
            allowed = OUTSIDE.get(room, set())
            if top not in allowed and not (late and f"{top} late" in allowed):
                found.append(f"{room} imports {name}" + " at once" * (not late))
    return found


@each_module
def test_a_room_imports_from_below_alone(path):
    relative = path.relative_to(PACKAGE)
    room = relative.with_suffix("").parts[0]
    if room == "__init__":
        pytest.skip("the package's own face is above all floors")
    assert room in FLOOR, f"{room} stands on no floor: add it to FLOORS"
    package = ["shardmath", *relative.parts[:-1]]
    assert trespasses(room, path.read_text("utf-8"), package) == []


def test_the_site_stands_on_the_package():
    """Not the other way round."""
    for path in MODULES:
        assert "shardmath_site" not in path.read_text("utf-8"), path


def test_a_face_holds_a_docstring_and_names():
    faces = {path.parent.name: path for path in MODULES if path.name == "__init__.py"}
    with_code = set()
    for name, path in faces.items():
        docstring, *rest = ast.parse(path.read_text("utf-8")).body
        assert isinstance(docstring, ast.Expr), f"{name} says nothing of itself"
        for node in rest:
            names = isinstance(node, ast.Import | ast.ImportFrom)
            if isinstance(node, ast.Assign):
                names = ast.unparse(node.targets[0]) in ("__all__", "__version__")
            if not names:
                with_code.add(name)
    assert with_code == set()


@pytest.mark.parametrize(
    ("room", "source", "said"),
    [
        ("chips", "from ..networks import Torus", "which is not below it"),
        ("chips", "from shardmath import roofline", "which is not below it"),
        ("chips", "def f():\n    from ..mesh import Mesh", "which is not below it"),
        ("plots", "from ..figures import roofline", "which is not below it"),
        ("mesh", "import jax.numpy as jnp", "mesh imports jax.numpy at once"),
        ("questions", "import jax", "questions imports jax at once"),
        ("mesh", "def f():\n    import numpy", "mesh imports numpy"),
    ],
)
def test_a_trespass_is_seen(room, source, said):
    (found,) = trespasses(room, source, ["shardmath", room])
    assert said in found


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("mesh", "import math\nfrom ..networks import Torus\nfrom .inner import x"),
        ("questions", "def judge():\n    import jax"),
        ("plots", "import matplotlib.pyplot as plt\nfrom ..units import show"),
    ],
)
def test_what_is_allowed(room, source):
    assert trespasses(room, source, ["shardmath", room]) == []
