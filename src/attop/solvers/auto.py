"""The solver that ``"auto"`` stands for: Newton's method for large linear models, or the exact.

Newton's method on the weights (`attop.solvers.primal`) takes ten to a hundred steps, each of a few
passes over the samples, and is the faster one for linear models of more than some thousand samples.
Where it has not come to the tolerance within that, the exact solver goes on from its point.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from attop.families.base import Cap, Family
from attop.kernels.functions import Gram
from attop.problem import Problem
from attop.solvers.protocol import Settings
from attop.solvers.solution import Solution, Status

#: Fewer samples are solved as fast by the exact solver.  (Parts of w8a and of a9a, lambda 1e-3,
#: gap 1e-3, seconds of the processor, exact and Newton: TauFPL(0.05) with 1,000 samples 0.083 and
#: 0.076, 0.068 and 0.040; with 3,000 samples 0.143 and 0.099, 0.508 and 0.091; TopPush with 3,000
#: samples 0.128 and 0.506, 0.567 and 0.112.)
LEAST_SAMPLES = 2048
#: Steps after which the exact solver takes over.  (With Newton's alone TopPush on w8a, lambda 1e-5,
#: gap 1e-3, needs 172 of them, in 0.5 s of the processor; the exact solver, from the point of 150,
#: took 8 s more.)
STEPS = 300


def solve(
    problem: Problem,
    gram: Gram,
    *,
    tol: float = 1e-4,
    max_iter: int = -1,
    max_time: float | None = None,
    cache_bytes: int = 1000 * 2**20,
    start: Any = None,
    random_state: Any = None,
    verbose: int = 0,
    columns: Any = None,
) -> Solution:
    """Solve the problem by the solver that suits its samples.

    Parameters
    ----------
    problem : Problem
        Any convex problem.
    gram : Gram
        Its kernel matrix.
    tol, max_iter, max_time, cache_bytes, random_state, verbose
        As in `attop.solvers.protocol.Settings`; both solvers have `max_iter` for themselves.
    start : (alpha, beta), optional
        Where to begin.
    columns : ColumnStore, optional
        Kernel columns that fits share; only the exact solver has a use for them, and it is as fast
        with them as Newton's method where no cap is priced.

    Returns
    -------
    Solution
    """
    from attop.solvers import get_solver

    settings = Settings(tol, max_iter, max_time, cache_bytes, random_state, verbose)
    began = time.perf_counter()
    if suits_newton(problem, gram) and (columns is None or _is_hard_to_share(problem)):
        options = vars(settings) | {"max_iter": STEPS if max_iter < 0 else min(max_iter, STEPS)}
        found = get_solver("primal")(problem, gram, start=start, **options)
        assert isinstance(found, Solution)
        limited = found.status is Status.MAX_TIME or 0 <= max_iter <= found.n_iter
        if limited or found.status is Status.CONVERGED:
            return found
        start = found.alpha, found.beta
    shared = {} if columns is None else {"columns": columns}
    exact: Any = get_solver("exact")
    solution: Solution = exact(problem, gram, start=start, **vars(settings.since(began)), **shared)
    return solution


def _is_hard_to_share(problem: Problem) -> bool:
    """Whether the exact solver is the slower one even with columns and starts of other fits.

    A search over five C and three folds of 10,000 x 39 attributes of faces, gap 1e-3, by Newton's
    method and by the exact solver: PatMatNP(0.01) 1.9 s, and 245 s with 8 s for a fit at most and
    gaps of 1; TauFPL(0.05) 1.4 and 1.1 s, balanced SVM 4.4 and 0.9 s, TopPush 0.45 and 0.65 s.
    """
    return problem.betas.cap is Cap.PRICED and problem.betas.price > 0.0


def suits_newton(problem: Problem, gram: Gram) -> bool:
    """Whether Newton's method can solve the problem, and is expected to do so faster."""
    possible = (
        gram.kernel.explicit
        and bool(np.isfinite(problem.C))
        and problem.surrogate.curvature is not None
        and type(problem.family).smooth_threshold is not Family.smooth_threshold
        and not problem.family.zero_is_optimal(problem)
    )
    return possible and gram.n_samples >= LEAST_SAMPLES
