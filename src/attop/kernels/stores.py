"""Where columns of a kernel matrix are opened: for the solvers, and for fits that share them."""

from __future__ import annotations

import numpy as np

from attop.kernels.columns import ColumnStore, Workers
from attop.kernels.device.gram import DeviceGram
from attop.kernels.device.store import DeviceStore, open_on_device
from attop.kernels.gram import Gram
from attop.kernels.linear import LinearStore
from attop.kernels.sources import GramSource, column_source

Store = ColumnStore | DeviceStore | LinearStore

#: Up to so many samples the columns are kept in double precision.
DOUBLE_UP_TO = 2048
#: A tolerance below this needs columns in double precision.
DOUBLE_BELOW = 1e-5
#: Precision of such columns.
DOUBLE = float(np.finfo(np.float64).eps)


def open_columns(
    gram: Gram, tol: float = 1e-4, n_bytes: int = 2 * 10**9, verbose: int = 0
) -> Store:
    """A store for the columns of `gram`, precise enough for fits to the tolerance `tol`.

    They are made by the fastest source that the kernel has, and may be those of the kernel less a
    constant.  To be closed by its `close` method, or used as a context manager.
    """
    double = gram.n_samples <= DOUBLE_UP_TO or tol < DOUBLE_BELOW
    if isinstance(gram, DeviceGram):
        return open_on_device(gram, np.float64 if double else np.float32, verbose)
    workers = Workers()
    if gram.kernel.explicit:
        return LinearStore(gram.X, workers)
    source = column_source(gram, np.float64 if double else np.float32, workers)
    return ColumnStore(source, n_bytes, workers)


def open_entries(gram: Gram, n_bytes: int) -> ColumnStore:
    """A store for columns of the very entries of `gram`, in float64, one or all of them at a time.

    As long as only columns are asked for, no threads are started that would have to be ended.
    """
    source = GramSource(gram, np.dtype(np.float64), prepare=True)
    return ColumnStore(source, n_bytes, Workers(), least=2)
