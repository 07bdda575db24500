"""Explicit features whose linear kernel is near a given kernel, for many samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.utils import gen_batches

from attop.kernels.base import Kernel

#: The approximations by name.
APPROXIMATIONS = ("nystroem", "rbf_sampler")
#: Samples whose features are computed at a time.
FEATURE_ROWS = 4096


def make_feature_map(
    approximation: str, kernel: Kernel, n_components: int, random_state: Any
) -> Nystroem | RBFSampler:
    """A transformer, not fitted yet, to features ``z`` with ``<z(x), z(y)>`` near ``k(x, y)``.

    Parameters
    ----------
    approximation : {"nystroem", "rbf_sampler"}
        Features of kernel values with sampled samples, for any kernel that is a class; or random
        Fourier features, for "rbf".
    kernel : Kernel
        The kernel.
    n_components : int
        Number of features.
    random_state : int, RandomState or None
        Draws the samples or the frequencies.
    """
    return kernel.feature_map(approximation, n_components, random_state)


def transform(feature_map: Nystroem | RBFSampler, X: Any) -> NDArray[np.floating]:
    """Features of the rows of `X` in its precision, in blocks of bounded memory."""
    parts = gen_batches(X.shape[0], FEATURE_ROWS)
    first = feature_map.transform(X[next(parts)])
    features = np.empty((X.shape[0], first.shape[1]), dtype=X.dtype)
    features[: len(first)] = first
    for part in parts:
        features[part] = feature_map.transform(X[part])
    return features
