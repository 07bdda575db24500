"""Thresholds keep what they promise: by simulation, and exactly against brute force."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, poisson
from sklearn.linear_model import LogisticRegression

from attop.calibration import (
    AlertBudgetThreshold,
    CostThreshold,
    NeymanPearsonThreshold,
    NoThresholdError,
    PrecisionThreshold,
    RecallThreshold,
    required_positives,
)
from known_scores import (
    DISTANCE,
    N_DRAWS,
    Identity,
    calibrated,
    calibrated_or_none,
    draw,
    least_violations,
    most_violations,
    tail,
    true_precision,
)

# Recall


def test_recall_is_kept_and_the_bound_is_sharp():
    rng = np.random.default_rng(0)
    violations = 0
    for _ in range(N_DRAWS):
        model = calibrated(RecallThreshold, rng.normal(size=60), np.ones(60), confidence=0.9)
        violations += norm.sf(model.threshold_) < 0.9
    assert model.violation_bound_ <= 0.1
    assert (
        least_violations(model.violation_bound_)
        <= violations
        <= most_violations(model.violation_bound_)
    )


def test_recall_is_kept_with_ties_because_they_are_called_positive():
    rng = np.random.default_rng(0)
    violations = violations_if_ties_were_negative = 0
    for _ in range(N_DRAWS):
        scores = rng.poisson(6.0, size=100)
        model = calibrated(RecallThreshold, scores, np.ones(100), confidence=0.9)
        lowest = np.sort(scores)[model.order_ - 1]
        assert list(model.predict([[lowest - 1.0], [lowest]])) == [0, 1]
        violations += poisson.sf(lowest - 1, 6.0) < 0.9
        violations_if_ties_were_negative += poisson.sf(lowest, 6.0) < 0.9
    assert violations <= most_violations(0.1)
    assert violations_if_ties_were_negative > most_violations(0.1)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    m=st.integers(1, 50),
    recall=st.sampled_from(["0.5", "0.75", "0.9"]),
    confidence=st.sampled_from(["0.5", "0.9", "0.99"]),
)
def test_rank_of_the_recall_is_the_largest_that_the_binomial_tail_allows(m, recall, confidence):
    r, delta = Fraction(recall), 1 - Fraction(confidence)
    valid = [k for k in range(1, m + 1) if tail(m, k - 1, 1 - r) <= delta]
    promise = {"recall": float(recall), "confidence": float(confidence)}
    assert (required_positives(**promise) <= m) == bool(valid)
    if not valid:
        with pytest.raises(NoThresholdError, match=rf"held-out positives. Got {m} instead"):
            calibrated(RecallThreshold, np.arange(m), np.ones(m), **promise)
        return
    model = calibrated(RecallThreshold, np.arange(m), np.ones(m), **promise)
    assert model.order_ == valid[-1]
    assert model.violation_bound_ == pytest.approx(float(tail(m, valid[-1] - 1, 1 - r)), rel=1e-9)
    assert model.threshold_ == np.nextafter(valid[-1] - 1.0, -inf)


# Precision


def test_precision_is_kept():
    rng = np.random.default_rng(0)
    recalls, violations = [], 0
    for _ in range(N_DRAWS):
        model = calibrated_or_none(
            PrecisionThreshold, *draw(rng, 1000), precision=0.85, confidence=0.8
        )
        if model is not None:
            recalls.append(norm.sf(model.threshold_ - DISTANCE))
            violations += true_precision(model.threshold_) < model.precision_bound_
            assert model.precision_bound_ >= 0.85
    assert violations <= most_violations(0.2)
    assert len(recalls) > 0.9 * N_DRAWS and np.mean(recalls) > 0.3  # cautious, not useless


@pytest.mark.parametrize("decimals", [None, 0], ids=["continuous", "ties"])
def test_precision_is_not_found_where_it_is_missing_everywhere(decimals):
    """The labels know nothing of the scores, and every threshold is just below the target."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(N_DRAWS):
        scores, positive = rng.normal(size=400), rng.random(400) < 0.7 - 1e-9
        scores = scores if decimals is None else np.round(scores, decimals)
        promise = {"precision": 0.7, "confidence": 0.8}
        found += calibrated_or_none(PrecisionThreshold, scores, positive, **promise) is not None
    assert 0 < found <= most_violations(0.2)


