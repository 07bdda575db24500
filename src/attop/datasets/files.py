"""The user's own files: CSV, Parquet, libsvm and npz."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop._words import listed, suggestion
from attop.datasets.frames import ending, read_frame, uncompressed
from attop.datasets.loading import Dataset, npz_arrays

#: Names of samples and labels in npz files, most specific first; those of the test set too.
_NPZ_KEYS = (("x_train", "y_train", "x_test", "y_test"), ("x", "y", "x_test", "y_test"))


def load_file(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    positive: Any = None,
    ignore: Sequence[str] = (),
) -> Dataset:
    """Load a file of samples and labels.

    Parameters
    ----------
    path : path-like
        ``.csv`` or ``.tsv`` (with a header), ``.parquet``, ``.libsvm`` or ``.svm``, these
        also with ``.gz``, or ``.npz`` with arrays ``X`` and ``y``, or ``x_train`` and
        ``y_train`` and maybe ``x_test`` and ``y_test``.
    target : str, default=None
        Column of the labels; tables need it.
    positive : label, default=None
        Label of the positive class; all others are negative.  By default 1, where the labels
        are 0 and 1 or -1 and 1.
    ignore : sequence of str, default=()
        Columns that are no features, such as an identifier.

    Returns
    -------
    Dataset
        Named after the file.

    Raises
    ------
    ValueError
        If a column is not there (the nearest one is suggested) or is not numeric, or if it
        is not clear which class is the positive one.

    Examples
    --------
    >>> from attop.datasets import load_file
    >>> data = load_file("loans.csv", target="default", positive="yes")  # doctest: +SKIP
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    reader = _READERS.get(ending(path))
    if reader is None:
        raise ValueError(
            f"The 'path' parameter of load_file must end in one of {sorted(_READERS)}. "
            f"Got {path.name!r} instead."
        )
    if reader is not _read_table and (target is not None or ignore):
        raise ValueError(
            "The 'target' and 'ignore' parameters of load_file are names of columns, which only "
            f"tables have. Got {path.name!r}."
        )
    try:
        return reader(path, target, positive, ignore)
    except (EOFError, UnicodeDecodeError, gzip.BadGzipFile, zlib.error) as error:
        raise OSError(f"{path} is truncated or not of the kind its name says: {error}") from error


def _read_table(path: Path, target: str | None, positive: Any, ignore: Sequence[str]) -> Dataset:
    """Read CSV or Parquet by pandas."""
    frame = read_frame(path)
    columns = list(frame.columns)
    if target is None:
        raise ValueError(
            f"The 'target' parameter of load_file must name the column of the labels. {path.name} "
            f"has the columns {listed(columns)}."
        )
    for column in (target, *ignore):
        if column not in columns:
            parameter = "target" if column == target else "ignore"
            raise ValueError(
                f"The '{parameter}' parameter of load_file must name columns of {path.name}. "
                f"Got {column!r} instead. {suggestion(column, columns)}"
            )
    missing = int(frame[target].isna().sum())
    if missing:
        raise ValueError(f"Column {target!r} of {path.name} has {missing} labels missing.")
    features = frame.drop(columns=[target, *ignore])
    if not features.shape[1] or not len(features):
        raise ValueError(
            f"{path.name} must hold samples with features. It has shape {frame.shape}."
        )
    words = [name for name, kind in features.dtypes.items() if kind.kind not in "biuf"]
    if words:
        raise ValueError(
            f"Columns of {path.name} must be numeric. Got {listed(words)}; encode them or name "
            "them in 'ignore'."
        )
    X = features.to_numpy(dtype=np.float64)
    y = as_binary(frame[target].to_numpy(), positive, f"column {target!r} of {path.name}")
    return Dataset(uncompressed(path).stem, X, y, None, None, str(path), list(features.columns))


def _read_libsvm(path: Path, target: None, positive: Any, ignore: Sequence[str]) -> Dataset:
    """Read labels and sparse features."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, labels = load_svmlight_file(str(path))
    except ValueError as error:
        raise ValueError(f"{path.name} is not in libsvm format: {error}") from error
    return Dataset(
        uncompressed(path).stem, X, as_binary(labels, positive, path.name), None, None, str(path)
    )


def _read_npz(path: Path, target: None, positive: Any, ignore: Sequence[str]) -> Dataset:
    """Read arrays; images become rows."""
    content = npz_arrays(path)
    chosen = next((names for names in _NPZ_KEYS if {*names[:2]} <= content.keys()), None)
    if chosen is None:
        raise ValueError(
            f"{path.name} must hold arrays X and y, or x_train and y_train. "
            f"Got {list(content)} instead."
        )
    arrays = [content[key] for key in chosen if key in content]
    X, y = _rows_and_labels(arrays[0], arrays[1], positive, path)
    if len(arrays) < 4:
        return Dataset(uncompressed(path).stem, X, y, source=str(path))
    X_test, y_test = _rows_and_labels(arrays[2], arrays[3], positive, path)
    return Dataset(uncompressed(path).stem, X, y, X_test, y_test, source=str(path))


def _rows_and_labels(
    X: NDArray[Any], y: NDArray[Any], positive: Any, path: Path
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Samples as rows of floats, labels as zeros and ones."""
    labels = np.ravel(y)
    if len(X) != len(labels):
        raise ValueError(
            f"{path.name} must hold a label for each sample. "
            f"Got {len(X)} samples and {len(labels)} labels."
        )
    rows = X.reshape(len(X), -1)
    if not np.issubdtype(rows.dtype, np.floating):
        rows = rows.astype(np.float64)
    return rows, as_binary(labels, positive, path.name)


_READERS: dict[str, Callable[..., Dataset]] = {
    ".csv": _read_table,
    ".tsv": _read_table,
    ".parquet": _read_table,
    ".libsvm": _read_libsvm,
    ".svm": _read_libsvm,
    ".npz": _read_npz,
}


def as_binary(labels: NDArray[Any], positive: Any, where: str) -> NDArray[np.int64]:
    """Labels as 1 for `positive` and 0 for all others.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        The labels.
    positive : label or None
        The positive one; a word that spells it, such as ``"1"``, will do.  By default 1,
        where the labels are 0 and 1 or -1 and 1.
    where : str
        Where the labels are from, for the error.

    Returns
    -------
    ndarray of shape (n_samples,)
        Zeros and ones.
    """
    values = np.unique(labels)
    if positive is None:
        numeric = np.issubdtype(values.dtype, np.number) or values.dtype == bool
        if len(values) == 2 and numeric and values[1] == 1 and values[0] in (0, -1):
            return (labels == values[1]).astype(np.int64)
        raise ValueError(
            "The 'positive' parameter of load_file must say which label is positive, unless the "
            f"labels are 0 and 1 or -1 and 1. Got {listed(values.tolist())} in {where}."
        )
    spelled = {_spell(value): value for value in values.tolist()}
    if _spell(positive) not in spelled:
        raise ValueError(
            f"The 'positive' parameter of load_file must be a label in {where}. "
            f"Got {positive!r} instead. {suggestion(_spell(positive), spelled)}"
        )
    if len(values) < 2:
        raise ValueError(f"All labels in {where} are {positive!r}: there is nothing to tell apart.")
    return (labels == spelled[_spell(positive)]).astype(np.int64)


def _spell(label: Any) -> str:
    """A label as a word: 1, 1.0 and "1" are the same."""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return str(label)
