"""Scorers of scores that are already there, by their name or from any metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics._scorer import _BaseScorer

from attop._labels import TopScoreMixin
from attop.metrics import get_scorer
from attop.metrics._scorers import _TopScorer

#: From a classifier, samples and labels to a number, larger is better.
Scorer = Callable[..., float]


class Decided(TopScoreMixin, ClassifierMixin, BaseEstimator):
    """A classifier of samples whose scores are known: what scorers want to see."""

    def __init__(self, scores: NDArray[np.float64], classes: Any, pos_label: Any) -> None:
        self.scores = scores
        self.classes = self.classes_ = classes
        self.pos_label = self.pos_label_ = pos_label

    def top_score(self, X: Any) -> Any:
        """The known scores, whatever `X` is."""
        return self.scores

    def score_by(
        self, scorer: Scorer, y: NDArray[Any], sample_weight: NDArray[np.float64] | None = None
    ) -> float:
        """What `scorer` says of the samples, whose labels are `y`."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if isinstance(scorer, _TopScorer) and "pos_label" not in scorer._kwargs:
            # The metric itself: to find out anew who is positive takes as long as a small fit.
            positive = y == self.pos_label_
            values = scorer._kwargs | weights
            return float(scorer._score_func(positive, self.scores, pos_label=True, **values))
        return float(scorer(self, np.zeros((len(y), 1)), y, **weights))


def scorer_of(scoring: Any) -> Scorer:
    """The scorer that `scoring` stands for: a name, a scorer or a metric."""
    if isinstance(scoring, str):
        return _RocAuc() if scoring == "roc_auc" else get_scorer(scoring)
    if isinstance(scoring, _BaseScorer):
        return scoring
    if callable(scoring):
        return _MetricScorer(scoring)
    raise ValueError(
        "The 'scoring' parameter of AtTopCV must be the name of a scorer, a scorer made by "
        f"make_scorer, or a function of (y_true, y_score). Got {scoring!r} instead."
    )


# A class rather than a closure, which processes could not send to each other.
class _MetricScorer:
    """A function of labels, 1 for positive and 0 otherwise, and scores."""

    def __init__(self, metric: Callable[..., float]) -> None:
        self.metric = metric

    def __call__(self, estimator: Any, X: Any, y: Any, **weights: Any) -> float:
        positive = np.asarray(y) == estimator.pos_label_
        return float(self.metric(positive.astype(int), estimator.top_score(X), **weights))


class _RocAuc:
    """Scikit-learn's ``"roc_auc"``, which itself takes as long as a small fit."""

    def __call__(self, estimator: Any, X: Any, y: Any, **weights: Any) -> float:
        positive, scores = np.asarray(y) == estimator.pos_label_, estimator.top_score(X)
        above, others = scores[positive], np.sort(scores[~positive])
        if weights or not (len(above) and len(others) and np.isfinite(scores).all()):
            return float(get_scorer("roc_auc")(estimator, X, y, **weights))
        # How often a positive is above a negative; ties count half.
        below = np.searchsorted(others, above, "left") + np.searchsorted(others, above, "right")
        return float(below.sum() / (2.0 * len(above) * len(others)))
