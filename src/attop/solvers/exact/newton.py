"""Newton steps on the free variables of a block, for when pair moves creep.

Pair moves settle quickly which variables are free, and can then be slow where the kernel
matrix is ill-conditioned.  On the free variables alone the subproblem is a quadratic with
one or two linear equations: one Cholesky factorisation solves it.  The step goes as far as
the bounds allow; a variable that stops it at once is left out and the step tried again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from attop.problem import Family
from attop.solvers.exact.block import Block, Group, Terms, join_at_cap

#: Newton steps in a row.
STEPS = 12


class System(NamedTuple):
    """``max g'x - x'Hx/2`` subject to ``Ax = 0``, over up moves of free variables and the cap."""

    free: NDArray[np.intp]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    equations: NDArray[np.float64]
    with_cap: bool


def newton_steps(block: Block, group: Group, terms: Terms, family: Family, norm2_outside: float):
    """Take Newton steps while they gain; returns the group."""
    fixed = np.zeros(len(block.value), dtype=bool)
    for _ in range(STEPS):
        system = _system(block, group, terms, family, norm2_outside, fixed)
        if len(system.free) < 2:
            break
        direction = _direction(system)
        if direction is None:
            break
        farthest, stopper = _farthest(block, group, terms, system, direction)
        if farthest <= 1e-12 and stopper >= 0:
            fixed[stopper] = True
            continue
        step = min(1.0, farthest)
        if family == Family.NORM:
            step = _line_search(block, terms, system, direction, norm2_outside, farthest)
        group = _apply(block, group, terms, system, step * direction)
        if np.isfinite(group.cap):
            limit = terms.K if family == Family.TIED_CAP else np.iinfo(np.int64).max
            group = join_at_cap(block, group, terms.n_alphas, limit)
        if step == 1.0 and family != Family.NORM:
            break
    return group


def _system(block, group, terms, family, norm2_outside, fixed) -> System:
    n = terms.n_alphas
    free = (block.rise > 0.0) & (block.fall > 0.0) & (block.value > 0.0) & ~block.member & ~fixed
    free = np.flatnonzero(free)
    alphas = free < n
    gradient = block.rate[free].copy()
    hessian = block.kernel[np.ix_(free, free)]
    hessian[alphas, alphas] += terms.alpha_curvature
    equations = np.ones((1, len(free)))
    with_cap = group.size > 0 and np.isfinite(group.cap)
    if family == Family.NORM:
        betas = np.where(alphas, 0.0, block.value[free])
        norm = np.sqrt(norm2_outside + np.sum(block.value[n:] ** 2))
        gradient += terms.price / norm * betas
        hessian += terms.price / norm * (np.diag(~alphas * 1.0) - np.outer(betas, betas) / norm**2)
    elif family == Family.TIED_CAP and np.isfinite(group.cap):
        equations = np.vstack([alphas, ~alphas]).astype(np.float64)
        # The cap follows the alphas even where no beta is at it.
        extra = np.array([[-terms.K], [terms.K - group.size]], dtype=np.float64)
        return _with_cap(block, group, free, gradient, hessian, equations, extra, group.score)
    elif with_cap:
        extra = np.array([[-float(group.size)]])
        slope = group.score - terms.price
        return _with_cap(block, group, free, gradient, hessian, equations, extra, slope)
    return System(free, gradient, hessian, equations, False)


def _with_cap(block, group, free, gradient, hessian, equations, extra, slope) -> System:
    """Add the cap as the last variable: when it rises, every member moves down with it."""
    cross = -block.group_column[free]
    hessian = np.block([[hessian, cross[:, None]], [cross[None, :], np.array([[group.square]])]])
    return System(free, np.append(gradient, slope), hessian, np.hstack([equations, extra]), True)


def _direction(system: System) -> NDArray[np.float64] | None:
    """The maximiser of the quadratic on the equations, slightly regularised."""
    hessian, A = system.hessian, system.equations
    A = A[np.any(A != 0.0, axis=1)]
    ridge = 1e-11 * max(float(np.trace(hessian)) / len(hessian), 1e-300)
    hessian = hessian + ridge * np.eye(len(hessian))
    try:
        factor = cho_factor(hessian, lower=True, check_finite=False)
        both = cho_solve(factor, np.column_stack([system.gradient, A.T]), check_finite=False)
        multipliers = np.linalg.lstsq(A @ both[:, 1:], A @ both[:, 0], rcond=None)[0]
    except (LinAlgError, np.linalg.LinAlgError):
        return None
    direction = both[:, 0] - both[:, 1:] @ multipliers
    # An ill-conditioned matrix leaves a residue in the equations: take it out.
    direction -= A.T @ np.linalg.lstsq(A @ A.T, A @ direction, rcond=None)[0]
    if not np.all(np.isfinite(direction)) or direction @ system.gradient <= 0.0:
        return None
    return direction


def _farthest(block, group, terms, system, direction) -> tuple[float, int]:
    """How far the direction stays feasible, and which variable stops it (-1: the cap)."""
    free = system.free
    x = direction[: len(free)]
    cap_rise = float(direction[-1]) if system.with_cap else 0.0
    down = np.where(free >= terms.n_alphas, -x - cap_rise, -x)  # the cap comes to meet a beta
    with np.errstate(divide="ignore", invalid="ignore"):
        up_ratio = np.where(x > 0.0, block.rise[free] / x, np.inf)
        down_ratio = np.where(down > 0.0, block.fall[free] / down, np.inf)
    ratio = np.minimum(up_ratio, down_ratio)
    where = int(np.argmin(ratio))
    farthest, stopper = float(ratio[where]), int(free[where])
    if cap_rise < 0.0 and (group.cap - group.floor) / -cap_rise < farthest:
        return (group.cap - group.floor) / -cap_rise, -1
    return farthest, stopper


def _line_search(block, terms, system, direction, norm2_outside, farthest) -> float:
    """Best step along the direction where the norm of the betas bends the objective."""
    n, free = terms.n_alphas, system.free
    betas = free >= n
    value, change = block.value[free[betas]], -direction[betas]
    norm2 = norm2_outside + float(np.sum(block.value[n:] ** 2))
    linear = float(direction @ block.rate[free])
    kernel = block.kernel[np.ix_(free, free)]
    bend = float(direction @ kernel @ direction)
    bend += terms.alpha_curvature * float(np.sum(direction[~betas] ** 2))
    slope, square = float(value @ change), float(change @ change)

    def derivative(step: float) -> float:
        norm = np.sqrt(max(norm2 + step * (2.0 * slope + square * step), 1e-300))
        return linear - bend * step - terms.price * (slope + square * step) / norm

    high = min(farthest, 1e3)
    if derivative(high) >= 0.0:
        return high
    low = 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if derivative(middle) > 0.0 else (low, middle)
    return low


def _apply(block: Block, group: Group, terms: Terms, system: System, move) -> Group:
    """Make the move: values, rates, rooms and group follow."""
    free, n = system.free, terms.n_alphas
    x = move[: len(free)]
    rise = float(move[-1]) if system.with_cap else 0.0
    alphas = free < n
    value = block.value[free] + np.where(alphas, x, -x)
    value = np.clip(value, 0.0, np.where(alphas, terms.alpha_max, group.cap + rise))
    value[value <= terms.least_value] = 0.0
    x = np.where(alphas, value - block.value[free], block.value[free] - value)
    block.value[free] = value
    block.rate[:] -= x @ block.kernel[free] - rise * block.group_column
    block.rate[free[alphas]] -= terms.alpha_curvature * x[alphas]
    score = group.score + float(x @ block.group_column[free]) - rise * group.square
    group = Group(group.cap + rise, group.size, group.square, score, group.floor)
    refresh_rooms(block, group, terms)
    return group


def refresh_rooms(block: Block, group: Group, terms: Terms) -> None:
    """Rooms to rise and fall from the values."""
    n = terms.n_alphas
    block.rise[:n], block.fall[:n] = terms.alpha_max - block.value[:n], block.value[:n]
    block.rise[n:] = np.where(block.member[n:], group.cap, block.value[n:])
    below = np.maximum(group.cap - block.value[n:], 0.0)
    block.fall[n:] = np.where(block.member[n:], 0.0, below)
