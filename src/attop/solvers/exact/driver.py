"""The rounds of the exact solver: choose a block, solve it, look at the gap, certify."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from attop import objectives
from attop.kernels.columns import ColumnStore, Workers, column_source
from attop.kernels.functions import Gram
from attop.kernels.linear import LinearStore
from attop.objectives import Certificate
from attop.problem import Problem
from attop.solvers.exact import start as starts
from attop.solvers.exact.state import State
from attop.solvers.exact.working_set import NEW_COLUMNS, adapted, choose
from attop.solvers.solution import HistoryRecorder, Solution, Status

Store = ColumnStore | LinearStore

#: Up to so many samples the columns are kept in double precision.
DOUBLE_UP_TO = 2048
#: A tolerance below this needs columns in double precision.
DOUBLE_BELOW = 1e-5
#: Bound on the error of scores, in units of the rounding of columns and of what they sum.
SCORE_ERROR = 8.0
#: From so many samples on, a subsample is solved first.
SUBSAMPLE_FROM = 4096
#: With C infinite, dual variables that sum to more than this (in units of the kernel) diverge.
DIVERGED = 1e9


@dataclass
class Limits:
    """When to stop at the latest."""

    max_iter: int
    max_time: float | None
    recorder: HistoryRecorder = field(default_factory=HistoryRecorder)
    rounds: int = 0

    def reached(self) -> Status | None:
        """Which limit has been reached, if any."""
        if 0 <= self.max_iter <= self.rounds:
            return Status.MAX_ITER
        if self.max_time is not None and self.recorder.elapsed >= self.max_time:
            return Status.MAX_TIME
        return None


def solve(
    problem: Problem,
    gram: Gram,
    *,
    tol: float = 1e-4,
    max_iter: int = -1,
    max_time: float | None = None,
    cache_bytes: int = 2 * 10**9,
    start: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    random_state=None,
    verbose: int = 0,
    columns: Store | None = None,
) -> Solution:
    """Solve the dual to a certified relative gap of `tol`.

    Parameters
    ----------
    problem : Problem
        The dual problem.
    gram : Gram
        Its kernel matrix.
    tol : float
        Relative duality gap, judged by `attop.objectives.certify`.
    max_iter : int
        Bound on the rounds, -1 for none.
    max_time : float, optional
        Bound on the seconds.
    cache_bytes : int
        Budget for kernel columns.
    start : (alpha, beta), optional
        Where to begin; made feasible if it is not.
    random_state : int, RandomState or None
        Draws the subsample that large problems begin with.
    verbose : int
        Print a line per round.
    columns : ColumnStore, optional
        Columns of `gram` made by `open_columns`, to use and to add to: several fits on the
        same samples share them.  `cache_bytes` is theirs then.

    Returns
    -------
    Solution
    """
    limits = Limits(max_iter, max_time)
    store = open_columns(gram, tol, cache_bytes) if columns is None else columns
    computed_before = store.n_computed
    try:
        state = State(problem, store)
        solver = _Rounds(state, limits, verbose)
        status = solver.begin(start, random_state)
        if status is None:
            status = solver.run(0.5 * tol)
        certificate, status = _certified(solver, gram, tol, status)
    finally:
        if columns is None:
            store.close()
    return Solution(
        alpha=state.alpha.copy(),
        beta=state.beta.copy(),
        status=status,
        history=limits.recorder.finish(),
        n_iter=limits.rounds,
        stats={
            "columns": float(store.n_computed - computed_before),
            "steps": float(solver.steps),
            "support": float(np.count_nonzero(state.value)),
            **solver.seconds,
        },
        certificate=certificate,
        scores=state.scores,
    )


def open_columns(gram: Gram, tol: float = 1e-4, n_bytes: int = 2 * 10**9) -> Store:
    """A store for the columns of `gram`, precise enough for fits to the tolerance `tol`.

    To be closed by its `close` method, or used as a context manager.
    """
    if gram.kernel.name == "linear":
        return LinearStore(gram.X, Workers())
    double = gram.n_samples <= DOUBLE_UP_TO or tol < DOUBLE_BELOW
    workers = Workers()
    source = column_source(gram, np.float64 if double else np.float32, workers)
    return ColumnStore(source, n_bytes, workers)


class _Rounds:
    """Rounds on one state until its gap, as the state sees it, is small enough."""

    def __init__(self, state: State, limits: Limits, verbose: int) -> None:
        self.state, self.limits, self.verbose = state, limits, verbose
        self.steps = 0
        self.seconds: dict[str, float] = {}
        self.previous = np.empty(0, dtype=np.intp)
        self.new_columns = NEW_COLUMNS

    def begin(self, start, random_state) -> Status | None:
        """Go to the starting point: the given one, that of a subsample, or a small one."""
        state = self.state
        n = state.store.n_samples
        if start is not None:
            state.set(*starts.feasible(state.problem, *start))
            if state.objective()[1] <= 0.0:  # worse than zero: ascent could run into it
                state.set(*starts.small(state.problem, random_state))
        elif n >= SUBSAMPLE_FROM and starts.worth_subsampling(state.problem):
            return self._begin_with_subsample(random_state)
        else:
            state.set(*starts.small(state.problem, random_state))
        return None

    def _begin_with_subsample(self, random_state) -> Status | None:
        state = self.state
        began = time.perf_counter()
        part = starts.Subsample.draw(state.problem, random_state)
        store = state.store.subset(part.rows)
        small = State(part.problem, store)
        small.set(*starts.small(part.problem, random_state))
        rounds = _Rounds(small, Limits(-1, self.limits.max_time), 0)
        status = rounds.run(1e-2)
        self.seconds["seconds_subsample"] = time.perf_counter() - began
        self.seconds["columns_subsample"] = float(store.n_computed)
        starts.extend(part, small, state)
        self.seconds["seconds_start"] = time.perf_counter() - began
        return status if status in (Status.INTERRUPTED, Status.MAX_TIME) else None

    def run(self, tol: float) -> Status:
        """Rounds until the relative gap is at most `tol`."""
        state, limits = self.state, self.limits
        idle = 0
        best_dual = -np.inf
        hard_margin = not np.isfinite(state.problem.C)
        try:
            while True:
                if hard_margin:
                    state.rescale()
                primal, dual, gap = state.objective()
                limits.recorder.add(limits.rounds, primal, dual, gap)
                self._report(primal, dual, gap)
                if gap <= tol:
                    return Status.CONVERGED
                if hard_margin and self._diverged():
                    return Status.UNBOUNDED
                status = limits.reached()
                if status is not None:
                    return status
                idle = 0 if dual > best_dual + 1e-12 * abs(best_dual) else idle + 1
                best_dual = max(dual, best_dual)
                if idle >= 5:
                    return Status.STALLED
                self._round(idle)
        except KeyboardInterrupt:
            return Status.INTERRUPTED

    def _round(self, idle: int) -> None:
        began = time.perf_counter()
        chosen, violation = choose(self.state, self.previous, self.new_columns)
        fresh = chosen[~self.state.store.cached(self.state.rows[chosen])]
        # After a round without progress the subproblem is solved more accurately.
        tolerance = max(violation, 0.0) * 10.0 ** -(1 + 2 * idle)
        self.steps += self.state.solve_block(chosen, tolerance)
        self.previous = chosen
        if len(fresh):
            useful = np.count_nonzero(self.state.value[fresh]) / len(fresh)
            self.new_columns = adapted(self.new_columns, useful)
        self.limits.rounds += 1
        self.seconds["seconds_rounds"] = (
            self.seconds.get("seconds_rounds", 0.0) + time.perf_counter() - began
        )

    def _diverged(self) -> bool:
        state = self.state
        scale = max(float(np.max(state.store.diagonal)), 1.0)
        return float(np.sum(state.alpha)) * scale > DIVERGED

    def _report(self, primal: float, dual: float, gap: float) -> None:
        if self.verbose:
            print(
                f"[attop] round {self.limits.rounds:4d}  {self.limits.recorder.elapsed:8.2f} s  "
                f"primal {primal:.6g}  dual {dual:.6g}  gap {gap:.2e}  "
                f"columns {self.state.store.n_computed}",
                flush=True,
            )


def _certified(
    solver: _Rounds, gram: Gram, tol: float, status: Status
) -> tuple[Certificate, Status]:
    """The certificate of the final point; rounds go on where it disagrees with the solver."""
    state = solver.state
    for attempt in range(4):
        began = time.perf_counter()
        certificate = _certificate(state, gram)
        spent = solver.seconds.get("seconds_certificate", 0.0)
        solver.seconds["seconds_certificate"] = spent + time.perf_counter() - began
        if certificate.certifies(tol) and status not in (Status.INTERRUPTED, Status.UNBOUNDED):
            return certificate, Status.CONVERGED
        if status not in (Status.CONVERGED, Status.STALLED) or attempt == 3:
            break
        # The rounding of the columns hid a violation: go on from the exact scores.
        _correct_scores(state, certificate)
        status = solver.run(0.5 * tol * 0.5**attempt)
    return certificate, Status.PRECISION if status == Status.CONVERGED else status


def _certificate(state: State, gram: Gram) -> Certificate:
    problem, store = state.problem, state.store
    if isinstance(store, LinearStore):  # exact scores cost no more than a hint saves
        return objectives.certify(problem, gram, state.alpha, state.beta)
    scale = max(float(np.max(np.abs(store.diagonal))), 1.0)
    bound = SCORE_ERROR * max(store.precision, 1e-13) * scale * float(np.sum(state.value))
    return objectives.certify(
        problem, gram, state.alpha, state.beta, scores=state.scores, score_error=bound
    )


def _correct_scores(state: State, certificate: Certificate) -> None:
    """Put the exact scores into the state; the others are corrected by their common shift."""
    rows = certificate.rows
    if len(rows) == 0:
        return
    offset = float(np.median(certificate.scores - state.scores[rows]))
    state.scores += offset
    state.scores[rows] = certificate.scores
