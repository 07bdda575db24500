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

from attop._weights import weighted_sum
from attop.chunked.levels import Terms
from attop.chunked.passes import Gathered, Groups, Rows, merge_rows
from attop.chunked.protocol import Vector
from attop.chunked.rounding import Rounding, gamma
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

    def solve(self, settings: Settings, rounding: Rounding) -> Answer:
        """Solve it; `rounding` is that of the sums of groups."""
        gram = Gram(Linear(), self.X)
        found = get_solver("auto")(self.problem, gram, **vars(settings))
        assert isinstance(found, Solution)
        coefficients = signed_coefficients(self.problem, found.alpha, found.beta, self.n_samples)
        w = np.asarray(self.X.T @ coefficients).ravel()
        certificate = found.certificate
        off = certificate.rounding + self._rounding(found, w, rounding)
        dual = float(certificate.dual - off) if certificate.infeasibility <= 1e-8 else -np.inf
        return Answer(w, dual, found.alpha, found.beta, certificate.infeasibility)

    def _rounding(self, found: Solution, w: Vector, rounding: Rounding) -> float:
        """What the dual value of all samples may be less, by the rounding of sums of groups."""
        problem = self.problem
        copies = weighted_sum(found.alpha, problem.positive_weights)
        copies += weighted_sum(found.beta, problem.competitor_weights)
        share = 8.0 * rounding.of_sums + 4.0 * found.certificate.infeasibility
        return lost(copies, problem.betas.linear, share, rounding.longest, w)


def lost(copies: float, linear: float, share: float, longest: float, w: Vector) -> float:
    """By how much a dual value can fall with the weights of samples changed by a share.

    Parameters
    ----------
    copies : float
        The sum of all dual variables, copies counted.
    linear : float
        Coefficient of the betas in the dual value.
    share : float
        By how much their parts of sums may be off, relatively.
    longest : float
        Bound on the norms of samples.
    w : ndarray
        The weights of the model that the dual variables make.
    """
    off = share * copies * longest
    length = float(np.linalg.norm(w)) * (1.0 + gamma(len(w)))
    return 2.0 * share * (1.0 + linear) * copies + off * (length + 2.0 * off)


class Answer(NamedTuple):
    """The weights of a solution, a lower bound on the optimum, and its dual variables."""

    w: Vector
    dual: float
    alpha: Vector
    beta: Vector
    infeasibility: float


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
    totals: tuple[float, float] | None,
    centre: Vector | None,
) -> Reduced:
    """The problem on samples drawn, whose weights stand for all; they are all without `totals`."""
    sides = []
    for side, rows in enumerate((positives, negatives)):
        X = rows.X.astype(np.float64)
        X = X if centre is None else X - centre
        factor = 1.0 if totals is None else totals[side] / math.fsum(rows.weights)
        sides.append(Rows(X, rows.weights * factor))
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
