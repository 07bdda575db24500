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

Only samples within the width of a kink enter the Hessian.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, cg

from attop.kernels.functions import as_float64
from attop.objectives import dual_value, primal_value, relative_gap
from attop.problem import Problem
from attop.smooth import SmoothLoss, SmoothThreshold
from attop.solvers.limits import Limits
from attop.solvers.primal.samples import Samples

Vector = NDArray[np.float64]

#: Up to so many features the Hessian is formed and factorised.
DIRECT_UP_TO = 2000
#: Rows of the Hessian at a time, fewer where they take more operations than that.
_BLOCK, _OPERATIONS = 8192, 5e8
#: The smoothing is over the whole margin at first ...
_FIRST_WIDTH = 1.0
#: ... and shrinks by this factor ...
_SHRINK = 0.7
#: ... where the gap has not fallen to this share of what it was ...
_SLOW = 0.5
#: ... down to where rounding would decide.
_SMALLEST_WIDTH = 1e-9
#: A smooth problem is solved where its gap, |gradient|^2 / 2, is this share of the penalty.
_SOLVED = 0.5
#: The loss gets wider in proportion where C times the spread of the samples is larger than
#: this: its curvature would leave no digits to the rest.  (400 random problems with C from 1e-4
#: to 1e6 and features from 1e-6 to 1e6: 94 % converge, 85 % without.)
_STEEP = 1e4
#: The gap has to halve once in so many steps.
_IDLE_STEPS = 100


@dataclass(frozen=True)
class _Smooth:
    """Derivatives of the smooth objective by the scores, at one point."""

    threshold: SmoothThreshold
    alpha: Vector
    curvature: Vector

    @property
    def beta(self) -> Vector:
        """The betas of the dual point."""
        return float(np.sum(self.alpha)) * self.threshold.share


class _Curved(NamedTuple):
    """A term ``sum_r weights_r (x_r - centre)(x_r - centre)'`` of the Hessian."""

    rows: NDArray[np.intp]
    weights: Vector
    centre: Vector

    def blocks(self) -> Iterator[_Curved]:
        """The term in parts of bounded size."""
        size = max(1, min(_BLOCK, int(_OPERATIONS / len(self.centre) ** 2)))
        for i in range(0, len(self.rows), size):
            part = slice(i, i + size)
            yield _Curved(self.rows[part], self.weights[part], self.centre)

    def product(self, samples: Samples) -> Callable[[Vector], Vector]:
        """The product of the term with a vector, without its matrix."""
        X = as_float64(samples.X[self.rows])

        def multiply(v: Vector) -> Vector:
            along = self.weights * (X @ v - self.centre @ v)
            return X.T @ along - self.centre * np.sum(along)

        return multiply


