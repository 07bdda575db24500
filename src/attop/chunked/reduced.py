r"""The problem on a few samples and on the means of groups of all others.

The mean of a group, with the weight of all its members, is one sample in their place.  Its dual
variable is that of each member: a feasible point of the small problem is one of the whole problem,
with the same value.  The optimum of the small problem is thus a lower bound on the whole one.  It
is the same where no group has members on both sides of a kink.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attop.chunked.levels import Terms
from attop.chunked.passes import BLOCK, Gathered, Groups, Rows, merge_rows
from attop.chunked.protocol import Vector
from attop.kernels.functions import Gram, Linear
from attop.objectives import signed_coefficients
from attop.problem import Problem
from attop.solvers import get_solver
from attop.solvers.protocol import Settings
from attop.solvers.solution import Solution


class Reduced(NamedTuple):
    """A small problem in the place of the whole one."""

    problem: Problem
    X: Any

    @property
    def n_samples(self) -> int:
        """Its samples, means of groups among them."""
        return int(self.X.shape[0])

    def solve(self, settings: Settings) -> Answer:
        """Solve it."""
        gram = Gram(Linear(), self.X)
        found = get_solver("auto")(self.problem, gram, **vars(settings))
        assert isinstance(found, Solution)
        coefficients = signed_coefficients(self.problem, found.alpha, found.beta, self.n_samples)
        w = np.asarray(self.X.T @ coefficients).ravel()
        certificate = found.certificate
        dual = certificate.dual - certificate.rounding - self._rounding(found, w)
        dual = float(dual) if certificate.infeasibility <= 1e-8 else -np.inf
        return Answer(w, dual, found.alpha, found.beta)

    def _rounding(self, found: Solution, w: Vector) -> float:
        """What the rounding of the sums of groups may change in the dual value.

        A block of rows, and then the sums of blocks, are added up in any order.
        """
        size = np.sqrt(np.asarray(_squares(self.X)).ravel())
        problem = self.problem
        coefficients = np.abs(found.alpha) @ (problem.positive_weights * size[problem.positives])
        coefficients += np.abs(found.beta) @ (
            problem.competitor_weights * size[problem.competitors]
        )
        return 2.0**-52 * (BLOCK + 64.0) * float(coefficients) * float(np.linalg.norm(w))


class Answer(NamedTuple):
    """The weights of a solution, a lower bound on the optimum, and its dual variables."""

    w: Vector
    dual: float
    alpha: Vector
    beta: Vector


def reduced_problem(terms: Terms, gathered: Gathered) -> Reduced:
    """The problem on what was gathered."""
    positives = with_means(gathered.positives, gathered.positive_groups)
    competitors = with_means(gathered.competitors, gathered.competitor_groups)
    problem = terms.problem(positives.weights, competitors.weights)
    return Reduced(problem, merge_rows([positives, competitors]).X)


def sampled_problem(
    terms: Terms,
    positives: Rows,
    negatives: Rows,
    totals: tuple[float, float],
    centre: Vector | None,
) -> Reduced:
    """The problem on samples drawn, whose weights stand for all."""
    sides = []
    for rows, total in zip((positives, negatives), totals, strict=True):
        X = rows.X.astype(np.float64)
        X = X if centre is None else X - centre
        weights = rows.weights * (total / math.fsum(rows.weights))
        sides.append(Rows(X, weights))
    competitors = merge_rows(sides) if terms.all_compete else sides[1]
    problem = terms.problem(sides[0].weights, competitors.weights)
    return Reduced(problem, merge_rows([sides[0], competitors]).X)


def with_means(rows: Rows, groups: Groups) -> Rows:
    """The rows, and the mean of each group."""
    if not groups:
        return rows
    weights = np.array([group.weight for group in groups.values()])
    means: NDArray[Any] = np.array([group.total / group.weight for group in groups.values()])
    X = sp.csr_matrix(means) if sp.issparse(rows.X) else means
    return merge_rows([rows, Rows(X, weights)])


def _squares(X: Any) -> Any:
    return X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
