"""Metrics at one threshold: rates and precisions of the samples above it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attop.metrics._inputs import ROUNDING, LabelledScores, check_count, check_scores, check_share


def tpr_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int = 1,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""True positive rate above the mean of the `k` largest negative scores (TPR@K).

    .. math::
        \frac{1}{n_+} \sum_{i \in I_+} [s_i \ge t],
        \qquad t = \frac{1}{k} \sum_{j=1}^{k} s^-_{[j]}

    and with weights :math:`w`

    .. math::
        \frac{\sum_{i \in I_+} w_i [s_i \ge t]}{\sum_{i \in I_+} w_i},
        \qquad t = \max \Bigl\{ \frac{1}{k} \sum_{j \in I_-} g_j s_j :
        0 \le g_j \le w_j, \sum_{j \in I_-} g_j = k \Bigr\}.

    This is the metric that `TopPush` (``k=1``) and `TopPushK` aim at.  Positives tied
    with the threshold count.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels.
    y_score : array-like of shape (n_samples,)
        Scores, larger for the positive class.
    k : int, default=1
        Number of negative scores averaged, copies counted, at most that of the negatives.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, which count copies of the samples; 1 each by default.

    Returns
    -------
    float
        Share of the positives, in [0, 1].

    Notes
    -----
    `k` counts copies, so that the unit of the weights matters, other than in metrics that
    know only shares: with all weights doubled, ``2 * k`` gives what `k` gave.

    Examples
    --------
    >>> from attop.metrics import tpr_at_k
    >>> tpr_at_k([0, 0, 0, 1, 1], [1.0, 2.0, 4.0, 3.0, 5.0], k=2)
    1.0
    >>> tpr_at_k([0, 0, 0, 1, 1], [1.0, 2.0, 4.0, 3.0, 5.0], k=1)
    0.5
    >>> tpr_at_k([0, 0, 0, 1, 1], [1.0, 2.0, 4.0, 3.0, 5.0], k=2, sample_weight=[1, 1, 2, 3, 1])
    0.25
    """
    check_count(k, "k", "tpr_at_k")
    data = check_scores(y_true, y_score, pos_label, sample_weight)
    score, weight = data.score[~data.positive], data.weight[~data.positive]
    _check_enough(k, weight, "tpr_at_k", "negative samples")
    top, counted = _highest(score, weight, k)
    # A mean of equal numbers may be rounded away from them, which would break ties.
    threshold = np.clip(np.average(top, weights=counted), top[-1], top[0])
    return _tpr(data, data.score >= threshold)


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

    With weights, both sums are weighted and :math:`n_+, n_-` are sums of weights.  This is the
    metric that `TauFPL` and `PatMatNP` aim at.

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
        Weights, which count copies of the samples; 1 each by default.

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
    score, weight = data.score[~data.positive], data.weight[~data.positive]
    top, _ = _highest(score, weight, tau * weight.sum())
    return _tpr(data, data.score >= top[-1])


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

    With weights the sum is weighted, and :math:`n_+` the sum of the weights.  A positive tied
    with the best negative does not count; in `tpr_at_k` with ``k=1`` it does, and without weights
    that is the only difference.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels.
    y_score : array-like of shape (n_samples,)
        Scores, larger for the positive class.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, which count copies of the samples; 1 each by default.  A negative counts
        unless its weight is zero.

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
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int = 10,
    *,
    pos_label: Any = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    r"""Share of positives among the `k` samples with the largest scores.

    Where the border of the top `k` falls into a group of tied scores, the value is its
    expectation over a random order of the tied samples,

    .. math::
        \frac{1}{k} \Bigl( p_> + (k - n_>) \frac{p_=}{n_=} \Bigr),

    with :math:`n_>, n_=` the numbers of samples above and at the border and
    :math:`p_>, p_=` the positives among them; with weights, the sums of their weights.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Binary labels.
    y_score : array-like of shape (n_samples,)
        Scores, larger for the positive class.
    k : int, default=10
        Number of samples looked at, copies counted, at most all of them.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; 1 where the labels are {0, 1} or {-1, 1}.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, which count copies of the samples; 1 each by default.

    Returns
    -------
    float
        Precision, in [0, 1].

    Notes
    -----
    `k` counts copies, so that the unit of the weights matters, other than in metrics that
    know only shares: with all weights doubled, ``2 * k`` gives what `k` gave.

    Examples
    --------
    >>> from attop.metrics import precision_at_k
    >>> precision_at_k([0, 1, 0, 1], [1.0, 2.0, 2.0, 3.0], k=2)
    0.75
    >>> precision_at_k([0, 1, 0, 1], [1.0, 2.0, 2.0, 3.0], k=2, sample_weight=[1, 3, 1, 1])
    0.875
    """
    check_count(k, "k", "precision_at_k")
    positive, score, weight = check_scores(y_true, y_score, pos_label, sample_weight)
    _check_enough(k, weight, "precision_at_k", "samples")
    border = _highest(score, weight, k)[0][-1]
    above, at_border = score > border, score == border
    share = np.average(positive[at_border], weights=weight[at_border])
    tied_positives = (k - weight[above].sum()) * share
    precision = (weight[above & positive].sum() + tied_positives) / k
    return float(min(precision, 1.0))  # sums of fractions may be rounded beyond it


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

    With weights, precision and recall are ratios of sums of weights.

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
        Weights, which count copies of the samples; 1 each by default.

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

    and 0 where no threshold is that precise.  With weights, precision and recall are ratios
    of sums of weights.

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
        Weights, which count copies of the samples; 1 each by default.

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


