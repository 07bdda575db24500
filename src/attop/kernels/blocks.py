"""Samples in pieces: how many at a time, and in which precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows and columns of blocks that are summed up; in float64 they fit the caches of most machines.
BLOCK = 768


def as_float64(X: Any) -> Any:
    """`X` in float64, without a copy where it already is."""
    return X.astype(np.float64, copy=False)


def parts(array: NDArray[Any], step: int) -> list[NDArray[Any]]:
    """Consecutive pieces of an array, at most so long each, and about equally."""
    return np.array_split(array, -(-len(array) // step)) if len(array) else []
