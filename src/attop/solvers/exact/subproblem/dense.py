"""Products and factorisations of large symmetric matrices: all that `active_set` asks of a machine.

Vectors come and go in double precision.  The matrix stays as it is stored, in single precision,
say: sums of its columns are accumulated in double precision, its factor has its own precision, and
what that lacks is left to those who ask, who look at residuals.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from attop.kernels import compiled
from attop.kernels.columns import Workers

#: Columns of a factor that are finished at once, and those of its smallest triangles.
_BAND, _SMALLEST = 128, 32
#: Rows below a band, and right sides, from twice as many of which threads share the work.
_SHARED, _SIDES = 256, 32
#: A factor serves for other variables, too, if they are its own but for one in so many.  (4
#: instead: 1.0 to 1.1 of the time of fits to images; none but its own: 1.1 to 1.4.)
_UPDATED = 10
#: Ridges that are tried, relative to the diagonal, in units of the rounding of the factor.
_RIDGES = (4.0, 256.0, 2.0**14, 2.0**20)

Array = NDArray[np.float64]
Solve = Callable[[Array], Array]


class Matrix(Protocol):
    """A symmetric matrix, wherever it is: see `Dense`, which is in memory.

    Attributes
    ----------
    updated : bool
        Whether the last solver was that of other variables, updated, and so less precise.
    """

    updated: bool

    def times(self, x: Array) -> Array:
        """The matrix times a vector."""
        ...

    def solver(self, some: NDArray[np.intp], added: Array, lift: float, precise: bool) -> Solve:
        """A function that solves systems with the rows and columns `some`, one or many at once."""
        ...

    def forget(self) -> None:
        """Update no solver that there was before."""


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
        self.updated = False
        self._last: _Base | None = None

    def forget(self) -> None:
        """Update no factor that there was before."""
        self._last = None

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
        diagonal = np.zeros(len(self.own))
        diagonal[some] = self.own[some] + added
        if self._last is not None and self._last.serves(some, diagonal, lift, dtype):
            try:
                solve = _Updated(self._last, self.matrix, some, diagonal).solve
                self.updated = True
                return solve
            except np.linalg.LinAlgError:
                pass
        factor = self._factor(some, diagonal[some], lift, dtype)
        self.updated, self._last = False, _Base(some, diagonal, lift, factor)
        return factor.solve

    def _factor(self, some: NDArray[np.intp], added: Array, lift: float, dtype: Any) -> _Factor:
        """The factor of the rows and columns `some`."""
        for ridge in _RIDGES:
            matrix = self.matrix[some].take(some, axis=1).astype(dtype, copy=False)
            matrix += dtype(lift)
            diagonal = np.einsum("ii->i", matrix)
            diagonal += added.astype(dtype)
            diagonal += dtype(ridge * np.finfo(dtype).eps) * np.abs(diagonal)
            try:
                return _Factor(matrix, self.workers)
            except np.linalg.LinAlgError:
                continue
        raise np.linalg.LinAlgError("The matrix is not positive definite.")


class _Base(NamedTuple):
    """A factor that others may be made of.

    Attributes
    ----------
    some : the variables that it has.
    diagonal : what was added to the diagonal of all of them.
    lift : the constant that was added.
    factor : the factor.
    """

    some: NDArray[np.intp]
    diagonal: Array
    lift: float
    factor: _Factor

    def serves(self, some: NDArray[np.intp], diagonal: Array, lift: float, dtype: Any) -> bool:
        """Whether little has to be changed for the variables `some`."""
        common = np.intersect1d(self.some, some, assume_unique=True)
        changes = len(self.some) + len(some) - 2 * len(common)
        same = self.lift == lift and self.factor.matrix.dtype == dtype
        few = _UPDATED * changes <= len(self.some)
        return same and few and np.array_equal(self.diagonal[common], diagonal[common])


class _Updated:
    """Solves with some variables more, and some less, than a factor has.

    With the columns `U` of the new ones among the old, and unit vectors for those that are gone,
    whose solution has to be zero, the system is ``[[K, U], [U', C]]``.
    """

    def __init__(
        self, base: _Base, matrix: NDArray[Any], some: NDArray[np.intp], diagonal: Array
    ) -> None:
        old = base.some
        new = np.setdiff1d(some, old, assume_unique=True)
        gone = np.flatnonzero(~np.isin(old, some, assume_unique=True))
        self.n, self.n_new, self.factor = len(old), len(new), base.factor
        # Where the variables are among the old and the new ones after these.
        self.places = np.searchsorted(old, some)
        is_new = np.isin(some, new, assume_unique=True)
        self.places[is_new] = len(old) + np.arange(len(new))
        columns = matrix[new].astype(np.float64) + base.lift
        self.sides = np.zeros((len(new) + len(gone), len(old)))
        self.sides[: len(new)] = columns[:, old]
        self.sides[len(new) + np.arange(len(gone)), gone] = 1.0
        corner = np.zeros((len(self.sides), len(self.sides)))
        corner[: len(new), : len(new)] = columns[:, new] + np.diag(diagonal[new])
        self.across = base.factor.solve(self.sides.T) if len(self.sides) else self.sides.T
        self.inverse = np.linalg.inv(corner - self.sides @ self.across)

    def solve(self, right: Array) -> Array:
        """By the solution of the old variables, and what the new ones change in it."""
        all_of = np.zeros((self.n + self.n_new, *right.shape[1:]))
        all_of[self.places] = right
        old = all_of[: self.n]
        # What is gone has any right side, since it has a multiplier of its own.
        plain = self.factor.solve(old)
        wanted = np.zeros((len(self.sides), *right.shape[1:]))
        wanted[: self.n_new] = all_of[self.n :]
        change = self.inverse @ (wanted - self.sides @ plain)
        all_of[: self.n] = plain - self.across @ change
        all_of[self.n :] = change[: self.n_new]
        found: Array = all_of[self.places]
        return found


class _Factor:
    """Cholesky's factor in the place of the lower triangle, by bands.

    LAPACK's own would do, but SciPy's threads wait for work long after a call, and hold those of
    NumPy up.  So do the threads of BLAS: each of ours takes a piece with one of them.
    """

    def __init__(self, matrix: NDArray[Any], workers: Workers) -> None:
        self.matrix, self.workers, n = matrix, workers, len(matrix)
        self.bands = list(pairwise([*range(0, n, _BAND), n]))
        self.inverses: list[NDArray[Any]] = []
        for start, stop in self.bands:
            band = matrix[start:stop, :start]
            matrix[start:stop, start:stop] -= band @ band.T
            inverse = _inverse_factor(matrix[start:stop, start:stop])
            self.inverses.append(inverse)
            below = n - stop, matrix[stop:, : start + len(inverse)], band, inverse
            workers.over_rows(_finish_band, *below, least=_SHARED)

    def solve(self, right: Array) -> Array:
        """Forwards and backwards."""
        x = np.array(right.T, dtype=self.matrix.dtype, order="C").T
        if x.ndim == 1:
            self._solve(0, 1, x[:, np.newaxis])
        else:
            self.workers.over_rows(self._solve, x.shape[1], x, least=_SIDES)
        return x.astype(np.float64)

    def _solve(self, first: int, last: int, right: NDArray[Any]) -> None:
        """Solve for some of the right sides, in place."""
        x = right[:, first:last]
        for (start, stop), inverse in zip(self.bands, self.inverses, strict=True):
            x[start:stop] = inverse @ (x[start:stop] - self.matrix[start:stop, :start] @ x[:start])
        for (start, stop), inverse in zip(self.bands[::-1], self.inverses[::-1], strict=True):
            below = self.matrix[stop:, start:stop].T @ x[stop:]
            x[start:stop] = inverse.T @ (x[start:stop] - below)


def _finish_band(
    first: int, last: int, below: NDArray[Any], band: NDArray[Any], inverse: NDArray[Any]
) -> None:
    """The rows of a factor below the triangle of a band."""
    done, rows = band.shape[1], below[first:last]
    rows[:, done:] -= rows[:, :done] @ band.T
    rows[:, done:] = rows[:, done:] @ inverse.T


def _inverse_factor(matrix: NDArray[Any]) -> NDArray[Any]:
    """The inverse of Cholesky's factor, by halves: LAPACK's inverse is not one of triangles."""
    n = len(matrix)
    if n <= _SMALLEST:
        return np.tril(np.linalg.inv(np.linalg.cholesky(matrix)))
    inverse, half = np.zeros_like(matrix), n // 2
    first = _inverse_factor(matrix[:half, :half])
    below = matrix[half:, :half] @ first.T
    last = _inverse_factor(matrix[half:, half:] - below @ below.T)
    inverse[:half, :half], inverse[half:, half:] = first, last
    inverse[half:, :half] = -last @ (below @ first)
    return inverse
