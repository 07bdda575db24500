"""The types that are loaded from a file, and who asks for others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

#: Parts of other packages that skops does not trust by itself, as it does estimators.
OTHERS = (
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
    *(
        f"sklearn.model_selection._split.{name}"
        for name in (
            "GroupKFold",
            "KFold",
            "RepeatedStratifiedKFold",
            "ShuffleSplit",
            "StratifiedGroupKFold",
            "StratifiedKFold",
            "StratifiedShuffleSplit",
        )
    ),
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.metrics._ranking.average_precision_score",
    "sklearn.metrics._ranking.roc_auc_score",
)


def trusted_names(further: Iterable[type] = ()) -> list[str]:
    """Names of all that is loaded, besides what skops trusts by itself."""
    return [*(name_of(one) for one in (*own(), *further)), *OTHERS]


def own() -> list[Any]:
    """Classes and functions of ours that models are made of.

    A kernel that is a function of a user's is not among them: it could do anything.
    """
    import attop
    from attop.kernels import KERNELS
    from attop.kernels.features import KernelNystroem
    from attop.kernels.learnt import Learnt
    from attop.metrics._scorers import METRICS, _TopScorer
    from attop.solvers.solution import History, Status
    from attop.surrogates import SURROGATES

    public = [
        getattr(module, name)
        for module in (attop, attop.calibration, attop.forest, attop.model_selection)
        for name in module.__all__
    ]
    return [
        *(one for one in public if isinstance(one, type) and issubclass(one, BaseEstimator)),
        *KERNELS.values(),
        *map(type, SURROGATES.values()),
        *(metric.function for metric in METRICS.values()),
        *(KernelNystroem, Learnt, _TopScorer, History, Status),
    ]


def name_of(value: Any) -> str:
    """Full name of a class or function, or of the class of any other object."""
    named = value if hasattr(value, "__qualname__") or isinstance(value, np.ufunc) else type(value)
    return f"{named.__module__}.{getattr(named, '__qualname__', named.__name__)}"


def refuse_functions(model: Any, trusted: Iterable[str]) -> None:
    """Raise a ValueError that names the first parameter that is a function of a user's."""
    for name, value in model.get_params(deep=True).items():
        harmless = isinstance(value, type | np.ufunc) or hasattr(value, "get_params")
        if callable(value) and not harmless and name_of(value) not in trusted:
            raise ValueError(_what_to_do(model, name, value))


def refuse_requests(model: Any) -> None:
    """Raise a ValueError for requests of metadata: they refer to their estimator, without end."""
    for part in (model, *model.get_params(deep=True).values()):
        if hasattr(part, "_metadata_request"):
            raise ValueError(
                f"{type(part).__name__} cannot be saved with requests of metadata. Fit it without "
                "set_fit_request, and pass weights by the name of the step."
            )


def refuse_types(model: Any, untrusted: Iterable[str]) -> None:
    """Raise a ValueError for types that would not be loaded, with the parameter that has them."""
    untrusted = sorted(untrusted)
    if not untrusted:
        return
    for name, value in model.get_params(deep=True).items():
        if name_of(value) in untrusted:
            raise ValueError(_what_to_do(model, name, value))
    raise ValueError(
        f"{type(model).__name__} cannot be saved, as it has parts that attop.load does not know: "
        f"{', '.join(untrusted)}. Where they are classes of yours, pass them as 'trusted' to both."
    )


def _what_to_do(model: Any, name: str, value: Any) -> str:
    start = f"The {name!r} parameter of {type(model).__name__} must be"
    if callable(value) and hasattr(value, "__qualname__"):
        return (
            f"{start} no function to be saved, as files are not to run code. Got {value!r} "
            "instead. A kernel of yours can be a subclass of attop.kernels.Kernel, passed as "
            "'trusted' to attop.save and attop.load."
        )
    return (
        f"{start} of a known class to be saved. Got {value!r} instead. Pass the class "
        f"{type(value).__name__} as 'trusted' to attop.save and attop.load."
    )
