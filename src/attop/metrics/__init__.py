"""Metrics of the samples with the highest scores, and scorers for model selection.

Every function takes true labels and real-valued scores and counts ties as its
definition says: the order of the samples never matters.  Sample weights count copies: an
integer weight is that many samples, zero none, and fractions are in between.
"""

from attop.metrics._area import partial_auc
from attop.metrics._operating_points import (
    positives_at_top,
    precision_at_k,
    precision_at_recall,
    recall_at_precision,
    tpr_at_fpr,
    tpr_at_k,
)
from attop.metrics._scorers import get_scorer, get_scorer_names

__all__ = [
    "get_scorer",
    "get_scorer_names",
    "partial_auc",
    "positives_at_top",
    "precision_at_k",
    "precision_at_recall",
    "recall_at_precision",
    "tpr_at_fpr",
    "tpr_at_k",
]
