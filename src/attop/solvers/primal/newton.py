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
from scipy.linalg.blas import dsyr2
from scipy.linalg.lapack import dpotrf, dpotrs

from attop._known import Known
from attop.families.base import Cap
from attop.objectives import dual_value, relative_gap, value_of
from attop.problem import Problem
from attop.smooth import Opponents, SmoothLoss, SmoothThreshold
from attop.solvers.limits import Limits
from attop.solvers.primal.samples import Samples

Vector = NDArray[np.float64]

#: Up to so many features the Hessian is formed and factorised.
DIRECT_UP_TO = 1500
#: The smoothing is over the whole margin at first ...
FIRST_WIDTH = 1.0
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
#: The gap has to halve once in so many steps.
IDLE_STEPS = 100
#: The line search ends where the slope has fallen to this share, or after so many looks.
FLAT, LOOKS = 0.1, 12
#: Conjugate gradients: residual relative to the gradient, and products at most.
RESIDUAL, PRODUCTS = 0.05, 300


@dataclass(frozen=True)
class _Smooth:
    """Derivatives of the smooth objective by the scores of one copy each, at one point."""

    threshold: SmoothThreshold
    alpha: Vector
    total: float
    bend: Vector

    @property
    def beta(self) -> Vector:
        """The betas of the dual point."""
        slopes = self.threshold.slope
        # A threshold that is free may leave nobody a loss.
        return (self.total / self.threshold.total) * slopes if self.total else 0.0 * slopes