def test_precision_need_not_grow_with_the_threshold():
    """The highest scores are mostly negative; below, a precision of 0.77 exists."""
    rng = np.random.default_rng(0)
    n_found = violations = 0
    for _ in range(N_DRAWS):
        s = rng.random(1500)
        positive = rng.random(1500) < np.where(s > 0.95, 0.2, np.where(s > 0.5, 0.92, 0.1))
        promise = {"precision": 0.77, "confidence": 0.8}
        model = calibrated_or_none(PrecisionThreshold, s, positive, **promise)
        if model is None:
            continue
        n_found += 1
        t = min(max(model.threshold_, 0.5), 0.95)
        above = 0.05 * 0.2 + (0.95 - t) * 0.92 + max(0.0, 0.5 - model.threshold_) * 0.1
        violations += above / (1 - model.threshold_) < 0.77
    assert n_found > 0.5 * N_DRAWS
    assert violations <= most_violations(0.2)


def test_precision_takes_the_lowest_candidate_that_exact_tails_allow():
    rng = np.random.default_rng(0)
    p, risk = Fraction("0.8"), 0.1 * (1 - 2 ** (-1 / 3))
    first = next(k for k in range(1, 100) if 0.8**k <= risk)
    ranks = [round(first * 2 ** (i / 3)) for i in range(30)]
    outcomes = set()
    for _ in range(40):
        s = np.round(rng.normal(size=200), int(rng.integers(0, 4)))
        positive = rng.random(200) < norm.cdf(3 * s + rng.normal())
        falling = np.sort(s)[::-1]
        valid = []
        for i, k in enumerate(k for k in ranks if k < 200):
            n, hits = np.sum(s > falling[k]), np.sum(positive[s > falling[k]])
            if 1 - tail(int(n), int(hits) - 1, p) <= risk * 2 ** (-i / 3):
                valid.append((falling[k], n))
        outcomes.add(bool(valid))
        promise = {"precision": 0.8, "confidence": 0.9}
        model = calibrated_or_none(PrecisionThreshold, s, positive, **promise)
        assert (model is None) == (not valid)
        if valid:
            assert (model.threshold_, model.n_alarms_) == valid[-1]
            assert model.precision_bound_ >= 0.8
    assert outcomes == {True, False}


def test_no_threshold_with_the_precision_is_an_answer_in_words():
    s, positive = np.arange(200.0), np.arange(200) % 2
    with pytest.raises(
        NoThresholdError, match=r"no threshold with precision=0.9 .* least 44 alarms .* prove 0\.\d"
    ):
        calibrated(PrecisionThreshold, s, positive)
    with pytest.raises(NoThresholdError, match=r"at least 45 held-out samples. Got 44 instead"):
        calibrated(PrecisionThreshold, s[:44], np.ones(44))
    assert calibrated(PrecisionThreshold, s[:45], np.ones(45)).threshold_ == 0.0


# Extremes

KINDS = [
    NeymanPearsonThreshold,
    PrecisionThreshold,
    RecallThreshold,
    AlertBudgetThreshold,
    CostThreshold,
]


def test_equal_scores():
    """Ties are called as the guarantee needs them, and where that is impossible it is said."""
    y, new = np.arange(2000) % 2, [[7.0]]
    for kind, called in ((NeymanPearsonThreshold, 0), (RecallThreshold, 1)):
        assert calibrated(kind, np.full(2000, 7.0), y).predict(new) == [called]
    budget = calibrated(AlertBudgetThreshold, np.full(2000, 7.0), y, period=100)
    assert budget.predict(new) == [0]
    with pytest.raises(NoThresholdError, match="has 0 alarms, 0 of them positive"):
        calibrated(PrecisionThreshold, np.full(2000, 7.0), y)
    for fn, called in ((9, 1), (0.2, 0)):
        model = calibrated(CostThreshold, np.full(2000, 7.0), y, cost_matrix=((0, 1), (fn, 0)))
        assert model.predict(new) == [called]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("confidence", [1e-9, 1 - 1e-9])
