"""The fits of a search: every candidate on the training samples of every fold."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
from numpy.typing import NDArray

from attop import objectives, pipeline
from attop._model import DualModel, dual_model
from attop._scores import Scores
from attop.base import AtTopClassifier
from attop.kernels.functions import Gram, Kernel
from attop.model_selection._parameters import with_parameters
from attop.model_selection._scoring import Decided, Scorer
from attop.model_selection._shared import SharedFits
from attop.model_selection._starts import walking_order
from attop.pipeline import TrainingSet
from attop.problem import Problem
from attop.solvers.solution import Status

#: Rounding error of single precision, in which a solver may keep its scores, in that of double.
_SINGLE = 2.0**20

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
#: A kernel and the number of a fold.
Unit = tuple[Kernel, int]


class Candidate(NamedTuple):
    """An estimator, values of its parameters, and its kernel on all samples."""

    estimator: AtTopClassifier
    parameters: dict[str, Any]
    kernel: Kernel


class FoldFit(NamedTuple):
    """One fit of a search, judged on the samples left out; `tied` where they all score alike.

    It is `zero` where the optimum is ``w = 0``, up to the tolerance.
    """

    candidate: int
    fold: int
    score: float
    tied: bool
    zero: bool
    seconds: float
    gap: float
    status: Status
    columns: int


@dataclass(frozen=True)
class Task:
    """Samples, candidates, folds and scorer: all that the fits need.

    Attributes
    ----------
    data : TrainingSet
        All samples.
    y : ndarray
        Their labels.
    candidates : list of Candidate
        What to fit.
    folds : list of (train, test)
        Rows to fit on and rows to judge by.
    scorer : callable
        The judge.
    """

    data: TrainingSet
    y: NDArray[Any]
    candidates: list[Candidate]
    folds: list[Fold]
    scorer: Scorer

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels that occur; usually there is one."""
        return list(dict.fromkeys(candidate.kernel for candidate in self.candidates))

    def units(self, jobs: int) -> list[list[Unit]]:
        """The fits in parts for so many processes: by kernels, and if there are few by folds."""
        folds = list(range(len(self.folds)))
        if jobs == 1:
            return [[(kernel, fold) for kernel in self.kernels for fold in folds]]
        n_parts = min(len(folds), -(-jobs // len(self.kernels)))
        parts = np.array_split(folds, n_parts)
        return [[(kernel, int(i)) for i in part] for kernel in self.kernels for part in parts]

    def fits(self, units: list[list[Unit]], n_jobs: int | None) -> Iterator[FoldFit]:
        """All fits, as they are finished, in as many processes as asked."""
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        for finished in parallel(joblib.delayed(_fits_of)(self, unit) for unit in units):
            yield from finished


class Stores:
    """The shared fits of a task, those of one kernel at a time."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._stack = ExitStack()
        self._place: tuple[Kernel, int | None] | None = None
        self._models: dict[tuple[int, float], AtTopClassifier] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, kernel: Kernel, fold: int | None = None) -> SharedFits:
        """The shared fits of a kernel, on a fold if it learns; those before make room for them."""
        place = kernel, fold if kernel.learns else None
        if place != self._place:
            self._stack.close()
            users = [c.estimator for c in self.task.candidates if c.kernel == kernel]
            tol, megabytes = min(u.tol for u in users), max(u.cache_size for u in users)
            rows = None if place[1] is None else np.sort(self.task.folds[place[1]][0])
            shared = SharedFits(self.task.data.gram_of(kernel, rows), tol, megabytes)
            self._shared = self._stack.enter_context(shared)
            self._place = place
        return self._shared

    def fits(self, units: list[Unit]) -> Iterator[FoldFit]:
        """The fits of some kernels and folds, each fold in the order that is cheapest."""
        for kernel, fold in units:
            shared = self.of(kernel, fold)
            shared.forget()
            train = np.sort(self.task.folds[fold][0])
            chosen = [i for i, c in enumerate(self.task.candidates) if c.kernel == kernel]
            models = [self._model(i, train) for i in chosen]
            problems = [pipeline.problem_of(model, self.task.data, train) for model in models]
            for i in walking_order(problems):
                yield self._fit(shared, chosen[i], fold, models[i], problems[i])

    def _model(self, i: int, train: NDArray[np.intp]) -> AtTopClassifier:
        """A candidate, with the C that its lambda means on the samples of a fold."""
        candidate, data = self.task.candidates[i], self.task.data.subset(train)
        there = slice(None) if data.sample_weight is None else data.sample_weight > 0.0
        if len(np.unique(data.positive[there])) < 2:
            raise ValueError("The training samples of every fold must be of both classes.")
        n = data.n_losses(candidate.estimator.formulation)
        if (i, n) not in self._models:
            self._models[i, n] = with_parameters(candidate.estimator, candidate.parameters, n)
        return self._models[i, n]

    def _fit(
        self, shared: SharedFits, i: int, fold: int, model: AtTopClassifier, problem: Problem
    ) -> FoldFit:
        began = time.perf_counter()
        solution = shared.solve(model, problem)
        seconds = time.perf_counter() - began
        found = dual_model(problem, shared.gram, solution, model.tol)
        test = self.task.folds[fold][1]
        scores = _top_scores(shared.gram, problem, found, test)
        tied, score = bool(np.ptp(scores) == 0.0), self._score(scores, test)
        certificate, columns = found.solution.certificate, int(solution.stats.get("columns", 0))
        zero = objectives.relative_gap(found.zero, certificate.dual) <= model.tol
        gap = certificate.gap
        return FoldFit(i, fold, score, tied, zero, seconds, gap, found.status, columns)

    def _score(self, scores: NDArray[np.float64], test: NDArray[np.intp]) -> float:
        """What the scorer says of the rows `test`."""
        seen, weights = self.task.data.seen, self.task.data.sample_weight
        judged = Decided(scores, seen["classes_"], seen["pos_label_"])
        weights = None if weights is None else weights[test]
        return judged.score_by(self.task.scorer, self.task.y[test], weights)


def _top_scores(
    gram: Gram, problem: Problem, model: DualModel, test: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Scores less threshold of the rows `test`, as the fitted model has them."""
    solution = model.solution
    assert solution.scores is not None  # the exact solver always has them
    kept = solution.scores[test]
    if len(model.support) and np.ptp(kept) > _SINGLE * model.rounding:
        return kept - (objectives.threshold(problem, solution.scores) - model.rounding)
    # What the solver has kept may be off by more than the scores differ.
    exact = Scores(gram, model.support, model.coefficients)
    exact.compute(test)
    return exact.values[test] - model.threshold


def _fits_of(task: Task, units: list[Unit]) -> list[FoldFit]:
    """Some of the fits, in one process with kernel columns of its own."""
    with Stores(task) as stores:
        return list(stores.fits(units))
