"""Scores of classifiers, with what is around them, node by node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from attop.base import AtTopClassifier
from attop.persistence.onnx.graph import Graph
from attop.persistence.onnx.kernels import kernel_values
from attop.persistence.onnx.table import Table
from attop.persistence.onnx.transformers import transform


@dataclass(frozen=True)
class Scored:
    """The scores of a classifier.

    Attributes
    ----------
    name : str
        ``top_score``, of shape (n_samples,).
    classifier : classifier
        Who has `classes_` and `pos_label_`.
    strict : bool
        Whether a score must be above zero, and not only reach it, to be called positive.
    """

    name: str
    classifier: Any
    strict: bool = False


def score(graph: Graph, model: Any, table: Table) -> Scored:
    """The scores of a fitted model; a ValueError where they cannot be exported."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            table = transform(graph, step, table)
        return score(graph, model.steps[-1][1], table)
    if isinstance(model, AtTopClassifier):
        return Scored(_top_score(graph, model, table), model)
    if hasattr(model, "best_estimator_"):
        return score(graph, model.best_estimator_, table)
    if type(model).__module__.startswith("attop.calibration"):
        return _with_threshold(graph, model, table)
    raise ValueError(
        f"attop.to_onnx cannot export {type(model).__name__}: it takes the classifiers of attop, "
        "by themselves or in pipelines, searches and thresholds of attop.calibration."
    )


def _top_score(graph: Graph, model: AtTopClassifier, table: Table) -> str:
    """``<w, phi(x)> - threshold_``."""
    if hasattr(model, "feature_map_"):
        X = transform(graph, model.feature_map_, table).matrix()
        weights = model.coef_[0]
    elif model._fitted_kernel.explicit:
        X, weights = table.matrix(), model.coef_[0]
    elif model._fitted_kernel.precomputed:
        raise ValueError(
            f"The 'kernel' parameter of {type(model).__name__} must not be 'precomputed' to be "
            "exported: the graph would have to know the kernel."
        )
    elif len(model.support_) == 0:  # of whose products onnxruntime makes anything
        n_samples = graph.add("Shape", table.matrix(), start=0, end=1)
        return graph.add("Expand", graph.constant(-float(model.threshold_)), n_samples)
    else:
        owner = type(model).__name__
        X = kernel_values(
            graph, model._fitted_kernel, table.matrix(), model.support_vectors_, owner
        )
        weights = model.dual_coef_[0]
    column = graph.add("MatMul", X, graph.constant(weights.astype(np.float64)[:, np.newaxis]))
    scores = graph.add("Squeeze", column, graph.constant([1]))
    return graph.add("Sub", scores, graph.constant(float(model.threshold_)))


def _with_threshold(graph: Graph, model: Any, table: Table) -> Scored:
    """Scores of the estimator inside less the threshold, high for the positive class outside."""
    inner = score(graph, model.estimator_, table)
    scores = inner.name
    if inner.classifier.pos_label_ != model.pos_label_:
        scores = graph.add("Neg", scores)
    less = graph.add("Sub", scores, graph.constant(float(model.threshold_)))
    return Scored(less, model, strict=True)
