"""The kernel of one split, computed once for all of its fits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from attop.kernels.columns import Workers
from attop.kernels.functions import Gram, Kernel, as_float64
from attop.kernels.sources import ColumnSource, column_source

#: Rows of the kernel matrix computed at a time.
_ROWS = 512


class SplitKernel:
    """Kernel values between training samples, and between them and those to be scored.

    Each is remembered where it fits into the budget; otherwise there is none, and
    whoever needs it computes what it needs.  This is no `attop.kernels.columns.ColumnStore`: the
    one matrix is wanted as a whole, by classifiers that know nothing of ours, and the other is
    not square.

    Parameters
    ----------
    kernel : Kernel
        The kernel function.
    X_train, X_score : ndarray or CSR matrix
        Training samples, and those to be scored.
    n_bytes : int
        Budget of each of the two matrices.
    """

    def __init__(self, kernel: Kernel, X_train: Any, X_score: Any, n_bytes: int) -> None:
        self.kernel, self.X_train, self.X_score = kernel, X_train, X_score
        self.n_bytes = n_bytes
        self._known = np.zeros(X_train.shape[0], dtype=bool)

    @property
    def remembers_training(self) -> bool:
        """Whether `training` fits into the budget."""
        return self._precision is not None

    @property
    def _precision(self) -> Any:
        """The best precision in which the matrix of the training samples fits; None if none."""
        n = self.X_train.shape[0]
        fitting = (dtype for dtype in (np.float64, np.float32) if self._fits(dtype, n))
        return next(fitting, None)

    @property
    def remembers_scoring(self) -> bool:
        """Whether `scores` may be asked for."""
        return self._fits(np.float64, self.X_score.shape[0])

    @cached_property
    def training(self) -> NDArray[Any]:
        """The kernel matrix of the training samples, in the best precision that fits."""
        n = self.X_train.shape[0]
        matrix = np.empty((n, n), dtype=self._precision)
        if matrix.dtype == np.float64:
            samples = as_float64(self.X_train)
            for rows in gen_batches(n, _ROWS):
                matrix[rows] = self.kernel(samples[rows], samples)
            return matrix
        workers = Workers()
        try:
            source = self._source(self.X_train, workers)
            for rows in gen_batches(n, _ROWS):
                # Right of the diagonal, and its mirror image.
                own, others = np.arange(rows.start, rows.stop), np.arange(rows.start, n)
                block = source.block(own, others, workers) + np.float32(source.shift)
                matrix[rows, rows.start :], matrix[rows.start :, rows] = block, block.T
            np.fill_diagonal(matrix, source.diagonal + source.shift)
        finally:
            workers.close()
        return matrix

    @property
    def is_single(self) -> bool:
        """Whether `training` is in single precision, and scores are best computed together."""
        return self._precision is np.float32

    def forget_training(self) -> None:
        """Give the memory of `training` back."""
        self.__dict__.pop("training", None)

    def scores_of_many(
        self, models: Sequence[tuple[NDArray[np.intp], NDArray[np.float64]]]
    ) -> NDArray[np.float64]:
        """The `scores` of several models, a row for each; every entry is computed once.

        Entries are in the precision of `training`, sums in double precision.
        """
        weights = np.zeros((self.X_train.shape[0], len(models)))
        for i, (support, coefficients) in enumerate(models):
            weights[support, i] = coefficients
        used = np.flatnonzero(np.any(weights != 0.0, axis=1))
        weights, n_train = weights[used], self.X_train.shape[0]
        workers = Workers()
        try:
            source = self._source(stack(self.X_train, self.X_score), workers)
            totals = [
                source.block(n_train + np.arange(rows.start, rows.stop), used, workers) @ weights
                for rows in gen_batches(self.X_score.shape[0], _ROWS)
            ]
        finally:
            workers.close()
        return np.concatenate(totals).T + source.shift * weights.sum(axis=0)[:, np.newaxis]

    def _source(self, X: Any, workers: Workers) -> ColumnSource:
        """What computes entries between the samples `X` fast."""
        return column_source(Gram(self.kernel, X), np.float32, workers)

    def scores(
        self, support: NDArray[np.intp], coefficients: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """``sum_i coefficients_i k(x_i, x)`` over the support, of all samples to be scored."""
        missing = support[~self._known[support]]
        for first in range(0, len(missing), _ROWS):
            rows = missing[first : first + _ROWS]
            self._scoring[rows] = self.kernel(self.X_train[rows], self._samples)
        self._known[missing] = True
        weights = np.zeros(len(self._known))
        weights[support] = coefficients
        return weights @ self._scoring

    @cached_property
    def _scoring(self) -> NDArray[np.float64]:
        """A row for each training sample; zero as long as it is not known."""
        return np.zeros((self.X_train.shape[0], self.X_score.shape[0]))

    @cached_property
    def _samples(self) -> Any:
        return as_float64(self.X_score)

    def _fits(self, dtype: Any, n: int) -> bool:
        return np.dtype(dtype).itemsize * self.X_train.shape[0] * n <= self.n_bytes


def stack(a: Any, b: Any) -> Any:
    """The rows of both."""
    import scipy.sparse as sp

    return sp.vstack([a, b], format="csr") if sp.issparse(a) else np.concatenate([a, b])
