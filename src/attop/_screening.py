"""Which scores the certificate of a dual point needs: rows leave by a proved bound only.

:doc:`/theory/certificate` has the proofs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from attop._known import Known
from attop._scores import Scores
from attop.problem import Problem

#: What a solver knows of the scores of all rows: approximations, up to a constant common to all,
#: and a bound on the error of each.  It may compute exact ones to find out.
Hint = Callable[[Scores], tuple[NDArray[np.float64], NDArray[np.float64]]]


def screen(problem: Problem, exact: Scores, hint: Hint) -> bool:
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
    near = Known.all_of(problem, scores).threshold(problem) + 0.5 * (low + high)
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
