"""Run a measurement in a process of its own, for at most so many seconds."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable
from typing import Any

#: Seconds for importing, reading the data and compiling.
PREPARATION = 900.0


class OutOfTime(Exception):
    """The measurement took longer than its limit."""


class Failed(Exception):
    """The measurement raised an error, or its process died."""


def in_child(measure: Callable[..., dict], *arguments: Any, limit: float) -> dict:
    """``measure(*arguments, ready)`` in a fresh process.

    The clock of the limit starts when `measure` calls ``ready()``, after its preparations.
    """
    context = multiprocessing.get_context("spawn")  # a fork would inherit threads and memory
    ours, theirs = context.Pipe()
    process = context.Process(target=_report, args=(theirs, measure, arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        kind, value = _next(ours, PREPARATION)
        if kind == "ready":
            kind, value = _next(ours, limit)
    finally:
        process.kill()
        process.join()
    if kind == "failed":
        raise Failed(value)
    return value


def _next(connection, limit: float) -> tuple[str, Any]:
    if not connection.poll(limit):
        raise OutOfTime(f"more than {limit:g} s")
    try:
        return connection.recv()
    except EOFError:
        return "failed", "the process died, maybe for want of memory"


def _report(connection, measure: Callable[..., dict], arguments: tuple) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interruption is the parent's matter
    try:
        connection.send(("done", measure(*arguments, lambda: connection.send(("ready", None)))))
    except BaseException as error:  # ends of the program too: the parent decides what follows
        traceback.print_exc()
        connection.send(("failed", f"{type(error).__name__}: {error}"))
