"""The referee: primal value, dual value, feasibility and duality gap, in double precision.

Everything is computed anew from the dual variables and the samples, by plain kernel blocks in
float64.  A solver may offer approximate scores with proved bounds on their errors: rows that by
them cannot matter are left out, and nothing else is taken over from it.

Dual variables are those of one copy of each sample (`attop.problem`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._extended import ExtendedScores, is_affordable
from attop._gap_rounding import rounding_of_gap
from attop._known import Known
from attop._scores import GivenScores, Scores
from attop._screening import Hint, screen
from attop._weights import are_unit, of_rows, weighted, weighted_sum
from attop.families.base import Cap
from attop.kernels.functions import Gram
from attop.problem import Problem

#: Relative violation of a constraint that passes for rounding.
_FEASIBLE = 1e-8
#: Products of so many numbers take seconds: 11,000 support vectors of 784 features.
_COSTLY = 1e11


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
    threshold_off : float
        How far the scores at the threshold may be off, where they come from a solver.
    weights : ndarray of float64, optional
        The ``w`` of a linear model that the primal value is of, where others that differ by
        rounding may have another.
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
    threshold_off: float = 0.0
    weights: NDArray[np.float64] | None = None

    def certifies(self, tol: float) -> bool:
        """Whether the dual point is feasible up to rounding and its gap at most `tol`.

        The gap alone proves nothing: a point outside the constraints may exceed the optimum, and
        a gap below zero is arithmetic out of its range.
        """
        return -tol <= self.gap <= tol and self.infeasibility <= _FEASIBLE

    @property
    def resolution(self) -> float:
        """The least gap that it could have found, by its rounding."""
        if np.isinf(self.primal) and self.w_norm2 <= self.rounding:
            return np.inf  # whether a multiple of ``w`` is feasible is not to be told
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
    return value_of(problem, w_norm2, known, threshold)


def value_of(problem: Problem, w_norm2: float, known: Known, threshold: float) -> float:
    """The same from scores of all samples or at least those that matter."""
    return 0.5 * w_norm2 + _loss(problem, known, threshold)


def zero_threshold(problem: Problem) -> float:
    """The threshold where every sample has the score 0."""
    return _all_alike(problem).threshold(problem)


def zero_value(problem: Problem) -> float:
    """Primal value of the model that gives every sample the score 0."""
    return _loss(problem, _all_alike(problem), zero_threshold(problem))


def certificate_of_zero(problem: Problem, certificate: Certificate) -> Certificate:
    """What the dual value of a certificate says about ``w = 0``."""
    value = zero_value(problem)
    return certificate._replace(
        primal=value,
        gap=relative_gap(value, certificate.dual, certificate.rounding),
        threshold=zero_threshold(problem),
        w_norm2=0.0,
        scores=np.zeros_like(certificate.scores),
    )


def _all_alike(problem: Problem) -> Known:
    """The score 0 for everybody: all competitors, and all positives, are copies of one."""
    copies = [
        np.array([_copies(weights)])
        for weights in (problem.competitor_weights, problem.positive_weights)
    ]
    return Known(np.zeros(1), copies[0], np.zeros(1), copies[1])


def _copies(weights: NDArray[np.float64]) -> float:
    """How many copies there are."""
    return float(len(weights) if are_unit(weights) else weights.sum())


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
        value -= 0.5 * np.dot(copies, terms.curvature * beta)
    if terms.price:
        value -= terms.price * max(0.0, np.max(beta))
    largest = np.max(beta, initial=0.0)
    if terms.norm_price and largest > 0.0:  # in its unit, as squares of tiny numbers are zero
        norm = largest * np.sqrt(np.dot(copies / largest, beta / largest))
        value -= terms.norm_price * norm
    return float(value)


def infeasibility(
    problem: Problem, alpha: NDArray[np.floating], beta: NDArray[np.floating]
) -> float:
    """Largest violation of a constraint of the dual, relative to the size of its terms."""
    sum_alpha = weighted_sum(alpha, problem.positive_weights)
    sum_beta = weighted_sum(beta, problem.competitor_weights)
    violations = [
        (abs(sum_alpha - sum_beta), max(sum_alpha, sum_beta)),
        (-alpha.min(), largest_alpha := alpha.max()),
        (-beta.min(), largest_beta := beta.max()),
    ]
    if np.isfinite(problem.alpha_max):
        violations.append((largest_alpha - problem.alpha_max, problem.alpha_max))
    terms = problem.betas
    if np.isfinite(terms.bound):
        violations.append((largest_beta - terms.bound, terms.bound))
    if terms.cap is Cap.TIED:
        cap = sum_alpha / terms.K
        violations.append((largest_beta - cap, cap))
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
    give_up: bool = False,
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
        certificate.  Rows that by them cannot matter are left out; and where exact scores of
        the support would take long, the approximate ones may do, with what they may be off by
        as a part of the gap.

    Returns
    -------
    Certificate
    """
    alpha, beta = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
    exact = Scores(gram, *support(problem, alpha, beta))
    hint = None if hint is None else _once(hint)
    if hint is not None and tol is not None and _is_costly(exact):
        found = certificate_of(problem, GivenScores(exact, *hint(exact)), alpha, beta)
        if found is not None and found.certifies(tol):
            return found
    if give_up and tol is not None and hint is not None:
        hint(exact)  # which may compute the scores of the support on its way
        shown = _shown_by_support(problem, exact, alpha, beta)
        # Rounding must not be what it rests on.
        if shown is not None and shown.gap - 2.0 * shown.resolution > tol > 2.0 * shown.resolution:
            return shown
    if hint is None or not screen(problem, exact, hint):
        exact.compute(np.arange(gram.n_samples))
    certificate = _certificate(problem, exact, alpha, beta)
    if tol is None or certificate.certifies(tol) or certificate.resolution <= 0.5 * tol:
        return certificate
    if not is_affordable(gram, len(certificate.rows), len(exact.support)):
        return certificate
    return _extended_certificate(problem, gram, alpha, beta, certificate)


