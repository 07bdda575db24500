"""A kernel of features that are names: which of them are equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from attop.kernels.base import Entries, Kernel
from attop.kernels.errors import EntryRounding

if TYPE_CHECKING:
    from attop.kernels.columns import Workers
    from attop.kernels.gram import Gram
    from attop.kernels.sources import ColumnSource


@dataclass(frozen=True)
class Matching(Kernel):
    r""":math:`k(x, y)` is the share of the features in which `x` and `y` are equal.

    For features that are names written as numbers: categories, or the leaves of a forest that
    `~attop.forest.ForestKernel` gives.
    """

    name = "matching"
    definite = True
    approximations = ()

    def values(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Kernel values of the rows of `X` against the rows of `Y`."""
        from attop.kernels.equal import shares  # whose compiled functions load slowly

        return shares(X, Y)

    def diagonal(self, X: Any, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """One for every sample."""
        return np.ones(len(rows))

    def rounding(self, X: Any, rows: NDArray[np.intp]) -> EntryRounding:
        """Counts are exact, and rounded once by the division."""
        return EntryRounding(2.0**-53)

    def extended(self, X: Any, Y: Any) -> tuple[Entries, NDArray[np.float64]]:
        """The counts divided in extended precision, and their sizes."""
        counts = np.rint(self(X, Y) * X.shape[1])
        entries = counts.astype(np.longdouble) / X.shape[1]
        return entries, entries.astype(np.float64)

    def extended_roundings(self, n_features: int) -> float:
        """Roundings of an entry, which is not a sum over features."""
        return super().extended_roundings(0)

    def expansion(
        self, vectors: Any, coefficients: NDArray[np.float64]
    ) -> Callable[[Any], NDArray[np.float64]]:
        """One look-up for each feature, whatever the number of support vectors."""
        from attop.kernels.equal import sum_of_weights, weights_of_values

        return partial(sum_of_weights, weights_of_values(vectors, coefficients))

    def source(self, gram: Gram, dtype: np.dtype, workers: Workers) -> ColumnSource:
        """Columns by counting equal whole numbers."""
        from attop.kernels.equal import MatchingSource, codes_of

        return MatchingSource(codes_of(gram.X)[0], dtype)
