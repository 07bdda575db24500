"""The samples of a linear model on a device: every pass over them is a product there.

Vectors come and go; the samples are there in double precision, from their centre, once.  What is
decided from scores, thresholds and steps, stays on the host, and so does the certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from attop.kernels.device.arrays import AT_ONCE, Device
from attop.kernels.device.gram import PlacedGram
from attop.kernels.gram import Gram
from attop.solvers.primal.samples import Matrix, Rows, Samples, Vector

#: Samples in double precision, and some of them once more for products.
_COPIES = 2


def samples_of(gram: Gram) -> Samples:
    """The samples of a linear model, on the device of `gram` if it has one with room for them."""
    if isinstance(gram, PlacedGram) and DeviceSamples.fit(gram.X, gram.device):
        return DeviceSamples(gram.X, gram.device)
    return Samples(gram.X)


class DeviceSamples(Samples):
    """The same products as of `Samples`, on a device.

    Parameters
    ----------
    X : ndarray
        The samples, dense.
    device : Device
        The device.
    """

    def __init__(self, X: Any, device: Device) -> None:
        super().__init__(X)
        self.device = device
        values = device.put(X, np.float64)
        values = values - device.put(self.centre)
        self.values = values

    @classmethod
    def fit(cls, X: Any, device: Device) -> bool:
        """Whether the device has room for these samples."""
        return 8 * _COPIES * X.size <= device.free_bytes

    def take(self, rows: Rows) -> Self:
        """Some of the samples."""
        some = object.__new__(type(self))
        some.__dict__.update(vars(self))
        some.X, some.n_samples = self.X[rows], len(rows)
        some.values = self.device.take(self.values, rows)
        return some

    def scores(self, w: Vector) -> Vector:
        """``X w``, from the centre."""
        return self.device.get(self.values @ self.device.put(w))

    def scores_of(self, rows: Rows, w: Vector) -> Vector:
        """`scores` of some rows."""
        placed = self.device.put(w)
        parts = [self.device.get(part @ placed) for part in self._parts(rows)]
        return np.concatenate([np.empty(0), *parts])

    def combine_rows(self, rows: Rows, coefficients: Vector) -> Vector:
        """``sum coefficients_r x_r``, from the centre."""
        if 2 * len(rows) >= self.n_samples:  # all of them cost less than to gather these
            every = np.zeros(self.n_samples)
            every[rows] = coefficients
            return self.device.get(self.values.T @ self.device.put(every))
        total, start = np.zeros(self.n_features), 0
        for part in self._parts(rows):
            weights = self.device.put(coefficients[start : start + part.shape[0]])
            total += self.device.get(part.T @ weights)
            start += part.shape[0]
        return total

    def gram(self, rows: Rows, weights: Vector, stop: Callable[[], bool] = bool) -> Matrix:
        """``sum weights_r x_r x_r'``, from the centre; a part of it once it is told to stop."""
        total, start = np.zeros((self.n_features, self.n_features)), 0
        for part in self._parts(rows):
            if stop():
                break
            roots = self.device.put(np.sqrt(weights[start : start + part.shape[0]]))
            part = part * roots[:, None]
            total += self.device.get(part.T @ part)
            start += part.shape[0]
        return total

    def squares(self, rows: Rows, weights: Vector) -> Vector:
        """``sum weights_r x_r^2``, the diagonal of `gram`."""
        total, start = np.zeros(self.n_features), 0
        for part in self._parts(rows):
            some = self.device.put(weights[start : start + part.shape[0]])
            total += self.device.get((part * part).T @ some)
            start += part.shape[0]
        return total

    def _parts(self, rows: Rows) -> Any:
        """Some of the samples, so many at a time as products have room for."""
        step = max(1, AT_ONCE // max(1, self.n_features))
        for start in range(0, len(rows), step):
            yield self.device.take(self.values, rows[start : start + step])
