"""Area under the part of the ROC curve that matters at the top."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import auc, roc_curve

from attop.metrics._inputs import check_scores, check_share


def partial_auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    *,
    standardize: bool = True,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Area under the ROC curve, left of `max_fpr` and above `min_tpr`.

    .. math::
        A = \int_0^{\text{max\_fpr}} \max(0, \mathrm{TPR}(f) - \text{min\_tpr}) \, df

    With ``min_tpr=0`` this is the one-way partial AUC, otherwise the two-way one.  The
    ROC curve joins its points by straight lines, so tied scores count half.  With weights
    its rates are shares of the weight of each class.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels.
    y_score : array-like of shape (n_samples,)
        Scores, larger for the positive class.
    max_fpr : float, default=1.0
        Largest false positive rate of interest, in (0, 1].
    min_tpr : float, default=0.0
        Smallest true positive rate of interest, in [0, 1).
    standardize : bool, default=True
        Whether to map the area linearly so that 0.5 is the diagonal (chance) and 1 a
        perfect ranking (McClish); otherwise the area itself is returned, which is at
        most ``max_fpr * (1 - min_tpr)``.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, which count copies of the samples; 1 each by default.

    Returns
    -------
    float
        The area, standardised or raw.

    Notes
    -----
    With ``standardize=True`` and ``min_tpr=0`` the value is that of
    `sklearn.metrics.roc_auc_score` with the same ``max_fpr``.

    Examples
    --------
    >>> from attop.metrics import partial_auc
    >>> partial_auc([0, 0, 1, 1], [1.0, 3.0, 2.0, 4.0])
    0.75
    >>> partial_auc([0, 0, 1, 1], [1.0, 3.0, 2.0, 4.0], max_fpr=0.5, standardize=False)
    0.25
    """
    check_share(max_fpr, "max_fpr", "partial_auc")
    check_share(min_tpr, "min_tpr", "partial_auc", "[0, 1)")
    data = check_scores(y_true, y_score, pos_label, sample_weight)
    fpr, tpr, _ = roc_curve(
        data.positive, data.score, sample_weight=data.weight, drop_intermediate=False
    )
    area = _area_in_corner(fpr, tpr, max_fpr, min_tpr)
    if not standardize:
        return area
    largest = max_fpr * (1 - min_tpr)
    chance = 0.5 * max(0.0, max_fpr - min_tpr) ** 2
    return 0.5 * (1 + (area - chance) / (largest - chance))


def _area_in_corner(fpr, tpr, max_fpr: float, min_tpr: float) -> float:
    """Area under the curve of points (fpr, tpr), left of `max_fpr` and above `min_tpr`."""
    first = int(np.searchsorted(tpr, min_tpr, side="right"))
    fpr_at_min_tpr = _interpolate(min_tpr, tpr, fpr, first)
    if fpr_at_min_tpr >= max_fpr:
        return 0.0
    last = int(np.searchsorted(fpr, max_fpr, side="right"))
    tpr_at_max_fpr = tpr[-1] if last == len(fpr) else _interpolate(max_fpr, fpr, tpr, last)
    x = np.concatenate([[fpr_at_min_tpr], fpr[first:last], [max_fpr]])
    y = np.concatenate([[min_tpr], tpr[first:last], [tpr_at_max_fpr]])
    return float(auc(x, y - min_tpr))


def _interpolate(at: float, x, y, i: int) -> float:
    """Value at `at` on the line from point ``i - 1`` to point ``i``."""
    share = (at - x[i - 1]) / (x[i] - x[i - 1])
    return y[i - 1] + share * (y[i] - y[i - 1])
