r"""A quantile made of the quadratic hinge as the threshold: PatMat and PatMatNP with it.

Without a cap, and with the price :math:`\sqrt{m \tau} / \vartheta` on the norm of the betas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attop.families.base import BetaTerms, Vector
from attop.families.quantile_hinge import QuantileHinge, SurrogateQuantile
from attop.surrogates import Surrogate


@dataclass(frozen=True)
class QuantileQuadratic(SurrogateQuantile):
    """``t`` is the root of ``sum l(theta (s - t)) = budget`` with the quadratic hinge ``l``."""

    def terms(self, problem) -> BetaTerms:
        return BetaTerms(1.0 / self.theta, norm_price=float(np.sqrt(self.budget)) / self.theta)

    def project(self, problem, alpha, beta, delta) -> tuple[Vector, Vector]:
        from attop.projections import project_patmat  # compiled: not at import

        weights = problem.positive_weights, problem.competitor_weights
        return project_patmat(alpha, beta, delta, np.inf, problem.alpha_max, *weights)[:2]


#: The families of surrogate quantiles, by what the surrogate says about their dual.
_QUANTILES = {"cap": QuantileHinge, "norm": QuantileQuadratic}


def quantile_of(surrogate: Surrogate, budget: float, theta: float) -> SurrogateQuantile | None:
    """The family of the quantile made of this surrogate; None where its dual is not known."""
    quantile = _QUANTILES.get(surrogate.quantile or "")
    return None if quantile is None else quantile(budget, theta)
