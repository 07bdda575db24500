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
        held = free
        if self.pairs is not None:
            alone = np.ones(n, dtype=bool)
            alone[self.pairs.second] = False
            #: Which of the free variables the factor has, and where the first of each pair is.
            self.held = np.flatnonzero(alone)
            self.place = np.searchsorted(self.held, self.pairs.first)
            held, own = free[self.held], own[self.held]
        size = len(held)
        matrix = np.empty((size + 1, size + 1))
        upper_triangle(kernel, held, lift, matrix)
        every = matrix.ravel()[:: size + 2]
        every[:size] += own
        if self.pairs is not None:
            every[self.place] += self.pairs.joint() - self.pairs.of_first
        column, square = (0.0, 1.0) if group is None else group
        matrix[:size, size] = column
        matrix[size, size] = square
        every[:size] += ridge * max(1e-300, float(every[:size].max()))
        every[size] *= 1.0 + ridge
        #: The factor; None if the form is not positive definite.
        self.factor, failed = dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise np.linalg.LinAlgError("The form of a face is not positive definite.")
        #: The places of those that have been dropped, the others, and the solutions for each.
        self.dropped, self.kept = np.empty(0, dtype=np.intp), np.arange(n + 1)
        self.across = np.empty((0, n + 1))
        self.pull = 0.0
        if pulled[0]:
            self.pulled = np.append(pulled[1], 0.0)
            self.along = self._solve(self.pulled[np.newaxis])[0]
            rest = 1.0 - pulled[0] * float(self.pulled @ self.along)
            if not rest > 0.0:
                raise np.linalg.LinAlgError("The form of a face is not positive definite.")
            self.pull = pulled[0] / rest

    def solve(self, sides: Array) -> Array:
        """The solutions for right sides, both as rows."""
        if len(self.dropped) == 0:
            return self._solve(sides)
        right = np.zeros((len(sides), self.n + 1))
        right[:, self.kept] = sides
        found = self._solve(right)
        found -= np.linalg.solve(self.corner, found[:, self.dropped].T).T @ self.across
        return found[:, self.kept]

    def drop(self, gone: NDArray[np.bool_]) -> bool:
        """Leave out some of the free variables; False where that takes another factor."""
        new = self.kept[:-1][gone]
        if (len(self.dropped) + len(new)) * _DROPPED > self.n:
            return False
        units = np.zeros((len(new), self.n + 1))
        units[np.arange(len(new)), new] = 1.0
        self.across = np.concatenate([self.across, self._solve(units)])
        self.dropped = np.concatenate([self.dropped, new])
        self.corner = self.across[:, self.dropped].T
        self.kept = np.append(self.kept[:-1][~gone], self.n)
        return True

    def _solve(self, right: Array) -> Array:
        """With all variables that were there at first."""
        found = self._of_all(right)
        if self.pull:
            found += np.multiply.outer(found @ self.pulled, self.pull * self.along)
        return found

    def _of_all(self, right: Array) -> Array:
        """By the factor."""
        pairs = self.pairs
        if pairs is None:
            every: Array = dpotrs(self.factor, right.T, lower=1)[0].T
            return every
        held = np.append(self.held, self.n)
        side = right[:, held]
        both, one, two = pairs.of_first + pairs.of_second, pairs.of_first, pairs.of_second
        joint = (two * right[:, pairs.first] + one * right[:, pairs.second]) / both
        side[:, self.place] = joint
        held_found = dpotrs(self.factor, side.T, lower=1)[0].T
        found = np.empty_like(right)
        found[:, held] = held_found
        total = held_found[:, self.place]
        # What the kernel makes of the sums is the same for both of a pair.
        first = (right[:, pairs.first] - (joint - one * two / both * total)) / one
        found[:, pairs.first], found[:, pairs.second] = first, total - first
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
