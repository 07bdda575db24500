"""Kernel values between samples that come in and samples of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from attop.kernels.functions import Gaussian, Kernel, Laplacian, Linear, Polynomial, Sigmoid
from attop.kernels.gaussian import (
    DOUBLE_LIMIT,
    centre,
    distance_rounding,
    far_norm2,
    squared_norms,
)
from attop.persistence.onnx.graph import Graph


def kernel_values(graph: Graph, kernel: Kernel, X: str, Y: Any, owner: str) -> str:
    """``k(x, y)`` for the rows of `X` and of the array `Y`, of shape (n_samples, len(Y))."""
    Y = np.asarray(Y.toarray() if sp.issparse(Y) else Y, dtype=np.float64)
    if isinstance(kernel, Gaussian):
        return gaussian(graph, X, Y, kernel.gamma)
    if isinstance(kernel, Laplacian):
        return _exponentials(graph, distances(graph, X, Y, "Abs"), kernel.gamma, len(Y))
    if isinstance(kernel, Linear):
        return _products(graph, X, Y)
    if isinstance(kernel, Polynomial):
        base = _affine(graph, X, Y, kernel.gamma, kernel.coef0)
        return graph.add("Pow", base, graph.constant(float(kernel.degree)))
    if isinstance(kernel, Sigmoid):
        return graph.add("Tanh", _affine(graph, X, Y, kernel.gamma, kernel.coef0))
    raise ValueError(
        f"The 'kernel' parameter of {owner} must be 'linear', 'rbf', 'poly', 'sigmoid' or "
        f"'laplacian' to be exported. Got {kernel!r} instead."
    )


def gaussian(graph: Graph, X: str, Y: NDArray[np.float64], gamma: float) -> str:
    """``exp(-gamma |x - y|^2)`` as accurate as `attop.kernels.gaussian` has it.

    Distances come from a product of matrices, of samples from their centre; with samples so far
    from it that the product would cancel, from the differences of the features.
    """
    middle = centre(Y)
    centred = graph.add("Sub", X, graph.constant(middle))
    norms = graph.add("ReduceSumSquare", centred, graph.constant([1]), keepdims=1)
    border = far_norm2(gamma, distance_rounding(Y.shape[1], np.float64), DOUBLE_LIMIT)
    far = graph.cast(graph.add("Greater", norms, graph.constant(border)))
    any_far = graph.add("Greater", graph.add("ReduceSum", far, keepdims=0), graph.constant(0.0))
    by_differences, by_products = Graph(graph), Graph(graph)
    distances(by_differences, centred, Y - middle, "Square")
    _distances_by_products(by_products, centred, norms, Y - middle)
    squared = graph.either(any_far, by_differences, by_products)
    return _exponentials(graph, squared, gamma, len(Y))


def _distances_by_products(graph: Graph, X: str, norms: str, Y: NDArray[np.float64]) -> str:
    """``|x|^2 + |y|^2 - 2 <x, y>``, where rounding leaves nothing below zero."""
    sums = graph.add("Add", _products(graph, X, -2.0 * Y), norms)
    sums = graph.add("Add", sums, graph.constant(squared_norms(Y)))
    return graph.add("Max", sums, graph.constant(0.0))


def distances(graph: Graph, X: str, Y: NDArray[np.float64], power: str) -> str:
    """Sums of the powers of the differences, feature by feature in the memory of the result."""
    from onnx import TensorProto, helper

    body = Graph(graph)
    total = body.input(body.name("total"), ("n", len(Y)))
    x, y = body.input(body.name("x"), ("n",)), body.input(body.name("y"), (len(Y),))
    column = body.add("Unsqueeze", x, body.constant([1]))
    difference = body.add("Sub", column, y)
    powers = ("Mul", difference, difference) if power == "Square" else (power, difference)
    new_total = body.add("Add", total, body.add(*powers))
    output = helper.make_tensor_value_info(new_total, TensorProto.DOUBLE, ("n", len(Y)))
    n_rows = graph.add("Shape", X, start=0, end=1)
    shape = graph.add("Concat", n_rows, graph.constant([len(Y)]), axis=0)
    zeros = graph.add("Expand", graph.constant(0.0), shape)
    columns = graph.add("Transpose", X, perm=[1, 0])
    of_model = graph.constant(np.ascontiguousarray(Y.T))
    return graph.add(
        "Scan",
        zeros,
        columns,
        of_model,
        body=body.finish("feature", [output]),
        num_scan_inputs=2,
    )


def _products(graph: Graph, X: str, Y: NDArray[np.float64]) -> str:
    return graph.add("MatMul", X, graph.constant(np.ascontiguousarray(Y.T)))


def _affine(graph: Graph, X: str, Y: NDArray[np.float64], factor: float, constant: float) -> str:
    """``factor <x, y> + constant``."""
    scaled = graph.scale("Mul", _products(graph, X, Y), factor, len(Y))
    return graph.add("Add", scaled, graph.constant(float(constant)))


def _exponentials(graph: Graph, distances: str, gamma: float, width: int) -> str:
    return graph.add("Exp", graph.scale("Mul", distances, -gamma, width))
