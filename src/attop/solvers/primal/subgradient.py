r"""Full (sub)gradient descent on the primal, the method of the paper.

A step reads

.. math::

    w \leftarrow w - \gamma \nabla P(w) = (1 - \gamma) w + \gamma v, \qquad
    v = \sum \hat\alpha_i x_i - \sum \hat\beta_j x_j,

where :math:`\hat\alpha_i = C l'(t - s_i)` and
:math:`\hat\beta = (\sum \hat\alpha) \nabla_s t` are a feasible point of the dual.  With
:math:`\gamma \le 1` the weights are at all times those of an average of these points, so that
the descent carries its own dual bound D.  The step is that of Polyak with this bound for the
optimum,

.. math::

    \gamma = \min \Bigl( 1, \;
        \frac{P - D}{|\nabla P|^2 + [\, |\hat\alpha - \alpha|^2 / (2 C) \,]} \Bigr),

the bracket for the quadratic hinge only.  It never lowers D, since P - D is the slope of D
along the step and the denominator bounds its curvature; the primal value may rise in between.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attop._weights import weighted_sum
from attop.objectives import dual_value, primal_value, relative_gap, threshold
from attop.problem import Problem
from attop.solvers.primal.samples import Samples

Vector = NDArray[np.float64]


class Subgradient:
    """The present weights of the descent, and the dual point whose weights they are.

    Parameters
    ----------
    problem : Problem
        A convex problem with a finite C.
    samples : Samples
        Its samples.
    alpha, beta : ndarray
        A feasible point of the dual, to begin with its weights.
    """

    def __init__(self, problem: Problem, samples: Samples, alpha: Vector, beta: Vector):
        self.problem, self.samples = problem, samples
        self.alpha, self.beta = alpha, beta
        self._look(samples.weights(problem, alpha, beta))

    @property
    def best(self) -> tuple[Vector, Vector]:
        """The dual point, whose value never falls."""
        return self.alpha, self.beta

    @property
    def best_gap(self) -> float:
        """Its relative gap."""
        return relative_gap(self.primal, self.dual)

    def advance(self) -> bool:
        """Make one step; False where rounding leaves nothing to gain."""
        alpha, beta = slopes(self.problem, self.scores, self.threshold)
        alpha_change, beta_change = alpha - self.alpha, beta - self.beta
        gradient = self.w - self.samples.weights(self.problem, alpha, beta)
        curvature = float(gradient @ gradient)
        squares = weighted_sum(alpha_change**2, self.problem.positive_weights)
        curvature += self.problem.quadratic_alpha * squares
        slope = self.primal - self.dual
        if slope <= 0.0 or curvature == 0.0:
            return False
        step = min(1.0, slope / curvature)
        self.alpha = self.alpha + step * alpha_change
        self.beta = self.beta + step * beta_change
        self._look(self.w - step * gradient)
        return True

    def _look(self, w: Vector) -> None:
        """Scores, threshold, primal and dual at the weights `w`."""
        self.w, self.scores, norm2 = w, self.samples.scores(w), float(w @ w)
        self.threshold = threshold(self.problem, self.scores)
        self.primal = primal_value(self.problem, norm2, self.scores, self.threshold)
        self.dual = dual_value(self.problem, norm2, self.alpha, self.beta)


def slopes(problem: Problem, scores: Vector, t: float) -> tuple[Vector, Vector]:
    r"""The derivatives of the loss by the scores, which are a feasible point of the dual.

    .. math::

        \alpha_i = C \, l'(t - s_i), \qquad \beta = \Bigl(\sum \alpha_i\Bigr) \nabla_s t,

    where :math:`\nabla_s t` is :math:`1/K` for the K competitors at the top, and, for the
    surrogate quantile, by implicit differentiation, in proportion to
    :math:`l'(\vartheta (s_j - t))`.  The (sub)gradient of the primal is
    :math:`w - \sum \alpha_i x_i + \sum \beta_j x_j`.
    """
    alpha = problem.C * problem.surrogate.slope(t - scores[problem.positives])
    competing, weights = scores[problem.competitors], problem.competitor_weights
    slopes = problem.family.slopes(problem, competing, weights, t)
    total = weighted_sum(alpha, problem.positive_weights)
    return alpha, (total / weighted_sum(slopes, weights)) * slopes
