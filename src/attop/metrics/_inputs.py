"""Checks shared by the metrics: labels, scores, weights and parameters."""

from __future__ import annotations

import operator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_sample_weight

#: Relative slack when a share is compared with a bound: sums of weights are rounded, and
#: a share that equals the bound on paper must count as reaching it.
ROUNDING = 1e-12


class LabelledScores(NamedTuple):
    """Checked input of a metric.

    Attributes
    ----------
    positive : ndarray of bool
        Whether each sample is positive.
    score : ndarray of float64
        Score of each sample.
    weight : ndarray of float64
        Weight of each sample, positive; ones where none were given.
    """

    positive: NDArray[np.bool_]
    score: NDArray[np.float64]
    weight: NDArray[np.float64]


def check_scores(
    y_true: ArrayLike,
    y_score: ArrayLike,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> LabelledScores:
    """Check the input of a metric; samples of weight zero are left out."""
    positive = is_positive(y_true, pos_label)
    score = _check_score(y_score)
    check_consistent_length(y_true, y_score)
    weight = check_weight(sample_weight, score)
    if sample_weight is not None:
        kept = weight > 0
        positive, score, weight = positive[kept], score[kept], weight[kept]
    if positive.all() or not positive.any():
        missing = "negative" if positive.any() else "positive"
        raise ValueError(
            f"This metric needs both classes in 'y_true' (with positive weight): "
            f"there are no {missing} samples."
        )
    return LabelledScores(positive, score, weight)


def is_positive(y_true: ArrayLike, pos_label: Any = None) -> NDArray[np.bool_]:
    """Which samples are positive.

    Without `pos_label` the labels must be {0, 1} or {-1, 1}, and 1 is positive.
    """
    if isinstance(y_true, np.ndarray) and y_true.dtype == bool and y_true.ndim == 1:
        if pos_label is None or pos_label is True:  # there is nothing to find out
            return y_true
    labels = column_or_1d(y_true)
    assert_all_finite(labels, input_name="y_true")
    kind = type_of_target(labels, input_name="y_true")
    if kind != "binary":
        raise ValueError(f"The labels 'y_true' must be binary. Got {kind} labels instead.")
    classes = np.unique(labels)
    if pos_label is None:
        numeric = classes.dtype.kind in "biuf"
        if not numeric or not ({*classes.tolist()} <= {0, 1} or {*classes.tolist()} <= {-1, 1}):
            raise ValueError(
                "Without 'pos_label' the labels 'y_true' must be in {0, 1} or {-1, 1}. "
                f"Got {classes.tolist()} instead: pass pos_label."
            )
        pos_label = 1
    elif len(classes) == 2 and pos_label not in classes.tolist():
        raise ValueError(
            f"The 'pos_label' parameter must be one of the labels {classes.tolist()}. "
            f"Got {pos_label!r} instead."
        )
    return np.asarray(labels == pos_label, dtype=bool)


def check_weight(
    sample_weight: ArrayLike | None, score: NDArray[np.float64]
) -> NDArray[np.float64]:
    """One weight for each score: finite, not negative, not all zero; ones where none are given."""
    weight = _check_sample_weight(sample_weight, score, dtype=np.float64)
    if (weight < 0).any():
        raise ValueError(
            f"The weights 'sample_weight' must not be negative. Got {weight.min():g} instead."
        )
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError("The weights 'sample_weight' must be finite, and so must their sum.")
    return weight


def check_count(value: Any, name: str, owner: str) -> None:
    """Check that `value` is an integer of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be an int in [1, inf). Got {value!r} instead."
        )


def check_share(value: Any, name: str, owner: str, interval: str = "(0, 1]") -> None:
    """Check that `value` lies in `interval`, one of ``(0, 1]``, ``[0, 1)``, ``(0, 1)``."""
    above_0 = operator.gt if interval[0] == "(" else operator.ge
    below_1 = operator.lt if interval[-1] == ")" else operator.le
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and above_0(value, 0) and below_1(value, 1)):
        raise ValueError(
            f"The {name!r} parameter of {owner} must be in {interval}. Got {value!r} instead."
        )


def _check_score(y_score: ArrayLike) -> NDArray[np.float64]:
    score = check_array(y_score, ensure_2d=False, dtype=np.float64, input_name="y_score")
    if score.ndim == 2 and score.shape[1] > 1:
        raise ValueError(
            "The scores 'y_score' must be one column, that of the positive class. "
            f"Got an array of shape {score.shape} instead."
        )
    return column_or_1d(score)
