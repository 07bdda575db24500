"""How long the rest of a fit will take: what keeps `max_time` with the certificate included."""

from __future__ import annotations

import time

import numpy as np

from attop import objectives
from attop._threads import n_threads
from attop.kernels.functions import Gram
from attop.problem import Problem
from attop.solvers.exact import parts
from attop.solvers.exact.state import State

#: Samples of the block by which the time of a kernel entry is measured.
_TRIED = 256
#: A column entry, in single precision and by larger products, takes this share of the time.
_SINGLE = 0.25


class Forecast:
    """Seconds that the certificate of a point will take, and what has to come before it.

    Parameters
    ----------
    problem : Problem
        The problem.
    gram : Gram
        The kernel matrix, of which a small block is computed to take the time.
    """

    def __init__(self, problem: Problem, gram: Gram) -> None:
        self.least = problem.K  # betas that a point has
        self.linear, self.n_samples = gram.kernel.name == "linear", gram.n_samples
        rows = np.arange(min(_TRIED, gram.n_samples))
        if self.linear:
            began = time.perf_counter()
            gram.X[rows].astype(np.float64).sum()
            # Two passes over all samples: one for the weights, one for the scores.
            per_row = (time.perf_counter() - began) / len(rows)
            self.pass_seconds = 4.0 * per_row * self.n_samples
            return
        gram.block(rows, rows)  # what is slow the first time only
        began = time.perf_counter()
        gram.block(rows, rows)
        threads = min(gram.kernel.threads, n_threads())
        self.entry_seconds = (time.perf_counter() - began) / len(rows) ** 2 / threads

    def seconds(self, state: State) -> float:
        """For the certificate of the point; and, if it is one of a part, to score all samples."""
        if self.linear:
            return self.pass_seconds
        support = max(int(np.count_nonzero(state.value)), self.least)
        entries = support * (0.5 * support + self._near(state))
        if state.store.n_samples < self.n_samples:
            entries += _SINGLE * support * self.n_samples
        return float(entries * self.entry_seconds)

    @staticmethod
    def _near(state: State) -> int:
        """How many samples without a dual variable are where they matter."""
        problem, scores = state.problem, state.scores
        t = objectives.threshold(problem, scores)
        room = scores[problem.positives] - t <= 1.0
        above = scores[problem.competitors] >= parts.level(problem, scores, t)
        idle = np.count_nonzero(room & (state.alpha == 0.0))
        return int(idle + np.count_nonzero(above & (state.beta == 0.0)))
