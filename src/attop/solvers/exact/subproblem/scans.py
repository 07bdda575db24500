"""The passes of pair moves over a block, compiled.

The loops are written so that they vectorise: they run over slices from zero (an index that could
be negative would prevent it), bounds are kept as room to rise and room to fall (zero where a
variable cannot move), and the gain of a step clipped to its room is zero by itself where there is
none.

They are few and small, take arrays and numbers instead of named tuples, and call each other as
little as possible: a compiled function is optimised once more in each that calls it, and unpacking
tuples of arrays is most of the code of a small one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from attop.solvers.exact.subproblem.block import SAME

# Compilers vectorise the maximum of integers, but not that of floats, whose bits are ordered alike.
_LEAST, _MOST = np.int64(-(2**63)), np.int64(2**63 - 1)
_SIGN = np.int64(63)

#: Numbers that are passed to functions.  Plain ones would be constants to the compiler, which makes
#: another version of a function for each.
ZERO: Any = np.int64(0)
NOBODY: Any = np.int64(-1)

#: Rounding order may change; infinities keep their meaning, NaN does not occur.
FAST = {"contract", "nsz", "arcp", "reassoc", "nnan"}


def inner(**options: Any) -> Any:
    """Compiles a function that only compiled functions call, without what Python would need."""
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiler: Any = njit  # whose types do not know of these
    return compiler(nogil=True, error_model="numpy", **wrappers, **options)


@inner()
def extreme(rate, room, also, sign):
    """The variable with room, also `also`, and the largest rate, or smallest (sign -1), or -1."""
    bits, turn = rate.view(np.int64), np.int64(0) if sign > 0.0 else np.int64(-1)
    most = _LEAST
    for v in range(bits.size):  # in the order of the numbers: bits of negative ones are turned
        here = bits[v] ^ ((bits[v] >> _SIGN) & _MOST) ^ turn
        most = max(most, here if min(room[v], also[v]) > 0.0 else _LEAST)
    place = bits.size
    for v in range(bits.size):
        here = bits[v] ^ ((bits[v] >> _SIGN) & _MOST) ^ turn
        place = min(place, v if min(room[v], also[v]) > 0.0 and here == most else bits.size)
    return place if most > _LEAST else -1


@inner()
def largest(values, left_out):
    """The place of the largest of values that are not negative, but for one; -1 if all are 0."""
    bits, most = values.view(np.int64), np.int64(0)
    for v in range(bits.size):
        most = max(most, bits[v] if v != left_out else np.int64(0))
    place = bits.size
    for v in range(bits.size):
        place = min(place, v if bits[v] == most and v != left_out else bits.size)
    return place if most > 0 else -1


@inner(fastmath=FAST)
def gains(gain, row, column, rate, diagonal, rooms, own, along, slope, base, room, share, least):
    """Gains of a move that a share of each of the variables completes.

    The move without them gains at the rate `slope` with the curvature `base` and can go as far as
    `room`; a variable adds ``- share rate`` to the first and, with its kernel entries
    ``own row + along column``, ``share^2 diagonal - 2 |share| entry`` to the second.
    """
    size = abs(share)
    for v in range(gain.size):
        # Of the variable that moves itself the slope is zero, and so the gain.
        up = max(slope - share * rate[v], 0.0)
        cross = own * row[v] + along * column[v]
        curvature = max(base + size * (size * diagonal[v] - 2.0 * cross), least)
        step = min(up / curvature, min(room, rooms[v]))
        gain[v] = max(step * (up - 0.5 * curvature * step), 0.0)


@inner(fastmath=FAST)
def follow(rate, one, first, other, second, column, rise):
    """The rates after moves of two variables up, and of the cap."""
    for v in range(rate.size):
        rate[v] -= first * one[v] + second * other[v] - rise * column[v]


@inner(fastmath=FAST)
def with_norm(rate, diagonal, value, weight, scale, full_rate, full_diagonal):
    """Rates and curvatures of betas whose norm has a price, ``scale = price / |beta|``."""
    for v in range(rate.size):
        full_rate[v] = rate[v] + scale * value[v]
        full_diagonal[v] = diagonal[v] + scale / weight[v]


@inner(fastmath=FAST)
def under_cap(value, weight, member, rise, fall, cap, top, alone):
    """The rooms of betas under a cap; a lone member moves only as the group."""
    for v in range(value.size):
        value[v] = cap if member[v] else value[v]
        rise[v] = 0.0 if member[v] and alone else weight[v] * value[v]
        fall[v] = 0.0 if member[v] else weight[v] * max(top - value[v], 0.0)


@inner(fastmath=FAST)
def rests(weight, rise, fall, rooms, share, upwards, K, most, holder, second):
    """How far coupled moves can go, with each beta below the cap as the rest.

    Its value may reach zero or, the cap moving too, the cap.  On the way down the cap can fall by
    ``most / K``, but for the `holder` of that floor, which moves too, by ``second / K``.
    """
    for v in range(rooms.size):
        nearing = share - weight[v] / K
        nearing = nearing if upwards else -nearing
        room = second if v == holder else most
        room = room if upwards else min(room, rise[v] / share)
        room = min(room, fall[v] / nearing) if nearing > SAME else room
        rooms[v] = room if fall[v] > 0.0 else 0.0


@inner()
def outside(value, member, found):
    """The places of the largest two of the values of betas that are not in the group, or -1."""
    for v in range(found.size):
        found[v] = 0.0 if member[v] else value[v]
    first = NOBODY
    second = NOBODY
    for _ in range(2):
        first, second = second, largest(found, second)
    return first, second