class _Curved(NamedTuple):
    """A term ``sum_r weights_r (x_r - centre)(x_r - centre)'`` of the Hessian."""

    rows: NDArray[np.intp]
    weights: Vector
    centre: Vector


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
    w : ndarray, optional
        The weights to begin with; those of the point by default.
    width : float
        Width of the first smoothing.
    """

    def __init__(
        self,
        problem: Problem,
        samples: Samples,
        alpha: Vector,
        beta: Vector,
        limits: Limits,
        w: Vector | None = None,
        width: float | None = None,
    ):
        self.problem, self.samples, self.limits = problem, samples, limits
        # Contiguous, so that compiled code has one kind of them to know.
        self.alpha_copies = np.ascontiguousarray(problem.positive_weights)
        self.beta_copies = np.ascontiguousarray(problem.competitor_weights)
        self.w = samples.weights(problem, alpha, beta) if w is None else w
        self.positive, self.competing = self._split(samples.scores(self.w))
        self.width = FIRST_WIDTH if width is None else width
        largest = problem.betas.cap is Cap.NONE and problem.betas.linear == 0.0
        K = problem.betas.K or (1 if largest else np.inf)
        self.wide = max(1.0, (WIDE * len(problem.competitors) / K) ** 0.5)
        self.steepness = max(1.0, problem.C * samples.spread() / STEEP)
        self._gap_before, self._watched_gap, self._idle = 0.0, np.inf, 0
        self._lowest, self._highest = np.inf, -np.inf
        self._near: float | None = None
        self.best_gap, self.best = np.inf, (alpha, beta)
        self.given_alpha = np.clip(alpha / problem.C, 0.0, problem.surrogate.steepest)
        steepest = problem.family.largest_beta(problem, beta)
        self.given_slope = np.clip(beta / max(steepest, 1e-300), 0.0, 1.0)
        self._look()

    def advance(self) -> bool:
        """Make one step; False where neither a step nor less smoothing helps any more."""
        if 0.5 * float(self.gradient @ self.gradient) <= SOLVED * self._penalty():
            self._recentre()
        if not self._step() and not (self._recentre() and self._step()):
            return self._steepens()
        self._look()
        return self._makes_progress()

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
        self.given_slope = self.point.threshold.slope
        self._look()
        return True

    def _penalty(self) -> float:
        """What the smoothing takes off for the distance of the slopes from the given ones."""
        problem, point, t = self.problem, self.point, self.point.threshold
        distance2 = float(self.alpha_copies @ (point.alpha / problem.C - self.given_alpha) ** 2)
        penalty = self.loss_width * problem.C * distance2
        if not problem.betas.norm_price and t.total:
            distance2 = float(self.beta_copies @ (t.slope - self.given_slope) ** 2)
            penalty += self.width * self.wide * point.total * distance2 / t.total
        return 0.5 * penalty

    def _look(self) -> None:
        """Gradient, primal and dual at the present weights and width."""
        problem = self.problem
        self.point = self._smooth(self.positive, self._of_all())
        alpha, beta = self.point.alpha, self.point.beta
        dual_w = self.samples.weights(problem, alpha, beta)
        self.gradient = self.w - dual_w
        self.primal = self._value(float(self.w @ self.w), self.positive, self.competing)
        norm2 = float(dual_w @ dual_w)
        self.dual = dual_value(problem, norm2, alpha, beta)
        self._lowest = min(self._lowest, self.primal)
        self._highest = max(self._highest, self.dual)
        # The model is the one of the dual point, and steep losses tell the two apart.
        if relative_gap(self.primal, self.dual) < self.best_gap:
            of_point = self._value(norm2, *self._split(self.samples.scores(dual_w)))
            self._lowest = min(self._lowest, of_point)
            if relative_gap(of_point, self.dual) < self.best_gap:
                self.best_gap = relative_gap(of_point, self.dual)
                self.best = alpha, beta
                self.best_w = dual_w

    def _value(self, norm2: float, positives: Vector, competitors: Vector) -> float:
        """The primal value at these scores."""
        problem = self.problem
        known = Known(competitors, problem.competitor_weights, positives, problem.positive_weights)
        return value_of(problem, norm2, known, known.threshold(problem))

    def _smooth(self, positives: Vector, others: _Competitors) -> _Smooth:
        """Derivatives of the smooth objective at these scores."""
        problem = self.problem
        given = Opponents(positives, self.alpha_copies, self.loss_width, self.given_alpha)
        width = self.width * self.wide
        t = problem.family.smooth_threshold(
            problem, others.scores, others.copies, width, others.given, self._near, given
        )
        self._near = t.floor
        loss = SmoothLoss(problem.surrogate, self.loss_width, self.given_alpha)
        x = t.value - positives
        alpha = problem.C * loss.slope(x)
        return _Smooth(t, alpha, float(self.alpha_copies @ alpha), loss.curvature(x))

    def _of_all(self) -> _Competitors:
        """All competitors at the present scores."""
        return _Competitors(self.competing, self.beta_copies, self.given_slope)

    def _step(self) -> bool:
        """One step with a line search; False where it brings nothing."""
        direction = self._direction()
        if direction is None:
            return True  # where it is; the time is up
        change = self.samples.scores(direction)
        of_positives, of_competitors = self._split(change)
        along, square = float(self.w @ direction), float(direction @ direction)
        weighted_change = self.alpha_copies * of_positives
        near, cut = self._candidates(of_competitors)
        few = _Competitors(self.competing[near], self.beta_copies[near], self.given_slope[near])
        of_few = of_competitors[near]

        def slope(length: float) -> float:
            """Slope of the smooth objective along the direction; it grows with the length."""
            positives = self.positive + length * of_positives
            point, moving, others = None, of_few, few
            if length <= 1.0:
                moved = few._replace(scores=few.scores + length * of_few)
                point = self._smooth(positives, moved)
            if point is None or point.threshold.floor < cut:  # another one may matter
                moving, others = of_competitors, self._of_all()
                moved = others._replace(scores=others.scores + length * moving)
                point = self._smooth(positives, moved)
            return (
                along
                + length * square
                - float(point.alpha @ weighted_change)
                + float(point.beta @ (others.copies * moving))
            )

        length = _line_search(slope, float(self.gradient @ direction))
        if length == 0.0:
            return False
        self.w = self.w + length * direction
        self.positive = self.positive + length * of_positives
        self.competing = self.competing + length * of_competitors
        return True

    def _candidates(self, change: Vector) -> tuple[NDArray[np.intp], float]:
        """Competitors that may matter up to a step of length 1, and above which floor they do.

        Those with a given slope matter at any rate; of the others, where scores change linearly,
        those that are above the floor at either end, which should not fall by more than twice as
        much as the threshold does at first.
        """
        t = self.point.threshold
        falls = abs(float((self.beta_copies * t.share) @ change))
        cut = t.floor - 2.0 * falls
        highest = self.competing + np.maximum(change, 0.0)
        return np.flatnonzero((highest > cut) | (self.given_slope > 0.0)), cut

    def _split(self, scores: Vector) -> tuple[Vector, Vector]:
        """Of positives and of competitors."""
        return scores[self.problem.positives], scores[self.problem.competitors]

    def _direction(self) -> Vector | None:
        """Newton's direction, by a factorisation or by conjugate gradients; None out of time."""
        terms, n_features = self._curved(), self.samples.n_features
        if n_features > DIRECT_UP_TO:
            return self._by_conjugate_gradients(terms)
        if sum(len(rows) for rows, _, _ in terms) < n_features:
            return self._by_rows(terms)
        hessian = np.zeros((n_features, n_features), order="F")
        for rows, weights, centre in terms:
            hessian += self.samples.gram(rows, weights)
            # From the centre: the lower half, which is what is factorised.
            total = self.samples.combine_rows(rows, weights)
            total -= 0.5 * float(np.sum(weights)) * centre
            hessian = dsyr2(-1.0, total, centre, a=hessian, lower=1, overwrite_a=1)
            if self.limits.out_of_time():
                return None
        return -_solution(hessian, self.gradient)

    def _by_rows(self, terms: list[_Curved]) -> Vector:
        """The same where fewer samples bend than there are features.

        With ``A' A`` for the bent part of the Hessian, ``(I + A' A)^-1 = I - A' (I + A A')^-1 A``.
        """
        parts = [
            (self.samples.dense(rows) - centre) * np.sqrt(weights)[:, np.newaxis]
            for rows, weights, centre in terms
        ]
        A = np.concatenate(parts)
        if len(A) == 0:
            return -self.gradient
        return A.T @ _solution(A @ A.T, A @ self.gradient) - self.gradient

    def _by_conjugate_gradients(self, terms: list[_Curved]) -> Vector | None:
        """The same with products only, preconditioned by the diagonal."""
        samples, diagonal = self.samples, np.ones(self.samples.n_features)
        for rows, weights, _ in terms:
            diagonal += samples.squares(rows, weights)
        x, residual = np.zeros_like(self.gradient), -self.gradient
        search, before = np.zeros_like(x), 1.0
        enough = RESIDUAL * float(np.linalg.norm(residual))
        for _ in range(PRODUCTS):
            scaled = residual / diagonal
            now = float(residual @ scaled)
            search = scaled + (now / before) * search if before else scaled
            product = search.copy()
            for rows, weights, centre in terms:
                along = weights * (samples.scores_of(rows, search) - float(centre @ search))
                product += samples.combine_rows(rows, along) - float(np.sum(along)) * centre
            length = now / float(search @ product)
            x += length * search
            residual = residual - length * product
            before = now
            if float(np.linalg.norm(residual)) <= enough:
                break
            if self.limits.out_of_time():
                return None
        return x

    def _curved(self) -> list[_Curved]:
        """The terms of the Hessian: of the loss, and of the threshold."""
        problem, point, t = self.problem, self.point, self.point.threshold
        near = np.flatnonzero(point.bend)
        bend = problem.C * (self.alpha_copies[near] * point.bend[near])
        rows = problem.positives[near]
        near = np.flatnonzero(t.free)
        weights = (point.total * t.bend) * self.beta_copies[near]
        others = problem.competitors[near]
        if problem.family.free_threshold:  # it moves so that all of them move as little as can be
            rows, bend = np.concatenate([rows, others]), np.concatenate([bend, weights])
            total = max(float(np.sum(bend)), 1e-300)
            return [_Curved(rows, bend, self.samples.combine_rows(rows, bend / total))]
        loss = _Curved(rows, bend, self._mean_of_competitors(t.slope / t.total))
        centre = self._mean_of_competitors(t.centre(self.beta_copies))
        return [loss, _Curved(others, weights, centre)]

    def _mean_of_competitors(self, shares: Vector) -> Vector:
        """``sum shares_j x_j`` over the copies of the competitors."""
        near = np.flatnonzero(shares)
        rows = self.problem.competitors[near]
        return self.samples.combine_rows(rows, self.beta_copies[near] * shares[near])


