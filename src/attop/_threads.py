"""How many threads to use, and to let BLAS use; and threads that survive an interrupt.

A KeyboardInterrupt can come between any two steps of Python code in the main thread, also
inside `threading` and `concurrent.futures`, whose locks it may leave locked for ever.  What is
here hands work over by a queue and locks that are written in C, which an interrupt finds
either before or after.
"""

from __future__ import annotations

import _thread
import os
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import count
from queue import SimpleQueue
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
Result = TypeVar("Result")

#: After an interrupt, seconds to wait at most for the threads that are still at work.
_PATIENCE = 0.5


def n_threads() -> int:
    """Threads worth using: the cores this process may run on, or fewer if told so."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = int(joblib.cpu_count())
    return max(1, min(cores, int(limit))) if limit.isdigit() else cores


class _Calls:
    """Calls of one function, which several threads take one by one."""

    def __init__(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> None:
        self.function, self.calls = function, calls
        self.results: list[Any] = [None] * len(calls)
        self.errors: list[BaseException] = []
        self.stopped = False
        self._next = count()
        self._came: list[None] = []
        self._went: list[None] = []
        self._gone: SimpleQueue[None] = SimpleQueue()

    def work(self) -> None:
        """Take calls until there are none left; for a thread of the pool."""
        self._came.append(None)
        try:
            for i in self._next:
                if self.stopped or i >= len(self.calls):
                    break
                self.results[i] = self.function(*self.calls[i])
        except BaseException as error:
            self.errors.append(error)
            self.stopped = True
        finally:
            self._went.append(None)
            self._gone.put(None)

    def wait(self, threads: int) -> None:
        """Wait for all threads; for the caller."""
        for _ in range(threads):
            self._gone.get()

    def stop(self) -> None:
        """Take no more calls, and wait for those that have begun."""
        self.stopped = True
        patience = time.monotonic() + _PATIENCE
        while len(self._went) < len(self._came) and time.monotonic() < patience:
            time.sleep(0.001)


class Pool:
    """Threads that call a function with several arguments at a time.

    They are started when they are first needed.  An interrupt of the caller stops the calls:
    when it is passed on, no thread is at work.

    Parameters
    ----------
    n_threads : int
        Their number.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._inbox: SimpleQueue[_Calls | None] = SimpleQueue()
        self._started = 0

    def map(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What `function` returns for each tuple of arguments; the first error is raised."""
        threads = min(self.n_threads, len(calls))
        while self._started < threads:
            # Not of `threading`, where starting a thread is a conversation with it.
            _thread.start_new_thread(_serve, (self._inbox,))
            self._started += 1
        work = _Calls(function, calls)
        try:
            for _ in range(threads):
                self._inbox.put(work)
            work.wait(threads)
        except BaseException:
            work.stop()
            raise
        if work.errors:
            raise work.errors[0]
        return work.results

    def close(self) -> None:
        """Let the threads go."""
        while self._started:
            self._started -= 1
            self._inbox.put(None)


def _serve(inbox: SimpleQueue[_Calls | None]) -> None:
    """What a thread of a pool does."""
    while (work := inbox.get()) is not None:
        work.work()
        del work  # which holds arrays


class _OneThread:
    """Limits BLAS to one thread while somebody asks for it.

    The limit holds for the whole process.  Were each to restore what it found, two at a time
    could leave it behind: the first to come sets it, the last to go restores.
    """

    def __init__(self) -> None:
        # Looking the libraries up takes a while, and calls Python from C, where an interrupt
        # would get lost: another thread than the main one does not receive any.
        pool = Pool(1)
        (found,) = pool.map(ThreadpoolController, [()])
        pool.close()
        self.pools = found.select(user_api="blas").lib_controllers
        self.lock = Lock()
        self.users: set[object] = set()
        self.before: list[int] = []

    def enter(self, user: object) -> None:
        with self.lock:
            if not self.users:
                self.before = [pool.get_num_threads() for pool in self.pools]
                self.users.add(user)
                for pool in self.pools:
                    pool.set_num_threads(1)
            self.users.add(user)

    def leave(self, user: object) -> None:
        """Again and again, if need be: only once does it count."""
        with self.lock:
            if self.users == {user}:
                for pool, before in zip(self.pools, self.before, strict=True):
                    pool.set_num_threads(before)
            self.users.discard(user)


_one_thread = lru_cache(_OneThread)


def with_one_blas_thread(
    function: Callable[P, Result], *arguments: P.args, **options: P.kwargs
) -> Result:
    """Call the function while BLAS uses one thread.

    Not a context manager: an interrupt just before it is left would leave the limit behind.
    """
    limit, user = _one_thread(), _thread.get_ident()
    if user in limit.users:  # asked for already, by who called this
        return function(*arguments, **options)
    try:
        limit.enter(user)
        return function(*arguments, **options)
    finally:
        try:
            limit.leave(user)
        except BaseException:
            limit.leave(user)
            raise


def map_in_threads(function: Callable[[Any], Any], items: Sequence[Any], threads: int) -> list[Any]:
    """What `function` makes of each item, several at a time, each with one thread of BLAS.

    Where products of matrices alternate with passes over their entries, this keeps all cores
    busy with both.
    """
    if len(items) == 1:  # a small one: threads of BLAS would wait for each other for longer
        return [with_one_blas_thread(function, items[0])]
    if min(threads, len(items)) <= 1:
        return [function(item) for item in items]
    pool = Pool(threads)
    try:
        return with_one_blas_thread(pool.map, function, [(item,) for item in items])
    finally:
        pool.close()
