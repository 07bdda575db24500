"""How a fit ended, and what to tell the user about it."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from attop.kernels.functions import Gram
from attop.objectives import Certificate, relative_gap
from attop.problem import Problem
from attop.solvers import DEFAULT_SOLVER
from attop.solvers.solution import Solution, Status

if TYPE_CHECKING:
    from attop.base import AtTopClassifier
    from attop.formulations import Formulation

#: Rows of the kernel matrix looked at for negative eigenvalues.
_EIGENVALUE_ROWS = 256

_ADVICE = {
    Status.UNBOUNDED: "Use a finite C.",
    Status.MAX_ITER: "Use a larger max_iter or tol.",
    Status.MAX_TIME: "Use a larger max_time or tol.",
}


def final_status(gram: Gram, solution: Solution, support: NDArray[np.intp], tol: float) -> Status:
    """How the fit ended; the certificate has the last word."""
    if solution.status is Status.UNBOUNDED:
        return solution.status  # and |w|^2 is a difference of huge numbers, of any sign
    if (
        solution.status is Status.NOT_PSD
        or solution.certificate.indefinite
        or is_indefinite(gram, support)
    ):
        return Status.NOT_PSD
    if solution.certificate.certifies(tol):
        return Status.CONVERGED
    return Status.PRECISION if solution.status is Status.CONVERGED else solution.status


def advice(status: Status, solver: str) -> str:
    """What to do about a status, for a user of `solver`."""
    if status is Status.MAX_ITER and solver == "pairwise":
        return "Use a larger max_iter or tol, or more n_epochs in solver_options."
    if status in _ADVICE:
        return _ADVICE[status]
    # The others are limits of the method, or of the arithmetic with such features.
    if solver not in ("auto", DEFAULT_SOLVER):
        return f'Use solver="{DEFAULT_SOLVER}", scale the features, or use a larger tol.'
    return "Scale the features, or use a larger tol."


def warn_of_fit(
    name: str,
    estimator: AtTopClassifier,
    problem: Problem,
    certificate: Certificate,
    status: Status,
    zero: float,
) -> None:
    """Warn where the fit of `estimator`, called `name`, is not certified or comes to ``w = 0``.

    That has the primal value `zero`.
    """
    if status is Status.NOT_PSD:
        warn(
            f"{name}: {status}. The model may be far from the best one, and its duality gap "
            "does not tell; use a kernel that is positive semi-definite."
        )
        return
    tol = estimator.tol
    if status is not Status.CONVERGED:
        warn(
            f"{name} reached a relative duality gap of {certificate.gap:.1e}, not "
            f"tol={tol:g}: {status}. {advice(status, estimator.solver)}",
            ConvergenceWarning,
        )
    if relative_gap(zero, certificate.dual) <= tol:
        share = len(problem.positives) / len(problem.competitors)
        warn(
            f"The optimum of this {type(estimator).__name__} is w = 0, up to tol={tol:g}: all "
            f"samples get the same score. {why_zero(estimator.formulation, share)}"
        )


def why_zero(formulation: Formulation, share: float) -> str:
    """Why no model is better than ``w = 0``, and what to change.

    `share` is that of the positives among the competitors, if they compete.
    """
    if formulation.twin:
        return (
            "Its threshold is made of the top scores of all samples, the positives' own among "
            f"them, and tau is too small for the share of positives, {share:.3g}: raising "
            "their scores raises the threshold as much. Use a larger tau, or "
            f"{formulation.twin}, whose threshold is made of the scores of negatives only."
        )
    if "theta" in formulation.parameters:
        return "Its loss is worth less than any larger w. Use a larger C, or other features."
    if formulation.all_have_losses:
        return (
            "The classes overlap, and the larger one decides. Use class_weight='balanced', or a "
            "PatMatNP; a larger C helps only where they do not overlap everywhere."
        )
    return (
        "No w lifts the mean of the positives above the mean of the top negatives, or hardly. Use "
        "a larger K or tau (five times the rate aimed at is a good start) or PatMatNP, which "
        "stands overlapping classes, or other features; a larger C helps only where some w does."
    )


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that led here from outside this package: the one a user can change."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("attop."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def is_indefinite(gram: Gram, rows: NDArray[np.intp]) -> bool:
    """Whether some of `rows`, and of the others, prove that the kernel is not symmetric PSD.

    A principal submatrix with a negative eigenvalue is a proof; none among the rows looked
    at proves nothing.  Kernels known to be PSD are not looked at.
    """
    kernel = gram.kernel
    if kernel.definite:
        return False
    half = _EIGENVALUE_ROWS // 2
    rows = np.union1d(_spread(rows, half), _spread(np.arange(gram.n_samples), half))
    K = gram.block(rows, rows)
    # Entries stored in single precision may be off by its rounding.
    stored_in = gram.X.dtype if kernel.precomputed else np.float64
    tolerance = max(1e-8, len(rows) * np.finfo(stored_in).eps) * float(np.max(np.abs(K)))
    if np.max(np.abs(K - K.T)) > tolerance:
        return True
    return bool(np.linalg.eigvalsh(K)[0] < -tolerance * len(rows) ** 0.5)


def _spread(rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """At most `most` of `rows`, evenly spread."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]
