"""Metrics equal their definitions, written out naively in exact arithmetic."""

from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from attop.metrics import (
    partial_auc,
    positives_at_top,
    precision_at_k,
    precision_at_recall,
    recall_at_precision,
    tpr_at_fpr,
    tpr_at_k,
)

SHARES = st.sampled_from([0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.5, 0.7, 0.75, 0.9, 1.0])

#: Every metric with fixed parameters; all but the mean of TPR@K see only the order of scores.
RANK_METRICS = {
    "tpr_at_k=1": lambda y, s, **kw: tpr_at_k(y, s, 1, **kw),
    "tpr_at_fpr": lambda y, s, **kw: tpr_at_fpr(y, s, 0.2, **kw),
    "positives_at_top": positives_at_top,
    "precision_at_k": lambda y, s, **kw: precision_at_k(y, s, 2, **kw),
    "precision_at_recall": lambda y, s, **kw: precision_at_recall(y, s, 0.6, **kw),
    "recall_at_precision": lambda y, s, **kw: recall_at_precision(y, s, 0.6, **kw),
    "partial_auc": lambda y, s, **kw: partial_auc(y, s, 0.3, **kw),
    "partial_auc_two_way": lambda y, s, **kw: partial_auc(y, s, 0.6, 0.4, **kw),
}
METRICS = {**RANK_METRICS, "tpr_at_k=2": lambda y, s, **kw: tpr_at_k(y, s, 2, **kw)}
WEIGHTED = [name for name in RANK_METRICS if not name.endswith(("k", "k=1"))]

repeatable = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def labelled_scores(draw, max_size=25, n_values=6, min_negatives=2):
    """Labels of both classes, and scores on a coarse grid, so that ties are common."""
    y = draw(st.lists(st.integers(0, 1), min_size=3, max_size=max_size))
    assume(0 < sum(y) <= len(y) - min_negatives)
    grid = st.integers(-n_values, n_values).map(lambda i: i / 4)
    s = draw(st.lists(grid, min_size=len(y), max_size=len(y)))
    return np.array(y), np.array(s)


def split(y, s):
    exact = [Fraction(float(value)) for value in s]
    return [v for v, c in zip(exact, y) if c == 1], [v for v, c in zip(exact, y) if c == 0]


def share(flags):
    flags = list(flags)
    return Fraction(sum(flags), len(flags))


def decimal(number):
    """The number a user means by 0.1, which no float is."""
    return Fraction(str(number))


def roc_points(y, s):
    """Corners of the ROC curve, from (0, 0) to (1, 1)."""
    positives, negatives = split(y, s)
    thresholds = sorted({*positives, *negatives}, reverse=True)
    return [(Fraction(0), Fraction(0))] + [
        (share(v >= t for v in negatives), share(v >= t for v in positives)) for t in thresholds
    ]


def exact_partial_area(y, s, max_fpr, min_tpr):
    """Area of the curve in the corner, trapezoid by trapezoid, each cut at both bounds."""
    points, area = roc_points(y, s), Fraction(0)
    for (x0, y0), (x1, y1) in pairwise(points):
        if x1 == x0 or x0 >= max_fpr:
            continue
        slope = (y1 - y0) / (x1 - x0)
        right = min(x1, max_fpr)
        left = x0
        if y0 < min_tpr:
            if slope == 0:
                continue
            left = x0 + (min_tpr - y0) / slope
        if left < right:
            heights = (y0 + slope * (left - x0) - min_tpr, y0 + slope * (right - x0) - min_tpr)
            area += (right - left) * sum(heights) / 2
    return area


@repeatable
@given(labelled_scores(), st.integers(1, 8))
def test_tpr_at_k_is_its_definition(data, k):
    y, s = data
    positives, negatives = split(y, s)
    assume(k <= len(negatives))
    threshold = sum(sorted(negatives, reverse=True)[:k]) / k
    assert tpr_at_k(y, s, k) == float(share(v >= threshold for v in positives))


@repeatable
@given(labelled_scores(), SHARES)
def test_tpr_at_fpr_is_its_definition(data, tau):
    y, s = data
    positives, negatives = split(y, s)
    threshold = max(t for t in negatives if share(v >= t for v in negatives) >= decimal(tau))
    assert tpr_at_fpr(y, s, tau) == float(share(v >= threshold for v in positives))


@pytest.mark.parametrize("n_negatives", [100, 1000, 3000])
@pytest.mark.parametrize("percent", [1, 7, 14, 28, 29, 55, 57, 58])
def test_tpr_at_fpr_is_not_moved_by_the_rounding_of_tau(n_negatives, percent):
    # ceil(0.07 * 100) is 8 in floating point; the threshold must be the 7th score.
    rank = n_negatives * percent // 100
    negatives = np.arange(n_negatives, 0, -1.0)
    s = np.r_[negatives, negatives[rank - 1], negatives[rank - 1] - 0.5]
    y = np.r_[np.zeros(n_negatives), 1, 1]
    assert tpr_at_fpr(y, s, percent / 100) == 0.5


