"""Kernels that are given: as their matrix, or as a function of which nothing is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop.kernels.base import Entries, Kernel
from attop.kernels.blocks import as_float64
from attop.kernels.errors import EntryRounding


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The training samples are the kernel matrix: entries are read, not computed."""

    name = "precomputed"
    precomputed = True
    approximations = ()

    def values(self, X: Any, Y: Any) -> Any:
        """There is no function of two samples."""
        raise ValueError("A precomputed kernel has no values of samples: they are the entries.")

    def block(self, X: Any, rows, columns) -> NDArray[np.float64]:
        """The entries of the kernel matrix `X` at `rows` x `columns`."""
        return np.asarray(X[np.ix_(rows, columns)], dtype=np.float64)

    def diagonal(self, X: Any, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """The entries of its diagonal at `rows`."""
        return np.diagonal(X)[rows].astype(np.float64)

    def rounding(self, X: Any, rows: NDArray[np.intp]) -> EntryRounding:
        """Entries are what they are; their products with coefficients round once."""
        return EntryRounding(2.0**-53)

    def extended_block(self, X: Any, rows, columns) -> tuple[Entries, NDArray[np.float64]]:
        """The entries at `rows` x `columns`, which define the problem, and their sizes."""
        entries = self.block(X, rows, columns)
        return entries, np.abs(entries)

    def extended_roundings(self, n_features: int) -> float:
        """Roundings of an entry, which is not a sum over features."""
        return super().extended_roundings(0)


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A function of a user's, of which nothing is known.

    Parameters
    ----------
    function : callable
        Takes two arrays of samples and returns the matrix of their kernel values.
    """

    function: Callable[..., Any]

    name = "callable"
    approximations = ()
    threads = 1  # it need not bear more

    def values(self, X: Any, Y: Any) -> Any:
        """What the function returns."""
        return self.function(X, Y)

    def __call__(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """The same in float64, by one call."""
        return self._checked(as_float64(X), as_float64(Y))
