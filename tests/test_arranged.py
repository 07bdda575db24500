"""Sparse samples in the order of their entries: the same problem, its variables elsewhere."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from attop.formulations import FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.objectives import certify, dual_value, infeasibility, relative_gap, zero_value
from attop.solvers import exact, primal
from attop.solvers.limits import UNLIMITED
from attop.solvers.primal.arranged import Arranged
from attop.solvers.primal.newton import Newton
from attop.solvers.primal.samples import Samples
from conftest import CASES, PARAMETERS

every_case = pytest.mark.parametrize(("name", "surrogate"), CASES)


def counts(n=400, n_features=30, seed=0):
    """Rows of one to twenty entries, and which are positive."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, n_features)) < rng.random((n, 1)) ** 2, 1.0, 0.0)
    scores = X @ rng.normal(size=n_features) + rng.normal(size=n)
    return sp.csr_matrix(X), scores > np.quantile(scores, 0.8)


def case(name, surrogate, C=0.3, weighted=False, **sizes):
    X, positive = counts(**sizes)
    weights = np.random.default_rng(1).integers(0, 4, size=len(positive)) * 0.5
    given = {"sample_weight": weights} if weighted else {}
    problem = FORMULATIONS[name].problem(positive, C, surrogate, **PARAMETERS[name], **given)
    return problem, Gram(Kernel("linear"), X)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["TauFPL", "PatMat", "SVM"])
def test_points_keep_their_weights_and_values(name, weighted):
    problem, gram = case(name, "hinge", weighted=weighted)
    samples = Samples(gram.X)
    arranged = Arranged.of(problem, samples)
    lengths = np.diff(arranged.samples.X.indptr)
    n = problem.n_positives
    assert np.all(np.diff(lengths[:n]) >= 0) and np.all(np.diff(lengths[n:]) >= 0)
    rng = np.random.default_rng(2)
    point = rng.random(n), rng.random(len(problem.competitors))
    there = arranged.to_here(point)
    w = samples.weights(problem, *point)
    assert_allclose(arranged.samples.weights(arranged.problem, *there), w, atol=1e-12)
    assert_allclose(dual_value(arranged.problem, 1.0, *there), dual_value(problem, 1.0, *point))
    for back, before in zip(arranged.from_here(there), point, strict=True):
        assert_array_equal(back, before)


def test_rows_of_equal_lengths_stay_where_they_are():
    X = sp.csr_matrix(np.random.default_rng(0).normal(size=(50, 4)))
    problem = FORMULATIONS["TauFPL"].problem(np.arange(50) < 10, 1.0, "hinge", tau=0.1)
    samples = Samples(X)
    assert Arranged.of(problem, samples).samples is samples


@every_case
def test_the_optimum_is_that_of_the_exact_solver(name, surrogate):
    """Enough samples for a narrow first smoothing, and C so small that there is one."""
    problem, gram = case(name, surrogate, C=1e-2, n=2500)
    found = primal.solve(problem, gram, tol=1e-5)
    assert infeasibility(problem, found.alpha, found.beta) <= 1e-9
    again = certify(problem, gram, found.alpha, found.beta, tol=1e-5)
    value, of_exact = (  # no model is better than none
        min(solution.certificate.primal, zero_value(problem))
        for solution in (found, exact.solve(problem, gram, tol=1e-5))
    )
    assert_allclose(value, of_exact, rtol=2e-5)
    assert again.primal == found.certificate.primal
    assert relative_gap(value, again.dual) <= 1e-5


def test_a_start_is_one_in_the_original_order():
    problem, gram = case("TauFPL", "hinge")
    found = primal.solve(problem, gram, tol=1e-8)
    again = primal.solve(problem, gram, tol=1e-4, start=(found.alpha, found.beta))
    assert again.n_iter < primal.solve(problem, gram, tol=1e-4).n_iter


def test_entries_may_be_out_of_order_and_there_twice():
    problem, gram = case("TauFPL", "hinge")
    X = gram.X.tocoo()
    order = np.random.default_rng(3).permutation(2 * X.nnz)
    rows, columns = np.tile(X.row, 2)[order], np.tile(X.col, 2)[order]
    by_row = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=X.shape[0]))])
    twice = sp.csr_matrix((np.full(2 * X.nnz, 0.5), columns[by_row], indptr), shape=X.shape)
    assert not twice.has_canonical_format
    found = primal.solve(problem, Gram(gram.kernel, twice), tol=1e-8)
    expected = primal.solve(problem, gram, tol=1e-8)
    assert_allclose(found.certificate.primal, expected.certificate.primal, rtol=1e-7)
    assert found.n_iter == expected.n_iter


def test_weights_that_are_good_enough_need_no_other_smoothing():
    problem, gram = case("PatMatNP", "hinge", C=3.0)
    nothing = np.zeros(problem.n_positives), np.zeros(len(problem.competitors))
    newton = Newton(problem, Samples(gram.X), *nothing, UNLIMITED, 1e-9)
    while relative_gap(newton.primal, newton.dual) > 1e-3:
        assert newton.advance()
    newton.tol = 1e-3
    given, before = newton.given_alpha, float(np.linalg.norm(newton.gradient))
    assert newton.advance()
    assert newton.given_alpha is given
    assert float(np.linalg.norm(newton.gradient)) < before
