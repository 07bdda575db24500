"""Scores ``s = sum_v a_v k(x, x_v)`` in double precision, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import gen_batches, gen_even_slices

from attop._threads import map_in_threads
from attop.kernels.blocks import BLOCK, as_float64, rows_at_once
from attop.kernels.gaussian import (
    PRODUCT_ROUNDING,
    distance_rounding,
    middle_of,
    norms_from,
)
from attop.kernels.gram import Gram


def kernel_expansion(
    block: Callable[[NDArray[np.intp], slice], NDArray[np.float64]],
    rows: NDArray[np.intp],
    coefficients: NDArray[np.float64],
    threads: int,
) -> NDArray[np.float64]:
    """``sum_v coefficients_v k(row, column_v)`` for each row, in blocks of bounded memory.

    `block` gives the entries of some rows and a slice of the columns, in several threads.
    """
    if len(rows) == 0 or len(coefficients) == 0:
        return np.zeros(len(rows))
    n_parts = -(-len(rows) // BLOCK)
    if len(rows) * len(coefficients) > BLOCK**2:  # worth several threads, and parts for all
        n_parts = min(len(rows), -(-n_parts // threads) * threads)
    parts = list(gen_even_slices(len(rows), n_parts))
    # Few rows take many columns at once: the number of entries is what counts.
    wide = BLOCK * max(1, BLOCK * len(parts) // len(rows))

    def sums_of(part: slice) -> NDArray[np.float64]:
        sums = np.zeros(part.stop - part.start)
        for columns in gen_batches(len(coefficients), wide):
            sums += block(rows[part], columns) @ coefficients[columns]
        return sums

    return np.concatenate(map_in_threads(sums_of, parts, threads))


def rounding_of_scores(
    gram: Gram,
    support: NDArray[np.intp],
    coefficients: NDArray[np.float64],
    rows: NDArray[np.intp],
) -> float:
    """How far two float64 sums of the score of one of `rows` may differ, by blocks and order."""
    if len(support) == 0 or len(rows) == 0:
        return 0.0
    X, kernel = gram.X, gram.kernel
    if kernel.explicit:
        w = np.abs(linear_weights(X, support, coefficients))
        parts = (np.abs(as_float64(X[rows[part]])) @ w for part in gen_batches(len(rows), BLOCK))
        largest = max(float(np.max(terms)) for terms in parts)
        return distance_rounding(X.shape[1], np.float64) * largest
    absolute = np.abs(coefficients)
    total = float(absolute @ np.sqrt(np.abs(gram.diagonal(support))))
    size = float(np.max(np.abs(gram.diagonal(rows)))) ** 0.5
    entries = gram.rounding(support).absolute * float(np.sum(absolute))
    return 2.0**-43 * size * total + entries


def linear_weights(
    X, support: NDArray[np.intp], coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``w = sum_v coefficients_v x_v``, whose coefficients sum to zero, in bounded memory.

    From the centre of the samples, so that a common offset of theirs does not have to cancel.
    """
    w = np.zeros(X.shape[1])
    if len(support) == 0:
        return w
    middle = middle_of(X, support)
    if middle is None:
        return _sparse_weights(X, support, coefficients)
    for part in gen_batches(len(support), rows_at_once(X)):
        w += (as_float64(X[support[part]]) - middle).T @ coefficients[part]
    return w


