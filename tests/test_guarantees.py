"""Thresholds keep what they promise: by simulation, and exactly against brute force."""

from fractions import Fraction
from itertools import combinations
from math import comb, inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm, poisson
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from attop.calibration import (
    AlertBudgetThreshold,
    CostThreshold,
    NeymanPearsonThreshold,
    NoThresholdError,
    PrecisionThreshold,
    RecallThreshold,
    neyman_pearson_bands,
    neyman_pearson_order,
    required_positives,
)

N_DRAWS = 500
SHARE, DISTANCE = 0.3, 2.0  # of the positives N(2, 1) among negatives N(0, 1)


class Identity(ClassifierMixin, BaseEstimator):
    """Fitted from the start; the only feature is the score."""

    classes_ = np.array([0, 1])

    def fit(self, X, y):
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]

    def __sklearn_is_fitted__(self):
        return True


def calibrated(kind, scores, positive, **promise):
    X = np.asarray(scores, dtype=float)[:, None]
    return kind(Identity(), cv="prefit", **promise).fit(X, np.asarray(positive, dtype=int))


def calibrated_or_none(kind, scores, positive, **promise):
    try:
        return calibrated(kind, scores, positive, **promise)
    except NoThresholdError:
        return None


def draw(rng, n):
    positive = rng.random(n) < SHARE
    return rng.normal(size=n) + DISTANCE * positive, positive


def true_precision(t):
    hits, mistakes = SHARE * norm.sf(t - DISTANCE), (1 - SHARE) * norm.sf(t)
    return hits / (hits + mistakes)


def most_violations(probability, n_draws=N_DRAWS):
    """Exceeded by chance once in a thousand tests."""
    return binom.ppf(0.999, n_draws, probability)


def least_violations(probability, n_draws=N_DRAWS):
    return binom.ppf(0.001, n_draws, probability)


def tail(n, x, p):
    """P(Bin(n, p) <= x), exactly."""
    return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(x + 1))


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
        NoThresholdError, match=r"no threshold with precision=0.9 .* at least 0\.\d"
    ):
        calibrated(PrecisionThreshold, s, positive)
    with pytest.raises(NoThresholdError, match=r"at least 45 held-out samples. Got 44 instead"):
        calibrated(PrecisionThreshold, s[:44], np.ones(44))
    assert calibrated(PrecisionThreshold, s[:45], np.ones(45)).threshold_ == 0.0


# Alert budget


def violation_frequency(m, n, rank, max_alerts):
    """Of all ways to mix m held-out and n new scores, those with too many alerts."""
    over = total = 0
    for held_out in combinations(range(m + n), m):
        threshold = held_out[-rank]
        over += (m + n - 1 - threshold) - (rank - 1) > max_alerts
        total += 1
    return Fraction(over, total)


@pytest.mark.parametrize("m, n, max_alerts", [(6, 4, 1), (7, 3, 0), (5, 6, 3), (8, 2, 1)])
@pytest.mark.parametrize("confidence", ["0.5", "0.75", "0.9"])
def test_alert_budget_is_exact(m, n, max_alerts, confidence):
    delta = 1 - Fraction(confidence)
    risks = {rank: violation_frequency(m, n, rank, max_alerts) for rank in range(1, m + 1)}
    valid = [rank for rank in risks if risks[rank] <= delta]
    promise = {"max_alerts": max_alerts, "period": n, "confidence": float(confidence)}
    if not valid:
        with pytest.raises(NoThresholdError, match=f"held-out samples. Got {m} instead"):
            calibrated(AlertBudgetThreshold, np.arange(m), np.zeros(m), **promise)
        return
    model = calibrated(AlertBudgetThreshold, np.arange(m), np.zeros(m), **promise)
    assert model.order_ == m + 1 - valid[-1]
    assert model.threshold_ == model.order_ - 1
    assert model.violation_bound_ == pytest.approx(float(risks[valid[-1]]), rel=1e-9)


