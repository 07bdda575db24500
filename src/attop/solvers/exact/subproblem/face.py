"""Newton's method on a face: all free variables of a block go to their optimum at once.

Pair moves find out soon which variables are free, between their bounds, but where many are, they
creep.  With the others fixed the dual is a quadratic function of the free ones and of the cap with
its group: one Cholesky factorisation tells its maximum under the equations

    sum of all moves = 0,    and for a tied cap    K times its rise = sum of the moves of alphas.

Variables that would leave their bounds are put onto them, betas that would pass the cap into the
group, all at once, and the rest is solved for again, until no more would.  The segment to the
point so found lies within the constraints, and its best point is taken.

Moves are changes of ``w``, as in `attop.solvers.exact.subproblem.block`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from attop.solvers.exact.subproblem.block import FAST, SAME, Group, inner, join, plain

#: Solutions of smaller and smaller systems, at most.
_ROUNDS = 12
#: Sums of moves that differ by more, relative to them, are not equal.
_UNBALANCED = 1e-11
#: Added to the diagonal at least, relative to its largest entry; pivots that are not well above it
#: are rounding.
LEAST_RIDGE = 1e-10


@inner(fastmath=FAST)
def _against_above(matrix, i):
    """Four rows of Cholesky's factor from `i` on, left of their own square.

    Each row above is read once for all four.
    """
    one, two, three, four = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
    for j in range(i):
        other = matrix[j]
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for k in range(j):
            first += one[k] * other[k]
            second += two[k] * other[k]
            third += three[k] * other[k]
            fourth += four[k] * other[k]
        one[j] = (one[j] - first) / other[j]
        two[j] = (two[j] - second) / other[j]
        three[j] = (three[j] - third) / other[j]
        four[j] = (four[j] - fourth) / other[j]


@inner(fastmath=FAST)
def _factorise(matrix, n, least):
    """Cholesky's factor in the place of the lower triangle, four rows at a time.

    Variables whose pivot is not above `least`, which others explain, are left out: an infinite
    pivot lets their moves vanish.
    """
    for start in range(0, n, 4):
        together = start + 4 <= n
        if together:
            _against_above(matrix, start)
        for i in range(start, min(start + 4, n)):
            row = matrix[i]
            for j in range(start if together else 0, i + 1):
                other, total = matrix[j], row[j]
                for k in range(j):
                    total -= row[k] * other[k]
                if j < i:
                    row[j] = total / other[j]
                else:
                    row[j] = np.sqrt(total) if total > least else 1e150


@inner(fastmath=FAST)
def _solve(factor, n, right):
    """Solve for each row of `right`, in place."""
    for side in range(len(right)):
        x = right[side]
        for i in range(n):
            row, total = factor[i], x[i]
            for k in range(i):
                total -= row[k] * x[k]
            x[i] = total / row[i]
        for i in range(n - 1, -1, -1):
            row = factor[i]
            x[i] /= row[i]
            for k in range(i):
                x[k] -= row[k] * x[i]


@inner(fastmath=FAST)
def _dot(one, other):
    total = 0.0
    for i in range(min(one.size, other.size)):
        total += one[i] * other[i]
    return total


@inner(fastmath=FAST)
def _add(total, factor, column):
    for i in range(column.size):
        total[i] += factor * column[i]


@inner(fastmath=FAST)
def _system(block, free, n, column, size, square, lift, pull, first, ridge, matrix):
    """The factor of the matrix of `n` free variables and, last, of the group.

    The kernel may lack a constant: `lift` brings it back, which changes nothing under the first
    equation.  `pull` is price / norm and price / norm^3 of the norm of the betas.
    """
    largest = 1e-300
    for i in range(n):
        v = free[i]
        row, entries = matrix[i], block.kernel[v]
        for j in range(i + 1):
            row[j] = entries[free[j]] + lift
        if pull[1] > 0.0 and v >= first:
            for j in range(i + 1):
                if free[j] >= first:
                    row[j] -= pull[1] * block.value[v] * block.value[free[j]]
            row[i] += pull[0] / block.weight[v]
        matrix[n, i] = column[v] + lift * size
        largest = max(largest, row[i])
    matrix[n, n] = square + lift * size * size if size > 0.0 else 1.0
    for i in range(n):
        matrix[i, i] += ridge * largest
    matrix[n, n] *= 1.0 + ridge
    _factorise(matrix, n + 1, 4.0 * LEAST_RIDGE * largest)


@inner()
def _moves(factor, free, n, rest, size, fixed, K, first, right, sides):
    """Moves of the free variables and of the group to the optimum on their face.

    `fixed` is what moves that are settled add to the two equations.
    """
    for i in range(n):
        right[0, i] = rest[free[i]]
        right[1, i] = 1.0
        right[2, i] = 1.0 if free[i] < first else 0.0
    right[0, n], right[1, n], right[2, n] = 0.0, 0.0, 0.0
    if size > 0.0:
        right[0, n], right[1, n], right[2, n] = rest[rest.size - 1], size, K
    for i in range(n + 1):
        sides[0, i], sides[1, i] = right[1, i], right[2, i]
    _solve(factor, n + 1, right)
    move, one_side, both_sides = right[0, : n + 1], right[1, : n + 1], right[2, : n + 1]
    single, both = _dot(sides[0], one_side), _dot(sides[0], both_sides)
    double = _dot(sides[1], both_sides)
    determinant = single * double - both * both
    # Without a free beta and with a full group the equations are the same.
    tied = K > 0.0 and size > 0.0 and determinant > 1e-9 * single * double
    for _ in range(3):  # the second and third time for what rounding has left
        one, two = _dot(sides[0], move) + fixed[0], _dot(sides[1], move) + fixed[1]
        if tied:
            _add(move, (both * two - double * one) / determinant, one_side)
            _add(move, (both * one - single * two) / determinant, both_sides)
        else:
            _add(move, -one / single, one_side)


@inner()
def _settle(block, v, move, rest, column, fixed, first):
    """Let variable `v` move by `move` whatever the others do."""
    _add(rest, -move, block.kernel[v])
    rest[rest.size - 1] -= move * column[v]
    fixed[0] += move
    if v < first:
        fixed[1] += move


@inner()
def _rise(free, n, found, size, fixed, K, first):
    """By how much the cap rises."""
    if size > 0.0:
        return -found[n]
    if K == 0.0:
        return 0.0
    total = fixed[1]
    for i in range(n):
        if free[i] < first:
            total += found[i]
    return total / K


@inner()
def _target(block, group, terms, rest, lift, pull, ridge, move, joins):
    """Moves to the optimum of a face, the last one that of the group; False if there is none.

    `rest` are the rates of all variables and of the group.
    """
    b, first = block.value.size, terms.n_alphas
    capped, K = np.isfinite(group.cap), float(terms.K)
    free, n = np.empty(b, dtype=np.int64), 0
    for v in range(b):
        if block.rise[v] > 0.0 and block.fall[v] > 0.0:
            free[n] = v
            n += 1
    matrix, right, sides = np.empty((n + 1, n + 1)), np.empty((3, n + 1)), np.empty((2, n + 1))
    column, fixed = block.group_column.copy(), np.zeros(2)
    size, square = group.size, group.square
    for _ in range(_ROUNDS):
        if n == 0 or (K > 0.0 and size > K * (1.0 + SAME)):
            return False
        _system(block, free, n, column, size, square, lift, pull, first, ridge, matrix)
        _moves(matrix, free, n, rest, size, fixed, K, first, right, sides)
        found = right[0]
        rise = _rise(free, n, found, size, fixed, K, first)
        stay = 0
        for i in range(n):
            v, step = free[i], found[i]
            weight, fall = block.weight[v], block.fall[v]
            joining = capped and v >= first and -step > fall + weight * rise
            if not joining and -fall <= step <= block.rise[v]:
                move[v] = step
                free[stay] = v
                stay += 1
                continue
            move[v] = -fall if joining else min(max(step, -fall), block.rise[v])
            _settle(block, v, move[v], rest, column, fixed, first)
            if joining:
                joins[v] = True
                rest[b] += weight * rest[v]
                square += weight * (2.0 * column[v] + weight * block.diagonal[v])
                size += weight
                _add(column, weight, block.kernel[v])
        if stay == n:
            move[b] = -rise
            for v in range(first, b):
                if joins[v]:
                    move[v] -= block.weight[v] * rise
            return True
        if 2 * stay < n and ridge < 1.0:  # far beyond all bounds: shorter moves get farther
            return False
        n = stay
    return False


@inner()
def _balanced(group, terms, move):
    """Whether the moves satisfy the equations; a group that is full may leave no way to."""
    b = move.size - 1
    total, alphas, size = move[b] * group.size, 0.0, 0.0
    for v in range(b):
        total += move[v]
        alphas += move[v] if v < terms.n_alphas else 0.0
        size += abs(move[v])
    slack = _UNBALANCED * (size + abs(move[b]) * (group.size + terms.K))
    return abs(total) <= slack and (terms.K == 0 or abs(alphas + terms.K * move[b]) <= slack)


@inner()
def _share(slope, curvature, price, norm2, along, square):
    """The best share of a move, at most 1, where ``|beta|^2`` is a quadratic function of it."""
    if price == 0.0:
        return 1.0 if curvature <= slope else slope / curvature
    low, high = 0.0, 1.0
    for attempt in range(40):
        share = 1.0 if attempt == 0 else 0.5 * (low + high)
        norm = np.sqrt(max(norm2 + share * (2.0 * along + share * square), 1e-300))
        if slope - curvature * share > price * (along + share * square) / norm:
            low = share
            if attempt == 0:
                return 1.0
        else:
            high = share
    return low


@inner()
def _rates(block, group, terms, norm_price, norm2, full, pull):
    """The rates of all variables, with the norm, and of the group."""
    b, first = block.value.size, terms.n_alphas
    if norm_price > 0.0:
        norm = np.sqrt(max(norm2, 1e-300))
        pull[0], pull[1] = norm_price / norm, norm_price / (norm * norm * norm)
    for v in range(b):
        full[v] = block.rate[v] + (pull[0] * block.value[v] if v >= first else 0.0)
    full[b] = terms.price - group.score if np.isfinite(group.cap) else 0.0
    return full[b]


@njit(cache=True, nogil=True, error_model="numpy")
def newton_on_face(block, group, terms, lift, norm_price, outside, ridge):
    """Move all free variables of the block, and the group, to their optimum, or towards it.

    The larger the `ridge`, relative to the diagonal, the shorter the moves.  Returns the group as a
    plain tuple, and whether there was a move that gained.
    """
    b, first = block.value.size, terms.n_alphas
    norm2, along, square = outside, 0.0, 0.0
    if norm_price > 0.0:
        for v in range(first, b):
            norm2 += block.weight[v] * block.value[v] * block.value[v]
    rest, pull, move = np.empty(b + 1), np.zeros(2), np.zeros(b + 1)
    joins = np.zeros(b, dtype=np.bool_)
    group_rate = _rates(block, group, terms, norm_price, norm2, rest, pull)
    if not _target(block, group, terms, rest, lift, pull, ridge, move, joins):
        return plain(group), False
    if not _balanced(group, terms, move):
        return plain(group), False
    change = np.zeros(b)
    _add(change, move[b], block.group_column)
    for v in range(b):
        if move[v] != 0.0:
            _add(change, move[v], block.kernel[v])
            if v >= first:
                along -= block.value[v] * move[v]
                square += move[v] * move[v] / block.weight[v]
    cross = _dot(block.group_column, move) + move[b] * group.square
    slope = _dot(block.rate, move) + move[b] * group_rate
    curvature = _dot(change, move) + move[b] * cross
    # Neither is a number where a factorisation went wrong.
    if not slope > pull[0] * along or not np.isfinite(curvature):
        return plain(group), False
    share = _share(slope, curvature, norm_price, norm2, along, square)
    if move[b] > 0.0:
        share = min(share, max(group.cap - group.floor, 0.0) / move[b])
    if not share > 0.0:
        return plain(group), False
    _go(block, group.cap - share * move[b], terms, move, share, change)
    cap, score = group.cap - share * move[b], group.score + share * cross
    group = Group(cap, group.members, group.size, group.square, score, group.floor)
    if share == 1.0:
        for v in range(first, b):
            if joins[v]:
                group = join(block, group, v)
    return plain(group), True


@inner()
def _go(block, cap, terms, move, share, change):
    """Take this share of the moves; the cap is the new one."""
    least = terms.least_value
    _add(block.rate, -share, change)
    for v in range(block.value.size):
        weight, top = block.weight[v], terms.alpha_max
        value = block.value[v] + share * move[v] / weight
        if v >= terms.n_alphas:
            value, top = block.value[v] - share * move[v] / weight, terms.beta_max
            value = cap if block.member[v] else min(value, cap)
        value = 0.0 if value <= least else top if top - value <= least else value
        block.value[v] = value
        block.rise[v], block.fall[v] = weight * (top - value), weight * value
        if v >= terms.n_alphas:
            fall = max(min(cap, top) - value, 0.0)
            block.rise[v], block.fall[v] = weight * value, weight * fall
