r"""Sums :math:`\sum_v a_v k(x, x_v)` for new samples, in the precision of the samples.

Entries come from products of matrices in blocks that stay in the cache until they are summed up, in
double precision whatever theirs is.  Each sum has a proved bound on its rounding.  Where that is
too large to be of use, or leaves open on which side of the threshold a sample is, the sum is
computed anew by the kernel function itself, in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_even_slices

from attop._scores import kernel_expansion
from attop._threads import map_in_threads, n_threads
from attop.kernels.base import Kernel
from attop.kernels.blocks import as_float64, slices
from attop.kernels.forms import Form
from attop.kernels.gaussian import centre, some_of, squared_norms

#: Entries of so many samples and support vectors are computed at once: up to 2 MB.
_BLOCK = 512
#: Samples that are converted to double precision at once.
_FEW = 64
#: What a sum in single precision may be off, where margins are of the size of one: a relative gap
#: of 1e-4 leaves more open.
_LIMIT = 2.0**-5
#: Numbers of sparse support vectors that are made dense.
_DENSE = 2**26


def sums(
    kernel: Kernel,
    vectors: Any,
    coefficients: NDArray[np.float64],
    X: Any,
    border: float,
) -> NDArray[np.float64]:
    """``sum_v coefficients_v k(x, vector_v)`` for each row of `X`.

    Those of float32 samples are as far off as `Prepared.off` says, but on the same side of the
    `border` as in double precision.
    """
    expansion = kernel.expansion(vectors, coefficients) if len(coefficients) else None
    if expansion is not None:
        return expansion(X)
    found, unclear = np.empty(X.shape[0]), np.arange(X.shape[0])
    form = kernel.form
    if form is not None and _is_fast(vectors, X):
        prepared = Prepared(form, vectors, coefficients, X.dtype, sp.issparse(X))
        unclear = prepared.compute(X, found, border)
    if len(unclear):
        entries = kernel.onto(vectors)
        found[unclear] = kernel_expansion(
            lambda rows, columns: entries(X[rows], columns), unclear, coefficients, kernel.threads
        )
    return found


def _is_fast(vectors: Any, X: Any) -> bool:
    """Whether there is something to gain: products are those with dense support vectors."""
    n, d = vectors.shape
    return n > 0 and (n * d <= _DENSE or not (sp.issparse(vectors) or sp.issparse(X)))


class Prepared:
    """Support vectors made ready for products with samples of one precision.

    Parameters
    ----------
    form : Form
        The kernel.
    vectors : ndarray or CSR matrix of shape (n_SV, n_features)
        Support vectors, in any precision.
    coefficients : ndarray of shape (n_SV,)
        Their coefficients.
    dtype : dtype
        Precision of the samples, and of the entries.
    sparse : bool
        Whether the samples are sparse: they are then taken as they are, not from a centre.
    """

    def __init__(
        self,
        form: Form,
        vectors: Any,
        coefficients: NDArray[np.float64],
        dtype: Any,
        sparse: bool,
    ) -> None:
        self.form, self.coefficients, self.dtype = form, coefficients, np.dtype(dtype)
        self.middle: NDArray[Any] | None = None
        if form.centred and not sparse:
            self.middle = centre(_dense(some_of(vectors))).astype(dtype)
        #: Terms of a product: of sparse samples those that are not zero in a support vector.
        self.n_terms = _longest(vectors) if sparse else vectors.shape[1]
        self._parts = slices(vectors.shape[0], _BLOCK)
        self.squared = np.empty(vectors.shape[0])
        #: Each with one column for a support vector, to be multiplied by samples from the left.
        self._factors = [self._factor(vectors[part], part, sparse) for part in self._parts]
        self._norms = form.norms(self.squared).astype(dtype)

    def _factor(self, vectors: Any, part: slice, sparse: bool) -> NDArray[Any]:
        """Some support vectors as the right factor of the product; rounded once."""
        vectors = as_float64(_dense(vectors))
        if self.middle is not None:
            vectors = vectors - self.middle
        self.squared[part] = squared_norms(vectors)
        factor = (self.form.factor * vectors).astype(self.dtype)
        # Row by row of the features for sparse samples, which ask for some of them.
        return np.ascontiguousarray(factor.T) if sparse else factor.T

    def off(self, squared: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far the sums of samples with these squared norms may be off."""
        weights = np.abs(self.coefficients)
        entries = self.form.off(squared, self.squared, weights, self.n_terms, self.dtype)
        return entries + 2.0**-43 * float(np.sum(weights))

    def compute(self, X: Any, found: NDArray[np.float64], border: float) -> NDArray[np.intp]:
        """Write the sums of the rows of `X` into `found`; return those that are not clear."""
        n, single = X.shape[0], self.dtype == np.float32
        accuracy = self.form.accuracy * float(np.sum(np.abs(self.coefficients)))
        threads = n_threads() if n * len(self.coefficients) > _BLOCK**2 else 1
        n_parts = -(-n // _BLOCK)
        n_parts = max(1, min(n, -(-n_parts // threads) * threads))
        limit = _LIMIT if single else accuracy

        def sum_up(part: slice) -> NDArray[np.bool_]:
            samples = X[part] if self.middle is None else X[part] - self.middle
            squared = _squared_norms(samples)
            off = self.off(squared)
            unclear = ~(off <= limit)
            if not unclear.all():
                self._sum_up(samples, squared, found[part])
                if single:
                    unclear |= np.abs(found[part] - border) <= off
            return unclear

        parts = list(gen_even_slices(n, n_parts))
        with_unclear = map_in_threads(sum_up, parts, threads)
        return np.flatnonzero(np.concatenate(with_unclear))

    def _sum_up(self, samples: Any, squared: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Write the sums of some samples into `out`."""
        own, rows = self.form.norms(squared).astype(self.dtype), len(out)
        entries = np.empty((rows, _BLOCK), dtype=self.dtype)
        double = entries if self.dtype == np.float64 else np.empty(entries.shape)
        out[:] = 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # of samples that will not be clear
            for part, factor in zip(self._parts, self._factors, strict=True):
                width = factor.shape[1]
                if sp.issparse(samples):
                    block = samples @ factor
                else:
                    block = np.matmul(samples, factor, out=entries[:, :width])
                self.form.finish(block, own, self._norms[part])
                np.copyto(double[:, :width], block)
                out += double[:, :width] @ self.coefficients[part]


def _squared_norms(X: Any) -> NDArray[np.float64]:
    """``|x|^2`` in double precision, a few samples at a time: their copies stay in the cache."""
    if sp.issparse(X):
        return squared_norms(as_float64(X))
    parts = [squared_norms(as_float64(X[part])) for part in slices(len(X), _FEW)]
    return np.concatenate(parts) if parts else np.empty(0)


def _dense(X: Any) -> NDArray[Any]:
    return X.toarray() if sp.issparse(X) else X


def _longest(X: Any) -> int:
    """The most features of a sample that are not zero."""
    if not sp.issparse(X):
        return X.shape[1]
    return int(np.max(np.diff(X.indptr), initial=0))
