"""Writes the nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

#: The newest operators asked for, and the format of the file that goes with them: those of
#: onnx 1.15 (2023), the first with comparisons of text.
OPSET, IR_VERSION = 19, 9


class Graph:
    """A graph in the making: each method adds what it takes and returns the name of the result.

    Parameters
    ----------
    outer : Graph, default=None
        The graph that this one is a branch or a body of, whose results it sees.
    """

    def __init__(self, outer: Graph | None = None) -> None:
        self.outer = outer
        self.inputs: dict[str, onnx.ValueInfoProto] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._n_names = 0

    def name(self, word: str) -> str:
        """A name that nothing has yet, here or outside."""
        if self.outer is not None:
            return self.outer.name(word)
        self._n_names += 1
        return f"attop.{word}_{self._n_names}"

    def input(self, name: str, shape: Sequence[int | str | None], is_text: bool = False) -> str:
        """An input of numbers in double precision, or of text."""
        from onnx import TensorProto, helper

        kind = TensorProto.STRING if is_text else TensorProto.DOUBLE
        self.inputs[name] = helper.make_tensor_value_info(name, kind, shape)
        return name

    def constant(self, value: Any) -> str:
        """An array that is part of the graph."""
        from onnx import numpy_helper

        name = self.name("constant")
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """The result of an operator."""
        from onnx import helper

        name = self.name(op.lower())
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def scale(self, op: str, values: str, factors: Any, width: int) -> str:
        """Columns multiplied ("Mul") or divided ("Div") by a number, or by one for each of them.

        Never by a constant that is a single number: onnxruntime fuses it into products of matrices
        before or after, where it keeps it in single precision.
        """
        row = np.broadcast_to(np.asarray(factors, dtype=np.float64), (1, width))
        by = self.constant(row)
        if width == 1:
            by = self.add("Expand", by, self.add("Shape", values))
        return self.add(op, values, by)

    def cast(self, values: str) -> str:
        """Numbers or booleans as double precision."""
        from onnx import TensorProto

        return self.add("Cast", values, to=TensorProto.DOUBLE)

    def either(self, condition: str, one: Graph, other: Graph) -> str:
        """The result of one branch or the other, each of which has a single output."""
        return self.add("If", condition, then_branch=one.finish(), else_branch=other.finish())

    def finish(self, name: str = "branch", outputs: Sequence[Any] | None = None) -> Any:
        """The graph; the output of a branch is its last result, in double precision."""
        from onnx import TensorProto, helper

        if outputs is None:
            last = self.nodes[-1].output[0]
            outputs = [helper.make_tensor_value_info(last, TensorProto.DOUBLE, None)]
        return helper.make_graph(
            self.nodes, name, list(self.inputs.values()), list(outputs), self.constants
        )
