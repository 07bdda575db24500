"""Kernel entries on a device: the same functions as in `attop.kernels`, on its arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attop.kernels import gaussian
from attop.kernels.base import Kernel
from attop.kernels.blocks import as_float64, slices
from attop.kernels.device.arrays import AT_ONCE, Device
from attop.kernels.functions import Gaussian

#: Samples that the centre is taken from, at least.
_FOR_CENTRE = 1024


@dataclass(frozen=True)
class Points:
    """Samples made ready on a device.

    Attributes
    ----------
    values : array of shape (n, n_features)
        The samples; those of a Gaussian kernel from a common centre.
    norms : array of shape (n,), optional
        Their squared norms, for a Gaussian kernel.
    far : ndarray of bool
        Which of them are so far out that their distances need differences, on the host.
    largest : float
        No squared norm exceeds this.
    original : ndarray
        The samples on the host.
    """

    values: Any
    norms: Any
    far: NDArray[np.bool_]
    largest: float
    original: Any

    def take(self, device: Device, rows: NDArray[np.intp]) -> Points:
        """Some of them."""
        norms = None if self.norms is None else device.take(self.norms, rows)
        original = Rows(self.original, rows)
        return Points(device.take(self.values, rows), norms, self.far[rows], self.largest, original)

    def single(self, device: Device) -> Points:
        """The same in single precision."""
        xp = device.xp
        values, norms = xp.astype(self.values, xp.float32), xp.astype(self.norms, xp.float32)
        return Points(values, norms, self.far, self.largest, self.original)


class Rows:
    """Some rows of an array, none of them copied until it is asked for."""

    def __init__(self, whole: Any, rows: NDArray[np.intp]) -> None:
        self.whole, self.rows = whole, rows

    def __getitem__(self, some: Any) -> Any:
        return self.whole[self.rows[some]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)


class Entries:
    """A kernel on the arrays of a device.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    device : Device
        The device.
    centre : ndarray, optional
        What is taken from samples of a Gaussian kernel.
    """

    def __init__(self, kernel: Kernel, device: Device, centre: Any = None) -> None:
        self.kernel, self.device, self.xp = kernel, device, device.xp
        self.centre = None if centre is None else device.put(centre)
        self.by_norms = isinstance(kernel, Gaussian)

    @classmethod
    def of(cls, kernel: Kernel, device: Device, X: Any) -> Entries:
        """The same with the centre of these samples."""
        if not isinstance(kernel, Gaussian):
            return cls(kernel, device)
        some = _dense(X[:: max(1, X.shape[0] // _FOR_CENTRE)])
        return cls(kernel, device, gaussian.centre(some))

    def points(self, X: Any, dtype: Any = np.float64) -> Points:
        """Samples of the host made ready."""
        xp, host = self.xp, _dense(X)
        placed = self.device.put(host)
        near = np.zeros(len(host), dtype=bool)
        if not self.by_norms:
            return Points(xp.astype(placed, xp.float64), None, near, 0.0, host)
        values, norms = self._centred(placed, dtype)
        border = gaussian.far_norm2(
            self.gamma,
            gaussian.distance_rounding(host.shape[1], np.float64),
            gaussian.DOUBLE_LIMIT,
        )
        on_host = self.device.get(norms)
        largest = float(np.max(on_host, initial=0.0))
        norms = xp.astype(norms, values.dtype)
        return Points(values, norms, on_host > border, largest, host)

    def _centred(self, placed: Any, dtype: Any) -> tuple[Any, Any]:
        """Samples from the centre in this precision, and their squared norms in float64."""
        xp, step = self.xp, max(1, AT_ONCE // max(1, placed.shape[1]))
        pieces, norms = [], []
        for part in slices(placed.shape[0], step):
            piece = xp.astype(placed[part, :], xp.float64) - self.centre
            norms.append(xp.sum(piece * piece, axis=1))
            pieces.append(xp.astype(piece, self.device.dtype(dtype)))
        if len(pieces) == 1:
            return pieces[0], norms[0]
        return xp.concat(pieces, axis=0), xp.concat(norms, axis=0)

    @property
    def gamma(self) -> float:
        """Parameter of a Gaussian kernel."""
        assert isinstance(self.kernel, Gaussian)
        return self.kernel.gamma

    def between(self, X: Points, Y: Points, less_one: bool = False) -> Any:
        """Entries of two sets of points, of a Gaussian kernel less one if asked for."""
        if self.by_norms:
            return self._gaussian(X, Y, less_one)
        found = self.kernel.on_device(self.xp, X.values, Y.values)
        return found if found is not None else self._on_host(X, Y)

    def _on_host(self, X: Points, Y: Points) -> Any:
        """Entries of a kernel that only takes arrays of NumPy."""
        return self.device.put(self.kernel(np.asarray(X.original), np.asarray(Y.original)))

    def _gaussian(self, X: Points, Y: Points, less_one: bool) -> Any:
        xp = self.xp
        values = X.values @ Y.values.T
        values *= -2.0
        values += X.norms[:, None]
        values += Y.norms[None, :]
        single, nothing = values.dtype == xp.float32, 0.0
        if not single:  # what may be zero is: samples are as near to themselves as can be
            rounding = gaussian.distance_rounding(X.values.shape[1], np.float64)
            border = gaussian.far_norm2(self.gamma, rounding, gaussian.DOUBLE_LIMIT)
            nothing = 4.0 * rounding * min(border, max(X.largest, Y.largest))
        values = xp.where(values > nothing, values, xp.zeros_like(values[:1, :1]))
        values *= -self.gamma
        values = xp.expm1(values) if less_one else xp.exp(values)
        return values if single else self._mended(values, X, Y, less_one)

    def _mended(self, values: Any, X: Points, Y: Points, less_one: bool) -> Any:
        """The entries with those of two samples far out by the differences of their features."""
        rows, columns = np.flatnonzero(X.far), np.flatnonzero(Y.far)
        if len(rows) == 0 or len(columns) == 0:
            return values
        put, take = self.device.put, self.device.take
        right = gaussian.gaussian_kernel(
            as_float64(X.original[rows]), as_float64(Y.original[columns]), self.gamma
        )
        change = put(right - less_one) - take(take(values, rows), columns, axis=1)
        values += put(_places(rows, len(X.far))).T @ change @ put(_places(columns, len(Y.far)))
        return values


def _places(which: NDArray[np.intp], n: int) -> NDArray[np.float64]:
    """Rows of the unit matrix."""
    places = np.zeros((len(which), n))
    places[np.arange(len(which)), which] = 1.0
    return places


def _dense(X: Any) -> NDArray[Any]:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
