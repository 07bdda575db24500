"""The referee: primal value, dual value, feasibility and duality gap, in double precision.

Everything is computed anew from the dual variables and the samples, by plain kernel blocks in
float64.  A solver may offer approximate scores with proved bounds on their errors: rows that by
them cannot matter are left out, and nothing else is taken over from it.

Dual variables are those of one copy of each sample (`attop.problem`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._extended import ExtendedScores, is_affordable
from attop._scores import Scores
from attop._weights import of_rows, weighted, weighted_sum
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
    weights = problem.competitor_weights
    return problem.family.threshold(problem, competitors, weights, positives, overwrite=True)


def primal_value(
    problem: Problem,
    w_norm2: float,
    scores: NDArray[np.float64],
    threshold: float | None = None,
) -> float:
    """``|w|^2 / 2 + C sum_{positives} l(t - s_i)`` at the `scores` of all rows.

    With ``C = inf`` the value is infinite as soon as one loss is positive.
    """
    known = Known.all_of(problem, np.asarray(scores))
    if threshold is None:
        threshold = known.threshold(problem)
    return 0.5 * w_norm2 + _loss(problem, known, threshold)


def zero_value(problem: Problem) -> float:
    """Primal value of the model that gives every sample the score 0."""
    return primal_value(problem, 0.0, np.zeros(1 + int(np.max(problem.rows))))


def feasible_primal(problem: Problem, w_norm2: float, scores: NDArray[np.float64]) -> float:
    """Primal value of ``w``; with ``C = inf`` that of its least feasible multiple."""
    known = Known.all_of(problem, scores)
    return _feasible_primal(problem, w_norm2, known, known.threshold(problem))


def dual_value(
    problem: Problem, w_norm2: float, alpha: NDArray[np.floating], beta: NDArray[np.floating]
) -> float:
    """Dual value, the cap ``u`` of the betas taken at its best: ``max(beta)`` where priced."""
    terms = problem.betas
    value = problem.surrogate.dual_value(alpha, problem.C, problem.positive_weights)
    value -= 0.5 * w_norm2
    copies = weighted(beta, problem.competitor_weights)
    value += terms.linear * np.sum(copies)
    if terms.curvature:
        value -= 0.5 * terms.curvature * np.dot(copies, beta)
    if terms.price:
        value -= terms.price * max(0.0, np.max(beta))
    if terms.norm_price:
        value -= terms.norm_price * np.sqrt(np.dot(copies, beta))
    return float(value)


def infeasibility(
    problem: Problem, alpha: NDArray[np.floating], beta: NDArray[np.floating]
) -> float:
    """Largest violation of a constraint of the dual, relative to the size of its terms."""
    sum_alpha = weighted_sum(alpha, problem.positive_weights)
    sum_beta = weighted_sum(beta, problem.competitor_weights)
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
    problem: Problem,
    alpha: NDArray[np.floating],
    beta: NDArray[np.floating],
    n_samples: int | None = None,
) -> NDArray[Any]:
    """Coefficient of each row in ``w``: the alphas less the betas of all its copies."""
    n_samples = 1 + int(np.max(problem.rows)) if n_samples is None else n_samples
    coefficients = np.zeros(n_samples, dtype=alpha.dtype)
    coefficients[problem.positives] = weighted(alpha, problem.positive_weights)
    coefficients[problem.competitors] -= weighted(beta, problem.competitor_weights)
    return coefficients


def support(
    problem: Problem, alpha: NDArray[np.float64], beta: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The rows whose coefficient in ``w`` is not zero, and these coefficients."""
    coefficients = signed_coefficients(problem, alpha, beta)
    rows = np.flatnonzero(coefficients)
    return rows, coefficients[rows]


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
    known = Known.of(problem, exact)
    t = known.threshold(problem)
    primal = _feasible_primal(problem, w_norm2, known, t)
    del known  # as long as the samples, which may be many
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
    longer = alpha.astype(np.longdouble), beta.astype(np.longdouble)
    coefficients = signed_coefficients(problem, *longer, gram.n_samples)
    # Only weights, and rows of both sides, make coefficients that are no doubles.
    both = np.isin(problem.positives[alpha != 0.0], problem.competitors[beta != 0.0])
    rounded = bool(both.any() or np.any(problem.weights != 1.0))
    exact = ExtendedScores(gram, coefficients, double.rows, double.threshold, rounded)
    found = _certificate(problem, exact, *longer)
    return found._replace(
        threshold=found.threshold + double.threshold,
        scores=(found.scores + double.threshold).astype(np.float64),
    )


