"""Scores of the positive class from any fitted binary classifier."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted

from attop._labels import stated_pos_label

#: Where scores come from, in order of preference: probabilities may saturate at 1.
RESPONSE_METHODS = ("decision_function", "predict_proba")


class Response(NamedTuple):
    """Scores of the positive class, and the threshold at which it is predicted."""

    scores: NDArray[np.float64]
    threshold: float


def positive_class(estimator, classes, pos_label: Any, owner: str) -> Any:
    """The positive one of two classes: `pos_label`, or that of `estimator`, or the second."""
    labels = np.asarray(classes).tolist()
    if len(labels) != 2:
        got = "one class" if len(labels) == 1 else f"{len(labels)} classes"
        raise ValueError(f"{owner} needs two classes. Got {got} instead.")
    if pos_label is None:
        pos_label = stated_pos_label(estimator)
    if pos_label is None:
        return labels[1]
    if pos_label not in labels:
        raise ValueError(
            f"The 'pos_label' parameter of {owner} must be one of {labels}. "
            f"Got {pos_label!r} instead."
        )
    return pos_label


def positive_scores(estimator, X, pos_label: Any) -> Response:
    """Scores of a fitted classifier, larger for the class `pos_label`.

    As everywhere in scikit-learn, ``decision_function`` is larger for ``classes_[1]``.
    """
    check_is_fitted(estimator)
    index = np.asarray(estimator.classes_).tolist().index(pos_label)
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64).ravel()
        response = Response(scores if index == 1 else -scores, 0.0)
    else:
        probabilities = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        response = Response(probabilities[:, index], 0.5)
    assert_all_finite(response.scores, input_name="scores of the estimator")
    return response
