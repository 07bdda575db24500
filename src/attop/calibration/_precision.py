"""A bound on the precision: candidates by rank, each tested at its share of the risk."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop.calibration._base import GuaranteedThreshold, NoThresholdError
from attop.calibration._binomial import ROUNDING, fewest_without_exception, lower_limit
from attop.metrics._inputs import check_share

#: Ratio of the ranks of neighbouring candidates.  On 28 mixtures of two normal laws (300 to
#: 20,000 samples, precisions 0.7 to 0.95) the mean recall was 0.212 with a ratio of 2, 0.232
#: with 2^(1/2), 0.240 with 2^(1/3) and 0.236 with 1.1; with equal risks 0.228 at 2^(1/3).
_RATIO = 2 ** (1 / 3)


class _Candidates(NamedTuple):
    """Numbers of alarms to try, and the risk that each may take; the risks sum to at most 1 - c."""

    ranks: NDArray[np.intp]
    risks: NDArray[np.float64]


def _first_risk(confidence: float) -> float:
    """Risk of the first of infinitely many candidates whose risks fall as 1 / rank."""
    return (1 - confidence) * (1 - 1 / _RATIO)


def _candidates(n_samples: int, precision: float, confidence: float) -> _Candidates:
    """Candidates among `n_samples` scores; fixed before any score or label is seen."""
    risk = _first_risk(confidence)
    first = fewest_without_exception(1 - precision, risk)
    n_steps = int(np.log((n_samples - 0.5) / first) / np.log(_RATIO)) + 1
    growth = np.float64(_RATIO) ** np.arange(n_steps)
    ranks = np.round(first * growth).astype(np.intp)
    kept = ranks < n_samples
    return _Candidates(ranks[kept], (risk / growth)[kept])


class PrecisionThreshold(GuaranteedThreshold):
    r"""Classifier whose precision on new data is bounded from below with confidence.

    Fits `estimator`, scores samples of both classes that the fit has not seen, and takes
    the lowest of several candidate thresholds at which these samples prove the precision:

    .. math::
        P(\mathrm{precision} < p) \le 1 - \text{confidence},

    where the precision is the share of positives among the samples of the population that
    are called positive: for any estimator, distribution and sample size.

    Parameters
    ----------
    {estimator}
    precision : float, default=0.9
        Least precision wanted, in (0, 1).
    confidence : float, default=0.95
        Probability with which the precision is reached, in (0, 1).
    {split}

    Attributes
    ----------
    {fitted}
    n_samples_ : int
        Number of held-out samples.
    n_alarms_ : int
        How many of them are above the threshold.
    precision_bound_ : float
        The precision on new data is at least this, with confidence; at least `precision`.
    {classes}

    Raises
    ------
    NoThresholdError
        By `fit`, if there are too few samples, or at no candidate do they prove the
        precision: it may not exist, or there may be too few samples to see it.

    Notes
    -----
    *Why it holds.*  Given the score of rank `k + 1` from the top, the `k` samples above it
    are independent draws from what is above it, so that their positives are binomial and
    Clopper and Pearson's limit bounds the precision at that threshold.  Which ranks are
    tried is fixed in advance, and the risks of their limits sum up to ``1 - confidence``:
    all limits hold together, whichever is chosen.  Nothing is assumed about how the
    precision changes with the threshold.

    *What is assumed.*  New samples come from the same distribution as those held out, **the
    share of positives included**: with fewer positives the precision of the same threshold
    is lower.  Samples must not be picked by class, and the split is not stratified.

    *Ties.*  Only scores strictly above the threshold count, in the limits too.

    *How many samples.*  For ``precision=0.9`` and ``confidence=0.95`` at least 44 alarms
    without a mistake, more with some; a rare class takes a large sample to have these.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from attop.calibration import PrecisionThreshold
    >>> X, y = make_classification(4000, weights=[0.8], class_sep=2, random_state=0)
    >>> model = PrecisionThreshold(LogisticRegression(), precision=0.9, random_state=0)
    >>> bool(model.fit(X, y).precision_bound_ >= 0.9)
    True
    """

    _pool = "samples"
    _relief = "less precision"

    def __init__(
        self,
        estimator: Any,
        *,
        precision: float = 0.9,
        confidence: float = 0.95,
        cv: Any = 0.5,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.precision = precision
        self.confidence = confidence
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_promise(self) -> None:
        check_share(self.precision, "precision", type(self).__name__, "(0, 1)")

    def _promise(self) -> str:
        return f"precision={self.precision} and confidence={self.confidence}"

    def _n_required(self) -> int:
        # One more, whose score is the threshold.
        return 1 + fewest_without_exception(1 - self.precision, _first_risk(self.confidence))

    def _set_threshold(self, scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        self.n_samples_ = len(scores)
        candidates = _candidates(self.n_samples_, self.precision, self.confidence)
        falling = np.argsort(-scores, kind="stable")
        thresholds = scores[falling[candidates.ranks]]
        # Fewer than the rank where there are ties.
        n_above = np.searchsorted(-scores[falling], -thresholds, side="left")
        n_positives = np.concatenate([[0], np.cumsum(positive[falling])])[n_above]
        limits = lower_limit(n_positives, n_above, candidates.risks)
        proved = np.flatnonzero(limits >= self.precision * (1 - ROUNDING))
        if not len(proved):
            best = int(np.argmax(limits))
            raise NoThresholdError(
                f"{type(self).__name__} found no threshold with {self._promise()}. It takes at "
                f"least {candidates.ranks[0]} alarms to prove that; the best of {len(limits)} "
                f"candidates has {n_above[best]} alarms, {n_positives[best]} of them positive, "
                f"which prove {limits[best]:.3g}. Provide more than {self.n_samples_} held-out "
                f"samples, or ask for {self._relief} or less confidence."
            )
        chosen = proved[-1]
        self.n_alarms_ = int(n_above[chosen])
        self.precision_bound_ = float(limits[chosen])
        self.threshold_ = float(thresholds[chosen])
