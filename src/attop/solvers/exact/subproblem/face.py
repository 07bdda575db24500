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
from numpy.typing import NDArray

from attop.solvers.exact.subproblem.block import SAME, Block, Group, Terms
from attop.solvers.exact.subproblem.rows import add_rows
from attop.solvers.exact.subproblem.system import Pull, System

#: Solutions of smaller and smaller systems, at most.
_ROUNDS = 12
#: Sums of moves that differ by more, relative to them, are not equal.
_UNBALANCED = 1e-11
#: Added to the diagonal at least, relative to its largest entry.
LEAST_RIDGE = 1e-10

Array = NDArray[np.float64]


class _Face:
    """The free variables, and what those that were put onto their bounds left to them.

    Attributes
    ----------
    free : the free variables.
    move : moves of the variables that are no longer free, zero for the others.
    joins : betas that move to the cap and stay there.
    rest, group_rest : rates of all variables and of the group after these moves.
    fixed : what these moves add to the two equations.
    size, square, column : of the group with those that join.
    """

    def __init__(
        self, block: Block, group: Group, terms: Terms, rest: Array, group_rest: float
    ) -> None:
        self.block, self.cap, self.K = block, group.cap, float(terms.K)
        self.first_beta, b = terms.n_alphas, len(block.value)
        self.free = np.flatnonzero((block.rise > 0.0) & (block.fall > 0.0))
        self.move, self.joins = np.zeros(b), np.zeros(b, dtype=bool)
        self.rest, self.group_rest = rest, group_rest
        self.fixed = np.zeros(2)
        self.size, self.square, self.column = group.size, group.square, block.group_column

    def system(self, lift: float, pull: Pull, ridge: float) -> System:
        """The quadratic form of the free variables and of the group, factorised.

        The kernel may lack a constant: `lift` brings it back, which changes nothing under the first
        equation.
        """
        free, block = self.free, self.block
        own, betas = np.zeros(len(free)), np.zeros(0)
        if pull.thrice:
            betas = np.where(free < self.first_beta, 0.0, block.value[free])
            own = np.where(betas > 0.0, pull.once / block.weight[free], 0.0)
        group = None
        if self.size > 0.0:
            group = self.column[free] + lift * self.size, self.square + lift * self.size**2
        pulled, rows = (pull.thrice, betas), block.sample[free]
        return System(block.kernel, free, own, rows, group, pulled, lift, ridge)

    def solve(self, system: System) -> tuple[Array, float]:
        """Moves of the free variables and of the group to the optimum."""
        n = len(self.free)
        sides = np.zeros((3, n + 1))
        sides[0, :n], sides[1, :n] = self.rest[self.free], 1.0
        sides[2, : self._n_alphas()] = 1.0
        if self.size > 0.0:
            sides[:, n] = self.group_rest, self.size, self.K
        return self._balanced(system.solve(sides), sides[1:])

    def _n_alphas(self) -> int:
        """How many of the free variables are alphas, which come first."""
        return int(self.free.searchsorted(self.first_beta))

    def _balanced(self, found: Array, sides: Array) -> tuple[Array, float]:
        """The moves that satisfy the equations, by the solutions for all right-hand sides."""
        move, ones = found[0], found[1:]
        (single, both), (_, double) = (sides @ ones.T).tolist()
        # Without a free beta and with a full group the equations are the same.
        tied = self.K and self.size and single * double - both * both > 1e-9 * single * double
        for _ in range(3):  # the second and third time for what rounding has left
            one, two = (sides @ move + self.fixed).tolist()
            if tied:
                determinant = single * double - both * both
                shares = [both * two - double * one, both * one - single * two]
                move = move + (np.array(shares) / determinant) @ ones
            else:
                move = move - ones[0] * (one / single)
        return move[:-1], self._rise(move)

    def _rise(self, move: Array) -> float:
        """By how much the cap rises."""
        if self.size > 0.0:
            return -float(move[-1])
        if not self.K:
            return 0.0
        return float(self.fixed[1] + move[: self._n_alphas()].sum()) / self.K

    def leaving(self, step: Array, rise: float) -> tuple[NDArray[np.bool_], Array]:
        """Which of the free variables leave their bounds, and their moves onto them."""
        block, free = self.block, self.free
        lowest, room = -block.fall[free], block.rise[free]
        gone = (step < lowest) | (step > room)
        onto = np.minimum(np.maximum(step, lowest), room)
        if np.isfinite(self.cap):
            first = self._n_alphas()
            betas = free[first:]
            passing = step[first:] < lowest[first:] - block.weight[betas] * rise
            self.joins[betas[passing]] = True
            gone[first:] |= passing
            onto[first:] = np.where(passing, lowest[first:], onto[first:])
        return gone, onto

    def settle(self, gone: NDArray[np.bool_], steps: Array) -> None:
        """Let the variables move whatever the others do."""
        block, variables, move = self.block, self.free[gone], steps[gone]
        rows = block.kernel[variables]
        self.move[variables] = move
        self.rest = self.rest - move @ rows
        self.group_rest -= float(move @ self.column[variables])
        self.fixed += move.sum(), move[variables < self.first_beta].sum()
        joining = self.joins[variables]
        if joining.any():
            new, rows = variables[joining], rows[joining]
            weight = block.weight[new]
            self.group_rest += float(weight @ self.rest[new])
            inside = weight @ rows[:, new] @ weight
            self.square += float(2.0 * weight @ self.column[new] + inside)
            self.size += float(np.sum(weight))
            self.column = self.column + weight @ rows
        self.free = self.free[~gone]


