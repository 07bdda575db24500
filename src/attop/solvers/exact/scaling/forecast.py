"""How long the rest of a fit will take: what keeps `max_time` with the certificate included."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from attop import objectives
from attop._threads import n_threads
from attop.kernels.functions import Gram
from attop.problem import Problem
from attop.solvers.exact.outer.state import State

#: Samples of the block by which the time of a kernel entry is measured.
_TRIED = 256
#: So often it is measured.
_TRIES = 4
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
        self.least = problem.betas.K  # betas that a point has
        self.linear, self.n_samples = gram.kernel.explicit, gram.n_samples
        rows = np.arange(min(_TRIED, gram.n_samples))
        if self.linear:
            began = time.perf_counter()
            gram.X[rows].astype(np.float64).sum()
            # Two passes over all samples: one for the weights, one for the scores.
            per_row = (time.perf_counter() - began) / len(rows)
            self.pass_seconds = 4.0 * per_row * self.n_samples
            return
        threads = min(gram.kernel.threads, n_threads())
        # The shortest of some, since others may want the processor at the same time.
        shortest = min(_seconds_of_block(gram, rows) for _ in range(_TRIES))
        self.entry_seconds = shortest / len(rows) ** 2 / threads

    def seconds(self, state: State, share: float = 1.0) -> float:
        """For the certificate of the point; and, if it is one of a part, to score all samples.

        A part with this `share` of the samples has as small a share of those that matter.
        """
        support = int(np.count_nonzero(state.value))
        part = state.store.n_samples < self.n_samples
        return self.seconds_of(support, self._near(state) / share, part)

    def seconds_of(self, support: int, near: float, part: bool) -> float:
        """The same of so many support vectors, and other samples that matter."""
        if self.linear:
            return self.pass_seconds
        support = max(support, self.least)
        entries = support * (0.5 * support + min(near, self.n_samples))
        if part:
            entries += _SINGLE * support * self.n_samples
        return float(entries * self.entry_seconds)

    @staticmethod
    def _near(state: State) -> int:
        """How many samples without a dual variable are where they matter."""
        problem, scores = state.problem, state.scores
        t = objectives.threshold(problem, scores)
        room = scores[problem.positives] - t <= 1.0
        competing = scores[problem.competitors]
        weights = problem.competitor_weights
        above = competing >= problem.family.level(problem, competing, weights, t)
        idle = np.count_nonzero(room & (state.alpha == 0.0))
        return int(idle + np.count_nonzero(above & (state.beta == 0.0)))


def _seconds_of_block(gram: Gram, rows: NDArray[np.intp]) -> float:
    """How long it takes to compute the entries of a block."""
    began = time.perf_counter()
    gram.block(rows, rows)
    return time.perf_counter() - began
