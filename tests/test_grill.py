"""Grill and GrillNP: the objective is theirs, the descent only goes down, the status is honest."""

import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.utils.estimator_checks import parametrize_with_checks

from attop import Grill, GrillNP, TauFPL
from attop.datasets import load_ionosphere
from attop.formulations import NONCONVEX_FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.pipeline import prepare, problem_of
from attop.solvers.primal import solve_quantile
from attop.solvers.solution import Status
from attop.surrogates import SURROGATES
from conftest import two_clouds

X, POSITIVE = two_clouds(30, 60, distance=1.5)
ESTIMATORS = [Grill(tau=0.4, random_state=0), GrillNP(tau=0.1, random_state=0)]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
every_formulation = pytest.mark.parametrize("name", NONCONVEX_FORMULATIONS)
every_surrogate = pytest.mark.parametrize("surrogate", SURROGATES)


def quantile_problem(name, surrogate, C=0.7, tau=0.1, positive=POSITIVE):
    return NONCONVEX_FORMULATIONS[name].quantile_problem(positive, C, surrogate, tau)


def framework_objective(w, samples, positive, name, surrogate, lam, tau):
    """The framework of the paper, term by term, with lambda, C1 = 1/n- and C2 = 1/n+."""
    s = samples @ w
    competing = np.sort(s if name == "Grill" else s[~positive])[::-1]
    t = next(v for rank, v in enumerate(competing, 1) if rank >= tau * len(competing) * (1 - 1e-12))
    loss = (lambda x: max(0.0, 1 + x)) if surrogate == "hinge" else (lambda x: max(0.0, 1 + x) ** 2)
    false_positives = np.mean([loss(v - t) for v in s[~positive]])
    false_negatives = np.mean([loss(t - v) for v in s[positive]])
    return 0.5 * lam * w @ w + false_positives + false_negatives


@every_formulation
@every_surrogate
def test_the_objective_is_that_of_the_framework(name, surrogate):
    lam = 0.02
    C = 1.0 / (lam * POSITIVE.sum())
    problem = quantile_problem(name, surrogate, C=C)
    rng = np.random.default_rng(0)
    for _ in range(5):
        w = rng.normal(size=3)
        expected = framework_objective(w, X, POSITIVE, name, surrogate, lam, 0.1) / lam
        assert_allclose(problem.value(w @ w, X @ w), expected)


@every_formulation
@every_surrogate
def test_the_gradient_equals_finite_differences(name, surrogate):
    """At random weights, which are away from the kinks."""
    problem = quantile_problem(name, surrogate)
    rng = np.random.default_rng(1)
    h = 1e-7
    for _ in range(20):
        w = rng.normal(size=3) * rng.choice([0.1, 1.0])
        gradient = w + X.T @ problem.slopes(X @ w)
        differences = []
        for unit in np.eye(3):
            up, down = w + h * unit, w - h * unit
            rise = problem.value(up @ up, X @ up) - problem.value(down @ down, X @ down)
            differences.append(rise / (2 * h))
        assert_allclose(gradient, differences, rtol=1e-5, atol=1e-4)


@every_formulation
@every_surrogate
def test_the_slopes_do_not_feel_a_common_shift_of_the_scores(name, surrogate):
    problem = quantile_problem(name, surrogate)
    scores = np.random.default_rng(2).normal(size=len(X))
    assert_allclose(problem.slopes(scores).sum(), 0.0, atol=1e-10)
    assert_allclose(problem.value(0.0, scores + 3.0), problem.value(0.0, scores))


@every_formulation
@every_surrogate
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_the_result_is_never_worse_than_its_starts(name, surrogate, C):
    problem = quantile_problem(name, surrogate, C=C)
    gram = Gram(Kernel("linear"), X)
    solution = solve_quantile(problem, gram, random_state=0, max_iter=100)
    w = solution.coef
    assert solution.objective <= solution.start_objectives.min()
    assert_allclose(problem.value(w @ w, X @ w), solution.objective)
    given = np.array([1.0, 2.0, 0.5])
    start = problem.value(given @ given, X @ given)
    started = solve_quantile(problem, gram, start=given, random_state=0, max_iter=5)
    assert_allclose(started.start_objectives[0], start)
    assert started.objective <= start
    assert np.all(np.diff(solution.history.primal) <= 0.0)
    assert np.all(np.isnan(solution.history.gap))


@every_formulation
@every_surrogate
def test_finds_the_best_of_all_weights_in_one_dimension(name, surrogate):
    samples, positive = two_clouds(20, 40, n_features=1, distance=2.0, seed=3)
    problem = quantile_problem(name, surrogate, C=1.0, tau=0.3, positive=positive)
    grid = np.linspace(-4.0, 4.0, 8001)
    best = min(problem.value(w**2, samples[:, 0] * w) for w in grid)
    solution = solve_quantile(problem, Gram(Kernel("linear"), samples), random_state=0)
    assert solution.objective <= best * (1 + 1e-4)


