"""A classifier that chooses its parameters by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid, StratifiedKFold, check_cv
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted

from attop import pipeline
from attop._labels import TopScoreMixin, stated_pos_label
from attop._replica import all_or_nothing
from attop._verdict import warn, why_zero
from attop.base import AtTopClassifier
from attop.kernels.functions import Kernel, kernel_class
from attop.model_selection._folds import Candidate, Fold, FoldFit, Stores, Task
from attop.model_selection._parameters import (
    KERNEL_NUMBERS,
    LAMBDA,
    check_estimator,
    check_names,
    variable_parameters,
    with_parameters,
)
from attop.model_selection._results import results_table
from attop.model_selection._scoring import scorer_of
from attop.pipeline import TrainingSet
from attop.solvers.solution import Status

#: What is searched where nothing else is asked for.
DEFAULT_GRID = {LAMBDA: (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)}


class AtTopCV(TopScoreMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Choice of parameters and formulation by cross-validation with shared work.

    Each kernel column is computed once for all samples and serves every fit with that kernel: all
    values of the other parameters, all formulations and all folds.  Each fit starts from the
    solution most like it, where that is faster than to begin anew, and the samples left out are
    scored on the way.  The models are those of separate fits, up to the tolerance.

    Parameters
    ----------
    estimator : AtTopClassifier or list of them
        One or several formulations, with the parameters that stay the same.
    param_grid : dict or list of dict, default=None
        Values to try of ``"C"`` or ``"lambda"`` (``C = 1 / (lambda n_positives)`` with
        the positives of the training samples, for `SVM` all of them), ``"surrogate"``,
        ``"K"``, ``"tau"``, ``"theta"``, and of ``"gamma"``, ``"degree"`` and ``"coef0"`` of the
        kernel.  A dict serves every estimator, as far as it takes the parameters; a list has one
        for each.  None is ``lambda`` from 1e-1 to 1e-5.
    cv : int, splitter or iterable of (train, test), default=5
        The folds; an int is a number of stratified ones.
    scoring : str or callable, default="tpr_at_fpr_0.05"
        A name that `attop.metrics.get_scorer` knows; a scorer that uses decision values or
        predictions; or a function of labels (1 for positive, 0 otherwise) and scores.
        Larger is better.  Who is positive is for a scorer to know, as in `GridSearchCV`:
        those of this library ask the estimator.
    refit : bool, default=True
        Whether to fit the best candidate on all samples.
    n_jobs : int, default=None
        Processes, -1 for as many as there are cores.  Each takes some of the kernels or, where
        there are fewer of these, some of the folds, and shares kernel columns among its own fits.
        That pays for many fits of a few thousand samples.  Fits of many samples use all cores
        themselves, and each process takes as much memory as one would alone.
    verbose : int, default=0
        Whether to show a progress bar.
    random_state : int, RandomState or None, default=None
        Shuffles the samples before a number of folds is made; None keeps their order.

    Attributes
    ----------
    cv_results_ : dict of arrays
        One entry per candidate: ``estimator``, ``params``, ``param_{name}``,
        ``split{i}_test_score``, ``mean_test_score``, ``std_test_score``,
        ``rank_test_score``, ``mean_fit_time``, ``std_fit_time``, ``split{i}_dual_gap``,
        ``max_dual_gap``, ``split{i}_status``, ``n_columns``.
    best_estimator_ : AtTopClassifier
        The best candidate, fitted on all samples; only with ``refit=True``.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Its mean score.
    best_index_ : int
        Its place in `cv_results_`.
    n_splits_ : int
        Number of folds.
    classes_ : ndarray of shape (2,)
        The labels, sorted.
    pos_label_ : label
        The positive one.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has string column names.

    Notes
    -----
    ``gamma="scale"`` is computed once, from all samples, so that folds share the kernel;
    a plain loop over the folds would compute it from the training samples of each.

    A model that gives all samples the same score is judged as any other, as `GridSearchCV`
    would.  A metric that counts ties as hits, such as TPR@FPR, then takes it for perfect; the
    search warns where such a model wins.  ROC AUC, for one, gives it 1/2.

    Examples
    --------
    >>> from attop import PatMatNP, TopPush
    >>> from attop.datasets import load_ionosphere
    >>> from attop.model_selection import AtTopCV
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> search = AtTopCV([TopPush(), PatMatNP(tau=0.1)], {"C": [0.1, 1.0]}, random_state=0)
    >>> len(search.fit(X, y).cv_results_["params"])
    4
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any = None,
        *,
        cv: Any = 5,
        scoring: Any = "tpr_at_fpr_0.05",
        refit: Any = True,
        n_jobs: Any = None,
        verbose: Any = 0,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Search, and fit the best candidate on all samples.

        An error or an interrupt (KeyboardInterrupt) leaves the search as it was before.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Training samples, or their kernel matrix.
        y : array-like of shape (n_samples,)
            Labels, of two values.
        sample_weight : array-like of shape (n_samples,), default=None
            Copies of each sample, in the fits and where they are judged; None for one of each.
        groups : array-like of shape (n_samples,), default=None
            Groups of the samples, for splitters that use them.

        Returns
        -------
        self
            The search, with its best model.
        """
        estimators = self._estimators()
        for estimator in estimators:
            check_estimator(estimator, "AtTopCV")
        grids, scorer = self._grids(estimators), scorer_of(self.scoring)
        data, kernels = _read(estimators, X, y, sample_weight)
        candidates = [
            Candidate(estimator, parameters, _kernel(estimator, parameters, kernel, data))
            for estimator, grid, kernel in zip(estimators, grids, kernels)
            for parameters in ParameterGrid(grid)
        ]
        folds = self._folds(data, y, groups)
        task = Task(data, column_or_1d(y), candidates, folds, scorer)
        with Stores(task) as stores:
            fits = self._run(task, stores)
            results = results_table(candidates, fits, len(folds))
            best = int(np.argmin(results["rank_test_score"]))
            best_estimator = _refit(task, stores, best) if self.refit else None
        self._keep(data, results, best, best_estimator)
        _warn_of_search(best, fits)
        _warn_of_zeros(task, fits, None if best_estimator is None else best)
        return self

    @property
    def pos_label(self) -> Any:
        """The positive class that the estimators name; None if none does."""
        stated = map(stated_pos_label, self._estimators())
        return next((label for label in stated if label is not None), None)

    def top_score(self, X: Any) -> NDArray[np.float64]:
        """Score less threshold of the best model, high for the positive class.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples, as `AtTopClassifier.top_score` takes them.

        Returns
        -------
        ndarray of shape (n_samples,)
            Distances from the threshold.
        """
        return self._best().top_score(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The metric of the search, at the best model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights, for a metric that takes them.

        Returns
        -------
        float
            The value of `scoring`.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return scorer_of(self.scoring)(self, X, y, **weights)

    def _estimators(self) -> list[AtTopClassifier]:
        several = isinstance(self.estimator, list | tuple)
        estimators = list(self.estimator) if several else [self.estimator]
        if not estimators:
            raise ValueError("The 'estimator' parameter of AtTopCV must not be an empty list.")
        return estimators

    def _grids(self, estimators: list[AtTopClassifier]) -> list[dict[str, Any]]:
        """The grid of each estimator, checked."""
        grid = DEFAULT_GRID if self.param_grid is None else self.param_grid
        if isinstance(grid, Mapping):
            for name in grid:
                if not any(name in _variable(estimator) for estimator in estimators):
                    check_names([name], estimators[0], "AtTopCV", KERNEL_NUMBERS)
            grids = [
                {name: grid[name] for name in grid if name in _variable(estimator)}
                for estimator in estimators
            ]
        else:
            grids = [dict(one) for one in grid]
            if len(grids) != len(estimators):
                raise ValueError(
                    "The 'param_grid' parameter of AtTopCV must be a dict or a list of as many "
                    f"dicts as there are estimators, {len(estimators)}. Got {len(grids)} instead."
                )
        for estimator, one in zip(estimators, grids):
            check_names(one, estimator, "AtTopCV", KERNEL_NUMBERS)
        return grids

    def _folds(self, data: TrainingSet, y: Any, groups: Any) -> list[Fold]:
        cv, rows = self.cv, np.arange(len(data.positive))
        if isinstance(cv, Integral) and self.random_state is not None:
            cv = StratifiedKFold(int(cv), shuffle=True, random_state=self.random_state)
        splitter = check_cv(cv, data.positive, classifier=True)
        folds = [(rows[train], rows[test]) for train, test in splitter.split(data.X, y, groups)]
        if not folds:
            raise ValueError("The 'cv' parameter of AtTopCV gave no folds.")
        return folds

    def _run(self, task: Task, stores: Stores) -> list[FoldFit]:
        """All fits: with the columns of `stores`, or in processes of their own."""
        units = task.units(joblib.effective_n_jobs(self.n_jobs))
        source = stores.fits(units[0]) if len(units) == 1 else task.fits(units, self.n_jobs)
        total = len(task.candidates) * len(task.folds)
        fits = []
        with _progress(total) if self.verbose else nullcontext(lambda: None) as advance:
            for fit in source:
                fits.append(fit)
                advance()
        return fits

    def _keep(self, data: TrainingSet, results: Any, best: int, best_estimator: Any) -> None:
        for name in ("feature_names_in_", "best_estimator_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self.__dict__.update(data.seen)
        if best_estimator is not None:
            self.best_estimator_ = best_estimator
        self.cv_results_ = results
        self.best_index_ = best
        self.best_params_ = results["params"][best]
        self.best_score_ = float(results["mean_test_score"][best])
        self.n_splits_ = sum(1 for name in results if name.endswith("_status"))

    def _best(self) -> AtTopClassifier:
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("AtTopCV was fitted with refit=False and has no best_estimator_.")
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        parts = [get_tags(estimator).input_tags for estimator in self._estimators()]
        tags.input_tags.sparse = all(part.sparse for part in parts)
        tags.input_tags.pairwise = all(part.pairwise for part in parts)
        return tags


def _read(
    estimators: list[AtTopClassifier], X: Any, y: Any, sample_weight: Any
) -> tuple[TrainingSet, list[Kernel]]:
    """The samples, and the kernel of each estimator on them."""
    if len({kernel_class(estimator.kernel).precomputed for estimator in estimators}) > 1:
        raise ValueError("AtTopCV cannot mix kernel='precomputed' with other kernels.")
    kernels, labels = [], set()
    for estimator in estimators:
        data = pipeline.prepare(estimator, X, y, sample_weight)
        kernels.append(data.kernel)
        labels.add(data.seen["pos_label_"])
    if len(labels) > 1:
        raise ValueError("The estimators of AtTopCV must agree in their 'pos_label'.")
    return data, kernels


def _variable(estimator: AtTopClassifier) -> tuple[str, ...]:
    """Names of the parameters that a search may vary."""
    return (*variable_parameters(estimator), *KERNEL_NUMBERS)


def _kernel(
    estimator: AtTopClassifier, parameters: Mapping[str, Any], kernel: Kernel, data: TrainingSet
) -> Kernel:
    """The kernel of a candidate, whose estimator has the given one without its parameters."""
    own = {name: parameters[name] for name in KERNEL_NUMBERS if name in parameters}
    if not own:
        return kernel
    model = with_parameters(estimator, own, 1.0)  # there is no lambda among them
    return pipeline.kernel_of(model, data.X, data.sample_weight)


def _refit(task: Task, stores: Stores, best: int) -> AtTopClassifier:
    """The best candidate, fitted to all samples."""
    candidate, data = task.candidates[best], task.data
    shared = stores.of(candidate.kernel)
    n = data.n_losses(candidate.estimator.formulation)
    model = with_parameters(candidate.estimator, candidate.parameters, n)
    data = replace(data, kernel=candidate.kernel)
    shared.forget()  # the folds were on fewer rows
    problem = pipeline.problem_of(model, data)
    shared.fit(model, data, problem, start=stores.start(best, problem))
    return model


def _warn_of_search(best: int, fits: list[FoldFit]) -> None:
    missed = [fit for fit in fits if fit.status is not Status.CONVERGED]
    if missed:
        warn(
            f"{len(missed)} of {len(fits)} fits of AtTopCV are not certified optimal; the first: "
            f"{missed[0].status}. See 'max_dual_gap' and the statuses in cv_results_.",
            ConvergenceWarning,
        )
    n_tied = sum(fit.tied for fit in fits if fit.candidate == best)
    if n_tied:
        warn(
            f"The best candidate of AtTopCV gave the same score to all samples left out, in "
            f"{n_tied} of its fits: metrics that count ties as hits take that for perfect. Try a "
            'larger C (a smaller lambda), K or tau, or a metric that does not, such as "roc_auc".',
        )


def _warn_of_zeros(task: Task, fits: list[FoldFit], refitted: int | None) -> None:
    """Say which candidates had the optimum ``w = 0`` in every fold; `refitted` says it itself."""
    tried = range(len(task.candidates))
    zeros = [i for i in tried if all(fit.zero for fit in fits if fit.candidate == i)]
    if not zeros or refitted in zeros:
        return
    data, first = task.data, task.candidates[zeros[0]]
    share = float(np.mean(data.positive))
    warn(
        f"{len(zeros)} of {len(tried)} candidates of AtTopCV had the optimum w = 0 in every fold, "
        f"such as {first.estimator!r} with {first.parameters}: all samples get the same score. "
        f"{why_zero(first.estimator.formulation, share)}"
    )


def _progress(total: int) -> AbstractContextManager[Any]:
    """A progress bar; what it yields is called after each fit."""
    from rich.progress import Progress

    @contextmanager
    def shown() -> Any:
        with Progress() as progress:
            task = progress.add_task("AtTopCV", total=total)
            yield lambda: progress.advance(task)

    return shown()
