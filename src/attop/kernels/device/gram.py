"""The kernel matrix of the training samples on a device: what it means, in double precision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attop.kernels.base import Kernel
from attop.kernels.device.arrays import AT_ONCE, Device, as_numpy
from attop.kernels.device.entries import Entries, Points
from attop.kernels.errors import EntryRounding
from attop.kernels.functions import Gaussian
from attop.kernels.gaussian import accuracy
from attop.kernels.gram import Gram


@dataclass(frozen=True)
class PlacedGram(Gram):
    """Dense samples of a linear model, and the device that products with them are computed on.

    A linear model has no kernel matrix: this is a `Gram` of the CPU in all that it computes itself.

    Parameters
    ----------
    kernel, X
        As for `Gram`.
    device : Device
        The device.
    """

    device: Device


@dataclass(frozen=True)
class DeviceGram(Gram):
    """A `Gram` whose scores are computed on a device; the samples are on the host, too.

    Parameters
    ----------
    kernel, X
        As for `Gram`.
    device : Device
        The device.
    """

    device: Device

    @classmethod
    def where(cls, kernel: Kernel, X: Any, device: Device | None) -> Gram:
        """The kernel matrix on a device if there is one, and entries to compute there."""
        if device is None:
            return Gram(kernel, X)
        if kernel.explicit:
            return Gram(kernel, X) if sp.issparse(X) else PlacedGram(kernel, X, device)
        return cls(kernel, X, device)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("kernel", "X", "device")}

    def subset(self, rows: NDArray[np.intp]) -> Gram:
        """The kernel matrix of some of the samples."""
        return DeviceGram(self.kernel, self.X[rows], self.device)

    @cached_property
    def maker(self) -> Entries:
        """What computes entries."""
        return Entries.of(self.kernel, self.device, self.X)

    @cached_property
    def points(self) -> Points:
        """All samples in double precision; the matrix itself where it is precomputed."""
        if self.kernel.precomputed:
            n = self.n_samples
            return Points(self.device.put(self.X), None, np.zeros(n, dtype=bool), 0.0, self.X)
        return self.maker.points(self.X)

    @cached_property
    def norms(self) -> NDArray[np.float64]:
        """Squared norms of the samples, for a Gaussian kernel."""
        return self.device.get(self.points.norms)

    def entries(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> Any:
        """The entries at `rows` x `columns`, or all columns, in float64 on the device."""
        xp, device, points = self.device.xp, self.device, self.points
        some = device.take(points.values, rows) if self.kernel.precomputed else None
        if some is not None:
            some = some if columns is None else device.take(some, columns, axis=1)
            return xp.astype(some, xp.float64)
        others = points if columns is None else points.take(device, columns)
        return self.maker.between(points.take(device, rows), others)

    def sums(self, rows, support, coefficients) -> NDArray[np.float64]:
        """``sum_v coefficients_v k(row, row_v)`` for each row."""
        if len(support) == 0 or len(rows) == 0:
            return np.zeros(len(rows))
        weights = self.device.put(coefficients)
        step = max(1, AT_ONCE // (2 * len(support)))
        if self.kernel.precomputed:
            parts = [self.entries(rows[i : i + step], support) for i in _starts(rows, step)]
            return np.concatenate([self.device.get(part @ weights) for part in parts])
        known = self.points.take(self.device, support)
        sums = []
        for i in _starts(rows, step):
            some = self.points.take(self.device, rows[i : i + step])
            sums.append(self.device.get(self.maker.between(some, known) @ weights))
        return np.concatenate(sums)

    def rounding(self, rows) -> EntryRounding:
        """How far entries with the samples at `rows` may be off."""
        if not isinstance(self.kernel, Gaussian):
            return super().rounding(rows)
        largest = float(np.max(self.norms[rows], initial=0.0))
        return EntryRounding(0.0, accuracy(self.X.shape[1], self.kernel.gamma, largest))

    def whole(self, order: NDArray[np.intp] | None = None):
        """All entries, in this order of the samples if there is one, and their rounding."""
        every = np.arange(self.n_samples) if order is None else order
        values = self.device.get(self.entries(every, every))
        diagonal = np.arange(len(every))
        values[diagonal, diagonal] = self.diagonal(every)
        return values, self.rounding(every)


def _starts(rows: NDArray[np.intp], step: int) -> range:
    return range(0, len(rows), step)


class DeviceScores:
    """Sums of kernel columns at other samples than those of the matrix, which stay on the device.

    Parameters
    ----------
    gram : DeviceGram
        Kernel matrix of the samples that the sums are over; of samples, not of entries.
    X : ndarray or CSR matrix
        The other samples.
    """

    def __init__(self, gram: DeviceGram, X: Any) -> None:
        self.gram, self.X = gram, X

    @cached_property
    def _points(self) -> Points:
        return self.gram.maker.points(self.X)

    def sums(
        self, support: NDArray[np.intp], coefficients: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """``sum_v coefficients_v k(x, row_v)`` of each of the samples, in double precision."""
        device, n = self.gram.device, self.X.shape[0]
        if len(support) == 0:
            return np.zeros(n)
        known, weights = self.gram.points.take(device, support), device.put(coefficients)
        step = max(1, AT_ONCE // (2 * len(support)))
        sums = []
        for i in range(0, n, step):
            some = self._points.take(device, np.arange(i, min(i + step, n)))
            sums.append(device.get(self.gram.maker.between(some, known) @ weights))
        return np.concatenate(sums)


def expansion(
    kernel: Kernel, device: Device, X: Any, support_vectors: Any, coefficients: Any
) -> NDArray[np.float64]:
    """``sum_v coefficients_v k(x, x_v)`` for the rows of `X`, in double precision on the device."""
    if len(coefficients) == 0:
        return np.zeros(X.shape[0])
    maker = Entries.of(kernel, device, support_vectors)
    known, weights = maker.points(support_vectors), device.put(coefficients)
    step = max(1, AT_ONCE // (2 * max(len(coefficients), X.shape[1])))
    parts = [maker.points(X[i : i + step]) for i in range(0, X.shape[0], step)]
    return np.concatenate([device.get(maker.between(part, known) @ weights) for part in parts])


__all__ = ["DeviceGram", "DeviceScores", "PlacedGram", "as_numpy", "expansion"]
