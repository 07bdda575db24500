"""The quadratic form of a subproblem for the interior-point method: dense, or of low rank.

Its variables are those of the block and, where there is a cap, the cap.  Every Newton step
solves a system with ::

    H + diag(own) + sum_j below_j (e_cap - e_j)(e_cap - e_j)' [ - pull p p' ]

where ``own`` and ``below`` come from the bounds and the bracket from the norm of the betas.

Of low rank, ``H = F F' + ...``, the weights ``w = F' x`` are unknowns of their own, behind the
variables: ``F w`` is small where large samples cancel in ``w``, and made of ``F F' x`` it would be
all rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn.utils import gen_batches

from attop.kernels.linear import weighted_gram

#: Ridges that are tried, relative to the diagonal.
RIDGES = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
#: Rows of the features that are multiplied at once.
_ROWS = 2048

Array = NDArray[np.float64]
Solve = Callable[[Array], Array]


class Additions(NamedTuple):
    """What the bounds and the norm add to the quadratic form at one point.

    Attributes
    ----------
    own : what each variable adds to its own diagonal entry.
    betas : the variables bounded by the cap, or held together by the norm.
    below : weight of each of them in the bound by the cap; empty where there is none.
    pull, direction : the term taken away for the norm: ``pull p p'`` over the betas.
    """

    own: Array
    betas: NDArray[np.intp]
    below: Array
    pull: float
    direction: Array


class Hessian(Protocol):
    """A positive semi-definite quadratic form, with as many weights as its `rank`, or none."""

    rank: int

    def times(self, x: Array) -> Array:
        """``H x``."""
        ...

    def weights(self, x: Array) -> Array:
        """``F' x``."""
        ...

    def slope(self, x: Array, w: Array) -> Array:
        """``H x`` where the weights say what belongs to ``F F' x``."""
        ...

    def solver(self, added: Additions) -> Solve:
        """A function that solves systems with ``H`` and the additions, one or many at once.

        Behind each right side stands by how much the weights are to change besides ``F' x``, and
        their change behind the solution.
        """
        ...


class DenseHessian:
    """A matrix."""

    rank = 0

    def __init__(self, matrix: Array) -> None:
        self.matrix, self.ridge = matrix, RIDGES[0]

    def times(self, x: Array) -> Array:
        """``H x``."""
        return self.matrix @ x

    def weights(self, x: Array) -> Array:
        """None."""
        return np.zeros(0)

    def slope(self, x: Array, w: Array) -> Array:
        """``H x``."""
        return self.matrix @ x

    def solver(self, added: Additions) -> Solve:
        """Factorise the sum."""
        matrix = self.matrix.copy()
        every, betas = np.arange(len(matrix)), added.betas
        matrix[every, every] += added.own
        if len(added.below):
            matrix[betas, betas] += added.below
            matrix[betas, -1] -= added.below
            matrix[-1, betas] -= added.below
            matrix[-1, -1] += np.sum(added.below)
        if added.pull:
            outer = np.outer(added.direction, added.direction)
            matrix[np.ix_(betas, betas)] -= added.pull * outer
        factor, self.ridge = _factor(matrix, self.ridge)  # what was too small will be again
        return lambda right: cho_solve(factor, right, check_finite=False)


def _factor(matrix: Array, least: float = RIDGES[0]):
    """Cholesky factor of a matrix, with as much of a ridge as it takes, and that ridge.

    The matrix may lack definiteness by the rounding of a kernel that came in single precision.
    A step of the method from there is as good as any: it is judged by what it gains.
    """
    every = np.arange(len(matrix))
    # Each variable in its own units: next to a sample far out the others would drown in one ridge.
    diagonal = np.abs(matrix[every, every])
    added = 0.0
    for ridge in RIDGES[RIDGES.index(least) :]:
        matrix[every, every] += (ridge - added) * diagonal
        added = ridge
        try:
            return cho_factor(matrix, lower=True, check_finite=False), ridge
        except LinAlgError:
            continue
    raise LinAlgError("The quadratic form of the subproblem is not positive definite.")


