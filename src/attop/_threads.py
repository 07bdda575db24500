"""How many threads to use, and to let BLAS use."""

from __future__ import annotations

import os
from functools import lru_cache

import joblib
from threadpoolctl import ThreadpoolController


def n_threads() -> int:
    """Threads worth using: the cores this process may run on, or fewer if told so."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = int(joblib.cpu_count())
    return max(1, min(cores, int(limit))) if limit.isdigit() else cores


@lru_cache
def _pools() -> ThreadpoolController:
    """The thread pools of the libraries loaded; looking them up takes a while."""
    return ThreadpoolController()


def blas_threads(limit: int | None):
    """Context in which BLAS uses at most so many threads (None: as many as it likes)."""
    return _pools().limit(limits=limit, user_api="blas")
