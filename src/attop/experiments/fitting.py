"""The fits of one group, and what is kept of each."""

from __future__ import annotations

import importlib.metadata
import platform
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.metrics import roc_curve
from sklearn.utils import gen_batches
from sklearn.utils.validation import has_fit_parameter

from attop import pipeline
from attop._threads import map_in_threads, n_threads
from attop.datasets import Split
from attop.experiments.data import split
from attop.experiments.expansion import Fit, Group, digest
from attop.experiments.kernels import SplitKernel, stack
from attop.experiments.methods import CLASSIFIERS, build
from attop.experiments.store import Record, Store
from attop.kernels.device.arrays import find_device
from attop.kernels.device.gram import DeviceGram, DeviceScores
from attop.kernels.functions import kernel_class
from attop.model_selection._scoring import Decided, scorer_of
from attop.model_selection._shared import SharedFits
from attop.model_selection._starts import walking_order
from attop.pipeline import TrainingSet
from attop.problem import Problem

#: Sums of kernel columns, of these training samples times these, at the samples to be scored.
Scorer = Callable[[NDArray[np.intp], NDArray[np.float64]], NDArray[np.float64]]
#: Points kept of a history and of a ROC curve.
_MOST_POINTS = 100
#: Models on a matrix in single precision that are scored together, at least: an interrupt costs
#: as many.
_SCORED = 6
_VERSIONED = ("attop", "numpy", "scipy", "scikit-learn", "numba")


class Fitted(NamedTuple):
    """A fitted classifier, its scores of the validation and test samples, and its time."""

    model: Any
    scores: NDArray[np.float64]
    seconds: float


class Workplace(NamedTuple):
    """The samples of a group and their kernel."""

    parts: Split
    kernel: SplitKernel | None
    X_score: Any


def run_group(group: Group, store: Store, share: float = 1.0) -> list[str]:
    """Do the fits of a group that the store does not have; returns the keys of failures.

    Fits that share kernel columns depend, within their tolerance, on those before them.
    So that an interrupted run ends with the very results of an undisturbed one, the fits
    of the same plan are repeated up to the last missing one.  (Not on a device, where sums
    differ in their last bits from run to run.)

    Parameters
    ----------
    group : Group
        The fits.
    store : Store
        Where results are, and go.
    share : float, default=1.0
        Share of the memory of a device that this process may take.
    """
    missing = [fit for fit in group.fits if not store.is_done(fit.key, fit.metrics)]
    if not missing:
        return []
    plan = digest([fit.key for fit in group.fits if fit.shares])
    try:
        device = find_device(group.fits[0].solver.get("device"))
        if device is not None:
            device.share_memory(share)
        place = _prepare(group)
    except Exception as error:
        for fit in missing:
            store.write(fit.key, _failure(fit, error, plan))
        return [fit.key for fit in missing]
    failures = []
    for fit, outcome in _all_fits(place, _todo(group, missing, store, plan)):
        if fit not in missing:
            continue
        try:
            if isinstance(outcome, Exception):
                raise outcome
            record = _success(fit, outcome, place.parts, plan)
        except Exception as error:
            record = _failure(fit, error, plan)
            failures.append(fit.key)
        store.write(fit.key, record)
    return failures


def _todo(group: Group, missing: list[Fit], store: Store, plan: str) -> list[Fit]:
    """The missing fits, and those done that an undisturbed run would have done before them."""
    on_device = group.fits[0].solver.get("device", "cpu") != "cpu"
    if on_device or not any(fit.shares for fit in missing):
        return missing
    known = {fit.key: store.read(fit.key) for fit in group.fits if fit.shares}
    again = {key for key, record in known.items() if record is not None and record["plan"] == plan}
    return [fit for fit in group.fits if fit in missing or fit.key in again]


