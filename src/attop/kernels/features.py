"""Features of kernels that scikit-learn has not got."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem
from sklearn.utils import check_random_state

#: Eigenvalues below this share of the largest one are rounding.
_NEGLIGIBLE = 1e-12


class KernelNystroem(Nystroem):
    """Scikit-learn's `Nystroem` for a kernel that is a function of two arrays of samples.

    Scikit-learn would call such a function once for every pair of samples.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    n_components : int, default=100
        Number of samples drawn, and of features.
    random_state : int, RandomState or None, default=None
        Draws the samples.

    Attributes
    ----------
    components_ : ndarray or CSR matrix of shape (n_components, n_features)
        The samples drawn.
    component_indices_ : ndarray of shape (n_components,)
        Which they are.
    normalization_ : ndarray of shape (n_components, n_components)
        The inverse root of their kernel matrix.
    """

    def __init__(self, kernel: Any, *, n_components: int = 100, random_state: Any = None) -> None:
        super().__init__(kernel=kernel, n_components=n_components, random_state=random_state)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the samples."""
        order = check_random_state(self.random_state).permutation(X.shape[0])
        self.component_indices_ = order[: self.n_components]
        self.components_ = X[self.component_indices_]
        values, vectors = np.linalg.eigh(self.kernel(self.components_, self.components_))
        values = np.maximum(values, _NEGLIGIBLE * max(values[-1], _NEGLIGIBLE))
        self.normalization_ = (vectors / np.sqrt(values)) @ vectors.T
        self._n_features_out = len(self.component_indices_)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The features of the rows of `X`."""
        features: NDArray[np.float64] = self.kernel(X, self.components_) @ self.normalization_
        return features
