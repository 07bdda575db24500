"""Chunks on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dask import delayed
from distributed import KilledWorker

Result = TypeVar("Result")

#: So many results are merged at a time.
_FAN_IN = 8
#: So often a pass is begun anew where workers have died at one chunk as often as the scheduler
#: allows (four times, as it comes).
_TRIES = 3


class DaskChunks:
    """Lazy chunks, and a client of the cluster that computes with them.

    What is kept are futures: a worker that dies takes them away, and the scheduler has them made
    anew, from the samples, by another.

    Parameters
    ----------
    client : distributed.Client
        The client.
    make : callable
        Gives the chunks; called once more where workers have died too often at one of them.
    """

    def __init__(self, client: Any, make: Callable[[], Sequence[Any]]):
        self.client, self._make = client, make
        self.parts = list(make())

    def reduce(
        self,
        function: Callable[..., Result],
        merge: Callable[[list[Result]], Result],
        *arguments: Any,
    ) -> Result:
        """``merge([function(chunk, *arguments) for all chunks])``, by a tree of merges."""
        for _ in range(_TRIES):
            try:
                return self._reduce(function, merge, arguments)
            except KilledWorker as error:
                last = error
                self.parts = list(self._make())
        raise RuntimeError(
            f"Workers died again and again at one chunk ({last}). Where they had too little "
            "memory, make the chunks smaller or the memory larger (--memory-limit)."
        ) from last

    def keep(self, function: Callable[..., Any], *arguments: Any) -> DaskChunks:
        """What the function makes of every chunk, kept on the workers."""
        return DaskChunks(
            self.client, lambda: self.client.persist(self._results(function, arguments))
        )

    def _reduce(
        self,
        function: Callable[..., Result],
        merge: Callable[[list[Result]], Result],
        arguments: tuple[Any, ...],
    ) -> Result:
        results = self._results(function, arguments)
        merging = delayed(merge, pure=False)
        while len(results) > 1 or results[0].key.startswith("_call"):
            results = [merging(results[i : i + _FAN_IN]) for i in range(0, len(results), _FAN_IN)]
        future = self.client.compute(results[0])
        try:
            found: Result = future.result()
            return found
        finally:
            future.cancel()

    def _results(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Any]:
        # One task holds the arguments, so that they travel to each worker once.
        shared = delayed(arguments, pure=False)
        call = delayed(_call, pure=False)
        return [call(function, part, shared) for part in self.parts]


def _call(function: Callable[..., Result], part: Any, arguments: tuple[Any, ...]) -> Result:
    return function(part, *arguments)
