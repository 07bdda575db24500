"""A model as an ONNX graph."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import onnx

    from attop.persistence.onnx.graph import Graph
    from attop.persistence.onnx.models import Scored
    from attop.persistence.onnx.table import Table

#: What a file of ONNX holds at most.
_MOST_BYTES = 2**31 - 1
#: What a graph gives; a column of that name comes in by another.
OUTPUTS = ("label", "score")


def to_onnx(
    model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    notes: Mapping[str, Any] | None = None,
) -> onnx.ModelProto:
    """Export a fitted model, with all of its pipeline, as an ONNX graph in double precision.

    The scores are those of `decision_function` up to the rounding of sums.

    Parameters
    ----------
    model : estimator
        A fitted classifier of this library with any kernel that has a name, save "precomputed",
        and any approximation; or a pipeline, search or threshold with one inside.  Pipelines may
        scale, impute, encode one-hot, choose columns and reduce dimensions.
    path : path-like, default=None
        Where to write the graph; an earlier file is replaced, as a whole or not at all.
    notes : mapping, default=None
        Further entries of the model card, which is among the metadata of the graph.

    Returns
    -------
    onnx.ModelProto
        The graph.  Its outputs are ``"label"``, what `predict` gives, and ``"score"``, what
        `decision_function` gives, both of shape (n_samples,).  Its input is ``"X"``, of shape
        (n_samples, n_features); or, where a `ColumnTransformer` of named columns comes first,
        each column that is used by its name (``"score_in"`` for one called ``"score"``), of shape
        (n_samples, 1).  Numbers are in double precision, columns that are encoded from text are
        text; numbers that are missing are NaN, and text that is missing is empty.

    Raises
    ------
    ValueError
        If a part of the model cannot be exported, which the message names.
    ImportError
        If onnx is not installed.

    See Also
    --------
    save : Save a model for Python.
    model_card : What a model says about itself.

    Notes
    -----
    An encoder with ``handle_unknown="error"`` gives zeros for unknown categories, since a graph
    cannot raise errors.

    Examples
    --------
    >>> import attop
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> graph = attop.to_onnx(attop.TopPush().fit(X, y))  # doctest: +SKIP
    >>> import onnxruntime  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())  # doctest: +SKIP
    >>> label, score = session.run(["label", "score"], {"X": X})  # doctest: +SKIP
    """
    try:
        from onnx import checker, helper
    except ImportError as error:
        raise ImportError(
            'attop.to_onnx needs onnx: install it with pip install "attop[onnx]".'
        ) from error
    from sklearn.utils.validation import check_is_fitted

    from attop.persistence.card import CARD_KEY, make_card
    from attop.persistence.onnx.graph import IR_VERSION, OPSET, Graph

    check_is_fitted(model)
    card = make_card(model, notes)
    exported = helper.make_model(
        _with_outputs(Graph(), model),
        producer_name="attop",
        producer_version=card["versions"]["attop"],
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        doc_string=f"{card['classifier']}: {card['description']}",
    )
    helper.set_model_props(exported, {CARD_KEY: json.dumps(card, allow_nan=False)})
    if exported.ByteSize() > _MOST_BYTES:
        raise ValueError(
            f"{type(model).__name__} has {exported.ByteSize() / 2**30:.1f} GiB, and an ONNX file "
            "holds 2. Fit it with approximation='nystroem'."
        )
    checker.check_model(exported)
    if path is not None:
        from attop.persistence.files import write_whole

        write_whole(Path(path), exported.SerializeToString())
    return exported


def _with_outputs(graph: Graph, model: Any) -> onnx.GraphProto:
    """The graph of a model with its outputs."""
    from onnx import TensorProto, helper

    from attop.persistence.onnx.models import score

    scored = score(graph, model, _inputs(graph, model))
    labels, kind = _labels(graph, scored)
    is_last = bool(scored.classifier.pos_label_ == scored.classifier.classes_[1])
    scores = scored.name if is_last else graph.add("Neg", scored.name)
    for public, name in zip(OUTPUTS, (labels, scores), strict=True):
        graph.nodes.append(helper.make_node("Identity", [name], [public]))
    outputs = [
        helper.make_tensor_value_info("label", kind, ("n_samples",)),
        helper.make_tensor_value_info("score", TensorProto.DOUBLE, ("n_samples",)),
    ]
    finished: onnx.GraphProto = graph.finish("attop", outputs)
    return finished


def _inputs(graph: Graph, model: Any) -> Table:
    """One input for all columns, or one for each where a step chooses them by name."""
    from attop.persistence.onnx.table import Source, Table

    names = getattr(model, "feature_names_in_", None)
    if names is None or not _chooses_columns(model):
        return Table(graph, [Source(graph, "X", _n_features(model))])
    free = [f"{name}_in" if name in OUTPUTS else str(name) for name in names]
    return Table(graph, [Source(graph, name, 1) for name in free])


def _n_features(model: Any) -> int:
    """Number of columns; a pipeline whose first step does nothing does not know it."""
    if hasattr(model, "n_features_in_"):
        return int(model.n_features_in_)
    inside = [getattr(model, "best_estimator_", None), getattr(model, "estimator_", None)]
    steps = [step for _, step in getattr(model, "steps", [])]
    return next(_n_features(one) for one in inside + steps if not isinstance(one, str | None))


def _chooses_columns(model: Any) -> bool:
    """Whether the first thing that happens to samples is a `ColumnTransformer`."""
    from sklearn.compose import ColumnTransformer

    if isinstance(model, ColumnTransformer):
        return True
    if getattr(model, "steps", None):
        return _chooses_columns(model.steps[0][1])
    inner = getattr(model, "best_estimator_", getattr(model, "estimator_", None))
    return inner is not None and _chooses_columns(inner)


def _labels(graph: Graph, scored: Scored) -> tuple[str, int]:
    """The labels of `predict`, and their type."""
    from onnx import TensorProto, helper

    classes = _exportable(scored.classifier.classes_)
    op = "Greater" if scored.strict else "GreaterOrEqual"
    positive = graph.add(op, scored.name, graph.constant(0.0))
    is_last = bool(scored.classifier.pos_label_ == scored.classifier.classes_[1])
    last = positive if is_last else graph.add("Not", positive)
    places = graph.add("Cast", last, to=TensorProto.INT64)
    labels = graph.add("Gather", graph.constant(classes), places, axis=0)
    return labels, helper.np_dtype_to_tensor_dtype(classes.dtype)


def _exportable(classes: NDArray[Any]) -> NDArray[Any]:
    """Labels as a graph can hold them: text, booleans, or numbers in 64 bits."""
    if all(isinstance(label, str) for label in classes):
        return classes.astype(object)
    wide = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64}
    if classes.dtype.kind not in wide:
        raise ValueError(f"Labels must be numbers or text to be exported. Got {classes!r} instead.")
    return classes.astype(wide[classes.dtype.kind])