def test_is_better_than_the_convex_relative_at_the_quantile_of_training_scores():
    data, y = load_ionosphere(return_X_y=True)
    negatives = y != 1
    grill = GrillNP(tau=0.05, C=1.0, random_state=0).fit(data, y)
    convex = TauFPL(tau=0.05, C=1.0, kernel="linear", random_state=0).fit(data, y)

    def true_positives(model):
        scores = model.decision_function(data)
        count = math.ceil(0.05 * negatives.sum())
        return np.mean(scores[~negatives] >= np.sort(scores[negatives])[-count])

    assert true_positives(grill) > true_positives(convex)


@every_estimator
def test_fitted_attributes_and_an_honest_status(estimator):
    model = clone(estimator).fit(X, POSITIVE)  # any warning is an error
    assert model.status_ is Status.NO_CERTIFICATE
    assert "no certificate" in str(model.status_)
    assert math.isnan(model.dual_gap_)
    assert not hasattr(model, "alpha_") and not hasattr(model, "support_")
    assert model.start_objectives_.shape == (4,)
    assert model.n_iter_ >= 1
    scores = X @ model.coef_[0]
    assert_allclose(model.decision_function(X), scores - model.threshold_)
    problem = problem_of(model, prepare(model, X, POSITIVE))
    assert_allclose(problem.value(np.sum(model.coef_**2), scores), model.objective_)


@every_estimator
def test_the_share_tau_of_the_competitors_reaches_the_threshold(estimator):
    model = clone(estimator).fit(X, POSITIVE)
    competing = POSITIVE >= 0 if isinstance(estimator, Grill) else ~POSITIVE
    count = np.sum(model.decision_function(X)[competing] >= 0.0)
    assert count == math.ceil(estimator.tau * competing.sum() - 1e-9)


@every_estimator
def test_same_seed_same_model(estimator):
    first, second = (clone(estimator).set_params(random_state=3).fit(X, POSITIVE) for _ in "12")
    assert_array_equal(first.coef_, second.coef_)
    assert first.threshold_ == second.threshold_
    restored = pickle.loads(pickle.dumps(first))
    assert_array_equal(restored.decision_function(X), first.decision_function(X))
    other = clone(estimator).set_params(random_state=4).fit(X, POSITIVE)
    assert not np.array_equal(other.start_objectives_, first.start_objectives_)


@every_estimator
def test_warm_start_does_not_lose_what_was_found(estimator):
    model = clone(estimator).set_params(warm_start=True).fit(X, POSITIVE)
    found = model.objective_
    model.set_params(max_iter=1).fit(X, POSITIVE)
    assert model.objective_ <= found
    model.fit(X[:, :2], POSITIVE)  # other features: the old weights are of no use
    assert model.coef_.shape == (1, 2)


@every_estimator
def test_sparse_is_dense(estimator):
    data = np.where(np.abs(X) < 0.7, 0.0, X)
    dense = clone(estimator).fit(data, POSITIVE)
    sparse = clone(estimator).fit(sp.csr_matrix(data), POSITIVE)
    assert_allclose(sparse.objective_, dense.objective_, rtol=1e-2)
    assert_allclose(sparse.decision_function(data), sparse.decision_function(sp.csr_array(data)))


@every_estimator
def test_more_starts_are_not_worse(estimator):
    few = clone(estimator).set_params(solver_options={"n_starts": 1}).fit(X, POSITIVE)
    many = clone(estimator).set_params(solver_options={"n_starts": 6}).fit(X, POSITIVE)
    assert many.objective_ <= few.objective_
    with pytest.raises(ValueError, match="'n_starts' option must be"):
        clone(estimator).set_params(solver_options={"n_starts": 0}).fit(X, POSITIVE)


def test_limits():
    quick = GrillNP(tau=0.1, max_iter=2, random_state=0).fit(X, POSITIVE)
    assert quick.n_iter_ <= 2 * 4
    late = GrillNP(tau=0.1, max_time=1e-9, random_state=0).fit(X, POSITIVE)
    assert late.n_iter_ == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rbf"}, r"'kernel' .* must be 'linear'.*approximation='nystroem'.*Got 'rbf'"),
        ({"kernel": "precomputed"}, r"'kernel' .* must be 'linear'"),
        ({"solver": "exact"}, r"'solver' .* must be 'auto' or 'primal', as there is no dual"),
        ({"C": np.inf}, r"'C' .* must be finite"),
        ({"tau": 1.5}, r"'tau' .* must be in \(0, 1\). Got 1.5 instead."),
    ],
)
@every_estimator
def test_what_cannot_be_fitted(estimator, parameters, message):
    with pytest.raises(ValueError, match=message):
        clone(estimator).set_params(**parameters).fit(X, POSITIVE)


def test_an_approximation_makes_it_nonlinear():
    rings, y = make_circles(200, noise=0.05, factor=0.4, random_state=0)
    linear = GrillNP(tau=0.05, random_state=0).fit(rings, y)
    curved = clone(linear).set_params(kernel="rbf", approximation="nystroem").fit(rings, y)
    assert np.mean(linear.predict(rings)[y == 1]) < 0.5
    assert np.mean(curved.predict(rings)[y == 1]) > 0.99
    assert np.mean(curved.predict(rings)[y == 0]) == 0.05


@parametrize_with_checks([Grill(tau=0.5), GrillNP()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
