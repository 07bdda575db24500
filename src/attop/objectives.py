"""The referee: primal value, dual value, feasibility and duality gap, in double precision.

Everything is computed anew from the dual variables and the samples, by plain kernel blocks in
float64.  A solver may offer approximate scores with proved bounds on their errors: rows that by
them cannot matter are left out, and nothing else is taken over from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._extended import ExtendedScores, is_affordable
from attop._scores import Scores
from attop.families.base import Cap
from attop.kernels.functions import Gram
from attop.problem import Problem

#: Relative violation of a constraint that passes for rounding.
_FEASIBLE = 1e-8

#: What a solver knows of the scores of all rows: approximations, up to a constant common to all,
#: and a bound on the error of each.  It may compute exact ones to find out.
Hint = Callable[[Scores], tuple[NDArray[np.float64], NDArray[np.float64]]]


class Certificate(NamedTuple):
    """What the dual variables are worth.

    Attributes
    ----------
    primal, dual : float
        Primal value of ``w`` (for ``C = inf`` of the least multiple of ``w`` that is
        feasible, ``inf`` if there is none) and dual value.
    gap : float
        ``(primal - dual + rounding) / max(|primal|, |dual|)``.
    rounding : float
        What ``primal - dual`` may be off by the rounding of double precision.
    threshold : float
        The threshold of the scores of ``w``.
    w_norm2 : float
        ``|w|^2``.
    infeasibility : float
        Largest relative violation of a constraint of the dual.
    rows : ndarray of intp
        Rows whose scores were computed: all of them, unless hints allowed fewer.
    scores : ndarray of float64
        Scores of `rows`.
    """

    primal: float
    dual: float
    gap: float
    rounding: float
    threshold: float
    w_norm2: float
    infeasibility: float
    rows: NDArray[np.intp]
    scores: NDArray[np.float64]

    def certifies(self, tol: float) -> bool:
        """Whether the dual point is feasible up to rounding and its gap at most `tol`.

        The gap alone proves nothing: a point outside the constraints may exceed the optimum.
        """
        return self.gap <= tol and self.infeasibility <= _FEASIBLE

    @property
    def resolution(self) -> float:
        """The least gap that it could have found, by its rounding."""
        scale = max(abs(self.primal), abs(self.dual))
        return self.rounding / scale if np.isfinite(scale) and scale > 0.0 else 0.0

    @property
    def indefinite(self) -> bool:
        """Whether ``|w|^2`` is negative beyond rounding: the kernel is not PSD.

        The gap does not tell.  By Fenchel's inequality it is a sum of non-negative terms
        at every feasible point, whatever the kernel.
        """
        scale = max(abs(self.primal), abs(self.dual))
        return self.w_norm2 < -1e-8 * (scale if np.isfinite(scale) else abs(self.dual))


def threshold(problem: Problem, scores: NDArray[np.float64]) -> float:
    """Threshold of the formulation at `scores`, the scores of all rows."""
    scores = np.asarray(scores)
    competitors, positives = scores[problem.competitors], scores[problem.positives]
    return problem.family.threshold(problem, competitors, positives, overwrite=True)


def primal_value(
    problem: Problem,
    w_norm2: float,
    scores: NDArray[np.float64],
    threshold: float | None = None,
) -> float:
    """``|w|^2 / 2 + C sum_{positives} l(t - s_i)`` at the `scores` of all rows.

    With ``C = inf`` the value is infinite as soon as one loss is positive.
    """
    scores = np.asarray(scores)
    competitors, positives = scores[problem.competitors], scores[problem.positives]
    if threshold is None:
        threshold = problem.family.threshold(problem, competitors, positives)
    return 0.5 * w_norm2 + _loss(problem, competitors, positives, threshold)


def zero_value(problem: Problem) -> float:
    """Primal value of the model that gives every sample the score 0."""
    return primal_value(problem, 0.0, np.zeros(1 + int(np.max(problem.rows))))


def feasible_primal(problem: Problem, w_norm2: float, scores: NDArray[np.float64]) -> float:
    """Primal value of ``w``; with ``C = inf`` that of its least feasible multiple."""
    competitors, positives = scores[problem.competitors], scores[problem.positives]
    t = problem.family.threshold(problem, competitors, positives)
    return _feasible_primal(problem, w_norm2, competitors, positives, t)


def dual_value(
    problem: Problem, w_norm2: float, alpha: NDArray[np.floating], beta: NDArray[np.floating]
) -> float:
    """Dual value, the cap ``u`` of the betas taken at its best: ``max(beta)`` where priced."""
    terms = problem.betas
    value = problem.surrogate.dual_value(alpha, problem.C) - 0.5 * w_norm2
    value += terms.linear * np.sum(beta)
    if terms.curvature:
        value -= 0.5 * terms.curvature * np.dot(beta, beta)
    if terms.price:
        value -= terms.price * max(0.0, np.max(beta))
    if terms.norm_price:
        value -= terms.norm_price * np.linalg.norm(beta)
    return float(value)


def infeasibility(
    problem: Problem, alpha: NDArray[np.floating], beta: NDArray[np.floating]
) -> float:
    """Largest violation of a constraint of the dual, relative to the size of its terms."""
    sum_alpha, sum_beta = float(np.sum(alpha)), float(np.sum(beta))
    violations = [
        (abs(sum_alpha - sum_beta), max(sum_alpha, sum_beta)),
        (-np.min(alpha), np.max(alpha)),
        (-np.min(beta), np.max(beta)),
    ]
    if np.isfinite(problem.alpha_max):
        violations.append((np.max(alpha) - problem.alpha_max, problem.alpha_max))
    terms = problem.betas
    if np.isfinite(terms.bound):
        violations.append((np.max(beta) - terms.bound, terms.bound))
    if terms.cap is Cap.TIED:
        cap = sum_alpha / terms.K
        violations.append((np.max(beta) - cap, cap))
    return max(_relative(violation, scale) for violation, scale in violations)


def relative_gap(primal: float, dual: float, rounding: float = 0.0) -> float:
    """``(primal - dual + rounding) / max(|primal|, |dual|)``; infinite where either is."""
    if not (np.isfinite(primal) and np.isfinite(dual)):
        return float("inf")
    scale = max(abs(primal), abs(dual))
    return (primal - dual + rounding) / scale if scale > 0.0 else 0.0


def signed_coefficients(
    problem: Problem, alpha: NDArray[np.float64], beta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Coefficient of each row in ``w``: its alpha less its beta."""
    coefficients = np.zeros(1 + max(np.max(problem.positives), np.max(problem.competitors)))
    coefficients[problem.positives] = alpha
    coefficients[problem.competitors] -= beta
    return coefficients


