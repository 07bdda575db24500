"""Accuracy at the top by Boyd and others: one convex problem for each possible threshold."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state

from attop.rivals._base import Ranker, Vector


class AccuracyAtTop(Ranker):
    r"""Accuracy at the top of Boyd, Cortes, Mohri and Radovanovic (2012), with linear scores.

    The threshold is to be the top tau-quantile of all scores.  It is the score of some sample
    :math:`x_k`, and for a fixed k the problem without that condition is convex:

    .. math::

        \min_w\; \tfrac12 |w|^2
        + C \sum_{i \in I^+} \max(0, 1 - \langle w, x_i - x_k \rangle)
        + C \sum_{j \in I^-} \max(0, 1 + \langle w, x_j - x_k \rangle).

    It is solved for every k, and of the solutions the one is taken for which the share of scores
    above that of :math:`x_k` is nearest to tau; of equal ones that of the least objective.

    The :math:`n` problems cost :math:`O(n d)` a pass each, so :math:`O(n^2 d)` for all of them:
    `n_candidates` tries some samples only, drawn at random, which the paper does not.

    Parameters
    ----------
    tau : float, default=0.05
        Share of all samples at the top, in (0, 1).
    C : float, default=1.0
        Weight of each loss, positive.
    n_candidates : int, default=None
        Samples whose scores may be the threshold; None for all.
    tol : float, default=1e-4
        Tolerance of each problem.
    max_passes : int, default=1000
        Passes at most for each problem.
    random_state : int, RandomState or None, default=None
        What draws the candidates and the order of the passes.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes; the second one is positive.
    coef_ : ndarray of shape (1, n_features)
        The weights.
    candidate_ : int
        The sample whose score is the threshold.
    threshold_ : float
        Halfway from that score to the next higher one (half a margin where there is none): scores
        above it are called positive.
    share_ : float
        Share of the training samples with a higher one.
    objective_ : float
        The objective of its problem.

    References
    ----------
    S. Boyd, C. Cortes, M. Mohri, A. Radovanovic: Accuracy at the top. NeurIPS, 2012.
    """

    def __init__(
        self,
        tau: float = 0.05,
        C: float = 1.0,
        n_candidates: int | None = None,
        tol: float = 1e-4,
        max_passes: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.tau = tau
        self.C = C
        self.n_candidates = n_candidates
        self.tol = tol
        self.max_passes = max_passes
        self.random_state = random_state

    def _learn(self, X: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        self._require("tau", 0.0 < self.tau < 1.0, "in (0, 1)")
        self._require("C", 0.0 < self.C < np.inf, "in (0, inf)")
        few = self.n_candidates is None or self.n_candidates >= 1
        self._require("n_candidates", few, "an integer of at least 1 or None")
        random = check_random_state(self.random_state)
        n = len(X) if self.n_candidates is None else min(self.n_candidates, len(X))
        candidates = np.sort(random.permutation(len(X))[:n])
        seed = int(random.randint(2**31 - 1))
        best: tuple[float, float] = (np.inf, np.inf)
        for k in candidates:
            w, objective = self._solve(X - X[k], positive, seed)
            scores = X @ w
            share = float(np.mean(scores > scores[k]))
            found = (abs(share - self.tau), objective)
            if found < best:
                best, self.coef_, self.objective_ = found, w[np.newaxis], objective
                self.candidate_, self.share_ = int(k), share
                above = scores[scores > scores[k]]
                following = float(np.min(above, initial=scores[k] + 1.0))
                self.threshold_ = 0.5 * (float(scores[k]) + following)

    def _solve(
        self, differences: NDArray[np.float64], positive: NDArray[np.bool_], seed: int
    ) -> tuple[Vector, float]:
        """The problem of one candidate, whose score is zero, and its minimum."""
        machine = LinearSVC(
            C=self.C,
            loss="hinge",
            fit_intercept=False,
            tol=self.tol,
            max_iter=self.max_passes,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of one candidate among many
            machine.fit(differences, positive)
        w: Vector = machine.coef_[0]
        margins = np.where(positive, 1.0, -1.0) * (differences @ w)
        return w, float(0.5 * w @ w + self.C * np.maximum(0.0, 1.0 - margins).sum())

    def _scores(self, X: NDArray[np.float64]) -> Vector:
        return X @ self.coef_[0]
