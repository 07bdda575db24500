"""The mean of the K largest scores as the threshold: TopPushK, TauFPL, TopMeanK.

It is the largest mean of K scores, and the dual variables of that maximum are the betas: each is
at most ``1 / K`` of all, ``beta_j <= sum(alpha) / K``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attop._selection import largest_of
from attop.families.base import BetaTerms, Cap, Family, Vector
from attop.families.largest import Largest, positives_can_fill, proportional_multiple
from attop.smooth import SmoothThreshold, smooth_top_mean
from attop.thresholds import top_mean


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

    def threshold(self, problem, competitors, positives, overwrite=False) -> float:
        return top_mean(competitors, self.K, overwrite)

    def level(self, problem, competitors, threshold) -> float:
        competing = competitors.copy()
        competing.partition(len(competing) - self.K)
        return float(competing[-self.K])

    def weights(self, problem, competitors, threshold) -> Vector:
        weights = np.zeros(len(competitors))
        weights[np.argpartition(competitors, -self.K)[-self.K :]] = 1.0
        return weights

    def least_multiple(self, problem, competitors, positives) -> float:
        return proportional_multiple(float(np.min(positives)) - top_mean(competitors, self.K))

    def largest_beta(self, problem, beta) -> float:
        return float(np.sum(beta)) / self.K

    def smooth_threshold(self, problem, competitors, width, given) -> SmoothThreshold:
        return smooth_top_mean(competitors, self.K, width, given)

    def project(self, problem, alpha, beta, delta) -> tuple[Vector, Vector]:
        from attop.projections import project_topk  # compiled: not at import

        return project_topk(alpha, beta, self.K, problem.alpha_max)

    def subsampled(self, share, n_competitors) -> Family:
        K = max(1, round(self.K * share)) if self.is_share else self.K
        return mean_of_largest(min(K, n_competitors), self.is_share)

    def least_betas(self, problem) -> int:
        return self.K

    def joining(self, problem, competitors, threshold, new, known):
        # A number of scores is a number in the subsample, too, which then has them all.
        count = int(np.ceil(self.K - np.sum(known))) if self.is_share else 0
        return largest_of(new, competitors, count)

    def zero_is_optimal(self, problem) -> bool:
        return positives_can_fill(problem, self.K)


def mean_of_largest(K: int, is_share: bool = False) -> Family:
    """The family of the mean of the K largest scores, which has a simpler dual where K is 1."""
    return Largest() if K == 1 else TopMean(K, is_share)
