"""Scorers by name, as users meet them in model selection."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from attop import metrics
from attop.metrics import get_scorer, get_scorer_names


@pytest.fixture(scope="module")
def data():
    return make_classification(n_samples=300, weights=[0.8], class_sep=0.7, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(*data)


@pytest.mark.parametrize("name", get_scorer_names())
def test_scorer_survives_pickling_and_agrees(name, model, data):
    scorer = get_scorer(name)
    assert pickle.loads(pickle.dumps(scorer))(model, *data) == scorer(model, *data)


@pytest.mark.parametrize(
    "name, function, parameters",
    [
        ("tpr_at_k_5", metrics.tpr_at_k, {"k": 5}),
        ("tpr_at_fpr_0.01", metrics.tpr_at_fpr, {"tau": 0.01}),
        ("tpr_at_fpr_1e-2", metrics.tpr_at_fpr, {"tau": 0.01}),
        ("positives_at_top", metrics.positives_at_top, {}),
        ("precision_at_k_100", metrics.precision_at_k, {"k": 100}),
        ("precision_at_recall_0.8", metrics.precision_at_recall, {"recall": 0.8}),
        ("recall_at_precision_0.9", metrics.recall_at_precision, {"precision": 0.9}),
        ("partial_auc_0.05", metrics.partial_auc, {"max_fpr": 0.05}),
        ("partial_auc_0.3_0.7", metrics.partial_auc, {"max_fpr": 0.3, "min_tpr": 0.7}),
    ],
)
def test_scorer_is_its_metric_on_the_decision_function(name, function, parameters, model, data):
    X, y = data
    expected = function(y, model.decision_function(X), **parameters)
    assert get_scorer(name)(model, X, y) == expected


def test_every_metric_has_a_scorer():
    not_metrics = {"get_scorer", "get_scorer_names"}
    for function in set(metrics.__all__) - not_metrics:
        assert any(name.startswith(function) for name in get_scorer_names()), function


def test_scorer_uses_probabilities_without_decision_function(data):
    X, y = data
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    expected = metrics.tpr_at_fpr(y, tree.predict_proba(X)[:, 1], 0.05)
    assert get_scorer("tpr_at_fpr_0.05")(tree, X, y) == expected


def test_scorer_passes_weights_on(model, data):
    X, y = data
    weight = np.random.default_rng(0).random(len(y))
    expected = metrics.tpr_at_fpr(y, model.decision_function(X), 0.05, sample_weight=weight)
    assert get_scorer("tpr_at_fpr_0.05")(model, X, y, sample_weight=weight) == expected


def test_scorer_with_named_classes(data):
    X, y = data
    names = np.where(y == 1, "fraud", "honest")  # the positive class is classes_[0]
    model = LogisticRegression().fit(X, names)
    scorer = get_scorer("tpr_at_fpr_0.05", pos_label="fraud")
    assert scorer(model, X, names) == metrics.tpr_at_fpr(y, -model.decision_function(X), 0.05)
    with pytest.raises(ValueError, match="pass pos_label"):
        get_scorer("tpr_at_fpr_0.05")(model, X, names)


def test_grid_search_and_cross_validation_choose_by_the_metric(data):
    X, y = data
    scorer = get_scorer("tpr_at_fpr_0.05")
    grid = {"n_neighbors": [1, 20]}
    search = GridSearchCV(KNeighborsClassifier(), grid, scoring=scorer, cv=3).fit(X, y)
    for n_neighbors, mean in zip(grid["n_neighbors"], search.cv_results_["mean_test_score"]):
        alone = cross_val_score(KNeighborsClassifier(n_neighbors), X, y, scoring=scorer, cv=3)
        assert np.mean(alone) == pytest.approx(mean)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_scikit_learn_scorers_and_callables_are_accepted(model, data):
    X, y = data
    assert get_scorer("roc_auc")(model, X, y) == roc_auc_score(y, model.decision_function(X))
    assert get_scorer(max) is max


@pytest.mark.parametrize(
    "wrong, right",
    [
        ("tpr_at_frp_0.02", "tpr_at_fpr_0.02"),
        ("tpr_at_fpr", "tpr_at_fpr_0.01"),
        ("tpr_at_k", "tpr_at_k_1"),
        ("positives_on_top", "positives_at_top"),
        ("positives_at_top_3", "positives_at_top"),
        ("precision_at_100", "precision_at_k_100"),
        ("partial_auc_0.1_0.2_0.3", "partial_auc_0.01"),
        ("roc_acu", "roc_auc"),
    ],
)
def test_unknown_name_is_answered_with_the_nearest(wrong, right):
    with pytest.raises(
        ValueError, match=f"{wrong!r} is not a valid scorer. Did you mean {right!r}"
    ):
        get_scorer(wrong)
    get_scorer(right)


@pytest.mark.parametrize(
    "name, message",
    [
        ("tpr_at_fpr_1.5", r"'tau' parameter .* must be in \(0, 1\]. Got 1.5 instead"),
        ("tpr_at_k_2.5", r"'k' parameter .* must be an int in \[1, inf\). Got 2.5 instead"),
        ("precision_at_k_0", "Got 0 instead"),
        ("partial_auc_0.5_1.0", r"'min_tpr' parameter .* must be in \[0, 1\). Got 1.0 instead"),
        ("recall_at_precision_0..9", "Got '0..9' instead"),
    ],
)
def test_bad_numbers_are_refused_before_any_fit(name, message):
    with pytest.raises(ValueError, match=message):
        get_scorer(name)
