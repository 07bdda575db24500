"""Columns of the kernel matrix, kept in full or computed when needed, and steps on them."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from attop.kernels.functions import Gram, Precomputed
from attop.kernels.stores import open_entries
from attop.solvers.limits import Limits
from attop.solvers.pairwise.steps import Dual, Point, best_partner, move

Vector = NDArray[np.float64]
#: Order of the kernel blocks that bound the memory beside the cache.
_BLOCK = 1024
#: Variables that the steps of one call look at, so that an interrupt is seen in between.
_CALL = 2**22


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
    """The kernel matrix of the training samples in float64, by columns.

    Parameters
    ----------
    gram : Gram
        The kernel matrix.
    cache_bytes : int
        The matrix is computed at once if it takes no more; otherwise as many columns are
        kept as do, the least recently used replaced first, and never fewer than two.
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
        self.matrix: NDArray[np.float64] | None = None
        self._rows = rows = np.arange(self.n_samples)
        blocks = [rows[i : i + _BLOCK] for i in range(0, self.n_samples, _BLOCK)]
        began = time.perf_counter()
        self.diagonal = np.concatenate([np.diagonal(gram.block(part, part)) for part in blocks])
        entries = sum(len(part) ** 2 for part in blocks)
        self.rate = entries / max(time.perf_counter() - began, 1e-6)
        self._store = open_entries(gram, cache_bytes)
        if 8 * self.n_samples**2 <= cache_bytes and not limits.out_of_time(self.seconds()):
            self._compute_all(limits)

    def _compute_all(self, limits: Limits) -> None:
        """Compute the whole matrix, unless the time runs out before it is there."""
        for part in gen_batches(self.n_samples, _BLOCK):
            self._store.fetch(self._rows[part])
            if limits.out_of_time():
                return
        self.matrix = self._store.buffer  # filled in the order of the rows
        self.gram = Gram(Precomputed(), self.matrix)

    @property
    def n_computed(self) -> int:
        """Columns computed so far."""
        return self._store.n_computed

    def seconds(self, n_columns: int | None = None) -> float:
        """About how long so many columns, or all, will take."""
        if self.matrix is not None:  # read rather than computed
            return 8e-9 * self.n_samples * self.n_samples
        return self.n_samples * (self.n_samples if n_columns is None else n_columns) / self.rate

    def __getitem__(self, row: int) -> Vector:
        if self.matrix is not None:
            return self.matrix[row]
        return self._store.column(row)

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
            n_steps = max(1, _CALL // self.n_samples)
            for start in range(0, len(draws.variable), n_steps):
                part = slice(start, start + n_steps)
                some = Draws(draws.variable[part], draws.reuse[part])
                partner, gain, stopped = _run_on_matrix(
                    dual, point, some, partner, longest, self.matrix, self.diagonal
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
    draws: Draws,
    partner: int,
    longest: float,
    matrix: NDArray[np.float64],
    diagonal: Vector,
) -> tuple[int, float, bool]:
    """The same loop without a return to the interpreter at each step."""
    total = 0.0
    for i in range(len(draws.variable)):
        k = first_variable(draws, i, partner)
        column = matrix[point.rows[k]]
        partner, step, gain = best_partner(dual, point, k, column, diagonal)
        if abs(step) > longest:
            return partner, total, True
        if partner >= 0:
            move(dual, point, k, partner, step, column, matrix[point.rows[partner]])
            total += gain
    return partner, total, False
