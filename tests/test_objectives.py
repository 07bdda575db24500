"""The referee against an interior-point solver, weak duality and itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from attop._scores import GivenScores, Scores
from attop.datasets import load_ionosphere
from attop.families import QuantileHinge, TopMean
from attop.formulations import FORMULATIONS
from attop.kernels.blocks import BLOCK
from attop.kernels.functions import Gram, Kernel
from attop.objectives import (
    certificate_of,
    certify,
    dual_value,
    infeasibility,
    primal_value,
    signed_coefficients,
    support,
    threshold,
    zero_value,
)
from attop.problem import Problem
from conftest import CASES, OPTIMA, PARAMETERS, kernel_matrix, two_clouds
from oracle import solve_dual


def random_feasible_point(problem, rng):
    """Dual variables within all constraints: betas that share the sum of alpha equally
    are within every cap, and so are points between them and any others within it."""
    alpha = rng.uniform(0.0, min(problem.alpha_max, 3.0), size=len(problem.positives))
    m = len(problem.competitors)
    beta = np.full(m, alpha.sum() / m)
    # Concentrating on K of the competitors brings those to the cap of the top-K family.
    few = rng.choice(m, size=max(problem.betas.K, 2), replace=False)
    concentrated = np.zeros(m)
    concentrated[few] = alpha.sum() / len(few)
    # Where betas have a bound of their own, the few must not go beyond it.
    room = problem.betas.bound * m / alpha.sum()
    weight = 1.0 if np.isfinite(room) else rng.uniform()
    scale = min(1.0, room)
    return scale * alpha, scale * (weight * beta + (1.0 - weight) * concentrated)


def test_gap_closes_at_the_optimum_of_the_oracle(small_case):
    problem, gram = small_case
    alpha, beta, optimum = solve_dual(problem, kernel_matrix(gram))
    certificate = certify(problem, gram, alpha, beta)
    assert abs(certificate.gap) < 1e-7
    assert certificate.infeasibility < 1e-7
    assert_allclose(certificate.dual, optimum, rtol=1e-7)
    assert optimum < 0.99 * zero_value(problem)  # the case is not a trivial one


def test_weak_duality_at_random_points(small_case):
    problem, gram = small_case
    optimum = solve_dual(problem, kernel_matrix(gram))[2]
    rng = np.random.default_rng(1)
    for _ in range(20):
        alpha, beta = random_feasible_point(problem, rng)
        certificate = certify(problem, gram, alpha, beta)
        assert certificate.infeasibility < 1e-12
        assert certificate.dual <= optimum * (1 + 1e-9)
        assert certificate.primal >= optimum * (1 - 1e-9)


def test_certificate_agrees_with_the_plain_formulas(small_case):
    problem, gram = small_case
    alpha, beta = random_feasible_point(problem, np.random.default_rng(2))
    K = kernel_matrix(gram)
    a = signed_coefficients(problem, alpha, beta)
    certificate = certify(problem, gram, alpha, beta)
    assert_allclose(certificate.scores, K @ a, atol=1e-12)
    assert_allclose(certificate.w_norm2, a @ K @ a)
    assert_allclose(certificate.threshold, threshold(problem, K @ a))
    assert_allclose(certificate.primal, primal_value(problem, a @ K @ a, K @ a))
    assert_allclose(certificate.dual, dual_value(problem, a @ K @ a, alpha, beta))


@pytest.mark.parametrize("row", OPTIMA[::8], ids=lambda row: "-".join(list(row.values())[3:8]))
def test_oracle_and_referee_agree_with_the_reference_optima(row):
    X, y = load_ionosphere(return_X_y=True)
    parameters = {name: float(row[name]) for name in ("K", "tau", "theta") if row[name]}
    problem = FORMULATIONS[row["formulation"]].problem(
        y == 1, float(row["C"]), row["surrogate"], **parameters
    )
    gram = Gram(Kernel(row["kernel"], gamma=1 / 34), X)
    alpha, beta, _ = solve_dual(problem, kernel_matrix(gram))
    certificate = certify(problem, gram, alpha, beta)
    assert_allclose(certificate.primal, float(row["objective"]), rtol=1e-7)
    assert_allclose(certificate.dual, float(row["objective"]), rtol=1e-7)


def hinted(problem, gram, alpha, beta, error, shift=0.0, seed=3):
    """Certificate with scores that are off by up to `error`, and by `shift` altogether."""
    exact = kernel_matrix(gram) @ signed_coefficients(problem, alpha, beta)
    noise = np.random.default_rng(seed).uniform(-error, error, size=len(exact))
    return certify(problem, gram, alpha, beta, hint=hint_of(exact + noise + shift, 2.0 * error))


def hint_of(scores, error):
    return lambda _: (scores, np.broadcast_to(error, scores.shape))


@pytest.fixture(params=CASES, ids="-".join)
def larger_case(request):
    """A problem with many rows that do not matter, and a point near its optimum."""
    name, surrogate = request.param
    X, positive = two_clouds(60, 240, distance=2.0, seed=4)
    parameters = {**PARAMETERS[name], "theta": 20.0}
    problem = FORMULATIONS[name].problem(positive, 0.8, surrogate, **parameters)
    gram = Gram(Kernel("rbf", gamma=0.3), X)
    alpha, beta, _ = solve_dual(problem, kernel_matrix(gram))
    # Interior points have no zeros.
    return problem, gram, alpha * (alpha > 1e-6), beta * (beta > 1e-6)


@pytest.mark.parametrize("error, shift", [(1e-6, 0.0), (1e-2, 0.0), (1e-6, -5.0)])
def test_hints_change_nothing(larger_case, error, shift):
    full = certify(*larger_case)
    hinted_certificate = hinted(*larger_case, error, shift)
    assert_allclose(hinted_certificate[:3], full[:3], rtol=1e-10, atol=1e-12)
    assert_allclose(hinted_certificate.scores, full.scores[hinted_certificate.rows], atol=1e-12)


def test_hints_save_rows():
    X, positive = two_clouds(60, 600, distance=2.0, seed=4)
    problem = FORMULATIONS["TopPush"].problem(positive, 0.8, "hinge")
    gram = Gram(Kernel("rbf", gamma=0.3), X)
    alpha, beta = np.full(60, 0.01), np.zeros(600)
    beta[:3] = 0.2
    assert len(hinted(problem, gram, alpha, beta, 1e-9).rows) < 300


def test_each_score_may_have_an_error_of_its_own(larger_case):
    problem, gram, alpha, beta = larger_case
    exact = kernel_matrix(gram) @ signed_coefficients(problem, alpha, beta)
    rng = np.random.default_rng(6)
    error = np.where(rng.random(len(exact)) < 0.5, 1e-6, 0.3)
    error[signed_coefficients(problem, alpha, beta) != 0.0] = 1e-6
    hint = exact + 0.5 * error * rng.uniform(-1.0, 1.0, size=len(exact))
    certificate = certify(problem, gram, alpha, beta, hint=hint_of(hint, error))
    assert_allclose(certificate[:3], certify(*larger_case)[:3], rtol=1e-10, atol=1e-12)


def test_a_wrong_hint_is_found_out(larger_case):
    problem, gram, alpha, beta = larger_case
    exact = kernel_matrix(gram) @ signed_coefficients(problem, alpha, beta)
    far_off = exact + np.random.default_rng(5).normal(scale=1.0, size=len(exact))
    certificate = certify(problem, gram, alpha, beta, hint=hint_of(far_off, 1e-6))
    assert (
        len(certificate.rows) == gram.n_samples
    )  # bounds that contradict exact scores are dropped
    assert_allclose(certificate[:3], certify(*larger_case)[:3], atol=1e-12)


@pytest.mark.parametrize("name, surrogate", CASES)
def test_hard_margin(name, surrogate):
    """With C infinite the primal value is that of a feasible point, and the gap closes."""
    X, positive = two_clouds(8, 16, distance=4.0)
    problem = FORMULATIONS[name].problem(positive, np.inf, surrogate, **PARAMETERS[name])
    gram = Gram(Kernel("rbf", gamma=0.1), X)
    if FORMULATIONS[name].competitors == "all":
        # The positives compete with themselves: a margin of 1 needs n+ l(theta) <= n tau.
        larger = {"tau": 0.9, "theta": 0.5} if name == "PatMat" else {"tau": 20 / 24}
        problem = FORMULATIONS[name].problem(positive, np.inf, surrogate, **larger)
    alpha, beta, optimum = solve_dual(problem, kernel_matrix(gram))
    certificate = certify(problem, gram, alpha, beta)
    assert_allclose([certificate.primal, certificate.dual], optimum, rtol=1e-5)
    # Another multiple of the same direction is brought to the same feasible point.
    halved = certify(problem, gram, 0.5 * alpha, 0.5 * beta)
    assert_allclose(halved.primal, certificate.primal, rtol=1e-9)


@pytest.mark.parametrize("name, surrogate", CASES)
def test_hard_margin_without_a_feasible_multiple(name, surrogate):
    X, positive = two_clouds(8, 16, distance=0.0)
    X[positive] = X[~positive][:8]
    parameters = PARAMETERS[name] | ({"tau": 0.01} if name.startswith("PatMat") else {})
    problem = FORMULATIONS[name].problem(positive, np.inf, surrogate, **parameters)
    alpha, beta = random_feasible_point(problem, np.random.default_rng(6))
    certificate = certify(problem, Gram(Kernel("rbf"), X), alpha, beta)
    assert certificate.primal == np.inf
    assert certificate.gap == np.inf


def test_infeasibility_sees_each_constraint():
    _, positive = two_clouds(3, 4)
    tied = FORMULATIONS["TopPushK"].problem(positive, 1.0, "hinge", K=2)
    good_alpha, good_beta = np.array([1.0, 0.5, 0.5]), np.array([1.0, 0.5, 0.5, 0.0])
    assert infeasibility(tied, good_alpha, good_beta) == 0.0
    assert infeasibility(tied, good_alpha * 1.1, good_beta * 1.1) == pytest.approx(0.1)
    assert infeasibility(tied, good_alpha, good_beta * 0.9) == pytest.approx(0.1)
    assert infeasibility(tied, good_alpha, np.array([1.2, 0.4, 0.4, 0.0])) == pytest.approx(0.2)
    assert infeasibility(tied, good_alpha, np.array([1.0, 1.0, 0.25, -0.25])) == 0.25
    assert infeasibility(tied, np.array([1.0, 1.0, -0.5]), 0.75 * good_beta) >= 0.5
    norm = FORMULATIONS["PatMatNP"].problem(positive, 1.0, "quadratic_hinge", tau=0.1, theta=1.0)
    assert infeasibility(norm, 7.0 * good_alpha, np.array([14.0, 0.0, 0.0, 0.0])) == 0.0


def test_infeasible_by_rounding_is_reported_as_such(small_case):
    problem, gram = small_case
    alpha, beta = random_feasible_point(problem, np.random.default_rng(7))
    alpha = alpha * (1 - 1e-12)
    assert 0.0 < certify(problem, gram, alpha, beta).infeasibility < 1e-11


def test_a_point_outside_the_constraints_certifies_nothing(small_case):
    problem, gram = small_case
    alpha, beta, _ = solve_dual(problem, kernel_matrix(gram))
    assert certify(problem, gram, alpha, beta).certifies(1e-6)
    unbalanced = certify(problem, gram, 1.001 * alpha, beta)
    assert unbalanced.infeasibility > 1e-4
    assert not unbalanced.certifies(np.inf)


def test_a_negative_squared_norm_shows_an_indefinite_kernel():
    X, positive = two_clouds()
    problem = FORMULATIONS["TopPush"].problem(positive, 1.0, "hinge")
    alpha, beta = random_feasible_point(problem, np.random.default_rng(8))
    K = X @ X.T
    assert not certify(problem, Gram(Kernel("precomputed"), K), alpha, beta).indefinite
    assert certify(problem, Gram(Kernel("precomputed"), -K), alpha, beta).indefinite


@pytest.mark.parametrize("sparse", [False, True])
def test_linear_scores_need_no_kernel_entries_but_agree_with_them(sparse):
    import scipy.sparse as sp

    X, positive = two_clouds()
    problem = FORMULATIONS["TauFPL"].problem(positive, 1.0, "hinge", tau=0.2)
    alpha, beta = random_feasible_point(problem, np.random.default_rng(9))
    samples = sp.csr_matrix(X) if sparse else X
    linear = certify(problem, Gram(Kernel("linear"), samples), alpha, beta)
    precomputed = certify(problem, Gram(Kernel("precomputed"), X @ X.T), alpha, beta)
    assert_allclose(linear.scores, precomputed.scores, atol=1e-12)
    assert_allclose(linear[:3], precomputed[:3], atol=1e-12)


@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_many_support_vectors_are_summed_in_blocks(name, surrogate):
    """More samples than a block has, so that every path through blocks is taken."""
    X, positive = two_clouds(BLOCK // 2, BLOCK + 100, seed=6)
    problem = FORMULATIONS[name].problem(positive, 0.8, surrogate, **PARAMETERS[name])
    gram = Gram(Kernel("rbf", gamma=0.3), X)
    point = random_feasible_point(problem, np.random.default_rng(10))
    coefficients = signed_coefficients(problem, *point)
    scores = kernel_matrix(gram) @ coefficients
    whole = certify(problem, gram, *point)
    assert_allclose(whole.scores, scores, atol=1e-9)
    norm2 = float(coefficients @ scores)
    assert whole.dual == pytest.approx(dual_value(problem, norm2, *point), rel=1e-10)
    assert whole.primal == pytest.approx(primal_value(problem, norm2, scores), rel=1e-10)
    in_blocks = hinted(problem, gram, *point, error=1e-9)
    assert_allclose(in_blocks.scores, scores[in_blocks.rows], atol=1e-9)
    assert_allclose(in_blocks[:2], whole[:2], rtol=1e-10)


def test_support_adds_up_what_positives_are_and_compete_with():
    problem = Problem.of(np.array([0, 2]), np.arange(4), 1.0, "hinge", TopMean(2))
    alpha, beta = np.array([0.5, 0.25]), np.array([0.5, 0.0, 0.125, 0.125])
    rows, coefficients = support(problem, alpha, beta)
    assert_array_equal(rows, [2, 3])  # the first is its own competitor, by as much
    assert_array_equal(coefficients, [0.125, -0.125])
    assert_array_equal(signed_coefficients(problem, alpha, beta)[rows], coefficients)


@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize("family", [TopMean(3), QuantileHinge(1.4, 1.0)])
def test_the_zero_model_is_worth_what_its_scores_say(family, surrogate):
    problem = Problem.of(np.arange(3), np.arange(3, 10), 2.0, surrogate, family)
    assert zero_value(problem) == pytest.approx(primal_value(problem, 0.0, np.zeros(10)))


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e-3])
def test_given_scores_certify_no_more_than_their_errors_allow(small_case, size):
    """Whatever the errors within their bounds are: the gap is at least the true one."""
    problem, gram = small_case
    alpha, beta, _ = solve_dual(problem, kernel_matrix(gram))
    alpha, beta = np.maximum(alpha, 0.0), np.maximum(beta, 0.0)
    true = certify(problem, gram, alpha, beta)
    rng = np.random.default_rng(0)
    for _ in range(10):
        errors = size * (0.1 + rng.random(gram.n_samples))
        wrong = true.scores + 7.0 + 0.9 * errors * rng.choice([-1.0, 1.0], gram.n_samples)
        given = GivenScores(Scores(gram, *support(problem, alpha, beta)), wrong, errors)
        found = certificate_of(problem, given, alpha, beta)
        assert found.gap >= true.gap - 1e-12
        assert found.gap <= true.gap + 100.0 * size
        assert abs(found.threshold - true.threshold) <= 2.0 * size


def test_given_scores_that_are_contradicted_certify_nothing(small_case):
    problem, gram = small_case
    alpha, beta, _ = solve_dual(problem, kernel_matrix(gram))
    scores = certify(problem, gram, alpha, beta).scores
    wrong = scores + np.where(np.arange(len(scores)) % 2, 1e-3, -1e-3)
    exact = Scores(gram, *support(problem, alpha, beta))
    given = GivenScores(exact, wrong, np.full(len(scores), 1e-6))
    assert certificate_of(problem, given, alpha, beta) is None


@pytest.mark.parametrize(("name", "surrogate"), CASES)
@pytest.mark.parametrize("C", [1e-300, 1e-160, 1e150])
def test_dual_values_of_any_size_are_those_of_size_one(name, surrogate, C):
    """Squares out of the range of float64 made some too large, and so false certificates."""
    _, positive = two_clouds()
    one, other = (
        FORMULATIONS[name].problem(positive, c, surrogate, **PARAMETERS[name]) for c in (1.0, C)
    )
    alpha, beta = random_feasible_point(one, np.random.default_rng(9))
    expected = C * dual_value(one, 0.0, alpha, beta)
    assert_allclose(dual_value(other, 0.0, C * alpha, C * beta), expected, rtol=1e-12)


def test_a_gap_below_zero_certifies_nothing(small_case):
    problem, gram = small_case
    alpha, beta, _ = solve_dual(problem, kernel_matrix(gram))
    found = certify(problem, gram, alpha, beta)
    assert not found._replace(gap=-0.5).certifies(1e-4)
