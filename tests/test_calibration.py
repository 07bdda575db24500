"""The Neyman-Pearson threshold keeps its promise, on distributions known in closed form."""

from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm, poisson
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_classifiers_train, parametrize_with_checks

from attop import TauFPL
from attop.calibration import (
    AlertBudgetThreshold,
    CostThreshold,
    NeymanPearsonThreshold,
    PrecisionThreshold,
    RecallThreshold,
    neyman_pearson_order,
    required_negatives,
)
from attop.metrics import get_scorer

N_DRAWS = 500


class FirstFeature(ClassifierMixin, BaseEstimator):
    """Scores a sample by its first feature and remembers what it was fitted on."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.sample_weight_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]


def fitted_first_feature():
    return FirstFeature().fit(np.zeros((2, 1)), np.array([0, 1]))


def most_violations(probability):
    """Violations in `N_DRAWS` draws, exceeded by chance once in a thousand tests."""
    return binom.ppf(0.999, N_DRAWS, probability)


@pytest.fixture(scope="module")
def data():
    return make_classification(n_samples=1000, weights=[0.8], class_sep=1.5, random_state=0)


@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    m=st.integers(1, 60),
    fpr=st.sampled_from(["0.05", "0.1", "0.25", "0.5"]),
    confidence=st.sampled_from(["0.5", "0.75", "0.9", "0.99"]),
)
def test_order_is_the_smallest_that_the_binomial_tail_allows(m, fpr, confidence):
    tau, delta = Fraction(fpr), 1 - Fraction(confidence)
    terms = [comb(m, j) * (1 - tau) ** j * tau ** (m - j) for j in range(m + 1)]
    valid = [k for k in range(1, m + 1) if sum(terms[k:]) <= delta]
    assume(valid)
    order, bound = neyman_pearson_order(m, float(fpr), float(confidence))
    assert order == valid[0]
    assert bound == pytest.approx(float(sum(terms[order:])), rel=1e-9)


@pytest.mark.parametrize("fpr", [0.5, 0.1, 0.01, 1e-4, 1e-6])
@pytest.mark.parametrize("confidence", [0.5, 0.75, 0.95, 0.999])
def test_required_negatives_are_just_enough(fpr, confidence):
    m = required_negatives(fpr, confidence)
    order, bound = neyman_pearson_order(m, fpr, confidence)
    assert order == m  # the largest score
    assert bound <= (1 - confidence) * (1 + 1e-9)
    assert (1 - fpr) ** (m - 1) > 1 - confidence
    if m > 1:
        with pytest.raises(ValueError, match=f"needs at least {m} held-out .* Got {m - 1}"):
            neyman_pearson_order(m - 1, fpr, confidence)


def test_a_trained_model_keeps_its_rate_where_a_plain_threshold_does_not():
    """Negatives N(0, I), a linear score: the true rate is known for each trained model."""
    rng = np.random.default_rng(0)
    fpr, confidence = 0.05, 0.9
    violations = plain_violations = 0
    for seed in range(N_DRAWS):
        y = np.repeat([0, 1], [400, 40])
        X = rng.normal(size=(440, 3)) + y[:, None]
        model = NeymanPearsonThreshold(
            LinearDiscriminantAnalysis(), fpr=fpr, confidence=confidence, random_state=seed
        ).fit(X, y)
        w, b = model.estimator_.coef_[0], model.estimator_.intercept_[0]
        true_fpr = norm.sf((model.threshold_ - b) / np.linalg.norm(w))
        violations += true_fpr > fpr
        plain = np.quantile(model.estimator_.decision_function(X[y == 0]), 1 - fpr)
        plain_violations += norm.sf((plain - b) / np.linalg.norm(w)) > fpr
    assert violations <= most_violations(1 - confidence)
    # The bound is sharp for continuous scores, and the plain threshold is a coin's toss.
    assert violations >= binom.ppf(0.001, N_DRAWS, model.violation_bound_)
    assert plain_violations > 0.4 * N_DRAWS


def test_the_guarantee_holds_with_ties_because_they_are_called_negative():
    rng = np.random.default_rng(0)
    fpr, confidence = 0.05, 0.9
    violations = violations_if_ties_were_positive = 0
    for _ in range(N_DRAWS):
        negatives = rng.poisson(3.0, size=(300, 1)).astype(float)
        model = NeymanPearsonThreshold(
            fitted_first_feature(), fpr=fpr, confidence=confidence, cv="prefit"
        ).fit(negatives, np.zeros(300, dtype=int))
        assert model.predict(np.array([[model.threshold_]])) == [0]
        violations += poisson.sf(model.threshold_, 3.0) > fpr
        violations_if_ties_were_positive += poisson.sf(model.threshold_ - 1, 3.0) > fpr
    assert violations <= most_violations(1 - confidence)
    assert violations_if_ties_were_positive > most_violations(1 - confidence)


@pytest.mark.parametrize("cv, n_held_out", [(0.5, 200), (0.25, 100), (5, 80)])
def test_only_negatives_are_held_out_and_none_of_them_is_trained_on(cv, n_held_out):
    X = np.random.default_rng(0).permutation(450)[:, None].astype(float)
    y = np.repeat([0, 1, 0], [150, 50, 250])
    model = NeymanPearsonThreshold(FirstFeature(), fpr=0.1, cv=cv, random_state=0).fit(X, y)
    seen = model.estimator_.X_.ravel()
    assert len(seen) == len(np.unique(seen)) == 450 - n_held_out
    assert set(X[y == 1].ravel()) <= set(seen)
    held_out = np.sort(np.setdiff1d(X[y == 0].ravel(), seen))
    assert model.n_negatives_ == len(held_out) == n_held_out
    assert model.threshold_ == held_out[model.order_ - 1]
    assert (model.order_, model.violation_bound_) == neyman_pearson_order(n_held_out, 0.1)


def test_the_split_follows_its_seed(data):
    X, y = data
    thresholds = [
        NeymanPearsonThreshold(LogisticRegression(), fpr=0.05, random_state=seed)
        .fit(X, y)
        .threshold_
        for seed in (0, 0, 1)
    ]
    assert thresholds[0] == thresholds[1] != thresholds[2]


def test_fit_parameters_are_split_with_the_samples():
    X = np.arange(400.0)[:, None]
    y = np.repeat([0, 1], [300, 100])
    model = NeymanPearsonThreshold(FirstFeature(), fpr=0.1, random_state=0)
    model.fit(X, y, sample_weight=X.ravel() + 0.5)
    np.testing.assert_array_equal(
        model.estimator_.sample_weight_, model.estimator_.X_.ravel() + 0.5
    )


def test_prefit_model_is_used_as_it_is(data):
    X, y = data
    inner = LogisticRegression().fit(X[::2], y[::2])
    coef = inner.coef_.copy()
    calibration = X[1::2], y[1::2]
    model = NeymanPearsonThreshold(inner, fpr=0.05, cv="prefit").fit(*calibration)
    assert model.estimator_ is inner
    np.testing.assert_array_equal(inner.coef_, coef)
    assert model.n_negatives_ == np.sum(calibration[1] == 0)
    negatives_alone = NeymanPearsonThreshold(inner, fpr=0.05, cv="prefit").fit(
        calibration[0][calibration[1] == 0], np.zeros(model.n_negatives_, dtype=int)
    )
    assert negatives_alone.threshold_ == model.threshold_


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(),
        DecisionTreeClassifier(max_depth=3, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
        TauFPL(tau=0.05),
    ],
    ids=["decision_function", "predict_proba", "pipeline", "at the top"],
)
def test_prediction_is_a_score_above_the_threshold(estimator, data):
    X, y = data
    names = np.where(y == 1, "yes", "no")
    model = NeymanPearsonThreshold(estimator, fpr=0.05, random_state=0).fit(X, names)
    if hasattr(model.estimator_, "decision_function"):
        scores = model.estimator_.decision_function(X)
    else:
        scores = model.estimator_.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])
    np.testing.assert_array_equal(model.predict(X) == "yes", scores > model.threshold_)
    np.testing.assert_array_equal(model.decision_function(X), scores - model.threshold_)
    assert np.mean(model.predict(X[y == 1]) == "yes") > 0.3  # cautious, not useless


def test_the_positive_class_may_be_the_first_one(data):
    X, y = data
    second = NeymanPearsonThreshold(LogisticRegression(), fpr=0.05, random_state=0).fit(X, y)
    names = np.where(y == 1, "fraud", "honest")
    first = clone(second).set_params(pos_label="fraud").fit(X, names)
    assert (first.pos_label_, first.order_) == ("fraud", second.order_)
    assert first.threshold_ == pytest.approx(second.threshold_, rel=1e-4)
    np.testing.assert_array_equal(first.predict(X) == "fraud", second.predict(X) == 1)
    # Larger for classes_[1], here the negatives: as scikit-learn's scorers expect it.
    np.testing.assert_allclose(first.decision_function(X), -second.decision_function(X), atol=1e-3)
    scorer = get_scorer("tpr_at_fpr_0.05", pos_label="fraud")
    assert scorer(first, X, names) == get_scorer("tpr_at_fpr_0.05")(second, X, y)
    with pytest.raises(ValueError, match=r"'pos_label' parameter .* Got 1 instead"):
        clone(second).set_params(pos_label=1).fit(X, names)


def test_sparse_matrices_and_data_frames(data):
    X, y = data
    dense = NeymanPearsonThreshold(LogisticRegression(), fpr=0.05, random_state=0).fit(X, y)
    sparse = clone(dense).fit(sp.csr_matrix(X), y)
    assert sparse.threshold_ == pytest.approx(dense.threshold_, abs=1e-2)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    columns = make_column_transformer((StandardScaler(), ["x3", "x5"]))
    model = NeymanPearsonThreshold(make_pipeline(columns, LogisticRegression()), fpr=0.05)
    model.fit(frame, pd.Series(y))
    np.testing.assert_array_equal(model.feature_names_in_, frame.columns)
    assert set(model.predict(frame)) == {0, 1}


def test_works_in_cross_validation(data):
    model = NeymanPearsonThreshold(LogisticRegression(), fpr=0.05, random_state=0)
    ranked = cross_val_score(model, *data, cv=3, scoring=get_scorer("tpr_at_fpr_0.05"))
    assert np.all((ranked > 0.3) & (ranked <= 1))


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"fpr": 1.5}, r"'fpr' parameter of NeymanPearsonThreshold must be in \(0, 1\). Got 1.5"),
        ({"confidence": 1}, r"The 'confidence' parameter .* must be in \(0, 1\). Got 1 instead"),
        ({"cv": 1}, r"The 'cv' parameter .* Got 1 instead"),
        ({"cv": 1.0}, r"The 'cv' parameter .* Got 1.0 instead"),
        ({"cv": "fold"}, r"The 'cv' parameter .* Got 'fold' instead"),
        ({"cv": None}, r"The 'cv' parameter .* Got None instead"),
        ({"estimator": LinearRegression()}, "must have decision_function or predict_proba"),
        ({"estimator": SVC(kernel="precomputed")}, "cannot split a precomputed kernel"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_with_a_reason(parameters, message, data):
    with pytest.raises(ValueError, match=message):
        NeymanPearsonThreshold(**{"estimator": LogisticRegression(), **parameters}).fit(*data)


def test_too_few_negatives_are_refused_with_the_number_needed():
    X, y = np.arange(500.0)[:, None], np.repeat([0, 1], [400, 100])
    with pytest.raises(
        ValueError, match=r"at least 299 held-out negatives. Got 200 .* provide 598"
    ):
        NeymanPearsonThreshold(FirstFeature()).fit(X, y)
    with pytest.raises(ValueError, match=r"at least 299 held-out negatives. Got 250"):
        NeymanPearsonThreshold(fitted_first_feature(), cv="prefit").fit(X[:250], y[:250])
    enough = np.arange(698.0)[:, None], np.repeat([0, 1], [598, 100])
    assert NeymanPearsonThreshold(FirstFeature()).fit(*enough).order_ == 299


def test_labels_must_be_two_classes():
    X = np.arange(30.0)[:, None]
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        NeymanPearsonThreshold(FirstFeature()).fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match=r"needs two classes. Got one class instead"):
        NeymanPearsonThreshold(FirstFeature()).fit(X, np.zeros(30))


def expected_failures(estimator):
    weights = dict.fromkeys(
        (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")),
        "a weight is no copy for the threshold",
    )
    if not isinstance(estimator, PrecisionThreshold):
        return weights
    return weights | {
        "check_classifiers_train": "nearly all may be called positive",
        "check_fit2d_1feature": "no positive among five samples",
    }


@parametrize_with_checks(
    # The checks have few samples, so the promise must be a modest one.
    [
        NeymanPearsonThreshold(LogisticRegression(), fpr=0.3, confidence=0.5),
        NeymanPearsonThreshold(DecisionTreeClassifier(random_state=0), fpr=0.3, confidence=0.5),
        RecallThreshold(LogisticRegression(), recall=0.7, confidence=0.5, random_state=0),
        PrecisionThreshold(LogisticRegression(), precision=0.05, confidence=0.05, random_state=0),
        AlertBudgetThreshold(
            LogisticRegression(), max_alerts=5, period=10, confidence=0.5, random_state=0
        ),
        CostThreshold(LogisticRegression(), random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


def test_guaranteed_precision_is_accurate_where_there_are_samples_enough():
    """The promise above is modest enough to call nearly all positive."""
    model = PrecisionThreshold(LogisticRegression(), precision=0.9, confidence=0.5)
    check_classifiers_train("PrecisionThreshold", model)
