"""Products with the samples of a linear model, dense or sparse, in float64."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attop.kernels.functions import as_float64
from attop.objectives import signed_coefficients
from attop.problem import Problem

Vector = NDArray[np.float64]

#: Rows made double at a time where the samples are in single precision.
_BLOCK = 8192
#: Samples that tell how far they are from each other.
_PAIRS = 512
#: Samples that tell how long it takes to gather them.
_TIMED = 1024


class Samples:
    """Rows of X; products go in blocks where X is not in float64, so that no copy is made."""

    def __init__(self, X: Any):
        self.X = X
        self.n_samples, self.n_features = X.shape
        self._step = max(1, self.n_samples) if X.dtype == np.float64 else _BLOCK

    def seconds(self) -> float:
        """About how long it takes to gather all rows and to multiply them, by some of them."""
        some = np.arange(0, self.n_samples, max(1, self.n_samples // _TIMED))
        began = time.perf_counter()
        as_float64(self.X[some]) @ np.zeros(self.n_features)
        return (time.perf_counter() - began) * self.n_samples / len(some)

    def scores(self, w: Vector) -> Vector:
        """``X w``."""
        result = np.empty(self.n_samples)
        for i in range(0, self.n_samples, self._step):
            part = slice(i, i + self._step)
            result[part] = as_float64(self.X[part]) @ w
        return result

    def combine(self, coefficients: Vector) -> Vector:
        """``X' coefficients``, of the rows whose coefficient is not zero."""
        rows = np.flatnonzero(coefficients)
        if 2 * len(rows) > self.n_samples and self.X.dtype == np.float64:
            return self.X.T @ coefficients
        result = np.zeros(self.n_features)
        for i in range(0, len(rows), _BLOCK):
            part = rows[i : i + _BLOCK]
            result += as_float64(self.X[part]).T @ coefficients[part]
        return result

    def spread(self) -> float:
        """Half the squared distance of two samples: the median of some hundred pairs."""
        some = np.linspace(0, self.n_samples - 1, min(self.n_samples, _PAIRS)).astype(np.intp)
        difference = as_float64(self.X[some[1:]]) - as_float64(self.X[some[:-1]])
        squares = difference.multiply(difference) if sp.issparse(difference) else difference**2
        return 0.5 * float(np.median(np.asarray(squares.sum(axis=1))))

    def weights(self, problem: Problem, alpha: Vector, beta: Vector) -> Vector:
        """``w = sum alpha_i x_i - sum beta_j x_j``, all copies counted."""
        return self.combine(signed_coefficients(problem, alpha, beta, self.n_samples))

    def dense_rows(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """The rows, in float64, as an array."""
        part = as_float64(self.X[rows])
        return part.toarray() if sp.issparse(part) else part
