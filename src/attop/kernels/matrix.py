"""The whole kernel matrix in float64, where there are so few samples that it is soon there.

Its entries are those of the kernel function that `predict` uses, with a bound on their rounding:
what the solver works with and what the referee sums up are the same numbers, computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from attop.kernels.errors import EntryRounding
from attop.kernels.gram import Gram


@dataclass(frozen=True)
class KnownGram(Gram):
    """A `Gram` all of whose entries are known.

    Parameters
    ----------
    kernel, X
        As for `Gram`.
    entries : ndarray of shape (n_samples, n_samples)
        The entries.
    entry_rounding : EntryRounding
        How far they may be off.
    """

    entries: NDArray[np.float64]
    entry_rounding: EntryRounding

    @classmethod
    def of(cls, gram: Gram, order: NDArray[np.intp] | None = None) -> Self:
        """The kernel matrix of the samples of `gram`, in this order if there is one."""
        X = gram.X if order is None else gram.X[order]
        return cls(gram.kernel, X, *gram.kernel.whole(X))

    def block(self, rows, columns) -> NDArray[np.float64]:
        """The entries at `rows` x `columns`."""
        found: NDArray[np.float64] = self.entries.take(rows, axis=0).take(columns, axis=1)
        return found

    def against(self, columns) -> Callable[..., NDArray[np.float64]]:
        """A function of rows and a slice of `columns` that gives the entries there."""
        return lambda rows, part: self.block(rows, columns[part])

    def sums(self, rows, support, coefficients) -> NDArray[np.float64]:
        """``sum_v coefficients_v k(row, row_v)`` for each row."""
        return self.combination(support, coefficients)[rows]

    def combination(self, columns, weights) -> NDArray[np.float64]:
        """``sum_i weights[i] column(columns[i])``, the columns being rows as well."""
        if _FEW * len(columns) <= self.n_samples:
            found: NDArray[np.float64] = weights @ self.entries.take(columns, axis=0)
            return found
        return self.entries @ np.bincount(columns, weights, self.n_samples)

    def rounding(self, rows) -> EntryRounding:
        """How far entries may be off, whatever the rows."""
        return self.entry_rounding


#: Columns so many times fewer than the samples are copied before they are summed up.
_FEW = 4
#: So many runs of rows are copied one by one, three times as fast as entry by entry.
_RUNS = 4
#: Precision of the entries.
DOUBLE = float(np.finfo(np.float64).eps)


class MatrixStore:
    """Gives columns of a matrix that is known, as `attop.kernels.columns.ColumnStore` does.

    Parameters
    ----------
    gram : KnownGram
        The matrix, of a kernel that is positive semi-definite.
    """

    #: What was taken from the kernel; whether it is definite; rank, if that is low.
    shift, definite, rank = 0.0, True, None
    #: No bounds are needed: the referee has the same entries.
    errors, precision = None, DOUBLE

    def __init__(self, gram: KnownGram) -> None:
        self.gram, self.n_samples = gram, gram.n_samples
        self.capacity = self.n_computed = gram.n_samples
        self.largest = float(np.max(np.abs(gram.entries.diagonal()), initial=0.0))
        self._block: tuple[NDArray[np.intp], NDArray[np.float64]] | None = None
        self._n_told = 0

    def new_columns(self) -> int:
        """How many columns were computed since this was last asked for."""
        new, self._n_told = self.n_computed - self._n_told, self.n_computed
        return new

    def diagonal(self, rows) -> NDArray[np.float64]:
        """Entries of the diagonal."""
        found: NDArray[np.float64] = self.gram.entries.diagonal()[rows]
        return found

    def cached(self, rows) -> NDArray[np.bool_]:
        """Which of the columns are there: all."""
        return np.ones(len(rows), dtype=bool)

    def fetch(self, rows) -> None:
        """Nothing: all columns are there."""

    prepare = fetch

    def submatrix(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """The kernel matrix of `rows`, not to be changed: no copy where they are all rows in order.

        Fits that follow each other ask for the same rows.
        """
        if len(rows) == self.n_samples and np.array_equal(rows, np.arange(len(rows))):
            return self.gram.entries
        if self._block is None or not np.array_equal(self._block[0], rows):
            self._block = None  # makes room for the next
            self._block = rows, self._among(rows)
        return self._block[1]

    def _among(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """The kernel matrix of `rows`, which mostly are a few runs of successive ones."""
        starts = np.concatenate([[0], np.flatnonzero(np.diff(rows) != 1) + 1, [len(rows)]])
        if len(starts) > _RUNS + 1:
            return self.gram.block(rows, rows)
        runs = [(slice(a, b), slice(rows[a], rows[a] + b - a)) for a, b in pairwise(starts)]
        found = np.empty((len(rows), len(rows)))
        for to_rows, of_rows in runs:
            for to_columns, of_columns in runs:
                found[to_rows, to_columns] = self.gram.entries[of_rows, of_columns]
        return found

    def close(self) -> None:
        """Nothing: there are no threads to end."""

    def add_product(self, rows, weights, out: NDArray[np.float64], keep: bool = True) -> None:
        """``out += sum_i weights[i] * column(rows[i])``."""
        if np.any(weights):
            out += self.gram.combination(rows, weights)
