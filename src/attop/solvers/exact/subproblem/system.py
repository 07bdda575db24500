"""The equations of a face: solves with the quadratic form of its free variables and of the group.

The form is factorised once.  Variables that are put onto their bounds afterwards become equations
of their own, which is cheaper than another factorisation where they are few.

Where positives compete themselves, an alpha and a beta may be free that belong to one sample.  With
a penalty on each, what matters to all others is the sum of the two, and the form shrinks to the
samples: with diagonal penalties `a` and `b` the sum has the penalty ``a b / (a + b)``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from attop.solvers.exact.subproblem.rows import upper_triangle

#: Variables that leave a system are dropped from its factor while they are no more than one in so
#: many: a solve for each costs six over n of a factorisation.
_DROPPED = 8

Array = NDArray[np.float64]


class Pull(NamedTuple):
    """The price of the norm of the betas, over the norm and over its third power."""

    once: float = 0.0
    thrice: float = 0.0


class Pairs(NamedTuple):
    """Free variables of one sample: the first, the second, and the penalties on them."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    of_first: Array
    of_second: Array

    def joint(self) -> Array:
        """The penalty on the sum of both."""
        return self.of_first * self.of_second / (self.of_first + self.of_second)


class System:
    """Solves for the free variables of a face, in increasing order, and the group, last.

    Parameters
    ----------
    kernel : ndarray of shape (b, b)
        The kernel matrix of the block, with penalties on its diagonal.
    free : ndarray of intp
        The free variables.
    own : ndarray of shape (n_free,)
        What their diagonal has besides.
    rows : ndarray of shape (n_free,)
        Their samples.
    group : (column, square), optional
        Entries of the group with the free variables, and its own.
    pulled : (factor, vector), optional
        The form has ``- factor vector vector'`` as well.
    lift : float
        The constant that the kernel lacks.
    ridge : float
        Added to the diagonal, relative to its largest entry.
    """

    def __init__(
        self,
        kernel: Array,
        free: NDArray[np.intp],
        own: Array,
        rows: NDArray[np.intp],
        group: tuple[Array, float] | None,
        pulled: tuple[float, Array],
        lift: float,
        ridge: float,
    ) -> None:
        n = self.n = len(free)
        self.pairs = _pairs_of(kernel, free, own, rows) if group is None and own.any() else None
        alone = np.ones(n, dtype=bool)
        if self.pairs is not None:
            alone[self.pairs.second] = False
        #: Which of the free variables the factor has, and where each of these is.
        self.held = np.flatnonzero(alone)
        held = free[self.held]
        size = len(held)
        matrix = np.empty((size + 1, size + 1))
        upper_triangle(kernel, held, lift, matrix)
        every = np.einsum("ii->i", matrix)
        every[:size] += own[self.held]
        if self.pairs is not None:
            self.place = np.searchsorted(self.held, self.pairs.first)
            every[self.place] += self.pairs.joint() - self.pairs.of_first
        column, square = (0.0, 1.0) if group is None else group
        matrix[size, :size] = matrix[:size, size] = column
        matrix[size, size] = square
        every[:size] += ridge * max(1e-300, float(np.max(every[:size])))
        every[size] *= 1.0 + ridge
        #: The factor; None if the form is not positive definite.
        self.factor, failed = dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise np.linalg.LinAlgError("The form of a face is not positive definite.")
        self.kept, self.dropped = np.arange(n + 1), np.empty(0, dtype=np.intp)
        self.across = np.empty((n + 1, 0))
        self.pull = 0.0
        if pulled[0]:
            self.pulled = np.append(pulled[1], 0.0)
            self.along = self._solve(self.pulled[:, np.newaxis])[:, 0]
            rest = 1.0 - pulled[0] * float(self.pulled @ self.along)
            if not rest > 0.0:
                raise np.linalg.LinAlgError("The form of a face is not positive definite.")
            self.pull = pulled[0] / rest

    def solve(self, sides: Array) -> Array:
        """The solutions for right sides, as columns."""
        right = np.zeros((self.n + 1, sides.shape[1]))
        right[self.kept] = sides
        found = self._solve(right)
        if len(self.dropped):
            found -= self.across @ np.linalg.solve(self.corner, found[self.dropped])
        return found[self.kept]

    def drop(self, gone: NDArray[np.bool_]) -> bool:
        """Leave out some of the free variables; False where that takes another factor."""
        new = self.kept[:-1][gone]
        if (len(self.dropped) + len(new)) * _DROPPED > self.n:
            return False
        units = np.zeros((self.n + 1, len(new)))
        units[new, np.arange(len(new))] = 1.0
        self.across = np.hstack([self.across, self._solve(units)])
        self.dropped = np.concatenate([self.dropped, new])
        self.corner = self.across[self.dropped]
        self.kept = np.append(self.kept[:-1][~gone], self.n)
        return True

    def _solve(self, right: Array) -> Array:
        """With all variables that were there at first."""
        found = self._of_all(right)
        if self.pull:
            found += np.multiply.outer(self.along, self.pull * (self.pulled @ found))
        return found

    def _of_all(self, right: Array) -> Array:
        """By the factor."""
        pairs = self.pairs
        held = np.append(self.held, self.n)
        side = np.asfortranarray(right[held])
        if pairs is None:
            return np.ascontiguousarray(dpotrs(self.factor, side, lower=1, overwrite_b=1)[0])
        both = (pairs.of_first + pairs.of_second)[:, np.newaxis]
        one, two = pairs.of_first[:, np.newaxis], pairs.of_second[:, np.newaxis]
        joint = (two * right[pairs.first] + one * right[pairs.second]) / both
        side[self.place] = joint
        held_found = dpotrs(self.factor, side, lower=1)[0]
        found = np.empty_like(right)
        found[held] = held_found
        total = held_found[self.place]
        # What the kernel makes of the sums is the same for both of a pair.
        first = (right[pairs.first] - (joint - one * two / both * total)) / one
        found[pairs.first], found[pairs.second] = first, total - first
        return found


def _pairs_of(
    kernel: Array, free: NDArray[np.intp], own: Array, rows: NDArray[np.intp]
) -> Pairs | None:
    """The free variables that share a sample, each with a penalty; None if there are none."""
    order = np.argsort(rows, kind="stable")
    same = np.flatnonzero(np.diff(rows[order]) == 0)
    first, second = order[same], order[same + 1]
    common = kernel[free[first], free[second]]
    penalties = [kernel[free[some], free[some]] - common + own[some] for some in (first, second)]
    if len(first) == 0 or min(float(np.min(some)) for some in penalties) <= 0.0:
        return None
    return Pairs(first, second, *penalties)
