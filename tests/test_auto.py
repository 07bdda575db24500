"""Choose for me: what is tried, what is chosen, and what it costs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from attop.auto import AutoTopClassifier
from attop.datasets import load_ionosphere
from attop.metrics import tpr_at_fpr
from conftest import two_clouds

X, Y = load_ionosphere(return_X_y=True)
TRAIN, TEST = np.arange(len(Y)) % 3 > 0, np.arange(len(Y)) % 3 == 0


# Some checks fit pure noise, or a handful of samples, whose optimum is w = 0.
@pytest.mark.filterwarnings("ignore:The optimum of this:UserWarning")
@parametrize_with_checks(
    [AutoTopClassifier(kernels=["linear"], n_jobs=1, cv=2)],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": "folds are of rows, not of copies"
        for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


def test_everything_is_tried_where_there_is_time():
    model = AutoTopClassifier(budget=600.0, n_jobs=1).fit(X[TRAIN], Y[TRAIN])
    results = model.cv_results_
    assert set(results["kernel"]) == {"linear", "rbf", "forest"}
    assert {type(one).__name__ for one in results["classifier"]} == {"PatMatNP", "TauFPL", "SVM"}
    assert model.skipped_ == []
    assert len({len(column) for column in results.values()}) == 1
    assert model.best_score_ in results["mean_test_score"]
    default = results["kernel"].index("forest")
    assert model.best_score_ >= results["mean_test_score"][default]
    assert roc_auc_score(Y[TEST], model.decision_function(X[TEST])) > 0.9


@pytest.mark.parametrize("kernel", ["linear", "rbf", "forest"])
def test_the_first_round_is_always_made_and_the_others_are_named(kernel):
    model = AutoTopClassifier(budget=1e-9, kernels=[kernel], n_jobs=1).fit(X[TRAIN], Y[TRAIN])
    assert set(model.cv_results_["kernel"]) == {kernel}
    assert len(model.skipped_) == (0 if kernel == "linear" else 2)
    assert model.best_params_["kernel"] == kernel
    assert set(model.predict(X[TEST])) <= {0, 1}


def test_the_rate_is_that_of_the_metric():
    for metric, tau, expected in (
        ("tpr_at_fpr_0.05", None, 0.05),
        ("roc_auc", None, 0.01),
        ("partial_auc_0.05", 0.02, 0.02),
    ):
        model = AutoTopClassifier(metric, tau=tau, kernels=["linear"], n_jobs=1)
        tried = model.fit(X[TRAIN], Y[TRAIN]).cv_results_["classifier"]
        assert {one.tau for one in tried if type(one).__name__ == "PatMatNP"} == {expected}


def test_the_positive_class_may_be_the_smaller_label():
    one = AutoTopClassifier(kernels=["linear"], n_jobs=1).fit(X[TRAIN], Y[TRAIN])
    other = AutoTopClassifier(kernels=["linear"], n_jobs=1, pos_label=0)
    other.fit(X[TRAIN], 1 - Y[TRAIN])
    assert_allclose(other.top_score(X[TEST]), one.top_score(X[TEST]))
    assert_array_equal(other.predict(X[TEST]), 1 - one.predict(X[TEST]))


def test_samples_of_weight_zero_are_no_samples():
    rng = np.random.default_rng(0)
    there = rng.random(TRAIN.sum()) < 0.7
    common = {"kernels": ["linear"], "n_jobs": 1}
    weighted = AutoTopClassifier(**common).fit(X[TRAIN], Y[TRAIN], there.astype(float))
    without = AutoTopClassifier(**common).fit(X[TRAIN][there], Y[TRAIN][there])
    assert weighted.best_params_["C"] == without.best_params_["C"]
    assert_allclose(weighted.top_score(X[TEST]), without.top_score(X[TEST]), atol=1e-2)


def test_few_rows_choose_and_all_rows_fit():
    model = AutoTopClassifier(kernels=["linear"], n_jobs=1, max_samples=60).fit(X[TRAIN], Y[TRAIN])
    assert len(model.model_[-1].coef_.ravel()) == X.shape[1]
    assert tpr_at_fpr(Y[TEST], model.top_score(X[TEST]), 0.5) > 0.5


def test_overlapping_classes_get_a_model_that_orders_them():
    """Where TauFPL at the rate itself ends at w = 0."""
    Z, positive = two_clouds(100, 900, distance=0.7, seed=0)
    model = AutoTopClassifier(kernels=["linear"], n_jobs=1).fit(Z[::2], positive[::2])
    assert roc_auc_score(positive[1::2], model.top_score(Z[1::2])) > 0.6


@pytest.mark.parametrize(
    "name, value", [("budget", 0.0), ("tau", 1.0), ("kernels", ["cubic"]), ("cv", 1)]
)
def test_wrong_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of AutoTopClassifier"):
        AutoTopClassifier(**{name: value}).fit(X, Y)
