"""Shardmath as others install it: the wheel, the command, and what its names mean."""

import ast
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest

import shardmath
from shardmath.__main__ import main
from shardmath.hardware import chips
from shardmath.transformer import model

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "book" / "shardmath"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_the_version_is_said_once_more_in_no_other_way():
    assert PROJECT["project"]["version"] == shardmath.__version__
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {shardmath.__version__}\n" in citation
    assert f"\n## {shardmath.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_the_command_is_the_module():
    assert PROJECT["project"]["scripts"] == {"shardmath": "shardmath.__main__:main"}


def test_the_command_says_its_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"shardmath {shardmath.__version__}\n"


@pytest.mark.parametrize("option", ["--fix", "--tokens", "--remat", "--schedule"])
def test_the_command_does_not_repeat_a_long_argument(option, capsys):
    words = ["plan", "llama3-70b", "v5p:4x4x4", "--tokens", "4M"]
    assert main([*words, option, ("x" * 100_000) + "=2"]) == 2
    assert 10 < len(capsys.readouterr().err) < 500


def test_a_wheel_holds_the_package_alone(tmp_path):
    wheels = pytest.importorskip("hatchling.builders.wheel")
    (path,) = wheels.WheelBuilder(str(ROOT)).build(directory=str(tmp_path))
    names = zipfile.ZipFile(path).namelist()
    assert {name.split("/")[0] for name in names} == {
        "shardmath",
        f"shardmath-{shardmath.__version__}.dist-info",
    }
    assert {"shardmath/py.typed", "shardmath/hardware/chips.toml"} <= set(names)


def test_what_a_wheel_is_made_of():
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["book/shardmath"]}
    assert (PACKAGE / "py.typed").exists()
    assert "entry-points" not in PROJECT["project"]  # of a module that a wheel lacks


def test_the_site_finds_its_renderer_next_to_the_package():
    """MyST-NB asks for it by an entry point, which lies where book/ is on the path."""
    (site,) = distributions(name="shardmath-site", path=[str(ROOT / "book")])
    (point,) = site.entry_points.select(group="myst_nb.mime_renderers")
    module, _, name = point.value.partition(":")
    tree = ast.parse((ROOT / "book" / f"{module.replace('.', '/')}.py").read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize(
    ("module", "needs"),
    [
        ("draw.plots", "matplotlib"),
        ("referee.programs", "jax"),
        ("referee.compilers", "jax"),
        ("referee.checkpoints", "jax"),
        ("referee.processes", "cloudpickle"),
    ],
)
def test_an_import_without_its_extra_names_the_extra(module, needs):
    script = f"import sys; sys.modules[{needs!r}] = None; import shardmath.{module}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    last = done.stderr.strip().splitlines()[-1]
    wanted = f'needs {needs}; to get it: pip install "shardmath[notebook]"'
    assert last == f"ModuleNotFoundError: shardmath.{module} {wanted}"
    assert "notebook" in PROJECT["project"]["optional-dependencies"]


def test_help_lists_every_module():
    lines = shardmath.__doc__.splitlines()
    listed = [line[4:] for line in lines if line.startswith("    ")]
    named = [name for line in listed for name in line.split("  ")[0].split(", ")]
    there = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(named) == sorted(there - {"__init__", "__main__"})
    assert all(len(line.split("  ", 1)[1].strip()) > 10 for line in listed)


@pytest.mark.parametrize(
    ("lookup", "name", "nearest"),
    [
        (model, "llama3-7", "Llama 3.1 70B"),
        (model, "llama3-40", "Llama 3.1 405B"),
        (chips.find, "h10", "H100"),
        (chips.find, "mi30", "MI300X"),
    ],
)
def test_a_number_is_not_completed_by_further_digits(lookup, name, nearest):
    with pytest.raises(ValueError, match=f"is called '{name}'; nearest: {nearest}$"):
        lookup(name)


@pytest.mark.parametrize(
    ("lookup", "name", "meant"),
    [
        (model, "llama3-70", "Llama 3.1 70B"),
        (model, "llama3-405", "Llama 3.1 405B"),
        (chips.find, "trill", "TPU v6e (Trillium)"),
        (chips.find, "mi300", "MI300X"),
    ],
)
def test_a_whole_number_and_the_beginning_of_a_word_are_enough(lookup, name, meant):
    assert lookup(name).name == meant


def test_the_example_of_the_readme_runs(capsys):
    readme = (ROOT / "README.md").read_text("utf-8")
    example = readme.split("```python\n")[1].split("```")[0]
    exec(example, {})
    assert "H100" in capsys.readouterr().out
