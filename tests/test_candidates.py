"""The interior-point method for the largest score of linear models, and its candidates."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from attop.formulations import FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.objectives import certify, dual_value, infeasibility, primal_value, zero_value
from attop.solvers import primal
from attop.solvers.limits import UNLIMITED
from attop.solvers.primal import candidates, interior
from attop.solvers.primal.interior import Interior
from attop.solvers.primal.samples import Samples
from attop.solvers.solution import Status
from conftest import CASES, PARAMETERS, kernel_matrix
from oracle import solve_dual

SURROGATES = ("hinge", "quadratic_hinge")


def case(surrogate, C=1.0, n=200, weighted=False, seed=0):
    """A problem whose competitors outnumber its positives."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    positive = np.arange(n) < n // 10
    X[positive] += 1.5
    weights = rng.integers(1, 4, size=n) * 0.5 if weighted else None
    problem = FORMULATIONS["TopPush"].problem(positive, C, surrogate, sample_weight=weights)
    return problem, Gram(Kernel("linear"), X)


def interior_of_all(problem, gram):
    rows = np.concatenate([problem.positives, problem.competitors])
    samples = Samples(gram.X[rows])
    copies = np.concatenate([problem.positive_weights, problem.competitor_weights])
    return Interior(problem, samples, copies, zero_value(problem), UNLIMITED)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_interior_point_method_closes_the_gap(surrogate, C, weighted):
    problem, gram = case(surrogate, C, weighted=weighted)
    inner = interior_of_all(problem, gram)
    for _ in range(60):
        alpha, beta, w = inner.point()
        assert infeasibility(problem, alpha, beta) <= 1e-12
        value = primal_value(problem, float(w @ w), Samples(gram.X).scores(w))
        if value - dual_value(problem, float(w @ w), alpha, beta) <= 1e-6 * value:
            break
        assert inner.advance()
    assert certify(problem, gram, alpha, beta).certifies(1e-6)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_what_is_missing_is_the_gap(surrogate):
    """Once the weights are those of the dual variables, the products sum up to the gap."""
    problem, gram = case(surrogate)
    inner = interior_of_all(problem, gram)
    for _ in range(8):
        inner.advance()
    alpha, beta, w = inner.point()
    dual = dual_value(problem, float(w @ w), alpha, beta)
    losses = inner.loss if surrogate == "hinge" else inner.loss**2
    value = 0.5 * float(inner.w @ inner.w) + problem.C * float(problem.positive_weights @ losses)
    assert_allclose(inner.missing, value - dual, rtol=1e-2)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_candidates_join_until_none_is_above(surrogate, sparse, monkeypatch):
    monkeypatch.setattr(candidates, "BEFORE", 1)
    monkeypatch.setattr(candidates, "AT_THE_TOP", 40)
    sets = []
    choose = candidates.Candidates._choose

    def counted(self, chosen):
        sets.append(set(chosen))
        return choose(self, chosen)

    monkeypatch.setattr(candidates.Candidates, "_choose", counted)
    problem, gram = case(surrogate, C=10.0, n=2000)
    if sparse:
        gram = Gram(Kernel("linear"), sp.csr_matrix(gram.X))
    solution = primal.solve(problem, gram, tol=1e-4)
    assert solution.status is Status.CONVERGED
    assert certify(problem, gram, solution.alpha, solution.beta).certifies(1e-4)
    assert all(before < after for before, after in pairwise(sets))
    assert sets


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_newtons_method_goes_on_where_it_fails(surrogate, monkeypatch):
    monkeypatch.setattr(Interior, "advance", lambda self: False)
    problem, gram = case(surrogate)
    solution = primal.solve(problem, gram, tol=1e-6)
    assert solution.status is Status.CONVERGED
    assert_allclose(
        solution.certificate.dual, solve_dual(problem, kernel_matrix(gram))[2], rtol=1e-5
    )


@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_it_is_for_the_largest_score_alone(name, surrogate):
    positive = np.arange(20) < 5
    problem = FORMULATIONS[name].problem(positive, 1.0, surrogate, **PARAMETERS[name])
    assert interior.suits(problem) == (name == "TopPush")
