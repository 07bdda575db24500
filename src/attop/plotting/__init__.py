"""Plots at the top (they need matplotlib: ``pip install "attop[plot]"``)."""

from attop.plotting.roc import TopROCDisplay
from attop.plotting.scores import ScoreDistributionDisplay

__all__ = ["ScoreDistributionDisplay", "TopROCDisplay"]
