"""The kernel of one split, computed once for all of its fits."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from attop.kernels.functions import Kernel, as_float64

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
        return self._fits(self.X_train)

    @property
    def remembers_scoring(self) -> bool:
        """Whether `scores` may be asked for."""
        return self._fits(self.X_score)

    @cached_property
    def training(self) -> NDArray[np.float64]:
        """The kernel matrix of the training samples."""
        matrix = np.empty((self.X_train.shape[0],) * 2)
        samples = as_float64(self.X_train)
        for rows in gen_batches(len(matrix), _ROWS):
            matrix[rows] = self.kernel(samples[rows], samples)
        return matrix

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

    def _fits(self, X: Any) -> bool:
        return 8 * self.X_train.shape[0] * X.shape[0] <= self.n_bytes
