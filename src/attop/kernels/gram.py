"""The kernel matrix of the training samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_even_slices

from attop._threads import map_in_threads
from attop.kernels.base import Entries, Kernel
from attop.kernels.errors import EntryRounding

#: Sides of the blocks of a symmetric matrix: enough of them for all threads to end at one time.
#: (768 instead: 1.3 to 1.7 times as long for 1,000 and 2,400 images of 3,072 features.)
_SIDE = 384
#: So many features of samples are converted to float64 at once.
_CONVERTED = 2**25


@dataclass(frozen=True)
class Gram:
    """The kernel matrix of the training samples, entry by entry on demand.

    Parameters
    ----------
    kernel : Kernel
        The kernel function.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Training samples; the kernel matrix itself for a precomputed kernel.
    """

    kernel: Kernel
    X: Any

    @property
    def n_samples(self) -> int:
        """Order of the matrix."""
        return self.X.shape[0]

    def block(self, rows, columns) -> NDArray[np.float64]:
        """The entries at `rows` x `columns`, in float64."""
        return self.kernel.block(self.X, rows, columns)

    def diagonal(self, rows) -> NDArray[np.float64]:
        """The entries of the diagonal at `rows`."""
        return self.kernel.diagonal(self.X, rows)

    def subset(self, rows: NDArray[np.intp]) -> Gram:
        """The kernel matrix of some of the samples."""
        return Gram(self.kernel, self.X[rows])

    def whole(
        self, order: NDArray[np.intp] | None = None
    ) -> tuple[NDArray[np.float64], EntryRounding]:
        """All entries, of the samples in this order if there is one, and their rounding."""
        return self.kernel.whole(self.X if order is None else self.X[order])

    def sums(self, rows, support, coefficients) -> NDArray[np.float64] | None:
        """``sum_v coefficients_v k(row, row_v)`` where all entries are known; here they are not."""
        return None

    def rounding(self, rows) -> EntryRounding:
        """How far entries with the samples at `rows` may be off."""
        return self.kernel.rounding(self.X, rows)

    def extended(self, rows, columns) -> tuple[Entries, NDArray[np.float64]]:
        """The entries at `rows` x `columns` in extended precision, and their sizes."""
        return self.kernel.extended_block(self.X, rows, columns)

    def _convertible(self, rows) -> bool:
        """Whether the samples at `rows` are few enough to be converted to float64 at once."""
        return not self.kernel.precomputed and len(rows) * self.X.shape[1] <= _CONVERTED

    def against(self, columns) -> Callable[..., NDArray[np.float64]]:
        """A function of rows and a slice of `columns` that gives the entries there."""
        if not self._convertible(columns):
            return lambda rows, part: self.block(rows, columns[part])
        entries = self.kernel.onto(self.X[columns])
        return lambda rows, part: entries(self.X[rows], part)

    def against_all(self) -> Callable[[NDArray[np.intp]], NDArray[np.float64]]:
        """A function of rows that gives their entries with all samples.

        What has to be done with the samples is done once, where they are few enough.
        """
        everyone = np.arange(self.n_samples)
        if not self._convertible(everyone):
            return lambda rows: self.block(rows, everyone)
        entries = self.kernel.onto(self.X)
        return lambda rows: entries(self.X[rows], slice(None))

    def among(self, rows, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """``sum_v coefficients_v k(row_i, row_v)`` for each row, each entry computed once.

        Coefficients of shape (n_rows, m) give as many sums for each row.
        """
        entries_of = self._entries_among(rows)

        def sums_of(parts: tuple[slice, slice]):
            one, other = parts
            entries = entries_of(one, other)
            return entries @ coefficients[other], entries.T @ coefficients[one]

        sums = np.zeros(coefficients.shape)
        if len(rows) == 0:
            return sums
        sides = list(gen_even_slices(len(rows), -(-len(rows) // _SIDE)))
        pairs = [(one, other) for i, one in enumerate(sides) for other in sides[i:]]
        found = map_in_threads(sums_of, pairs, self.kernel.threads)
        for (one, other), (of_one, of_other) in zip(pairs, found, strict=True):
            sums[one] += of_one
            if other != one:
                sums[other] += of_other
        return sums

    def _entries_among(self, rows) -> Callable[[slice, slice], NDArray[np.float64]]:
        """A function of two slices of `rows` that gives the entries there."""
        if not self._convertible(rows):
            return lambda one, other: self.block(rows[one], rows[other])
        return self.kernel.within(self.X[rows])
