"""Fits on the same kernel matrix that share its columns and start from each other."""

from __future__ import annotations

from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from attop import pipeline
from attop.base import AtTopClassifier
from attop.families.base import Cap
from attop.families.largest import competes
from attop.kernels.device.gram import DeviceGram
from attop.kernels.functions import Gram
from attop.kernels.matrix import KnownGram, MatrixStore
from attop.model_selection._memory import RememberingGram
from attop.model_selection._starts import Point, Solved, nearest, start_from
from attop.objectives import support
from attop.pipeline import TrainingSet
from attop.problem import Problem
from attop.solvers import load
from attop.solvers.solution import Solution


class SharedFits:
    """Solves problems on one kernel matrix; each column is computed once.

    Every fit starts from the solution of the nearest parameters on the same rows.  With many
    samples a start from another fold was measured too, and cost more rounds than it saved.

    To be used as a context manager, which ends the threads of the column store.

    Parameters
    ----------
    gram : Gram
        Kernel matrix of all samples.  A problem on some of them, such as the training
        samples of a fold, refers to their rows.
    tol : float
        Tightest tolerance of the fits to come.
    cache_size : float
        Megabytes for kernel columns; a third as many again may go into entries for the
        certificates.
    """

    def __init__(self, gram: Gram, tol: float, cache_size: float) -> None:
        n_bytes = int(cache_size * 2**20)
        self.gram: Gram
        self._solved: list[Solved] = []
        # Loaded here: the compiled solver makes `import attop` slow.
        if load("attop.solvers.exact.outer.whole").is_small(gram, n_bytes):
            known = KnownGram.of(gram)
            self.gram, self.columns = known, MatrixStore(known)
        else:
            self.gram = RememberingGram.with_memory(gram, n_bytes // 6)
            self.columns = load("attop.kernels.stores").open_columns(gram, tol, n_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.columns.close()

    def forget(self) -> None:
        """Drop the known solutions, but not the columns: problems on other rows follow."""
        self._solved.clear()

    def solve(
        self, estimator: AtTopClassifier, problem: Problem, start: Point | None = None
    ) -> Solution:
        """Solve the problem as `estimator` would, from `start` or the nearest known solution."""
        known = nearest(problem, self._solved)
        if self._faster_anew(problem):
            start = None
        elif known is not None and start is None:
            start = start_from(known, problem)
        # Estimators without a dual have no columns to share and do not come here.
        solution = cast(
            Solution,
            pipeline.solve(estimator, problem, self.gram, start=start, columns=self.columns),
        )
        if isinstance(self.gram, RememberingGram):
            self.gram.remember(support_rows(problem, solution))
        self._solved.append(Solved(problem, solution))
        return solution

    def _faster_anew(self, problem: Problem) -> bool:
        """Whether a fit from the start of its own kind takes less time than from another's end."""
        if isinstance(self.gram, KnownGram):
            # PatMat with the hinge, 500 and 800 samples, searches of 12 candidates: 0.52 to 0.90 of
            # the processor time in five cases of six.
            return problem.betas.cap is Cap.PRICED and competes(problem, problem.positives)
        # On a device hard margins: of a split of CIFAR10 six of them took 9 s, and 30 s from the
        # solutions of the largest C.
        return isinstance(self.gram, DeviceGram) and not np.isfinite(problem.C)

    def fit(
        self,
        estimator: AtTopClassifier,
        data: TrainingSet,
        problem: Problem,
        name: str = "",
        start: Point | None = None,
    ) -> None:
        """Fit `estimator` in place to all samples; warnings call it `name`."""
        solution = self.solve(estimator, problem, start)
        pipeline.finish(estimator, data, problem, solution, gram=self.gram, name=name)


def support_rows(problem: Problem, solution: Solution) -> NDArray[np.intp]:
    """Rows of the support vectors."""
    return support(problem, solution.alpha, solution.beta)[0]
