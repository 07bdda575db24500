"""The one way from samples to a fitted model: `prepare`, `solve`, `finish`.

* `prepare` checks parameters, samples and labels, and makes a `TrainingSet` of them;
* `problem_of` states the problem of the formulation on its samples;
* `solve` hands that problem to the solver, with the time that is left;
* `finish` makes a model of the solution, writes it onto the estimator, and warns where it is not
  certified.

`fit` is all of them in a row.  Fits that share work, those of paths, searches and experiments,
prepare once and then solve and finish many times.  Only `finish` changes an estimator, and reads
and writes nothing of it but its parameters and fitted attributes.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from attop import _validation as checks
from attop._model import DualModel, dual_model, weight_attributes
from attop._replica import replica
from attop._threads import with_one_blas_thread
from attop._verdict import warn_of_fit
from attop.approximation import make_feature_map, transform
from attop.formulations import Formulation, TopQuantile
from attop.kernels.device.arrays import Device, as_numpy, find_device
from attop.kernels.device.gram import DeviceGram
from attop.kernels.functions import Gram, Kernel, Linear, kernel_class, make_kernel
from attop.problem import Problem
from attop.solvers import get_solver
from attop.solvers.protocol import Settings
from attop.solvers.solution import QuantileSolution, Solution

if TYPE_CHECKING:
    from attop.base import AtTopClassifier

#: Attributes that not every fit has: those of an earlier one must not stay.
_OPTIONAL = ("coef_", "feature_map_", "feature_names_in_", "kernel_")


@dataclass(frozen=True)
class TrainingSet:
    """Samples and labels, checked, and the kernel between them.

    Attributes
    ----------
    X : ndarray or CSR matrix
        The samples as the kernel takes them.
    positive : ndarray of bool
        Which of them are positive.
    seen : dict
        The fitted attributes that samples and labels alone determine: `classes_`, `pos_label_`,
        `n_features_in_` and, where there are any, `feature_names_in_`.
    kernel : Kernel
        The kernel with its parameters as numbers.
    feature_map : Nystroem or RBFSampler, optional
        What makes features of the samples, with an approximation of the kernel.
    sample_weight : ndarray of float64, optional
        Copies of each sample, 0 for one that is left out; None for one of each.
    device : Device, optional
        Where kernel entries are computed, if not on the CPU.
    """

    X: Any
    positive: NDArray[np.bool_]
    seen: dict[str, Any]
    kernel: Kernel
    feature_map: Any = None
    sample_weight: NDArray[np.float64] | None = None
    device: Device | None = None

    def n_losses(self, formulation: Formulation) -> float:
        """Number of samples, copies counted, that ``C = 1 / (lambda n)`` means."""
        weights = np.ones(1) if self.sample_weight is None else self.sample_weight
        counted = np.ones(1, dtype=bool) if formulation.all_have_losses else self.positive
        return float(np.sum(np.broadcast_to(weights, self.positive.shape) * counted))

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of the samples."""
        classes: NDArray[Any] = self.seen["classes_"]
        negative = classes[0] if classes[1] == self.seen["pos_label_"] else classes[1]
        return np.where(self.positive, self.seen["pos_label_"], negative)

    def subset(self, rows: NDArray[np.intp]) -> TrainingSet:
        """Labels and weights of some of the samples; the samples themselves are all there."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(self, positive=self.positive[rows], sample_weight=weights)

    @cached_property
    def gram(self) -> Gram:
        """The kernel matrix of the samples, or of their features.

        Features take their time: they are computed when first asked for, after all that may be
        wrong with the parameters has been found.
        """
        if self.feature_map is None:
            return self.gram_of(self.kernel)
        there = slice(None) if self.sample_weight is None else self.sample_weight > 0.0
        features = transform(self.feature_map.fit(self.X[there]), self.X)
        return DeviceGram.where(Linear(), features, self.device)

    def gram_of(self, kernel: Kernel, rows: NDArray[np.intp] | None = None) -> Gram:
        """The matrix of any kernel of the samples; it learns from some `rows`, or from all."""
        some = slice(None) if rows is None else rows
        kernel, X = kernel.learn(self.X, self.positive, self.sample_weight, some)
        return DeviceGram.where(kernel, X, self.device)

    @property
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes that do not depend on the solution."""
        return self.seen | ({} if self.feature_map is None else {"feature_map_": self.feature_map})


