"""The scores that are known of a problem, with their weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._scores import Scores
from attop._weights import of_rows
from attop.problem import Problem


class Known(NamedTuple):
    """Scores and weights of competitors and positives: of all, or of those that were computed."""

    competitors: NDArray[np.float64]
    competitor_weights: NDArray[np.float64]
    positives: NDArray[np.float64]
    positive_weights: NDArray[np.float64]

    @classmethod
    def all_of(cls, problem: Problem, scores: NDArray[np.float64]) -> Known:
        """Those of all samples."""
        return cls(
            scores[problem.competitors],
            problem.competitor_weights,
            scores[problem.positives],
            problem.positive_weights,
        )

    @classmethod
    def of(cls, problem: Problem, exact: Scores) -> Known:
        """Those that were computed."""
        if exact.computed.all():
            return cls.all_of(problem, exact.values)
        competing = exact.computed[problem.competitors]
        positive = exact.computed[problem.positives]
        return cls(
            exact.values[problem.competitors[competing]],
            of_rows(problem.competitor_weights, competing),
            exact.values[problem.positives[positive]],
            of_rows(problem.positive_weights, positive),
        )

    def threshold(self, problem: Problem) -> float:
        """The threshold of the formulation at these scores."""
        return problem.family.threshold(
            problem,
            self.competitors,
            self.competitor_weights,
            self.positives,
            positive_weights=self.positive_weights,
        )
