"""Thresholds: what the scores at the top are compared with, as functions of the scores.

A sample is called positive when its score reaches the threshold.  A weight counts the copies of
a score: every threshold is that of the scores repeated.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attop._weights import are_unit, of_rows, unit_weights, weighted_sum
from attop.surrogates import Surrogate, as_floating, as_surrogate

#: Sums of weights may differ by so much, relative to them.
_ROUNDING = 1e-12
#: So many scores are sorted.  (100, 1,000 and 10,000 of them: 0.02, 0.03 and 0.14 ms; by Newton's
#: steps mostly 0.02 to 0.15, 0.06 to 0.3 and 0.2 to 0.7 ms.)
_FEW = 10_000
#: Of more, one in so many tells about where the root is.  (50,000 normal scores, 5 % of
#: them, milliseconds without and with: hinge 0.8 and 0.24, quadratic hinge 3.9 and 0.3.)
_ONE_IN = 16


def top_mean(
    scores: ArrayLike,
    K: int,
    overwrite: bool = False,
    weights: NDArray[np.float64] | None = None,
) -> float:
    """Mean of the `K` largest scores, ``(1/K) sum_{j <= K} s_[j]``.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of the competitors.
    K : int
        How many to average, from 1 to n.
    overwrite : bool
        Whether an array of scores may be reordered, which saves a copy.
    weights : ndarray of shape (n,), optional
        Copies of each score; one by default.

    Returns
    -------
    float
    """
    scores = as_floating(scores)
    if weights is not None and not are_unit(weights):
        which, copies = top_copies(scores, K, weights)
        return float(np.dot(copies, scores[which]) / np.sum(copies))
    if not 1 <= K <= len(scores):
        raise ValueError(f"K must be from 1 to the number of scores, {len(scores)}. Got {K}.")
    if not overwrite:
        scores = scores.copy()
    scores.partition(len(scores) - K)
    return float(np.mean(scores[len(scores) - K :]))


def top_copies(
    scores: NDArray[np.float64], K: float, weights: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The scores that the `K` largest copies have, in falling order, and how many of each.

    The last one may be there with a part of its copies only.
    """
    n, copies = len(scores), float(np.sum(weights))
    if not 0 < K <= copies * (1.0 + _ROUNDING):
        raise ValueError(f"K must be positive and at most the copies, {copies}. Got {K}.")
    size = min(n, 2 * math.ceil(K * n / copies) + 8)
    while True:
        which = np.argpartition(scores, n - size)[n - size :] if size < n else np.arange(n)
        if size == n or float(np.sum(weights[which])) >= K:
            break
        size = min(n, 2 * size)
    which = which[np.argsort(-scores[which], kind="stable")]
    so_far = np.cumsum(weights[which])
    last = min(int(np.searchsorted(so_far, K * (1.0 - _ROUNDING))), len(which) - 1)
    which = which[: last + 1]
    counted = weights[which].copy()
    counted[last] -= max(0.0, so_far[last] - K)
    return which, counted


