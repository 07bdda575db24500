"""An interior-point method for the subproblem, for when pair moves creep.

Pair moves need very many steps where the kernel matrix is ill-conditioned, as that of a
linear kernel is.  An interior-point method needs some twenty factorisations of a matrix of
the block's order, whatever the conditioning.  Its solution is rounded onto the bounds it
approaches and handed back to the pair moves, which finish it.  With a linear kernel of few
features the matrix is of low rank, and much larger blocks can be solved.

The variables are the values of the block and, where there is a cap, the cap ``u`` with the
members outside the block that move with it::

    min  x'Hx/2 - g'x     subject to  Ax = b,  0 <= x,  alpha <= C,  beta <= u,  floor <= u

(for the norm-priced dual the objective has the norm of the betas besides).  Values are those of one
copy of a sample: with the signed weights ``v``, ``H`` is the kernel matrix times ``v v'``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from attop._threads import with_one_blas_thread
from attop.families.base import BetaTerms, Cap
from attop.solvers.exact.subproblem.block import Block, Group, Terms
from attop.solvers.exact.subproblem.hessians import (
    Additions,
    DenseHessian,
    Hessian,
    LowRankHessian,
    Solve,
)
from attop.solvers.exact.tuning import Tuning
from attop.solvers.limits import UNLIMITED, Limits

#: Iterations at most, how many of them may leave the complementarity as it is (by rounding),
#: and the complementarity (relative to the objective) to stop at by default.
ITERATIONS, IDLE, ENOUGH = 60, 16, 1e-10
#: Seconds until the first step of a dense block, by the cube of its order: 1 to 2 of 4,000.
FIRST = 3e-11
#: Values this close to a bound, relative to the largest, are put onto it.
ROUND = 1e-7

Array = NDArray[np.float64]


class Kernels(NamedTuple):
    """The kernel matrix of the block's samples and the sum of the columns outside it.

    Attributes
    ----------
    matrix : the kernel matrix with the penalties on its diagonal, or None where `features` say it.
    features : the samples themselves, where the kernel is linear and they are short.
    penalty : the penalties, with `features`.
    outside : the weighted sum of the samples of the group outside the block, with `features`.
    """

    matrix: Array | None
    features: Any = None
    penalty: Array | None = None
    outside: Array | None = None

    def times(self, v: Array) -> Array:
        """Kernel matrix, with penalties, times a vector."""
        if self.features is not None:
            assert self.penalty is not None
            product: Array = self.features @ (v @ self.features) + self.penalty * v
            return product
        assert self.matrix is not None
        return self.matrix @ v


@dataclass
class Quadratic:
    """The subproblem in the form above; ``x`` holds the block's values, then the cap if any.

    `lower` and `upper` bound ``x`` (upper may be infinite); `betas` are the positions that
    the cap bounds too, `weights` their copies, and `norm_price`, `norm_outside` belong to the
    norm of the betas.
    """

    hessian: Hessian
    gradient: Array
    equations: Array
    target: Array
    lower: Array
    upper: Array
    betas: NDArray[np.intp]
    weights: Array
    capped: bool
    norm_price: float
    norm_outside: float
    center: Array

    def slope(self, x: Array, w: Array) -> Array:
        """Gradient of the objective to be minimised, with the change of the weights."""
        slope = self.hessian.slope(x - self.center, w) - self.gradient
        if self.norm_price:
            slope[self.betas] += self.norm_price * self.weights * x[self.betas] / self._norm(x)
        return slope

    def newton_solver(self, x: Array, own: Array, below: Array) -> Solve:
        """Solver of systems with the second derivative and the weights of the bounds."""
        if not self.norm_price:
            return self.hessian.solver(Additions(own, self.betas, below, 0.0, below))
        norm = self._norm(x)
        own = own.copy()
        own[self.betas] += self.norm_price * self.weights / norm
        pull, direction = self.norm_price / norm / norm / norm, self.weights * x[self.betas]
        return self.hessian.solver(Additions(own, self.betas, below, pull, direction))

    def value(self, x: Array) -> float:
        """The objective, less its value at the centre."""
        step = x - self.center
        value = 0.5 * float(step @ self.hessian.times(step)) - float(self.gradient @ step)
        if self.norm_price:
            value += self.norm_price * (self._norm(x) - self._norm(self.center))
        return value

    def _norm(self, x: Array) -> float:
        square = float(np.dot(self.weights, x[self.betas] ** 2))
        return float(np.sqrt(self.norm_outside + square) + 1e-300)


def interior_point(
    block: Block,
    kernels: Kernels,
    group: Group,
    terms: Terms,
    betas: BetaTerms,
    norm2_outside: float,
    tuning: Tuning,
    enough: float = ENOUGH,
    limits: Limits = UNLIMITED,
) -> Group | None:
    """Solve the subproblem and round its solution; None, and no change, if that gains nothing.

    `enough` is the complementarity to stop at, relative to the objective; `limits` may end it
    before.
    """
    small = kernels.features is not None or len(block.value) < tuning.one_thread_below
    if kernels.matrix is not None and limits.out_of_time(FIRST * float(len(block.value)) ** 3):
        return None
    outside = _outside(block, kernels, group)
    problem = _quadratic(block, kernels, outside, terms, betas, norm2_outside, group.cap)
    # Overflow near the end is seen by the test for finiteness.
    task = problem, enough, limits
    with np.errstate(all="ignore"):
        solved = with_one_blas_thread(_solve, *task) if small else _solve(*task)
    if solved is None or not np.all(np.isfinite(solved[0])):
        return None
    x, held = solved
    # Where the equations cannot be restored once all bounds are met, a point inside them will do.
    for bounds, near in ((held, ROUND), (np.zeros_like(held), 0.0)):
        point = _rounded(problem, x, bounds, near, block.weight, terms)
        if point is not None and problem.value(point) < 0.0:
            return _accept(block, kernels, outside, terms, point, group)
    return None


def _outside(block: Block, kernels: Kernels, group: Group) -> tuple[Group, Array]:
    """The group without its members inside the block, and the sum of its columns."""
    inside = np.where(block.member, block.weight, 0.0)
    column = block.group_column - kernels.times(inside)
    square = group.square - float(np.dot(inside, column + block.group_column))
    score = group.score + float(np.dot(inside, block.rate))
    count = group.members - int(np.count_nonzero(inside))
    size = group.size - float(np.sum(inside)) if count else 0.0
    return Group(group.cap, count, size, max(square, 0.0), score, group.floor), column


def _quadratic(block, kernels, outside, terms, betas, norm2_outside, cap) -> Quadratic:
    group, column = outside
    n, b = terms.n_alphas, len(block.value)
    signed = _signed_weights(block, terms)
    value = np.where(block.member, cap, block.value)
    gradient, equations = signed * block.rate, signed[None, :]
    lower, upper = np.zeros(b), np.where(signed > 0.0, terms.alpha_max, terms.beta_max)
    capped = bool(np.isfinite(cap))
    if capped:
        tied = betas.cap is Cap.TIED
        gradient = np.append(gradient, group.score - (0.0 if tied else terms.price))
        equations = np.append(equations, [[-group.size]], axis=1)
        if tied:
            alphas = np.append(np.maximum(signed, 0.0), -float(terms.K))
            equations = np.vstack([equations, alphas])
        lower, upper = np.append(lower, group.floor), np.append(upper, np.inf)
        value = np.append(value, cap)
    return Quadratic(
        hessian=_hessian(kernels, signed, equations[0], column, group.square),
        gradient=gradient,
        equations=equations,
        target=equations @ value,
        lower=lower,
        upper=upper,
        betas=np.arange(n, b),
        weights=block.weight[n:],
        capped=capped,
        norm_price=betas.norm_price,
        norm_outside=norm2_outside,
        center=value,
    )


def _signed_weights(block: Block, terms: Terms) -> Array:
    """By how much each value changes ``w``."""
    signed = block.weight.copy()
    signed[terms.n_alphas :] *= -1.0
    return signed


def _hessian(kernels: Kernels, signed, balance, column, square) -> Hessian:
    """``|w|^2 / 2`` and the penalties; the cap is there if `balance` has it."""
    capped = len(balance) > len(signed)
    if kernels.features is not None:
        curvature = np.zeros(len(balance))
        curvature[: len(signed)] = kernels.penalty * signed**2
        of_cap = -kernels.outside if capped and kernels.outside is not None else None
        return LowRankHessian(signed, kernels.features, of_cap, curvature)
    matrix = kernels.matrix * np.outer(signed, signed)
    matrix = 0.5 * (matrix + matrix.T)
    if capped:
        cross = -signed * column
        matrix = np.block([[matrix, cross[:, None]], [cross[None, :], square]])
    # The stored kernel may lack a constant, and then be indefinite; on the balance of all
    # signed variables a constant changes nothing.
    matrix += np.outer(balance, balance)
    return DenseHessian(matrix)


class _Bounds:
    """Distances to the bounds and their multipliers: lower, upper, and betas below the cap."""

    def __init__(self, problem: Quadratic) -> None:
        self.problem = problem
        self.upper = np.flatnonzero(np.isfinite(problem.upper))
        self.below = problem.betas if problem.capped else np.empty(0, dtype=np.intp)

    def distances(self, x: Array) -> Array:
        """All distances in one vector."""
        p = self.problem
        return np.concatenate(
            [x - p.lower, p.upper[self.upper] - x[self.upper], x[-1] - x[self.below]]
        )

    def apply(self, dx: Array) -> Array:
        """Change of the distances with ``x``."""
        return np.concatenate([dx, -dx[self.upper], dx[-1] - dx[self.below]])

    def transpose(self, z: Array) -> Array:
        """What the multipliers add up to in each variable."""
        n, k = len(self.problem.lower), len(self.upper)
        out = z[:n].copy()
        out[self.upper] -= z[n : n + k]
        out[self.below] -= z[n + k :]
        if len(self.below):
            out[-1] += np.sum(z[n + k :])
        return out

    def split(self, weights: Array) -> tuple[Array, Array]:
        """The terms of ``G' diag(weights) G``, G being `apply`: without the cap, and of the cap."""
        n, k = len(self.problem.lower), len(self.upper)
        own = weights[:n].copy()
        own[self.upper] += weights[n : n + k]
        return own, weights[n + k :]


