"""Full gradient descent on the primal with the linear kernel.

A yardstick for the convergence of the solvers of the duals, not a solver to use: the
objective is not smooth where scores change places at the top, nor, with the hinge,
anywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attop.objectives import primal_value, threshold
from attop.problem import Family, Problem
from attop.solvers.solution import History, HistoryRecorder
from attop.surrogates import SURROGATES

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class GradientSolution:
    """The best weights found, and how.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        The weights ``w``.
    objective : float
        Primal value at `coef`.
    history : History
        Progress: the best primal value so far; there is no dual value and no gap.
    n_iter : int
        Number of gradients.
    """

    coef: Vector
    objective: float
    history: History
    n_iter: int


def solve(
    problem: Problem,
    X: ArrayLike,
    *,
    max_iter: int = 1000,
    max_time: float | None = None,
    first_step: float | None = None,
    check_every: int = 1,
) -> GradientSolution:
    r"""Minimise the primal by full (sub)gradient descent from ``w = 0``.

    Step k goes along the negative gradient over the length :math:`r / \sqrt{k}`: the
    classical choice for convex functions that are not smooth.  Single steps may go up,
    but the best value found converges to the optimum.

    Parameters
    ----------
    problem : Problem
        Any of the convex formulations, with a finite C.
    X : array-like of shape (n_samples, n_features)
        Samples.
    max_iter : int, default=1000
        Number of steps.
    max_time : float, default=None
        Stop after so many seconds.
    first_step : float, default=None
        Length r of the first step; by default a quarter of the bound
        :math:`\sqrt{2 P(0)}` on the norm of the optimal weights.
    check_every : int, default=1
        Record the best value once in so many steps.

    Returns
    -------
    GradientSolution
    """
    if not np.isfinite(problem.C):
        raise ValueError(
            f"The 'C' of the problem must be finite for gradient descent. Got {problem.C} instead."
        )
    X = np.asarray(X, dtype=np.float64)
    recorder = HistoryRecorder()
    w = best_w = np.zeros(X.shape[1])
    best = np.inf
    for k in range(max_iter + 1):
        scores = X @ w
        t = threshold(problem, scores)
        value = primal_value(problem, float(w @ w), scores, t)
        if value < best:
            best, best_w = value, w
        over = k == max_iter or (max_time is not None and recorder.elapsed >= max_time)
        if over or k % check_every == 0:
            recorder.add(k, best, np.nan, np.nan)
        gradient = primal_gradient(problem, X, w, scores, t)
        length = float(np.linalg.norm(gradient))
        if over or length == 0.0:
            break
        if first_step is None:
            first_step = 0.25 * np.sqrt(2.0 * value)
        w = w - (first_step / np.sqrt(k + 1) / length) * gradient
    return GradientSolution(best_w, best, recorder.finish(), k)


def primal_gradient(problem: Problem, X: Vector, w: Vector, scores: Vector, t: float) -> Vector:
    r"""Gradient of the primal at ``w``, or a subgradient where there is none.

    .. math::

        w + C \sum_{i \in I^+} l'(t - s_i) (\nabla t - x_i),

    where :math:`\nabla t` is the mean of the K competitors at the top, or, for the surrogate
    quantile, the mean of all weighted by :math:`l'(\vartheta (s_j - t))`.
    """
    slope = SURROGATES[problem.surrogate].slope
    pull = problem.C * slope(t - scores[problem.positives])
    competing = scores[problem.competitors]
    if problem.family == Family.TIED_CAP:
        share = np.zeros(len(competing))
        share[np.argpartition(competing, -problem.K)[-problem.K :]] = 1.0 / problem.K
    else:
        share = slope(problem.theta * (competing - t))
        share /= share.sum()
    return w - X[problem.positives].T @ pull + pull.sum() * (X[problem.competitors].T @ share)