def quantile(scores: ArrayLike, tau: float, weights: NDArray[np.float64] | None = None) -> float:
    """Top quantile, ``max { t : share of scores >= t is at least tau }``.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores of the competitors.
    tau : float
        Share, in (0, 1].
    weights : ndarray of shape (n,), optional
        Copies of each score; one by default.

    Returns
    -------
    float
        One of the scores.
    """
    scores = np.asarray(scores, dtype=np.float64)
    n = len(scores)
    if not (n > 0 and 0.0 < tau <= 1.0):
        raise ValueError(f"quantile needs scores and tau in (0, 1]. Got {n} scores, tau={tau}.")
    if weights is not None and not are_unit(weights):
        which, _ = top_copies(scores, tau * float(np.sum(weights)), weights)
        return float(scores[which[-1]])
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
    weights: NDArray[np.float64] | None = None,
) -> float:
    """The root ``t`` of ``sum v_j l(theta (s_j - t)) = total``, exact up to rounding.

    Scores too low for the sum may be left out, since they add nothing to it.  With
    ``x_j = theta (max s - s_j)`` the equation reads ``sum l(q - 1 - x_j) = total`` where
    ``t = max s - (q - 1) / theta``; between two neighbouring ``x_j`` it is linear or
    quadratic in ``q``, so the piece that holds the root is found first and solved then.
    With `overwrite` the scores are lost, which saves a copy.  The `weights` are ones by default.
    """
    surrogate = as_surrogate(surrogate)
    weights = unit_weights(len(scores)) if weights is None else weights
    if surrogate.value(-1.0) != 0.0:
        raise ValueError(
            "A surrogate quantile needs a surrogate that is 0 up to -1. "
            f"Got {surrogate.name!r} instead."
        )
    if not (len(scores) > 0 and total > 0.0 and theta > 0.0):
        raise ValueError("A surrogate quantile needs scores, and tau and theta above 0.")
    largest = np.max(scores)  # in the precision of the scores
    if not np.isfinite(largest):  # scores that have run away
        return float(largest)
    # The largest score alone makes up the total at q <= max(1, total / weight): larger x never
    # matter, and cutting them there keeps a huge theta from overflowing.
    enough = max(1.0, total / float(weights[int(np.argmax(scores))]))
    with np.errstate(over="ignore"):
        x = np.subtract(largest, scores, out=scores if overwrite else None)
        x *= theta
    np.minimum(x, enough + 1.0, out=x)
    return float(largest - (_root(x, total, enough, surrogate, weights) - 1.0) / theta)


def _root(
    x: NDArray[np.float64],
    total: float,
    above: float,
    surrogate: Surrogate,
    weights: NDArray[np.float64],
) -> float:
    """The root ``q`` of ``sum v l(q - 1 - x) = total``, which is not above a given number.

    The sum of few scores is looked at where each of them begins to count, which tells those that do
    at the root.  Otherwise: the sum is convex and grows with ``q``, so that Newton's steps from the
    right stay there, and what lies above one of them does not matter any more.  The rest is solved
    for as soon as all of it does.
    """
    found = _root_of_few(x, total, surrogate, weights) if len(x) <= _FEW else None
    if found is not None:
        return found
    q = above if len(x) <= _FEW else _to_the_right(x, total, above, surrogate, weights)
    while True:
        below = x < q
        x, weights = x[below], of_rows(weights, below)
        level = surrogate.level(x, total, weights)
        if level > np.max(x):
            return level
        arguments = q - 1.0 - x
        excess = weighted_sum(surrogate.value(arguments), weights) - total
        following = q - excess / weighted_sum(surrogate.slope(arguments), weights)
        if not 0.0 < following < q:  # as near as rounding lets it come
            return q
        q = following


def _to_the_right(
    x: NDArray[np.float64],
    total: float,
    above: float,
    surrogate: Surrogate,
    weights: NDArray[np.float64],
) -> float:
    """A number near the root that is not below it.

    From the root of some of them, if that is on the left, a step of Newton's leads to the right,
    since the sum is convex.
    """
    some, copies = x[::_ONE_IN], weights[::_ONE_IN]
    budget = total * float(np.sum(copies)) / float(np.sum(weights))
    first = int(np.argmin(some))
    enough = float(some[first]) + max(1.0, budget / float(copies[first]))
    q = min(_root(some, budget, enough, surrogate, copies), above)
    below = x < q
    arguments, weights = q - 1.0 - x[below], of_rows(weights, below)
    lacking = total - weighted_sum(surrogate.value(arguments), weights)
    if lacking > 0.0:
        q += lacking / weighted_sum(surrogate.slope(arguments), weights)
    return float(min(q * (1.0 + 1e-12), above))


def _root_of_few(
    x: NDArray[np.float64], total: float, surrogate: Surrogate, weights: NDArray[np.float64]
) -> float | None:
    """The same where sums at all of the numbers tell between which two the root lies.

    None where they do not, by rounding or since the surrogate has none.
    """
    if are_unit(weights):
        x = np.sort(x)
    else:
        order = np.argsort(x)
        x, weights = x[order], weights[order]
    sums = surrogate.sums_at(x, weights)
    if sums is None:
        return None
    count = int(np.searchsorted(sums, total))
    if count == 0:
        return None
    q = surrogate.level(x[:count], total, weights[:count])
    following = x[count] if count < len(x) else np.inf
    return q if x[count - 1] < q <= following else None