@pytest.mark.parametrize("max_alerts, period", [(0, 2), (0, 20), (3, 50), (40, 1000)])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_alert_budget_needs_just_so_many_samples(max_alerts, period, confidence):
    promise = {"max_alerts": max_alerts, "period": period, "confidence": confidence}
    with pytest.raises(NoThresholdError) as error:
        calibrated(AlertBudgetThreshold, [1.0], [0], **promise)
    needed = int(str(error.value).split("at least ")[1].split()[0])
    model = calibrated(AlertBudgetThreshold, np.arange(needed), np.zeros(needed), **promise)
    assert model.order_ == needed
    with pytest.raises(NoThresholdError, match=f"at least {needed} held-out samples"):
        calibrated(AlertBudgetThreshold, np.arange(needed - 1), np.zeros(needed - 1), **promise)


@pytest.mark.parametrize("ties", [False, True])
def test_alert_budget_is_kept(ties):
    rng = np.random.default_rng(0)
    violations = 0
    for _ in range(N_DRAWS):
        held_out, period = (draw(rng, n)[0] for n in (300, 100))
        if ties:
            held_out, period = np.round(held_out), np.round(period)
        model = calibrated(
            AlertBudgetThreshold, held_out, np.zeros(300), max_alerts=5, period=100, confidence=0.9
        )
        violations += model.predict(period[:, None]).sum() > 5
    assert violations <= most_violations(model.violation_bound_)
    if not ties:
        assert violations >= least_violations(model.violation_bound_)


def test_alert_budget_needs_no_labels():
    X = np.random.default_rng(0).normal(size=(300, 1))
    model = AlertBudgetThreshold(Identity(), period=50, cv="prefit")
    assert model.fit(X, None).threshold_ == model.fit(X, X[:, 0] > 0).threshold_
    with pytest.raises(ValueError, match="requires y to be passed"):
        AlertBudgetThreshold(LogisticRegression()).fit(X, None)


# Cost


@pytest.mark.parametrize("costs", [((0, 1), (1, 0)), ((0, 1), (5, 0)), ((-1, 2), (3, -4))])
def test_cost_is_the_least_of_all_thresholds(costs):
    rng = np.random.default_rng(0)
    (tn, fp), (fn, tp) = costs
    for decimals in (0, 1, 5):
        scores, positive = draw(rng, 80)
        scores = np.round(scores, decimals)

        def cost(threshold, s=scores, y=positive):
            above = s > threshold
            return np.mean(np.where(y, np.where(above, tp, fn), np.where(above, fp, tn)))

        possible = {t: cost(t) for t in (scores.min() - 1, *np.unique(scores))}
        model = calibrated(CostThreshold, scores, positive, cost_matrix=costs)
        assert model.cost_ == pytest.approx(min(possible.values()))
        assert cost(model.threshold_) == pytest.approx(model.cost_)
        higher = [c for t, c in possible.items() if t > model.threshold_]
        assert min(higher, default=inf) > model.cost_
        assert model.cost_bound_ > model.cost_


def test_cost_on_new_data_is_bounded():
    rng = np.random.default_rng(0)
    costs, confidence, m = ((0.0, 1.0), (4.0, -0.5)), 0.8, 300

    def true_cost(t):
        fpr, tpr = norm.sf(t), norm.sf(t - DISTANCE)
        return (1 - SHARE) * fpr + SHARE * (4.0 * (1 - tpr) - 0.5 * tpr)

    best = true_cost(np.linspace(-3, 5, 2001)).min()
    allowed_regret = 2 * (1.0 + 4.5) * np.sqrt(np.log(4 / (1 - confidence)) / (2 * m))
    above_bound = above_mean = regrets = 0
    for _ in range(N_DRAWS):
        model = calibrated(CostThreshold, *draw(rng, m), cost_matrix=costs, confidence=confidence)
        found = true_cost(model.threshold_)
        above_bound += found > model.cost_bound_
        above_mean += found > model.cost_
        regrets += found - best > allowed_regret
    assert above_bound <= most_violations(1 - confidence)
    assert regrets <= most_violations(1 - confidence)
    assert above_mean > 0.5 * N_DRAWS  # the mean cost itself is no promise
    assert model.cost_bound_ < true_cost(9.0)  # better than no alarm at all: not an idle bound


