r"""An interior-point method for the largest score as the threshold, among not too many samples.

With the losses :math:`\xi_i \ge 0` and slacks :math:`a_i, b_j \ge 0`, the optimum has

.. math::

    \xi_i - a_i = 1 + t - s_i, \quad b_j = t - s_j, \quad
    w = \sum \alpha_i x_i - \sum \beta_j x_j, \quad \sum \alpha_i = \sum \beta_j, \quad
    \alpha_i a_i = \beta_j b_j = (C - \alpha_i) \xi_i = 0,

with :math:`\xi_i = c \alpha_i / C` in place of the last where the surrogate is the quadratic hinge.
A step predicts, as Mehrotra does, how far the products can be led to zero, and corrects it.  The
changes of the dual variables are functions of those of w and t, so that it factorises one matrix of
as many rows as there are features, whichever samples bear the threshold: it takes twenty to
forty steps where Newton's method on the smooth primal, which has to find them out, takes hundreds.

All sums are over the copies of the samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop.families.base import Cap
from attop.problem import Problem
from attop.solvers.limits import Limits
from attop.solvers.primal.samples import Samples
from attop.solvers.primal.steps import Curved, factorised, hessian_of

Vector = NDArray[np.float64]

#: How much of the way to the nearest bound a step goes.
NEARLY = 0.99
#: The first products are as if the gap were so many times the value of ``w = 0``.  (TopPush on w8a,
#: lambda 1e-3, from there to a gap of 4e-4: 25 steps, 26 with 1, 37 with 0.1 and 28 with 100.)
FIRST = 10.0
#: A step shorter than this gains nothing.
SHORTEST = 1e-6


class _Step(NamedTuple):
    """Changes of all variables."""

    w: Vector
    t: float
    scores: Vector
    dual: Vector
    slack: Vector
    loss: Vector


class Interior:
    """A point inside all bounds.

    Parameters
    ----------
    problem : Problem
        One whose threshold is the largest score, with a finite C and a surrogate that is either
        bounded in its slope or smooth (`suits`).
    samples : Samples
        The positives, and after them some competitors.
    copies : ndarray
        Their weights.
    zero : float
        The primal value of ``w = 0``.
    limits : Limits
        A step that takes longer than that is given up.
    """

    def __init__(
        self, problem: Problem, samples: Samples, copies: Vector, zero: float, limits: Limits
    ):
        assert problem.surrogate.curvature is not None
        self.problem, self.samples, self.copies, self.limits = problem, samples, copies, limits
        self.n, self.rows = problem.n_positives, np.arange(samples.n_samples)
        self.most = problem.C * problem.surrogate.steepest
        self.bounded = bool(np.isfinite(self.most))
        self.bend = problem.surrogate.curvature / problem.C
        self.signed = copies.copy()
        self.signed[self.n :] *= -1.0
        self.n_products = float(np.sum(copies))
        if self.bounded:
            self.n_products += float(np.sum(copies[: self.n]))
        self.w, self.scores = np.zeros(samples.n_features), np.zeros(samples.n_samples)
        self._begin(FIRST * zero / self.n_products)

    def _begin(self, product: float) -> None:
        """The point at ``w = 0`` with all products the same, and as many alphas as betas."""
        of_positives = float(np.sum(self.copies[: self.n]))
        of_others = float(np.sum(self.copies[self.n :]))
        low, high = 1e-9, 1.0 + of_others * product / (of_positives * self._alpha(1.0, product))
        for _ in range(60):  # the alphas rise with the threshold and the betas fall
            self.t = (low * high) ** 0.5
            few = of_positives * self._alpha(1.0 + self.t, product) < of_others * product / self.t
            low, high = (self.t, high) if few else (low, self.t)
        alpha = self._alpha(1.0 + self.t, product)
        self.dual = np.full(len(self.copies), product / self.t)
        self.dual[: self.n] = alpha
        self.slack = product / self.dual
        self.loss = 1.0 + self.t + self.slack[: self.n]

    def _alpha(self, x: float, product: float) -> float:
        """The alpha of a positive whose ``1 + t - s`` is this positive number."""
        if not self.bounded:
            return float(x + np.hypot(x, 2.0 * (product * self.bend) ** 0.5)) / (2.0 * self.bend)
        z = 0.5 * x * self.most / product
        root = float(np.hypot(1.0, z))
        return self.most * (1.0 - 0.5 * (1.0 + root - z) / (1.0 + root))

    @property
    def missing(self) -> float:
        """What the products sum up to: the gap, once the sums of the dual variables are right."""
        return float(self.copies @ self._products() + self.copies[: self.n] @ self._of_losses())

    def _products(self) -> Vector:
        return self.dual * self.slack

    def _of_losses(self) -> Vector:
        """The products of the losses, where the slope is bounded."""
        if not self.bounded:
            return np.zeros(self.n)
        return (self.most - self.dual[: self.n]) * self.loss

    def point(self) -> tuple[Vector, Vector, Vector]:
        """A feasible point of the dual, of these samples, and its weights."""
        alpha, beta = self.dual[: self.n], self.dual[self.n :]
        sums = float(self.copies[: self.n] @ alpha), float(self.copies[self.n :] @ beta)
        beta = beta * (sums[0] / sums[1])
        dual = np.concatenate([alpha, beta])
        return alpha, beta, self.samples.combine_rows(self.rows, self.signed * dual)

    def advance(self) -> bool:
        """Make a step; False where it gains nothing."""
        with np.errstate(all="ignore"):  # what is not finite ends it
            return self._advance()

    def _advance(self) -> bool:
        n, products, of_losses = self.n, self._products(), self._of_losses()
        bends = self.slack / self.dual
        bends[:n] += self.loss / (self.most - self.dual[:n]) if self.bounded else self.bend
        system = _System(self, 1.0 / bends)
        if system.out_of_time:
            return True
        step = system.step(-products, -of_losses)
        length = self._furthest(step)
        before = self.missing
        dual, slack = self.dual + length * step.dual, self.slack + length * step.slack
        after = self.copies @ (dual * slack)
        if self.bounded:
            rest = self.most - dual[:n]
            after += self.copies[:n] @ (rest * (self.loss + length * step.loss))
        aim = (before / self.n_products) * min(max(float(after) / before, 0.0), 1.0) ** 3
        wanted = aim - products - step.dual * step.slack
        step = system.step(wanted, aim - of_losses + step.dual[:n] * step.loss)
        length = self._furthest(step)
        if not length > SHORTEST or not np.isfinite(step.scores).all():
            return False
        self.w = self.w + length * step.w
        self.t += length * step.t
        self.scores = self.scores + length * step.scores
        self.dual = self.dual + length * step.dual
        self.slack = self.slack + length * step.slack
        self.loss = self.loss + length * step.loss
        return bool(np.min(self.dual) > 0.0 and np.min(self.slack) > 0.0)

    def _furthest(self, step: _Step) -> float:
        """The length, at most 1, that leads nearly to the nearest bound."""
        falls = [np.max(-step.dual / self.dual), np.max(-step.slack / self.slack)]
        if self.bounded:
            rest = self.most - self.dual[: self.n]
            falls += [np.max(step.dual[: self.n] / rest), np.max(-step.loss / self.loss)]
        return float(NEARLY / max(NEARLY, *map(float, falls)))


class _System:
    """The linear system of a step, factorised.

    ``d`` are the changes of the dual variables by those of their margins.
    """

    def __init__(self, at: Interior, d: Vector):
        self.at, self.d = at, d
        weights = at.copies * d
        self.total = float(np.sum(weights))
        self.centre = at.samples.combine_rows(at.rows, weights) / self.total
        hessian = hessian_of(at.samples, [Curved(at.rows, weights, self.centre)], at.limits)
        self.out_of_time = hessian is None
        if hessian is not None:
            self.solve = factorised(hessian)
        signed = at.signed * at.dual
        self.off = at.w - at.samples.combine_rows(at.rows, signed)
        self.excess = float(np.sum(signed))

    def step(self, products: Vector, of_losses: Vector) -> _Step:
        """The step that changes the products by so much, to first order, and balances the sums."""
        at, n = self.at, self.at.n
        moved = products / at.dual
        if at.bounded:
            rest = at.most - at.dual[:n]
            moved[:n] -= of_losses / rest
        parts = at.signed * self.d * moved
        lacking = -self.excess - float(np.sum(parts))
        right = at.samples.combine_rows(at.rows, parts) - self.off
        w = self.solve(right + lacking * self.centre)
        t = lacking / self.total + float(self.centre @ w)
        scores = at.samples.scores(w)
        margins = t - scores
        margins[n:] *= -1.0
        dual = self.d * (margins + moved)
        slack = (products - at.slack * dual) / at.dual
        loss = (of_losses + at.loss * dual[:n]) / rest if at.bounded else at.bend * dual[:n]
        return _Step(w, t, scores, dual, slack, loss)


def suits(problem: Problem) -> bool:
    """Whether the threshold is the largest score, and the surrogate bounded or smooth, not both."""
    terms, surrogate = problem.betas, problem.surrogate
    is_largest = terms == terms._replace(linear=0.0, curvature=0.0, K=0, price=0.0, norm_price=0.0)
    bounded = bool(np.isfinite(surrogate.steepest))
    return is_largest and terms.cap is Cap.NONE and bounded != bool(surrogate.curvature)
