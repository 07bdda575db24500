"""The rankers of other papers: each against the definition that its paper gives."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

from attop.experiments.methods import build, label_of, own_metric, resolve_method
from attop.rivals import AccuracyAtTop, InfinitePush, PNormPush, RankBoost

#: On the blobs of the checks few samples are at the top: accuracy is not what is asked for.
ESTIMATORS = [
    PNormPush(),
    InfinitePush(tol=1e-8),
    RankBoost(n_rounds=10),
    AccuracyAtTop(n_candidates=5, random_state=0),
]


@pytest.mark.filterwarnings("ignore:The optimum of this:UserWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def samples(seed=0, n_positive=9, n_negative=14, n_features=3):
    """Two clouds that overlap."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0], [n_positive, n_negative])
    return rng.normal(size=(len(y), n_features)) + 0.7 * y[:, np.newaxis], y


def pairs(scores, y):
    """``s_i - s_j``: a row for each positive, a column for each negative."""
    return scores[y == 1][:, np.newaxis] - scores[y == 0]


@pytest.mark.parametrize("p", [1, 4, 16])
def test_p_norm_push_minimises_its_sum_over_pairs(p):
    X, y = samples()
    model = PNormPush(p=p, alpha=0.1, tol=1e-9).fit(X, y)

    def objective(w):
        per_negative = np.exp(-pairs(X @ w, y)).sum(axis=0)
        return np.log(np.sum(per_negative**p)) / p + 0.05 * (w @ w)

    assert model.objective_ == pytest.approx(objective(model.coef_[0]), rel=1e-10)
    best = minimize(objective, np.zeros(X.shape[1]), method="BFGS", options={"gtol": 1e-9})
    assert model.objective_ == pytest.approx(best.fun, abs=1e-8)


def test_p_norm_push_with_a_large_p_prices_the_highest_negative():
    X, y = samples(1)
    w = PNormPush(p=200, alpha=0.1).fit(X, y).coef_[0]
    top = np.log(np.exp(-pairs(X @ w, y)).sum(axis=0)).max()
    model = PNormPush(p=200, alpha=0.1).fit(X, y)
    # The sum of 14 p-th powers is at most 14 times the largest.
    assert top <= model.objective_ - 0.05 * (w @ w) <= top + np.log(14) / 200 + 1e-12


