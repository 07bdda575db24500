"""The data sets an experiment can name: those of the paper, scikit-learn's, and files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from attop._validation import check_weights
from attop._words import suggestion
from attop.datasets import DATASETS, Dataset, Split, load_dataset, load_file
from attop.datasets.registry import dataset_info, simplify

#: Files in a folder of tables: samples and labels need no names of columns.
_TABLES = (".npz", ".libsvm", ".svm")


@dataclass(frozen=True)
class DatasetSpec:
    """A data set as an experiment names it.

    Attributes
    ----------
    label : str
        Name in tables.
    name : str
        Name of a known data set; empty for a file.
    file : str
        Path of a file; empty for a known data set.
    target, positive, ignore, weight
        As for `attop.datasets.load_file`; empty where not given.
    n_train : int or None
        Keep only so many training samples.
    scale : bool
        Standardise the features by the means and deviations of the training samples, copies
        counted.
    digest : str
        SHA256 of the file, so that results belong to its content and not to its name.
    n_test : int or None
        At most so many test samples, and no validation set: for methods that choose their own
        parameters.  Training samples are at most half of all then.
    """

    label: str = ""
    name: str = ""
    file: str = ""
    target: str = ""
    positive: str = ""
    ignore: tuple[str, ...] = ()
    n_train: int | None = None
    scale: bool = False
    digest: str = ""
    weight: str = ""
    n_test: int | None = None

    def identity(self) -> dict[str, Any]:
        """What the samples depend on, for the hash of a result."""
        named = {"name": self.name} if self.name else {"file": self.digest, "target": self.target}
        weighted = {"weight": self.weight} if self.weight else {}
        tested = {"n_test": self.n_test} if self.n_test else {}
        return {
            **named,
            **weighted,
            **tested,
            "positive": self.positive,
            "ignore": list(self.ignore),
            "n_train": self.n_train,
            "scale": self.scale,
        }


def _breast_cancer() -> Dataset:
    from sklearn.datasets import load_breast_cancer

    bunch: Any = load_breast_cancer()
    malignant = (bunch.target == 0).astype(np.int64)
    return Dataset("breast_cancer", bunch.data, malignant, source="scikit-learn")


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    ones = (bunch.target == 1).astype(np.int64)
    return Dataset("digits", bunch.data / 16.0, ones, source="scikit-learn")


#: Data sets that come with scikit-learn: malignant tumours, and the digit 1.
BUNDLED: dict[str, Callable[[], Dataset]] = {"breast_cancer": _breast_cancer, "digits": _digits}


def resolve_dataset(spec: DatasetSpec) -> DatasetSpec:
    """The specification with its name as it is listed, or with the digest of its file.

    Raises
    ------
    ValueError, OSError
        If there is no such data set, file or column; the nearest one is suggested.
    """
    if spec.file:
        data = load(spec)  # its errors name the columns
        with Path(spec.file).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return replace(spec, digest=digest, label=spec.label or _label(data.name, spec))
    if spec.target or spec.positive or spec.ignore or spec.weight:
        raise ValueError(
            "'target', 'positive', 'ignore' and 'weight' are for files; this one has a name."
        )
    name = _resolve_name(spec.name)
    return replace(spec, name=name, label=spec.label or _label(name, spec))


def _resolve_name(name: str) -> str:
    bundled = {simplify(known): known for known in BUNDLED}
    if simplify(name) in bundled:
        return bundled[simplify(name)]
    try:
        return dataset_info(name).name
    except ValueError:
        known = (*DATASETS, *BUNDLED)
        raise ValueError(f"there is no data set {name!r}. {suggestion(name, known)}") from None


def _label(name: str, spec: DatasetSpec) -> str:
    return name if spec.n_train is None else f"{name} ({spec.n_train})"


@lru_cache(maxsize=1)  # the splits of one data set follow each other
def load(spec: DatasetSpec) -> Dataset:
    """Read the data set, without samples of weight 0: that is no copy at all."""
    if not spec.file:
        return BUNDLED[spec.name]() if spec.name in BUNDLED else load_dataset(spec.name)
    data = load_file(
        spec.file,
        target=spec.target or None,
        positive=spec.positive or None,
        ignore=spec.ignore,
        weight=spec.weight or None,
    )
    if data.weight is not None:
        there = data.weight > 0.0
        data = replace(data, X=data.X[there], y=data.y[there], weight=data.weight[there])
    if data.weight_test is not None and data.y_test is not None:
        there = data.weight_test > 0.0
        X_test, y_test = data.X_test[there], data.y_test[there]
        data = replace(data, X_test=X_test, y_test=y_test, weight_test=data.weight_test[there])
    return data


def split(spec: DatasetSpec, seed: int) -> Split:
    """Training, validation and test set of a seed, standardised where asked."""
    if spec.n_test is not None:
        parts = _train_and_test(load(spec), spec, seed)
    else:
        parts = load(spec).split(seed, n_train=spec.n_train)
    # Without those that are all 1: a forest, for one, draws its samples differently with weights.
    parts = parts._replace(w_train=check_weights(parts.w_train, parts.X_train))
    if not spec.scale:
        return parts
    import scipy.sparse as sp
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not sp.issparse(parts.X_train))
    scaler.fit(parts.X_train, sample_weight=parts.w_train)
    scaled = {
        name: scaler.transform(getattr(parts, name)) for name in ("X_train", "X_valid", "X_test")
    }
    return parts._replace(**scaled)


def _train_and_test(data: Dataset, spec: DatasetSpec, seed: int) -> Split:
    """Training and test samples with the shares of the classes, and no validation samples."""
    from sklearn.model_selection import train_test_split

    n_train = n_training(len(data.y), spec)
    rows = np.arange(len(data.y))
    n_test = min(spec.n_test or 0, len(rows) - n_train)
    train, test = train_test_split(
        rows, train_size=n_train, test_size=n_test, random_state=seed, stratify=data.y
    )
    none = train[:0]
    return Split(
        data.X[train], data.y[train], data.X[none], data.y[none], data.X[test], data.y[test]
    )


def n_training(n_samples: int, spec: DatasetSpec) -> int:
    """Training samples of a data set without validation samples: at most half of all."""
    half = n_samples // 2
    return half if spec.n_train is None else min(spec.n_train, half)


def tables_of(folder: Path, sizes: Sequence[int], n_test: int) -> list[DatasetSpec]:
    """The files of a folder, each at several numbers of training samples.

    A number is left out where it comes to the samples of the one before, since a table is small.

    Raises
    ------
    ValueError, OSError
        If there is no file of a known kind, or one cannot be read.
    """
    paths = sorted(path for path in folder.glob("*") if path.suffix in _TABLES)
    if not paths:
        raise FileNotFoundError(
            f"There is no file of {', '.join(_TABLES)} in {folder}. Name another by --folder."
        )
    found = []
    for path in paths:
        known: set[int] = set()
        for size in sizes:
            spec = resolve_dataset(DatasetSpec(file=str(path), n_train=size, n_test=n_test))
            n_train = n_training(len(load(spec).y), spec)
            if n_train not in known:
                known.add(n_train)
                found.append(spec)
    return found
