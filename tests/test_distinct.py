"""Equal samples, solved as one with their copies."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from attop.formulations import FORMULATIONS
from attop.kernels import Gram, Kernel
from attop.objectives import certify, infeasibility, zero_value
from attop.solvers.exact import solve
from attop.solvers.exact.scaling.distinct import Merged, _distinct
from conftest import CASES, PARAMETERS


def copies(n=6000, dtype=np.float64, seed=0):
    """Whole numbers of few values: some hundred distinct samples, of both classes."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, 4)).astype(dtype)
    positive = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 3.0
    return X, positive


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("as_", [np.asarray, sp.csr_matrix])
def test_distinct_samples_are_those_of_numpy(dtype, as_):
    X, _ = copies(dtype=dtype)
    first, place = _distinct(as_(X))
    assert len(first) == len(np.unique(X, axis=0))
    assert_array_equal(X[first[place]], X)
    other = np.random.default_rng(1).normal(size=(5000, 3)).astype(dtype)
    assert len(_distinct(as_(other))[0]) == 5000


@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_the_merged_problem_has_the_optimum_of_the_whole(name, surrogate):
    """Both values are those of the whole, by a referee that knows nothing of copies."""
    X, positive = copies()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    problem = FORMULATIONS[name].problem(
        positive, 0.02, surrogate, sample_weight=weights, **PARAMETERS[name]
    )
    gram = Gram(Kernel("rbf", gamma=0.2), X)
    solution = solve(problem, gram, tol=1e-5, random_state=0)
    alone = certify(problem, gram, solution.alpha, solution.beta)
    assert solution.certificate.certifies(1e-5)
    assert alone.certifies(1.01e-5)
    assert alone.primal == pytest.approx(solution.certificate.primal, rel=1e-9)
    assert infeasibility(problem, solution.alpha, solution.beta) <= 1e-9
    rows = solution.certificate.rows
    assert_allclose(solution.certificate.scores, alone.scores[rows], atol=1e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_positives_that_are_all_negatives_as_well(name, surrogate, kernel):
    """Their alphas cancel betas of other copies: w = 0 is the optimum where the top has room."""
    rng = np.random.default_rng(3)
    X, positive = rng.integers(0, 3, (5000, 2)).astype(float), rng.random(5000) < 0.1
    problem = FORMULATIONS[name].problem(positive, 0.05, surrogate, **PARAMETERS[name])
    gram = Gram(Kernel(kernel, gamma=0.2), X)
    merged = Merged.of(problem, gram)
    assert merged is not None
    assert np.isin(merged.problem.positives, merged.problem.competitors).all()
    solution = solve(problem, gram, tol=1e-4, random_state=0)
    alone = certify(problem, gram, solution.alpha, solution.beta)
    assert infeasibility(problem, solution.alpha, solution.beta) <= 1e-9
    assert solution.certificate.certifies(1e-4)
    assert alone.certifies(1.01e-4)
    if merged.problem.family.zero_is_optimal(merged.problem):
        assert alone.w_norm2 <= 1e-12
        assert alone.primal == pytest.approx(zero_value(problem), rel=1e-9)


def test_starts_are_means_and_solutions_repeat():
    X, positive = copies()
    problem = FORMULATIONS["TopPush"].problem(positive, 1.0, "hinge")
    gram = Gram(Kernel("rbf", gamma=0.2), X)
    merged = Merged.of(problem, gram)
    assert merged is not None
    solution = solve(problem, gram, tol=1e-6, random_state=0)
    alpha, beta = merged.start((solution.alpha, solution.beta))
    assert_allclose(alpha[merged.alphas], solution.alpha, rtol=1e-12)
    assert_allclose(beta[merged.betas], solution.beta, rtol=1e-12)
    again = solve(problem, gram, tol=1e-6, random_state=0, start=(solution.alpha, solution.beta))
    assert again.certificate.certifies(1e-6)


@pytest.mark.parametrize("n, repeated", [(3000, True), (6000, False)])
def test_few_samples_or_few_copies_are_left_alone(n, repeated):
    X, positive = copies(n)
    if not repeated:
        X = X + 1e-9 * np.arange(n)[:, np.newaxis]
    problem = FORMULATIONS["TopPush"].problem(positive, 1.0, "hinge")
    assert Merged.of(problem, Gram(Kernel("rbf", gamma=0.2), X)) is None