def _sparse_weights(
    X, support: NDArray[np.intp], coefficients: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The same of CSR samples, in one pass that keeps what each addition rounds off.

    Such a sum is as good as one of twice the precision, whatever the number of its terms.
    """
    from attop.kernels.linear import sparse_sum_kept  # compiled: not at import

    w, lost = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    arrays = X.data, X.indices, X.indptr
    sparse_sum_kept(*arrays, support, np.ascontiguousarray(coefficients), w, lost)
    return w + lost


class Scores:
    """Scores ``s = K a`` of the rows asked for, in float64; `a` is zero but on the support."""

    #: What was taken from every score.
    constant = 0.0
    #: What thresholds add to the rounding of the scores that they are made of, relative to these:
    #: a mean of up to half a million of them, added in pairs, has 32 roundings in a row at most.
    of_thresholds = 2.0**-48

    def __init__(
        self, gram: Gram, support: NDArray[np.intp], coefficients: NDArray[np.float64]
    ) -> None:
        self.gram, self.support, self.coefficients = gram, support, coefficients
        self.values: NDArray[Any] = np.zeros(gram.n_samples)
        self.computed = np.zeros(gram.n_samples, dtype=bool)
        self._against_support: Callable[..., NDArray[np.float64]] | None = None
        self._weights: NDArray[np.float64] | None = None
        self._sizes: NDArray[np.float64] | None = None
        self._off: float | None = None

    def compute(self, rows: NDArray[np.intp]) -> None:
        """Compute the scores of `rows` that are not known yet."""
        rows = np.asarray(rows, dtype=np.intp)
        if self.computed.any():
            rows = rows[~self.computed[rows]]
        known = None if len(rows) == 0 else self.gram.sums(rows, self.support, self.coefficients)
        if known is not None:
            self.values[rows] = known
        elif self.gram.kernel.explicit:
            self._compute_linear(rows)
        else:
            block = self._against_support or self.gram.against(self.support)
            self.values[rows] = kernel_expansion(
                block, rows, self.coefficients, self.gram.kernel.threads
            )
            self._against_support = block
        self.computed[rows] = True

    def compute_support(self) -> None:
        """Compute the scores of the support, each kernel entry once for its row and column."""
        if self.gram.kernel.explicit:
            self.compute(self.support)
        elif not self.computed[self.support].all():
            self.compute_among(self.support)

    def compute_among(self, rows: NDArray[np.intp], others=()) -> NDArray[np.float64]:
        """Compute the scores of `rows`, which have the support among them, in the same way.

        Returns the sums with the columns of `others` for coefficients, which cost hardly
        anything: every kernel entry is computed once.
        """
        own = np.zeros((len(rows), 1))
        own[np.searchsorted(rows, self.support), 0] = self.coefficients
        sums = self.gram.among(rows, np.hstack([own, others]) if len(others) else own)
        self.values[rows] = sums[:, 0]
        self.computed[rows] = True
        return sums[:, 1:]

    def _compute_linear(self, rows: NDArray[np.intp]) -> None:
        """The same through the weight vector, which needs no kernel entries."""
        X, w = self.gram.X, self.weights()
        if sp.issparse(X) and len(rows) == X.shape[0]:
            from attop.kernels.linear import product_of_all  # compiled: not at import

            self.values[:] = product_of_all(X, w)
            return
        for part in gen_batches(len(rows), rows_at_once(X)):
            some = rows[part]
            self.values[some] = as_float64(X[some]) @ w

    def weights(self) -> NDArray[np.float64]:
        """``w`` itself, of the linear kernel; computed once."""
        if self._weights is None:
            self._weights = linear_weights(self.gram.X, self.support, self.coefficients)
        return self._weights

    def w_norm2(self) -> float:
        """``|w|^2 = sum a_v s_v``."""
        if self.gram.kernel.explicit:  # where no large numbers cancel
            return float(np.sum(self.weights() ** 2))
        return float(np.dot(self.coefficients, self.values[self.support]))

    def origin(self) -> float:
        """The score of the sample that the norm of ``w`` is taken from: the centre, or none."""
        if not self.gram.kernel.explicit or len(self.support) == 0:
            return 0.0
        middle = middle_of(self.gram.X, self.support)
        return 0.0 if middle is None else float(middle @ self.weights())

    def rounding(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """How far the float64 scores of `rows` may be off themselves, up to a common constant.

        A sum of n terms rounds as a product of n features does; entries as the kernel is computed.
        """
        X, kernel = self.gram.X, self.gram.kernel
        if len(self.support) == 0:
            return np.zeros(len(rows))
        if kernel.explicit:
            w, off = self.weights(), self.rounding_of_weights()
            from_middle, from_origin = self._norms(rows)
            return (
                from_middle * off
                + (distance_rounding(X.shape[1], np.float64) * float(np.linalg.norm(w)))
                * from_origin
            )
        by_size, at_all = self._rounding_terms[:2]
        return by_size * np.sqrt(np.abs(self.gram.diagonal(rows))) + at_all

    @cached_property
    def _rounding_terms(self) -> tuple[float, float, float, float]:
        """What a score may be off, by the size of its sample and at all.

        And the sums over the support, of absolute coefficients, that a product with them has of
        both.  It takes one pass over the samples of the support.
        """
        summation = PRODUCT_ROUNDING * 2.0**-53 * len(self.support) ** 0.5
        relative, absolute = self.gram.rounding(self.support)
        total = np.abs(self.coefficients)
        sizes = float(total @ np.sqrt(np.abs(self.gram.diagonal(self.support))))
        count = float(np.sum(total))
        return (summation + relative) * sizes, absolute * count, sizes, count

    def rounding_of_norm(self) -> float:
        """How far ``|w|^2`` may be off."""
        if self.gram.kernel.explicit and len(self.support):
            return 2.0 * float(np.linalg.norm(self.weights())) * self.rounding_of_weights()
        if len(self.support) == 0:
            return 0.0
        by_size, at_all, sizes, count = self._rounding_terms
        return by_size * sizes + at_all * count

    def rounding_of_weights(self) -> float:
        """How far ``w`` may be off, in its norm."""
        if len(self.support) == 0:
            return 0.0
        if self._off is None:
            sizes = self._norms(self.support)[0]
            summation = PRODUCT_ROUNDING * 2.0**-53 * (1.0 + len(self.support) ** 0.5)
            self._off = summation * float(np.abs(self.coefficients) @ sizes)
        return self._off

    def _norms(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Norms of the samples from the middle of the support, and from the origin."""
        X = self.gram.X
        if not sp.issparse(X):
            return norms_from(middle_of(X, self.support), X, rows), norms_from(None, X, rows)
        if self._sizes is None:
            from attop.kernels.linear import sparse_norms  # compiled: not at import

            self._sizes = sparse_norms(X)
        sizes = self._sizes[rows]
        return sizes, sizes

    def interval(
        self, hint: NDArray[np.float64], error: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Between which numbers the constant lies that scores have above the `hint`.

        Every score computed tells; if the first exceeds the second, they contradict `error`.
        """
        difference = self.values[self.computed] - hint[self.computed]
        error = error[self.computed]
        least = np.max(difference - error, initial=-np.inf)
        return float(least), float(np.min(difference + error, initial=np.inf))


class GivenScores(Scores):
    """Scores of all rows that somebody else has computed, with proved bounds on their errors.

    Parameters
    ----------
    exact : Scores
        What they are about; some of its scores are computed, to find the constant that the given
        ones lack.
    values, errors : ndarray of shape (n_samples,)
        Scores up to a constant common to all, and how far each may be off.
    """

    #: Rows that tell the constant.
    _TRIED = 64

    def __init__(
        self, exact: Scores, values: NDArray[np.float64], errors: NDArray[np.float64]
    ) -> None:
        super().__init__(exact.gram, exact.support, exact.coefficients)
        exact.compute(exact.support[:: max(1, len(exact.support) // self._TRIED)])
        low, high = exact.interval(values, errors)
        #: Whether the scores computed agree with the given ones.
        self.consistent = low <= high
        self.values = values + 0.5 * (low + high)
        self.errors = errors + 0.5 * (high - low)
        self.computed[:] = True

    def w_norm2(self) -> float:
        """``|w|^2 = sum a_v s_v``."""
        return float(np.dot(self.coefficients, self.values[self.support]))

    def rounding(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """How far the scores of `rows` may be off."""
        return self.errors[rows]

    def rounding_of_norm(self) -> float:
        """How far ``|w|^2`` may be off."""
        return float(np.abs(self.coefficients) @ self.errors[self.support])
