"""The subproblem of duals whose cap is priced (or absent): pairs of variables, and the group.

A block is a set of dual variables whose kernel columns are at hand.  Everything is
written for moves *up*, ``w += delta * phi``: an alpha grows or a beta shrinks.  ``h`` is
the gain rate of an up move, so that the pair (up a, down b) gains at rate
``h[a] - h[b]`` with curvature ``|phi_a - phi_b|^2``.

All betas at the cap ``u`` form the group ``P``, one more variable with feature vector
``mean(phi_j, j in P)`` and rate ``mean(h_j) + price / |P|``.  Most of its members may lie
outside the block: what the moves need of them is the sum of their columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

#: Betas this close to the cap, relative to it, belong to the group.
AT_CAP = 1e-10


class Block(NamedTuple):
    """A block of dual variables, changed in place.

    Attributes
    ----------
    kernel : (b, b) kernel matrix of the variables' rows.
    is_alpha : (b,) which variables are alphas.
    value : (b,) alphas and betas; of a member of the group, the cap counts instead.
    rate : (b,) gain rate ``h`` of an up move.
    member : (b,) which betas are in the group.
    group_column : (b,) sum of the kernel columns of all members, inside and outside.
    """

    kernel: NDArray[np.float64]
    is_alpha: NDArray[np.bool_]
    value: NDArray[np.float64]
    rate: NDArray[np.float64]
    member: NDArray[np.bool_]
    group_column: NDArray[np.float64]


class Group(NamedTuple):
    """The betas at the cap, inside and outside the block.

    Attributes
    ----------
    cap : the cap ``u`` (infinite: there is none).
    size : number of members.
    square : ``|sum of phi over the members|^2``.
    score : minus the sum of the members' rates; the sum of their scores plus linear terms.
    floor : largest beta outside the block and outside the group.
    """

    cap: float
    size: int
    square: float
    score: float
    floor: float


class Terms(NamedTuple):
    """Numbers of the dual objective.

    Attributes
    ----------
    alpha_max : upper bound of the alphas.
    alpha_curvature : second derivative of the penalty on alphas.
    beta_linear : coefficient of ``sum(beta)``.
    price : price of the cap, or of the norm of the betas.
    K : number of top scores (tied cap; 0 otherwise).
    least_curvature : curvatures are raised to this.
    least_value : values this close to a bound are put onto it.
    """

    alpha_max: float
    alpha_curvature: float
    beta_linear: float
    price: float
    K: int
    least_curvature: float
    least_value: float


@njit(cache=True, nogil=True)
def clipped_gain(rate, curvature, room):
    """Gain of the best step along a concave parabola within ``[0, room]``."""
    step = min(rate / curvature, room)
    return step * (rate - 0.5 * curvature * step)


@njit(cache=True, nogil=True)
def pair_curvature(block, a, b, terms):
    """Curvature of the pair move (up a, down b)."""
    curvature = block.kernel[a, a] + block.kernel[b, b] - 2.0 * block.kernel[a, b]
    curvature += terms.alpha_curvature * (block.is_alpha[a] + block.is_alpha[b])
    return max(curvature, terms.least_curvature)


@njit(cache=True, nogil=True)
def join(block, group, v):
    """Make the beta `v` a member of the group."""
    square = group.square + 2.0 * block.group_column[v] + block.kernel[v, v]
    block.group_column[:] += block.kernel[v]
    block.member[v] = True
    block.value[v] = group.cap
    return Group(group.cap, group.size + 1, square, group.score - block.rate[v], group.floor)


@njit(cache=True, nogil=True)
def leave(block, group, v):
    """Take the beta `v` out of the group; its value stays at the cap."""
    block.group_column[:] -= block.kernel[v]
    square = group.square - 2.0 * block.group_column[v] - block.kernel[v, v]
    block.member[v] = False
    block.value[v] = group.cap
    return Group(group.cap, group.size - 1, square, group.score + block.rate[v], group.floor)


@njit(cache=True, nogil=True)
def shift(block, group, v, step, terms):
    """Move variable `v` up by `step` (down if negative): rates and the group's score follow."""
    column = block.kernel[v]
    for i in range(column.size):
        block.rate[i] -= step * column[i]
    if block.is_alpha[v]:
        block.rate[v] -= step * terms.alpha_curvature
        block.value[v] += step
    else:
        block.value[v] -= step
    score = group.score + step * block.group_column[v]
    return Group(group.cap, group.size, group.square, score, group.floor)


