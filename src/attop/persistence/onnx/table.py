"""The columns that come in, of numbers or of text, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attop.persistence.onnx.graph import Graph


@dataclass
class Source:
    """An input of the graph, whose kind is that of its first use.

    Parameters
    ----------
    graph : Graph
        The graph.
    name : str
        Name of the input, such as that of a column.
    width : int
        Number of columns.
    """

    graph: Graph
    name: str
    width: int
    is_text: bool | None = None

    def read(self, as_text: bool) -> str:
        """Its name; it becomes an input of the graph when it is first read."""
        if self.is_text is None:
            self.graph.input(self.name, ("n_samples", self.width), as_text)
            self.is_text = as_text
        if self.is_text != as_text:
            raise ValueError(
                f"The column {self.name!r} is used both as text and as a number, and an input of "
                "an ONNX graph can only be one of them."
            )
        return self.name


@dataclass
class Result:
    """Columns that nodes of the graph have made, which are numbers unless `is_text`."""

    name: str
    width: int
    is_text: bool = False

    def read(self, as_text: bool) -> str:
        """Its name."""
        if as_text != self.is_text:
            raise ValueError("A step of the pipeline takes text for numbers, or numbers for text.")
        return self.name


class Table:
    """Columns side by side.

    Parameters
    ----------
    graph : Graph
        The graph.
    parts : sequence of Source or Result
        One or several columns each.
    """

    def __init__(self, graph: Graph, parts: Sequence[Source | Result]) -> None:
        self.graph, self.parts = graph, list(parts)

    @property
    def width(self) -> int:
        """Number of columns."""
        return sum(part.width for part in self.parts)

    def matrix(self, as_text: bool = False) -> str:
        """All columns as one array."""
        names = [part.read(as_text) for part in self.parts]
        return names[0] if len(names) == 1 else self.graph.add("Concat", *names, axis=1)

    def take(self, indices: Sequence[int]) -> Table:
        """Some of the columns, in that order."""
        if list(indices) == list(range(self.width)):
            return self
        return Table(self.graph, [self._column(index) for index in indices])

    def columns(self) -> Iterator[Table]:
        """Each column by itself."""
        return (Table(self.graph, [self._column(index)]) for index in range(self.width))

    def _column(self, index: int) -> Any:
        for part in self.parts:
            if index < part.width:
                return part if part.width == 1 else _Slice(self.graph, part, index)
            index -= part.width
        raise IndexError(index)


@dataclass
class _Slice:
    """One column of several."""

    graph: Graph
    part: Any
    index: int
    width: int = 1

    def read(self, as_text: bool) -> str:
        place = self.graph.constant(np.array([self.index]))
        return self.graph.add("Gather", self.part.read(as_text), place, axis=1)