class Newton:
    """The present weights of Newton's method, and the dual point that belongs to them.

    Parameters
    ----------
    problem : Problem
        A convex problem with a finite C.
    samples : Samples
        Its samples.
    alpha, beta : ndarray
        A point of the dual; the method begins with its weights and near its slopes.
    limits : Limits
        A step that takes longer than that is given up.
    """

    def __init__(
        self, problem: Problem, samples: Samples, alpha: Vector, beta: Vector, limits: Limits
    ):
        self.problem, self.samples, self.limits = problem, samples, limits
        self.w = samples.weights(problem, alpha, beta)
        self.scores = samples.scores(self.w)
        self.width = _FIRST_WIDTH
        self.steepness = max(1.0, problem.C * samples.spread() / _STEEP)
        self._gap_before, self._watched_gap, self._idle = 0.0, np.inf, 0
        self._lowest, self._highest = np.inf, -np.inf
        self.best_gap, self.best = np.inf, (alpha, beta)
        self.given_alpha = np.clip(alpha / problem.C, 0.0, problem.surrogate.steepest)
        largest = problem.family.largest_beta(problem, beta)
        self.given_share = np.clip(beta / max(largest, 1e-300), 0.0, 1.0)
        self._look()

    @property
    def alpha(self) -> Vector:
        """Alphas of the dual point."""
        return self.point.alpha

    @property
    def beta(self) -> Vector:
        """Betas of the dual point."""
        return self.point.beta

    def advance(self) -> bool:
        """Make one step; False where neither a step nor less smoothing helps any more."""
        if 0.5 * float(self.gradient @ self.gradient) <= _SOLVED * self._penalty():
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
        return self._idle <= _IDLE_STEPS or self._steepens()

    def _steepens(self) -> bool:
        """Begin anew with the loss as steep as it is; False where it was."""
        if self.steepness == 1.0:
            return False
        self.steepness, self.width, self._idle = 1.0, _FIRST_WIDTH, 0
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
        if gap > _SLOW * self._gap_before:
            self.width = max(_SHRINK * self.width, _SMALLEST_WIDTH)
        self._gap_before = gap
        self.given_alpha = self.alpha / self.problem.C
        self.given_share = self.point.threshold.slope
        self._look()
        return True

    def _penalty(self) -> float:
        """What the smoothing takes off for the distance of the slopes from the given ones."""
        problem, t = self.problem, self.point.threshold
        penalty = self.loss_width * problem.C
        penalty *= float(np.sum((self.alpha / problem.C - self.given_alpha) ** 2))
        if not problem.betas.norm_price:
            distance2 = float(np.sum((t.slope - self.given_share) ** 2))
            penalty += self.width * float(np.sum(self.alpha)) * distance2 / float(np.sum(t.slope))
        return 0.5 * penalty

    def _look(self) -> None:
        """Gradient, primal and dual at the present weights and width."""
        self.point = self._smooth(self.scores)
        dual_w = self.samples.weights(self.problem, self.alpha, self.beta)
        self.gradient = self.w - dual_w
        self.primal = primal_value(self.problem, float(self.w @ self.w), self.scores)
        norm2 = float(dual_w @ dual_w)
        self.dual = dual_value(self.problem, norm2, self.alpha, self.beta)
        # The model is the one of the dual point, and steep losses tell the two apart.
        of_point = primal_value(self.problem, norm2, self.samples.scores(dual_w))
        if relative_gap(of_point, self.dual) < self.best_gap:
            self.best_gap = relative_gap(of_point, self.dual)
            self.best = self.alpha, self.beta
        self._lowest = min(self._lowest, self.primal, of_point)
        self._highest = max(self._highest, self.dual)

    def _smooth(self, scores: Vector) -> _Smooth:
        """Derivatives of the smooth objective at `scores`."""
        problem = self.problem
        t = problem.family.smooth_threshold(
            problem,
            scores[problem.competitors],
            problem.competitor_weights,
            self.width,
            self.given_share,
        )
        loss = SmoothLoss(problem.surrogate, self.loss_width, self.given_alpha)
        x = t.value - scores[problem.positives]
        return _Smooth(t, problem.C * loss.slope(x), problem.C * loss.curvature(x))

    def _step(self) -> bool:
        """One step with a line search; False where it brings nothing."""
        direction = self._direction()
        if direction is None:
            return True  # where it is; the time is up
        change = self.samples.scores(direction)

        def slope(length: float) -> float:
            """Slope of the smooth objective along the direction; it grows with the length."""
            w = self.w + length * direction
            point = self._smooth(self.scores + length * change)
            return float(
                w @ direction
                - point.alpha @ change[self.problem.positives]
                + point.beta @ change[self.problem.competitors]
            )

        if slope(0.0) >= 0.0:
            return False
        # The full step is the one to hope for; else the root, roughly.
        length = 1.0 if slope(1.0) <= 0.0 else brentq(slope, 0.0, 1.0, xtol=1e-12, rtol=1e-2)
        self.w = self.w + length * direction
        self.scores = self.scores + length * change
        return True

    def _direction(self) -> Vector | None:
        """Newton's direction, by a factorisation or by conjugate gradients; None out of time."""
        order = self.samples.n_features
        if order <= DIRECT_UP_TO:
            hessian = np.eye(order)
            for curved in self._curved():
                for part in curved.blocks():
                    rows = self.samples.dense_rows(part.rows) - part.centre
                    hessian += rows.T @ (part.weights[:, np.newaxis] * rows)
                    if self.limits.out_of_time():
                        return None
            return -_solution(hessian, self.gradient)
        products = [curved.product(self.samples) for curved in self._curved()]
        operator = LinearOperator(
            (order, order),
            matvec=lambda v: v + sum(product(v) for product in products),
            dtype=np.float64,
        )
        return -cg(operator, self.gradient, rtol=1e-6, maxiter=1000)[0]

    def _curved(self) -> list[_Curved]:
        """The terms of the Hessian: of the loss, and of the threshold."""
        problem, t = self.problem, self.point.threshold
        near = np.flatnonzero(self.point.curvature)
        mean = self._mean_of_competitors(t.share)
        loss = _Curved(problem.positives[near], self.point.curvature[near], mean)
        near = np.flatnonzero(t.curvature)
        weights = float(np.sum(self.alpha)) * t.curvature[near]
        centre = self._mean_of_competitors(t.centre)
        return [loss, _Curved(problem.competitors[near], weights, centre)]

    def _mean_of_competitors(self, weights: Vector) -> Vector:
        """``sum weights_j x_j`` over the competitors."""
        coefficients = np.zeros(self.samples.n_samples)
        coefficients[self.problem.competitors] = weights
        return self.samples.combine(coefficients)


def _solution(hessian: NDArray[np.float64], gradient: Vector) -> Vector:
    """Solve with the Hessian, with a little more on its diagonal where rounding asks for it."""
    largest = float(np.max(np.diag(hessian)))
    for more in (0.0, 1e-15, 1e-13, 1e-11):
        hessian[np.diag_indices_from(hessian)] += more * largest
        try:
            return cho_solve(cho_factor(hessian, check_finite=False), gradient)
        except (LinAlgError, ValueError):  # ValueError where it is not finite
            continue
    return gradient
