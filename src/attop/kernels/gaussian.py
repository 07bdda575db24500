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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from attop._threads import map_in_threads, n_threads, with_one_blas_thread
from attop.kernels.blocks import as_float64, rows_at_once, slices

#: An inner product of d features in BLAS errs by at most so many times ``sqrt(d) u |x| |x'|``.
PRODUCT_ROUNDING = 4.0
#: What all other roundings of a squared distance add up to, in units of ``u (|x|^2 + |x'|^2)``.
OTHER_ROUNDING = 8.0
#: Rounding of an exponential and of its argument relative to one, in units of ``u``.
EXPONENTIAL_ROUNDING = 4.0
#: Terms of the error of entries in double precision that make a sample far, and how far off any
#: entry then is at most.
DOUBLE_LIMIT = 1e-10
ACCURACY = 5.0 * DOUBLE_LIMIT
#: Rows of a whole matrix that are computed at once: they stay in the cache from pass to pass,
#: and waste little left of the diagonal.  (Half and twice as many: 1.0 to 1.1 of the time.)  Up to
#: how many samples one thread computes them all.
_ROWS, _ALONE = 128, 1024
#: Numbers from which on they are centred by threads, which are soon there: 2,000 images of 3,072
#: features take 21 ms in the place of 38.
_SHARED = 2**22
Entries = NDArray[np.float64]

#: Samples within so many times the median squared distance from the mean make the centre.
_NEAR = 9.0
#: The centre is that of so many samples or up to twice as many, and of all if there are fewer.
_FOR_CENTRE = 256
#: Numbers of far samples that are made dense at once.
_DENSE = 2**24


def distance_rounding(n_features: int, dtype: Any) -> float:
    r"""The factor :math:`u \kappa` of the error of a squared distance."""
    roundoff = 0.5 * float(np.finfo(dtype).eps)
    return roundoff * (PRODUCT_ROUNDING * n_features**0.5 + OTHER_ROUNDING)


def far_norm2(gamma: float, rounding: float, limit: float) -> float:
    """The squared norm from which on a sample is far."""
    return limit / (gamma * rounding)


@dataclass(frozen=True)
class Points:
    """Samples made ready for distances.

    Attributes
    ----------
    original : ndarray or CSR matrix
        The samples, in any precision.
    centred : the same, in float64
        Dense ones from a common centre.
    norms : ndarray
        Squared norms of the centred ones.
    """

    original: Any
    centred: Any
    norms: NDArray[np.float64]

    @classmethod
    def of(cls, X: Any, middle: NDArray[np.float64] | None) -> Points:
        """Samples taken from `middle`, or sparse ones as they are."""
        if middle is None:
            centred = X.astype(np.float64)
            return cls(X, centred, squared_norms(centred))
        centred, norms = np.empty(X.shape), np.empty(X.shape[0])

        def take(part: slice) -> None:
            np.subtract(X[part], middle, out=centred[part])
            norms[part] = squared_norms(centred[part])

        if X.size < _SHARED:
            take(slice(None))
        else:  # memory that is new takes as long as the numbers
            map_in_threads(take, list(slices(X.shape[0], _ROWS)), n_threads())
        return cls(X, centred, norms)

    def __getitem__(self, part: slice) -> Points:
        return Points(self.original[part], self.centred[part], self.norms[part])


def gaussian_kernel(X: Any, Y: Any, gamma: float) -> NDArray[np.float64]:
    """``exp(-gamma |x - y|^2)`` for the rows of `X` and `Y`, in float64 whatever they are.

    Entries are right to about 1e-10 whatever the norms of the samples, and 1 for equal ones.
    """
    return gaussian_onto(Y, gamma)(X, slice(None))


def gaussian_onto(Y: Any, gamma: float) -> Callable[[Any, slice], NDArray[np.float64]]:
    """A function of some `X` and a slice of `Y` that gives `gaussian_kernel` of the two."""
    Y = sp.csr_array(Y) if sp.issparse(Y) else Y
    middle = None if sp.issparse(Y) else centre(some_of(Y))
    columns = Points.of(Y, middle)

    def entries(X: Any, part: slice) -> NDArray[np.float64]:
        if sp.issparse(X) == (middle is None):
            return gaussian_entries(Points.of(X, middle), columns[part], gamma)
        return gaussian_kernel(sp.csr_array(X), sp.csr_array(Y[part]), gamma)

    return entries


