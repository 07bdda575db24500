"""Samples in chunks, of which nobody holds all: what solvers ask of them, and a plain list.

A pass is a function of one chunk and of a few numbers that everybody gets; what it returns is
merged on the way back.  The same passes serve lists in memory and the workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Result = TypeVar("Result")


class Chunk(NamedTuple):
    """Some of the samples.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, n_features)
        The samples.
    positive : ndarray of bool
        Which of them are positive.
    weights : ndarray of float64 or None
        Copies of each, all positive; None for one of each.
    number : int
        Place of the chunk among all.
    """

    X: Any
    positive: NDArray[np.bool_]
    weights: Vector | None
    number: int

    @property
    def copies(self) -> Vector:
        """The weights as numbers."""
        return np.ones(len(self.positive)) if self.weights is None else self.weights


class Chunks(Protocol):
    """All chunks, wherever they are."""

    def reduce(
        self,
        function: Callable[..., Result],
        merge: Callable[[list[Result]], Result],
        *arguments: Any,
    ) -> Result:
        """``merge([function(chunk, *arguments) for all chunks])``, by a tree of merges."""
        ...

    def keep(self, function: Callable[..., Any], *arguments: Any) -> Self:
        """What the function makes of every chunk, kept where the chunk is for further passes."""
        ...


class ListChunks:
    """Chunks in a list: for tests, and for arrays that are in memory."""

    def __init__(self, parts: Sequence[Any]):
        self.parts = list(parts)
        self.passes = 0

    def reduce(
        self,
        function: Callable[..., Result],
        merge: Callable[[list[Result]], Result],
        *arguments: Any,
    ) -> Result:
        """``merge([function(chunk, *arguments) for all chunks])``."""
        self.passes += 1
        return merge([function(part, *arguments) for part in self.parts])

    def keep(self, function: Callable[..., Any], *arguments: Any) -> ListChunks:
        """What the function makes of every chunk."""
        self.passes += 1
        return ListChunks([function(part, *arguments) for part in self.parts])


def added(results: list[Any]) -> Any:
    """The sums of the entries of tuples of numbers or arrays."""
    first = results[0]
    sums = [sum(parts[1:], start=parts[0]) for parts in zip(*results, strict=True)]
    return type(first)(*sums) if hasattr(first, "_fields") else tuple(sums)
