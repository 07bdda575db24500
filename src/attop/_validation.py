"""Checks of parameters, labels and shapes, with messages in scikit-learn's template."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, validate_data

from attop._words import suggestion
from attop.approximation import APPROXIMATIONS
from attop.kernels.blocks import slices
from attop.kernels.device.arrays import NAMES
from attop.kernels.functions import KERNELS, Kernel, KernelLearner, kernel_class
from attop.solvers import SOLVERS, get_solver, options_of
from attop.surrogates import SURROGATES, Surrogate

#: Larger features have squares, or sums of squares, that float64 does not hold.
_LARGEST = 1e140
#: So many samples are converted to float64 at once.
_ROWS_AT_ONCE = 4096
#: A variance that is a larger share of the squared mean is not made by the rounding of that.
_ROUNDED = 1e-12
#: What scikit-learn calls labels that are not there.
_NO_LABELS = "no_validation"


class _Rule(NamedTuple):
    """What a parameter must be: a test of its value, and the same in words."""

    holds: Callable[[Any], bool]
    words: str


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _is_positive(value: Any) -> bool:
    return _is_real(value) and 0.0 < value < math.inf


def _is_weight(value: Any) -> bool:
    return _is_real(value) and value > 0.0


def _is_kernel(value: Any) -> bool:
    if isinstance(value, type):  # such as Gaussian in the place of Gaussian()
        return not issubclass(value, Kernel)
    known = isinstance(value, str) and value in KERNELS
    return known or callable(value) or isinstance(value, KernelLearner)


def _one_of(names: tuple[str, ...], other: str = "") -> str:
    return "one of " + ", ".join(repr(name) for name in names) + other


_SOLVER_NAMES = ("auto", *SOLVERS)

_RULES = {
    "K": _Rule(lambda v: _is_integer(v) and v >= 1, "an integer of at least 1"),
    "tau": _Rule(lambda v: _is_real(v) and 0.0 < v < 1.0, "in (0, 1)"),
    "cv": _Rule(lambda v: _is_integer(v) and v >= 2, "an integer of at least 2"),
    "min_samples_leaf": _Rule(
        lambda v: all(_is_integer(size) and size >= 1 for size in v), "integers of at least 1"
    ),
    "max_samples": _Rule(lambda v: _is_integer(v) and v >= 2, "an integer of at least 2"),
    "trees_to_choose": _Rule(lambda v: _is_integer(v) and v >= 1, "an integer of at least 1"),
    "Cs": _Rule(lambda v: len(v) > 0 and all(_is_weight(C) for C in v), "numbers in (0, inf]"),
    "theta": _Rule(_is_positive, "in (0, inf)"),
    "C": _Rule(_is_weight, "in (0, inf]"),
    "surrogate": _Rule(
        lambda v: isinstance(v, Surrogate) or (isinstance(v, str) and v in SURROGATES),
        _one_of(tuple(SURROGATES), " or a Surrogate"),
    ),
    "kernel": _Rule(
        _is_kernel, _one_of(tuple(KERNELS), ", a callable, a Kernel or a ForestKernel")
    ),
    "gamma": _Rule(
        lambda v: v in ("scale", "auto") if isinstance(v, str) else _is_positive(v),
        "'scale', 'auto' or in (0, inf)",
    ),
    "degree": _Rule(lambda v: _is_real(v) and 0.0 <= v < math.inf, "in [0, inf)"),
    "coef0": _Rule(lambda v: _is_real(v) and math.isfinite(v), "a finite number"),
    "approximation": _Rule(
        lambda v: v is None or (isinstance(v, str) and v in APPROXIMATIONS),
        _one_of(APPROXIMATIONS, " or None"),
    ),
    "n_components": _Rule(lambda v: _is_integer(v) and v >= 1, "an integer of at least 1"),
    "solver": _Rule(
        lambda v: isinstance(v, str) and (v == "auto" or v in SOLVERS), _one_of(_SOLVER_NAMES)
    ),
    "solver_options": _Rule(lambda v: v is None or isinstance(v, dict), "None or a dict"),
    "tol": _Rule(_is_positive, "in (0, inf)"),
    "max_iter": _Rule(
        lambda v: _is_integer(v) and (v == -1 or v >= 1),
        "an integer of at least 1, or -1 for no limit",
    ),
    "max_time": _Rule(
        lambda v: v is None or _is_positive(v), "None or a number of seconds in (0, inf)"
    ),
    "cache_size": _Rule(_is_positive, "a number of megabytes in (0, inf)"),
    "device": _Rule(
        lambda v: v is None or (isinstance(v, str) and NAMES.fullmatch(v) is not None),
        "None, 'cpu', 'cuda' or 'cuda:' with the number of a GPU",
    ),
    "class_weight": _Rule(
        lambda v: v is None or isinstance(v, Mapping) or (isinstance(v, str) and v == "balanced"),
        "a dict of labels and weights, 'balanced' or None",
    ),
}


@lru_cache
def _parameters(kind: Any) -> tuple[str, ...]:
    """Names of the parameters of a class: scikit-learn inspects its signature every time."""
    return tuple(inspect.signature(kind).parameters)


def check_ranges(estimator: Any) -> None:
    """Raise a ValueError that names the first parameter of `estimator` out of its range."""
    kind: Any = type(estimator)
    for name in _parameters(kind):
        rule = _RULES.get(name)
        if rule is not None and not rule.holds(getattr(estimator, name)):
            raise _wrong(estimator, name, rule.words)


def check_parameters(estimator: Any) -> None:
    """The same, and that the parameters go together."""
    check_ranges(estimator)
    if estimator.approximation is not None:
        _check_approximation(estimator)
    if estimator.solver == "primal" or not estimator.formulation.convex:
        _check_primal(estimator)
    if estimator.solver_options:
        _check_options(estimator)


def _check_approximation(estimator: Any) -> None:
    """Raise a ValueError where there is no such approximation of the kernel."""
    possible = kernel_class(estimator.kernel).approximations
    if not possible:
        names = tuple(name for name, kernel in KERNELS.items() if kernel.approximations)
        words = f"{_one_of(names)} with approximation={estimator.approximation!r}"
        raise _wrong(estimator, "kernel", words)
    if estimator.approximation not in possible:
        names = tuple(repr(name) for name in possible)
        words = f"{', '.join(names)} or None with kernel={estimator.kernel!r}"
        raise _wrong(estimator, "approximation", words)


def _check_primal(estimator: Any) -> None:
    """Raise a ValueError where there is no explicit ``w`` to work on."""
    if estimator.solver not in ("auto", "primal"):
        raise _wrong(estimator, "solver", "'auto' or 'primal', as there is no dual problem")
    if not kernel_class(estimator.kernel).explicit and estimator.approximation is None:
        why = "with solver='primal'" if estimator.formulation.convex else "as there is no dual"
        words = f"'linear' {why}; for another kernel set approximation='nystroem'"
        raise _wrong(estimator, "kernel", words)
    if math.isinf(estimator.C):
        instead = "; solver='exact' takes C=inf" if estimator.formulation.convex else ""
        raise _wrong(estimator, "C", f"finite for the primal solver{instead}")


def _check_options(estimator: Any) -> None:
    """Raise a ValueError that names the first option that the solver does not have."""
    known = options_of(get_solver(estimator.solver, estimator.formulation.convex))
    unknown = next((name for name in estimator.solver_options if name not in known), None)
    if unknown is None:
        return
    solver, owner = f"solver={estimator.solver!r}", type(estimator).__name__
    words = f"among {', '.join(map(repr, known))}" if known else "absent: it has none"
    if unknown in estimator.get_params(deep=False):
        hint = f"{unknown!r} is a parameter of {owner} itself."
    else:
        hint = suggestion(unknown, known) if known else ""
    message = (
        f"The names in the 'solver_options' parameter of {owner} must, for {solver}, be {words}. "
        f"Got {unknown!r} instead. {hint}"
    )
    raise ValueError(message.rstrip())


def _wrong(estimator: Any, name: str, words: str) -> ValueError:
    """The error that says what the parameter called `name` must be."""
    return ValueError(
        f"The {name!r} parameter of {type(estimator).__name__} must be {words}. "
        f"Got {getattr(estimator, name)!r} instead."
    )


def _is_ready(X: Any) -> bool:
    """Whether `X` is dense samples just as scikit-learn's checks would return them.

    With 100 samples these take 0.1 ms, a quarter of what an SVC takes for all.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in (np.float64, np.float32):
        return False
    if not (X.flags.c_contiguous and X.dtype.isnative and X.size > 0):
        return False
    with np.errstate(all="ignore"):  # an overflow is for scikit-learn to look at
        return math.isfinite(X.sum())