def gaussian_entries(X: Points, Y: Points, gamma: float, same: bool = False) -> Entries:
    """`gaussian_kernel` of samples from one centre; `same` says that those of X lead in Y."""
    products = X.centred @ Y.centred.T
    values: Entries = products.toarray() if sp.issparse(products) else products
    values *= -2.0
    values += X.norms[:, np.newaxis]
    values += Y.norms
    of_themselves = values.ravel()[: values.size if same else 0 : values.shape[1] + 1]
    of_themselves[:] = np.inf  # and looked at no more
    rounding = distance_rounding(X.centred.shape[1], np.float64)
    border = far_norm2(gamma, rounding, DOUBLE_LIMIT)
    largest = max(X.norms.max(initial=0.0), Y.norms.max(initial=0.0))
    # What may be zero is: samples are as near to themselves as can be.
    nothing = 4.0 * rounding * min(border, largest)
    if values.min(initial=np.inf) <= nothing:
        np.putmask(values, values <= nothing, 0.0)
    if largest > border:
        far_X, far_Y = np.flatnonzero(X.norms > border), np.flatnonzero(Y.norms > border)
        _by_differences(X.original, Y.original, far_X, far_Y, values)
    values *= -gamma
    np.exp(values, out=values)
    of_themselves[:] = 1.0
    return values


def gaussian_whole(X: Any, gamma: float) -> tuple[Entries, float]:
    """`gaussian_kernel` of all rows of `X`, and how far its entries may be off."""
    points = Points.of(X, None if sp.issparse(X) else centre(some_of(X)))
    n, largest = X.shape[0], float(np.max(points.norms, initial=0.0))
    if n <= _ROWS:
        values = with_one_blas_thread(gaussian_entries, points, points, gamma, same=True)
        return values, accuracy(X.shape[1], gamma, largest)
    values = np.empty((n, n))

    def fill(part: slice) -> None:
        """The entries right of the diagonal, and their mirror image."""
        entries = gaussian_entries(points[part], points[part.start :], gamma, same=True)
        values[part, part.start :] = entries
        values[part.stop :, part] = entries[:, part.stop - part.start :].T

    # Threads of BLAS have nothing to do for so few features but to wait for each other.
    threads = n_threads() if n > _ALONE else 1
    with_one_blas_thread(map_in_threads, fill, list(slices(n, _ROWS)), threads)
    return values, accuracy(X.shape[1], gamma, largest)


def gaussian_accuracy(X: Any, rows: NDArray[np.intp], gamma: float) -> float:
    """How far float64 entries with the samples at `rows` may be off."""
    if len(rows) == 0:
        return 0.0
    return accuracy(X.shape[1], gamma, float(np.max(norms_from(middle_of(X, rows), X, rows) ** 2)))


def accuracy(n_features: int, gamma: float, largest: float) -> float:
    """How far entries of samples may be off of which none has a larger squared norm."""
    rounding = gamma * distance_rounding(n_features, np.float64)
    return 2.0**-51 + min(ACCURACY, 2.0 * rounding * largest)


def middle_of(X: Any, rows: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """A centre of the samples at `rows`; none of sparse ones, which it would make dense."""
    return None if sp.issparse(X) else centre(X[some_of(rows)])


def some_of(samples: Any) -> Any:
    """The samples that the centre is taken from: any centre would do."""
    return samples[:: max(1, samples.shape[0] // _FOR_CENTRE)]


def norms_from(
    middle: NDArray[np.float64] | None, X: Any, rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Norms of the samples at `rows`, from `middle` if there is one, in bounded memory."""
    if len(rows) == 0:
        return np.empty(0)
    parts = (as_float64(X[rows[part]]) for part in slices(len(rows), rows_at_once(X)))
    squares = [squared_norms(some if middle is None else some - middle) for some in parts]
    return np.sqrt(np.concatenate(squares))


def centre(X: NDArray[Any]) -> NDArray[np.float64]:
    """The mean of the samples that are not far from it, compared with most of them.

    Any centre would do.  That of all would be drawn away by a single sample far out, and all
    the others would have large norms.
    """
    if len(X) == 0:
        return np.zeros(X.shape[1])
    mean = np.add.reduce(X, axis=0, dtype=np.float64) / len(X)  # as X.mean, in half the time
    distances = squared_norms(X - mean)
    middle = len(X) // 2
    near = distances <= _NEAR * np.partition(distances, middle)[middle]
    return np.asarray(mean if near.all() else X[near].mean(axis=0, dtype=np.float64))


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
    return (X.toarray() if sp.issparse(X) else X).astype(np.float64, copy=False)
