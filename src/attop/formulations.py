"""The formulations: whose scores the positives compete with, and by which threshold.

Each minimises ``|w|^2 / 2 + C sum_{positives} l(t - s_i)`` where ``t`` is a function of
the scores of the competitors:

=========  ============================================  ===========  ==========
name       threshold t                                   competitors  parameters
=========  ============================================  ===========  ==========
TopPush    largest score                                 negatives
TopPushK   mean of the K largest scores                  negatives    K
TauFPL     mean of the K = n- tau largest scores         negatives    tau
TopMeanK   mean of the K = n tau largest scores          all          tau
PatMat     root of mean l(theta (s - t)) = tau           all          tau, theta
PatMatNP   root of mean l(theta (s - t)) = tau           negatives    tau, theta
SVM        the one of the least loss                     negatives
Grill      top tau-quantile of the scores                all          tau
GrillNP    top tau-quantile of the scores                negatives    tau
=========  ============================================  ===========  ==========

SVM, the support vector machine and the baseline of them all, has the losses of the negatives
besides.  A new convex formulation is one class here, or one instance of a class, and one line in
`FORMULATIONS`.  Grill and GrillNP have a loss of the negatives besides and are not convex:
they have no dual, a problem of their own (`attop.quantile_problem`), and a table of their
own, `NONCONVEX_FORMULATIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from attop._weights import unit_weights
from attop.families import Family, FixedCap, mean_of_largest, quantile_of
from attop.problem import Problem
from attop.quantile_problem import QuantileProblem
from attop.surrogates import Surrogate, as_surrogate

#: From this share of the competitors on, a given number of scores is a share of them.
_SHARE = 0.001

#: Copies of each sample; None stands for one of each.
Weights = NDArray[np.float64] | None


def _copies(rows: NDArray[np.intp], sample_weight: Weights) -> float:
    """How many copies there are of some rows."""
    return float(len(rows) if sample_weight is None else np.sum(sample_weight[rows]))


@dataclass(frozen=True)
class Formulation:
    """A formulation whose positives compete with the negatives or with all samples.

    Attributes
    ----------
    name : str
        Name of the formulation and of its estimator.
    competitors : {"negatives", "all"}
        Whose scores the threshold is made of.
    twin : str
        The formulation with a threshold like this one's, but of the negatives only; empty
        where this is the one.
    parameters : tuple of str
        The parameters of `problem` that the formulation takes, of K, tau and theta.
    convex : bool
        Whether the formulation is convex, and so has a dual.
    all_have_losses : bool
        Whether ``C = 1 / (lambda n)`` counts all samples, since all have losses alike, rather than
        the positives.
    """

    name: str
    competitors: Literal["negatives", "all"]
    twin: str = ""
    parameters: ClassVar[tuple[str, ...]] = ()
    convex: ClassVar[bool] = True
    all_have_losses: ClassVar[bool] = False

    def rows(
        self, positive: NDArray[np.bool_], sample_weight: Weights = None
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows of the positives and of the competitors, those of weight 0 left out."""
        competing = np.ones(len(positive), dtype=bool) if self.competitors == "all" else ~positive
        if sample_weight is not None:
            there = sample_weight > 0.0
            positive, competing = positive & there, competing & there
        return np.flatnonzero(positive), np.flatnonzero(competing)

    def problem(
        self,
        positive: NDArray[np.bool_],
        C: float,
        surrogate: str | Surrogate,
        *,
        sample_weight: Weights = None,
        **parameters: float,
    ) -> Problem:
        """The dual problem on samples of which `positive` marks the positive ones.

        `sample_weight` counts the copies of each; None stands for one.
        """
        positives, competitors = self.rows(positive, sample_weight)
        surrogate = as_surrogate(surrogate)
        family = self.family(competitors, sample_weight, surrogate, **parameters)
        return Problem.of(positives, competitors, C, surrogate, family, sample_weight)

    def family(
        self,
        competitors: NDArray[np.intp],
        sample_weight: Weights,
        surrogate: Surrogate,
        **parameters: float,
    ) -> Family:
        """The family of duals, with its parameters, that the threshold leads to."""
        raise NotImplementedError


@dataclass(frozen=True)
class LargestScore(Formulation):
    """``t`` is the largest score of the competitors."""

    def family(
        self,
        competitors: NDArray[np.intp],
        sample_weight: Weights,
        surrogate: Surrogate,
        **parameters: float,
    ) -> Family:
        """That of the largest score."""
        return mean_of_largest(1)


