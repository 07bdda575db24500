"""The one way from samples to a model: who takes it, what it leaves, how long it may take."""

import ast
import inspect
import pkgutil
import time
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

import attop
from attop import Grill, PatMatNP, TopMeanK, TopPush, TopPushK, pipeline
from attop.calibration import NeymanPearsonThreshold
from attop.kernels.functions import Gram, Kernel
from attop.model_selection import AtTopCV, fit_path
from attop.solvers import NONCONVEX_SOLVER, SOLVERS, get_solver
from attop.solvers.protocol import Settings, Solver
from attop.solvers.solution import STATS, Outcome
from conftest import two_clouds

X, POSITIVE = two_clouds(30, 60, distance=1.5)
SOURCE = Path(attop.__file__).parent


def estimators_of_the_package():
    for module in pkgutil.walk_packages(attop.__path__, "attop."):
        if not module.name.endswith("__main__"):
            found = vars(import_module(module.name)).values()
            yield from (c for c in found if isinstance(c, type) and issubclass(c, BaseEstimator))


@cache
def private_methods():
    """Names of the private methods that the estimators of this package define."""
    owners = {owner for estimator in estimators_of_the_package() for owner in estimator.__mro__}
    return {
        name
        for owner in owners
        if owner.__module__.startswith("attop.")
        for name, value in vars(owner).items()
        if inspect.isfunction(value) and name.startswith("_") and not name.startswith("__")
    }


