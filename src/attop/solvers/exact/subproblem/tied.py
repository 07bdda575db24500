"""The subproblem of duals whose cap is tied to the alphas: ``beta_j <= u = sum(alpha) / K``.

Four kinds of moves: a pair of alphas, a pair of betas (both leave ``u`` alone), and the
coupled move up or down: one alpha changes by ``D`` (all copies together), every copy of a member of
the group by ``D / K`` together with the cap, and one beta below the cap takes the rest, the share
``(K - size) / K`` of ``D``.  A point without an improving move of these kinds is optimal on
the block.  For ``K = 1`` the cap never binds: `attop.solvers.exact.subproblem.pairs` serves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from attop.solvers.exact.subproblem.block import (
    AT_CAP,
    DOWN,
    FAST,
    NO,
    NOBODY,
    SAME,
    UP,
    YES,
    ZERO,
    best_falling,
    best_pair,
    best_rising,
    inner,
    join,
    join_at_cap,
    largest_below_cap,
    largest_gain,
    leave,
    pair_step,
    plain,
    shift,
    shift_group,
)

ALPHAS, BETAS, RAISING, LOWERING = 0, 1, 2, 3

#: Kinds of moves that violate less than this share of the worst are not made.
WORTHWHILE = 0.1


class Extremes(NamedTuple):
    """The variables with the extreme rates of each kind (-1: there is none)."""

    alpha_up: int
    alpha_down: int
    beta_up: int
    beta_down: int


class Floor(NamedTuple):
    """Largest and second largest beta below the cap, and the variable that is the largest."""

    largest: float
    second: float
    holder: int


@inner()
def _extremes(block, terms):
    n, b = terms.n_alphas, block.value.size
    return Extremes(
        best_rising(block.rate, block.rise, ZERO, n),
        best_falling(block.rate, block.fall, ZERO, n),
        best_rising(block.rate, block.rise, n, b),
        best_falling(block.rate, block.fall, n, b),
    )


@inner()
def _free_up(block, n):
    """The positive beta below the cap with the largest rate, -1 if there is none."""
    rise, fall, gain = block.rise[n:], block.fall[n:], block.gain[n:]
    for v in range(gain.size):  # scratch: free if positive
        gain[v] = min(rise[v], fall[v])
    return best_rising(block.rate, block.gain, n, block.value.size)


@inner()
def _coupled_rate(block, group, k, rest, share, terms):
    """Gain rate of raising alpha `k` with the group and the beta `rest`."""
    rate = block.rate[k] + group.score / terms.K
    return rate - share * block.rate[rest] if rest >= 0 else rate


@inner()
def _coupled_curvature(block, group, k, rest, share, terms):
    K, column = terms.K, block.group_column
    curvature = block.diagonal[k] + group.square / (K * K) - 2.0 * column[k] / K
    if rest >= 0:
        curvature += share * (
            share * block.diagonal[rest] - 2.0 * block.kernel[k, rest] + 2.0 * column[rest] / K
        )
    return max(curvature, terms.least_curvature)


@inner()
def _coupled_room(block, group, k, rest, share, upwards, floor, terms):
    """How far the coupled move can go: no beta crosses the cap, none becomes negative."""
    # The rest comes nearer to the cap on the way up, or, if it has many copies, on the way down.
    nearing = share - block.weight[rest] / terms.K if rest >= 0 else 0.0
    if upwards:
        room = block.rise[k]
        return min(room, block.fall[rest] / nearing) if nearing > SAME else room
    lowest = floor.second if rest >= 0 and rest == floor.holder else floor.largest
    room = min(block.fall[k], terms.K * (group.cap - lowest))
    if nearing < -SAME:
        room = min(room, block.fall[rest] / -nearing)
    return min(room, block.rise[rest] / share) if rest >= 0 else room


@inner()
def _coupled_gain(block, group, k, rest, share, upwards, floor, terms):
    rate = _coupled_rate(block, group, k, rest, share, terms)
    rate = rate if upwards else -rate
    room = _coupled_room(block, group, k, rest, share, upwards, floor, terms)
    if rate <= 0.0 or room <= 0.0:
        return 0.0
    curvature = _coupled_curvature(block, group, k, rest, share, terms)
    step = min(rate / curvature, room)
    return step * (rate - 0.5 * curvature * step)


@inner(fastmath=FAST)
def _rest_gains(block, group, k, share, upwards, lowest, terms):
    """Gains of moving alpha `k`, for each beta below the cap as the rest.

    Downwards, the cap can fall to `lowest`.
    """
    n, K, sign = terms.n_alphas, terms.K, 1.0 if upwards else -1.0
    row, column, rate = block.kernel[k, n:], block.group_column[n:], block.rate[n:]
    diagonal, gain, fall, weight = (
        block.diagonal[n:],
        block.gain[n:],
        block.fall[n:],
        block.weight[n:],
    )
    base = block.diagonal[k] + group.square / (K * K) - 2.0 * block.group_column[k] / K
    rate_k = sign * (block.rate[k] + group.score / K)
    room_k = block.rise[k] if upwards else min(block.fall[k], K * (group.cap - lowest))
    rooms = fall if upwards else block.rise[n:]
    for v in range(gain.size):
        nearing = share - weight[v] / K if upwards else share
        slope = max(rate_k - sign * share * rate[v], 0.0)
        cross = share * diagonal[v] - 2.0 * row[v] + 2.0 * column[v] / K
        curvature = max(base + share * cross, terms.least_curvature)
        room = min(room_k, rooms[v] / nearing) if nearing > SAME else room_k
        room = room if fall[v] > 0.0 else 0.0
        step = min(slope / curvature, room)
        gain[v] = max(step * (slope - 0.5 * curvature * step), 0.0)


@inner()
def _best_pair(block, up, down, keep_up, first, last, terms):
    """`up` or `down` with its best partner: the gain, and the pair."""
    least = terms.least_curvature
    if keep_up:
        gain, partner = best_pair(block, up, UP, first, last, least)
        return gain, up, partner
    gain, partner = best_pair(block, down, DOWN, first, last, least)
    return gain, partner, down


@inner()
def _best_coupled(block, group, k, share, upwards, floor, terms):
    """The coupled move of alpha `k` with the best rest."""
    if k < 0:
        return 0.0, NOBODY
    if share == 0.0:
        return _coupled_gain(block, group, k, NOBODY, share, upwards, floor, terms), NOBODY
    _rest_gains(block, group, k, share, upwards, floor.largest, terms)
    if not upwards and floor.holder >= 0:  # only the holder of the floor can go below it
        gain = _coupled_gain(block, group, k, floor.holder, share, NO, floor, terms)
        block.gain[floor.holder] = gain
    return largest_gain(block.gain, terms.n_alphas, block.value.size)


@inner()
def _rates(block, group, e, share, terms):
    """The largest rate of each kind of move: alpha pair, beta pair, coupled up and down."""
    rate, none = block.rate, -np.inf
    alphas = rate[e.alpha_up] - rate[e.alpha_down] if min(e.alpha_up, e.alpha_down) >= 0 else none
    betas = rate[e.beta_up] - rate[e.beta_down] if min(e.beta_up, e.beta_down) >= 0 else none
    raising, lowering = none, none
    if e.alpha_up >= 0 and (share == 0.0 or e.beta_down >= 0):
        rest = e.beta_down if share > 0.0 else NOBODY
        raising = _coupled_rate(block, group, e.alpha_up, rest, share, terms)
    if e.alpha_down >= 0:
        rest = _free_up(block, terms.n_alphas) if share > 0.0 else NOBODY
        if share == 0.0 or rest >= 0:
            lowering = -_coupled_rate(block, group, e.alpha_down, rest, share, terms)
    return alphas, betas, raising, lowering


@inner()
def _best_of_kind(block, group, kind, e, share, keep_up, terms):
    """The best move of a kind: its gain, its two variables, and the floor where the cap falls."""
    n, b = terms.n_alphas, block.value.size
    floor = Floor(group.floor, group.floor, NOBODY)
    if kind == ALPHAS:
        pair = _best_pair(block, e.alpha_up, e.alpha_down, keep_up, ZERO, n, terms)
        return pair[0], pair[1], pair[2], floor
    if kind == BETAS:
        pair = _best_pair(block, e.beta_up, e.beta_down, keep_up, n, b, terms)
        return pair[0], pair[1], pair[2], floor
    if kind == RAISING:
        gain, rest = _best_coupled(block, group, e.alpha_up, share, YES, floor, terms)
        return gain, e.alpha_up, rest, floor
    floor = Floor(*largest_below_cap(block, group.floor, n))
    gain, rest = _best_coupled(block, group, e.alpha_down, share, NO, floor, terms)
    return gain, e.alpha_down, rest, floor


@inner()
def _best_move(block, group, e, rates, least, share, keep_up, terms):
    """The best move of the kind that violates most and has room; kind -1 if there is none.

    That needs fewer steps than the largest gain of all.  Kinds that violate less than `least`
    are not looked at: where the worst has no room, they could go on for ever.
    """
    tried = 0  # the bits of the kinds without room
    floor = Floor(group.floor, group.floor, NOBODY)
    for _ in range(len(rates)):
        kind, most = NOBODY, least
        for k in range(len(rates)):
            if rates[k] > most and not (tried >> k) & 1:
                kind, most = np.int64(k), rates[k]
        if kind < 0:
            break
        gain, first, second, floor = _best_of_kind(block, group, kind, e, share, keep_up, terms)
        if gain > 0.0:
            return kind, first, second, floor
        tried |= 1 << kind
    return NOBODY, NOBODY, NOBODY, floor


@inner()
def _move(block, group, kind, first, second, share, floor, terms):
    if kind in (ALPHAS, BETAS):
        if block.member[first]:
            group = leave(block, group, first)
        step = pair_step(block, first, second, terms)
        group = shift(block, group, first, step, terms)
        return shift(block, group, second, -step, terms)
    upwards = kind == RAISING
    rate = _coupled_rate(block, group, first, second, share, terms)
    curvature = _coupled_curvature(block, group, first, second, share, terms)
    room = _coupled_room(block, group, first, second, share, upwards, floor, terms)
    step = min(rate / curvature, room) if upwards else -min(-rate / curvature, room)
    group = shift_group(block, group, step / terms.K, terms)
    group = shift(block, group, first, step, terms)
    if second >= 0:
        group = shift(block, group, second, -share * step, terms)
    return group


@njit(cache=True, nogil=True, error_model="numpy")
def solve_tied(block, group, terms, tolerance, max_steps):
    """Maximise the dual over the block: no improving move above `tolerance` remains.

    Returns the group as a plain tuple, the number of steps and the violation left.
    """
    n = terms.n_alphas
    group = join_at_cap(block, group, n, terms.K)
    violation = np.inf
    for count in range(max_steps):
        share = (terms.K - group.size) / terms.K
        share = share if share > SAME else 0.0
        extremes = _extremes(block, terms)
        rates = _rates(block, group, extremes, share, terms)
        violation = max(max(rates[0], rates[1]), max(rates[2], rates[3]))
        if violation <= tolerance:
            return plain(group), count, max(violation, 0.0)
        kind, first, second, floor = _best_move(
            block, group, extremes, rates, WORTHWHILE * violation, share, count % 2 == 0, terms
        )
        if kind < 0:
            return plain(group), count, violation
        group = _move(block, group, kind, first, second, share, floor, terms)
        if kind == LOWERING:
            group = join_at_cap(block, group, n, terms.K)
        elif second >= n and block.value[second] >= group.cap * (1.0 - AT_CAP):
            if group.size + block.weight[second] <= terms.K * (1.0 + SAME):
                group = join(block, group, second)
    return plain(group), max_steps, violation
