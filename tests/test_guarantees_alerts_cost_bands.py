"""Budgets of alerts, costs and NP-ROC bands: by simulation, and against brute force."""

from fractions import Fraction
from itertools import combinations
from math import inf

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from attop.calibration import (
    AlertBudgetThreshold,
    CostThreshold,
    NeymanPearsonThreshold,
    NoThresholdError,
    neyman_pearson_bands,
    neyman_pearson_order,
)
from known_scores import (
    DISTANCE,
    N_DRAWS,
    SHARE,
    Identity,
    calibrated,
    draw,
    least_violations,
    most_violations,
)

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
