"""Thresholds: what the scores at the top are compared with, as functions of the scores.

A sample is called positive when its score reaches the threshold.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attop.surrogates import Surrogate, as_surrogate

#: So many terms of a sum are held at once.
_PIECE = 2**16


def top_mean(scores: ArrayLike, K: int, overwrite: bool = False) -> float:
    """Mean of the `K` largest scores, ``(1/K) sum_{j <= K} s_[j]``.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of the competitors.
    K : int
        How many to average, from 1 to n.
    overwrite : bool
        Whether an array of scores may be reordered, which saves a copy.

    Returns
    -------
    float
    """
    scores = np.asarray(scores, dtype=np.float64)
    if not 1 <= K <= len(scores):
        raise ValueError(f"K must be from 1 to the number of scores, {len(scores)}. Got {K}.")
    if not overwrite:
        scores = scores.copy()
    scores.partition(len(scores) - K)
    return float(np.mean(scores[len(scores) - K :]))


def quantile(scores: ArrayLike, tau: float) -> float:
    """Top quantile, ``max { t : share of scores >= t is at least tau }``.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of the competitors.
    tau : float
        Share, in (0, 1].

    Returns
    -------
    float
        One of the scores.
    """
    scores = np.asarray(scores, dtype=np.float64)
    n = len(scores)
    if not (n > 0 and 0.0 < tau <= 1.0):
        raise ValueError(f"quantile needs scores and tau in (0, 1]. Got {n} scores, tau={tau}.")
    above = math.ceil(tau * n)
    # The product rounds: 0.07 * 100 is above 7, although 7 of 100 are a share of 0.07.
    if above > 1 and (above - 1) / n >= tau:
        above -= 1
    return float(np.partition(scores, n - above)[n - above])


def surrogate_quantile(
    scores: ArrayLike, tau: float, theta: float, surrogate: str | Surrogate
) -> float:
    """The root ``t`` of ``(1/n) sum l(theta (s_j - t)) = tau``.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of the competitors.
    tau : float
        Share of the competitors above the threshold, positive.
    theta : float
        Scale inside the surrogate, positive.
    surrogate : {"hinge", "quadratic_hinge"} or Surrogate
        The surrogate ``l``.

    Returns
    -------
    float
    """
    scores = np.asarray(scores, dtype=np.float64)
    return surrogate_root(scores, len(scores) * tau, theta, surrogate)


def surrogate_root(
    scores: NDArray[np.float64],
    total: float,
    theta: float,
    surrogate: str | Surrogate,
    overwrite: bool = False,
) -> float:
    """The root ``t`` of ``sum l(theta (s_j - t)) = total``, exact up to rounding.

    Scores too low for the sum may be left out, since they add nothing to it.  With
    ``x_j = theta (max s - s_j)`` the equation reads ``sum l(q - 1 - x_j) = total`` where
    ``t = max s - (q - 1) / theta``; between two neighbouring ``x_j`` it is linear or
    quadratic in ``q``, so the piece that holds the root is found first and solved then.
    With `overwrite` the scores are lost, which saves a copy.
    """
    surrogate = as_surrogate(surrogate)
    if surrogate.value(-1.0) != 0.0:
        raise ValueError(
            "A surrogate quantile needs a surrogate that is 0 up to -1. "
            f"Got {surrogate.name!r} instead."
        )
    if not (len(scores) > 0 and total > 0.0 and theta > 0.0):
        raise ValueError("A surrogate quantile needs scores, and tau and theta above 0.")
    largest = float(np.max(scores))
    # The largest score alone makes up the total at q <= max(1, total): larger x never
    # matter, and cutting them there keeps a huge theta from overflowing.
    with np.errstate(over="ignore"):
        x = np.subtract(largest, scores, out=scores if overwrite else None)
        x *= theta
    np.minimum(x, max(1.0, total) + 1.0, out=x)
    x.sort()
    active = _number_active(x, total, surrogate)
    return largest - (surrogate.level(x[:active], total) - 1.0) / theta


def _sum_of_values(x: NDArray[np.float64], q: float, surrogate: Surrogate) -> float:
    """``sum l(q - 1 - x)``, in pieces that take little memory."""
    pieces = (x[start : start + _PIECE] for start in range(0, len(x), _PIECE))
    return sum(float(np.sum(surrogate.value(q - 1.0 - piece))) for piece in pieces)


def _number_active(x: NDArray[np.float64], total: float, surrogate: Surrogate) -> int:
    """How many of the sorted `x` lie below the root ``q`` of ``sum l(q - 1 - x) = total``.

    By bisection over the sum at each ``x`` itself: a running sum would cancel where
    large and small ``x`` meet.
    """
    low, high = 1, len(x)  # x[0] = 0 is always active, as the total is positive
    while low < high:
        middle = (low + high + 1) // 2
        q = x[middle - 1]
        if _sum_of_values(x[: middle - 1], q, surrogate) < total:
            low = middle
        else:
            high = middle - 1
    return low
