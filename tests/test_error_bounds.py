"""The bounds that certificates rest on: they hold for every entry, sum and interpolation."""

from __future__ import annotations

import warnings
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

import attop
from attop._extended import AVAILABLE, ROUNDOFF, ExtendedScores
from attop._scores import Scores
from attop.formulations import FORMULATIONS
from attop.kernels import compiled
from attop.kernels.columns import ColumnStore, Workers
from attop.kernels.errors import EntryErrors, Tally
from attop.kernels.functions import Gram, Kernel
from attop.kernels.gaussian import ACCURACY, PRODUCT_ROUNDING, centre, gaussian_kernel
from attop.kernels.linear import LinearStore
from attop.kernels.refined import refined_sums
from attop.kernels.sources import column_source
from attop.objectives import certify, signed_coefficients
from attop.solvers.exact import solve
from attop.solvers.exact.outer.loop import Limits, Loop
from attop.solvers.exact.outer.state import State
from attop.solvers.exact.scaling.bounded_scores import BoundedScores
from attop.solvers.exact.scaling.reference import RIDGE, Spreads, orthonormal
from attop.solvers.solution import Status
from conftest import two_clouds
from fuzz import clouds

CLOUDS = (
    clouds.normal, clouds.sentinels, clouds.far_pair, clouds.far_clusters, clouds.offset,
    clouds.scaled, clouds.duplicates, clouds.cauchy, clouds.lognormal, clouds.binary,
)  # fmt: skip