def fit(estimator: AtTopClassifier, X, y, sample_weight=None) -> None:
    """Fit `estimator` in place, within `max_time` from now."""
    began = time.perf_counter()
    data = prepare(estimator, X, y, sample_weight)
    problem = problem_of(estimator, data)
    with nullcontext() if data.device is None else data.device.guarded():
        solution = solve(estimator, problem, data.gram, began=began)
        finish(estimator, data, problem, solution)


def prepare(estimator: AtTopClassifier, X, y, sample_weight=None) -> TrainingSet:
    """Check the parameters of `estimator`, samples, labels and weights, in this order.

    Raises
    ------
    ValueError
        That names what is wrong, before any work is done.
    """
    checks.check_parameters(estimator)
    device = find_device(estimator.device)
    X, y, sample_weight = as_numpy(X), as_numpy(y), as_numpy(sample_weight)
    reader = replica(estimator)  # on which scikit-learn notes the number and names of features
    X, y = checks.check_samples(reader, X, y)
    checks.check_magnitude(X)
    if kernel_class(estimator.kernel).precomputed:
        checks.check_square(X)
    checks.refuse_dask(estimator, sample_weight, fitting=True)
    weights = checks.check_weights(sample_weight, X)
    classes = checks.check_two_classes(y, weights)
    seen = {"classes_": classes, "pos_label_": checks.check_pos_label(estimator, classes)}
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(reader, name):
            seen[name] = getattr(reader, name)
    kernel = kernel_of(estimator, X, weights)
    n_samples = X.shape[0] if weights is None else int(np.count_nonzero(weights))
    feature_map = _feature_map(estimator, kernel, n_samples)
    positive = y == seen["pos_label_"]
    return TrainingSet(X, positive, seen, kernel, feature_map, weights, device)


def kernel_of(
    estimator: AtTopClassifier, X, sample_weight: NDArray[np.float64] | None = None
) -> Kernel:
    """The kernel of `estimator` on samples `X`, its parameters as numbers."""
    kind: Any = kernel_class(estimator.kernel)
    has_gamma = any(field.name == "gamma" for field in fields(kind))
    gamma = checks.gamma_value(estimator.gamma, X, sample_weight) if has_gamma else 1.0
    return make_kernel(estimator.kernel, gamma, float(estimator.degree), float(estimator.coef0))


def _feature_map(estimator: AtTopClassifier, kernel: Kernel, n_samples: int) -> Any:
    """What approximates the kernel, not fitted yet; None for the kernel itself."""
    if estimator.approximation is None:
        return None
    n_components = estimator.n_components
    if estimator.approximation == "nystroem":  # whose features belong to samples
        n_components = min(n_components, n_samples)
    return make_feature_map(estimator.approximation, kernel, n_components, _seed(estimator))


def _seed(estimator: AtTopClassifier) -> Any:
    """What draws at random: the one place that says what None means."""
    return 0 if estimator.random_state is None else estimator.random_state


def problem_of(
    estimator: AtTopClassifier, data: TrainingSet, rows: NDArray[np.intp] | None = None
) -> Any:
    """The problem of the formulation on all samples, or on some of their `rows`.

    Returns
    -------
    Problem
        Or a `QuantileProblem` where the formulation has no dual.
    """
    if rows is not None:
        within = problem_of(estimator, data.subset(rows))
        return within._replace(rows=rows[within.rows])
    formulation, C = estimator.formulation, float(estimator.C)
    parameters = {name: getattr(estimator, name) for name in formulation.parameters}
    parameters["sample_weight"] = _class_weighted(estimator, data)
    positive = data.positive
    if isinstance(formulation, TopQuantile):
        return formulation.quantile_problem(positive, C, estimator.surrogate, **parameters)
    return formulation.problem(positive, C, estimator.surrogate, **parameters)


