"""The kernel matrix with a memory: the same entries, computed less often."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from attop._scores import Scores
from attop.kernels.functions import Gaussian, Gram, Kernel
from attop.model_selection._memory import RememberingGram

X = np.random.default_rng(0).normal(size=(5000, 2))
#: Number of kernel entries computed so far, in a list of one.
COUNT = [0]


@dataclass(frozen=True)
class Counting(Gaussian):
    """Counts the entries that are asked of it."""

    def __call__(self, X, Y):
        COUNT[0] += len(X) * len(Y)
        return super().__call__(X, Y)


PLAIN = Gram(Counting(0.5), X)


@pytest.fixture
def counted():
    return COUNT


def remembering(support, n_bytes=10**9):
    """A matrix that remembers `support`, as after a fit with these support vectors."""
    gram = RememberingGram.of(PLAIN.kernel, X, n_bytes)
    Scores(gram, support, np.ones(len(support))).compute_support()
    gram.remember(support)
    return gram


@pytest.mark.parametrize("n_support", [10, 2048, 3000])  # one chunk, just one, two
def test_remembered_entries_are_the_entries_and_cost_nothing(n_support, counted):
    support = np.sort(np.random.default_rng(1).choice(5000, n_support, replace=False))
    gram = remembering(support)
    counted[0] = 0
    rows, columns = support[::3], support[1::2]
    found = gram.block(rows, columns)
    assert counted[0] == 0
    assert_allclose(found, PLAIN.block(rows, columns), rtol=1e-10)


def test_rows_that_are_not_remembered_are_computed(counted):
    support = np.arange(0, 5000, 2)
    gram = remembering(support)
    rows = np.sort(np.concatenate([support[:900], [1, 3, 999]]))
    columns = np.array([4999, 4, 2, 4800])  # in any order
    counted[0] = 0
    found = gram.block(rows, columns)
    assert 0 < counted[0] < found.size
    assert_allclose(found, PLAIN.block(rows, columns), rtol=1e-10)
    others = np.arange(1, 100, 2)
    assert_array_equal(gram.block(others, others), PLAIN.block(others, others))


@pytest.mark.parametrize("n_new", [0, 1, 400])
@pytest.mark.parametrize("n_support", [10, 2048, 3000])
def test_sums_among_remembered_rows_are_those_of_the_plain_matrix(n_support, n_new, counted):
    rng = np.random.default_rng(2)
    order = rng.permutation(5000)
    gram = remembering(np.sort(order[:n_support]))
    rows = np.sort(np.concatenate([order[:n_support:2], order[n_support : n_support + n_new]]))
    coefficients = rng.normal(size=len(rows))
    counted[0] = 0
    found = gram.among(rows, coefficients)
    if n_new == 0:
        assert counted[0] == 0
    assert_allclose(found, PLAIN.block(rows, rows) @ coefficients, rtol=1e-9, atol=1e-9)


def test_a_different_support_takes_the_place_of_the_old(counted):
    gram = remembering(np.arange(500))
    support = np.arange(1000, 1600)
    Scores(gram, support, np.ones(len(support))).compute_support()
    gram.remember(support)
    counted[0] = 0
    plain = PLAIN.block(support, support)  # a product of matrices rounds by its shape
    assert_allclose(gram.block(support, support), plain, rtol=1e-13)
    assert counted[0] == len(support) ** 2  # those of the plain matrix
    gram.block(np.arange(10), np.arange(10))
    assert counted[0] > len(support) ** 2


@pytest.mark.parametrize("n_bytes", [0, 8 * 2048**2])
def test_a_support_too_large_for_the_memory_is_not_remembered(n_bytes, counted):
    support = np.arange(3000)
    gram = remembering(support, n_bytes)
    counted[0] = 0
    found = gram.block(support[:20], support[:30])
    assert counted[0] == found.size
    assert_array_equal(found, PLAIN.block(support[:20], support[:30]))


def test_kernels_whose_entries_cost_nothing_need_no_memory():
    assert type(RememberingGram.of(Kernel("linear"), X, 10**6)) is Gram
    assert type(RememberingGram.of(Kernel("precomputed"), np.eye(3), 10**6)) is Gram
