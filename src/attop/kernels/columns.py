"""Kernel columns for the solver: computed in blocks by matrix product, kept in a byte budget.

A source (`attop.kernels.sources`) computes columns of the training kernel matrix; `ColumnStore`
keeps them.  The dual variables of every formulation sum to zero with their signs, so a constant
added to the kernel changes no difference of scores: the Gaussian kernel is stored as ``k - 1``,
which keeps more digits in single precision.  For the same reason its samples are centred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from attop._threads import Pool, n_threads
from attop.kernels import compiled
from attop.kernels.blocks import parts
from attop.kernels.errors import EntryErrors
from attop.kernels.sources import ColumnSource, GaussianSource


class Workers:
    """Runs a compiled function that releases the interpreter lock over ranges of rows."""

    def __init__(self) -> None:
        self.count = n_threads()
        self._pool = Pool(self.count)

    def over_rows(self, function, n: int, *arguments, least: int = 4096) -> None:
        """Call ``function(start, stop, *arguments)`` on ranges that cover ``range(n)``."""
        n_parts = min(self.count, max(1, n // least))
        if n_parts == 1:
            function(0, n, *arguments)
            return
        edges = np.linspace(0, n, n_parts + 1).astype(np.int64)
        self._pool.map(function, [(start, stop, *arguments) for start, stop in pairwise(edges)])

    def call(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What `function` returns for each tuple of arguments, one by one or in threads."""
        if min(self.count, len(calls)) <= 1:
            return [function(*arguments) for arguments in calls]
        return self._pool.map(function, calls)

    def close(self) -> None:
        """End the threads."""
        self._pool.close()


#: Columns computed at once: matrix products reach their speed from there on, and the next ones know
#: what these have of them.  Long columns come in smaller blocks, which may have to be held besides
#: the store.
_BLOCK, _BLOCK_BYTES = 512, 2**27
#: Less is not worth saving: where the columns of a small problem do not fit, rounds multiply, and
#: with 1 MB in the place of 32 three of four such fits of 1,400 to 4,100 samples came to a halt.
LEAST_BYTES = 2**25
#: Entries that are computed at once where none are kept.
_PRODUCT = 2**22


