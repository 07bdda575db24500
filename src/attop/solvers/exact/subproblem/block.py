"""A block of dual variables and the elementary moves on it, compiled.

Everything is written for moves *up*, ``w += delta * phi``: an alpha grows or a beta
shrinks.  ``rate`` is the gain rate of an up move, so that the pair (up a, down b) gains at
rate ``rate[a] - rate[b]`` with curvature ``|phi_a - phi_b|^2``.

Values are those of one copy of a sample, and so are bounds and the cap.  Moves are changes of
``w``: one by ``delta`` changes the value of a sample with the weight ``v`` by ``delta / v``, and
its rooms are counted in the same way.

All betas at the cap ``u`` form the group, which moves as one.  Most of its members may lie
outside the block: what the moves need of them is the weighted sum of their kernel columns.

The loops are written so that they vectorise: they run over slices from zero (an index that
could be negative would prevent it), bounds are kept as room to rise and room to fall (zero
where a variable cannot move), and the gain of a step clipped to its room is zero by itself
where there is none.

What Python calls takes these tuples but returns plain ones: to make a named tuple numba runs
Python code, does not look whether that failed, and crashes if an interrupt (Ctrl-C) came
during the call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

#: Betas this close to the cap, relative to it, belong to the group.
AT_CAP = 1e-10
#: Sums of weights that differ by less, relative to them, are the same.
SAME = 1e-12

# Compilers vectorise the maximum of integers, but not that of floats, whose bits are ordered alike.
_LEAST, _MOST = np.int64(-(2**63)), np.int64(2**63 - 1)
_SIGN = np.int64(63)

#: Numbers that are passed to functions.  Plain ones would be constants to the compiler, which makes
#: another version of a function for each.
ZERO: Any = np.int64(0)
UP: Any = np.int64(1)
DOWN: Any = np.int64(-1)
NOBODY: Any = np.int64(-1)
YES: Any = np.bool_(True)
NO: Any = np.bool_(False)

#: Rounding order may change; infinities keep their meaning, NaN does not occur.
FAST = {"contract", "nsz", "arcp", "reassoc", "nnan"}


def inner(**options: Any) -> Any:
    """Compiles a function that only compiled functions call, without what Python would need."""
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiler: Any = njit  # whose types do not know of these
    return compiler(nogil=True, error_model="numpy", **wrappers, **options)


class Block(NamedTuple):
    """A block of dual variables, alphas first, changed in place.

    Attributes
    ----------
    kernel : (b, b) kernel matrix of the variables' samples; on its diagonal also the penalties.
    diagonal : (b,) its diagonal.
    weight : (b,) copies of the variables' samples.
    value : (b,) alphas and betas; for a member of the group the cap counts instead.
    rate : (b,) gain rate of an up move.
    rise, fall : (b,) how far a variable can move up and down on its own.
    member : (b,) which betas are in the group.
    group_column : (b,) weighted sum of the kernel columns of all members, inside and outside.
    gain : (b,) scratch.
    """

    kernel: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    weight: NDArray[np.float64]
    value: NDArray[np.float64]
    rate: NDArray[np.float64]
    rise: NDArray[np.float64]
    fall: NDArray[np.float64]
    member: NDArray[np.bool_]
    group_column: NDArray[np.float64]
    gain: NDArray[np.float64]


class Group(NamedTuple):
    """The betas at the cap, inside and outside the block.

    Attributes
    ----------
    cap : the cap ``u`` (infinite: there is none).
    members : number of members.
    size : number of their copies.
    square : ``|sum of phi over the members|^2``, all copies counted, here as in what follows.
    score : minus the sum of the members' rates.
    floor : largest beta outside the block and outside the group.
    """

    cap: float
    members: int
    size: float
    square: float
    score: float
    floor: float


class Terms(NamedTuple):
    """Numbers of the dual objective.

    Attributes
    ----------
    n_alphas : number of alphas in the block.
    alpha_max, beta_max : upper bounds.
    price : price of the cap, or of the norm of the betas.
    K : number of top scores (tied cap; 0 otherwise).
    least_curvature : curvatures are raised to this.
    least_value : values this close to a bound are put onto it.
    """

    n_alphas: int
    alpha_max: float
    beta_max: float
    price: float
    K: int
    least_curvature: float
    least_value: float


@inner()
def plain(group):
    """The group as a tuple that can be returned to Python."""
    return group.cap, group.members, group.size, group.square, group.score, group.floor


@inner(inline="always")
def _order(bits):
    """The bits of a float as an integer of the same order: those of negative ones are turned."""
    return bits ^ ((bits >> _SIGN) & _MOST)


@inner()
def best_rising(rate, rise, first, last):
    """The variable of ``first:last`` with room to rise and the largest rate, -1 if none."""
    return _extreme(rate, rise, first, last, np.int64(0))


@inner()
def best_falling(rate, fall, first, last):
    """The variable of ``first:last`` with room to fall and the smallest rate, -1 if none."""
    return _extreme(rate, fall, first, last, np.int64(-1))


@inner()
def _extreme(rate, room, first, last, turn):
    """The variable with room and the largest rate, or the smallest if all bits are turned."""
    bits, room = rate[first:last].view(np.int64), room[first:last]
    most = _LEAST
    for v in range(bits.size):
        most = max(most, _order(bits[v]) ^ turn if room[v] > 0.0 else _LEAST)
    place = bits.size
    for v in range(bits.size):
        here = room[v] > 0.0 and _order(bits[v]) ^ turn == most
        place = min(place, v if here else bits.size)
    return first + place if place < bits.size else -1


@inner()
def largest_gain(gain, first, last):
    """The largest gain of ``first:last``, none negative, and its variable; -1 if all are zero."""
    bits = gain[first:last].view(np.int64)
    most = np.int64(0)
    for v in range(bits.size):
        most = max(most, bits[v])
    if most == 0:
        return 0.0, -1
    place = bits.size
    for v in range(bits.size):
        place = min(place, v if bits[v] == most else bits.size)
    return gain[first + place], first + place


@inner(fastmath=FAST)
def best_pair(block, a, sign, first, last, least_curvature):
    """Largest gain of `a` moving up (sign 1) or down (-1) against one of ``first:last``; which."""
    room = block.rise[a] if sign > 0 else block.fall[a]
    rooms = block.fall[first:last] if sign > 0 else block.rise[first:last]
    rate_a, base = sign * block.rate[a], block.diagonal[a]
    row, rate = block.kernel[a, first:last], block.rate[first:last]
    diagonal, gain = block.diagonal[first:last], block.gain[first:last]
    for v in range(gain.size):
        # Of `a` itself the slope is zero, and so the gain.
        slope = max(rate_a - sign * rate[v], 0.0)
        curvature = max(base + diagonal[v] - 2.0 * row[v], least_curvature)
        step = min(slope / curvature, min(room, rooms[v]))
        gain[v] = max(step * (slope - 0.5 * curvature * step), 0.0)
    return largest_gain(block.gain, first, last)


@inner()
def pair_step(block, up, down, terms):
    """The best step of the pair (up, down)."""
    curvature = block.diagonal[up] + block.diagonal[down] - 2.0 * block.kernel[up, down]
    curvature = max(curvature, terms.least_curvature)
    slope = max(block.rate[up] - block.rate[down], 0.0)
    return min(slope / curvature, min(block.rise[up], block.fall[down]))


@inner(fastmath=FAST)
def _subtract(rate, step, column):
    for i in range(rate.size):
        rate[i] -= step * column[i]


@inner()
def shift(block, group, v, step, terms):
    """Move variable `v` up by `step` (down if negative): rates, rooms and group follow."""
    _subtract(block.rate, step, block.kernel[v])
    least, weight = terms.least_value, block.weight[v]
    if v < terms.n_alphas:
        value = block.value[v] + step / weight
        if value <= least:
            value = 0.0
        elif terms.alpha_max - value <= least:
            value = terms.alpha_max
        block.rise[v], block.fall[v] = weight * (terms.alpha_max - value), weight * value
    else:
        top = min(group.cap, terms.beta_max)
        value = block.value[v] - step / weight
        if value <= least:
            value = 0.0
        elif terms.beta_max - value <= least:
            value = terms.beta_max
        block.rise[v], block.fall[v] = weight * value, weight * max(top - value, 0.0)
    block.value[v] = value
    score = group.score + step * block.group_column[v]
    return Group(group.cap, group.members, group.size, group.square, score, group.floor)


@inner(fastmath=FAST)
def _follow_cap(block, cap, first):
    """The rooms of the betas, which start with `first`, under a new cap."""
    rise, fall, weight = block.rise[first:], block.fall[first:], block.weight[first:]
    value, member = block.value[first:], block.member[first:]
    for v in range(rise.size):
        rise[v] = weight[v] * cap if member[v] else rise[v]
        fall[v] = fall[v] if member[v] else weight[v] * max(cap - value[v], 0.0)


@inner()
def shift_group(block, group, rise, terms):
    """Raise the cap, and every member with it, by `rise`."""
    _subtract(block.rate, -rise, block.group_column)
    cap = group.cap + rise
    _follow_cap(block, cap, terms.n_alphas)
    score = group.score - rise * group.square
    return Group(cap, group.members, group.size, group.square, score, group.floor)


@inner()
def join(block, group, v):
    """Make the beta `v` a member of the group."""
    weight = block.weight[v]
    square = group.square + weight * (2.0 * block.group_column[v] + weight * block.diagonal[v])
    _subtract(block.group_column, -weight, block.kernel[v])
    block.member[v] = True
    block.value[v] = group.cap
    block.rise[v], block.fall[v] = weight * group.cap, 0.0
    score = group.score - weight * block.rate[v]
    return Group(group.cap, group.members + 1, group.size + weight, square, score, group.floor)


@inner()
def leave(block, group, v):
    """Take the beta `v` out of the group; its value stays at the cap."""
    weight = block.weight[v]
    _subtract(block.group_column, weight, block.kernel[v])
    square = group.square - weight * (2.0 * block.group_column[v] + weight * block.diagonal[v])
    block.member[v] = False
    block.value[v] = group.cap
    block.rise[v], block.fall[v] = weight * group.cap, 0.0
    score = group.score + weight * block.rate[v]
    return Group(group.cap, group.members - 1, group.size - weight, square, score, group.floor)


@inner()
def join_at_cap(block, group, first, limit):
    """Take into the group every beta from `first` on that has come to the cap.

    The group has at most `limit` copies.
    """
    border = group.cap * (1.0 - AT_CAP)
    if largest_outside(block, 0.0, first) < border:
        return group
    for v in range(first, block.value.size):
        if not block.member[v] and block.value[v] >= border:
            if group.size + block.weight[v] <= limit * (1.0 + SAME):
                group = join(block, group, v)
    return group


@inner()
def largest_outside(block, floor, first):
    """The largest beta outside the group, at least `floor`; betas start with `first`."""
    largest, _ = _largest(block.value[first:], block.member[first:], NOBODY)
    return max(floor, largest)


@inner()
def _largest(values, left_out, also_left_out):
    """The largest of values that are not negative and not left out, 0 if none, and its place."""
    bits = values.view(np.int64)
    most = np.int64(0)
    for v in range(bits.size):
        most = max(most, np.int64(0) if left_out[v] or v == also_left_out else bits[v])
    if most == 0:
        return 0.0, -1
    place = bits.size
    for v in range(bits.size):
        here = bits[v] == most and not left_out[v] and v != also_left_out
        place = min(place, v if here else bits.size)
    return values[place], place


@inner()
def largest_below_cap(block, floor, first):
    """Largest and second largest beta outside the group (at least `floor`), and the holder."""
    values, members = block.value[first:], block.member[first:]
    largest, holder = _largest(values, members, NOBODY)
    if largest <= floor:
        return floor, largest, -1
    second, _ = _largest(values, members, holder)
    return largest, max(second, floor), first + holder
