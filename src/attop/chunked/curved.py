r"""The quadratic hinge: samples that bend the loss enter by sums of their products.

Newton's steps.  With the samples whose loss is not zero, :math:`A`, and the mean
:math:`g = \nabla_s t` of the competitors, the Hessian is

.. math::

    I + 2 C \sum_{i \in A} (x_i - g)(x_i - g)^T + \sum_i \alpha_i \nabla^2 t,

which needs the d x d matrix of the products, their sum and their number.  Where the threshold has
kinks, the loss alone is replaced: :math:`|w|^2 / 2` and the spread of its samples are one quadratic
form, and in the coordinates in which that is :math:`|w|^2 / 2` again the problem is a small one
with the mean of the samples for its only positive.

The slopes at a model are a feasible point of the dual.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from attop.chunked.levels import Terms, is_curved
from attop.chunked.passes import Gathered, blocks
from attop.chunked.protocol import Chunk, Vector
from attop.chunked.reduced import Reduced, lost, with_means
from attop.chunked.rounding import Rounding, gamma
from attop.solvers.protocol import Settings


class Bend(NamedTuple):
    """Sums over the samples whose loss is not zero, slopes being those of one copy.

    Attributes
    ----------
    copies : float
        Their number.
    total : ndarray of shape (n_features,)
        Their sum.
    products : ndarray of shape (n_features, n_features)
        The sum of ``x x'``.
    slopes, squares : float
        The sums of their slopes and of the squares of these.
    pull : ndarray of shape (n_features,)
        The sum of slope times sample.
    """

    copies: float
    total: Vector
    products: NDArray[np.float64]
    slopes: float
    squares: float
    pull: Vector

    def spread(self, centre: Vector) -> NDArray[np.float64]:
        """``sum (x - centre)(x - centre)'``."""
        outer = np.multiply.outer(centre, self.total)
        around = self.copies * np.multiply.outer(centre, centre)
        return self.products - outer - outer.T + around


class Bent(NamedTuple):
    """The sums over positives, and over competitors where their slopes are smooth."""

    positives: Bend
    competitors: Bend | None


def bend(
    chunk: Chunk, w: Vector, threshold: float, terms: Terms, centre: Vector | None
) -> tuple[Any, ...]:
    """The sums of a chunk, those of positives and then those of competitors."""
    roles = 2 if is_curved(terms) else 1
    sums: list[Any] = []
    d = chunk.X.shape[1]
    for _ in range(roles):
        sums += [0.0, np.zeros(d), np.zeros((d, d)), 0.0, 0.0, np.zeros(d)]
    copies = chunk.copies
    for part, block in blocks(chunk.X, centre):
        scores, positive = block @ w, chunk.positive[part]
        for role in range(roles):
            x = _scale(terms) * (scores - threshold) if role else threshold - scores
            slope = terms.surrogate.slope(x)
            there = (~positive | terms.all_compete) if role else positive
            rows = np.flatnonzero(there & (slope > 0.0))
            parts = _sums(block[rows], copies[part][rows], slope[rows])
            for k, more in enumerate(parts, 6 * role):
                sums[k] = sums[k] + more
    return tuple(sums)


def _scale(terms: Terms) -> float:
    """Scale inside the loss of a competitor."""
    return float(getattr(terms.family, "theta", 1.0))


def _sums(X: Any, copies: Vector, slope: Vector) -> tuple[Any, ...]:
    weighted = sp.diags(copies) @ X if sp.issparse(X) else X * copies[:, np.newaxis]
    products = X.T @ weighted
    if sp.issparse(products):
        products = products.toarray()
    steep = copies * slope
    sums = float(np.sum(copies)), X.T @ copies, products
    return (*sums, float(np.sum(steep)), float(steep @ slope), X.T @ steep)


def as_bent(sums: tuple[Any, ...]) -> Bent:
    """The sums by their names."""
    return Bent(Bend(*sums[:6]), Bend(*sums[6:]) if len(sums) > 6 else None)


