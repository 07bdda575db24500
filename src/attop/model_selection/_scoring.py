"""Metrics of scores that are already there, by the name of any scorer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics._scorer import _BaseScorer

from attop.metrics import get_scorer

#: From which samples are positive and their decision values to a number, larger is better.
Metric = Callable[[NDArray[np.bool_], NDArray[np.float64]], float]


class Decided(ClassifierMixin, BaseEstimator):
    """A classifier of samples whose decision values are known: what scorers want to see."""

    def __init__(self, decision) -> None:
        self.decision = decision
        self.classes_ = np.array([0, 1])

    def decision_function(self, X):
        """The known values, whatever `X` is."""
        return self.decision

    def predict(self, X):
        """1 where they are not negative."""
        return (self.decision >= 0.0).astype(int)


def metric_of(scoring: Any) -> Metric:
    """The metric that `scoring` stands for, on labels 0 and 1 of which 1 is positive."""
    if isinstance(scoring, str):
        scorer = get_scorer(scoring)
    elif isinstance(scoring, _BaseScorer):
        scorer = scoring
    elif callable(scoring):
        return _FunctionMetric(scoring)
    else:
        raise ValueError(
            "The 'scoring' parameter of AtTopCV must be the name of a scorer, a scorer made by "
            f"make_scorer, or a function of (y_true, y_score). Got {scoring!r} instead."
        )
    return _ScorerMetric(scorer)


# Classes rather than closures, which processes could not send to each other.
class _ScorerMetric:
    def __init__(self, scorer: Callable[..., float]) -> None:
        self.scorer = scorer

    def __call__(self, positive, decision) -> float:
        samples = np.zeros((len(decision), 1))
        return float(self.scorer(Decided(decision), samples, positive.astype(int)))


class _FunctionMetric:
    def __init__(self, function: Callable[..., float]) -> None:
        self.function = function

    def __call__(self, positive, decision) -> float:
        return float(self.function(positive.astype(int), decision))
