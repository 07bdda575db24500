"""Which pair move is made next, compiled: the kinds of moves and their best partners.

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
"""

from __future__ import annotations

import numpy as np

from attop.solvers.exact.subproblem.block import (
    CAP,
    COLUMN,
    DIAGONAL,
    FALL,
    FLOOR,
    FULL_DIAGONAL,
    FULL_RATE,
    GAIN,
    LEAST_CURVATURE,
    NORM_PRICE,
    PRICE,
    RATE,
    RISE,
    ROOMS,
    SAME,
    SCORE,
    SIZE,
    SQUARE,
    TOP_K,
    VALUE,
    WEIGHT,
)
from attop.solvers.exact.subproblem.scans import (
    NOBODY,
    ZERO,
    extreme,
    gains,
    inner,
    largest,
    outside,
    rests,
)

#: Kinds of moves that violate less than this share of the worst are not made.
_WORTHWHILE = 0.1


@inner()
def _partner(kernel, table, numbers, a, sign, share, along, slope, base, room, rooms, kinds):
    """The best partner of some kinds in a move of `a`, or -1; the step and the gain.

    The move is up (sign 1) or down (-1), `rooms` the row of the rooms of partners, and `kinds` the
    places where these begin and end.  The others are those of `gains`.
    """
    norm, least = numbers[NORM_PRICE] > 0.0, numbers[LEAST_CURVATURE]
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
def _floor(table, member, numbers, n):
    """The largest two betas outside the group, and the one that is the largest, or -1."""
    found = table[GAIN, n:]
    one, two = outside(table[VALUE, n:], member[n:], found)
    floor = numbers[FLOOR]
    lower = max(floor, found[two]) if two >= 0 else floor
    if one < 0 or found[one] <= floor:
        return floor, lower, NOBODY
    return found[one], lower, n + one


@inner()
def _against_group(table, member, numbers, n, v, sign, floor):
    """Gain, step and size of the others, `v` moving up (sign 1) or down against the group."""
    own, weight, cross = table[DIAGONAL, v], table[WEIGHT, v], table[COLUMN, v]
    size, score, square = numbers[SIZE], numbers[SCORE], numbers[SQUARE]
    if member[v]:  # it leaves the group behind
        size, score = size - weight, score + weight * table[RATE, v]
        square, cross = square - weight * (2.0 * cross - weight * own), cross - weight * own
    if size <= 0.0:
        return 0.0, 0.0, 1.0
    slope = sign * (table[RATE, v] - (numbers[PRICE] - score) / size)
    curvature = max(own + square / (size * size) - 2.0 * cross / size, numbers[LEAST_CURVATURE])
    room = table[RISE, v]
    if sign < 0.0:  # the cap comes down to meet a growing beta
        meeting = 1.0 + weight / size if v >= n else 1.0
        room = min(size * (numbers[CAP] - floor), table[FALL, v] / meeting)
    step = max(min(slope / curvature, room), 0.0)
    return step * (slope - 0.5 * curvature * step), step, size


@inner()
def _extremes(table, numbers, n):
    """Alphas with the largest and the smallest rate, betas with these, and the free beta."""
    b, places = table.shape[1], np.empty(5, np.int64)
    places[4] = NOBODY
    rates = table[FULL_RATE if numbers[NORM_PRICE] > 0.0 else RATE]
    for k in range(5 if numbers[TOP_K] > 0.0 else 4):
        first, last = (0, n) if k < 2 else (n, b)
        up = k % 2 == 0
        rooms, others = table[RISE if up else FALL], table[FALL if k == 4 or not up else RISE]
        place = extreme(
            rates[first:last], rooms[first:last], others[first:last], 1.0 if up else -1.0
        )
        places[k] = first + place if place >= 0 else NOBODY
    return places


@inner()
def untied_move(kernel, table, member, numbers, n, keep_up):
    """The violation, and the move of the variable that violates most with its best partner.

    The two that violate most take turns: that needs fewer steps than the better pair each time.
    """
    b, nothing = member.size, (NOBODY, 0.0, NOBODY, 0.0, 0.0)
    norm, size, score = numbers[NORM_PRICE] > 0.0, numbers[SIZE], numbers[SCORE]
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
    group = (numbers[PRICE] - score) / size if size > 0.0 else 0.0
    if size > 0.0:
        floor = _floor(table, member, numbers, n)[0]
        if group > most and numbers[CAP] > floor:
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
            along, base, slope = 1.0 / size, numbers[SQUARE] / (size * size), sign * group
            room = size * (numbers[CAP] - floor) if sign > 0.0 else np.inf
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
    rate, none, score = table[RATE], -np.inf, numbers[SCORE] / numbers[TOP_K]
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
    K, most, second, holder = numbers[TOP_K], np.inf, np.inf, NOBODY
    if not upwards:
        lowest, lower, holder = _floor(table, member, numbers, n)
        most, second = K * (numbers[CAP] - lowest), K * (numbers[CAP] - lower)
    if share == 0.0:
        return most
    weight, rise, fall, rooms = table[WEIGHT], table[RISE], table[FALL], table[ROOMS]
    rests(weight[n:], rise[n:], fall[n:], rooms[n:], share, upwards, K, most, holder - n, second)
    return np.inf


@inner()
def tied_move(kernel, table, member, numbers, n, keep_up, tolerance):
    """The violation, and the best move of the kind that violates most and has room.

    That needs fewer steps than the largest gain of all.  Kinds that violate much less than the
    worst are not looked at: where that has no room, they could go on for ever.
    """
    K, b = numbers[TOP_K], member.size
    share = (K - numbers[SIZE]) / K
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
            slope += sign * numbers[SCORE] / K
            base += numbers[SQUARE] / (K * K) - 2.0 * table[COLUMN, a] / K
            along, part = -1.0 / K, share
            room = min(room, _cap_room(table, member, numbers, n, share, up))
        v, step = NOBODY, min(slope / max(base, numbers[LEAST_CURVATURE]), room)
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
