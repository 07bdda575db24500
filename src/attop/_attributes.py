"""The attributes of a fitted estimator, for editors and type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from attop.kernels.base import Kernel
    from attop.solvers.solution import History, Status


class FittedAttributes:
    """Their types; the docstring of the estimator has their meaning, `fit` makes them.

    Annotations only, in a class of their own: in a dataclass they would be parameters.
    """

    classes_: NDArray[Any]
    pos_label_: Any
    support_: NDArray[np.intp]
    support_vectors_: Any
    dual_coef_: NDArray[np.float64]
    alpha_: NDArray[np.float64]
    beta_: NDArray[np.float64]
    coef_: NDArray[np.float64]
    feature_map_: Any
    kernel_: Any
    threshold_: float
    objective_: float
    dual_gap_: float
    status_: Status
    n_iter_: int
    history_: History
    stats_: dict[str, float]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _fitted_kernel: Kernel
