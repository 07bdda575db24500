"""The estimators: a thin class for each formulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from attop.base import AtTopClassifier
from attop.formulations import FORMULATIONS

__all__ = [
    "SVM",
    "AtTopClassifier",
    "PatMat",
    "PatMatNP",
    "TauFPL",
    "TopMeanK",
    "TopPush",
    "TopPushK",
]


@dataclass(eq=False, repr=False)
class TopPush(AtTopClassifier):
    """Positives above the largest score of the negatives.

    The threshold is ``t = max over negatives s_j``.  Parameters: those of `AtTopClassifier`.

    Examples
    --------
    >>> from attop import TopPush
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> classifier = TopPush(C=1.0).fit(X, y)
    >>> bool(classifier.dual_gap_ <= 1e-4)
    True
    """

    formulation = FORMULATIONS["TopPush"]


@dataclass(eq=False, repr=False)
class TopPushK(AtTopClassifier):
    """Positives above the mean of the K largest scores of the negatives.

    The threshold is ``t = (1/K) sum_{j <= K} s_[j]`` over the negatives.

    Parameters
    ----------
    K : int, default=5
        How many of the largest scores make the threshold; 1 gives `TopPush`.
    **others
        The keyword parameters of `AtTopClassifier`.
    """

    formulation = FORMULATIONS["TopPushK"]

    K: int = 5


@dataclass(eq=False, repr=False)
class TauFPL(AtTopClassifier):
    """Positives above the mean of the share tau of largest scores of the negatives.

    The threshold is that of `TopPushK` with ``K = max(1, round(n_negatives tau))``.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the negatives, in (0, 1).
    **others
        The keyword parameters of `AtTopClassifier`.
    """

    formulation = FORMULATIONS["TauFPL"]

    tau: float = 0.05


@dataclass(eq=False, repr=False)
class TopMeanK(AtTopClassifier):
    """Positives above the mean of the share tau of largest scores of all samples.

    The threshold is ``t = (1/K) sum_{j <= K} s_[j]`` over all samples, with
    ``K = max(1, round(n tau))``.  Where ``K`` is at most the number of positives the
    optimum is ``w = 0``, of which `fit` warns.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the samples, in (0, 1).
    **others
        The keyword parameters of `AtTopClassifier`.
    """

    formulation = FORMULATIONS["TopMeanK"]

    tau: float = 0.05


@dataclass(eq=False, repr=False)
class PatMat(AtTopClassifier):
    """Positives above a convex upper bound of the top tau-quantile of all scores.

    The threshold is the root ``t`` of ``(1/n) sum l(theta (s_j - t)) = tau`` over all
    samples.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the samples above the threshold, in (0, 1).
    theta : float, default=1.0
        Scale inside the surrogate, positive.
    **others
        The keyword parameters of `AtTopClassifier`.
    """

    formulation = FORMULATIONS["PatMat"]

    tau: float = 0.05
    theta: float = 1.0


@dataclass(eq=False, repr=False)
class PatMatNP(AtTopClassifier):
    """Positives above a convex upper bound of the top tau-quantile of negative scores.

    The threshold is the root ``t`` of ``(1/n_negatives) sum l(theta (s_j - t)) = tau`` over
    the negatives, so that at most a share tau of them lies above it (Neyman-Pearson).

    Parameters
    ----------
    tau : float, default=0.05
        Share of the negatives above the threshold, in (0, 1).
    theta : float, default=1.0
        Scale inside the surrogate, positive.
    **others
        The keyword parameters of `AtTopClassifier`.
    """

    formulation = FORMULATIONS["PatMatNP"]

    tau: float = 0.05
    theta: float = 1.0


@dataclass(eq=False, repr=False)
class SVM(AtTopClassifier):
    """The support vector machine: the baseline, with the same certificate as all others.

    The threshold ``b`` is the one of the least loss, and the negatives have losses, too::

        |w|^2 / 2  +  C sum over positives l(b - s_i)  +  C sum over negatives l(s_j - b)

    With the hinge this is the C-SVC of `sklearn.svm.SVC`; ``predict`` decides at ``b``.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        By how much the samples of each class count more, as in `sklearn.svm.SVC`: a number for
        each label, or ``n_samples / (2 n_samples of the class)``.
    **others
        The keyword parameters of `AtTopClassifier`.
    """

    formulation = FORMULATIONS["SVM"]

    _: KW_ONLY
    class_weight: Mapping[Any, float] | str | None = None
