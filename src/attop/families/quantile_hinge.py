r"""A quantile made of the hinge as the threshold: PatMat and PatMatNP with the hinge.

The threshold is the root of :math:`\sum l(\vartheta (s_j - t)) = m \tau`, the budget.  Its dual
prices the cap of the betas with budget / theta.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from attop.families.base import BetaTerms, Cap, Family, Vector
from attop.thresholds import surrogate_root

if TYPE_CHECKING:
    from attop.smooth import SmoothThreshold


@dataclass(frozen=True)
class SurrogateQuantile(Family):
    """What the quantiles of both surrogates have in common.

    Attributes
    ----------
    budget : float
        What the surrogates of all competitors sum up to: the number of their copies times tau.
    theta : float
        Scale inside the surrogate.
    """

    budget: float
    theta: float

    def threshold(
        self, problem, competitors, weights, positives, overwrite=False, positive_weights=None
    ) -> float:
        surrogate = problem.surrogate
        return surrogate_root(competitors, self.budget, self.theta, surrogate, overwrite, weights)

    def level(self, problem, competitors, weights, threshold) -> float:
        return threshold - 1.0 / self.theta

    def exceeding(self, competitors, weights, surrogate, t, level) -> tuple[float, float]:
        return float(weights @ surrogate.value(self.theta * (competitors - t))), self.budget

    def slopes(self, problem, competitors, weights, threshold) -> Vector:
        return problem.surrogate.slope(self.theta * (competitors - threshold))

    def smooth_threshold(
        self, problem, competitors, weights, width, given, near=None, positives=None
    ) -> SmoothThreshold:
        from attop.smooth import smooth_quantile  # compiled: not at import

        surrogate = problem.surrogate
        return smooth_quantile(
            competitors, weights, self.budget, self.theta, surrogate, width, given, near
        )

    def subsampled(self, share, copies) -> Self:
        return replace(self, budget=self.budget * share)

    def least_betas(self, problem) -> int:
        # Few betas make the price of their cap (or norm) exceed all gain, and the dual
        # negative: from there ascent runs into zero.  From budget / (1 + theta) on it is positive.
        return int(np.ceil(2.0 * self.budget / (1.0 + self.theta)))


@dataclass(frozen=True)
class QuantileHinge(SurrogateQuantile):
    """``t`` is the root of ``sum l(theta (s - t)) = budget`` with the hinge ``l``."""

    def terms(self, problem) -> BetaTerms:
        return BetaTerms(1.0 / self.theta, cap=Cap.PRICED, price=self.budget / self.theta)

    def project(self, problem, alpha, beta, delta) -> tuple[Vector, Vector]:
        from attop.projections import project_patmat  # compiled: not at import

        weights = problem.positive_weights, problem.competitor_weights
        return project_patmat(alpha, beta, delta, self.theta, problem.alpha_max, *weights)[:2]
