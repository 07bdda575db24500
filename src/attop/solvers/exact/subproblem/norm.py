"""The subproblem of duals with the price ``- price * |beta|_2``: plain pairs, exact line search.

There is no cap.  In the norm all copies count, ``|beta|^2 = sum_j v_j beta_j^2``.  It adds
``price * beta_j / |beta|`` to the up rate of a beta, and along a pair move it is the root of a
quadratic, so the gain is a concave function of one variable whose maximum a few safeguarded
Newton steps find.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from attop.solvers.exact.subproblem.block import (
    DOWN,
    FAST,
    UP,
    ZERO,
    Group,
    best_falling,
    best_rising,
    inner,
    largest_gain,
    shift,
)

#: Steps after which ``|beta|^2`` is summed anew: its updates cancel.
_REFRESH = 256


@inner(fastmath=FAST)
def _add_norm(block, scale, first, rates):
    """Rates with the norm included; ``scale = price / |beta|``, `first` is the first beta."""
    rates[:first] = block.rate[:first]
    betas, rate, value = rates[first:], block.rate[first:], block.value[first:]
    for v in range(betas.size):
        betas[v] = rate[v] + scale * value[v]


@inner(fastmath=FAST)
def _gains(block, a, sign, rates, norm, first, last, terms):
    """Second-order estimates of the gains of `a` moving up (sign 1) or down (-1).

    Along a step ``d`` of the pair, ``|beta|^2`` grows by ``2 slope d + square d^2``.
    """
    scale, inverse = terms.price / norm, 1.0 / (norm * norm)
    counts = 1.0 if first >= terms.n_alphas else 0.0
    slope_a, square_a = 0.0, 0.0
    if a >= terms.n_alphas:
        slope_a, square_a = -sign * block.value[a], 1.0 / block.weight[a]
    room = block.rise[a] if sign > 0 else block.fall[a]
    rooms = block.fall[first:last] if sign > 0 else block.rise[first:last]
    rate_a, base = sign * rates[a], block.diagonal[a]
    rates, row, diagonal = (
        rates[first:last],
        block.kernel[a, first:last],
        block.diagonal[first:last],
    )
    value, gain = block.value[first:last], block.gain[first:last]
    weight = block.weight[first:last]
    for v in range(gain.size):
        rate = max(rate_a - sign * rates[v], 0.0)
        slope, square = slope_a + sign * counts * value[v], square_a + counts / weight[v]
        curvature = max(base + diagonal[v] - 2.0 * row[v], terms.least_curvature)
        curvature += scale * max(square - slope * slope * inverse, 0.0)
        step = min(rate / curvature, min(room, rooms[v]))
        gain[v] = max(step * (rate - 0.5 * curvature * step), 0.0)
    if first <= a < last:
        block.gain[a] = 0.0


@inner()
def _best_partner(block, a, sign, rates, norm, terms):
    n, b = terms.n_alphas, block.value.size
    _gains(block, a, sign, rates, norm, ZERO, n, terms)
    _gains(block, a, sign, rates, norm, n, b, terms)
    _, partner = largest_gain(block.gain, ZERO, b)
    return partner


@inner()
def _along(block, up, down, terms):
    """Coefficients of ``|beta|^2 + 2 slope d + square d^2`` along the move by ``d``."""
    slope, square = 0.0, 0.0
    if up >= terms.n_alphas:
        slope, square = slope - block.value[up], square + 1.0 / block.weight[up]
    if down >= terms.n_alphas:
        slope, square = slope + block.value[down], square + 1.0 / block.weight[down]
    return slope, square


@inner()
def _line_search(block, up, down, norm2, terms):
    """The step of the pair that maximises the dual: safeguarded Newton."""
    slope, square = _along(block, up, down, terms)
    linear = block.rate[up] - block.rate[down]
    curvature = block.diagonal[up] + block.diagonal[down] - 2.0 * block.kernel[up, down]
    curvature = max(curvature, terms.least_curvature)
    room = min(block.rise[up], block.fall[down])
    low, high, step = 0.0, room, 0.0
    for _ in range(100):
        norm = np.sqrt(max(norm2 + step * (2.0 * slope + square * step), 1e-300))
        cosine = (slope + square * step) / norm
        derivative = linear - curvature * step - terms.price * cosine
        if derivative > 0.0:
            low = step
        else:
            high = step
        second = curvature + terms.price * max(square - cosine * cosine, 0.0) / norm
        trial = step + derivative / second
        if trial >= high:
            trial = room if high == room and step < room else 0.5 * (low + high)
        elif trial <= low:
            trial = 0.5 * (low + high) if derivative <= 0.0 else low
        if abs(trial - step) <= 1e-15 * abs(trial):
            break
        step = trial
    return step


@inner()
def _squares_of_betas(block, terms):
    total = 0.0
    for v in range(terms.n_alphas, block.value.size):
        total += block.weight[v] * block.value[v] ** 2
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def solve_norm(block, outside, terms, tolerance, max_steps):
    """Maximise the dual over the block; `outside` is ``|beta|^2`` of the betas outside it.

    Returns the number of steps and the violation left.
    """
    group = Group(np.inf, 0, 0.0, 0.0, 0.0, 0.0)
    violation, norm2, rates = np.inf, 0.0, np.empty(block.rate.size)
    for count in range(max_steps):
        if count % _REFRESH == 0:
            norm2 = outside + _squares_of_betas(block, terms)
        norm = np.sqrt(max(norm2, 1e-300))
        _add_norm(block, terms.price / norm, terms.n_alphas, rates)
        up = best_rising(rates, block.rise, ZERO, rates.size)
        down = best_falling(rates, block.fall, ZERO, rates.size)
        if up < 0 or down < 0:
            return count, 0.0
        violation = rates[up] - rates[down]
        if violation <= tolerance:
            return count, max(violation, 0.0)
        # By turns, as in `attop.solvers.exact.subproblem.pairs`.
        if count % 2 == 0:
            down = _best_partner(block, up, UP, rates, norm, terms)
        else:
            up = _best_partner(block, down, DOWN, rates, norm, terms)
        if up < 0 or down < 0:
            return count, violation
        step = _line_search(block, up, down, norm2, terms)
        if step <= 0.0:
            return count, violation
        slope, square = _along(block, up, down, terms)
        group = shift(block, group, up, step, terms)
        group = shift(block, group, down, -step, terms)
        norm2 = max(norm2 + step * (2.0 * slope + square * step), 1e-300)
    return max_steps, violation
