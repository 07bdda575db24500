"""Methods for tables that choose their own parameters: all on the same folds, by the same metric.

Each has `CANDIDATES` combinations of parameters to choose from, so that none is tuned better than
another; only `AutoTopClassifier` has a budget of seconds.  An experiment names one as
``method = "attop.experiments.tabular:Tuned"`` with a ``model``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from attop._words import suggestion
from attop.auto import AutoTopClassifier
from attop.classifiers import SVM, PatMatNP, TauFPL
from attop.forest import TopForestClassifier
from attop.metrics import get_scorer
from attop.model_selection import AtTopCV

#: Combinations of parameters that each method chooses from.
CANDIDATES = 8
#: Trees of a forest, in the search and in the end: fewer tell leaf sizes apart as well as more.
_TREES_TO_CHOOSE, _TREES = 100, 300
_ROUNDS = 150
_WEIGHTS = (0.1, 1.0, 10.0, 100.0)
#: Times the number of features: widths of Gaussian kernels on standardised features.
_WIDTHS = (0.25, 2.0)


class Task(NamedTuple):
    """What all methods are given alike.

    Attributes
    ----------
    metric : str
        What chooses, in cross-validation.
    cv : int
        Stratified folds.
    tau : float
        The false positive rate that the methods at the top aim at.
    seed : int
        Seed of the folds, and of what is drawn.
    n_features : int
        Number of features.
    """

    metric: str
    cv: int
    tau: float
    seed: int
    n_features: int

    def search(self, estimator: Any, grid: dict[str, Any], refit: bool = True) -> GridSearchCV:
        """A search of scikit-learn on the folds."""
        folds = StratifiedKFold(self.cv, shuffle=True, random_state=self.seed)
        return GridSearchCV(estimator, grid, scoring=get_scorer(self.metric), cv=folds, refit=refit)

    @property
    def gammas(self) -> list[float]:
        """Widths of Gaussian kernels."""
        return [width / self.n_features for width in _WIDTHS]


def _logistic_regression(task: Task) -> Any:
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return task.search(model, {"logisticregression__C": np.logspace(-4.0, 3.0, CANDIDATES)})


def _svm(task: Task) -> Any:
    model = make_pipeline(StandardScaler(), SVC(random_state=task.seed))
    return task.search(model, {"svc__C": _WEIGHTS, "svc__gamma": task.gammas})


class _Forest(BaseEstimator):
    """A forest that is chosen with few trees and grown with many."""

    def __init__(self, kind: type, task: Task) -> None:
        self.kind = kind
        self.task = task

    def fit(self, X: Any, y: Any) -> Self:
        grid = {
            "min_samples_leaf": (1, 3),
            "max_features": ("sqrt", 0.5),
            "class_weight": (None, "balanced"),
        }
        few = self.kind(_TREES_TO_CHOOSE, random_state=self.task.seed)
        search = self.task.search(few, grid, refit=False).fit(X, y)
        self.model_ = clone(few).set_params(n_estimators=_TREES, **search.best_params_).fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.model_.predict_proba(X)


def _boosting(task: Task) -> Any:
    grid = {"learning_rate": (0.03, 0.1), "max_leaf_nodes": (7, 31), "min_samples_leaf": (5, 20)}
    return task.search(
        HistGradientBoostingClassifier(
            max_iter=_ROUNDS, early_stopping=False, random_state=task.seed
        ),
        grid,
    )


def _lightgbm(task: Task) -> Any:
    kind = importlib.import_module("lightgbm").LGBMClassifier
    model = kind(n_estimators=_ROUNDS, random_state=task.seed, n_jobs=1, verbosity=-1)
    grid = {"learning_rate": (0.03, 0.1), "num_leaves": (7, 31), "min_child_samples": (5, 20)}
    return task.search(model, grid)


def _xgboost(task: Task) -> Any:
    kind = importlib.import_module("xgboost").XGBClassifier
    model = kind(n_estimators=_ROUNDS, random_state=task.seed, n_jobs=1)
    grid = {"learning_rate": (0.03, 0.1), "max_depth": (3, 6), "min_child_weight": (1, 5)}
    return task.search(model, grid)


def _gaussian(formulation: Callable[[float], Any]) -> Callable[[Task], Any]:
    def build(task: Task) -> Any:
        search = AtTopCV(
            formulation(task.tau).set_params(kernel="rbf"),
            {"C": _WEIGHTS, "gamma": task.gammas},
            cv=task.cv,
            scoring=task.metric,
            random_state=task.seed,
        )
        return make_pipeline(StandardScaler(), search)

    return build


def _on_leaves(
    formulations: list[Callable[[float], Any]], Cs: tuple[float, ...]
) -> Callable[[Task], Any]:
    def build(task: Task) -> Any:
        return TopForestClassifier(
            task.tau,
            classifiers=[formulation(task.tau) for formulation in formulations],
            Cs=Cs,
            cv=task.cv,
            scoring=task.metric,
            random_state=task.seed,
        )

    return build


def _automatic(task: Task) -> Any:
    return AutoTopClassifier(
        task.metric, tau=task.tau, cv=task.cv, n_jobs=1, random_state=task.seed
    )


def _wide(tau: float) -> Any:
    return TauFPL(min(5.0 * tau, 0.5))


#: What `Tuned` can be.
MODELS: dict[str, Callable[[Task], Any]] = {
    "LogisticRegression": _logistic_regression,
    "SVM": _svm,
    "RandomForest": partial(_Forest, RandomForestClassifier),
    "ExtraTrees": partial(_Forest, ExtraTreesClassifier),
    "HistGradientBoosting": _boosting,
    "LightGBM": _lightgbm,
    "XGBoost": _xgboost,
    "TauFPL, Gaussian": _gaussian(_wide),
    "PatMatNP, Gaussian": _gaussian(PatMatNP),
    "SVM, forest": _on_leaves([lambda tau: SVM()], (0.1, 1.0)),
    "TauFPL, forest": _on_leaves([_wide], (0.1, 1.0)),
    "PatMatNP, forest": _on_leaves([PatMatNP], (0.1, 1.0)),
    "TopForestClassifier": _on_leaves([_wide, PatMatNP], (1.0,)),
    "AutoTopClassifier": _automatic,
}


class Tuned(ClassifierMixin, BaseEstimator):
    """A method that chooses its parameters by cross-validation.

    Parameters
    ----------
    model : str, default="ExtraTrees"
        The method: a name in `MODELS`.
    metric : str, default="partial_auc_0.05"
        The scorer that chooses.
    cv : int, default=3
        Stratified folds, the same for each method.
    tau : float, default=0.01
        The false positive rate that methods at the top aim at.
    random_state : int, default=0
        Seed of the folds, and of what is drawn.

    Attributes
    ----------
    model_ : estimator
        The fitted search.
    classes_ : ndarray of shape (2,)
        The labels, sorted; the larger one is positive.

    Examples
    --------
    >>> from attop.datasets import load_ionosphere
    >>> from attop.experiments.tabular import Tuned
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> Tuned("LogisticRegression").fit(X, y).decision_function(X).shape
    (351,)
    """

    def __init__(
        self,
        model: str = "ExtraTrees",
        *,
        metric: str = "partial_auc_0.05",
        cv: int = 3,
        tau: float = 0.01,
        random_state: int = 0,
    ) -> None:
        self.model = model
        self.metric = metric
        self.cv = cv
        self.tau = tau
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Choose, and fit the best on all samples.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels, of two values.

        Returns
        -------
        self
        """
        if self.model not in MODELS:
            raise ValueError(
                f"The 'model' parameter of Tuned must be one of {list(MODELS)}. "
                f"Got {self.model!r} instead. {suggestion(self.model, MODELS)}"
            )
        self.classes_ = np.unique(y)
        task = Task(self.metric, self.cv, self.tau, self.random_state, X.shape[1])
        self.model_ = MODELS[self.model](task).fit(X, y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each sample.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        return self.model_.predict(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Ranks of the samples, the highest for the most likely positive.

        Equal scores are put into a random order: who has to look at the first hundred must take
        some of the equal ones, and a metric that counts ties as hits would favour the votes of
        few trees.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            From 0 on.
        """
        check_is_fitted(self)
        if hasattr(self.model_, "decision_function"):
            scores = self.model_.decision_function(X)
        else:
            scores = self.model_.predict_proba(X)[:, 1]
        ties = np.random.default_rng(self.random_state).random(len(scores))
        ranks = np.empty(len(scores))
        ranks[np.lexsort((ties, scores))] = np.arange(len(scores))
        return ranks
