"""The subproblem of duals with the price ``- price * |beta|_2``: plain pairs, exact line search.

There is no cap.  The norm adds ``price * beta_j / |beta|`` to the up rate of a beta, and
along a pair move it is the root of a quadratic, so the gain is a concave function of
one variable whose maximum a few safeguarded Newton steps find.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from attop.solvers.exact.pairs import Group, pair_curvature, room_up, shift, snap

#: Steps after which ``|beta|^2`` is summed anew: its updates cancel.
_REFRESH = 256


@njit(cache=True, nogil=True)
def _rate(block, v, scale):
    """Gain rate of `v` moving up, the norm included; ``scale = price / |beta|``."""
    return block.rate[v] if block.is_alpha[v] else block.rate[v] + scale * block.value[v]


@njit(cache=True, nogil=True)
def _norm_terms(block, up, down):
    """Coefficients of ``|beta|^2 = N + 2 slope d + square d^2`` along the move by ``d``."""
    slope, square = 0.0, 0.0
    if not block.is_alpha[up]:
        slope, square = slope - block.value[up], square + 1.0
    if not block.is_alpha[down]:
        slope, square = slope + block.value[down], square + 1.0
    return slope, square


@njit(cache=True, nogil=True)
def _room(block, group, up, down, terms):
    room = room_up(block, group, up, terms)
    return min(room, block.value[down]) if block.is_alpha[down] else room


@njit(cache=True, nogil=True)
def _gain(block, group, up, down, rate, norm2, terms):
    """Second-order estimate of what the pair gains."""
    if rate <= 0.0:
        return 0.0
    room = _room(block, group, up, down, terms)
    if room <= 0.0:
        return 0.0
    slope, square = _norm_terms(block, up, down)
    norm = np.sqrt(norm2)
    curvature = pair_curvature(block, up, down, terms)
    curvature += terms.price * (square - slope * slope / norm2) / norm
    step = min(rate / curvature, room)
    return step * (rate - 0.5 * curvature * step)


@njit(cache=True, nogil=True)
def _line_search(block, group, up, down, norm2, terms):
    """The step of the pair that maximises the dual."""
    slope, square = _norm_terms(block, up, down)
    linear = block.rate[up] - block.rate[down]
    curvature = pair_curvature(block, up, down, terms)
    low, high = 0.0, _room(block, group, up, down, terms)
    step = 0.0
    for _ in range(60):
        inside = norm2 + step * (2.0 * slope + square * step)
        norm = np.sqrt(max(inside, 1e-300))
        along = (slope + square * step) / norm
        derivative = linear - curvature * step - terms.price * along
        if derivative > 0.0:
            low = step
        else:
            high = step
        second = curvature + terms.price * max(square - along * along, 0.0) / norm
        trial = step + derivative / second
        if not low < trial < high:
            trial = 0.5 * (low + high) if np.isfinite(high) else 2.0 * step + 1.0
            if derivative > 0.0 and step + derivative / second >= high:
                trial = high
        if trial == step or abs(trial - step) <= 1e-15 * abs(trial):
            break
        step = trial
    return step


@njit(cache=True, nogil=True)
def _extremes(block, scale, terms):
    up, down, most, least = -1, -1, -np.inf, np.inf
    for v in range(block.value.size):
        rate = _rate(block, v, scale)
        if block.is_alpha[v]:
            can_rise, can_fall = block.value[v] < terms.alpha_max, block.value[v] > 0.0
        else:
            can_rise, can_fall = block.value[v] > 0.0, True
        if can_rise and rate > most:
            up, most = v, rate
        if can_fall and rate < least:
            down, least = v, rate
    return up, down, most, least


@njit(cache=True, nogil=True)
def _best_pair(block, group, up, down, most, least, norm2, terms):
    """The better of `up` with its best partner and `down` with its best partner."""
    scale = terms.price / np.sqrt(norm2)
    best, first, second = 0.0, -1, -1
    for v in range(block.value.size):
        rate = _rate(block, v, scale)
        if v != up and (not block.is_alpha[v] or block.value[v] > 0.0):
            gain = _gain(block, group, up, v, most - rate, norm2, terms)
            if gain > best:
                best, first, second = gain, up, v
        if v != down:
            gain = _gain(block, group, v, down, rate - least, norm2, terms)
            if gain > best:
                best, first, second = gain, v, down
    return first, second


@njit(cache=True, nogil=True)
def _squares_of_betas(block):
    total = 0.0
    for v in range(block.value.size):
        if not block.is_alpha[v]:
            total += block.value[v] ** 2
    return total


@njit(cache=True, nogil=True)
def solve_norm(block, outside, terms, tolerance, max_steps):
    """Maximise the dual over the block; `outside` is ``|beta|^2`` of the betas outside it.

    Returns the number of steps and the violation left.
    """
    group = Group(np.inf, 0, 0.0, 0.0, 0.0)
    violation, norm2 = np.inf, 0.0
    for step_count in range(max_steps):
        if step_count % _REFRESH == 0:
            norm2 = outside + _squares_of_betas(block)
        up, down, most, least = _extremes(block, terms.price / np.sqrt(norm2), terms)
        violation = most - least
        if up < 0 or down < 0 or violation <= tolerance:
            return step_count, max(violation, 0.0)
        up, down = _best_pair(block, group, up, down, most, least, norm2, terms)
        if up < 0:
            return step_count, violation
        step = _line_search(block, group, up, down, norm2, terms)
        if step == 0.0:
            return step_count, violation
        slope, square = _norm_terms(block, up, down)
        group = shift(block, group, up, step, terms)
        group = shift(block, group, down, -step, terms)
        snap(block, up, terms)
        snap(block, down, terms)
        norm2 = max(norm2 + step * (2.0 * slope + square * step), 1e-300)
    return max_steps, violation
