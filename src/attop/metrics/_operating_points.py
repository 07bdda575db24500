"""Metrics at one threshold: rates and precisions of the samples above it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import precision_recall_curve

from attop.metrics._inputs import ROUNDING, LabelledScores, check_count, check_scores, check_share


def tpr_at_k(y_true: ArrayLike, y_score: ArrayLike, k: int = 1, *, pos_label: Any = None) -> float:
    r"""True positive rate above the mean of the `k` largest negative scores (TPR@K).

    .. math::
        \frac{1}{n_+} \sum_{i \in I_+} [s_i \ge t],
        \qquad t = \frac{1}{k} \sum_{j=1}^{k} s^-_{[j]}

    This is the metric that `TopPush` (``k=1``) and `TopPushK` aim at.  Positives tied
    with the threshold count.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels.
    y_score : array-like of shape (n_samples,)
        Scores, larger for the positive class.
    k : int, default=1
        Number of negative scores averaged, at most the number of negatives.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.

    Returns
    -------
    float
        Share of the positives, in [0, 1].

    Notes
    -----
    There is no ``sample_weight``: `k` counts samples.

    Examples
    --------
    >>> from attop.metrics import tpr_at_k
    >>> tpr_at_k([0, 0, 0, 1, 1], [1.0, 2.0, 4.0, 3.0, 5.0], k=2)
    1.0
    >>> tpr_at_k([0, 0, 0, 1, 1], [1.0, 2.0, 4.0, 3.0, 5.0], k=1)
    0.5
    """
    check_count(k, "k", "tpr_at_k")
    data = check_scores(y_true, y_score, pos_label)
    negatives = data.score[~data.positive]
    _check_enough(k, len(negatives), "tpr_at_k", "negative samples")
    top = np.sort(np.partition(negatives, -k)[-k:])
    # A mean of equal numbers may be rounded away from them, which would break ties.
    threshold = np.clip(top.mean(), top[0], top[-1])
    return float(np.mean(data.score[data.positive] >= threshold))


def tpr_at_fpr(
    y_true: ArrayLike,
    y_score: ArrayLike,
    tau: float = 0.01,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""True positive rate at the top `tau`-quantile of the negative scores (TPR@tau).

    .. math::
        \frac{1}{n_+} \sum_{i \in I_+} [s_i \ge t],
        \qquad t = \max \{ t : \tfrac{1}{n_-} \sum_{j \in I_-} [s_j \ge t] \ge \tau \}

    This is the metric that `TauFPL` and `PatMatNP` aim at.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels.
    y_score : array-like of shape (n_samples,)
        Scores, larger for the positive class.
    tau : float, default=0.01
        Share of the negatives at or above the threshold, in (0, 1].
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, of the positives in the rate and of the negatives in the share.

    Returns
    -------
    float
        Share of the positives, in [0, 1].

    Notes
    -----
    The threshold is the score of a negative, and positives tied with it count.  Where no
    positive ties with a negative, the same positives lie strictly above the threshold,
    where the false positive rate is below `tau`.  With ties the value is optimistic:
    scores that are all equal give 1.

    Examples
    --------
    >>> from attop.metrics import tpr_at_fpr
    >>> tpr_at_fpr([0, 0, 0, 0, 1, 1], [1.0, 2.0, 3.0, 5.0, 4.0, 6.0], tau=0.25)
    0.5
    >>> tpr_at_fpr([0, 0, 0, 0, 1, 1], [1.0, 2.0, 3.0, 5.0, 4.0, 6.0], tau=0.5)
    1.0
    """
    check_share(tau, "tau", "tpr_at_fpr")
    data = check_scores(y_true, y_score, pos_label, sample_weight)
    negative = ~data.positive
    downwards = np.argsort(-data.score[negative])
    mass = np.cumsum(data.weight[negative][downwards])
    rank = np.searchsorted(mass / mass[-1], tau * (1 - ROUNDING))
    threshold = data.score[negative][downwards[rank]]
    return _tpr(data, data.score >= threshold)


