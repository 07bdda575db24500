"""The exact solver: rounds until the gap is small, and then the referee."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop import objectives
from attop._threads import with_one_blas_thread
from attop.kernels.device.gram import DeviceGram
from attop.kernels.device.store import DeviceStore
from attop.kernels.functions import Gram
from attop.kernels.matrix import MatrixStore
from attop.kernels.stores import DOUBLE, open_columns
from attop.objectives import Certificate
from attop.problem import Problem
from attop.solvers.exact.outer.loop import Loop
from attop.solvers.exact.outer.state import State, Store
from attop.solvers.exact.outer.whole import Point, is_small, solve_known, solve_whole
from attop.solvers.exact.scaling import start as starts
from attop.solvers.exact.scaling.bounded_scores import BoundedScores
from attop.solvers.exact.scaling.distinct import Merged
from attop.solvers.exact.scaling.forecast import Forecast
from attop.solvers.exact.scaling.keepers import FullScores
from attop.solvers.exact.tuning import DEFAULT, Tuning
from attop.solvers.limits import Limits
from attop.solvers.solution import Solution, Status
from attop.surrogates import refuse_unless_quadratic

#: Losses no larger than this, of a margin of 1, are rounding.
_ROUNDED = 1e-12


def solve(
    problem: Problem,
    gram: Gram,
    *,
    tol: float = 1e-4,
    max_iter: int = -1,
    max_time: float | None = None,
    cache_bytes: int = 2 * 10**9,
    start: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    random_state: Any = None,
    verbose: int = 0,
    columns: Store | MatrixStore | None = None,
    tuning: Tuning = DEFAULT,
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
    columns : ColumnStore or MatrixStore, optional
        Columns of `gram` made by `open_columns`, to use and to add to: several fits on the
        same samples share them.  `cache_bytes` is theirs then.
    tuning : Tuning
        Numbers that decide how long it takes.

    Returns
    -------
    Solution
    """
    refuse_unless_quadratic(problem.surrogate, "exact")
    limits = Limits(max_iter, max_time)
    options: dict[str, Any] = {"tol": tol, "limits": limits, "verbose": verbose, "tuning": tuning}
    merged = Merged.of(problem, gram) if columns is None else None
    if merged is None:
        return _in_threads(problem, gram, cache_bytes, start, random_state, columns, options)
    start = None if start is None else merged.start(start)
    found = _in_threads(
        merged.problem, merged.gram, cache_bytes, start, random_state, None, options
    )
    return merged.solution(found)


def _in_threads(problem: Problem, gram: Gram, *arguments: Any) -> Solution:
    """The solution with one thread of BLAS, where all that is worth it has threads of ours.

    Those of BLAS spin for a while after each call, and hold ours up.  (Fits to 10,000 images of
    MNIST take 1.0 to 1.25 times as long otherwise, to 4,000 of CIFAR10 1.05.)
    """
    if gram.kernel.explicit or isinstance(gram, DeviceGram):
        return _solve_all(problem, gram, *arguments)
    return with_one_blas_thread(_solve_all, problem, gram, *arguments)


def _solve_all(
    problem: Problem,
    gram: Gram,
    cache_bytes: int,
    start: Point | None,
    random_state: Any,
    columns: Store | MatrixStore | None,
    options: dict[str, Any],
) -> Solution:
    """The same for samples that are taken to be distinct."""
    tol, limits, tuning = options["tol"], options["limits"], options["tuning"]
    found: Solution | Point | None = None
    known = columns if isinstance(columns, MatrixStore) else None
    if problem.family.zero_is_optimal(problem):
        return _zero(problem, gram, tol, limits)
    if not np.isfinite(problem.C):
        pass  # a hard margin has a way of its own
    elif known is not None:
        found = with_one_blas_thread(solve_known, problem, known, start=start, **options)
    elif columns is None and is_small(gram, cache_bytes, tuning):
        found = with_one_blas_thread(solve_whole, problem, gram, start=start, **options)
    if isinstance(found, Solution):
        return found
    start = start if found is None else found
    options = options | {"random_state": random_state}
    if columns is not None and not isinstance(columns, MatrixStore):
        solution = _solve(problem, gram, columns, start=start, all_scores=True, **options)
        precise = columns.precision <= DOUBLE
    else:
        with open_columns(gram, tol, cache_bytes, options["verbose"]) as store:
            solution = _solve(problem, gram, store, start=start, **options)
            precise = store.precision <= DOUBLE
    hopeful = solution.status in (Status.PRECISION, Status.STALLED)
    if precise or not hopeful or limits.reached() is not None:
        return solution
    # From here on single precision does not see the way.
    with open_columns(gram, 0.0, cache_bytes, options["verbose"]) as store:
        point = solution.alpha, solution.beta
        better = _solve(problem, gram, store, start=point, **options)
    for name, value in solution.stats.items():
        if name != "support":
            better.stats[name] = better.stats.get(name, 0.0) + value
    return better


