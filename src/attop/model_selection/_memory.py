"""A kernel matrix that remembers the entries between support vectors.

Each fit ends with a certificate, which computes the kernel between its support vectors in
double precision.  Along a path the support vectors are mostly those of the fit before, and
so are these entries.

The store of columns cannot keep them too: its columns are in single precision where there are
many samples, may be those of the kernel less a constant, and as long as there are samples, while
a certificate must not rest on the solver's entries and needs those of the support vectors alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop._threads import map_in_threads, with_one_blas_thread
from attop.kernels.blocks import BLOCK, slices
from attop.kernels.device.gram import DeviceGram
from attop.kernels.functions import Gram, Kernel

#: A new support is remembered instead of the old where less than this share of it is known.
_KNOWN_ENOUGH = 0.8


Block = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]


@dataclass
class _Entries:
    """Blocks of entries between some rows, as they were computed.

    The rows fall into chunks; ``between[i, v]`` are the entries of chunk ``i`` with chunk
    ``v``, for ``i <= v``.

    Attributes
    ----------
    chunk, place : ndarray of intp
        Chunk of each row, -1 if it is not remembered, and its place there.
    between : dict
        Entries of pairs of chunks.
    fresh : list of (rows, columns, values)
        Blocks computed lately.
    """

    chunk: NDArray[np.intp]
    place: NDArray[np.intp]
    between: dict[tuple[int, int], NDArray[np.float64]] = field(default_factory=dict)
    fresh: list[Block] = field(default_factory=list)

    def fill(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp], out: NDArray[np.float64]
    ) -> None:
        """Write the known entries at `rows` x `columns` into `out`."""
        # Few chunks: even 10,000 support vectors fall into five.
        for i in np.unique(self.chunk[rows]):
            for v in np.unique(self.chunk[columns]):
                if i < 0 or v < 0:
                    continue
                values = self.between[i, v] if i <= v else self.between[v, i].T
                at_rows = np.flatnonzero(self.chunk[rows] == i)
                at_columns = np.flatnonzero(self.chunk[columns] == v)
                # Whole rows first: several times faster than both at once.
                known = values.take(self.place[rows[at_rows]], axis=0)
                known = known.take(self.place[columns[at_columns]], axis=1)
                if known.shape == out.shape:
                    out[:] = known
                else:
                    out[np.ix_(at_rows, at_columns)] = known

    def product(
        self, rows: NDArray[np.intp], coefficients: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """``sum_v coefficients_v k(row_i, row_v)`` among remembered rows.

        All entries are read in the order they lie in, which is faster than to pick out a few.
        """
        sizes = [len(self.between[i, i]) for i in range(1 + np.max(self.chunk))]
        first = np.concatenate([[0], np.cumsum(sizes)])
        place = first[self.chunk[rows]] + self.place[rows]
        spread, sums = np.zeros((2, first[-1], *coefficients.shape[1:]))
        spread[place] = coefficients
        for (i, v), values in self.between.items():
            one, other = slice(first[i], first[i + 1]), slice(first[v], first[v + 1])
            sums[one] += values @ spread[other]
            if v != i:
                sums[other] += values.T @ spread[one]
        return sums[place]

    def replace(self, support: NDArray[np.intp], fresh: list[Block]) -> None:
        """Remember the fresh blocks, if they make up all entries between `support`."""
        blocks = {(rows[0], columns[0]): values for rows, columns, values in fresh}
        chunks = {rows[0]: rows for rows, columns, _ in fresh if np.array_equal(rows, columns)}
        first = sorted(chunks)
        ordered = [chunks[row] for row in first]
        pairs = [(i, v) for v in range(len(first)) for i in range(v + 1)]
        complete = all((first[i], first[v]) in blocks for i, v in pairs)
        if not (ordered and complete and np.array_equal(np.concatenate(ordered), support)):
            return
        self.chunk[:] = -1
        for i, rows in enumerate(ordered):
            self.chunk[rows], self.place[rows] = i, np.arange(len(rows))
        self.between = {(i, v): blocks[first[i], first[v]] for i, v in pairs}


@dataclass(frozen=True)
class RememberingGram(Gram):
    """A `Gram` that keeps the entries between rows it was told to remember.

    Parameters
    ----------
    kernel, X
        As for `Gram`.
    entries : _Entries
        What is remembered; made by `of`.
    n_bytes : int
        Most memory for what is remembered, and as much again for what was computed since.
    """

    entries: _Entries
    n_bytes: int

    @classmethod
    def with_memory(cls, gram: Gram, n_bytes: int) -> Gram:
        """The same matrix with a memory, unless its scores are computed on a device."""
        return gram if isinstance(gram, DeviceGram) else cls.of(gram.kernel, gram.X, n_bytes)

    @classmethod
    def of(cls, kernel: Kernel, X: Any, n_bytes: int) -> Gram:
        """A kernel matrix with a memory, or without one where entries cost nothing."""
        if kernel.explicit or kernel.precomputed:
            return Gram(kernel, X)
        unknown = np.full(X.shape[0], -1, dtype=np.intp)
        return cls(kernel, X, _Entries(unknown, unknown.copy()), n_bytes)

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """The entries at `rows` x `columns`, computed where they are not remembered."""
        new_rows = np.flatnonzero(self.entries.chunk[rows] < 0)
        new_columns = np.flatnonzero(self.entries.chunk[columns] < 0)
        if 2 * len(new_rows) > len(rows) or 2 * len(new_columns) > len(columns):
            values = super().block(rows, columns)
            self._keep_for_now(rows, columns, values)
            return values
        values = np.empty((len(rows), len(columns)))
        self.entries.fill(rows, columns, values)
        if len(new_rows):
            values[new_rows] = super().block(rows[new_rows], columns)
        if len(new_columns):
            values[:, new_columns] = super().block(rows, columns[new_columns])
        return values

    def among(
        self, rows: NDArray[np.intp], coefficients: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """``sum_v coefficients_v k(row_i, row_v)`` for each row, from what is remembered."""
        known = self.entries.chunk[rows] >= 0
        if np.count_nonzero(known) < _KNOWN_ENOUGH * len(rows) or not known.any():
            return super().among(rows, coefficients)
        sums = np.zeros(coefficients.shape)
        product = self.entries.product
        sums[known] = with_one_blas_thread(product, rows[known], coefficients[known])
        new = np.flatnonzero(~known)
        if len(new) == 0:
            return sums

        def with_new(part: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            entries = Gram.block(self, rows[new], rows[part])
            return entries @ coefficients[part], entries.T @ coefficients[new]

        pieces = slices(len(rows), max(1, BLOCK**2 // len(new)))
        found = map_in_threads(with_new, pieces, self.kernel.threads)
        for part, (of_new, of_part) in zip(pieces, found, strict=True):
            of_part[~known[part]] = 0.0  # they are among the new ones
            sums[new] += of_new
            sums[part] += of_part
        return sums

    def _entries_among(
        self, rows: NDArray[np.intp]
    ) -> Callable[[slice, slice], NDArray[np.float64]]:
        """The same entries, which are kept for now."""
        entries_of = super()._entries_among(rows)

        def kept(one: slice, other: slice) -> NDArray[np.float64]:
            entries = entries_of(one, other)
            self._keep_for_now(rows[one], rows[other], entries)
            return entries

        return kept

    def remember(self, support: NDArray[np.intp]) -> None:
        """Remember the entries between these rows, if they were just computed."""
        entries = self.entries
        fresh, entries.fresh = entries.fresh, []
        known = np.count_nonzero(entries.chunk[support] >= 0)
        if known < _KNOWN_ENOUGH * len(support):
            entries.replace(support, fresh)

    def _keep_for_now(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp], values: NDArray[np.float64]
    ) -> None:
        held = sum(block[2].nbytes for block in self.entries.fresh)
        if values.size and held + values.nbytes <= self.n_bytes:
            self.entries.fresh.append((np.asarray(rows), np.asarray(columns), values))
