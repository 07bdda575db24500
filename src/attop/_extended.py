r"""Scores in extended precision, for where those in double precision cancel.

The last resort of the referee: long doubles have 11 bits more than doubles on most machines with
x86 processors.  On others there is nothing to gain, and `AVAILABLE` is False.

With the unit roundoff :math:`U` every bound here is the one that holds for any order of summation.
A term :math:`a_v k(x, x_v)` of a score is off by at most :math:`U c |a_v| z`, with a size :math:`z`
of the entry and :math:`c` roundings: those of a sum over the support and of the entry itself.

The weights :math:`w = \sum a_v (x_v - m)` of a linear model are summed up exactly and rounded once:
samples far out may cancel, and a score is then off by no more than the product with :math:`w` is.
What is certified are the doubles that these weights are rounded to, since a model keeps those.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

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
#: So many features of support vectors are summed up exactly, in less than a second.
_EXACT = 2**20
#: Weights in double precision that are off by no more than this share do as they are.
_GOOD = 1e-10
#: What splits a double into two halves whose products are exact.
_SPLIT = 2.0**27 + 1.0


def is_affordable(gram: Gram, n_rows: int, n_support: int) -> bool:
    """Whether there are long doubles, and scores by them take a second or two at most."""
    width = 1 if gram.kernel.precomputed else gram.X.shape[1]
    n_terms = 1 if gram.kernel.explicit else n_support
    return AVAILABLE and (n_rows + n_support) * width * n_terms <= _MOST


class ExtendedScores(Scores):
    """Scores ``s = K a``, less a constant: the threshold, of which doubles then leave little.

    Parameters
    ----------
    gram : Gram
        The kernel matrix.
    coefficients : ndarray of longdouble
        ``a`` of all rows.
    rows : ndarray of intp
        The rows whose scores are computed, besides those of the support.
    constant : float
        What is taken from every score.
    rounded : bool
        Whether coefficients are themselves rounded to long doubles: differences, or products.
    """

    def __init__(
        self,
        gram: Gram,
        coefficients: Long,
        rows: NDArray[np.intp],
        constant: float,
        rounded: bool = True,
    ) -> None:
        support = np.flatnonzero(coefficients)
        super().__init__(gram, support, coefficients[support].astype(np.float64))
        self.values = np.zeros(gram.n_samples, dtype=np.longdouble)
        self.computed[rows] = self.computed[support] = True
        known = np.flatnonzero(self.computed)
        self.constant = constant
        # Means are in extended precision, and what is made of them rounds some more as doubles.
        self.of_thresholds = 2.0**-50 + 2.0 * ROUNDOFF * len(known)
        find = _linear_scores if gram.kernel.explicit else _kernel_scores
        found = find(gram, known, support, coefficients[support], rounded)
        self._origin = float(found.origin)
        # The constant less the origin, which all share: neither is added to what may be small.
        self.values[known] = found.scores - (constant - found.origin)
        self._rounding = np.zeros(gram.n_samples)
        self._rounding[known] = found.errors
        self._norm2, self._norm2_error = found.norm2, found.norm2_error
        #: The weights, of the linear kernel, that these are the scores of.
        self.model_weights = found.weights

    def origin(self) -> float:
        return self._origin

    def w_norm2(self) -> float:
        return self._norm2

    def rounding(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        return self._rounding[rows] + 2.0 * ROUNDOFF * np.abs(self.values[rows]).astype(np.float64)

    def rounding_of_norm(self) -> float:
        return 2.0**-52 * abs(self._norm2) + self._norm2_error


class _Found(NamedTuple):
    """Scores less that of the origin, ``|w|^2``, and how far they may be off."""

    scores: Long
    errors: NDArray[np.float64]
    origin: Any
    norm2: float
    norm2_error: float
    weights: NDArray[np.float64] | None = None


def _kernel_scores(
    gram: Gram,
    rows: NDArray[np.intp],
    support: NDArray[np.intp],
    coefficients: Long,
    rounded: bool,
) -> _Found:
    """Scores of `rows`, which have the support among them, by kernel entries."""
    scores, sizes = np.zeros(len(rows), dtype=np.longdouble), np.zeros(len(rows))
    absolute = np.abs(coefficients).astype(np.float64)
    for part in gen_batches(len(rows), max(1, _ENTRIES // max(1, len(support)))):
        entries, size = gram.extended(rows[part], support)
        scores[part], sizes[part] = entries @ coefficients, size @ absolute
    roundings = len(support) + 4.0 + gram.kernel.extended_roundings(gram.X.shape[1])
    errors = ROUNDOFF * roundings * sizes
    place = np.searchsorted(rows, support)
    norm2 = float(coefficients @ scores[place])
    return _Found(scores, errors, 0.0, norm2, 2.0 * float(absolute @ errors[place]))


def _linear_scores(
    gram: Gram,
    rows: NDArray[np.intp],
    support: NDArray[np.intp],
    coefficients: Long,
    rounded: bool,
) -> _Found:
    """The same by the weights as doubles, from the centre of the support.

    Any weights may be judged, and these are what a model keeps: with a large C the last rounding of
    each can cost more than all the rest of the primal value.  Only ``|w|^2`` is that of the sum.
    """
    X, n_features = gram.X, gram.X.shape[1]
    middle = _middle(X, support)
    exact, off = _weights(X[support], middle, coefficients, rounded)
    weights = exact.astype(np.float64).astype(np.longdouble)
    norm = float(np.sqrt(np.sum(exact**2)))
    scores, sizes = np.zeros(len(rows), dtype=np.longdouble), np.zeros(len(rows))
    for part in gen_batches(len(rows), max(1, _ENTRIES // n_features)):
        samples = long_doubles(X[rows[part]]) - middle
        scores[part], sizes[part] = samples @ weights, long_norms(samples)
    # Doubles are a little longer, or shorter, than what they stand for.
    errors = ROUNDOFF * (n_features + 5.0) * norm * sizes
    norm2 = float(np.sum(exact**2))
    # Squares and their sum round as the product of the weights with themselves; and the primal
    # value has the norm of the doubles, which are off by a share of 2^-53 each.
    norm2_error = 2.0 * (norm + off) * off + (ROUNDOFF * (n_features + 4.0) + 2.0**-52) * norm2
    return _Found(scores, errors, middle @ weights, norm2, norm2_error, weights.astype(np.float64))


def model_weights(gram: Gram, coefficients: Long) -> NDArray[np.float64]:
    """``w`` of a linear model: that of the certificate, also where terms far out cancel."""
    support = np.flatnonzero(coefficients)
    scores = Scores(gram, support, coefficients[support].astype(np.float64))
    plain = scores.weights()
    good = scores.rounding_of_weights() <= _GOOD * float(np.linalg.norm(plain))
    if good or not AVAILABLE or len(support) * gram.X.shape[1] > _EXACT:
        return plain
    samples, middle = gram.X[support], _middle(gram.X, support)
    weights, off = _summed(samples, middle, coefficients[support])
    if off > _GOOD * float(np.sqrt(np.sum(weights**2))):
        weights, _ = _weights(samples, middle, coefficients[support], rounded=True)
    return weights.astype(np.float64)


def _summed(samples: Any, middle: NDArray[np.float64], coefficients: Long) -> tuple[Long, float]:
    """``w`` as a sum of long doubles, and how far it may be off, in its norm."""
    centred = long_doubles(samples) - middle
    total = float(np.abs(coefficients).astype(np.float64) @ long_norms(centred))
    return coefficients @ centred, ROUNDOFF * (len(coefficients) + 4.0) * total


def _middle(X: Any, support: NDArray[np.intp]) -> NDArray[np.float64]:
    """Where samples are taken from: the centre of the support, or zero where they are sparse."""
    return np.zeros(X.shape[1]) if sp.issparse(X) else centre(X[support])


def _weights(
    samples: Any, middle: NDArray[np.float64], coefficients: Long, rounded: bool
) -> tuple[Long, float]:
    """``w`` and how far it may be off, in its norm."""
    weights, off = _summed(samples, middle, coefficients)
    if samples.shape[0] * samples.shape[1] > _EXACT:
        return weights, off
    total = off / (ROUNDOFF * (len(coefficients) + 4.0))
    dense = np.asarray(samples.toarray() if sp.issparse(samples) else samples, np.float64)
    exact = _exact_sums(dense, middle, coefficients)
    once = 2.0 * ROUNDOFF * float(np.sqrt(np.sum(exact**2)))
    return exact, once + (2.0 * ROUNDOFF * total if rounded else 0.0)


def _exact_sums(
    samples: NDArray[np.float64], middle: NDArray[np.float64], coefficients: Long
) -> Long:
    """``sum_v a_v (x_v - m)`` of each feature, rounded once.

    A long double is a double and 11 bits more; products of halves of doubles are exact, and so is
    the sum of any number of doubles by `math.fsum`.
    """
    leading = coefficients.astype(np.float64)
    factors = [*_halves(leading), (coefficients - leading).astype(np.float64)]
    sums = np.empty(samples.shape[1], dtype=np.longdouble)
    for j, feature in enumerate(samples.T):
        parts = [*_halves(feature), *_halves(-middle[j : j + 1])]
        terms = np.concatenate([a * x for a in factors for x in parts]).tolist()
        total = math.fsum(terms)
        sums[j] = np.longdouble(total) + math.fsum([*terms, -total])  # and what the double lacks
    return sums


def _halves(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two summands of each double that have half of its bits."""
    split = _SPLIT * values
    upper = split - (split - values)
    return upper, values - upper
