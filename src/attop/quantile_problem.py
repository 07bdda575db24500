r"""The problem with the exact quantile for a threshold: Grill and Grill-NP.

.. math::

    f(w) = \frac{1}{2} |w|^2 + C \sum_{i \in I^+} l(t - s_i)
        + C \frac{n^+}{n^-} \sum_{j \in I^-} l(s_j - t), \qquad
    t = \max \{ t : \text{share of competitors with } s \ge t \text{ is at least } \tau \},

which is :math:`1/\lambda` times the objective of the paper's framework with
:math:`C_1 = 1/n^-`, :math:`C_2 = 1/n^+` and :math:`C = 1 / (\lambda n^+)`.  The threshold is one
of the scores and no convex function of ``w``: the problem has no dual, and a descent finds a
local minimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._weights import of_rows
from attop.surrogates import Surrogate
from attop.thresholds import quantile

Vector = NDArray[np.float64]


class QuantileProblem(NamedTuple):
    """One problem on the rows of the samples.

    Attributes
    ----------
    positives, negatives : ndarray of intp
        Rows of the two classes, increasing.
    competitors : ndarray of intp
        Rows whose scores make the threshold: the negatives, or all rows.
    C : float
        Weight of the loss, finite.
    surrogate : Surrogate
        The surrogate of the loss.
    tau : float
        Share of competitors at or above the threshold.
    weights : ndarray of float64
        Copies of each row, which all sums and shares count.
    """

    positives: NDArray[np.intp]
    negatives: NDArray[np.intp]
    competitors: NDArray[np.intp]
    C: float
    surrogate: Surrogate
    tau: float
    weights: Vector

    @property
    def C_negatives(self) -> float:
        """Weight of the loss of each negative."""
        return self.C * float(self._sum_of(self.positives) / self._sum_of(self.negatives))

    def _sum_of(self, rows: NDArray[np.intp]) -> float:
        return float(np.sum(self.weights[rows]))

    def threshold(self, scores: Vector) -> float:
        """The top tau-quantile of the scores of the competitors."""
        return quantile(scores[self.competitors], self.tau, of_rows(self.weights, self.competitors))

    def value(self, w_norm2: float, scores: Vector) -> float:
        """The objective at weights of the given squared norm and `scores`."""
        loss, t = self.surrogate.value, self.threshold(scores)
        positives, negatives = self.positives, self.negatives
        above = float(np.dot(self.weights[positives], loss(t - scores[positives])))
        below = float(np.dot(self.weights[negatives], loss(scores[negatives] - t)))
        return 0.5 * w_norm2 + self.C * above + self.C_negatives * below

    def slopes(self, scores: Vector) -> Vector:
        """Derivative of the losses by each score, through the threshold too.

        The threshold is the score of one sample, which therefore gets what all the others
        give to a rise of the threshold.  The gradient of the objective is ``w + X' slopes``.
        """
        slope, t = self.surrogate.slope, self.threshold(scores)
        slopes = np.zeros(len(scores))
        slopes[self.positives] = -self.C * slope(t - scores[self.positives])
        slopes[self.negatives] = self.C_negatives * slope(scores[self.negatives] - t)
        slopes *= self.weights
        total = float(np.sum(slopes))
        at_threshold = self.competitors[np.flatnonzero(scores[self.competitors] == t)[0]]
        slopes[at_threshold] -= total
        return slopes
