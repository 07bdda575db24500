"""All variables of a small problem to their optimum at once, by guesses of what is free.

A face holds what is at a bound there, and pair moves let go of that one by one.  Where many have
to be let go, `attop.solvers.exact.subproblem.active_set` is faster, as it is for thousands of free
variables: here with the block's own kernel matrix, in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from attop.families.base import BetaTerms
from attop.solvers.exact.subproblem.active_set import solve_active_set
from attop.solvers.exact.subproblem.block import Block, Group, Terms
from attop.solvers.exact.subproblem.dense import Array, Dense
from attop.solvers.exact.subproblem.rows import add_rows, upper_triangle
from attop.solvers.limits import Limits

#: Added to the diagonal of what is factorised, relative to it: a few units of rounding.
_RIDGE = 2.0**-50


class _Factor:
    """Cholesky's factor by LAPACK, which is faster for so few variables than one by bands."""

    def __init__(self, matrix: Array) -> None:
        self.matrix, failed = dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise np.linalg.LinAlgError("The matrix is not positive definite.")

    def solve(self, right: Array) -> Array:
        """Forwards and backwards."""
        found: Array = dpotrs(self.matrix, right, lower=1)[0]
        return found


class _Known(Dense):
    """The kernel matrix of a block, with the penalties on its diagonal."""

    def __init__(self, kernel: Array) -> None:
        self.matrix, self.own = kernel, np.zeros(len(kernel))
        self.forget()
        self.updated = False

    def times(self, x: Array) -> Array:
        """The matrix times a vector, of which only what is not zero costs anything."""
        used, product = np.flatnonzero(x), np.zeros(len(x))
        add_rows(self.matrix, used, x[used], product)
        return product

    def _factor(self, some: NDArray[np.intp], added: Array, lift: float, dtype: Any) -> Any:
        """The factor of the rows and columns `some`, in double precision whatever is asked for."""
        matrix = np.empty((len(some), len(some)))
        upper_triangle(self.matrix, some, lift, matrix)
        diagonal = np.einsum("ii->i", matrix)
        diagonal += added
        diagonal *= 1.0 + _RIDGE
        return _Factor(matrix)


def guess_all(
    block: Block,
    group: Group,
    terms: Terms,
    betas: BetaTerms,
    lift: float,
    tolerance: float,
    limits: Limits,
) -> Group | None:
    """Move the variables of a block to their optimum, in place: the group there.

    All variables that are not zero must be in the block.  None where nothing would be gained.
    """
    found = solve_active_set(
        block, _Known(block.kernel), group, terms, betas, 0.0, lift, tolerance, limits
    )
    if found is None:
        return None
    (value, cap), n, weight = found, terms.n_alphas, block.weight
    move = weight * (value - np.where(block.member, group.cap, block.value))
    np.negative(move[n:], out=move[n:])
    block.rate[:] -= block.kernel @ move
    block.value[:] = value
    top = np.full(len(value), terms.alpha_max)
    top[n:] = min(cap, terms.beta_max)
    above, below = weight * np.maximum(top - value, 0.0), weight * value
    block.rise[:n], block.fall[:n] = above[:n], below[:n]
    block.rise[n:], block.fall[n:] = below[n:], above[n:]
    return _group_at(block, group, cap, n) if np.isfinite(group.cap) else group


def _group_at(block: Block, group: Group, cap: float, n_alphas: int) -> Group:
    """The group of all betas that are at the cap."""
    block.member[n_alphas:] = block.value[n_alphas:] >= cap
    members = np.flatnonzero(block.member)
    copies = block.weight[members]
    block.group_column[:] = 0.0
    add_rows(block.kernel, members, copies, block.group_column)
    return group._replace(
        cap=cap,
        members=len(members),
        size=float(np.sum(copies)),
        square=float(copies @ block.group_column[members]),
        score=-float(copies @ block.rate[members]),
    )
