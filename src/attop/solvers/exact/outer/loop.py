"""The rounds of the exact solver, on all samples or on a part of them."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop import objectives
from attop.kernels.columns import ColumnStore
from attop.solvers.exact.outer.state import State, Store
from attop.solvers.exact.outer.working_set import (
    choose,
    choose_large,
    count_free,
    free_block,
    large_block,
)
from attop.solvers.exact.scaling import parts
from attop.solvers.exact.scaling import start as starts
from attop.solvers.exact.scaling.forecast import Forecast
from attop.solvers.exact.scaling.keepers import FullScores, ScoreKeeper
from attop.solvers.limits import TOO_MUCH, Limits, Progress
from attop.solvers.solution import Status

#: With C infinite, dual variables that sum to more than this (in units of the kernel) diverge.
DIVERGED = 1e9


class Loop:
    """Rounds on one state until its gap, as the state sees it, is small enough.

    Attributes
    ----------
    counts : dict
        Pair moves (``steps``), active parts solved (``parts``), kernel columns computed for them
        (``columns``, in units of columns of this state), and the seconds spent.
    """

    def __init__(
        self,
        state: State,
        limits: Limits,
        verbose: int,
        nested: bool = False,
        keeper: ScoreKeeper | None = None,
        forecast: Forecast | None = None,
    ) -> None:
        self.state, self.limits, self.verbose, self.nested = state, limits, verbose, nested
        self.forecast, self.last_look = forecast, limits.recorder.elapsed
        self.share = 1.0
        self.zero_value = objectives.zero_value(state.problem)
        self.tuning = state.tuning
        self.keeper: ScoreKeeper = FullScores(state) if keeper is None else keeper
        self.by_parts = not nested and state.store.n_samples >= _parts_from(state)
        self.counts: dict[str, float] = defaultdict(float)
        self.previous = np.empty(0, dtype=np.intp)
        self.active: tuple[parts.Part, Store] | None = None
        self.gap_before_block = self.gap_before_round = self.guesses_below = np.inf
        self.cost = 1
        #: Entries that pair moves have gone through.
        self.effort = 0.0
        #: Threshold of the last part that was solved: where that of the whole is likely to end.
        self.expected: float | None = None

    def begin(self, start: Any, random_state: Any) -> Status | None:
        """Go to the starting point: the given one, that of a subsample, or a small one.

        Returns a status where there is nothing left to do.
        """
        state = self.state
        if start is not None:
            self.by_parts = False  # the columns of a good start are those that will be needed
            state.set(*starts.feasible(state.problem, *start))
            if state.objective()[1] <= 0.0:  # worse than zero: ascent could run into it
                state.set(*starts.small(state.problem, self.tuning))
        elif self.by_parts and starts.worth_subsampling(state.problem, self.tuning):
            return self._begin_with_subsample(random_state)
        else:
            state.set(*starts.small(state.problem, self.tuning))
            state.rescale()  # or scores begin with the rounding of huge ones
        return None

    def _begin_with_subsample(self, random_state: Any) -> Status | None:
        """Solve a subsample, score all samples by it, and solve those that it finds active."""
        state = self.state
        began = time.perf_counter()
        part = parts.subsample(state.problem, random_state, self.tuning)
        small = State(part.problem, state.store.subset(part.rows), self.tuning)
        nested = self._nested(small, len(part.rows) / state.store.n_samples)
        status = nested.begin(None, random_state) or nested.run(self.tuning.roughly)
        self._count(nested)
        del nested
        self.counts["seconds_subsample"] += time.perf_counter() - began
        if status is Status.MAX_TIME:
            state.set(*starts.embedded(part, small, state.problem, random_state))
            return status
        # Columns as long as the active part, for a part of its samples, need memory as well.
        # It has no more times their number than the subsample is smaller.
        state.store.leave((self.tuning.share * int(np.count_nonzero(small.value))) ** 2)
        scores = self.keeper.scores_by(part, small)
        alpha, beta = starts.extended(part, small, state.problem, scores)
        if self._too_late(int(np.count_nonzero(alpha) + np.count_nonzero(beta))):
            state.set(*starts.embedded(part, small, state.problem, random_state))
            return Status.MAX_TIME
        # Competitors that it does not know are too high by its scores, and so their threshold.
        self.expected = objectives.threshold(part.problem, small.scores)
        # The columns of free variables are needed in full: by parts they are computed twice.
        many_free = count_free(small) > self.tuning.free_by_parts * len(part.rows)
        self.by_parts = not (many_free and _all_fit(state))
        del small, part
        active = self._active_part(scores, alpha, beta) if self.by_parts else None
        state.scores[:] = 0.0
        if active is not None:
            part, store = active
            small = State(part.problem, store, self.tuning)
            small.set(alpha[part.alphas], beta[part.betas])
            del scores, alpha, beta  # as long as the samples, which may be many
            if not large_block(small):  # which can go anywhere, and has less to do at bounds
                small.rescale()
            if status is Status.CONVERGED:
                status = self._solve_active(part, small, self.tuning.roughly)
            else:
                self.keeper.follow(part, small)
        else:
            state.set(alpha, beta)
            state.rescale()
        self.counts["seconds_start"] += time.perf_counter() - began
        return status if status is Status.MAX_TIME else None

    def run(self, tol: float) -> Status:
        """Rounds until the relative gap is at most `tol`."""
        idle = near = 0
        self.gap_before_free = np.inf
        best_dual = -np.inf
        progress = Progress()
        hard_margin = not np.isfinite(self.state.problem.C)
        sound = self.state.value.copy()
        while True:
            if hard_margin:
                self.state.rescale()
            primal, dual, gap = self.state.objective()
            self._report(primal, dual, gap)
            near = near + self.cost if gap <= self.tuning.nearly * tol and not self.nested else 0
            if gap <= tol or near >= self.tuning.patience:
                return Status.CONVERGED
            if hard_margin and self._diverged():
                if not np.isfinite(dual):
                    self._turn_back(sound)
                return Status.UNBOUNDED
            if not dual <= self._most():
                self._turn_back(sound)
                return Status.PRECISION if self.state.sure else Status.NOT_PSD
            sound = self.state.value.copy()
            self._look_ahead()
            status = self.limits.reached()
            if status is not None:
                return status
            idle = 0 if dual - best_dual > 1e-12 * abs(dual) else idle + 1
            best_dual = max(dual, best_dual)
            if idle >= 5 or progress.ended(primal, dual, self.cost):
                return Status.STALLED
            self._advance(idle, tol, min(gap, 1.0))

    def _most(self) -> float:
        """What no dual value exceeds, unless ``|w|^2`` can be negative.

        That of a definite kernel can by rounding alone, which leaves nothing to go by.
        """
        most = TOO_MUCH * self.zero_value
        if self.state.sure:
            return most
        total = float(np.sum(self.state.value))
        return most + 1e-12 * self.state.store.largest * total * total

    def _turn_back(self, sound: NDArray[np.float64]) -> None:
        """Return to the last sound values: beyond is nothing."""
        n = self.state.n_alphas
        self.state.set(sound[:n].copy(), sound[n:].copy())

    def _look_ahead(self) -> None:
        """Tell the limits how long one more round, and what comes after the last, will take."""
        if self.forecast is not None:
            now = self.limits.recorder.elapsed
            # Nobody knows how long the next round will take: as long as the last one.
            self.limits.ahead = now - self.last_look
            self.limits.ending = self.forecast.seconds(self.state, self.share)
            self.last_look = now

    def _too_late(self, support: int) -> bool:
        """Whether there is no time for a point with so many support vectors."""
        if self.forecast is None:
            return False
        self.limits.ending = self.forecast.seconds_of(support, 0.0, part=True)
        return self.limits.out_of_time()

    def _advance(self, idle: int, tol: float, gap: float) -> None:
        """One round, or those that solve the active part, from a point with this `gap`."""
        state = self.state
        active = None
        if self.by_parts and not idle:
            active = self._active_part(state.scores, state.alpha, state.beta)
        if active is not None:
            self.keeper.know(active[0].rows)
            small = state.restricted(*active)
            further = max(0.5 * tol, self.tuning.further * gap)
            self._solve_active(active[0], small, further)
            return
        self.keeper.settle()
        if not idle and self._free_block(tol, gap):
            return
        # Large blocks leave the last bit, which may be most of the gap, to pair moves.
        creeps = gap > self.tuning.hardly * self.gap_before_block
        size = 0 if idle or creeps else large_block(state)
        self.gap_before_block = gap if size else np.inf
        if size:
            wanted = self.tuning.accurately * tol
            state.solve_large_block(choose_large(state, size), wanted, self.limits)
            self.limits.rounds += 1
        else:
            self._round(idle, gap > self.tuning.creeping * self.gap_before_round)
            self.gap_before_round = gap

    def _free_block(self, tol: float, gap: float) -> bool:
        """A round on all free variables at once, if these are many.

        Guesses that hardly help are followed by pair moves, those that fail by some more of them.
        """
        began = time.perf_counter()
        chosen = None
        if gap <= self.guesses_below:
            chosen = free_block(self.state, self.effort)
        if chosen is None:
            self.guesses_below *= 2.0
            return False
        tolerance = max(0.1 * tol, self.tuning.loosely * gap)
        solved = self.state.solve_free_block(chosen, tolerance, self.limits)
        self.counts["seconds_rounds"] += time.perf_counter() - began
        self.guesses_below = gap * (self.tuning.creeping if solved else self.tuning.failing)
        if solved and gap >= 1.0:  # a hard margin without a feasible point: the gap says nothing
            self.guesses_below = np.inf
        if solved:
            self.cost, self.previous = 1, chosen
            self.limits.rounds += 1
        return solved

    def _active_part(
        self, scores: NDArray[np.float64], alpha: NDArray[np.float64], beta: NDArray[np.float64]
    ) -> tuple[parts.Part, Store] | None:
        """The active part and its columns, if they are so much shorter that it pays."""
        problem, previous = self.state.problem, None if self.active is None else self.active[0]
        part = parts.active(problem, scores, alpha, beta, self.tuning, previous, self.expected)
        if self.tuning.smaller * len(part.rows) > self.state.store.n_samples:
            return None
        if self.active is None or part is not previous:
            self.active = None  # its columns make room for those of the next
            self.active = part, self.state.store.subset(part.rows)
        return self.active

    def _solve_active(self, part: parts.Part, small: State, tol: float) -> Status:
        """Rounds on the active part, which the whole then follows."""
        nested = self._nested(small)
        status = nested.run(tol)
        self._count(nested)
        self.expected = objectives.threshold(part.problem, small.scores)
        self.keeper.follow(part, small)
        self.counts["parts"] += 1
        return status

    def _nested(self, small: State, share: float = 1.0) -> Loop:
        """Rounds on a part, which may be drawn as a share of all samples."""
        nested = Loop(small, self.limits, self.verbose, nested=True, forecast=self.forecast)
        nested.share, nested.effort = share, self.effort
        return nested

    def _count(self, nested: Loop) -> None:
        """Add what the rounds on a part have cost."""
        store = nested.state.store
        share = store.n_samples / self.state.store.n_samples
        computed = store.n_computed - nested.state.computed_before
        self.counts["columns"] += share * (computed + nested.counts["columns"])
        self.counts["steps"] += nested.counts["steps"]
        self.effort = nested.effort
        self.counts["seconds_rounds"] += nested.counts["seconds_rounds"]

    def _round(self, idle: int, creeping: bool) -> None:
        began = time.perf_counter()
        chosen, violation = choose(self.state, self.previous, creeping)
        # After a round without progress the subproblem is solved more accurately.
        tolerance = max(violation, 0.0) * 10.0 ** -(1 + 2 * idle)
        steps, turns, _ = self.state.solve_block(chosen, tolerance, limits=self.limits)
        self.counts["steps"] += steps
        self.effort += steps * len(chosen)
        self.cost = 1 + turns
        self.previous = chosen
        self.limits.rounds += 1
        self.counts["seconds_rounds"] += time.perf_counter() - began

    def _diverged(self) -> bool:
        extent = self.state.store.extent
        # Samples that are all alike cannot be told from each other.
        return extent == 0.0 or float(np.sum(self.state.alpha)) * extent > DIVERGED

    def _report(self, primal: float, dual: float, gap: float) -> None:
        if not self.nested:
            self.limits.recorder.add(self.limits.rounds, primal, dual, gap)
        if self.verbose:
            part = f"  part of {self.state.store.n_samples}" if self.nested else ""
            print(
                f"[attop] round {self.limits.rounds:4d}  {self.limits.recorder.elapsed:8.2f} s  "
                f"primal {primal:.6g}  dual {dual:.6g}  gap {gap:.2e}  "
                f"columns {self.state.store.n_computed}{part}",
                flush=True,
            )


def _all_fit(state: State) -> bool:
    """Whether there is room for all kernel columns."""
    store = state.store
    return isinstance(store, ColumnStore) and store.capacity >= store.n_samples


def _parts_from(state: State) -> int:
    """From how many samples on parts of them are solved first: more where columns cost little.

    And all of them fit.
    """
    store, tuning = state.store, state.tuning
    if not isinstance(store, ColumnStore) or not _all_fit(state):
        return tuning.parts_from
    return tuning.parts_from * (tuning.cheaper if store.source.work < tuning.pass_cost else 1)
