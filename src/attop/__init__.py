"""Classification at the top: binary classifiers for the samples with the highest scores."""

from attop.classifiers import (
    SVM,
    AtTopClassifier,
    PatMat,
    PatMatNP,
    TauFPL,
    TopMeanK,
    TopPush,
    TopPushK,
)
from attop.grill import Grill, GrillNP

__version__ = "0.1.0"

__all__ = [
    "SVM",
    "AtTopClassifier",
    "Grill",
    "GrillNP",
    "PatMat",
    "PatMatNP",
    "TauFPL",
    "TopMeanK",
    "TopPush",
    "TopPushK",
    "__version__",
]