def cloud_of(kind, n=400, d=6, seed=0):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    positive[:2] = True, False
    return kind(rng, positive, d)[0], positive


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 10, 784, 3072])
def test_matrix_products_round_as_assumed(d, dtype):
    """Random samples, of one sign, and all alike: the worst case of a running sum."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(200, d))
    equal = np.repeat(rng.uniform(0.1, 1.0, size=(200, 1)), d, axis=1)
    for X in (normal, np.abs(normal), equal, np.where(rng.random((200, d)) < 0.5, equal, 0.0)):
        X = X.astype(dtype)
        exact = X.astype(np.longdouble) @ X.astype(np.longdouble).T
        norms = np.sqrt(np.diag(exact))
        allowed = PRODUCT_ROUNDING * d**0.5 * 0.5 * np.finfo(dtype).eps * np.outer(norms, norms)
        assert np.all(np.abs(X @ X.T - exact) <= allowed)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", CLOUDS, ids=lambda kind: kind.__name__)
def test_every_entry_of_a_column_is_within_its_bound(kind, dtype, sparse):
    X, _ = cloud_of(kind)
    scale = 1.0 / np.median(np.var(X, axis=0) + 1e-300)
    rows = np.arange(len(X))
    for gamma in (0.01 * scale, scale, 30.0 * scale, 1e-3):
        exact = np.exp(-gamma * cdist(X, X, "sqeuclidean")) - 1.0
        workers = Workers()
        gram = Gram(Kernel("rbf", gamma=gamma), sp.csr_array(X) if sparse else X)
        source = column_source(gram, dtype, workers)
        columns = np.empty((len(X), len(X)), dtype=source.dtype)
        source.compute(rows, columns, workers)
        _, slope, size = source.errors
        allowed = source.errors.constant + slope * (size[:, np.newaxis] + size)
        assert np.all(np.abs(columns - exact) <= allowed)
        some = rows[::3]
        assert np.all(np.abs(source.block(some, rows, workers) - exact[some]) <= allowed[some])
        part = source.subset(some)
        own = part.errors.constant + part.errors.slope * (
            part.errors.size[:, None] + part.errors.size
        )
        inside = part.block(np.arange(len(some)), np.arange(len(some)), workers)
        assert np.all(np.abs(inside - exact[np.ix_(some, some)]) <= own)
        workers.close()


@pytest.mark.parametrize("n_features", [40, 900])
def test_columns_of_sparse_samples_are_within_their_bounds(n_features):
    """Computed from what is not zero: also empty samples, and numbers that are stored twice."""
    rng = np.random.default_rng(0)
    X = sp.random_array((700, n_features), density=0.05, rng=rng, format="lil")
    X[[3, 500]] = 0.0
    X[7] = X[9]
    X = sp.csr_array(X)
    X.data *= np.exp(rng.normal(size=X.nnz)) * 5.0
    twice = sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), X.shape)
    dense, rows, workers = X.toarray(), np.arange(700), Workers()
    for samples in (X, twice, X.astype(np.float32)):
        source = column_source(Gram(Kernel("rbf", gamma=1e-3), samples), np.float32, workers)
        assert source.samples.spread
        exact = np.exp(-1e-3 * cdist(dense, dense, "sqeuclidean")) - 1.0
        columns = np.empty((700, 700), dtype=np.float32)
        source.compute(rows, columns, workers)
        _, slope, size = source.errors
        allowed = source.errors.constant + slope * (size[:, np.newaxis] + size)
        assert np.all(np.abs(columns - exact) <= allowed)
        some = rows[::7]
        block = source.block(some, rows[::-1], workers)[:, ::-1]
        assert np.all(np.abs(block - exact[some]) <= allowed[some])
    workers.close()


def test_ordinary_samples_have_bounds_of_use():
    """Else everything would be recomputed, and nothing gained."""
    X, _ = cloud_of(clouds.normal, d=50)
    workers = Workers()
    source = column_source(Gram(Kernel("rbf", gamma=1 / 50), X), np.float32, workers)
    workers.close()
    assert len(source.far) == 0
    assert source.errors.constant + 2.0 * source.errors.slope * np.max(source.errors.size) < 2e-5


def test_a_few_samples_far_out_leave_the_others_in_single_precision():
    X, _ = cloud_of(clouds.normal)
    X[[3, 70]] = -99999.0
    workers = Workers()
    source = column_source(Gram(Kernel("rbf", gamma=0.2), X), np.float32, workers)
    workers.close()
    assert source.dtype == np.float32
    assert list(source.far) == [3, 70]
    assert np.max(np.delete(source.errors.size, [3, 70])) < 100.0


@pytest.mark.parametrize("kind", CLOUDS, ids=lambda kind: kind.__name__)
def test_the_gaussian_kernel_is_right_whatever_the_samples_and_blocks(kind):
    X, _ = cloud_of(kind, n=300)
    X[10] = X[250]
    for gamma in (1e-3, 0.3, 1.0 / (X.shape[1] * np.median(np.var(X, axis=0) + 1e-300))):
        whole = gaussian_kernel(X, X, gamma)
        assert_allclose(whole, np.exp(-gamma * cdist(X, X, "sqeuclidean")), atol=ACCURACY, rtol=0)
        assert np.all(np.diag(whole) == 1.0)
        assert whole[10, 250] == 1.0
        for block in (slice(0, 1), slice(7, 19), slice(100, 300)):
            assert_allclose(gaussian_kernel(X[block], X, gamma), whole[block], atol=ACCURACY)
            sparse = gaussian_kernel(sp.csr_array(X[block]), X, gamma)
            assert_allclose(sparse, whole[block], atol=ACCURACY)


def test_the_compiled_exponential_is_as_precise_as_it_says():
    x = -np.concatenate([np.geomspace(1e-30, 87.0, 20_000), np.linspace(0.0, 87.0, 20_000)])
    inner = np.zeros((1, len(x)), dtype=np.float32)
    norms = (-x).astype(np.float32)
    compiled.gaussian_minus_one(
        0, len(x), inner, np.zeros(1, dtype=np.float32), norms, np.float32(1.0)
    )
    exact = np.expm1(-norms.astype(np.float64))
    assert np.all(np.abs(inner[0] - exact) <= 1.1e-7 * np.abs(exact) + 1e-38)


def store_of(X, gamma, dtype=np.float32):
    """A store of Gaussian columns."""
    workers = Workers()
    source = column_source(Gram(Kernel("rbf", gamma=gamma), X), dtype, workers)
    return ColumnStore(source, 10**8, workers)


def refined_of(X, gamma, weights):
    """Refined sums of all columns, the bounds of plain ones, and the exact sums."""
    with store_of(X, gamma) as store:
        rows = np.arange(len(X))
        store.fetch(rows)
        found = refined_sums(store, rows, weights)
        plain = store.errors.bounds(store.errors.of_columns(rows, weights))
    distances = cdist(*[X.astype(np.longdouble)] * 2, "sqeuclidean")
    return found, plain, np.expm1(-gamma * distances) @ weights


@pytest.mark.parametrize("kind", CLOUDS, ids=lambda kind: kind.__name__)
def test_refined_sums_are_within_their_bounds(kind):
    """Whatever the samples, and if one weight is larger than all others together."""
    X, _ = cloud_of(kind)
    rng, scale = np.random.default_rng(0), 1.0 / np.median(np.var(X, axis=0) + 1e-300)
    weights = rng.normal(size=len(X)) * np.exp(2.0 * rng.normal(size=len(X)))
    weights[5] = 1e4
    for gamma in (1e-4 * scale, 0.02 * scale, scale):
        for samples in (X, X.astype(np.float32)):
            found, _, exact = refined_of(samples, gamma, weights)
            if found is not None:
                assert np.all(np.abs(found[0] - exact) <= found[1])


def test_refined_sums_of_images_are_much_more_precise():
    """Entries of many features are alike, and so are the slopes by which distances err."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 500)) * (1.0 + rng.random((300, 1)))
    weights = rng.normal(size=len(X))
    (sums, errors), plain, exact = refined_of(X, 1 / 300, weights - weights.mean())
    assert np.all(np.abs(sums - exact) <= errors)
    assert np.median(errors) < 0.1 * np.median(plain)