def _line_search(slope, at_zero: float) -> float:
    """A length at which the slope along a direction is about 0; 0 where it falls nowhere."""
    if not at_zero < 0.0:
        return 0.0
    low, high = (0.0, at_zero), (1.0, slope(1.0))
    enough = FLAT * abs(at_zero)
    looks = 1
    while high[1] < -enough and looks < LOOKS:  # further than Newton's step
        low, high = high, (2.0 * high[0], slope(2.0 * high[0]))
        looks += 1
    if high[1] <= enough:
        return high[0]
    fallen = 0
    while looks < LOOKS:
        # The secant, and the middle where one end has stayed for long.
        share = low[1] / (low[1] - high[1]) if abs(fallen) < 2 else 0.5
        length = low[0] + min(max(share, 0.01), 0.99) * (high[0] - low[0])
        now = slope(length)
        looks += 1
        if abs(now) <= enough:
            return length
        if now < 0.0:
            low, fallen = (length, now), max(fallen, 0) + 1
        else:
            high, fallen = (length, now), min(fallen, 0) - 1
    return low[0] if low[0] > 0.0 else high[0]


def _solution(bends: NDArray[np.float64], right: Vector) -> Vector:
    """Solve with ``I + bends``, with a little more on its diagonal where rounding asks for it.

    Only the lower half of the matrix is read.
    """
    diagonal = np.diag_indices_from(bends)
    largest = float(np.max(bends[diagonal]))
    bends[diagonal] += 1.0
    for more in (0.0, 1e-15, 1e-13, 1e-11):
        bends[diagonal] += more * largest
        factor, failed = dpotrf(bends, lower=1)
        if not failed:
            found, _ = dpotrs(factor, right, lower=1)
            if np.all(np.isfinite(found)):
                return found
    return right