class _Newton:
    """Newton steps of the optimality conditions at one point, with one factorisation."""

    def __init__(self, problem: Quadratic, bounds: _Bounds, x, w, y, z, s) -> None:
        A = problem.equations
        self.bounds, self.A, self.z, self.s = bounds, A, z, s
        self.dual = problem.slope(x, w) - bounds.transpose(z) - A.T @ y
        self.primal = A @ x - problem.target
        self.lag = problem.hessian.weights(x - problem.center) - w
        self.solve = problem.newton_solver(x, *bounds.split(z / s))
        self.across = self.solve(np.concatenate([A.T, np.zeros((len(w), len(A)))]))

    def step(self, complement) -> tuple[Array, Array, Array, Array, Array]:
        """Changes of x, w, y, s and z that aim at ``s z = complement``."""
        z, s, n = self.z, self.s, self.A.shape[1]
        right = -self.dual + self.bounds.transpose((complement - z * s) / s)
        direct = self.solve(np.concatenate([right, self.lag]))
        dy = np.linalg.solve(self.A @ self.across[:n], -self.primal - self.A @ direct[:n])
        both = direct + self.across @ dy
        ds = self.bounds.apply(both[:n])
        return both[:n], both[n:], dy, ds, (complement - z * s - z * ds) / s


