"""Where a fit begins, given the solution of a similar one.

The dual variables of another problem are a start for this one after two corrections.
Their common size: the solution shrinks with ``C``, and the best multiple of a dual point
has a closed form.  Their kind: when ``C`` or the threshold changes much, thousands of
competitors join or leave the cap, which the solver would do block by block; the scores of
the old model predict who they are.
"""

from __future__ import annotations

import math
from dataclasses import astuple
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from attop import objectives
from attop._weights import weighted_sum
from attop.families.base import Cap
from attop.problem import Problem
from attop.solvers.solution import Solution

Point = tuple[NDArray[np.float64], NDArray[np.float64]]

#: Variables that may change their kind before the start is predicted from scores: about
#: as many as the solver moves in one round.
FEW_CHANGES = 512
#: Relative distance to a bound that counts as being at it.
_AT_BOUND = 1e-9
#: How far the logarithm of the best scale is sought beyond where it should be.
_SLACK = 0.5


class Solved(NamedTuple):
    """A problem and its solution."""

    problem: Problem
    solution: Solution


def walking_order(problems: list[Problem]) -> list[int]:
    """The order of the fits: increasing C inside, all else outside.

    Small C has the most support vectors: their columns serve all fits that follow, and
    going up needs hardly any new ones.
    """

    def key(i: int) -> tuple[Any, ...]:
        problem = problems[i]
        return problem.surrogate.name, astuple(problem.family), problem.C

    return sorted(range(len(problems)), key=key)


def nearest(problem: Problem, solved: list[Solved]) -> Solved | None:
    """The solved problem most like this one; None where none can serve as its start."""
    usable = [s for s in solved if _comparable(s.problem, problem)]
    return min(usable, key=lambda s: _distance(s.problem, problem), default=None)


def _comparable(old: Problem, new: Problem) -> bool:
    return type(old.family) is type(new.family) and old.surrogate == new.surrogate


def _distance(old: Problem, new: Problem) -> float:
    """Factors by which the parameters differ, added on a logarithmic scale."""
    one, other = (math.log(min(max(C, 1e-12), 1e12)) for C in (old.C, new.C))  # may be infinite
    return abs(one - other) + old.family.distance(new.family)


def start_from(known: Solved, problem: Problem) -> Point:
    """A start for `problem` from the solution of another on the same rows.

    Where hardly any variable is expected to change its kind (zero, free, at its bound), the
    start is the best multiple of the known dual point; otherwise bounded variables follow
    the prediction and free ones keep their value.
    """
    solution = known.solution
    if not np.isfinite(problem.C) or len(problem.rows) <= FEW_CHANGES:
        return _multiple(problem, known)
    alpha, shares = _predicted(problem, known)
    alpha_free, beta_free = _free(known)
    changes = _n_changes(solution.alpha, alpha, alpha_free)
    changes += _n_changes(solution.beta, shares, beta_free)
    if changes <= FEW_CHANGES:
        return _multiple(problem, known)
    alpha = np.where(alpha_free, np.minimum(solution.alpha, problem.alpha_max), alpha)
    shares = np.where(beta_free, solution.beta / np.max(solution.beta), shares)
    return alpha, shares * (np.sum(alpha) / np.sum(shares))


def start_from_folds(folds: list[Solved], problem: Problem) -> Point:
    """A start from solutions on other rows: what most say of each, or the scores of the last one.

    The medians, in units of the bounds, which leave what is at a bound there.
    """
    n_rows = 1 + max(int(np.max(one.rows)) for one in (problem, *(old for old, _ in folds)))
    of_alphas, of_betas = (np.full((len(folds), n_rows), np.nan) for _ in range(2))
    caps = np.empty(len(folds))
    for i, (old, solution) in enumerate(folds):
        caps[i] = max(float(np.max(solution.beta)), 1e-300)
        of_alphas[i, old.positives] = solution.alpha / old.C
        of_betas[i, old.competitors] = solution.beta / caps[i]
    slopes, shares = _by_scores(problem, _scores(folds[-1].solution))
    alpha = problem.C * _medians(of_alphas[:, problem.positives], slopes)
    cap = float(np.median(caps)) * problem.C / folds[0].problem.C
    return alpha, cap * _medians(of_betas[:, problem.competitors], shares)


def _by_scores(problem: Problem, scores: NDArray[np.float64]) -> Point:
    """What scores say of alphas, in units of C, and of betas, in units of their cap if any."""
    t, competing = objectives.threshold(problem, scores), scores[problem.competitors]
    slopes = problem.surrogate.slope(t - scores[problem.positives])
    if problem.betas.cap is Cap.NONE:
        return slopes, np.zeros(len(competing))
    return slopes, problem.family.slopes(problem, competing, problem.competitor_weights, t)


