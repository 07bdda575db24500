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
slopes are nearly the right ones.  The quadratic hinge is smooth already; a width other than 0
makes it less steep in the same way, by :math:`l_\mu(x) = \max_{q \ge 0} \; q (1 + x) - q^2 / 4 -
\frac{\mu}{2} (q - \bar q)^2`.

At any ``w``, the slopes :math:`\alpha_i = C l_\mu'(t_\mu - s_i)` and
:math:`\beta = (\sum \alpha) \nabla_s t_\mu` are a feasible point of the dual: every gradient
brings a lower bound on the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from attop.problem import Family, Problem
from attop.thresholds import surrogate_root

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class SmoothLoss:
    """A surrogate with the kink of the hinge smoothed: value, slope and curvature.

    Parameters
    ----------
    surrogate : {"hinge", "quadratic_hinge"}
        Which surrogate; the quadratic hinge is smooth already.
    width : float
        Width of the quadratic piece of the hinge, positive; 0 leaves the quadratic hinge as
        it is.
    given : ndarray
        The slope of each term that the smoothing stays near to.
    """

    surrogate: str
    width: float
    given: Vector

    def value(self, x: Vector) -> Vector:
        """The smooth surrogate of each entry."""
        q = self.slope(x)
        value = q * (1.0 + x) - 0.5 * self.width * (q - self.given) ** 2
        return value - 0.25 * q**2 if self.surrogate == "quadratic_hinge" else value

    def slope(self, x: Vector) -> Vector:
        """First derivative."""
        if self.surrogate == "quadratic_hinge":
            return np.maximum(0.0, (1.0 + x + self.width * self.given) / (0.5 + self.width))
        return np.clip((1.0 + x) / self.width + self.given, 0.0, 1.0)

    def curvature(self, x: Vector) -> Vector:
        """Second derivative, one of its two values where there is none."""
        slope = self.slope(x)
        if self.surrogate == "quadratic_hinge":
            return (slope > 0.0).astype(np.float64) / (0.5 + self.width)
        return ((slope > 0.0) & (slope < 1.0)).astype(np.float64) / self.width


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


def smooth_threshold(
    problem: Problem, scores: Vector, width: float, given: Vector
) -> SmoothThreshold:
    """The smooth threshold at the `scores` of the competitors, near the `given` slopes."""
    if problem.family == Family.TIED_CAP:
        return _smooth_top_mean(scores, problem.K, width, given)
    return _smooth_quantile(problem, scores, width, given)


def _smooth_top_mean(scores: Vector, K: int, width: float, given: Vector) -> SmoothThreshold:
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


def _smooth_quantile(
    problem: Problem, scores: Vector, width: float, given: Vector
) -> SmoothThreshold:
    """The smooth surrogate quantile.

    The sum is convex and falls in ``t``: Newton's steps from the left of the root stay there.
    """
    theta, total = problem.theta, len(problem.competitors) * problem.tau
    hinge = problem.surrogate == "hinge"
    loss = SmoothLoss(problem.surrogate, theta * width if hinge else 0.0, given)
    t = surrogate_root(scores, total, theta, problem.surrogate)
    if hinge:
        t -= 0.5 * width
        for _ in range(100):
            x = theta * (scores - t)
            step = (float(np.sum(loss.value(x))) - total) / (theta * float(np.sum(loss.slope(x))))
            t += step
            if step <= 1e-15 * max(abs(t), width):
                break
    x = theta * (scores - t)
    slope = loss.slope(x)
    sum_slope = float(np.sum(slope))
    share = slope / sum_slope
    return SmoothThreshold(t, share, slope, (theta / sum_slope) * loss.curvature(x), share)
