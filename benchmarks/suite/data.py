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


def _standardised(name: str) -> Samples:
    """A table with features of mean 0 and deviation 1; constant ones stay constant."""
    with _archive(name) as archive:
        X, y = archive["X"].astype(np.float64), np.ravel(archive["y"])
    deviation = X.std(axis=0)
    deviation[deviation == 0.0] = 1.0
    return ((X - X.mean(axis=0)) / deviation).astype(np.float32), y > 0


def _binary(name: str) -> Samples:
    with _archive(name) as archive:
        X, y = archive["X_train"], np.ravel(archive["y_train"])
    # A matrix rather than an array: that is what older peers know.
    return sp.csr_matrix(X.astype(np.float32)), y > 0


def _text(n: int, n_words: int = 50_000, length: int = 80) -> Samples:
    """Made documents: words by Zipf's law, weights by their rarity, a tenth of them telling."""
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1, n_words + 1)
    words = np.searchsorted(np.cumsum(share / share.sum()), rng.random(n * length))
    words = np.minimum(words, n_words - 1).astype(np.int32)
    X = sp.csr_matrix(
        (np.ones(n * length), words, np.arange(0, n * length + 1, length)), shape=(n, n_words)
    )
    X.sum_duplicates()
    rarity = np.log(n / (1.0 + np.bincount(X.indices, minlength=n_words)))
    X.data = np.log1p(X.data) * rarity[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, 1e-300), np.diff(X.indptr))
    scores = X @ (rng.standard_normal(n_words) * (rng.random(n_words) < 0.1))
    scores += 0.5 * scores.std() * rng.standard_normal(n)
    return X.astype(np.float32), scores > np.quantile(scores, 0.95)


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
        lambda n: _images("cifar10_12k" if n <= 10_000 else "cifar10"),
        10_000,
        1 / 3072,
        "CIFAR10, class 1 (automobiles) against the rest, gamma 1/3072",
    ),
    "covertype": Dataset(
        lambda n: _standardised("covertype_adbench"),
        286_048,
        1 / 10,
        "Covertype (ADBench), standardised, gamma 1/10",
    ),
    "backdoor": Dataset(
        lambda n: _standardised("tables/backdoor"), 95_329, 1 / 196, "backdoor, standardised"
    ),
    "celeba": Dataset(
        lambda n: _standardised("tables/celeba"), 202_599, 1 / 39, "celeba, standardised"
    ),
    "donors": Dataset(
        lambda n: _standardised("tables/donors"), 619_326, 1 / 10, "donors, standardised"
    ),
    "magic_gamma": Dataset(
        lambda n: _table("magic_gamma"), 3_000, 1 / 10, "magic_gamma, standardised, gamma 1/10"
    ),
    # What gamma="scale" gives on all samples, rounded: one over features times variance.
    "w8a": Dataset(
        lambda n: _binary("w8a"), 49_749, 0.09, "w8a, 300 binary features, sparse (CSR), gamma 0.09"
    ),
    "a9a": Dataset(
        lambda n: _binary("a9a"), 32_561, 1 / 123, "a9a, 123 binary features, sparse (CSR)"
    ),
    "text": Dataset(_text, 100_000, 1.0, "Made documents, 50,000 words, sparse (CSR)"),
    "made": Dataset(_made, 1_000_000, 1 / 100, "A made problem of 100 normal features"),
}