def _zero(problem: Problem, gram: Gram, tol: float, limits: Limits) -> Solution:
    """The solution where it is known to be ``w = 0``, whatever the samples are."""
    alpha, beta = starts.small(problem)
    certificate = objectives.certify(problem, gram, alpha, beta, tol=tol)
    limits.recorder.add(0, certificate.primal, certificate.dual, certificate.gap)
    return Solution(
        alpha=alpha,
        beta=beta,
        status=Status.CONVERGED if certificate.certifies(tol) else Status.PRECISION,
        history=limits.recorder.finish(),
        n_iter=0,
        stats={"support": float(np.count_nonzero(alpha) + np.count_nonzero(beta))},
        certificate=certificate,
        scores=certificate.scores,
    )


def _solve(
    problem: Problem,
    gram: Gram,
    store: Store,
    *,
    tol: float,
    limits: Limits,
    start: Any,
    random_state: Any,
    verbose: int,
    tuning: Tuning,
    all_scores: bool = False,
) -> Solution:
    """The same with the columns of a store.

    Only for several fits are all scores kept up to date: their stores keep columns anyway.
    """
    computed_before = store.n_computed
    state = State(problem, store, tuning)
    # On a device what is left takes no time.
    timed = limits.max_time is not None and not isinstance(store, DeviceStore)
    forecast = Forecast(problem, gram) if timed else None
    bounded = not all_scores and BoundedScores.applies_to(state)
    keeper = BoundedScores(state) if bounded else FullScores(state)
    solver = Loop(state, limits, verbose, keeper=keeper, forecast=forecast)
    # With a kernel that is not definite a point may run away, which is seen where it is judged.
    with nullcontext() if state.sure else np.errstate(over="ignore", invalid="ignore"):
        status = solver.begin(start, random_state)
        if status is None:
            status = solver.run(0.5 * tol)
        certificate, status = _certified(solver, gram, tol, status)
    extra = solver.keeper.n_entries / store.n_samples
    return Solution(
        alpha=state.alpha,  # which nobody else has
        beta=state.beta,
        status=status,
        history=limits.recorder.finish(),
        n_iter=limits.rounds,
        stats={
            **solver.counts,
            "columns": store.n_computed - computed_before + solver.counts["columns"] + extra,
            "support": float(np.count_nonzero(state.value)),
        },
        certificate=certificate,
        scores=state.scores if solver.keeper.knows_all else None,
    )


def _certified(solver: Loop, gram: Gram, tol: float, status: Status) -> tuple[Certificate, Status]:
    """The certificate of the final point; rounds go on where it disagrees with the solver."""
    for attempt in range(4):
        solver.active = None  # its columns make room for the scores
        solver.keeper.balance()
        if solver.keeper.refine() and status is Status.CONVERGED:
            status = solver.run(0.5 * tol)  # as long as it takes with what had been hidden
            solver.active = None
            solver.keeper.balance()
        began = time.perf_counter()
        # Where rounds can go on, it is enough to know that they have to.
        go_on = attempt < 3 and status in (Status.CONVERGED, Status.STALLED)
        certificate = _certificate(solver, gram, tol, give_up=go_on)
        solver.counts["seconds_certificate"] += time.perf_counter() - began
        wrong = status in (Status.UNBOUNDED, Status.NOT_PSD)
        if certificate.certifies(tol) and not wrong:
            return certificate, Status.CONVERGED
        share = _short_of_margin(solver.state.problem, certificate)
        hopeless = attempt == 3 or (certificate.resolution > tol and not share)
        if status not in (Status.CONVERGED, Status.STALLED) or hopeless:
            break
        # The rounding of the columns hid a violation: go on from the exact scores.
        solver.keeper.correct(certificate)
        solver.state.stretch(share)
        status = solver.run(0.5 * tol * 0.5**attempt)
    return certificate, Status.PRECISION if status == Status.CONVERGED else status


def _short_of_margin(problem: Problem, certificate: Certificate) -> float:
    """By how little positives miss the margin, where rounding alone is to blame; else 0.

    With large scales and C their losses are most of the primal value, though a point that is longer
    by as little has none.
    """
    if problem.family.free_threshold or not np.isfinite(problem.C):
        return 0.0
    known = np.isin(certificate.rows, problem.positives, assume_unique=True)
    losses = problem.surrogate.value(certificate.threshold - certificate.scores[known])
    largest = float(np.max(losses, initial=0.0))
    return 4.0 * max(largest, DOUBLE) if largest <= _ROUNDED else 0.0


def _certificate(solver: Loop, gram: Gram, tol: float, give_up: bool) -> Certificate:
    state = solver.state
    # With a linear kernel exact scores cost no more than a hint saves.
    hint = None if state.store.errors is None else solver.keeper.bounds
    return objectives.certify(
        state.problem, gram, state.alpha, state.beta, tol=tol, hint=hint, give_up=give_up
    )
