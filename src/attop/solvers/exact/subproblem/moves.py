"""Pair moves: the subproblem on a block solved by moves of two variables at a time.

Every move is one or two variables moving up by numbers, and the cap rising by one.  Which is next
`attop.solvers.exact.subproblem.choice` says.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from attop.solvers.exact.subproblem.block import (
    ALPHA_MAX,
    AT_CAP,
    BETA_MAX,
    CAP,
    COLUMN,
    DIAGONAL,
    FALL,
    FULL_DIAGONAL,
    FULL_RATE,
    LEAST_CURVATURE,
    LEAST_VALUE,
    MEMBERS,
    NORM2,
    NORM_PRICE,
    RATE,
    RISE,
    SAME,
    SCORE,
    SIZE,
    SQUARE,
    TOP_K,
    VALUE,
    WEIGHT,
    Block,
    Group,
    Terms,
)
from attop.solvers.exact.subproblem.choice import tied_move, untied_move
from attop.solvers.exact.subproblem.scans import (
    follow,
    inner,
    under_cap,
    with_norm,
)

#: Steps after which ``|beta|^2`` is summed anew: its updates cancel.
_REFRESH = 256


def move_pairs(
    block: Block,
    group: Group,
    terms: Terms,
    tolerance: float,
    most: int,
    norm_price: float = 0.0,
    norm2_outside: float = 0.0,
) -> tuple[Group, int, float]:
    """Go on until no violation above `tolerance` remains, or `most` moves have been made.

    Returns the group, the number of moves, and the violation before the last one looked for.
    """
    numbers = np.array([*group, *terms[1:], norm_price, norm2_outside], dtype=np.float64)
    table, member = block.table, block.member
    steps, violation = _move(
        block.kernel, table, member, numbers, terms.n_alphas, float(tolerance), int(most)
    )
    cap, members, *others = numbers[:ALPHA_MAX].tolist()
    return Group(cap, int(members), *others), steps, violation


@inner()
def _line_search(numbers, linear, curvature, room, slope, square, norm2):
    """The step that maximises the dual where ``|beta|^2`` has a slope and a square: Newton."""
    price, low, high, step = numbers[NORM_PRICE], 0.0, room, 0.0
    for _ in range(100):
        norm = np.sqrt(max(norm2 + step * (2.0 * slope + square * step), 1e-300))
        cosine = (slope + square * step) / norm
        derivative = linear - curvature * step - price * cosine
        if derivative > 0.0:
            low = step
        else:
            high = step
        second = curvature + price * max(square - cosine * cosine, 0.0) / norm
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
def _regroup(kernel, table, member, numbers, n, v, sign):
    """Make the beta `v` a member of the group (sign 1), or not (-1): its value is the cap."""
    weight, column = sign * table[WEIGHT, v], table[COLUMN]
    numbers[SQUARE] += weight * (2.0 * column[v] + weight * table[DIAGONAL, v])
    numbers[SCORE] -= weight * table[RATE, v]
    numbers[MEMBERS] += sign
    numbers[SIZE] += weight
    follow(column, kernel[v], -weight, kernel[v], 0.0, table[RATE], 0.0)
    member[v] = sign > 0.0
    table[VALUE, v] = numbers[CAP]
    _rooms(table, member, numbers, n)


@inner()
def _rooms(table, member, numbers, n):
    """The rooms of all betas under the cap."""
    alone = numbers[TOP_K] == 0.0 and numbers[MEMBERS] < 1.5
    value, weight, rise, fall = table[VALUE], table[WEIGHT], table[RISE], table[FALL]
    cap = numbers[CAP]
    top = min(cap, numbers[BETA_MAX])
    under_cap(value[n:], weight[n:], member[n:], rise[n:], fall[n:], cap, top, alone)


@inner()
def _join(kernel, table, member, numbers, n, move):
    """Take into the group every beta that a move has brought to the cap, if it fits."""
    K, falls, size = numbers[TOP_K], move[4] < 0.0, numbers[SIZE]
    limit = K * (1.0 + SAME) if K > 0.0 else np.inf
    for turn in range(1 if falls else 2):
        moved = move[2] if turn else move[0]
        first, last = (n, member.size) if falls else (moved, moved + 1)
        for v in range(max(first, n), last):
            if not member[v] and table[VALUE, v] >= numbers[CAP] * (1.0 - AT_CAP):
                if size + table[WEIGHT, v] <= limit:
                    _regroup(kernel, table, member, numbers, n, v, 1.0)
                    size = numbers[SIZE]


@inner()
def _place(table, numbers, n, v, step):
    """Move the value of `v` up by `step`."""
    weight, top = table[WEIGHT, v], numbers[ALPHA_MAX] if v < n else numbers[BETA_MAX]
    value = table[VALUE, v] + (step if v < n else -step) / weight
    if value <= numbers[LEAST_VALUE]:
        value = 0.0
    elif top - value <= numbers[LEAST_VALUE]:
        value = top
    table[VALUE, v] = value
    if v < n:
        table[RISE, v], table[FALL, v] = weight * (top - value), weight * value
    else:
        room = weight * max(min(numbers[CAP], top) - value, 0.0)
        table[RISE, v], table[FALL, v] = weight * value, room


@inner()
def _go(kernel, table, numbers, n, move):
    """Make a move: rates, values and the group follow."""
    first, one, second, two, rise = move
    column = table[COLUMN]
    other = second if second >= 0 else first
    follow(table[RATE], kernel[first], one, kernel[other], two, column, rise)
    score = one * column[first] + two * column[other] - rise * numbers[SQUARE]
    numbers[SCORE] += score
    numbers[CAP] += rise
    for turn in range(2):
        v, step = (other, two) if turn else (first, one)
        if step != 0.0:
            _place(table, numbers, n, v, step)


@inner()
def _add_norm(table, numbers, n, norm2):
    """Rates and curvatures with the norm of the betas."""
    scale = numbers[NORM_PRICE] / np.sqrt(max(norm2, 1e-300))
    rate, diagonal, value, weight = table[RATE], table[DIAGONAL], table[VALUE], table[WEIGHT]
    full_rate, full_diagonal = table[FULL_RATE], table[FULL_DIAGONAL]
    for first, last, share in ((0, n, 0.0), (n, rate.size, scale)):
        with_norm(
            rate[first:last],
            diagonal[first:last],
            value[first:last],
            weight[first:last],
            share,
            full_rate[first:last],
            full_diagonal[first:last],
        )


@inner()
def _norm_step(kernel, table, numbers, n, up, down, norm2):
    """The step of a pair where the norm of the betas has a price."""
    slope, square = 0.0, 0.0
    if up >= n:
        slope, square = slope - table[VALUE, up], square + 1.0 / table[WEIGHT, up]
    if down >= n:
        slope, square = slope + table[VALUE, down], square + 1.0 / table[WEIGHT, down]
    curvature = table[DIAGONAL, up] + table[DIAGONAL, down] - 2.0 * kernel[up, down]
    curvature = max(curvature, numbers[LEAST_CURVATURE])
    linear = table[RATE, up] - table[RATE, down]
    room = min(table[RISE, up], table[FALL, down])
    step = _line_search(numbers, linear, curvature, room, slope, square, norm2)
    return step, max(norm2 + step * (2.0 * slope + square * step), 1e-300)


@njit(cache=True, nogil=True, error_model="numpy")
def _move(kernel, table, member, numbers, n, tolerance, most):
    """As `move_pairs`, on plain arrays: the number of moves, and the violation."""
    norm2, violation, norm = 0.0, np.inf, numbers[NORM_PRICE] > 0.0
    capped, tied, move = np.isfinite(numbers[CAP]), numbers[TOP_K] > 0.0, (n, 0.0, n, 0.0, -1.0)
    for count in range(most + 1):
        if capped:
            if move[4] != 0.0:
                _rooms(table, member, numbers, n)
            _join(kernel, table, member, numbers, n, move)
        if count == most:
            break
        if norm:
            if count % _REFRESH == 0:
                norm2 = numbers[NORM2]
                for v in range(n, member.size):
                    norm2 += table[WEIGHT, v] * table[VALUE, v] ** 2
            _add_norm(table, numbers, n, norm2)
        keep_up = count % 2 == 0
        if tied:
            violation, move = tied_move(kernel, table, member, numbers, n, keep_up, tolerance)
        else:
            violation, move = untied_move(kernel, table, member, numbers, n, keep_up)
        if violation <= tolerance:
            return count, max(violation, 0.0)
        if move[0] < 0:
            return count, violation
        if norm:
            up, down = (move[0], move[2]) if move[1] > 0.0 else (move[2], move[0])
            step, norm2 = _norm_step(kernel, table, numbers, n, up, down, norm2)
            if step <= 0.0:
                return count, violation
            move = (up, step, down, -step, 0.0)
        for turn in range(2 if capped else 0):  # who moves up on its own leaves the group
            v, step = (move[2], move[3]) if turn else (move[0], move[1])
            if step > 0.0 and member[v]:
                _regroup(kernel, table, member, numbers, n, v, -1.0)
        _go(kernel, table, numbers, n, move)
    return most, violation
