"""The estimators of the two formulations without a dual, Grill and Grill-NP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from attop.base import AtTopClassifier
from attop.formulations import NONCONVEX_FORMULATIONS, TopQuantile
from attop.kernels.functions import Gram
from attop.quantile_problem import QuantileProblem
from attop.solvers.solution import Status


# These two answer for parts of the base class with other types: a problem without dual
# variables, and a solution that is the weights themselves.
@dataclass(eq=False, repr=False)
class _QuantileClassifier(AtTopClassifier):
    """What Grill and GrillNP share."""

    formulation: ClassVar[TopQuantile]

    tau: float = 0.05
    _: KW_ONLY
    kernel: str | Callable[..., Any] = "linear"

    def _problem(self, positive) -> QuantileProblem:  # type: ignore[override]
        return self.formulation.quantile_problem(
            positive, float(self.C), self.surrogate, float(self.tau)
        )

    def _solver(self) -> Callable[..., Any]:
        from attop.solvers.primal import solve_quantile

        return solve_quantile

    def _solve(self, problem, gram: Gram, start=None, **options):
        if self.warm_start and hasattr(self, "coef_"):
            previous = self.coef_[0]
            start = previous if len(previous) == gram.X.shape[1] else start
        return self._solver()(
            problem,
            gram,
            tol=self.tol,
            max_iter=self.max_iter,
            max_time=self.max_time,
            start=start,
            random_state=self._seed,
            verbose=self.verbose,
            **(self.solver_options or {}),
            **options,
        )

    def _store(self, problem, gram: Gram, solution) -> None:
        self._fitted_kernel = gram.kernel
        self.coef_ = solution.coef[np.newaxis]
        # The sample whose score is the threshold is to reach it in any order of the sum.
        largest = max(float(gram.X.max()), -float(gram.X.min()))
        self.threshold_ = solution.threshold - 2.0**-43 * largest * float(
            np.sum(np.abs(solution.coef))
        )
        self.objective_ = solution.objective
        self.start_objectives_ = solution.start_objectives
        self.dual_gap_ = np.nan
        self.n_iter_ = solution.n_iter
        self.history_ = solution.history
        self.status_ = Status.NO_CERTIFICATE


@dataclass(eq=False, repr=False)
class Grill(_QuantileClassifier):
    """Accuracy at the top: the threshold is the top tau-quantile of all scores.

    Minimises, for ``n_pos`` positives and ``n_neg`` negatives, ::

        |w|^2 / 2  +  C sum over positives l(t - s_i)
                   +  C (n_pos / n_neg) sum over negatives l(s_j - t)

    by gradient descent from several starts, of which the best is kept.  The problem is not
    convex: the result is a local minimum, ``status_`` says that there is no certificate, and
    ``dual_gap_`` is nan.  There are no dual variables either, so the model is a linear one, or
    one with ``approximation="nystroem"``.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the samples at or above the threshold, in (0, 1).
    **others
        The keyword parameters of `AtTopClassifier`, with ``kernel="linear"`` by default.
        ``solver`` is "auto" or "primal"; ``solver_options={"n_starts": 4}`` sets the number
        of starts; ``max_iter`` bounds the steps of each, -1 standing for 1000; ``tol`` is the
        length of the last steps relative to the weights; and ``warm_start`` adds the previous
        weights to the starts.

    Attributes
    ----------
    coef_, threshold_, objective_, n_iter_, history_, status_, classes_, feature_map_
        As in `AtTopClassifier`; there are no `alpha_`, `beta_` and support vectors.
    start_objectives_ : ndarray of shape (n_starts,)
        The objective at each start.
    """

    formulation = NONCONVEX_FORMULATIONS["Grill"]


@dataclass(eq=False, repr=False)
class GrillNP(_QuantileClassifier):
    """Accuracy at the top: the threshold is the top tau-quantile of the negative scores.

    The objective, its solution and the attributes are those of `Grill`; only the threshold is
    made of the scores of the negatives, so that about a share tau of them reaches it
    (Neyman-Pearson).

    Parameters
    ----------
    tau : float, default=0.05
        Share of the negatives at or above the threshold, in (0, 1).
    **others
        The keyword parameters of `Grill`.
    """

    formulation = NONCONVEX_FORMULATIONS["GrillNP"]