def dual_of(terms: Terms, bent: Bent, mean: Mean | None, rounding: Rounding) -> float:
    """A bound by the dual value of the slopes.

    The mean of the competitors is that of their slopes, where these are smooth, or the one given.
    """
    positives, competitors, C = bent.positives, bent.competitors, terms.C
    betas = terms.problem(np.ones(1), np.ones(1)).betas
    total = C * positives.slopes
    if total <= 0.0:
        return 0.0
    value = total - 0.5 * (terms.surrogate.curvature or 0.0) * C * positives.squares
    if competitors is not None:
        if competitors.slopes <= 0.0:
            return -np.inf
        mean = Mean(competitors.pull / competitors.slopes, 0.0)
        per_slope = total / competitors.slopes
        squares = per_slope**2 * competitors.squares
        value += betas.linear * total - 0.5 * betas.curvature * squares
        value -= betas.norm_price * float(np.sqrt(squares))
    if mean is None:
        return -np.inf
    w = C * positives.pull - total * mean.of
    share = 8.0 * rounding.of_sums + 2.0 * mean.off
    off = lost(2.0 * total, betas.linear, share, rounding.longest, w)
    return float(value - 0.5 * (w @ w) - off)


def smooth_step(terms: Terms, bent: Bent, w: Vector) -> Vector:
    """The model of Newton's step where all is smooth."""
    positives, competitors, C = bent.positives, bent.competitors, terms.C
    assert competitors is not None
    steep = 1.0 / (terms.surrogate.curvature or 1.0)
    total = C * positives.slopes
    mean = competitors.pull / max(competitors.slopes, 1e-300)
    gradient = w - C * positives.pull + total * mean
    hessian = np.eye(len(w))
    if terms.family.free_threshold:
        all_copies = max(positives.copies + competitors.copies, 1e-300)
        middle = (positives.total + competitors.total) / all_copies
        hessian += C * steep * (positives.spread(middle) + competitors.spread(middle))
    else:
        hessian += C * steep * positives.spread(mean)
        along = total * _scale(terms) * steep / max(competitors.slopes, 1e-300)
        hessian += along * competitors.spread(mean)
    return w - cho_solve(cho_factor(hessian), gradient)


class Mean(NamedTuple):
    """A mean of competitors, and by which share of their largest norm it may be off."""

    of: Vector
    off: float


class TopStep(NamedTuple):
    """A model of `step_to_top`, and the dual point that goes with it.

    Attributes
    ----------
    w : ndarray
        Its weights.
    mean : Mean
        The mean of the competitors, by their dual variables.
    threshold : float
        The threshold at which the slopes of the losses are the alphas: near that of the scores,
        and with it the dual point has just these weights as long as the same losses are zero.
    """

    w: Vector
    mean: Mean
    threshold: float


def step_to_top(
    terms: Terms, bent: Bent, gathered: Gathered, settings: Settings, rounding: Rounding
) -> TopStep:
    """The next model where the threshold has kinks."""
    positives = bent.positives
    competitors = with_means(gathered.competitors, gathered.competitor_groups)
    X = competitors.X.toarray() if sp.issparse(competitors.X) else competitors.X
    middle = positives.total / max(positives.copies, 1e-300)
    curvature = terms.surrogate.curvature or 1.0
    form = np.eye(len(middle)) + terms.C / curvature * positives.spread(middle)
    root = cholesky(form)
    turned = solve_triangular(root, np.vstack([middle, X]).T, trans="T").T
    problem = terms.problem(np.array([positives.copies]), competitors.weights)
    answer = Reduced(problem, np.ascontiguousarray(turned)).solve(settings, rounding)
    w = solve_triangular(root, answer.w)
    copies = answer.beta * competitors.weights
    off = 2.0 * answer.infeasibility + gamma(len(copies))
    mean = Mean(X.T @ copies / max(float(np.sum(copies)), 1e-300), off)
    threshold = curvature * float(answer.alpha[0]) / terms.C - 1.0 + float(middle @ w)
    return TopStep(w, mean, threshold)