def _once(hint: Hint) -> Hint:
    """The hint, asked for no more than once."""
    found: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []

    def known(exact: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if not found:
            found.append(hint(exact))
        return found[0]

    return known


def _shown_by_support(
    problem: Problem, exact: Scores, alpha: NDArray[np.float64], beta: NDArray[np.float64]
) -> Certificate | None:
    """What the scores of the support alone say, a lower bound of the primal value and of the gap.

    Thresholds are monotone in each score, and without the other competitors none is larger; the
    losses of other positives are not negative.  None where that is not so.
    """
    family, on_support = problem.family, np.zeros(exact.gram.n_samples, dtype=bool)
    on_support[exact.support] = True
    known = on_support[problem.competitors]
    copies = float(np.sum(of_rows(problem.competitor_weights, known)))
    if not family.monotone or family.free_threshold or np.isinf(problem.C):
        return None
    if not (copies >= max(problem.betas.K, 1) and on_support[problem.positives].any()):
        return None
    exact.compute_support()
    return _certificate(problem, exact, alpha, beta)


def _is_costly(exact: Scores) -> bool:
    """Whether the scores of the support alone take seconds in double precision."""
    return len(exact.support) ** 2 * exact.gram.X.shape[1] > _COSTLY


def certificate_of(
    problem: Problem, given: GivenScores, alpha: NDArray[np.float64], beta: NDArray[np.float64]
) -> Certificate | None:
    """The certificate from given scores: what they may be off by is part of its gap.

    None where exact scores contradict the given ones.
    """
    if not given.consistent:
        return None
    found = _certificate(problem, given, alpha, beta)
    near = np.abs(given.values - found.threshold) <= given.errors
    return found._replace(threshold_off=float(np.max(given.errors, where=near, initial=0.0)))


def _certificate(
    problem: Problem, exact: Scores, alpha: NDArray[np.floating], beta: NDArray[np.floating]
) -> Certificate:
    """The certificate from the scores that matter."""
    w_norm2 = exact.w_norm2()
    known = Known.of(problem, exact)
    t = known.threshold(problem)
    # With C infinite no multiple of a ``w`` that may be 0 is known to be feasible.
    unknown = np.isinf(problem.C) and w_norm2 <= exact.rounding_of_norm()
    primal = np.inf if unknown else _feasible_primal(problem, w_norm2, known, t)
    del known  # as long as the samples, which may be many
    dual = dual_value(problem, w_norm2, alpha, beta)
    rounding = rounding_of_gap(problem, exact, alpha, beta, t, primal)
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
        weights=exact.model_weights,
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
        if w_norm2 <= 0.0:  # and so is every multiple, of which none is feasible
            return np.inf
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
