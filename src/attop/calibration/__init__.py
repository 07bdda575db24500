"""Thresholds with a guarantee on new data, for any classifier that gives scores.

A threshold with a false positive rate of 1 % on the samples at hand exceeds that rate on
new data about every second time.  Here the user chooses what is promised (a false positive
rate, precision, recall, a budget of alerts, a bound on the cost) and how surely it holds.
Each guarantee is a file: the theorem, and the classifier that keeps it.
"""

from attop.calibration._alerts import AlertBudgetThreshold
from attop.calibration._bands import NeymanPearsonBands, neyman_pearson_bands
from attop.calibration._base import NoThresholdError
from attop.calibration._cost import CostThreshold
from attop.calibration._neyman_pearson import (
    NeymanPearsonOrder,
    NeymanPearsonThreshold,
    neyman_pearson_order,
    required_negatives,
)
from attop.calibration._precision import PrecisionThreshold
from attop.calibration._recall import RecallThreshold, required_positives

__all__ = [
    "AlertBudgetThreshold",
    "CostThreshold",
    "NeymanPearsonBands",
    "NeymanPearsonOrder",
    "NeymanPearsonThreshold",
    "NoThresholdError",
    "PrecisionThreshold",
    "RecallThreshold",
    "neyman_pearson_bands",
    "neyman_pearson_order",
    "required_negatives",
    "required_positives",
]
