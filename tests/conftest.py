"""Problems that several test modules share."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from attop.formulations import FORMULATIONS
from attop.kernels.columns import ColumnStore, Workers
from attop.kernels.device.arrays import find_device
from attop.kernels.functions import Gram, Kernel
from attop.kernels.sources import column_source
from attop.surrogates import SURROGATES

#: Parameters of each formulation on samples of which a third are positive: tau is above
#: that share where all samples compete, since the optimum is w = 0 below it.
PARAMETERS = {
    "TopPush": {},
    "TopPushK": {"K": 4},
    "TauFPL": {"tau": 0.2},
    "TopMeanK": {"tau": 0.6},
    "PatMat": {"tau": 0.6, "theta": 0.7},
    "PatMatNP": {"tau": 0.2, "theta": 0.7},
    "SVM": {},
}
#: Every formulation with every surrogate.
CASES = [(name, surrogate) for name in FORMULATIONS for surrogate in SURROGATES]

#: Optimal values on Ionosphere, each with a duality gap below 1e-7.
OPTIMA = list(
    csv.DictReader(
        (Path(__file__).parent / "data" / "ionosphere_optima.csv").read_text().splitlines()
    )
)


def two_clouds(n_positive=12, n_negative=24, n_features=3, distance=1.0, seed=0):
    """Two normal clouds, in shuffled order: samples and a mask of the positives."""
    rng = np.random.default_rng(seed)
    positive = rng.permutation(np.repeat([True, False], [n_positive, n_negative]))
    X = rng.normal(size=(n_positive + n_negative, n_features))
    X[positive] += distance
    return X, positive


@pytest.fixture(params=CASES, ids="-".join)
def small_case(request):
    """Problem and kernel matrix of each formulation and surrogate, on overlapping clouds."""
    name, surrogate = request.param
    X, positive = two_clouds()
    problem = FORMULATIONS[name].problem(positive, 0.8, surrogate, **PARAMETERS[name])
    return problem, Gram(Kernel("rbf", gamma=0.3), X)


def kernel_matrix(gram):
    """All entries of `gram`."""
    rows = np.arange(gram.n_samples)
    return gram.block(rows, rows)


def scarce_columns(gram, columns):
    """A store with room for no more columns than that, which small problems have otherwise."""
    workers = Workers()
    source = column_source(gram, np.float64, workers)
    return ColumnStore(source, 8 * gram.n_samples * columns, workers, least=2, least_bytes=0)


def has_gpu():
    """Whether there is a GPU, and a framework that can use it."""
    try:
        return find_device("cuda") is not None
    except (ImportError, RuntimeError):
        return False