def newton_on_face(
    block: Block,
    group: Group,
    terms: Terms,
    lift: float,
    norm_price: float,
    outside: float,
    ridge: float,
) -> tuple[Group, bool]:
    """Move all free variables of the block, and the group, to their optimum, or towards it.

    Parameters
    ----------
    block, group, terms : Block, Group, Terms
        The subproblem; the block is changed in place.
    lift : float
        The constant that its kernel lacks.
    norm_price, outside : float
        Price of the norm of the betas, and ``|beta|^2`` of those outside the block.
    ridge : float
        The larger it is, relative to the diagonal, the shorter are the moves.

    Returns
    -------
    group : Group
        The group there.
    gained : bool
        Whether there was a move that gained.
    """
    first, pull, norm2 = terms.n_alphas, Pull(), outside
    rest = block.rate.copy()
    betas = block.value[first:]
    if norm_price > 0.0:
        norm2 += float(np.dot(block.weight[first:], betas * betas))
        if not 1e-200 < norm2 < 1e200:  # its cube is out of range
            return group, False
        norm = norm2**0.5
        pull = Pull(norm_price / norm, norm_price / norm**3)
        rest[first:] += pull.once * betas
    group_rate = terms.price - group.score if np.isfinite(group.cap) else 0.0
    found = _target(_Face(block, group, terms, rest, group_rate), lift, pull, ridge)
    if found is None:
        return group, False
    face, rise = found
    moving = np.flatnonzero(face.move)
    change = -rise * block.group_column
    add_rows(block.kernel, moving, face.move[moving], change)
    cross = float(np.dot(block.group_column, face.move)) - rise * group.square
    slope = float(np.dot(block.rate, face.move)) - rise * group_rate
    curvature = float(np.dot(change, face.move)) - rise * cross
    along = -float(np.dot(betas, face.move[first:]))
    square = float(np.dot(face.move[first:], face.move[first:] / block.weight[first:]))
    # Neither is a number where a factorisation went wrong.
    if not slope > pull.once * along or not np.isfinite(curvature):
        return group, False
    share = _share(slope, curvature, norm_price, norm2, along, square)
    if rise < 0.0:
        share = min(share, max(group.cap - group.floor, 0.0) / -rise)
    if not share > 0.0:
        return group, False
    block.rate[:] -= share * change
    cap, score = group.cap + share * rise, group.score + share * cross
    _go(block, cap, terms, face.move, share)
    group = group._replace(cap=cap, score=score)
    return _joined(block, group, face.joins) if share == 1.0 else group, True


