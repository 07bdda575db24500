"""Samples to fit: from a table with names, or from a matrix; with labels as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._words import listed
from attop.cli._columns import Columns, as_words, check_columns, feature_frame, sort_columns
from attop.datasets.frames import TABLE_ENDINGS, column_names, ending, read_frame

if TYPE_CHECKING:
    from pandas import DataFrame


class Roles(NamedTuple):
    """Columns that are no features, and how to read the others, as options say it."""

    target: str | None = None
    positive: str | None = None
    id: str | None = None
    weight: str | None = None
    ignore: Sequence[str] = ()
    categorical: Sequence[str] = ()
    missing: Sequence[str] = ()


@dataclass(frozen=True)
class Samples:
    """Samples to fit.

    Attributes
    ----------
    X : DataFrame, ndarray or CSR matrix of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        Labels of two values, as the file has them.
    positive : label
        The positive one.
    weight : ndarray of shape (n_samples,) or None
        Weights of the samples.
    columns : Columns or None
        The columns of a table; None for a matrix.
    test : tuple of X and y, or None
        The official test set, if there is one.
    notes : list of str
        What the user should know.
    """

    X: Any
    y: NDArray[Any]
    positive: Any
    weight: NDArray[np.float64] | None = None
    columns: Columns | None = None
    test: tuple[Any, NDArray[Any]] | None = None
    notes: list[str] = field(default_factory=list)

    def take(self, rows: NDArray[np.intp]) -> Samples:
        """The samples of some rows."""
        from sklearn.utils import _safe_indexing

        weight = None if self.weight is None else self.weight[rows]
        return Samples(
            _safe_indexing(self.X, rows), self.y[rows], self.positive, weight, self.columns
        )

    @property
    def n_positives(self) -> int:
        """Number of positives."""
        return int(np.count_nonzero(self.y == self.positive))


def read_samples(path: Path, roles: Roles) -> Samples:
    """Read the samples of a file.

    Raises
    ------
    ValueError, OSError
        If that cannot be; the message names options.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    return (_read_table if ending(path) in TABLE_ENDINGS else _read_matrix)(path, roles)


def _read_table(path: Path, roles: Roles) -> Samples:
    names, file = column_names(path), path.name
    if roles.target is None:
        raise ValueError(
            f"--target must name the column of the labels. {file} has the columns {listed(names)}."
        )
    aside = [name for name in (roles.target, roles.id, roles.weight) if name is not None]
    wanted = {
        "--target": [roles.target],
        "--id": [roles.id] if roles.id is not None else [],
        "--weight": [roles.weight] if roles.weight is not None else [],
        "--ignore": roles.ignore,
        "--categorical": roles.categorical,
    }
    check_columns(names, wanted, file)
    features = [name for name in names if name not in (*aside, *roles.ignore)]
    frame = read_frame(path, columns=[*features, *aside], missing=roles.missing)
    if not features or not len(frame):
        what = "no rows below its header" if features else "no column left for a feature"
        raise ValueError(f"{file} has {what}: there is nothing to learn from.")
    numbers, categories, notes = sort_columns(frame[features], roles.categorical, file)
    columns = Columns(numbers, categories, roles.id, list(roles.missing))
    if categories and ending(path) != ".parquet":  # once more, as they are written
        written = read_frame(path, columns=categories, words=categories, missing=roles.missing)
        frame = frame.assign(**{name: written[name] for name in categories})
    y, positive = _labels(frame, roles, file)
    X = feature_frame(frame, columns, file)
    notes += _notes_on_gaps(X, columns)
    samples = Samples(X, y, positive, _weights(frame, roles, file), columns, notes=notes)
    return samples if samples.weight is None else _without_weightless(samples)


def _without_weightless(samples: Samples) -> Samples:
    """The samples that count: a weight of 0 is no copy at all, for a threshold neither."""
    assert samples.weight is not None
    counted = np.flatnonzero(samples.weight > 0)
    n_left_out = len(samples.weight) - len(counted)
    if not n_left_out:
        return samples
    notes = [*samples.notes, f"{n_left_out} samples of weight 0 are left out."]
    return replace(samples.take(counted), notes=notes)


def _labels(frame: DataFrame, roles: Roles, file: str) -> tuple[NDArray[Any], Any]:
    """Labels of two values and the positive one; many values become the positive and the rest."""
    from attop.datasets.files import as_binary

    column = frame[roles.target]
    n_missing = int(column.isna().sum())
    if n_missing:
        raise ValueError(
            f"Column {roles.target!r} of {file} has no label in {n_missing} rows: remove them."
        )
    values = column.to_numpy()
    labels = values if values.dtype.kind in "biuf" else as_words(column).astype(str)
    is_positive = as_binary(labels, roles.positive, f"column {roles.target!r} of {file}") == 1
    positive = labels[is_positive][0]
    if len(np.unique(labels)) > 2:
        labels = np.where(is_positive, f"{positive}", f"not {positive}")
        positive = labels[is_positive][0]
    return labels, positive.item()


def _weights(frame: DataFrame, roles: Roles, file: str) -> NDArray[np.float64] | None:
    if roles.weight is None:
        return None
    columns = Columns([roles.weight], [])
    weights: NDArray[np.float64] = feature_frame(frame, columns, file).to_numpy().ravel()
    if not (weights >= 0).all():
        raise ValueError(
            f"--weight must name a column of numbers of at least 0, without gaps. Column "
            f"{roles.weight!r} of {file} has others."
        )
    return weights


def _notes_on_gaps(X: DataFrame, columns: Columns) -> list[str]:
    """Which values are missing, and what is done about it."""
    notes = []
    for names, what in (
        (columns.numbers, "the median of the column takes their place"),
        (columns.categories, "they count as a category of their own"),
    ):
        gaps = {name: int(X[name].isna().sum()) for name in names}
        counts = [f"{name} ({count})" for name, count in gaps.items() if count]
        if counts:
            shown = ", ".join(counts[:8]) + (", ..." if len(counts) > 8 else "")
            notes.append(f"Missing values in {shown}: {what}.")
    return notes


def _read_matrix(path: Path, roles: Roles) -> Samples:
    """Read npz or libsvm, whose features have no names."""
    import scipy.sparse as sp

    from attop.datasets import load_file

    named = {
        "--target": roles.target,
        "--id": roles.id,
        "--weight": roles.weight,
        "--ignore": roles.ignore,
        "--categorical": roles.categorical,
    }
    for option, value in named.items():
        if value:
            raise ValueError(f"{option} names a column, and {path.name} has no names of columns.")
    data = load_file(path, positive=roles.positive)
    name = roles.positive
    values: list[Any] = [0, 1] if name is None else [f"not {name}", name]
    labels = np.array(values)
    test = None if data.y_test is None else (data.X_test, labels[data.y_test])
    n_gaps = 0 if sp.issparse(data.X) else int(np.isnan(data.X).sum())
    notes = [f"{n_gaps} missing values: the median of the column takes their place."]
    return Samples(data.X, labels[data.y], values[1], test=test, notes=notes if n_gaps else [])
