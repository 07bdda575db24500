"""Samples in chunks: the optimum of a local fit, whatever the chunks are."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import attop
from attop.chunked.levels import Terms, find_levels, is_curved
from attop.chunked.passes import Scored, look, merge_looks
from attop.chunked.protocol import Chunk, ListChunks
from attop.chunked.rounding import Rounding
from attop.chunked.solve import Whole, solve
from attop.formulations import FORMULATIONS
from attop.solvers.protocol import Settings
from attop.solvers.solution import Status
from attop.surrogates import SURROGATES

PARAMETERS = {
    "TopPush": {},
    "TopPushK": {"K": 7},
    "TauFPL": {"tau": 0.02},
    "TopMeanK": {"tau": 0.4},
    "PatMat": {"tau": 0.4},
    "PatMatNP": {"tau": 0.1, "theta": 0.5},
    "SVM": {},
}
pytestmark = pytest.mark.filterwarnings("ignore:The optimum of this:UserWarning")
CASES = [(name, surrogate) for name in PARAMETERS for surrogate in SURROGATES]


def made(n=3000, d=6, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.2
    X = rng.normal(size=(n, d)) + 3.0
    X[y] += 1.2
    return X, y, rng.integers(1, 4, n).astype(float)


def terms_of(name, surrogate, C, y, weights=None):
    formulation, surrogate = FORMULATIONS[name], SURROGATES[surrogate]
    everyone = formulation.competitors == "all"
    copies = np.ones(len(y)) if weights is None else weights
    total = np.array([np.sum(copies if everyone else copies[~y])])
    parameters = {"theta": 1.0, **PARAMETERS[name]}
    parameters = {key: parameters[key] for key in formulation.parameters}
    family = formulation.family(np.zeros(1, np.intp), total, surrogate, **parameters)
    return Terms(C, surrogate, family, everyone)


def chunked_fit(name, surrogate, X, y, weights=None, ends=(), C=0.05, most=400, tol=1e-4):
    """The fit of chunks that end at these rows."""
    cuts = [0, *ends, len(y)]
    chunks = ListChunks(
        [
            Chunk(X[a:b], y[a:b], None if weights is None else weights[a:b], number)
            for number, (a, b) in enumerate(pairwise(cuts))
        ]
    )
    rows = np.count_nonzero(y), np.count_nonzero(~y)
    shares = tuple(min(1.0, 0.5 * most / n) for n in rows)
    seen = chunks.reduce(look, merge_looks, shares, 0)
    copies = np.ones(len(y)) if weights is None else weights
    totals = float(np.sum(copies[y])), float(np.sum(copies[~y]))
    whole = Whole.of(chunks, terms_of(name, surrogate, C, y, weights), seen, totals)
    return solve(whole, seen, Settings(tol=tol), most, complete=shares == (1.0, 1.0))


def assert_same_optimum(found, name, surrogate, X, y, weights=None, C=0.05):
    model = getattr(attop, name)(
        C=C, kernel="linear", surrogate=surrogate, tol=1e-6, **PARAMETERS[name]
    ).fit(X, y, weights)
    assert found.status is Status.CONVERGED
    assert found.gap <= 1e-4
    slack = 2e-6 * model.objective_
    assert found.dual <= model.objective_ + slack
    assert found.primal >= model.objective_ * (1.0 - model.dual_gap_) - slack


@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_a_fit_of_chunks_comes_to_the_local_optimum(name, surrogate):
    X, y, _ = made()
    found = chunked_fit(name, surrogate, X, y, ends=(700, 701, 2500))
    assert_same_optimum(found, name, surrogate, X, y)


@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_weights_count_copies(name, surrogate):
    X, y, weights = made(2000)
    found = chunked_fit(name, surrogate, X, y, weights, ends=(900,))
    assert_same_optimum(found, name, surrogate, X, y, weights)


@pytest.mark.parametrize("name", ["TauFPL", "PatMat"])
def test_any_chunks_will_do(name):
    """Empty ones, one without positives, unequal ones."""
    X, y, _ = made()
    order = np.argsort(y, kind="stable")  # all negatives first
    X, y = X[order], y[order]
    found = chunked_fit(name, "hinge", X, y, ends=(0, 5, 5, 1200, 2900, 3000))
    assert_same_optimum(found, name, "hinge", X, y)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_sparse_chunks(surrogate):
    X, y, _ = made()
    X = sp.csr_matrix(np.where(X > 3.0, X, 0.0))
    found = chunked_fit("TauFPL", surrogate, X, y, ends=(1000,))
    assert_same_optimum(found, "TauFPL", surrogate, X, y)


@pytest.mark.parametrize("name", PARAMETERS)
def test_all_samples_alike_in_score_do_no_harm(name):
    """Copies of a few samples, far more of each than are gathered."""
    X, y, _ = made(12)
    y[:4], y[4:] = True, False
    X, y = np.repeat(X, 200, axis=0), np.repeat(y, 200)
    found = chunked_fit(name, "hinge", X, y, ends=(1000,), most=100)
    assert_same_optimum(found, name, "hinge", X, y)


#: Scores that bins of one length cannot tell apart.
SCORES = {
    "few": lambda rng: np.round(rng.normal(size=40), 1),
    "many, tied": lambda rng: np.round(rng.normal(size=30_000), 3),
    "lognormal": lambda rng: np.exp(30.0 * rng.normal(size=20_000)),
    "two heaps": lambda rng: np.repeat([1e-9, 1.0], 9000) * rng.choice([1.0, 1.0 + 2e-16], 18_000),
    "all alike": lambda rng: np.full(9000, 0.1),
    "cauchy": lambda rng: rng.standard_cauchy(size=20_000) ** 3,
    "neighbours": lambda rng: 1e6 + 1e-10 * rng.integers(0, 3, 20_000),
}


@pytest.mark.parametrize(("name", "surrogate"), CASES)
@pytest.mark.parametrize("kind", SCORES)
def test_levels_of_scores_in_chunks_are_those_of_all(name, surrogate, kind):
    rng = np.random.default_rng(1)
    scores = SCORES[kind](rng)
    n = len(scores)
    y = rng.random(n) < 0.3
    copies = rng.integers(1, 3, n).astype(float)
    terms = terms_of(name, surrogate, 1.0, y, copies)
    parts = np.array_split(np.arange(n), 5)
    chunks = ListChunks([Scored(scores[p], y[p], copies[p]) for p in parts])
    levels = find_levels(chunks, terms, Rounding(1, n, 5, float(np.max(np.abs(scores)))), 1.0)
    competes = np.ones_like(y) if terms.all_compete else ~y
    problem = terms.problem(copies[y], copies[competes])
    arguments = problem, scores[competes].astype(np.longdouble), copies[competes]
    t = terms.family.threshold(*arguments, scores[y].astype(np.longdouble))
    loss = copies[y] @ terms.surrogate.value(t - scores[y]) + terms.family.value(*arguments, t)
    # Scores of that size are right to so much.
    size = float(np.max(np.abs(scores))) + 1.0
    power = 2 if terms.surrogate.curvature else 1
    assert levels.loss >= loss
    assert levels.loss <= loss * (1.0 + 1e-9) + 1e-9 * np.sum(copies) * size**power
    if not terms.family.free_threshold:  # whose least losses may be those of many thresholds
        assert levels.threshold == pytest.approx(float(t), rel=1e-10, abs=1e-12 * size)
    assert chunks.passes < 40


def exact_primal(name, surrogate, w, X, y, C):
    """The primal value of some weights, in numbers of 64 bits."""
    terms = terms_of(name, surrogate, C, y)
    w = w.astype(np.longdouble)
    scores = X.astype(np.longdouble) @ w
    competes = np.ones_like(y) if terms.all_compete else ~y
    problem = terms.problem(np.ones(np.sum(y)), np.ones(np.sum(competes)))
    arguments = problem, scores[competes], problem.competitor_weights
    t = terms.family.threshold(*arguments, scores[y])
    losses = np.sum(terms.surrogate.value(t - scores[y])) * C
    return 0.5 * (w @ w) + losses + terms.family.value(*arguments, t)


def offset(X, rng):
    return X + 1e7


def far_out(X, rng):
    return X * np.exp(3.0 * rng.normal(size=(len(X), 1)))


def repeated(X, rng):
    return np.repeat(X, 2, axis=1) * np.array([1.0, 1.0 / 3.0] * X.shape[1])


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs extended precision")
@pytest.mark.parametrize(("name", "surrogate"), CASES)
@pytest.mark.parametrize("change", [offset, far_out, repeated])
def test_values_are_bounds_whatever_rounding_does(name, surrogate, change):
    """That of a model is no less than its exact one, and the bound no more than the optimum."""
    X, y, _ = made(1500)
    X = change(X, np.random.default_rng(2))
    found = chunked_fit(name, surrogate, X, y, ends=(400, 1100), tol=1e-3)
    exact = exact_primal(name, surrogate, found.w, X, y, 0.05)
    assert found.primal >= exact
    assert found.dual <= exact
    assert found.primal <= exact * (1.0 + 1e-5)
    assert found.gap <= 1e-3


def test_which_thresholds_are_smooth():
    y = np.arange(20) < 5
    smooth = {case for case in CASES if is_curved(terms_of(*case, 1.0, y))}
    assert smooth == {(name, "quadratic_hinge") for name in ("PatMat", "PatMatNP", "SVM")}


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_where_no_model_is_the_best_that_is_found(surrogate):
    """Of classes that overlap much the optimum is ``w = 0``, which others only come near."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 5)), rng.random(4000) < 0.05
    X[y] += 0.3
    found = chunked_fit("TauFPL", surrogate, X, y, ends=(1000, 2500), C=1.0)
    assert found.status is Status.CONVERGED
    assert np.linalg.norm(found.w) <= 1e-6
    assert found.primal == pytest.approx(np.sum(y), rel=1e-6)


def test_limits_end_a_fit_with_the_bound_it_has():
    X, y, _ = made()
    cuts = {"ends": (1000,), "most": 40, "tol": 1e-9}
    found = chunked_fit("PatMat", "hinge", X, y, **cuts)
    assert found.status in (Status.CONVERGED, Status.STALLED)
    assert found.primal >= found.dual
