"""A bound on the false positive rate: the Neyman-Pearson threshold.

Tong, Feng and Li, Science Advances 2018; proof on the theory page of the guarantees.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop.calibration._base import GuaranteedThreshold, NoThresholdError
from attop.calibration._binomial import fewest_without_exception, most_exceptions
from attop.metrics._inputs import check_count, check_share


class NeymanPearsonOrder(NamedTuple):
    """Rank of the threshold among the negative scores, and what it guarantees.

    The rank counts from 1 in increasing order.  The probability that the false positive
    rate of new data exceeds its target equals the bound where scores are continuous.
    """

    order: int
    violation_bound: float


def required_negatives(fpr: float, confidence: float = 0.95) -> int:
    r"""Fewest held-out negatives for which a Neyman-Pearson threshold exists.

    With the largest of `m` scores as threshold, all of them lie below the target
    quantile with probability :math:`(1 - \tau)^m`, so

    .. math::
        m \ge \frac{\log(\delta)}{\log(1 - \tau)}, \qquad
        \tau = \text{fpr}, \quad \delta = 1 - \text{confidence}.

    Parameters
    ----------
    fpr : float
        Largest false positive rate allowed, in (0, 1).
    confidence : float, default=0.95
        Probability with which it holds, in (0, 1).

    Returns
    -------
    int
        Number of negatives.

    Examples
    --------
    >>> from attop.calibration import required_negatives
    >>> required_negatives(fpr=0.01, confidence=0.95)
    299
    """
    check_share(fpr, "fpr", "required_negatives", "(0, 1)")
    check_share(confidence, "confidence", "required_negatives", "(0, 1)")
    return fewest_without_exception(fpr, 1 - confidence)


def neyman_pearson_order(
    n_negatives: int, fpr: float, confidence: float = 0.95
) -> NeymanPearsonOrder:
    r"""Order statistic of the negative scores that keeps the false positive rate.

    On `m` negatives sorted by score, the k-th one as threshold (samples above it are
    called positive) has

    .. math::
        P(\mathrm{FPR} > \tau) \le \sum_{j=k}^{m} \binom{m}{j} (1-\tau)^j \tau^{m-j};

    the smallest such `k` with a bound of at most ``1 - confidence`` is chosen.

    Parameters
    ----------
    n_negatives : int
        Number `m` of negatives, independent of the scores' model.
    fpr : float
        Largest false positive rate allowed, in (0, 1).
    confidence : float, default=0.95
        Probability with which it holds, in (0, 1).

    Returns
    -------
    NeymanPearsonOrder
        The order `k` and the bound it reaches.

    Examples
    --------
    >>> from attop.calibration import neyman_pearson_order
    >>> neyman_pearson_order(1000, fpr=0.01).order
    996
    """
    check_count(n_negatives, "n_negatives", "neyman_pearson_order")
    needed = required_negatives(fpr, confidence)
    if n_negatives < needed:
        raise NoThresholdError(
            f"A threshold with fpr={fpr} and confidence={confidence} needs at least {needed} "
            f"held-out negatives. Got {n_negatives} instead."
        )
    # The sum is the probability that at most m - k negatives lie above the true quantile:
    # a lower tail with the small probability fpr, accurate where 1 - fpr would be rounded.
    n_above, bound = most_exceptions(n_negatives, fpr, 1 - confidence)
    return NeymanPearsonOrder(n_negatives - n_above, bound)


class NeymanPearsonThreshold(GuaranteedThreshold):
    r"""Classifier whose false positive rate on new data is bounded with confidence.

    Fits `estimator`, scores negatives that the fit has not seen, and takes one of these
    scores as threshold such that

    .. math::
        P(\mathrm{FPR} > \text{fpr}) \le 1 - \text{confidence},

    where FPR is the rate of the fitted classifier on the population and the probability
    is over the held-out negatives: for any estimator, distribution and sample size.

    Parameters
    ----------
    {estimator}
    fpr : float, default=0.01
        Largest false positive rate allowed, in (0, 1).
    confidence : float, default=0.95
        Probability with which the false positive rate is kept, in (0, 1).
    {split}

    Attributes
    ----------
    {fitted}
    order_ : int
        Rank of the threshold among the held-out negative scores, in increasing order.
    n_negatives_ : int
        Number of held-out negatives.
    violation_bound_ : float
        Bound on the probability that the false positive rate exceeds `fpr`; at most
        ``1 - confidence``.
    {classes}

    Notes
    -----
    *Why a single split.*  The proof needs held-out scores that are independent draws from
    the scores of new negatives, under one fixed scoring function.  Scores pooled over the
    folds of a cross-validation come from different functions, none of which is the final
    one, and a refit on all samples changes the scores after the threshold was set: with
    either, nothing is guaranteed.  What the split costs is smaller than it seems, since
    positives play no part in the threshold and all of them train the estimator.

    *What is guaranteed.*  New negatives must come from the same distribution as those
    held out; the share of positives may change.  The threshold is one for one trained
    model: the confidence is over repetitions of the whole procedure, not over samples.

    *Ties.*  Only scores strictly above the threshold are called positive.  Where scores
    have ties the false positive rate can then only be lower, and the bound holds still.

    *Weights.*  Those passed to `fit` are for the estimator.  A negative of weight zero is left
    out, and any other that is held out counts once: the guarantee is about negatives as they
    are drawn, unweighted.

    *How many negatives.*  At least `required_negatives`, 299 by default, with their largest
    score as threshold.  More are less cautious: of 2000 held out, 12 (0.6 %) may pass.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from attop.calibration import NeymanPearsonThreshold
    >>> X, y = make_classification(4000, weights=[0.9], class_sep=2, random_state=0)
    >>> model = NeymanPearsonThreshold(LogisticRegression(), fpr=0.05, random_state=0).fit(X, y)
    >>> model.n_negatives_, model.order_
    (1790, 1716)
    """

    _pool = "negatives"
    _relief = "a larger fpr"

    def __init__(
        self,
        estimator: Any,
        *,
        fpr: float = 0.01,
        confidence: float = 0.95,
        cv: Any = 0.5,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.fpr = fpr
        self.confidence = confidence
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_promise(self) -> None:
        check_share(self.fpr, "fpr", type(self).__name__, "(0, 1)")

    def _promise(self) -> str:
        return f"fpr={self.fpr} and confidence={self.confidence}"

    def _n_required(self) -> int:
        return required_negatives(self.fpr, self.confidence)

    def _set_threshold(self, scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        self.n_negatives_ = len(scores)
        self.order_, self.violation_bound_ = neyman_pearson_order(
            self.n_negatives_, self.fpr, self.confidence
        )
        self.threshold_ = float(np.partition(scores, self.order_ - 1)[self.order_ - 1])
