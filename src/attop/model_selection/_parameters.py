"""Which parameters a path or a search may vary, and the estimator at given values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from attop import _validation as checks
from attop.base import AtTopClassifier

#: Parameters of the kernel: another value needs other kernel columns.
KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")
#: Those of them that are numbers, which a search may vary: fits of the same ones share columns.
KERNEL_NUMBERS = KERNEL_PARAMETERS[1:]
#: ``C = 1 / (lambda n_positives)``; the name is a keyword of Python, hence no attribute.
LAMBDA = "lambda"
#: Solvers that can share kernel columns.
SHARING_SOLVERS = ("auto", "exact")


def variable_parameters(estimator: AtTopClassifier) -> tuple[str, ...]:
    """Names of the parameters that may vary while the kernel columns stay."""
    return ("C", LAMBDA, "surrogate", *estimator.formulation.parameters)


def check_estimator(estimator: Any, owner: str) -> None:
    """Raise unless `estimator` is one of this library's that can share kernel columns."""
    if not isinstance(estimator, AtTopClassifier):
        raise TypeError(
            f"The 'estimator' parameter of {owner} must be an AtTopClassifier, such as "
            f"attop.PatMatNP(). Got {estimator!r} instead."
        )
    name = type(estimator).__name__
    if not estimator._in_memory:
        raise TypeError(
            f"{owner} cannot take {name}: its fits share kernel columns in one memory. For samples "
            "of Dask use GridSearchCV, or fit it for each value."
        )
    if not estimator.formulation.convex:
        raise ValueError(
            f"{owner} cannot take {name}: it is not convex and has no dual, whose solutions "
            "and kernel columns the fits share. Use GridSearchCV."
        )
    if estimator.approximation is not None:
        raise ValueError(
            f"The 'approximation' parameter of {name} must be None in {owner}, which shares the "
            f"columns of the kernel itself. Got {estimator.approximation!r} instead."
        )
    if estimator.solver not in SHARING_SOLVERS:
        raise ValueError(
            f"The 'solver' parameter of {name} must be one of 'auto', 'exact' in {owner}, since "
            f"only the exact solver shares kernel columns. Got {estimator.solver!r} instead."
        )
    checks.check_parameters(estimator)


def check_names(
    names: Any, estimator: AtTopClassifier, owner: str, also: tuple[str, ...] = ()
) -> None:
    """Raise unless all `names` may vary together; those of `also` may, too."""
    variable = (*variable_parameters(estimator), *also)
    for name in names:
        if name in KERNEL_PARAMETERS and name not in also:
            raise ValueError(
                f"{owner} cannot vary {name!r}: it changes the kernel, whose columns all fits "
                "share. Call it once for each kernel, or use GridSearchCV."
            )
        if name not in variable:
            allowed = ", ".join(repr(allowed) for allowed in variable)
            raise ValueError(
                f"{owner} can vary {allowed} of {type(estimator).__name__}. Got {name!r} instead."
            )
    if {"C", LAMBDA} <= set(names):
        raise ValueError(f"{owner} can vary 'C' or 'lambda', not both: each determines the other.")


def with_parameters(
    estimator: AtTopClassifier, parameters: Mapping[str, Any], n_losses: float
) -> AtTopClassifier:
    """A clone of `estimator` with these parameters, ``lambda`` turned into ``C``."""
    named = {_plain(name): _plain(value) for name, value in parameters.items()}
    if LAMBDA in named:
        named["C"] = _C_of_lambda(named.pop(LAMBDA), n_losses)
    candidate = clone(estimator).set_params(**named)
    checks.check_parameters(candidate)
    return candidate


def _C_of_lambda(value: Any, n_losses: float) -> float:
    """``1 / (lambda n)``, infinite for 0."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0.0 <= value < math.inf):
        raise ValueError(f"The values of 'lambda' must be in [0, inf). Got {value!r} instead.")
    return 1.0 / (float(value) * n_losses) if value > 0.0 else math.inf


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python's; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
