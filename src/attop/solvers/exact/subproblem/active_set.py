"""Newton's method on the optimality conditions of a subproblem with many free variables.

Pair moves creep where thousands of variables are free, and an interior-point method factorises the
whole matrix some twenty times.  Here every variable of the block is guessed to be at one of its
bounds, at the cap, or free; with the guess the conditions are linear equations in the free
variables and the group, and their solution tells what was guessed wrong: free variables beyond a
bound are held there, and held ones whose rate is on the wrong side of the level are let go.  From
a good guess, as a subsample or the last block leaves it, no more than some five factorisations of
the free variables lead to a guess that confirms itself, the optimum.

Guesses may run in circles.  After some rounds variables are held only, never let go: that ends with
a point within all bounds, and the best one on the way there is taken.

All in moves of ``w``, as in `attop.solvers.exact.subproblem.block`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop.families.base import BetaTerms, Cap
from attop.solvers.exact.subproblem.block import SAME, Block, Group, Terms
from attop.solvers.exact.subproblem.dense import Array, Matrix, Solve
from attop.solvers.limits import Limits

#: Rounds in which variables may be let go, and rounds at most.
_FREELY, _ROUNDS = 12, 40
#: Corrections of a solution by what it leaves, at most, and the share of the tolerance that may
#: be left.
_CORRECTIONS, _LEFT = 8, 0.1
#: Free variables up to which factors are in double precision: where that costs little.
_PRECISE = 512
#: Sums of moves that differ by more, relative to them, are not equal.
_UNBALANCED = 1e-11

#: What a variable is guessed to be: between its bounds, or where moves up, or down, end.  A beta
#: that cannot move down is at the cap, and goes where that goes.
FREE, TOP, BOTTOM = 0, 1, -1

Guess = NDArray[np.int8]


@dataclass
class _Subproblem:
    """The block and, apart from it, the group without its members in the block."""

    matrix: Matrix
    value: Array
    cap: float
    rate: Array
    rise: Array
    fall: Array
    weight: Array
    alphas: Array
    column: Array
    group: Group
    capped: bool
    price: float
    K: int
    lift: float
    tolerance: float
    pull: tuple[float, float]
    betas_value: Array
    hard: bool = False

    def bent(self, moves: Array) -> Array:
        """The matrix, and what the price of the norm adds to it, times moves."""
        product = self.matrix.times(moves)
        if self.pull[0]:
            own = self.pull[0] * (1.0 - self.alphas) / self.weight
            along = self.pull[1] * float(self.betas_value @ moves)
            product += own * moves - along * self.betas_value
        return product


class _Point(NamedTuple):
    """Moves of the variables and of the group up, and by how much rates exceed their level."""

    moves: Array
    of_group: float
    excess: Array


def solve_active_set(
    block: Block,
    matrix: Matrix,
    group: Group,
    terms: Terms,
    betas: BetaTerms,
    norm2_outside: float,
    lift: float,
    tolerance: float,
    limits: Limits,
) -> tuple[Array, float] | None:
    """Values of all variables of the block, and the cap, at their optimum or nearer to it.

    None where that gains nothing.  The kernel matrix of the block is not needed, nor changed.
    """
    problem = _subproblem(block, matrix, group, terms, betas, norm2_outside, lift, tolerance)
    guess = np.zeros(len(block.value), dtype=np.int8)
    guess[problem.rise <= 0.0] = TOP
    guess[problem.fall <= 0.0] = BOTTOM
    with np.errstate(all="ignore"):  # a solution that is no number is seen
        try:
            point, guess = _confirmed(problem, guess, limits)
        except np.linalg.LinAlgError:
            return None
        if point is None or not _balanced(problem, point):
            return None
        share = _best_share(problem, point, terms, norm2_outside)
    if not share > 0.0:
        return None
    return _values(problem, terms, point, guess, share)


def _subproblem(block, matrix, group, terms, betas, norm2_outside, lift, tolerance) -> _Subproblem:
    alphas = (np.arange(len(block.value)) < terms.n_alphas).astype(np.float64)
    capped, tied = bool(np.isfinite(group.cap)), betas.cap is Cap.TIED
    value = np.where(block.member, group.cap, block.value)
    top = np.where(alphas > 0.0, terms.alpha_max, min(group.cap, terms.beta_max))
    room, column, outside = top - value, np.zeros(len(value)), group
    if capped:
        inside = np.where(block.member, block.weight, 0.0)
        column = block.group_column - matrix.times(inside)
        square = group.square - float(inside @ (column + block.group_column))
        size = max(group.size - float(np.sum(inside)), 0.0)
        size = size if size > SAME * group.size else 0.0
        score = group.score + float(inside @ block.rate)
        outside = group._replace(size=size, square=square, score=score)
    rate, pull, betas_value = block.rate, (0.0, 0.0), np.zeros(0)
    if betas.norm_price:
        betas_value = np.where(alphas > 0.0, 0.0, value)
        norm2 = norm2_outside + float(np.sum(block.weight * betas_value**2))
        norm = np.sqrt(max(norm2, 1e-300))
        pull = betas.norm_price / norm, betas.norm_price / norm / norm2
        rate = rate + pull[0] * betas_value
    return _Subproblem(
        matrix=matrix,
        value=value,
        cap=group.cap,
        rate=rate,
        rise=block.weight * np.where(alphas > 0.0, room, value),
        fall=block.weight * np.where(alphas > 0.0, value, room),
        weight=block.weight,
        alphas=alphas,
        column=column,
        group=outside,
        capped=capped,
        price=terms.price if capped and not tied else 0.0,
        K=terms.K if tied else 0,
        lift=lift,
        tolerance=tolerance,
        pull=pull,
        betas_value=betas_value,
    )


def _confirmed(problem: _Subproblem, guess: Guess, limits: Limits) -> tuple[_Point | None, Guess]:
    """The guess that its own solution confirms, or at least one whose solution is feasible."""
    for attempt in range(_ROUNDS):
        point = _solution(problem, guess)
        if point is None or not np.all(np.isfinite(point.moves)):
            return None, guess
        better = _judged(problem, guess, point, freely=attempt < _FREELY)
        if np.array_equal(better, guess):
            return point, guess
        if limits.out_of_time():
            break
        guess = better
    return None, guess


def _judged(problem: _Subproblem, guess: Guess, point: _Point, freely: bool) -> Guess:
    """What the solution of a guess says of it."""
    better, free, betas = guess.copy(), guess == FREE, problem.alphas == 0.0
    least = -problem.fall
    if problem.capped:  # which moves down as the group moves up
        least = least + problem.weight * point.of_group * betas
    better[free & (point.moves > problem.rise)] = TOP
    better[free & (point.moves < least)] = BOTTOM
    if freely:
        movable = problem.rise + problem.fall > 0.0
        better[movable & (guess == TOP) & (point.excess < -problem.tolerance)] = FREE
        better[movable & (guess == BOTTOM) & (point.excess > problem.tolerance)] = FREE
    return better


class _Face(NamedTuple):
    """The equations of a guess: its free variables, and the group with all that is held at the cap.

    Attributes
    ----------
    free : the free variables.
    inside : copies of the members in the block.
    column, size, square : of the whole group, as in `Block` and `Group`.
    grouped : whether there is a group.
    """

    free: NDArray[np.intp]
    inside: Array
    column: Array
    size: float
    square: float
    grouped: bool

    @classmethod
    def of(cls, problem: _Subproblem, guess: Guess) -> _Face:
        """The face of a guess."""
        free, group = np.flatnonzero(guess == FREE), problem.group
        if not problem.capped:
            return cls(free, np.zeros(len(guess)), problem.column, 0.0, 0.0, False)
        members = (guess == BOTTOM) & (problem.alphas == 0.0)
        inside = np.where(members, problem.weight, 0.0)
        column = problem.column + problem.matrix.times(inside)
        square = group.square + float(inside @ (problem.column + column))
        size = group.size + float(np.sum(inside))
        return cls(free, inside, column, size, square, size > 0.0)

    def sides(self, problem: _Subproblem) -> Array:
        """The left sides of both equations, as columns over the free variables and the group."""
        sides = np.stack([np.ones(len(self.free)), problem.alphas[self.free]])
        if self.grouped:
            sides = np.append(sides, [[self.size], [float(problem.K)]], axis=1)
        return sides.T


def _solution(problem: _Subproblem, guess: Guess) -> _Point | None:
    """The point at which the conditions of a guess hold."""
    face = _Face.of(problem, guess)
    if len(face.free) == 0 or (problem.K and face.size > problem.K * (1.0 + SAME)):
        return None  # with more betas at the cap it would be lower
    enough, point = _LEFT * problem.tolerance, None
    for precise in (False, True):
        if not precise and (problem.hard or len(face.free) <= _PRECISE):
            continue
        try:
            point, left = _corrected_solution(problem, face, guess, precise, enough)
        except np.linalg.LinAlgError:
            continue
        if left <= enough:
            break
        problem.hard = True  # for single precision; so it will be for the next guess
    return point


def _corrected_solution(
    problem: _Subproblem, face: _Face, guess: Guess, precise: bool, enough: float
) -> tuple[_Point, float]:
    """The point, and what it leaves; by a factor of its own where an updated one does not do."""
    point, left = _Equations(problem, face, _solver(problem, face, precise)).solution(guess, enough)
    if left <= enough or not problem.matrix.updated:
        return point, left
    problem.matrix.forget()
    return _Equations(problem, face, _solver(problem, face, precise)).solution(guess, enough)


def _solver(problem: _Subproblem, face: _Face, precise: bool) -> Solve:
    """Solves with the matrix of the free variables and of the group, last."""
    free, lift = face.free, problem.lift
    bend = problem.pull[0] * (1.0 - problem.alphas[free]) / problem.weight[free]
    solve = problem.matrix.solver(free, bend, lift, precise)
    if problem.pull[0]:
        return _without(solve, problem.betas_value[free], problem.pull[1])
    if not face.grouped:
        return solve
    border = face.column[free] + lift * face.size
    across = solve(border)
    corner = face.square + lift * face.size**2
    left = max(corner - float(border @ across), 1e-10 * corner)

    def solve_bordered(right: Array) -> Array:
        plain = solve(right[:-1])
        last = (right[-1] - border @ plain) / left
        return np.concatenate([plain - np.multiply.outer(across, last), [last]])

    return solve_bordered


def _without(solve: Solve, direction: Array, pull: float) -> Solve:
    """Solves with ``pull p p'`` taken away."""
    across = solve(direction)
    scale = pull / max(1.0 - pull * float(direction @ across), 1e-10)

    def solve_without(right: Array) -> Array:
        plain = solve(right)
        return plain + np.multiply.outer(across, scale * (direction @ plain))

    return solve_without


