"""How many threads to use, and to let BLAS use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController


def n_threads() -> int:
    """Threads worth using: the cores this process may run on, or fewer if told so."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = int(joblib.cpu_count())
    return max(1, min(cores, int(limit))) if limit.isdigit() else cores


class _OneThread:
    """Limits BLAS to one thread while somebody asks for it.

    The limit holds for the whole process.  Were each to restore what it found, two at a time
    could leave it behind: the first to come sets it, the last to go restores.
    """

    def __init__(self) -> None:
        # Looking the libraries up takes a while.
        self.pools = ThreadpoolController()
        self.lock, self.users = Lock(), 0
        self.limit: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.users == 0:
                self.limit = self.pools.limit(limits=1, user_api="blas")
            self.users += 1

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                self.limit.restore_original_limits()


_one_thread = lru_cache(_OneThread)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Context in which BLAS uses one thread."""
    _one_thread().enter()
    try:
        yield
    finally:
        _one_thread().leave()


def map_in_threads(function: Callable[[Any], Any], items: Sequence[Any], threads: int) -> list[Any]:
    """What `function` makes of each item, several at a time, each with one thread of BLAS.

    Where products of matrices alternate with passes over their entries, this keeps all cores
    busy with both.
    """
    if min(threads, len(items)) <= 1:
        return [function(item) for item in items]
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))