def _are_ready(y: Any, count: int) -> bool:
    """Whether `y` is labels that need no conversion, as many as there are samples."""
    return type(y) is np.ndarray and y.shape == (count,) and y.dtype.kind in "biu"


def _known_features(estimator: Any) -> int:
    """How many features samples must have where these have no names; -1 otherwise."""
    named = hasattr(estimator, "feature_names_in_")
    return -1 if named else getattr(estimator, "n_features_in_", -1)


def check_samples(estimator: Any, X: Any, y: Any = _NO_LABELS, reset: bool = True) -> Any:
    """X, or X and y, in the form that the kernel of `estimator` takes.

    With `reset`, the number and the names of the features are written onto `estimator`;
    otherwise they are compared with those there.
    """
    if _is_ready(X) and (y is _NO_LABELS or _are_ready(y, len(X))):
        if not reset and _known_features(estimator) == X.shape[1]:
            return X
        if reset and y is not _NO_LABELS:
            estimator.__dict__.pop("feature_names_in_", None)
            estimator.n_features_in_ = X.shape[1]
            return X, y
    refuse_dask(estimator, X, fitting=reset)
    refuse_dask(estimator, y, fitting=reset)
    return validate_data(
        estimator,
        X,
        y,
        reset=reset,
        accept_sparse="csr" if kernel_class(estimator.kernel).takes_sparse else False,
        dtype=[np.float64, np.float32],
        order="C",
    )


