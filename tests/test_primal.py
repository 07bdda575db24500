"""The primal solver: the optimum of the dual, reached from the other side."""

import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import attop
from attop import TauFPL, TopPush, TopPushK
from attop.datasets import load_ionosphere
from attop.formulations import FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.objectives import (
    certificate_of_zero,
    certify,
    dual_value,
    infeasibility,
    primal_value,
    threshold,
)
from attop.smooth import SmoothLoss
from attop.solvers import primal
from attop.solvers.primal import steps
from attop.solvers.primal.samples import Samples
from attop.solvers.primal.subgradient import Subgradient, slopes
from attop.solvers.solution import Status
from attop.surrogates import SURROGATES
from conftest import CASES, OPTIMA, PARAMETERS, kernel_matrix, two_clouds
from oracle import solve_dual

LINEAR_OPTIMA = [row for row in OPTIMA if row["kernel"] == "linear"]
every_case = pytest.mark.parametrize(("name", "surrogate"), CASES)


def linear_case(name, surrogate, C=0.3):
    X, positive = two_clouds(distance=1.5)
    problem = FORMULATIONS[name].problem(positive, C, surrogate, **PARAMETERS[name])
    return problem, Gram(Kernel("linear"), X)


def optimum_of(problem, gram):
    return solve_dual(problem, kernel_matrix(gram))[2]


def random_scores(problem, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=1 + max(problem.positives.max(), problem.competitors.max()))


@pytest.mark.filterwarnings("ignore:The optimum of this TopMeanK is w = 0:UserWarning")
@pytest.mark.parametrize("row", LINEAR_OPTIMA, ids=lambda row: "-".join(row.values()))
def test_reference_optima_within_100_steps(row):
    data, y = load_ionosphere(return_X_y=True)
    parameters = {name: float(row[name]) for name in ("tau", "theta") if row[name]}
    if row["K"]:
        parameters["K"] = int(row["K"])
    model = getattr(attop, row["formulation"])(
        C=float(row["C"]),
        surrogate=row["surrogate"],
        kernel="linear",
        solver="primal",
        tol=1e-3,
        max_iter=100,
        **parameters,
    ).fit(data, y)
    assert model.dual_gap_ <= 1e-3
    assert_allclose(model.objective_, float(row["objective"]), rtol=1e-3)


@every_case
def test_newton_reaches_the_optimum(name, surrogate):
    problem, gram = linear_case(name, surrogate)
    solution = primal.solve(problem, gram, tol=1e-8, max_iter=200)
    optimum = optimum_of(problem, gram)
    assert solution.status is Status.CONVERGED
    assert solution.certificate.certifies(1e-8)
    assert_allclose(solution.certificate.primal, optimum, rtol=2e-8)


@every_case
def test_the_descent_of_the_paper_reaches_the_optimum(name, surrogate):
    problem, gram = linear_case(name, surrogate)
    solution = primal.solve(problem, gram, tol=3e-3, max_iter=5000, method="subgradient")
    optimum = optimum_of(problem, gram)
    assert solution.status is Status.CONVERGED
    assert solution.certificate.dual <= optimum * (1 + 1e-9)
    assert optimum * (1 - 1e-9) <= solution.certificate.primal <= optimum * (1 + 3e-3)


@every_case
def test_conjugate_gradients_find_the_same_optimum(name, surrogate, monkeypatch):
    problem, gram = linear_case(name, surrogate)
    monkeypatch.setattr(steps, "DIRECT_UP_TO", 0)
    solution = primal.solve(problem, gram, tol=1e-6, max_iter=200)
    assert solution.certificate.certifies(1e-6)
    assert_allclose(solution.certificate.primal, optimum_of(problem, gram), rtol=2e-6)


@every_case
def test_the_gradient_bounds_the_objective_from_below(name, surrogate):
    problem, gram = linear_case(name, surrogate)
    samples = Samples(gram.X)
    rng = np.random.default_rng(0)

    def value(w):
        return primal_value(problem, w @ w, gram.X @ w)

    for _ in range(20):
        w = rng.normal(size=gram.X.shape[1])
        scores = gram.X @ w
        point = slopes(problem, scores, threshold(problem, scores))
        gradient = w - samples.weights(problem, *point)
        for scale in (1e-3, 1.0, 10.0):
            other = w + scale * rng.normal(size=len(w))
            tangent = value(w) + gradient @ (other - w)
            assert value(other) >= tangent - 1e-9 * abs(tangent)


