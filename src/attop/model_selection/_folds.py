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
from attop.kernels.matrix import KnownGram
from attop.model_selection._parameters import LAMBDA, with_parameters
from attop.model_selection._scoring import Decided, Scorer
from attop.model_selection._shared import SharedFits
from attop.model_selection._starts import Point, Solved, start_from_folds, walking_order
from attop.pipeline import TrainingSet
from attop.problem import Problem
from attop.solvers.solution import Status

#: Rounding error of single precision, in which a solver may keep its scores, in that of double.
_SINGLE = 2.0**20
#: Fits of fewer dual variables are over before a start from other folds would have been found.
_WORTH_A_START = 200

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
        self._solved: dict[int, list[Solved]] = {}

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
            data = self._training(train)
            models = [self._model(i, data) for i in chosen]
            problems = [_problem(model, data, train) for model in models]
            order = walking_order(problems)
            start = self._first(chosen[order[0]], problems[order[0]])
            for i in order:
                yield self._fit(shared, chosen[i], fold, models[i], problems[i], start)
                start = None

    def start(self, i: int, problem: Problem) -> Point | None:
        """Where the fit of a candidate to all samples begins, if its folds were few samples.

        (PatMatNP with 500 samples, C = 100: 3 ms instead of 20 to 70.)
        """
        return self._from_folds(self._solved.get(i, []), problem)

    def _first(self, i: int, problem: Problem) -> Point | None:
        """Where the first fit of a fold begins, if an earlier one was of few samples.

        (500 samples, 12 candidates, 5 folds: searches take 0.89 to 1.02 times as long.  With such a
        start for all others, which have a solution on their own rows, 1.1 to 1.3 times.)
        """
        return self._from_folds(self._solved.get(i, [])[-1:], problem)

    def _from_folds(self, solved: list[Solved], problem: Problem) -> Point | None:
        """A start from these solutions, if there are any and it pays."""
        worth = bool(solved) and len(problem.rows) >= _WORTH_A_START
        return start_from_folds(solved, problem) if worth else None

    def _training(self, train: NDArray[np.intp]) -> TrainingSet:
        """Labels and weights of the training samples of a fold, which are of both classes."""
        data = self.task.data.subset(train)
        there = slice(None) if data.sample_weight is None else data.sample_weight > 0.0
        if len(np.unique(data.positive[there])) < 2:
            raise ValueError("The training samples of every fold must be of both classes.")
        return data

    def _model(self, i: int, data: TrainingSet) -> AtTopClassifier:
        """A candidate, with the C that its lambda means on the samples of a fold."""
        estimator, parameters, _ = self.task.candidates[i]
        n = data.n_losses(estimator.formulation) if LAMBDA in parameters else 1.0
        if (i, n) not in self._models:
            self._models[i, n] = with_parameters(estimator, parameters, n)
        return self._models[i, n]

    def _fit(
        self,
        shared: SharedFits,
        i: int,
        fold: int,
        model: AtTopClassifier,
        problem: Problem,
        start: Point | None,
    ) -> FoldFit:
        began = time.perf_counter()
        solution = shared.solve(model, problem, start)
        seconds = time.perf_counter() - began
        if isinstance(shared.gram, KnownGram) and np.isfinite(problem.C):
            self._solved.setdefault(i, []).append(Solved(problem, solution))
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


def _problem(model: AtTopClassifier, data: TrainingSet, train: NDArray[np.intp]) -> Problem:
    """The problem on the training samples of a fold, by their rows among all."""
    within: Problem = pipeline.problem_of(model, data)
    return within._replace(rows=train[within.rows])


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
