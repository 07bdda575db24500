"""The referee agrees with an oracle, and the fits of a few hundred seeds with the referee."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import attop
from oracle import solve_dual

from .problems import FORMULATIONS, make_case, size_of
from .referee import Function, Task, gram, judge, scores_of
from .runs import verdicts
from .verdicts import DOUBTFUL, FATAL, FINE, _of_error, centred_gram, oracle_problem

#: Taken as they come; large cases are left to ``make fuzz``.
SEEDS = [seed for seed in range(260) if size_of(seed) <= 200]
#: Those that went wrong once, and how: a margin of sparse samples with an offset was none, and the
#: equations of a face of an indefinite kernel were singular.
SEEDS += [401075, 408810]
OWN = {
    "TopPushK": {"K": 4},
    "TauFPL": {"tau": 0.2},
    "TopMeanK": {"tau": 0.6},
    "PatMat": {"tau": 0.6, "theta": 0.2},  # separable: a larger theta is too much for tau
    "PatMatNP": {"tau": 0.2, "theta": 0.7},
}
FUNCTION = Function("rbf", gamma=0.3)


def task_on_clouds(formulation, surrogate, C, distance=1.0):
    rng = np.random.default_rng(3)
    positive = np.arange(40) % 3 == 0
    X = rng.normal(size=(40, 3)) + distance * positive[:, np.newaxis]
    return X, Task(formulation, positive, C, surrogate, **OWN.get(formulation, {}))


@pytest.mark.parametrize("C", [0.05, 3.0, np.inf])
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_referee_finds_no_gap_at_the_optimum_and_one_elsewhere(formulation, surrogate, C):
    X, task = task_on_clouds(formulation, surrogate, C, distance=6.0 if np.isinf(C) else 1.0)
    alpha, beta, value = solve_dual(oracle_problem(task), centred_gram(FUNCTION, X))
    alpha, beta = np.maximum(alpha, 0.0), np.maximum(beta, 0.0)
    best = judge(task, FUNCTION, X, alpha, beta)
    assert best.dual == pytest.approx(value, rel=1e-7)
    assert abs(best.gap) <= 1e-6
    assert best.infeasibility <= 1e-8
    # Less of everything keeps the sums and caps, but is no optimum.
    worse = judge(task, FUNCTION, X, 0.9 * alpha, 0.9 * beta)
    assert worse.gap >= 1e-3
    assert worse.infeasibility <= 1e-8
    assert worse.dual <= best.primal * (1 + 1e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_referee_sees_violated_constraints(formulation):
    X, task = task_on_clouds(formulation, "hinge", 3.0)
    alpha, beta, _ = solve_dual(oracle_problem(task), centred_gram(FUNCTION, X))
    for a, b in ((1.01 * alpha, beta), (alpha - 0.01, beta - 0.01), (300 * alpha, 300 * beta)):
        assert judge(task, FUNCTION, X, a, b).infeasibility >= 1e-3
    # One competitor alone is above the cap, unless that is the sum.
    if not (task.is_quantile or task.is_machine):
        alone = np.where(np.arange(len(beta)) == 0, np.sum(alpha), 0.0)
        above = judge(task, FUNCTION, X, alpha, alone).infeasibility
        assert above == pytest.approx(task.top - 1, abs=1e-6)


@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
def test_threshold_of_the_referee_is_the_root(surrogate):
    scores = np.random.default_rng(0).normal(size=200)
    task = Task("PatMatNP", np.zeros(200, dtype=bool), 1.0, surrogate, tau=0.07, theta=3.0)
    t = task.threshold(scores)
    assert float(np.mean(task.loss(3.0 * (scores - t)))) == pytest.approx(0.07, rel=1e-12)
    top = Task("TopPushK", np.zeros(200, dtype=bool), 1.0, surrogate, K=7)
    assert top.threshold(scores) == pytest.approx(sum(sorted(scores)[-7:]) / 7, rel=1e-14)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian", "poly", "sigmoid"])
def test_scores_of_the_referee_are_those_of_its_kernel_matrix(kernel):
    rng = np.random.default_rng(1)
    X, a = rng.normal(size=(700, 4)), rng.normal(size=300)
    a -= np.mean(a)  # as those of models, so that nothing depends on the origin
    function = Function.of(X, kernel=kernel, coef0=1.0)
    rows = rng.choice(700, 300, replace=False)
    scores, sizes = scores_of(function, X, rows, a)
    expected = gram(function, X)[:, rows] @ a
    assert np.max(np.abs(scores - expected)) <= 1e-13 * np.max(sizes)


def test_a_seed_is_one_case():
    for seed in (7, 4096, 12345):
        one, again = make_case(seed), make_case(seed)
        assert str(one) == str(again)
        assert len(one.y) == size_of(seed)
        assert one.X is not again.X
        assert (one.X != again.X).sum() == 0


@pytest.mark.parametrize("formulation", ["TopPush", "TauFPL", "PatMatNP"])
def test_weights_that_are_kept_have_the_certified_value(formulation):
    """With a large C the last bits of weights of all scales are most of the primal value."""
    rng, own = np.random.default_rng(1), OWN.get(formulation, {})
    positive, converged = np.array([True, False, False, True]), 0
    for _ in range(15):
        X = rng.normal(size=(4, 6)) * 64 * 10.0 ** rng.uniform(-6, 6, size=6)
        C = 10.0 ** rng.uniform(3, 7)
        model = getattr(attop, formulation)(C=C, kernel="linear", **own)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, positive)
        zero = len(model.support_) == 0
        task = Task(formulation, positive, C, "hinge", **own)
        point = model.alpha_, model.beta_
        found = judge(task, Function("linear"), X, *point, zero=zero, weights=model.coef_[0])
        if model.status_.name == "CONVERGED":
            converged += 1
            assert found.gap <= 1.05 * model.tol
            assert found.infeasibility <= 1e-8
    assert converged >= 1


def test_only_errors_raised_on_purpose_are_refusals():
    from attop import TopPushK

    with pytest.raises(ValueError) as by_design:
        TopPushK(K=0).fit([[0.0], [1.0]], [0, 1])
    assert _of_error(by_design.value)[0] == "refused"
    with pytest.raises(ValueError) as by_accident:
        np.zeros(2) + np.zeros(3)
    assert _of_error(by_accident.value)[0] == "crash"


@pytest.fixture(scope="module")
def results():
    # In a process of its own, so that a hang is a verdict and not the end of the tests.
    return list(verdicts(SEEDS, jobs=1, seconds=20.0))


@pytest.mark.parametrize("verdict", [*FATAL, *DOUBTFUL])
def test_no_seed_has_a_verdict_like(verdict, results):
    assert "\n".join(f"seed {r.seed}: {r}" for r in results if r.verdict == verdict) == ""


def test_every_seed_has_a_verdict(results):
    assert sorted(result.seed for result in results) == SEEDS
    assert {result.verdict for result in results} <= {*FINE, *DOUBTFUL, *FATAL}
