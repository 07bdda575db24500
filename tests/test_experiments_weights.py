"""Weights of samples in experiments: they count copies, in fits, in metrics and in lambda."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import auc, roc_auc_score
from sklearn.preprocessing import StandardScaler

import attop
from attop.experiments import data
from attop.experiments.reading import SpecificationError
from attop.experiments.results import Results
from attop.experiments.runner import run_experiment
from attop.experiments.specification import parse_experiment
from attop.experiments.store import Store
from attop.metrics import tpr_at_fpr

EXPERIMENT = """\
seeds = [1]
metrics = ["tpr_at_k_1", "tpr_at_fpr_0.05", "roc_auc"]
datasets = [{file = "a.csv", target = "y"WEIGHT}]

[kernel]
name = "rbf"
gamma = "scale"

[[methods]]
method = "SVM"
lambda = 1e-2

[[methods]]
method = "TauFPL"
tau = 0.05
grid = {lambda = [1e-3, 1e-2]}
"""
OTHERS = """
[[methods]]
method = "sklearn.linear_model:LogisticRegression"

[[methods]]
method = "sklearn.ensemble:RandomForestClassifier"
random_state = 0
n_estimators = 10
"""
LINEAR = EXPERIMENT.replace('"rbf"', '"linear"') + '[[methods]]\nmethod = "GrillNP"\n'
#: Every way to a fit: columns shared, the kernel matrix of the split, none, and other libraries.
EXPERIMENTS = {
    "sharing": EXPERIMENT + OTHERS,
    "pairwise": EXPERIMENT.replace("[kernel]", '[solver]\nname = "pairwise"\n\n[kernel]'),
    "linear": LINEAR,
}


def table(n_samples=240):
    """A table of two classes that overlap."""
    X, y = make_classification(n_samples, 5, weights=[0.7], class_sep=0.7, random_state=0)
    return pd.DataFrame(X, columns=list("abcde")).assign(y=y)


def results(frame, folder, options, text=EXPERIMENT):
    """The results of the experiment on a table, by method and parameters."""
    folder.mkdir()
    frame.to_csv(folder / "a.csv", index=False)
    experiment = parse_experiment(text.replace("WEIGHT", options), folder / "experiment.toml")
    run_experiment(experiment, Store(folder))
    return {(r["label"], json.dumps(r["parameters"])): r for r in Results(Store(folder)).records}


def assert_same(results, expected):
    """All that a fit comes to is the same; what it is called and when it ran is not."""
    assert results.keys() == expected.keys()
    for name, record in results.items():
        assert record["error"] == ""
        for key in ("objective", "gap", "n_iter", "sizes", "roc"):
            assert record[key] == expected[name][key], (name, key)
        for key in ("validation", "test"):  # metrics with weights may sum in another order
            assert record[key] == pytest.approx(expected[name][key], rel=1e-12), (name, key)


@pytest.mark.parametrize("text", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_weights_of_one_change_nothing(text, tmp_path):
    plain = results(table(), tmp_path / "plain", ", scale = true", text)
    options = ', weight = "w", scale = true'
    assert_same(results(table().assign(w=1), tmp_path / "ones", options, text), plain)


@pytest.mark.parametrize("text", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_a_sample_of_weight_zero_is_not_there(text, tmp_path):
    w = np.random.default_rng(0).integers(0, 4, size=240)
    frame = table().assign(w=w)
    options = ', weight = "w", scale = true'
    without = results(frame[w > 0], tmp_path / "without", options, text)
    assert_same(results(frame, tmp_path / "with", options, text), without)


@pytest.mark.parametrize("scale", [False, True])
def test_weights_count_copies(scale, tmp_path):
    """Every result is that of a user who repeats the rows of the parts and fits on them."""
    w = np.random.default_rng(1).integers(0, 4, size=240)
    options = f', weight = "w", scale = {str(scale).lower()}'
    records = results(table().assign(w=w), tmp_path / "a", options).values()
    spec = data.DatasetSpec(file=str(tmp_path / "a" / "a.csv"), target="y", weight="w")
    parts = data.split(spec, 1)
    repeated = {}
    for part in ("train", "valid", "test"):
        copies = getattr(parts, f"w_{part}").astype(int)
        X, y = getattr(parts, f"X_{part}"), getattr(parts, f"y_{part}")
        repeated[part] = np.repeat(X, copies, axis=0), np.repeat(y, copies)
    X, y = repeated["train"]
    scaler = StandardScaler(with_mean=scale, with_std=scale).fit(X)
    for record in records:
        parameters = dict(record["parameters"])
        n = len(y) if record["method"] == "SVM" else int(y.sum())
        parameters["C"] = 1.0 / (parameters.pop("lambda") * n)
        model = getattr(attop, record["method"])(gamma="scale", tol=1e-6, **parameters)
        model.fit(scaler.transform(X), y)
        assert record["objective"] == pytest.approx(model.objective_, rel=3e-4)
        for part, name in (("valid", "validation"), ("test", "test")):
            X_part, y_part = repeated[part]
            scores = model.decision_function(scaler.transform(X_part))
            area = roc_auc_score(y_part, scores)
            assert record[name]["roc_auc"] == pytest.approx(area, abs=0.01)
            # A sample within the tolerance of the threshold has at most 3 copies.
            tpr = tpr_at_fpr(y_part, scores, 0.05)
            assert record[name]["tpr_at_fpr_0.05"] == pytest.approx(tpr, abs=3.01 / y_part.sum())
        assert auc(record["roc"]["fpr"], record["roc"]["tpr"]) == pytest.approx(
            record["test"]["roc_auc"], abs=0.02
        )


def test_weights_matter(tmp_path):
    w = np.random.default_rng(2).uniform(0.1, 5.0, size=240)
    weighted = results(table().assign(w=w), tmp_path / "weighted", ', weight = "w"')
    plain = results(table(), tmp_path / "plain", "")
    for name, record in weighted.items():
        assert record["test"] != plain[name]["test"]


def test_weights_are_part_of_what_a_result_is_only_where_they_are_given():
    plain = data.DatasetSpec(digest="0", target="y").identity()
    assert "weight" not in plain
    assert data.DatasetSpec(digest="0", target="y", weight="w").identity() == {
        **plain,
        "weight": "w",
    }


def test_a_classifier_that_takes_no_weights_fails_by_its_name(tmp_path):
    method = "sklearn.neighbors:KNeighborsClassifier"
    text = EXPERIMENT + f'[[methods]]\nmethod = "{method}"\n'
    found = results(table().assign(w=2.0), tmp_path / "a", ', weight = "w"', text)
    failures = [record for record in found.values() if record["error"]]
    assert [record["method"] for record in failures] == [method]
    assert f"{method!r} cannot learn from 'a'" in failures[0]["error"]
    assert "no 'sample_weight'" in failures[0]["error"]


def test_mistakes_with_weights_are_told_with_their_line(tmp_path):
    table().assign(weights=-1.0).to_csv(tmp_path / "a.csv", index=False)

    def parse(options, text=EXPERIMENT):
        parse_experiment(text.replace("WEIGHT", options), tmp_path / "experiment.toml")

    with pytest.raises(SpecificationError, match=r"line 3.*Did you mean 'weights'"):
        parse(', weight = "wieghts"')
    with pytest.raises(SpecificationError, match=r"line 3.*at least 0.*Got -1"):
        parse(', weight = "weights"')
    named = EXPERIMENT.replace('file = "a.csv", target = "y"', 'name = "Ionosphere"')
    with pytest.raises(SpecificationError, match=r"line 3.*'weight' are for files"):
        parse(', weight = "w"', named)
