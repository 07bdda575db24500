"""The subproblem of duals whose cap is tied to the alphas: ``beta_j <= u = sum(alpha) / K``.

Four kinds of moves: a pair of alphas, a pair of betas (both leave ``u`` alone), and the
coupled move up or down: one alpha changes by ``D``, every member of the group by
``D / K`` together with the cap, and one beta below the cap takes the rest,
``D (K - |P|) / K``.  A point without an improving move of these kinds is optimal on the
block.  For ``K = 1`` the cap never binds: `attop.solvers.exact.pairs` serves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from attop.solvers.exact.pairs import (
    AT_CAP,
    clipped_gain,
    join,
    join_at_cap,
    leave,
    pair_curvature,
    room_down,
    room_up,
    shift,
    shift_group,
    snap,
)

ALPHA_PAIR, BETA_PAIR, RAISE, LOWER = 0, 1, 2, 3


class Extremes(NamedTuple):
    """The variables with the extreme rates of each kind (-1: there is none)."""

    alpha_up: int
    alpha_down: int
    beta_up: int  # any positive beta
    beta_down: int  # any beta below the cap
    free_up: int  # positive beta below the cap
    floor: float  # largest beta below the cap
    holder: int  # the variable that is the floor, -1 outside the block
    second_floor: float  # largest beta below the cap but for the holder


@njit(cache=True, nogil=True)
def _extremes(block, group, terms):
    alpha_up, alpha_down, beta_up, beta_down, free_up = -1, -1, -1, -1, -1
    holder, floor, second = -1, group.floor, -1.0
    rate = block.rate
    for v in range(rate.size):
        value = block.value[v]
        if block.is_alpha[v]:
            if value < terms.alpha_max and (alpha_up < 0 or rate[v] > rate[alpha_up]):
                alpha_up = v
            if value > 0.0 and (alpha_down < 0 or rate[v] < rate[alpha_down]):
                alpha_down = v
            continue
        if (block.member[v] or value > 0.0) and (beta_up < 0 or rate[v] > rate[beta_up]):
            beta_up = v
        if block.member[v]:
            continue
        if beta_down < 0 or rate[v] < rate[beta_down]:
            beta_down = v
        if value > 0.0 and (free_up < 0 or rate[v] > rate[free_up]):
            free_up = v
        if value > floor:
            floor, second, holder = value, floor, v
        else:
            second = max(second, value)
    return Extremes(
        alpha_up, alpha_down, beta_up, beta_down, free_up, floor, holder, max(second, 0.0)
    )


@njit(cache=True, nogil=True)
def _coupled_rate(block, group, k, rest, share, terms):
    """Gain rate of raising alpha `k` with the group and the beta `rest`."""
    rate = block.rate[k] + group.score / terms.K
    return rate - share * block.rate[rest] if rest >= 0 else rate


@njit(cache=True, nogil=True)
def _coupled_curvature(block, group, k, rest, share, terms):
    K = terms.K
    kernel, column = block.kernel, block.group_column
    curvature = kernel[k, k] + group.square / (K * K) - 2.0 * column[k] / K
    if rest >= 0:
        curvature += share * (
            share * kernel[rest, rest] - 2.0 * kernel[k, rest] + 2.0 * column[rest] / K
        )
    return max(curvature + terms.alpha_curvature, terms.least_curvature)


@njit(cache=True, nogil=True)
def _raise_room(block, group, k, rest, share, terms):
    """How far alpha `k` can rise, coupled with `rest`."""
    room = terms.alpha_max - block.value[k]
    if rest >= 0 and share > 1.0 / terms.K:
        room = min(room, (group.cap - block.value[rest]) / (share - 1.0 / terms.K))
    return room


@njit(cache=True, nogil=True)
def _lower_room(block, group, k, rest, share, extremes, terms):
    """How far alpha `k` can fall, coupled with `rest`: the cap must not cross other betas."""
    floor = extremes.second_floor if rest >= 0 and rest == extremes.holder else extremes.floor
    room = min(block.value[k], terms.K * (group.cap - floor))
    if rest >= 0 and share > 0.0:
        room = min(room, block.value[rest] / share)
    return room


@njit(cache=True, nogil=True)
def _violation(block, group, extremes, share, terms):
    """The largest rate over the four kinds of moves."""
    rate, e = block.rate, extremes
    worst = 0.0
    if e.alpha_up >= 0 and e.alpha_down >= 0:
        worst = max(worst, rate[e.alpha_up] - rate[e.alpha_down])
    if e.beta_up >= 0 and e.beta_down >= 0:
        worst = max(worst, rate[e.beta_up] - rate[e.beta_down])
    if e.alpha_up >= 0 and (e.beta_down >= 0 or share == 0.0):
        rest = e.beta_down if share > 0.0 else -1
        worst = max(worst, _coupled_rate(block, group, e.alpha_up, rest, share, terms))
    if e.alpha_down >= 0 and (e.free_up >= 0 or share == 0.0):
        rest = e.free_up if share > 0.0 else -1
        worst = max(worst, -_coupled_rate(block, group, e.alpha_down, rest, share, terms))
    return worst


@njit(cache=True, nogil=True)
def _pair_gain(block, group, up, down, terms):
    rate = block.rate[up] - block.rate[down]
    if rate <= 0.0:
        return 0.0
    room = min(room_up(block, group, up, terms), room_down(block, group, down))
    if room <= 0.0:
        return 0.0
    return clipped_gain(rate, pair_curvature(block, up, down, terms), room)


@njit(cache=True, nogil=True)
def _coupled_gain(block, group, k, rest, share, extremes, upwards, terms):
    rate = _coupled_rate(block, group, k, rest, share, terms)
    if upwards:
        room = _raise_room(block, group, k, rest, share, terms)
    else:
        rate = -rate
        room = _lower_room(block, group, k, rest, share, extremes, terms)
    if rate <= 0.0 or room <= 0.0:
        return 0.0
    return clipped_gain(rate, _coupled_curvature(block, group, k, rest, share, terms), room)


@njit(cache=True, nogil=True)
def _best_move(block, group, e, share, terms):
    """The move with the largest gain: kind, first and second variable."""
    best, kind, first, second = 0.0, -1, -1, -1
    if share == 0.0:
        for upwards, k in ((True, e.alpha_up), (False, e.alpha_down)):
            if k >= 0:
                gain = _coupled_gain(block, group, k, -1, share, e, upwards, terms)
                if gain > best:
                    best, kind, first, second = gain, (RAISE if upwards else LOWER), k, -1
    for v in range(block.rate.size):
        if block.is_alpha[v]:
            if e.alpha_up >= 0:
                gain = _pair_gain(block, group, e.alpha_up, v, terms)
                if gain > best:
                    best, kind, first, second = gain, ALPHA_PAIR, e.alpha_up, v
            if e.alpha_down >= 0:
                gain = _pair_gain(block, group, v, e.alpha_down, terms)
                if gain > best:
                    best, kind, first, second = gain, ALPHA_PAIR, v, e.alpha_down
            continue
        if e.beta_up >= 0 and not block.member[v] and v != e.beta_up:
            gain = _pair_gain(block, group, e.beta_up, v, terms)
            if gain > best:
                best, kind, first, second = gain, BETA_PAIR, e.beta_up, v
        if e.beta_down >= 0 and v != e.beta_down:
            gain = _pair_gain(block, group, v, e.beta_down, terms)
            if gain > best:
                best, kind, first, second = gain, BETA_PAIR, v, e.beta_down
        if share > 0.0 and not block.member[v]:
            if e.alpha_up >= 0:
                gain = _coupled_gain(block, group, e.alpha_up, v, share, e, True, terms)
                if gain > best:
                    best, kind, first, second = gain, RAISE, e.alpha_up, v
            if e.alpha_down >= 0 and block.value[v] > 0.0:
                gain = _coupled_gain(block, group, e.alpha_down, v, share, e, False, terms)
                if gain > best:
                    best, kind, first, second = gain, LOWER, e.alpha_down, v
    return kind, first, second


@njit(cache=True, nogil=True)
def _move(block, group, kind, first, second, share, extremes, terms):
    if kind == ALPHA_PAIR or kind == BETA_PAIR:
        if kind == BETA_PAIR and block.member[first]:
            group = leave(block, group, first)
        rate = block.rate[first] - block.rate[second]
        room = min(room_up(block, group, first, terms), room_down(block, group, second))
        step = min(rate / pair_curvature(block, first, second, terms), room)
        group = shift(block, group, first, step, terms)
        return shift(block, group, second, -step, terms)
    rate = _coupled_rate(block, group, first, second, share, terms)
    curvature = _coupled_curvature(block, group, first, second, share, terms)
    if kind == RAISE:
        step = min(rate / curvature, _raise_room(block, group, first, second, share, terms))
    else:
        room = _lower_room(block, group, first, second, share, extremes, terms)
        step = -min(-rate / curvature, room)
    group = shift_group(block, group, step / terms.K)
    group = shift(block, group, first, step, terms)
    if second >= 0:
        group = shift(block, group, second, -share * step, terms)
    return group


@njit(cache=True, nogil=True)
def solve_tied(block, group, terms, tolerance, max_steps):
    """Maximise the dual over the block: no improving move above `tolerance` remains.

    Returns the group, the number of steps and the violation left.
    """
    group = join_at_cap(block, group, terms.K)
    violation = np.inf
    for step_count in range(max_steps):
        share = (terms.K - group.size) / terms.K
        extremes = _extremes(block, group, terms)
        violation = _violation(block, group, extremes, share, terms)
        if violation <= tolerance:
            return group, step_count, violation
        kind, first, second = _best_move(block, group, extremes, share, terms)
        if kind < 0:
            return group, step_count, violation
        group = _move(block, group, kind, first, second, share, extremes, terms)
        snap(block, first, terms)
        if second >= 0:
            snap(block, second, terms)
        if kind == LOWER:
            group = join_at_cap(block, group, terms.K)
        elif second >= 0 and not block.is_alpha[second] and group.size < terms.K:
            if block.value[second] >= group.cap * (1.0 - AT_CAP):
                group = join(block, group, second)
    return group, max_steps, violation