def refuse_dask(estimator: Any, values: Any, *, fitting: bool) -> None:
    """Raise a TypeError for what would be gathered in memory without a word."""
    kind = type(values)
    if not kind.__module__.startswith(("dask.", "dask_expr.")):
        return
    name = type(estimator).__name__
    what = f"Got {_article(kind.__name__)} of Dask, which {name} would gather in the memory."
    if not fitting:
        raise TypeError(f"{what} Apply the model to its blocks, or use its compute().")
    convex = getattr(getattr(estimator, "formulation", None), "convex", False)
    other = f"attop.dask.Dask{name}, or its compute()" if convex else "its compute()"
    raise TypeError(f"{what} Use {other}.")


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOU' else 'a'} {noun}"


def check_weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """The weights in float64; None where all are 1."""
    if sample_weight is None:
        return None
    weights: NDArray[np.float64] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return None if np.all(weights == 1.0) else weights


def check_two_classes(
    y: NDArray[Any], sample_weight: NDArray[np.float64] | None = None
) -> NDArray[Any]:
    """The two values of `y` in order; a ValueError where there are fewer or more.

    Samples of weight 0 do not count.
    """
    classes = np.unique(y if sample_weight is None else y[sample_weight > 0.0])
    if len(classes) != 2 or y.dtype.kind not in "biu":  # two integers are classes for sure
        check_classification_targets(y)
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. "
            f"The type of the target is {type_of_target(y)}."
        )
    if len(classes) < 2:
        raise ValueError(
            "The number of classes has to be greater than one; got 1 class "
            f"({classes[0]!r}): there must be both positive and negative samples."
        )
    return classes


