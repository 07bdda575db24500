r"""The best threshold there is: the support vector machine.

The threshold is free, and the competitors have losses of their own,

.. math::

    \min_t \; C \sum_i l(t - s_i) + C \sum_j l(s_j - t),

so that the betas are what the alphas are: bounded by :math:`C` for the hinge, and with a quadratic
penalty for the quadratic hinge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.optimize import brentq

from attop._weights import are_unit, unit_weights, weighted_sum
from attop.families.base import BetaTerms, Family, Vector
from attop.families.largest import proportional_multiple
from attop.surrogates import Surrogate
from attop.thresholds import top_copies

if TYPE_CHECKING:
    from attop.smooth import SmoothThreshold


@dataclass(frozen=True)
class FixedCap(Family):
    """``t`` minimises the losses of the positives below it and of the competitors above it."""

    monotone: ClassVar[bool] = False
    free_threshold: ClassVar[bool] = True

    def terms(self, problem) -> BetaTerms:
        return BetaTerms(linear=1.0, bound=problem.alpha_max, curvature=problem.quadratic_alpha)

    def threshold(
        self, problem, competitors, weights, positives, overwrite=False, positive_weights=None
    ) -> float:
        if np.isinf(problem.C):  # in the middle of the margin, however narrow that is as yet
            return 0.5 * (float(np.min(positives)) + float(np.max(competitors)))
        if positive_weights is None:
            positive_weights = problem.positive_weights
        # Where the loss of each begins: a positive's below this threshold, a competitor's above.
        ends = np.concatenate([positives - 1.0, competitors + 1.0])
        copies = unit_weights(len(ends))
        if not (are_unit(weights) and are_unit(positive_weights)):
            copies = np.concatenate([positive_weights, weights])
        if problem.surrogate.curvature == 0.0:
            return _middle(ends, copies, float(np.sum(positive_weights)))
        return _balance(ends, copies, len(positives), problem.surrogate)

    def level(self, problem, competitors, weights, threshold) -> float:
        return threshold - 1.0

    def exceeding(self, competitors, weights, surrogate, t, level) -> tuple[float, float]:
        return 0.0, 0.0  # any threshold bounds the least value

    def slopes(self, problem, competitors, weights, threshold) -> Vector:
        return problem.surrogate.slope(competitors - threshold)

    def largest_beta(self, problem, beta) -> float:
        return float(problem.C)

    def smooth_threshold(
        self, problem, competitors, weights, width, given, near=None, positives=None
    ) -> SmoothThreshold:
        from attop.smooth import smooth_balance  # compiled: not at import

        # As wide as the loss, which the competitors have, too.
        surrogate, width = problem.surrogate, positives.width
        return smooth_balance(competitors, weights, surrogate, width, given, positives, near)

    def project(self, problem, alpha, beta, delta) -> tuple[Vector, Vector]:
        from attop.projections import project_without_cap  # compiled: not at import

        weights = problem.positive_weights, problem.competitor_weights
        return project_without_cap(
            alpha, beta, problem.alpha_max, *weights, beta_max=problem.betas.bound
        )

    def value(self, problem, competitors, weights, threshold) -> float:
        total = weighted_sum(problem.surrogate.value(competitors - threshold), weights)
        return problem.C * total if total > 0.0 else 0.0

    def least_multiple(self, problem, competitors, weights, positives) -> float:
        return 2.0 * proportional_multiple(float(np.min(positives)) - float(np.max(competitors)))


def _middle(ends: Vector, copies: Vector, above: float) -> float:
    """Where the sum of hinges is least: so many copies of ends lie above, and the rest below.

    The slope of the sum at ``t`` is the number of copies below less that of all competitors.
    Between the two ends next to that the sum is constant, and the middle is as good as any.
    """
    if are_unit(copies):
        below = len(ends) - int(above)
        ordered = np.partition(ends, [below - 1, below])
        return 0.5 * float(ordered[below - 1] + ordered[below])
    which, counted = top_copies(ends, above, copies)
    last = float(ends[which[-1]])
    if counted[-1] < copies[which[-1]] * (1.0 - 1e-12):
        return last  # some of its copies on either side
    under = np.ones(len(ends), dtype=bool)
    under[which] = False
    return 0.5 * (last + float(np.max(ends[under])))


def _balance(ends: Vector, copies: Vector, n_positives: int, surrogate: Surrogate) -> float:
    """Where the slopes of the losses of positives and competitors sum up to zero."""
    of_positives, of_competitors = ends[:n_positives], ends[n_positives:]
    positive_weights, weights = copies[:n_positives], copies[n_positives:]

    def slope(t: float) -> float:
        rising = weighted_sum(surrogate.slope(t - of_positives - 1.0), positive_weights)
        return rising - weighted_sum(surrogate.slope(of_competitors - t - 1.0), weights)

    low, high = float(np.min(ends)), float(np.max(ends))
    at_low, at_high = slope(low), slope(high)
    if np.isnan(at_low) or np.isnan(at_high):  # scores that ran away, or overflow
        return np.nan
    if at_low >= 0.0 or at_high <= 0.0:
        return low if at_low >= 0.0 else high
    if surrogate.curvature and ends.dtype == np.float64:
        from attop.smooth import balance  # compiled: not at import

        rising = -of_positives, np.ascontiguousarray(positive_weights)
        falling = of_competitors, np.ascontiguousarray(weights)
        return float(balance(*rising, *falling, surrogate.curvature, np.inf, np.nan))
    return float(brentq(slope, low, high, xtol=1e-300, rtol=8.9e-16))
