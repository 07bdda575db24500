"""Experiments in parts: some splits here, others on another machine, put together afterwards."""

import shutil
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from attop.cli.app import app
from attop.experiments.expansion import expand
from attop.experiments.results import Results
from attop.experiments.runner import run_experiment
from attop.experiments.specification import parse_experiment
from attop.experiments.store import Store
from attop.kernels.device.arrays import find_device
from conftest import has_gpu

TINY = """\
name = "tiny"
seeds = [1, 2]
metrics = ["tpr_at_k_1", "roc_auc"]
datasets = ["Ionosphere", {name = "digits", n_train = 100}]

[[methods]]
method = "TopPush"
grid = {lambda = [1e-3, 1e-2]}
"""


def test_parts_done_apart_are_a_whole_when_their_files_are_put_together(tmp_path):
    experiment = parse_experiment(TINY)
    parts = [{"datasets": ["Ionosphere"]}, {"datasets": ["digits"]}]
    for i, part in enumerate(parts):
        outcome = run_experiment(experiment, Store(tmp_path / str(i)), **part)
        assert (outcome.n_fits, outcome.n_skipped, outcome.failures) == (4, 0, [])
        shutil.copytree(tmp_path / str(i), tmp_path / "whole", dirs_exist_ok=True)
    whole = Store(tmp_path / "whole")
    assert len(Results(whole).records) == 8
    assert run_experiment(experiment, whole).n_skipped == 8


def test_some_seeds_alone(tmp_path):
    outcome = run_experiment(parse_experiment(TINY), Store(tmp_path), seeds=[2])
    assert outcome.n_fits == 4
    assert {record["seed"] for record in Results(Store(tmp_path)).records} == {2}


@pytest.mark.parametrize("part", [{"datasets": ["MNIST"]}, {"seeds": [3]}])
def test_parts_that_are_not_there(tmp_path, part):
    with pytest.raises(ValueError, match=r"the experiment has no (data set 'MNIST'|seed 3), only"):
        run_experiment(parse_experiment(TINY), Store(tmp_path), **part)


def test_results_are_the_same_wherever_they_were_found():
    """A run begun on a GPU goes on without one."""
    experiment = parse_experiment(TINY)
    there = replace(experiment, solver={**experiment.solver, "device": "cuda"})
    keys = [[fit.key for group in expand(one) for fit in group.fits] for one in (experiment, there)]
    assert keys[0] == keys[1]
    tighter = replace(experiment, solver={**experiment.solver, "tol": 1e-6})
    assert keys[0] != [fit.key for group in expand(tighter) for fit in group.fits]


def test_options_of_the_command(tmp_path):
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    command = ["run", str(file), "--store", str(tmp_path / "store")]
    done = CliRunner().invoke(app, [*command, "--datasets", "Ionosphere", "--seeds", "1"])
    assert done.exit_code == 0
    assert "2 fits" in done.output
    done = CliRunner().invoke(app, [*command, "--device", "cpu", "--seeds", "1,2"])
    assert done.exit_code == 0
    assert "8 fits" in done.output
    assert "2 of them done before" in done.output
    for wrong in (["--device", "gpu"], ["--seeds", "one"], ["--datasets", "MNIST"]):
        assert CliRunner().invoke(app, [*command, *wrong]).exit_code == 2


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu(), reason="needs a GPU")
def test_processes_that_share_a_device(tmp_path):
    experiment = parse_experiment(TINY)
    there = replace(experiment, solver={**experiment.solver, "device": "cuda"})
    assert run_experiment(there, Store(tmp_path / "there"), n_jobs=2).failures == []
    assert run_experiment(experiment, Store(tmp_path / "here")).failures == []
    for key in [fit.key for group in expand(experiment) for fit in group.fits]:
        found, expected = (Store(tmp_path / name).read(key) for name in ("there", "here"))
        assert found["status"] == "CONVERGED"
        assert found["test"]["roc_auc"] == pytest.approx(expected["test"]["roc_auc"], abs=0.01)


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu(), reason="needs a GPU")
def test_a_process_takes_no_more_than_its_share():
    whole = find_device("cuda").free_bytes
    device = find_device("cuda")
    try:
        device.share_memory(0.1)
        assert 0 < device.free_bytes < 0.3 * whole
    finally:
        device.share_memory(1.0)
