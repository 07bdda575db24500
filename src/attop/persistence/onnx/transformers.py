"""What scikit-learn's transformers compute, node by node."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop.kernels.functions import Kernel, make_kernel
from attop.persistence.onnx.graph import Graph
from attop.persistence.onnx.kernels import kernel_values
from attop.persistence.onnx.table import Result, Table


def transform(graph: Graph, transformer: Any, table: Table) -> Table:
    """What a fitted transformer makes of a table; a ValueError for those that are not known."""
    if transformer in (None, "passthrough"):
        return table
    for kind in type(transformer).__mro__:
        if (write := _WRITERS.get(f"{kind.__module__.split('.')[0]}.{kind.__name__}")) is not None:
            return write(graph, transformer, table)
    known = sorted(name.split(".")[1] for name in _WRITERS)
    raise ValueError(
        f"attop.to_onnx cannot export {type(transformer).__name__}. Of the steps of a pipeline it "
        f"knows {', '.join(known)}."
    )


def _numbers(graph: Graph, name: str, width: int) -> Table:
    return Table(graph, [Result(name, width)])


def _scaler(graph: Graph, scaler: Any, table: Table) -> Table:
    """``(x - mean) / scale`` of the scalers of scikit-learn, as far as they do both."""
    X = table.matrix()
    if getattr(scaler, "with_mean", False) or getattr(scaler, "with_centering", False):
        middle = getattr(scaler, "mean_", None)
        middle = scaler.center_ if middle is None else middle
        X = graph.add("Sub", X, graph.constant(middle.astype(np.float64)))
    if scaler.scale_ is not None:
        X = graph.scale("Div", X, scaler.scale_, table.width)
    return _numbers(graph, _clipped(graph, scaler, X, (-1.0, 1.0)), table.width)


def _min_max(graph: Graph, scaler: Any, table: Table) -> Table:
    scaled = graph.scale("Mul", table.matrix(), scaler.scale_, table.width)
    moved = graph.add("Add", scaled, graph.constant(scaler.min_.astype(np.float64)))
    return _numbers(graph, _clipped(graph, scaler, moved, scaler.feature_range), table.width)


def _clipped(graph: Graph, scaler: Any, X: str, limits: tuple[float, float]) -> str:
    if not getattr(scaler, "clip", False):
        return X
    low, high = (graph.constant(float(limit)) for limit in limits)
    return graph.add("Clip", X, low, high)


def _pca(graph: Graph, pca: Any, table: Table) -> Table:
    centred = graph.add("Sub", table.matrix(), graph.constant(pca.mean_.astype(np.float64)))
    components = pca.components_.T.astype(np.float64)
    if pca.whiten:
        components = components / np.sqrt(pca.explained_variance_)
    product = graph.add("MatMul", centred, graph.constant(components))
    return _numbers(graph, product, components.shape[1])


def _nystroem(graph: Graph, nystroem: Any, table: Table) -> Table:
    values = kernel_values(
        graph, _kernel_of(nystroem), table.matrix(), nystroem.components_, "Nystroem"
    )
    roots = nystroem.normalization_.astype(np.float64)
    return _numbers(graph, graph.add("MatMul", values, graph.constant(roots.T)), len(roots))


def _kernel_of(nystroem: Any) -> Kernel:
    """The kernel of a `Nystroem`, whose parameters are by default those of scikit-learn."""
    if nystroem.kernel_params:
        raise ValueError("The 'kernel_params' parameter of Nystroem must be None to be exported.")
    if not isinstance(nystroem.kernel, str):
        return make_kernel(nystroem.kernel)
    defaults = {"gamma": 1.0 / nystroem.components_.shape[1], "degree": 3.0, "coef0": 1.0}
    given = {name: getattr(nystroem, name) for name in defaults}
    chosen = {name: value for name, value in given.items() if value is not None}
    name = "poly" if nystroem.kernel == "polynomial" else nystroem.kernel
    return make_kernel(name, **defaults | chosen)


def _rbf_sampler(graph: Graph, sampler: Any, table: Table) -> Table:
    weights = sampler.random_weights_.astype(np.float64)
    angles = graph.add("MatMul", table.matrix(), graph.constant(weights))
    # cos x = sin(x + pi/2): onnxruntime has had sines in double precision for longer.
    offset = sampler.random_offset_.astype(np.float64) + 0.5 * np.pi
    sines = graph.add("Sin", graph.add("Add", angles, graph.constant(offset)))
    factor = (2.0 / weights.shape[1]) ** 0.5
    waves = graph.scale("Mul", sines, factor, weights.shape[1])
    return _numbers(graph, waves, weights.shape[1])


def _imputer(graph: Graph, imputer: Any, table: Table) -> Table:
    """The statistic of a column where a value is missing; then columns that say where it was."""
    as_text = _is_text(imputer.statistics_)
    parts: list[Any] = []
    columns = list(table.columns())
    for column, statistic in zip(columns, imputer.statistics_, strict=True):
        if statistic != statistic:  # NaN
            continue  # nothing but missing values: scikit-learn leaves the column out
        X = column.matrix(as_text)
        value = graph.constant(_as_text([statistic]) if as_text else np.array([float(statistic)]))
        filled = graph.add("Where", _missing(graph, X, imputer.missing_values, as_text), value, X)
        parts.append(Result(filled, 1, as_text))
    if imputer.indicator_ is not None:
        for index in imputer.indicator_.features_:
            X = columns[index].matrix(as_text)
            missing = _missing(graph, X, imputer.missing_values, as_text)
            parts.append(Result(graph.cast(missing), 1))
    return Table(graph, parts)


def _missing(graph: Graph, X: str, mark: Any, as_text: bool) -> str:
    """Where values are missing; text that is missing is empty."""
    if as_text:
        return graph.add("Equal", X, graph.constant(_as_text([mark])))
    if isinstance(mark, Real) and not math.isnan(mark):
        return graph.add("Equal", X, graph.constant(np.array([float(mark)])))
    return graph.add("IsNaN", X)


def _is_text(values: Any) -> bool:
    """Whether values are text; a ValueError where they are neither that nor numbers."""
    has_text = any(isinstance(value, str) for value in values)
    has_numbers = any(isinstance(value, Real) and not math.isnan(value) for value in values)
    if (has_text and has_numbers) or values.dtype.kind not in "biufOUS":
        raise ValueError(
            f"attop.to_onnx takes columns of numbers or of text. Got {values.tolist()!r} instead."
        )
    return has_text


def _as_text(values: Any) -> NDArray[np.object_]:
    """Text for a graph, which has no missing values: they are empty."""
    return np.array([value if isinstance(value, str) else "" for value in values], dtype=object)


def _one_hot(graph: Graph, encoder: Any, table: Table) -> Table:
    infrequent = getattr(encoder, "infrequent_categories_", [None] * table.width)
    dropped = [None] * table.width if encoder.drop_idx_ is None else encoder.drop_idx_
    blocks = (
        _indicators(graph, encoder, column, *about)
        for column, *about in zip(
            table.columns(), encoder.categories_, infrequent, dropped, strict=True
        )
    )
    return Table(graph, list(chain.from_iterable(blocks)))


def _indicators(
    graph: Graph, encoder: Any, column: Table, categories: Any, infrequent: Any, dropped: Any
) -> Iterator[Result]:
    """A column for each category, and one for all that are infrequent."""
    as_text = _is_text(categories)
    if as_text and np.count_nonzero(_as_text(categories) == "") > 1:
        raise ValueError("attop.to_onnx cannot tell empty text from missing text.")
    rare = np.isin(_words(categories), _words(infrequent if infrequent is not None else []))
    X = column.matrix(as_text)
    is_left_out = np.zeros(len(categories), dtype=bool)
    if dropped is not None:
        is_left_out[dropped] = True
    kept = categories[~rare & ~is_left_out]
    if len(kept):
        yield Result(graph.cast(_equal(graph, X, kept, as_text)), len(kept))
    if infrequent is not None and not (rare & is_left_out).any():
        yield Result(graph.cast(_is_rare(graph, encoder, X, categories, rare, as_text)), 1)


def _is_rare(
    graph: Graph, encoder: Any, X: str, categories: Any, rare: NDArray[np.bool_], as_text: bool
) -> str:
    """Where the category is infrequent, or not known at all if the encoder takes that for rare."""
    with_unknown = encoder.handle_unknown in ("infrequent_if_exist", "warn")
    among = categories[~rare] if with_unknown else categories[rare]
    if not len(among):  # all are infrequent, and so is whatever else there is
        among = categories[:0]
    counts = graph.add(
        "ReduceSum",
        graph.cast(_equal(graph, X, among, as_text)),
        graph.constant([1]),
        keepdims=1,
    )
    return graph.add("Equal" if with_unknown else "Greater", counts, graph.constant(0.0))


def _equal(graph: Graph, X: str, categories: Any, as_text: bool) -> str:
    """A column for each category, of where it is."""
    if as_text:
        return graph.add("Equal", X, graph.constant(_as_text(categories)))
    numbers = categories.astype(np.float64)
    equal = graph.add("Equal", X, graph.constant(numbers))
    if not np.isnan(numbers).any():
        return equal
    both = graph.add("And", graph.add("IsNaN", X), graph.constant(np.isnan(numbers)))
    return graph.add("Or", equal, both)


def _words(values: Any) -> list[str]:
    """Categories in a form that compares, whatever they are."""
    return [repr(value) for value in np.asarray(values, dtype=object).tolist()]


def _function(graph: Graph, transformer: Any, table: Table) -> Table:
    if transformer.func is not None:
        raise ValueError(
            "The 'func' parameter of FunctionTransformer must be None to be exported by "
            f"attop.to_onnx. Got {transformer.func!r} instead."
        )
    return table


def _pipeline(graph: Graph, pipeline: Any, table: Table) -> Table:
    for _, step in pipeline.steps:
        table = transform(graph, step, table)
    return table


def _column_transformer(graph: Graph, transformer: Any, table: Table) -> Table:
    names = list(getattr(transformer, "feature_names_in_", []))
    parts: list[Any] = []
    for name, step, columns in transformer.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        indices = _indices(columns, names, table.width)
        if indices:
            made = transform(graph, step, table.take(indices))
            parts.extend(_weighted(graph, transformer, name, made).parts)
    return Table(graph, parts)


def _weighted(graph: Graph, transformer: Any, name: str, table: Table) -> Table:
    weight = (transformer.transformer_weights or {}).get(name, 1.0)
    if weight == 1.0:
        return table
    scaled = graph.scale("Mul", table.matrix(), weight, table.width)
    return _numbers(graph, scaled, table.width)


def _indices(columns: Any, names: list[str], width: int) -> list[int]:
    """The places of columns that are named, numbered, marked or a slice of them."""
    if isinstance(columns, slice):
        ends = columns.start, columns.stop
        if any(isinstance(end, str) for end in ends):  # where the last one is included
            start, stop = (None if end is None else names.index(end) for end in ends)
            columns = slice(start, None if stop is None else stop + 1, columns.step)
        return [*range(width)[columns]]
    several = [columns] if isinstance(columns, str | int) else list(columns)
    if several and isinstance(several[0], bool | np.bool_):
        return [int(index) for index in np.flatnonzero(several)]
    places = [names.index(one) if isinstance(one, str) else int(one) for one in several]
    return [place % width for place in places]


#: The transformers by package and name.
_WRITERS: dict[str, Callable[[Graph, Any, Table], Table]] = {
    "sklearn.ColumnTransformer": _column_transformer,
    "sklearn.FunctionTransformer": _function,
    "sklearn.MaxAbsScaler": _scaler,
    "sklearn.MinMaxScaler": _min_max,
    "sklearn.Nystroem": _nystroem,
    "sklearn.OneHotEncoder": _one_hot,
    "sklearn.PCA": _pca,
    "sklearn.Pipeline": _pipeline,
    "sklearn.RBFSampler": _rbf_sampler,
    "sklearn.RobustScaler": _scaler,
    "sklearn.SimpleImputer": _imputer,
    "sklearn.StandardScaler": _scaler,
}
