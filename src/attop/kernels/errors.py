"""How far kernel entries, and sums of kernel columns, may be off.

The bounds are those of :doc:`/theory/certificate`: an entry of the samples i and j is off by at
most ``constant + slope * (size_i + size_j)``.  A sum of columns, changed again and again, carries
the sum of what every change may have been off.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Rounding of sums in double precision, relative to their terms: columns are added one by one.
_SUMMATION = 1e-13


class EntryRounding(NamedTuple):
    """Bounds on the rounding of kernel entries that are computed in float64.

    Attributes
    ----------
    relative, absolute : float
        The entry of x and y is off by at most ``absolute + relative * sqrt(k(x, x) k(y, y))``.
    """

    relative: float
    absolute: float = 0.0


class EntryErrors(NamedTuple):
    """Bounds on the errors of stored kernel entries.

    Attributes
    ----------
    constant, slope : float
        The entry of i and j is off by at most ``constant + slope * (size[i] + size[j])``.
    size : ndarray of shape (n_samples,)
        What the bound takes of each sample: its squared norm, for one.
    """

    constant: float
    slope: float
    size: NDArray[np.float64]

    def of_columns(self, rows: NDArray[np.intp], weights: NDArray[np.float64]) -> Tally:
        """The tally of a sum of columns."""
        weights = np.abs(weights)
        return Tally(float(np.sum(weights)), float(np.dot(weights, self.size[rows])))

    def bounds(self, tally: Tally) -> NDArray[np.float64]:
        """How far the sum of columns with this tally may be off, at each sample."""
        at_all = (self.constant + _SUMMATION) * tally.total + self.slope * tally.weighted
        at_all += tally.extra
        return self.slope * tally.total * self.size + at_all


@dataclass(frozen=True)
class Tally:
    """What has gone into a sum of kernel columns.

    Attributes
    ----------
    total : float
        Sum of the absolute weights of all columns ever added.
    weighted : float
        The same, each weight times the size of the column's sample.
    extra : float
        What the sum may be off besides.
    """

    total: float = 0.0
    weighted: float = 0.0
    extra: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        return self._combined(other, operator.add)

    def __sub__(self, other: Tally) -> Tally:
        return self._combined(other, operator.sub)

    def __or__(self, other: Tally) -> Tally:
        """One that bounds both."""
        return self._combined(other, max)

    def _combined(self, other: Tally, by: Callable[[float, float], float]) -> Tally:
        return Tally(
            by(self.total, other.total),
            by(self.weighted, other.weighted),
            by(self.extra, other.extra),
        )

    def __mul__(self, factor: float) -> Tally:
        factor = abs(factor)
        return Tally(factor * self.total, factor * self.weighted, factor * self.extra)