@repeatable
@given(labelled_scores())
def test_positives_at_top_is_its_definition(data):
    y, s = data
    positives, negatives = split(y, s)
    assert positives_at_top(y, s) == float(share(v > max(negatives) for v in positives))
    assert positives_at_top(y, s) <= tpr_at_k(y, s, 1)


@repeatable
@given(labelled_scores(max_size=6, n_values=2), st.integers(1, 6))
def test_precision_at_k_is_the_mean_over_all_orders_of_the_ties(data, k):
    y, s = data
    assume(k <= len(y))
    values = []
    for order in permutations(range(len(y))):
        if all(s[a] >= s[b] for a, b in pairwise(order)):
            values.append(Fraction(int(sum(y[list(order[:k])])), k))
    assert precision_at_k(y, s, k) == pytest.approx(float(sum(values) / len(values)), abs=1e-14)


@repeatable
@given(labelled_scores(), SHARES)
def test_precision_and_recall_are_their_definitions(data, bound):
    y, s = data
    precisions, recalls = [], []
    for t in set(s):
        precisions.append(share(y[s >= t] == 1))
        recalls.append(share(s[y == 1] >= t))
    allowed = [p for p, r in zip(precisions, recalls) if r >= decimal(bound)]
    assert precision_at_recall(y, s, bound) == pytest.approx(float(max(allowed)), abs=1e-15)
    allowed = [r for p, r in zip(precisions, recalls) if p >= decimal(bound)]
    assert recall_at_precision(y, s, bound) == pytest.approx(float(max(allowed, default=0)))


@repeatable
@given(labelled_scores(), SHARES, st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 0.99]))
def test_partial_auc_is_the_area_in_the_corner(data, max_fpr, min_tpr):
    y, s = data
    area = exact_partial_area(y, s, decimal(max_fpr), decimal(min_tpr))
    raw = partial_auc(y, s, max_fpr, min_tpr, standardize=False)
    assert raw == pytest.approx(float(area), abs=1e-12)
    assert 0 <= raw <= max_fpr * (1 - min_tpr) + 1e-15


@repeatable
@given(labelled_scores(), SHARES)
def test_partial_auc_agrees_with_scikit_learn(data, max_fpr):
    y, s = data
    assert partial_auc(y, s, max_fpr) == pytest.approx(roc_auc_score(y, s, max_fpr=max_fpr))


def test_partial_auc_counts_pairs_of_positives_and_top_negatives():
    rng = np.random.default_rng(0)
    y, s = np.repeat([0, 1], [40, 15]), rng.permutation(55) / 7
    top = np.sort(s[y == 0])[::-1][:10]  # a quarter of the negatives
    pairs = np.mean(s[y == 1][:, None] > top) * 0.25
    assert partial_auc(y, s, 0.25, standardize=False) == pytest.approx(pairs)


@pytest.mark.parametrize("max_fpr, min_tpr", [(1, 0), (0.1, 0), (0.6, 0.4), (0.3, 0.7)])
def test_standardised_partial_auc_is_half_for_chance_and_one_for_perfect(max_fpr, min_tpr):
    y = np.repeat([0, 1], [30, 10])
    assert partial_auc(y, np.zeros(40), max_fpr, min_tpr) == pytest.approx(0.5)
    assert partial_auc(y, y, max_fpr, min_tpr) == pytest.approx(1.0)


@pytest.mark.parametrize("value", [0.1, 1 / 3, -0.7, 1e-300, 123456.789])
@pytest.mark.parametrize("k", [1, 3, 7, 10])
def test_all_equal_scores_come_out_as_the_definitions_say(value, k):
    y, s = np.repeat([0, 1], [10, 5]), np.full(15, value)
    assert tpr_at_k(y, s, k) == 1.0
    assert tpr_at_fpr(y, s, 0.01) == 1.0
    assert positives_at_top(y, s) == 0.0
    assert precision_at_k(y, s, k) == pytest.approx(1 / 3)
    assert precision_at_recall(y, s, 0.01) == pytest.approx(1 / 3)
    assert recall_at_precision(y, s, 0.5) == 0.0
    assert recall_at_precision(y, s, 0.3) == 1.0


@pytest.mark.parametrize("metric", METRICS)
@repeatable
@given(data=labelled_scores(), seed=st.integers(0, 100))
def test_the_order_of_samples_does_not_matter(metric, data, seed):
    y, s = data
    order = np.random.default_rng(seed).permutation(len(y))
    assert METRICS[metric](y[order], s[order]) == pytest.approx(METRICS[metric](y, s), abs=1e-14)


