"""The gains of all partners of a variable at once, in loops that compilers vectorise.

`attop.solvers.pairwise.rules` has the rules, one pair at a time and for all families.  Here are
those of the tied and the priced cap, and of two alphas, for samples without weights, where the
largest other beta is the same for all partners but one or two.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Vector = NDArray[np.float64]
#: There is no NaN, and the order of a maximum does not matter; infinite bounds there are.
_FAST = {"nnan", "nsz", "reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def same_kind_gains(
    values: Vector,
    rates: Vector,
    distances2: Vector,
    value_k: float,
    rate_k: float,
    sign: float,
    most: float,
    penalty: float,
    gains: Vector,
) -> None:
    """Gains of ``k + step``, ``v - step`` for two variables of one kind between 0 and `most`."""
    for v in range(len(values)):
        slope, curvature = sign * (rate_k - rates[v]), distances2[v] + penalty
        lower = max(-value_k, values[v] - most)
        upper = min(most - value_k, values[v])
        step = min(max(slope / curvature, lower), upper)
        gains[v] = step * (slope - 0.5 * curvature * step)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def both_tied_gains(
    values: Vector,
    slopes_less: Vector,
    distances2: Vector,
    value_k: float,
    rate_k: float,
    sign: float,
    k_is_alpha: bool,
    most: float,
    other: float,
    total: float,
    K: int,
    penalty: float,
    gains: Vector,
) -> None:
    """Gains of an alpha and a beta that rise together under the cap ``total / K``."""
    least = -np.inf if K == 1 else min(K * other - total, 0.0)
    faster = 1.0 / max(K - 1.0, 1e-300)
    for v in range(len(values)):
        slope, curvature = sign * (rate_k - slopes_less[v]), distances2[v] + penalty
        alpha = value_k if k_is_alpha else values[v]
        beta = values[v] if k_is_alpha else value_k
        lower = max(max(-alpha, -beta), least)
        room = np.inf if K == 1 else max(total - K * beta, 0.0) * faster
        upper = min(most - alpha, room)
        step = min(max(slope / curvature, lower), upper)
        gains[v] = step * (slope - 0.5 * curvature * step)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def both_priced_gains(
    values: Vector,
    slopes_less: Vector,
    distances2: Vector,
    value_k: float,
    rate_k: float,
    sign: float,
    k_is_alpha: bool,
    most: float,
    other: float,
    price: float,
    penalty: float,
    gains: Vector,
) -> None:
    """Gains of an alpha and a beta that rise together where the largest beta has a price."""
    for v in range(len(values)):
        slope, curvature = sign * (rate_k - slopes_less[v]), distances2[v] + penalty
        alpha = value_k if k_is_alpha else values[v]
        beta = values[v] if k_is_alpha else value_k
        lower, upper = max(-alpha, -beta), most - alpha
        border = min(max(other - beta, lower), upper)
        now = max(beta, other)
        below = min(max(slope / curvature, lower), border)
        above = min(max((slope - price) / curvature, border), upper)
        gain_below = below * (slope - 0.5 * curvature * below)
        gain_below -= price * (max(beta + below, other) - now)
        gain_above = above * (slope - 0.5 * curvature * above)
        gain_above -= price * (max(beta + above, other) - now)
        gains[v] = max(gain_below, gain_above)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def beta_priced_gains(
    values: Vector,
    rates: Vector,
    distances2: Vector,
    value_k: float,
    rate_k: float,
    other: float,
    price: float,
    gains: Vector,
) -> None:
    """Gains of ``k + step``, ``v - step`` of two betas where the largest has a price."""
    for v in range(len(values)):
        slope, curvature, value = rates[v] - rate_k, distances2[v], values[v]
        lower, upper = -value_k, value
        now, middle = max(max(value_k, value), other), 0.5 * (value - value_k)
        left = min(max(min(middle, value - other), lower), upper)
        right = min(max(max(middle, other - value_k), lower), upper)
        one = min(max((slope + price) / curvature, lower), left)
        two = min(max(slope / curvature, left), right)
        three = min(max((slope - price) / curvature, right), upper)
        best = one * (slope - 0.5 * curvature * one)
        best -= price * (max(max(value_k + one, value - one), other) - now)
        gain = two * (slope - 0.5 * curvature * two)
        gain -= price * (max(max(value_k + two, value - two), other) - now)
        best = max(best, gain)
        gain = three * (slope - 0.5 * curvature * three)
        gain -= price * (max(max(value_k + three, value - three), other) - now)
        gains[v] = max(best, gain)


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def rates_of(
    values: Vector, scores: Vector, constant: float, penalty: float, rates: Vector
) -> None:
    """The rates of variables of one kind, by their scores."""
    for v in range(len(values)):
        rates[v] = constant - scores[v] - penalty * values[v]


@njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def distances_of(
    size_k: float, flat: float, column: NDArray[np.floating], sizes: Vector, distances2: Vector
) -> None:
    """``|phi_k - phi_v|^2``, never quite zero."""
    for v in range(len(sizes)):
        size = size_k + sizes[v]
        distances2[v] = max(max(size - 2.0 * column[v], flat * size), 1e-300)


@njit(cache=True, nogil=True, fastmath=_FAST)
def largest(gains: Vector) -> float:
    """The largest of them, or 0; eight at a time, as compilers do not by themselves."""
    a = b = c = d = e = f = g = h = 0.0
    n = len(gains) // 8
    for i in range(n):
        part = gains[8 * i : 8 * i + 8]
        a, b, c, d = max(a, part[0]), max(b, part[1]), max(c, part[2]), max(d, part[3])
        e, f, g, h = max(e, part[4]), max(f, part[5]), max(g, part[6]), max(h, part[7])
    most = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))
    for v in range(8 * n, len(gains)):
        most = max(most, gains[v])
    return most


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_difference(
    scores: Vector, change: float, one: NDArray[np.floating], other: NDArray[np.floating]
) -> None:
    """``scores += change (one - other)``."""
    for i in range(len(scores)):
        scores[i] += change * (np.float64(one[i]) - np.float64(other[i]))
