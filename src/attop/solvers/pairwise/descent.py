"""The descent itself: start, steps, looks at the gap, and when to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attop.families.base import Family
from attop.kernels.functions import Gram
from attop.objectives import (
    certify,
    dual_value,
    feasible_primal,
    relative_gap,
    signed_coefficients,
    zero_value,
)
from attop.problem import Problem
from attop.solvers.limits import TOO_MUCH, Limits
from attop.solvers.pairwise.columns import Draws, KernelColumns
from attop.solvers.pairwise.steps import Dual, Point, best_partner
from attop.solvers.solution import Solution, Status
from attop.surrogates import refuse_unless_quadratic

Vector = NDArray[np.float64]
#: A step this long, in units of the kernel's diagonal, has no bound to stop it.
_ENDLESS = 1e10
#: Gains are negligible below this share of the square of the relative gap, or as rounding.
_SLOW, _ROUNDING = 1e-6, 1e-14
#: Sweeps, of as many steps as there are variables, that may bring no tenth of the gap.
_PATIENCE = 50


def solve(
    problem: Problem,
    gram: Gram,
    *,
    tol: float = 1e-4,
    max_iter: int = -1,
    max_time: float | None = None,
    cache_bytes: int = 2**30,
    start: tuple[Vector, Vector] | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
    verbose: bool | int = False,
    n_epochs: float | None = 20,
    reuse_probability: float = 0.9,
    check_every: int = 100,
    gap_reduction: float | None = None,
) -> Solution:
    r"""Maximise the dual by the paper's coordinate descent.

    Parameters
    ----------
    problem : Problem
        The dual problem.
    gram : Gram
        Its kernel matrix.
    tol : float, default=1e-4
        Stop when the duality gap, relative to the objective, is at most `tol`.
    max_iter : int, default=-1
        Stop after so many steps; -1 for no limit but that of `n_epochs`.
    max_time : float, default=None
        Stop after so many seconds, those of the certificate among them.
    cache_bytes : int, default=2**30
        The kernel matrix is computed once, in float64, if it fits; a step then costs
        :math:`O(n)`.  Otherwise columns are computed when needed, and as many kept.
    start : tuple of ndarray, default=None
        Dual variables to begin with, projected onto the feasible set; by default the
        projection of a random point of the unit cube.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the start and of the steps.
    verbose : bool or int, default=False
        Print each look at the gap.
    n_epochs : float, default=20
        Stop after so many epochs.  An epoch is n/2 steps, with n the number of dual
        variables; ``None`` for no limit.
    reuse_probability : float, default=0.9
        Probability that a step begins with the second variable of the step before
        instead of a random one.
    check_every : int, default=100
        Steps between two looks at the gap.
    gap_reduction : float, default=None
        The paper's stopping rule instead of `tol`: stop when the gap has fallen to this
        share of the first one; 1e-4 in the paper.

    Returns
    -------
    Solution
        With `Status.STALLED` where no pair of variables improves the dual, or so little
        that the gap will not close.
    """
    _check_options(n_epochs, reuse_probability, check_every, gap_reduction)
    _check_problem(problem)
    n_variables = len(problem.positives) + len(problem.competitors)
    # Time begins before the kernel is computed.
    limits = Limits(_step_limit(n_variables, n_epochs, max_iter), max_time)
    rng = _generator(random_state)
    columns = KernelColumns(gram, cache_bytes, limits)
    descent = _Descent(problem, columns, *_initial_point(problem, columns, start, rng, limits))
    rule = _StoppingRule(tol, gap_reduction)
    started = limits.recorder.elapsed
    status = None
    while status is None:
        primal, dual = descent.objectives()
        limits.recorder.add(limits.rounds, primal, dual, relative_gap(primal, dual))
        if verbose:
            print(f"step {limits.rounds}: primal {primal:.8g}, dual {dual:.8g}")
        status = _status(descent, rule, primal, dual, limits)
        if status is None:
            began = limits.recorder.elapsed
            n_steps = check_every if limits.max_iter < 0 else limits.max_iter - limits.rounds
            descent.advance(min(check_every, n_steps), reuse_probability, rng)
            limits.rounds = descent.n_steps
            limits.ahead = limits.recorder.elapsed - began
            limits.ending = descent.certificate_seconds()
    alpha, beta = descent.alpha.copy(), descent.beta.copy()
    ended = limits.recorder.elapsed
    certificate = certify(problem, gram, alpha, beta, tol=tol)
    if status is Status.CONVERGED and not rule.satisfied(certificate.primal, certificate.dual):
        status = Status.PRECISION
    return Solution(
        alpha=alpha,
        beta=beta,
        status=status,
        history=limits.recorder.finish(),
        n_iter=limits.rounds,
        stats={
            "columns": columns.n_computed,
            "steps": limits.rounds,
            "support": float(np.count_nonzero(descent.point.values)),
            "seconds_start": started,
            "seconds_rounds": ended - started,
            "seconds_certificate": limits.recorder.elapsed - ended,
        },
        certificate=certificate,
    )


@dataclass
class _StoppingRule:
    """Relative gap at most `tol`; or, if given, gap at most `reduction` times the first."""

    tol: float
    reduction: float | None
    first_gap: float = np.inf

    def satisfied(self, primal: float, dual: float) -> bool:
        if self.reduction is None:
            return relative_gap(primal, dual) <= self.tol
        gap = primal - dual
        if np.isinf(self.first_gap):  # with C = inf, until the point is first feasible
            self.first_gap = gap
            return gap <= 0.0
        return gap <= self.reduction * self.first_gap


def _status(
    descent: _Descent,
    rule: _StoppingRule,
    primal: float,
    dual: float,
    limits: Limits,
) -> Status | None:
    """Why to stop now; None to go on."""
    if rule.satisfied(primal, dual):
        return Status.CONVERGED
    if descent.unbounded:
        return Status.UNBOUNDED
    if not dual <= descent.most:
        return Status.NOT_PSD
    if descent.stalled(primal, dual, limits):
        return Status.STALLED
    return limits.reached()


class _Descent:
    """The present point, and what the steps have achieved so far."""

    def __init__(self, problem: Problem, columns: KernelColumns, alpha: Vector, beta: Vector):
        self.problem, self.columns, self.dual = problem, columns, Dual.of(problem)
        coefficients = signed_coefficients(problem, alpha, beta, columns.n_samples)
        self.point = Point(
            np.concatenate([alpha, beta]),
            problem.rows,
            columns.combination(coefficients),
            np.ascontiguousarray(problem.weights),
        )
        self.n_variables = len(alpha) + len(beta)
        #: What no dual value exceeds, unless ``|w|^2`` is negative: the kernel is not definite.
        self.most = np.inf
        if not columns.gram.kernel.definite:
            self.most = TOO_MUCH * zero_value(problem)
        self.n_steps = 0
        self.unbounded = False
        self._partner = -1
        self._sweep_gain, self._sweep_steps = 0.0, 0
        self._least_gap, self._idle_sweeps = np.inf, 0

    def certificate_seconds(self) -> float:
        """About how long the certificate of this point will take."""
        return self.columns.seconds(int(np.count_nonzero(self.point.values)))

    @property
    def alpha(self) -> Vector:
        """The present alphas."""
        return self.point.values[: self.dual.n_alpha]

    @property
    def beta(self) -> Vector:
        """The present betas."""
        return self.point.values[self.dual.n_alpha :]

    def advance(self, n_steps: int, reuse_probability: float, rng: np.random.Generator) -> None:
        """Make `n_steps` steps."""
        draws = Draws(
            rng.integers(self.n_variables, size=n_steps), rng.random(n_steps) < reuse_probability
        )
        longest = np.inf  # a finite C bounds every step
        if np.isinf(self.problem.C):
            longest = _ENDLESS / max(float(self.columns.diagonal.max()), 1e-300)
        self._partner, gain, self.unbounded = self.columns.run(
            self.dual, self.point, draws, self._partner, longest
        )
        self.n_steps += n_steps
        self._sweep_gain += gain
        self._sweep_steps += n_steps

    def objectives(self) -> tuple[float, float]:
        """Primal and dual value, from the scores as they are kept."""
        problem, scores = self.problem, self.point.scores
        signed = signed_coefficients(problem, self.alpha, self.beta, len(scores))
        norm2 = float(signed @ scores)
        dual = dual_value(problem, norm2, self.alpha, self.beta)
        return feasible_primal(problem, norm2, scores), dual

    def stalled(self, primal: float, dual: float, limits: Limits) -> bool:
        """Whether the steps lead nowhere: neither those since the last look nor any other.

        Looks only once in as many steps as there are variables.  The dual error behaves as
        the square of the gap, which is mostly the error of the primal point; gains that
        are negligible beside that square will not close the gap; nor will gains that, small
        or not, bring nothing of it for many sweeps.
        """
        if self._sweep_steps < self.n_variables:
            return False
        gain, self._sweep_gain, self._sweep_steps = self._sweep_gain, 0.0, 0
        if relative_gap(primal, dual) < 0.9 * self._least_gap:
            self._least_gap, self._idle_sweeps = relative_gap(primal, dual), 0
        self._idle_sweeps += 1
        if self._idle_sweeps > _PATIENCE:
            return True
        scale = max(abs(primal), abs(dual))
        negligible = max(_SLOW * relative_gap(primal, dual) ** 2, _ROUNDING) * scale
        if not gain <= negligible:
            return False
        for k in range(self.n_variables):
            if limits.reached() is not None or self._best_gain(k) > negligible:
                return False
        return True

    def _best_gain(self, k: int) -> float:
        """The gain of the best step of variable `k`."""
        column = self.columns[self.point.rows[k]]
        return best_partner(self.dual, self.point, k, column, self.columns.diagonal)[2]


def _initial_point(
    problem: Problem,
    columns: KernelColumns,
    start: tuple[Vector, Vector] | None,
    rng: np.random.Generator,
    limits: Limits,
) -> tuple[Vector, Vector]:
    """Project `start`, or a random point of the unit cube, onto the feasible set.

    Its scores and its certificate take all columns; where there is no time for them, the
    start is a point of few variables, which is as good as any without steps.
    """
    if limits.out_of_time(2.0 * columns.seconds()):
        from attop.solvers.exact.scaling.start import small

        return small(problem)
    if start is None:
        alpha, beta = rng.random(problem.n_positives), rng.random(len(problem.competitors))
        delta = rng.random()
    else:
        alpha, beta = (np.array(values, dtype=np.float64) for values in start)
        delta = beta.max() * problem.betas.linear  # 1 / theta where there is a delta at all
    return problem.family.project(problem, alpha, beta, delta)


def _check_problem(problem: Problem) -> None:
    """Raise a ValueError where there is no update rule."""
    refuse_unless_quadratic(problem.surrogate, "pairwise")
    if type(problem.family).project is Family.project:
        raise ValueError(
            "The pairwise solver has no starting point for this formulation, "
            f"{type(problem.family).__name__}: use solver='exact'."
        )


def _step_limit(n_variables: int, n_epochs: float | None, max_iter: int) -> int:
    if n_epochs is None:
        return max_iter
    limit = math.ceil(n_epochs * n_variables / 2)
    return limit if max_iter < 0 else min(limit, max_iter)


def _generator(random_state) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)


def _check_options(
    n_epochs: float | None, reuse_probability: float, check_every: int, gap_reduction: float | None
) -> None:
    conditions = [
        ("n_epochs", n_epochs, n_epochs is None or n_epochs > 0, "positive or None"),
        ("reuse_probability", reuse_probability, 0 <= reuse_probability <= 1, "in [0, 1]"),
        ("check_every", check_every, check_every >= 1, "at least 1"),
        (
            "gap_reduction",
            gap_reduction,
            gap_reduction is None or 0 < gap_reduction < 1,
            "in (0, 1) or None",
        ),
    ]
    for name, value, valid, range_ in conditions:
        if not valid:
            raise ValueError(
                f"The '{name}' parameter of the pairwise solver must be {range_}. "
                f"Got {value} instead."
            )