@njit(cache=True, nogil=True)
def shift_group(block, group, rise):
    """Raise the cap, and every member with it, by `rise`."""
    for i in range(block.rate.size):
        block.rate[i] += rise * block.group_column[i]
    score = group.score - rise * group.square
    return Group(group.cap + rise, group.size, group.square, score, group.floor)


@njit(cache=True, nogil=True)
def room_up(block, group, v, terms):
    """How far the single variable `v` can move up."""
    if block.is_alpha[v]:
        return terms.alpha_max - block.value[v]
    return group.cap if block.member[v] else block.value[v]


@njit(cache=True, nogil=True)
def room_down(block, group, v):
    """How far the single variable `v` can move down."""
    if block.is_alpha[v]:
        return block.value[v]
    return group.cap - block.value[v]


@njit(cache=True, nogil=True)
def snap(block, v, terms):
    """Put a value within rounding of a bound onto it."""
    if block.value[v] <= terms.least_value:
        block.value[v] = 0.0
    elif block.is_alpha[v] and terms.alpha_max - block.value[v] <= terms.least_value:
        block.value[v] = terms.alpha_max


@njit(cache=True, nogil=True)
def join_at_cap(block, group, limit):
    """Take into the group every beta of the block that has come to the cap."""
    for v in range(block.value.size):
        if not block.is_alpha[v] and not block.member[v] and group.size < limit:
            if block.value[v] >= group.cap * (1.0 - AT_CAP):
                group = join(block, group, v)
    return group


@njit(cache=True, nogil=True)
def _group_rate(group, terms):
    """Gain rate of the group moving up by one in total."""
    return (terms.price - group.score) / group.size


@njit(cache=True, nogil=True)
def _extremes(block, group, terms):
    """Best up and best down move (``b`` stands for the group), and the floor under the cap."""
    b = block.value.size
    up, down, most, least = -1, -1, -np.inf, np.inf
    floor = group.floor
    for v in range(b):
        rate = block.rate[v]
        if block.is_alpha[v]:
            if rate > most and block.value[v] < terms.alpha_max:
                up, most = v, rate
            if rate < least and block.value[v] > 0.0:
                down, least = v, rate
        elif block.member[v]:
            if rate > most and group.size > 1:
                up, most = v, rate
        else:
            if rate > most and block.value[v] > 0.0:
                up, most = v, rate
            if rate < least:
                down, least = v, rate
            floor = max(floor, block.value[v])
    if group.size > 0:
        rate = _group_rate(group, terms)
        if rate > most and group.cap > floor:
            up, most = b, rate
        if rate < least:
            down, least = b, rate
    return up, down, most, least, floor


@njit(cache=True, nogil=True)
def _single_against_group(block, group, v, terms, upwards):
    """Rate and curvature of `v` moving up (or down) against the rest of the group."""
    size, score = group.size, group.score
    square, cross = group.square, block.group_column[v]
    own = block.kernel[v, v]
    if block.member[v]:
        size, score = size - 1, score + block.rate[v]
        square, cross = square - 2.0 * cross + own, cross - own
    rate = block.rate[v] - (terms.price - score) / size
    curvature = own + square / (size * size) - 2.0 * cross / size
    curvature += terms.alpha_curvature * block.is_alpha[v]
    return (rate if upwards else -rate), max(curvature, terms.least_curvature)


@njit(cache=True, nogil=True)
def _group_up_room(block, group, v, floor):
    """How far the group can move up, in total, while `v` moves down."""
    size = group.size
    room = size * (group.cap - floor)
    if block.is_alpha[v]:
        return min(room, block.value[v])
    return min(room, (group.cap - block.value[v]) / (1.0 + 1.0 / size))


