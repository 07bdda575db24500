"""CONTRIBUTING says what to write to add a part: each row is exercised, here or elsewhere."""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import cross_val_score

from attop import TopPush, metrics, plotting
from attop.cli import main
from attop.cli.app import app
from attop.datasets import DATASETS, load_dataset
from attop.datasets.registry import DatasetInfo, Part, Source
from attop.metrics import _scorers
from attop.solvers import SOLVERS, exact
from attop.solvers.solution import Status
from attop.surrogates import SURROGATES
from conftest import two_clouds
from test_families import RoundedHinge

ROOT = Path(__file__).parents[1]
X, POSITIVE = two_clouds(30, 60, distance=1.5, seed=3)

#: What may be added, and the test that adds it.
ADDED_BY = {
    "a formulation": "test_families.py::test_a_family_from_outside_makes_an_estimator",
    "a family": "test_families.py::test_a_family_from_outside_is_solved_to_the_oracles_optimum",
    "a surrogate": "test_contributing.py::test_a_surrogate_gets_its_name_by_one_line",
    "a kernel": "test_kernels.py::test_a_new_kernel_gets_a_name_by_one_line",
    "a solver": "test_contributing.py::test_a_solver_is_a_function_and_one_line",
    "a metric": "test_contributing.py::test_a_metric_is_a_function_and_one_line",
    "a plot": "test_contributing.py::test_a_plot_is_a_module_and_one_line",
    "a command": "test_contributing.py::test_a_command_is_a_function_and_one_line",
    "a data set": "test_contributing.py::test_a_data_set_is_an_entry_with_a_reader",
}


def rows_of_the_table():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| a")]
    return {row[0].strip(): " ".join(row[1:]) for row in rows}


def test_every_row_is_exercised():
    assert list(rows_of_the_table()) == list(ADDED_BY)
    for place in ADDED_BY.values():
        file, name = place.split("::")
        tree = ast.parse((Path(__file__).parent / file).read_text("utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ADDED_BY)
def test_every_place_exists(row):
    text = rows_of_the_table()[row]
    places = re.findall(r"`(src/[^`]*)`", text)
    assert places
    assert all((ROOT / place).exists() for place in places)


def test_a_surrogate_gets_its_name_by_one_line(monkeypatch):
    monkeypatch.setitem(SURROGATES, "rounded_hinge", RoundedHinge())
    named = TopPush(surrogate="rounded_hinge", gamma=0.3).fit(X, POSITIVE)
    given = TopPush(surrogate=RoundedHinge(), gamma=0.3).fit(X, POSITIVE)
    assert named.status_ is Status.CONVERGED
    assert named.objective_ == given.objective_


def careful(problem, gram, *, tol=1e-4, careful_by=10.0, **settings):
    """A solver of one's own: the exact one, to a smaller gap."""
    return exact.solve(problem, gram, tol=tol / careful_by, **settings)


def test_a_solver_is_a_function_and_one_line(monkeypatch):
    monkeypatch.setitem(SOLVERS, "careful", f"{__name__}:careful")
    model = TopPush(solver="careful", gamma=0.3, tol=1e-3).fit(X, POSITIVE)
    assert model.status_ is Status.CONVERGED
    assert model.dual_gap_ <= 1e-4
    model.set_params(solver_options={"careful_by": 1e4}).fit(X, POSITIVE)
    assert model.dual_gap_ <= 1e-7
    with pytest.raises(ValueError, match="Did you mean 'careful_by'"):
        model.set_params(solver_options={"carefulby": 1.0}).fit(X, POSITIVE)


def gap_at_top(y_true, y_score, *, pos_label=None):
    """How far the best positive is above the best negative."""
    positive = np.asarray(y_true) == 1
    return float(np.max(y_score[positive]) - np.max(y_score[~positive]))


def test_a_metric_is_a_function_and_one_line(monkeypatch):
    monkeypatch.setitem(_scorers.METRICS, "gap_at_top", _scorers._Metric(gap_at_top, n_required=0))
    assert "gap_at_top" in metrics.get_scorer_names()
    model = TopPush(gamma=0.3).fit(X, POSITIVE)
    score = metrics.get_scorer("gap_at_top")(model, X, POSITIVE.astype(int))
    assert score == pytest.approx(gap_at_top(POSITIVE, model.decision_function(X)))
    scorer = metrics.get_scorer("gap_at_top")
    assert len(cross_val_score(model, X, POSITIVE.astype(int), scoring=scorer, cv=3)) == 3


def test_a_plot_is_a_module_and_one_line():
    folder = Path(plotting.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    where = {name: getattr(plotting, name).__module__ for name in plotting.__all__}
    assert set(where.values()) == {f"attop.plotting.{module}" for module in modules}
    for name in where:
        display = getattr(plotting, name)
        assert any(method.startswith("from_") for method in vars(display))
        assert inspect.isfunction(display.plot)


def test_a_command_is_a_function_and_one_line(monkeypatch, capsys):
    monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])

    def greet(name: str) -> None:
        """Greet somebody."""
        print(f"Hello, {name}!")

    app.command()(greet)
    with pytest.raises(SystemExit) as ended:
        main(["greet", "World"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == "Hello, World!\n"


def test_every_command_has_a_module():
    folder = Path(import_module("attop.cli").__file__).parent
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert command.callback.__module__ == f"attop.cli.{name}"
        assert (folder / f"{name}.py").exists()


def read_bytes(paths):
    """Two parts, half of the file each: images of one pixel, and labels by their brightness."""
    pixels = np.frombuffer(paths[0].read_bytes(), dtype=np.uint8)
    train, test = np.split(pixels, 2)
    return train[:, np.newaxis], train > 127, test[:, np.newaxis], test > 127


def test_a_data_set_is_an_entry_with_a_reader(monkeypatch, tmp_path):
    content = bytes([0, 255, 51, 204])
    digest = hashlib.sha256(content).hexdigest()
    info = DatasetInfo(
        name="Dots",
        positive="bright",
        shape=(1, 1, 1),
        train=Part(2, 0.5),
        test=Part(2, 0.5),
        sources=(Source("dots.bin", "Dots", ("http://127.0.0.1:1/dots.bin",), digest),),
        read=read_bytes,
    )
    monkeypatch.setitem(DATASETS, "Dots", info)
    (tmp_path / "Dots").mkdir()
    (tmp_path / "Dots" / "dots.bin").write_bytes(content)
    data = load_dataset("Dots", data_home=tmp_path, download_if_missing=False)
    assert_allclose(data.X, [[0.0], [1.0]])
    assert_allclose(data.X_test, [[0.2], [0.8]], atol=1e-7)
    assert list(data.y_test) == [0, 1]
