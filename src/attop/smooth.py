r"""The primal made smooth, with the dual point that belongs to each of its gradients.

The loss and the threshold are maxima over slopes, and a quadratic penalty on the distance of
the slopes from given ones makes them smooth.  With the width :math:`\mu` and the given slopes
:math:`\bar q` and :math:`\bar p`, the hinge and the mean of the K largest scores become

.. math::

    l_\mu(x) &= \max_{0 \le q \le 1} \; q (1 + x) - \frac{\mu}{2} (q - \bar q)^2, \\
    t_\mu(s) &= \max_{0 \le p_j \le 1/K, \; \sum p_j = 1} \;
        \langle p, s \rangle - \frac{K \mu}{2} |p - \bar p|^2,

and the surrogate quantile the root of :math:`\sum l_{\theta\mu}(\theta (s_j - t)) = m \tau`.
All are below the originals by at most :math:`\mu / 2`, and by much less where the given
slopes are nearly the right ones.  A surrogate whose conjugate has a curvature c is smooth
already; a width other than 0 makes it less steep in the same way, by :math:`l_\mu(x) = \max_{q}
\; q (1 + x) - c q^2 / 2 - \frac{\mu}{2} (q - \bar q)^2`.

At any ``w``, the slopes :math:`\alpha_i = C l_\mu'(t_\mu - s_i)` and
:math:`\beta = (\sum \alpha) \nabla_s t_\mu` are a feasible point of the dual: every gradient
brings a lower bound on the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from attop.surrogates import Surrogate
from attop.thresholds import surrogate_root

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class SmoothLoss:
    """A surrogate with its kinks smoothed: value, slope and curvature.

    Parameters
    ----------
    surrogate : Surrogate
        One whose conjugate is quadratic.
    width : float
        Width of the smoothing, positive; 0 leaves a surrogate as it is that is smooth already.
    given : ndarray
        The slope of each term that the smoothing stays near to.
    """

    surrogate: Surrogate
    width: float
    given: Vector

    @property
    def _bend(self) -> float:
        assert self.surrogate.curvature is not None
        return self.surrogate.curvature + self.width

    def value(self, x: Vector) -> Vector:
        """The smooth surrogate of each entry."""
        q, bend = self.slope(x), self._bend
        return q * (1.0 + x) - 0.5 * (
            self.width * (q - self.given) ** 2 + (bend - self.width) * q**2
        )

    def slope(self, x: Vector) -> Vector:
        """First derivative."""
        lifted = 1.0 + x + self.width * self.given
        return np.clip(lifted / self._bend, 0.0, self.surrogate.steepest)

    def curvature(self, x: Vector) -> Vector:
        """Second derivative, one of its two values where there is none."""
        slope = self.slope(x)
        return ((slope > 0.0) & (slope < self.surrogate.steepest)) / self._bend


@dataclass(frozen=True)
class SmoothThreshold:
    """Threshold of the smooth problem, and its derivatives by the scores of the competitors.

    Attributes
    ----------
    value : float
        The threshold.
    share : ndarray
        Its gradient: non-negative, of sum 1.
    slope : ndarray
        The same on the scale from 0 to 1: what the next smoothing may stay near to.
    curvature : ndarray
        Weights ``c`` of its Hessian ``sum c_j (e_j - q)(e_j - q)'``.
    centre : ndarray
        The ``q`` of the Hessian, of sum 1 where ``c`` is not 0.
    """

    value: float
    share: Vector
    slope: Vector
    curvature: Vector
    centre: Vector


def smooth_top_mean(scores: Vector, K: int, width: float, given: Vector) -> SmoothThreshold:
    """The smooth mean of the K largest scores.

    The maximiser is ``p_j = clip((s_j - level) / width + given_j, 0, 1) / K``.
    """
    lifted = scores + width * given
    # All K largest count fully at the lower end, and at the upper end only those above it.
    kth = float(np.partition(lifted, len(lifted) - K)[len(lifted) - K])
    low, high = kth - width, kth
    certain = np.count_nonzero(lifted >= high + width)
    window = lifted[(lifted > low) & (lifted < high + width)]

    def excess(level: float) -> float:
        return certain + float(np.sum(np.clip((window - level) / width, 0.0, 1.0))) - K

    level = low if excess(low) <= 0.0 else brentq(excess, low, high, xtol=1e-14 * width)
    slope = np.clip((lifted - level) / width, 0.0, 1.0)
    share = slope / np.sum(slope)
    free = (slope > 0.0) & (slope < 1.0)
    n_free = float(np.count_nonzero(free))
    value = float(share @ scores) - 0.5 * K * width * float(np.sum((share - given / K) ** 2))
    return SmoothThreshold(value, share, slope, free / (K * width), free / max(1.0, n_free))


def smooth_quantile(
    scores: Vector, budget: float, theta: float, surrogate: Surrogate, width: float, given: Vector
) -> SmoothThreshold:
    """The smooth surrogate quantile.

    The sum is convex and falls in ``t``: Newton's steps from the left of the root stay there.
    """
    kinked = surrogate.curvature == 0.0
    loss = SmoothLoss(surrogate, theta * width if kinked else 0.0, given)
    t = surrogate_root(scores, budget, theta, surrogate)
    if kinked:
        t -= 0.5 * width
        for _ in range(100):
            x = theta * (scores - t)
            step = (float(np.sum(loss.value(x))) - budget) / (theta * float(np.sum(loss.slope(x))))
            t += step
            if step <= 1e-15 * max(abs(t), width):
                break
    x = theta * (scores - t)
    slope = loss.slope(x)
    sum_slope = float(np.sum(slope))
    share = slope / sum_slope
    return SmoothThreshold(t, share, slope, (theta / sum_slope) * loss.curvature(x), share)
