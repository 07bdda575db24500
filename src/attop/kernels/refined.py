r"""Sums of Gaussian columns in single precision, with what their errors have in common taken out.

Entries :math:`k = e^L`, :math:`L = -\gamma |x - x'|^2`, are off because distances are.  Where all
entries of a row are about the same number :math:`c`, so is the slope of the exponential, and an
error of a distance enters a score in the same way whichever column it is in.  The sum of all
these errors is known: the stored entries tell the distances that they were made of, and the
true ones add up to a quadratic function of the sample, which takes one pass in double precision.
What is left is the share in which entries differ from :math:`c`, for images of many features a
twentieth of what it was.  :doc:`/theory/certificate`, "What errors have in common", has the proof.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._threads import map_in_threads
from attop.kernels import compiled
from attop.kernels.blocks import as_float64, slices
from attop.kernels.columns import ColumnStore, Workers
from attop.kernels.gaussian import EXPONENTIAL_ROUNDING, middle_of, squared_norms
from attop.kernels.sources import GaussianSource

#: Samples and columns that are summed up at once: their entries and what is made of them stay in
#: a second-level cache.
_SAMPLES, _COLUMNS = 1024, 64
#: Samples of the support that are summed up at once.
_SUPPORT = 256
#: Logarithms of entries that are smaller say little.
_LEAST = 1 / 16

Vector = NDArray[np.float64]


class _Sums(NamedTuple):
    """Sums over the columns, for each sample.

    Attributes
    ----------
    entries, logarithms : of the entries and of their logarithms, with their weights.
    apart, weighted, rounded : of how far entries are from the common one, with absolute weights;
        with these times the size of the column's sample; and times what the exponential rounds.
    least : the least entry.
    """

    entries: Vector
    logarithms: Vector
    apart: Vector
    weighted: Vector
    rounded: Vector
    least: Vector


def refined_sums(
    store: ColumnStore, rows: NDArray[np.intp], weights: Vector
) -> tuple[Vector, Vector] | None:
    """``sum_i weights[i] * column(rows[i])`` and a proved bound on how far each may be off.

    The sums are those of the kernel less the constant that its columns lack.  Columns must be in
    the store; None where they are of no use for this: in double precision, sparse, or with samples
    far out.
    """
    source = store.source
    if not isinstance(source, GaussianSource) or source.dtype != np.float32:
        return None
    if not isinstance(source.original, np.ndarray) or len(source.far) or len(rows) == 0:
        return None
    common = 1.0 + _mean_entries(store, rows, weights)
    sums = _sums(store, rows, weights, common)
    logarithms, terms = _exact_logarithms(source, rows, weights, store.workers)
    values = sums.entries - common * (sums.logarithms - logarithms)
    return values, _bounds(source, weights, common, sums, terms)


def _mean_entries(store: ColumnStore, rows: NDArray[np.intp], weights: Vector) -> Vector:
    """About the mean entry of each sample, which any other number could stand in for."""
    total, mean = np.abs(weights), np.zeros(store.n_samples)
    store.add_columns(rows, total / np.sum(total), mean)
    return mean


def _sums(store: ColumnStore, rows: NDArray[np.intp], weights: Vector, common: Vector) -> _Sums:
    """One pass over the columns."""
    errors = store.errors
    assert errors is not None
    slots, total = store.slot_of_row[rows], np.abs(weights)
    sizes = total * errors.size[rows]

    def part(samples: slice) -> NDArray[np.float64]:
        sums = np.zeros((6, samples.stop - samples.start))
        for some in slices(len(rows), _COLUMNS):
            entries = store.buffer[slots[some], samples].astype(np.float64)
            np.minimum(sums[5], entries.min(axis=0), out=sums[5])
            sums[0] += weights[some] @ entries
            np.maximum(entries, _LEAST - 1.0, out=entries)
            sums[1] += weights[some] @ np.log1p(entries)
            entries += 1.0
            apart = np.abs(entries - common[samples])
            sums[2] += total[some] @ apart
            sums[3] += sizes[some] @ apart
            apart *= 1.0 / entries - 1.0
            sums[4] += total[some] @ apart
        return sums

    found = map_in_threads(part, slices(store.n_samples, _SAMPLES), store.workers.count)
    return _Sums._make(np.concatenate(found, axis=1))


def _exact_logarithms(
    source: GaussianSource, rows: NDArray[np.intp], weights: Vector, workers: Workers
) -> tuple[Vector, Vector]:
    """``-gamma sum_i weights[i] |x_i - x|^2`` of each sample, in double precision, and its terms.

    The terms are the same sum of ``|x_i|^2 + |x|^2``, weights absolute, about a common centre.
    """
    X, n = source.original, source.n_samples
    middle = middle_of(X, rows)
    assert middle is not None  # samples are dense
    total = float(np.sum(weights))

    def part(some: slice) -> tuple[Vector, Vector]:
        """What samples of the support add to ``w``, and to the sums of squared norms."""
        samples, own = as_float64(X[rows[some]]) - middle, weights[some]
        squares = squared_norms(samples)
        return own @ samples, np.array([own @ squares, np.abs(own) @ squares])

    found = map_in_threads(part, slices(len(rows), _SUPPORT), workers.count)
    w, sizes = sum(some for some, _ in found), sum(some for _, some in found)
    norms, products = np.empty(n), np.empty(n)
    workers.over_rows(compiled.quadratic, n, X, middle, w, norms, products, least=256)
    sums = sizes[0] + total * norms - 2.0 * products
    terms = sizes[1] + float(np.sum(np.abs(weights))) * norms
    return -source.gamma * sums, source.gamma * terms


def _bounds(
    source: GaussianSource, weights: Vector, common: Vector, sums: _Sums, terms: Vector
) -> Vector:
    """How far the sums may be off."""
    errors, total = source.errors, float(np.sum(np.abs(weights)))
    single, n_terms = 2.0**-24, len(weights) + source.samples.n_terms
    slope, size = errors.slope, errors.size
    first = slope * (sums.weighted + size * sums.apart)
    first += EXPONENTIAL_ROUNDING * single * sums.rounded
    # The exponential is no straight line.
    largest = slope * (float(np.max(size)) + size) + EXPONENTIAL_ROUNDING * single / _LEAST
    second = total * largest**2
    # Sums in double precision, in any order.
    double = 2.0**-51 * (n_terms + 16) * (common * terms + 4.0 * total)
    bound = (1.0 + 1e-6) * (first + second + double)
    known = (sums.least >= _LEAST - 1.0) & (largest < 0.1)
    return np.where(known, bound, np.inf)
