"""Many cases in worker processes: one that hangs or dies takes only its worker with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import Connection, wait

from .problems import make_case, size_of, threads_of
from .verdicts import Result

_SPAWN = multiprocessing.get_context("spawn")  # a fork would inherit threads of BLAS
#: A worker that has to compile everything first takes minutes for its first case.
_SECONDS_TO_BEGIN = 900.0
#: Where the processor is shared, or waited for in vain, a case ends after this many limits.
_PATIENCE = 10.0
#: So often who wants to know is told which cases are running.
_TOLD = 10.0

#: Seeds and for how many seconds they have been running.
Running = list[tuple[int, float]]


def limit_of(seed: int, seconds: float) -> float:
    """Seconds of the processor after which a case is ended, referee included; large ones more."""
    return seconds * (1.0 + size_of(seed) / 2000)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Context in which processes are started with one thread, as there is one for each core."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


class Worker:
    """A process that judges one case at a time."""

    def __init__(self) -> None:
        self.connection, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_work, args=(theirs,), daemon=True)
        with _one_thread():
            self.process.start()
        theirs.close()
        self.seed: int | None = None
        self.began = time.monotonic()
        self.ready = False
        self.ends = time.monotonic() + _SECONDS_TO_BEGIN

    def begin(self, seed: int, seconds: float) -> None:
        """Judge the case of this seed."""
        limit, self.began = limit_of(seed, seconds), time.monotonic()
        self.seed, self.ends = seed, self.began + _PATIENCE * limit
        self.connection.send((seed, limit, seconds))

    def answer(self) -> Result | None:
        """The verdict that has arrived; None for the word that the worker is ready."""
        try:
            result, self.ready = self.connection.recv(), True
        except (EOFError, ConnectionError):
            self.process.join()
            code = self.process.exitcode
            result = _without_verdict(self.seed, "crash", f"exit code {code}")
            if code == -getattr(signal, "SIGPROF", 0):
                result = replace(result, verdict="hang", text="not ended in time")
        self.seed = None
        return result

    def kill(self) -> Result:
        """End the process; the verdict on the case that it hangs in."""
        self.process.kill()
        self.process.join()
        return _without_verdict(self.seed, "hang", "not ended in time")


def verdicts(
    seeds: Iterable[int],
    jobs: int,
    seconds: float,
    until: float = float("inf"),
    watch: Callable[[Running], None] = lambda running: None,
) -> Iterator[Result]:
    """The verdict on each seed, in the order in which they come.

    Parameters
    ----------
    seeds : iterable of int
        The cases; each is begun in this order.
    jobs : int
        Processes at once.
    seconds : float
        Seconds of the processor that a fit may take.
    until : float
        No case is begun after this moment of `time.monotonic`.
    watch : function
        Told every now and then which cases are running, and at their beginnings.
    """
    left = deque(seeds)
    # The first worker compiles what the cache on disk lacks; others then find it there.
    workers = [Worker()]
    wait([workers[0].connection], _SECONDS_TO_BEGIN)
    workers += [Worker() for _ in range(jobs - 1)]
    try:
        while workers:
            if time.monotonic() >= until:
                left.clear()
            yield from _turn(workers, left, seconds)
            now = time.monotonic()
            watch([(w.seed, now - w.began) for w in workers if w.seed is not None])
    finally:
        for worker in workers:
            worker.process.kill()


def _turn(workers: list[Worker], left: deque[int], seconds: float) -> Iterator[Result]:
    """Wait for the next event; what it brought."""
    now = time.monotonic()
    soonest = min(_TOLD, max(0.0, min(worker.ends for worker in workers) - now))
    heard: set[Connection] = set(wait([w.connection for w in workers], soonest))
    for worker in list(workers):
        if worker.connection in heard:
            result = worker.answer()
        elif time.monotonic() >= worker.ends:
            result = worker.kill()
        else:
            continue
        if result is not None:
            yield result
        if not worker.process.is_alive():
            if not worker.ready:
                raise RuntimeError("A worker ended before it could begin.")
            workers.remove(worker)
            if left:
                workers.append(Worker())
        elif left:
            worker.begin(left.popleft(), seconds)
        else:
            workers.remove(worker)
            worker.process.kill()


def _without_verdict(seed: int | None, verdict: str, text: str) -> Result:
    if seed is None:
        return Result(-1, verdict, text=text)
    case = make_case(seed)
    return Result(seed, verdict, case.kind, case.formulation, text, solvable=case.definite)


def _work(connection: Connection) -> None:
    """Judge what arrives, once the compiled code is there."""
    from .verdicts import verdict_on

    _warm_up()
    connection.send(None)
    while True:
        try:
            seed, limit, slow = connection.recv()
        except EOFError:  # the run was ended from outside
            return
        # The package looks at this at every fit: now and then it is to use its threads.
        os.environ["OMP_NUM_THREADS"] = str(threads_of(seed))
        _die_after(limit)
        try:
            result = verdict_on(seed, slow)
        except Exception as error:  # of the fuzzer itself
            result = _without_verdict(seed, "crash", f"in the fuzzer: {error!r}")
        _die_after(0.0)
        connection.send(result)


def _die_after(seconds: float) -> None:
    """End this process after so much time of the processor, even in compiled code; 0 never."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # a handler in Python might never run
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _warm_up() -> None:
    """Load the compiled functions, or compile them: not a matter of the cases."""
    import warnings

    import numpy as np

    import attop

    rng = np.random.default_rng(0)
    y = np.arange(60) % 3 == 0
    X = rng.normal(size=(60, 3)) + y[:, np.newaxis]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("TopPush", "TauFPL", "PatMat", "PatMatNP"):
            for surrogate in ("hinge", "quadratic_hinge"):
                model = getattr(attop, name)(surrogate=surrogate)
                for kernel, solver in (("rbf", "exact"), ("linear", "exact"), ("rbf", "pairwise")):
                    model.set_params(kernel=kernel, solver=solver).fit(X, y)