class _Equations:
    """The conditions of a face, and an approximate inverse of their matrix."""

    def __init__(self, problem: _Subproblem, face: _Face, solve: Solve) -> None:
        self.problem, self.face, self.solve = problem, face, solve
        self.sides = face.sides(problem)
        self.across = solve(self.sides)
        inner = self.sides.T @ self.across
        # Without a free beta and with a full group both equations are the same.
        double = 1e-9 * inner[0, 0] * inner[1, 1]
        both = face.grouped and problem.K > 0 and float(np.linalg.det(inner)) > double
        self.count = 2 if both else 1
        self.inner = inner[: self.count, : self.count]

    def solution(self, guess: Guess, enough: float) -> tuple[_Point, float]:
        """The solution, corrected by what it leaves until that is at most `enough`; what is left.

        The inverse has less precision than the products by which it is judged.
        """
        problem = self.problem
        moves = np.select([guess == TOP, guess == BOTTOM], [problem.rise, -problem.fall], 0.0)
        point = _Point(moves, 0.0, np.zeros(0))
        level, least = np.zeros(2), np.inf
        rates = self._rates(point)
        for _ in range(_CORRECTIONS):
            moves, of_group = self._corrected(point, rates, level)
            rates = self._rates(_Point(moves, of_group, point.excess))
            excess = rates[:-1] - level[0] - level[1] * problem.alphas
            left = float(np.max(np.abs(self._right(rates, level))))
            if not left < least:
                break
            point, before, least = _Point(moves, of_group, excess), least, left
            if left <= enough or left > 0.5 * before:
                break
        return point, least

    def _rates(self, point: _Point) -> Array:
        """Rates of all variables and, last, of the group as a whole."""
        problem, group, of_group = self.problem, self.problem.group, point.of_group
        rates = problem.rate - problem.bent(point.moves) - of_group * problem.column
        of_others = problem.price - group.score - float(problem.column @ point.moves)
        of_others -= of_group * group.square
        return np.append(rates, of_others + float(self.face.inside @ rates))

    def _right(self, rates: Array, level: Array) -> Array:
        """By how much the rates of what is free are off their levels."""
        right = rates[self.face.free]
        if self.face.grouped:
            right = np.append(right, rates[-1])
        return right - self.sides @ level

    def _corrected(self, point: _Point, rates: Array, level: Array) -> tuple[Array, float]:
        """Moves and those of the group, one step further; `level` follows."""
        problem, face = self.problem, self.face
        sums = np.array([np.sum(point.moves), problem.alphas @ point.moves])
        sums += point.of_group * np.array([problem.group.size, float(problem.K)])
        direct = self.solve(self._right(rates, level))
        found = np.linalg.solve(self.inner, (self.sides.T @ direct + sums)[: self.count])
        step = direct - self.across[:, : self.count] @ found
        level[: self.count] += found
        level[0] -= problem.lift * sums[0]  # what the lift made of the sum of the step
        moves, of_group = point.moves.copy(), point.of_group
        moves[face.free] += step[: len(face.free)]
        if face.grouped:
            of_group += float(step[-1])
            moves += face.inside * float(step[-1])
        elif problem.K:
            of_group = -float(problem.alphas @ moves) / problem.K
        return moves, of_group


