"""Products and factorisations of a block's kernel matrix on a device; vectors come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop.kernels.device.arrays import AT_ONCE, Device

#: Ridges that are tried, relative to the diagonal.
_RIDGES = (1e-15, 1e-13, 1e-11, 1e-9)

Array = NDArray[np.float64]


class DeviceDense:
    """A symmetric matrix on a device, as `attop.solvers.exact.subproblem.dense` has it in memory.

    Parameters
    ----------
    matrix : array of shape (b, b)
        The matrix in float64, without what is added to its diagonal.
    own : ndarray of shape (b,)
        What is added.
    device : Device
        The device.
    """

    def __init__(self, matrix: Any, own: Array, device: Device) -> None:
        self.matrix, self.own, self.device = matrix, own, device
        self.updated = False

    def forget(self) -> None:
        """Nothing is updated."""

    def times(self, x: Array) -> Array:
        """The matrix times a vector."""
        return self.device.get(self.matrix @ self.device.put(x)) + self.own * x

    def solver(
        self, some: NDArray[np.intp], added: Array, lift: float, precise: bool
    ) -> Callable[[Array], Array]:
        """A function that solves systems with the rows and columns `some`, one or many at once.

        To the matrix the constant `lift` is added, and `added` to its diagonal.  The factor is in
        double precision, whether it has to be or not.
        """
        device = self.device
        bend = device.put(self.own[some] + added)
        for ridge in _RIDGES:
            matrix = self._part(some)
            matrix += lift
            diagonal = device.diagonal(matrix)
            diagonal += bend
            diagonal *= 1.0 + ridge
            try:
                factor = device.cholesky(matrix)
            except np.linalg.LinAlgError:
                continue
            return lambda right: self._solution(factor, right)
        raise np.linalg.LinAlgError("The matrix is not positive definite.")

    def _part(self, some: NDArray[np.intp]) -> Any:
        """A copy of the rows and columns `some`, by pieces: there is no memory for a third."""
        device, n = self.device, len(some)
        part = device.empty((n, n), np.float64)
        step = max(1, AT_ONCE // max(1, len(self.own)))
        for i in range(0, n, step):
            rows = device.take(self.matrix, some[i : i + step])
            part[i : min(i + step, n), :] = device.take(rows, some, axis=1)
        return part

    def _solution(self, factor: Any, right: Array) -> Array:
        columns = right if right.ndim == 2 else right[:, None]
        found = self.device.get(self.device.solve(factor, self.device.put(columns)))
        return found if right.ndim == 2 else found[:, 0]