@njit(cache=True, nogil=True)
def _best_down(block, group, up, most, floor, terms):
    """The partner of `up` with the largest gain."""
    b = block.value.size
    best, partner = 0.0, -1
    for v in range(b):
        if v == up or block.member[v]:
            continue
        if up == b:
            rate, curvature = _single_against_group(block, group, v, terms, False)
            room = _group_up_room(block, group, v, floor)
        else:
            rate = most - block.rate[v]
            if rate <= 0.0:
                continue
            room = min(room_up(block, group, up, terms), room_down(block, group, v))
            curvature = pair_curvature(block, up, v, terms)
        if rate > 0.0 and room > 0.0:
            gain = clipped_gain(rate, curvature, room)
            if gain > best:
                best, partner = gain, v
    if up < b and group.size > (1 if block.member[up] else 0):
        rate, curvature = _single_against_group(block, group, up, terms, True)
        if rate > 0.0:
            gain = clipped_gain(rate, curvature, room_up(block, group, up, terms))
            if gain > best:
                best, partner = gain, b
    return best, partner


@njit(cache=True, nogil=True)
def _best_up(block, group, down, least, floor, terms):
    """The partner of `down` with the largest gain."""
    b = block.value.size
    best, partner = 0.0, -1
    for v in range(b):
        if v == down or (block.member[v] and group.size == 1):
            continue
        room = room_up(block, group, v, terms)
        if down == b:
            if block.member[v] and group.size < 2:
                continue
            rate, curvature = _single_against_group(block, group, v, terms, True)
        else:
            rate = block.rate[v] - least
            if rate <= 0.0:
                continue
            room = min(room, room_down(block, group, down))
            curvature = pair_curvature(block, v, down, terms)
        if rate > 0.0 and room > 0.0:
            gain = clipped_gain(rate, curvature, room)
            if gain > best:
                best, partner = gain, v
    if down < b and group.size > 0 and group.cap > floor:
        rate, curvature = _single_against_group(block, group, down, terms, False)
        room = _group_up_room(block, group, down, floor)
        if rate > 0.0 and room > 0.0:
            gain = clipped_gain(rate, curvature, room)
            if gain > best:
                best, partner = gain, b
    return best, partner


@njit(cache=True, nogil=True)
def _move(block, group, up, down, floor, terms):
    """Take the best step of the pair (up, down); either may be the group."""
    b = block.value.size
    if up < b and block.member[up]:
        group = leave(block, group, up)
    if up == b:
        rate, curvature = _single_against_group(block, group, down, terms, False)
        room = _group_up_room(block, group, down, floor)
    elif down == b:
        rate, curvature = _single_against_group(block, group, up, terms, True)
        room = room_up(block, group, up, terms)
    else:
        rate = block.rate[up] - block.rate[down]
        curvature = pair_curvature(block, up, down, terms)
        room = min(room_up(block, group, up, terms), room_down(block, group, down))
    step = min(rate / curvature, room)
    # The group moves first: its membership must be that of before the single's move.
    if up == b:
        group = shift_group(block, group, -step / group.size)
    elif down == b:
        group = shift_group(block, group, step / group.size)
    if up < b:
        group = shift(block, group, up, step, terms)
    if down < b:
        group = shift(block, group, down, -step, terms)
    return group


@njit(cache=True, nogil=True)
def solve_pairs(block, group, terms, tolerance, max_steps):
    """Maximise the dual over the block: no violating pair above `tolerance` remains.

    Returns the group, the number of steps and the violation left.
    """
    b = block.value.size
    capped = np.isfinite(group.cap)
    limit = np.iinfo(np.int64).max
    if capped:
        group = join_at_cap(block, group, limit)
    violation = np.inf
    for step_count in range(max_steps):
        up, down, most, least, floor = _extremes(block, group, terms)
        violation = most - least
        if up < 0 or down < 0 or violation <= tolerance:
            return group, step_count, max(violation, 0.0)
        gain, partner = _best_down(block, group, up, most, floor, terms)
        gain_up, partner_up = _best_up(block, group, down, least, floor, terms)
        if gain_up > gain:
            up = partner_up
        elif partner >= 0:
            down = partner
        else:
            return group, step_count, violation
        group = _move(block, group, up, down, floor, terms)
        for v in (up, down):
            if v < b:
                snap(block, v, terms)
        if capped:
            if up == b:
                group = join_at_cap(block, group, limit)
            elif down < b and not block.is_alpha[down]:
                if block.value[down] >= group.cap * (1.0 - AT_CAP):
                    group = join(block, group, down)
    return group, max_steps, violation
