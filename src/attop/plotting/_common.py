"""What the displays share: matplotlib on demand, style, and the scores of an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

#: Colours that stay apart for colour-blind readers (Okabe and Ito), dark ones first ...
COLORS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
#: ... and dashes that stay apart in black and white.
LINESTYLES = ("-", "--", "-.", ":", (0, (7, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "D", "^", "v", "P", "X")


def import_pyplot():
    """`matplotlib.pyplot`, or an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Plots need matplotlib. Install it with: pip install "attop[plot]"'
        ) from error
    return plt


def new_or_given_ax(ax: Any, figsize: tuple[float, float]):
    """`ax`, or the only one of a new figure."""
    if ax is not None:
        return ax
    return import_pyplot().subplots(figsize=figsize, layout="constrained")[1]


def estimator_scores(estimator, X, pos_label: Any) -> tuple[NDArray[np.float64], float, Any]:
    """Scores of the positive class, the estimator's threshold on them, and the class.

    Without `pos_label` the positive class is ``classes_[1]``.
    """
    check_is_fitted(estimator)
    classes = list(getattr(estimator, "classes_", ()))
    if len(classes) != 2:
        raise ValueError(f"The 'estimator' must be a binary classifier. Got {estimator!r} instead.")
    if pos_label is None:
        pos_label = classes[1]
    elif pos_label not in classes:
        raise ValueError(
            f"The 'pos_label' parameter must be one of {classes}. Got {pos_label!r} instead."
        )
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64).ravel()
        return (scores if pos_label == classes[1] else -scores), 0.0, pos_label
    probabilities = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    return probabilities[:, classes.index(pos_label)], 0.5, pos_label


def check_threshold(threshold: Any, owner: str, *, automatic: bool) -> None:
    """Check that `threshold` is a number, None, or ``"auto"`` where that has a meaning."""
    if threshold is None or (automatic and isinstance(threshold, str) and threshold == "auto"):
        return
    if isinstance(threshold, str) or not np.isscalar(threshold) or not np.isfinite(threshold):
        allowed = "a finite number, 'auto' or None" if automatic else "a finite number or None"
        raise ValueError(
            f"The 'threshold' parameter of {owner} must be {allowed}. Got {threshold!r} instead."
        )