def test_sums_that_cannot_be_refined_say_so():
    """Of columns in double precision, of sparse samples, and of those far out."""
    X, _ = cloud_of(clouds.normal)
    weights, far = np.ones(len(X)), X.copy()
    far[:9] *= 1e6
    cases = (X, np.float64), (sp.csr_array(X), np.float32), (far, np.float32)
    for samples, dtype in cases:
        with store_of(samples, 0.1, dtype) as store:
            store.fetch(np.arange(3))
            assert refined_sums(store, np.arange(3), weights[:3]) is None
    assert np.isinf(refined_of(X, 1.0, weights)[0][1]).any()  # entries of next to nothing


def test_tallies_count_every_change():
    errors = EntryErrors(1e-6, 1e-7, np.array([1.0, 2.0, 30.0]))
    there = errors.of_columns(np.array([0, 2]), np.array([1.5, -0.5]))
    back = errors.of_columns(np.array([0, 2]), np.array([-1.5, 0.5]))
    assert there == Tally(2.0, 16.5)
    assert there + back == there * 2.0  # what is taken back leaves its error behind
    assert_allclose(errors.bounds(there), 2.0 * 1e-6 + 1e-7 * (16.5 + 2.0 * errors.size), rtol=1e-6)


@pytest.mark.parametrize("kind", [clouds.normal, clouds.offset, clouds.duplicates, clouds.scaled])
def test_what_a_reference_leaves_is_bounded_however_sharp_the_bound_is_asked_to_be(kind):
    X, _ = cloud_of(kind, n=1500, d=8)
    X, gamma = X.astype(np.float32), 0.1 / np.mean(np.var(X, axis=0)) / 8
    reference = np.random.default_rng(1).choice(len(X), 200, replace=False)
    exact = np.exp(-gamma * cdist(X.astype(np.float64), X[reference].astype(np.float64)) ** 2)
    ridged = exact[reference] + RIDGE * np.eye(len(reference))
    left = 1.0 - np.einsum("ij,ij->i", exact, np.linalg.solve(ridged, exact.T).T)
    left = np.sqrt(np.maximum(left, 0.0))  # with its ridge, which is part of the space
    with store_of(X, gamma, np.float32) as store:
        spreads = Spreads(store, reference, orthonormal(store, reference))
        assert_allclose(spreads.values, 1.0)
        for asked in (0.9, 0.3, 0.05):
            rows = np.arange(0, len(X), 2)
            before = spreads.values.copy()
            spreads.sharpen(rows, np.full(len(rows), asked))
            assert np.all(spreads.values >= left - 1e-9)
            assert np.all(spreads.values <= before + 1e-9)
            assert_allclose(spreads.values[1::2], 1.0)  # nobody asked
        # As sharp as it can be: all of the reference, and what its entries may be off by.
        spreads.sharpen(rows, 1.01 * np.sqrt(spreads._slack[rows] + 1e-12))
        allowed = np.sqrt(left[rows] ** 2 + 2.0 * spreads._slack[rows]) + 1e-5
        assert np.all(spreads.values[rows] <= allowed)


