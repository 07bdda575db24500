"""Choose for me: formulation, kernel and parameters, within a number of seconds."""

from __future__ import annotations

import re
import time
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from attop import _validation as checks
from attop._labels import TopScoreMixin
from attop._replica import all_or_nothing
from attop.classifiers import SVM, PatMatNP, TauFPL
from attop.forest import TopForestClassifier
from attop.forest.classifier import chosen, drawn
from attop.model_selection import AtTopCV
from attop.model_selection._scoring import scorer_of

__all__ = ["AutoTopClassifier"]

#: Kernels to choose from.
KERNELS = ("linear", "rbf", "forest")
_WEIGHTS = (1.0, 0.1, 10.0, 0.01, 100.0)
#: gamma on standardised features, times their number; the middle one first, for small budgets.
_WIDTHS = (1.0, 0.25, 4.0)
_LEAVES = (1, 3, 10)
_LEAF_WEIGHTS = (1.0, 0.1, 10.0)
#: Where nothing says it, the false positive rate to aim at.
_RATE = 0.01


class _Round(NamedTuple):
    """Candidates with one kernel, which are tried in one go.

    `number` is the width of a Gaussian kernel, or the size of the leaves of a forest.
    """

    kernel: str
    number: float = 0.0

    def __str__(self) -> str:
        return self.kernel + {
            "rbf": f", gamma={self.number:.3g}",
            "forest": f", leaves of {self.number:g}",
        }.get(self.kernel, "")


