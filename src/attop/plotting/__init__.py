"""Plots at the top (they need matplotlib: ``pip install "attop[plot]"``)."""

from attop.plotting.convergence import ConvergenceDisplay
from attop.plotting.diagram import CriticalDifferenceDisplay
from attop.plotting.roc import TopROCDisplay
from attop.plotting.scores import ScoreDistributionDisplay

__all__ = [
    "ConvergenceDisplay",
    "CriticalDifferenceDisplay",
    "ScoreDistributionDisplay",
    "TopROCDisplay",
]
