"""Products and factorisations of large symmetric matrices: all that `active_set` asks of a machine.

Vectors come and go in double precision.  The matrix stays as it is stored, in single precision,
say: sums of its columns are accumulated in double precision, its factor has its own precision, and
what that lacks is left to those who ask, who look at residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from attop.kernels import compiled
from attop.kernels.columns import Workers

#: Columns of a factor that are finished at once.
_BAND = 128
#: Ridges that are tried, relative to the diagonal, in units of the rounding of the factor.
_RIDGES = (4.0, 256.0, 2.0**14, 2.0**20)

Array = NDArray[np.float64]
Solve = Callable[[Array], Array]


class Matrix(Protocol):
    """A symmetric matrix, wherever it is: see `Dense`, which is in memory."""

    def times(self, x: Array) -> Array:
        """The matrix times a vector."""
        ...

    def solver(self, some: NDArray[np.intp], added: Array, lift: float, precise: bool) -> Solve:
        """A function that solves systems with the rows and columns `some`, one or many at once."""
        ...


class Dense:
    """A symmetric matrix in memory.

    Parameters
    ----------
    matrix : ndarray of shape (b, b)
        The matrix without what is added to its diagonal.
    own : ndarray of shape (b,)
        What is added.
    workers : Workers
        Threads for products.
    """

    def __init__(self, matrix: NDArray[Any], own: Array, workers: Workers) -> None:
        self.matrix, self.own, self.workers = matrix, own, workers

    def times(self, x: Array) -> Array:
        """The matrix times a vector, of which only what is not zero costs anything."""
        used, product = np.flatnonzero(x), self.own * x
        add = compiled.add_columns, len(product), self.matrix, used, x[used], product
        self.workers.over_rows(*add, least=256)
        return product

    def solver(self, some: NDArray[np.intp], added: Array, lift: float, precise: bool) -> Solve:
        """A function that solves systems with the rows and columns `some`, one or many at once.

        To the matrix the constant `lift` is added, and `added` to its diagonal.
        """
        dtype: Any = np.float64 if precise else np.float32
        for ridge in _RIDGES:
            matrix = self.matrix[some].take(some, axis=1).astype(dtype, copy=False)
            matrix += dtype(lift)
            diagonal = np.einsum("ii->i", matrix)
            diagonal += (self.own[some] + added).astype(dtype)
            diagonal += dtype(ridge * np.finfo(dtype).eps) * np.abs(diagonal)
            try:
                return _Factor(matrix).solve
            except np.linalg.LinAlgError:
                continue
        raise np.linalg.LinAlgError("The matrix is not positive definite.")


class _Factor:
    """Cholesky's factor in the place of the lower triangle, by bands.

    LAPACK's own would do, but SciPy's threads wait for work long after a call, and hold those of
    NumPy up.
    """

    def __init__(self, matrix: NDArray[Any]) -> None:
        self.matrix, n = matrix, len(matrix)
        self.bands = list(pairwise([*range(0, n, _BAND), n]))
        self.inverses = []
        for start, stop in self.bands:
            if start:
                matrix[start:, start:stop] -= matrix[start:, :start] @ matrix[start:stop, :start].T
            square = np.linalg.cholesky(matrix[start:stop, start:stop])
            inverse = np.linalg.inv(square)
            self.inverses.append(inverse)
            if stop < n:
                matrix[stop:, start:stop] = matrix[stop:, start:stop] @ inverse.T

    def solve(self, right: Array) -> Array:
        """Forwards and backwards."""
        x = right.astype(self.matrix.dtype)
        for (start, stop), inverse in zip(self.bands, self.inverses, strict=True):
            x[start:stop] = inverse @ (x[start:stop] - self.matrix[start:stop, :start] @ x[:start])
        for (start, stop), inverse in zip(self.bands[::-1], self.inverses[::-1], strict=True):
            below = self.matrix[stop:, start:stop].T @ x[stop:]
            x[start:stop] = inverse.T @ (x[start:stop] - below)
        return x.astype(np.float64)
