"""The estimators of the two formulations without a dual, Grill and Grill-NP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from attop.base import AtTopClassifier
from attop.formulations import NONCONVEX_FORMULATIONS, TopQuantile


class _Starts:
    """The attribute of both, apart from the parameters that a dataclass would make of it."""

    start_objectives_: NDArray[np.float64]


@dataclass(eq=False, repr=False)
class _QuantileClassifier(_Starts, AtTopClassifier):
    """What Grill and GrillNP share.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, positive and finite.
    kernel : {"linear", "rbf", "poly", "sigmoid", "laplacian"} or Kernel, default="linear"
        Kernel; one other than "linear" needs an approximation, as there is no dual.
    solver : {"auto", "primal"}, default="auto"
        Both are gradient descent on ``w``.
    solver_options : dict, default=None
        ``{"n_starts": 4}`` sets the number of starts.
    tol : float, default=1e-4
        Length of the last steps, relative to the weights.
    max_iter : int, default=-1
        Most steps from each start, -1 for 1000.
    warm_start : bool, default=False
        Whether to add the weights of the previous fit to the starts.

    Attributes
    ----------
    feature_map_ : Nystroem or RBFSampler
        The features of the approximation.
    threshold_ : float
        The top quantile of the training scores, less their rounding error.
    objective_ : float
        The value at ``w``.
    dual_gap_ : float
        Always nan, as there is no dual.
    history_ : History
        Time and best value so far, along the steps of all starts.
    start_objectives_ : ndarray of shape (n_starts,)
        The objective at each start.

    Notes
    -----
    `fit` minimises, for ``n_pos`` positives and ``n_neg`` negatives, ::

        |w|^2 / 2  +  C sum over positives l(t - s_i)
                   +  C (n_pos / n_neg) sum over negatives l(s_j - t)

    by gradient descent from several starts, of which the best is kept.  The problem is not
    convex: the result is a local minimum, and ``status_`` says that there is no certificate.
    There are no dual variables either, so the model is a linear one, or one with
    ``approximation="nystroem"``.
    """

    formulation: ClassVar[TopQuantile]
    _absent: ClassVar[frozenset[str]] = frozenset(
        {"support_", "support_vectors_", "dual_coef_", "alpha_", "beta_", "kernel_"}
    )

    tau: float = 0.05
    _: KW_ONLY
    kernel: str | Callable[..., Any] = "linear"


@dataclass(eq=False, repr=False)
class Grill(_QuantileClassifier):
    """Accuracy at the top: the threshold is the top tau-quantile of all scores.

    Not convex and so without a certificate; `PatMat` is its convex counterpart.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the samples at or above the threshold, in (0, 1).

    Examples
    --------
    >>> from attop import Grill
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = Grill(tau=0.6, random_state=0).fit(X, y)
    >>> model.status_.name
    'NO_CERTIFICATE'

    About a share tau of all samples reaches the threshold:

    >>> round(float((model.top_score(X) >= 0.0).mean()), 2)
    0.6
    """

    formulation = NONCONVEX_FORMULATIONS["Grill"]


@dataclass(eq=False, repr=False)
class GrillNP(_QuantileClassifier):
    """Accuracy at the top: the threshold is the top tau-quantile of the negative scores.

    About a share tau of the negatives reaches it (Neyman-Pearson).  Not convex and so without a
    certificate; `PatMatNP` is its convex counterpart.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the negatives at or above the threshold, in (0, 1).

    Examples
    --------
    >>> from attop import GrillNP
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = GrillNP(tau=0.1, random_state=0).fit(X, y)
    >>> model.status_.name
    'NO_CERTIFICATE'

    About a share tau of the negatives reaches the threshold:

    >>> round(float((model.top_score(X)[y != model.pos_label_] >= 0.0).mean()), 1)
    0.1
    """

    formulation = NONCONVEX_FORMULATIONS["GrillNP"]
