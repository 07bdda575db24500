"""Classification at the top: binary classifiers for the samples with the highest scores."""

from importlib import import_module
from typing import Any

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
from attop.persistence import load, model_card, save, to_onnx

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
    "load",
    "model_card",
    "save",
    "to_onnx",
]

#: The modules for users, which are imported when they are first asked for.
_MODULES = (
    "auto",
    "calibration",
    "dask",
    "datasets",
    "experiments",
    "forest",
    "kernels",
    "metrics",
    "model_selection",
    "plotting",
    "rivals",
    "statistics",
)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
