"""Kernels, their matrices, and the stores of kernel columns.

* `base`: what a kernel is, with its traits; `functions`, `given`: the kernels there are, by name;
* `learnt`: kernels that are fitted to the samples first, those of a forest;
* `gram`: the kernel matrix of the training samples, in float64 blocks; `gaussian`, `extended`,
  `features`, `forms`, `blocks`: what the kernels are made of;
* `stores`: opens columns for a solver; `columns`, `linear`: keep them, or do without; `sources`,
  `compiled`: compute them; `errors`: how far they may be off.
"""

from typing import Any

from attop.kernels.functions import (
    KERNELS,
    FunctionKernel,
    Gaussian,
    Gram,
    Kernel,
    Laplacian,
    Linear,
    Matching,
    Polynomial,
    Precomputed,
    Sigmoid,
    make_kernel,
)

__all__ = [
    "KERNELS",
    "FunctionKernel",
    "Gaussian",
    "Gram",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matching",
    "Polynomial",
    "Precomputed",
    "Sigmoid",
    "make_kernel",
]


def __getattr__(name: str) -> Any:
    """`open_columns`, imported when it is first asked for: its compiled functions load slowly."""
    if name != "open_columns":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from attop.kernels.stores import open_columns

    return open_columns
