"""Products with the samples of a linear model, dense or CSR, single or double, in float64.

The coefficients of every dual sum to zero: with another origin the scores differ by a constant.
Dense samples are taken from their centre, as they are used, so that a common offset of the
features costs no digits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attop.kernels import gaussian
from attop.kernels.columns import Workers
from attop.kernels.functions import as_float64
from attop.kernels.gaussian import squared_norms
from attop.kernels.linear import (
    FOR_CENTRE,
    add_squares,
    dense_product,
    dense_product_of,
    dense_sum,
    sparse_norms,
    sparse_product,
    sparse_product_of,
    sparse_sum,
    upper_gram,
)
from attop.objectives import signed_coefficients
from attop.problem import Problem

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]

#: Entries that one compiled call goes through at most, so that an interrupt is seen in between.
_CALL = 2**24
#: Entries worth a second thread.
_WORTH_A_THREAD = 2**20
#: Rows of a matrix product at a time.
_BLOCK = 2048
#: Samples that tell how far they are from each other, and how long it takes to gather them.
_PAIRS, _TIMED = 512, 1024


class Samples:
    """The rows of X, or some of them.

    Parameters
    ----------
    X : ndarray in C order or CSR matrix
        The samples, used as they are.
    centre : ndarray, optional
        The origin; that of dense samples is their mean by default.
    workers : Workers, optional
        Threads for passes over the samples.
    """

    def __init__(self, X: Any, centre: Vector | None = None, workers: Workers | None = None):
        self.X, self.workers = X, workers or Workers()
        self.n_samples, self.n_features = X.shape
        self.sparse = sp.issparse(X)
        if centre is None:
            centre = np.zeros(self.n_features)
            if not self.sparse and self.n_samples:
                centre = gaussian.centre(X[:: max(1, self.n_samples // FOR_CENTRE)])
        self.centre = centre
        #: Entries of a row, on average.
        self.width = max(1, X.nnz // max(1, self.n_samples)) if self.sparse else self.n_features

    def take(self, rows: Rows) -> Samples:
        """Some of the samples."""
        return Samples(self.X[rows], self.centre, self.workers)

    def seconds(self) -> float:
        """About how long it takes to gather all rows and to multiply them, by some of them.

        The least of three times: what holds up one of them would count for all rows.
        """
        some = np.arange(0, self.n_samples, max(1, self.n_samples // _TIMED))
        seconds = []
        for _ in range(3):
            began = time.perf_counter()
            as_float64(self.X[some]) @ np.zeros(self.n_features)
            seconds.append(time.perf_counter() - began)
        return min(seconds) * self.n_samples / max(1, len(some))

    def scores(self, w: Vector) -> Vector:
        """``X w``, from the centre."""
        result = np.zeros(self.n_samples)
        least = max(1, _WORTH_A_THREAD // self.width)
        for start, stop in self._calls(self.n_samples):
            part = result[start:stop]
            if self.sparse:
                parts = self.X.data, self.X.indices, self.X.indptr[start : stop + 1]
                self.workers.over_rows(sparse_product, len(part), *parts, w, part, least=least)
            else:
                offset = float(self.centre @ w)
                parts = self.X[start:stop], w, offset
                self.workers.over_rows(dense_product, len(part), *parts, part, least=least)
        return result

    def combine(self, coefficients: Vector) -> Vector:
        """``X' coefficients`` from the centre, of the rows whose coefficient is not zero."""
        rows = np.flatnonzero(coefficients)
        return self.combine_rows(rows, coefficients[rows])

    def combine_rows(self, rows: Rows, coefficients: Vector) -> Vector:
        """``sum coefficients_r x_r``, from the centre."""
        total = np.zeros(self.n_features)
        for start, stop in self._calls(len(rows)):
            parts = self._threads(stop - start)
            sums = [total, *(np.zeros(self.n_features) for _ in parts[2:])]
            calls = [
                self._sum_call(rows[start + a : start + b], coefficients[start + a : start + b], s)
                for (a, b), s in zip(pairwise(parts), sums, strict=True)
            ]
            self.workers.call(sparse_sum if self.sparse else dense_sum, calls)
            for one in sums[1:]:
                total += one
        return total

    def _sum_call(self, rows: Rows, coefficients: Vector, out: Vector) -> tuple[Any, ...]:
        if self.sparse:
            return self.X.data, self.X.indices, self.X.indptr, rows, coefficients, out
        return self.X, self.centre, rows, coefficients, out

    def _calls(self, n_rows: int) -> list[tuple[int, int]]:
        """Ranges of rows that take a fraction of a second each."""
        step = max(1, _CALL // self.width)
        return [(i, min(i + step, n_rows)) for i in range(0, n_rows, step)]

    def _threads(self, n_rows: int) -> NDArray[np.int64]:
        """The edges of the parts that threads take."""
        count = min(self.workers.count, max(1, n_rows * self.width // _WORTH_A_THREAD))
        return np.linspace(0, n_rows, count + 1).astype(np.int64)

    def gram(self, rows: Rows, weights: Vector, stop: Callable[[], bool] = bool) -> Matrix:
        """``sum weights_r x_r x_r'``, from the centre; a part of it once it is told to stop.

        Of sparse samples only the upper half is sure to be there.
        """
        if self.sparse:
            return upper_gram(self.X, rows, weights)
        step = max(1, min(_BLOCK, _CALL // self.n_features))
        blocks = [slice(i, i + step) for i in range(0, len(rows), step)]
        total = np.zeros((self.n_features, self.n_features))
        count = self.workers.count
        for first in range(0, len(blocks), count):
            if stop():
                break
            calls = [(rows[b], weights[b]) for b in blocks[first : first + count]]
            for part in self.workers.call(self._dense_gram, calls):
                total += part
        return total

    def _dense_gram(self, rows: Rows, weights: Vector) -> Matrix:
        block = self.X[rows].astype(np.float64)
        block -= self.centre
        block *= np.sqrt(weights)[:, np.newaxis]
        return block.T @ block

    def dense(self, rows: Rows) -> Matrix:
        """Some of the samples, from the centre."""
        some = self.X[rows]
        return some.toarray().astype(np.float64) if self.sparse else some - self.centre

    def squares(self, rows: Rows, weights: Vector) -> Vector:
        """``sum weights_r x_r^2``, the diagonal of `gram`."""
        total = np.zeros(self.n_features)
        if self.sparse:
            add_squares(self.X.data, self.X.indices, self.X.indptr, rows, weights, total)
            return total
        for start, stop in self._calls(len(rows)):
            part = self.X[rows[start:stop]] - self.centre
            total += weights[start:stop] @ part**2
        return total

    def scores_of(self, rows: Rows, w: Vector) -> Vector:
        """`scores` of some rows."""
        result = np.zeros(len(rows))
        least = max(1, _WORTH_A_THREAD // self.width)
        if self.sparse:
            arrays = self.X.data, self.X.indices, self.X.indptr
            call = rows, w, result
            self.workers.over_rows(sparse_product_of, len(rows), *arrays, *call, least=least)
        else:
            offset = float(self.centre @ w)
            self.workers.over_rows(
                dense_product_of, len(rows), self.X, rows, w, offset, result, least=least
            )
        return result

    def spread(self) -> float:
        """Half the squared distance of two samples: the median of some hundred pairs."""
        some = np.linspace(0, self.n_samples - 1, min(self.n_samples, _PAIRS)).astype(np.intp)
        samples = self.X[some]
        if not self.sparse:
            return 0.5 * float(np.median(squared_norms(np.diff(as_float64(samples), axis=0))))
        # Features of sparse samples seldom meet, and what they have in common is left out.
        squares = sparse_norms(samples) ** 2
        return 0.5 * float(np.median(squares[1:] + squares[:-1]))

    def weights(self, problem: Problem, alpha: Vector, beta: Vector) -> Vector:
        """``w = sum alpha_i x_i - sum beta_j x_j``, all copies counted."""
        return self.combine(signed_coefficients(problem, alpha, beta, self.n_samples))
