"""Arrays of whichever framework is there, on the device that was asked for.

Everything else here is written for the array API standard, through `array_api_compat`: the same
lines run on PyTorch and CuPy, where they use a GPU, and on NumPy, where they are tested.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

#: What `device` may be: nothing, the CPU, or a GPU by its number.
NAMES = re.compile(r"cpu|cuda(:\d+)?")
#: Share of a device's free memory that kernel columns may take: products need some as well.
_SHARE = 0.7
#: Numbers of a product that are computed at once, in float64: a gigabyte.
AT_ONCE = 2**27
#: Share of a device's memory that this process may take, where several processes share one.
_OF_PROCESS: dict[str, float] = {}
#: Smaller arrays come from a device as they are.
_PAGES = 2**17
#: What the numpy of a test has.
_MEMORY_OF_HOST = 2**30


class Device:
    """A device with its arrays.

    Parameters
    ----------
    xp : module
        Namespace of its arrays, compatible with the array API.
    name : str
        What the user calls it.
    where : object, optional
        What the framework calls it.
    n_bytes : int, optional
        Memory that may be taken; by default most of what is free.
    """

    def __init__(self, xp: Any, name: str, where: Any = None, n_bytes: int | None = None) -> None:
        self.xp, self.name, self.where, self._n_bytes = xp, name, where, n_bytes
        self.framework = str(xp.__name__).rpartition(".")[2]

    def __reduce__(self) -> tuple[Any, ...]:
        return find_device, (self.name,)  # modules cannot be sent to another process

    def put(self, array: Any, dtype: type | None = None) -> Any:
        """A NumPy array on the device, converted there."""
        array = np.asarray(array)
        if array.dtype == np.intp:
            array = array.astype(np.int64, copy=False)
        if not (array.flags.writeable and array.flags.c_contiguous):
            array = np.array(array, order="C")  # which frameworks insist on
        placed = self.xp.asarray(array, device=self.where)
        wanted = None if dtype is None else self.dtype(dtype)
        return placed if wanted in (None, placed.dtype) else self.xp.astype(placed, wanted)

    def dtype(self, dtype: Any) -> Any:
        """What the framework calls a precision of NumPy."""
        return getattr(self.xp, np.dtype(dtype).name)

    def get(self, array: Any) -> NDArray[Any]:
        """An array of the device as one of NumPy."""
        if self.framework == "torch":
            return self._from_torch(array)
        return array.get() if self.framework == "cupy" else np.array(np.from_dlpack(array))

    def _from_torch(self, array: Any) -> NDArray[Any]:
        """Large arrays by way of memory that pages do not have to be found for: 8 times faster."""
        if array.device.type == "cpu" or array.numel() < _PAGES:
            return array.cpu().numpy()
        import torch

        host = torch.empty(array.shape, dtype=array.dtype, pin_memory=True)
        host.copy_(array)
        return host.numpy()

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Room for an array."""
        return self.xp.empty(shape, dtype=self.dtype(dtype), device=self.where)

    def take(self, array: Any, rows: NDArray[np.intp], axis: int = 0) -> Any:
        """Some rows, or columns, of an array of the device."""
        return self.xp.take(array, self.put(rows), axis=axis)

    def diagonal(self, matrix: Any) -> Any:
        """The diagonal of a matrix, to be changed in place."""
        return self.xp.reshape(matrix, (-1,), copy=False)[:: matrix.shape[0] + 1]

    @cached_property
    def free_bytes(self) -> int:
        """Memory that kernel columns may take, as it was when this was first asked for."""
        return self.bytes_left()

    def bytes_left(self) -> int:
        """Memory that may be taken now."""
        if self._n_bytes is not None:
            return self._n_bytes
        if self.framework == "torch":
            import torch

            free, _ = torch.cuda.mem_get_info(self.where)
            # What the framework holds and does not use is free as well.
            taken = torch.cuda.memory_allocated(self.where)
            free += torch.cuda.memory_reserved(self.where) - taken
            whole = torch.cuda.get_device_properties(self.where).total_memory
            return int(_SHARE * min(free, _OF_PROCESS.get(self.name, 1.0) * whole - taken))
        if self.framework == "cupy":
            import cupy

            held = cupy.get_default_memory_pool().free_bytes()
            return int(_SHARE * (cupy.cuda.Device(self.where).mem_info[0] + held))
        return _MEMORY_OF_HOST

    def share_memory(self, share: float) -> None:
        """Take no more than this share of the whole memory in this process: others take theirs.

        What the framework holds of it without need is given back before more is asked for.
        """
        if self.framework == "torch" and share != _OF_PROCESS.get(self.name, 1.0):
            import torch

            torch.cuda.set_per_process_memory_fraction(share, self.where)
        elif self.framework == "cupy":
            import cupy

            with cupy.cuda.Device(self.where):
                cupy.get_default_memory_pool().set_limit(fraction=share)
        _OF_PROCESS[self.name] = share

    def cholesky(self, matrix: Any) -> Any:
        """The lower factor of a positive definite matrix, which is overwritten where that can be.

        LinAlgError where it is none.
        """
        if self.framework == "torch":
            import torch

            # In columns, as LAPACK has it, so that no copy is made: the matrix is symmetric.
            columns = matrix.mT
            failed = torch.empty((), dtype=torch.int32, device=matrix.device)
            torch.linalg.cholesky_ex(columns, out=(columns, failed))
            if int(failed):
                raise LinAlgError("The matrix is not positive definite.")
            return columns
        factor = self.xp.linalg.cholesky(matrix)
        if not bool(self.xp.all(self.xp.isfinite(factor[-1, :]))):
            raise LinAlgError("The matrix is not positive definite.")
        return factor

    def solve(self, factor: Any, right: Any) -> Any:
        """Solve for the columns of `right` with the factor of `cholesky`."""
        if self.framework == "torch":
            import torch

            return torch.cholesky_solve(right, factor)
        if self.framework == "cupy":
            from cupyx.scipy.linalg import solve_triangular

            half = solve_triangular(factor, right, lower=True)
            return solve_triangular(factor, half, lower=True, trans="T")
        solve = self.xp.linalg.solve
        return solve(factor.T, solve(factor, right))

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Says what happened where the device has no memory left, or is there no more."""
        try:
            yield
        except Exception as error:
            kind = type(error).__name__
            if is_memory_error(error):
                raise MemoryError(
                    f"The memory of device={self.name!r} does not do for this fit: another "
                    "process may use it, or there are too many samples. device=None takes the CPU."
                ) from error
            if kind in _LOST or "CUDA error" in str(error):
                raise RuntimeError(
                    f"The device {self.name!r} failed, or was lost, during the work: {error} "
                    "Nothing was changed; device=None takes the CPU."
                ) from error
            raise


#: Errors of frameworks whose device does not answer.
_LOST = {"AcceleratorError", "CUDARuntimeError", "CUBLASError", "CUSOLVERError"}


def is_memory_error(error: BaseException) -> bool:
    """Whether a framework says that a device has no memory left."""
    return type(error).__name__ in ("OutOfMemoryError", "MemoryError")


def find_device(name: str | None) -> Device | None:
    """The device of this name; None for the CPU, which needs none.

    Raises
    ------
    ImportError
        Where no framework is installed that could use it.
    RuntimeError
        Where there is no such device.
    """
    if name is None or name == "cpu":
        return None
    number = int(name.partition(":")[2] or 0)
    for framework in (_torch, _cupy):
        try:
            return framework(name, number)
        except ImportError:
            continue
    raise ImportError(
        f"device={name!r} needs PyTorch or CuPy, and array-api-compat: "
        "pip install 'attop[gpu]', or CuPy for your version of CUDA."
    )


def _torch(name: str, number: int) -> Device:
    import torch
    from array_api_compat import torch as xp

    _check(name, number, torch.cuda.device_count() if torch.cuda.is_available() else 0, "PyTorch")
    return Device(xp, name, torch.device("cuda", number))


def _cupy(name: str, number: int) -> Device:
    import cupy
    from array_api_compat import cupy as xp

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        count = 0
    _check(name, number, count, "CuPy")
    return Device(xp, name, cupy.cuda.Device(number))


def _check(name: str, number: int, count: int, framework: str) -> None:
    """Raise an error unless there is a device of this number."""
    if count == 0:
        raise RuntimeError(
            f"device={name!r} needs a GPU, and {framework} finds none: the driver may be missing, "
            f"or {framework} may be installed without CUDA. device=None takes the CPU."
        )
    if number >= count:
        last = f"'cuda:{count - 1}'"
        raise RuntimeError(
            f"The 'device' parameter must be 'cuda' or one of 'cuda:0' to {last} on this machine. "
            f"Got {name!r} instead."
        )


def as_numpy(X: Any) -> Any:
    """Samples of another framework as an array of NumPy; others as they are."""
    package = type(X).__module__.partition(".")[0]
    if package == "torch":
        return X.detach().cpu().numpy()
    return X.get() if package == "cupy" else X
