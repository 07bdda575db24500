"""A budget of alerts: so many in the next period, and no more."""

from __future__ import annotations

from bisect import bisect_left
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom
from sklearn.utils.validation import _num_samples

from attop.calibration._base import GuaranteedThreshold
from attop.calibration._binomial import ROUNDING
from attop.metrics._inputs import check_count


def _risk(rank: int, n_samples: int, max_alerts: int, period: int) -> float:
    """Chance that more than `max_alerts` of `period` samples exceed the `rank`-th largest.

    They do just if of the ``rank + max_alerts`` largest of all scores, fewer than `rank`
    belong to the `n_samples`; any choice of places for these is as likely as any other.
    """
    if rank == 1:  # all the largest are of the period; the general formula is slow for large m
        places = n_samples + period - np.arange(max_alerts + 1)
        return float(np.exp(np.sum(np.log1p(-n_samples / places))))
    return float(hypergeom.cdf(rank - 1, n_samples + period, n_samples, rank + max_alerts))


def _is_count_below(value: Any, limit: int) -> bool:
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    return is_integer and 0 <= int(value) < limit


class AlertBudgetThreshold(GuaranteedThreshold):
    r"""Classifier that raises at most so many alerts in a period, with confidence.

    Fits `estimator`, scores samples that the fit has not seen, and takes one of these scores
    as threshold such that of the next `period` samples

    .. math::
        P(\text{more than max_alerts are called positive}) \le 1 - \text{confidence}.

    The probability is over the held-out samples and over those of the period.

    Parameters
    ----------
    {estimator}
    max_alerts : int, default=10
        Most alerts allowed in a period, at least 0 and less than `period`.
    period : int, default=1000
        Number of samples in a period; if it varies, the largest.
    confidence : float, default=0.95
        Probability with which the budget is kept, in (0, 1).
    {split}

    Attributes
    ----------
    {fitted}
    order_ : int
        Rank of the threshold among the held-out scores, in increasing order.
    n_samples_ : int
        Number of held-out samples.
    violation_bound_ : float
        Bound on the probability that a period has more than `max_alerts` alerts; at most
        ``1 - confidence``.
    {classes}

    Notes
    -----
    *Labels* have no part in the threshold.  With ``cv="prefit"``, `y` may be None: the
    samples of an ordinary week will do.

    *What is assumed* is exchangeability: any order of the held-out samples and those of the
    period is as likely as any other.  The same distribution, independently drawn, is enough.
    Alerts that come in bursts, or a drift, are not covered.

    *One period.*  Every period alike is over budget with at most this probability, so that
    on average over all thresholds and periods at most a share ``1 - confidence`` of them is.
    The periods of one threshold share its luck.  For all of `h` periods at once, take
    ``confidence = 1 - delta / h``.

    *Ties* with the threshold raise no alert, so that they can only spare some.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from attop.calibration import AlertBudgetThreshold
    >>> X, y = make_classification(4000, weights=[0.99], class_sep=2, random_state=0)
    >>> model = AlertBudgetThreshold(
    ...     LogisticRegression(), max_alerts=10, period=500, random_state=0
    ... ).fit(X, y)
    >>> model.n_samples_, model.order_
    (2000, 1978)
    """

    _pool = "samples"
    _relief = "a larger budget"

    def __init__(
        self,
        estimator: Any,
        *,
        max_alerts: int = 10,
        period: int = 1000,
        confidence: float = 0.95,
        cv: Any = 0.5,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_alerts = max_alerts
        self.period = period
        self.confidence = confidence
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_promise(self) -> None:
        owner = type(self).__name__
        check_count(self.period, "period", owner)
        if not _is_count_below(self.max_alerts, self.period):
            raise ValueError(
                f"The 'max_alerts' parameter of {owner} must be an int in [0, {self.period}), the "
                f"period. Got {self.max_alerts!r} instead."
            )

    def _check_labels(self, X: Any, y: Any) -> NDArray[Any]:
        if y is None and self.cv == "prefit":
            return np.full(_num_samples(X), self.estimator.classes_[0])  # any will do
        return super()._check_labels(X, y)

    def _promise(self) -> str:
        return (
            f"max_alerts={self.max_alerts}, period={self.period} and confidence={self.confidence}"
        )

    def _n_required(self) -> int:
        # Enough for no alert at all, the chance of which is that the largest score is among
        # the m samples and not among the n of the period: m / (m + n).
        enough = int(np.ceil(self.period * self.confidence / (1 - self.confidence))) + 1
        return 1 + bisect_left(range(1, enough), True, key=self._allows)

    def _allows(self, n_samples: int, rank: int = 1) -> bool:
        risk = _risk(rank, n_samples, self.max_alerts, self.period)
        return risk <= (1 - self.confidence) * (1 + ROUNDING)

    def _set_threshold(self, scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        m = self.n_samples_ = len(scores)
        # The lowest threshold that is allowed: the chance of too many alerts grows with the rank.
        rank = bisect_left(range(1, m + 1), True, key=lambda j: not self._allows(m, j))
        self.order_ = m - rank + 1
        self.violation_bound_ = _risk(rank, m, self.max_alerts, self.period)
        self.threshold_ = float(np.partition(scores, self.order_ - 1)[self.order_ - 1])