def _precisions_and_recalls(
    data: LabelledScores,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Precision and recall of every threshold, and (1, 0) for none called positive."""
    downwards = np.argsort(-data.score)
    score, weight = data.score[downwards], data.weight[downwards]
    last_of_ties = np.append(score[1:] != score[:-1], True)
    called = _running_sum(weight)[last_of_ties]
    found = _running_sum(weight * data.positive[downwards])[last_of_ties]
    return np.append(found / called, 1.0), np.append(found / found[-1], 0.0)


def _highest(
    score: NDArray[np.float64], weight: NDArray[np.float64], total: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest scores, downwards, whose weights reach `total`, and what of them counts to it.

    The last one counts in part where its weight goes beyond.
    """
    # So many reach it whatever their weights: only they need to be sorted.
    least = max(weight.min(), total / len(score))
    enough = min(len(score), math.ceil(total / least))
    candidates = np.argpartition(score, -enough)[-enough:]
    downwards = candidates[np.argsort(-score[candidates])]
    mass = _running_sum(weight[downwards])
    n_before = int(np.searchsorted(mass, total * (1 - ROUNDING)))
    counted = np.diff(np.minimum(mass[: n_before + 1], total), prepend=0.0)
    return score[downwards[: n_before + 1]], counted


def _running_sum(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative sums, each right to its last digits.

    Those of numpy drift: with 100,000 weights of 0.1 they are off by 2e-12, and a rank
    found by them by one.  What each of its additions lost is known, and added here.
    """
    total = np.cumsum(weight)
    return total + np.cumsum(weight - np.diff(total, prepend=0.0))


def _tpr(data: LabelledScores, called_positive) -> float:
    """Weighted share of the positives that are called positive."""
    weight = data.weight[data.positive]
    return float(np.average(called_positive[data.positive], weights=weight))


def _check_enough(k: int, weight: NDArray[np.float64], owner: str, what: str) -> None:
    available = weight.sum()
    if k * (1 - ROUNDING) > available:
        raise ValueError(
            f"The 'k' parameter of {owner} must be at most the number of {what}, "
            f"{available:.12g}. Got {k} instead."
        )