def _solve(
    problem: Quadratic, enough: float, limits: Limits
) -> tuple[Array, NDArray[np.bool_]] | None:
    """Mehrotra's predictor-corrector from an interior point near the current one.

    Returns ``x`` and which of its bounds hold it, all bounds in one vector.
    """
    bounds = _Bounds(problem)
    x = _interior_start(problem)
    s = bounds.distances(x)
    z = np.full(len(s), max(float(np.mean(np.abs(problem.gradient))), 1e-8))
    y, w = np.zeros(len(problem.equations)), np.zeros(problem.hessian.rank)
    least, residue, idle, before = np.inf, np.inf, 0, limits.recorder.elapsed
    for _ in range(ITERATIONS):
        now = limits.recorder.elapsed
        if limits.out_of_time(now - before):  # the next one will take as long as the last one
            break
        before = now
        complementarity, size = float(s @ z), abs(float(problem.gradient @ x))
        idle = 0 if complementarity < 0.9 * least else idle + 1
        least = min(complementarity, least)
        if complementarity <= enough * size or idle > IDLE:
            break
        try:
            newton = _Newton(problem, bounds, x, w, y, z, s)
            _, _, _, ds, dz = newton.step(0.0)
            ahead = float((s + _reach(s, ds) * ds) @ (z + _reach(z, dz) * dz))
            mean = complementarity / len(s)
            dx, dw, dy, ds, dz = newton.step((ahead / complementarity) ** 3 * mean - ds * dz)
        except (LinAlgError, np.linalg.LinAlgError):
            if complementarity >= 1e-4 * size:
                return None
            break
        length = min(1.0, 0.995 * _reach(s, ds), 0.995 * _reach(z, dz))
        x, w, y, z = x + length * dx, w + length * dw, y + length * dy, z + length * dz
        # From a start of another scale the residue falls at first, and nothing else.
        off = float(np.max(np.abs(newton.dual)))
        idle = 0 if off < 0.9 * residue else idle
        residue = min(off, residue)
        s = np.maximum(bounds.distances(x), 1e-300)
    # Of distance and multiplier one tends to zero: that which is smaller in its own units.
    return x, s * np.mean(np.abs(problem.gradient)) <= z * np.mean(np.abs(x))


def _reach(values: Array, change: Array) -> float:
    """The longest step that keeps `values` non-negative, at most 1 / 0.995."""
    falling = change < 0.0
    return min(1.0 / 0.995, float(np.min(values[falling] / -change[falling], initial=np.inf)))


