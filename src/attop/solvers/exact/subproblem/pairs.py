"""The subproblem of duals whose cap is priced (or absent): pairs of variables, and the group.

The group is one more variable, with feature vector ``mean(phi_j)`` over its members and
rate ``mean(rate_j) + price / size``: when it moves up, the cap falls and its price is
saved.  No violating pair among single variables and the group is exactly optimality.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from attop.solvers.exact.subproblem.block import (
    AT_CAP,
    DOWN,
    FAST,
    NOBODY,
    UP,
    ZERO,
    best_falling,
    best_pair,
    best_rising,
    inner,
    join,
    join_at_cap,
    largest_gain,
    largest_outside,
    leave,
    pair_step,
    plain,
    shift,
    shift_group,
)


@inner()
def _against_group(block, group, v, terms):
    """Rate and curvature of `v` moving up against the rest of the group moving down."""
    size, score, square, cross = group.size, group.score, group.square, block.group_column[v]
    own, weight = block.diagonal[v], block.weight[v]
    if block.member[v]:
        size, score = size - weight, score + weight * block.rate[v]
        square, cross = square - weight * (2.0 * cross - weight * own), cross - weight * own
    rate = block.rate[v] - (terms.price - score) / size
    curvature = own + square / (size * size) - 2.0 * cross / size
    return rate, max(curvature, terms.least_curvature)


@inner()
def _group_room(block, group, v, floor, terms):
    """How far the group can move up, in total, while `v` moves down."""
    room = min(group.size * (group.cap - floor), block.fall[v])
    if v >= terms.n_alphas:  # the cap comes down to meet a growing beta
        room = min(room, block.fall[v] / (1.0 + block.weight[v] / group.size))
    return room


@inner()
def _group_gain(block, group, v, upwards, floor, terms):
    """Gain of `v` moving up (or down) against the group."""
    if block.member[v] and (group.members < 2 or not upwards):
        return 0.0
    rate, curvature = _against_group(block, group, v, terms)
    if upwards:
        room = block.rise[v]
    else:
        rate, room = -rate, _group_room(block, group, v, floor, terms)
    if rate <= 0.0 or room <= 0.0:
        return 0.0
    step = min(rate / curvature, room)
    return step * (rate - 0.5 * curvature * step)


@inner()
def _extremes(block, group, floor, terms):
    """Best up and best down move; ``b`` stands for the group."""
    b = block.value.size
    up = best_rising(block.rate, block.rise, ZERO, b)
    down = best_falling(block.rate, block.fall, ZERO, b)
    most = block.rate[up] if up >= 0 else -np.inf
    least = block.rate[down] if down >= 0 else np.inf
    if group.members > 0:
        rate = (terms.price - group.score) / group.size
        if rate > most and group.cap > floor:
            up, most = b, rate
        if rate < least:
            down, least = b, rate
    return up, down, most - least


@inner()
def _hold_lone_member(block, group, first):
    """A lone member moves only as the group: the cap has to follow it down."""
    for v in range(first, block.value.size):
        if block.member[v]:
            block.rise[v] = block.weight[v] * group.cap if group.members > 1 else 0.0


@inner(fastmath=FAST)
def _best_against_group(block, group, upwards, floor, first, last, terms):
    """The largest gain of one of ``first:last`` moving up (or down) against the group; which."""
    rate, gain = block.rate[first:last], block.gain[first:last]
    diagonal, cross = block.diagonal[first:last], block.group_column[first:last]
    member, weight = block.member[first:last], block.weight[first:last]
    rooms = block.rise[first:last] if upwards else block.fall[first:last]
    sign = 1.0 if upwards else -1.0
    # A member that moves up leaves the group behind; it does not move down against it.
    members_move = upwards and group.members > 1
    most_room, meeting = np.inf, 0.0
    if not upwards:
        most_room = group.size * (group.cap - floor)
        if first >= terms.n_alphas:  # the cap comes down to meet a growing beta
            meeting = 1.0 / group.size
    for v in range(gain.size):
        own = weight[v] if member[v] else 0.0
        share = 1.0 / max(group.size - own, 1e-300)
        square = group.square - own * (2.0 * cross[v] - own * diagonal[v])
        slope = sign * (rate[v] - (terms.price - group.score - own * rate[v]) * share)
        curvature = diagonal[v] * (1.0 + 2.0 * own * share) - 2.0 * cross[v] * share
        curvature = max(curvature + square * share * share, terms.least_curvature)
        room = min(rooms[v] / (1.0 + meeting * weight[v]), most_room)
        room = 0.0 if member[v] and not members_move else room
        slope = max(slope, 0.0)
        step = min(slope / curvature, room)
        gain[v] = max(step * (slope - 0.5 * curvature * step), 0.0)
    return largest_gain(block.gain, first, last)


@inner()
def _best_partner(block, group, a, sign, floor, terms):
    """Largest gain of `a` moving up (sign 1) or down (-1), and the partner."""
    b, n = block.value.size, terms.n_alphas
    if a == b:
        up = sign < 0
        best, partner = _best_against_group(block, group, up, floor, ZERO, n, terms)
        gain, other = _best_against_group(block, group, up, floor, n, b, terms)
        return (gain, other) if gain > best else (best, partner)
    best, partner = best_pair(block, a, sign, ZERO, b, terms.least_curvature)
    if group.members > 0:
        gain = _group_gain(block, group, a, sign > 0, floor, terms)
        if gain > best:
            return gain, b
    return best, partner


@inner()
def _best_pair(block, group, up, down, keep_up, floor, terms):
    """`up` or `down` with its best partner; the other one where there is none, or (-1, -1).

    They take turns: that needs fewer steps than the better pair each time.
    """
    for _ in range(2):
        if keep_up:
            _, partner = _best_partner(block, group, up, UP, floor, terms)
            if partner >= 0:
                return up, partner
        else:
            _, partner = _best_partner(block, group, down, DOWN, floor, terms)
            if partner >= 0:
                return partner, down
        keep_up = not keep_up
    return NOBODY, NOBODY


@inner()
def _move(block, group, up, down, floor, terms):
    """Take the best step of the pair (up, down); either may be the group."""
    b = block.value.size
    if up < b and block.member[up]:
        group = leave(block, group, up)
    if up == b:
        rate, curvature = _against_group(block, group, down, terms)
        step = min(-rate / curvature, _group_room(block, group, down, floor, terms))
        group = shift_group(block, group, -step / group.size, terms)
        return shift(block, group, down, -step, terms)
    if down == b:
        rate, curvature = _against_group(block, group, up, terms)
        step = min(rate / curvature, block.rise[up])
        group = shift_group(block, group, step / group.size, terms)
        return shift(block, group, up, step, terms)
    step = pair_step(block, up, down, terms)
    group = shift(block, group, up, step, terms)
    return shift(block, group, down, -step, terms)


@njit(cache=True, nogil=True, error_model="numpy")
def solve_pairs(block, group, terms, tolerance, max_steps):
    """Maximise the dual over the block: no violating pair above `tolerance` remains.

    Returns the group as a plain tuple, the number of steps and the violation left.
    """
    b, n = block.value.size, terms.n_alphas
    capped = np.isfinite(group.cap)
    limit = np.inf
    floor, violation = 0.0, np.inf
    if capped:
        group = join_at_cap(block, group, n, limit)
    for count in range(max_steps):
        if capped:
            floor = largest_outside(block, group.floor, n)
            if group.members <= 2:
                _hold_lone_member(block, group, n)
        up, down, violation = _extremes(block, group, floor, terms)
        if up < 0 or down < 0 or violation <= tolerance:
            return plain(group), count, max(violation, 0.0)
        up, down = _best_pair(block, group, up, down, count % 2 == 0, floor, terms)
        if up < 0:
            return plain(group), count, violation
        group = _move(block, group, up, down, floor, terms)
        if capped:
            if up == b:
                group = join_at_cap(block, group, n, limit)
            elif n <= down < b and block.value[down] >= group.cap * (1.0 - AT_CAP):
                group = join(block, group, down)
    return plain(group), max_steps, violation
