"""Projections onto the feasible sets of the duals.

The coordinate descent of the paper begins at the projection of a random point; the
functions here are also of use to anyone who needs a feasible point near a given one,
for example after a warm start.  Both follow the paper's initialisation theorems: the
optimality conditions of the projection are two equations in two numbers, one of which
is eliminated, and what remains is a monotone function of one variable with a bracket
known beforehand, so that no input can send the search astray.

With weights the point and the set are those in which every coordinate is there in so many copies:
by symmetry the copies of the projection are equal, and all sums become weighted ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from attop._weights import unit_weights
from attop.thresholds import top_mean

__all__ = ["project_patmat", "project_topk", "project_without_cap"]

Vector = NDArray[np.float64]


def project_topk(
    alpha: ArrayLike,
    beta: ArrayLike,
    K: int,
    C: float = np.inf,
    alpha_weights: Vector | None = None,
    beta_weights: Vector | None = None,
) -> tuple[Vector, Vector]:
    r"""Project onto the feasible set of the top-K family.

    The set consists of all pairs with

    .. math::

        \sum_i \alpha_i = \sum_j \beta_j, \qquad
        0 \le \alpha_i \le C, \qquad
        0 \le \beta_j \le \frac{1}{K} \sum_i \alpha_i .

    Parameters
    ----------
    alpha : array-like of shape (n_positives,)
        Any real numbers.
    beta : array-like of shape (n_competitors,)
        Any real numbers.
    K : int
        Number of top scores averaged by the threshold, from 1 to ``n_competitors``.
    C : float, default=inf
        Upper bound of the alphas: the weight of the loss for the hinge, ``inf`` for the
        quadratic hinge.
    alpha_weights, beta_weights : ndarray, optional
        Copies of each coordinate, which move together; one of each by default.

    Returns
    -------
    alpha, beta : ndarray
        The nearest feasible pair in the Euclidean norm.

    Notes
    -----
    With :math:`\mu` the cap and :math:`\lambda` the multiplier of the equality, the
    solution is

    .. math::

        \beta_j = \mathrm{clip}_{[0, \mu]}(\beta^0_j + \lambda), \qquad
        \alpha_i = \mathrm{clip}_{[0, C]}\Big(\alpha^0_i - \lambda
            + \frac{1}{K} \sum_j \max(0, \beta^0_j + \lambda - \mu)\Big).

    For a given :math:`\mu` the equation :math:`\sum_j \beta_j = K \mu` yields
    :math:`\lambda(\mu)` in linear time after one sort, and
    :math:`\sum_i \alpha_i - K \mu` decreases in :math:`\mu`.  The set contains the
    origin, so no coordinate of the projection exceeds the norm of the input, which
    bounds :math:`\mu` from above.
    """
    alpha, beta = _as_vector(alpha, "alpha"), _as_vector(beta, "beta")
    _check_upper_bound("C", C)
    of_alpha, of_beta = _weights(alpha, alpha_weights), _weights(beta, beta_weights)
    copies = float(np.sum(of_beta))
    if not 1 <= K <= copies:
        raise ValueError(
            f"The 'K' parameter of project_topk must be in [1, {copies:g}], the number of "
            f"betas. Got {K} instead."
        )
    top = top_mean(beta, K, weights=of_beta)
    if alpha.max() + top <= 0:
        return np.zeros_like(alpha), np.zeros_like(beta)
    order = np.argsort(-beta)
    descending, falling_weights = -beta[order], of_beta[order]

    def at(cap: float) -> tuple[Vector, Vector]:
        shift = _shift_for_cap(descending, falling_weights, cap, K)
        relief = float(np.dot(of_beta, np.maximum(beta + shift - cap, 0.0))) / K
        return np.clip(alpha - shift + relief, 0.0, C), np.clip(beta + shift, 0.0, cap)

    def excess(cap: float) -> float:
        if cap == 0.0:  # the limit from the right
            return float(np.dot(of_alpha, np.clip(alpha + top, 0.0, C)))
        return float(np.dot(of_alpha, at(cap)[0])) - K * cap

    norm = float(np.sqrt(np.dot(of_alpha, alpha**2) + np.dot(of_beta, beta**2)))
    n_alphas = float(np.sum(of_alpha))
    highest = min(np.sqrt(n_alphas) * norm, n_alphas * C) / K
    root = _monotone_root(excess, 0.0, highest)
    new_alpha, new_beta, _ = _balance(*at(root), of_alpha, of_beta)
    return new_alpha, np.minimum(new_beta, np.dot(of_alpha, new_alpha) / K)


def project_patmat(
    alpha: ArrayLike,
    beta: ArrayLike,
    delta: float,
    theta: float = np.inf,
    C: float = np.inf,
    alpha_weights: Vector | None = None,
    beta_weights: Vector | None = None,
) -> tuple[Vector, Vector, float]:
    r"""Project onto the feasible set of the Pat&Mat family.

    The set consists of all triples with

    .. math::

        \sum_i \alpha_i = \sum_j \beta_j, \qquad
        0 \le \alpha_i \le C, \qquad
        0 \le \beta_j \le \vartheta \delta, \qquad
        \delta \ge 0 .

    Parameters
    ----------
    alpha : array-like of shape (n_positives,)
        Any real numbers.
    beta : array-like of shape (n_competitors,)
        Any real numbers.
    delta : float
        Any real number.
    theta : float, default=inf
        Scale of the surrogate for the hinge; ``inf``, that is no cap on the betas, for
        the quadratic hinge.
    C : float, default=inf
        Upper bound of the alphas: the weight of the loss for the hinge, ``inf`` for the
        quadratic hinge.
    alpha_weights, beta_weights : ndarray, optional
        Copies of each coordinate, which move together; one of each by default.

    Returns
    -------
    alpha, beta : ndarray
        The nearest feasible point in the Euclidean norm.
    delta : float
        Its last coordinate.

    Notes
    -----
    With :math:`\lambda` the multiplier of the equality and
    :math:`\vartheta \delta = \lambda + \mu`, the solution is

    .. math::

        \alpha_i = \mathrm{clip}_{[0, C]}(\alpha^0_i - \lambda), \qquad
        \beta_j = \mathrm{clip}_{[0, \lambda + \mu]}(\beta^0_j + \lambda), \qquad
        \lambda + \mu = \vartheta \delta^0
            + \vartheta^2 \sum_j \max(0, \beta^0_j - \mu).

    The last equation gives :math:`\lambda(\mu)`, and
    :math:`\sum_i \alpha_i - \sum_j \beta_j` does not decrease in :math:`\mu`, on the whole
    real line when a negative :math:`\lambda + \mu` is read as zero.
    """
    alpha, beta = _as_vector(alpha, "alpha"), _as_vector(beta, "beta")
    _check_upper_bound("C", C)
    _check_upper_bound("theta", theta)
    delta = float(delta)
    if not np.isfinite(delta):
        raise ValueError(
            f"The 'delta' parameter of project_patmat must be finite. Got {delta} instead."
        )
    if np.isinf(theta):
        return *project_without_cap(alpha, beta, C, alpha_weights, beta_weights), max(delta, 0.0)
    of_alpha, of_beta = _weights(alpha, alpha_weights), _weights(beta, beta_weights)
    if delta <= -theta * np.dot(of_beta, np.maximum(beta + alpha.max(), 0.0)):
        return np.zeros_like(alpha), np.zeros_like(beta), 0.0

    def at(mu: float) -> tuple[Vector, Vector, float]:
        cap = theta * delta + theta**2 * float(np.dot(of_beta, np.maximum(beta - mu, 0.0)))
        shift, cap = cap - mu, max(cap, 0.0)
        return np.clip(alpha - shift, 0.0, C), np.clip(beta + shift, 0.0, cap), cap

    def excess(mu: float) -> float:
        new_alpha, new_beta, _ = at(mu)
        return float(np.dot(of_alpha, new_alpha) - np.dot(of_beta, new_beta))

    # All alphas vanish at the first end, all betas at the second.
    all_alphas_zero = theta * delta - alpha.max()
    all_betas_zero = beta.max() + max(theta * delta, 0.0)
    new_alpha, new_beta, cap = at(_monotone_root(excess, all_alphas_zero, all_betas_zero))
    new_alpha, new_beta, ratio = _balance(new_alpha, new_beta, of_alpha, of_beta)
    return new_alpha, new_beta, cap * ratio / theta


def project_without_cap(
    alpha: ArrayLike,
    beta: ArrayLike,
    C: float = np.inf,
    alpha_weights: Vector | None = None,
    beta_weights: Vector | None = None,
    beta_max: float = np.inf,
) -> tuple[Vector, Vector]:
    """Project onto ``sum(alpha) == sum(beta)``, ``0 <= alpha <= C``, ``0 <= beta <= beta_max``.

    The other parameters, and what is returned, are those of `project_topk`.
    """
    alpha, beta = _as_vector(alpha, "alpha"), _as_vector(beta, "beta")
    of_alpha, of_beta = _weights(alpha, alpha_weights), _weights(beta, beta_weights)

    def at(shift: float) -> tuple[Vector, Vector]:
        return np.clip(alpha - shift, 0.0, C), np.clip(beta + shift, 0.0, beta_max)

    def excess(shift: float) -> float:
        new_alpha, new_beta = at(shift)
        return float(np.dot(of_alpha, new_alpha) - np.dot(of_beta, new_beta))

    shift = _monotone_root(excess, -beta.max(), alpha.max())
    new_alpha, new_beta, _ = _balance(*at(shift), of_alpha, of_beta)
    return new_alpha, np.minimum(new_beta, beta_max)


@njit(cache=True, nogil=True)
def _shift_for_cap(descending: Vector, weights: Vector, cap: float, K: int) -> float:
    """Solve ``sum(clip(beta + shift, 0, cap)) == K * cap`` for the shift in linear time.

    ``descending`` is ``-beta`` in increasing order.  One index runs over the points where
    a beta leaves zero, another over those where it arrives at the cap; between two such
    points the sum grows linearly with the number, that is the weight, of betas on their way.
    """
    n = len(descending)
    entering, leaving, moving = 1, 0, weights[0]
    shift, missing = descending[0], K * cap
    while leaving < n:
        if entering < n and descending[entering] <= descending[leaving] + cap:
            target, change = descending[entering], weights[entering]
            entering += 1
        else:
            target, change = descending[leaving] + cap, -weights[leaving]
            leaving += 1
        growth = moving * (target - shift)
        if growth >= missing:
            return shift + missing / moving
        missing -= growth
        shift = target
        moving += change
    return shift


def _monotone_root(function: Callable[[float], float], start: float, end: float) -> float:
    """Root of a monotone function between `start` and `end`, whichever is larger.

    An end whose sign is already right, be it by rounding, is the answer.
    """
    at_start, at_end = function(start), function(end)
    if at_start == 0.0:
        return start
    if at_end == 0.0 or (at_start > 0) == (at_end > 0):
        return end
    return brentq(function, start, end, xtol=1e-300, rtol=8.9e-16, maxiter=2000)


def _balance(
    alpha: Vector, beta: Vector, alpha_weights: Vector, beta_weights: Vector
) -> tuple[Vector, Vector, float]:
    """Make the sums of both sides equal to the last digit that arithmetic allows.

    The root is exact up to rounding, which a steep function turns into a visible
    difference of the sums.  Scaling the betas, and with them their cap, by the returned
    ratio removes it and leaves every other constraint intact.
    """
    total_alpha, total_beta = np.dot(alpha_weights, alpha), np.dot(beta_weights, beta)
    if total_alpha == 0.0 or total_beta == 0.0:
        return np.zeros_like(alpha), np.zeros_like(beta), 1.0
    ratio = float(total_alpha / total_beta)
    return alpha, beta * ratio, ratio


def _weights(values: Vector, weights: Vector | None) -> Vector:
    return unit_weights(len(values)) if weights is None else weights


def _as_vector(values: ArrayLike, name: str) -> Vector:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or len(vector) == 0 or not np.isfinite(vector).all():
        raise ValueError(
            f"The '{name}' parameter of a projection must be a non-empty vector of finite "
            f"numbers. Got an array of shape {vector.shape} instead."
        )
    return vector


def _check_upper_bound(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(
            f"The '{name}' parameter of a projection must be positive. Got {value} instead."
        )
