"""Bands of the ROC curve whose every point is a threshold that can be promised."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attop.calibration._binomial import lower_limit, upper_limit
from attop.metrics._inputs import check_scores, check_share

#: Limits take some 10 microseconds each; between neighbours of 5000 points that cover a million
#: negatives, the levels differ by less than 0.3 %.
_MOST_POINTS = 5000


class NeymanPearsonBands(NamedTuple):
    """What each Neyman-Pearson threshold of given samples promises, from highest to lowest.

    For a false positive rate in ``[fpr[i], fpr[i + 1])`` the threshold is ``thresholds[i]``.

    Attributes
    ----------
    fpr : ndarray of shape (n_points,)
        Rate that is kept with confidence, increasing.
    tpr_lower, tpr_upper : ndarray of shape (n_points,)
        Limits between which the true positive rate lies, with confidence.
    thresholds : ndarray of shape (n_points,)
        Scores of the negatives, falling; samples above are called positive.
    confidence : float
        The confidence.
    """

    fpr: NDArray[np.float64]
    tpr_lower: NDArray[np.float64]
    tpr_upper: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    confidence: float


def neyman_pearson_bands(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    confidence: float = 0.95,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> NeymanPearsonBands:
    r"""NP-ROC bands: the true positive rate at each false positive rate that can be promised.

    An ROC curve shows the rates of samples at hand.  Here the horizontal axis is a rate that
    holds on new data: for each level, `NeymanPearsonThreshold` has a threshold whose false
    positive rate exceeds the level with a probability of at most ``1 - confidence``, and its
    true positive rate is outside the band with at most that probability.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels.
    y_score : array-like of shape (n_samples,)
        Scores of samples that were not used in training, larger for the positive class.
    confidence : float, default=0.95
        Probability with which each of the two statements holds, in (0, 1).
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Samples of weight zero are left out, and any other counts once, as in the fit of
        `NeymanPearsonThreshold`.

    Returns
    -------
    NeymanPearsonBands
        A point for each negative, the lowest thinned out where there are more than 5000.

    Notes
    -----
    Both statements are about one level that was chosen in advance, not about all levels at
    once.  The band begins at the least level that so many negatives can promise,
    :math:`1 - (1 - \text{confidence})^{1/m}`.  Since its levels are promised rates and those
    of the ROC curve observed ones, the curve is to the left of the band, or above.

    References
    ----------
    X. Tong, Y. Feng, J. J. Li, "Neyman-Pearson classification algorithms and NP receiver
    operating characteristics", Science Advances 4 (2018).

    Examples
    --------
    >>> import numpy as np
    >>> from attop.calibration import neyman_pearson_bands
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [1000, 200])
    >>> bands = neyman_pearson_bands(y, rng.normal(size=1200) + 3 * y)
    >>> i = np.searchsorted(bands.fpr, 0.05, side="right") - 1
    >>> print(f"{bands.tpr_lower[i]:.2f} to {bands.tpr_upper[i]:.2f}")
    0.88 to 0.96
    """
    check_share(confidence, "confidence", "neyman_pearson_bands", "(0, 1)")
    positive, score, _ = check_scores(y_true, y_score, pos_label, sample_weight)
    n_negatives, n_positives, risk = int(np.sum(~positive)), int(positive.sum()), 1 - confidence
    # How many negatives are above each threshold: all numbers at first, then ever fewer.
    above = np.arange(n_negatives)
    if n_negatives > _MOST_POINTS:
        above = np.unique(np.geomspace(1, n_negatives, _MOST_POINTS).astype(np.intp)) - 1
    thresholds = np.sort(score[~positive])[::-1][above]
    n_hits = n_positives - np.searchsorted(np.sort(score[positive]), thresholds, side="right")
    return NeymanPearsonBands(
        fpr=upper_limit(above, n_negatives, risk),
        tpr_lower=lower_limit(n_hits, n_positives, risk / 2),
        tpr_upper=upper_limit(n_hits, n_positives, risk / 2),
        thresholds=thresholds,
        confidence=confidence,
    )
