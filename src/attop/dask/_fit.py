"""The fit of a classifier on a cluster: what is learnt of labels and samples, and the solution."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from attop import _validation as checks
from attop._verdict import advice, warn, why_zero
from attop.approximation import make_feature_map
from attop.chunked.levels import Terms
from attop.chunked.passes import Look, look, merge_looks
from attop.chunked.rounding import Rounding
from attop.chunked.solve import MOST_ENTRIES, MOST_ROWS, MOST_SHARE, Found, Whole, solve
from attop.dask._chunks import DaskChunks
from attop.dask._inputs import (
    Counts,
    Parts,
    Roles,
    class_factors,
    count_labels,
    lazy_chunks,
    lazy_labels,
    merge_counts,
    parts_of,
)
from attop.kernels.functions import Linear, kernel_class, make_kernel
from attop.objectives import relative_gap, zero_value
from attop.solvers.protocol import Settings
from attop.solvers.solution import STATS, Status
from attop.surrogates import as_surrogate, refuse_unless_quadratic

#: Matrices of so many features are formed where the loss is smooth.
_MOST_FEATURES = 5000


class Labels(NamedTuple):
    """The labels: their values, the positive one, and rows and copies of both classes."""

    classes: NDArray[Any]
    pos_label: Any
    rows: tuple[int, int]
    copies: tuple[float, float]
    factors: tuple[float, float]


def check(estimator: Any) -> None:
    """Raise a ValueError that names the first parameter that cannot be."""
    checks.check_parameters(estimator)
    name = type(estimator).__name__
    if not kernel_class(estimator.kernel).explicit and estimator.approximation is None:
        raise ValueError(
            f"The 'kernel' parameter of {name} must be 'linear'; for another kernel set "
            f"approximation='nystroem'. Got {estimator.kernel!r} instead."
        )
    if estimator.solver != "auto":
        raise ValueError(
            f"The 'solver' parameter of {name} must be 'auto': there is one for samples in chunks. "
            f"Got {estimator.solver!r} instead."
        )
    if not np.isfinite(estimator.C):
        raise ValueError(f"The 'C' parameter of {name} must be finite. Got {estimator.C} instead.")
    if estimator.device is not None:
        raise ValueError(
            f"The 'device' parameter of {name} must be None. Got {estimator.device!r} instead."
        )
    most = estimator.most_rows
    if most is not None and not (isinstance(most, int) and most >= 2):
        raise ValueError(
            f"The 'most_rows' parameter of {name} must be None or an integer of at least 2. "
            f"Got {most!r} instead."
        )
    refuse_unless_quadratic(as_surrogate(estimator.surrogate), "Dask")


def fit(estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit `estimator` in place."""
    began = time.perf_counter()
    check(estimator)
    name = type(estimator).__name__
    client = estimator.client_
    parts = parts_of(X, y, sample_weight, name)
    labels = _labels(estimator, client, parts)
    _tell(estimator, f"labels: {labels.rows[0]:,} positives, {labels.rows[1]:,} negatives", began)
    most = estimator.most_rows or max(MOST_ROWS, round(MOST_SHARE * sum(labels.rows)))
    if estimator.most_rows is None:
        width = _width(estimator, X)
        most = max(1000, min(most, MOST_ENTRIES // width))
    chunks, seen, feature_map, width = _see(estimator, client, parts, labels, most)
    drawn = len(seen.positives.weights) + len(seen.negatives.weights)
    _tell(estimator, f"look: {len(parts.X):,} chunks, {drawn:,} samples drawn", began)
    terms = _terms(estimator, labels)
    if terms.surrogate.curvature and seen.positives.X.shape[1] > _MOST_FEATURES:
        raise ValueError(
            f"{name} with a smooth surrogate takes at most {_MOST_FEATURES} features, whose "
            "products make a matrix; use surrogate='hinge'."
        )
    totals = labels.copies[0] * labels.factors[0], labels.copies[1] * labels.factors[1]
    whole = Whole.of(chunks, terms, seen, totals)
    settings = Settings(
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        max_time=estimator.max_time,
        verbose=estimator.verbose,
    ).since(began)
    complete = _shares(labels, most) == (1.0, 1.0)

    def foretell() -> None:
        """Say before hours of passes what they will most likely come to."""
        why = why_zero(estimator.formulation, totals[0] / sum(totals))
        warn(
            f"On {drawn:,} samples drawn at random the optimum of this {name} is w = 0, as it will "
            f"be on all most likely; the fit goes on to prove it. {why}"
        )

    found = solve(whole, seen, settings, most, complete=complete, foretell=foretell)
    attributes = _attributes(found, whole.rounding, labels, width)
    if parts.names is not None and all(isinstance(n, str) for n in parts.names):
        attributes["feature_names_in_"] = parts.names
    if feature_map is not None:
        attributes["feature_map_"] = feature_map
    for old in ("feature_names_in_", "feature_map_"):
        estimator.__dict__.pop(old, None)
    estimator.__dict__.update(attributes)
    _warn(estimator, found, terms, totals)


def _tell(estimator: Any, what: str, began: float) -> None:
    """A line of progress, where it is asked for."""
    if estimator.verbose:
        print(f"{what}, {time.perf_counter() - began:.1f} s", flush=True)


def _labels(estimator: Any, client: Any, parts: Parts) -> Labels:
    """Which labels there are, by a pass over labels and weights alone."""
    chunks = DaskChunks(client, lambda: lazy_labels(parts))
    counts, good = chunks.reduce(count_labels, merge_counts)
    if not good:
        raise ValueError(
            "sample_weight must be finite, at least 0, and as many as there are samples."
        )
    classes = checks.check_two_classes(np.array(list(counts)))
    pos_label = checks.check_pos_label(estimator, classes)
    return _of_counts(estimator, counts, classes, pos_label)


def _of_counts(estimator: Any, counts: Counts, classes: NDArray[Any], pos_label: Any) -> Labels:
    negative = classes[0] if classes[1] == pos_label else classes[1]
    by_label = [counts[label.item()] for label in (pos_label, negative)]
    class_weight = getattr(estimator, "class_weight", None)
    factors = class_factors(class_weight, pos_label.item(), counts)
    rows, copies = zip(*by_label, strict=True)
    return Labels(classes, pos_label, rows, copies, factors)


def _width(estimator: Any, X: Any) -> int:
    """Features of a gathered row."""
    return int(X.shape[1] if estimator.approximation is None else estimator.n_components)


def _shares(labels: Labels, most: int) -> tuple[float, float]:
    """Which share of positives and of negatives is drawn for the first model."""
    of_positives, of_negatives = (min(1.0, 0.5 * most / rows) for rows in labels.rows)
    return of_positives, of_negatives


def _see(
    estimator: Any, client: Any, parts: Parts, labels: Labels, most: int
) -> tuple[DaskChunks, Look, Any, int]:
    """The chunks with what they are like: the samples, and then the features of a kernel."""
    roles = Roles(labels.pos_label, labels.factors, None)
    seed = int(check_random_state(_seed(estimator)).randint(2**31 - 1))
    chunks = DaskChunks(client, lambda: lazy_chunks(parts, roles))
    shares = _shares(labels, most)
    seen = chunks.reduce(look, merge_looks, shares, seed)
    if not np.isfinite(seen.largest):
        raise ValueError(
            f"Input X contains NaN or infinity, which {type(estimator).__name__} does not take: "
            "fill the gaps, or leave these samples out."
        )
    checks.check_magnitude(np.array([[seen.largest]]))
    width = int(seen.positives.X.shape[1])
    if estimator.approximation is None:
        return chunks, seen, None, width
    feature_map = _feature_map(estimator, seen, labels, width)
    mapped = roles._replace(feature_map=feature_map)
    chunks = DaskChunks(client, lambda: lazy_chunks(parts, mapped))
    return chunks, chunks.reduce(look, merge_looks, shares, seed), feature_map, width


def _feature_map(estimator: Any, seen: Look, labels: Labels, width: int) -> Any:
    """The features of the approximation, of samples drawn in the proportion of all."""
    drawn = [len(seen.positives.weights), len(seen.negatives.weights)]
    share = min(n / rows for n, rows in zip(drawn, labels.rows, strict=True))
    rows = [max(1, round(share * n)) for n in labels.rows]
    parts = [side.X[:n] for side, n in zip((seen.positives, seen.negatives), rows, strict=True)]
    X = sp.vstack(parts, "csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    gamma = checks.gamma_value(estimator.gamma, X)
    if estimator.gamma == "scale":  # by all samples
        size = width * sum(c * f for c, f in zip(labels.copies, labels.factors, strict=True))
        variance = seen.square / size - (seen.total / size) ** 2
        gamma = 1.0 / (width * variance) if variance > 0.0 else 1.0
    kernel = make_kernel(estimator.kernel, gamma, float(estimator.degree), float(estimator.coef0))
    n_components = estimator.n_components
    if estimator.approximation == "nystroem":
        n_components = min(n_components, X.shape[0])
    return make_feature_map(estimator.approximation, kernel, n_components, _seed(estimator)).fit(X)


def _seed(estimator: Any) -> Any:
    """What draws at random; None is the seed 0."""
    return 0 if estimator.random_state is None else estimator.random_state


def _terms(estimator: Any, labels: Labels) -> Terms:
    """What is minimised."""
    formulation, surrogate = estimator.formulation, as_surrogate(estimator.surrogate)
    parameters = {name: getattr(estimator, name) for name in formulation.parameters}
    all_compete = formulation.competitors == "all"
    copies = [c * f for c, f in zip(labels.copies, labels.factors, strict=True)]
    # One competitor of all copies: the family asks how many there are.
    total = np.array([copies[1] + (copies[0] if all_compete else 0.0)])
    family = formulation.family(np.zeros(1, np.intp), total, surrogate, **parameters)
    return Terms(float(estimator.C), surrogate, family, all_compete)


def _attributes(found: Found, rounding: Rounding, labels: Labels, width: int) -> dict[str, Any]:
    """The fitted attributes."""
    # Scores of samples as they are, and from a centre.
    off = 4.0 * rounding.of_score(float(np.linalg.norm(found.w)))
    history = found.history
    seconds = float(history.time[-1]) if len(history.time) else 0.0
    stats = dict.fromkeys(STATS, 0.0) | {
        "steps": float(found.n_rounds),
        "seconds_rounds": seconds,
    }
    return {
        "classes_": labels.classes,
        "pos_label_": labels.pos_label,
        "n_features_in_": width,
        "coef_": found.w[np.newaxis],
        "threshold_": found.threshold - off,
        "objective_": found.primal,
        "dual_gap_": found.gap,
        "status_": found.status,
        "n_iter_": found.n_rounds,
        "history_": history,
        "stats_": stats,
        "_fitted_kernel": Linear(),
    }


def _warn(estimator: Any, found: Found, terms: Terms, totals: tuple[float, float]) -> None:
    """Warn where the fit is not certified, or comes to ``w = 0``."""
    name, tol = type(estimator).__name__, estimator.tol
    if found.status is not Status.CONVERGED:
        stalled = found.status is Status.STALLED
        what = "Use a larger most_rows or tol." if stalled else advice(found.status, "exact")
        warn(
            f"{name} reached a relative duality gap of {found.gap:.1e}, not tol={tol:g}: "
            f"{found.status}. {what}",
            ConvergenceWarning,
        )
    if relative_gap(_value_of_zero(terms, totals), found.dual) <= tol:
        warn(
            f"The optimum of this {name} is w = 0, up to tol={tol:g}: all samples get the same "
            f"score. {why_zero(estimator.formulation, totals[0] / sum(totals))}"
        )


def _value_of_zero(terms: Terms, totals: tuple[float, float]) -> float:
    """The primal value of no model, on so many copies of positives and of negatives."""
    competitors = totals[1] + (totals[0] if terms.all_compete else 0.0)
    return zero_value(terms.problem(np.array([totals[0]]), np.array([competitors])))
