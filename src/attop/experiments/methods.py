"""The methods an experiment can name, as scikit-learn classifiers."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import attop
from attop._words import suggestion
from attop.base import AtTopClassifier
from attop.datasets.registry import simplify
from attop.model_selection._parameters import LAMBDA, SHARING_SOLVERS, with_parameters

#: The baseline.  scikit-learn's is there, too, as ``"sklearn.svm:SVC"``.
SVM = "SVM"
#: Every estimator of this library, by its name.
CLASSIFIERS: dict[str, type[AtTopClassifier]] = {
    name: getattr(attop, name)
    for name in attop.__all__
    if isinstance(getattr(attop, name), type) and name != "AtTopClassifier"
}
METHODS = tuple(CLASSIFIERS)
#: Rankers of other papers, to be compared with.
RIVALS = ("AccuracyAtTop", "InfinitePush", "PNormPush", "RankBoost")
_RIVALS_BY_NAME = {simplify(name): f"attop.rivals:{name}" for name in RIVALS}
_SHORT_NAMES = {simplify(name): name for name in METHODS} | {"svc": SVM}


def resolve_method(name: str) -> str:
    """The name of a method as it is listed; upper case and dashes do not matter.

    ``"module:Class"`` is any other classifier that can be imported.

    Raises
    ------
    ValueError
        If there is none of that name; it suggests the nearest one.
    """
    if ":" in name:
        _import(name)
        return name
    known = _SHORT_NAMES.get(simplify(name)) or _RIVALS_BY_NAME.get(simplify(name))
    if known is None:
        names = (*METHODS, *RIVALS)
        raise ValueError(f"there is no method {name!r}. {suggestion(name, names)}")
    return known


def parameters_of(method: str) -> tuple[str, ...] | None:
    """Parameters that an experiment may set; None where any will do."""
    if ":" in method:
        return None
    return ("C", LAMBDA, "surrogate", *CLASSIFIERS[method].formulation.parameters)


def label_of(method: str, parameters: Mapping[str, Any]) -> str:
    """Name for tables: the method with its K or tau."""
    shown = [f"{parameters[name]:g}" for name in ("K", "tau") if name in parameters]
    return method.rpartition(":")[2] + (f"({', '.join(shown)})" if shown else "")


def own_metric(method: str, parameters: Mapping[str, Any]) -> str:
    """The metric that the method is made for: it chooses the method's grid point."""
    if method not in CLASSIFIERS or method == SVM:
        return "roc_auc"
    names = CLASSIFIERS[method].formulation.parameters
    defaults = {name: getattr(CLASSIFIERS[method](), name) for name in names}
    values = {**defaults, **parameters}
    if "tau" in names:
        return f"tpr_at_fpr_{values['tau']:g}"
    return f"tpr_at_k_{values.get('K', 1)}"


def shares_columns(method: str, solver: Mapping[str, Any]) -> bool:
    """Whether the fits of the method can share kernel columns and starts."""
    convex = method in CLASSIFIERS and CLASSIFIERS[method].formulation.convex
    return convex and (method == SVM or solver.get("name", "auto") in SHARING_SOLVERS)


def build(
    method: str,
    parameters: Mapping[str, Any],
    kernel: Mapping[str, Any],
    solver: Mapping[str, Any],
    *,
    seed: int = 0,
    n_positives: float = 1,
    n_samples: float = 1,
) -> Any:
    """The classifier of a method at given parameters, not fitted.

    ``lambda`` becomes ``C = 1 / (lambda n_positives)``, for the SVM
    ``C = 1 / (lambda n_samples)``; both count copies where samples have weights.
    """
    if ":" in method:
        return _import(method)(**parameters)
    kernel = {"kernel" if name == "name" else name: value for name, value in kernel.items()}
    options = {"solver" if name == "name" else name: value for name, value in solver.items()}
    if method == SVM and options.get("solver", "auto") not in SHARING_SOLVERS:
        # The baseline is to be at its optimum, whichever solver is on trial.
        kept = ("tol", "cache_size", "device")
        options = {name: options[name] for name in kept if name in options}
    if "options" in options:
        options["solver_options"] = options.pop("options")
    if not CLASSIFIERS[method].formulation.convex:  # they have one solver, of their own
        options = {"tol": options["tol"]} if "tol" in options else {}
    estimator = CLASSIFIERS[method](**kernel, **options, random_state=seed)
    n = n_samples if estimator.formulation.all_have_losses else n_positives
    return with_parameters(estimator, parameters, n)


def _import(path: str) -> Any:
    """The class that ``"module:Class"`` names."""
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{path!r} cannot be imported: {error}.") from error
