"""One estimator at many values of a parameter."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop import pipeline
from attop.base import AtTopClassifier
from attop.model_selection._parameters import check_estimator, check_names, with_parameters
from attop.model_selection._shared import SharedFits
from attop.model_selection._starts import walking_order


@dataclass(frozen=True)
class Path:
    """Fitted estimators along the values of a parameter, and what they cost.

    Attributes
    ----------
    param : str
        The parameter that varies.
    values : list
        Its values, in the order given.
    estimators : list of AtTopClassifier
        The fitted estimator of each value; each carries its certificate (``dual_gap_``,
        ``status_``) as after `fit`.
    seconds : ndarray of float
        Time of each fit.
    columns : ndarray of int
        Kernel columns that each fit had to compute, over those it found.
    """

    param: str
    values: list[Any]
    estimators: list[AtTopClassifier]
    seconds: NDArray[np.float64]
    columns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.estimators)

    def collect(self, attribute: str) -> NDArray[Any]:
        """An attribute of each estimator as an array.

        Parameters
        ----------
        attribute : str
            Its name, such as ``"objective_"``.

        Returns
        -------
        ndarray of shape (n_values, ...)
            The attribute at each value of the parameter.
        """
        return np.array([getattr(estimator, attribute) for estimator in self.estimators])


def fit_path(
    estimator: AtTopClassifier,
    X: Any,
    y: Any,
    param: str,
    values: Iterable[Any],
    *,
    sample_weight: Any = None,
) -> Path:
    """Fit an estimator at several values of a parameter, sharing work between the fits.

    Kernel columns are computed once, and each fit starts from the solution of the
    nearest value.  The models are those of separate fits, up to the tolerance.

    Parameters
    ----------
    estimator : AtTopClassifier
        The estimator, with the parameters that stay the same; it is not changed.  Its
        solver must be the exact one.
    X : array-like or CSR matrix of shape (n_samples, n_features)
        Training samples, or their kernel matrix.
    y : array-like of shape (n_samples,)
        Labels, of two values.
    param : str
        ``"C"``, ``"lambda"`` (``C = 1 / (lambda n_positives)``, with all samples for `SVM`; 0
        for a hard margin),
        ``"surrogate"``, or a parameter of the formulation: ``"K"``, ``"tau"``,
        ``"theta"``.  Parameters of the kernel cannot vary, since they change its columns.
    values : iterable
        Values of the parameter, in any order: the fits take the one that is cheapest.
    sample_weight : array-like of shape (n_samples,), default=None
        Copies of each sample; None for one of each.

    Returns
    -------
    Path
        Fitted estimators, in the order of `values`.

    Examples
    --------
    >>> from attop import PatMatNP
    >>> from attop.datasets import load_ionosphere
    >>> from attop.model_selection import fit_path
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> path = fit_path(PatMatNP(tau=0.1), X, y, "C", [0.1, 1.0, 10.0])
    >>> bool(path.collect("dual_gap_").max() <= 1e-4)
    True
    """
    check_estimator(estimator, "fit_path")
    check_names([param], estimator, "fit_path")
    values = list(values)
    if not values:
        raise ValueError("The 'values' parameter of fit_path must not be empty.")
    data = pipeline.prepare(estimator, X, y, sample_weight)
    n = data.n_losses(estimator.formulation)
    models = [with_parameters(estimator, {param: value}, n) for value in values]
    problems = [pipeline.problem_of(model, data) for model in models]
    seconds = np.zeros(len(models))
    with SharedFits(data.gram, estimator.tol, estimator.cache_size) as shared:
        for i in walking_order(problems):
            began = time.perf_counter()
            name = f"{type(estimator).__name__} with {param}={values[i]!r}"
            shared.fit(models[i], data, problems[i], name)
            seconds[i] = time.perf_counter() - began
    columns = np.array([model.stats_["columns"] for model in models], dtype=np.int64)
    return Path(param, values, models, seconds, columns)
