"""Sample weights in metrics and scorers count copies, as repeated rows do."""

import inspect
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attop import metrics
from attop.metrics import (
    get_scorer,
    get_scorer_names,
    partial_auc,
    positives_at_top,
    precision_at_k,
    precision_at_recall,
    recall_at_precision,
    tpr_at_fpr,
    tpr_at_k,
)

#: Metrics that know only shares of the weight, with their parameters.
OF_SHARES = {
    "tpr_at_fpr": lambda y, s, **kw: tpr_at_fpr(y, s, 0.2, **kw),
    "positives_at_top": positives_at_top,
    "precision_at_recall": lambda y, s, **kw: precision_at_recall(y, s, 0.6, **kw),
    "recall_at_precision": lambda y, s, **kw: recall_at_precision(y, s, 0.6, **kw),
    "partial_auc": lambda y, s, **kw: partial_auc(y, s, 0.3, **kw),
    "partial_auc_two_way": lambda y, s, **kw: partial_auc(y, s, 0.6, 0.4, **kw),
}
#: Those whose K counts copies.
AT_K = {"tpr_at_k": tpr_at_k, "precision_at_k": precision_at_k}
METRICS = {**OF_SHARES, "tpr_at_k": lambda y, s, **kw: tpr_at_k(y, s, 2, **kw)}
METRICS["precision_at_k"] = lambda y, s, **kw: precision_at_k(y, s, 3, **kw)

repeatable = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def weighted_scores(draw, max_weight=3):
    """Labels, scores on a coarse grid, so that ties are common, and integer weights.

    There are copies enough for two negatives and one positive.
    """
    n = draw(st.integers(3, 20))
    y, s, w = (
        np.array(draw(st.lists(elements, min_size=n, max_size=n)))
        for elements in (st.integers(0, 1), st.integers(-5, 5), st.integers(0, max_weight))
    )
    assume(w[y == 0].sum() >= 2 and w[y == 1].sum() >= 1)
    return y, s / 4, w


def repeated(data):
    y, s, w = data
    return np.repeat(y, w), np.repeat(s, w)


def copies(metric, data):
    """How many copies there are for K to count."""
    y, _, w = data
    return int(w.sum() if metric == "precision_at_k" else w[y == 0].sum())


