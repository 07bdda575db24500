r"""TopPush with few features: some of Newton's steps, then an interior-point method.

Newton's steps soon tell which competitors have large scores, and then creep: which of these bear
the threshold is what the smoothing finds out one by one.  The interior-point method solves the
problem of these candidates, with all positives.  A pass over all samples judges its solution; where
other competitors are above, they become candidates.  Where it fails, by rounding, Newton's method
goes on from where it was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attop.objectives import dual_value, primal_value, relative_gap
from attop.problem import Problem
from attop.solvers.limits import Limits
from attop.solvers.primal import interior
from attop.solvers.primal.interior import Interior
from attop.solvers.primal.newton import Newton
from attop.solvers.primal.samples import Samples

Vector = NDArray[np.float64]

#: Newton's steps before, at least.  (TopPush, gap 1e-3, milliseconds of the processor with Newton's
#: steps alone, and from 8, 6, 5 and 4 of them on: w8a, lambda 1e-3, 163 and 78, 73, 72, 78, with
#: the quadratic hinge 238 and 73, 70, 63, 60; lambda 1e-5 440 and 478, and from 6 of them 96 and
#: 79; Covertype 442 and 275, 273, 265, 266.)
BEFORE = 5
#: Features at most; the matrices of more take longer than the passes.
FEATURES = 500
#: Share of the positives at most, which are all there: with the hinge, where most of them lie at
#: the bound and Newton's method leaves them out, and with the quadratic hinge.  (200,000 samples of
#: 100 features, lambda 1e-3 and 1e-5, seconds with Newton's steps alone and with both: 5 %
#: positives 0.45 and 0.34, 0.74 and 0.36, quadratic 0.59 and 0.30, 1.21 and 0.32; 30 % positives
#: 0.73 and 0.97, 0.79 and 1.11, quadratic 1.38 and 0.73, 1.60 and 0.78.)
FEW_POSITIVES, HALF = 0.125, 0.5
#: So many scores make candidates, or join them.  (6,000, 3,000, 2,000 and 1,000: w8a 142, 99, 83
#: and 72 milliseconds, celeba with the quadratic hinge, where more join, 57, 49, 55 and 147.)
#: While more than that bear the threshold Newton's method goes on, which does not creep there.
#: (a9a, 6,000 of them, takes 8 steps of it, 30 milliseconds, and 90 otherwise.)
AT_THE_TOP = 2000
#: The first candidates need not be solved to more than this gap, as others will join; later ones
#: are to this share of the tolerance.
ROUGHLY, WELL = 1e-2, 0.5
#: The gap of the candidates is looked at from where the products tell so many times what it
#: should be.
NEAR = 4.0
#: Sets of candidates, and steps for each.
SETS, STEPS = 12, 60


def suits(problem: Problem, samples: Samples) -> bool:
    """Whether it is of use here, and the candidates' samples no more than half of all."""
    at_most = FEW_POSITIVES if np.isfinite(problem.surrogate.steepest) else HALF
    few = problem.n_positives <= at_most * samples.n_samples
    return few and samples.n_features <= FEATURES and interior.suits(problem)


class Candidates:
    """Newton's method, and the interior-point method that takes over.

    Parameters
    ----------
    newton : Newton
        At its start.
    limits : Limits
        What both keep to.
    tol : float
        The gap that is asked for.
    """

    def __init__(self, newton: Newton, limits: Limits, tol: float):
        self.newton, self.limits, self.tol = newton, limits, tol
        self.problem, self.samples = newton.problem, newton.samples
        self.interior: Interior | None = None
        self.primal, self.dual = newton.primal, newton.dual
        self.best, self.best_gap = newton.best, newton.best_gap
        self._before, self._sets, self._failed = BEFORE, 0, False
        self._goal = max(ROUGHLY, WELL * tol)

    def advance(self) -> bool:
        """Make one step of either; False where Newton's help no more."""
        if self._newton_goes_on():
            newton = self.newton
            advanced = newton.advance()
            self.primal, self.dual = newton.primal, newton.dual
            if newton.best_gap < self.best_gap:
                self.best, self.best_gap = newton.best, newton.best_gap
            return advanced
        inner = self.interior or self._choose(_largest(self.newton.competing, AT_THE_TOP))
        self._steps += 1
        self._failed = not inner.advance() or self._steps > STEPS
        if not self._failed:
            self._look(inner)
        return True

    def _newton_goes_on(self) -> bool:
        """Whether Newton's step is next: at first, while many bear the threshold, and at last."""
        if self.interior is not None:
            return self._failed
        self._before -= 1
        bearing = int(np.count_nonzero(self.newton.point.threshold.slope))
        return self._before >= 0 or bearing > AT_THE_TOP

    def _choose(self, chosen: NDArray[np.intp]) -> Interior:
        """Begin with these candidates, places among the competitors."""
        problem = self.problem
        self.chosen, self._steps, self._sets = chosen, 0, self._sets + 1
        rows = np.concatenate([problem.positives, problem.competitors[chosen]])
        copies = [problem.positive_weights, problem.competitor_weights[chosen]]
        some = self.samples.take(rows)
        zero = self.newton.zero
        self.interior = Interior(problem, some, np.concatenate(copies), zero, self.limits)
        return self.interior

    def _look(self, inner: Interior) -> None:
        """Judge the point by the candidates, and where it is good among them, by all."""
        problem = self.problem
        value = self._value(float(inner.w @ inner.w), inner.t, inner.scores)
        if not inner.missing <= NEAR * self._goal * value:
            return
        alpha, some, w = inner.point()
        beta = np.zeros(len(problem.competitors))
        beta[self.chosen] = some
        norm2, scores = float(w @ w), inner.samples.scores(w)
        dual = dual_value(problem, norm2, alpha, beta)
        self._keep((alpha, beta), self.newton.zero, dual)  # no model is better than none
        highest = float(np.max(scores[inner.n :]))
        if not relative_gap(self._value(norm2, highest, scores), dual) <= self._goal:
            return
        of_all = self.samples.scores(w)
        self.primal, self.dual = primal_value(problem, norm2, of_all), dual
        self._keep((alpha, beta), self.primal, dual)
        if self.best_gap > self.tol:
            self._improve(of_all[problem.competitors], highest)

    def _value(self, norm2: float, t: float, scores: Vector) -> float:
        """The primal value where this is the threshold."""
        problem = self.problem
        losses = problem.surrogate.value(t - scores[: problem.n_positives])
        return 0.5 * norm2 + problem.C * float(problem.positive_weights @ losses)

    def _keep(self, point: tuple[Vector, Vector], primal: float, dual: float) -> None:
        """Keep a point that is better than the best."""
        gap = relative_gap(primal, dual)
        if gap < self.best_gap:
            self.best, self.best_gap = point, gap

    def _improve(self, competing: Vector, highest: float) -> None:
        """Go on with the candidates where no one is above them, and with others else."""
        well = WELL * self.tol
        if float(np.max(competing)) <= highest:
            self._failed = self._goal <= well
            self._goal = well
            return
        self._goal = well
        self._failed = self._sets >= SETS
        self._choose(np.union1d(self.chosen, _largest(competing, AT_THE_TOP)))


def _largest(scores: Vector, count: int) -> NDArray[np.intp]:
    """The places of the largest scores, in order."""
    if count >= len(scores):
        return np.arange(len(scores))
    return np.sort(np.argpartition(scores, len(scores) - count)[len(scores) - count :])
