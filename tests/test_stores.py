"""The stores of kernel columns, each alone: what they keep, what gives way, what they add up."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from attop import SVM
from attop.kernels.columns import ColumnStore, Workers
from attop.kernels.functions import Gram, Kernel
from attop.kernels.linear import LinearStore
from attop.kernels.sources import column_source
from attop.solvers.solution import Status
from conftest import kernel_matrix, scarce_columns, two_clouds

X, _ = two_clouds(60, 140, 5, seed=11)
EVERYONE = np.arange(len(X))
KERNELS = [Kernel("rbf", gamma=0.3), Kernel("poly", gamma=0.2, degree=3, coef0=1.0)]
rng = np.random.default_rng(0)


def opened(kernel=KERNELS[0], columns=64, dtype=np.float64):
    """A store with room for so many columns; they are those of the kernel less a constant."""
    if dtype == np.float64:
        return scarce_columns(Gram(kernel, X), columns)
    workers = Workers()
    return ColumnStore(column_source(Gram(kernel, X), dtype, workers), 2**20, workers)


def entries(store, kernel):
    return kernel_matrix(Gram(kernel, X)) - store.source.shift


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(("dtype", "precision"), [(np.float64, 1e-12), (np.float32, 2e-6)])
def test_columns_are_those_of_the_kernel(kernel, dtype, precision):
    with opened(kernel, dtype=dtype) as store:
        rows = np.array([3, 150, 3, 77])
        slots = store.fetch(rows)
        expected = entries(store, kernel)
        scale = np.max(np.abs(expected))
        assert_allclose(store.buffer[slots], expected[rows], atol=precision * scale)
        assert_allclose(store.column(9), expected[9], atol=precision * scale)
        assert_allclose(store.diagonal(rows), np.diag(expected)[rows], atol=precision * scale)
        assert store.n_computed == 4  # one of them was asked for twice


def test_the_least_recently_used_columns_give_way():
    with opened(columns=10) as store:
        assert store.capacity == 10
        store.fetch(np.arange(10))
        store.fetch(np.arange(4))  # used again: these stay
        store.fetch(np.arange(20, 26))
        assert_array_equal(np.flatnonzero(store.cached(EVERYONE)), [0, 1, 2, 3, *range(20, 26)])
        kept = store.buffer[store.slot_of_row[[2, 25]]]
        assert_allclose(kept, entries(store, KERNELS[0])[[2, 25]], atol=1e-12)
        assert store.n_computed == 16


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("columns", [2, 30, 200])
def test_products_do_not_depend_on_what_fits(columns, keep):
    weights = rng.normal(size=120) * rng.integers(0, 2, 120)
    rows = rng.choice(len(X), 120, replace=False)
    with opened(columns=columns) as store:
        store.fetch(rows[:2])
        out = np.ones(len(X))
        for _ in range(2):
            store.add_product(rows, weights, out, keep=keep)
        expected = 1.0 + 2.0 * weights @ entries(store, KERNELS[0])[rows]
        assert_allclose(out, expected, atol=1e-10)
        assert store.cached(EVERYONE).sum() <= (columns if keep else 2)


def test_entries_at_some_samples_alone():
    rows, columns = rng.choice(len(X), 30), rng.choice(len(X), 40, replace=False)
    weights = rng.normal(size=(2, 40))
    with opened() as store:
        expected = entries(store, KERNELS[0])
        assert_allclose(
            store.product_at(rows, columns, weights),
            weights @ expected[np.ix_(columns, rows)],
            atol=1e-11,
        )
        store.fetch(columns)
        assert_allclose(store.submatrix(columns), expected[np.ix_(columns, columns)], atol=1e-12)


def test_a_part_copies_what_the_whole_knows():
    rows = np.sort(rng.choice(len(X), 50, replace=False))
    with opened() as store:
        store.fetch(rows[:20])
        part = store.subset(rows)
        part.fetch(np.arange(30))
        assert part.n_computed == 10
        expected = entries(store, KERNELS[0])[np.ix_(rows[:30], rows)]
        assert_allclose(part.buffer[part.slot_of_row[:30]], expected, atol=1e-12)


def of_many_features(n_far=0):
    """A store in single precision of samples that take long to multiply, some of them far out."""
    samples = np.random.default_rng(3).normal(size=(1200, 600)).astype(np.float32)
    samples[:n_far] *= 3000.0
    gram = Gram(Kernel("rbf", gamma=1 / 600), samples)
    return ColumnStore(column_source(gram, np.float32, Workers()), 2**25, Workers()), gram


@pytest.mark.parametrize("n_far", [0, 5])
def test_columns_that_know_of_each_other_are_within_their_bounds(n_far):
    store, gram = of_many_features(n_far)
    with store:
        part = store.subset(np.arange(0, 1200, 2))
        with part:
            part.fetch(np.arange(400))
            store.fetch(np.arange(500))
            rows = np.r_[2, np.arange(500, 1200)]
            found = store.buffer[store.fetch(rows)]
        expected = kernel_matrix(gram)[rows] - store.source.shift
        size = store.errors.size
        bound = store.errors.constant + store.errors.slope * np.add.outer(size[rows], size)
        assert np.all(np.abs(found - expected) <= bound)


def test_entries_of_known_columns_are_copied_from_there():
    store, gram = of_many_features()
    with store:
        store.buffer[store.fetch(np.arange(600))] = 7.0
        found = store.buffer[store.fetch(np.arange(600, 1000))]
        assert np.all(found[:, :600] == 7.0)  # as nobody would compute
        expected = kernel_matrix(gram)[600:1000, 600:] - store.source.shift
        assert_allclose(found[:, 600:], expected, atol=2e-6)


@pytest.mark.parametrize("gone", [False, True])
def test_a_whole_copies_what_its_part_knows_as_long_as_there_is_one(gone):
    store, gram = of_many_features()
    rows = np.arange(1, 1200, 2)
    expected = kernel_matrix(gram) - store.source.shift
    with store:
        part = store.subset(rows)
        part.buffer[part.fetch(np.arange(400))] = 7.0
        if gone:
            del part
        asked = np.r_[np.arange(50), rows[25:400]]
        found = store.buffer[store.fetch(asked)]
        copied = np.zeros(found.shape, dtype=bool)
        if not gone:
            copied[np.ix_(asked % 2 == 1, rows)] = True
        assert np.all(found[copied] == 7.0)
        assert_allclose(found[~copied], expected[asked][~copied], atol=2e-6)


def test_a_whole_leaves_room_for_its_parts_but_keeps_what_it_has():
    with opened(columns=160) as store:
        store.fetch(np.arange(20))
        store.leave(50 * len(X))  # as many entries as 50 columns have
        assert store.capacity == 110
        store.leave(10**9)
        assert store.capacity == 64  # fewer would not be worth it
        assert store.cached(np.arange(20)).all()
    with opened(columns=160) as store:
        store.fetch(np.arange(100))
        store.leave(10**9)
        assert store.capacity == 100


def test_distances_of_samples_do_not_know_their_offset():
    farthest = np.max(np.sum((X - X[0]) ** 2, axis=1))
    with opened(Kernel("poly", gamma=1.0, degree=1, coef0=0.0)) as store:
        assert store.extent == pytest.approx(farthest)
    for offset in (0.0, 1e4):
        sparse = LinearStore(sp.csr_array(X.astype(np.float64) + offset), Workers())
        assert sparse.extent == pytest.approx(farthest, rel=1e-4)
    alike = np.full((9, 3), 1e4 / 3.0)
    assert LinearStore(sp.csr_array(alike), Workers()).extent == 0.0


def test_sparse_samples_with_an_offset_can_be_told_apart():
    """A hard margin is one, however far from the origin: the dual variables do not diverge."""
    rng = np.random.default_rng(0)
    y = np.arange(16) % 2
    samples = rng.normal(size=(16, 8)) + 4.0 * y[:, np.newaxis] + 6e4
    model = SVM(kernel="linear", C=np.inf, tol=1e-3).fit(sp.csr_array(samples), y)
    assert model.status_ is Status.CONVERGED
    assert model.score(sp.csr_array(samples), y) == 1.0


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_linear_store_is_the_linear_kernel_up_to_its_origin(sparse, dtype, offset):
    """Differences of scores are what counts, and coefficients that sum to zero."""
    samples = (X + (0.0 if sparse else offset)).astype(dtype)
    rows = rng.choice(len(X), 40, replace=False)
    weights = rng.normal(size=40)
    weights -= weights.mean()
    with LinearStore(sp.csr_array(samples) if sparse else samples, Workers()) as store:
        out = np.zeros(len(X))
        store.add_product(rows, weights, out)
        exact = samples.astype(np.longdouble)
        exact = exact - exact.mean(axis=0)
        expected = exact @ (weights @ exact[rows])
        assert_allclose(out - out[0], (expected - expected[0]).astype(float), atol=1e-9)
        features = store.features(rows)
        matrix = store.submatrix(rows)
        assert_allclose(matrix, (features @ features.T) if not sparse else matrix.T, atol=1e-12)
        assert_allclose(np.diag(matrix), store.diagonal(rows), rtol=1e-12)
        assert_allclose(weights @ matrix @ weights, weights @ expected[rows].astype(float))
        assert np.max(store.diagonal(EVERYONE)) == pytest.approx(store.largest)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_part_of_the_linear_store_has_its_distances(sparse):
    samples = sp.csr_array(X) if sparse else X
    rows = np.sort(rng.choice(len(X), 50, replace=False))
    with LinearStore(samples, Workers()) as store:
        part = store.subset(rows)
        assert part.n_samples == 50
        assert part.rank == X.shape[1]
        assert part.cached(np.arange(50)).all()
        inner = part.submatrix(np.arange(50))
        square = np.diag(inner)
        distances = square[:, None] + square - 2.0 * inner
        between = X[rows][:, None] - X[rows]
        assert_allclose(distances, np.sum(between**2, axis=2), atol=1e-10)