class AutoTopClassifier(TopScoreMixin, ClassifierMixin, BaseEstimator):
    """The model that does best at the top of your samples, of all that are here.

    Formulations, kernels and their parameters are compared by cross-validation on the same folds,
    the quickest first, until the budget is spent: linear models, Gaussian kernels of several
    widths on standardised features, and the kernel of a forest that is grown anew in each fold.
    The formulations are `TauFPL` at five times the false positive rate of the metric, since at the
    rate itself its optimum is ``w = 0`` where the classes overlap, `PatMatNP` at that rate, and
    `SVM` with balanced classes.  A default, on the kernel of a forest where there is one, stays
    where nothing is better by more than one standard error of the difference: of few positives the
    best of many is the best by chance.

    Parameters
    ----------
    metric : str or callable, default="partial_auc_0.01"
        What the model is to be best at, as `scoring` of `AtTopCV`.  Of few samples the area up to a
        false positive rate tells more than the true positive rate at it.
    budget : float, default=60.0
        Seconds for the choice.  A round that has begun is finished, so that it may take longer; one
        that is forecast not to end in time is not begun.  The first is always made, and the final
        fit on all samples comes on top.
    tau : float, default=None
        The false positive rate to aim at; None is that in the name of the metric, else 0.01.
    kernels : sequence of str, default=("linear", "rbf", "forest")
        What to choose from.
    cv : int, default=3
        Folds.
    max_samples : int, default=10000
        Rows drawn for the choice, with the shares of the classes; the final fit has all.
    n_jobs : int, default=-1
        Processes of the search, -1 for as many as there are cores.
    verbose : int, default=0
        Whether to print what was tried, a line for each round.
    pos_label : label, default=None
        The positive class; the larger of the two labels if None.
    random_state : int, default=0
        Seed of folds, forests and of the rows drawn.

    Attributes
    ----------
    model_ : estimator
        The chosen model, fitted to all samples.
    best_params_ : dict
        What was chosen.
    best_score_ : float
        Its mean score.
    cv_results_ : dict of arrays
        What was tried: ``kernel``, ``classifier``, ``params``, the ``scores`` of the folds,
        ``mean_test_score``, ``std_test_score``, and ``seconds`` of the round.
    skipped_ : list of str
        Rounds for which there was no time.
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    pos_label_ : label
        The positive one.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has string column names.

    See Also
    --------
    attop.model_selection.AtTopCV : Chooses from a grid of your own.
    attop.forest.TopForestClassifier : Chooses among forests alone.

    Examples
    --------
    >>> from attop.auto import AutoTopClassifier
    >>> from attop.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = AutoTopClassifier(budget=1, kernels=["rbf"], n_jobs=1).fit(X, y)
    >>> sorted(model.best_params_)
    ['C', 'classifier', 'gamma', 'kernel']
    """

    def __init__(
        self,
        metric: Any = "partial_auc_0.01",
        *,
        budget: float = 60.0,
        tau: float | None = None,
        kernels: Any = KERNELS,
        cv: int = 3,
        max_samples: int = 10_000,
        n_jobs: int | None = -1,
        verbose: int = 0,
        pos_label: Any = None,
        random_state: int = 0,
    ) -> None:
        self.metric = metric
        self.budget = budget
        self.tau = tau
        self.kernels = kernels
        self.cv = cv
        self.max_samples = max_samples
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.pos_label = pos_label
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose, and fit the best on all samples.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels, of two values.
        sample_weight : array-like of shape (n_samples,), default=None
            Copies of each sample.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float32, np.float64])
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            X, y, weights = (part[weights > 0.0] for part in (X, y, weights))
        self.classes_ = checks.check_two_classes(y)
        self.pos_label_ = checks.check_pos_label(self, self.classes_)
        positive = y == self.pos_label_
        tried = self._search(X, positive, weights)
        self.cv_results_ = {key: [one[key] for one in tried] for key in tried[0]}
        best = tried[_best(tried)]
        self.best_score_ = best["mean_test_score"]
        self.best_params_ = {
            "kernel": best["kernel"],
            "classifier": best["classifier"],
            **best["params"],
        }
        self.model_ = self._final(X, positive, weights, best)
        return self

    def top_score(self, X: Any) -> NDArray[np.float64]:
        """Score less threshold, high for the positive class.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Distances from the threshold, 0 or more where the positive class is predicted.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float32, np.float64])
        scores: NDArray[np.float64] = self.model_.decision_function(X)
        return scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        """Raise a ValueError that names the first parameter that cannot be."""
        for name, holds, words in (
            ("budget", self.budget > 0, "positive"),
            ("tau", self.tau is None or 0.0 < self.tau < 1.0, "None or in (0, 1)"),
            ("kernels", len(self.kernels) > 0 and {*self.kernels} <= {*KERNELS}, f"of {KERNELS}"),
            ("cv", self.cv >= 2, "2 or more"),
            ("max_samples", self.max_samples >= 2, "2 or more"),
        ):
            if not holds:
                raise ValueError(
                    f"The {name!r} parameter of AutoTopClassifier must be {words}. "
                    f"Got {getattr(self, name)!r} instead."
                )
        scorer_of(self.metric)

    def _rate(self) -> float:
        """The false positive rate to aim at."""
        if self.tau is not None:
            return self.tau
        match = re.match(r"(?:tpr_at_fpr|partial_auc)_([0-9.e-]+)", str(self.metric))
        return float(match[1]) if match and 0.0 < float(match[1]) < 1.0 else _RATE

    def _classifiers(self) -> list[Any]:
        tau = self._rate()
        return [TauFPL(min(5.0 * tau, 0.5)), PatMatNP(tau), SVM(class_weight="balanced")]

    def _rounds(self, n_features: int) -> list[_Round]:
        """What to try, in this order: of each kernel the likeliest first."""
        turns = [("linear", 0.0)]
        for factor, size in zip(_WIDTHS, _LEAVES, strict=True):
            turns += [("forest", size), ("rbf", factor / n_features)]
        return [_Round(kernel, number) for kernel, number in turns if kernel in self.kernels]

    def _search(self, X: Any, positive: NDArray[np.bool_], weights: Any) -> list[dict[str, Any]]:
        """A row for each candidate, of the rounds for which there was time."""
        began = time.perf_counter()
        X, positive, weights = drawn(X, positive, weights, self.max_samples, self.random_state)
        scaled = _scaler(X).fit(X, sample_weight=weights).transform(X)
        tried: list[dict[str, Any]] = []
        lasted: dict[str, float] = {}
        self.skipped_ = []
        for one in self._rounds(X.shape[1]):
            elapsed = time.perf_counter() - began
            if tried and elapsed + lasted.get(one.kernel, 0.0) > self.budget:
                self.skipped_.append(str(one))
                continue
            rows = self._tried(one, X if one.kernel == "forest" else scaled, positive, weights)
            lasted[one.kernel] = time.perf_counter() - began - elapsed
            tried += [row | {"seconds": lasted[one.kernel]} for row in rows]
            if self.verbose:
                best = max(row["mean_test_score"] for row in rows)
                print(f"{one}: {best:.4f} at best, {len(rows)} tried in {lasted[one.kernel]:.1f} s")
        return tried

    def _tried(
        self, one: _Round, X: Any, positive: NDArray[np.bool_], weights: Any
    ) -> list[dict[str, Any]]:
        """The candidates of a round, judged in cross-validation."""
        classifiers = self._classifiers()
        folds = min(self.cv, int(positive.sum()), int((~positive).sum()))
        common = {
            "cv": folds,
            "scoring": self.metric,
            "n_jobs": self.n_jobs,
            "random_state": self.random_state,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of models that nobody will use
            if one.kernel == "forest":
                leaves, Cs = (int(one.number),), _LEAF_WEIGHTS
                search = TopForestClassifier(
                    min_samples_leaf=leaves, classifiers=classifiers, Cs=Cs, **common
                ).fit(X, positive, weights)
                names = ("C", "min_samples_leaf", "max_features")
                columns = [np.array(search.cv_results_[name], object).tolist() for name in names]
                params = [dict(zip(names, values, strict=True)) for values in zip(*columns)]
            else:
                own = {"gamma": one.number} if one.kernel == "rbf" else {}
                models = [m.set_params(kernel=one.kernel, tol=1e-3, **own) for m in classifiers]
                search = AtTopCV(models, {"C": _WEIGHTS}, refit=False, **common)
                search.fit(X, positive, weights)
                params = [{**each, **own} for each in search.cv_results_["params"]]
        scores = np.column_stack([search.cv_results_[f"split{i}_test_score"] for i in range(folds)])
        repeats = len(_LEAF_WEIGHTS) if one.kernel == "forest" else len(_WEIGHTS)
        return [
            {
                "kernel": one.kernel,
                "classifier": self._classifiers()[i // repeats % len(classifiers)],
                "params": params[i],
                "scores": scores[i],
                "mean_test_score": float(scores[i].mean()),
                "std_test_score": float(scores[i].std()),
            }
            for i in range(len(params))
        ]

    def _final(
        self, X: Any, positive: NDArray[np.bool_], weights: Any, best: dict[str, Any]
    ) -> Any:
        """The chosen model, fitted to all samples."""
        parameters = dict(best["params"])
        if best["kernel"] == "forest":
            model = TopForestClassifier(
                min_samples_leaf=[parameters["min_samples_leaf"]],
                max_features=[parameters["max_features"]],
                classifiers=[best["classifier"]],
                Cs=[parameters["C"]],
                n_jobs=self.n_jobs,
                random_state=self.random_state,
            )
            return model.fit(X, positive, weights)
        classifier = clone(best["classifier"]).set_params(kernel=best["kernel"], **parameters)
        steps: Any = Pipeline([("scale", _scaler(X)), ("classify", classifier)])
        given = (
            {}
            if weights is None
            else {f"{name}__sample_weight": weights for name, _ in steps.steps}
        )
        return steps.fit(X, positive, **given)


def _best(tried: list[dict[str, Any]]) -> int:
    """The candidate to take, by its number."""
    kernels = [one["kernel"] for one in tried]
    default = next(kernel for kernel in reversed(KERNELS) if kernel in kernels)
    return chosen(np.array([one["scores"] for one in tried]), kernels.index(default))


def _scaler(X: Any) -> StandardScaler:
    """Sparse samples keep their zeros."""
    return StandardScaler(with_mean=not sp.issparse(X))
