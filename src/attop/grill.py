"""The estimators of the two formulations without a dual, Grill and Grill-NP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from attop.base import AtTopClassifier
from attop.formulations import NONCONVEX_FORMULATIONS, TopQuantile


@dataclass(eq=False, repr=False)
class _QuantileClassifier(AtTopClassifier):
    """What Grill and GrillNP share."""

    formulation: ClassVar[TopQuantile]

    tau: float = 0.05
    _: KW_ONLY
    kernel: str | Callable[..., Any] = "linear"


@dataclass(eq=False, repr=False)
class Grill(_QuantileClassifier):
    """Accuracy at the top: the threshold is the top tau-quantile of all scores.

    Minimises, for ``n_pos`` positives and ``n_neg`` negatives, ::

        |w|^2 / 2  +  C sum over positives l(t - s_i)
                   +  C (n_pos / n_neg) sum over negatives l(s_j - t)

    by gradient descent from several starts, of which the best is kept.  The problem is not
    convex: the result is a local minimum, ``status_`` says that there is no certificate, and
    ``dual_gap_`` is nan.  There are no dual variables either, so the model is a linear one, or
    one with ``approximation="nystroem"``.

    Parameters
    ----------
    tau : float, default=0.05
        Share of the samples at or above the threshold, in (0, 1).
    **others
        The keyword parameters of `AtTopClassifier`, with ``kernel="linear"`` by default.
        ``solver`` is "auto" or "primal"; ``solver_options={"n_starts": 4}`` sets the number
        of starts; ``max_iter`` bounds the steps of each, -1 standing for 1000; ``tol`` is the
        length of the last steps relative to the weights; and ``warm_start`` adds the previous
        weights to the starts.

    Attributes
    ----------
    coef_, threshold_, objective_, n_iter_, history_, stats_, status_, classes_, feature_map_
        As in `AtTopClassifier`; there are no `alpha_`, `beta_` and support vectors.
    start_objectives_ : ndarray of shape (n_starts,)
        The objective at each start.
    """

    formulation = NONCONVEX_FORMULATIONS["Grill"]


@dataclass(eq=False, repr=False)
class GrillNP(_QuantileClassifier):
    """Accuracy at the top: the threshold is the top tau-quantile of the negative scores.

    The objective, its solution and the attributes are those of `Grill`; only the threshold is
    made of the scores of the negatives, so that about a share tau of them reaches it
    (Neyman-Pearson).

    Parameters
    ----------
    tau : float, default=0.05
        Share of the negatives at or above the threshold, in (0, 1).
    **others
        The keyword parameters of `Grill`.
    """

    formulation = NONCONVEX_FORMULATIONS["GrillNP"]
