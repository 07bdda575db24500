"""The loop of the primal solvers of convex problems: advance, look at the gap, certify."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attop._threads import with_one_blas_thread
from attop.families.base import Family
from attop.kernels.functions import Gram
from attop.objectives import (
    Certificate,
    certificate_of_zero,
    certify,
    infeasibility,
    relative_gap,
    zero_value,
)
from attop.problem import Problem
from attop.solvers.limits import Limits
from attop.solvers.primal import candidates
from attop.solvers.primal import start as start_of
from attop.solvers.primal.arranged import Arranged
from attop.solvers.primal.candidates import Candidates
from attop.solvers.primal.newton import Newton
from attop.solvers.primal.on_device import samples_of
from attop.solvers.primal.samples import Samples
from attop.solvers.primal.subgradient import Subgradient
from attop.solvers.solution import Solution, Status
from attop.surrogates import refuse_unless_quadratic

Vector = NDArray[np.float64]
Descent = Newton | Candidates | Subgradient

#: The methods by name.
METHODS = ("newton", "subgradient")
#: Steps of the subgradient method where max_iter sets no limit.
SUBGRADIENT_STEPS = 20_000
#: The certificate gathers the support vectors and all samples, the model its support vectors.
GATHERED = 3
#: A gap that no step makes smaller is the rounding's if it is this small, else the method's.
ROUNDING = 1e-6


def solve(
    problem: Problem,
    gram: Gram,
    *,
    tol: float = 1e-4,
    max_iter: int = -1,
    max_time: float | None = None,
    cache_bytes: int = 0,
    start: tuple[Vector, Vector] | None = None,
    random_state=None,
    verbose: int = 0,
    method: str = "newton",
    check_every: int = 1,
) -> Solution:
    """Minimise the primal of a linear model.

    Both methods know a feasible point of the dual at every step, made of the slopes of the
    losses and of the threshold, and the model returned is the one of that point: it carries
    a certificate like that of any other solver.

    Parameters
    ----------
    problem : Problem
        Any of the convex formulations, with a finite C.
    gram : Gram
        Samples with the linear kernel.
    tol : float
        Relative duality gap, judged by `attop.objectives.certify`.
    max_iter : int
        Bound on the steps; -1 for none ("newton") or 20,000 ("subgradient").
    max_time : float, optional
        Bound on the seconds, the certificate's among them.
    cache_bytes, random_state
        Without effect: nothing is cached, and nothing drawn at random.
    start : (alpha, beta), optional
        Begin with the weights of this point of the dual.
    verbose : int
        Print a line per look at the gap.
    method : {"newton", "subgradient"}
        Newton's method on the primal made smooth, less and less so; or the full (sub)gradient
        descent of the paper, which needs many more steps.
    check_every : int
        Record, and stop, once in so many steps.

    Returns
    -------
    Solution
    """
    _check(problem, gram, method, check_every)
    # Threads of BLAS wait for each other longer than the factorisations here take.
    return with_one_blas_thread(
        _solve, problem, gram, tol, max_iter, max_time, start, verbose, method, check_every
    )


def _solve(
    problem: Problem,
    gram: Gram,
    tol: float,
    max_iter: int,
    max_time: float | None,
    start: tuple[Vector, Vector] | None,
    verbose: int,
    method: str,
    check_every: int,
) -> Solution:
    """The same, its arguments checked."""
    if max_iter < 0 and method == "subgradient":
        max_iter = SUBGRADIENT_STEPS
    limits = Limits(max_iter, max_time)
    samples = samples_of(gram)
    if max_time is not None:
        limits.ending = GATHERED * samples.seconds()
    newton = method == "newton"  # whose passes are what it takes
    arranged = Arranged.of(problem, samples) if newton else Arranged(problem, samples)
    start = None if start is None else arranged.to_here(start)
    descent = _begin(arranged.problem, arranged.samples, start, method, limits, tol)
    began = limits.recorder.elapsed
    status: Status | None = None
    certificate: Certificate | None = None
    while status is None:
        gap = relative_gap(descent.primal, descent.dual)
        limits.recorder.add(limits.rounds, descent.primal, descent.dual, gap)
        if verbose:
            print(f"step {limits.rounds}: primal {descent.primal:.8g}, gap {gap:.2e}")
        certificate = None
        # The weights of Newton's method and those of its dual point differ a little.
        if descent.best_gap <= tol:
            certificate = certify(problem, gram, *arranged.from_here(descent.best), tol=tol)
        if certificate is not None and _proves(problem, certificate, tol):
            status = Status.CONVERGED
        else:
            status = limits.reached()
        if status is None:
            status = _advance(descent, check_every, limits)
    alpha, beta = arranged.from_here(descent.best)
    ended = limits.recorder.elapsed
    if certificate is None or status is not Status.CONVERGED:
        certificate = certify(problem, gram, alpha, beta, tol=tol)
    if _proves(problem, certificate, tol) and status in (Status.PRECISION, Status.STALLED):
        status = Status.CONVERGED
    return Solution(
        alpha=alpha,
        beta=beta,
        status=status,
        history=limits.recorder.finish(),
        n_iter=limits.rounds,
        stats={
            "steps": limits.rounds,
            "support": float(np.count_nonzero(alpha) + np.count_nonzero(beta)),
            "seconds_start": began,
            "seconds_rounds": ended - began,
            "seconds_certificate": limits.recorder.elapsed - ended,
        },
        certificate=certificate,
        scores=certificate.scores,
    )


def _proves(problem: Problem, certificate: Certificate, tol: float) -> bool:
    """Whether the point, or ``w = 0`` where it is no worse, is certified by the point's value."""
    if certificate.certifies(tol) or not zero_value(problem) <= certificate.primal:
        return certificate.certifies(tol)
    return certificate_of_zero(problem, certificate).certifies(tol)


