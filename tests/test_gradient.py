"""Gradient descent on the primal: the gradient is one, and the values go to the optimum."""

import numpy as np
import pytest

from attop.formulations import FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.objectives import primal_value, threshold
from attop.solvers.gradient import primal_gradient, solve
from conftest import PARAMETERS, kernel_matrix, two_clouds
from oracle import solve_dual

CASES = [(name, surrogate) for name in FORMULATIONS for surrogate in ("hinge", "quadratic_hinge")]


def linear_case(name, surrogate):
    X, positive = two_clouds(distance=1.5)
    return FORMULATIONS[name].problem(positive, 0.3, surrogate, **PARAMETERS[name]), X


@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_the_gradient_bounds_the_objective_from_below(name, surrogate):
    problem, X = linear_case(name, surrogate)
    rng = np.random.default_rng(0)

    def value(w):
        return primal_value(problem, w @ w, X @ w)

    for _ in range(20):
        w = rng.normal(size=X.shape[1])
        gradient = primal_gradient(problem, X, w, X @ w, threshold(problem, X @ w))
        for scale in (1e-3, 1.0, 10.0):
            other = w + scale * rng.normal(size=X.shape[1])
            tangent = value(w) + gradient @ (other - w)
            assert value(other) >= tangent - 1e-9 * abs(tangent)


@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_approaches_the_optimum_from_above(name, surrogate):
    problem, X = linear_case(name, surrogate)
    optimum = solve_dual(problem, kernel_matrix(Gram(Kernel("linear"), X)))[2]
    solution = solve(problem, X, max_iter=3000, check_every=100)
    assert optimum * (1 - 1e-7) <= solution.objective <= optimum * 1.01
    primal = solution.history.primal
    assert (np.diff(primal) <= 0).all()
    assert primal[-1] == solution.objective
    scores = X @ solution.coef
    assert primal_value(problem, solution.coef @ solution.coef, scores) == pytest.approx(
        solution.objective
    )


def test_limits_and_an_infinite_weight():
    problem, X = linear_case("TopPush", "hinge")
    assert solve(problem, X, max_iter=5).n_iter == 5
    assert solve(problem, X, max_time=0.0).n_iter == 0
    with pytest.raises(ValueError, match="must be finite"):
        solve(problem._replace(C=np.inf), X)