@pytest.mark.parametrize("metric", RANK_METRICS)
@repeatable
@given(data=labelled_scores())
def test_only_the_ranking_matters(metric, data):
    y, s = data
    assert RANK_METRICS[metric](y, np.exp(3 * s) - 7) == RANK_METRICS[metric](y, s)


@repeatable
@given(labelled_scores(), st.integers(1, 8), st.sampled_from([0.25, 1, 8]), st.integers(-3, 3))
def test_tpr_at_k_is_invariant_to_affine_transformations(data, k, scale, shift):
    y, s = data
    assume(k <= np.sum(y == 0))
    assert tpr_at_k(y, scale * s + shift, k) == tpr_at_k(y, s, k)


@pytest.mark.parametrize("metric", WEIGHTED)
@repeatable
@given(data=labelled_scores(), draw=st.data())
def test_integer_weights_are_repetitions_and_zero_weights_removals(metric, data, draw):
    y, s = data
    w = np.array(draw.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    assume(w[y == 0].any() and w[y == 1].any())
    repeated = METRICS[metric](np.repeat(y, w), np.repeat(s, w))
    for scale in (1, 0.1):  # the unit of the weights is of no account
        weighted = METRICS[metric](y, s, sample_weight=scale * w)
        assert weighted == pytest.approx(repeated, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_labels_of_any_kind(metric):
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [20, 10])
    s = rng.normal(size=30) + y
    value = METRICS[metric](y, s)
    assert METRICS[metric](2 * y - 1, s) == value
    assert METRICS[metric](y == 1, s.astype(object)) == value
    assert METRICS[metric](list(y), list(s), pos_label=1) == value
    names = np.where(y == 1, "fraud", "honest")
    assert METRICS[metric](names, s, pos_label="fraud") == value
    assert METRICS[metric](1 - y, s, pos_label=0) == value
    assert METRICS[metric](y, s.reshape(-1, 1)) == value


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "y, s, message",
    [
        ([0, 1, 0], [1, 2], "inconsistent numbers of samples"),
        ([0, 1, np.nan], [1, 2, 3], "y_true contains NaN"),
        ([0, 1, 0], [1, np.nan, 2], "y_score contains NaN"),
        ([0, 1, 0], [1, np.inf, 2], "y_score contains infinity"),
        ([0, 1, 2], [1, 2, 3], "must be binary. Got multiclass"),
        ([0, 0, 0], [1, 2, 3], "no positive samples"),
        ([1, 1, 1], [1, 2, 3], "no negative samples"),
        ([1, 2, 2], [1, 2, 3], r"Got \[1, 2\] instead: pass pos_label"),
        (["a", "b", "a"], [1, 2, 3], r"Got \['a', 'b'\] instead: pass pos_label"),
        ([0, 1, 0], [[1, 2], [3, 4], [5, 6]], "one column, that of the positive class"),
    ],
)
def test_bad_input_is_refused_with_a_reason(metric, y, s, message):
    with pytest.raises(ValueError, match=message):
        METRICS[metric](y, s)


def test_bad_weights_and_labels_are_refused_with_a_reason():
    y, s = [0, 1, 0, 1], [1, 2, 3, 4]
    with pytest.raises(ValueError, match="must not be negative"):
        tpr_at_fpr(y, s, sample_weight=[1, 1, 1, -1])
    with pytest.raises(ValueError, match="no positive samples"):
        tpr_at_fpr(y, s, sample_weight=[1, 0, 1, 0])
    with pytest.raises(ValueError, match=r"one of the labels \[0, 1\]. Got 2 instead"):
        tpr_at_fpr(y, s, pos_label=2)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda y, s: tpr_at_fpr(y, s, 1.5), r"of tpr_at_fpr must be in \(0, 1\]. Got 1.5 instead"),
        (lambda y, s: tpr_at_fpr(y, s, 0), "Got 0 instead"),
        (lambda y, s: tpr_at_fpr(y, s, np.nan), "Got nan instead"),
        (lambda y, s: tpr_at_fpr(y, s, "1"), "Got '1' instead"),
        (lambda y, s: tpr_at_k(y, s, 0), r"'k' parameter of tpr_at_k must be an int in \[1, inf\)"),
        (lambda y, s: tpr_at_k(y, s, 1.5), "Got 1.5 instead"),
        (lambda y, s: tpr_at_k(y, s, True), "Got True instead"),
        (lambda y, s: tpr_at_k(y, s, 3), "at most the number of negative samples, 2. Got 3"),
        (lambda y, s: precision_at_k(y, s, 5), "at most the number of samples, 4. Got 5"),
        (lambda y, s: precision_at_recall(y, s, -0.1), "'recall' parameter"),
        (lambda y, s: recall_at_precision(y, s, 2), "'precision' parameter"),
        (lambda y, s: partial_auc(y, s, 0), "'max_fpr' parameter"),
        (lambda y, s: partial_auc(y, s, 0.5, 1), r"'min_tpr' parameter .* in \[0, 1\)"),
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_with_a_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0])
