"""Samples in pieces: how many at a time, and in which precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

#: Rows and columns of blocks that are summed up; in float64 they fit the caches of most machines.
BLOCK = 768


#: Sparse rows that are taken at once: to take them costs more than to sum them up.
SPARSE_BLOCK = 2**15


def rows_at_once(X: Any) -> int:
    """How many rows of samples a pass takes at once."""
    return SPARSE_BLOCK if sp.issparse(X) else BLOCK


def as_float64(X: Any) -> Any:
    """`X` in float64, without a copy where it already is."""
    return X.astype(np.float64, copy=False)


def slices(n: int, step: int) -> list[slice]:
    """Consecutive ranges that cover ``range(n)``.

    As scikit-learn's `gen_batches`, which takes longer to check its arguments than a small fit.
    """
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def parts(array: NDArray[Any], step: int) -> list[NDArray[Any]]:
    """Consecutive pieces of an array, at most so long each, and about equally."""
    return np.array_split(array, -(-len(array) // step)) if len(array) else []
