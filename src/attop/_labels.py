"""Labels of two classes, of which one is the positive: who is which, and whose score is high."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class TopScoreMixin:
    """`decision_function` and `predict` of a classifier that has `top_score`.

    ``classes_`` are sorted and ``decision_function`` is larger for ``classes_[1]``, as
    everywhere in scikit-learn, whichever class is positive.
    """

    classes_: NDArray[Any]
    pos_label_: Any

    def top_score(self, X: Any) -> NDArray[np.float64]:
        """Score less threshold, larger for the positive class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Distances from the threshold.
        """
        raise NotImplementedError

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score less threshold, larger for ``classes_[1]``.

        This is `top_score`, negated where the positive class is ``classes_[0]``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, as `top_score` takes them.

        Returns
        -------
        ndarray of shape (n_samples,)
            Decision values, whose sign is the side of the threshold.
        """
        score = self.top_score(X)
        return score if self._positive_is_last() else -score

    def predict(self, X: Any) -> NDArray[Any]:
        """The positive class where the score reaches the threshold, the other elsewhere.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples, as `top_score` takes them.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, of `classes_`.
        """
        return self._labels(self.top_score(X) >= 0.0)

    def _labels(self, positive: NDArray[np.bool_]) -> NDArray[Any]:
        """The labels of samples of which some are called positive."""
        return self.classes_[(positive == self._positive_is_last()).astype(np.intp)]

    def _positive_is_last(self) -> bool:
        return bool(self.pos_label_ == self.classes_[1])


def stated_pos_label(estimator: Any) -> Any:
    """The class that a classifier, fitted or not, takes for positive; None if it says nothing.

    That of a pipeline or a search is the one of the classifier inside.
    """
    for name in ("pos_label_", "pos_label"):
        if (label := getattr(estimator, name, None)) is not None:
            return label
    inner = _inner(estimator)
    return None if inner is None else stated_pos_label(inner)


def _inner(estimator: Any) -> Any:
    """The classifier inside another that hands it the labels as they are, else None.

    Ensembles encode the labels: one that is named inside says nothing about those outside.
    """
    # Imported here: all of them together make `import attop` slow.
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
    from sklearn.model_selection._search import BaseSearchCV
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, Pipeline):
        return estimator.steps[-1][1]
    wrappers = (
        BaseSearchCV,
        CalibratedClassifierCV,
        FixedThresholdClassifier,
        TunedThresholdClassifierCV,
    )
    if not isinstance(estimator, wrappers):
        return None
    fitted_first = ("best_estimator_", "estimator_", "estimator")
    return next(getattr(estimator, name) for name in fitted_first if hasattr(estimator, name))