def test_cost_of_a_class_that_was_not_seen_is_all_that_it_may_be():
    costs = ((0, 1), (100, 0))
    negatives = calibrated(CostThreshold, np.arange(200), np.zeros(200), cost_matrix=costs)
    assert (negatives.cost_, negatives.threshold_) == (0.0, 199.0)
    unseen = 1 - (0.05 / 6) ** (1 / 200)  # so many positives there may be
    false_alarms = np.sqrt(np.log(60) / 400)
    assert negatives.cost_bound_ == pytest.approx(unseen * 100 + (1 - unseen) * false_alarms)
    positives = calibrated(CostThreshold, np.arange(200), np.ones(200), cost_matrix=costs)
    assert positives.cost_ == 0.0 and positives.predict([[0.0]]) == [1]


# Bands


def test_bands_are_those_of_the_thresholds():
    rng = np.random.default_rng(0)
    scores, positive = draw(rng, 500)
    bands = neyman_pearson_bands(positive, scores, confidence=0.9)
    assert len(bands.fpr) == np.sum(~positive)
    assert bands.fpr[0] == pytest.approx(1 - 0.1 ** (1 / len(bands.fpr)))
    for fpr in (0.01, 0.03, 0.2, 0.7):
        i = np.searchsorted(bands.fpr, fpr, side="right") - 1
        model = calibrated(NeymanPearsonThreshold, scores, positive, fpr=fpr, confidence=0.9)
        assert bands.thresholds[i] == model.threshold_
        assert model.order_ == len(bands.fpr) - i
        observed = np.mean(scores[positive] > model.threshold_)
        assert bands.tpr_lower[i] < observed < bands.tpr_upper[i]
    assert np.all(np.diff(bands.fpr) > 0)
    assert np.all(np.diff(bands.tpr_lower) >= 0) and np.all(np.diff(bands.tpr_upper) >= 0)


def test_bands_cover_the_true_rates():
    rng = np.random.default_rng(0)
    outside = exceeded = 0
    for _ in range(N_DRAWS):
        scores, positive = draw(rng, 300)
        bands = neyman_pearson_bands(positive, scores, confidence=0.8)
        i = np.searchsorted(bands.fpr, 0.1, side="right") - 1
        t = bands.thresholds[i]
        exceeded += norm.sf(t) > 0.1
        outside += not bands.tpr_lower[i] <= norm.sf(t - DISTANCE) <= bands.tpr_upper[i]
    assert 0 < exceeded <= most_violations(0.2)
    assert 0 < outside <= most_violations(0.2)


def test_bands_of_many_negatives_are_thinned_but_not_where_it_matters():
    scores, positive = draw(np.random.default_rng(0), 40_000)
    bands = neyman_pearson_bands(positive, scores)
    assert len(bands.fpr) <= 5000
    n = np.sum(~positive)
    order, _ = neyman_pearson_order(n, fpr=0.002)
    i = np.searchsorted(bands.fpr, 0.002, side="right") - 1
    assert bands.thresholds[i] == np.sort(scores[~positive])[order - 1]
    assert np.max(bands.fpr[1:] / bands.fpr[:-1]) < 3 and np.max(np.diff(bands.fpr)) < 0.01


def test_bands_leave_out_samples_of_weight_zero():
    scores, positive = draw(np.random.default_rng(0), 300)
    weight = np.arange(300) % 3
    some = neyman_pearson_bands(positive, scores, sample_weight=weight)
    without = neyman_pearson_bands(positive[weight > 0], scores[weight > 0])
    for one, other in zip(some, without):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match=r"'confidence' parameter .* Got 95 instead"):
        neyman_pearson_bands(positive, scores, confidence=95)


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
    with pytest.raises(NoThresholdError, match="0 of 0 held-out samples above it are positive"):
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
