"""What a point has in common with the columns at hand, and what it has beyond them.

`attop.solvers.exact.scaling.bounded_scores` bounds the latter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop.kernels.columns import ColumnStore
from attop.kernels.errors import Tally

#: Coefficients this close to each other, relative to the largest, are the same.
ROUNDING = 1e-13


class ColumnSum:
    """A sum of columns at hand that comes near to a wanted one.

    Attributes
    ----------
    counted : ndarray of shape (n_samples,)
        Coefficient of each column in the sum.
    sums : ndarray of shape (n_samples,)
        The sum.
    tally : Tally
        What went into it.
    """

    def __init__(self, store: ColumnStore) -> None:
        self.store = store
        self.counted, self.sums = np.zeros(store.n_samples), np.zeros(store.n_samples)
        self.tally = Tally()

    def approach(self, wanted: NDArray[np.float64], keep: NDArray[np.bool_] | None = None) -> None:
        """Come as near to the wanted coefficients as the columns at hand can.

        With `keep` go there: columns that are missing are computed, and some are kept.
        """
        rows, rest = self.missing(wanted)
        at_hand = self.store.cached(rows)
        self.store.add_product(rows[at_hand], rest[at_hand], self.sums)
        if keep is None:
            rows, rest = rows[at_hand], rest[at_hand]
        else:
            for kept in (True, False):
                some = ~at_hand & (keep[rows] == kept)
                self.store.add_product(rows[some], rest[some], self.sums, keep=kept)
        self.counted[rows] = wanted[rows]
        assert self.store.errors is not None
        self.tally += self.store.errors.of_columns(rows, rest)

    def missing(self, wanted: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """The columns that are missing, and their weights."""
        return nonzero(wanted - self.counted, wanted)


def nonzero(
    rest: NDArray[np.float64], wanted: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Where `rest` is more than rounding, and what it is there."""
    rows = np.flatnonzero(beyond_rounding(rest, wanted))
    return rows, rest[rows]


def beyond_rounding(rest: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which coefficients are more than the rounding of those wanted."""
    return np.abs(rest) > ROUNDING * np.max(np.abs(wanted), axis=-1, keepdims=True)


class Tallies(NamedTuple):
    """What had gone into scores and into both sums of an anchor at some time.

    Attributes
    ----------
    scores, others, group : Tally
        Of the scores, and of the sums whose difference, the group's times the cap, is the anchor.
    cap : float
        The cap.
    """

    scores: Tally = Tally()
    others: Tally = Tally()
    group: Tally = Tally()
    cap: float = 0.0

    def now(self, others: Tally, group: Tally, cap: float) -> Tally:
        """That of the scores moved with the anchor, whose sums have these tallies now."""
        moved = (others - self.others) + (group - self.group) * cap
        return self.scores + moved + self.group * (cap - self.cap)


class Stage(NamedTuple):
    """A function that was interpolated.

    Attributes
    ----------
    rows, weights : ndarray
        Its samples and their coefficients.
    coordinates : ndarray
        Of its interpolant, in the basis of the reference.
    """

    rows: NDArray[np.intp]
    weights: NDArray[np.float64]
    coordinates: NDArray[np.float64]


class Rest(NamedTuple):
    """What a point has beyond the anchor, as arrays over all samples.

    Attributes
    ----------
    weights : ndarray
        Its coefficients.
    values : ndarray
        Its values.
    left : ndarray
        As that of `BoundedScores` was.
    tallies : Tallies
        How the values came about.
    """

    weights: NDArray[np.float64]
    values: NDArray[np.float64]
    left: NDArray[np.float64]
    tallies: Tallies

    @classmethod
    def nothing(cls, n_samples: int) -> Rest:
        """The rest of the anchor itself."""
        weights, values, left = np.zeros((3, n_samples))
        return cls(weights, values, left, Tallies())


class Difference(NamedTuple):
    """A difference of two rests.

    Attributes
    ----------
    rows, weights : ndarray
        Its samples and their coefficients.
    values : ndarray of shape (n_samples,)
        Its values, right for the samples that are known.
    norm2, slack : float
        Its squared norm, and a bound on the rounding of that.
    """

    rows: NDArray[np.intp]
    weights: NDArray[np.float64]
    values: NDArray[np.float64]
    norm2: float
    slack: float

    def left(self, coordinates: NDArray[np.float64]) -> float:
        """Norm of what its interpolant leaves."""
        left = self.norm2 - float(np.dot(coordinates, coordinates))
        return float(np.sqrt(max(left, 0.0) + self.slack))
