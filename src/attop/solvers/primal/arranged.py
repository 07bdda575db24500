"""Sparse samples in the order of their entries, positives first: passes over them take less time.

A processor guesses how long a row will be.  Where rows are short and differ, as counts do, it is
wrong at most of them, and that takes longer than their entries do; in order it is hardly ever.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from attop._weights import of_rows
from attop.problem import Problem
from attop.solvers.primal.samples import Samples

Vector = NDArray[np.float64]
Rows = NDArray[np.intp]

#: Entries of a row, on average, up to which it pays if they deviate by this share of that.  (One
#: pass, before and after, microseconds: w8a, 12 entries that deviate by 0.9 of that, 725 and 234;
#: documents of 65 and 0.05, 214 and 212; a9a, 14 and 0.05, 210 and 202.  To arrange w8a takes
#: 1,000.)
SHORT, DEVIATION = 50, 0.25


class Arranged(NamedTuple):
    """A problem on samples in another order.

    Attributes
    ----------
    problem : Problem
        Its rows are places in the new order.
    samples : Samples
        In that order.
    alphas, betas : ndarray of intp, optional
        Which of the original ones each of the new is; None where they are the same.
    """

    problem: Problem
    samples: Samples
    alphas: Rows | None = None
    betas: Rows | None = None

    @classmethod
    def of(cls, problem: Problem, samples: Samples) -> Self:
        """In the order of their entries where that pays, and else as they are."""
        if not _pays(samples):
            return cls(problem, samples)
        # Bytes are sorted without comparisons, and of the longest rows there are few.
        lengths = np.minimum(np.diff(samples.X.indptr), 255).astype(np.uint8)
        others = np.ones(samples.n_samples, dtype=bool)
        others[problem.positives] = False
        there = np.zeros(samples.n_samples, dtype=bool)
        there[problem.competitors] = True
        rest = np.flatnonzero(others & there)
        alphas = np.argsort(lengths[problem.positives], kind="stable")
        order = np.concatenate(
            [problem.positives[alphas], rest[np.argsort(lengths[rest], kind="stable")]]
        )
        place = np.empty(samples.n_samples, dtype=np.intp)
        place[order] = np.arange(len(order))
        betas = np.full(len(order), -1, dtype=np.intp)
        betas[place[problem.competitors]] = np.arange(len(problem.competitors))
        competitors = np.flatnonzero(betas >= 0)
        betas = betas[competitors]
        rows = np.concatenate([np.arange(problem.n_positives), competitors])
        variables = np.concatenate([alphas, problem.n_positives + betas])
        arranged = problem._replace(rows=rows, weights=of_rows(problem.weights, variables))
        return cls(arranged, samples.take(order), alphas, betas)

    def to_here(self, point: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
        """A point of the original problem in the new order."""
        if self.alphas is None or self.betas is None:
            return point
        return point[0][self.alphas], point[1][self.betas]

    def from_here(self, point: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
        """A point in the order of the original problem."""
        if self.alphas is None or self.betas is None:
            return point
        alpha, beta = np.empty(len(self.alphas)), np.empty(len(self.betas))
        alpha[self.alphas], beta[self.betas] = point
        return alpha, beta


def _pays(samples: Samples) -> bool:
    """Whether the rows are short and differ in length."""
    if not samples.sparse or samples.n_samples == 0 or samples.width > SHORT:
        return False
    return float(np.std(np.diff(samples.X.indptr))) > DEVIATION * samples.width
