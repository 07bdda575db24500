"""Weights of samples, which count their copies; ones that take no memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: The memory of all ones there are, not to be written to.
_ONE = np.float64(1.0).tobytes()

Vector = NDArray[np.float64]
#: Numbers in double or extended precision.
Numbers = NDArray[Any]


def unit_weights(count: int) -> Vector:
    """So many ones, which take no memory."""
    return np.ndarray((count,), np.float64, _ONE, 0, (0,))


def are_unit(weights: Vector) -> bool:
    """Whether these are such ones, or a slice of them: sums may then do without."""
    return weights.strides == (0,)


def of_rows(weights: Vector, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Vector:
    """The weights of some rows, given by their numbers or marked."""
    if are_unit(weights):
        return unit_weights(int(np.count_nonzero(rows)) if rows.dtype == bool else len(rows))
    return weights[rows]


def weighted_sum(values: Numbers, weights: Vector) -> float:
    """Sum of the values of all copies."""
    return float(values.sum() if are_unit(weights) else values.dot(weights))


def weighted(values: Numbers, weights: Vector) -> Numbers:
    """The values of all copies of each sample together; the values themselves where it is one."""
    return values if are_unit(weights) else values * weights
