"""What rankers have in common: two classes, scores, and a threshold that they do not have."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from attop._validation import check_two_classes

Vector = NDArray[np.float64]


class Ranker(ClassifierMixin, BaseEstimator):
    """Learns scores from positives and negatives; the second of the sorted classes is positive."""

    classes_: NDArray[Any]
    threshold_: float

    def fit(self, X: Any, y: Any) -> Self:
        """Learn scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels of two classes.

        Returns
        -------
        self
            The fitted ranker.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        self.classes_ = check_two_classes(y, None)
        positive = y == self.classes_[1]
        self._learn(X, positive)
        return self

    @abstractmethod
    def _learn(self, X: NDArray[np.float64], positive: NDArray[np.bool_]) -> None:
        """Set the fitted attributes, `threshold_` among them."""

    @abstractmethod
    def _scores(self, X: NDArray[np.float64]) -> Vector:
        """The scores of samples."""

    def decision_function(self, X: Any) -> Vector:
        """Scores less the threshold: above 0 for what is called positive.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The scores.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._scores(X) - self.threshold_

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            The classes.
        """
        above = self.decision_function(X) > 0.0
        return self.classes_[above.astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # ranking is not the accuracy that is asked for
        return tags

    def _require(self, name: str, valid: bool, what: str) -> None:
        if not valid:
            raise ValueError(
                f"The '{name}' parameter of {type(self).__name__} must be {what}. "
                f"Got {getattr(self, name)!r} instead."
            )


def best_threshold(scores: Vector, positive: NDArray[np.bool_]) -> float:
    """A threshold of the greatest accuracy on the training samples, halfway between two scores."""
    order = np.argsort(-scores, kind="stable")
    gains = np.cumsum(np.where(positive[order], 1, -1))  # of calling the first so many positive
    ends = np.flatnonzero(np.append(np.diff(scores[order]) < 0.0, True))
    best = ends[np.argmax(gains[ends])]
    ranked = scores[order]
    following = ranked[best + 1] if best + 1 < len(ranked) else ranked[best] - 1.0
    return float(0.5 * (ranked[best] + following))
