"""Steps of the descent on a whole kernel matrix, all partners of a variable looked at at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attop.solvers.pairwise.gains import (
    add_difference,
    beta_priced_gains,
    both_priced_gains,
    both_tied_gains,
    distances_of,
    largest,
    rates_of,
    same_kind_gains,
)
from attop.solvers.pairwise.steps import (
    FLAT,
    PRICED,
    TIED,
    Betas,
    Dual,
    Point,
    largest_apart_from,
    pair_step,
    shift,
    summarise,
)

Vector = NDArray[np.float64]


def can_sweep(dual: Dual, point: Point) -> bool:
    """Whether there are loops for these rules: a shared cap, and no weights."""
    return dual.rules in (TIED, PRICED) and bool(np.all(point.weights == 1.0))


@njit(cache=True, nogil=True)
def run(
    dual: Dual,
    point: Point,
    variable: NDArray[np.int64],
    reuse: NDArray[np.bool_],
    partner: int,
    longest: float,
    matrix: NDArray[Any],
    diagonal: Vector,
) -> tuple[int, float, bool]:
    """A step for each draw, as `attop.solvers.pairwise.columns.KernelColumns.run` makes it."""
    values, rows, scores, weights = point
    n = len(values)
    in_order = n == len(scores) and bool(np.all(rows == np.arange(n)))
    rates, distances2, gains = np.empty(n), np.empty(n), np.empty(n)
    sizes = diagonal if in_order else diagonal[rows]
    betas = summarise(dual, values, weights)
    total = 0.0
    for i in range(len(variable)):
        k = partner if reuse[i] and partner >= 0 else variable[i]
        column = matrix[rows[k]]
        own = scores
        if in_order:
            entries = column
        else:
            entries, own = column[rows], scores[rows]
        m = dual.n_alpha
        rates_of(values[:m], own[:m], 1.0, dual.quadratic_alpha, rates[:m])
        rates_of(values[m:], own[m:], -dual.linear_beta, 0.0, rates[m:])
        distances_of(sizes[k], FLAT, entries, sizes, distances2)
        all_gains(dual, betas, k, values, rates, distances2, gains)
        mend_gains(dual, betas, k, values, rates, distances2, gains)
        best = largest(gains)
        partner, step = -1, 0.0
        if best > 0.0:
            partner = first_equal(gains, best)
            step, best = pair(dual, betas, k, partner, values, rates, distances2)
        if abs(step) > longest:
            return partner, total, True
        if partner >= 0:
            betas = make_step(dual, betas, point, k, partner, step, column, matrix[rows[partner]])
            total += best
    return partner, total, False


@njit(cache=True, nogil=True)
def all_gains(
    dual: Dual,
    betas: Betas,
    k: int,
    values: Vector,
    rates: Vector,
    distances2: Vector,
    gains: Vector,
) -> None:
    """The gains of all partners of `k`, as if none of them were the largest beta."""
    m, most, value, rate = dual.n_alpha, dual.alpha_max, values[k], rates[k]
    penalty, tied, is_alpha = dual.quadratic_alpha, dual.rules == TIED, k < dual.n_alpha
    if is_alpha:
        other, sign = betas.largest, 1.0
        a_values, a_rates, a_distances2, a_gains = values[m:], rates[m:], distances2[m:], gains[m:]
        same_kind_gains(
            values[:m], rates[:m], distances2[:m], value, rate, 1.0, most, 2.0 * penalty, gains[:m]
        )
    else:
        other, sign = largest_apart_from(betas, k, -1), -1.0
        a_values, a_rates, a_distances2, a_gains = values[:m], rates[:m], distances2[:m], gains[:m]
        if tied:  # under a cap that stays
            cap = betas.total / dual.K
            same_kind_gains(
                values[m:], rates[m:], distances2[m:], value, rate, -1.0, cap, 0.0, gains[m:]
            )
        else:
            beta_priced_gains(
                values[m:], rates[m:], distances2[m:], value, rate, other, dual.price, gains[m:]
            )
    if tied:
        both_tied_gains(
            a_values, a_rates, a_distances2, value, rate, sign, is_alpha, most, other,
            betas.total, dual.K, penalty, a_gains,
        )  # fmt: skip
    else:
        both_priced_gains(
            a_values, a_rates, a_distances2, value, rate, sign, is_alpha, most, other,
            dual.price, penalty, a_gains,
        )  # fmt: skip


@njit(cache=True, nogil=True)
def mend_gains(
    dual: Dual,
    betas: Betas,
    k: int,
    values: Vector,
    rates: Vector,
    distances2: Vector,
    gains: Vector,
) -> None:
    """Those of the largest betas, apart from which another is the largest; none with itself."""
    for v in (betas.first, betas.second):
        if v >= 0 and v != k:
            gains[v] = pair(dual, betas, k, v, values, rates, distances2)[1]
    gains[k] = 0.0


@njit(cache=True, nogil=True)
def pair(
    dual: Dual, betas: Betas, k: int, v: int, values: Vector, rates: Vector, distances2: Vector
) -> tuple[float, float]:
    """The best step of a pair, and its gain, by its rule."""
    slope = rates[k] - rates[v]
    return pair_step(dual, betas, k, v, values[k], values[v], 1.0, 1.0, slope, distances2[v])


@njit(cache=True, nogil=True)
def first_equal(gains: Vector, value: float) -> int:
    """The first of the gains that has this value."""
    for v in range(len(gains)):
        if gains[v] == value:
            return v
    return -1


@njit(cache=True, nogil=True)
def make_step(
    dual: Dual,
    betas: Betas,
    point: Point,
    k: int,
    partner: int,
    step: float,
    column_k: NDArray[Any],
    column_partner: NDArray[Any],
) -> Betas:
    """Make the step, and find the largest betas anew where they may be others."""
    values, n_alpha = point.values, dual.n_alpha
    total, known = betas.total, True
    same_kind = (k < n_alpha) == (partner < n_alpha)
    back = -step if same_kind else step
    if not same_kind:
        total += step
    for v, change in ((k, step), (partner, back)):
        before = values[v]
        shift(dual, values, v, change)
        if v >= n_alpha:
            known = known and before < betas.third_largest and values[v] <= betas.third_largest
    add_difference(point.scores, step if k < n_alpha else -step, column_k, column_partner)
    if known:
        return Betas(
            total, 0.0, betas.first, betas.second, betas.largest, betas.second_largest,
            betas.third_largest,
        )  # fmt: skip
    return summarise(dual, values, point.weights)
