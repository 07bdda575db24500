"""Chunks on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dask import delayed

Result = TypeVar("Result")

#: So many results are merged at a time.
_FAN_IN = 8


class DaskChunks:
    """Lazy chunks, and a client of the cluster that computes with them.

    What is kept are futures: a worker that dies takes them away, and the scheduler has them made
    anew, from the samples, by another.

    Parameters
    ----------
    client : distributed.Client
        The client.
    parts : sequence of Delayed
        The chunks.
    """

    def __init__(self, client: Any, parts: Sequence[Any]):
        self.client, self.parts = client, list(parts)

    def reduce(
        self,
        function: Callable[..., Result],
        merge: Callable[[list[Result]], Result],
        *arguments: Any,
    ) -> Result:
        """``merge([function(chunk, *arguments) for all chunks])``, by a tree of merges."""
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

    def keep(self, function: Callable[..., Any], *arguments: Any) -> DaskChunks:
        """What the function makes of every chunk, kept on the workers."""
        return DaskChunks(self.client, self.client.persist(self._results(function, arguments)))

    def _results(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Any]:
        # One task holds the arguments, so that they travel to each worker once.
        shared = delayed(arguments, pure=False)
        call = delayed(_call, pure=False)
        return [call(function, part, shared) for part in self.parts]


def _call(function: Callable[..., Result], part: Any, arguments: tuple[Any, ...]) -> Result:
    return function(part, *arguments)
