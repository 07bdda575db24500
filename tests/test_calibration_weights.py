"""Weights go to the estimator; the threshold counts each sample once, or not at all."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attop import TauFPL
from attop.calibration import (
    AlertBudgetThreshold,
    CostThreshold,
    NeymanPearsonThreshold,
    PrecisionThreshold,
    RecallThreshold,
)

THRESHOLDS = {
    "fpr": NeymanPearsonThreshold(LogisticRegression(), fpr=0.05),
    "recall": RecallThreshold(LogisticRegression(), recall=0.8),
    "precision": PrecisionThreshold(LogisticRegression(), precision=0.7),
    "alerts": AlertBudgetThreshold(LogisticRegression(), max_alerts=30, period=100),
    "cost": CostThreshold(LogisticRegression(), cost_matrix=((0, 1), (3, 0))),
}

every_threshold = pytest.mark.parametrize("name", THRESHOLDS)


class Recorder(ClassifierMixin, BaseEstimator):
    """Scores a sample by the feature that tells most and remembers what it was fitted on."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.sample_weight_ = X, sample_weight
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 12]


@pytest.fixture(scope="module")
def data():
    return make_classification(n_samples=1200, weights=[0.7], class_sep=1.5, random_state=0)


def threshold(name, **parameters):
    return clone(THRESHOLDS[name]).set_params(random_state=0, **parameters)


@every_threshold
def test_weights_reach_the_estimator_with_their_samples(name, data):
    X, y = data
    weight = 1.0 + np.abs(X[:, 0])
    model = threshold(name, estimator=Recorder()).fit(X, y, sample_weight=weight)
    inner = model.estimator_
    np.testing.assert_array_equal(inner.sample_weight_, 1.0 + np.abs(inner.X_[:, 0]))
    plain = threshold(name, estimator=Recorder()).fit(X, y)
    assert plain.estimator_.sample_weight_ is None
    assert plain.threshold_ == model.threshold_  # the same samples held out, once each


@every_threshold
def test_weights_change_what_is_learnt(name, data):
    X, y = data
    weight = np.where(X[:, 0] > 0, 5.0, 0.1)
    plain, weighted = threshold(name).fit(X, y), threshold(name).fit(X, y, sample_weight=weight)
    assert not np.allclose(plain.estimator_.coef_, weighted.estimator_.coef_)


@every_threshold
def test_weight_zero_is_as_if_the_sample_were_not_there(name, data):
    X, y = data
    weight = np.where(np.arange(len(y)) % 4, 2.0, 0.0)
    kept = weight > 0
    weighted = threshold(name).fit(X, y, sample_weight=weight)
    without = threshold(name).fit(X[kept], y[kept], sample_weight=weight[kept])
    assert weighted.threshold_ == without.threshold_
    np.testing.assert_array_equal(weighted.predict(X), without.predict(X))


@every_threshold
def test_weights_of_a_fitted_estimator_only_leave_samples_out(name, data):
    X, y = data
    inner = LogisticRegression().fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    weight = np.where(np.arange(len(y)) % 3, np.linspace(0.1, 9.0, len(y)), 0.0)
    models = [
        threshold(name, estimator=inner, cv="prefit").fit(*arguments)
        for arguments in ((X, y, weight), (X[weight > 0], y[weight > 0]), (X, y))
    ]
    assert models[0].threshold_ == models[1].threshold_ != models[2].threshold_


def test_weights_that_leave_too_little_are_refused(data):
    X, y = data
    model = threshold("fpr", fpr=0.01)
    with pytest.raises(ValueError, match=r"at least 299 held-out negatives. Got 2\d\d instead"):
        model.fit(X, y, sample_weight=np.arange(len(y)) % 2)
    with pytest.raises(ValueError, match=r"needs two classes. Got one class instead"):
        model.fit(X, y, sample_weight=(y == 0).astype(float))
    with pytest.raises(ValueError, match=r"[Nn]egative values in .*sample_weight"):
        model.fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sample_weight=np.ones(3))


@every_threshold
def test_metadata_routing_asks_who_wants_weights(name, data):
    X, y = data
    weight = 1.0 + np.abs(X[:, 0])
    with config_context(enable_metadata_routing=True):
        wants = Recorder().set_fit_request(sample_weight=True)
        wants_not = Recorder().set_fit_request(sample_weight=False)
        model = threshold(name, estimator=wants).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(
            model.estimator_.sample_weight_, 1.0 + np.abs(model.estimator_.X_[:, 0])
        )
        model = threshold(name, estimator=wants_not).fit(X, y, sample_weight=weight)
        assert model.estimator_.sample_weight_ is None
        with pytest.raises(UnsetMetadataPassedError, match=r"set_fit_request"):
            threshold(name, estimator=Recorder()).fit(X, y, sample_weight=weight)


def test_a_search_over_a_pipeline_passes_weights_on(data):
    X, y = data
    weight = np.where(X[:, 0] > 0, 5.0, 0.0)
    with config_context(enable_metadata_routing=True):
        inner = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=True),
            LogisticRegression().set_fit_request(sample_weight=True),
        )
        model = threshold("fpr", estimator=inner, fpr=0.2).set_fit_request(sample_weight=True)
        search = GridSearchCV(
            model.set_score_request(sample_weight=True),
            {"estimator__logisticregression__C": [1e-3, 1.0]},
            cv=3,
        )
        search.fit(X, y, sample_weight=weight)
        kept = weight > 0
        best = clone(search.best_estimator_).fit(X[kept], y[kept], sample_weight=weight[kept])
        assert search.best_estimator_.threshold_ == best.threshold_


def test_weights_of_our_own_estimators(data):
    X, y = data
    weight = np.where(np.arange(len(y)) % 3, 1.0 + np.arange(len(y)) % 2, 0.0)
    model = threshold("fpr", estimator=TauFPL(tau=0.05, kernel="linear", tol=1e-6), fpr=0.05)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    kept = weight > 0
    without = clone(model).fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(weighted.top_score(X), without.top_score(X), atol=1e-3)
    plain = clone(model).fit(X[kept], y[kept])
    assert not np.allclose(weighted.top_score(X), plain.top_score(X), atol=1e-3)