def _interior_start(problem: Quadratic) -> Array:
    """The centre, moved off the bounds; the equations may be off at first."""
    x = problem.center.copy()
    b = len(x) - problem.capped
    typical = max(float(np.mean(x[:b])), 1e-3 * float(np.max(x[:b])), 1e-12)
    if problem.capped:
        x[-1] = max(x[-1], problem.lower[-1]) + typical
    upper = np.where(np.isfinite(problem.upper), problem.upper, np.inf)
    if problem.capped:
        upper[problem.betas] = x[-1]
    margin = np.minimum(0.1 * typical, 0.1 * (upper - problem.lower))
    return np.clip(x, problem.lower + margin, upper - margin)


def _rounded(
    problem: Quadratic,
    x: Array,
    held: NDArray[np.bool_],
    near: float,
    weight: Array,
    terms: Terms,
) -> Array | None:
    """Values held by a bound, or near it, put onto it; the others restore the equations."""
    n, b = terms.n_alphas, len(x) - problem.capped
    small = near * max(float(np.max(x[:b])), 1e-300)
    low, high = held[: len(x)], held[len(x) :]
    top = x[-1] if problem.capped else np.inf
    x = np.where(low | (x - problem.lower <= small), problem.lower, x)
    alphas, betas = x[:n], x[n:b]
    above = terms.alpha_max - alphas <= small
    top = min(top, terms.beta_max)
    at_cap = top - betas <= small
    if np.isfinite(terms.alpha_max):
        above |= high[:n]
    if problem.capped or np.isfinite(terms.beta_max):
        at_cap |= high[len(high) - (b - n) :]
    alphas[above & (alphas > 0.0)] = terms.alpha_max
    at_cap &= betas > 0.0
    betas[at_cap] = top
    free_alphas = np.flatnonzero((alphas > 0.0) & (alphas < terms.alpha_max))
    free_betas = np.flatnonzero((betas > 0.0) & ~at_cap)
    if len(problem.equations) == 2:
        # The cap follows from the alphas, the free betas take up the rest.
        outside_alphas = problem.target[1]
        top = (float(np.dot(weight[:n], alphas)) - outside_alphas) / terms.K
        if top < problem.lower[-1]:
            return None
        x[-1] = top
        betas[at_cap] = top
        if len(free_betas) and float(np.max(betas[free_betas])) > top:
            return None
    residue = float(problem.equations[0] @ x - problem.target[0])
    if not _spread(betas, free_betas, residue, top, weight[n:]):
        tied = len(problem.equations) == 2
        if tied or not _spread(alphas, free_alphas, -residue, terms.alpha_max, weight[:n]):
            return None
    x[:n], x[n:b] = alphas, betas
    return x


def _spread(
    values: Array, which: NDArray[np.intp], amount: float, top: float, weight: Array
) -> bool:
    """Add `amount` to the weighted sum of the values `which`, within ``[0, top]``.

    False if that is impossible.
    """
    if abs(amount) <= 1e-14 * float(np.dot(weight, values)):
        return True
    room = top - values[which] if amount > 0.0 else values[which]
    room = np.minimum(room, 1e250)
    total = float(np.dot(weight[which], room))
    if len(which) == 0 or abs(amount) > 0.5 * total:
        return False
    values[which] += amount * (room / total)
    return True


def _accept(block: Block, kernels: Kernels, outside, terms: Terms, x, group: Group) -> Group:
    """Put the solution into the block: values, rates, rooms, membership."""
    rest, column = outside
    n, b = terms.n_alphas, len(block.value)
    capped = bool(np.isfinite(group.cap))
    cap = float(x[-1]) if capped else np.inf
    rise = cap - group.cap if capped else 0.0
    before = np.where(block.member, group.cap, block.value)
    signed = _signed_weights(block, terms) * (x[:b] - before)
    block.rate[:] -= kernels.times(signed) - rise * column
    block.value[:] = x[:b]
    block.member[:] = False
    if capped:
        block.member[n:] = block.value[n:] >= cap
    inside = np.where(block.member, block.weight, 0.0)
    block.group_column[:] = column + kernels.times(inside)
    square = rest.square + float(np.dot(inside, column + block.group_column))
    score = rest.score + float(signed @ column) - rise * rest.square
    score -= float(np.dot(inside, block.rate))
    block.rise[:n] = block.weight[:n] * (terms.alpha_max - block.value[:n])
    block.fall[:n] = block.weight[:n] * block.value[:n]
    block.rise[n:] = block.weight[n:] * block.value[n:]
    room = block.weight[n:] * (min(cap, terms.beta_max) - block.value[n:])
    block.fall[n:] = np.where(block.member[n:], 0.0, room)
    count, size = int(np.count_nonzero(inside)), float(np.sum(inside))
    return Group(cap, rest.members + count, rest.size + size, square, score, group.floor)
