"""Parts of kernel values in extended precision, with sizes to which their rounding is relative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Long = NDArray[np.longdouble]


def long_doubles(X: Any) -> Long:
    """Samples as a dense array in extended precision."""
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(np.longdouble)


def long_norms(X: Long) -> NDArray[np.float64]:
    """Norms of such samples, in double precision."""
    return np.sqrt(np.sum(X.astype(np.float64) ** 2, axis=1))


def exponentials(
    X: Any, Y: Any, gamma: float, power: Callable[[Long], Long]
) -> tuple[Long, NDArray[np.float64]]:
    """``exp(-gamma sum_i power(x_i - y_i))``, and its size, which is one at most."""
    X, Y = long_doubles(X), long_doubles(Y)
    distances = np.zeros((len(X), len(Y)), dtype=np.longdouble)
    for x, y in zip(X.T, Y.T, strict=True):
        distances += power(np.subtract.outer(x, y))
    return np.exp(-gamma * distances), np.ones(distances.shape)


def inner_products(
    X: Any, Y: Any, gamma: float = 1.0, constant: float = 0.0
) -> tuple[Long, NDArray[np.float64]]:
    """``gamma <x, y> + constant``, and what its terms add up to at most, signs apart."""
    X, Y = long_doubles(X), long_doubles(Y)
    size = gamma * np.outer(long_norms(X), long_norms(Y)) + abs(constant)
    return gamma * (X @ Y.T) + constant, size
