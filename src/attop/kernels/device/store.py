"""Kernel columns that are computed and kept on a device.

The solver asks for sums of columns and for the kernel matrix of a few samples; both are products
and gathers on the device, from which only the answers come back.  Columns take so little time
there that all of them count as at hand: one is computed when it is first used, and where there is
no room for more, all make way.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from attop.kernels import gaussian
from attop.kernels.blocks import parts
from attop.kernels.device.arrays import AT_ONCE, Device, is_memory_error
from attop.kernels.device.dense import DeviceDense
from attop.kernels.device.entries import Points
from attop.kernels.device.gram import DeviceGram

#: Samples whose single precision entries may be off by more than this ask for products in double.
_FAR = 1e-4
#: Least columns that are kept, whatever the memory.
_LEAST = 1024


class DeviceStore:
    """Columns of a kernel matrix on a device, as the solver asks a column store for them.

    Parameters
    ----------
    gram : DeviceGram
        The matrix.
    dtype : dtype
        Precision of the columns.
    n_bytes : int, optional
        Memory for them; by default most of what the device has.
    verbose : int
        Whether to say what memory is taken.
    rows : ndarray of intp, optional
        The rows that the matrix is restricted to.
    points : Points, optional
        Their samples, if they are there.
    least : int
        Columns that are kept whatever the memory.
    """

    #: No bounds are needed: the referee computes all scores itself, on the device.
    errors, rank = None, None

    def __init__(
        self,
        gram: DeviceGram,
        dtype: Any,
        n_bytes: int | None = None,
        verbose: int = 0,
        rows: NDArray[np.intp] | None = None,
        points: Points | None = None,
        least: int = _LEAST,
    ) -> None:
        self.gram, self.device, self.xp = gram, gram.device, gram.device.xp
        self.dtype, self._verbose, self._least = np.dtype(dtype), verbose, least
        self._rows = np.arange(gram.n_samples) if rows is None else rows
        self.n_samples = len(self._rows)
        gaussian_kernel = gram.maker.by_norms
        self.shift, self.definite = (1.0 if gaussian_kernel else 0.0), gram.kernel.definite
        self.precision = float(np.finfo(self.dtype).eps)
        self._points = self._prepared() if points is None else points
        self._diagonal = np.zeros(self.n_samples) if gaussian_kernel else gram.diagonal(self._rows)
        #: Largest entry of the kernel's diagonal, in absolute value.
        self.largest = float(np.max(np.abs(self._diagonal + self.shift)))
        self.n_computed = self._filled = 0
        self._slots = np.full(self.n_samples, -1, dtype=np.intp)
        self.capacity = self.n_samples
        self._room = self._room_for(n_bytes)
        self._buffer: Any = None

    def _prepared(self) -> Points:
        """The samples in the precision of products, if the kernel has any."""
        gram = self.gram
        if not gram.maker.by_norms or self.dtype != np.float32:
            return gram.points
        rounding = gaussian.distance_rounding(gram.X.shape[1], np.float32)
        border = gaussian.far_norm2(gram.maker.gamma, rounding, _FAR)
        if np.max(gram.norms) > border:
            return gram.points
        return gram.points.single(self.device)

    def _room_for(self, n_bytes: int | None) -> int:
        """How many columns fit, which is said where they are not all."""
        free = self.device.free_bytes if n_bytes is None else n_bytes
        size = max(1, self.n_samples * self.dtype.itemsize)
        room = min(self.n_samples, max(self._least, free // size))
        if self._verbose and len(self._rows) == self.gram.n_samples:
            what = "the kernel matrix" if room == self.n_samples else f"{room} kernel columns"
            print(
                f"[attop] {what} of {self.n_samples} samples may take {room * size / 2**30:.2f} GB "
                f"of {self.device.name}, where {free / 2**30:.2f} GB may be taken",
                flush=True,
            )
        return room

    @cached_property
    def extent(self) -> float:
        """Largest squared distance of a sample from the first one, in the space of the kernel."""
        first = self.device.get(self._columns(np.zeros(1, dtype=np.intp)))[0]
        return float(np.max(np.abs(self._diagonal + self._diagonal[0] - 2.0 * first)))

    def subset(self, rows: NDArray[np.intp]) -> DeviceStore:
        """An empty store for the matrix restricted to `rows`."""
        points = None
        if not self.gram.kernel.precomputed:
            points = self._points.take(self.device, rows)
        return DeviceStore(self.gram, self.dtype, None, self._verbose, self._rows[rows], points)

    def leave(self, n_entries: int) -> None:
        """Parts find room of their own."""

    def close(self) -> None:
        """Give the memory back."""
        self._buffer, self._filled = None, 0
        self._slots[:] = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def cached(self, rows) -> NDArray[np.bool_]:
        """Which of the columns are at hand: all."""
        return np.ones(len(rows), dtype=bool)

    def diagonal(self, rows) -> NDArray[np.float64]:
        """Entries of the diagonal."""
        found: NDArray[np.float64] = self._diagonal[rows]
        return found

    def fetch(self, rows: NDArray[np.intp]) -> None:
        """Nothing: columns are computed when they are used."""

    prepare = fetch

    def _columns(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> Any:
        """Entries at some of the rows x some of the columns, or all, on the device."""
        if self.gram.kernel.precomputed:
            others = self._rows if columns is None else self._rows[columns]
            found = self.gram.entries(self._rows[rows], others)
        else:
            points = self._points
            all_of = points if columns is None else points.take(self.device, columns)
            some = points.take(self.device, rows)
            found = self.gram.maker.between(some, all_of, less_one=self.shift != 0.0)
        return self.xp.astype(found, self.device.dtype(self.dtype))

    def _in_buffer(self, rows: NDArray[np.intp]) -> NDArray[np.intp] | None:
        """Places of the columns `rows`, those missing computed; None where there is no room."""
        missing = np.unique(rows[self._slots[rows] < 0])
        if len(missing) > self._room - self._filled:
            missing = np.unique(rows)
            if len(missing) > self._room:
                return None
            self._slots[:], self._filled = -1, 0
        if self._buffer is None and not self._make_buffer():
            return self._in_buffer(rows)
        for part in parts(missing, max(1, AT_ONCE // self.n_samples)):
            end = self._filled + len(part)
            self._buffer[self._filled : end, :] = self._columns(part)
            self._slots[part] = np.arange(self._filled, end)
            self._filled = end
            self.n_computed += len(part)
        return self._slots[rows]

    def _make_buffer(self) -> bool:
        """Take the memory; False where there is less of it than was said, and so less room."""
        try:
            self._buffer = self.device.empty((self._room, self.n_samples), self.dtype)
            return True
        except Exception as error:
            if not is_memory_error(error) or self._room <= self._least:
                raise
        self._room = max(self._least, self._room // 2)
        print(
            f"[attop] {self.device.name} has less memory than it said: "
            f"{self._room} kernel columns at a time",
            flush=True,
        )
        return False

    def add_columns(self, rows, weights, out: NDArray[np.float64]) -> None:
        """``out += sum_i weights[i] * column(rows[i])``."""
        used = np.flatnonzero(weights)
        if len(used) == 0:
            return
        rows, weights = np.asarray(rows)[used], np.asarray(weights)[used]
        total = None
        for part in parts(np.arange(len(rows)), max(1, AT_ONCE // self.n_samples)):
            slots = self._in_buffer(rows[part])
            columns = (
                self._columns(rows[part])
                if slots is None
                else self.device.take(self._buffer, slots)
            )
            sums = self.device.put(weights[part]) @ self.xp.astype(columns, self.xp.float64)
            total = sums if total is None else total + sums
        out += self.device.get(total)

    def add_product(self, rows, weights, out: NDArray[np.float64], keep: bool = True) -> None:
        """The same, as no column is missing."""
        self.add_columns(rows, weights, out)

    def block(self, rows, columns) -> NDArray[Any]:
        """The entries at `rows` x `columns`, computed, not kept."""
        return self.device.get(self._columns(rows, columns))

    def on_device(self, rows: NDArray[np.intp]) -> Any:
        """Kernel matrix of `rows`, in float64, on the device."""
        device, n = self.device, len(rows)
        slots = self._in_buffer(rows)
        matrix = device.empty((n, n), np.float64)
        step = max(1, AT_ONCE // self.n_samples)  # by pieces: memory for one matrix is enough
        for i in range(0, n, step):
            if slots is None:
                found = self._columns(rows[i : i + step], rows)
            else:
                found = device.take(device.take(self._buffer, slots[i : i + step]), rows, axis=1)
            matrix[i : min(i + step, n), :] = self.xp.astype(found, self.xp.float64)
        device.diagonal(matrix)[:] = device.put(self._diagonal[rows])
        return matrix

    def largest_block(self) -> int:
        """So many variables have room for their matrix and its factor."""
        taken = 0 if self._buffer is not None else self._room * self.n_samples * self.dtype.itemsize
        # What may be taken is a share of what is free: the rest does for products.
        return int((max(0, self.device.bytes_left() - taken) / (2 * 8)) ** 0.5)

    def dense(self, rows: NDArray[np.intp], own: NDArray[np.float64]) -> DeviceDense:
        """The same with what is added to its diagonal, to be multiplied and factorised there."""
        return DeviceDense(self.on_device(rows), own, self.device)

    def submatrix(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Kernel matrix of `rows`, in float64."""
        return self.device.get(self.on_device(rows))


def open_on_device(gram: DeviceGram, dtype: Any, verbose: int = 0) -> DeviceStore:
    """A store for the columns of `gram` on its device."""
    device: Device = gram.device
    with device.guarded():
        return DeviceStore(gram, dtype, verbose=verbose)
