r"""What a family of duals is, and the terms in which solvers see it.

With :math:`\alpha` over the positives, :math:`\beta` over the competitors, all non-negative and
of the same sum, and :math:`w = \sum \alpha_i \varphi_i - \sum \beta_j \varphi_j`, where all sums
are over the copies of the samples, every dual here maximises

.. math::

    - \tfrac{1}{2} |w|^2 + \sum \alpha_i - \tfrac{a}{2} \sum \alpha_i^2
    + b \sum \beta_j - \tfrac{c}{2} \sum \beta_j^2 - p u - q |\beta|, \qquad
    \alpha_i \le A, \quad \beta_j \le \min(B, u),

where the cap :math:`u` is absent, free, or tied to the alphas by :math:`u = \sum \alpha_i / K`.
`BetaTerms` are b, c, B, p, q and K; those of the alphas come from the surrogate.  A cap and a
curvature exclude each other.  The dual variables of the copies of a sample are equal, so that one
of them, and the weight of the sample, tell all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._weights import weighted

if TYPE_CHECKING:
    from attop.problem import Problem
    from attop.smooth import Opponents, SmoothThreshold
    from attop.surrogates import Surrogate

Vector = NDArray[np.float64]


class Cap(Enum):
    """What holds the betas down together."""

    NONE = 0
    TIED = 1
    PRICED = 2


class BetaTerms(NamedTuple):
    """The terms of the dual that the betas have.

    Attributes
    ----------
    linear : float
        Coefficient b of their sum.
    bound : float
        Fixed upper bound B of each.
    curvature : float
        Second derivative c of the penalty on each.
    cap : Cap
        Whether they have a common cap u, and of which kind.
    K : int
        The tied cap is ``sum(alpha) / K``.
    price : float
        Price p of the cap.
    norm_price : float
        Price q of their norm.
    """

    linear: float = 0.0
    bound: float = np.inf
    curvature: float = 0.0
    cap: Cap = Cap.NONE
    K: int = 0
    price: float = 0.0
    norm_price: float = 0.0


@dataclass(frozen=True)
class Family(ABC):
    """A threshold and the dual that it leads to, with their parameters as numbers.

    Methods take scores and weights of the competitors of a problem: all of them, or, where a
    solver has left out such that cannot matter, the others.

    Attributes
    ----------
    monotone : bool
        Whether the threshold is made of the competitors' scores alone and does not fall where
        one of them rises: scores that are low enough may then be left out.
    free_threshold : bool
        Whether the threshold is that of the least primal value, given the scores; samples whose
        loss is zero near it may then be left out.
    """

    monotone: ClassVar[bool] = True
    free_threshold: ClassVar[bool] = False

    @abstractmethod
    def terms(self, problem: Problem) -> BetaTerms:
        """What the betas may be and what they cost."""

    @abstractmethod
    def threshold(
        self,
        problem: Problem,
        competitors: Vector,
        weights: Vector,
        positives: Vector,
        overwrite: bool = False,
        positive_weights: Vector | None = None,
    ) -> float:
        """The threshold; with `overwrite` the scores of the competitors may be lost.

        The weights of the positives are those of all by default.
        """

    @abstractmethod
    def level(
        self, problem: Problem, competitors: Vector, weights: Vector, threshold: float
    ) -> float:
        """The least score of a competitor that matters."""

    @abstractmethod
    def slopes(
        self, problem: Problem, competitors: Vector, weights: Vector, threshold: float
    ) -> Vector:
        """Slopes of the threshold by the score of each copy, up to a common factor.

        So are the betas.
        """

    def exceeding(
        self, competitors: Vector, weights: Vector, surrogate: Surrogate, t: float, level: float
    ) -> tuple[float, float]:
        """A sum over the competitors, of terms none of which is negative, and a limit.

        Where the sum is no more than its limit the threshold is at most `t`, whatever `level` is;
        with that of the threshold the two are equal.  It proves a threshold that was found from
        parts of the scores.
        """
        raise NotImplementedError

    def value(
        self, problem: Problem, competitors: Vector, weights: Vector, threshold: float
    ) -> float:
        """What the competitors themselves add to the primal value."""
        return 0.0

    def least_multiple(
        self, problem: Problem, competitors: Vector, weights: Vector, positives: Vector
    ) -> float:
        """Least ``c > 0`` for which ``c w`` has no loss; ``inf`` if there is none (C infinite).

        The margin ``min s_i - t`` of ``c w`` is a concave function of c, negative at 0.  Newton's
        steps from the left cannot jump over its first crossing of 1, since a tangent lies above
        the function; a slope that is not positive below 1 proves that there is no crossing.
        """
        c, lowest = 0.0, float(np.min(positives))
        for _ in range(200):
            t = self.threshold(problem, c * competitors, weights, c * positives)
            shortage = 1.0 - (c * lowest - t)
            if shortage <= 1e-13 * max(1.0, abs(c * lowest), abs(t)):
                return c
            slopes = weighted(self.slopes(problem, c * competitors, weights, t), weights)
            slope = lowest - float(np.dot(slopes, competitors) / np.sum(slopes))
            if slope <= 0.0:
                return np.inf
            c += shortage / slope
        return np.inf

    def largest_beta(self, problem: Problem, beta: Vector) -> float:
        """What a beta of the largest slope of the smooth threshold, 1, would be."""
        return float(np.max(beta))

    def smooth_threshold(
        self,
        problem: Problem,
        competitors: Vector,
        weights: Vector,
        width: float,
        given: Vector,
        near: float | None = None,
        positives: Opponents | None = None,
    ) -> SmoothThreshold:
        """The threshold made smooth over a `width`, close to the `given` slopes (primal solver).

        One that is expected `near` a number is found faster.
        """
        raise NotImplementedError

    def project(self, problem: Problem, alpha: Vector, beta: Vector, delta: float):
        """The nearest feasible alphas and betas; `delta` is the paper's third variable."""
        raise NotImplementedError

    def subsampled(self, share: float, copies: float) -> Family:
        """The family on a sample of so many copies of competitors, which are this share of all."""
        return self

    def least_betas(self, problem: Problem) -> int:
        """How many betas, copies counted, a point needs so that its dual value can be positive."""
        return 1

    def joining(
        self,
        problem: Problem,
        competitors: Vector,
        threshold: float,
        new: NDArray[np.bool_],
        known: Vector,
    ) -> NDArray[np.bool_]:
        """Which of the `new` competitors are expected at the cap, where the others are `known`.

        These are the betas of a subsample in units of the cap.  Here it is all competitors that
        have to be given.
        """
        weights = problem.competitor_weights
        return new & (self.slopes(problem, competitors, weights, threshold) > 0.0)

    def zero_is_optimal(self, problem: Problem) -> bool:
        """Whether ``w = 0`` is known to be optimal whatever the samples are."""
        return False

    def distance(self, other: Family) -> float:
        """By which factors the parameters differ, added on a logarithmic scale."""
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        numbers: Any = [pair for pair in pairs if None not in pair]
        if not numbers:
            return 0.0
        logs = np.log(np.clip(numbers, 1e-12, 1e12))
        return float(np.sum(np.abs(logs[:, 0] - logs[:, 1])))
