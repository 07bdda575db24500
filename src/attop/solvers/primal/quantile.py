"""Gradient descent on the problem with the exact quantile, from several starts.

The objective has kinks, where a gradient may point up hill, and local minima.  Against the
first, steps have a length of their own and the best point is kept: where some steps bring
nothing better, the descent goes back to that point with shorter ones.  Against the second
there are several starts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from attop.families import mean_of_largest
from attop.kernels.functions import Gram
from attop.problem import Problem
from attop.quantile_problem import QuantileProblem
from attop.solvers.limits import Limits
from attop.solvers.primal.driver import solve as solve_convex
from attop.solvers.primal.samples import Samples
from attop.solvers.solution import QuantileSolution, Status

Vector = NDArray[np.float64]

#: Steps of each start where max_iter sets no limit.
STEPS_PER_START = 1000
#: Steps that may bring nothing before the descent goes back and shortens them.
_PATIENCE = 10
#: A start is tried at these multiples of the length that gives its scores a deviation of 1.
_MULTIPLES = 2.0 ** np.arange(-5, 6)
#: Up to so many samples a convex start is solved to the last digits, in some milliseconds.
_FEW = 500


def solve_quantile(
    problem: QuantileProblem,
    gram: Gram,
    *,
    tol: float = 1e-4,
    max_iter: int = -1,
    max_time: float | None = None,
    cache_bytes: int = 0,
    start: Vector | None = None,
    random_state=None,
    verbose: int = 0,
    n_starts: int = 4,
) -> QuantileSolution:
    """Search for a minimum, and keep the best of several starts.

    Parameters
    ----------
    problem : QuantileProblem
        The problem.
    gram : Gram
        Samples with the linear kernel.
    tol : float
        A descent ends when its steps are shorter than this share of the weights.
    max_iter : int
        Bound on the steps of each start; -1 for 1000.
    max_time : float, optional
        Bound on the seconds.
    cache_bytes
        Without effect: nothing is cached.
    start : ndarray, optional
        Weights to start from besides.
    random_state : int, RandomState or None
        Draws the starts.
    verbose : int
        Print a line per start.
    n_starts : int
        Number of starts: the optimum of the convex formulation whose threshold is the mean of
        the scores above the quantile, the difference of the means of the classes, and random
        weights.

    Returns
    -------
    QuantileSolution
    """
    if n_starts < 1:
        raise ValueError(
            f"The 'n_starts' option must be an integer of at least 1. Got {n_starts} instead."
        )
    # From the origin: here the threshold is that of the scores themselves.
    samples = Samples(gram.X, centre=np.zeros(gram.X.shape[1]))
    limits = Limits(STEPS_PER_START if max_iter < 0 else max_iter, max_time)
    record = limits.recorder.add
    best: _Descent | None = None
    start_objectives: list[float] = []
    steps = 0
    for weights in _starts(problem, gram, samples, start, n_starts, random_state, limits):
        descent = _Descent(problem, samples, weights)
        start_objectives.append(descent.best_value)
        before = np.inf if best is None else best.best_value
        record(steps, min(before, descent.best_value), np.nan, np.nan)
        limits.rounds = 0  # max_iter is that of each start
        while descent.step_length > tol * descent.scale and limits.reached() is None:
            descent.step()
            limits.rounds += 1
            record(steps + limits.rounds, min(before, descent.best_value), np.nan, np.nan)
        steps += limits.rounds
        if best is None or descent.best_value < before:
            best = descent
        if verbose:
            print(f"start {len(start_objectives)}: {descent.best_value:.8g} after {steps} steps")
        if limits.out_of_time():
            break
    assert best is not None  # there is at least one start
    return QuantileSolution(
        coef=best.best_w,
        objective=best.best_value,
        threshold=problem.threshold(samples.scores(best.best_w)),
        start_objectives=np.array(start_objectives),
        status=Status.NO_CERTIFICATE,
        history=limits.recorder.finish(),
        n_iter=steps,
        stats={"steps": steps, "seconds_rounds": limits.recorder.elapsed},
    )


class _Descent:
    """One descent from one start."""

    def __init__(self, problem: QuantileProblem, samples: Samples, w: Vector):
        self.problem, self.samples = problem, samples
        self.w, self.scores = w, samples.scores(w)
        self.best_w, self.best_scores = self.w, self.scores
        self.best_value = problem.value(float(w @ w), self.scores)
        # No weights longer than this can be better.
        self.scale = float(np.sqrt(2.0 * self.best_value))
        self.step_length = 0.1 * self.scale
        self._idle = 0

    def step(self) -> None:
        """Go one step against the gradient."""
        gradient = self.w + self.samples.combine(self.problem.slopes(self.scores))
        length = float(np.linalg.norm(gradient))
        if length == 0.0:  # a stationary point
            self.step_length = 0.0
            return
        self.w = self.w - (self.step_length / length) * gradient
        self.scores = self.samples.scores(self.w)
        value = self.problem.value(float(self.w @ self.w), self.scores)
        self._idle += 1
        if value < self.best_value:
            self.best_w, self.best_scores, self.best_value = self.w, self.scores, value
            self._idle = 0
        elif self._idle >= _PATIENCE:
            self.w, self.scores = self.best_w, self.best_scores
            self.step_length *= 0.5
            self._idle = 0


def _starts(
    problem: QuantileProblem,
    gram: Gram,
    samples: Samples,
    given: Vector | None,
    n_starts: int,
    random_state,
    limits: Limits,
) -> Iterator[Vector]:
    """The weights to start from, each at its best multiple."""
    if given is not None:
        yield given
    rng = check_random_state(random_state)
    for number in range(n_starts):
        if number == 0:
            direction = _convex_relative(problem, gram, samples, limits)
        elif number == 1:
            means = np.zeros(samples.n_samples)
            for rows, sign in ((problem.positives, 1.0), (problem.negatives, -1.0)):
                weights = problem.weights[rows]
                means[rows] = sign * weights / np.sum(weights)
            direction = samples.combine(means)
        else:
            direction = rng.normal(size=samples.n_features)
        yield _scaled(problem, samples, direction)


def _convex_relative(
    problem: QuantileProblem, gram: Gram, samples: Samples, limits: Limits
) -> Vector:
    """The optimum of TauFPL or TopMeanK with the same parameters, or about it for many samples.

    Where it costs nothing it is exact: descents follow each other's ways only from one point, and
    samples with weights are to lead where their copies do.
    """
    copies = float(np.sum(problem.weights[problem.competitors]))
    family = mean_of_largest(max(1, min(round(copies * problem.tau), int(copies))), is_share=True)
    rows = problem.positives, problem.competitors
    relative = Problem.of(*rows, problem.C, problem.surrogate, family, problem.weights)
    tol, steps = (1e-12, 500) if samples.n_samples <= _FEW else (1e-2, 50)
    solution = solve_convex(relative, gram, tol=tol, max_iter=steps, max_time=limits.seconds_left)
    return samples.weights(relative, solution.alpha, solution.beta)


def _scaled(problem: QuantileProblem, samples: Samples, direction: Vector) -> Vector:
    """The multiple of `direction`, itself and its opposite among them, that is best."""
    scores = samples.scores(direction)
    weights = problem.weights / np.sum(problem.weights)
    deviation = float(np.sqrt(weights @ (scores - weights @ scores) ** 2))
    multiples = np.append(1.0, _MULTIPLES / deviation if deviation > 0.0 else [])
    multiples = np.concatenate([multiples, -multiples])
    norm2 = float(direction @ direction)
    values = [problem.value(c**2 * norm2, c * scores) for c in multiples]
    return multiples[int(np.argmin(values))] * direction
