r"""Scores in extended precision, for where those in double precision cancel.

The last resort of the referee: long doubles have 11 bits more than doubles on most machines with
x86 processors.  On others there is nothing to gain, and `AVAILABLE` is False.

With the unit roundoff :math:`U` every bound here is the one that holds for any order of summation.
A term :math:`a_v k(x, x_v)` of a score is off by at most :math:`U c |a_v| z`, with a size :math:`z`
of the entry and :math:`c` roundings: those of a sum over the support and of the entry itself.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from attop._scores import Scores
from attop.kernels.extended import Long, long_doubles, long_norms
from attop.kernels.gaussian import centre
from attop.kernels.gram import Gram

#: Unit roundoff of long doubles, and whether they are any better than doubles.
ROUNDOFF = 0.5 * float(np.finfo(np.longdouble).eps)
AVAILABLE = ROUNDOFF < 2.0**-60
#: So many products are worth the time, a second or two; and so many entries are held at once.
_MOST, _ENTRIES = 2**28, 2**20


def is_affordable(gram: Gram, n_rows: int, n_support: int) -> bool:
    """Whether there are long doubles, and scores by them take a second or two at most."""
    width = 1 if gram.kernel.precomputed else gram.X.shape[1]
    n_terms = 1 if gram.kernel.explicit else n_support
    return AVAILABLE and (n_rows + n_support) * width * n_terms <= _MOST


class ExtendedScores(Scores):
    """Scores ``s = K a``, less a constant that leaves little of those that matter.

    Parameters
    ----------
    gram : Gram
        The kernel matrix.
    coefficients : ndarray of longdouble
        ``a`` of all rows.
    rows : ndarray of intp
        The rows whose scores are computed, besides those of the support.
    constant : float
        What is taken from every score before it is rounded to double precision.
    """

    def __init__(
        self, gram: Gram, coefficients: Long, rows: NDArray[np.intp], constant: float
    ) -> None:
        support = np.flatnonzero(coefficients)
        super().__init__(gram, support, coefficients[support].astype(np.float64))
        self.computed[rows] = self.computed[support] = True
        known = np.flatnonzero(self.computed)
        self.constant = constant
        exact, errors = _scores(gram, known, support, coefficients[support])
        self.values[known] = exact - constant
        self._rounding = np.zeros(gram.n_samples)
        self._rounding[known] = errors
        place = np.searchsorted(known, support)
        self._norm2 = float(coefficients[support] @ exact[place])

    def w_norm2(self) -> float:
        return self._norm2

    def rounding(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        return self._rounding[rows] + 2.0**-52 * np.abs(self.values[rows])

    def rounding_of_norm(self) -> float:
        summation = 2.0**-52 * abs(self._norm2)
        return summation + 2.0 * float(np.abs(self.coefficients) @ self._rounding[self.support])


def _scores(
    gram: Gram, rows: NDArray[np.intp], support: NDArray[np.intp], coefficients: Long
) -> tuple[Long, NDArray[np.float64]]:
    """Scores of `rows`, and bounds on their errors."""
    scores, sizes = np.zeros(len(rows), dtype=np.longdouble), np.zeros(len(rows))
    if len(support) == 0:
        return scores, sizes
    absolute = np.abs(coefficients).astype(np.float64)
    kernel = gram.kernel
    if kernel.explicit:
        middle = np.zeros(gram.X.shape[1]) if sp.issparse(gram.X) else centre(gram.X[support])
        of_support = long_doubles(gram.X[support]) - middle
        weights = coefficients @ of_support
        total = float(absolute @ long_norms(of_support))
        for part in gen_batches(len(rows), max(1, _ENTRIES // gram.X.shape[1])):
            samples = long_doubles(gram.X[rows[part]]) - middle
            scores[part], sizes[part] = samples @ weights, total * long_norms(samples)
        scores += middle @ weights
    else:
        for part in gen_batches(len(rows), max(1, _ENTRIES // len(support))):
            entries, size = gram.extended(rows[part], support)
            scores[part], sizes[part] = entries @ coefficients, size @ absolute
    roundings = len(support) + 4.0 + kernel.extended_roundings(gram.X.shape[1])
    return scores, ROUNDOFF * roundings * sizes
