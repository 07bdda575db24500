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

    The threshold is ``t = max over negatives s_j``.

    Examples
    --------
    >>> from attop import TopPush
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = TopPush(C=1.0).fit(X, y)
    >>> model.dual_gap_ <= 1e-4
    True

    Every negative stays at the threshold or below, some of them exactly there:

    >>> bool(abs(model.top_score(X)[y != model.pos_label_].max()) < 1e-10)
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

    Examples
    --------
    >>> import numpy as np
    >>> from attop import TopPushK
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = TopPushK(K=5).fit(X, y)
    >>> model.dual_gap_ <= 1e-4
    True

    The threshold is the mean of the five largest scores of the negatives:

    >>> scores = np.sort(model.top_score(X)[y != model.pos_label_])
    >>> bool(abs(scores[-5:].mean()) < 1e-10)
    True
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

    Examples
    --------
    >>> from attop import TauFPL
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = TauFPL(tau=0.05).fit(X, y)
    >>> model.dual_gap_ <= 1e-4
    True

    At most a share tau of the negatives reaches the mean of the largest scores:

    >>> bool((model.top_score(X)[y != model.pos_label_] >= 0.0).mean() <= 0.05)
    True
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

    Examples
    --------
    >>> from attop import TopMeanK
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = TopMeanK(tau=0.8).fit(X, y)
    >>> model.dual_gap_ <= 1e-4
    True

    A share tau of all samples makes the threshold, so at most that many reach it:

    >>> bool((model.top_score(X) >= 0.0).mean() <= 0.8)
    True
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

    Examples
    --------
    >>> from attop import PatMat
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = PatMat(tau=0.8).fit(X, y)
    >>> model.dual_gap_ <= 1e-4
    True

    At most a share tau of all samples is above the threshold:

    >>> bool((model.top_score(X) > 0.0).mean() <= 0.8)
    True
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

    Examples
    --------
    >>> from attop import PatMatNP
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = PatMatNP(tau=0.1).fit(X, y)
    >>> model.dual_gap_ <= 1e-4
    True

    At most a share tau of the negatives is above the threshold:

    >>> bool((model.top_score(X)[y != model.pos_label_] > 0.0).mean() <= 0.1)
    True
    """

    formulation = FORMULATIONS["PatMatNP"]

    tau: float = 0.05
    theta: float = 1.0


@dataclass(eq=False, repr=False)
class SVM(AtTopClassifier):
    """The support vector machine: the baseline, with the same certificate as all others.

    With the hinge this is the C-SVC of `sklearn.svm.SVC`.  The threshold ``b`` is the one of the
    least loss, and `predict` decides at it.

    Parameters
    ----------
    class_weight : dict, "balanced" or None, default=None
        By how much the samples of each class count more, as in `sklearn.svm.SVC`: a number for
        each label, or ``n_samples / (2 n_samples of the class)``.

    Attributes
    ----------
    threshold_ : float
        The threshold ``b``, less the rounding error of the training scores.

    Notes
    -----
    `fit` finds the ``w`` and ``b`` that minimise ::

        |w|^2 / 2  +  C sum over positives l(b - s_i)  +  C sum over negatives l(s_j - b)

    with the scores ``s = <w, phi(x)>``.  The problem is convex, and ``dual_gap_`` certifies how far
    from its optimum the model can be.

    Examples
    --------
    >>> from attop import SVM
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = SVM(class_weight="balanced").fit(X, y)
    >>> model.dual_gap_ <= 1e-4
    True

    The same model as scikit-learn's, whose decisions are made at the same place:

    >>> from sklearn.svm import SVC
    >>> peer = SVC(class_weight="balanced").fit(X, y)
    >>> bool(abs(model.decision_function(X) - peer.decision_function(X)).max() < 0.01)
    True
    """

    formulation = FORMULATIONS["SVM"]

    _: KW_ONLY
    class_weight: Mapping[Any, float] | str | None = None