def state_after_rounds(X, positive, name, parameters, gamma, C=1.0, tol=1e-3):
    problem = FORMULATIONS[name].problem(positive, C, "hinge", **parameters)
    gram = Gram(Kernel("rbf", gamma=gamma), X)
    workers = Workers()
    store = ColumnStore(column_source(gram, np.float32, workers), 2**30, workers)
    state = State(problem, store)
    solver = Loop(state, Limits(-1, 20.0), 0, keeper=BoundedScores(state))
    if solver.begin(None, 0) is None:
        solver.run(tol)
    workers.close()
    return solver, gram, problem


def exact_scores(solver, gram, problem):
    a = signed_coefficients(problem, solver.state.alpha, solver.state.beta)
    X = gram.X.astype(np.float64)
    support = np.flatnonzero(a)
    kernel = np.exp(-gram.kernel.gamma * cdist(X, X[support], "sqeuclidean"))
    return kernel @ a[support]


def within(scores, error, exact):
    """Whether one constant brings all scores within their errors."""
    return np.max(exact - scores - error) <= np.min(exact - scores + error) + 1e-9


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("TopPush", {}), ("TauFPL", {"tau": 0.05}), ("PatMatNP", {"tau": 0.05, "theta": 1.0})],
)
@pytest.mark.parametrize(
    "kind", [clouds.normal, clouds.sentinels, clouds.far_clusters, clouds.cauchy]
)
def test_scores_after_many_updates_are_within_their_tally(kind, name, parameters):
    X, positive = cloud_of(kind, n=900, seed=1)
    solver, gram, problem = state_after_rounds(X, positive, name, parameters, 0.2)
    errors = solver.state.store.errors
    error = errors.bounds(solver.state.tally)
    assert within(solver.state.scores, error, exact_scores(solver, gram, problem))