def _target(face: _Face, lift: float, pull: Pull, ridge: float) -> tuple[_Face, float] | None:
    """The moves to the optimum of a face, and the rise of the cap; None if there are none."""
    full = face.K * (1.0 + SAME) if face.K else np.inf
    system = None
    for _ in range(_ROUNDS):
        if len(face.free) == 0 or face.size > full:
            return None
        try:
            system = system or face.system(lift, pull, ridge)
            step, rise = face.solve(system)
        except np.linalg.LinAlgError:  # nor may what is left of a factor be definite
            return None
        gone, steps = face.leaving(step, rise)
        if not gone.any():
            face.move[face.free] = step
            face.move[face.joins] -= face.block.weight[face.joins] * rise
            return (face, rise) if _balances(face, rise) else None
        # Far beyond all bounds shorter moves get farther.
        if 2 * np.count_nonzero(gone) > len(gone) and ridge < 1.0:
            return None
        size = face.size
        face.settle(gone, steps)
        if face.size != size or not system.drop(gone):  # the group is another, or many are gone
            system = None
    return None


def _balances(face: _Face, rise: float) -> bool:
    """Whether the moves satisfy the equations; a group that is full may leave no way to."""
    move, K = face.move, face.K
    # Those that join are counted by their moves, not by the group that they come to.
    size = face.size - float(np.sum(face.block.weight[face.joins]))
    total = float(move.sum()) - rise * size
    alphas = float(move[: face.first_beta].sum()) - rise * K
    slack = _UNBALANCED * (float(np.abs(move).sum()) + abs(rise) * (size + K))
    return abs(total) <= slack and (not K or abs(alphas) <= slack)


def _share(
    slope: float, curvature: float, price: float, norm2: float, along: float, square: float
) -> float:
    """The best share of a move, at most 1, where ``|beta|^2`` is a quadratic function of it."""
    if price == 0.0:
        return 1.0 if curvature <= slope else slope / curvature
    low, high = 0.0, 1.0
    for attempt in range(40):
        share = 1.0 if attempt == 0 else 0.5 * (low + high)
        norm = max(norm2 + share * (2.0 * along + share * square), 1e-300) ** 0.5
        if slope - curvature * share > price * (along + share * square) / norm:
            low = share
            if attempt == 0:
                return 1.0
        else:
            high = share
    return low


def _go(block: Block, cap: float, terms: Terms, move: Array, share: float) -> None:
    """Take this share of the moves of the variables; the cap is the new one."""
    first, weight, least = terms.n_alphas, block.weight, terms.least_value
    step = move * share / weight
    np.negative(step[first:], out=step[first:])
    value = block.value + step
    if np.isfinite(cap):
        betas = value[first:]
        np.minimum(betas, cap, out=betas)
        betas[block.member[first:]] = cap
    top = np.full(len(value), terms.alpha_max)
    top[first:] = terms.beta_max
    value = np.where(value <= least, 0.0, np.where(top - value <= least, top, value))
    block.value[:] = value
    top[first:] = min(cap, terms.beta_max)
    above, below = weight * np.maximum(top - value, 0.0), weight * value
    block.rise[:first], block.fall[:first] = above[:first], below[:first]
    block.rise[first:], block.fall[first:] = below[first:], above[first:]


def _joined(block: Block, group: Group, joins: NDArray[np.bool_]) -> Group:
    """The group with betas that have come to the cap."""
    new = np.flatnonzero(joins)
    if len(new) == 0:
        return group
    weight, rows = block.weight[new], block.kernel[new]
    square = 2.0 * weight @ block.group_column[new] + weight @ rows[:, new] @ weight
    block.group_column[:] += weight @ rows
    block.member[new], block.value[new] = True, group.cap
    block.rise[new], block.fall[new] = weight * group.cap, 0.0
    return group._replace(
        members=group.members + len(new),
        size=group.size + float(np.sum(weight)),
        square=group.square + float(square),
        score=group.score - float(weight @ block.rate[new]),
    )
