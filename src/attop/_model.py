"""The model that a solution stands for, and the fitted attributes that describe it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop._extended import model_weights
from attop._scores import rounding_of_scores
from attop._verdict import final_status
from attop._weights import weighted
from attop.kernels.functions import Gram, Learnt
from attop.objectives import (
    Certificate,
    certificate_of_zero,
    relative_gap,
    signed_coefficients,
    support,
    zero_value,
)
from attop.problem import Problem
from attop.solvers.solution import Outcome, QuantileSolution, Solution, Status

#: Sums over the samples may differ by so much, relative to them.
_ROUNDING = 2.0**-46
#: And a score of explicit weights by so much, relative to its largest possible value.
_ROUNDING_OF_WEIGHTS = 2.0**-43
#: Scores are at the threshold that differ from it by so much, relative to it.
_AT_THRESHOLD = 1e-6


@dataclass(frozen=True)
class DualModel:
    """The ``w`` of dual variables, as rows and their coefficients.

    Attributes
    ----------
    solution : Solution
        The dual variables; its certificate is that of ``w``.
    status : Status
        How the fit ended, by that certificate.
    support, coefficients : ndarray of shape (n_SV,)
        Rows of the support vectors, increasing, and their coefficients.
    rounding : float
        What the rounding of its sum may change in a score.
    zero : float
        Primal value of ``w = 0``.
    """

    solution: Solution
    status: Status
    support: NDArray[np.intp]
    coefficients: NDArray[np.float64]
    rounding: float
    zero: float

    @property
    def threshold(self) -> float:
        """The threshold of the training scores, less their rounding error.

        Top negatives often lie exactly at the threshold: they are to reach it in any sum.
        """
        return self.solution.certificate.threshold - self.rounding

    def _weights(self, gram: Gram, problem: Problem) -> NDArray[np.float64]:
        """``w`` itself, of the linear kernel."""
        if len(self.support) == 0:
            return np.zeros(gram.X.shape[1])
        if self.solution.certificate.weights is not None:
            return self.solution.certificate.weights
        alpha, beta = self.solution.alpha, self.solution.beta
        longer = alpha.astype(np.longdouble), beta.astype(np.longdouble)
        return model_weights(gram, signed_coefficients(problem, *longer, gram.n_samples))

    def attributes(self, gram: Gram, problem: Problem) -> dict[str, Any]:
        """The fitted attributes, by name."""
        certificate, kernel = self.solution.certificate, gram.kernel
        weights = {}
        if kernel.explicit:
            weights["coef_"] = self._weights(gram, problem)[np.newaxis]
        return {
            "alpha_": weighted(self.solution.alpha, problem.positive_weights),
            "beta_": weighted(self.solution.beta, problem.competitor_weights),
            "support_": self.support,
            "support_vectors_": (
                np.empty((0, 0), dtype=gram.X.dtype) if kernel.precomputed else gram.X[self.support]
            ),
            "dual_coef_": self.coefficients[np.newaxis],
            "threshold_": self.threshold,
            "objective_": certificate.primal,
            "dual_gap_": certificate.gap,
            "status_": self.status,
            **weights,
            **_account(self.solution, gram),
        }


def weight_attributes(solution: QuantileSolution, gram: Gram) -> dict[str, Any]:
    """The fitted attributes of a model without dual variables, and so without a certificate."""
    largest = max(float(gram.X.max()), -float(gram.X.min()))
    rounding = _ROUNDING_OF_WEIGHTS * largest * float(np.sum(np.abs(solution.coef)))
    return {
        "coef_": solution.coef[np.newaxis],
        # The sample whose score is the threshold is to reach it in any order of the sum.
        "threshold_": solution.threshold - rounding,
        "objective_": solution.objective,
        "start_objectives_": solution.start_objectives,
        "dual_gap_": np.nan,
        "status_": solution.status,
        **_account(solution, gram),
    }


def _account(solution: Outcome, gram: Gram) -> dict[str, Any]:
    """What every fit tells of itself, and what `top_score` needs of it."""
    return {
        "n_iter_": solution.n_iter,
        "history_": solution.history,
        "stats_": solution.stats,
        "_fitted_kernel": gram.kernel,
        **({"kernel_": gram.kernel.learner} if isinstance(gram.kernel, Learnt) else {}),
    }


def dual_model(problem: Problem, gram: Gram, solution: Solution, tol: float) -> DualModel:
    """The ``w`` of the dual variables, or zero where the certificate shows that it is no worse.

    Where the optimum is ``w = 0``, what a solver leaves of ``w`` depends on its start, and
    would put samples into an order that the optimum leaves tied.
    """
    certificate, value = solution.certificate, zero_value(problem)
    zero = None
    if relative_gap(value, certificate.primal) <= _ROUNDING:
        zero = certificate_of_zero(problem, certificate)
    proves = solution.status is not Status.NOT_PSD and not certificate.indefinite
    if zero is not None and proves and zero.certifies(tol):
        solution = replace(solution, certificate=zero)
        rows, coefficients = np.empty(0, dtype=np.intp), np.empty(0)
    else:
        rows, coefficients = support(problem, solution.alpha, solution.beta)
    rounding = rounding_of_scores(gram, rows, coefficients, _at_threshold(solution.certificate))
    rounding += solution.certificate.threshold_off
    status = final_status(gram, solution, rows, tol)
    return DualModel(solution, status, rows, coefficients, rounding, value)


def _at_threshold(certificate: Certificate) -> NDArray[np.intp]:
    """The rows whose scores are the threshold, but for rounding: margins are of the size of 1."""
    t = certificate.threshold
    near = np.abs(certificate.scores - t) <= _AT_THRESHOLD * max(1.0, abs(t))
    return certificate.rows[near]
