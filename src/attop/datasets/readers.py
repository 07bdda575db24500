"""Readers of the original files: pixels as bytes, labels as the authors numbered them."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_CIFAR_PIXELS = 3 * 32 * 32


class Arrays(NamedTuple):
    """Samples (first axis) and labels of the official training and test sets."""

    x_train: NDArray[Any]
    y_train: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]


def read_idx(paths: Sequence[Path]) -> Arrays:
    """Read MNIST or FashionMNIST: training images and labels, test images and labels."""
    return Arrays(*(_idx_array(path) for path in paths))


def _idx_array(path: Path) -> NDArray[np.uint8]:
    """One IDX file of bytes: two zeros, the type 8, the number of axes, their lengths."""
    with gzip.open(path) as file:
        content = file.read()
    n_axes = content[3]
    shape = np.frombuffer(content, dtype=">i4", count=n_axes, offset=4)
    return np.frombuffer(content, dtype=np.uint8, offset=4 + 4 * n_axes).reshape(shape)


def read_cifar10(paths: Sequence[Path]) -> Arrays:
    """Read the binary version of CIFAR10: a label and 3072 pixels for each image."""
    folder = "cifar-10-batches-bin"
    train = [f"{folder}/data_batch_{number}.bin" for number in range(1, 6)]
    return _cifar(paths[0], train, f"{folder}/test_batch.bin", n_labels=1, column=0)


def read_cifar100(paths: Sequence[Path], *, label: str) -> Arrays:
    """Read the binary version of CIFAR100: coarse and fine label and 3072 pixels each."""
    column = ("coarse", "fine").index(label)
    folder = "cifar-100-binary"
    return _cifar(paths[0], [f"{folder}/train.bin"], f"{folder}/test.bin", 2, column)


def _cifar(path: Path, train: list[str], test: str, n_labels: int, column: int) -> Arrays:
    """Images of both sets, channels last, with the labels in `column`."""
    with tarfile.open(path) as archive:
        records = [
            np.concatenate([_cifar_records(archive, name, n_labels) for name in names])
            for names in (train, [test])
        ]
    arrays = []
    for part in records:
        images = part[:, n_labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        arrays += [images, part[:, column]]
    return Arrays(*arrays)


def _cifar_records(archive: tarfile.TarFile, name: str, n_labels: int) -> NDArray[np.uint8]:
    file = archive.extractfile(name)
    if file is None:
        raise OSError(f"{name} is not a file of the archive")
    return np.frombuffer(file.read(), dtype=np.uint8).reshape(-1, n_labels + _CIFAR_PIXELS)


def read_svhn(paths: Sequence[Path]) -> Arrays:
    """Read the cropped digits of SVHN (format 2); label 10 is the digit 0."""
    from scipy.io import loadmat

    arrays = []
    for path in paths:
        content = loadmat(path)
        arrays += [content["X"].transpose(3, 0, 1, 2), content["y"].ravel()]
    return Arrays(*arrays)
