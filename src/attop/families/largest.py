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
        return positives_can_fill(problem, 1)


def _one_sample(weights: Vector) -> float:
    """Of how many copies the mean is taken so that one sample, if it is the largest, can be all."""
    return min(1.0, float(np.min(weights)))


def proportional_multiple(margin: float) -> float:
    """The least multiple of ``w`` without a loss, where the margin grows with it."""
    return 1.0 / margin if margin > 0.0 else np.inf


def positives_can_fill(problem, K: int) -> bool:
    """Whether the positives compete themselves, and alone can fill the top K."""
    competitors, first = problem.competitors, problem.positives[:1]
    place = int(np.searchsorted(competitors, first)[0])
    return (
        place < len(competitors)
        and bool(competitors[place] == first)  # mostly all of them compete, or none
        and float(np.sum(problem.positive_weights)) >= K
        and bool(np.isfinite(problem.C))
        and bool(np.isin(problem.positives, competitors).all())
    )
