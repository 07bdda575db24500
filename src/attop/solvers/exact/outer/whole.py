"""Small problems: the kernel matrix as a whole, all variables in one block, one certificate.

Where there are few samples, most of the time of a fit would go into what large ones need: columns
that come and go, working sets, bounds of scores.  Here the block has all variables, and the
referee the same kernel entries as the solver.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop import objectives
from attop._weights import are_unit
from attop.kernels.gram import Gram
from attop.kernels.matrix import KnownGram, MatrixStore
from attop.objectives import Certificate
from attop.problem import Problem
from attop.solvers.exact.outer.state import State
from attop.solvers.exact.scaling import start as starts
from attop.solvers.exact.tuning import DEFAULT, Tuning
from attop.solvers.limits import Limits
from attop.solvers.solution import Solution, Status

#: The largest violation of optimality, of scores whose margin is 1, that the first round leaves,
#: relative to the tolerance, and by which factor it falls from one round to the next.
_FIRST, _FURTHER = 1.0, 0.03
#: The first round also ends at a gap of this share of the tolerance.
_NEARLY = 0.8
#: Rounds at most: where these do not do, the problem is a hard one.
_ROUNDS = 4


Point = tuple[NDArray[np.float64], NDArray[np.float64]]


def is_small(gram: Gram, cache_bytes: int, tuning: Tuning = DEFAULT) -> bool:
    """Whether the kernel matrix is small, and its kernel one without surprises."""
    n, kernel = gram.n_samples, gram.kernel
    fits = n <= tuning.matrix_up_to and 8 * n * n <= cache_bytes
    return fits and kernel.definite and not kernel.explicit


def solve_whole(
    problem: Problem, gram: Gram, *, start: Point | None, **options: Any
) -> Solution | Point:
    """The solution of a small problem or, where that is not certified, how far it has come."""
    order, place, betas, in_order = _sorted(problem, gram.n_samples)
    known = MatrixStore(KnownGram.of(gram, order))
    first = None if start is None else (start[0], start[1][betas])
    found = solve_known(in_order, known, start=first, **options)
    alpha, sorted_beta = found if isinstance(found, tuple) else (found.alpha, found.beta)
    beta = np.empty_like(sorted_beta)
    beta[betas] = sorted_beta
    if isinstance(found, tuple):
        return alpha, beta
    scores = found.certificate.scores[place]
    certificate = found.certificate._replace(scores=scores)
    return replace(found, beta=beta, certificate=certificate, scores=scores)


def solve_known(
    problem: Problem,
    store: MatrixStore,
    *,
    tol: float,
    limits: Limits,
    start: Point | None,
    verbose: int,
    tuning: Tuning,
) -> Solution | Point:
    """The same where the matrix is known."""
    began = time.perf_counter()
    state = State(problem, store, tuning)
    if start is not None:
        state.set(*starts.feasible(problem, *start))
    if start is None or state.objective()[1] <= 0.0:  # worse than zero: ascent could run into it
        state.set(*(starts.cancelling(problem) or starts.small(problem, tuning)))
    seconds = {"seconds_start": time.perf_counter() - began, "seconds_rounds": 0.0}
    tolerance, steps, of_certificates = _FIRST * tol, 0, 0.0
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        status = limits.reached()
        if status is None:
            left = limits.max_iter - limits.rounds if limits.max_iter >= 0 else None
            # Only at first: where the referee disagrees the scores have drifted.
            gap = _NEARLY * tol if tolerance == _FIRST * tol else 0.0
            moves, _, batches = state.solve_all(tolerance, gap, left, limits)
            steps, limits.rounds = steps + moves, limits.rounds + batches
            tolerance *= _FURTHER
        solved = time.perf_counter()
        state.balance()
        certificate = objectives.certify(problem, store.gram, state.alpha, state.beta, tol=tol)
        seconds["seconds_rounds"] += solved - began
        of_certificates += time.perf_counter() - solved
        _report(limits, certificate, verbose)
        if certificate.certifies(tol):
            status = Status.CONVERGED
        if status is not None:
            break
        state.set(state.alpha.copy(), state.beta.copy())
    else:
        return state.alpha, state.beta
    return Solution(
        alpha=state.alpha,
        beta=state.beta,
        status=status,
        history=limits.recorder.finish(),
        n_iter=limits.rounds,
        stats={
            "columns": float(store.new_columns()),
            "steps": float(steps),
            "support": float(np.count_nonzero(state.value)),
            "seconds_certificate": of_certificates,
            **seconds,
        },
        certificate=certificate,
        scores=certificate.scores,
    )


def _report(limits: Limits, certificate: Certificate, verbose: int) -> None:
    """Keep a look at the objective, and print it if that is wanted."""
    primal, dual, gap = certificate.primal, certificate.dual, certificate.gap
    limits.recorder.add(limits.rounds, primal, dual, gap)
    if verbose:
        print(
            f"[attop] round {limits.rounds:4d}  {limits.recorder.elapsed:8.2f} s  "
            f"primal {primal:.6g}  dual {dual:.6g}  gap {gap:.2e}",
            flush=True,
        )


def _sorted(
    problem: Problem, n_samples: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Problem]:
    """The samples with the positives first, so that variables come in the order of the matrix.

    Returns their order, the place of each in it, the order of the betas, and the problem in it.
    """
    is_other = np.ones(n_samples, dtype=bool)
    is_other[problem.positives] = False
    order = np.concatenate([problem.positives, np.flatnonzero(is_other)])
    place = np.empty(n_samples, dtype=np.intp)
    place[order] = np.arange(n_samples)
    rows, n_alphas = place[problem.rows], problem.n_positives
    betas = np.argsort(rows[n_alphas:])
    rows[n_alphas:] = rows[n_alphas:][betas]
    weights = problem.weights
    if not are_unit(weights):
        weights = np.concatenate([weights[:n_alphas], weights[n_alphas:][betas]])
    return order, place, betas, problem._replace(rows=rows, weights=weights)
