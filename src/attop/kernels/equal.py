"""The share of features in which two samples are equal: the leaves of a forest in which they meet.

Samples become whole numbers, the same for equal values, and entries count equal ones: exact,
but for the division by the number of features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from attop.kernels.errors import EntryErrors

if TYPE_CHECKING:
    from attop.kernels.columns import Workers

#: Samples that are compared with one after the other, while they stay in the cache.
_TILE = 32
#: Samples for which a thread of its own is worth starting.
_LEAST = 64
#: Whole numbers beyond this are no codes as they are.
_LARGEST = 2**31 - 1
#: Codes, and numbers of features, up to this are counted in two bytes.  (64 columns of 50,000
#: samples of 300 leaves: 32 ms, and 48 ms in four bytes.)
_LARGEST_SHORT = 2**15 - 1
#: Comparisons of one call, so that an interrupt is seen in between.
_WORK = 2**32


def codes_of(*arrays: NDArray[Any]) -> list[NDArray[np.integer]]:
    """Arrays of the same width with a whole number in the place of each value.

    Leaves of trees are such numbers; other values are counted feature by feature.
    """
    if all(_are_codes(array) for array in arrays):
        sizes = [max(array.max(), -array.min()) for array in arrays if array.size]
        short = max(sizes, default=0) <= _LARGEST_SHORT and arrays[0].shape[1] <= _LARGEST_SHORT
        dtype = np.int16 if short else np.int32
        return [np.ascontiguousarray(array, dtype=dtype) for array in arrays]
    together = np.concatenate(arrays)
    codes = np.empty(together.shape, dtype=np.int32)
    for j, feature in enumerate(together.T):
        codes[:, j] = np.unique(feature, return_inverse=True)[1]
    return np.split(codes, np.cumsum([len(array) for array in arrays])[:-1])


def _are_codes(array: NDArray[Any]) -> bool:
    if array.dtype.kind in "iu" and array.dtype.itemsize <= 4:
        return array.dtype != np.uint32
    if array.size == 0:
        return True
    low, high = array.min(), array.max()
    return -_LARGEST <= low and high <= _LARGEST and bool(np.all(array == np.floor(array)))


def shares(X: NDArray[Any], Y: NDArray[Any]) -> NDArray[np.float64]:
    """Kernel values of the rows of `X` against the rows of `Y`."""
    of_X, of_Y = codes_of(X, Y)
    counts = np.empty((len(X), len(Y)))
    _count_equal(0, len(Y), of_X, of_Y, counts)
    counts /= X.shape[1]
    return counts


class MatchingSource:
    """Columns of the kernel, by counting.

    Parameters
    ----------
    codes : ndarray of int16 or int32
        The samples, by `codes_of`.
    dtype : dtype
        Precision of the columns.
    """

    shift, definite = 0.0, True

    def __init__(self, codes: NDArray[np.integer], dtype: np.dtype[Any]) -> None:
        self.codes, self.dtype = codes, dtype
        self.n_samples = len(codes)
        self.diagonal = np.ones(self.n_samples)
        self.work = float(codes.shape[1])
        # Entries are at most one: a division, the storage, and a division there.
        rounding = float(np.finfo(dtype).eps) + 2.0**-52
        self.errors = EntryErrors(rounding, 0.0, np.zeros(self.n_samples))

    def compute(self, rows: NDArray[np.intp], out: NDArray[Any], workers: Workers) -> None:
        """Write column ``rows[i]`` into ``out[i]``."""
        self._entries(rows, self.codes, out, workers)

    def block(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp], workers: Workers
    ) -> NDArray[Any]:
        """The entries at `rows` x `columns`."""
        out = np.empty((len(rows), len(columns)), dtype=self.dtype)
        self._entries(rows, self.codes[columns], out, workers)
        return out

    def _entries(
        self,
        rows: NDArray[np.intp],
        others: NDArray[np.integer],
        out: NDArray[Any],
        workers: Workers,
    ) -> None:
        step = max(1, _WORK // max(1, others.size))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            some = self.codes[rows[part]], others, out[part]
            workers.over_rows(_count_equal, len(others), *some, least=_LEAST)
        out /= self.codes.shape[1]

    def subset(self, rows: NDArray[np.intp]) -> MatchingSource:
        """The source restricted to `rows`."""
        return MatchingSource(self.codes[rows], self.dtype)


@njit(cache=True, nogil=True)
def _count_equal(start, stop, some, others, counts):
    """``counts[i, j]`` of the features in which ``some[i]`` and ``others[j]`` are equal.

    They are counted in the type of the codes, as wide as these: more at a time.
    """
    width = some.dtype.type
    for first in range(start, stop, _TILE):
        last = min(first + _TILE, stop)
        for i in range(some.shape[0]):
            one = some[i]
            for j in range(first, last):
                other = others[j]
                equal = width(0)
                for k in range(one.size):
                    equal = width(equal + width(one[k] == other[k]))
                counts[i, j] = equal


def weights_of_values(
    support: NDArray[Any], coefficients: NDArray[np.float64]
) -> list[tuple[NDArray[Any], NDArray[np.float64]]]:
    """For each feature its values in the support, sorted, and the coefficients that each sums up.

    The score of a sample is the mean of the weights of its values: one look-up for each feature
    takes the place of a kernel entry for each support vector.
    """
    found = []
    for feature in support.T:
        values, place = np.unique(feature, return_inverse=True)
        weight = np.bincount(place, coefficients, len(values)).astype(np.float64, copy=False)
        found.append((values, weight))
    return found


def sum_of_weights(
    weights: list[tuple[NDArray[Any], NDArray[np.float64]]], X: NDArray[Any]
) -> NDArray[np.float64]:
    """``sum_v a_v k(x, x_v)`` of each row of `X`, by the weights of the values."""
    scores = np.zeros(len(X))
    for feature, (values, weight) in zip(X.T, weights, strict=True):
        place = np.minimum(np.searchsorted(values, feature), len(values) - 1)
        scores += np.where(values[place] == feature, weight[place], 0.0)
    scores /= X.shape[1]
    return scores