@every_case
def test_slopes_at_any_scores_are_a_lower_bound(name, surrogate):
    """Weak duality at the points that the solvers build from scores."""
    problem, gram = linear_case(name, surrogate)
    samples, optimum = Samples(gram.X), optimum_of(problem, gram)
    for seed in range(10):
        scores = 0.1 * random_scores(problem, seed)
        alpha, beta = slopes(problem, scores, threshold(problem, scores))
        assert infeasibility(problem, alpha, beta) <= 1e-12
        w = samples.weights(problem, alpha, beta)
        assert dual_value(problem, w @ w, alpha, beta) <= optimum * (1 + 1e-9)


@every_case
def test_the_descent_of_the_paper_never_lowers_its_bound(name, surrogate):
    problem, gram = linear_case(name, surrogate)
    samples = Samples(gram.X)
    zeros = np.zeros(len(problem.positives)), np.zeros(len(problem.competitors))
    descent = Subgradient(problem, samples, *zeros)
    for _ in range(50):
        before = descent.dual
        descent.advance()
        assert descent.dual >= before - 1e-12 * abs(before)
        assert infeasibility(problem, descent.alpha, descent.beta) <= 1e-12
        assert_allclose(samples.weights(problem, descent.alpha, descent.beta), descent.w)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_smooth_loss_has_its_derivatives_and_is_a_little_below(surrogate):
    x = np.linspace(-3.0, 2.0, 501) + 1e-4
    loss = SmoothLoss(SURROGATES[surrogate], 0.3, np.linspace(0.0, 1.0, 501))
    h = 1e-6
    assert_allclose(loss.slope(x), (loss.value(x + h) - loss.value(x - h)) / (2 * h), atol=1e-5)
    bend = (loss.slope(x + h) - loss.slope(x - h)) / (2 * h)
    assert_allclose(loss.curvature(x), bend, atol=1e-5)
    below = SURROGATES[surrogate].value(x) - loss.value(x)
    distance = SURROGATES[surrogate].slope(x) - loss.given  # of the slope to stay near to
    assert np.all((below >= -1e-12) & (below <= 0.15 * distance**2 + 1e-12))


def test_without_a_width_the_quadratic_hinge_is_itself():
    x = np.linspace(-3.0, 2.0, 501)
    hinge2 = SURROGATES["quadratic_hinge"]
    loss = SmoothLoss(hinge2, 0.0, np.ones(501))
    assert_allclose(loss.value(x), hinge2.value(x))
    assert_allclose(loss.slope(x), hinge2.slope(x))


@pytest.mark.parametrize(("name", "surrogate"), [case for case in CASES if case[0] != "SVM"])
@pytest.mark.parametrize("width", [1.0, 0.01])
def test_the_smooth_threshold_has_its_derivatives_and_is_a_little_below(name, surrogate, width):
    problem, _ = linear_case(name, surrogate)
    scores = random_scores(problem)
    competing = scores[problem.competitors]
    weights = np.random.default_rng(3).integers(1, 4, len(competing)).astype(float)
    problem = problem._replace(
        weights=np.concatenate([np.ones(problem.n_positives), weights])  # copies of each
    )
    given = np.random.default_rng(1).random(len(competing))
    if name not in ("PatMat", "PatMatNP"):  # the given shares sum to 1
        given *= min(1.0, max(1, problem.betas.K) / (weights @ given))
    smooth = problem.family.smooth_threshold(problem, competing, weights, width, given)
    assert_allclose(weights @ smooth.share, 1.0)
    assert np.all(smooth.share >= 0.0)
    below = threshold(problem, scores) - smooth.value
    assert -1e-12 <= below <= 0.5 * width * (1 + 1e-9)
    direction = np.random.default_rng(2).normal(size=len(competing))
    h = 1e-6 * width
    up, down = (
        problem.family.smooth_threshold(
            problem, competing + sign * h * direction, weights, width, given
        )
        for sign in (1, -1)
    )
    assert_allclose(
        (weights * smooth.share) @ direction, (up.value - down.value) / (2 * h), rtol=1e-5
    )
    bend = (weights * (up.share - down.share)) @ direction / (2 * h)
    along = direction - (weights * smooth.centre(weights)) @ direction
    assert_allclose((weights * smooth.curvature) @ along**2, bend, rtol=1e-4, atol=1e-8)


