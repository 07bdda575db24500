"""Thresholds with a guarantee on new data.

A threshold with a false positive rate of 1 % on the samples at hand exceeds that rate on
new data about every second time.  The Neyman-Pearson threshold (Tong, Feng and Li,
Science Advances 2018) exceeds it with a probability that the user chooses.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import (
    _safe_indexing,
    assert_all_finite,
    check_random_state,
    column_or_1d,
    get_tags,
    indexable,
)
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_method_params, check_is_fitted

from attop._labels import TopScoreMixin
from attop._replica import all_or_nothing
from attop.metrics._inputs import check_count, check_share
from attop.metrics._response import RESPONSE_METHODS, positive_class, positive_scores

__all__ = [
    "NeymanPearsonOrder",
    "NeymanPearsonThreshold",
    "neyman_pearson_order",
    "required_negatives",
]

#: Relative slack when a tail probability is compared with the allowed one, both rounded.
_ROUNDING = 1e-9


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
    exact = math.log(1 - confidence) / math.log1p(-fpr)
    return max(1, math.ceil(exact * (1 - 1e-12)))  # 2.0000000000000004 means 2


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
        raise ValueError(
            f"A threshold with fpr={fpr} and confidence={confidence} needs at least {needed} "
            f"held-out negatives. Got {n_negatives} instead."
        )
    # The sum is the probability that at most m - k negatives lie above the true quantile:
    # a lower tail with the small probability fpr, accurate where 1 - fpr would be rounded.
    allowed = (1 - confidence) * (1 + _ROUNDING)
    n_above = int(binom.ppf(1 - confidence, n_negatives, fpr))
    while n_above > 0 and binom.cdf(n_above, n_negatives, fpr) > allowed:
        n_above -= 1
    return NeymanPearsonOrder(n_negatives - n_above, float(binom.cdf(n_above, n_negatives, fpr)))


class NeymanPearsonThreshold(TopScoreMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Classifier whose false positive rate on new data is bounded with confidence.

    Fits `estimator`, scores negatives that the fit has not seen, and takes one of these
    scores as threshold such that

    .. math::
        P(\mathrm{FPR} > \text{fpr}) \le 1 - \text{confidence},

    where FPR is the rate of the fitted classifier on the population and the probability
    is over the held-out negatives: for any estimator, distribution and sample size.

    Parameters
    ----------
    estimator : classifier
        Binary classifier with ``decision_function`` or ``predict_proba`` (the first is
        used where both exist); a pipeline is one too.
    fpr : float, default=0.01
        Largest false positive rate allowed, in (0, 1).
    confidence : float, default=0.95
        Probability with which the false positive rate is kept, in (0, 1).
    cv : float, int or "prefit", default=0.5
        Which negatives set the threshold.

        - float in (0, 1): this share of the negatives, drawn at random, is held out; the
          estimator is fitted on the other negatives and on all positives;
        - int, at least 2: one of `cv` equal parts of the negatives is held out, the same
          as the share ``1 / cv``;
        - ``"prefit"``: `estimator` is already fitted, and all negatives given to `fit`
          set the threshold.  **They must not have been used to train it**, in any way.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; by default the ``pos_label`` of `estimator` or of the
        one inside a pipeline or search, else ``classes_[1]``.
    random_state : int, RandomState instance or None, default=None
        Seed of the split.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    threshold_ : float
        Samples with a score above it are called positive.
    order_ : int
        Rank of the threshold among the held-out negative scores, in increasing order.
    n_negatives_ : int
        Number of held-out negatives.
    violation_bound_ : float
        Bound on the probability that the false positive rate exceeds `fpr`; at most
        ``1 - confidence``.
    classes_ : ndarray of shape (2,)
        The class labels.
    pos_label_ : int, float, bool or str
        The positive one.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Those of `estimator_`, where it has them.

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

    def __init__(
        self, estimator, *, fpr=0.01, confidence=0.95, cv=0.5, pos_label=None, random_state=None
    ):
        self.estimator = estimator
        self.fpr = fpr
        self.confidence = confidence
        self.cv = cv
        self.pos_label = pos_label
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X, y, **fit_params: Any) -> Self:
        """Fit the estimator and set the threshold; an error leaves all as it was before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, as `estimator` takes them.
        y : array-like of shape (n_samples,)
            Labels of two classes; for ``cv="prefit"`` negatives alone will do.
        **fit_params : dict
            Passed to the ``fit`` of `estimator`; arrays with one entry per sample are
            split with the samples.  They have no influence on the threshold.

        Returns
        -------
        self
            The classifier with its threshold.
        """
        self._check_parameters()
        X, y = indexable(X, _check_labels(y, type(self).__name__))
        if self.cv == "prefit":
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            held_out = self._negatives(y, self.estimator.classes_)
            self._check_enough(len(held_out), len(held_out))
        else:
            training, held_out = self._split(y)
            self.estimator_ = clone(self.estimator).fit(
                _safe_indexing(X, training),
                y[training],
                **_check_method_params(X, fit_params, indices=training),
            )
        self.classes_ = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # of an earlier fit
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self._set_threshold(_safe_indexing(X, held_out))
        return self

    def top_score(self, X) -> NDArray[np.float64]:
        """Score of each sample less the threshold, larger for the positive class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Distances from the threshold, above 0 where the positive class is predicted.
        """
        check_is_fitted(self)
        return positive_scores(self.estimator_, X, self.pos_label_).scores - self.threshold_

    def predict(self, X) -> NDArray[Any]:
        """Class of each sample, positive where its score is above the threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class labels.
        """
        # Not >=: where scores tie with the threshold, the guarantee needs a negative.
        return self._labels(self.top_score(X) > 0.0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = inner.sparse
        tags.input_tags.allow_nan = inner.allow_nan
        tags.input_tags.pairwise = inner.pairwise
        return tags

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        check_share(self.fpr, "fpr", owner, "(0, 1)")
        check_share(self.confidence, "confidence", owner, "(0, 1)")
        if self.cv != "prefit" and not 0 < _held_out_share(self.cv) < 1:
            raise ValueError(
                f"The 'cv' parameter of {owner} must be a float in (0, 1), an int in [2, inf) "
                f"or 'prefit'. Got {self.cv!r} instead."
            )
        if not any(hasattr(self.estimator, name) for name in RESPONSE_METHODS):
            raise ValueError(
                f"The 'estimator' parameter of {owner} must have decision_function or "
                f"predict_proba. Got {self.estimator!r} instead."
            )
        if self.cv != "prefit" and get_tags(self.estimator).input_tags.pairwise:
            raise ValueError(
                f"{owner} cannot split a precomputed kernel matrix, since new samples would need "
                "another one. Fit the estimator first and pass cv='prefit'."
            )

    def _split(self, y) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Indices of the training samples and of the held-out negatives."""
        negatives = self._negatives(y, np.unique(y))
        # At least one negative must be left to learn from.
        n_held_out = min(round(_held_out_share(self.cv) * len(negatives)), len(negatives) - 1)
        self._check_enough(n_held_out, len(negatives))
        held_out = check_random_state(self.random_state).permutation(negatives)[:n_held_out]
        return np.setdiff1d(np.arange(len(y)), held_out), np.sort(held_out)

    def _negatives(self, y, classes) -> NDArray[np.intp]:
        """Indices of the negatives; sets which of the two classes is positive."""
        self.pos_label_ = positive_class(
            self.estimator, classes, self.pos_label, type(self).__name__
        )
        return np.flatnonzero(np.isin(y, classes) & (y != self.pos_label_))

    def _check_enough(self, n_held_out: int, n_negatives: int) -> None:
        """Refuse, before the costly fit, a split without a valid threshold."""
        needed = required_negatives(self.fpr, self.confidence)
        if n_held_out >= needed:
            return
        message = (
            f"{type(self).__name__} with fpr={self.fpr} and confidence={self.confidence} needs at "
            f"least {needed} held-out negatives. Got {n_held_out} instead"
        )
        if self.cv != "prefit":
            total = math.ceil(needed / _held_out_share(self.cv))
            message += (
                f" (cv={self.cv} of {n_negatives} negatives): provide {total} negatives, hold out "
                "a larger share"
            )
        raise ValueError(f"{message}, or ask for a larger fpr or less confidence.")

    def _set_threshold(self, X) -> None:
        """Set the threshold from held-out negatives."""
        scores = positive_scores(self.estimator_, X, self.pos_label_).scores
        self.n_negatives_ = len(scores)
        self.order_, self.violation_bound_ = neyman_pearson_order(
            self.n_negatives_, self.fpr, self.confidence
        )
        self.threshold_ = float(np.partition(scores, self.order_ - 1)[self.order_ - 1])


def _held_out_share(cv: Any) -> float:
    """Share of the negatives held out; NaN where `cv` means nothing."""
    if isinstance(cv, float):
        return cv
    is_count = isinstance(cv, Integral) and not isinstance(cv, bool)
    return 1 / int(cv) if is_count and cv >= 2 else math.nan


def _check_labels(y, owner: str):
    """`y` as an array of labels."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    if (kind := type_of_target(y)) != "binary":
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}."
        )
    return y
