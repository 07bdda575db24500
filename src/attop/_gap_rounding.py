"""What rounding may hide in a duality gap; :doc:`/theory/certificate` says why."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attop._scores import Scores
from attop._weights import of_rows, weighted, weighted_sum
from attop.problem import Problem


def rounding_of_gap(
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
    known = np.flatnonzero(exact.computed)
    every = len(known) == len(exact.computed)
    off_of = exact.rounding(known)
    if not every:
        off_of_known, off_of = off_of, np.zeros(len(exact.computed))
        off_of[known] = off_of_known
    positives = problem.positives
    computed = positives if every else positives[exact.computed[positives]]
    scores, off = exact.values[computed], off_of[computed]
    of_competitors = 0.0
    if problem.family.free_threshold and np.isfinite(problem.C):
        # Any threshold would do, but the competitors have losses.
        of_competitors = _rounding_of_competitors(problem, exact, threshold, off_of)
    else:
        off += _rounding_of_threshold(problem, exact, beta, off_of)
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
        weights = problem.positive_weights
        if not every:
            weights = of_rows(weights, exact.computed[positives])
        losses = problem.C * weighted_sum(more, weights)
    # Sums that are not quite equal are worth as much as the scores are.
    scores = exact.values[exact.support] + (exact.constant - exact.origin())
    largest = float(np.abs(scores).max(initial=0.0))
    sum_alpha = weighted(alpha, problem.positive_weights).sum()
    sum_beta = weighted(beta, problem.competitor_weights).sum()
    lacking = float(abs(sum_alpha - sum_beta)) * (largest + 1.0)
    return exact.rounding_of_norm() + losses + of_competitors + lacking


def _rounding_of_competitors(
    problem: Problem, exact: Scores, threshold: float, off_of: NDArray[np.float64]
) -> float:
    """How far the losses of the competitors themselves may be off."""
    known = exact.computed[problem.competitors]
    weights, rows = of_rows(problem.competitor_weights, known), problem.competitors[known]
    scores, value, off = exact.values[rows], problem.family.value, off_of[rows]
    off += exact.of_thresholds * np.abs(scores - threshold).astype(np.float64)
    high = value(problem, scores + off, weights, threshold)
    return high - value(problem, scores, weights, threshold)


def _rounding_of_threshold(
    problem: Problem, exact: Scores, beta: NDArray[np.floating], off_of: NDArray[np.float64]
) -> float:
    """How far the threshold may be off: as far as the scores that it is made of, or may be."""
    rows = problem.competitors[exact.computed[problem.competitors]]
    top = problem.competitors[np.flatnonzero(beta)]
    if len(rows) == 0 or len(top) == 0:
        return 0.0
    level = float(np.min(exact.values[top] - off_of[top]))
    off, scores = off_of[rows], exact.values[rows]
    off += exact.of_thresholds * (np.abs(scores).astype(np.float64) + problem.betas.linear)
    return float(np.max(off, where=scores + off >= level, initial=0.0))
