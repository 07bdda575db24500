"""Scores ``s = sum_v a_v k(x, x_v)`` in double precision, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches, gen_even_slices

from attop._threads import map_in_threads
from attop.kernels.functions import BLOCK, Gram, as_float64


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
    gram: Gram, support: NDArray[np.intp], coefficients: NDArray[np.float64]
) -> float:
    """How far two float64 sums of one score may differ, by the order of their terms."""
    if len(support) == 0:
        return 0.0
    few = support[:64]  # enough to see the size of the kernel's entries
    largest = float(np.max(np.abs(gram.block(few, few))))
    return 2.0**-43 * largest * float(np.sum(np.abs(coefficients)))


class Scores:
    """Scores ``s = K a`` of the rows asked for, in float64; `a` is zero but on the support."""

    def __init__(
        self, gram: Gram, support: NDArray[np.intp], coefficients: NDArray[np.float64]
    ) -> None:
        self.gram, self.support, self.coefficients = gram, support, coefficients
        self.values = np.zeros(gram.n_samples)
        self.computed = np.zeros(gram.n_samples, dtype=bool)
        self._against_support: Callable[..., NDArray[np.float64]] | None = None

    def compute(self, rows: NDArray[np.intp]) -> None:
        """Compute the scores of `rows` that are not known yet."""
        rows = np.asarray(rows, dtype=np.intp)
        if self.computed.any():
            rows = rows[~self.computed[rows]]
        if self.gram.kernel.name == "linear":
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
        if self.gram.kernel.name == "linear":
            self.compute(self.support)
            return
        self.values[self.support] = self.gram.among(self.support, self.coefficients)
        self.computed[self.support] = True

    def _compute_linear(self, rows: NDArray[np.intp]) -> None:
        """The same through the weight vector, which needs no kernel entries."""
        X = self.gram.X
        parts = range(0, len(self.support), BLOCK)
        w = np.zeros(X.shape[1])
        for v in parts:
            part = slice(v, v + BLOCK)
            w += as_float64(X[self.support[part]]).T @ self.coefficients[part]
        for i in range(0, len(rows), BLOCK):
            some = rows[i : i + BLOCK]
            self.values[some] = as_float64(X[some]) @ w

    def known(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Scores of those of `rows` that were computed."""
        if self.computed.all():
            return self.values[rows]
        return self.values[rows[self.computed[rows]]]

    def w_norm2(self) -> float:
        """``|w|^2 = sum a_v s_v``."""
        return float(np.dot(self.coefficients, self.values[self.support]))

    def aligned(self, hint: NDArray[np.float64]) -> NDArray[np.float64]:
        """`hint` with the constant added that brings it to the scores computed so far."""
        difference = self.values[self.computed] - hint[self.computed]
        if len(difference) == 0:
            return hint
        return hint + 0.5 * (np.min(difference) + np.max(difference))

    def agree_with(self, hint: NDArray[np.float64], error: NDArray[np.float64]) -> bool:
        """Whether `hint` is within `error` of all scores computed so far."""
        difference = np.abs(self.values[self.computed] - hint[self.computed])
        return bool(np.all(difference <= error[self.computed]))
