"""Kernel columns for the solver: computed in blocks by matrix product, kept in a byte budget.

A column source computes columns of the training kernel matrix; `ColumnStore` keeps
them.  The dual variables of every formulation sum to zero with their signs, so a
constant added to the kernel changes no difference of scores: the Gaussian kernel is stored
as ``k - 1``, which keeps more digits in single precision.  For the same reason its samples
are centred.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attop._threads import Pool, n_threads
from attop.kernels import compiled
from attop.kernels.functions import Gram


class Workers:
    """Runs a compiled function that releases the interpreter lock over ranges of rows."""

    def __init__(self) -> None:
        self.count = n_threads()
        self._pool = Pool(self.count)

    def over_rows(self, function, n: int, *arguments, least: int = 4096) -> None:
        """Call ``function(start, stop, *arguments)`` on ranges that cover ``range(n)``."""
        parts = min(self.count, max(1, n // least))
        if parts == 1:
            function(0, n, *arguments)
            return
        edges = np.linspace(0, n, parts + 1).astype(np.int64)
        self._pool.map(function, [(start, stop, *arguments) for start, stop in pairwise(edges)])

    def close(self) -> None:
        """End the threads."""
        self._pool.close()


class ColumnSource(Protocol):
    """Computes columns of a kernel matrix."""

    n_samples: int
    dtype: np.dtype
    diagonal: NDArray[np.float64]
    #: What was taken from the kernel, and whether that is positive semi-definite for sure.
    shift: float
    definite: bool
    #: Multiplications that an entry takes.
    work: float

    def compute(self, rows: NDArray[np.intp], out: NDArray[Any], workers: Workers) -> None:
        """Write column ``rows[i]`` into ``out[i]``."""
        ...

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp], workers: Workers):
        """The entries at `rows` x `columns`."""
        ...

    def subset(self, rows: NDArray[np.intp]) -> ColumnSource:
        """The source of the kernel matrix restricted to `rows`."""
        ...


class GaussianSource:
    """``exp(-gamma |x - x'|^2) - 1`` from one matrix product and one pass over its result."""

    shift, definite = 1.0, True

    def __init__(self, samples: Samples, gamma: float) -> None:
        self.samples, self.gamma = samples, gamma
        self.n_samples, self.dtype = samples.n_samples, samples.dtype
        self.diagonal, self.work = np.zeros(self.n_samples), samples.work

    def compute(self, rows, out, workers) -> None:
        """Write column ``rows[i]`` into ``out[i]``."""
        self.samples.inner_products(rows, out)
        self._finish(out, rows, self.samples.squared_norms, workers)

    def block(self, rows, columns, workers):
        """The entries at `rows` x `columns`."""
        other = self.samples.subset(columns)
        out = np.empty((len(rows), len(columns)), dtype=self.dtype)
        self.samples.inner_products(rows, out, other)
        self._finish(out, rows, other.squared_norms, workers)
        return out

    def _finish(self, out, rows, norms, workers) -> None:
        """Turn inner products of the samples at `rows` into kernel entries."""
        own, gamma = self.samples.squared_norms[rows], self.dtype.type(self.gamma)
        workers.over_rows(compiled.gaussian_minus_one, len(norms), out, own, norms, gamma)

    def subset(self, rows):
        """The source restricted to `rows`."""
        return GaussianSource(self.samples.subset(rows), self.gamma)


class GramSource:
    """Any other kernel: blocks of the float64 kernel function, rounded for storage."""

    shift, definite = 0.0, False  # the kernel may be anything

    def __init__(self, gram: Gram, dtype: np.dtype, rows: NDArray[np.intp] | None = None) -> None:
        self.gram, self.dtype = gram, dtype
        self._all = np.arange(gram.n_samples) if rows is None else rows
        self.n_samples, self.work = len(self._all), float(gram.X.shape[1])
        if gram.kernel.name == "precomputed":
            self.diagonal = np.diagonal(gram.X)[self._all].astype(np.float64)
        else:
            self.diagonal = np.concatenate(
                [np.diagonal(gram.block(part, part)) for part in _parts(self._all, 64)]
            )

    def compute(self, rows, out, workers) -> None:
        """Write column ``rows[i]`` into ``out[i]``."""
        step = max(1, 2**24 // self.n_samples)
        for part in _parts(np.arange(len(rows)), step):
            out[part] = self.gram.block(self._all[rows[part]], self._all)

    def block(self, rows, columns, workers):
        """The entries at `rows` x `columns`."""
        return self.gram.block(self._all[rows], self._all[columns]).astype(self.dtype)

    def subset(self, rows):
        """The source restricted to `rows`."""
        if self.gram.kernel.name == "precomputed":
            return GramSource(self.gram, self.dtype, self._all[rows])
        return GramSource(Gram(self.gram.kernel, self.gram.X[rows]), self.dtype)


class Samples:
    """Training samples prepared for matrix products, dense or CSR."""

    def __init__(self, X, squared_norms: NDArray[Any]) -> None:
        self.X, self.squared_norms = X, squared_norms
        self.n_samples, self.dtype = X.shape[0], X.dtype

    @classmethod
    def prepare(cls, X, dtype: np.dtype, workers: Workers) -> Samples:
        """Centre dense samples and leave out features that do not vary; both change nothing."""
        n = X.shape[0]
        if sp.issparse(X) and _faster_dense(X):
            X = X.astype(dtype).toarray()
        if sp.issparse(X):
            X = sp.csr_array(X, dtype=dtype)
            squares = X.multiply(X).sum(axis=1, dtype=np.float64)
            return cls(X, np.asarray(squares).ravel().astype(dtype))
        features = _varying_features(X, workers)
        # Any centre would do: that of some samples saves a pass over all.
        some = X[:: max(1, n // _FOR_CENTRE), features]
        mean = np.mean(some, axis=0, dtype=np.float64).astype(X.dtype)
        centred = np.empty((n, len(features)), dtype=dtype)
        squared_norms = np.empty(n, dtype=dtype)
        workers.over_rows(compiled.centre, n, X, features, mean, centred, squared_norms)
        return cls(centred, squared_norms)

    @property
    def work(self) -> float:
        """Features that an inner product has to go through, on average."""
        return self.X.nnz / self.n_samples if sp.issparse(self.X) else self.X.shape[1]

    def inner_products(self, rows, out, others: Samples | None = None) -> None:
        """Write the inner products of sample ``rows[i]`` with all `others` into ``out[i]``."""
        X = self.X if others is None else others.X
        if sp.issparse(X):
            out[:] = (X @ self.X[rows].toarray().T).T
        else:
            some = self.X[rows]
            step = max(1, _WORK // max(1, some.size))
            for start in range(0, len(X), step):
                part = slice(start, start + step)
                np.matmul(some, X[part].T, out=out[:, part])

    def subset(self, rows) -> Samples:
        """The samples at `rows`."""
        return Samples(self.X[rows], self.squared_norms[rows])


def _faster_dense(X) -> bool:
    """Whether sparse samples are dense and few enough that products of dense ones are faster."""
    n, d = X.shape
    return n * d <= _SPARE and d * n <= _FASTER * X.nnz


def column_source(gram: Gram, dtype, workers: Workers) -> ColumnSource:
    """The fastest source of columns for a kernel."""
    dtype = np.dtype(dtype)
    if gram.kernel.name == "rbf":
        return GaussianSource(Samples.prepare(gram.X, dtype, workers), gram.kernel.gamma)
    return GramSource(gram, dtype)


#: Sparse samples get a dense copy of at most so many numbers, if these are not more than so many
#: times those that are not zero: products of dense matrices are that much faster.
_SPARE, _FASTER = 2**26, 32
#: Samples that the centre is taken from, at least.
_FOR_CENTRE = 1024
#: Columns computed at once: matrix products reach their speed from there on.  Long columns
#: come in smaller blocks, which may have to be held besides the store.
_BLOCK, _BLOCK_BYTES = 1024, 2**27
#: Multiplications of one product of matrices, so that an interrupt is seen in between.
_WORK = 2**33
#: Entries that are computed at once where none are kept.
_PRODUCT = 2**22


class ColumnStore:
    """Keeps computed columns within a byte budget; the least recently used give way.

    Parameters
    ----------
    source : ColumnSource
        Where columns come from.
    n_bytes : int
        Budget.  At least 64 columns are kept whatever it says.
    workers : Workers
        Threads for the passes over columns.
    part_of : (ColumnStore, ndarray), optional
        The store of a larger matrix and the rows of which this one is the part: columns
        known there are copied rather than computed.
    """

    def __init__(
        self,
        source: ColumnSource,
        n_bytes: int,
        workers: Workers,
        part_of: tuple[ColumnStore, NDArray[np.intp]] | None = None,
    ) -> None:
        n = source.n_samples
        self.column_bytes = max(1, n * source.dtype.itemsize)
        wanted = int(n_bytes // self.column_bytes)
        self.source, self.workers = source, workers
        self.n_bytes, self._part_of = n_bytes, part_of
        self._step = max(64, min(_BLOCK, _BLOCK_BYTES // self.column_bytes))
        self.n_samples = n
        #: Largest entry of the diagonal, in absolute value.
        self.largest = float(np.max(np.abs(source.diagonal)))
        #: Rank of the matrix where it is known to be low.
        self.rank: int | None = None
        #: Relative error of a column's entries.
        self.precision = float(np.finfo(source.dtype).eps)
        self.capacity = min(n, max(64, wanted))
        # Pages of this buffer cost memory only once they are written to.
        self.buffer = np.empty((self.capacity, n), dtype=source.dtype)
        self._scratch = np.empty((0, n), dtype=source.dtype)
        self.slot_of_row = np.full(n, -1, dtype=np.intp)
        self._row_of_slot = np.full(self.capacity, -1, dtype=np.intp)
        self._last_use = np.zeros(self.capacity, dtype=np.int64)
        self._clock = 0
        self._filled = 0
        self.n_computed = 0

    def subset(self, rows: NDArray[np.intp]) -> ColumnStore:
        """An empty store for the matrix restricted to `rows`, in what is left of the budget."""
        n_bytes = max(self.n_bytes - self.capacity * self.column_bytes, self.n_bytes // 8)
        return ColumnStore(self.source.subset(rows), n_bytes, self.workers, (self, rows))

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
        for part in _parts(missing, self._step):
            self._compute(part)
        return self.slot_of_row[rows]

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
            self.source.compute(rows[:split], out[:split], self.workers)
            self.n_computed += split
        if split < len(rows) and self._part_of is not None:
            whole, rows_in_whole = self._part_of
            slots = whole.slot_of_row[rows_in_whole[rows[split:]]]
            gather = compiled.gather, len(slots), whole.buffer, slots, rows_in_whole, out[split:]
            self.workers.over_rows(*gather, least=64)

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
        for part in _parts(order, self._step):
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

    def submatrix(self, rows) -> NDArray[np.float64]:
        """Kernel matrix of `rows`, whose columns are in the store, in float64."""
        matrix = np.empty((len(rows), len(rows)))
        slots = self.slot_of_row[rows]
        self.workers.over_rows(
            compiled.gather, len(slots), self.buffer, slots, rows, matrix, least=64
        )
        diagonal = np.arange(len(rows))
        matrix[diagonal, diagonal] = self.source.diagonal[rows]
        return matrix


def _varying_features(X: NDArray[Any], workers: Workers) -> NDArray[np.intp]:
    """The features that are not the same in all samples."""
    constant = np.flatnonzero(np.ptp(X[:256], axis=0) == 0)  # most features show at once
    varies = np.zeros(len(constant), dtype=bool)
    if len(constant):
        workers.over_rows(compiled.find_varying, len(X), X, constant, varies)
    return np.setdiff1d(np.arange(X.shape[1]), constant[~varies], assume_unique=True)


def _parts(array: NDArray[Any], step: int):
    """Consecutive pieces of an array, at most so long each, and about equally."""
    return np.array_split(array, -(-len(array) // step)) if len(array) else []
