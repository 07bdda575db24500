"""Where kernel columns come from: matrix products for the Gaussian kernel, blocks for others.

A source computes entries of the training kernel matrix in the precision in which they are kept,
and says how far they may be off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attop._threads import with_one_blas_thread
from attop.kernels import compiled, gaussian
from attop.kernels.blocks import as_float64, parts, slices
from attop.kernels.errors import EntryErrors
from attop.kernels.gram import Gram

if TYPE_CHECKING:
    from attop.kernels.columns import Workers

#: Sparse samples get a dense copy of at most so many bytes, if its numbers are at most so many
#: times those that are not zero: products of dense matrices are that much faster.
_SPARE, _FASTER = 2**28, 32
#: Columns of sparse samples in single precision are computed as they are where their numbers are so
#: many times those that are not zero, and so many features at most are spread out.
_SPARSER, _SPREAD = 4, 2**14
#: Samples whose entries may be off by more than this are far: in single precision from where on
#: scores, sums of hundreds of entries, would be no use.
_FAR_SINGLE, _FAR_DOUBLE = 1e-4, 1e-10
#: With a larger share of samples far out, all columns are kept in double precision.
_MANY_FAR = 1 / 4
#: Multiplications of one product of matrices, so that an interrupt is seen in between, and samples
#: from which on one is shared by threads.
_WORK, _LEAST = 2**31, 512
#: Samples that must be copied for a product take as long as so many entries of each, and entries
#: that are copied from elsewhere as the products of so many features.  (128 columns of 10,000
#: images of 3,072 features, 1,250 of which are known, take 1.01 of the time of all entries, 2,500:
#: 0.86, 5,000: 0.59; 512 of 20,000 of 784 features, 5,000 of which are known, 0.92, 10,000: 0.79.)
_GATHERED, _COPIED = 25.0, 450.0
#: Entries of samples far out that are computed at once.
_MENDED = 2**22


class ColumnSource(Protocol):
    """Computes columns of a kernel matrix."""

    n_samples: int
    dtype: np.dtype
    diagonal: NDArray[np.float64]
    #: What was taken from the kernel, which is positive semi-definite for sure or may not be.
    shift: float
    definite: bool
    #: Multiplications that an entry takes.
    work: float

    @property
    def errors(self) -> EntryErrors | None:
        """How far entries may be off; None where nothing is known."""
        ...

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
    """``exp(-gamma |x - x'|^2) - 1`` from one matrix product and one pass over its result.

    Entries of two samples far out are computed in double precision from their differences: see
    `attop.kernels.gaussian`.

    Parameters
    ----------
    samples : Samples
        The samples, centred.
    gamma : float
        Parameter of the kernel.
    original : ndarray or CSR matrix
        The samples as they came, in any precision, of which those far out are used.
    """

    shift, definite = 1.0, True

    def __init__(self, samples: Samples, gamma: float, original: Any) -> None:
        self.samples, self.gamma, self.original = samples, gamma, original
        self.n_samples, self.dtype = samples.n_samples, samples.dtype
        self.diagonal, self.work = np.zeros(self.n_samples), samples.work
        rounding = gaussian.distance_rounding(samples.n_terms, self.dtype)
        single = self.dtype == np.float32
        self._border = gaussian.far_norm2(gamma, rounding, _FAR_SINGLE if single else _FAR_DOUBLE)
        norms = samples.squared_norms * (1.0 + 1e-6)  # they are rounded themselves
        #: The samples far out, and which they are of all samples.
        self.far = np.flatnonzero(~(norms <= self._border))
        self._is_far = np.zeros(self.n_samples, dtype=bool)
        self._is_far[self.far] = True
        self.errors = self._bounds(norms, rounding)

    @classmethod
    def of(cls, X: Any, gamma: float, dtype: np.dtype, workers: Workers) -> GaussianSource:
        """The source for samples `X`, in float64 where too many are far out for `dtype`."""
        source = cls(Samples.prepare(X, dtype, workers), gamma, X)
        if dtype == np.float32 and len(source.far) > _MANY_FAR * source.n_samples:
            return cls(Samples.prepare(X, np.dtype(np.float64), workers), gamma, X)
        return source

    def _bounds(self, norms: NDArray[np.float64], rounding: float) -> EntryErrors:
        """The bounds of `attop.kernels.gaussian` for the entries computed here."""
        # Beyond twice the border, entries with samples that are not far vanish.
        beyond = norms > 4.0 * self._border
        size = np.where(beyond, 0.0, norms)
        size[beyond] = 1.25 * norms[beyond] * np.exp(-0.2 * self.gamma * norms[beyond])
        constant = gaussian.EXPONENTIAL_ROUNDING * 0.5 * float(np.finfo(self.dtype).eps)
        if len(self.far):
            constant += gaussian.ACCURACY
        return EntryErrors(constant, self.gamma * rounding, size)

    def compute(self, rows, out, workers) -> None:
        """Write column ``rows[i]`` into ``out[i]``."""
        self._entries(rows, out, self.samples, workers)
        self._mend(out, rows, np.arange(self.n_samples))

    def saves(self, n_known: int, n_gathered: int) -> bool:
        """Whether it pays to leave out entries that are known, and copy the samples of the others.

        Samples are counted once for each product that they are copied for.
        """
        saved = (self.work - _COPIED) * n_known
        return not sp.issparse(self.samples.X) and saved > _GATHERED * self.work * n_gathered

    def fill(self, rows, others, out, places, workers) -> None:
        """Write the entries of the samples `rows` with `others` into ``out[places]``."""
        samples = self.samples
        some, own = samples.X[rows], samples.squared_norms[rows]
        gamma = self.dtype.type(self.gamma)

        def piece(start: int, stop: int) -> None:
            part = others[start:stop]
            entries = some @ samples.X[part].T
            norms = samples.squared_norms[part]
            compiled.gaussian_minus_one(0, len(part), entries, own, norms, gamma)
            compiled.spread(entries, places, part, out)

        samples.in_pieces(piece, len(others), some.size, workers)

    def mend(self, rows, out) -> None:
        """Compute the entries of columns `rows` that products cannot tell."""
        self._mend(out, rows, np.arange(self.n_samples))

    def block(self, rows, columns, workers):
        """The entries at `rows` x `columns`."""
        other = self.samples.subset(columns)
        out = np.empty((len(rows), len(columns)), dtype=self.dtype)
        self._entries(rows, out, other, workers)
        self._mend(out, rows, columns)
        return out

    def precise(self, rows) -> NDArray[np.float64]:
        """The kernel matrix of `rows` itself, in double precision."""
        return gaussian.gaussian_whole(as_float64(self.original[rows]), self.gamma)[0]

    def _entries(self, rows, out, others: Samples, workers) -> None:
        """Write the entries of the samples at `rows` with all `others`, by products."""
        own, norms = self.samples.squared_norms[rows], others.squared_norms
        gamma, n = self.dtype.type(self.gamma), others.n_samples
        if self.samples.spread:
            X, some = csr_arrays(others.X), csr_arrays(self.samples.X[rows])
            workers.over_rows(compiled.sparse_gaussian, n, X, norms, some, own, gamma, out)
        else:

            def turn(start: int, stop: int) -> None:
                """Inner products into entries, while they are in the cache."""
                compiled.gaussian_minus_one(start, stop, out, own, norms, gamma)

            self.samples.inner_products(rows, out, others, workers, turn)

    def _mend(self, out, rows, columns) -> None:
        """Compute the entries at `rows` x `columns` that the product cannot tell."""
        if len(self.far) == 0:
            return
        at_rows, at_columns = (
            np.flatnonzero(self._is_far[rows]),
            np.flatnonzero(self._is_far[columns]),
        )
        if len(at_rows) == 0 or len(at_columns) == 0:
            return
        others = as_float64(self.original[columns[at_columns]])
        for part in parts(at_rows, max(1, _MENDED // len(at_columns))):
            samples = as_float64(self.original[rows[part]])
            entries = gaussian.gaussian_kernel(samples, others, self.gamma)
            out[np.ix_(part, at_columns)] = entries - 1.0

    def subset(self, rows):
        """The source restricted to `rows`."""
        return GaussianSource(self.samples.subset(rows), self.gamma, _Rows(self.original, rows))


class _Rows:
    """Some rows of an array or CSR matrix, none of them copied until it is asked for."""

    def __init__(self, whole: Any, rows: NDArray[np.intp]) -> None:
        self.whole, self.rows = whole, rows

    def __getitem__(self, some: NDArray[np.intp]) -> Any:
        return self.whole[self.rows[some]]


class GramSource:
    """Any other kernel: blocks of the float64 kernel function, rounded for storage.

    Parameters
    ----------
    gram : Gram
        The kernel matrix.
    dtype : dtype
        Precision of the columns.
    rows : ndarray of intp, optional
        The rows that the matrix is restricted to.
    prepare : bool
        Whether to make all samples ready once, for columns that are computed one by one.  That
        takes memory: blocks of columns do without.
    """

    shift = 0.0

    def __init__(
        self,
        gram: Gram,
        dtype: np.dtype,
        rows: NDArray[np.intp] | None = None,
        prepare: bool = False,
    ) -> None:
        self.gram, self.dtype, self.definite = gram, dtype, gram.kernel.definite
        self._all = np.arange(gram.n_samples) if rows is None else rows
        self.n_samples, self.work = len(self._all), float(gram.X.shape[1])
        self._columns = gram.against_all() if prepare and rows is None else self._unprepared
        self.diagonal = gram.diagonal(self._all)
        self.errors = self._bounds()

    def _bounds(self) -> EntryErrors | None:
        """Rounding relative to the entries, which a definite kernel's diagonal bounds."""
        if self.gram.kernel.precomputed and self.gram.X.dtype == self.dtype:
            return EntryErrors(0.0, 0.0, np.zeros(self.n_samples))  # read as they are
        if not self.definite:
            return None
        # |k_ij| <= sqrt(k_ii k_jj) <= (k_ii + k_jj) / 2; in double precision twice, here and there.
        relative, absolute = self.gram.kernel.rounding(self.gram.X, self._all)
        rounding = 2.0 * relative + 0.5 * float(np.finfo(self.dtype).eps)
        return EntryErrors(2.0 * absolute, 0.5 * rounding, self.diagonal)

    def compute(self, rows, out, workers) -> None:
        """Write column ``rows[i]`` into ``out[i]``."""
        step = max(1, 2**24 // self.n_samples)
        for part in parts(np.arange(len(rows)), step):
            out[part] = self._columns(rows[part])

    def _unprepared(self, rows) -> NDArray[np.float64]:
        return self.gram.block(self._all[rows], self._all)

    def block(self, rows, columns, workers):
        """The entries at `rows` x `columns`."""
        return self.gram.block(self._all[rows], self._all[columns]).astype(self.dtype)

    def subset(self, rows):
        """The source restricted to `rows`."""
        if self.gram.kernel.precomputed:
            return GramSource(self.gram, self.dtype, self._all[rows])
        return GramSource(Gram(self.gram.kernel, self.gram.X[rows]), self.dtype)


class Samples:
    """Training samples prepared for matrix products, dense or CSR."""

    def __init__(self, X, squared_norms: NDArray[Any], spread: bool = False) -> None:
        self.X, self.squared_norms = X, squared_norms
        #: Whether columns of sparse ones are computed as they are, by a compiled function.
        self.spread = spread
        self.n_samples, self.dtype = X.shape[0], X.dtype

    @classmethod
    def prepare(cls, X, dtype: np.dtype, workers: Workers) -> Samples:
        """Centre dense samples and leave out features that do not vary; both change nothing."""
        n = X.shape[0]
        spread = sp.issparse(X) and dtype == np.float32 and _faster_spread(X)
        if sp.issparse(X) and not spread and _faster_dense(X):
            X = X.toarray()  # rounded only when centred
        if sp.issparse(X):
            X = sp.csr_array(X, dtype=dtype)
            squares = X.multiply(X).sum(axis=1, dtype=np.float64)
            return cls(X, np.asarray(squares).ravel().astype(dtype), spread)
        features = _varying_features(X, workers)
        some = gaussian.some_of(X)
        if len(features) < X.shape[1]:
            some = some[:, features]
        mean = gaussian.centre(some).astype(X.dtype)
        centred = np.empty((n, len(features)), dtype=dtype)
        squared_norms = np.empty(n, dtype=dtype)
        workers.over_rows(compiled.centre, n, X, features, mean, centred, squared_norms)
        return cls(centred, squared_norms)

    @property
    def work(self) -> float:
        """Features that an inner product has to go through, on average."""
        return self.X.nnz / self.n_samples if sp.issparse(self.X) else self.X.shape[1]

    @property
    def n_terms(self) -> int:
        """Terms of an inner product at most."""
        if sp.issparse(self.X):
            return int(np.max(np.diff(self.X.indptr), initial=1))
        return int(self.X.shape[1])

    def inner_products(
        self, rows, out, others: Samples, workers: Workers, turn: Callable[[int, int], None]
    ) -> None:
        """Write the inner products of sample ``rows[i]`` with all `others` into ``out[i]``.

        Whatever becomes of those with a range of the others is left to `turn`.
        """
        X, n = others.X, others.n_samples
        if sp.issparse(X):
            out[:] = (X @ self.X[rows].toarray().T).T
            workers.over_rows(turn, n)
            return
        some = self.X[rows]

        def piece(start: int, stop: int) -> None:
            np.matmul(some, X[start:stop].T, out=out[:, start:stop])
            turn(start, stop)

        self.in_pieces(piece, n, some.size, workers)

    @staticmethod
    def in_pieces(
        piece: Callable[[int, int], None], n: int, features: int, workers: Workers
    ) -> None:
        """Call `piece` for ranges of n samples that are multiplied with so many features."""
        # Threads of BLAS wait for each other, and for long where the processor is shared: ours
        # take one piece after the other.
        step = min(max(1, _WORK // max(1, features)), max(_LEAST, -(-n // (4 * workers.count))))
        if n > step:  # all threads should end together
            step = -(-n // (workers.count * -(-n // (step * workers.count))))
        ranges = [(part.start, part.stop) for part in slices(n, step)]
        with_one_blas_thread(workers.call, piece, ranges)

    def subset(self, rows) -> Samples:
        """The samples at `rows`."""
        return Samples(self.X[rows], self.squared_norms[rows], self.spread)


def _faster_spread(X) -> bool:
    """Whether columns of sparse samples are fastest computed from a few features of each."""
    return X.shape[1] <= _SPREAD and X.nnz * _SPARSER <= X.shape[0] * X.shape[1]


def csr_arrays(X) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64], int]:
    """What compiled functions take of a CSR matrix, of few types."""
    indices, indptr = X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
    return X.data, indices, indptr, X.shape[1]


def _faster_dense(X) -> bool:
    """Whether sparse samples are dense and few enough that products of dense ones are faster."""
    n, d = X.shape
    return n * d * X.dtype.itemsize <= _SPARE and d * n <= _FASTER * X.nnz


def column_source(gram: Gram, dtype: Any, workers: Workers) -> ColumnSource:
    """The fastest source of columns for a kernel, in `dtype` or, where that is no use, float64."""
    return gram.kernel.source(gram, np.dtype(dtype), workers)


def _varying_features(X: NDArray[Any], workers: Workers) -> NDArray[np.intp]:
    """The features that are not the same in all samples."""
    constant = np.flatnonzero(np.ptp(X[:256], axis=0) == 0)  # most features show at once
    varies = np.zeros(len(constant), dtype=bool)
    if len(constant):
        workers.over_rows(compiled.find_varying, len(X), X, constant, varies)
    return np.setdiff1d(np.arange(X.shape[1]), constant[~varies], assume_unique=True)