@pytest.mark.parametrize("C", [0.05, 1.0])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [("TopPush", {}), ("TauFPL", {"tau": 0.02}), ("PatMatNP", {"tau": 0.02, "theta": 1.0})],
)
def test_interpolated_scores_are_within_their_proved_bounds(name, parameters, C):
    """And most samples are left out by them."""
    rng = np.random.default_rng(3)
    positive = rng.random(5000) < 0.2
    X = rng.normal(size=(5000, 10))
    X[positive, :3] += 1.5
    X[rng.choice(5000, 4, replace=False), 5] = -9999.0
    solver, gram, problem = state_after_rounds(X, positive, name, parameters, 0.02, C)
    point = solver.state.alpha, solver.state.beta
    seen = []

    def hint(exact):
        seen.append(solver.keeper.bounds(exact))
        return seen[-1]

    hinted = certify(problem, gram, *point, hint=hint)
    scores, error = seen[0]
    assert within(scores, error, exact_scores(solver, gram, problem))
    assert_allclose(hinted[:3], certify(problem, gram, *point)[:3], rtol=1e-9, atol=1e-9)
    assert len(hinted.rows) < 0.8 * len(X)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_sums_of_linear_columns_do_not_suffer_from_an_offset(offset):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) + offset
    rows, weights = rng.permutation(200)[:50], rng.normal(size=50)
    weights -= np.mean(weights)
    workers = Workers()
    store, out = LinearStore(X, workers), np.zeros(200)
    store.add_columns(rows, weights, out)
    workers.close()
    centred = (X - X.mean(axis=0)).astype(np.longdouble)
    exact = (centred @ (centred[rows].T @ weights)).astype(np.float64)
    assert_allclose(out - out.mean(), exact - exact.mean(), atol=1e-9)
    assert_allclose(store.submatrix(rows), store.features(rows) @ store.features(rows).T)
    assert_allclose(store.diagonal(rows), np.diag(store.submatrix(rows)), rtol=1e-12)


EXACT_KERNELS = [
    Kernel("linear"), Kernel("rbf", gamma=0.25), Kernel("laplacian", gamma=0.25),
    Kernel("poly", gamma=0.5, degree=3, coef0=1.0), Kernel("sigmoid", gamma=2.0**-6, coef0=0.5),
]  # fmt: skip


def exact_entry(kernel, x, y):
    """A kernel entry to 60 digits, from the numbers that the doubles are."""
    with localcontext() as context:
        context.prec = 60
        inner = sum((a * b for a, b in zip(x, y, strict=True)), Decimal(0))
        if kernel.name == "linear":
            return inner
        gamma, coef0 = Decimal(kernel.gamma), Decimal(getattr(kernel, "coef0", 0.0))
        if kernel.name == "poly":
            return (gamma * inner + coef0) ** kernel.degree
        if kernel.name == "sigmoid":
            power = (2 * (gamma * inner + coef0)).exp()
            return (power - 1) / (power + 1)
        differences = [abs(a - b) for a, b in zip(x, y, strict=True)]
        distance = sum(
            (z if kernel.name == "laplacian" else z * z for z in differences), Decimal(0)
        )
        return (-gamma * distance).exp()


