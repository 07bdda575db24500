"""The search of ``attop fit --search``: what is not given by an option is tried."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from attop._labels import TopScoreMixin
from attop._validation import gamma_value

#: Values of C, and multiples of gamma="scale".
_C = (0.01, 0.1, 1.0, 10.0, 100.0)
_GAMMA_FACTORS = (0.25, 1.0, 4.0)
#: Values of K, and multiples of the false positive rate that the metric is about.
_K = (1, 5, 20)
_TAU_FACTORS = (1.0, 2.0, 5.0)
_DEFAULT_RATE = 0.05
_MOST_ROWS_SHOWN = 10


class SearchedClassifier(TopScoreMixin, ClassifierMixin, BaseEstimator):
    """A classifier of this library whose parameters are searched by `AtTopCV` when it is fitted.

    Parameters
    ----------
    classifier : AtTopClassifier
        With the parameters that stay.
    metric : str
        Name of the scorer that chooses.
    given : sequence of str
        Parameters that are not searched.
    n_folds : int
        Number of folds.
    random_state : int
        Seed of the folds.
    verbose : int
        Whether to show a progress bar.

    Attributes
    ----------
    search_ : AtTopCV
        The search.
    """

    def __init__(
        self,
        classifier: Any,
        metric: str = "tpr_at_fpr_0.05",
        given: Sequence[str] = (),
        n_folds: int = 5,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.classifier = classifier
        self.metric = metric
        self.given = given
        self.n_folds = n_folds
        self.random_state = random_state
        self.verbose = verbose

    @property
    def pos_label(self) -> Any:
        """The positive class, as the classifier names it."""
        return self.classifier.pos_label

    def fit(self, X: Any, y: NDArray[Any], sample_weight: Any = None) -> Self:
        """Search, and fit the best on all samples."""
        from attop.model_selection import AtTopCV

        search = AtTopCV(
            self._kernels(X),
            self._grid(int(np.count_nonzero(y != self.pos_label))),
            cv=self.n_folds,
            scoring=Judge(self.metric),
            random_state=self.random_state,
            verbose=self.verbose,
        )
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.search_ = search.fit(X, y, **weights)
        self.classes_, self.pos_label_ = search.classes_, search.pos_label_
        return self

    def top_score(self, X: Any) -> NDArray[np.float64]:
        """Score less threshold of the best."""
        scores: NDArray[np.float64] = self.search_.top_score(X)
        return scores

    def _kernels(self, X: Any) -> list[Any]:
        """The classifier with each width of its kernel."""
        from attop.kernels.functions import kernel_class

        fields = {field.name for field in dataclasses.fields(kernel_class(self.classifier.kernel))}
        if "gamma" in self.given or "gamma" not in fields:
            return [self.classifier]
        scale = gamma_value("scale", X)
        return [
            clone(self.classifier).set_params(gamma=float(f"{factor * scale:.3g}"))
            for factor in _GAMMA_FACTORS
        ]

    def _grid(self, n_negatives: int) -> dict[str, Sequence[Any]]:
        rate = metric_rate(self.metric) or _DEFAULT_RATE
        tries: dict[str, Sequence[Any]] = {
            "C": _C,
            # Of all samples the folds leave four fifths.
            "K": [K for K in _K if K == 1 or K < n_negatives / 2],
            "tau": [float(f"{f * rate:.3g}") for f in _TAU_FACTORS if f * rate < 1.0],
        }
        own = ("C", *self.classifier.formulation.parameters)
        return {name: tries[name] for name in tries if name in own and name not in self.given}


class Judge:
    """A metric by its name, for which equal scores of all samples are worth nothing.

    Metrics that count ties as hits would take them for perfect, and the search a model that
    tells nothing for the best.
    """

    def __init__(self, metric: str) -> None:
        self.metric = metric

    def __call__(
        self, y: NDArray[np.int64], scores: NDArray[np.float64], sample_weight: Any = None
    ) -> float:
        """What the metric says of labels, 1 for positive and 0 otherwise, and scores."""
        from attop.metrics import get_scorer
        from attop.model_selection._scoring import Decided

        if np.ptp(scores) == 0.0:
            return 0.0
        return Decided(scores, np.array([0, 1]), 1).score_by(
            get_scorer(self.metric), y, sample_weight
        )


def metric_rate(metric: str) -> float | None:
    """The false positive rate that a metric is about, None if it is about none."""
    match = re.fullmatch(r"(?:tpr_at_fpr|partial_auc)_([0-9.e-]+)", metric)
    return float(match[1]) if match else None


def candidates(search: Any) -> list[dict[str, str]]:
    """The best candidates of a search, a row of texts for each, best first."""
    results = search.cv_results_
    order = np.argsort(results["rank_test_score"], kind="stable")[:_MOST_ROWS_SHOWN]
    estimators = search.estimator if isinstance(search.estimator, list) else [search.estimator]
    n_each = len(results["params"]) // len(estimators)
    rows = []
    for i in order:
        row = {"rank": str(results["rank_test_score"][i])}
        if len(estimators) > 1:
            row["gamma"] = f"{estimators[i // n_each].gamma:g}"
        row |= {name: f"{value:g}" for name, value in sorted(results["params"][i].items())}
        mean, deviation = results["mean_test_score"][i], results["std_test_score"][i]
        row[search.scoring.metric] = f"{mean:.4f} ± {deviation:.4f}"
        row["largest gap"] = f"{results['max_dual_gap'][i]:.0e}"
        rows.append(row)
    return rows
