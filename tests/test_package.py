"""The package as a whole: light to import, one version, documented public names."""

import inspect
import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import attop

ROOT = Path(__file__).parents[1]


def modules_loaded_by(statement):
    """Names of the modules in a fresh interpreter after `statement`."""
    report = f"{statement}; import json, sys; print(json.dumps(sorted(sys.modules)))"
    finished = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    )
    return set(json.loads(finished.stdout))


@pytest.fixture(scope="module")
def loaded_by_sklearn():
    """Scikit-learn loads pandas and rich itself where they are installed."""
    return modules_loaded_by("import sklearn.base, sklearn.metrics")


@pytest.mark.parametrize(
    "statement",
    ["import attop", "import attop.cli.app", "import attop.datasets, attop.metrics"],
)
def test_import_leaves_heavy_packages_alone(statement, loaded_by_sklearn):
    loaded = modules_loaded_by(statement) - loaded_by_sklearn
    assert "attop" in loaded
    heavy = {"numba", "matplotlib", "pandas", "onnx", "onnxruntime", "skops"}
    assert loaded & heavy == set()


def test_entry_point_loads_no_command_line_package(loaded_by_sklearn):
    loaded = modules_loaded_by("import attop.cli") - loaded_by_sklearn
    assert loaded & {"typer", "rich"} == set()


def test_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert attop.__version__ == project["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {project['version']}" in citation


def test_every_module_of_the_documentation_is_an_attribute():
    """``import attop`` is enough to reach what the reference lists, whenever that is asked for."""
    text = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    listed = {name.split(".")[0] for name in re.findall(r"module:: attop\.([\w.]+)", text)}
    assert {"auto", "dask", "forest", "metrics"} <= listed
    statement = "; ".join(f"attop.{name}" for name in sorted(listed))
    assert {f"attop.{name}" for name in listed} <= modules_loaded_by(f"import attop; {statement}")


PUBLIC_MODULES = [
    "attop",
    "attop.auto",
    "attop.calibration",
    "attop.datasets",
    "attop.forest",
    "attop.metrics",
    "attop.plotting",
]
PUBLIC_NAMES = [
    (module, name)
    for module in PUBLIC_MODULES
    for name in import_module(module).__all__
    if name != "__version__"
]


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_public_names_are_listed_once(module):
    names = import_module(module).__all__
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("module", "name"), PUBLIC_NAMES)
def test_public_name_resolves_and_is_documented(module, name):
    public = getattr(import_module(module), name)
    # vars, not getattr: a class without a docstring would show that of its parent.
    own = vars(public).get("__doc__") if inspect.isclass(public) else public.__doc__
    assert own and own.strip()


def test_example_of_the_readme_runs(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    exec(compile(example, "README.md", "exec"), {})
    assert "best C:" in capsys.readouterr().out
