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

from attop.solvers.exact.subproblem.block import FAST, SAME, Group, join, plain

#: Solutions of smaller and smaller systems, at most.
_ROUNDS = 12
#: Added to the diagonal at least, relative to its largest entry; pivots that are not well above it
#: are rounding.
LEAST_RIDGE = 1e-10


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _factorise(matrix, least):
    """Cholesky's factor in the place of the lower triangle, row by row.

    Variables whose pivot is not above `least`, which others explain, are left out: an infinite
    pivot lets their moves vanish.
    """
    for i in range(len(matrix)):
        row = matrix[i]
        for j in range(i + 1):
            other, total = matrix[j], row[j]
            for k in range(j):
                total -= row[k] * other[k]
            if j < i:
                row[j] = total / other[j]
            else:
                row[j] = np.sqrt(total) if total > least else 1e150


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _solve(factor, right):
    """Solve for each row of `right`, in place."""
    for side in range(len(right)):
        x = right[side]
        for i in range(x.size):
            row, total = factor[i], x[i]
            for k in range(i):
                total -= row[k] * x[k]
            x[i] = total / row[i]
        for i in range(x.size - 1, -1, -1):
            row = factor[i]
            x[i] /= row[i]
            for k in range(i):
                x[k] -= row[k] * x[i]


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _system(block, free, column, size, square, lift, pull, first, ridge):
    """The matrix of the free variables and, last, of the group.

    The kernel may lack a constant: `lift` brings it back, which changes nothing under the first
    equation.  `pull` is price / norm and price / norm^3 of the norm of the betas.
    """
    n = free.size
    matrix = np.empty((n + 1, n + 1))
    largest = 0.0
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
    largest = max(largest, 1e-300)
    for i in range(n):
        matrix[i, i] += ridge * largest
    matrix[n, n] *= 1.0 + ridge
    _factorise(matrix, 4.0 * LEAST_RIDGE * largest)
    return matrix


@njit(cache=True, nogil=True, error_model="numpy")
def _moves(factor, free, rest, size, fixed, K, first):
    """Moves of the free variables and of the group to the optimum on their face.

    `fixed` is what moves that are settled add to the two equations.
    """
    n, b = free.size, rest.size - 1
    right = np.zeros((3, n + 1))
    for i in range(n):
        right[0, i] = rest[free[i]]
        right[1, i] = 1.0
        right[2, i] = 1.0 if free[i] < first else 0.0
    if size > 0.0:
        right[0, n], right[1, n], right[2, n] = rest[b], size, K
    sides = right[1:].copy()
    _solve(factor, right)
    move = right[0]
    single, both = np.dot(sides[0], right[1]), np.dot(sides[0], right[2])
    double = np.dot(sides[1], right[2])
    determinant = single * double - both * both
    # Without a free beta and with a full group the equations are the same.
    tied = K > 0.0 and size > 0.0 and determinant > 1e-9 * single * double
    for _ in range(3):  # the second and third time for what rounding has left
        one, two = np.dot(sides[0], move) + fixed[0], np.dot(sides[1], move) + fixed[1]
        if tied:
            price, other = (
                (double * one - both * two) / determinant,
                (single * two - both * one) / determinant,
            )
            move -= price * right[1] + other * right[2]
        else:
            move -= (one / single) * right[1]
    return move


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(block, v, move, rest, column, fixed, first):
    """Let variable `v` move by `move` whatever the others do."""
    kernel = block.kernel[v]
    for u in range(kernel.size):
        rest[u] -= move * kernel[u]
    rest[kernel.size] -= move * column[v]
    fixed[0] += move
    if v < first:
        fixed[1] += move


