"""The quadratic form of a subproblem on a device, for the interior-point method.

Matrices stay there: only vectors come and go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from attop.kernels.device.arrays import Device
from attop.solvers.exact.subproblem.hessians import RIDGES, Additions, Solve

Array = NDArray[np.float64]


@dataclass
class DeviceKernels:
    """The kernel matrix of the block's samples on a device.

    Attributes
    ----------
    matrix : array of shape (n_variables, n_variables)
        The matrix, with the penalties on its diagonal.
    device : Device
        Where it is.
    """

    matrix: Any
    device: Device

    @classmethod
    def of(cls, matrix: Any, penalty: Array, device: Device) -> DeviceKernels:
        """The kernel matrix with penalties that are added to its diagonal, in place."""
        flat = _diagonal(device, matrix)
        flat += device.put(penalty)
        return cls(matrix, device)

    def times(self, v: Array) -> Array:
        """Kernel matrix, with penalties, times a vector."""
        return self.device.get(self.matrix @ self.device.put(v))

    @property
    def small(self) -> bool:
        """Whether threads of the host would only wait for each other: they have vectors only."""
        return True

    def hessian(self, signed: Array, balance: Array, column: Array, square: float) -> DeviceHessian:
        """``|w|^2 / 2`` and the penalties; the cap is there if `balance` has it."""
        device, xp = self.device, self.device.xp
        signs = device.put(signed)
        matrix: Any = self.matrix * signs[:, None]
        matrix *= signs[None, :]
        if len(balance) > len(signed):
            cross = device.put(-signed * column)
            last = xp.concat([cross, device.put(np.array([square]))])
            matrix = xp.concat([matrix, cross[None, :]], axis=0)
            matrix = xp.concat([matrix, last[:, None]], axis=1)
        equation = device.put(balance)
        matrix += equation[:, None] * equation[None, :]
        return DeviceHessian(matrix, device)


class DeviceHessian:
    """A matrix on a device."""

    def __init__(self, matrix: Any, device: Device) -> None:
        self.matrix, self.device = matrix, device
        self.diagonal = device.get(_diagonal(device, matrix) * 1.0)

    def times(self, x: Array) -> Array:
        """``H x``."""
        return self.device.get(self.matrix @ self.device.put(x))

    def solver(self, added: Additions) -> Solve:
        """Factorise the sum, with as much of a ridge as it takes."""
        device, own = self.device, added.own.copy()
        if len(added.below):
            own[added.betas] += added.below
            own[-1] += np.sum(added.below)
        for ridge in RIDGES:
            matrix = self._with(added, own + ridge * np.abs(self.diagonal + own))
            try:
                factor = device.cholesky(matrix)
            except (LinAlgError, np.linalg.LinAlgError):
                continue
            return lambda right: _solve(device, factor, right)
        raise LinAlgError("The quadratic form of the subproblem is not positive definite.")

    def _with(self, added: Additions, diagonal: Array) -> Any:
        """The matrix with what the bounds and the norm add to it."""
        device = self.device
        matrix = self.device.xp.asarray(self.matrix, copy=True)
        flat = _diagonal(device, matrix)
        flat += device.put(diagonal)
        n = len(diagonal)
        first, last = (added.betas[0], added.betas[-1] + 1) if len(added.betas) else (n, n)
        if len(added.below):
            below = device.put(added.below)
            matrix[first:last, n - 1] -= below
            matrix[n - 1, first:last] -= below
        if added.pull:
            direction = device.put(added.direction)
            pulled = added.pull * direction
            matrix[first:last, first:last] -= pulled[:, None] * direction[None, :]
        return matrix


def _diagonal(device: Device, matrix: Any) -> Any:
    """The diagonal of a matrix, as a view."""
    return device.xp.reshape(matrix, (-1,), copy=False)[:: matrix.shape[0] + 1]


def _solve(device: Device, factor: Any, right: Array) -> Array:
    """Solve for a vector, or for the columns of a matrix."""
    columns = right if right.ndim == 2 else right[:, None]
    found = device.get(device.solve(factor, device.put(columns)))
    return found if right.ndim == 2 else found[:, 0]
