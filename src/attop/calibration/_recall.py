"""A bound on the recall: the Neyman-Pearson threshold of the positives, from below."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop.calibration._base import GuaranteedThreshold
from attop.calibration._binomial import fewest_without_exception, most_exceptions
from attop.metrics._inputs import check_share


def required_positives(recall: float, confidence: float = 0.95) -> int:
    r"""Fewest held-out positives for which a threshold with this recall can be promised.

    With the smallest of `m` scores as threshold, all of them lie above the target quantile
    with probability :math:`r^m`, so :math:`m \ge \log(\delta) / \log(r)` with
    :math:`\delta = 1 - \text{confidence}`.

    Parameters
    ----------
    recall : float
        Least recall wanted, in (0, 1).
    confidence : float, default=0.95
        Probability with which it holds, in (0, 1).

    Returns
    -------
    int
        Number of positives.

    Examples
    --------
    >>> from attop.calibration import required_positives
    >>> required_positives(recall=0.9, confidence=0.95)
    29
    """
    check_share(recall, "recall", "required_positives", "(0, 1)")
    check_share(confidence, "confidence", "required_positives", "(0, 1)")
    return fewest_without_exception(1 - recall, 1 - confidence)


class RecallThreshold(GuaranteedThreshold):
    r"""Classifier whose recall on new data is bounded from below with confidence.

    Fits `estimator`, scores positives that the fit has not seen, and calls positive what
    scores at least as high as a certain one of them, such that

    .. math::
        P(\mathrm{TPR} < \text{recall}) \le 1 - \text{confidence},

    where TPR is the share of the population's positives that are called positive and the
    probability is over the held-out positives: for any estimator and distribution.

    Parameters
    ----------
    {estimator}
    recall : float, default=0.9
        Least recall (true positive rate) wanted, in (0, 1).
    confidence : float, default=0.95
        Probability with which the recall is reached, in (0, 1).
    {split}

    Attributes
    ----------
    {fitted}
    order_ : int
        Rank, among the held-out positive scores in increasing order, of the lowest score
        that is called positive.
    n_positives_ : int
        Number of held-out positives.
    violation_bound_ : float
        Bound on the probability that the recall is below `recall`; at most
        ``1 - confidence``.
    {classes}

    See Also
    --------
    NeymanPearsonThreshold : The same for the false positive rate.

    Notes
    -----
    With the `k`-th lowest of `m` held-out positive scores as the lowest that is called
    positive,

    .. math::
        P(\mathrm{TPR} < r) \le \sum_{j=0}^{k-1} \binom{m}{j} (1-r)^j r^{m-j},

    and the largest such `k` is chosen; there is one from `required_positives` on.

    New positives must come from the same distribution as those held out; the share of
    positives may change.  Ties with that score are called positive, so that they can only
    raise the recall: ``threshold_`` is the largest number below it.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from attop.calibration import RecallThreshold
    >>> X, y = make_classification(4000, weights=[0.9], class_sep=2, random_state=0)
    >>> model = RecallThreshold(LogisticRegression(), recall=0.9, random_state=0).fit(X, y)
    >>> model.n_positives_, model.order_
    (210, 14)
    """

    _pool = "positives"
    _relief = "less recall"

    def __init__(
        self,
        estimator: Any,
        *,
        recall: float = 0.9,
        confidence: float = 0.95,
        cv: Any = 0.5,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.recall = recall
        self.confidence = confidence
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_promise(self) -> None:
        check_share(self.recall, "recall", type(self).__name__, "(0, 1)")

    def _promise(self) -> str:
        return f"recall={self.recall} and confidence={self.confidence}"

    def _n_required(self) -> int:
        return required_positives(self.recall, self.confidence)

    def _set_threshold(self, scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        self.n_positives_ = len(scores)
        n_missed, self.violation_bound_ = most_exceptions(
            self.n_positives_, 1 - self.recall, 1 - self.confidence
        )
        self.order_ = n_missed + 1
        lowest = np.partition(scores, n_missed)[n_missed]
        self.threshold_ = float(np.nextafter(lowest, -np.inf))
