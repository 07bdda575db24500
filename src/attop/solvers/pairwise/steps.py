"""One step of the coordinate descent: the best partner of a variable, and the update.

Dual variables are counted through: the alphas first, then the betas.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attop.problem import Family, Problem
from attop.solvers.pairwise.rules import (
    alpha_alpha,
    alpha_beta_norm,
    alpha_beta_priced,
    alpha_beta_tied,
    beta_beta_norm,
    beta_beta_priced,
    beta_beta_tied,
)

TIED_CAP, PRICED_CAP = int(Family.TIED_CAP), int(Family.PRICED_CAP)
#: Least curvature of a move, relative to the kernel's diagonal: duplicates, and a positive
#: that is its own competitor, have none, and then the bounds decide how far the move goes.
FLAT = 1e-12


class Dual(NamedTuple):
    """One problem as compiled code takes it: rows of the variables, and numbers."""

    positives: NDArray[np.intp]
    competitors: NDArray[np.intp]
    family: int
    K: int
    alpha_max: float
    quadratic_alpha: float
    linear_beta: float
    price: float

    @classmethod
    def of(cls, problem: Problem) -> Dual:
        """Translate `problem`."""
        price = 0.0
        if problem.family == Family.PRICED_CAP:
            price = problem.cap_price
        elif problem.family == Family.NORM:
            price = problem.norm_price
        return cls(
            np.asarray(problem.positives, dtype=np.intp),
            np.asarray(problem.competitors, dtype=np.intp),
            int(problem.family),
            int(problem.K),
            float(problem.alpha_max),
            float(problem.quadratic_alpha),
            float(problem.linear_beta),
            float(price),
        )


class Point(NamedTuple):
    """The dual variables, and the scores ``<w, phi>`` of all rows that belong to them."""

    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]
    scores: NDArray[np.float64]


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
def summarise(point: Point) -> Betas:
    """Sum of the alphas, norm and three largest of the betas.

    Three, because a rule asks for the largest beta apart from up to two.
    """
    first, second = -1, -1
    largest, second_largest, third_largest = 0.0, 0.0, 0.0
    norm2 = 0.0
    for j in range(len(point.beta)):
        value = point.beta[j]
        norm2 += value * value
        if first < 0 or value > largest:
            third_largest, second_largest, largest = second_largest, largest, value
            second, first = first, j
        elif second < 0 or value > second_largest:
            third_largest, second_largest, second = second_largest, value, j
        elif value > third_largest:
            third_largest = value
    total = point.alpha.sum()
    return Betas(total, norm2, first, second, largest, second_largest, third_largest)


@njit(cache=True, nogil=True)
def largest_apart_from(betas: Betas, j: int, k: int) -> float:
    """The largest beta other than those numbered `j` and `k`; 0 if there is none."""
    if betas.first not in (j, k):
        return betas.largest
    if betas.second not in (j, k):
        return betas.second_largest
    return betas.third_largest


@njit(cache=True, nogil=True)
def row_of(dual: Dual, v: int) -> int:
    """Row of the kernel matrix of variable `v`."""
    n_alpha = len(dual.positives)
    return dual.positives[v] if v < n_alpha else dual.competitors[v - n_alpha]


@njit(cache=True, nogil=True)
def up_rate(dual: Dual, point: Point, v: int) -> float:
    """Rate of the dual as ``w`` moves by ``phi_v``: an alpha rises, or a beta falls."""
    n_alpha = len(dual.positives)
    score = point.scores[row_of(dual, v)]
    if v < n_alpha:
        return 1.0 - score - dual.quadratic_alpha * point.alpha[v]
    return -dual.linear_beta - score


@njit(cache=True, nogil=True)
def pair_step(
    dual: Dual, point: Point, betas: Betas, k: int, partner: int, distance2: float
) -> tuple[float, float]:
    """Best step of the pair of variables `k` and `partner`, and its gain.

    `distance2` is ``|phi_k - phi_l|^2``, positive.
    """
    n_alpha = len(dual.positives)
    if k >= n_alpha and partner < n_alpha:
        k, partner = partner, k
    slope = up_rate(dual, point, k) - up_rate(dual, point, partner)
    if partner < n_alpha:
        curvature = distance2 + 2.0 * dual.quadratic_alpha
        return alpha_alpha(slope, curvature, point.alpha[k], point.alpha[partner], dual.alpha_max)
    beta_partner = point.beta[partner - n_alpha]
    if k < n_alpha:
        curvature = distance2 + dual.quadratic_alpha
        alpha, other = point.alpha[k], largest_apart_from(betas, partner - n_alpha, -1)
        if dual.family == TIED_CAP:
            return alpha_beta_tied(
                slope, curvature, alpha, beta_partner, dual.alpha_max, other, betas.total, dual.K
            )
        if dual.family == PRICED_CAP:
            return alpha_beta_priced(
                slope, curvature, alpha, beta_partner, dual.alpha_max, other, dual.price
            )
        return alpha_beta_norm(slope, curvature, alpha, beta_partner, betas.norm2, dual.price)
    beta_k, slope = point.beta[k - n_alpha], -slope
    if dual.family == TIED_CAP:
        return beta_beta_tied(slope, distance2, beta_k, beta_partner, betas.total / dual.K)
    if dual.family == PRICED_CAP:
        other = largest_apart_from(betas, k - n_alpha, partner - n_alpha)
        return beta_beta_priced(slope, distance2, beta_k, beta_partner, other, dual.price)
    return beta_beta_norm(slope, distance2, beta_k, beta_partner, betas.norm2, dual.price)


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
    betas = summarise(point)
    row = row_of(dual, k)
    best, best_step, best_gain = -1, 0.0, 0.0
    for partner in range(len(point.alpha) + len(point.beta)):
        if partner == k:
            continue
        partner_row = row_of(dual, partner)
        size = diagonal[row] + diagonal[partner_row]
        distance2 = max(size - 2.0 * column[partner_row], FLAT * size, 1e-300)
        step, gain = pair_step(dual, point, betas, k, partner, distance2)
        if gain > best_gain:
            best, best_step, best_gain = partner, step, gain
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
    n_alpha = len(dual.positives)
    if k >= n_alpha and partner < n_alpha:
        k, partner, column_k, column_partner = partner, k, column_partner, column_k
    # Steps that end at a bound must end there exactly, not an ulp beside it.
    if k < n_alpha:
        point.alpha[k] = min(max(point.alpha[k] + step, 0.0), dual.alpha_max)
    else:
        point.beta[k - n_alpha] = max(point.beta[k - n_alpha] + step, 0.0)
    if partner < n_alpha:
        point.alpha[partner] = min(max(point.alpha[partner] - step, 0.0), dual.alpha_max)
    elif k < n_alpha:
        point.beta[partner - n_alpha] = max(point.beta[partner - n_alpha] + step, 0.0)
    else:
        point.beta[partner - n_alpha] = max(point.beta[partner - n_alpha] - step, 0.0)
    change = step if k < n_alpha else -step
    for i in range(len(point.scores)):
        point.scores[i] += change * (column_k[i] - column_partner[i])