@every_case
def test_equal_scores_are_no_trouble(name, surrogate):
    problem, gram = linear_case(name, surrogate)
    solution = primal.solve(problem, Gram(gram.kernel, np.ones_like(gram.X)), tol=1e-6)
    assert_allclose(solution.certificate.primal, primal_value(problem, 0.0, np.zeros(36)))


@pytest.mark.parametrize("method", ["newton", "subgradient"])
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array])
def test_sparse_is_dense(method, form):
    problem, gram = linear_case("TauFPL", "hinge")
    X = np.where(np.abs(gram.X) < 0.5, 0.0, gram.X)
    options = {"tol": 1e-9, "method": method, "max_iter": 60}
    dense = primal.solve(problem, Gram(gram.kernel, X), **options)
    sparse = primal.solve(problem, Gram(gram.kernel, form(X)), **options)
    assert_allclose(sparse.certificate.primal, dense.certificate.primal, rtol=1e-7)


def test_single_precision_gives_the_same_model():
    problem, gram = linear_case("TauFPL", "hinge")
    single = primal.solve(problem, Gram(gram.kernel, gram.X.astype(np.float32)), tol=1e-6)
    double = primal.solve(problem, gram, tol=1e-6)
    assert_allclose(single.certificate.primal, double.certificate.primal, rtol=1e-5)


@pytest.mark.parametrize("method", ["newton", "subgradient"])
def test_limits_and_history(method):
    problem, gram = linear_case("TopPushK", "hinge", C=3.0)
    stopped = primal.solve(problem, gram, tol=1e-12, max_iter=5, method=method)
    assert (stopped.status, stopped.n_iter) == (Status.MAX_ITER, 5)
    assert_array_equal(stopped.history.step, np.arange(6))
    late = primal.solve(problem, gram, max_time=0.0, method=method)
    assert (late.status, late.n_iter) == (Status.MAX_TIME, 0)
    rare = primal.solve(problem, gram, tol=1e-12, max_iter=5, method=method, check_every=2)
    assert_array_equal(rare.history.step, [0, 2, 4, 5])


@every_case
@pytest.mark.parametrize("method", ["newton", "subgradient"])
def test_a_start_at_the_optimum_is_kept(name, surrogate, method):
    problem, gram = linear_case(name, surrogate)
    cold = primal.solve(problem, gram, tol=1e-6)
    warm = primal.solve(problem, gram, tol=1e-4, start=(cold.alpha, cold.beta), method=method)
    assert warm.n_iter == 0
    assert warm.certificate.certifies(1e-4)


@every_case
@pytest.mark.parametrize("method", ["newton", "subgradient"])
def test_a_start_that_is_not_feasible(name, surrogate, method):
    problem, gram = linear_case(name, surrogate)
    far = 10.0 * np.ones(len(problem.positives)), np.ones(len(problem.competitors))
    solution = primal.solve(problem, gram, tol=1e-2, start=far, method=method)
    assert solution.certificate.certifies(1e-2)


@pytest.mark.parametrize("C", [1e-8, 1e6])
@every_case
def test_extreme_weights_with_samples_in_both_classes(name, surrogate, C):
    X, positive = two_clouds(20, 60, distance=1.0)
    X, positive = np.vstack([X, X[:20]]), np.concatenate([positive, ~positive[:20]])
    problem = FORMULATIONS[name].problem(positive, C, surrogate, **PARAMETERS[name])
    solution = primal.solve(problem, Gram(Kernel("linear"), X), tol=1e-4, max_iter=300)
    assert solution.status is Status.CONVERGED


def test_a_large_weight_on_ten_samples():
    X, y = np.random.default_rng(0).normal(size=(10, 8)), np.array([0, 1] * 5)
    model = TopPushK(K=1, C=1e4, kernel="linear", solver="primal").fit(X, y)
    assert model.status_ is Status.CONVERGED
    exact = TopPushK(K=1, C=1e4, kernel="linear", tol=1e-8).fit(X, y)
    assert_allclose(model.objective_, exact.objective_, rtol=2e-4)


@every_case
@pytest.mark.parametrize("scale", [1e-6, 1e4])
def test_the_scale_of_the_features_is_that_of_the_weight(name, surrogate, scale):
    """Features times a number are the same problem as C times its square."""
    X, positive = two_clouds(12, 20, distance=3.0)
    problem = FORMULATIONS[name].problem(positive, 100.0 / scale**2, surrogate, **PARAMETERS[name])
    solution = primal.solve(problem, Gram(Kernel("linear"), scale * X), tol=1e-4)
    plain = primal.solve(problem._replace(C=100.0), Gram(Kernel("linear"), X), tol=1e-4)
    assert solution.status is plain.status is Status.CONVERGED
    assert_allclose(scale**2 * solution.certificate.dual, plain.certificate.dual, rtol=2e-4)


