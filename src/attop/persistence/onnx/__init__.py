"""Models as ONNX graphs in double precision.

* `export`: `to_onnx`; `graph`: writes nodes; `table`: the columns that come in;
* `models`, `transformers`, `kernels`: what they compute, node by node.

The graphs are written here, op by op, rather than by a converter: what onnxruntime has of ops for
scalers, imputers and support vector machines is in single precision.
"""

from attop.persistence.onnx.export import to_onnx

__all__ = ["to_onnx"]
