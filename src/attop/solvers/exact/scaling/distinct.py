"""Equal samples as one with their copies: a problem of the distinct ones has the same optimum.

A weight counts copies exactly, and by symmetry equal samples of one class have equal dual variables
at an optimum.  Tables of whole numbers, and sparse samples of few features, have many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attop.kernels.blocks import slices
from attop.kernels.functions import FunctionKernel, Gram
from attop.problem import Problem
from attop.solvers.solution import Solution

#: Fewer samples are solved too soon for this to pay, and so are those of which a larger share is
#: distinct.  To look takes 0.02 to 0.04 s for 45,000 images and w8a.
_LEAST, _WORTHWHILE = 4096, 0.9
#: Features that are looked at first, where there are many more.
_FEATURES = 64
#: Samples whose numbers are mixed at once.
_ROWS = 1024

Point = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Merged:
    """A problem on distinct samples, and the way back.

    Attributes
    ----------
    problem : Problem
        The problem with weights that count equal samples.
    gram : Gram
        The kernel matrix of the distinct samples.
    rows : ndarray of intp
        A row of each distinct sample, among all.
    place : ndarray of intp
        The distinct sample of each row.
    alphas, betas : ndarray of intp
        The variable of the merged problem of each alpha and of each beta.
    weights : ndarray of float64
        Copies of the sample of each variable, before.
    """

    problem: Problem
    gram: Gram
    rows: NDArray[np.intp]
    place: NDArray[np.intp]
    alphas: NDArray[np.intp]
    betas: NDArray[np.intp]
    weights: NDArray[np.float64]

    @classmethod
    def of(cls, problem: Problem, gram: Gram) -> Self | None:
        """The problem with equal samples merged; None where few are, or nobody knows."""
        X, kernel = gram.X, gram.kernel
        n, step = X.shape[0], max(1, X.shape[1] // _FEATURES)
        if n < _LEAST or kernel.precomputed or isinstance(kernel, FunctionKernel):
            return None
        if step > 1 and not sp.issparse(X):  # some features tell most samples apart
            if len(np.unique(_mixed(X[:, ::step]))) > _WORTHWHILE * n:
                return None
        first, place = _distinct(X)
        if len(first) > _WORTHWHILE * n:
            return None
        positives, alphas = np.unique(place[problem.positives], return_inverse=True)
        competitors, betas = np.unique(place[problem.competitors], return_inverse=True)
        weights = np.concatenate(
            [
                np.bincount(alphas, problem.positive_weights),
                np.bincount(betas, problem.competitor_weights),
            ]
        )
        merged = problem._replace(
            rows=np.concatenate([positives, competitors]),
            n_positives=len(positives),
            weights=weights,
        )
        return cls(merged, Gram(kernel, X[first]), first, place, alphas, betas, problem.weights)

    def start(self, point: Point) -> Point:
        """A start of the whole problem as one of the merged: means of the copies."""
        n, of_all = len(self.alphas), self.problem
        alpha = np.bincount(self.alphas, self.weights[:n] * point[0]) / of_all.positive_weights
        beta = np.bincount(self.betas, self.weights[n:] * point[1]) / of_all.competitor_weights
        return alpha, beta

    def solution(self, found: Solution) -> Solution:
        """The solution of the merged problem as one of the whole."""
        alpha, beta = found.alpha[self.alphas], found.beta[self.betas]
        certificate = found.certificate
        known = np.zeros(len(self.rows), dtype=bool)
        scores = np.zeros(len(self.rows), dtype=certificate.scores.dtype)
        known[certificate.rows], scores[certificate.rows] = True, certificate.scores
        rows = np.flatnonzero(known[self.place])
        support = float(np.count_nonzero(alpha) + np.count_nonzero(beta))
        return replace(
            found,
            alpha=alpha,
            beta=beta,
            certificate=certificate._replace(rows=rows, scores=scores[self.place[rows]]),
            scores=None if found.scores is None else found.scores[self.place],
            stats={**found.stats, "support": support},
        )


def _distinct(X: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """A row of each distinct sample, and which of these each row is equal to."""
    _, first, place = np.unique(_mixed(X), return_index=True, return_inverse=True)
    others = np.flatnonzero(first[place] != np.arange(len(place)))
    wrong = others[_differ(X, others, first[place[others]])]
    # The same mixture of other numbers, which is rare: such a sample stays as it is.
    place[wrong] = len(first) + np.arange(len(wrong))
    return np.concatenate([first, wrong]), place


def _mixed(X: Any) -> NDArray[np.uint64]:
    """One whole number for each sample, made of the bits of its features; equal ones are alike.

    Whole numbers that overflow add up to the same in any order.
    """
    factors = np.random.default_rng(0).integers(0, 2**64, X.shape[1], dtype=np.uint64)
    if sp.issparse(X):
        sums = np.zeros(X.nnz + 1, dtype=np.uint64)
        np.cumsum(_bits(X.data) * factors[X.indices], out=sums[1:])
        mixed: NDArray[np.uint64] = sums[X.indptr[1:]] - sums[X.indptr[:-1]]
        return mixed
    # A product of matrices of whole numbers would not vectorise.
    return np.concatenate(
        [np.sum(_bits(X[part]) * factors, axis=1) for part in slices(len(X), _ROWS)]
    )


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """The bits of single or double numbers, those that differ among small whole ones included.

    They are the leading ones, which a product with a factor would shift out.
    """
    bits = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").astype(np.uint64)
    return bits ^ (bits >> np.uint64(32))


def _differ(X: Any, rows: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which of the `rows` are not equal to the others beside them."""
    if sp.issparse(X):
        different = sp.csr_matrix(X[rows] != X[others])
        return np.diff(different.indptr) > 0
    found = [np.any(X[rows[part]] != X[others[part]], axis=1) for part in slices(len(rows), _ROWS)]
    return np.concatenate(found) if found else np.zeros(0, dtype=bool)
