"""The data sets, read from the folder that the environment variable ATTOP_DATA names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

#: Samples, dense or CSR in float32, and which of them are positive.
Samples = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class Dataset:
    """How to read a data set, how much of it to use, and gamma of its Gaussian kernel."""

    #: Takes the number of samples wanted; a file gives all it has.
    read: Callable[[int], Samples]
    n: int
    gamma: float
    about: str


def folder() -> Path:
    """The folder of the data; ends the program with what to do where there is none."""
    name = os.environ.get("ATTOP_DATA", "")
    if not name:
        raise SystemExit("Give the folder of the data sets in the environment variable ATTOP_DATA.")
    if not Path(name).is_dir():
        raise SystemExit(f"ATTOP_DATA names a folder that does not exist: {name}")
    return Path(name)


def load(name: str, n: int, seed: int = 0) -> Samples:
    """At most `n` samples of a data set in random order, the same for the same seed."""
    X, positive = DATASETS[name].read(n)
    rows = np.random.default_rng(seed).permutation(len(positive))[:n]
    return X[rows], positive[rows]


def load_test_images(name: str, n: int) -> np.ndarray:
    """The first `n` images of the test part."""
    return _images(name, "test")[0][:n]


def _archive(name: str) -> Any:
    path = folder() / f"{name}.npz"
    if not path.exists():
        raise SystemExit(f"The folder in ATTOP_DATA has no file {path.name}.")
    return np.load(path)


def _images(name: str, part: str = "train") -> Samples:
    """Pixels in [0, 1]; the class 1 is positive."""
    with _archive(name) as archive:
        X, y = archive[f"x_{part}"], np.ravel(archive[f"y_{part}"])
    return X.reshape(len(X), -1).astype(np.float32) / 255, y == 1


def _covertype(n: int) -> Samples:
    with _archive("covertype_adbench") as archive:
        X, y = archive["X"].astype(np.float64), np.ravel(archive["y"])
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32), y > 0


def _table(name: str) -> Samples:
    """One of the tables, standardised."""
    with _archive(f"tables/{name}") as archive:
        X, y = archive["X"].astype(np.float64), np.ravel(archive["y"])
    spread = X.std(axis=0)
    return ((X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)).astype(np.float32), y == 1


def table_names() -> list[str]:
    """The tables that are there, by name."""
    return sorted(path.stem for path in (folder() / "tables").glob("*.npz"))


def load_table(name: str, n: int, seed: int = 0) -> Samples:
    """At most `n` samples of a table in random order, the same for the same seed."""
    X, positive = _table(name)
    rows = np.random.default_rng(seed).permutation(len(positive))[:n]
    return X[rows], positive[rows]


def _w8a(n: int) -> Samples:
    with _archive("w8a") as archive:
        X, y = archive["X_train"], np.ravel(archive["y_train"])
    # A matrix rather than an array: that is what older peers know.
    return sp.csr_matrix(X.astype(np.float32)), y > 0


def _made(n: int) -> Samples:
    """A linear score of 100 normal features with noise; the highest 5 % are positive."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 100), dtype=np.float32)
    scores = X @ rng.standard_normal(100).astype(np.float32) / 10 + rng.standard_normal(n)
    return X, scores > np.quantile(scores, 0.95)


DATASETS = {
    "mnist": Dataset(
        lambda n: _images("mnist"), 45_000, 1 / 784, "MNIST, digit 1 against the rest, gamma 1/784"
    ),
    "fashion_mnist": Dataset(
        lambda n: _images("fashion_mnist"),
        45_000,
        1 / 784,
        "FashionMNIST, class 1 (trousers) against the rest, gamma 1/784",
    ),
    "cifar10": Dataset(
        lambda n: _images("cifar10_12k"),
        10_000,
        1 / 3072,
        "CIFAR10, class 1 (automobiles) against the rest, gamma 1/3072",
    ),
    "covertype": Dataset(
        _covertype, 286_048, 1 / 10, "Covertype (ADBench), standardised, gamma 1/10"
    ),
    "magic_gamma": Dataset(
        lambda n: _table("magic_gamma"), 3_000, 1 / 10, "magic_gamma, standardised, gamma 1/10"
    ),
    # What gamma="scale" gives on all samples, rounded: one over features times variance.
    "w8a": Dataset(_w8a, 49_749, 0.09, "w8a, 300 binary features, sparse (CSR), gamma 0.09"),
    "made": Dataset(_made, 1_000_000, 1 / 100, "A made problem of 100 normal features"),
}