def test_infinite_push_is_the_optimum_over_all_pairs():
    """The quadratic program of its paper, with a loss for every pair."""
    X, y = samples(2, 5, 7, 2)
    alpha = 0.05
    (n_pairs, d), n_positive, n_negative = (35, 2), 5, 7
    # Unknowns: w, the losses of pairs, and their largest sum over a negative.
    P = sp.block_diag([alpha * sp.eye(d), sp.csc_matrix((n_pairs + 1, n_pairs + 1))], format="csc")
    q = np.r_[np.zeros(d + n_pairs), 1.0]
    differences = (X[y == 1][:, np.newaxis] - X[y == 0]).reshape(n_pairs, d)
    sums = np.kron(np.ones((1, n_positive)), np.eye(n_negative)) / n_positive
    rows = [
        np.hstack([-differences, -np.eye(n_pairs), np.zeros((n_pairs, 1))]),
        np.hstack([np.zeros((n_pairs, d)), -np.eye(n_pairs), np.zeros((n_pairs, 1))]),
        np.hstack([np.zeros((n_negative, d)), sums, -np.ones((n_negative, 1))]),
    ]
    b = np.r_[-np.ones(n_pairs), np.zeros(n_pairs + n_negative)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cones = [clarabel.NonnegativeConeT(len(b))]
    solution = clarabel.DefaultSolver(
        sp.triu(P, format="csc"), q, sp.csc_matrix(np.vstack(rows)), b, cones, settings
    ).solve()
    model = InfinitePush(alpha=alpha, tol=1e-8).fit(X, y)
    assert model.objective_ == pytest.approx(solution.obj_val, rel=1e-6)
    scores = model.decision_function(X)
    loss = np.maximum(0.0, 1.0 - pairs(scores, y)).mean(axis=0).max()
    w = model.model_.coef_[0]
    assert 0.5 * alpha * (w @ w) + loss == pytest.approx(model.objective_, rel=1e-6)


def test_rank_boost_keeps_its_bound_in_every_round():
    X, y = samples(3, 30, 40, 4)
    model = RankBoost(n_rounds=30).fit(X, y)
    scores, exponential = np.zeros(len(X)), []
    for t in range(len(model.weights_)):
        scores += model.weights_[t] * (X[:, model.features_[t]] > model.cuts_[t])
        exponential.append(np.exp(-pairs(scores, y)).mean())
        assert (pairs(scores, y) < 0.0).mean() <= model.bounds_[t] + 1e-12
    # The product of all Z is the exponential loss itself.
    np.testing.assert_allclose(exponential, model.bounds_, rtol=1e-6)
    assert (np.diff(exponential) < 0.0).all()
    np.testing.assert_allclose(scores, model.decision_function(X) + model.threshold_)


def test_rank_boost_begins_with_the_best_of_all_thresholds():
    X, y = samples(4)
    model = RankBoost(n_rounds=1).fit(X, y)
    best = np.inf
    for f in range(X.shape[1]):
        for cut in X[:, f]:
            order = pairs((X[:, f] > cut).astype(float), y)
            right, wrong = (order > 0.0).mean(), (order < 0.0).mean()
            best = min(best, 1.0 - (np.sqrt(right) - np.sqrt(wrong)) ** 2)
    # Weights are kept from infinity by 1e-12 of all pairs, whose root counts.
    assert model.bounds_[0] == pytest.approx(best, abs=2e-6)


def test_accuracy_at_the_top_solves_the_problem_of_every_candidate():
    X, y = samples(5, 8, 12, 2)
    model = AccuracyAtTop(tau=0.2, C=0.5, tol=1e-8, max_passes=100_000, random_state=0).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    found = []
    for k in range(len(X)):
        objective, w = optimum_of_candidate(signs[:, np.newaxis] * (X - X[k]), C=0.5)
        share = np.mean(X @ w > X[k] @ w)
        found.append((round(abs(share - 0.2), 9), objective))
    nearest, least = min(found)
    assert abs(model.share_ - 0.2) == pytest.approx(nearest, abs=1e-9)
    assert model.objective_ == pytest.approx(least, rel=1e-4)
    assert np.mean(model.decision_function(X) > 0.0) == pytest.approx(model.share_)


def optimum_of_candidate(rows, C):
    """``|w|^2 / 2 + C sum max(0, 1 - rows w)`` by an interior-point method."""
    n, d = rows.shape
    P = sp.block_diag([sp.eye(d), sp.csc_matrix((n, n))], format="csc")
    A = np.vstack([np.hstack([-rows, -np.eye(n)]), np.hstack([np.zeros((n, d)), -np.eye(n)])])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        P, np.r_[np.zeros(d), np.full(n, C)], sp.csc_matrix(A), np.r_[-np.ones(n), np.zeros(n)],
        [clarabel.NonnegativeConeT(2 * n)], settings,
    ).solve()  # fmt: skip
    return solution.obj_val, np.array(solution.x[:d])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PNormPush(p=0.5), r"The 'p' parameter of PNormPush must be in \[1, inf\). Got 0.5"),
        (InfinitePush(alpha=0), r"'alpha' parameter of InfinitePush must be in \(0, inf\)"),
        (RankBoost(n_thresholds=0), r"'n_thresholds' parameter of RankBoost"),
        (AccuracyAtTop(tau=1.0), r"'tau' parameter of AccuracyAtTop must be in \(0, 1\)"),
    ],
)
def test_parameters_out_of_range_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*samples())


@pytest.mark.filterwarnings("ignore:The optimum of this:UserWarning")
@pytest.mark.parametrize("name", ["PNormPush", "infinite-push", "rankboost", "AccuracyAtTop"])
def test_an_experiment_knows_them_by_name(name):
    method = resolve_method(name)
    assert method.startswith("attop.rivals:")
    assert ":" not in label_of(method, {})
    assert own_metric(method, {}) == "roc_auc"
    assert build(method, {}, {"name": "rbf"}, {"name": "exact"}).fit(*samples()) is not None
