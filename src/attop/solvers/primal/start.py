"""Where Newton's method begins with many samples of few features: near the optimum of some.

With so many samples for each weight, a share of them tells the weights well; steps on it cost as
much less as it is smaller.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from attop._weights import of_rows
from attop.problem import Problem
from attop.smooth import Opponents, SmoothLoss
from attop.solvers.limits import Limits
from attop.solvers.primal.newton import Newton
from attop.solvers.primal.samples import Samples

Vector = NDArray[np.float64]

#: From so many samples for each feature on a part of them comes first.  (Seconds of the processor
#: at lambda 1e-3, with and without: Covertype, SVM 0.11 and 0.23, TauFPL(0.05) 0.20 and 0.28,
#: TopPush 0.50 and 0.36; donors, SVM 0.62 and 0.82; celeba, 5,000 for each feature, no better.)
MANY = 10_000
#: One in so many of each class, but of the smaller class at least so many.
SHARE, AT_LEAST = 8, 500
#: To which gap they are solved, in how many steps at most.
ROUGHLY, STEPS = 1e-2, 60


def suits(problem: Problem, samples: Samples) -> bool:
    """Whether there are samples enough."""
    return samples.n_samples >= MANY * samples.n_features


def from_a_part(
    problem: Problem, samples: Samples, limits: Limits, tol: float
) -> tuple[Vector, Vector, Vector, float]:
    """Weights near the optimum, slopes of loss and threshold there, and the width they have."""
    rows = _some(problem, samples.n_samples)
    part = _part_of(problem, rows)
    nothing = np.zeros(part.n_positives), np.zeros(len(part.rows) - part.n_positives)
    newton = Newton(part, samples.take(rows), *nothing, limits, max(tol, ROUGHLY))
    for _ in range(STEPS):
        if newton.best_gap <= ROUGHLY or limits.out_of_time() or not newton.advance():
            break
    return newton.w, *_slopes(problem, samples.scores(newton.w), newton), newton.width


def _some(problem: Problem, n_samples: int) -> NDArray[np.intp]:
    """Rows of the same share of each class."""
    is_positive, there = np.zeros(n_samples, dtype=bool), np.zeros(n_samples, dtype=bool)
    is_positive[problem.positives] = True
    there[problem.rows] = True
    classes = np.flatnonzero(is_positive), np.flatnonzero(there & ~is_positive)
    share = min(1.0, max(1.0 / SHARE, AT_LEAST / max(1, min(map(len, classes)))))
    rng = np.random.default_rng(0)
    chosen = [rng.permutation(rows)[: math.ceil(share * len(rows))] for rows in classes]
    return np.sort(np.concatenate(chosen))


def _part_of(problem: Problem, rows: NDArray[np.intp]) -> Problem:
    """The problem of some rows, numbered anew, whose optimum is about the same."""
    place = np.full(1 + int(np.max(problem.rows)), -1, dtype=np.intp)
    place[rows] = np.arange(len(rows))
    places = place[problem.rows]
    chosen = places >= 0
    weights = of_rows(problem.weights, chosen)
    n_positives = int(np.count_nonzero(chosen[: problem.n_positives]))
    of_positives = float(np.sum(weights[:n_positives]))
    copies = float(np.sum(weights[n_positives:]))
    share = copies / float(np.sum(problem.competitor_weights))
    return problem._replace(
        rows=places[chosen],
        n_positives=n_positives,
        weights=weights,
        C=problem.C * float(np.sum(problem.positive_weights)) / of_positives,
        family=problem.family.subsampled(share, copies),
    )


def _slopes(problem: Problem, scores: Vector, newton: Newton) -> tuple[Vector, Vector]:
    """Slopes of all at these scores, as smooth as those of the part are."""
    positives, competitors = scores[problem.positives], scores[problem.competitors]
    half, nothing = np.full(len(positives), 0.5), np.zeros(len(competitors))
    opponents = Opponents(
        positives, np.ascontiguousarray(problem.positive_weights), newton.loss_width, half
    )
    weights = np.ascontiguousarray(problem.competitor_weights)
    width = newton.width * newton.wide
    t = problem.family.smooth_threshold(
        problem, competitors, weights, width, nothing, None, opponents
    )
    loss = SmoothLoss(problem.surrogate, newton.loss_width, half)
    return loss.slope(t.value - positives), t.slope
