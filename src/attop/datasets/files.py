"""The user's own files: CSV, Parquet, libsvm and npz."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
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
    weight: str | None = None,
) -> Dataset:
    """Load a file of samples and labels, and maybe weights.

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
    weight : str, default=None
        Column of the weights of the samples, which is no feature; weights count copies.  Of
        an npz file an array, such as ``w_train``; beside it ``w_test`` has the weights of
        the test set, each of which is 1 otherwise.

    Returns
    -------
    Dataset
        Named after the file.

    Raises
    ------
    ValueError
        If a column is not there (the nearest one is suggested) or is not numeric, if it
        is not clear which class is the positive one, or if weights are negative or missing.

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
    if reader is _read_libsvm and weight is not None:
        raise ValueError(
            "The 'weight' parameter of load_file is the name of a column or of an array, which "
            f"only tables and npz files have. Got {path.name!r}."
        )
    try:
        return reader(path, target, positive, ignore, weight)
    except (EOFError, UnicodeDecodeError, gzip.BadGzipFile, zlib.error) as error:
        raise OSError(f"{path} is truncated or not of the kind its name says: {error}") from error


def _read_table(
    path: Path, target: str | None, positive: Any, ignore: Sequence[str], weight: str | None
) -> Dataset:
    """Read CSV or Parquet by pandas."""
    frame = read_frame(path)
    columns = list(frame.columns)
    if target is None:
        raise ValueError(
            f"The 'target' parameter of load_file must name the column of the labels. {path.name} "
            f"has the columns {listed(columns)}."
        )
    weights = [] if weight is None else [weight]
    for parameter, names in (("target", [target]), ("ignore", ignore), ("weight", weights)):
        _check_names(parameter, names, columns, f"columns of {path.name}")
    missing = int(frame[target].isna().sum())
    if missing:
        raise ValueError(f"Column {target!r} of {path.name} has {missing} labels missing.")
    features = frame.drop(columns=[target, *ignore, *weights])
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
    w = None
    if weight is not None:
        w = _checked_weights(frame[weight].to_numpy(), y, f"Column {weight!r} of {path.name}")
    names = list(features.columns)
    return Dataset(uncompressed(path).stem, X, y, None, None, str(path), names, weight=w)


def _check_names(parameter: str, names: Sequence[str], known: list[str], what: str) -> None:
    """Raise a ValueError with the nearest of the known names where one is not among them."""
    for name in names:
        if name not in known:
            raise ValueError(
                f"The '{parameter}' parameter of load_file must name {what}. "
                f"Got {name!r} instead. {suggestion(name, known)}"
            )


def _checked_weights(values: NDArray[Any], y: NDArray[np.int64], where: str) -> NDArray[np.float64]:
    """Weights as numbers; a ValueError unless they can count copies of samples of both classes."""
    weights = np.ravel(values)
    if weights.dtype.kind not in "biuf":
        raise ValueError(f"{where} must hold numbers, since it is to be the 'weight'.")
    if len(weights) != len(y):
        raise ValueError(
            f"{where} must hold a weight for each sample. "
            f"Got {len(y)} samples and {len(weights)} weights."
        )
    weights = weights.astype(np.float64)
    wrong = weights[~(np.isfinite(weights) & (weights >= 0.0))]
    if len(wrong):
        raise ValueError(
            f"{where} must hold finite weights of at least 0, without gaps. "
            f"Got {wrong[0]:g} instead."
        )
    for label, name in enumerate(("negatives", "positives")):
        if np.any(y == label) and not np.any(weights[y == label] > 0.0):
            raise ValueError(f"{where} must not leave out all {name}. Their weights are all 0.")
    return weights


def _read_libsvm(
    path: Path, target: None, positive: Any, ignore: Sequence[str], weight: None
) -> Dataset:
    """Read labels and sparse features."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, labels = load_svmlight_file(str(path))
    except ValueError as error:
        raise ValueError(f"{path.name} is not in libsvm format: {error}") from error
    return Dataset(
        uncompressed(path).stem, X, as_binary(labels, positive, path.name), None, None, str(path)
    )


def _read_npz(
    path: Path, target: None, positive: Any, ignore: Sequence[str], weight: str | None
) -> Dataset:
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
    w = w_test = None
    if weight is not None:
        _check_names("weight", [weight.lower()], list(content), f"an array of {path.name}")
        w = _npz_weights(content, weight.lower(), y, path)
    data = Dataset(uncompressed(path).stem, X, y, source=str(path), weight=w)
    if len(arrays) < 4:
        return data
    X_test, y_test = _rows_and_labels(arrays[2], arrays[3], positive, path)
    if weight is not None:
        name = f"{weight.lower().removesuffix('_train')}_test"
        w_test = _npz_weights(content, name, y_test, path)
    return replace(data, X_test=X_test, y_test=y_test, weight_test=w_test)


def _npz_weights(
    content: dict[str, NDArray[Any]], name: str, y: NDArray[np.int64], path: Path
) -> NDArray[np.float64] | None:
    """The weights of that name; None where there are none."""
    if name not in content:
        return None
    return _checked_weights(content[name], y, f"Array {name!r} of {path.name}")


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
