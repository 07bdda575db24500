"""Time and memory of a fit, and the floor of its time.

Everything here runs in a process of its own (see `suite.child`): what an earlier fit left in
the memory, or in the threads of another library, cannot show in the figures of the next.
"""

from __future__ import annotations

import ctypes
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from attop._threads import n_threads
from attop.kernels.columns import Workers
from attop.kernels.functions import Gram, Kernel
from attop.kernels.sources import column_source
from suite.cases import INTELEX, OURS, Case, estimator_of
from suite.data import load

#: Fits are repeated until they have taken so many seconds together, or often enough.
ENOUGH_SECONDS = 60.0
#: Samples of the fit that compiles; more than the solver keeps in double precision.
WARM_UP = 3000
#: Memory to touch before fits, in columns and at most in bytes.
TOUCHED_COLUMNS, TOUCHED_BYTES = 8000, 2 * 10**9
#: Options of `mallopt`.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def run_times(call: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of repeated calls."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < ENOUGH_SECONDS:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return times


def hold_memory(n_samples: int) -> None:
    """Let the process keep memory that it frees, and write to as much as a fit needs.

    The first use of a page of a virtual machine can cost more than to compute what goes
    there.  It is a matter of the machine, and no fit shall pay for it, ours or a peer's.
    """
    adjust = getattr(ctypes.CDLL(None), "mallopt", None)
    if adjust is not None:  # the GNU C library: no block by mmap, and nothing given back
        adjust(_M_MMAP_MAX, 0)
        adjust(_M_TRIM_THRESHOLD, -1)
    n_bytes = min(TOUCHED_BYTES, TOUCHED_COLUMNS * 4 * n_samples)
    np.empty(n_bytes, dtype=np.uint8).fill(1)


class PeakMemory:
    """Largest resident memory of this process beyond what it held at `start`, in gigabytes.

    Linux lets a process set back its own high-water mark.  Elsewhere the answer is nan: the
    mark would include what reading the data took, and sampling can miss a peak.
    """

    def start(self) -> None:
        """Set back the high-water mark."""
        self._before = np.nan
        mark = Path("/proc/self/clear_refs")
        if mark.exists():
            # What was freed but not given back would hide as much of what comes.
            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
            if trim is not None:
                trim(0)
            mark.write_text("5")
            self._before = _status_bytes("VmRSS")

    def gigabytes(self) -> float:
        """The peak since `start`."""
        return (_status_bytes("VmHWM") - self._before) / 1e9 if self._before > 0 else np.nan


def _status_bytes(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return float(line.split()[1]) * 1024
    return np.nan


def floor_seconds(X, gamma: float, support, repeats: int) -> float:
    """Time of the kernel columns of the support vectors alone, by the library's own block."""
    workers = Workers()
    source = column_source(Gram(Kernel("rbf", gamma=gamma), X), np.float32, workers)
    buffer = np.zeros((min(1024, len(support)), X.shape[0]), dtype=np.float32)

    def columns() -> None:
        for start in range(0, len(support), len(buffer)):
            part = support[start : start + len(buffer)]
            source.compute(part, buffer[: len(part)], workers)

    columns()  # touches the buffer
    result = float(np.median(run_times(columns, repeats)))
    workers.close()
    return result


def computed_columns(estimator) -> float:
    """Kernel columns that a fit computed, in units of full columns."""
    return float(getattr(estimator, "stats_", {}).get("columns", np.nan))


def warmed_up(case: Case, limit: float) -> tuple[Any, Any, np.ndarray]:
    """Estimator and data of a case, compiled code loaded."""
    # The table shows the gap, the status and the zero optimum's support vectors.
    warnings.filterwarnings("ignore")
    X, positive = load(case.data, case.n)
    if case.method == INTELEX and n_threads() < (os.cpu_count() or 1):
        import daal4py

        daal4py.daalinit(n_threads())  # which does not know OMP_NUM_THREADS
    estimator = estimator_of(case, positive, max_time=limit)
    clone(estimator).fit(X[:WARM_UP], positive[:WARM_UP])
    return estimator, X, positive


def measure_fit(case: Case, repeats: int, limit: float, ready: Callable[[], None]) -> dict:
    """Figures of the fit of a case: the peak of a first run, the median time of those after it.

    A first run that takes long is the only one.
    """
    estimator, X, positive = warmed_up(case, limit)
    memory = PeakMemory()
    ready()
    memory.start()
    times = run_times(lambda: estimator.fit(X, positive), 1)
    peak = memory.gigabytes()
    if times[0] < ENOUGH_SECONDS and repeats > 1:
        hold_memory(case.n)
        times = run_times(lambda: estimator.fit(X, positive), repeats)
    figures = {
        "features": X.shape[1],
        "positives": int(positive.sum()),
        "seconds": float(np.median(times)),
        "runs": len(times),
        "support": len(getattr(estimator, "support_", ())) or np.nan,
        "rounds": int(np.max(estimator.n_iter_)),
        "peak_gb": peak,
        "data_gb": n_bytes(X) / 1e9,
    }
    if case.method in OURS:
        figures |= figures_at_the_top(estimator)
        if case.kernel == "rbf":
            figures["floor_seconds"] = floor_seconds(
                X, estimator.gamma, estimator.support_, repeats
            )
    return figures


def figures_at_the_top(estimator) -> dict:
    """What only this library's fits tell."""
    return {
        "columns": computed_columns(estimator),
        "gap": float(estimator.dual_gap_),
        "status": estimator.status_.name.lower(),
    }


def n_bytes(X) -> int:
    """Bytes of dense or CSR samples."""
    arrays = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
    return sum(array.nbytes for array in arrays)
