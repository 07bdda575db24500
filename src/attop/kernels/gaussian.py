r"""The Gaussian kernel in double precision, and how far its entries may be off in any precision.

Distances come from one matrix product, :math:`|x - x'|^2 = |x|^2 + |x'|^2 - 2 \langle x, x'
\rangle` of centred samples.  With the unit roundoff :math:`u` and :math:`d` features, the right
side is off by at most :math:`\delta = u \kappa (|x|^2 + |x'|^2)`, :math:`\kappa = 4 \sqrt{d} +
8`: the product by twice :math:`4 \sqrt{d} u |x| |x'|` (an assumption about the rounding of matrix
products, which a test measures), the rest by the rounding of samples, norms and sums.  An entry
is then off by at most :math:`\gamma \delta`, which is nothing for samples of ordinary norm and
useless for those far out.

Far samples are those whose own term :math:`\gamma u \kappa |x|^2` exceeds a limit.  An entry of
two of them is computed from the differences of their features, which is slower and as accurate
as can be.  One of a far and another sample need not: if its norms differ by a factor of two or
more, then :math:`|x - x'|^2 \ge |x|^2 / 4` and the entry itself vanishes, and if not, both norms
are near the limit.  :doc:`/theory/certificate` has the proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

#: An inner product of d features in BLAS errs by at most so many times ``sqrt(d) u |x| |x'|``.
PRODUCT_ROUNDING = 4.0
#: What all other roundings of a squared distance add up to, in units of ``u (|x|^2 + |x'|^2)``.
OTHER_ROUNDING = 8.0
#: Rounding of an exponential and of its argument relative to one, in units of ``u``.
EXPONENTIAL_ROUNDING = 4.0
#: Terms of the error of entries in double precision that make a sample far, and how far off any
#: entry then is at most.
_DOUBLE_LIMIT = 1e-10
ACCURACY = 5.0 * _DOUBLE_LIMIT
#: Samples within so many times the median squared distance from the mean make the centre.
_NEAR = 9.0
#: Numbers of far samples that are made dense at once.
_DENSE = 2**24


def distance_rounding(n_features: int, dtype: Any) -> float:
    r"""The factor :math:`u \kappa` of the error of a squared distance."""
    roundoff = 0.5 * float(np.finfo(dtype).eps)
    return roundoff * (PRODUCT_ROUNDING * n_features**0.5 + OTHER_ROUNDING)


def far_norm2(gamma: float, rounding: float, limit: float) -> float:
    """The squared norm from which on a sample is far."""
    return limit / (gamma * rounding)


def gaussian_kernel(X: Any, Y: Any, gamma: float) -> NDArray[np.float64]:
    """``exp(-gamma |x - y|^2)`` for the rows of `X` and `Y`, float64 arrays or CSR matrices.

    Entries are right to about 1e-10 whatever the norms of the samples, and 1 for equal ones.
    """
    if sp.issparse(X) or sp.issparse(Y):
        X, Y = sp.csr_array(X), sp.csr_array(Y)
        norms_X, norms_Y = squared_norms(X), squared_norms(Y)
        values = (X @ (-2.0 * Y.T)).toarray()
    else:
        middle = centre(Y)
        centred_X, centred_Y = X - middle, Y - middle
        norms_X, norms_Y = squared_norms(centred_X), squared_norms(centred_Y)
        centred_Y *= -2.0
        values = centred_X @ centred_Y.T
    values += norms_X[:, np.newaxis]
    values += norms_Y
    rounding = distance_rounding(X.shape[1], np.float64)
    border = far_norm2(gamma, rounding, _DOUBLE_LIMIT)
    largest = max(np.max(norms_X, initial=0.0), np.max(norms_Y, initial=0.0))
    # What may be zero is: samples are as near to themselves as can be.
    nothing = 4.0 * rounding * min(border, largest)
    if np.min(values, initial=np.inf) <= nothing:
        values[values <= nothing] = 0.0
    far_X, far_Y = np.flatnonzero(norms_X > border), np.flatnonzero(norms_Y > border)
    if len(far_X) and len(far_Y):
        _by_differences(X, Y, far_X, far_Y, values)
    values *= -gamma
    return np.exp(values, out=values)


def centre(X: NDArray[Any]) -> NDArray[np.float64]:
    """The mean of the samples that are not far from it, compared with most of them.

    Any centre would do.  That of all would be drawn away by a single sample far out, and all
    the others would have large norms.
    """
    mean = np.mean(X, axis=0, dtype=np.float64)
    distances = squared_norms(X - mean)
    near = distances <= _NEAR * np.median(distances)
    return np.asarray(mean if near.all() else np.mean(X[near], axis=0, dtype=np.float64))


def squared_norms(X: Any) -> NDArray[np.float64]:
    """``|x|^2`` of the rows of a float64 array or CSR matrix."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    norms: NDArray[np.float64] = np.einsum("ij,ij->i", X, X)
    return norms


def _by_differences(X, Y, rows, columns, distances) -> None:
    """Write the squared distances of some rows of X and Y into `distances`."""
    step = max(1, _DENSE // max(1, X.shape[1]))
    for i in range(0, len(rows), step):
        for j in range(0, len(columns), step):
            one, other = rows[i : i + step], columns[j : j + step]
            distances[np.ix_(one, other)] = cdist(_dense(X[one]), _dense(Y[other]), "sqeuclidean")


def _dense(X: Any) -> NDArray[np.float64]:
    return X.toarray() if sp.issparse(X) else X