def _class_weighted(estimator: AtTopClassifier, data: TrainingSet) -> NDArray[np.float64] | None:
    """The weights of the samples times those of their classes, where `estimator` has any."""
    class_weight = getattr(estimator, "class_weight", None)
    if class_weight is None:
        return data.sample_weight
    classes, y = data.seen["classes_"], data.labels
    number = np.searchsorted(classes, y)
    copies = np.ones(len(y)) if data.sample_weight is None else data.sample_weight
    if isinstance(class_weight, str):  # "balanced", of the copies; scikit-learn's counts samples
        by_class = np.sum(copies) / (2.0 * np.bincount(number, weights=copies))
    else:
        by_class = compute_class_weight(class_weight, classes=classes, y=y)
    return copies * by_class[number]


def solve(
    estimator: AtTopClassifier,
    problem: Any,
    gram: Gram,
    *,
    began: float | None = None,
    start: Any = None,
    **shared: Any,
) -> Any:
    """Solve the problem as the parameters of `estimator` say.

    Parameters
    ----------
    estimator : AtTopClassifier
        Whose solver, settings and options are used; with ``warm_start`` its previous solution
        too, where it fits.
    problem : Problem or QuantileProblem
        What to solve.
    gram : Gram
        Its kernel matrix.
    began : float, optional
        The moment, of `time.perf_counter`, from which ``max_time`` counts; now by default.
    start : (alpha, beta) or ndarray, optional
        Where to start otherwise.
    **shared
        What several fits share, as an argument of the solver: the ``columns`` of the exact one.

    Returns
    -------
    Solution
        Or a `QuantileSolution` where there is no dual.
    """
    began = time.perf_counter() if began is None else began
    solver = get_solver(estimator.solver, estimator.formulation.convex)
    previous = _previous(estimator, problem, gram) if estimator.warm_start else None
    settings = Settings(
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        max_time=estimator.max_time,
        cache_bytes=int(estimator.cache_size * 2**20),
        random_state=_seed(estimator),
        verbose=estimator.verbose,
    )
    return solver(
        problem,
        gram,
        start=start if previous is None else previous,
        **vars(settings.since(began)),
        **(estimator.solver_options or {}),
        **shared,
    )


def _previous(estimator: AtTopClassifier, problem: Any, gram: Gram) -> Any:
    """The last solution of `estimator` as a start; None where it has none that fits."""
    if not estimator.formulation.convex:
        weights = getattr(estimator, "coef_", np.empty((1, 0)))[0]
        return weights if len(weights) == gram.X.shape[1] else None
    if not hasattr(estimator, "alpha_"):
        return None
    alpha, beta = estimator.alpha_, estimator.beta_
    sizes = len(problem.positives), len(problem.competitors)
    if (len(alpha), len(beta)) != sizes:
        return None
    return alpha / problem.positive_weights, beta / problem.competitor_weights


def finish(
    estimator: AtTopClassifier,
    data: TrainingSet,
    problem: Any,
    solution: Solution | QuantileSolution,
    *,
    gram: Gram | None = None,
    name: str = "",
) -> None:
    """Write the model of a solution onto `estimator`, and warn where it is not certified.

    Parameters
    ----------
    estimator : AtTopClassifier
        Changed in place: nobody's but the caller's.
    data : TrainingSet
        What was learnt from.
    problem : Problem or QuantileProblem
        What was solved.
    solution : Solution or QuantileSolution
        And how.
    gram : Gram, optional
        Kernel matrix of `data` with a memory of its own.
    name : str, optional
        What warnings call the estimator; by default its class.
    """
    gram = data.gram if gram is None else gram
    if isinstance(solution, Solution):
        described = problem, gram, solution, estimator.tol
        if gram.kernel.explicit:  # sums of a million terms: threads of BLAS wait for longer
            model, attributes = with_one_blas_thread(_model_of, *described)
        else:
            model, attributes = _model_of(*described)
        certificate = model.solution.certificate
        called = name or type(estimator).__name__
        warn_of_fit(called, estimator, problem, certificate, model.status, model.zero)
    else:  # nothing that could be certified
        attributes = weight_attributes(solution, gram)
    for attribute in _OPTIONAL:
        estimator.__dict__.pop(attribute, None)
    estimator.__dict__.update(data.attributes | attributes)


def _model_of(
    problem: Problem, gram: Gram, solution: Solution, tol: float
) -> tuple[DualModel, dict[str, Any]]:
    """The model of a solution, and its fitted attributes."""
    model = dual_model(problem, gram, solution, tol)
    return model, model.attributes(gram, problem)
