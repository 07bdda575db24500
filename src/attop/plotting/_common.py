"""What the displays share: matplotlib on demand, style, and the scores of an estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from attop.metrics._response import RESPONSE_METHODS, Response, positive_class, positive_scores

#: Colours that stay apart for colour-blind readers (Okabe and Ito), dark ones first ...
COLORS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
#: ... and dashes that stay apart in black and white.
LINESTYLES = ("-", "--", "-.", ":", (0, (7, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "D", "^", "v", "P", "X")


def import_pyplot() -> Any:
    """`matplotlib.pyplot`, or an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Plots need matplotlib. Install it with: pip install "attop[plot]"'
        ) from error
    return plt


def new_or_given_ax(ax: Any, figsize: tuple[float, float]) -> Any:
    """`ax`, or the only one of a new figure."""
    if ax is not None:
        return ax
    return import_pyplot().subplots(figsize=figsize, layout="constrained")[1]


def estimator_scores(estimator: Any, X: Any, pos_label: Any, owner: str) -> tuple[Response, Any]:
    """Scores of the positive class with the estimator's threshold, and that class.

    Without `pos_label` it is the one of the estimator, or ``classes_[1]``.
    """
    if not hasattr(estimator, "classes_") or not any(
        hasattr(estimator, method) for method in RESPONSE_METHODS
    ):
        check_is_fitted(estimator)  # says so where only that is missing
        raise ValueError(
            f"{owner} needs a binary classifier with decision_function or predict_proba. "
            f"Got {estimator!r} instead."
        )
    pos_label = positive_class(estimator, estimator.classes_, pos_label, owner)
    return positive_scores(estimator, X, pos_label), pos_label


def check_threshold(threshold: Any, owner: str, *, automatic: bool) -> None:
    """Check that `threshold` is a number, None, or ``"auto"`` where that has a meaning."""
    if threshold is None or (automatic and isinstance(threshold, str) and threshold == "auto"):
        return
    if isinstance(threshold, str) or not np.isscalar(threshold) or not np.isfinite(threshold):
        allowed = "a finite number, 'auto' or None" if automatic else "a finite number or None"
        raise ValueError(
            f"The 'threshold' parameter of {owner} must be {allowed}. Got {threshold!r} instead."
        )