def positives_at_top(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Share of the positives that score above every negative.

    .. math::
        \frac{1}{n_+} \sum_{i \in I_+} [s_i > \max_{j \in I_-} s_j]

    A positive tied with the best negative does not count; in `tpr_at_k` with ``k=1``
    it does, and that is the only difference.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels.
    y_score : array-like of shape (n_samples,)
        Scores, larger for the positive class.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the positives; a negative counts unless its weight is zero.

    Returns
    -------
    float
        Share of the positives, in [0, 1].

    Examples
    --------
    >>> from attop.metrics import positives_at_top
    >>> positives_at_top([0, 0, 1, 1], [1.0, 2.0, 2.0, 3.0])
    0.5
    """
    data = check_scores(y_true, y_score, pos_label, sample_weight)
    return _tpr(data, data.score > data.score[~data.positive].max())


def precision_at_k(
    y_true: ArrayLike, y_score: ArrayLike, k: int = 10, *, pos_label: Any = None
) -> float:
    r"""Share of positives among the `k` samples with the largest scores.

    Where the border of the top `k` falls into a group of tied scores, the value is its
    expectation over a random order of the tied samples,

    .. math::
        \frac{1}{k} \Bigl( p_> + (k - n_>) \frac{p_=}{n_=} \Bigr),

    with :math:`n_>, n_=` the numbers of samples above and at the border and
    :math:`p_>, p_=` the positives among them.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels.
    y_score : array-like of shape (n_samples,)
        Scores, larger for the positive class.
    k : int, default=10
        Number of samples looked at, at most ``n_samples``.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.

    Returns
    -------
    float
        Precision, in [0, 1].

    Notes
    -----
    There is no ``sample_weight``: `k` counts samples.

    Examples
    --------
    >>> from attop.metrics import precision_at_k
    >>> precision_at_k([0, 1, 0, 1], [1.0, 2.0, 2.0, 3.0], k=2)
    0.75
    """
    check_count(k, "k", "precision_at_k")
    positive, score, _ = check_scores(y_true, y_score, pos_label)
    _check_enough(k, len(score), "precision_at_k", "samples")
    border = np.partition(score, -k)[-k]
    above, at_border = score > border, score == border
    tied_positives = (k - above.sum()) * positive[at_border].mean()
    return float((positive[above].sum() + tied_positives) / k)


def precision_at_recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    recall: float = 0.9,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Highest precision of any threshold whose recall is at least `recall`.

    .. math::
        \max \{ \mathrm{precision}(t) : \mathrm{recall}(t) \ge r \},
        \qquad \text{where samples with } s \ge t \text{ are called positive}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels.
    y_score : array-like of shape (n_samples,)
        Scores, larger for the positive class.
    recall : float, default=0.9
        Share of the positives to be found, in (0, 1].
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights.

    Returns
    -------
    float
        Precision, in (0, 1].

    Examples
    --------
    >>> from attop.metrics import precision_at_recall
    >>> precision_at_recall([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], recall=0.5)
    1.0
    """
    check_share(recall, "recall", "precision_at_recall")
    data = check_scores(y_true, y_score, pos_label, sample_weight)
    precisions, recalls = _precisions_and_recalls(data)
    return float(precisions[recalls >= recall * (1 - ROUNDING)].max())


def recall_at_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    precision: float = 0.9,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Highest recall of any threshold whose precision is at least `precision`.

    .. math::
        \max \{ \mathrm{recall}(t) : \mathrm{precision}(t) \ge p \},
        \qquad \text{where samples with } s \ge t \text{ are called positive}

    and 0 where no threshold is that precise.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels.
    y_score : array-like of shape (n_samples,)
        Scores, larger for the positive class.
    precision : float, default=0.9
        Precision asked for, in (0, 1].
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights.

    Returns
    -------
    float
        Recall, in [0, 1].

    Examples
    --------
    >>> from attop.metrics import recall_at_precision
    >>> recall_at_precision([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], precision=0.9)
    0.5
    """
    check_share(precision, "precision", "recall_at_precision")
    data = check_scores(y_true, y_score, pos_label, sample_weight)
    precisions, recalls = _precisions_and_recalls(data)
    return float(recalls[precisions >= precision * (1 - ROUNDING)].max())


def _precisions_and_recalls(data: LabelledScores):
    """Precision and recall of every threshold, and (1, 0) for none called positive."""
    precisions, recalls, _ = precision_recall_curve(
        data.positive, data.score, sample_weight=data.weight
    )
    return precisions, recalls


def _tpr(data: LabelledScores, called_positive) -> float:
    """Weighted share of the positives that are called positive."""
    weight = data.weight[data.positive]
    return float(np.average(called_positive[data.positive], weights=weight))


def _check_enough(k: int, available: int, owner: str, what: str) -> None:
    if k > available:
        raise ValueError(
            f"The 'k' parameter of {owner} must be at most the number of {what}, {available}. "
            f"Got {k} instead."
        )