@pytest.mark.skipif(not AVAILABLE, reason="long doubles are doubles here")
@pytest.mark.parametrize("kernel", EXACT_KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_extended_scores_are_within_their_bounds(kernel, offset):
    """Against decimal numbers of 60 digits, differences to the first score taken."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3)) * (1.0 if kernel.name != "linear" else 1e3) + offset
    a = rng.normal(size=12) * 1e6
    a[-1] = -np.sum(a[:-1])
    digits = [[Decimal(float(z)) for z in x] for x in X]
    with localcontext() as context:
        context.prec = 60
        exact = [
            sum(
                (
                    Decimal(float(c)) * exact_entry(kernel, x, y)
                    for c, y in zip(a, digits, strict=True)
                ),
                Decimal(0),
            )
            for x in digits
        ]
    gram, rows = Gram(kernel, X), np.arange(12)
    found = ExtendedScores(gram, a.astype(np.longdouble), rows, float(exact[0]))
    with localcontext() as context:
        context.prec = 60
        true = np.array([float(s - Decimal(float(exact[0]))) for s in exact])
    off = np.abs((found.values - found.values[0]) - (true - true[0]))
    # What the sum of the coefficients is off by takes part in a linear score through the centre.
    lacking = abs(float(np.sum(a.astype(np.longdouble)))) * np.max(np.abs(X)) ** 2 * 12
    allowed = found.rounding(rows) + found.rounding(rows[:1]) + lacking
    assert np.all(off <= allowed)
    coarse = Scores(gram, rows, a)
    coarse.compute(rows)
    assert np.max(found.rounding(rows)) <= np.max(coarse.rounding(rows))


@pytest.mark.skipif(not AVAILABLE, reason="long doubles are doubles here")
def test_extended_precision_certifies_what_double_precision_cannot():
    """Features with a large offset: entries of 3e10, of which differences of 1 are left."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    positive = X[:, 0] + 0.3 * rng.normal(size=60) > 0.8
    X += 3e5
    problem = FORMULATIONS["TopPush"].problem(positive, 1.0, "hinge")
    gram = Gram(Kernel("poly", gamma=1e-6, degree=2, coef0=0.0), X)
    solution = solve(problem, gram, tol=1e-3, random_state=0)
    assert solution.status is Status.CONVERGED
    point = solution.alpha, solution.beta
    double, extended = certify(problem, gram, *point), certify(problem, gram, *point, tol=1e-3)
    assert double.resolution > 1e-3 > 100.0 * extended.resolution
    assert abs((double.primal - double.dual) - (extended.primal - extended.dual)) <= double.rounding
    assert ROUNDOFF < 2.0**-60


@pytest.mark.skipif(not AVAILABLE, reason="long doubles are doubles here")
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rounded", [False, True])
def test_weights_of_a_linear_model_are_summed_up_exactly(sparse, rounded):
    """Two samples far out that cancel, next to which the others would be lost."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4))
    X[:2] = 1e7 * rng.normal(size=4)
    a = np.append([1e5, -1e5], 1e-6 * rng.normal(size=28)).astype(np.longdouble)
    if rounded:  # more bits than a double has
        a += a * np.longdouble(2.0**-60)
    gram, rows = Gram(Kernel("linear"), sp.csr_array(X) if sparse else X), np.arange(30)
    found = ExtendedScores(gram, a, rows, 0.0, rounded)
    with localcontext() as context:
        context.prec = 80
        exact = [sum((digits(c) * digits(x) for c, x in zip(a, f, strict=True)), Decimal(0))
                 for f in X.T]  # fmt: skip
        scores = [sum((w * digits(x) for w, x in zip(exact, s, strict=True)), Decimal(0))
                  for s in X]  # fmt: skip
        off = [abs(Decimal(float(v)) - s) for v, s in zip(found.values, scores, strict=True)]
        lacking = abs(sum(map(digits, a), Decimal(0))) * Decimal(np.max(np.abs(X)) ** 2 * 12)
        bounds = [Decimal(float(b)) + lacking for b in found.rounding(rows)]
        assert all(one <= other for one, other in zip(off, bounds, strict=True))
        norm2 = sum((w * w for w in exact), Decimal(0))
        assert abs(Decimal(found.w_norm2()) - norm2) <= Decimal(found.rounding_of_norm()) + lacking
    if not rounded:
        norms = np.linalg.norm(X - (0.0 if sparse else np.mean(X[2:], axis=0)), axis=1)
        assert np.all(found.rounding(rows) <= 1e-15 * norms * float(norm2) ** 0.5)


def digits(number):
    """A long double as a decimal number: a double, and what is left of it."""
    leading = float(number)
    return Decimal(leading) + Decimal(float(number - np.longdouble(leading)))


def gap_in_fractions(problem, X, solution):
    """The relative gap of a linear hinge model of the mean of the top scores, without rounding.

    The primal value is that of the weights that are certified, the dual value that of the point.
    """
    a = [Fraction(0)] * len(X)
    for i, value in zip(problem.positives, solution.alpha, strict=True):
        a[i] += Fraction(float(value))
    for i, value in zip(problem.competitors, solution.beta, strict=True):
        a[i] -= Fraction(float(value))
    support = [i for i, value in enumerate(a) if value]
    # Sums that differ by rounding leave the model that of samples from the centre.
    middle = centre(X[support])
    rows = [[Fraction(float(z)) - Fraction(float(m)) for z, m in zip(x, middle, strict=True)]
            for x in X]  # fmt: skip
    w = [sum(a[i] * rows[i][j] for i in support) for j in range(X.shape[1])]
    dual = sum(Fraction(float(value)) for value in solution.alpha) - sum(v * v for v in w) / 2
    if (kept := solution.certificate.weights) is not None:
        w = [Fraction(float(v)) for v in kept]
    scores = [sum(z * v for z, v in zip(x, w, strict=True)) for x in rows]
    K = max(1, problem.betas.K)
    t = sum(sorted((scores[i] for i in problem.competitors), reverse=True)[:K]) / Fraction(K)
    losses = sum(max(Fraction(0), 1 + t - scores[i]) for i in problem.positives)
    primal = sum(v * v for v in w) / 2 + Fraction(problem.C) * losses
    return float((primal - dual) / max(abs(primal), abs(dual)))


@pytest.mark.skipif(not AVAILABLE, reason="long doubles are doubles here")
@pytest.mark.parametrize("name", ["TopPush", "TopPushK"])
@pytest.mark.parametrize("scale", [1e3, 1e4, 1e5, 1e6])
@pytest.mark.parametrize("far", [False, True])
def test_claimed_gaps_hold_without_rounding(name, scale, far):
    """Separable samples of a large scale: a loss of one rounding is as much as ``|w|^2``."""
    X, positive = two_clouds(20, 40, 5, 2.0, seed=1)
    X *= scale
    if far:  # one point of both classes
        X[np.flatnonzero(positive)[0]] = X[np.flatnonzero(~positive)[0]] = 100.0 * scale
    parameters = {"K": 3} if name == "TopPushK" else {}
    problem = FORMULATIONS[name].problem(positive, 100.0, "hinge", **parameters)
    solution = solve(problem, Gram(Kernel("linear"), X), tol=1e-6, random_state=0)
    certificate = solution.certificate
    true = gap_in_fractions(problem, X, solution)
    assert true <= certificate.gap * (1.0 + 1e-12) + 1e-15
    assert certificate.gap - true <= 2.0 * certificate.resolution + 1e-15
    if not far:
        assert solution.status is Status.CONVERGED


@pytest.mark.skipif(not AVAILABLE, reason="long doubles are doubles here")
@pytest.mark.parametrize("name", ["TopPush", "TopMeanK"])
def test_the_weights_of_a_model_are_those_of_its_certificate(name):
    """Dual variables of 1e5 with samples at 1e7: their sums in double precision are off by 1e-4."""
    X, positive = two_clouds(20, 40, 5, 1.0, seed=1)
    X[np.flatnonzero(positive)[0]] = X[np.flatnonzero(~positive)[0]] = 1e7
    parameters = {"tau": 0.9} if name == "TopMeanK" else {}
    model = getattr(attop, name)(C=1e5, kernel="linear", tol=1e-2, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, positive)
    scores = (X - X[-1]).astype(np.longdouble) @ model.coef_[0]
    K = round(0.9 * len(X)) if name == "TopMeanK" else 1
    competing = scores if name == "TopMeanK" else scores[~positive]
    t = np.mean(np.sort(competing)[-K:])
    losses = np.sum(np.maximum(0.0, 1.0 + t - scores[positive]))
    primal = 0.5 * np.sum(model.coef_**2) + model.C * losses
    assert float(primal) == pytest.approx(model.objective_, rel=1e-7)


@pytest.mark.parametrize("kernel", ["poly", "linear"])
def test_samples_far_out_do_not_move_the_threshold(kernel):
    """It gives way by the rounding of scores that are at it: the top negative reaches it."""
    X, positive = two_clouds(30, 60, 3, 3.0, seed=2)
    X[np.flatnonzero(positive)[0]] = 1e4
    model = attop.TopPush(kernel=kernel, degree=4, gamma=0.5, coef0=1.0, C=1.0, tol=1e-3)
    decisions = model.fit(X, positive).decision_function(X)
    assert 0.0 <= np.max(decisions[~positive]) <= 1e-6