def _balanced(problem: _Subproblem, point: _Point) -> bool:
    """Whether the moves satisfy the equations."""
    moves, of_group = point.moves, point.of_group
    total = float(np.sum(moves)) + of_group * problem.group.size
    slack = float(np.sum(np.abs(moves))) + abs(of_group) * (problem.group.size + problem.K)
    tied = float(problem.alphas @ moves) + of_group * problem.K if problem.K else 0.0
    return max(abs(total), abs(tied)) <= _UNBALANCED * slack


def _best_share(problem: _Subproblem, point: _Point, terms: Terms, norm2_outside: float) -> float:
    """The best share of the moves, at most 1."""
    moves, of_group, group = point.moves, point.of_group, problem.group
    # Rates with the norm's part are those of a point, not of a line.
    rate = problem.rate - problem.pull[0] * problem.betas_value if problem.pull[0] else problem.rate
    slope = float(rate @ moves) + of_group * (problem.price - group.score)
    curvature = float(moves @ problem.matrix.times(moves))
    curvature += of_group * (2.0 * float(problem.column @ moves) + of_group * group.square)
    share = 1.0
    if of_group > 0.0:
        share = min(1.0, max(problem.cap - group.floor, 0.0) / of_group)
    if not problem.pull[0]:
        return min(share, slope / curvature) if 0.0 < slope < curvature else share * (slope > 0.0)
    value, step = problem.betas_value, (1.0 - problem.alphas) * moves / problem.weight
    squares = np.array(
        [
            norm2_outside + float(np.dot(problem.weight * value, value)),
            -2.0 * float(np.dot(problem.weight * value, step)),
            float(np.dot(problem.weight * step, step)),
        ]
    )

    def steepness(share: float) -> float:
        """The derivative of the dual along the moves."""
        norm = np.sqrt(max(float(squares @ (1.0, share, share * share)), 1e-300))
        of_norm = (0.5 * squares[1] + share * squares[2]) / norm
        return slope - share * curvature - terms.price * of_norm

    if steepness(1.0) >= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if steepness(middle) > 0.0 else (low, middle)
    return low


def _values(
    problem: _Subproblem, terms: Terms, point: _Point, guess: Guess, share: float
) -> tuple[Array, float]:
    """Values and cap after this share of the moves."""
    cap = problem.cap - share * point.of_group
    up = problem.alphas > 0.0
    value = problem.value + np.where(up, share, -share) * point.moves / problem.weight
    top = np.where(up, terms.alpha_max, terms.beta_max)
    value = np.where(value <= terms.least_value, 0.0, value)
    value = np.where(top - value <= terms.least_value, top, value)
    at_cap = (guess == BOTTOM) & ~up
    if not problem.capped:
        return value, cap
    if share < 1.0:  # those that were to join are not there yet
        at_cap &= problem.value >= problem.cap
    return np.where(up, value, np.where(at_cap, cap, np.minimum(value, cap))), cap
