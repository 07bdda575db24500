"""Compiled passes over kernel columns.  Each works on a range of rows, without the lock.

Loops run over slices from zero: an index that could be negative would keep the compiler
from vectorising them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Rounding order may change; samples are finite, so that NaN and infinities do not occur.
_FAST = {"contract", "nsz", "arcp", "reassoc", "nnan", "ninf"}

_F = np.float32
_LOG2_E = _F(1.4426950408889634)
_LN2_HIGH = _F(0.693359375)  # exact in few bits, so that k * _LN2_HIGH is exact
_LN2_LOW = _F(-2.12194440e-4)
_BIAS = np.int32(127)
_MANTISSA = np.int32(23)

#: Sparse samples that are spread out at once: with some hundred features they fit the cache.
SPREAD = 256


@njit(cache=True, nogil=True)
def nothing():
    """Does nothing, but the first call of a compiled function makes numba import half of itself."""


@njit(cache=True, nogil=True, fastmath=_FAST, inline="always")
def _expm1_single(x):
    """``expm1(x)`` for float32 ``x <= 0``, in operations that vectorise.

    ``x = k ln 2 + r``, a Taylor polynomial for ``expm1(r)``, and ``2^k`` made from its
    bits; the relative error stays below 1e-7.
    """
    x = max(x, _F(-87.0))
    k = np.floor(x * _LOG2_E + _F(0.5))
    r = x - k * _LN2_HIGH
    r = r - k * _LN2_LOW
    p = _F(1 / 5040) * r + _F(1 / 720)
    p = p * r + _F(1 / 120)
    p = p * r + _F(1 / 24)
    p = p * r + _F(1 / 6)
    p = p * r + _F(0.5)
    p = p * r * r + r
    power = np.int32((np.int32(k) + _BIAS) << _MANTISSA).view(np.float32)
    return power * p + (power - _F(1.0))


@njit(cache=True, nogil=True, fastmath=_FAST)
def _gaussian_single(start, stop, block, norms_block, norms, gamma):
    norms = norms[start:stop]
    for i in range(block.shape[0]):
        row, norm = block[i, start:stop], norms_block[i]
        for j in range(row.size):
            distance = max(norm + norms[j] - _F(2.0) * row[j], _F(0.0))
            row[j] = _expm1_single(-gamma * distance)


@njit(cache=True, nogil=True)
def _gaussian_double(start, stop, block, norms_block, norms, gamma):
    norms = norms[start:stop]
    for i in range(block.shape[0]):
        row, norm = block[i, start:stop], norms_block[i]
        for j in range(row.size):
            row[j] = np.expm1(-gamma * max(norm + norms[j] - 2.0 * row[j], 0.0))


@njit(cache=True, nogil=True, fastmath=_FAST)
def sparse_gaussian(start, stop, X, norms, rows, norms_rows, gamma, out):
    """``out[i, j] = exp(-gamma |x_i - x_j|^2) - 1`` of sparse `rows` and some samples of `X`.

    Both are the arrays of CSR matrices, and the number of their features.  Some samples at a time
    are spread out feature by feature: a sample's products with all of them are then sums of a few
    contiguous lines, and stay in the cache until they are entries.
    """
    data, indices, indptr, n_features = X
    row_data, row_indices, row_indptr, _ = rows
    spread = np.zeros((n_features, SPREAD), dtype=data.dtype)
    for first in range(start, stop, SPREAD):
        last = min(first + SPREAD, stop)
        for j in range(first, last):
            for p in range(indptr[j], indptr[j + 1]):
                spread[indices[p], j - first] += data[p]
        for i in range(norms_rows.size):
            sums = out[i, first:last]
            sums[:] = 0.0
            p, end = row_indptr[i], row_indptr[i + 1]
            while p + 4 <= end:  # four lines for each load and store of the sums
                a, b, c, d = row_data[p], row_data[p + 1], row_data[p + 2], row_data[p + 3]
                s, t = spread[row_indices[p]], spread[row_indices[p + 1]]
                u, v = spread[row_indices[p + 2]], spread[row_indices[p + 3]]
                for j in range(sums.size):
                    sums[j] += (a * s[j] + b * t[j]) + (c * u[j] + d * v[j])
                p += 4
            while p < end:
                a, s = row_data[p], spread[row_indices[p]]
                for j in range(sums.size):
                    sums[j] += a * s[j]
                p += 1
        _gaussian_single(first, last, out, norms_rows, norms, gamma)
        for j in range(first, last):
            for p in range(indptr[j], indptr[j + 1]):
                spread[indices[p], j - first] = 0.0


def gaussian_minus_one(start, stop, block, norms_block, norms, gamma):
    """Turn inner products into ``exp(-gamma |x - x'|^2) - 1``, in place."""
    single = block.dtype == np.float32
    (_gaussian_single if single else _gaussian_double)(
        start, stop, block, norms_block, norms, gamma
    )


@njit(cache=True, nogil=True, fastmath=_FAST)
def add_columns(start, stop, buffer, slots, weights, out):
    """``out[start:stop] += sum_i weights[i] * buffer[slots[i], start:stop]``."""
    tile = 2048  # of float64 sums, so that they stay in the first-level cache
    fours = slots.size - slots.size % 4
    for first in range(start, stop, tile):
        last = min(first + tile, stop)
        sums = out[first:last]
        for i in range(0, fours, 4):  # four columns for each load and store of the sums
            a, b, c, d = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
            p, q = buffer[slots[i], first:last], buffer[slots[i + 1], first:last]
            r, s = buffer[slots[i + 2], first:last], buffer[slots[i + 3], first:last]
            for j in range(sums.size):
                sums[j] += (a * p[j] + b * q[j]) + (c * r[j] + d * s[j])
        for i in range(fours, slots.size):
            a, p = weights[i], buffer[slots[i], first:last]
            for j in range(sums.size):
                sums[j] += a * p[j]


@njit(cache=True, nogil=True)
def gather(start, stop, buffer, slots, rows, out):
    """``out[i, j] = buffer[slots[i], rows[j]]`` for ``i`` in ``start:stop``."""
    for i in range(start, stop):
        column = buffer[slots[i]]
        for j in range(rows.size):
            out[i, j] = column[rows[j]]


@njit(cache=True, nogil=True)
def mirror(start, stop, buffer, slots, known, rows, out):
    """``out[i, known[j]] = buffer[slots[j], rows[i]]`` for ``i`` in ``start:stop``."""
    tile = 64  # of columns, whose lines stay in the cache from row to row
    for first in range(0, slots.size, tile):
        last = min(first + tile, slots.size)
        for i in range(start, stop):
            row, column = rows[i], out[i]
            for j in range(first, last):
                column[known[j]] = buffer[slots[j], row]


@njit(cache=True, nogil=True)
def spread(block, places, rows, out):
    """``out[places[i], rows[j]] = block[i, j]``."""
    for i in range(block.shape[0]):
        source, target = block[i], out[places[i]]
        for j in range(rows.size):
            target[rows[j]] = source[j]


@njit(cache=True, nogil=True)
def spread_columns(start, stop, buffer, slots, places, rows, out):
    """``out[places[i], rows[j]] = buffer[slots[i], j]`` for ``i`` in ``start:stop``."""
    for i in range(start, stop):
        source, target = buffer[slots[i]], out[places[i]]
        for j in range(rows.size):
            target[rows[j]] = source[j]


@njit(cache=True, nogil=True)
def find_varying(start, stop, X, features, varies):
    """Set ``varies[k]`` where feature ``features[k]`` differs from that of the first sample."""
    first = X[0]
    for i in range(start, stop):
        sample = X[i]
        for k in range(features.size):
            if sample[features[k]] != first[features[k]]:
                varies[k] = True


@njit(cache=True, nogil=True, fastmath=_FAST)
def centre(start, stop, X, features, mean, out, squared_norms):
    """``out = X[:, features] - mean`` and the squared norms of its rows."""
    for i in range(start, stop):
        source, target = X[i], out[i]
        total = 0.0
        for k in range(features.size):
            target[k] = source[features[k]] - mean[k]
            total += np.float64(target[k]) * np.float64(target[k])
        squared_norms[i] = total


@njit(cache=True, nogil=True, fastmath=_FAST)
def quadratic(start, stop, X, middle, w, norms, products):
    """``|x - m|^2`` and ``<x - m, w>`` of some samples, in double precision."""
    for i in range(start, stop):
        sample = X[i]
        norm, product = 0.0, 0.0
        for k in range(middle.size):
            centred = np.float64(sample[k]) - middle[k]
            norm += centred * centred
            product += centred * w[k]
        norms[i], products[i] = norm, product
