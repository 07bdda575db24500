"""Small tables for the benchmarks of small problems: files of ATTOP_DATA, and scikit-learn's."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from suite.data import Samples, folder

#: Where the files of the tables lie in the folder of the data.
TABLES = "tables"


def names() -> list[str]:
    """The tables there are."""
    return ["breast_cancer", "digits", *sorted(f.stem for f in (folder() / TABLES).glob("*.npz"))]


def load_table(name: str, n: int) -> Samples:
    """At most `n` samples of a table in random order, standardised."""
    if name == "breast_cancer":
        X, positive = load_breast_cancer(return_X_y=True)
    elif name == "digits":
        X, y = load_digits(return_X_y=True)
        positive = y == 1
    else:
        with np.load(folder() / TABLES / f"{name}.npz") as archive:
            X, positive = archive["X"], archive["y"]
    rows = np.random.default_rng(0).permutation(len(positive))[:n]
    return StandardScaler().fit_transform(X[rows].astype(np.float64)), positive[rows].astype(bool)