class ColumnStore:
    """Keeps computed columns within a byte budget; the least recently used give way.

    Parameters
    ----------
    source : ColumnSource
        Where columns come from.
    n_bytes : int
        Budget.  At least `least` columns, and some megabytes, are kept whatever it says.
    workers : Workers
        Threads for the passes over columns.
    part_of : (ColumnStore, ndarray), optional
        The store of a larger matrix and the rows of which this one is the part: columns
        known there are copied rather than computed.
    least : int
        As many columns as are used together.
    least_bytes : int
        Less is not worth saving.
    """

    def __init__(
        self,
        source: ColumnSource,
        n_bytes: int,
        workers: Workers,
        part_of: tuple[ColumnStore, NDArray[np.intp]] | None = None,
        least: int = 64,
        least_bytes: int = LEAST_BYTES,
    ) -> None:
        n = source.n_samples
        self.column_bytes = max(1, n * source.dtype.itemsize)
        wanted = int(max(n_bytes, least_bytes) // self.column_bytes)
        self.source, self.workers = source, workers
        self.n_bytes, self.least_bytes, self._part_of = n_bytes, least_bytes, part_of
        self._step = max(64, min(_BLOCK, _BLOCK_BYTES // self.column_bytes))
        self.n_samples = n
        #: Largest entry of the kernel's diagonal, in absolute value.
        self.largest = float(np.max(np.abs(source.diagonal + source.shift)))
        #: What was taken from the kernel, which is positive semi-definite for sure or may not be.
        self.shift, self.definite = source.shift, source.definite
        #: Rank of the matrix where it is known to be low.
        self.rank: int | None = None
        #: Relative error of a column's entries, and bounds on their errors where they are known.
        self.precision = float(np.finfo(source.dtype).eps)
        self.errors: EntryErrors | None = source.errors
        self.capacity = min(n, max(least, wanted))
        # Pages of this buffer cost memory only once they are written to.
        self.buffer = np.empty((self.capacity, n), dtype=source.dtype)
        self._scratch = np.empty((0, n), dtype=source.dtype)
        self.slot_of_row = np.full(n, -1, dtype=np.intp)
        self._row_of_slot = np.full(self.capacity, -1, dtype=np.intp)
        self._last_use = np.zeros(self.capacity, dtype=np.int64)
        self._clock = 0
        self._filled = 0
        #: The last store made for a part of the samples, as long as somebody has it.
        self.latest_part: Callable[[], ColumnStore | None] = _nothing
        self.n_computed = 0

    @cached_property
    def extent(self) -> float:
        """Largest squared distance of a sample from the first one, in the space of the kernel.

        Unlike the diagonal it does not grow with an offset of the features.
        """
        first = self.source.block(
            np.zeros(1, dtype=np.intp), np.arange(self.n_samples), self.workers
        )
        diagonal = self.source.diagonal
        return float(np.max(np.abs(diagonal + diagonal[0] - 2.0 * first[0].astype(np.float64))))

    def subset(self, rows: NDArray[np.intp]) -> ColumnStore:
        """An empty store for the matrix restricted to `rows`, in what is left of the budget."""
        n_bytes = max(self.n_bytes - self.capacity * self.column_bytes, self.n_bytes // 8)
        store = ColumnStore(
            self.source.subset(rows),
            n_bytes,
            self.workers,
            (self, rows),
            least_bytes=self.least_bytes,
        )
        self.latest_part = ref(store)
        return store

    def leave(self, n_entries: int) -> None:
        """Leave the budget of so many entries to stores of parts; at most three quarters."""
        n_bytes = n_entries * self.source.dtype.itemsize
        kept = self.n_bytes - min(n_bytes, 3 * self.n_bytes // 4)
        self.capacity = min(self.capacity, max(64, self._filled, kept // self.column_bytes))

    def close(self) -> None:
        """End the threads; the columns stay readable."""
        self.workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def cached(self, rows) -> NDArray[np.bool_]:
        """Which of the columns `rows` are in the store."""
        return self.slot_of_row[rows] >= 0

    def diagonal(self, rows) -> NDArray[np.float64]:
        """Entries of the diagonal."""
        return self.source.diagonal[rows]

    def fetch(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Slots of the columns `rows`, at most `capacity` different ones; computes the missing."""
        self._clock += 1
        rows = np.asarray(rows, dtype=np.intp)
        present = self.slot_of_row[rows]
        self._last_use[present[present >= 0]] = self._clock
        missing = np.unique(rows[present < 0])
        for part in parts(missing, self._step):
            self._compute(part)
        return self.slot_of_row[rows]

    def column(self, row: int) -> NDArray[Any]:
        """One column, valid until there is no room left for it beside those asked for later."""
        slot = self.slot_of_row[row]
        if slot < 0:
            return self.buffer[self.fetch(np.array([row]))[0]]
        self._clock += 1
        self._last_use[slot] = self._clock
        return self.buffer[slot]

    def prepare(self, rows: NDArray[np.intp]) -> None:
        """Fetch the columns `rows` at once, which is faster than one by one, if they all fit."""
        if len(rows) <= self.capacity:
            self.fetch(rows)

    def _compute(self, rows) -> None:
        known = self._known_in_whole(rows)
        rows = np.concatenate([rows[~known], rows[known]])
        fresh = min(len(rows), self.capacity - self._filled)
        if fresh:
            slots = np.arange(self._filled, self._filled + fresh)
            self._fill(rows[:fresh], self.buffer[slots[0] : slots[-1] + 1])
            self._filled += fresh
            self._occupy(slots, rows[:fresh])
        if fresh < len(rows):
            rest = rows[fresh:]
            slots = np.argpartition(self._last_use[: self._filled], len(rest) - 1)[: len(rest)]
            self.slot_of_row[self._row_of_slot[slots]] = -1
            self.buffer[slots] = self._columns_besides(rest)
            self._occupy(slots, rest)

    def _known_in_whole(self, rows) -> NDArray[np.bool_]:
        """Which of the columns can be copied from the store of the whole."""
        if self._part_of is None:
            return np.zeros(len(rows), dtype=bool)
        whole, rows_in_whole = self._part_of
        return whole.cached(rows_in_whole[rows])

    def _fill(self, rows, out) -> None:
        """Columns `rows` into `out`: first those to compute, then those known in the whole."""
        known = self._known_in_whole(rows)
        split = len(rows) - int(np.count_nonzero(known))
        if split:
            self._compute_into(rows[:split], out[:split])
            self.n_computed += split
        if split < len(rows) and self._part_of is not None:
            whole, rows_in_whole = self._part_of
            slots = whole.slot_of_row[rows_in_whole[rows[split:]]]
            gather = compiled.gather, len(slots), whole.buffer, slots, rows_in_whole, out[split:]
            self.workers.over_rows(*gather, least=64)

    def _compute_into(self, rows, out) -> None:
        """Columns `rows` into `out`; what columns at hand have of them is copied from there."""
        source, is_known = self.source, self.slot_of_row >= 0
        n_known = int(np.count_nonzero(is_known))
        part = _Part.of(self, rows)
        n_entries, n_gathered = len(rows) * n_known, self.n_samples - n_known
        if part is not None:
            more = int(np.count_nonzero(~is_known[part.rows]))
            n_entries += part.n_cached * more
            n_gathered = n_gathered * (1 + (part.n_cached < len(rows))) - more
        if not isinstance(source, GaussianSource) or not source.saves(n_entries, n_gathered):
            self.source.compute(rows, out, self.workers)
            return
        places, others = np.arange(len(rows)), np.flatnonzero(~is_known)
        if part is not None:
            part.copy_into(out, self.workers)
            is_known[part.rows] = True
            inside = part.places
            source.fill(rows[inside], np.flatnonzero(~is_known), out, inside, self.workers)
            places = np.delete(places, inside)
        if len(places):
            source.fill(rows[places], others, out, places, self.workers)
        known = np.flatnonzero(self.slot_of_row >= 0)
        mirror = self.buffer, self.slot_of_row[known], known, rows, out
        self.workers.over_rows(compiled.mirror, len(rows), *mirror, least=32)
        source.mend(rows, out)

    def _columns_besides(self, rows) -> NDArray[Any]:
        """Columns outside the store, valid until the next call; the copied ones must be last."""
        if len(self._scratch) < len(rows):
            self._scratch = np.empty((len(rows), self.n_samples), dtype=self.source.dtype)
        block = self._scratch[: len(rows)]
        self._fill(rows, block)
        return block

    def _occupy(self, slots, rows) -> None:
        self._row_of_slot[slots] = rows
        self.slot_of_row[rows] = slots
        self._last_use[slots] = self._clock

    def add_columns(self, rows, weights, out: NDArray[np.float64]) -> None:
        """``out += sum_i weights[i] * column(rows[i])`` for columns in the store."""
        nonzero = weights != 0
        self._add(self.buffer, self.slot_of_row[rows[nonzero]], weights[nonzero], out)

    def _add(self, columns, slots, weights, out) -> None:
        if len(slots):
            n = self.n_samples
            self.workers.over_rows(compiled.add_columns, n, columns, slots, weights, out)

    def add_product(self, rows, weights, out: NDArray[np.float64], keep: bool = True) -> None:
        """The same for any columns: those missing are computed, and kept while there is room.

        With `keep` false they are not: columns that hardly come again need no memory.
        """
        used = np.flatnonzero(weights)
        rows, weights = np.asarray(rows)[used], weights[used]
        known = self.cached(rows)
        self.fetch(rows[known])  # as used last, so that others give way first
        self.add_columns(rows[known], weights[known], out)
        # Columns of one product must not push each other out: next time all would miss.
        room = self.capacity - len(np.unique(rows[known])) if keep else 0
        rows, weights = rows[~known], weights[~known]
        order = np.argsort(self._known_in_whole(rows), kind="stable")
        for part in parts(order, self._step):
            if room >= len(part):
                self.fetch(rows[part])
                self.add_columns(rows[part], weights[part], out)
            else:
                columns = self._columns_besides(rows[part])
                self._add(columns, np.arange(len(part)), weights[part], out)
            room -= len(part)

    def block(self, rows, columns) -> NDArray[Any]:
        """The entries at `rows` x `columns`, computed, not kept."""
        return self.source.block(rows, columns, self.workers)

    def product_at(self, rows, columns, weights) -> NDArray[np.float64]:
        """``sum_i weights[k, i] * column(columns[i])`` at `rows` only; no entries are kept."""
        sums, slots = np.zeros((len(weights), len(rows))), np.arange(len(columns))
        step = max(1, _PRODUCT // max(1, len(columns)))
        for start in range(0, len(rows), step):
            entries = self.block(columns, rows[start : start + step])
            for some, out in zip(weights, sums[:, start : start + step], strict=True):
                add = compiled.add_columns, len(out), entries, slots, some, out
                self.workers.over_rows(*add, least=512)
        return sums

    def submatrix(self, rows, dtype: Any = np.float64) -> NDArray[Any]:
        """Kernel matrix of `rows`, whose columns are in the store."""
        matrix = np.empty((len(rows), len(rows)), dtype=dtype)
        slots = self.slot_of_row[rows]
        self.workers.over_rows(
            compiled.gather, len(slots), self.buffer, slots, rows, matrix, least=64
        )
        diagonal = np.arange(len(rows))
        matrix[diagonal, diagonal] = self.source.diagonal[rows]
        return matrix


class _Part(NamedTuple):
    """What the store of a part knows of some columns.

    Attributes
    ----------
    store : ColumnStore
        The store.
    rows : ndarray
        Its rows in the whole.
    places, slots : ndarray
        Which of the columns asked for it has, and where.
    """

    store: ColumnStore
    rows: NDArray[np.intp]
    places: NDArray[np.intp]
    slots: NDArray[np.intp]

    @classmethod
    def of(cls, whole: ColumnStore, columns: NDArray[np.intp]) -> _Part | None:
        """What the latest part of `whole` knows; None where that is nothing."""
        store = whole.latest_part()
        if store is None or store._part_of is None:
            return None
        rows = store._part_of[1]
        at = np.minimum(np.searchsorted(rows, columns), len(rows) - 1)
        slots = np.where(rows[at] == columns, store.slot_of_row[at], -1)
        places = np.flatnonzero(slots >= 0)
        return cls(store, rows, places, slots[places]) if len(places) else None

    @property
    def n_cached(self) -> int:
        """How many of the columns it has."""
        return len(self.places)

    def copy_into(self, out: NDArray[Any], workers: Workers) -> None:
        """Copy the entries at its samples."""
        arguments = self.store.buffer, self.slots, self.places, self.rows, out
        workers.over_rows(compiled.spread_columns, self.n_cached, *arguments, least=32)


def _nothing() -> None:
    """No store."""