@dataclass(frozen=True)
class TopKMean(Formulation):
    """``t`` is the mean of the K largest scores of the competitors."""

    parameters: ClassVar[tuple[str, ...]] = ("K",)

    def family(
        self,
        competitors: NDArray[np.intp],
        sample_weight: Weights,
        surrogate: Surrogate,
        **parameters: float,
    ) -> Family:
        """That of the mean of the ``K`` largest scores."""
        copies, K = _copies(competitors, sample_weight), int(parameters["K"])
        if copies < K:
            raise ValueError(
                f"The 'K' parameter of {self.name} must be at most the "
                f"{'number' if sample_weight is None else 'weight'} of "
                f"{'samples' if self.competitors == 'all' else 'negative samples'}, "
                f"{copies:g}. Got {K} instead."
            )
        return mean_of_largest(K, is_share=K > _SHARE * copies)


@dataclass(frozen=True)
class TopShareMean(Formulation):
    """``t`` is the mean of the share tau of largest scores, ``K = max(1, round(m tau))``."""

    parameters: ClassVar[tuple[str, ...]] = ("tau",)

    def family(
        self,
        competitors: NDArray[np.intp],
        sample_weight: Weights,
        surrogate: Surrogate,
        **parameters: float,
    ) -> Family:
        """That of the mean of a share ``tau`` of the scores."""
        copies = _copies(competitors, sample_weight)
        K = max(1, min(round(copies * parameters["tau"]), int(copies)))
        return mean_of_largest(K, is_share=True)


@dataclass(frozen=True)
class SurrogateQuantile(Formulation):
    """``t`` is the root of ``mean l(theta (s - t)) = tau`` over the competitors."""

    parameters: ClassVar[tuple[str, ...]] = ("tau", "theta")

    def family(
        self,
        competitors: NDArray[np.intp],
        sample_weight: Weights,
        surrogate: Surrogate,
        **parameters: float,
    ) -> Family:
        """That of the quantile for ``tau`` and ``theta``."""
        budget = _copies(competitors, sample_weight) * float(parameters["tau"])
        family = quantile_of(surrogate, budget, float(parameters["theta"]))
        if family is None:
            raise ValueError(
                f"The 'surrogate' parameter of {self.name} must be one whose quantile has a known "
                f"dual, such as 'hinge' or 'quadratic_hinge'. Got {surrogate.name!r} instead."
            )
        return family


@dataclass(frozen=True)
class FreeThreshold(Formulation):
    """``t`` is the best threshold there is; the competitors have losses, too."""

    all_have_losses: ClassVar[bool] = True

    def family(
        self,
        competitors: NDArray[np.intp],
        sample_weight: Weights,
        surrogate: Surrogate,
        **parameters: float,
    ) -> Family:
        """That of the fixed cap."""
        return FixedCap()


#: The convex formulations by name.
FORMULATIONS: dict[str, Formulation] = {
    formulation.name: formulation
    for formulation in (
        LargestScore("TopPush", "negatives"),
        TopKMean("TopPushK", "negatives"),
        TopShareMean("TauFPL", "negatives"),
        TopShareMean("TopMeanK", "all", twin="TauFPL"),
        SurrogateQuantile("PatMat", "all", twin="PatMatNP"),
        SurrogateQuantile("PatMatNP", "negatives"),
        FreeThreshold("SVM", "negatives"),
    )
}


@dataclass(frozen=True)
class TopQuantile(Formulation):
    """``t`` is the top tau-quantile of the scores of the competitors; not convex."""

    parameters: ClassVar[tuple[str, ...]] = ("tau",)
    convex: ClassVar[bool] = False

    def quantile_problem(
        self,
        positive: NDArray[np.bool_],
        C: float,
        surrogate: str | Surrogate,
        tau: float,
        sample_weight: Weights = None,
    ) -> QuantileProblem:
        """The problem on samples of which `positive` marks the positive ones."""
        positives, competitors = self.rows(positive, sample_weight)
        negatives = np.setdiff1d(competitors, positives, assume_unique=True)
        weights = unit_weights(len(positive)) if sample_weight is None else sample_weight
        return QuantileProblem(
            positives, negatives, competitors, C, as_surrogate(surrogate), float(tau), weights
        )


#: The formulations without a dual by name.
NONCONVEX_FORMULATIONS: dict[str, TopQuantile] = {
    formulation.name: formulation
    for formulation in (TopQuantile("Grill", "all"), TopQuantile("GrillNP", "negatives"))
}
