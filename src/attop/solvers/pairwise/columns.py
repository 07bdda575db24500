"""Columns of the kernel matrix, kept in full or computed when needed, and steps on them."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from attop.kernels.columns import ColumnStore
from attop.kernels.functions import Gram, Precomputed
from attop.kernels.stores import open_entries
from attop.solvers.limits import Limits
from attop.solvers.pairwise import sweep
from attop.solvers.pairwise.steps import Dual, Point, best_partner, move

Vector = NDArray[np.float64]
#: Order of the kernel blocks that bound the memory beside the cache.
_BLOCK = 1024
#: Variables that the steps of one call look at, so that an interrupt is seen in between.
_CALL = 2**22
#: Entries of the whole matrix that are computed at once.
_ENTRIES = 2**24


def _is_matrix(gram: Gram) -> bool:
    """Whether the entries are there already, as rows of numbers that compiled code reads."""
    X = gram.X
    return (
        gram.kernel.precomputed
        and isinstance(X, np.ndarray)
        and X.dtype in (np.float32, np.float64)
        and X.flags.c_contiguous
    )


class Draws(NamedTuple):
    """The chance in the steps: a random variable for each, and whether to use it.

    Where `reuse` is set, the step begins with the second variable of the step before.
    """

    variable: NDArray[np.int64]
    reuse: NDArray[np.bool_]


@njit(cache=True, nogil=True)
def first_variable(draws: Draws, i: int, partner: int) -> int:
    """The variable that step `i` begins with, `partner` being the second of the last step."""
    return partner if draws.reuse[i] and partner >= 0 else draws.variable[i]


class KernelColumns:
    """The kernel matrix of the training samples, by columns.

    Parameters
    ----------
    gram : Gram
        The kernel matrix.
    cache_bytes : int
        The matrix is computed at once if it takes no more, in single precision if it takes no
        more in that; otherwise as many columns are kept as do, the least recently used replaced
        first, and never fewer than two.  A matrix that is given is used as it is.
    limits : Limits
        The matrix is not computed where that would take too long.

    Attributes
    ----------
    matrix : ndarray or None
        The whole matrix, if it was computed.
    rate : float
        Kernel entries per second, as the diagonal blocks were computed.
    """

    def __init__(self, gram: Gram, cache_bytes: int, limits: Limits):
        self.gram, self.n_samples = gram, gram.n_samples
        self.matrix: NDArray[Any] | None = None
        self._rows = rows = np.arange(self.n_samples)
        blocks = [rows[i : i + _BLOCK] for i in range(0, self.n_samples, _BLOCK)]
        began = time.perf_counter()
        self.diagonal = np.concatenate([np.diagonal(gram.block(part, part)) for part in blocks])
        entries = sum(len(part) ** 2 for part in blocks)
        self.rate = entries / max(time.perf_counter() - began, 1e-6)
        self._store: ColumnStore | None = None
        if _is_matrix(gram):
            self.matrix = gram.X
            return
        for dtype in (np.float64, np.float32):
            n_bytes = np.dtype(dtype).itemsize * self.n_samples**2
            if n_bytes <= cache_bytes and not limits.out_of_time(self.seconds()):
                self._compute_all(limits, dtype)
                break
        if self.matrix is None:
            self._store = open_entries(gram, cache_bytes)

    def _compute_all(self, limits: Limits, dtype: Any) -> None:
        """Compute the whole matrix, unless the time runs out before it is there."""
        matrix = np.empty((self.n_samples,) * 2, dtype=dtype)
        columns = self.gram.against_all()
        step = max(1, min(_BLOCK, _ENTRIES // self.n_samples))
        for part in gen_batches(self.n_samples, step):
            matrix[part] = columns(self._rows[part])
            if limits.out_of_time():
                return
        self.matrix = matrix
        self.gram = Gram(Precomputed(), matrix)

    @property
    def n_computed(self) -> int:
        """Columns computed so far."""
        return self.n_samples if self._store is None else self._store.n_computed

    def seconds(self, n_columns: int | None = None) -> float:
        """About how long so many columns, or all, will take."""
        if self.matrix is not None:  # read rather than computed
            return 8e-9 * self.n_samples * self.n_samples
        return self.n_samples * (self.n_samples if n_columns is None else n_columns) / self.rate

    def __getitem__(self, row: int) -> Vector:
        if self._store is None:
            return np.asarray(self._matrix[row], dtype=np.float64)
        return self._store.column(row)

    @property
    def _matrix(self) -> NDArray[Any]:
        assert self.matrix is not None
        return self.matrix

    def combination(self, coefficients: Vector) -> Vector:
        """Product of the matrix with a vector."""
        support = np.flatnonzero(coefficients)
        total = np.zeros(self.n_samples)
        for i in range(0, len(support), _BLOCK):
            part = support[i : i + _BLOCK]
            total += self.gram.block(self._rows, part) @ coefficients[part]
        return total

    def run(
        self, dual: Dual, point: Point, draws: Draws, partner: int, longest: float
    ) -> tuple[int, float, bool]:
        """Make one step of the descent for each draw, in place.

        Parameters
        ----------
        dual : Dual
            The problem.
        point : Point
            The point to move.
        draws : Draws
            How each step begins.
        partner : int
            The second variable of the step before, -1 for none.
        longest : float
            Stop before a step that is longer.

        Returns
        -------
        partner : int
            The second variable of the last step.
        gain : float
            The gain of all steps.
        stopped : bool
            Whether a step was too long.
        """
        total, stopped = 0.0, False
        if self.matrix is not None:
            run_some = sweep.run if sweep.can_sweep(dual, point) else _run_on_matrix
            n_steps = max(1, _CALL // self.n_samples)
            for start in range(0, len(draws.variable), n_steps):
                part = slice(start, start + n_steps)
                some = Draws(draws.variable[part], draws.reuse[part])
                partner, gain, stopped = run_some(
                    dual, point, *some, partner, longest, self.matrix, self.diagonal
                )
                total += gain
                if stopped:
                    break
            return partner, total, stopped
        for i in range(len(draws.variable)):
            k = first_variable(draws, i, partner)
            column = self[point.rows[k]]
            partner, step, gain = best_partner(dual, point, k, column, self.diagonal)
            if abs(step) > longest:
                return partner, total, True
            if partner >= 0:
                move(dual, point, k, partner, step, column, self[point.rows[partner]])
                total += gain
        return partner, total, False


@njit(cache=True, nogil=True)
def _run_on_matrix(
    dual: Dual,
    point: Point,
    variable: NDArray[np.int64],
    reuse: NDArray[np.bool_],
    partner: int,
    longest: float,
    matrix: NDArray[Any],
    diagonal: Vector,
) -> tuple[int, float, bool]:
    """The same loop without a return to the interpreter at each step."""
    total = 0.0
    for i in range(len(variable)):
        k = partner if reuse[i] and partner >= 0 else variable[i]
        column = matrix[point.rows[k]]
        partner, step, gain = best_partner(dual, point, k, column, diagonal)
        if abs(step) > longest:
            return partner, total, True
        if partner >= 0:
            move(dual, point, k, partner, step, column, matrix[point.rows[partner]])
            total += gain
    return partner, total, False
