"""What an experiment will take, said before it is run."""

import math

import pytest

from attop.cli import main
from attop.experiments.estimate import PARTS, estimates, summary, total_seconds
from attop.experiments.expansion import expand
from attop.experiments.runner import run_experiment
from attop.experiments.specification import parse_experiment
from attop.experiments.store import Store

SPECIFICATION = """\
name = "small"
seeds = [1, 2]
metrics = ["roc_auc"]
datasets = ["Ionosphere", "digits"]

[[methods]]
method = "TopPush"
grid = {lambda = [1e-2, 1e-1]}
"""


@pytest.fixture
def experiment():
    return parse_experiment(SPECIFICATION)


def test_without_results_some_samples_are_fitted(experiment, tmp_path):
    found = estimates(expand(experiment), Store(tmp_path), calibrate=True)
    assert [one.dataset for one in found] == ["Ionosphere", "digits"]
    assert [(one.n_fits, one.n_done) for one in found] == [(4, 0), (4, 0)]
    assert all(0.0 < one.seconds < math.inf and 0.0 < one.memory < 1.0 for one in found)
    assert found[1].n_train > PARTS[0] > found[0].n_train
    assert total_seconds(found, 2) == pytest.approx(0.5 * total_seconds(found, 1))
    assert not list(tmp_path.iterdir())  # nothing is written


def test_fits_for_an_estimate_end_with_their_budget(experiment, tmp_path):
    """The first data set is measured, on few samples; the other is taken to be like it."""
    found = estimates(expand(experiment), Store(tmp_path), calibrate=True, budget=0.0)
    assert found[0].source.startswith("fits on ")
    assert found[1].source == "as those above"
    ionosphere, digits = (one.seconds / one.n_train for one in found)
    assert digits == pytest.approx(ionosphere)


def test_without_any_measurement_there_is_no_number(experiment, tmp_path):
    found = estimates(expand(experiment), Store(tmp_path), calibrate=False)
    assert all(math.isnan(one.seconds) for one in found)
    assert summary(found, 1).startswith("8 fits to do: unknown, ")


def test_results_that_are_there_are_the_best_measurement(experiment, tmp_path):
    store = Store(tmp_path)
    run_experiment(experiment, store)
    records = sorted((tmp_path / "results").glob("*.json"))
    by_name = {path: store.read(path.stem)["dataset"]["name"] for path in records}
    gone = next(path for path, name in by_name.items() if name == "digits")
    gone.unlink()
    mean = (
        sum(
            store.read(path.stem)["seconds"]
            for path in by_name
            if path != gone and by_name[path] == "digits"
        )
        / 3
    )
    ionosphere, digits = estimates(expand(experiment), store, calibrate=False)
    assert (ionosphere.n_done, ionosphere.seconds, ionosphere.source) == (4, 0.0, "all there")
    assert (digits.n_done, digits.source) == (3, "3 results")
    assert digits.seconds == pytest.approx(mean)


def test_the_command_says_it_and_runs_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    file = tmp_path / "small.toml"
    file.write_text(SPECIFICATION)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(file), "--store", str(tmp_path / "store"), "--dry-run", "--jobs", "2"])
    assert ended.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "8 fits to do with 2 splits at a time: about " in shown
    assert "Ionosphere" in shown
    assert not (tmp_path / "store").exists()
