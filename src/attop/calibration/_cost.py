"""The threshold of least cost, and a bound on what it costs on new data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attop.calibration._base import GuaranteedThreshold
from attop.calibration._binomial import lower_limit, upper_limit


class CostThreshold(GuaranteedThreshold):
    r"""Classifier with the threshold of least cost, and a bound on its cost for new data.

    Fits `estimator`, scores samples of both classes that the fit has not seen, and takes the
    threshold at which these cost least.  With the probability `confidence` over them, the
    expected cost of a new sample is at most ``cost_bound_``.

    Parameters
    ----------
    {estimator}
    cost_matrix : array-like of shape (2, 2), default=((0, 1), (1, 0))
        What a sample costs: ``((tn, fp), (fn, tp))``, a row for each true class and a column
        for each predicted one, negative first.  Mistakes must cost more than hits,
        ``fp > tn`` and ``fn > tp``; a gain is a negative cost.
    confidence : float, default=0.95
        Probability with which ``cost_bound_`` holds, in (0, 1).
    {split}

    Attributes
    ----------
    {fitted}
    cost_ : float
        Mean cost of the held-out samples, the least of any threshold.
    cost_bound_ : float
        The expected cost of a new sample is at most this, with confidence.
    n_samples_ : int
        Number of held-out samples.
    {classes}

    Notes
    -----
    *What is promised.*  ``cost_`` itself is too low, since the threshold was chosen for it.
    ``cost_bound_`` allows for that: it holds for all thresholds at once, by the inequality
    of Dvoretzky, Kiefer, Wolfowitz and Massart for the scores of each class and the limits
    of Clopper and Pearson for the share of positives.  That the threshold is the best one
    for new data is **not** promised; its expected cost exceeds the best by at most
    :math:`2 (c_{fp} + c_{fn}) \sqrt{\log(4 / \delta) / 2m}` with :math:`m` samples held out,
    :math:`c_{fp} = fp - tn`, :math:`c_{fn} = fn - tp` and
    :math:`\delta = 1 - \text{confidence}`.

    *What is assumed.*  New samples come from the same distribution as those held out, the
    share of positives included.  The split is not stratified; where it holds out no sample of
    a class, the bound takes all of that class for mistakes.

    *Ties.*  Of thresholds that cost the same the highest is taken, which calls the fewest
    positive.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from attop.calibration import CostThreshold
    >>> X, y = make_classification(4000, weights=[0.9], class_sep=2, random_state=0)
    >>> missing_is_worse = ((0, 1), (20, 0))
    >>> model = CostThreshold(LogisticRegression(), cost_matrix=missing_is_worse, random_state=0)
    >>> bool(model.fit(X, y).cost_ < model.cost_bound_)
    True
    """

    _pool = "samples"
    _relief = "other costs"

    def __init__(
        self,
        estimator: Any,
        *,
        cost_matrix: ArrayLike = ((0, 1), (1, 0)),
        confidence: float = 0.95,
        cv: Any = 0.5,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.cost_matrix = cost_matrix
        self.confidence = confidence
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_promise(self) -> None:
        try:
            costs = np.asarray(self.cost_matrix, dtype=np.float64)
        except (TypeError, ValueError):
            costs = np.empty(0)
        valid = costs.shape == (2, 2) and np.isfinite(costs).all()
        if not (valid and costs[0, 1] > costs[0, 0] and costs[1, 0] > costs[1, 1]):
            raise ValueError(
                f"The 'cost_matrix' parameter of {type(self).__name__} must be finite numbers "
                f"((tn, fp), (fn, tp)) with fp > tn and fn > tp. Got {self.cost_matrix!r} instead."
            )

    def _promise(self) -> str:
        return f"confidence={self.confidence}"

    def _n_required(self) -> int:
        return 2

    def _set_threshold(self, scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        (tn, fp), (fn, tp) = np.asarray(self.cost_matrix, dtype=np.float64)
        values = np.unique(scores)[::-1]
        thresholds = np.append(values, np.nextafter(values[-1], -np.inf))
        fpr = _share_above(scores[~positive], thresholds)
        fnr = 1.0 - _share_above(scores[positive], thresholds)
        share = positive.mean()
        costs = (1 - share) * (tn + (fp - tn) * fpr) + share * (tp + (fn - tp) * fnr)
        best = int(np.argmin(costs))  # the first, and so the highest threshold
        self.n_samples_ = len(scores)
        self.threshold_, self.cost_ = float(thresholds[best]), float(costs[best])
        # A third of the risk for each of FPR, FNR and the two sides of the share of positives.
        n_positives, risk = int(positive.sum()), (1 - self.confidence) / 3
        of_negative = tn + (fp - tn) * _upper(fpr[best], len(scores) - n_positives, risk)
        of_positive = tp + (fn - tp) * _upper(fnr[best], n_positives, risk)
        limits = (
            lower_limit(n_positives, len(scores), risk / 2),
            upper_limit(n_positives, len(scores), risk / 2),
        )
        self.cost_bound_ = float(max((1 - p) * of_negative + p * of_positive for p in limits))


def _share_above(
    scores: NDArray[np.float64], thresholds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Share of the scores above each threshold."""
    n = max(1, len(scores))  # a class without samples has no part in the mean cost
    return 1.0 - np.searchsorted(np.sort(scores), thresholds, side="right") / n


def _upper(share: float, n: int, risk: float) -> float:
    """Bound on a distribution function that holds everywhere, but for the risk (at most 1/2)."""
    if n == 0:
        return 1.0
    return min(1.0, share + math.sqrt(math.log(1 / risk) / (2 * n)))