def support(
    problem: Problem, alpha: NDArray[np.float64], beta: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The rows whose coefficient in ``w`` is not zero, and these coefficients."""
    alphas, betas = np.flatnonzero(alpha), np.flatnonzero(beta)
    rows, place = np.unique(
        np.concatenate([problem.positives[alphas], problem.competitors[betas]]),
        return_inverse=True,
    )
    # Positives may compete as well: the two variables of one row add up.
    signed = np.concatenate([alpha[alphas], -beta[betas]])
    coefficients = np.bincount(place, weights=signed, minlength=len(rows))
    nonzero = coefficients != 0.0
    return rows[nonzero], coefficients[nonzero]


def certify(
    problem: Problem,
    gram: Gram,
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    *,
    tol: float | None = None,
    hint: Hint | None = None,
) -> Certificate:
    """Primal value, dual value, feasibility and gap of a dual point, from scratch.

    Parameters
    ----------
    problem : Problem
        The dual problem.
    gram : Gram
        Its kernel matrix.
    alpha, beta : ndarray of float64
        The dual point.
    tol : float, optional
        Where double precision is too coarse for this gap, extended precision decides, if the
        machine has it and the problem is not too large for it.
    hint : callable, optional
        Gives approximate scores with bounds on their errors, once it has the `Scores` of the
        certificate.  Rows that by them cannot matter are left out.

    Returns
    -------
    Certificate
    """
    alpha, beta = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
    exact = Scores(gram, *support(problem, alpha, beta))
    if hint is None or not _screen(problem, exact, hint):
        exact.compute(np.arange(gram.n_samples))
    certificate = _certificate(problem, exact, alpha, beta)
    if tol is None or certificate.certifies(tol) or certificate.resolution <= 0.5 * tol:
        return certificate
    if not is_affordable(gram, len(certificate.rows), len(exact.support)):
        return certificate
    return _extended_certificate(problem, gram, alpha, beta, certificate)


def _certificate(
    problem: Problem, exact: Scores, alpha: NDArray[np.floating], beta: NDArray[np.floating]
) -> Certificate:
    """The certificate from the scores that matter."""
    w_norm2 = exact.w_norm2()
    competitors = exact.known(problem.competitors)
    positives = exact.known(problem.positives)
    t = problem.family.threshold(problem, competitors, positives)
    primal = _feasible_primal(problem, w_norm2, competitors, positives, t)
    del competitors, positives  # as long as the samples, which may be many
    dual = dual_value(problem, w_norm2, alpha, beta)
    rounding = _rounding(problem, exact, alpha, beta, t, primal)
    rows = np.flatnonzero(exact.computed)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=relative_gap(primal, dual, rounding),
        rounding=rounding,
        threshold=t,
        w_norm2=w_norm2,
        infeasibility=infeasibility(problem, alpha, beta),
        rows=rows,
        scores=exact.values if len(rows) == len(exact.values) else exact.values[rows],
    )


def _extended_certificate(
    problem: Problem,
    gram: Gram,
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    double: Certificate,
) -> Certificate:
    """The certificate in extended precision, from the rows that matter in the `double` one."""
    coefficients = np.zeros(gram.n_samples, dtype=np.longdouble)
    coefficients[problem.positives] = alpha
    coefficients[problem.competitors] -= beta
    exact = ExtendedScores(gram, coefficients, double.rows, double.threshold)
    longer = alpha.astype(np.longdouble), beta.astype(np.longdouble)
    found = _certificate(problem, exact, *longer)
    return found._replace(
        threshold=found.threshold + double.threshold, scores=found.scores + double.threshold
    )


def _screen(problem: Problem, exact: Scores, hint: Hint) -> bool:
    """Compute the scores that can matter by the hint; False where it cannot be used.

    Thresholds are monotone in each score: those of the least scores that the error allows
    are not above the true ones.
    """
    family, known = problem.family, exact.known
    if not family.monotone or (np.isinf(problem.C) and not _proportional(problem)):
        return False  # or the multiples of w that are looked at have thresholds of their own
    scores, error = hint(exact)
    exact.compute_support()
    low, high = exact.interval(scores, error)
    if not low <= high:
        return False
    least, most = scores + (low - error), scores + (high + error)
    competing, positives = least[problem.competitors], least[problem.positives]
    lowest = family.level(problem, competing, family.threshold(problem, competing, positives))
    exact.compute(problem.competitors[most[problem.competitors] >= lowest])
    if np.isinf(problem.C):
        highest = float(np.min(most[problem.positives]))
    else:
        highest = family.threshold(problem, known(problem.competitors), positives) + 1.0
    exact.compute(problem.positives[least[problem.positives] <= highest])
    low, high = exact.interval(scores, error)
    return low <= high  # or else the bounds are wrong, and nothing may rest on them


def _proportional(problem: Problem) -> bool:
    """Whether the threshold is that many times as large for a multiple of ``w``."""
    return problem.betas.linear == 0.0


def _rounding(
    problem: Problem,
    exact: Scores,
    alpha: NDArray[np.floating],
    beta: NDArray[np.floating],
    threshold: float,
    primal: float,
) -> float:
    """What the difference of primal and dual value may be off by the rounding of float64.

    The scores of samples far out, or of kernels with large entries, cancel.
    """
    at_threshold = _rounding_of_threshold(problem, exact, beta)
    computed = problem.positives[exact.computed[problem.positives]]
    scores = exact.values[computed]
    off = exact.rounding(computed) + at_threshold
    if np.isinf(problem.C):
        lowest = int(np.argmin(scores))
        share = off[lowest] / abs(float(scores[lowest]) - threshold or 1.0)
        losses = 2.0 * primal * float(share) if np.isfinite(primal) else 0.0
    else:
        loss = problem.surrogate.value
        more = loss(threshold - scores + off) - loss(threshold - scores)
        losses = problem.C * float(np.sum(more))
    # Sums that are not quite equal are worth as much as the scores are.
    largest = float(np.max(np.abs(exact.values[exact.support] + exact.constant), initial=0.0))
    lacking = float(abs(np.sum(alpha) - np.sum(beta))) * (largest + 1.0)
    return exact.rounding_of_norm() + losses + lacking


def _rounding_of_threshold(problem: Problem, exact: Scores, beta: NDArray[np.floating]) -> float:
    """How far the threshold may be off: as far as the scores that it is made of, or may be."""
    rows = problem.competitors[exact.computed[problem.competitors]]
    top = problem.competitors[np.flatnonzero(beta)]
    if len(rows) == 0 or len(top) == 0:
        return 0.0
    off = exact.rounding(rows)
    level = float(np.min(exact.values[top] - exact.rounding(top)))
    return float(np.max(off, where=exact.values[rows] + off >= level, initial=0.0))


def _loss(
    problem: Problem,
    competitors: NDArray[np.float64],
    positives: NDArray[np.float64],
    threshold: float,
) -> float:
    """What is not ``|w|^2``, from scores of all samples or at least those that matter."""
    total = float(np.sum(problem.surrogate.value(threshold - positives)))
    of_positives = problem.C * total if total > 0.0 else 0.0
    return of_positives + problem.family.value(problem, competitors, threshold)


def _feasible_primal(
    problem: Problem,
    w_norm2: float,
    competitors: NDArray[np.float64],
    positives: NDArray[np.float64],
    threshold: float,
) -> float:
    """Primal value from the scores that matter; see `feasible_primal`."""
    if np.isinf(problem.C):
        multiple = problem.family.least_multiple(problem, competitors, positives)
        return 0.5 * w_norm2 * multiple**2 if np.isfinite(multiple) else np.inf
    return 0.5 * w_norm2 + _loss(problem, competitors, positives, threshold)


def _relative(violation: float, scale: float) -> float:
    """`violation` relative to `scale`, 0 where nothing is violated."""
    if violation <= 0.0:
        return 0.0
    return float(violation / scale) if scale > 0.0 else np.inf