def test_extreme_confidence(kind, confidence):
    scores, positive = draw(np.random.default_rng(0), 9000)
    promise = {
        AlertBudgetThreshold: {"max_alerts": 200, "period": 400},
        PrecisionThreshold: {"precision": 0.7},
    }.get(kind, {})
    model = calibrated(kind, scores, positive, confidence=confidence, **promise)
    assert np.isfinite(model.threshold_)
    if hasattr(model, "violation_bound_"):
        assert 0 < model.violation_bound_ <= (1 - confidence) * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_more_confidence_is_more_caution(kind):
    scores, positive = draw(np.random.default_rng(0), 5000)
    promise = {"max_alerts": 40, "period": 400} if kind is AlertBudgetThreshold else {}
    models = [
        calibrated(kind, scores, positive, confidence=confidence, **promise)
        for confidence in (0.5, 0.9, 0.99, 0.9999)
    ]
    thresholds = [model.threshold_ for model in models]
    if kind is CostThreshold:
        bounds = [model.cost_bound_ for model in models]
        assert len(set(thresholds)) == 1 and bounds == sorted(bounds)
    else:
        if kind is not PrecisionThreshold:  # there the candidates change, up to a quarter
            assert thresholds == sorted(thresholds, reverse=kind is RecallThreshold)
        assert (thresholds[0] > thresholds[-1]) == (kind is RecallThreshold)


@pytest.mark.parametrize(
    "kind, promise, message",
    [
        (RecallThreshold, {"recall": 1.0}, r"'recall' parameter .* in \(0, 1\). Got 1.0 instead"),
        (PrecisionThreshold, {"precision": 0}, r"'precision' .* in \(0, 1\). Got 0 instead"),
        (AlertBudgetThreshold, {"max_alerts": -1}, r"an int in \[0, 1000\), the period. Got -1"),
        (AlertBudgetThreshold, {"max_alerts": 5, "period": 5}, r"in \[0, 5\), .* Got 5 instead"),
        (AlertBudgetThreshold, {"max_alerts": True}, r"'max_alerts' .* Got True instead"),
        (AlertBudgetThreshold, {"period": 1.5}, r"'period' .* Got 1.5 instead"),
        (CostThreshold, {"cost_matrix": 3}, r"'cost_matrix' parameter of Cost.* Got 3 instead"),
        (CostThreshold, {"cost_matrix": ((0, 1), (0, 0))}, "fp > tn and fn > tp"),
        (CostThreshold, {"cost_matrix": ((0, inf), (1, 0))}, "must be finite numbers"),
        (CostThreshold, {"cost_matrix": "free"}, "Got 'free' instead"),
        (CostThreshold, {"confidence": 0.0}, r"'confidence' parameter of CostThreshold .* Got 0.0"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_with_a_reason(kind, promise, message):
    with pytest.raises(ValueError, match=message):
        calibrated(kind, np.arange(100), np.arange(100) % 2, **promise)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_the_estimator_does_not_know_are_refused(kind):
    X, y = np.arange(1000.0)[:, None], np.where(np.arange(1000) % 2, 1, 7)
    with pytest.raises(ValueError, match=r"classes of its estimator, \[0, 1\]. Got \[7\] too"):
        kind(Identity(), cv="prefit").fit(X, y)


@pytest.mark.parametrize("kind", KINDS)
def test_the_positive_class_may_be_the_first_one(kind):
    scores, positive = draw(np.random.default_rng(0), 4000)
    X, names = scores[:, None], np.where(positive, "fraud", "honest")
    promise = {"period": 200} if kind is AlertBudgetThreshold else {}
    second = kind(LogisticRegression(), random_state=0, **promise).fit(X, positive)
    first = kind(LogisticRegression(), pos_label="fraud", random_state=0, **promise).fit(X, names)
    np.testing.assert_array_equal(first.predict(X) == "fraud", second.predict(X))
    np.testing.assert_allclose(first.top_score(X), second.top_score(X), atol=1e-2)
    np.testing.assert_array_equal(first.decision_function(X), -first.top_score(X))


def test_a_promise_that_cannot_be_kept_leaves_the_model_as_it_was():
    X = np.random.default_rng(0).normal(size=(600, 1))
    model = PrecisionThreshold(LogisticRegression(), random_state=0).fit(X, X[:, 0] > 0)
    before = dict(vars(model))
    with pytest.raises(NoThresholdError):
        model.fit(-X, np.arange(600) % 2)
    assert vars(model) == before


def test_one_class_to_train_on_is_refused():
    y = np.r_[1, np.zeros(199, dtype=int)]
    outcomes = set()
    for seed in range(10):
        try:
            CostThreshold(LogisticRegression(), random_state=seed).fit(np.arange(200.0)[:, None], y)
            outcomes.add("fitted")
        except ValueError as error:
            outcomes.add(str(error)[:44])
    assert outcomes == {"fitted", "CostThreshold is left with one class to trai"}
