"""Scorers by name, for `GridSearchCV`, `cross_val_score` and the like."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import sklearn.metrics
from sklearn.metrics._scorer import _Scorer

from attop._labels import stated_pos_label
from attop._words import did_you_mean
from attop.metrics._area import partial_auc
from attop.metrics._inputs import check_count, check_share
from attop.metrics._operating_points import (
    positives_at_top,
    precision_at_k,
    precision_at_recall,
    recall_at_precision,
    tpr_at_fpr,
    tpr_at_k,
)
from attop.metrics._response import RESPONSE_METHODS


class _Parameter(NamedTuple):
    """One number at the end of a scorer's name."""

    name: str
    check: Callable[..., None] = check_share
    options: tuple[str, ...] = ()  # further arguments of `check`


class _Metric(NamedTuple):
    """A metric, the numbers its name ends with, and the common choices of them."""

    function: Callable[..., float]
    parameters: tuple[_Parameter, ...] = ()
    examples: tuple[str, ...] = ("",)
    n_required: int = 1


class _TopScorer(_Scorer):
    """A scorer of the positive class that the estimator has, unless it was given one."""

    def _score(self, method_caller, estimator, X, y_true, **kwargs):
        label = self._kwargs.get("pos_label", stated_pos_label(estimator))
        told = {} if label is None else {"pos_label": label}
        scorer = _Scorer(self._score_func, self._sign, self._kwargs | told, self._response_method)
        return scorer._score(method_caller, estimator, X, y_true, **kwargs)


_K = (_Parameter("k", check_count),)

#: To add a scorer, add a line.
METRICS = {
    "tpr_at_k": _Metric(tpr_at_k, _K, ("1", "5", "10")),
    "tpr_at_fpr": _Metric(tpr_at_fpr, (_Parameter("tau"),), ("0.01", "0.05")),
    "positives_at_top": _Metric(positives_at_top, n_required=0),
    "precision_at_k": _Metric(precision_at_k, _K, ("10", "100")),
    "precision_at_recall": _Metric(precision_at_recall, (_Parameter("recall"),), ("0.5", "0.9")),
    "recall_at_precision": _Metric(recall_at_precision, (_Parameter("precision"),), ("0.5", "0.9")),
    "partial_auc": _Metric(
        partial_auc,
        (_Parameter("max_fpr"), _Parameter("min_tpr", check_share, ("[0, 1)",))),
        ("0.01", "0.05", "0.5_0.5"),
    ),
}

_NUMBERS = re.compile(r"^(.*?)((?:_[0-9][0-9.e+-]*)*)$")


def get_scorer_names() -> list[str]:
    """Names of the scorers of this library, with common values of their parameters.

    Any other value may stand in their place, such as ``"tpr_at_fpr_0.002"``.

    Returns
    -------
    list of str
        Names, sorted.

    Examples
    --------
    >>> from attop.metrics import get_scorer_names
    >>> "tpr_at_fpr_0.01" in get_scorer_names()
    True
    """
    return sorted(
        "_".join(filter(None, (stem, example)))
        for stem, metric in METRICS.items()
        for example in metric.examples
    )


def get_scorer(scoring: str | Callable[..., float], *, pos_label: Any = None):
    """Scorer by name: the name of a metric followed by its parameters.

    Parameters
    ----------
    scoring : str or callable
        ``"tpr_at_k_{k}"``, ``"tpr_at_fpr_{tau}"``, ``"positives_at_top"``,
        ``"precision_at_k_{k}"``, ``"precision_at_recall_{recall}"``,
        ``"recall_at_precision_{precision}"``, ``"partial_auc_{max_fpr}"`` or
        ``"partial_auc_{max_fpr}_{min_tpr}"`` (standardised); or the name of one of
        scikit-learn's scorers; or a scorer, which is returned as it is.
    pos_label : int, float, bool or str, default=None
        Label of the positive class; by default the ``pos_label_`` of the estimator or of the
        one inside a pipeline or search, else 1 where the labels are {0, 1} or {-1, 1}.  Not
        for scikit-learn's scorers.

    Returns
    -------
    callable
        Scorer with the signature ``scorer(estimator, X, y, sample_weight=None)``, larger is
        better.  It uses ``decision_function``, or ``predict_proba`` where there is none.

    Notes
    -----
    With scikit-learn's metadata routing a search or cross-validation passes weights on to a
    scorer that asks for them: ``get_scorer(...).set_score_request(sample_weight=True)``.

    Examples
    --------
    >>> from attop.metrics import get_scorer
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> scores = cross_val_score(
    ...     LogisticRegression(), X, y, scoring=get_scorer("tpr_at_fpr_0.05")
    ... )
    """
    if callable(scoring):
        return scoring
    stem, numbers = _split(scoring)
    metric = METRICS.get(stem)
    if metric is None and scoring in sklearn.metrics.get_scorer_names():
        return sklearn.metrics.get_scorer(scoring)
    if metric is None or not metric.n_required <= len(numbers) <= len(metric.parameters):
        raise ValueError(
            f"{scoring!r} is not a valid scorer. {_nearest(stem, numbers)} "
            "Call attop.metrics.get_scorer_names() for examples of every metric."
        )
    values = {}
    for parameter, number in zip(metric.parameters, numbers):
        value = _parse(number)
        parameter.check(value, parameter.name, f"the scorer {scoring!r}", *parameter.options)
        values[parameter.name] = value
    if pos_label is not None:
        values["pos_label"] = pos_label
    return _TopScorer(metric.function, 1, values, RESPONSE_METHODS)


def _split(name: str) -> tuple[str, list[str]]:
    """The name of a metric and the numbers behind it."""
    match = _NUMBERS.match(name)
    assert match is not None  # the pattern accepts any text
    return match[1], match[2].split("_")[1:]


def _parse(number: str) -> int | float | str:
    """The number in a name; the text itself where it is none, for the check to refuse."""
    for kind in (int, float):
        try:
            return kind(number)
        except ValueError:
            continue
    return number


def _nearest(stem: str, numbers: list[str]) -> str:
    """The question for the closest valid name, with the numbers where the metric takes them."""
    known = {name: name for name in sklearn.metrics.get_scorer_names()}
    for name, metric in METRICS.items():
        fitting = metric.n_required <= len(numbers) <= len(metric.parameters)
        known[name] = "_".join(filter(None, (name, *(numbers if fitting else metric.examples[:1]))))
    return did_you_mean(stem, known, cutoff=0.0)
