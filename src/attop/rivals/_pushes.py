"""The p-norm push and, for p to infinity, the Infinite Push."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from attop.rivals._base import Ranker, Vector, best_threshold


class PNormPush(Ranker):
    r"""The p-norm push of Rudin (2009) with linear scores.

    A negative pays the p-th power of what it costs to stand above positives, so that those at the
    top pay most:

    .. math::

        R_p(w) = \sum_{j \in I^-} \Bigl(\sum_{i \in I^+} e^{-(s_i - s_j)}\Bigr)^p,
        \qquad s_i = \langle w, x_i \rangle.

    As the exponential is a product, :math:`\tfrac1p \log R_p = \log \sum_i e^{-s_i} + \tfrac1p \log
    \sum_j e^{p s_j}`, which is convex and has the same minimisers.  Minimised is this and, since on
    separable samples there is no minimiser otherwise, :math:`\tfrac{\alpha}2 |w|^2`, by L-BFGS.
    With p = 1 the loss is that of `RankBoost`; as p grows it becomes that of the highest negative.

    A step costs :math:`O(n d)`, as no pair is ever looked at.

    Parameters
    ----------
    p : float, default=4
        The power, at least 1.
    alpha : float, default=1e-3
        Weight of the regularisation, positive.
    tol : float, default=1e-6
        Largest entry of the gradient to stop at.
    max_iter : int, default=1000
        Steps at most.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes; the second one is positive.
    coef_ : ndarray of shape (1, n_features)
        The weights.
    threshold_ : float
        Scores above it are called positive: the most accurate threshold on the training
        samples.  The push itself has none.
    objective_ : float
        The minimum found.
    n_iter_ : int
        Steps taken.

    References
    ----------
    C. Rudin: The p-norm push. Journal of Machine Learning Research 10, 2233-2271, 2009.
    """

    def __init__(
        self, p: float = 4, alpha: float = 1e-3, tol: float = 1e-6, max_iter: int = 1000
    ) -> None:
        self.p = p
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, X: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        self._require("p", 1.0 <= self.p < np.inf, "in [1, inf)")
        self._require("alpha", 0.0 < self.alpha < np.inf, "in (0, inf)")
        centre = X.mean(axis=0)  # differences of scores do not see it, rounding does
        of_positives, of_negatives = X[positive] - centre, X[~positive] - centre
        found = minimize(
            self._objective,
            np.zeros(X.shape[1]),
            (of_positives, of_negatives),
            method="L-BFGS-B",
            jac=True,
            options={"maxiter": self.max_iter, "gtol": self.tol, "ftol": 0.0},
        )
        self.coef_, self.objective_ = found.x[np.newaxis], float(found.fun)
        self.n_iter_ = max(1, int(found.nit))
        self.threshold_ = best_threshold(self._scores(X), positive)

    def _objective(
        self, w: Vector, of_positives: NDArray[np.float64], of_negatives: NDArray[np.float64]
    ) -> tuple[float, Vector]:
        """``log(R_p) / p + alpha |w|^2 / 2`` and its gradient."""
        low, high = -(of_positives @ w), self.p * (of_negatives @ w)
        value = logsumexp(low) + logsumexp(high) / self.p + 0.5 * self.alpha * (w @ w)
        gradient = softmax(high) @ of_negatives - softmax(low) @ of_positives + self.alpha * w
        return float(value), gradient

    def _scores(self, X: NDArray[np.float64]) -> Vector:
        return X @ self.coef_[0]


class InfinitePush(Ranker):
    r"""The Infinite Push of Agarwal (2011) with the hinge, and any kernel.

    The most expensive negative alone pays:

    .. math::

        \min_w\; \tfrac{\alpha}2 |w|^2
        + \max_{j \in I^-} \frac1{n^+} \sum_{i \in I^+} \max(0, 1 - (s_i - s_j)).

    Every loss grows with :math:`s_j`, so that the maximum is at the highest negative and the
    problem is that of `attop.TopPush` with :math:`C = 1 / (\alpha n^+)` (Li, Jin and Zhou, 2014).
    Agarwal's dual has a variable for each of the :math:`n^+ n^-` pairs, within a ball of the
    :math:`\ell_{1,\infty}` norm; that of TopPush has the sums of its rows and columns,
    :math:`n^+ + n^-` variables, and it is what is solved here, to a certified gap.

    Parameters
    ----------
    alpha : float, default=1e-3
        Weight of the regularisation, positive.
    kernel : str or callable, default="linear"
        The kernel, as in `attop.TopPush`.
    gamma : float or str, default="scale"
        Parameter of kernels that have it.
    tol : float, default=1e-4
        Relative duality gap to reach.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes; the second one is positive.
    model_ : TopPush
        The model.
    threshold_ : float
        0: scores are those of `model_`, which has the highest negative at 0.
    objective_ : float
        The minimum of the problem above.

    References
    ----------
    S. Agarwal: The Infinite Push: a new support vector ranking algorithm that directly optimizes
    accuracy at the absolute top of the list. SIAM International Conference on Data Mining,
    839-850, 2011.

    N. Li, R. Jin, Z.-H. Zhou: Top rank optimization in linear time. NeurIPS, 2014.
    """

    def __init__(
        self,
        alpha: float = 1e-3,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.tol = tol

    def _learn(self, X: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        self._require("alpha", 0.0 < self.alpha < np.inf, "in (0, inf)")
        from attop import TopPush

        C = 1.0 / (self.alpha * np.count_nonzero(positive))
        model = TopPush(C=C, kernel=self.kernel, gamma=self.gamma, tol=self.tol)
        self.model_ = model.fit(X, positive.astype(int))
        self.threshold_ = 0.0
        self.objective_ = self.alpha * float(self.model_.objective_)

    def _scores(self, X: NDArray[np.float64]) -> Vector:
        scores: Vector = self.model_.decision_function(X)
        return scores
