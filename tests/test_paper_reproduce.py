"""Fits of a store drawn at random and repeated one by one."""

import sys
from pathlib import Path

import pytest

from attop.experiments.runner import run_experiment
from attop.experiments.specification import load_experiment
from attop.experiments.store import Store

DOCS = Path(__file__).parents[1] / "docs"
SPECIFICATION = """\
name = "few"
seeds = [1, 2]
metrics = ["tpr_at_fpr_0.05", "roc_auc"]
datasets = ["Ionosphere"]

[solver]
name = "exact"

[[methods]]
method = "PatMatNP"
tau = 0.05
lambda = 1e-2
grid = {theta = [0.1, 1.0]}

[[methods]]
method = "SVM"
lambda = 1e-2
"""


@pytest.fixture
def program():
    sys.path.insert(0, str(DOCS))
    try:
        import paper_reproduce

        yield paper_reproduce
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture
def arguments(tmp_path):
    file = tmp_path / "few.toml"
    file.write_text(SPECIFICATION)
    run_experiment(load_experiment(file), Store(tmp_path / "store"))
    output = tmp_path / "again.inc"
    return [str(tmp_path / "store"), "--preset", str(file), "--output", str(output)], output


def test_single_fits_come_to_the_same_optima(program, arguments):
    words, output = arguments
    program.main([*words, "--cells", "4", "--seed", "1"])
    assert output.read_text().count("     - yes") == 4
    assert "drawn with seed 1" in output.read_text()


def test_another_optimum_is_noticed(program, arguments, tmp_path):
    words, output = arguments
    store = Store(tmp_path / "store")
    for path in (tmp_path / "store" / "results").glob("*.json"):
        record = store.read(path.stem)
        store.write(path.stem, {**record, "objective": 1.01 * record["objective"]})
    with pytest.raises(SystemExit) as ended:
        program.main(words)
    assert ended.value.code == 1
    assert output.read_text().count("     - NO") == 6
