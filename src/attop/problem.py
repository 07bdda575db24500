"""What passes between formulations and solvers: one dual problem as plain numbers and arrays.

Every convex formulation leads to one of three families of duals.  With ``alpha``
over the positives, ``beta`` over the competitors, all non-negative and
``sum(alpha) == sum(beta)``, and ``w = sum alpha_i phi_i - sum beta_j phi_j``, the
solvers maximise ::

    - |w|^2 / 2  +  sum(alpha)  [ - sum(alpha^2) / (4 C) ]  +  family term

where the bracket belongs to the quadratic hinge; the hinge has ``alpha <= C``
instead.  The family term is

``Family.TIED_CAP``
    none, but ``beta_j <= u`` with ``u = sum(alpha) / K``.
``Family.PRICED_CAP``
    ``sum(beta) / theta - (m tau / theta) u``, with ``beta_j <= u`` and ``u`` free.
``Family.NORM``
    ``sum(beta) / theta - (sqrt(m tau) / theta) |beta|_2``, without a cap.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Family(IntEnum):
    """How the betas are bounded and priced in the dual."""

    TIED_CAP = 0
    PRICED_CAP = 1
    NORM = 2


class Problem(NamedTuple):
    """One dual problem on the rows of a kernel matrix.

    Attributes
    ----------
    positives : ndarray of intp
        Row of each alpha, increasing.
    competitors : ndarray of intp
        Row of each beta, increasing; the negatives, or all rows.
    C : float
        Weight of the loss, ``inf`` allowed.
    surrogate : {"hinge", "quadratic_hinge"}
        The surrogate of the loss and, for Pat&Mat, of the threshold.
    family : Family
        Which of the three duals this is.
    K : int
        Number of top scores averaged (``TIED_CAP``; 0 otherwise).
    tau : float
        Share of competitors above the threshold (Pat&Mat; 0.0 otherwise).
    theta : float
        Scale inside the surrogate of the threshold (Pat&Mat; 1.0 otherwise).
    """

    positives: NDArray[np.intp]
    competitors: NDArray[np.intp]
    C: float
    surrogate: str
    family: Family
    K: int = 0
    tau: float = 0.0
    theta: float = 1.0

    @property
    def rows(self) -> NDArray[np.intp]:
        """Row of each variable, alphas first: without a copy where both share their memory."""
        joined, n, m = self.positives.base, len(self.positives), len(self.competitors)
        if joined is not None and joined is self.competitors.base and len(joined) == n + m:
            first = joined.ctypes.data
            behind = first + n * joined.itemsize
            if (self.positives.ctypes.data, self.competitors.ctypes.data) == (first, behind):
                return joined
        return np.concatenate([self.positives, self.competitors])

    @property
    def linear_beta(self) -> float:
        """Coefficient of ``sum(beta)`` in the dual."""
        return 0.0 if self.family == Family.TIED_CAP else 1.0 / self.theta

    @property
    def quadratic_alpha(self) -> float:
        """Second derivative of the alpha penalty: ``1 / (2 C)`` for the quadratic hinge."""
        return 0.5 / self.C if self.surrogate == "quadratic_hinge" else 0.0

    @property
    def alpha_max(self) -> float:
        """Upper bound of each alpha."""
        return self.C if self.surrogate == "hinge" else np.inf

    @property
    def cap_price(self) -> float:
        """Price ``m tau / theta`` of the cap (``PRICED_CAP``)."""
        return len(self.competitors) * self.tau / self.theta

    @property
    def norm_price(self) -> float:
        """Price ``sqrt(m tau) / theta`` of ``|beta|_2`` (``NORM``)."""
        return float(np.sqrt(len(self.competitors) * self.tau)) / self.theta
