"""The reference of an interpolation: a basis of its span, and what it leaves of all samples.

The bounds are those of :doc:`/theory/certificate`, "Where scores were interpolated".
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from attop._scores import Scores
from attop._threads import with_one_blas_thread
from attop.kernels import compiled
from attop.kernels.blocks import slices
from attop.kernels.columns import ColumnStore
from attop.kernels.sources import GaussianSource
from attop.solvers.exact.scaling.column_sums import Stage

#: Added to the diagonal of the reference's kernel matrix, relative to it; the bound stays one.
RIDGE = 1e-4
#: Rounding of inner products in double precision, relative to the sums of absolute weights.
DOUBLE_ROUNDING = 1e-12
#: Bands in which a triangular matrix is multiplied, and the share of a square one that they have.
BANDS = 8
TRIANGLE = 0.5 * (1.0 + 1.0 / BANDS)
#: Rows of the kernel matrix that are solved for at once.
TILE = 1024


class Spreads:
    """Norm of what a reference leaves of ``phi`` of each sample, at most: as sharp as needed.

    What some of the reference leave is no less, and for most samples enough of a bound.

    Parameters
    ----------
    store : ColumnStore
        Columns of a Gaussian kernel.
    reference : ndarray of intp
        The reference; its columns fit into the store.
    basis : ndarray
        Of its span, as `orthonormal` has it.

    Attributes
    ----------
    values : ndarray of shape (n_samples,)
        The bounds; to begin with the norm of ``phi`` itself.
    """

    def __init__(
        self, store: ColumnStore, reference: NDArray[np.intp], basis: NDArray[np.float64]
    ) -> None:
        self.store, self.reference, self.basis = store, reference, basis
        self.values = np.sqrt(squares(store, np.arange(store.n_samples)))
        self._slack = with_one_blas_thread(_slack, store, reference, basis)
        self._final = np.zeros(store.n_samples, dtype=bool)

    def sharpen(self, rows: NDArray[np.intp], below: NDArray[np.float64]) -> None:
        """Bring the bounds of the samples `rows` below these values, where that can be."""
        least = np.sqrt(self._slack[rows] + DOUBLE_ROUNDING)
        wanted = (self.values[rows] >= below) & (below > least) & ~self._final[rows]
        rows, below = rows[wanted], below[wanted]
        slots = self.store.fetch(self.reference)

        def sharpen_some(start: int, stop: int) -> None:
            self._sharpen(slots, rows[start:stop], below[start:stop])

        tiles = [(tile.start, tile.stop) for tile in slices(len(rows), TILE)]
        with_one_blas_thread(self.store.workers.call, sharpen_some, tiles)

    def _sharpen(
        self, slots: NDArray[np.intp], rows: NDArray[np.intp], below: NDArray[np.float64]
    ) -> None:
        """The same for few samples: band by band of the basis, as long as they need it."""
        edges = np.linspace(0, len(slots), 1 + BANDS).astype(int)  # what is above is zero
        kernel, explained = np.empty((len(slots), len(rows))), np.zeros(len(rows))
        for first, last in pairwise(edges):
            compiled.gather(first, last, self.store.buffer, slots, rows, kernel)
            kernel[first:last] += self.store.source.shift
            some = self.basis[first:last, :last] @ kernel[:last]
            explained += np.einsum("ij,ij->j", some, some)
            self.values[rows] = spread(self.store, explained, rows, self._slack[rows])
            more = self.values[rows] >= below
            rows, below, explained = rows[more], below[more], explained[more]
            if len(rows) == 0:
                return
            kernel = kernel[:, more] if last < len(slots) else kernel
        self._final[rows] = True


def proved_norms(
    exact: Scores, reference: NDArray[np.intp], basis: NDArray[np.float64], stages: list[Stage]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Norms of what the interpolants of the stages leave, and of what they have too much.

    Both from values in double precision, which the certificate computes for the support anyway.
    """
    rows = reduce(np.union1d, [exact.support, reference, *(stage.rows for stage in stages)])
    weights = np.zeros((len(rows), len(stages)))
    for m, stage in enumerate(stages):
        weights[np.searchsorted(rows, stage.rows), m] = stage.weights
    values = exact.compute_among(rows, weights)
    coordinates = basis @ values[np.searchsorted(rows, reference)]
    left2 = np.sum(weights * values, axis=0) - np.sum(coordinates**2, axis=0)
    left2 = np.maximum(left2, 0.0) + DOUBLE_ROUNDING * np.sum(np.abs(weights), axis=0) ** 2
    given = np.stack([stage.coordinates for stage in stages], axis=1)
    return np.sqrt(left2), np.linalg.norm(coordinates - given, axis=0)


def orthonormal(store: ColumnStore, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Coefficients of an orthonormal basis of the span of `rows`: the inverse Cholesky factor."""
    return with_one_blas_thread(_inverse_factor, store, rows)  # several wait for each other


def _inverse_factor(store: ColumnStore, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    return _triangular_inverse(np.asarray(np.linalg.cholesky(_ridged(store, rows)), np.float64))


def _ridged(store: ColumnStore, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """The kernel matrix of `rows` with its ridge, far above the rounding of its entries."""
    kernel = gaussian_source(store).precise(rows)
    kernel[np.diag_indices_from(kernel)] = (1.0 + RIDGE) * squares(store, rows)
    return kernel


def _triangular_inverse(L: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inverse of a lower triangular matrix, by halves.

    SciPy would do it with threads of its own, which keep those of NumPy waiting.
    """
    half = len(L) // 2
    if half < 32:
        return np.tril(np.linalg.inv(L))
    inverse = np.zeros_like(L)
    inverse[:half, :half] = _triangular_inverse(L[:half, :half])
    inverse[half:, half:] = _triangular_inverse(L[half:, half:])
    inverse[half:, :half] = -inverse[half:, half:] @ (L[half:, :half] @ inverse[:half, :half])
    return inverse


def gaussian_source(store: ColumnStore) -> GaussianSource:
    """The source of the columns, which has to be that of a Gaussian kernel."""
    assert isinstance(store.source, GaussianSource)
    return store.source


def squares(store: ColumnStore, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """``|phi|^2`` of samples."""
    return store.diagonal(rows) + store.source.shift


def spread(
    store: ColumnStore,
    explained: NDArray[np.float64],
    rows: NDArray[np.intp],
    slack: NDArray[np.float64] | float,
) -> NDArray[np.float64]:
    """Norm of what a reference leaves of ``phi``, of which it explains so much, at most."""
    left = np.maximum(squares(store, rows) - explained, 0.0)
    return np.sqrt(left + slack + DOUBLE_ROUNDING)


def _slack(
    store: ColumnStore, reference: NDArray[np.intp], basis: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How much less of each ``|phi|^2`` a reference may explain than its entries say.

    These may be off, and the basis multiplies that by its norm at most.
    """
    constant, slope, size = gaussian_source(store).errors
    # The root of the sum of squares over the reference of constant + slope (size + size_r).
    at_least = constant + slope * size
    own = slope * size[reference]
    total = len(reference) * at_least**2 + 2.0 * at_least * np.sum(own) + np.sum(own**2)
    steepest = np.linalg.eigvalsh(_ridged(store, reference))[0] ** -0.5
    slack: NDArray[np.float64] = 2.0 * steepest * np.sqrt(total)
    return slack * (1.0 + slack)  # what is explained may exceed |phi|^2 by as much
