"""What passes between formulations and solvers: one dual problem as plain numbers and arrays.

Solvers maximise the dual of `attop.families.base` over alphas and betas.  The surrogate says what
alphas may be and cost, the family what betas may be and cost, and neither is known to a solver
by name.

The weight of a sample counts its copies.  Copies have one score, and by convexity there is an
optimum in which they share the values of their dual variables: a dual variable here is that of
*one copy*, so that bounds and caps are the same for all, and sums over variables are weighted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._weights import of_rows, unit_weights
from attop.families.base import BetaTerms, Family
from attop.surrogates import Surrogate, as_surrogate


class Problem(NamedTuple):
    """One dual problem on the rows of a kernel matrix.

    Attributes
    ----------
    rows : ndarray of intp
        Row of each dual variable: of the alphas, increasing, then of the betas, increasing.
    n_positives : int
        How many of them are alphas.
    C : float
        Weight of the loss, ``inf`` allowed.
    surrogate : Surrogate
        The surrogate of the loss and, for Pat&Mat, of the threshold.
    family : Family
        The threshold, with its parameters.
    weights : ndarray of float64
        Number of copies, positive, of the sample of each dual variable.
    """

    rows: NDArray[np.intp]
    n_positives: int
    C: float
    surrogate: Surrogate
    family: Family
    weights: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        positives: NDArray[np.intp],
        competitors: NDArray[np.intp],
        C: float,
        surrogate: str | Surrogate,
        family: Family,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Problem:
        """The problem with these rows of the positives and of the competitors.

        `sample_weight` has a positive number for each row, None for one copy of each.
        """
        rows = np.concatenate([positives, competitors]).astype(np.intp)
        weights = unit_weights(len(rows)) if sample_weight is None else of_rows(sample_weight, rows)
        return cls(rows, len(positives), C, as_surrogate(surrogate), family, weights)

    @property
    def positives(self) -> NDArray[np.intp]:
        """Row of each alpha."""
        return self.rows[: self.n_positives]

    @property
    def competitors(self) -> NDArray[np.intp]:
        """Row of each beta: the negatives, or all rows."""
        return self.rows[self.n_positives :]

    @property
    def positive_weights(self) -> NDArray[np.float64]:
        """Weight of each alpha."""
        return self.weights[: self.n_positives]

    @property
    def competitor_weights(self) -> NDArray[np.float64]:
        """Weight of each beta."""
        return self.weights[self.n_positives :]

    @property
    def betas(self) -> BetaTerms:
        """What the betas may be and cost."""
        return self.family.terms(self)

    @property
    def alpha_max(self) -> float:
        """Upper bound of each alpha."""
        return self.C * self.surrogate.steepest

    @property
    def quadratic_alpha(self) -> float:
        """Second derivative of the penalty on each alpha."""
        return (self.surrogate.curvature or 0.0) / self.C