@pytest.mark.parametrize("seed", range(12))
def test_every_fit_ends_with_the_gap_that_it_claims(seed):
    """Cauchy features of any scale and weights of any size, without a limit on the steps."""
    rng = np.random.default_rng(seed)
    X = 10.0 ** rng.uniform(-6, 6) * rng.standard_cauchy((30, 6))
    X[20:] = X[:10]  # some of them with the other label
    positive = rng.random(30) < 0.4
    name, surrogate = CASES[seed % len(CASES)]
    C = 10.0 ** rng.uniform(-4, 6)
    problem = FORMULATIONS[name].problem(positive, C, surrogate, **PARAMETERS[name])
    gram = Gram(Kernel("linear"), X)
    solution = primal.solve(problem, gram, tol=1e-4)
    assert solution.status in (Status.CONVERGED, Status.STALLED, Status.PRECISION)
    certificate = certify(problem, gram, solution.alpha, solution.beta, tol=1e-4)
    assert certificate.infeasibility <= 1e-8
    assert certificate.gap == solution.certificate.gap
    proved = min(certificate.gap, certificate_of_zero(problem, certificate).gap) <= 1e-4
    assert proved == (solution.status is Status.CONVERGED)


def test_the_best_point_is_kept():
    problem, gram = linear_case("TopPushK", "hinge", C=300.0)
    certificates = [
        primal.solve(problem, gram, tol=1e-12, max_iter=steps).certificate for steps in range(1, 12)
    ]
    # The model of no weights is one that a point may be kept for.
    gaps = [min(known.gap, certificate_of_zero(problem, known).gap) for known in certificates]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(gaps))


@pytest.mark.parametrize("method", ["newton", "subgradient"])
def test_the_time_is_kept_with_the_certificate(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 40))
    y = X[:, 0] + 0.5 * rng.normal(size=20_000) > 1.5
    seconds = 0.005 if method == "newton" else 0.5  # less than it takes to the tolerance
    model = TauFPL(tau=0.05, C=1.0, kernel="linear", solver="primal", tol=1e-9, max_time=seconds)
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.set_params(solver_options={"method": method}).fit(X, y)
    assert model.status_ is Status.MAX_TIME
    assert time.perf_counter() - began <= 5.0  # machines may be busy
    assert np.isfinite(model.dual_gap_)


def test_the_estimator_predicts_like_that_of_the_dual():
    X, positive = two_clouds(30, 60, distance=1.5)
    exact = TauFPL(tau=0.1, kernel="linear", tol=1e-8, random_state=0).fit(X, positive)
    model = TauFPL(tau=0.1, kernel="linear", tol=1e-8, solver="primal").fit(X, positive)
    assert_allclose(model.coef_, exact.coef_, atol=1e-3)
    assert_allclose(model.decision_function(X), exact.decision_function(X), atol=2e-3)
    assert model.status_ is Status.CONVERGED


def test_what_the_primal_solver_cannot_do():
    X, positive = two_clouds()
    with pytest.raises(ValueError, match=r"'kernel' parameter of TopPush .*'linear'.*nystroem"):
        TopPush(solver="primal").fit(X, positive)
    with pytest.raises(ValueError, match=r"'C' parameter of TopPush must be finite.*'exact'"):
        TopPush(solver="primal", kernel="linear", C=np.inf).fit(X, positive)
    problem, gram = linear_case("TopPush", "hinge")
    with pytest.raises(ValueError, match="needs the linear kernel"):
        primal.solve(problem, Gram(Kernel("rbf"), gram.X))
    with pytest.raises(ValueError, match="must be finite"):
        primal.solve(problem._replace(C=np.inf), gram)
    with pytest.raises(ValueError, match=r"'method' option must be one of .*newton"):
        primal.solve(problem, gram, method="steepest")
    with pytest.raises(ValueError, match="'check_every' option"):
        primal.solve(problem, gram, check_every=0)


# Some checks fit pure noise, or a handful of samples, whose optimum is w = 0.
@pytest.mark.filterwarnings("ignore:The optimum of this:UserWarning")
@parametrize_with_checks([TauFPL(kernel="linear", solver="primal")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
