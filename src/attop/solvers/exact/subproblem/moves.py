"""Pair moves: the subproblem on a block solved by moves of two variables at a time.

**Without a cap** a variable moves up while another moves down, the one that violates most with its
best partner.  A **priced cap** adds one more variable, the group, with feature vector
``mean(phi_j)`` over its members and rate ``mean(rate_j) + price / size``: when it moves up, the
cap falls and its price is saved.  No violating pair is exactly optimality.

With the **price of the norm**, ``- price |beta|_2``, all copies counted, the rate of a beta has
``price beta_j / |beta|`` more, and along a pair ``|beta|^2`` is quadratic: a few safeguarded Newton
steps find the best step.

Where the **cap is tied** to the alphas, ``beta_j <= u = sum(alpha) / K``, there are four kinds of
moves: a pair of alphas, a pair of betas (both leave ``u`` alone), and the coupled move up or down:
one alpha changes by ``D`` (all copies together), every copy of a member of the group by ``D / K``
together with the cap, and one beta below the cap takes the rest, the share ``(K - size) / K`` of
``D``.  A point without an improving move of these kinds is optimal on the block.

Every move is one or two variables moving up by numbers, and the cap rising by one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from attop.solvers.exact.subproblem.block import (
    AT_CAP,
    COLUMN,
    DIAGONAL,
    FALL,
    FULL_DIAGONAL,
    FULL_RATE,
    GAIN,
    RATE,
    RISE,
    ROOMS,
    SAME,
    VALUE,
    WEIGHT,
    Block,
    Group,
    Terms,
)
from attop.solvers.exact.subproblem.scans import (
    NOBODY,
    ZERO,
    extreme,
    follow,
    gains,
    inner,
    largest,
    outside,
    rests,
    under_cap,
    with_norm,
)

#: The places of the numbers of a subproblem: those of the group, and then those of the terms.
_CAP, _MEMBERS, _SIZE, _SQUARE, _SCORE, _FLOOR = range(6)
_ALPHA_MAX, _BETA_MAX, _PRICE, _K, _LEAST_CURVATURE, _LEAST_VALUE = range(6, 12)
_NORM_PRICE, _NORM2 = range(12, 14)

#: Kinds of moves that violate less than this share of the worst are not made.
_WORTHWHILE = 0.1
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
    cap, members, *others = numbers[:_ALPHA_MAX].tolist()
    return Group(cap, int(members), *others), steps, violation


@inner()
def _line_search(numbers, linear, curvature, room, slope, square, norm2):
    """The step that maximises the dual where ``|beta|^2`` has a slope and a square: Newton."""
    price, low, high, step = numbers[_NORM_PRICE], 0.0, room, 0.0
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
def _partner(kernel, table, numbers, a, sign, share, along, slope, base, room, rooms, kinds):
    """The best partner of some kinds in a move of `a`, or -1; the step and the gain.

    The move is up (sign 1) or down (-1), `rooms` the row of the rooms of partners, and `kinds` the
    places where these begin and end.  The others are those of `gains`.
    """
    norm, least = numbers[_NORM_PRICE] > 0.0, numbers[_LEAST_CURVATURE]
    rate = table[FULL_RATE if norm else RATE]
    diagonal = table[FULL_DIAGONAL if norm else DIAGONAL]
    rooms, first, last = table[rooms], kinds[0], kinds[1]
    alone = a < table.shape[1]  # or it is the group
    own, row = 1.0 if alone else 0.0, kernel[a if alone else 0]
    column, gain = table[COLUMN], table[GAIN]
    gains(
        gain[first:last],
        row[first:last],
        column[first:last],
        rate[first:last],
        diagonal[first:last],
        rooms[first:last],
        own,
        along,
        slope,
        base,
        room,
        sign * share,
        least,
    )
    v = largest(gain[first:last], NOBODY)
    if v < 0:
        return v, 0.0, 0.0
    v += first
    cross = own * row[v] + along * column[v]
    curvature = max(base + share * (share * diagonal[v] - 2.0 * cross), least)
    step = min(max(slope - sign * share * rate[v], 0.0) / curvature, min(room, rooms[v]))
    return v, step, gain[v]


@inner()
def _regroup(kernel, table, member, numbers, n, v, sign):
    """Make the beta `v` a member of the group (sign 1), or not (-1): its value is the cap."""
    weight, column = sign * table[WEIGHT, v], table[COLUMN]
    numbers[_SQUARE] += weight * (2.0 * column[v] + weight * table[DIAGONAL, v])
    numbers[_SCORE] -= weight * table[RATE, v]
    numbers[_MEMBERS] += sign
    numbers[_SIZE] += weight
    follow(column, kernel[v], -weight, kernel[v], 0.0, table[RATE], 0.0)
    member[v] = sign > 0.0
    table[VALUE, v] = numbers[_CAP]
    _rooms(table, member, numbers, n)


@inner()
def _rooms(table, member, numbers, n):
    """The rooms of all betas under the cap."""
    alone = numbers[_K] == 0.0 and numbers[_MEMBERS] < 1.5
    value, weight, rise, fall = table[VALUE], table[WEIGHT], table[RISE], table[FALL]
    cap = numbers[_CAP]
    top = min(cap, numbers[_BETA_MAX])
    under_cap(value[n:], weight[n:], member[n:], rise[n:], fall[n:], cap, top, alone)


@inner()
def _join(kernel, table, member, numbers, n, move):
    """Take into the group every beta that a move has brought to the cap, if it fits."""
    K, falls, size = numbers[_K], move[4] < 0.0, numbers[_SIZE]
    limit = K * (1.0 + SAME) if K > 0.0 else np.inf
    for turn in range(1 if falls else 2):
        moved = move[2] if turn else move[0]
        first, last = (n, member.size) if falls else (moved, moved + 1)
        for v in range(max(first, n), last):
            if not member[v] and table[VALUE, v] >= numbers[_CAP] * (1.0 - AT_CAP):
                if size + table[WEIGHT, v] <= limit:
                    _regroup(kernel, table, member, numbers, n, v, 1.0)
                    size = numbers[_SIZE]


@inner()
def _place(table, numbers, n, v, step):
    """Move the value of `v` up by `step`."""
    weight, top = table[WEIGHT, v], numbers[_ALPHA_MAX] if v < n else numbers[_BETA_MAX]
    value = table[VALUE, v] + (step if v < n else -step) / weight
    if value <= numbers[_LEAST_VALUE]:
        value = 0.0
    elif top - value <= numbers[_LEAST_VALUE]:
        value = top
    table[VALUE, v] = value
    if v < n:
        table[RISE, v], table[FALL, v] = weight * (top - value), weight * value
    else:
        room = weight * max(min(numbers[_CAP], top) - value, 0.0)
        table[RISE, v], table[FALL, v] = weight * value, room


@inner()
def _go(kernel, table, numbers, n, move):
    """Make a move: rates, values and the group follow."""
    first, one, second, two, rise = move
    column = table[COLUMN]
    other = second if second >= 0 else first
    follow(table[RATE], kernel[first], one, kernel[other], two, column, rise)
    score = one * column[first] + two * column[other] - rise * numbers[_SQUARE]
    numbers[_SCORE] += score
    numbers[_CAP] += rise
    for turn in range(2):
        v, step = (other, two) if turn else (first, one)
        if step != 0.0:
            _place(table, numbers, n, v, step)


@inner()
def _add_norm(table, numbers, n, norm2):
    """Rates and curvatures with the norm of the betas."""
    scale = numbers[_NORM_PRICE] / np.sqrt(max(norm2, 1e-300))
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
    curvature = max(curvature, numbers[_LEAST_CURVATURE])
    linear = table[RATE, up] - table[RATE, down]
    room = min(table[RISE, up], table[FALL, down])
    step = _line_search(numbers, linear, curvature, room, slope, square, norm2)
    return step, max(norm2 + step * (2.0 * slope + square * step), 1e-300)


@inner()
def _floor(table, member, numbers, n):
    """The largest two betas outside the group, and the one that is the largest, or -1."""
    found = table[GAIN, n:]
    one, two = outside(table[VALUE, n:], member[n:], found)
    floor = numbers[_FLOOR]
    lower = max(floor, found[two]) if two >= 0 else floor
    if one < 0 or found[one] <= floor:
        return floor, lower, NOBODY
    return found[one], lower, n + one


@inner()
def _against_group(table, member, numbers, n, v, sign, floor):
    """Gain, step and size of the others, `v` moving up (sign 1) or down against the group."""
    own, weight, cross = table[DIAGONAL, v], table[WEIGHT, v], table[COLUMN, v]
    size, score, square = numbers[_SIZE], numbers[_SCORE], numbers[_SQUARE]
    if member[v]:  # it leaves the group behind
        size, score = size - weight, score + weight * table[RATE, v]
        square, cross = square - weight * (2.0 * cross - weight * own), cross - weight * own
    if size <= 0.0:
        return 0.0, 0.0, 1.0
    slope = sign * (table[RATE, v] - (numbers[_PRICE] - score) / size)
    curvature = max(own + square / (size * size) - 2.0 * cross / size, numbers[_LEAST_CURVATURE])
    room = table[RISE, v]
    if sign < 0.0:  # the cap comes down to meet a growing beta
        meeting = 1.0 + weight / size if v >= n else 1.0
        room = min(size * (numbers[_CAP] - floor), table[FALL, v] / meeting)
    step = max(min(slope / curvature, room), 0.0)
    return step * (slope - 0.5 * curvature * step), step, size


@inner()
def _extremes(table, numbers, n):
    """Alphas with the largest and the smallest rate, betas with these, and the free beta."""
    b, places = table.shape[1], np.full(5, -1)
    rates = table[FULL_RATE if numbers[_NORM_PRICE] > 0.0 else RATE]
    for k in range(5 if numbers[_K] > 0.0 else 4):
        first, last = (0, n) if k < 2 else (n, b)
        up = k % 2 == 0
        rooms, others = table[RISE if up else FALL], table[FALL if k == 4 or not up else RISE]
        place = extreme(
            rates[first:last], rooms[first:last], others[first:last], 1.0 if up else -1.0
        )
        places[k] = first + place if place >= 0 else -1
    return places


@inner()
def _untied_move(kernel, table, member, numbers, n, keep_up):
    """The violation, and the move of the variable that violates most with its best partner.

    The two that violate most take turns: that needs fewer steps than the better pair each time.
    """
    b, nothing = member.size, (NOBODY, 0.0, NOBODY, 0.0, 0.0)
    norm, size, score = numbers[_NORM_PRICE] > 0.0, numbers[_SIZE], numbers[_SCORE]
    rate = table[FULL_RATE if norm else RATE]
    diagonal = table[FULL_DIAGONAL if norm else DIAGONAL]
    places = _extremes(table, numbers, n)
    up, down, most, lowest, floor = NOBODY, NOBODY, -np.inf, np.inf, 0.0
    for k in range(0, 4, 2):
        high, low = places[k], places[k + 1]
        if high >= 0 and rate[high] > most:
            up, most = high, rate[high]
        if low >= 0 and rate[low] < lowest:
            down, lowest = low, rate[low]
    group = (numbers[_PRICE] - score) / size if size > 0.0 else 0.0
    if size > 0.0:
        floor = _floor(table, member, numbers, n)[0]
        if group > most and numbers[_CAP] > floor:
            up, most = b, group
        if group < lowest:
            down, lowest = b, group
    violation = max(most - lowest, 0.0)
    for _ in range(2 if violation > 0.0 else 0):
        a, sign = (up, 1.0) if keep_up else (down, -1.0)
        keep_up = not keep_up
        if a < b:
            along, base, slope = 0.0, diagonal[a], sign * rate[a]
            room = table[RISE, a] if sign > 0.0 else table[FALL, a]
        else:
            along, base, slope = 1.0 / size, numbers[_SQUARE] / (size * size), sign * group
            room = size * (numbers[_CAP] - floor) if sign > 0.0 else np.inf
        rooms = FALL if sign > 0.0 else RISE
        v, step, gain = _partner(
            kernel, table, numbers, a, sign, 1.0, along, slope, base, room, rooms, (ZERO, b)
        )
        single, direction = a, sign
        if a == b:
            single, direction = v, -sign
        if size > 0.0 and single >= 0:
            better, length, others = _against_group(
                table, member, numbers, n, single, direction, floor
            )
            if a == b or better > gain:
                step = direction * length
                return violation, (single, step, NOBODY, 0.0, step / others)
        if v >= 0:
            return violation, (a, sign * step, v, -sign * step, 0.0)
    return violation, nothing


@inner()
def _tied_violations(table, numbers, places, share):
    """The violation of each kind of move: alpha pair, beta pair, coupled up and down."""
    rate, none, score = table[RATE], -np.inf, numbers[_SCORE] / numbers[_K]
    alphas, betas, raising, lowering = none, none, none, none
    up, down, high, low, free = places[0], places[1], places[2], places[3], places[4]
    if min(up, down) >= 0:
        alphas = rate[up] - rate[down]
    if min(high, low) >= 0:
        betas = rate[high] - rate[low]
    if up >= 0 and (share == 0.0 or low >= 0):
        raising = rate[up] + score - (share * rate[low] if share > 0.0 else 0.0)
    if down >= 0 and (share == 0.0 or free >= 0):
        lowering = (share * rate[free] if share > 0.0 else 0.0) - rate[down] - score
    return alphas, betas, raising, lowering


@inner()
def _cap_room(table, member, numbers, n, share, upwards):
    """How far an alpha can move for the sake of the cap; how far for each rest, in the table."""
    K, most, second, holder = numbers[_K], np.inf, np.inf, NOBODY
    if not upwards:
        lowest, lower, holder = _floor(table, member, numbers, n)
        most, second = K * (numbers[_CAP] - lowest), K * (numbers[_CAP] - lower)
    if share == 0.0:
        return most
    weight, rise, fall, rooms = table[WEIGHT], table[RISE], table[FALL], table[ROOMS]
    rests(weight[n:], rise[n:], fall[n:], rooms[n:], share, upwards, K, most, holder - n, second)
    return np.inf


@inner()
def _tied_move(kernel, table, member, numbers, n, keep_up, tolerance):
    """The violation, and the best move of the kind that violates most and has room.

    That needs fewer steps than the largest gain of all.  Kinds that violate much less than the
    worst are not looked at: where that has no room, they could go on for ever.
    """
    K, b = numbers[_K], member.size
    share = (K - numbers[_SIZE]) / K
    share = share if share > SAME else 0.0
    places = _extremes(table, numbers, n)
    violations = _tied_violations(table, numbers, places, share)
    violation = max(max(violations[0], violations[1]), max(violations[2], violations[3]))
    tried = 0  # the bits of the kinds without room
    for _ in range(4 if violation > tolerance else 0):
        kind, worst = -1, _WORTHWHILE * violation
        for k in range(4):
            if violations[k] > worst and not (tried >> k) & 1:
                kind, worst = k, violations[k]
        if kind < 0:
            break
        tried |= 1 << kind
        coupled = kind >= 2
        up = kind == 2 if coupled else keep_up
        a, sign = places[(0 if up else 1) + (2 if kind == 1 else 0)], 1.0 if up else -1.0
        slope, base = sign * table[RATE, a], table[DIAGONAL, a]
        along, part, room = 0.0, 1.0, table[RISE, a] if up else table[FALL, a]
        if coupled:
            slope += sign * numbers[_SCORE] / K
            base += numbers[_SQUARE] / (K * K) - 2.0 * table[COLUMN, a] / K
            along, part = -1.0 / K, share
            room = min(room, _cap_room(table, member, numbers, n, share, up))
        v, step = NOBODY, min(slope / max(base, numbers[_LEAST_CURVATURE]), room)
        if part > 0.0:
            rooms = ROOMS if coupled else FALL if up else RISE
            kinds = (0 if kind == 0 else n, n if kind == 0 else b)
            v, step, _ = _partner(
                kernel, table, numbers, a, sign, part, along, slope, base, room, rooms, kinds
            )
        if step > 0.0:
            step *= sign
            return violation, (a, step, v, -part * step, step / K if coupled else 0.0)
    return violation, (NOBODY, 0.0, NOBODY, 0.0, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _move(kernel, table, member, numbers, n, tolerance, most):
    """As `move_pairs`, on plain arrays: the number of moves, and the violation."""
    norm2, violation, norm = 0.0, np.inf, numbers[_NORM_PRICE] > 0.0
    capped, tied, move = np.isfinite(numbers[_CAP]), numbers[_K] > 0.0, (n, 0.0, n, 0.0, -1.0)
    for count in range(most + 1):
        if capped:
            if move[4] != 0.0:
                _rooms(table, member, numbers, n)
            _join(kernel, table, member, numbers, n, move)
        if count == most:
            break
        if norm:
            if count % _REFRESH == 0:
                norm2 = numbers[_NORM2]
                for v in range(n, member.size):
                    norm2 += table[WEIGHT, v] * table[VALUE, v] ** 2
            _add_norm(table, numbers, n, norm2)
        keep_up = count % 2 == 0
        if tied:
            violation, move = _tied_move(kernel, table, member, numbers, n, keep_up, tolerance)
        else:
            violation, move = _untied_move(kernel, table, member, numbers, n, keep_up)
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
