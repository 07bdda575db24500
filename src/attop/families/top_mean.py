"""The mean of the K largest scores, copies counted, as the threshold: TopPushK, TauFPL, TopMeanK.

It is the largest mean of K scores, and the dual variables of that maximum are the betas: each is
at most ``1 / K`` of all, ``beta_j <= sum(alpha) / K``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attop._selection import largest_of
from attop._weights import are_unit, of_rows, weighted_sum
from attop.families.base import BetaTerms, Cap, Family, Vector
from attop.families.largest import Largest, positives_can_fill, proportional_multiple
from attop.thresholds import top_copies, top_mean

if TYPE_CHECKING:
    from attop.smooth import SmoothThreshold


@dataclass(frozen=True)
class TopMean(Family):
    """``t`` is the mean of the K largest scores of the competitors.

    Attributes
    ----------
    K : int
        How many.
    is_share : bool
        Whether K is a share of the competitors rather than a number: that of a subsample is
        smaller then.
    """

    K: int
    is_share: bool = False

    def terms(self, problem) -> BetaTerms:
        return BetaTerms(cap=Cap.TIED, K=self.K)

    def threshold(
        self, problem, competitors, weights, positives, overwrite=False, positive_weights=None
    ) -> float:
        if len(competitors) == 1:  # of however many copies
            return float(competitors[0])
        return top_mean(competitors, self.K, overwrite, weights)

    def level(self, problem, competitors, weights, threshold) -> float:
        if not are_unit(weights):
            return float(competitors[top_copies(competitors, self.K, weights)[0][-1]])
        competing = competitors.copy()
        competing.partition(len(competing) - self.K)
        return float(competing[-self.K])

    def exceeding(self, competitors, weights, surrogate, t, level) -> tuple[float, float]:
        # The mean of the K largest is the least of r + sum max(s - r, 0) / K.
        return float(weights @ np.maximum(competitors - level, 0.0)), self.K * (t - level)

    def slopes(self, problem, competitors, weights, threshold) -> Vector:
        slopes = np.zeros(len(competitors))
        if are_unit(weights):
            slopes[np.argpartition(competitors, -self.K)[-self.K :]] = 1.0
        else:
            which, copies = top_copies(competitors, self.K, weights)
            slopes[which] = copies / weights[which]
        return slopes

    def least_multiple(self, problem, competitors, weights, positives) -> float:
        t = top_mean(competitors, self.K, weights=weights)
        return proportional_multiple(float(np.min(positives)) - t)

    def largest_beta(self, problem, beta) -> float:
        return weighted_sum(beta, problem.competitor_weights) / self.K

    def smooth_threshold(
        self, problem, competitors, weights, width, given, near=None, positives=None
    ) -> SmoothThreshold:
        from attop.smooth import smooth_top_mean  # compiled: not at import

        return smooth_top_mean(competitors, weights, self.K, width, given, near)

    def project(self, problem, alpha, beta, delta) -> tuple[Vector, Vector]:
        from attop.projections import project_topk  # compiled: not at import

        weights = problem.positive_weights, problem.competitor_weights
        return project_topk(alpha, beta, self.K, problem.alpha_max, *weights)

    def subsampled(self, share, copies) -> Family:
        K = max(1, round(self.K * share)) if self.is_share else self.K
        return mean_of_largest(max(1, min(K, int(copies))), self.is_share)

    def least_betas(self, problem) -> int:
        return self.K

    def joining(self, problem, competitors, threshold, new, known):
        if not self.is_share:  # a number of scores is one in the subsample, too, which has them all
            return np.zeros(len(new), dtype=bool)
        weights = problem.competitor_weights
        count = self.K - weighted_sum(known, of_rows(weights, ~new))
        if are_unit(weights):
            return largest_of(new, competitors, int(np.ceil(count)))
        joining = np.zeros(len(new), dtype=bool)
        others = np.flatnonzero(new)
        count = min(count, float(np.sum(weights[others])))
        if count > 0.0:
            joining[others[top_copies(competitors[others], count, weights[others])[0]]] = True
        return joining

    def zero_is_optimal(self, problem) -> bool:
        return positives_can_fill(problem, self.K)


def mean_of_largest(K: int, is_share: bool = False) -> Family:
    """The family of the mean of the K largest scores, which has a simpler dual where K is 1."""
    return Largest() if K == 1 else TopMean(K, is_share)
