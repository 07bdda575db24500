"""Arrays and data frames of Dask as chunks of samples, and the lazy answers of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import dask.array as da
import dask.dataframe as dd
import numpy as np
import scipy.sparse as sp
from dask import delayed
from numpy.typing import NDArray

from attop.approximation import transform
from attop.chunked.protocol import Chunk, Vector

Counts = dict[Any, tuple[int, float]]


class Parts(NamedTuple):
    """The blocks of samples, labels and weights, in the same order; the names of the features."""

    X: list[Any]
    y: list[Any]
    weights: list[Any]
    names: NDArray[Any] | None


class Roles(NamedTuple):
    """What makes a chunk of blocks: who is positive, how much more classes count, the features."""

    pos_label: Any
    factors: tuple[float, float]
    feature_map: Any


def is_lazy(X: Any) -> bool:
    """Whether this is an array or a data frame of Dask."""
    return isinstance(X, da.Array | dd.DataFrame | dd.Series)


def parts_of(X: Any, y: Any, sample_weight: Any, name: str) -> Parts:
    """The blocks of samples with their labels and weights.

    Raises
    ------
    TypeError, ValueError
        Where they are not of Dask, or do not belong together.
    """
    if not isinstance(X, da.Array | dd.DataFrame):
        raise TypeError(
            f"The samples of {name} must be an array or a data frame of Dask. "
            f"Got {type(X).__name__} instead; dask.array.from_array makes one of it."
        )
    if isinstance(X, da.Array) and X.ndim != 2:
        raise ValueError(f"The samples of {name} must be a matrix. Got {X.ndim} dimensions.")
    names = np.asarray(X.columns, dtype=object) if isinstance(X, dd.DataFrame) else None
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1}) if X.numblocks[1] != 1 else X
    blocks = X.to_delayed().ravel().tolist() if isinstance(X, da.Array) else _partitions(X)
    rows = X.chunks[0] if isinstance(X, da.Array) else None
    labels = _aligned(y, rows, len(blocks), "y", name)
    if sample_weight is None:
        weights: list[Any] = [None] * len(blocks)
    else:
        weights = _aligned(sample_weight, rows, len(blocks), "sample_weight", name)
    return Parts(list(blocks), labels, weights, names)


def _partitions(frame: Any) -> list[Any]:
    """The partitions of a frame or series, as many as it says.

    Dask would join small ones, of some columns others than of some others.
    """
    return list(frame.simplify().to_delayed(optimize_graph=False))


def _aligned(values: Any, rows: Any, n_blocks: int, what: str, name: str) -> list[Any]:
    """The blocks of labels or weights, cut where the samples are."""
    if not is_lazy(values):
        raise TypeError(
            f"The {what} of {name} must be an array or a series of Dask, as the samples are. "
            f"Got {type(values).__name__} instead."
        )
    if isinstance(values, da.Array):
        known = rows is not None and not np.isnan([*rows, *values.chunks[0]]).any()
        if known and sum(rows) != sum(values.chunks[0]):
            raise ValueError(
                f"X and {what} have inconsistent numbers of samples: "
                f"{sum(rows)} and {sum(values.chunks[0])}."
            )
        values = values.ravel() if values.ndim > 1 else values
        if known and rows != values.chunks[0]:
            values = values.rechunk((rows,))
        blocks = values.to_delayed().ravel().tolist()
    else:
        blocks = _partitions(values)
    if len(blocks) != n_blocks:
        raise ValueError(
            f"X and {what} must have blocks of the same samples. "
            f"Got {n_blocks} and {len(blocks)} blocks."
        )
    return blocks


def count_labels(block: tuple[Any, Any]) -> tuple[Counts, bool]:
    """Rows and copies of each label, and whether all weights are what weights can be."""
    y = np.asarray(block[0]).ravel()
    weights = np.ones(len(y)) if block[1] is None else np.asarray(block[1], np.float64).ravel()
    good = len(weights) == len(y) and bool((weights >= 0.0).all() and np.isfinite(weights).all())
    if not good:
        return {}, False
    y, weights = y[weights > 0.0], weights[weights > 0.0]
    if y.dtype.kind == "f" and np.isnan(y).any():
        return {np.nan: (len(y), 0.0)}, True
    values, place = np.unique(y, return_inverse=True)
    place = place.ravel()
    rows = np.bincount(place, minlength=len(values))
    copies = np.bincount(place, weights, len(values))
    # Three say as much as a thousand: that there are too many.
    counts = {
        v.item() if hasattr(v, "item") else v: (int(n), float(c))
        for v, n, c in zip(values[:3], rows, copies)
    }
    return counts, True


def merge_counts(parts: list[tuple[Counts, bool]]) -> tuple[Counts, bool]:
    """The counts of all blocks."""
    merged: Counts = {}
    for counts, _ in parts:
        for label, (rows, copies) in counts.items():
            before = merged.get(label, (0, 0.0))
            merged[label] = before[0] + rows, before[1] + copies
    return merged, all(good for _, good in parts)


def chunk_of(X: Any, y: Any, weights: Any, number: int, roles: Roles) -> Chunk:
    """A chunk of one block each."""
    samples = _matrix(X)
    positive = np.asarray(y).ravel() == roles.pos_label
    if samples.shape[0] != len(positive):
        raise ValueError(
            f"X and y have inconsistent numbers of samples in block {number}: "
            f"{samples.shape[0]} and {len(positive)}."
        )
    copies: Vector | None = None
    if weights is not None or roles.factors != (1.0, 1.0):
        copies = np.ones(len(positive))
        if weights is not None:
            copies = np.asarray(weights, dtype=np.float64).ravel()
        copies = copies * np.where(positive, roles.factors[0], roles.factors[1])
        there = copies > 0.0
        if not there.all():
            samples, positive, copies = samples[there], positive[there], copies[there]
    if roles.feature_map is not None:
        samples = _features(samples, roles.feature_map)
    return Chunk(samples, positive, copies, number)


def _features(samples: Any, feature_map: Any) -> Any:
    if samples.shape[0] == 0:
        return np.zeros((0, feature_map.transform(np.zeros((1, samples.shape[1]))).shape[1]))
    return transform(feature_map, samples)


def _matrix(X: Any) -> Any:
    """A block as an array or a CSR matrix, single or double."""
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if sp.issparse(X):
        X = sp.csr_matrix(X)
    elif hasattr(X, "to_scipy_sparse"):  # of the package sparse
        X = sp.csr_matrix(X.to_scipy_sparse())
    else:
        X = np.asarray(X)
    if sp.issparse(X) and not X.has_canonical_format:  # entries that stand there twice
        X = X.copy()
        X.sum_duplicates()
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def lazy_chunks(parts: Parts, roles: Roles) -> list[Any]:
    """The chunks, not computed."""
    make, shared = delayed(chunk_of, pure=False), delayed(roles, pure=False)
    blocks = zip(parts.X, parts.y, parts.weights, strict=True)
    return [make(X, y, w, number, shared) for number, (X, y, w) in enumerate(blocks)]


def lazy_labels(parts: Parts) -> list[Any]:
    """Labels and weights, not computed."""
    pair = delayed(_pair, pure=False)
    return [pair(y, w) for y, w in zip(parts.y, parts.weights, strict=True)]


def _pair(y: Any, weights: Any) -> tuple[Any, Any]:
    return y, weights


def class_factors(
    class_weight: Mapping[Any, float] | str | None, pos_label: Any, counts: Counts
) -> tuple[float, float]:
    """By how much positives and negatives count more."""
    if class_weight is None:
        return 1.0, 1.0
    negative = next(label for label in counts if label != pos_label)
    if isinstance(class_weight, str):
        total = sum(copies for _, copies in counts.values())
        of_positives, of_negatives = counts[pos_label][1], counts[negative][1]
        return total / (2.0 * of_positives), total / (2.0 * of_negatives)
    return float(class_weight.get(pos_label, 1.0)), float(class_weight.get(negative, 1.0))


def lazily(function: Any, X: Any, dtype: Any) -> Any:
    """A function of samples, applied to every block when it is asked for."""
    if isinstance(X, dd.DataFrame):
        blocks = [delayed(_apply)(function, part, dtype) for part in _partitions(X)]
        arrays = [da.from_delayed(b, (np.nan,), dtype=dtype) for b in blocks]
        return da.concatenate(arrays, allow_unknown_chunksizes=True)
    X = X.rechunk({1: -1}) if X.numblocks[1] != 1 else X
    return X.map_blocks(
        _apply_to, function, dtype, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype)
    )


def _apply_to(block: Any, function: Any, dtype: Any) -> Any:
    return _apply(function, block, dtype)


def _apply(function: Any, block: Any, dtype: Any) -> Any:
    return np.empty(0, dtype) if block.shape[0] == 0 else function(block)