class LowRankHessian:
    """``F F' + diag(curvature)`` with few columns in ``F``: what a linear kernel has.

    Parameters
    ----------
    signed, features : ndarray of shape (n_variables,), ndarray or CSR of shape (n_variables, rank)
        ``F`` is the features times the signed weights.
    of_cap : ndarray of shape (rank,) or None
        The last row of ``F`` where there is a cap, the last variable then.
    curvature : ndarray
        The diagonal, that of the cap included.
    """

    def __init__(self, signed: Array, features: Any, of_cap: Array | None, curvature) -> None:
        self.signed, self.features, self.of_cap = signed, features, of_cap
        self.curvature = curvature
        self.rank = int(features.shape[1])

    def times(self, x: Array) -> Array:
        """``H x``."""
        return self.slope(x, self.weights(x))

    def weights(self, x: Array) -> Array:
        """``F' x``."""
        inner = self._down(x[: len(self.signed)])
        return inner if self.of_cap is None else inner + x[-1] * self.of_cap

    def slope(self, x: Array, w: Array) -> Array:
        """``F w`` and what the diagonal adds."""
        product = self._up(w)
        if self.of_cap is not None:
            product = np.append(product, self.of_cap @ w)
        return product + self.curvature * x

    def _down(self, x: Array) -> Array:
        """``F' x`` without the cap."""
        return ((self.signed * x.T) @ self.features).T

    def _up(self, inner: Array) -> Array:
        """``F inner`` without the cap."""
        return (self.signed * (self.features @ inner).T).T

    def _inner(self, diagonal: Array) -> Array:
        """``I + F' diag^-1 F``, in pieces that stay in the cache while they are divided."""
        inner, per_row = np.eye(self.features.shape[1]), self.signed**2 / diagonal
        if sp.issparse(self.features):
            return inner + weighted_gram(self.features, np.arange(len(per_row)), per_row)
        for rows in gen_batches(len(diagonal), _ROWS):
            part = self.features[rows]
            inner += part.T @ (part * per_row[rows, None])
        return inner

    def solver(self, added: Additions) -> Solve:
        """Eliminate the variables by their diagonal; a system of the order of the rank is left."""
        n = len(self.signed)
        diagonal = (self.curvature + added.own)[:n]
        alone = diagonal[added.betas]
        if self.of_cap is not None:
            diagonal[added.betas] += added.below
        factor, _ = _factor(self._inner(diagonal))

        def solve(right: Array) -> Array:
            direct = (right[:n].T / diagonal).T
            inside = cho_solve(factor, self._down(direct) + right[n:], check_finite=False)
            return np.concatenate([direct - (self._up(inside).T / diagonal).T, inside])

        if self.of_cap is None:
            return _pulled(solve, added, n + self.rank) if added.pull else solve
        weights = np.zeros(n)
        weights[added.betas] = added.below
        # What is left for the cap, as a sum of positive terms, so that no digits are lost.
        left = float(np.sum(added.below * alone / diagonal[added.betas]))
        inner_cap = self.of_cap + self._down(weights / diagonal)
        left += float(inner_cap @ cho_solve(factor, inner_cap, check_finite=False))
        left += float(self.curvature[-1] + added.own[-1])
        return _bordered(solve, -weights, self.of_cap, left)


def _bordered(solve: Solve, of_variables: Array, of_weights: Array, left: float) -> Solve:
    """Solve with one more variable, coupled to others and weights, of which these leave `left`."""
    n, border = len(of_variables), np.concatenate([of_variables, of_weights])
    across = solve(np.concatenate([of_variables, -of_weights]))

    def solve_bordered(right: Array) -> Array:
        plain = solve(np.delete(right, n, axis=0))
        last = (right[n] - border @ plain) / left
        plain -= np.multiply.outer(across, last)
        return np.insert(plain, n, last, axis=0)

    return solve_bordered


def _pulled(solve: Solve, added: Additions, size: int) -> Solve:
    """Solve with ``pull p p'`` taken away."""
    pulled = np.zeros(size)
    pulled[added.betas] = added.direction
    across = solve(pulled)
    scale = added.pull / (1.0 - added.pull * float(pulled @ across))

    def solve_pulled(right: Array) -> Array:
        plain = solve(right)
        return plain + np.multiply.outer(across, scale * (pulled @ plain))

    return solve_pulled
