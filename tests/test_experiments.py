"""Runs of experiments: what is kept, what is skipped, what survives."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest

import attop
from attop.experiments import data
from attop.experiments.methods import build
from attop.experiments.results import Results
from attop.experiments.runner import run_experiment
from attop.experiments.specification import parse_experiment
from attop.experiments.store import Store, StoreError
from attop.metrics import tpr_at_fpr

TINY = """\
name = "tiny"
seeds = [1, 2]
metrics = ["tpr_at_k_1", "tpr_at_fpr_0.05", "roc_auc"]
datasets = ["Ionosphere", {name = "digits", n_train = 150}]

[[methods]]
method = "SVM"
grid = {lambda = [1e-3, 1e-2]}

[[methods]]
method = "TopPush"
grid = {lambda = [0.0, 1e-3, 1e-2]}

[[methods]]
method = "TauFPL"
tau = 0.05
grid = {lambda = [1e-3, 1e-2]}
"""


#: What depends on how a process rounds: threads and places in memory change the order of sums, and
#: so the way of a solver. The optimum stays within the certified gap.
ROUNDED = (
    "gap",
    "history",
    "message",
    "n_iter",
    "n_support",
    "objective",
    "roc",
    "test",
    "validation",
)
TIMES = ("seconds", "processor_seconds")


def contents(folder):
    """All results of a store."""
    return {path.name: json.loads(path.read_text()) for path in folder.glob("results/*.json")}


def assert_same_results(folder, other):
    """No result missing, none another one."""
    found, wanted = contents(folder), contents(other)
    assert found.keys() == wanted.keys()
    for name, record in wanted.items():
        same = found[name]
        assert same.keys() == record.keys()
        for key in record.keys() - {*ROUNDED, *TIMES}:
            assert same[key] == record[key], key
        # A gap is relative to the objective of its own fit.
        gaps = sum((each["gap"] + 1e-9) * each["objective"] for each in (same, record))
        assert same["objective"] == pytest.approx(record["objective"], abs=gaps)
        for part in ("test", "validation"):
            # A sample of the 40 to 60 positives may lie within the tolerance of the threshold.
            assert same[part] == pytest.approx(record[part], abs=0.05)


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory):
    """The store of an undisturbed run."""
    folder = tmp_path_factory.mktemp("tiny")
    outcome = run_experiment(parse_experiment(TINY), Store(folder))
    assert outcome.failures == []
    return folder


def test_results_are_certified_and_complete(tiny_folder):
    records = Results(Store(tiny_folder)).records
    assert len(records) == 2 * 2 * (2 + 3 + 2)
    for record in records:
        assert {*record["test"]} >= {"tpr_at_k_1", "tpr_at_fpr_0.05", "roc_auc"}
        assert record["versions"]["attop"] == attop.__version__
        assert record["status"] == "CONVERGED"
        assert record["gap"] <= 1e-4


def test_shared_fits_have_the_scores_of_separate_ones(tiny_folder):
    """The runner shares kernels between fits; a user who fits alone must get the same."""
    for record in Results(Store(tiny_folder)).records:
        if record["data"] != "Ionosphere" or record["parameters"]["lambda"] == 0.0:
            continue
        parts = data.split(data.DatasetSpec(name="Ionosphere"), record["seed"])
        n, n_positives = len(parts.y_train), int(parts.y_train.sum())
        parameters = {k: v for k, v in record["parameters"].items() if k != "lambda"}
        C = 1 / (record["parameters"]["lambda"] * (n if record["method"] == "SVM" else n_positives))
        model = getattr(attop, record["method"])(C=C, gamma=1 / 34, **parameters)
        scores = model.fit(parts.X_train, parts.y_train).decision_function(parts.X_test)
        expected = tpr_at_fpr(parts.y_test, scores, 0.05)
        # One sample of the 56 positives may lie within the tolerance of the threshold.
        assert record["test"]["tpr_at_fpr_0.05"] == pytest.approx(expected, abs=0.04)
        assert record["objective"] == pytest.approx(model.objective_, rel=3e-4)


def test_a_second_run_does_nothing(tiny_folder):
    before = {path: path.stat().st_mtime_ns for path in (tiny_folder / "results").iterdir()}
    outcome = run_experiment(parse_experiment(TINY), Store(tiny_folder))
    assert outcome.n_skipped == outcome.n_fits == 28
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_two_processes_come_to_the_results_of_one(tiny_folder, tmp_path):
    run_experiment(parse_experiment(TINY), Store(tmp_path), n_jobs=2)
    assert_same_results(tmp_path, tiny_folder)


def test_an_interrupted_plan_ends_with_the_results_of_an_undisturbed_one(tiny_folder, tmp_path):
    """Any half of the results may be missing, not only the last ones."""
    rng = np.random.default_rng(0)
    store = Store(tmp_path)
    (tmp_path / "results").mkdir()
    for path in (tiny_folder / "results").iterdir():
        if rng.random() < 0.5:
            (tmp_path / "results" / path.name).write_bytes(path.read_bytes())
    run_experiment(parse_experiment(TINY), store)
    assert_same_results(tmp_path, tiny_folder)


def test_a_run_killed_ten_times_ends_with_the_results_of_an_undisturbed_one(tiny_folder, tmp_path):
    """SIGKILL at random moments, from the first result on."""
    file, folder = tmp_path / "tiny.toml", tmp_path / "store"
    file.write_text(TINY)
    call = f"from attop.cli import main; main(['run', {str(file)!r}, '--store', {str(folder)!r}])"
    command = [sys.executable, "-c", call]
    rng = np.random.default_rng(1)
    for kill in range(10):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        # Wait for one more result, so that every start gets some of the way.
        n_before = n_results(folder)
        while process.poll() is None and n_results(folder) <= n_before and kill % 2 == 0:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.15))
        process.kill()
        process.communicate()
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert_same_results(folder, tiny_folder)
    left = [path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".json"]
    assert left == []


def n_results(folder):
    return len(list(folder.glob("results/*.json")))


def test_a_torn_file_is_no_result(tiny_folder, tmp_path):
    (tmp_path / "results").mkdir()
    for path in (tiny_folder / "results").iterdir():
        (tmp_path / "results" / path.name).write_bytes(path.read_bytes()[:-20])
    outcome = run_experiment(parse_experiment(TINY), Store(tmp_path))
    assert outcome.n_skipped == 0
    assert_same_results(tmp_path, tiny_folder)


ONE = """\
seeds = [1]
metrics = ["roc_auc"]
datasets = ["Ionosphere"]
[[methods]]
method = "TopPush"
lambda = 1e-2
"""


def test_damaged_results_are_named_and_made_again(tmp_path):
    store = Store(tmp_path)
    run_experiment(parse_experiment(ONE), store)
    (path,) = (tmp_path / "results").iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    assert Results(store).damaged == [path]
    assert run_experiment(parse_experiment(ONE), store).damaged == [path]
    assert Results(store).damaged == []
    (plan,) = (tmp_path / "experiments").iterdir()
    plan.write_text("{")
    with pytest.raises(FileNotFoundError, match=rf"{plan.name} is damaged"):
        Results(store)


@pytest.mark.parametrize("content", ["[]", "{}", '{"name": 3}'])
@pytest.mark.parametrize("folder", ["results", "experiments"])
def test_foreign_files_are_named(tmp_path, folder, content):
    store = Store(tmp_path)
    run_experiment(parse_experiment(ONE), store)
    (path,) = (tmp_path / folder).iterdir()
    path.write_text(content)
    with pytest.raises(StoreError, match=f"{path.name} was not written by attop run"):
        Results(store)


def test_foreign_files_beside_the_results_are_left_alone_and_named(tmp_path):
    store = Store(tmp_path)
    run_experiment(parse_experiment(ONE), store)
    names = ("notes.txt", "a.tmp", "a.b.c.tmp", "x.json.host.notanumber.tmp")
    foreign = sorted(tmp_path / "results" / name for name in names)
    for path in foreign:
        path.write_text("mine")
    outcome = run_experiment(parse_experiment(ONE), store)
    assert outcome.foreign == foreign
    assert [path.read_text() for path in foreign] == ["mine"] * len(foreign)


def test_a_new_metric_is_measured(tmp_path):
    store = Store(tmp_path)
    run_experiment(parse_experiment(ONE), store)
    more = ONE.replace('"roc_auc"', '"roc_auc", "tpr_at_k_3"')
    assert run_experiment(parse_experiment(more), store).n_skipped == 0
    (record,) = Results(store).records
    assert {"roc_auc", "tpr_at_k_3"} <= {*record["test"]}


def test_a_new_method_leaves_the_known_results_alone(tmp_path):
    store = Store(tmp_path)
    run_experiment(parse_experiment(ONE), store)
    (path,) = (tmp_path / "results").iterdir()
    before = path.read_bytes()
    # It also brings a metric of its own, by which it is chosen.
    more = ONE + '[[methods]]\nmethod = "TauFPL"\nlambda = 1e-2\n'
    outcome = run_experiment(parse_experiment(more), store)
    assert (outcome.n_fits, outcome.n_skipped) == (2, 1)
    assert path.read_bytes() == before


def test_a_failure_is_kept_told_and_tried_again(tmp_path):
    """K exceeds the number of negatives: only the fit itself can know."""
    store = Store(tmp_path)
    wrong = ONE + '[[methods]]\nmethod = "TopPushK"\nK = 100000\nselect_by = "roc_auc"\n'
    for _ in range(2):
        outcome = run_experiment(parse_experiment(wrong), store)
        assert len(outcome.failures) == 1
    results = Results(store)
    assert len(results.records) == 2
    (failure,) = results.failures
    assert "100000" in failure["error"]
    assert [record["label"] for record in results.best()] == ["TopPush"]


def test_any_classifier_can_take_part(tmp_path):
    text = ONE + (
        '[[methods]]\nmethod = "sklearn.linear_model:LogisticRegression"\ngrid = {C = [0.1, 1.0]}\n'
        '[[methods]]\nmethod = "sklearn.ensemble:RandomForestClassifier"\nrandom_state = 0\n'
        "n_estimators = 10\n"
        '[[methods]]\nmethod = "TauFPL"\ntau = 0.1\n'
    )
    run_experiment(parse_experiment(text), Store(tmp_path))
    best = {
        record["label"]: record["test"]["roc_auc"] for record in Results(Store(tmp_path)).best()
    }
    assert {*best} == {"TopPush", "LogisticRegression", "RandomForestClassifier", "TauFPL(0.1)"}
    assert all(auc > 0.7 for auc in best.values())


def fake_records(*scores):
    return [
        {
            "data": "D",
            "seed": 1,
            "label": "M",
            "key": str(i),
            "select_by": "roc_auc",
            "validation": {"roc_auc": score},
            "test": {"roc_auc": 0.1 * i},
        }
        for i, score in enumerate(scores)
    ]


@pytest.mark.parametrize(
    ("validation", "chosen"),
    [((0.5, 0.9, 0.7), "1"), ((0.9, 0.9), "0"), ((None, 0.2), "1"), ((0.1, None), "0")],
)
def test_the_best_grid_point_is_that_of_the_validation_set(tiny_folder, validation, chosen):
    results = Results(Store(tiny_folder))
    results.records = fake_records(*validation)
    (best,) = results.best()
    assert best["key"] == chosen


def test_the_svm_has_C_of_the_samples_and_the_others_of_the_positives():
    kernel = {"name": "rbf", "gamma": 0.5}
    svm = build("SVM", {"lambda": 0.01}, kernel, {}, n_samples=1000, n_positives=50)
    top = build("TopPush", {"lambda": 0.01}, kernel, {}, n_samples=1000, n_positives=50)
    assert svm.C == pytest.approx(0.1)
    assert top.C == pytest.approx(2.0)


def test_an_empty_store_says_how_to_fill_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="attop run quick"):
        Results(Store(tmp_path))
