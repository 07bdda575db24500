"""Surrogates and families made outside the package: solved to the optimum, or refused by name."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from sklearn.svm import SVC

import attop
from attop import TopPush
from attop.base import AtTopClassifier
from attop.families import BetaTerms, Family
from attop.formulations import FORMULATIONS, Formulation
from attop.kernels.functions import Gram, Kernel
from attop.problem import Problem
from attop.solvers import SOLVERS, get_solver
from attop.solvers.solution import Status
from attop.surrogates import SURROGATES, Surrogate
from conftest import PARAMETERS, kernel_matrix, two_clouds
from oracle import solve_dual

TOP = ["TopPush", "TopPushK", "TauFPL", "TopMeanK"]


@dataclass(frozen=True)
class RoundedHinge(Surrogate):
    """The hinge with a parabola of length 1/2 in the place of its kink."""

    name = "rounded_hinge"
    steepest = 1.0
    curvature = 0.5

    def value(self, x):
        rise = np.maximum(0.0, 1.0 + np.asarray(x, dtype=np.float64))
        return np.where(rise <= 0.5, rise**2, rise - 0.25)

    def slope(self, x):
        return np.clip(2.0 * (1.0 + np.asarray(x, dtype=np.float64)), 0.0, 1.0)

    def conjugate(self, y):
        y = np.asarray(y, dtype=np.float64)
        return np.where((y >= 0.0) & (y <= 1.0), (0.25 * y - 1.0) * y, np.inf)


@dataclass(frozen=True)
class Exponential(Surrogate):
    """``l(x) = exp(x)``, whose dual is no quadratic program."""

    name = "exponential"

    def value(self, x):
        return np.exp(np.asarray(x, dtype=np.float64))

    def slope(self, x):
        return np.exp(np.asarray(x, dtype=np.float64))

    def conjugate(self, y):
        y = np.asarray(y, dtype=np.float64)
        return np.where(y > 0.0, y * np.log(np.maximum(y, 1e-300)) - y, np.where(y < 0, np.inf, 0))


@pytest.mark.parametrize("surrogate", [*SURROGATES.values(), RoundedHinge(), Exponential()])
def test_slopes_and_conjugates_belong_to_the_values(surrogate):
    x = np.linspace(-3.0, 2.0, 2001)
    slope = surrogate.slope(x)
    assert np.all(np.diff(surrogate.value(x)) >= -1e-15)
    assert np.max(slope) <= surrogate.steepest
    # Fenchel: equality for the slope, and no less for any other.
    assert_allclose(surrogate.value(x) + surrogate.conjugate(slope), x * slope, atol=1e-12)
    for y in (0.0, 0.3, 1.0):
        assert np.all(surrogate.value(x) + surrogate.conjugate(y) >= x * y - 1e-12)
    if surrogate.curvature is not None:
        y = np.linspace(0.0, min(surrogate.steepest, 3.0), 7)
        assert_allclose(surrogate.conjugate(y), -y + 0.5 * surrogate.curvature * y**2)


@pytest.mark.parametrize("solver", ["exact", "pairwise", "primal"])
@pytest.mark.parametrize("C", [0.05, 5.0])
@pytest.mark.parametrize("name", TOP)
def test_a_surrogate_from_outside_is_solved_to_the_oracles_optimum(name, C, solver):
    X, positive = two_clouds(12, 24)
    parameters = PARAMETERS[name] | ({"tau": 0.7} if name == "TopMeanK" else {})
    problem = FORMULATIONS[name].problem(positive, C, RoundedHinge(), **parameters)
    gram = Gram(Kernel("linear"), X)
    options = {"n_epochs": None} if solver == "pairwise" else {}
    solution = get_solver(solver)(problem, gram, tol=1e-5, max_time=20.0, **options)
    _, _, optimum = solve_dual(problem, kernel_matrix(gram))
    if solver == "pairwise" and solution.status is Status.STALLED:  # as it does with any surrogate
        assert solution.certificate.dual <= optimum * (1.0 + 1e-9) <= solution.certificate.primal
        return
    assert solution.status is Status.CONVERGED
    assert_allclose(solution.certificate.dual, optimum, rtol=2e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_a_solver_cannot_do_it_refuses_by_name(solver):
    X, positive = two_clouds(8, 16)
    model = TopPush(surrogate=Exponential(), solver=solver, kernel="linear")
    with pytest.raises(ValueError, match=f"{solver} solver needs .* Got 'exponential' instead"):
        model.fit(X, positive)


@pytest.mark.parametrize("name", ["PatMat", "PatMatNP"])
def test_a_quantile_without_a_known_dual_is_refused(name):
    _, positive = two_clouds(8, 16)
    with pytest.raises(ValueError, match=rf"parameter of {name} must be .* Got 'rounded_hinge'"):
        FORMULATIONS[name].problem(positive, 1.0, RoundedHinge(), tau=0.1, theta=1.0)


def test_an_estimator_takes_a_surrogate_from_outside():
    X, positive = two_clouds(20, 40)
    model = TopPush(surrogate=RoundedHinge(), C=2.0, gamma=0.3).fit(X, positive)
    assert model.status_ is Status.CONVERGED
    hinge, quadratic = (
        TopPush(surrogate=name, C=2.0, gamma=0.3).fit(X, positive).objective_
        for name in ("hinge", "quadratic_hinge")
    )
    assert hinge - 2.0 * 20 * 0.25 <= model.objective_ <= min(hinge, quadratic)


@dataclass(frozen=True)
class UnevenLosses(Family):
    """A threshold that is the best one where losses of competitors cost a multiple of others."""

    ratio: float
    monotone = False

    def terms(self, problem):
        return BetaTerms(
            linear=1.0,
            bound=self.ratio * problem.alpha_max,
            curvature=problem.quadratic_alpha / self.ratio,
        )

    def threshold(
        self, problem, competitors, weights, positives, overwrite=False, positive_weights=None
    ):
        def total(t):
            loss = problem.surrogate.value
            return np.sum(loss(t - positives)) + self.ratio * np.sum(loss(competitors - t))

        scores = np.concatenate([competitors, positives])
        if problem.surrogate.curvature == 0.0:  # the sum has its kinks at these
            ends = np.concatenate([competitors + 1.0, positives - 1.0])
            return float(ends[np.argmin([total(t) for t in ends])])
        bounds = scores.min() - 1.0, scores.max() + 1.0
        options = {"xatol": 1e-12}
        return float(minimize_scalar(total, bounds=bounds, method="bounded", options=options).x)

    def level(self, problem, competitors, weights, threshold):
        return threshold - 1.0

    def slopes(self, problem, competitors, weights, threshold):
        return problem.surrogate.slope(competitors - threshold)

    def value(self, problem, competitors, weights, threshold):
        losses = problem.surrogate.value(competitors - threshold)
        return problem.C * self.ratio * float(np.sum(losses))


@dataclass(frozen=True)
class Machine(Formulation):
    """Its formulation: negatives compete."""

    parameters = ("ratio",)

    def problem(self, positive, C, surrogate, *, sample_weight=None, ratio=2.0):
        return Problem.of(*self.rows(positive), C, surrogate, UnevenLosses(ratio))


@dataclass(eq=False, repr=False)
class SupportVectors(AtTopClassifier):
    """Its estimator."""

    formulation = Machine("SupportVectors", "negatives")

    ratio: float = 2.0


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize("C", [0.02, 1.0, 50.0])
def test_a_family_from_outside_is_solved_to_the_oracles_optimum(C, surrogate, kernel):
    X, positive = two_clouds(15, 25)
    problem = SupportVectors.formulation.problem(positive, C, surrogate)
    gram = Gram(Kernel(kernel, gamma=0.3), X)
    solution = get_solver("exact")(problem, gram, tol=1e-6)
    assert solution.status is Status.CONVERGED
    _, _, optimum = solve_dual(problem, kernel_matrix(gram))
    assert_allclose(solution.certificate.dual, optimum, rtol=2e-6)


@pytest.mark.parametrize("n", [120, 3000])
def test_a_family_from_outside_makes_an_estimator(n):
    """With the objective of a weighted SVC, on samples in one block and in many."""
    X, positive = two_clouds(n // 3, 2 * n // 3, distance=1.5)
    model = SupportVectors(C=1.0, gamma=0.2).fit(X, positive)
    assert model.status_ is Status.CONVERGED
    known = SVC(C=1.0, gamma=0.2, tol=1e-6, class_weight={False: 2.0}).fit(X, positive)
    scores = known.decision_function(X)
    coefficients = known.dual_coef_[0]
    norm2 = float(coefficients @ (scores[known.support_] - known.intercept_[0]))
    losses = np.maximum(0.0, np.where(positive, 1.0 - scores, 2.0 * (1.0 + scores)))
    assert_allclose(model.objective_, 0.5 * norm2 + np.sum(losses), rtol=2e-4)
    assert np.mean(model.predict(X) == known.predict(X)) > 0.99


def test_hardly_anybody_knows_a_family_by_name():
    """Outside their own files: the formulations, which choose them, and one start of Grill."""
    families = {"Largest", "TopMean", "QuantileHinge", "QuantileQuadratic", "FixedCap"}
    families |= {"mean_of_largest", "quantile_of"}
    lines = set()
    package = Path(attop.__file__).parent
    for path in package.rglob("*.py"):
        if path.parent.name == "families":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "name", "")}
            if names & families:
                lines.add((path, node.lineno))
    assert len(lines) < 10