def _screen(problem: Problem, exact: Scores, hint: Hint) -> bool:
    """Compute the scores that can matter by the hint; False where it cannot be used.

    Thresholds are monotone in each score: those of the least scores that the error allows
    are not above the true ones.
    """
    family, weights = problem.family, problem.competitor_weights
    if not (family.monotone or family.free_threshold):
        return False
    if np.isinf(problem.C) and not _proportional(problem):
        return False  # the multiples of w that are looked at have thresholds of their own
    scores, error = hint(exact)
    exact.compute_support()
    low, high = exact.interval(scores, error)
    if not low <= high:
        return False
    if family.free_threshold:
        return _screen_by_loss(problem, exact, scores, error)
    least, most = scores + (low - error), scores + (high + error)
    competing, positives = least[problem.competitors], least[problem.positives]
    t = family.threshold(problem, competing, weights, positives)
    lowest = family.level(problem, competing, weights, t)
    exact.compute(problem.competitors[most[problem.competitors] >= lowest])
    if np.isinf(problem.C):
        highest = float(np.min(most[problem.positives]))
    else:
        highest = Known.of(problem, exact).threshold(problem) + 1.0
    exact.compute(problem.positives[least[problem.positives] <= highest])
    low, high = exact.interval(scores, error)
    return low <= high  # or else the bounds are wrong, and nothing may rest on them


def _screen_by_loss(
    problem: Problem, exact: Scores, scores: NDArray[np.float64], error: NDArray[np.float64]
) -> bool:
    """The same where the threshold is that of the least primal value.

    That is a convex function of the threshold.  Near the one of the approximate scores the samples
    left out add nothing to it: if it has a minimum there without them, it has it with them, too.
    """
    low, high = exact.interval(scores, error)
    near = threshold(problem, scores) + 0.5 * (low + high)
    slack = 0.5 * (high - low) + float(np.max(error[exact.support], initial=0.0))
    competing = scores[problem.competitors] + (high + error[problem.competitors])
    positive = scores[problem.positives] + (low - error[problem.positives])
    lowest = problem.family.level(problem, competing, problem.competitor_weights, near - slack)
    exact.compute(problem.competitors[competing >= lowest])
    exact.compute(problem.positives[positive <= near + slack + 1.0])
    low, high = exact.interval(scores, error)
    return low <= high and abs(Known.of(problem, exact).threshold(problem) - near) <= slack


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
    computed = problem.positives[exact.computed[problem.positives]]
    scores, off = exact.values[computed], exact.rounding(computed)
    of_competitors = 0.0
    if problem.family.free_threshold and np.isfinite(problem.C):
        # Any threshold would do, but the competitors have losses.
        of_competitors = _rounding_of_competitors(problem, exact, threshold)
    else:
        off += _rounding_of_threshold(problem, exact, beta)
    if np.isinf(problem.C):
        lowest = int(np.argmin(scores))
        share = off[lowest] / abs(float(scores[lowest]) - threshold or 1.0)
        losses = 2.0 * primal * float(share) if np.isfinite(primal) else 0.0
    else:
        loss = problem.surrogate.value
        losses_now = loss(threshold - scores)
        if losses_now.dtype != scores.dtype:  # computed in less precision than the scores
            off += 2.0**-52 * np.abs(threshold - scores).astype(np.float64)
        more = loss(threshold - scores + off) - losses_now
        weights = of_rows(problem.positive_weights, exact.computed[problem.positives])
        losses = problem.C * weighted_sum(more, weights)
    # Sums that are not quite equal are worth as much as the scores are.
    scores = exact.values[exact.support] + (exact.constant - exact.origin())
    largest = float(np.max(np.abs(scores), initial=0.0))
    sum_alpha = np.sum(weighted(alpha, problem.positive_weights))
    sum_beta = np.sum(weighted(beta, problem.competitor_weights))
    lacking = float(abs(sum_alpha - sum_beta)) * (largest + 1.0)
    return exact.rounding_of_norm() + losses + of_competitors + lacking


