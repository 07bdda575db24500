r"""Newton's method on the smooth primal, smoothed near better and better slopes.

Each smooth problem is solved until its gradient is no longer what the gap consists of; its
slopes are then given to the next smoothing.  In terms of the dual this is the proximal point
method, which converges without the smoothing becoming small (an augmented Lagrangian method
with a semi-smooth Newton method inside).

With :math:`\alpha` and :math:`p` the slopes of the loss and of the threshold
(`attop.smooth`), and :math:`g = \sum p_j x_j`, the gradient and the Hessian
are

.. math::

    w - \sum \alpha_i (x_i - g), \qquad
    I + C \sum l''_i (x_i - g)(x_i - g)^T + \sum_i \alpha_i \; \nabla^2 t .

Only samples within the width of a kink enter the Hessian.  It is factorised where there are few
features, and else only multiplied with vectors, by conjugate gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._known import Known
from attop._weights import of_rows
from attop.families.base import Cap
from attop.objectives import dual_value, primal_value, relative_gap, value_of, zero_value
from attop.problem import Problem
from attop.smooth import Opponents, SmoothLoss, SmoothThreshold
from attop.solvers.limits import Limits
from attop.solvers.primal.samples import Samples
from attop.solvers.primal.steps import DIRECT_UP_TO, Curved, line_search, newton_direction

Vector = NDArray[np.float64]

#: The smoothing is over the whole margin at first ...
FIRST_WIDTH = 1.0
#: (or over this share of it where C times the spread of the samples, which is by how much scores
#: may differ, is no more than `MILD`.  Milliseconds with the whole and with 0.3 of it: a made text
#: of 10,000 samples, lambda 1e-2, TopPush 46 and 35, PatMatNP 31 and 14, SVM 35 and 22; a9a, PatMat
#: 42 and 25, SVM 33 and 25; where it is 0.6, w8a at 1e-2, TopPushK(5) 107 and 123.  Fewer samples
#: than `MANY` take no time, and two of one copy are to lead where one of two copies does) ...
MILD, NARROW, MANY = 0.5, 0.3, 2048
#: (that of the threshold is wider by the root of this share of the competitors over K, since few
#: slopes that sum up to K are hardly smoothed by as little: TopPush on 6,500 samples of w8a, lambda
#: 1e-2, 1e-3 and 1e-5, took 42, 66 and 254 steps, and 112, 193 and more than 400 without; by this
#: share itself where there are so many features that samples are nearly orthogonal: TopPush on a
#: text of 100,000 samples, 1e-3, takes 0.8 s of the processor with the hinge and 1.1 with its
#: square, and by the root 2.2 and 3.5; on w8a it would take 0.4 for 0.2) ...
WIDE = 0.05
#: ... and shrinks by this factor ...
SHRINK = 0.7
#: ... where the gap has not fallen to this share of what it was ...
SLOW = 0.5
#: ... down to where rounding would decide.
SMALLEST_WIDTH = 1e-9
#: A smooth problem is solved where its gap, |gradient|^2 / 2, is this share of the penalty.
SOLVED = 0.5
#: The loss gets wider in proportion where C times the spread of the samples is larger than
#: this: its curvature would leave no digits to the rest.  (400 random problems with C from 1e-4
#: to 1e6 and features from 1e-6 to 1e6: 94 % converge, 85 % without.)
STEEP = 1e4
#: Where the tolerance is not near yet, the model of a dual point is judged, which costs a pass, if
#: the gap seems to have fallen to this share since.
WORTH_A_PASS = 0.5
#: The gap has to halve once in so many steps.
IDLE_STEPS = 100


@dataclass(frozen=True)
class _Smooth:
    """Derivatives of the smooth objective by the scores of one copy each, at one point."""

    threshold: SmoothThreshold
    alpha: Vector
    total: float
    loss: SmoothLoss
    arguments: Vector

    @property
    def bend(self) -> Vector:
        """Second derivatives of the losses."""
        return self.loss.curvature(self.arguments)

    @property
    def beta(self) -> Vector:
        """The betas of the dual point."""
        slopes = self.threshold.slope
        # A threshold that is free may leave nobody a loss.
        there = self.total > 0.0 and self.threshold.total > 0.0
        return (self.total / self.threshold.total) * slopes if there else 0.0 * slopes


class _Competitors(NamedTuple):
    """Some competitors, or all."""

    scores: Vector
    copies: Vector
    given: Vector


class Newton:
    """The present weights of Newton's method, and the dual point that belongs to them.

    Parameters
    ----------
    problem : Problem
        A convex problem with a finite C.
    samples : Samples
        Its samples.
    alpha, beta : ndarray
        A point of the dual; the method begins near its slopes.
    limits : Limits
        A step that takes longer than that is given up.
    tol : float
        The gap that is asked for.
    near : (w, slopes of the loss, slopes of the threshold, width), optional
        Where to begin instead.
    """

    def __init__(
        self,
        problem: Problem,
        samples: Samples,
        alpha: Vector,
        beta: Vector,
        limits: Limits,
        tol: float,
        near: tuple[Vector, Vector, Vector, float] | None = None,
    ):
        self.problem, self.samples, self.limits = problem, samples, limits
        # Contiguous, so that compiled code has one kind of them to know.
        self.alpha_copies = np.ascontiguousarray(problem.positive_weights)
        self.beta_copies = np.ascontiguousarray(problem.competitor_weights)
        self.w = samples.weights(problem, alpha, beta) if near is None else near[0]
        self.positive, self.competing = self._split(samples.scores(self.w))
        largest = problem.betas.cap is Cap.NONE and problem.betas.linear == 0.0
        K = problem.betas.K or (1 if largest else np.inf)
        share = max(1.0, WIDE * len(problem.competitors) / K)
        self.wide = share**0.5 if samples.n_features <= DIRECT_UP_TO else share
        size = problem.C * samples.spread()
        self.steepness = max(1.0, size / STEEP)
        is_mild = size <= MILD and samples.n_samples >= MANY
        self.width = NARROW * FIRST_WIDTH if is_mild else FIRST_WIDTH
        self.zero = zero_value(problem)
        self._gap_before, self._watched_gap, self._idle = 0.0, np.inf, 0
        self._lowest, self._highest = np.inf, -np.inf
        #: Competitors at hand: of the others none has a slope while the floor is above the cut.
        self.places, self.cut = np.arange(len(self.competing)), -np.inf
        self._floor: float | None = None
        self.best_gap, self.best = np.inf, (alpha, beta)
        self._judged, self.tol = np.inf, tol
        self.given_alpha = np.clip(alpha / problem.C, 0.0, problem.surrogate.steepest)
        steepest = problem.family.largest_beta(problem, beta)
        self.given_slope = np.clip(beta / max(steepest, 1e-300), 0.0, 1.0)
        if near is not None:
            self.given_alpha, self.given_slope, self.width = near[1:4]
        self._look()

    def advance(self) -> bool:
        """Make one step; False where neither a step nor less smoothing helps any more."""
        if not self._is_close() and self._is_solved():
            self._recentre()
        if not self._step() and not (self._recentre() and self._step()):
            return self._steepens()
        self._look()
        return self._makes_progress()

    def _is_solved(self) -> bool:
        """Whether the gradient is no longer what the gap consists of."""
        return 0.5 * float(self.gradient @ self.gradient) <= SOLVED * self._penalty()

    def _is_close(self) -> bool:
        """Whether the weights are good enough, and only those of the dual point are not yet.

        The two differ by the gradient: what is missing is a smaller one, not another smoothing.
        """
        return relative_gap(self.primal, self.dual) <= self.tol

    def _makes_progress(self) -> bool:
        """Whether the least and the greatest value known still come nearer to each other."""
        gap = max(self._lowest - self._highest, 0.0)
        if gap < 0.5 * self._watched_gap:
            self._watched_gap, self._idle = gap, 0
        self._idle += 1
        return self._idle <= IDLE_STEPS or self._steepens()

    def _steepens(self) -> bool:
        """Begin anew with the loss as steep as it is; False where it was."""
        if self.steepness == 1.0:
            return False
        self.steepness, self.width, self._idle = 1.0, FIRST_WIDTH, 0
        self._look()
        return True

    @property
    def loss_width(self) -> float:
        """Width of the smooth loss; one that is smooth itself is enough so unless too steep."""
        if self.problem.surrogate.curvature and self.steepness == 1.0:
            return 0.0
        return self.width * self.steepness

    def _recentre(self) -> bool:
        """Smooth near the present slopes; False where the problem is smooth already.

        That alone leads to the optimum; less smoothing leads there faster, as long as
        Newton's steps can follow.
        """
        if self.problem.betas.norm_price and self.loss_width == 0.0:
            return False
        gap = self.primal - self.dual
        if gap > SLOW * self._gap_before:
            self.width = max(SHRINK * self.width, SMALLEST_WIDTH)
        self._gap_before = gap
        self.given_alpha = self.point.alpha / self.problem.C
        self.given_slope = np.zeros(len(self.competing))
        self.given_slope[self.places] = self.point.threshold.slope
        self._look(moved=False)
        return True

    def _penalty(self) -> float:
        """What the smoothing takes off for the distance of the slopes from the given ones."""
        problem, point, t = self.problem, self.point, self.point.threshold
        distance2 = float(self.alpha_copies @ (point.alpha / problem.C - self.given_alpha) ** 2)
        penalty = self.loss_width * problem.C * distance2
        if not problem.betas.norm_price and t.total:
            near = self._near()
            distance2 = float(near.copies @ (t.slope - near.given) ** 2)
            penalty += self.width * self.wide * point.total * distance2 / t.total
        return 0.5 * penalty

    def _look(self, moved: bool = True) -> None:
        """Gradient, primal and dual at the present weights and width."""
        problem, point = self.problem, self._smooth(self.positive, self._near())
        if point.threshold.floor < self.cut:  # others matter, too
            self.places, self.cut = np.arange(len(self.competing)), -np.inf
            point = self._smooth(self.positive, self._near())
        self.point, alpha, beta = point, point.alpha, np.zeros(len(self.competing))
        beta[self.places] = point.beta
        self.mean = self._mean_of_competitors(point.threshold.share)
        dual_w = self._sum_of_positives(alpha) - point.total * self.mean
        self.gradient = self.w - dual_w
        if moved:
            self.primal = self._value(float(self.w @ self.w))
        norm2 = float(dual_w @ dual_w)
        self.dual = dual_value(problem, norm2, alpha, beta)
        self._lowest = min(self._lowest, self.primal)
        self._highest = max(self._highest, self.dual)
        if relative_gap(self.zero, self.dual) < self.best_gap:  # no model is better than none
            self.best_gap, self.best = relative_gap(self.zero, self.dual), (alpha, beta)
        # The model is the one of the dual point, and steep losses tell the two apart.
        gap = relative_gap(self.primal, self.dual)
        if gap < self.best_gap and (gap <= 2.0 * self.tol or gap <= WORTH_A_PASS * self._judged):
            self._judged = gap
            of_point = primal_value(problem, norm2, self.samples.scores(dual_w))
            self._lowest = min(self._lowest, of_point)
            if relative_gap(of_point, self.dual) < self.best_gap:
                self.best_gap, self.best = relative_gap(of_point, self.dual), (alpha, beta)

    def _value(self, norm2: float) -> float:
        """The primal value, by the competitors at hand where they are enough."""
        problem, weights = self.problem, self.problem.competitor_weights
        positives = self.positive, problem.positive_weights
        if self.cut > -np.inf:
            few = self.competing[self.places], of_rows(weights, self.places)
            known = Known(*few, *positives)
            t = known.threshold(problem)
            if problem.family.level(problem, *few, t) >= self.cut:
                return value_of(problem, norm2, known, t)
        known = Known(self.competing, weights, *positives)
        return value_of(problem, norm2, known, known.threshold(problem))

    def _smooth(self, positives: Vector, others: _Competitors) -> _Smooth:
        """Derivatives of the smooth objective at these scores."""
        problem = self.problem
        given = Opponents(positives, self.alpha_copies, self.loss_width, self.given_alpha)
        width = self.width * self.wide
        t = problem.family.smooth_threshold(
            problem, others.scores, others.copies, width, others.given, self._floor, given
        )
        self._floor = t.floor
        loss = SmoothLoss(problem.surrogate, self.loss_width, self.given_alpha)
        x = t.value - positives
        alpha = problem.C * loss.slope(x)
        return _Smooth(t, alpha, float(self.alpha_copies @ alpha), loss, x)

    def _near(self) -> _Competitors:
        """The competitors at hand, at the present scores."""
        places = self.places
        if len(places) == len(self.competing):
            return self._of_all()
        return _Competitors(
            self.competing[places], self.beta_copies[places], self.given_slope[places]
        )

    def _of_all(self) -> _Competitors:
        """All competitors at the present scores."""
        return _Competitors(self.competing, self.beta_copies, self.given_slope)

    def _step(self) -> bool:
        """One step with a line search; False where it brings nothing."""
        terms = self._curved()
        direction = newton_direction(self.samples, terms, self.gradient, self.limits)
        if direction is None:
            return True  # where it is; the time is up
        of_positives, of_competitors = self._split(self.samples.scores(direction))
        along, square = float(self.w @ direction), float(direction @ direction)
        weighted_change = self.alpha_copies * of_positives
        before = self.places, self.cut
        self._choose(of_competitors)
        few, of_few = self._near(), of_competitors[self.places]

        def slope(length: float) -> float:
            """Slope of the smooth objective along the direction; it grows with the length."""
            positives = self.positive + length * of_positives
            point, moving, others = None, of_few, few
            if length <= 1.0:
                moved = few._replace(scores=few.scores + length * of_few)
                point = self._smooth(positives, moved)
            if point is None or point.threshold.floor < self.cut:  # another one may matter
                moving, others = of_competitors, self._of_all()
                moved = others._replace(scores=others.scores + length * moving)
                point = self._smooth(positives, moved)
            return (
                along
                + length * square
                - float(point.alpha @ weighted_change)
                + float(point.beta @ (others.copies * moving))
            )

        length = line_search(slope, float(self.gradient @ direction))
        if length == 0.0:
            self.places, self.cut = before  # which the slopes at hand are of
            return False
        if length > 1.0:
            self.cut = np.inf  # they were chosen for shorter steps
        self.w = self.w + length * direction
        self.positive = self.positive + length * of_positives
        self.competing = self.competing + length * of_competitors
        return True

    def _choose(self, change: Vector) -> None:
        """Have those competitors at hand that may matter up to a step of length 1.

        Those with a given slope matter at any rate; of the others, where scores change linearly,
        those that are above a cut at either end: while the floor is not below it, no other one has
        a slope.  It should not fall by more than twice as much as the threshold does at first.
        """
        t = self.point.threshold
        falls = abs(float((self.beta_copies[self.places] * t.share) @ change[self.places]))
        self.cut = t.floor - 2.0 * falls
        highest = self.competing + np.maximum(change, 0.0)
        self.cut = min(self.cut, np.nextafter(float(np.max(highest)), -np.inf))  # not without any
        self.places = np.flatnonzero((highest > self.cut) | (self.given_slope > 0.0))

    def _split(self, scores: Vector) -> tuple[Vector, Vector]:
        """Of positives and of competitors."""
        return scores[self.problem.positives], scores[self.problem.competitors]

    def _curved(self) -> list[Curved]:
        """The terms of the Hessian: of the loss, and of the threshold."""
        problem, point, t = self.problem, self.point, self.point.threshold
        bend = point.bend
        near = np.flatnonzero(bend)
        bend = problem.C * (self.alpha_copies[near] * bend[near])
        rows, free = problem.positives[near], self.places[np.flatnonzero(t.free)]
        weights = (point.total * t.bend) * self.beta_copies[free]
        others = problem.competitors[free]
        if problem.family.free_threshold:  # it moves so that all of them move as little as can be
            rows, bend = np.concatenate([rows, others]), np.concatenate([bend, weights])
            total = max(float(np.sum(bend)), 1e-300)
            return [Curved(rows, bend, self.samples.combine_rows(rows, bend / total))]
        centre = self.mean
        if t.centred_on_free:
            shares = self.beta_copies[free]
            shares = shares / max(float(np.sum(shares)), 1e-300)
            centre = self.samples.combine_rows(others, shares)
        return [Curved(rows, bend, self.mean), Curved(others, weights, centre)]

    def _mean_of_competitors(self, shares: Vector) -> Vector:
        """``sum shares_j x_j`` over the copies of the competitors at hand."""
        some = np.flatnonzero(shares)
        near = self.places[some]
        rows = self.problem.competitors[near]
        return self.samples.combine_rows(rows, self.beta_copies[near] * shares[some])

    def _sum_of_positives(self, alpha: Vector) -> Vector:
        """``sum alpha_i x_i`` over the copies of the positives."""
        some = np.flatnonzero(alpha)
        rows = self.problem.positives[some]
        return self.samples.combine_rows(rows, self.alpha_copies[some] * alpha[some])