def calls_of_others(source, methods):
    """Lines that call one of `methods` on anything but self, cls and super()."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if node.func.attr in methods and owner not in ("self", "cls", "super()"):
                yield f"line {node.lineno}: {ast.unparse(node.func)}(...)"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.stem)
def test_nobody_calls_private_methods_of_another_estimator(path):
    """A method of the same name of anything else counts too: another name is easily found."""
    assert list(calls_of_others(path.read_text("utf-8"), private_methods())) == []


def test_the_test_above_sees_such_calls():
    methods = private_methods()
    assert {"_labels", "_folds", "_set_threshold"} <= methods
    seen = calls_of_others("self._folds()\nmodel._folds(X)\nself.estimator_._labels(y)", methods)
    assert list(seen) == ["line 2: model._folds(...)", "line 3: self.estimator_._labels(...)"]


def test_only_finish_changes_the_estimator():
    model = TopPush().fit(X, POSITIVE)
    before = dict(vars(model))
    data = pipeline.prepare(model, X[:, :2], ~POSITIVE)
    problem = pipeline.problem_of(model, data)
    solution = pipeline.solve(model, problem, data.gram)
    assert vars(model) == before
    pipeline.finish(model, data, problem, solution)
    assert model.n_features_in_ == 2
    np.testing.assert_array_equal(model.alpha_, TopPush().fit(X[:, :2], ~POSITIVE).alpha_)


@dataclass(frozen=True)
class Untouched(Kernel):
    """A kernel that nobody may compute."""

    name = "untouched"

    def values(self, X, Y):
        raise AssertionError("computed features")


def test_errors_come_before_the_features_of_an_approximation():
    with pytest.raises(ValueError, match="'K' parameter of TopPushK must be at most"):
        TopPushK(K=1000, approximation="nystroem", kernel=Untouched()).fit(X, POSITIVE)


@pytest.mark.parametrize(
    "model",
    [
        TopPush(kernel="linear"),
        AtTopCV(TopPush(kernel="linear"), {"C": [1.0]}, cv=2),
        NeymanPearsonThreshold(TopPush(kernel="linear"), fpr=0.2, confidence=0.9, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_nothing_stays_of_an_earlier_fit(model):
    model.fit(pd.DataFrame(X, columns=["a", "b", "c"]), POSITIVE)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    model.fit(X, POSITIVE)
    assert not hasattr(model, "feature_names_in_")


def test_an_approximation_and_weights_do_not_stay_either():
    model = TopPush(approximation="nystroem", n_components=10).fit(X, POSITIVE)
    assert hasattr(model, "coef_") and hasattr(model, "feature_map_")
    model.set_params(approximation=None).fit(X, POSITIVE)
    assert not hasattr(model, "coef_") and not hasattr(model, "feature_map_")


class SlowToRead:
    """Samples that take their time."""

    def __array__(self, dtype=None, copy=None):
        time.sleep(0.2)
        return X


@dataclass(frozen=True)
class SlowToCompute(Kernel):
    """A kernel that takes its time."""

    name = "slow"
    definite = True

    def values(self, X, Y):
        time.sleep(0.3)
        return X @ Y.T


class Enough(Exception):
    """Raised with the settings that a solver was given."""


def telling_solver(problem, gram, **settings):
    raise Enough(settings)


@pytest.mark.parametrize(
    ("estimator", "left"),
    [
        (TopPush(max_time=10.0), 9.8),
        (TopPush(max_time=10.0, approximation="nystroem", kernel=SlowToCompute()), 9.5),
        (TopPush(max_time=0.1), 0.0),
        (TopPush(), None),
    ],
    ids=["kernel", "features", "too late", "no limit"],
)
def test_the_time_of_a_fit_begins_with_the_fit(monkeypatch, estimator, left):
    """What reading the samples and computing features took is not left for the solver."""
    monkeypatch.setitem(SOLVERS, "telling", f"{__name__}:telling_solver")
    with pytest.raises(Enough) as told:
        estimator.set_params(solver="telling").fit(SlowToRead(), POSITIVE)
    given = told.value.args[0]["max_time"]
    assert given is None if left is None else 0.0 <= given <= left


@pytest.mark.parametrize("convex", [True, False])
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_takes_the_settings_of_the_protocol(name, convex):
    expected = list(inspect.signature(Solver.__call__).parameters)[1:]
    found = inspect.signature(get_solver(name, convex)).parameters
    assert list(found)[: len(expected)] == expected
    options = [found[option] for option in list(found)[2:]]
    assert all(option.kind is option.KEYWORD_ONLY for option in options)
    assert all(option.default is not option.empty for option in options)
    assert {*vars(Settings()), "start"} == set(expected) - {"problem", "gram"}


@pytest.mark.parametrize("where", [*SOLVERS.values(), NONCONVEX_SOLVER])
def test_every_solver_counts_the_same_things(where):
    convex = where != NONCONVEX_SOLVER
    name = next((name for name, place in SOLVERS.items() if place == where), "auto")
    estimator = TopPush() if convex else Grill()
    problem = pipeline.problem_of(estimator, pipeline.prepare(estimator, X, POSITIVE))
    solution = get_solver(name, convex)(problem, Gram(Kernel("linear"), X), random_state=0)
    assert isinstance(solution, Outcome)
    assert list(solution.stats) == list(STATS)
    assert all(np.isfinite(value) and value >= 0 for value in solution.stats.values())


def warn_in_fit():
    return TopMeanK(tau=0.01).fit(X, POSITIVE)


def warn_in_path():
    return fit_path(TopMeanK(tau=0.01), X, POSITIVE, "C", [1.0])


def warn_in_search():
    return AtTopCV(PatMatNP(tau=0.1, max_iter=1), {"C": [1.0]}, cv=2).fit(X, POSITIVE)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (warn_in_fit, "the optimum|w = 0"),
        (warn_in_path, "the optimum|w = 0"),
        (warn_in_search, "stopped at max_iter|not certified"),
    ],
)
def test_warnings_point_to_the_line_of_the_user(call, message):
    with pytest.warns((UserWarning, ConvergenceWarning), match=message) as seen:
        call()
    line = inspect.getsourcelines(call)[1] + 1
    assert {(warning.filename, warning.lineno) for warning in seen} == {(__file__, line)}


def test_estimators_of_others_may_use_names_that_end_in_an_underscore():
    class Encoding(TopPush):
        def fit(self, X, y):
            self.codes_ = SimpleNamespace(of=y)
            return super().fit(X, y)

    assert Encoding().fit(X, POSITIVE).codes_.of is POSITIVE


def test_samples_that_are_as_they_should_be_are_taken_as_they_are():
    """Without scikit-learn's checks, and with the attributes and errors of these."""
    frame = pd.DataFrame(X, columns=[f"feature {i}" for i in range(X.shape[1])])
    model = TopPush().fit(frame, POSITIVE)
    assert list(model.feature_names_in_) == list(frame.columns)
    model.fit(X, POSITIVE)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == X.shape[1]
    by_checks = TopPush().fit(X.tolist(), POSITIVE.tolist())
    assert np.array_equal(model.decision_function(X), by_checks.decision_function(X.tolist()))
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, 1:])
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.where(np.arange(X.shape[1]) == 0, np.nan, X))
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X, POSITIVE[1:])
