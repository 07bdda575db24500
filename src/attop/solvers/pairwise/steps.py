"""One step of the coordinate descent: the best partner of a variable, and the update.

Dual variables are counted through: the alphas first, then the betas.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attop.families.base import Cap
from attop.problem import Problem
from attop.solvers.pairwise.rules import (
    alpha_alpha,
    alpha_beta,
    alpha_beta_norm,
    alpha_beta_priced,
    alpha_beta_tied,
    beta_beta_norm,
    beta_beta_priced,
    beta_beta_tied,
)

#: Which rules the betas follow: those of a tied cap, of a priced one, of their norm, or of a bound.
TIED, PRICED, NORM, BOUNDED = 0, 1, 2, 3
#: The rules of each kind of cap.
_RULES = {Cap.TIED: TIED, Cap.PRICED: PRICED, Cap.NONE: BOUNDED}
#: Least curvature of a move, relative to the kernel's diagonal: duplicates, and a positive
#: that is its own competitor, have none, and then the bounds decide how far the move goes.
FLAT = 1e-12


class Dual(NamedTuple):
    """One problem as compiled code takes it.

    Numbers only: a tuple of arrays would cost a count of references at each inner call.
    """

    n_alpha: int
    rules: int
    K: int
    alpha_max: float
    quadratic_alpha: float
    linear_beta: float
    price: float
    beta_max: float
    quadratic_beta: float

    @classmethod
    def of(cls, problem: Problem) -> Dual:
        """Translate `problem`."""
        betas = problem.betas
        rules = NORM if betas.norm_price else _RULES[betas.cap]
        return cls(
            problem.n_positives,
            rules,
            betas.K,
            float(problem.alpha_max),
            float(problem.quadratic_alpha),
            betas.linear,
            betas.price + betas.norm_price,  # one of them at most
            float(betas.bound),
            float(betas.curvature),
        )


class Point(NamedTuple):
    """The dual variables and what belongs to them.

    Attributes
    ----------
    values : ndarray of float64
        The alphas, then the betas, of one copy of their samples.
    rows : ndarray of intp
        Row of the kernel matrix of each variable.
    scores : ndarray of float64
        Scores ``<w, phi>`` of all rows of the kernel matrix.
    weights : ndarray of float64
        Copies of the sample of each variable.
    """

    values: NDArray[np.float64]
    rows: NDArray[np.intp]
    scores: NDArray[np.float64]
    weights: NDArray[np.float64]


class Betas(NamedTuple):
    """What a step needs to know of all betas together."""

    total: float
    norm2: float
    first: int
    second: int
    largest: float
    second_largest: float
    third_largest: float


@njit(cache=True, nogil=True)
def summarise(dual: Dual, values: NDArray[np.float64], weights: NDArray[np.float64]) -> Betas:
    """Sum of the alphas, norm and three largest of the betas.

    Three, because a rule asks for the largest beta apart from up to two.
    """
    first, second = -1, -1
    largest, second_largest, third_largest = 0.0, 0.0, 0.0
    norm2 = 0.0
    for v in range(dual.n_alpha, len(values)):
        value = values[v]
        norm2 += weights[v] * value * value
        if first < 0 or value > largest:
            third_largest, second_largest, largest = second_largest, largest, value
            second, first = first, v
        elif second < 0 or value > second_largest:
            third_largest, second_largest, second = second_largest, value, v
        elif value > third_largest:
            third_largest = value
    total = 0.0
    for v in range(dual.n_alpha):
        total += weights[v] * values[v]
    return Betas(total, norm2, first, second, largest, second_largest, third_largest)


@njit(cache=True, nogil=True)
def largest_apart_from(betas: Betas, v: int, u: int) -> float:
    """The largest beta other than the variables `v` and `u`; 0 if there is none."""
    if betas.first != v and betas.first != u:
        return betas.largest
    if betas.second != v and betas.second != u:
        return betas.second_largest
    return betas.third_largest


@njit(cache=True, nogil=True)
def up_rate(dual: Dual, v: int, value: float, score: float) -> float:
    """Rate of the dual as ``w`` moves by ``phi_v``: an alpha rises, or a beta falls."""
    if v < dual.n_alpha:
        return 1.0 - score - dual.quadratic_alpha * value
    return -dual.linear_beta - score + dual.quadratic_beta * value


@njit(cache=True, nogil=True)
def pair_step(
    dual: Dual,
    betas: Betas,
    k: int,
    partner: int,
    value_k: float,
    value_partner: float,
    weight_k: float,
    weight_partner: float,
    slope: float,
    distance2: float,
) -> tuple[float, float]:
    """Best step of the pair of variables `k` and `partner`, and its gain.

    `slope` is the up rate of `k` less that of `partner`, and `distance2` is
    ``|phi_k - phi_partner|^2``, positive.
    """
    if k >= dual.n_alpha and partner < dual.n_alpha:
        k, partner, value_k, value_partner = partner, k, value_partner, value_k
        weight_k, weight_partner = weight_partner, weight_k
        slope = -slope
    x, y, v, u = value_k, value_partner, weight_k, weight_partner
    if partner < dual.n_alpha:
        curvature = distance2 + dual.quadratic_alpha * (1.0 / v + 1.0 / u)
        return alpha_alpha(slope, curvature, x, y, dual.alpha_max, v, u)
    if k < dual.n_alpha:
        curvature = distance2 + dual.quadratic_alpha / v
        if dual.rules == NORM:
            return alpha_beta_norm(slope, curvature, x, y, betas.norm2, dual.price, v, u)
        if dual.rules == BOUNDED:
            curvature += dual.quadratic_beta / u
            return alpha_beta(slope, curvature, x, y, dual.alpha_max, dual.beta_max, v, u)
        other, most = largest_apart_from(betas, partner, -1), dual.alpha_max
        if dual.rules == PRICED:
            return alpha_beta_priced(slope, curvature, x, y, most, other, dual.price, v, u)
        return alpha_beta_tied(slope, curvature, x, y, most, other, betas.total, dual.K, v, u)
    slope = -slope
    if dual.rules == BOUNDED:  # as two alphas
        curvature = distance2 + dual.quadratic_beta * (1.0 / v + 1.0 / u)
        return alpha_alpha(slope, curvature, x, y, dual.beta_max, v, u)
    if dual.rules == NORM:
        return beta_beta_norm(slope, distance2, x, y, betas.norm2, dual.price, v, u)
    if dual.rules == PRICED:
        other = largest_apart_from(betas, k, partner)
        return beta_beta_priced(slope, distance2, x, y, other, dual.price, v, u)
    return beta_beta_tied(slope, distance2, x, y, betas.total / dual.K, v, u)


@njit(cache=True, nogil=True)
def best_partner(
    dual: Dual,
    point: Point,
    k: int,
    column: NDArray[np.float64],
    diagonal: NDArray[np.float64],
) -> tuple[int, float, float]:
    """The variable whose step together with `k` gains most, the step and the gain.

    `column` is the column of the kernel matrix that belongs to `k`.  The partner is -1
    where no step gains anything.
    """
    values, rows, scores, weights = point
    betas = summarise(dual, values, weights)
    value_k, size_k = values[k], diagonal[rows[k]]
    rate_k = up_rate(dual, k, value_k, scores[rows[k]])
    best, best_step, best_gain = -1, 0.0, 0.0
    for v in range(len(values)):
        if v == k:
            continue
        row = rows[v]
        size = size_k + diagonal[row]
        distance2 = max(size - 2.0 * column[row], FLAT * size, 1e-300)
        slope = rate_k - up_rate(dual, v, values[v], scores[row])
        step, gain = pair_step(
            dual, betas, k, v, value_k, values[v], weights[k], weights[v], slope, distance2
        )
        if gain > best_gain:
            best, best_step, best_gain = v, step, gain
    return best, best_step, best_gain


@njit(cache=True, nogil=True)
def move(
    dual: Dual,
    point: Point,
    k: int,
    partner: int,
    step: float,
    column_k: NDArray[np.float64],
    column_partner: NDArray[np.float64],
) -> None:
    """Make the step of the pair `k`, `partner`, in place."""
    same_kind = (k < dual.n_alpha) == (partner < dual.n_alpha)
    back = -step if same_kind else step
    shift(dual, point.values, k, step / point.weights[k])
    shift(dual, point.values, partner, back / point.weights[partner])
    change = step if k < dual.n_alpha else -step
    for i in range(len(point.scores)):
        point.scores[i] += change * (column_k[i] - column_partner[i])


@njit(cache=True, nogil=True)
def shift(dual: Dual, values: NDArray[np.float64], v: int, step: float) -> None:
    """Change a variable; a step that ends at a bound ends there exactly."""
    value = max(values[v] + step, 0.0)
    values[v] = min(value, dual.alpha_max if v < dual.n_alpha else dual.beta_max)