def check_pos_label(estimator: Any, classes: NDArray[Any]) -> Any:
    """The positive class: `pos_label`, or the second of the classes."""
    if estimator.pos_label is None:
        return classes[1]
    chosen = np.flatnonzero(classes == estimator.pos_label)
    if len(chosen) != 1:
        error = _wrong(estimator, "pos_label", _one_of(tuple(classes.tolist())))
        if classes.tolist() == [0, 1]:
            error.add_note(
                "Ensembles of scikit-learn, and cross_val_predict of decision values, number the "
                "labels before they fit: there 0 is the smaller one and 1 the larger."
            )
        raise error
    return classes[chosen[0]]


def check_square(X: Any) -> None:
    """Raise a ValueError unless `X` can be a precomputed kernel matrix."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            "With kernel='precomputed', X must be the square matrix of kernel values of shape "
            f"(n_samples, n_samples). Got shape {X.shape} instead."
        )


def _variance(X: Any, sample_weight: NDArray[np.float64] | None) -> float:
    """``X.var()`` of all copies in float64, without a copy of `X` in that precision."""
    if sample_weight is not None:
        return _weighted_variance(X, sample_weight)
    n, d = X.shape
    values = X.data if sp.issparse(X) else X
    if values.size == 0:
        return 0.0  # a sparse matrix of zeros
    mean = float(np.sum(values, dtype=np.float64)) / (n * d)
    parts = (values[part].astype(np.float64) for part in slices(len(values), _ROWS_AT_ONCE))
    squares = sum(float(np.sum((part - mean) ** 2)) for part in parts)
    variance = (squares + (n * d - values.size) * mean**2) / (n * d)
    return 0.0 if values.size == n * d and _all_equal(values, mean, variance) else variance


def _all_equal(values: NDArray[Any], mean: float, variance: float) -> bool:
    """Whether all values are the same, whose variance is 0 but for the rounding of their mean."""
    return variance <= _ROUNDED * mean**2 and bool(np.min(values) == np.max(values))


def _weighted_variance(X: Any, weights: NDArray[np.float64]) -> float:
    """The same with weights of the rows, which may be zero."""
    batches = slices(X.shape[0], _ROWS_AT_ONCE)
    size = X.shape[1] * float(np.sum(weights))

    def total(function: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
        dense = ((X[part].toarray() if sp.issparse(X) else X[part]) for part in batches)
        terms = zip(batches, dense, strict=True)
        return sum(
            float(np.sum(weights[part] @ function(rows.astype(np.float64)))) for part, rows in terms
        )

    mean = total(lambda rows: rows) / size
    variance = total(lambda rows: (rows - mean) ** 2) / size
    if variance <= _ROUNDED * mean**2:  # before copies of samples, which are for rare cases
        counted = X[weights > 0.0]
        counted = counted.toarray() if sp.issparse(counted) else counted
        return 0.0 if _all_equal(counted, mean, variance) else variance
    return variance


def check_magnitude(X: Any) -> None:
    """Raise a ValueError where squares of the features, or their sums, exceed float64."""
    values = X.data if sp.issparse(X) else X
    if values.size == 0:
        return
    largest = max(float(np.max(values)), -float(np.min(values)))
    if largest > _LARGEST:
        raise ValueError(
            f"X contains values as large as {largest:.1e}, whose squares exceed the range of "
            f"float64. Scale the features so that none exceeds {_LARGEST:.0e}."
        )


def gamma_value(
    gamma: str | float, X: Any, sample_weight: NDArray[np.float64] | None = None
) -> float:
    """`gamma` as a number: "scale" is ``1 / (n_features X.var())``, "auto" 1 / n_features."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / X.shape[1]
    variance = _variance(X, sample_weight)
    gamma = 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
    return float(gamma) if np.isfinite(gamma) else 1.0