def _medians(values: NDArray[np.float64], otherwise: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of the numbers in each column, and something else where there is none."""
    values[0] = np.where(np.isnan(values).all(axis=0), otherwise, values[0])
    medians: NDArray[np.float64] = np.nanmedian(values, axis=0)
    return medians


def _free(known: Solved) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which alphas and betas lie strictly between their bounds.

    Smooth terms have no bounds to be at: there the scores tell every variable, and none
    counts as free.
    """
    problem, solution = known
    alpha, beta = solution.alpha, solution.beta
    alpha_free = (alpha > 0.0) & (alpha < problem.alpha_max * (1.0 - _AT_BOUND))
    terms = problem.betas
    cap = min(terms.bound, np.inf if terms.cap is Cap.NONE else float(np.max(beta)))
    beta_free = (beta > 0.0) & (beta < cap * (1.0 - _AT_BOUND))
    smooth_betas = terms.norm_price > 0.0 or terms.curvature > 0.0
    return alpha_free & (problem.quadratic_alpha == 0.0), beta_free & (not smooth_betas)


def _predicted(problem: Problem, known: Solved) -> Point:
    """Alphas, and betas in units of their cap, by the scores of the best multiple of w.

    At the optimum ``alpha_i = C l'(t - s_i)``, and beta is proportional to
    ``l'(theta (s_j - t))`` or to the membership in the top K.
    """
    scores = _best_scale(problem, known) * _scores(known.solution)
    t = objectives.threshold(problem, scores)
    alpha = problem.C * problem.surrogate.slope(t - scores[problem.positives])
    competing, weights = scores[problem.competitors], problem.competitor_weights
    return alpha, problem.family.slopes(problem, competing, weights, t)


def _best_scale(problem: Problem, known: Solved) -> float:
    """The multiple of the known ``w`` with the least primal value, to a few percent."""
    solution = known.solution
    scores, w_norm2 = _scores(solution), solution.certificate.w_norm2

    def primal(log_scale: float) -> float:
        scale = np.exp(log_scale)
        return objectives.primal_value(problem, scale**2 * w_norm2, scale * scores)

    # Where only C differs, the scale is between 1 and the factor of C; else it may be anywhere.
    farthest = _SLACK + _distance(known.problem, problem)
    bounds = (-farthest, farthest) if problem.C == known.problem.C else (-_SLACK, farthest)
    if problem.C < known.problem.C:
        bounds = (-farthest, _SLACK)
    best = minimize_scalar(primal, bounds=bounds, method="bounded", options={"xatol": 0.02})
    return float(np.exp(best.x))


def _best_multiple(problem: Problem, solution: Solution) -> Point:
    """The multiple of a dual point with the largest dual value, clipped to the bounds.

    Along the ray the dual is ``r linear - r^2 quadratic / 2``.
    """
    alpha, beta, w_norm2 = solution.alpha, solution.beta, solution.certificate.w_norm2
    penalty = problem.quadratic_alpha * weighted_sum(alpha**2, problem.positive_weights)
    penalty += problem.betas.curvature * weighted_sum(beta**2, problem.competitor_weights)
    quadratic = w_norm2 + penalty
    linear = objectives.dual_value(problem, w_norm2, alpha, beta) + 0.5 * quadratic
    multiple = linear / quadratic if linear > 0.0 and quadratic > 0.0 else 1.0
    return np.minimum(multiple * alpha, problem.alpha_max), multiple * beta


def _multiple(problem: Problem, known: Solved) -> Point:
    """The same with enough betas: fewer than K would leave shares to all the other competitors."""
    alpha, beta = _best_multiple(problem, known.solution)
    terms, weights = problem.betas, problem.competitor_weights
    if terms.cap is Cap.TIED and np.sum(weights[beta > 0.0]) < terms.K:
        scores = _scores(known.solution)
        t = objectives.threshold(problem, scores)
        beta = problem.family.slopes(problem, scores[problem.competitors], weights, t)
        beta *= weighted_sum(alpha, problem.positive_weights) / weighted_sum(beta, weights)
    return alpha, beta


def _n_changes(old: NDArray[np.float64], new: NDArray[np.float64], free: NDArray[np.bool_]) -> int:
    """How many variables turn from zero to nonzero or back, free ones aside."""
    return int(np.count_nonzero(((old > 0.0) != (new > 0.0)) & ~free))


def _scores(solution: Solution) -> NDArray[np.float64]:
    assert solution.scores is not None  # the exact solver always has them
    return solution.scores
