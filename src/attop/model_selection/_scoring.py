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
        return float(scorer(self, np.zeros((len(y), 1)), y, **weights))


def scorer_of(scoring: Any) -> Scorer:
    """The scorer that `scoring` stands for: a name, a scorer or a metric."""
    if isinstance(scoring, str):
        return get_scorer(scoring)
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
