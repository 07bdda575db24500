r"""A quantile made of the quadratic hinge as the threshold: PatMat and PatMatNP with it.

Without a cap, and with the price :math:`\sqrt{m \tau} / \vartheta` on the norm of the betas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attop.families.base import BetaTerms, Vector
from attop.families.quantile_hinge import SurrogateQuantile


@dataclass(frozen=True)
class QuantileQuadratic(SurrogateQuantile):
    """``t`` is the root of ``sum l(theta (s - t)) = budget`` with the quadratic hinge ``l``."""

    def terms(self, problem) -> BetaTerms:
        return BetaTerms(1.0 / self.theta, norm_price=float(np.sqrt(self.budget)) / self.theta)

    def project(self, problem, alpha, beta, delta) -> tuple[Vector, Vector]:
        from attop.projections import project_patmat  # compiled: not at import

        return project_patmat(alpha, beta, delta, np.inf, problem.alpha_max)[:2]
