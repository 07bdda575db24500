"""Paths: the models of separate fits, for less work."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold

import attop
from attop import GrillNP, PatMatNP, TopPush, TopPushK
from attop.formulations import FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.model_selection import fit_path
from attop.model_selection._starts import Solved, nearest, start_from, walking_order
from attop.objectives import infeasibility
from attop.solvers.exact import solve
from attop.solvers.exact.scaling.start import feasible
from attop.solvers.solution import Status
from conftest import CASES, PARAMETERS, two_clouds

X, POSITIVE = two_clouds(40, 80, distance=1.2)
Y = POSITIVE.astype(int)
TOL = 1e-6
FOLDS = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y))


def estimator_of(name, **parameters):
    """An estimator whose fits can be compared closely."""
    return getattr(attop, name)(
        gamma=0.3, tol=TOL, random_state=0, **{**PARAMETERS.get(name, {}), **parameters}
    )


def assert_same_as_separate_fits(path):
    for model in path.estimators:
        separate = clone(model).fit(X, Y)
        assert model.status_ is Status.CONVERGED
        assert model.dual_gap_ <= TOL
        assert_allclose(model.objective_, separate.objective_, rtol=2 * TOL)


@pytest.mark.parametrize("name, surrogate", CASES)
def test_path_over_C_has_the_optima_of_separate_fits(name, surrogate):
    values = [1.0, 0.01, 30.0, 0.1]
    path = fit_path(estimator_of(name, surrogate=surrogate), X, Y, "C", values)
    assert_same_as_separate_fits(path)
    assert [model.C for model in path.estimators] == values
    # A larger C weighs the loss more: the optimal value cannot fall.
    objective = path.collect("objective_")[np.argsort(values)]
    assert np.all(np.diff(objective) >= -TOL * objective[1:])


@pytest.mark.parametrize(
    "name, param, values",
    [
        ("PatMatNP", "theta", [1.0, 0.01, 0.1]),
        ("PatMatNP", "tau", [0.05, 0.4, 0.2]),
        ("PatMat", "tau", [0.5, 0.9]),
        ("TopPushK", "K", [1, 2, 7, 80]),
        ("TauFPL", "tau", [0.01, 0.5]),
        ("TopPush", "surrogate", ["quadratic_hinge", "hinge"]),
    ],
)
def test_path_over_other_parameters_has_the_optima_of_separate_fits(name, param, values):
    path = fit_path(estimator_of(name), X, Y, param, values)
    assert_same_as_separate_fits(path)
    assert [getattr(model, param) for model in path.estimators] == values


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "precomputed"])
def test_path_with_other_kernels(kernel):
    estimator = estimator_of("PatMatNP", kernel=kernel)
    data = rbf_kernel(X, gamma=0.3) if kernel == "precomputed" else X
    path = fit_path(estimator, data, Y, "C", [0.1, 1.0])
    for model in path.estimators:
        separate = clone(model).fit(data, Y)
        assert_allclose(model.objective_, separate.objective_, rtol=2 * TOL)
        assert_allclose(model.decision_function(data), separate.decision_function(data), atol=2e-2)


def test_lambda_stands_for_C_and_zero_for_a_hard_margin():
    far, positive = two_clouds(20, 40, distance=6.0)
    path = fit_path(TopPush(gamma=0.05, random_state=0), far, positive, "lambda", [0.0, 0.5, 0.01])
    assert_allclose([model.C for model in path.estimators], [np.inf, 0.1, 5.0])
    assert [model.status_ for model in path.estimators] == [Status.CONVERGED] * 3
    assert path.estimators[0].decision_function(far)[positive].min() >= 0.99


def test_path_leaves_the_estimator_alone_and_fits_complete_ones():
    estimator = PatMatNP(tau=0.2, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    labels = np.where(POSITIVE, "up", "down")
    path = fit_path(estimator.set_params(pos_label="up"), frame, labels, "C", [0.1, 1.0])
    assert not hasattr(estimator, "alpha_") and estimator.C == 1.0
    separate = clone(estimator).fit(frame, labels)
    fitted = path.estimators[1]
    assert vars(fitted).keys() == vars(separate).keys()
    assert_array_equal(fitted.feature_names_in_, ["a", "b", "c"])
    assert_array_equal(fitted.predict(frame), separate.predict(frame))
    assert len(path) == 2 and len(path.seconds) == 2


def test_columns_are_computed_once():
    path = fit_path(estimator_of("PatMatNP"), X, Y, "C", [0.1, 1.0, 10.0])
    assert 0 < path.columns.sum() <= len(X)


def test_a_cache_too_small_for_all_columns_changes_nothing():
    data, positive = two_clouds(900, 1800, distance=1.0)
    estimator = PatMatNP(gamma=0.3, tau=0.2, tol=TOL, random_state=0)
    values = [0.1, 1.0]
    roomy = fit_path(estimator, data, positive, "C", values)
    tight = fit_path(clone(estimator).set_params(cache_size=0.4), data, positive, "C", values)
    assert_allclose(tight.collect("objective_"), roomy.collect("objective_"), rtol=2 * TOL)
    assert tight.columns.sum() > len(data)


@pytest.mark.parametrize("name, surrogate", CASES)
def test_the_start_from_a_neighbour_is_better_than_the_neighbour_itself(name, surrogate):
    """Its dual value, once feasible, is at least that of the plain old variables."""
    data, positive = two_clouds(150, 300)
    gram = Gram(Kernel("rbf", gamma=0.3), data)
    old = FORMULATIONS[name].problem(positive, 0.05, surrogate, **PARAMETERS[name])
    known = Solved(old, solve(old, gram, random_state=0))
    kernel = gram.block(np.arange(450), np.arange(450))

    def dual(problem, alpha, beta):
        coefficients = attop.objectives.signed_coefficients(problem, alpha, beta)
        w_norm2 = coefficients @ kernel @ coefficients
        return attop.objectives.dual_value(problem, w_norm2, alpha, beta)

    for C in (0.005, 0.5):
        new = old._replace(C=C)
        start = feasible(new, *start_from(known, new))
        plain = feasible(new, known.solution.alpha, known.solution.beta)
        assert infeasibility(new, *start) <= 1e-9
        assert dual(new, *start) >= dual(new, *plain) - 1e-9 * abs(dual(new, *plain))


def test_prediction_moves_many_variables_at_once():
    """From small C to large most competitors leave the cap: round by round would be slow."""
    data, positive = two_clouds(300, 3000, n_features=5, distance=2.0)
    gram = Gram(Kernel("rbf", gamma=0.1), data)
    old = FORMULATIONS["PatMatNP"].problem(positive, 1e-3, "hinge", tau=0.05, theta=0.1)
    new = old._replace(C=0.1)
    known = Solved(old, solve(old, gram, random_state=0))
    optimum = solve(new, gram, random_state=0)
    in_support = optimum.beta > 0.0
    predicted = start_from(known, new)[1] > 0.0
    assert np.sum((known.solution.beta > 0.0) != in_support) > 1000
    assert np.mean(predicted == in_support) > 0.9


def test_nearest_is_the_closest_on_a_logarithmic_scale_and_of_the_same_kind():
    base = FORMULATIONS["PatMatNP"].problem(POSITIVE, 1.0, "hinge", tau=0.2, theta=1.0)
    other = FORMULATIONS["TopPush"].problem(POSITIVE, 1.0, "hinge")
    solved = [Solved(base._replace(C=C), None) for C in (0.5, 3.0, np.inf)]
    assert nearest(base, solved).problem.C == 0.5
    assert nearest(base._replace(C=1e9), solved).problem.C == np.inf
    assert nearest(other, solved) is None
    assert nearest(base, []) is None


def test_walking_order_goes_up_in_C_for_each_other_value():
    base = FORMULATIONS["PatMatNP"].problem(POSITIVE, 1.0, "hinge", tau=0.2, theta=1.0)
    families = [replace(base.family, theta=theta) for theta in (3.0, 0.1)]
    problems = [base._replace(C=C, family=family) for C in (2.0, 1.0) for family in families]
    assert walking_order(problems) == [3, 1, 2, 0]


@pytest.mark.parametrize(
    "estimator, param, values, error, message",
    [
        (PatMatNP(), "gamma", [0.1], ValueError, "cannot vary 'gamma': it changes the kernel"),
        (PatMatNP(), "kernel", ["rbf"], ValueError, "it changes the kernel"),
        (TopPush(), "theta", [0.1], ValueError, "can vary 'C', .* of TopPush. Got 'theta'"),
        (PatMatNP(), "C", [], ValueError, "'values' parameter of fit_path must not be empty"),
        (PatMatNP(), "C", [1.0, -1.0], ValueError, r"'C' parameter of PatMatNP must be in \(0"),
        (PatMatNP(), "lambda", [-1.0], ValueError, r"'lambda' must be in \[0, inf\). Got -1.0"),
        (PatMatNP(), "lambda", ["x"], ValueError, "'lambda' must be in"),
        (TopPushK(), "K", [1000], ValueError, "at most the number of negative samples, 80"),
        (PatMatNP(tau=2), "C", [1.0], ValueError, "'tau' parameter of PatMatNP"),
        (PatMatNP(solver="pairwise"), "C", [1.0], ValueError, "only the exact solver shares"),
        (GrillNP(), "C", [1.0], ValueError, "cannot take GrillNP: it is not convex"),
        (
            PatMatNP(approximation="nystroem"),
            "C",
            [1.0],
            ValueError,
            "'approximation' parameter of PatMatNP must be None in fit_path",
        ),
        (LogisticRegression(), "C", [1.0], TypeError, "must be an AtTopClassifier"),
    ],
)
def test_bad_input_of_a_path(estimator, param, values, error, message):
    with pytest.raises(error, match=message):
        fit_path(estimator, X, Y, param, values)


def test_path_warns_of_the_value_that_missed_its_tolerance():
    estimator = PatMatNP(gamma=0.3, tau=0.2, tol=1e-12, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="PatMatNP with C=7.0 reached"):
        path = fit_path(estimator, X, Y, "C", [7.0])
    assert path.estimators[0].status_ is Status.MAX_ITER
