"""Classifiers for samples on a cluster, or on a disk that is larger than the memory.

They take arrays and data frames of Dask, never gather them, and end with the certificate of all
other fits.  A cluster on one machine is ``dask.distributed.Client()``.
"""

from importlib import import_module

try:
    for _module in ("dask.array", "dask.dataframe", "distributed"):
        import_module(_module)
except ImportError as error:
    raise ImportError(
        "attop.dask needs Dask: install it with pip install 'attop[dask]'."
    ) from error

from attop.dask.classifiers import (
    DaskPatMat,
    DaskPatMatNP,
    DaskSVM,
    DaskTauFPL,
    DaskTopMeanK,
    DaskTopPush,
    DaskTopPushK,
)

__all__ = [
    "DaskPatMat",
    "DaskPatMatNP",
    "DaskSVM",
    "DaskTauFPL",
    "DaskTopMeanK",
    "DaskTopPush",
    "DaskTopPushK",
]