def _advance(
    descent: Newton | Candidates | Subgradient, n_steps: int, limits: Limits
) -> Status | None:
    """Make `n_steps` steps, or fewer within the limits; a status where there is nothing to gain.

    The next step will take about as long as the longest so far.
    """
    for _ in range(n_steps):
        began = limits.recorder.elapsed
        if not descent.advance():
            return Status.PRECISION if descent.best_gap <= ROUNDING else Status.STALLED
        limits.rounds += 1
        limits.ahead = max(limits.ahead, limits.recorder.elapsed - began)
        if limits.reached() is not None:
            break
    return None


def _begin(
    problem: Problem,
    samples: Samples,
    start: tuple[Vector, Vector] | None,
    method: str,
    limits: Limits,
    tol: float,
) -> Descent:
    """The method at its first point."""
    point = np.zeros(len(problem.positives)), np.zeros(len(problem.competitors))
    if method == "newton":
        near = None
        if start is None and start_of.suits(problem, samples):
            near = start_of.from_a_part(problem, samples, limits, tol)
        start = point if start is None else start
        newton = Newton(problem, samples, *start, limits, tol, near)
        return Candidates(newton, limits, tol) if candidates.suits(problem, samples) else newton
    # The average has to be feasible, which a start of another problem need not be.
    if start is not None and infeasibility(problem, *start) <= 1e-12:
        point = start
    return Subgradient(problem, samples, *point)


def _check(problem: Problem, gram: Gram, method: str, check_every: int) -> None:
    """Raise a ValueError that names what the primal solver cannot do."""
    if not gram.kernel.explicit:
        raise ValueError(
            "The primal solver needs the linear kernel or explicit features: use "
            "kernel='linear', approximation='nystroem', or the exact solver. "
            f"Got kernel={gram.kernel!r} instead."
        )
    refuse_unless_quadratic(problem.surrogate, "primal")
    if type(problem.family).smooth_threshold is Family.smooth_threshold:
        raise ValueError(
            "The primal solver has no smooth threshold for this formulation, "
            f"{type(problem.family).__name__}: use solver='exact'."
        )
    if not np.isfinite(problem.C):
        raise ValueError(
            "The 'C' parameter must be finite for solver='primal'; the exact solver takes "
            f"C=inf. Got {problem.C} instead."
        )
    if method not in METHODS:
        raise ValueError(f"The 'method' option must be one of {METHODS}. Got {method!r} instead.")
    if check_every < 1:
        raise ValueError(
            f"The 'check_every' option must be an integer of at least 1. Got {check_every} instead."
        )
