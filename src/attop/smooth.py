r"""The primal made smooth, with the dual point that belongs to each of its gradients.

The loss and the threshold are maxima over slopes, and a quadratic penalty on the distance of
the slopes from given ones makes them smooth.  With the width :math:`\mu` and the given slopes
:math:`\bar q` and :math:`\bar p`, the hinge and the mean of the K largest scores become

.. math::

    l_\mu(x) &= \max_{0 \le q \le 1} \; q (1 + x) - \frac{\mu}{2} (q - \bar q)^2, \\
    t_\mu(s) &= \max_{0 \le p_j \le 1, \; \sum p_j = K} \;
        \frac{1}{K} \sum_j p_j s_j - \frac{\mu}{2} (p_j - \bar p_j)^2,

and the surrogate quantile the root of :math:`\sum l_{\theta\mu}(\theta (s_j - t)) = m \tau`.
All are below the originals by at most :math:`\mu / 2`, and by much less where the given
slopes are nearly the right ones.  A surrogate whose conjugate has a curvature c is smooth
already; a width other than 0 makes it less steep in the same way, by :math:`l_\mu(x) = \max_{q}
\; q (1 + x) - c q^2 / 2 - \frac{\mu}{2} (q - \bar q)^2`.

At any ``w``, the slopes :math:`\alpha_i = C l_\mu'(t_\mu - s_i)` and
:math:`\beta = (\sum \alpha) \nabla_s t_\mu` are a feasible point of the dual: every gradient
brings a lower bound on the optimum.

All sums are over the copies of the samples, whose slopes are equal; compiled, since Newton's line
search asks for thresholds many times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attop.surrogates import Surrogate

Vector = NDArray[np.float64]

#: Sums may be taken in any order; nothing is said about numbers that are not finite.  (Factors of 0
#: and 1 in the place of branches make sums ten times as fast: 90 and 6 microseconds of 48,000.)
_FAST = {"contract", "nsz", "arcp", "reassoc"}


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

    All are those of one copy.

    Attributes
    ----------
    value : float
        The threshold.
    slope : ndarray
        Its gradient on the scale on which the steepest is 1 (hinge, mean of the largest): what
        the next smoothing may stay near to.
    total : float
        Sum of the slopes of all copies.
    bend : float
        Second derivative ``c`` of those copies whose slope is `free`; the Hessian is
        ``sum c (e_j - q)(e_j - q)'`` over them.
    steepest : float
        Upper bound of the slopes; the lower one is 0.
    centred_on_free : bool
        Whether ``q`` is the mean of the free copies, or the gradient.
    floor : float
        From which score on a competitor has a slope, if the given one is zero.
    """

    value: float
    slope: Vector
    total: float
    bend: float
    steepest: float
    centred_on_free: bool
    floor: float

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which slopes are between their bounds."""
        return (self.slope > 0.0) & (self.slope < self.steepest)

    @property
    def share(self) -> Vector:
        """The gradient: non-negative, and of sum 1 over all copies where any have a slope."""
        return self.slope / self.total if self.total else self.slope

    @property
    def curvature(self) -> Vector:
        """``c`` of each copy, 0 where its slope is at a bound."""
        return np.where(self.free, self.bend, 0.0)

    def centre(self, weights: Vector) -> Vector:
        """``q``, for one copy of each; of sum 1 over all copies where any are free."""
        if not self.centred_on_free:
            return self.share
        return np.where(self.free, 1.0 / max(float(weights @ self.free), 1e-300), 0.0)


def smooth_top_mean(
    scores: Vector,
    weights: Vector,
    K: float,
    width: float,
    given: Vector,
    near: float | None = None,
) -> SmoothThreshold:
    """The smooth mean of the K largest scores.

    The maximiser is ``p_j = clip((s_j - level) / width + given_j, 0, 1)``, its level found by
    Newton's steps from `near`, a guess of it.
    """
    guess, slope = np.nan if near is None else near, np.empty(len(scores))
    value, total, level = _top_mean(scores, weights, float(K), width, given, guess, slope)
    return SmoothThreshold(value, slope, total, 1.0 / (K * width), 1.0, True, level)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _top_mean(scores, weights, K, width, given, guess, slope):
    """Value, sum of the slopes and level; writes the slopes."""
    low, high, copies = np.inf, -np.inf, 0.0
    for j in range(scores.size):
        lifted = scores[j] + width * given[j]
        slope[j] = lifted
        low, high = min(low, lifted), max(high, lifted)
        copies += weights[j]
    level = low - width
    if copies > K * (1.0 + 1e-14):
        level = _level(slope, weights, K, width, guess, low - width, high)
    total, value, distance = 0.0, 0.0, 0.0
    for j in range(scores.size):
        q = min(max((slope[j] - level) / width, 0.0), 1.0)
        slope[j] = q
        total += weights[j] * q
        value += weights[j] * (q * scores[j])
        distance += weights[j] * (q - given[j]) ** 2
    return value / total - 0.5 * width * distance / K, total, level


@njit(cache=True, nogil=True, fastmath=_FAST)
def _level(lifted, weights, K, width, guess, low, high):
    """The root of ``sum v clip((lifted - level) / width, 0, 1) = K``, which falls."""
    level = guess if low < guess < high else 0.5 * (low + high)
    scale = 1.0 / width
    for _ in range(200):
        total, free = 0.0, 0.0
        for j in range(lifted.size):
            x = (lifted[j] - level) * scale
            total += weights[j] * min(max(x, 0.0), 1.0)
            free += weights[j] * ((x > 0.0) & (x < 1.0))
        excess = total - K
        if abs(excess) <= 1e-13 * K:
            break
        if excess > 0.0:
            low = level
        else:
            high = level
        following = level + excess * width / free if free > 0.0 else np.nan
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == level or not low < following < high:
            break
        level = following
    return level


def smooth_quantile(
    scores: Vector,
    weights: Vector,
    budget: float,
    theta: float,
    surrogate: Surrogate,
    width: float,
    given: Vector,
    near: float | None = None,
) -> SmoothThreshold:
    """The smooth surrogate quantile, by Newton's steps from `near`.

    The sum is convex and falls in ``t``: one step leads to the left of the root, and there the
    following ones stay.  A surrogate that is smooth is left as it is.
    """
    curvature = surrogate.curvature
    assert curvature is not None
    scaled = 0.0 if curvature else theta * width
    start = float(np.max(scores)) if near is None else near + 1.0 / theta
    bend = curvature + scaled
    steepest, slope = surrogate.steepest, np.empty(len(scores))
    t = _root(scores, weights, budget, theta, curvature, scaled, steepest, given, start)
    total = _slopes(scores, weights, t, theta, scaled, given, bend, steepest, slope)
    bent = theta / (total * bend) if total else 0.0
    return SmoothThreshold(t, slope, total, bent, steepest, False, t - 1.0 / theta)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _slopes(scores, weights, t, theta, width, given, bend, steepest, slope):
    """Write the slopes of the smooth losses at ``theta (score - t)``, and sum them up."""
    total = 0.0
    for j in range(scores.size):
        x = (1.0 + theta * (scores[j] - t) + width * given[j]) / bend
        slope[j] = min(max(x, 0.0), steepest)
        total += weights[j] * slope[j]
    return total


@njit(cache=True, nogil=True, fastmath=_FAST)
def _root(scores, weights, budget, theta, curvature, width, steepest, given, start):
    """The root ``t`` of ``sum v l(theta (s - t)) = budget`` for the smooth surrogate ``l``."""
    t = start
    scale = 1.0 / (curvature + width)
    for _ in range(200):
        value, total = 0.0, 0.0
        for j in range(scores.size):
            x = 1.0 + theta * (scores[j] - t)
            q = min(max((x + width * given[j]) * scale, 0.0), steepest)
            more = q * x - 0.5 * (width * (q - given[j]) ** 2 + curvature * q * q)
            value += weights[j] * more
            total += weights[j] * q
        if total == 0.0:  # to the right of all that counts
            top = np.max(scores)
            if t <= top:
                break
            t = top
            continue
        step = (value - budget) / (theta * total)
        t += step
        if abs(step) <= 1e-13 * max(abs(t), 1.0 / theta):
            break
    return t


class Opponents(NamedTuple):
    """The positives, whose losses a threshold that is free weighs against those of competitors."""

    scores: Vector
    weights: Vector
    width: float
    given: Vector


def smooth_balance(
    scores: Vector,
    weights: Vector,
    surrogate: Surrogate,
    width: float,
    given: Vector,
    positives: Opponents,
    near: float | None = None,
) -> SmoothThreshold:
    """The threshold at which slopes of the losses of positives and competitors sum up to zero."""
    assert surrogate.curvature is not None
    bend = surrogate.curvature + width
    # From where on each loss has a slope, as the threshold rises, or falls.
    rising = 1.0 - positives.scores + width * positives.given
    falling = 1.0 + scores + width * given
    guess = np.nan if near is None else near + 1.0
    t = balance(rising, positives.weights, falling, weights, bend, surrogate.steepest, guess)
    steepest, slope = surrogate.steepest, np.empty(len(scores))
    total = _slopes(scores, weights, t, 1.0, width, given, bend, steepest, slope)
    bent = 1.0 / (total * bend) if total else 0.0
    return SmoothThreshold(t, slope, total, bent, steepest, True, t - 1.0)


@njit(cache=True, nogil=True, fastmath=_FAST)
def balance(rising, rising_weights, falling, falling_weights, bend, steepest, guess):
    """The root of the slopes of ``rising + t`` less those of ``falling - t``.

    The sum never falls; where it is zero on an interval, any point of it will do.
    """
    low = min(-np.max(rising), np.min(falling)) - bend
    high = max(np.max(falling), bend - np.min(rising))
    t = guess if low < guess < high else 0.5 * (low + high)
    scale = 1.0 / bend
    for _ in range(200):
        up, down, free = 0.0, 0.0, 0.0
        for i in range(rising.size):
            x = (rising[i] + t) * scale
            up += rising_weights[i] * min(max(x, 0.0), steepest)
            free += rising_weights[i] * ((x > 0.0) & (x < steepest))
        for j in range(falling.size):
            x = (falling[j] - t) * scale
            down += falling_weights[j] * min(max(x, 0.0), steepest)
            free += falling_weights[j] * ((x > 0.0) & (x < steepest))
        excess = up - down
        if abs(excess) <= 1e-14 * (up + down):
            break
        if excess > 0.0:
            high = t
        else:
            low = t
        following = t - excess * bend / free if free > 0.0 else np.nan
        if not low < following < high:
            following = 0.5 * (low + high)
        if following == t or not low < following < high:
            break
        t = following
    return t