@njit(cache=True, nogil=True, error_model="numpy")
def _target(block, group, terms, full, lift, pull, move, ridge):
    """Moves to the optimum of a face, the last one that of the group; False if there is none."""
    b, first = block.value.size, terms.n_alphas
    capped, K = np.isfinite(group.cap), float(terms.K)
    free = np.flatnonzero((block.rise > 0.0) & (block.fall > 0.0))
    rest, column, fixed = full.copy(), block.group_column.copy(), np.zeros(2)
    size, square = group.size, group.square
    joins = np.zeros(b, dtype=np.bool_)
    for _ in range(_ROUNDS):
        if free.size == 0 or (K > 0.0 and size > K * (1.0 + SAME)):
            return False, joins
        factor = _system(block, free, column, size, square, lift, pull, first, ridge)
        found = _moves(factor, free, rest, size, fixed, K, first)
        rise = 0.0
        if size > 0.0:
            rise = -found[free.size]
        elif K > 0.0:
            rise = (np.sum(found[: np.searchsorted(free, first)]) + fixed[1]) / K
        stays = np.ones(free.size, dtype=np.bool_)
        for i in range(free.size):
            v, step = free[i], found[i]
            joining = capped and v >= first and -step > block.fall[v] + block.weight[v] * rise
            if not joining and -block.fall[v] <= step <= block.rise[v]:
                continue
            stays[i] = False
            if not joining:
                move[v] = min(max(step, -block.fall[v]), block.rise[v])
                _settle(block, v, move[v], rest, column, fixed, first)
                continue
            joins[v] = True
            weight, move[v] = block.weight[v], -block.fall[v]
            _settle(block, v, move[v], rest, column, fixed, first)
            rest[b] += weight * rest[v]
            square += weight * (2.0 * column[v] + weight * block.diagonal[v])
            size += weight
            for u in range(b):
                column[u] += weight * block.kernel[v, u]
        if 2 * np.sum(stays) < free.size and ridge < 1.0:
            return False, joins
        if stays.all():
            for i in range(free.size):
                move[free[i]] = found[i]
            move[b] = -rise
            for v in range(first, b):
                if joins[v]:
                    move[v] -= block.weight[v] * rise
            return True, joins
        free = free[stays]
    return False, joins


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def newton_on_face(block, group, terms, lift, norm_price, outside, ridge):
    """Move all free variables of the block, and the group, to their optimum, or towards it.

    The larger the `ridge`, relative to the diagonal, the shorter the moves.  Returns the group as a
    plain tuple, and whether there was a move that gained.
    """
    b, first = block.value.size, terms.n_alphas
    full, move = np.empty(b + 1), np.zeros(b + 1)
    full[:b] = block.rate
    full[b] = terms.price - group.score if np.isfinite(group.cap) else 0.0
    norm2, pull = outside, np.zeros(2)
    if norm_price > 0.0:
        betas = block.value[first:]
        norm2 += np.sum(block.weight[first:] * betas * betas)
        norm = np.sqrt(max(norm2, 1e-300))
        pull[0], pull[1] = norm_price / norm, norm_price / (norm * norm * norm)
        full[first:b] += pull[0] * betas
    solved, joins = _target(block, group, terms, full, lift, pull, move, ridge)
    if not solved or not np.all(np.isfinite(move)):
        return plain(group), False
    change = move[b] * block.group_column
    for v in range(b):
        if move[v] != 0.0:
            change += move[v] * block.kernel[v]
    cross = np.dot(move[:b], block.group_column) + move[b] * group.square
    slope = np.dot(block.rate, move[:b]) + move[b] * full[b]
    curvature = np.dot(move[:b], change) + move[b] * cross
    step = move[first:b]
    along = -np.dot(block.value[first:], step)
    square = np.sum(step * step / block.weight[first:])
    if slope <= norm_price * along / np.sqrt(max(norm2, 1e-300)):
        return plain(group), False
    share = _share(slope, curvature, norm_price, norm2, along, square)
    if move[b] > 0.0:
        share = min(share, max(group.cap - group.floor, 0.0) / move[b])
    if share <= 0.0:
        return plain(group), False
    return plain(_go(block, group, terms, move, share, change, cross, joins)), True


@njit(cache=True, nogil=True, error_model="numpy")
def _go(block, group, terms, move, share, change, cross, joins):
    """Take this share of the moves."""
    b, least = block.value.size, terms.least_value
    cap = group.cap - share * move[b] if np.isfinite(group.cap) else group.cap
    block.rate[:] -= share * change
    for v in range(b):
        weight, top = block.weight[v], terms.alpha_max
        value = block.value[v] + share * move[v] / weight
        if v >= terms.n_alphas:
            value, top = block.value[v] - share * move[v] / weight, terms.beta_max
            value = cap if block.member[v] else min(value, cap)
        value = 0.0 if value <= least else top if top - value <= least else value
        block.value[v] = value
        if v < terms.n_alphas:
            block.rise[v], block.fall[v] = weight * (top - value), weight * value
        else:
            fall = max(min(cap, top) - value, 0.0)
            block.rise[v], block.fall[v] = weight * value, weight * fall
    score = group.score + share * cross
    group = Group(cap, group.members, group.size, group.square, score, group.floor)
    if share == 1.0:
        for v in range(terms.n_alphas, b):
            if joins[v]:
                group = join(block, group, v)
    return group
