"""The linear kernel without columns: sums of columns are products of samples with one vector.

``sum_i a_i k(x, x_i) = <x, sum_i a_i x_i>``, so that a pass over the samples serves any
number of columns and memory stays that of the samples, dense or CSR, in their own
precision.  All sums are in double precision.

The coefficients of every dual sum to zero: with another origin the scores differ by a constant.
Dense samples are taken from their centre, as they are used, so that a common offset of the
features costs no digits.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from attop.kernels import gaussian
from attop.kernels.columns import Workers

#: Samples that the centre is taken from, at least.
FOR_CENTRE = 1024

_FAST = {"contract", "nsz", "arcp", "reassoc"}
#: Entries of sparse samples that are worth a second thread.
_WORTH_A_THREAD = 2**20
#: Samples that one call sums up, so that an interrupt is seen in between.
_ROWS = 2**17


class LinearStore:
    """What the solver asks of a column store, for the linear kernel.

    Parameters
    ----------
    X : ndarray in C order or CSR matrix
        Samples, used as they are.
    workers : Workers
        Threads for the passes over the samples.
    """

    shift, definite = 0.0, True

    def __init__(self, X: Any, workers: Workers) -> None:
        self.X, self.workers = X, workers
        self.n_samples = X.shape[0]
        self.capacity = self.n_samples
        #: Rank of the kernel matrix, as far as the number of features tells.
        self.rank = X.shape[1]
        self.n_computed = 0
        self.precision = np.finfo(np.float64).eps
        #: Nothing is rounded to less than double precision.
        self.errors = None
        self.centre = np.zeros(X.shape[1])
        if not sp.issparse(X):
            self.centre = gaussian.centre(X[:: max(1, self.n_samples // FOR_CENTRE)])
        #: Largest entry of the diagonal: of dense samples the largest square from their centre.
        self.largest = (
            float(np.max(_squares(X))) if sp.issparse(X) else _largest_square(X, self.centre)
        )

    @cached_property
    def extent(self) -> float:
        """Largest squared distance of a sample from the first one, or from the centre.

        Sparse samples have no centre, so that their norms would grow with an offset.
        """
        if not sp.issparse(self.X):
            return self.largest
        squares = _squares(self.X)
        products = product_of_all(self.X, self.X[[0]].toarray()[0].astype(np.float64))
        apart = float(np.max(squares + squares[0] - 2.0 * products))
        # Of samples that are all alike rounding remains.
        return apart if apart > 16.0 * self.precision * self.largest else 0.0

    def diagonal(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Entries of the diagonal."""
        samples = self.features(rows)
        return _squares(samples) if sp.issparse(samples) else gaussian.squared_norms(samples)

    def subset(self, rows: NDArray[np.intp]) -> LinearStore:
        """The store of the samples at `rows`."""
        return LinearStore(self.X[rows], self.workers)

    def leave(self, n_entries: int) -> None:
        """No memory is kept that parts could use."""

    def cached(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Every column is at hand."""
        return np.ones(len(rows), dtype=bool)

    def fetch(self, rows: NDArray[np.intp]) -> None:
        """Nothing needs fetching."""

    prepare = fetch

    def add_columns(self, rows, weights, out: NDArray[np.float64]) -> None:
        """``out += sum_i weights[i] * column(rows[i])``."""
        nonzero = np.flatnonzero(weights)
        if len(nonzero) == 0:
            return
        vector = self.combination(rows[nonzero], weights[nonzero])
        if sp.issparse(self.X):
            parts = self.X.data, self.X.indices, self.X.indptr
            self.workers.over_rows(sparse_product, self.n_samples, *parts, vector, out)
        else:
            offset = float(self.centre @ vector)
            self.workers.over_rows(dense_product, self.n_samples, self.X, vector, offset, out)

    def add_product(self, rows, weights, out: NDArray[np.float64], keep: bool = True) -> None:
        """The same, as no column is missing."""
        self.add_columns(rows, weights, out)

    def combination(self, rows, weights) -> NDArray[np.float64]:
        """``sum_i weights[i] * x(rows[i])``, the samples taken from the centre."""
        vector = np.zeros(self.X.shape[1])
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            if sp.issparse(self.X):
                arrays = self.X.data, self.X.indices, self.X.indptr
                sparse_sum(*arrays, rows[part], weights[part], vector)
            else:
                dense_sum(self.X, self.centre, rows[part], weights[part], vector)
        return vector

    def features(self, rows: NDArray[np.intp]) -> Any:
        """The samples at `rows` in double precision, dense or CSR as they are, from the centre."""
        samples = self.X[rows].astype(np.float64)
        return samples if sp.issparse(samples) else samples - self.centre

    def submatrix(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Kernel matrix of `rows`."""
        block = self.features(rows)
        product = block @ block.T
        return product.toarray() if sp.issparse(product) else product

    def close(self) -> None:
        """End the threads."""
        self.workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _squares(X) -> NDArray[np.float64]:
    """Squared norms of sparse samples, in double precision whatever theirs is."""
    squares = np.zeros(X.shape[0])
    _sparse_squares(X.data, X.indptr, squares)
    return squares


def product_of_all(X, vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """``X vector`` for CSR samples of any precision, in double precision."""
    out, workers = np.zeros(X.shape[0]), Workers()
    least = max(1, _WORTH_A_THREAD * len(out) // max(1, X.nnz))
    arrays = X.data, X.indices, X.indptr, vector, out
    try:
        workers.over_rows(sparse_product, len(out), *arrays, least=least)
    finally:
        workers.close()
    return out


def sparse_norms(X) -> NDArray[np.float64]:
    """Norms of CSR samples, in double precision whatever theirs is."""
    return np.sqrt(_squares(X))


def weighted_gram(X, rows: NDArray[np.intp], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """``sum weights_r x_r x_r'`` over some rows of CSR samples."""
    upper = upper_gram(X, rows, weights)
    return upper + np.triu(upper, 1).T


def upper_gram(X, rows: NDArray[np.intp], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The upper half of the same in Fortran order, as a factorisation reads it."""
    if not X.has_canonical_format:  # entries out of order, or that stand there twice
        X, rows = X[rows], np.arange(len(rows))
        X.sum_duplicates()
    total = np.zeros((X.shape[1], X.shape[1]), order="F")
    width = max(1, X.nnz // max(1, X.shape[0]))
    step = max(1, _ROWS * 128 // width**2)
    for i in range(0, len(rows), step):
        part = slice(i, i + step)
        _half_gram(X.data, X.indices, X.indptr, rows[part], weights[part], total.T)
    return total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _largest_square(X, centre):
    largest = 0.0
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += (X[i, j] - centre[j]) ** 2
        largest = max(largest, total)
    return largest


@njit(cache=True, nogil=True, fastmath=_FAST)
def dense_sum(X, centre, rows, weights, vector):
    """Add ``sum weights_i (x_i - centre)`` to a vector."""
    for i in range(rows.size):
        sample, weight = X[rows[i]], weights[i]
        for j in range(vector.size):
            vector[j] += weight * (sample[j] - centre[j])


@njit(cache=True, nogil=True, fastmath=_FAST)
def dense_product(start, stop, X, vector, offset, out):
    """Add ``<x, vector> - offset`` to each entry of `out`."""
    for i in range(start, stop):
        sample = X[i]
        total = -offset
        for j in range(vector.size):
            total += sample[j] * vector[j]
        out[i] += total


@njit(cache=True, nogil=True, fastmath=_FAST)
def dense_product_of(start, stop, X, rows, vector, offset, out):
    """The same of some rows."""
    for i in range(start, stop):
        sample = X[rows[i]]
        total = -offset
        for j in range(vector.size):
            total += sample[j] * vector[j]
        out[i] += total


# Indices are made unsigned, since numba looks whether signed ones count from the end.


@njit(cache=True, nogil=True, fastmath=_FAST)
def sparse_sum(data, indices, indptr, rows, weights, vector):
    """Add ``sum weights_i x_i`` to a vector."""
    for i in range(rows.size):
        row, weight = rows[i], weights[i]
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            vector[np.uint64(indices[k])] += weight * data[k]


@njit(cache=True, nogil=True)  # in this order: what is kept would be zero by the rules of algebra
def sparse_sum_kept(data, indices, indptr, rows, weights, vector, lost):
    """The same, and what its additions round off added to `lost`."""
    for i in range(rows.size):
        row, weight = rows[i], weights[i]
        for k in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            j, term = np.uint64(indices[k]), weight * data[k]
            before = vector[j]
            total = before + term
            part = total - before
            lost[j] += (before - (total - part)) + (term - part)
            vector[j] = total


@njit(cache=True, nogil=True, fastmath=_FAST)
def sparse_product(start, stop, data, indices, indptr, vector, out):
    """Add ``<x, vector>`` to each entry of `out`."""
    for i in range(start, stop):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += data[k] * vector[np.uint64(indices[k])]
        out[i] += total


@njit(cache=True, nogil=True, fastmath=_FAST)
def sparse_product_of(start, stop, data, indices, indptr, rows, vector, out):
    """The same of some rows."""
    for i in range(start, stop):
        total = 0.0
        for k in range(np.uint64(indptr[rows[i]]), np.uint64(indptr[rows[i] + 1])):
            total += data[k] * vector[np.uint64(indices[k])]
        out[i] += total


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_squares(data, indices, indptr, rows, weights, vector):
    """Add ``sum weights_i x_i^2`` to a vector."""
    for i in range(rows.size):
        for k in range(np.uint64(indptr[rows[i]]), np.uint64(indptr[rows[i] + 1])):
            vector[np.uint64(indices[k])] += weights[i] * data[k] * data[k]


@njit(cache=True, nogil=True, fastmath=_FAST)
def _sparse_squares(data, indptr, out):
    for i in range(out.size):
        total = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += np.float64(data[k]) * data[k]
        out[i] = total


@njit(cache=True, nogil=True)
def _half_gram(data, indices, indptr, rows, weights, total):
    """Add ``sum weights_r x_r x_r'`` up to its diagonal; the indices of a row increase."""
    for i in range(rows.size):
        start, stop = np.uint64(indptr[rows[i]]), np.uint64(indptr[rows[i] + 1])
        for k in range(start, stop):
            value, row = weights[i] * data[k], total[np.uint64(indices[k])]
            for m in range(start, k + np.uint64(1)):
                row[np.uint64(indices[m])] += value * data[m]
