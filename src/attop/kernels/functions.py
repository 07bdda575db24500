"""Kernel functions in float64: what a model means, what predict and the certificate use.

The solver computes its columns elsewhere (`attop.kernels.columns`), in single
precision and fused; here accuracy and plain reading come first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.metrics import pairwise
from sklearn.utils import gen_batches, gen_even_slices

from attop._threads import map_in_threads, n_threads
from attop.kernels.gaussian import (
    Points,
    centre,
    gaussian_entries,
    gaussian_kernel,
    gaussian_onto,
)

#: Rows and columns of blocks that are summed up; in float64 they fit the caches of most machines.
BLOCK = 768
#: So many features of samples are converted to float64 at once.
_CONVERTED = 2**25
#: Entries that are computed in one call, and multiplications for them, so that an interrupt is
#: seen in between; those of the Laplacian kernel are not a product of matrices.
_ENTRIES, _PRODUCTS, _DISTANCES = 2**23, 2**32, 2**27

#: Name of each kernel, its function and the parameters it takes.
KERNELS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "linear": (pairwise.linear_kernel, ()),
    "rbf": (gaussian_kernel, ("gamma",)),
    "poly": (pairwise.polynomial_kernel, ("gamma", "degree", "coef0")),
    "sigmoid": (pairwise.sigmoid_kernel, ("gamma", "coef0")),
    "laplacian": (pairwise.laplacian_kernel, ("gamma",)),
}


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters fixed.

    Parameters
    ----------
    name : str or callable
        A key of `KERNELS`, ``"precomputed"``, or a function of two arrays of samples
        that returns the matrix of kernel values.
    gamma, degree, coef0 : float
        Parameters of the named kernels.
    """

    name: str | Callable[..., Any]
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    @property
    def threads(self) -> int:
        """Threads that may call it at once; functions of users are called one at a time."""
        return 1 if callable(self.name) else n_threads()

    @property
    def definite(self) -> bool:
        """Whether it is known to be positive semi-definite."""
        if self.name == "poly":
            return float(self.degree).is_integer() and self.coef0 >= 0.0
        return self.name in ("linear", "rbf", "laplacian")

    def __call__(self, X, Y) -> NDArray[np.float64]:
        """Kernel values of the rows of `X` against the rows of `Y`, in float64."""
        X, Y = as_float64(X), as_float64(Y)
        if callable(self.name):
            values = np.asarray(self.name(X, Y), dtype=np.float64)
            if values.shape != (X.shape[0], Y.shape[0]):
                raise ValueError(
                    "The 'kernel' function must return an array of shape "
                    f"{(X.shape[0], Y.shape[0])}. Got {values.shape} instead."
                )
            return values
        n, m = X.shape[0], Y.shape[0]
        work = _DISTANCES if self.name == "laplacian" else _PRODUCTS
        width = max(1, X.nnz // max(1, n)) if sp.issparse(X) else X.shape[1]
        step = max(1, min(_ENTRIES, work // width) // max(1, m))
        with config_context(assume_finite=True):  # checked when it came in
            if n <= step:
                return self._values(X, Y)
            values = np.empty((n, m))
            for part in gen_batches(n, step):
                values[part] = self._values(X[part], Y)
        return values

    def onto(self, Y) -> Callable[[Any, slice], NDArray[np.float64]]:
        """A function of some `X` and a slice of `Y` that gives their kernel values.

        What has to be done with `Y` is done once.
        """
        if self.name == "rbf":
            return gaussian_onto(Y, self.gamma)
        converted = as_float64(Y)
        return lambda X, part: self(X, converted[part])

    def within(self, Y) -> Callable[[slice, slice], NDArray[np.float64]]:
        """The same for two slices of `Y`."""
        if self.name == "rbf":
            points = Points.of(Y, None if sp.issparse(Y) else centre(Y))
            return lambda one, other: gaussian_entries(points[one], points[other], self.gamma)
        converted = as_float64(Y)
        return lambda one, other: self(converted[one], converted[other])

    def _values(self, X, Y) -> NDArray[np.float64]:
        """The same of a named kernel in one call."""
        assert isinstance(self.name, str)
        function, names = KERNELS[self.name]
        values = function(X, Y, **{name: getattr(self, name) for name in names})
        return values.toarray() if sp.issparse(values) else values


@dataclass(frozen=True)
class Gram:
    """The kernel matrix of the training samples, entry by entry on demand.

    Parameters
    ----------
    kernel : Kernel
        The kernel function.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Training samples; the kernel matrix itself for a precomputed kernel.
    """

    kernel: Kernel
    X: Any

    @property
    def n_samples(self) -> int:
        """Order of the matrix."""
        return self.X.shape[0]

    def block(self, rows, columns) -> NDArray[np.float64]:
        """The entries at `rows` x `columns`, in float64."""
        if self.kernel.name == "precomputed":
            return np.asarray(self.X[np.ix_(rows, columns)], dtype=np.float64)
        return self.kernel(self.X[rows], self.X[columns])

    def _convertible(self, rows) -> bool:
        """Whether the samples at `rows` are few enough to be converted to float64 at once."""
        return self.kernel.name != "precomputed" and len(rows) * self.X.shape[1] <= _CONVERTED

    def against(self, columns) -> Callable[..., NDArray[np.float64]]:
        """A function of rows and a slice of `columns` that gives the entries there."""
        if not self._convertible(columns):
            return lambda rows, part: self.block(rows, columns[part])
        entries = self.kernel.onto(self.X[columns])
        return lambda rows, part: entries(self.X[rows], part)

    def among(self, rows, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """``sum_v coefficients_v k(row_i, row_v)`` for each row, each entry computed once.

        Coefficients of shape (n_rows, m) give as many sums for each row.
        """
        entries_of = self._entries_among(rows)

        def sums_of(parts: tuple[slice, slice]):
            one, other = parts
            entries = entries_of(one, other)
            return entries @ coefficients[other], entries.T @ coefficients[one]

        sums = np.zeros(coefficients.shape)
        if len(rows) == 0:
            return sums
        sides = list(gen_even_slices(len(rows), -(-len(rows) // BLOCK)))
        pairs = [(one, other) for i, one in enumerate(sides) for other in sides[i:]]
        found = map_in_threads(sums_of, pairs, self.kernel.threads)
        for (one, other), (of_one, of_other) in zip(pairs, found, strict=True):
            sums[one] += of_one
            if other != one:
                sums[other] += of_other
        return sums

    def _entries_among(self, rows) -> Callable[[slice, slice], NDArray[np.float64]]:
        """A function of two slices of `rows` that gives the entries there."""
        if not self._convertible(rows):
            return lambda one, other: self.block(rows[one], rows[other])
        return self.kernel.within(self.X[rows])


def as_float64(X):
    """`X` in float64, without a copy where it already is."""
    return X.astype(np.float64, copy=False)