def _rounding_of_competitors(problem: Problem, exact: Scores, threshold: float) -> float:
    """How far the losses of the competitors themselves may be off."""
    known = exact.computed[problem.competitors]
    weights, rows = of_rows(problem.competitor_weights, known), problem.competitors[known]
    scores, value = exact.values[rows], problem.family.value
    off = exact.rounding(rows)
    off += exact.of_thresholds * np.abs(scores - threshold).astype(np.float64)
    high = value(problem, scores + off, weights, threshold)
    return high - value(problem, scores, weights, threshold)


def _rounding_of_threshold(problem: Problem, exact: Scores, beta: NDArray[np.floating]) -> float:
    """How far the threshold may be off: as far as the scores that it is made of, or may be."""
    rows = problem.competitors[exact.computed[problem.competitors]]
    top = problem.competitors[np.flatnonzero(beta)]
    if len(rows) == 0 or len(top) == 0:
        return 0.0
    level = float(np.min(exact.values[top] - exact.rounding(top)))
    off, scores = exact.rounding(rows), exact.values[rows]
    off += exact.of_thresholds * (np.abs(scores).astype(np.float64) + problem.betas.linear)
    return float(np.max(off, where=scores + off >= level, initial=0.0))


class Known(NamedTuple):
    """Scores and weights of competitors and positives: of all, or of those that were computed."""

    competitors: NDArray[np.float64]
    competitor_weights: NDArray[np.float64]
    positives: NDArray[np.float64]
    positive_weights: NDArray[np.float64]

    @classmethod
    def all_of(cls, problem: Problem, scores: NDArray[np.float64]) -> Known:
        """Those of all samples."""
        return cls(
            scores[problem.competitors],
            problem.competitor_weights,
            scores[problem.positives],
            problem.positive_weights,
        )

    @classmethod
    def of(cls, problem: Problem, exact: Scores) -> Known:
        """Those that were computed."""
        if exact.computed.all():
            return cls.all_of(problem, exact.values)
        competing = exact.computed[problem.competitors]
        positive = exact.computed[problem.positives]
        return cls(
            exact.values[problem.competitors[competing]],
            of_rows(problem.competitor_weights, competing),
            exact.values[problem.positives[positive]],
            of_rows(problem.positive_weights, positive),
        )

    def threshold(self, problem: Problem) -> float:
        """The threshold of the formulation at these scores."""
        return problem.family.threshold(
            problem,
            self.competitors,
            self.competitor_weights,
            self.positives,
            positive_weights=self.positive_weights,
        )


def _loss(problem: Problem, known: Known, threshold: float) -> float:
    """What is not ``|w|^2``, from scores of all samples or at least those that matter."""
    losses = problem.surrogate.value(threshold - known.positives)
    total = weighted_sum(losses, known.positive_weights)
    of_positives = problem.C * total if total > 0.0 else 0.0
    competitors, weights = known.competitors, known.competitor_weights
    return of_positives + problem.family.value(problem, competitors, weights, threshold)


def _feasible_primal(problem: Problem, w_norm2: float, known: Known, threshold: float) -> float:
    """Primal value from the scores that matter; see `feasible_primal`."""
    if np.isinf(problem.C):
        multiple = problem.family.least_multiple(
            problem, known.competitors, known.competitor_weights, known.positives
        )
        return 0.5 * w_norm2 * multiple**2 if np.isfinite(multiple) else np.inf
    return 0.5 * w_norm2 + _loss(problem, known, threshold)


def _relative(violation: float, scale: float) -> float:
    """`violation` relative to `scale`, 0 where nothing is violated."""
    if violation <= 0.0:
        return 0.0
    return float(violation / scale) if scale > 0.0 else np.inf