def random_scores(seed, n=60):
    """Labels and scores with ties, and fractional weights."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], [n - n // 3, n // 3]))
    return y, np.round(rng.normal(size=n) + y, 1), rng.exponential(size=n)


@pytest.mark.parametrize("name", sorted(set(metrics.__all__) - {"get_scorer", "get_scorer_names"}))
def test_every_metric_takes_weights_and_none_by_default(name):
    parameter = inspect.signature(getattr(metrics, name)).parameters["sample_weight"]
    assert parameter.default is None and parameter.kind is parameter.KEYWORD_ONLY
    assert name in METRICS  # and is tested below


@pytest.mark.parametrize("metric", METRICS)
@repeatable
@given(data=weighted_scores())
def test_integer_weights_are_repeated_rows(metric, data):
    y, s, w = data
    value = METRICS[metric](y, s, sample_weight=w)
    assert value == pytest.approx(METRICS[metric](*repeated(data)), abs=1e-12)


@pytest.mark.parametrize("metric", AT_K)
@repeatable
@given(data=weighted_scores(), draw=st.data())
def test_k_counts_copies(metric, data, draw):
    y, s, w = data
    k = draw.draw(st.integers(1, copies(metric, data)))
    value = AT_K[metric](y, s, k, sample_weight=w)
    assert value == pytest.approx(AT_K[metric](*repeated(data), k), abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@repeatable
@given(data=weighted_scores())
def test_weight_zero_is_no_row_and_unit_weights_are_none(metric, data):
    y, s, w = data
    kept = w > 0
    removed = METRICS[metric](y[kept], s[kept], sample_weight=w[kept])
    assert METRICS[metric](y, s, sample_weight=w) == removed
    y, s = repeated(data)
    assert METRICS[metric](y, s, sample_weight=np.ones(len(y))) == METRICS[metric](y, s)
    assert METRICS[metric](y, s, sample_weight=1) == METRICS[metric](y, s)


@pytest.mark.parametrize("metric", OF_SHARES)
@repeatable
@given(data=weighted_scores())
def test_the_unit_of_weights_is_of_no_account_to_shares(metric, data):
    y, s, w = data
    expected = OF_SHARES[metric](*repeated(data))
    for unit in (2, 0.1, 1e-7, 1e9):
        value = OF_SHARES[metric](y, s, sample_weight=unit * w)
        assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", AT_K)
@repeatable
@given(data=weighted_scores(max_weight=12), draw=st.data())
def test_fractions_of_copies_are_copies_of_fractions(metric, data, draw):
    """Weights m / 4 with k are m copies with 4 k: the metrics at K scale with their K."""
    y, s, w = data
    assume(copies(metric, data) >= 4)
    k = draw.draw(st.integers(1, copies(metric, data) // 4))
    value = AT_K[metric](y, s, k, sample_weight=w / 4)
    assert value == pytest.approx(AT_K[metric](*repeated(data), 4 * k), abs=1e-12)


def test_doubled_weights_with_the_same_k_look_at_fewer_samples():
    y, s = [0, 0, 0, 1, 1], [1.0, 2.0, 4.0, 3.0, 2.5]
    assert tpr_at_k(y, s, 2) == 0.5  # above (4 + 2) / 2
    assert tpr_at_k(y, s, 2, sample_weight=[2] * 5) == 0.0  # above 4
    assert tpr_at_k(y, s, 4, sample_weight=[2] * 5) == 0.5
    assert precision_at_k(y, s, 2) == 0.5
    assert precision_at_k(y, s, 2, sample_weight=[2] * 5) == 0.0
    assert precision_at_k(y, s, 4, sample_weight=[2] * 5) == 0.5


@repeatable
@given(weighted_scores(), st.integers(0, 1000), st.sampled_from(["0.01", "0.2", "0.5", "1"]))
def test_weights_of_uneven_size_in_exact_arithmetic(data, seed, tau):
    y, s, _ = data
    w = 2.0 ** np.random.default_rng(seed).integers(-15, 15, size=len(y))
    exact, k = [Fraction(v) for v in w], 1

    def mass(members):
        return sum((exact[i] for i in np.flatnonzero(members)), Fraction(0))

    positive, negative = y == 1, y == 0
    reached = [t for t in set(s) if mass(negative & (s >= t)) >= Fraction(tau) * mass(negative)]
    rate = mass(positive & (s >= max(reached))) / mass(positive)
    # The largest threshold at which so many are reached is the score of a negative.
    assert tpr_at_fpr(y, s, float(tau), sample_weight=w) == pytest.approx(float(rate), abs=1e-12)
    assume(mass(w > 0) >= k)
    border = max(t for t in set(s) if mass(s >= t) >= k)
    share = mass(positive & (s == border)) / mass(s == border)
    found = mass(positive & (s > border)) + (k - mass(s > border)) * share
    value = precision_at_k(y, s, k, sample_weight=w)
    assert value == pytest.approx(float(found / k), abs=1e-12)


@pytest.mark.parametrize("metric", OF_SHARES)
def test_weights_at_the_ends_of_floating_point(metric):
    y, s, w = random_scores(0)
    value = OF_SHARES[metric](y, s, sample_weight=w)
    for unit in (1e-300, 1e300):
        assert OF_SHARES[metric](y, s, sample_weight=unit * w) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_a_weight_of_next_to_nothing_is_next_to_nothing(metric):
    y, s, w = random_scores(0)
    value = METRICS[metric](y, s, sample_weight=w)
    y, s, w = np.r_[y, 1, 0], np.r_[s, -9, -9], np.r_[w, 5e-324, 1e-300]
    assert METRICS[metric](y, s, sample_weight=w) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_threshold_of_tpr_at_k_is_the_largest_mean_of_k_copies(seed):
    y, s, w = random_scores(seed)
    negative, k = y == 0, 7
    bounds = np.c_[np.zeros(negative.sum()), w[negative]]
    best = linprog(-s[negative] / k, A_eq=np.ones((1, len(bounds))), b_eq=[k], bounds=bounds)
    # The rate steps down where a positive falls below the threshold: just at -best.fun.
    for offset, called in ((-1e-9, 1.0), (1e-9, 0.0)):
        one_positive = np.r_[s[negative], -best.fun - offset]
        value = tpr_at_k(
            np.r_[y[negative], 1], one_positive, k, sample_weight=np.r_[w[negative], 1]
        )
        assert value == called


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_weighted_samples_does_not_matter(metric, seed):
    y, s, w = random_scores(seed)
    value = METRICS[metric](y, s, sample_weight=w)
    assert 0 <= value <= 1
    for order in (slice(None, None, -1), np.random.default_rng(seed).permutation(len(y))):
        moved = METRICS[metric](y[order], s[order], sample_weight=w[order])
        assert moved == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("value", [0.1, 1 / 3, -0.7, 123456.789])
def test_all_equal_scores_come_out_as_the_definitions_say(value):
    y, s = np.repeat([0, 1], [10, 5]), np.full(15, value)
    w = np.where(y == 1, 0.3, 0.7)
    share = 1.5 / 8.5
    for k in (1, 3, 7):
        assert tpr_at_k(y, s, k, sample_weight=w) == 1.0
        assert precision_at_k(y, s, k, sample_weight=w) == pytest.approx(share)
    assert tpr_at_fpr(y, s, 0.01, sample_weight=w) == 1.0
    assert positives_at_top(y, s, sample_weight=w) == 0.0
    assert precision_at_recall(y, s, 0.01, sample_weight=w) == pytest.approx(share)
    assert recall_at_precision(y, s, share + 0.01, sample_weight=w) == 0.0
    assert recall_at_precision(y, s, share, sample_weight=w) == 1.0
    assert partial_auc(y, s, 0.3, sample_weight=w) == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(3))
def test_rates_agree_with_scikit_learn(seed):
    y, s, w = random_scores(seed)
    for max_fpr in (0.05, 0.3, 1.0):
        expected = roc_auc_score(y, s, max_fpr=max_fpr, sample_weight=w)
        assert partial_auc(y, s, max_fpr, sample_weight=w) == pytest.approx(expected)
    fpr, tpr, thresholds = roc_curve(y, s, sample_weight=w, drop_intermediate=False)
    assert positives_at_top(y, s, sample_weight=w) == pytest.approx(tpr[fpr == 0].max())
    of_a_negative = np.isin(thresholds, s[y == 0])
    for tau in (0.01, 0.123, 0.5, 1.0):
        expected = tpr[of_a_negative & (fpr >= tau - 1e-12)][0]
        assert tpr_at_fpr(y, s, tau, sample_weight=w) == pytest.approx(expected)
    precision, recall, _ = precision_recall_curve(y, s, sample_weight=w)
    for bound in (0.1, 0.456, 0.9):
        best = precision[recall >= bound].max()
        assert precision_at_recall(y, s, bound, sample_weight=w) == pytest.approx(best)
        best = recall[precision >= bound].max()
        assert recall_at_precision(y, s, bound, sample_weight=w) == pytest.approx(best)


@repeatable
@given(weighted_scores())
def test_average_precision_is_a_mean_of_precisions_at_k(data):
    y, s, w = data
    average = 0.0
    for t in np.unique(s[w > 0]):
        found = w[(y == 1) & (s == t)].sum() / w[y == 1].sum()
        average += found * precision_at_k(y, s, int(w[s >= t].sum()), sample_weight=w)
    assert average == pytest.approx(average_precision_score(y, s, sample_weight=w))


@pytest.mark.parametrize("percent", [1, 7, 30, 50])
def test_ranks_are_not_moved_by_the_rounding_of_many_weights(percent):
    # A running sum of 100,000 weights of 0.1 drifts by 2e-12 if nothing is done about it.
    n = 100_000
    rank = n * percent // 100
    negatives = np.arange(n, 0, -1.0)
    s = np.r_[negatives, negatives[rank - 1], negatives[rank - 1] - 0.5]
    y = np.r_[np.zeros(n), 1, 1]
    w = np.full(n + 2, 0.1)
    assert tpr_at_fpr(y, s, percent / 100, sample_weight=w) == 0.5
    y, s = np.r_[np.ones(n), 0, 0], -s
    # As many positives above both negatives as the recall asks for, and the next one is not.
    s[n], s[n + 1] = -negatives[n - rank] - 0.5, -n - 1.0
    assert precision_at_recall(y, s, percent / 100, sample_weight=w) == 1.0


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "weight, message",
    [
        ([1, 1, 1, 1, 1, -1], "'sample_weight' must not be negative. Got -1 instead"),
        ([1, 1, 1, 1, 1, np.nan], "sample_weight contains NaN"),
        ([1, 1, 1, 1, 1, np.inf], "sample_weight contains infinity"),
        (np.inf, "'sample_weight' must be finite"),
        ([1e308] * 6, "'sample_weight' must be finite, and so must their sum"),
        ([1] * 5, r"sample_weight.shape == \(5,\), expected \(6,\)"),
        ([[1, 1]] * 6, "Sample weights must be 1D"),
        ([0] * 6, "at least one non-zero|no positive samples"),
        ([1, 0, 1, 0, 1, 1], "no positive samples"),
        ([0, 1, 0, 1, 0, 0], "no negative samples"),
    ],
)
def test_bad_weights_are_refused_with_a_reason(metric, weight, message):
    with pytest.raises(ValueError, match=message):
        METRICS[metric]([0, 1, 0, 1, 0, 0], [1, 2, 3, 4, 5, 6], sample_weight=weight)


@pytest.mark.parametrize(
    "metric, what, available",
    [(tpr_at_k, "negative samples", "2.5"), (precision_at_k, "samples", "4")],
)
def test_k_beyond_the_copies_is_refused(metric, what, available):
    y, s, w = [0, 1, 0, 1], [1, 2, 3, 4], [1.5, 0.5, 1, 1]
    with pytest.raises(ValueError, match=f"at most the number of {what}, {available}. Got 5"):
        metric(y, s, 5, sample_weight=w)


def test_k_may_be_all_copies_though_their_sum_is_rounded():
    y, s, w = np.repeat([0, 1], [10, 1]), np.arange(11.0), np.full(11, 0.1)
    assert np.cumsum(w)[9] < 1
    assert tpr_at_k(y, s, 1, sample_weight=w) == 1.0
    w[-1] = 1.0
    assert precision_at_k(y, s, 2, sample_weight=w) == 0.5


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(n_samples=300, weights=[0.6], class_sep=0.7, random_state=0)
    return X, y, np.random.default_rng(0).integers(0, 4, size=len(y))


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("name", get_scorer_names())
def test_every_scorer_takes_weights(name, data):
    X, y, w = data
    model = LogisticRegression().fit(X, y)
    weighted = get_scorer(name)(model, X, y, sample_weight=w)
    copied = get_scorer(name)(model, np.repeat(X, w, axis=0), np.repeat(y, w))
    assert weighted == pytest.approx(copied, abs=1e-12)


@pytest.mark.parametrize("name", get_scorer_names())
def test_cross_validation_passes_weights_to_the_scorer_that_asks(name, data, routing):
    X, y, w = data
    model = LogisticRegression().set_fit_request(sample_weight=False)
    cv = StratifiedKFold(3)
    scorer = get_scorer(name).set_score_request(sample_weight=True)
    found = cross_validate(model, X, y, scoring=scorer, cv=cv, params={"sample_weight": w})
    for score, (train, test) in zip(found["test_score"], cv.split(X, y)):
        fitted = LogisticRegression().fit(X[train], y[train])
        expected = get_scorer(name)(fitted, X[test], y[test], sample_weight=w[test])
        assert score == pytest.approx(expected)


def test_grid_search_over_a_pipeline_passes_weights_to_fit_and_score(data, routing):
    X, y, w = data
    cv = StratifiedKFold(3)
    grid = {"logisticregression__C": [1e-3, 1.0]}
    scoring = {
        "weighted": get_scorer("tpr_at_fpr_0.05").set_score_request(sample_weight=True),
        "renamed": get_scorer("tpr_at_k_5").set_score_request(sample_weight="copies"),
        "plain": get_scorer("tpr_at_fpr_0.05").set_score_request(sample_weight=False),
    }
    pipeline = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=True),
        LogisticRegression().set_fit_request(sample_weight=True),
    )
    search = GridSearchCV(pipeline, grid, scoring=scoring, cv=cv, refit="weighted")
    search.fit(X, y, sample_weight=w, copies=w + 1)
    for i, C in enumerate(grid["logisticregression__C"]):
        for fold, (train, test) in enumerate(cv.split(X, y)):
            scaler = StandardScaler().fit(X[train], sample_weight=w[train])
            model = LogisticRegression(C=C)
            model.fit(scaler.transform(X[train]), y[train], sample_weight=w[train])
            s = model.decision_function(scaler.transform(X[test]))
            for name, expected in (
                ("weighted", tpr_at_fpr(y[test], s, 0.05, sample_weight=w[test])),
                ("renamed", tpr_at_k(y[test], s, 5, sample_weight=w[test] + 1)),
                ("plain", tpr_at_fpr(y[test], s, 0.05)),
            ):
                assert search.cv_results_[f"split{fold}_test_{name}"][i] == pytest.approx(expected)
    weighted = scoring["weighted"](search, X, y, sample_weight=w)
    assert search.score(X, y, sample_weight=w) == weighted
