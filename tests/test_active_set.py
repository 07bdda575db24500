"""Newton's method by guesses: a guess that confirms itself is the optimum, and no step loses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from attop.families import QuantileHinge, QuantileQuadratic
from attop.families.top_mean import mean_of_largest
from attop.kernels.columns import Workers
from attop.kernels.functions import Gram, Kernel
from attop.objectives import infeasibility
from attop.problem import Problem
from attop.solvers.exact import Tuning, open_columns, solve
from attop.solvers.exact.outer.state import State
from attop.solvers.exact.scaling import start as starts
from attop.solvers.exact.subproblem.dense import Dense
from attop.solvers.limits import Limits
from attop.solvers.solution import Status
from conftest import two_clouds

#: Every round solves for all free variables, however few.
BY_GUESSES = Tuning(guesses_from=1, products=1e300, matrix_up_to=0)


def random_problem(seed: int, n: int = 120) -> tuple[Problem, Gram]:
    """A problem with duplicates, weights or samples of both classes, of any family."""
    rng = np.random.default_rng(seed)
    X, positive = two_clouds(n // 3, n - n // 3, 3, float(rng.choice([0.3, 1.5])), seed=seed)
    if rng.random() < 0.3:
        X = np.round(X)
    surrogate = str(rng.choice(["hinge", "quadratic_hinge"]))
    competitors = np.arange(n) if rng.random() < 0.3 else np.flatnonzero(~positive)
    if rng.random() < 0.5:
        family = mean_of_largest(int(rng.integers(1, len(competitors) // 2)))
    else:
        quantile = QuantileHinge if surrogate == "hinge" else QuantileQuadratic
        budget = len(competitors) * float(rng.choice([0.02, 0.2]))
        family = quantile(budget, float(rng.choice([0.1, 1.0, 10.0])))
    weights = rng.integers(1, 4, n).astype(float) if rng.random() < 0.4 else None
    C = float(rng.choice([0.01, 1.0, 100.0]))
    problem = Problem.of(np.flatnonzero(positive), competitors, C, surrogate, family, weights)
    return problem, Gram(Kernel("rbf", gamma=float(rng.choice([0.1, 1.0]))), X)


@pytest.mark.parametrize("seed", range(60))
def test_a_block_does_not_lose_and_stays_feasible(seed):
    problem, gram = random_problem(seed)
    rng = np.random.default_rng(seed)
    with open_columns(gram, 0.0, 2**26) as store:
        state = State(problem, store)
        state.set(*starts.small(problem, Tuning()))
        for _ in range(4):
            before = state.objective()[1]
            share = rng.choice([0.3, 1.0])
            chosen = np.flatnonzero(rng.random(len(state.rows)) < share)
            gained = state.solve_free_block(chosen, 1e-9, Limits(-1, None))
            after = state.objective()[1]
            assert after >= before - 1e-9 * abs(before) if gained else after == before
            assert infeasibility(problem, state.alpha, state.beta) <= 1e-9


@pytest.mark.parametrize("seed", range(60))
def test_fits_by_guesses_are_certified_and_agree_with_pair_moves(seed):
    problem, gram = random_problem(seed)
    found = solve(problem, gram, tol=1e-7, random_state=0, tuning=BY_GUESSES)
    other = solve(problem, gram, tol=1e-7, random_state=0)
    assert found.status is Status.CONVERGED
    assert found.certificate.dual == pytest.approx(other.certificate.dual, rel=3e-7)


@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize("kind", ["top", "quantile"])
def test_a_thousand_free_variables_are_solved_in_single_precision(surrogate, kind):
    X, positive = two_clouds(500, 1300, 40, 0.3, seed=3)
    quantile = QuantileHinge if surrogate == "hinge" else QuantileQuadratic
    family = mean_of_largest(5) if kind == "top" else quantile(65.0, 1.0)
    rows = np.flatnonzero(positive), np.flatnonzero(~positive)
    problem = Problem.of(*rows, 100.0, surrogate, family)
    gram = Gram(Kernel("rbf", gamma=0.01), X.astype(np.float32))
    tuning = Tuning(matrix_up_to=0, whole_up_to=64)
    found = solve(problem, gram, tol=1e-4, random_state=0, tuning=tuning)
    assert found.status is Status.CONVERGED


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_factors_of_the_dense_matrix(dtype):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 320))
    matrix, own = (features @ features.T / 320).astype(dtype), rng.random(300)
    dense = Dense(matrix, own, Workers())
    x = np.where(rng.random(300) < 0.5, 0.0, rng.normal(size=300))
    whole = matrix.astype(np.float64) + np.diag(own)
    assert_allclose(dense.times(x), whole @ x, rtol=1e-12, atol=1e-12)
    some, added = np.flatnonzero(x), rng.random(np.count_nonzero(x))
    system = whole[np.ix_(some, some)] + np.diag(added) + 0.5
    right = rng.normal(size=(len(some), 3))
    for precise, rtol in ((True, 1e-9), (False, 1e-3)):
        solve_system = dense.solver(some, added, 0.5, precise)
        assert_allclose(solve_system(right), np.linalg.solve(system, right), rtol=rtol, atol=rtol)
        assert_allclose(solve_system(right[:, 0]), solve_system(right)[:, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("precise", [False, True])
def test_threads_share_large_factors_and_many_right_sides(precise):
    rng = np.random.default_rng(0)
    features, some = rng.normal(size=(700, 720)), np.arange(700)
    matrix = features @ features.T / 720 + np.eye(700)
    right = np.asfortranarray(rng.normal(size=(700, 130)))
    given, rtol = right.copy(), 1e-10 if precise else 1e-3
    solve_system = Dense(matrix, np.zeros(700), Workers()).solver(some, np.zeros(700), 0.0, precise)
    assert_allclose(matrix @ solve_system(right), right, rtol=rtol, atol=rtol)
    assert_array_equal(right, given)


def test_factors_are_updated_for_some_variables_more_and_some_less():
    """Whatever came before, and whether any, all or none of them are new."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 320))
    matrix, own, added = features @ features.T / 320, rng.random(300), rng.random(300)
    dense, whole = Dense(matrix, own, Workers()), matrix + np.diag(own + added) + 0.5
    some, updates = np.sort(rng.permutation(300)[:200]), 0
    for change in (0, 0, 4, 3, 12, 0, 60, 5):
        flipped = np.isin(np.arange(300), some)
        which = rng.permutation(300)[:change]
        flipped[which] = ~flipped[which]
        some = np.flatnonzero(flipped)
        right = rng.normal(size=(len(some), 2))
        solve_system = dense.solver(some, added[some], 0.5, True)
        updates += dense.updated
        expected = np.linalg.solve(whole[np.ix_(some, some)], right)
        assert_allclose(solve_system(right), expected, rtol=1e-9, atol=1e-9)
        assert_allclose(solve_system(right[:, 0]), expected[:, 0], rtol=1e-9, atol=1e-9)
    assert updates == 6  # not the first, nor that with 60 changes
    dense.forget()
    dense.solver(some, added[some], 0.5, True)
    assert not dense.updated