def _prepare(group: Group) -> Workplace:
    """Read and split the samples."""
    parts = split(group.dataset, group.seed)
    if group.fits[0].solver["name"] == "pairwise":
        # Positives first, as the variables of a dual stand: columns are then read as they lie.
        order = np.argsort(-parts.y_train, kind="stable")
        weights = None if parts.w_train is None else parts.w_train[order]
        parts = parts._replace(
            X_train=parts.X_train[order], y_train=parts.y_train[order], w_train=weights
        )
    X_score = stack(parts.X_valid, parts.X_test)
    fit = group.fits[0]
    if kernel_class(fit.kernel["name"]).explicit:  # whose models are cheap to apply
        return Workplace(parts, None, X_score)
    prototype = build("TopPush", {}, fit.kernel, fit.solver)
    n_bytes = int(prototype.cache_size * 2**20)
    function = pipeline.kernel_of(prototype, parts.X_train, parts.w_train)
    kernel = SplitKernel(function, parts.X_train, X_score, n_bytes)
    return Workplace(parts, kernel, X_score)


def _all_fits(place: Workplace, fits: list[Fit]) -> Iterator[tuple[Fit, Fitted | Exception]]:
    """Every fit with its outcome: those without shared columns first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the record tells how a fit ended
        together = [fit for fit in fits if _wants_matrix(place, fit)]
        yield from _fit_on_matrix(place, together)
        for fit in fits:
            if not fit.shares and fit not in together:
                yield fit, _attempt(_fit_alone, place, fit)
        sharing = [fit for fit in fits if fit.shares]
        if sharing:
            yield from _fit_sharing(place, sharing)


def _attempt(function: Any, *arguments: Any) -> Fitted | Exception:
    try:
        return function(*arguments)
    except Exception as error:
        return error


def _wants_matrix(place: Workplace, fit: Fit) -> bool:
    """Whether the fit works on the whole kernel matrix, which fits in single precision only."""
    if fit.shares or fit.method.method not in CLASSIFIERS or place.kernel is None:
        return False
    convex = CLASSIFIERS[fit.method.method].formulation.convex
    no_device = fit.solver.get("device") in (None, "cpu")
    return convex and no_device and fit.solver["name"] == "pairwise" and place.kernel.is_single


def _fit_on_matrix(place: Workplace, fits: list[Fit]) -> Iterator[tuple[Fit, Fitted | Exception]]:
    """Fits on the kernel matrix in single precision, whose scores are computed some at a time."""
    if not fits:
        return
    assert place.kernel is not None
    parts, kernel = place.parts, place.kernel
    with config_context(assume_finite=True):  # exponentials of finite samples
        first = _build(fits[0], parts).set_params(kernel="precomputed")
        data = pipeline.prepare(first, kernel.training, parts.y_train, parts.w_train)

    def fitted(fit: Fit) -> Fitted | Exception:
        return _attempt(_fit_to, data, _build(fit, parts).set_params(kernel="precomputed"))

    for part in gen_batches(len(fits), max(_SCORED, n_threads())):
        some = fits[part]
        outcomes = map_in_threads(fitted, some, n_threads())
        done = [one for one in outcomes if isinstance(one, Fitted)]
        models = [(one.model.support_, np.ravel(one.model.dual_coef_)) for one in done]
        scores = iter(kernel.scores_of_many(models) if models else ())
        for fit, outcome in zip(some, outcomes, strict=True):
            if isinstance(outcome, Fitted):
                outcome = outcome._replace(scores=next(scores) - outcome.model.threshold_)
            yield fit, outcome
    kernel.forget_training()


def _fit_to(data: TrainingSet, model: Any) -> Fitted:
    """A model fitted to samples made ready, without scores yet."""
    began = time.perf_counter()
    problem = pipeline.problem_of(model, data)
    pipeline.finish(model, data, problem, pipeline.solve(model, problem, data.gram))
    return Fitted(model, np.empty(0), time.perf_counter() - began)


def _fit_sharing(place: Workplace, fits: list[Fit]) -> Iterator[tuple[Fit, Fitted | Exception]]:
    """Fits of the exact solver: kernel columns are computed once, each starts from the nearest."""
    parts = place.parts
    data: TrainingSet | None = None
    ready: list[tuple[Fit, Any, Problem]] = []
    for fit in fits:
        try:
            model = _build(fit, parts)
            data = data or pipeline.prepare(model, parts.X_train, parts.y_train, parts.w_train)
            ready.append((fit, model, pipeline.problem_of(model, data)))
        except ValueError as error:  # such as K above the number of negatives
            yield fit, error
    if data is None or not ready:
        return
    score = _scorer(place, data)
    with SharedFits(data.gram, ready[0][1].tol, ready[0][1].cache_size) as shared:

        def fitted(fit: Fit, model: Any, problem: Problem) -> Fitted:
            began = time.perf_counter()
            shared.fit(model, data, problem)
            seconds = time.perf_counter() - began
            return Fitted(model, _scores(place, fit, model, score), seconds)

        for i in walking_order([problem for _, _, problem in ready]):
            yield ready[i][0], _attempt(fitted, *ready[i])


def _fit_alone(place: Workplace, fit: Fit) -> Fitted:
    """A fit of any other classifier, on the kernel matrix of the split if it has one."""
    parts, model = place.parts, _build(fit, place.parts)
    kernel = place.kernel
    ours = fit.method.method in CLASSIFIERS
    dual = ours and model.formulation.convex and model.solver != "primal"
    by_matrix = kernel is not None and kernel.remembers_training and kernel.remembers_scoring
    samples, weights = parts.X_train, _fit_weights(model, fit, parts)
    if dual and by_matrix:
        assert kernel is not None
        model.set_params(kernel="precomputed")
        samples = kernel.training
    began = time.perf_counter()
    model.fit(samples, parts.y_train, **weights)
    seconds = time.perf_counter() - began
    on_device = ours and model.device not in (None, "cpu")
    score = None if on_device else _scorer(place)
    return Fitted(model, _scores(place, fit, model, score), seconds)


def _fit_weights(model: Any, fit: Fit, parts: Split) -> dict[str, NDArray[np.float64]]:
    """What `fit` takes besides samples and labels: the weights, where the data set has any."""
    if parts.w_train is None:
        return {}
    if not has_fit_parameter(model, "sample_weight"):
        raise ValueError(
            f"The method {fit.method.method!r} cannot learn from {fit.dataset.label!r}, whose "
            "samples have weights: its 'fit' takes no 'sample_weight'."
        )
    return {"sample_weight": parts.w_train}


def _build(fit: Fit, parts: Split) -> Any:
    copies = np.ones(len(parts.y_train)) if parts.w_train is None else parts.w_train
    return build(
        fit.method.method,
        fit.parameters,
        fit.kernel,
        fit.solver,
        seed=fit.seed,
        n_positives=float(np.sum(copies[parts.y_train == 1])),
        n_samples=float(np.sum(copies)),
    )


def _scorer(place: Workplace, data: TrainingSet | None = None) -> Scorer | None:
    """What knows the kernel of the samples to be scored, if anything does."""
    if data is not None and isinstance(data.gram, DeviceGram):
        # A device computes entries faster than they are kept, but is slow to be given samples.
        return DeviceScores(data.gram, place.X_score).sums
    kernel = place.kernel
    return kernel.scores if kernel is not None and kernel.remembers_scoring else None


def _scores(
    place: Workplace, fit: Fit, model: Any, score: Scorer | None = None
) -> NDArray[np.float64]:
    """Decision values of the validation samples, then of the test samples."""
    # Others have kernels of their own.
    if score is not None and fit.method.method in CLASSIFIERS and hasattr(model, "dual_coef_"):
        return score(model.support_, np.ravel(model.dual_coef_)) - model.threshold_
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(place.X_score), dtype=np.float64)
    return np.asarray(model.predict_proba(place.X_score)[:, 1], dtype=np.float64)


def _success(fit: Fit, fitted: Fitted, parts: Split, plan: str) -> Record:
    """What is kept of a fit."""
    model, n_valid = fitted.model, len(parts.y_valid)
    valid, test = fitted.scores[:n_valid], fitted.scores[n_valid:]
    status = getattr(model, "status_", None)
    return {
        **_description(fit, plan),
        "status": "" if status is None else status.name,
        "message": "" if status is None else str(status),
        "gap": _number(getattr(model, "dual_gap_", np.nan)),
        "objective": _number(getattr(model, "objective_", np.nan)),
        "n_iter": int(np.max(getattr(model, "n_iter_", 0))),
        "n_support": len(getattr(model, "support_", [])),
        "sizes": {
            name: [len(y), int(np.sum(y))]
            for name, y in (
                ("train", parts.y_train),
                ("valid", parts.y_valid),
                ("test", parts.y_test),
            )
        },
        "validation": _metrics(parts.y_valid, valid, fit.metrics, parts.w_valid),
        "test": _metrics(parts.y_test, test, fit.metrics, parts.w_test),
        "roc": _roc(parts.y_test, test, parts.w_test),
        "history": _history(getattr(model, "history_", None)),
        "seconds": fitted.seconds,
    }


def _failure(fit: Fit, error: Exception, plan: str) -> Record:
    """What is kept of a fit that went wrong."""
    lines = traceback.format_exception(error)
    message = f"{type(error).__name__}: {error}"
    return {
        **_description(fit, plan),
        "error": message,
        "traceback": "".join(lines)[-4000:],
        "status": "FAILED",
        "message": message,
        "validation": {},
        "test": {},
        "seconds": 0.0,
    }


def _description(fit: Fit, plan: str) -> Record:
    """What the fit was."""
    return {
        "dataset": fit.dataset.identity(),
        "seed": fit.seed,
        "method": fit.method.method,
        "parameters": fit.parameters,
        "kernel": fit.kernel,
        "solver": fit.solver,
        "plan": plan,
        "versions": _versions(),
        "error": "",
    }


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {name: importlib.metadata.version(name) for name in _VERSIONED}
    return {"python": platform.python_version(), **found}


def _metrics(
    y: NDArray[np.int64],
    scores: NDArray[np.float64],
    names: Sequence[str],
    weights: NDArray[np.float64] | None,
) -> dict[str, float | None]:
    """Each metric; None where all scores are equal, since there is no order to judge."""
    if not np.all(np.isfinite(scores)) or np.ptp(scores) == 0.0:
        return dict.fromkeys(names)
    judged = Decided(scores, np.array([0, 1]), 1)
    return {name: _number(judged.score_by(scorer_of(name), y, weights)) for name in names}


def _roc(
    y: NDArray[np.int64], scores: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> Record:
    """The ROC curve at rates of false positives that are dense near the top."""
    fpr, tpr, _ = roc_curve(y, scores, sample_weight=weights)
    negatives = (np.ones(len(y)) if weights is None else weights)[y == 0]
    least = np.min(negatives) / np.sum(negatives) if len(negatives) else 1.0
    wanted = np.concatenate([[0.0], np.geomspace(least, 1.0, _MOST_POINTS)])
    # The curve is a staircase: the last corner at or left of each rate.
    corners = np.unique(np.searchsorted(fpr, wanted * (1 + 1e-9), side="right") - 1)
    return {"fpr": fpr[corners].tolist(), "tpr": tpr[corners].tolist()}


def _history(history: Any) -> Record | None:
    if history is None or not len(history.time):
        return None
    rows = np.unique(np.linspace(0, len(history.time) - 1, _MOST_POINTS).astype(int))
    return {
        name: [_number(value) for value in values[rows].tolist()]
        for name, values in history._asdict().items()
    }


def _number(value: Any) -> float | None:
    """A number that JSON knows."""
    return float(value) if np.isfinite(value) else None
