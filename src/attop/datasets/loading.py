"""Data sets by name, as samples in [0, 1] with labels 0 and 1, and their splits."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop.datasets.download import check, data_folder, download, find
from attop.datasets.ionosphere import DATA, load_ionosphere
from attop.datasets.readers import Arrays
from attop.datasets.registry import DATASETS, DatasetInfo, dataset_info, simplify

#: Label of the positive class in every data set of the registry.
POSITIVE_LABEL = 1


class Split(NamedTuple):
    """Samples, labels and weights (None where there are none) of the parts of an experiment."""

    X_train: Any
    y_train: NDArray[np.int64]
    X_valid: Any
    y_valid: NDArray[np.int64]
    X_test: Any
    y_test: NDArray[np.int64]
    w_train: NDArray[np.float64] | None = None
    w_valid: NDArray[np.float64] | None = None
    w_test: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Dataset:
    """Samples with labels 0 and 1.

    Attributes
    ----------
    name : str
        Its name.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Samples; those of the official training set where there is one.
    y : ndarray of shape (n_samples,)
        1 for positives, 0 for negatives.
    X_test, y_test : ndarrays or None
        The official test set.
    source : str
        Where the data were read from.
    feature_names : list of str or None
        Names of the features, where they have any.
    weight, weight_test : ndarrays or None
        Weights of the samples and of the official test set, which count copies; None for one
        copy of each.
    """

    name: str
    X: Any
    y: NDArray[np.int64]
    X_test: Any = None
    y_test: NDArray[np.int64] | None = None
    source: str = ""
    feature_names: list[str] | None = None
    weight: NDArray[np.float64] | None = None
    weight_test: NDArray[np.float64] | None = None

    def split(self, seed: int, *, n_train: int | None = None) -> Split:
        """Training, validation and test set.

        As in the paper, a quarter of the training samples, drawn at random, is the validation
        set, and the official test set is the test set.  Without an official test set a
        quarter of all samples is held out for it first, and both draws keep the share of
        positives.  Draws and shares are of samples, whatever their weights.

        Parameters
        ----------
        seed : int
            Seed of the draws.
        n_train : int, default=None
            Keep only this many training samples, drawn at random; all by default.

        Returns
        -------
        Split
            The three parts.
        """
        rows, test = np.arange(len(self.y)), None
        stratified = self.y_test is None
        if stratified:
            rows, test = _draw_quarter(rows, self.y, seed)
        train, valid = _draw_quarter(rows, self.y if stratified else None, seed)
        if n_train is not None:
            if not 1 <= n_train <= len(train):
                raise ValueError(
                    f"The 'n_train' parameter of Dataset.split must be in [1, {len(train)}]. "
                    f"Got {n_train!r} instead."
                )
            train = train[:n_train]  # in random order already
        X_test, y_test, w_test = self.X_test, self.y_test, self.weight_test
        if y_test is None:
            X_test, y_test, w_test = self._samples(test)
        X_train, y_train, w_train = self._samples(train)
        X_valid, y_valid, w_valid = self._samples(valid)
        return Split(X_train, y_train, X_valid, y_valid, X_test, y_test, w_train, w_valid, w_test)

    def _samples(self, rows: Any) -> tuple[Any, NDArray[np.int64], NDArray[np.float64] | None]:
        """Samples, labels and weights of some rows."""
        return self.X[rows], self.y[rows], None if self.weight is None else self.weight[rows]


def _draw_quarter(
    rows: NDArray[np.intp], y: NDArray[Any] | None, seed: int
) -> list[NDArray[np.intp]]:
    """Three quarters and a quarter of `rows`, at random; with `y` both with its shares."""
    from sklearn.model_selection import train_test_split

    classes = None if y is None else y[rows]
    return train_test_split(rows, test_size=len(rows) // 4, random_state=seed, stratify=classes)


def load_dataset(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> Dataset:
    """Load a data set of the paper by its name.

    It is read from a folder: the original files, as torchvision keeps them too, or an
    ``.npz`` file such as ``mnist.npz`` or ``cifar10_12k.npz`` with ``x_train``, ``y_train``,
    ``x_test`` and ``y_test``.  What is missing is downloaded from the original sources.

    Parameters
    ----------
    name : str
        ``"MNIST"``, ``"FashionMNIST"``, ``"CIFAR10"``, ``"CIFAR20"``, ``"CIFAR100"``,
        ``"SVHN2"`` or ``"Ionosphere"``.
    data_home : path-like, default=None
        Folder of the data; by default the environment variable ``ATTOP_DATA``, else a cache.
    download_if_missing : bool, default=True
        Whether to download what the folder does not hold.

    Returns
    -------
    Dataset
        Positives are those of label 1.  Pixels are float32 in [0, 1], one row an image.

    Raises
    ------
    OSError
        If a file is truncated or altered, or cannot be found or downloaded.

    Examples
    --------
    >>> from attop.datasets import load_dataset
    >>> data = load_dataset("Ionosphere")
    >>> data.X.shape, data.split(seed=1).X_train.shape
    ((351, 34), (198, 34))
    """
    info = dataset_info(name)
    if not info.sources:
        bunch: Any = load_ionosphere()
        return Dataset(
            info.name, bunch.data, bunch.target, None, None, bunch.filename, bunch.feature_names
        )
    folder = data_folder(data_home)
    paths = [find(source, folder) for source in info.sources]
    npz = find_npz(info, folder)
    if npz is not None and None in paths:
        return _dataset(info, read_npz(npz), str(npz))
    return _dataset(info, _read_sources(info, folder, paths, download_if_missing), str(folder))


def _read_sources(
    info: DatasetInfo, folder: Path, paths: list[Path | None], download_if_missing: bool
) -> Arrays:
    """Check or download the original files, and read them."""
    complete = []
    for source, path in zip(info.sources, paths):
        if path is not None:
            check(path, source)
        elif download_if_missing:
            path = download(source, folder)
        else:
            raise FileNotFoundError(
                f"{info.name} is not in {folder}: there is neither {source.filename} nor "
                f"{simplify(info.name)}.npz."
            )
        complete.append(path)
    assert info.read is not None
    return info.read(complete)


def find_npz(info: DatasetInfo, folder: Path) -> Path | None:
    """An ``.npz`` file of the data set: named like it, or so with an ending like ``_12k``."""
    if not folder.is_dir():
        return None
    names = {simplify(name) for name in (info.name, *info.aliases)}
    found = []
    for path in sorted(folder.glob("*.npz")):
        # "fashion_mnist" is a name; of "cifar10_12k" only what is before the last "_" is one.
        stems = (path.stem, re.sub(r"[-_][^-_]*$", "", path.stem))
        exact, cut = (simplify(stem) in names for stem in stems)
        if exact or cut:
            found.append((not exact, path))
    return min(found)[1] if found else None


def read_npz(path: Path) -> Arrays:
    """The four arrays of an ``.npz`` file of images."""
    content = npz_arrays(path)
    if not {*Arrays._fields} <= content.keys():
        raise ValueError(
            f"{path} must hold the arrays {list(Arrays._fields)}. Got {list(content)} instead."
        )
    return Arrays(*(content[key] for key in Arrays._fields))


def npz_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an ``.npz`` file by their names in lower case."""
    with path.open("rb") as file:
        try:
            if not zipfile.is_zipfile(file):
                raise zipfile.BadZipFile("its end is missing")
            file.seek(0)
            with np.load(file, allow_pickle=False) as content:
                return {key.lower(): content[key] for key in content.files}
        except (zipfile.BadZipFile, EOFError, zlib.error) as error:
            raise OSError(f"{path} is truncated or not an .npz file: {error}") from error


def _dataset(info: DatasetInfo, arrays: Arrays, source: str) -> Dataset:
    x_train, y_train, x_test, y_test = arrays
    return Dataset(
        info.name, _pixels(x_train), _binary(y_train), _pixels(x_test), _binary(y_test), source
    )


def _pixels(images: NDArray[Any]) -> NDArray[np.float32]:
    """Images as rows of float32 in [0, 1]."""
    rows = images.reshape(len(images), -1)
    if np.issubdtype(rows.dtype, np.integer) or (rows.size and rows.max() > 1):
        return rows.astype(np.float32) / np.float32(255)
    return rows.astype(np.float32, copy=False)


def _binary(labels: NDArray[Any]) -> NDArray[np.int64]:
    return (np.ravel(labels) == POSITIVE_LABEL).astype(np.int64)


def where(name: str, data_home: str | os.PathLike[str] | None = None) -> str | None:
    """Path a data set would be read from, None if it is not here."""
    info = DATASETS[name]
    if not info.sources:
        return str(DATA)
    folder = data_folder(data_home)
    paths = [find(source, folder) for source in info.sources]
    if None not in paths:
        return str(paths[0].parent)  # type: ignore[union-attr]
    npz = find_npz(info, folder)
    return None if npz is None else str(npz)
