"""The largest score as the threshold: TopPush.  The betas are free but for their sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from attop._weights import weighted_sum
from attop.families.base import BetaTerms, Family, Vector

if TYPE_CHECKING:
    from attop.smooth import SmoothThreshold


@dataclass(frozen=True)
class Largest(Family):
    """``t`` is the largest score of the competitors."""

    def terms(self, problem) -> BetaTerms:
        return BetaTerms()

    def threshold(
        self, problem, competitors, weights, positives, overwrite=False, positive_weights=None
    ) -> float:
        return float(np.max(competitors))

    def level(self, problem, competitors, weights, threshold) -> float:
        return float(np.max(competitors))

    def exceeding(self, competitors, weights, surrogate, t, level) -> tuple[float, float]:
        return float(weights @ np.maximum(competitors - t, 0.0)), 0.0

    def slopes(self, problem, competitors, weights, threshold) -> Vector:
        slopes = np.zeros(len(competitors))
        slopes[np.argmax(competitors)] = 1.0
        return slopes

    def least_multiple(self, problem, competitors, weights, positives) -> float:
        return proportional_multiple(float(np.min(positives)) - float(np.max(competitors)))

    def largest_beta(self, problem, beta) -> float:
        weights = problem.competitor_weights
        return weighted_sum(beta, weights) / _one_sample(weights)

    def smooth_threshold(
        self, problem, competitors, weights, width, given, near=None, positives=None
    ) -> SmoothThreshold:
        from attop.smooth import smooth_top_mean  # compiled: not at import

        return smooth_top_mean(competitors, weights, _one_sample(weights), width, given, near)

    def project(self, problem, alpha, beta, delta) -> tuple[Vector, Vector]:
        from attop.projections import project_without_cap  # compiled: not at import

        return project_without_cap(
            alpha, beta, problem.alpha_max, problem.positive_weights, problem.competitor_weights
        )

    def joining(self, problem, competitors, threshold, new, known):
        return np.zeros(len(new), dtype=bool)  # the subsample has found its largest

    def zero_is_optimal(self, problem) -> bool:
        return positives_can_fill(problem, 0)


def _one_sample(weights: Vector) -> float:
    """Of how many copies the mean is taken so that one sample, if it is the largest, can be all."""
    return min(1.0, float(np.min(weights)))


def proportional_multiple(margin: float) -> float:
    """The least multiple of ``w`` without a loss, where the margin grows with it."""
    return 1.0 / margin if margin > 0.0 else np.inf


def positives_can_fill(problem, K: int) -> bool:
    """Whether the positives compete themselves, and alone can fill the top K; 0 for no cap.

    With betas that are as much as the alphas, sample by sample, ``w`` is 0.  Where equal samples
    are merged the competitor may have other copies than the positive.
    """
    if not (np.isfinite(problem.C) and competes(problem, problem.positives)):
        return False
    copies = problem.positive_weights
    return K == 0 or float(np.max(shares_of_positives(problem))) * K <= float(np.sum(copies))


def competes(problem, rows) -> bool:
    """Whether all these rows, which increase, are competitors."""
    competitors = problem.competitors
    first = int(competitors.searchsorted(rows[0]))
    if first == len(competitors) or competitors[first] != rows[0]:
        return False  # mostly all of them compete, or none
    places = np.minimum(competitors.searchsorted(rows), len(competitors) - 1)
    return bool((competitors[places] == rows).all())


def shares_of_positives(problem) -> Vector:
    """Betas at which the competitors that are positives cancel alphas of 1, in their order."""
    places = np.searchsorted(problem.competitors, problem.positives)
    shares: Vector = problem.positive_weights / problem.competitor_weights[places]
    return shares
