"""Parts of a problem: a random subsample to begin with, and the samples that matter so far.

A part is a problem of its own.  The subsample is a smaller likeness of the whole.  The active
part is the whole with all other variables held at zero: its solution is a point of the
whole, found with kernel columns that are only as long as the part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from attop import objectives
from attop.problem import Family, Problem

#: One in so many samples is in the subsample.
SHARE = 8
#: The active part has so many samples that matter less, relative to those that do.
COMPANY, LEAST_COMPANY = 1 / 3, 256
#: So many numbers tell about where the largest of many begin.
SKETCH = 4096


class Part(NamedTuple):
    """A problem on some of the samples.

    Attributes
    ----------
    problem : Problem
        The problem on the part, rows counted within it.
    rows : ndarray
        The part's rows in the whole, increasing.
    alphas, betas : ndarray
        The part's dual variables in the whole problem, increasing.
    """

    problem: Problem
    rows: NDArray[np.intp]
    alphas: NDArray[np.intp]
    betas: NDArray[np.intp]


def subsample(problem: Problem, random_state) -> Part:
    """Draw one eighth of the positives and of the other samples."""
    rng = check_random_state(random_state)
    m = len(problem.competitors)
    n_rows = 1 + max(problem.positives[-1], problem.competitors[-1])
    drawn, positive = np.zeros(n_rows, dtype=bool), np.zeros(n_rows, dtype=bool)
    positive[problem.positives] = True
    others = problem.competitors[~positive[problem.competitors]]
    for group in (problem.positives, others):
        drawn[rng.choice(group, max(1, len(group) // SHARE), replace=False)] = True
    rows = np.flatnonzero(drawn)
    alphas = np.flatnonzero(drawn[problem.positives])
    betas = np.flatnonzero(drawn[problem.competitors])
    K = problem.K
    if K > 1 and K > 0.001 * m:  # a share of the competitors rather than a fixed number
        K = max(1, round(K * len(betas) / m))
    smaller = _on_rows(problem, rows, alphas, betas)._replace(
        C=problem.C * len(problem.positives) / len(alphas), K=min(K, len(betas))
    )
    return Part(smaller, rows, alphas, betas)


def active(
    problem: Problem,
    scores: NDArray[np.float64],
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    previous: Part | None = None,
    expected: float | None = None,
) -> Part:
    """The samples that have a dual variable or by their `scores` should, and some company.

    The `previous` active part serves again if it has them all.  Where the threshold of the
    solution is `expected` elsewhere, the positives are judged by that.
    """
    t = objectives.threshold(problem, scores)
    room = 1.0 + (t if expected is None else expected) - scores[problem.positives]
    height = scores[problem.competitors]
    height -= level(problem, scores, t)
    alphas_wanted, betas_wanted = (alpha > 0.0) | (room >= 0.0), (beta > 0.0) | (height >= 0.0)
    if previous is not None:
        missing = alphas_wanted.sum() - alphas_wanted[previous.alphas].sum()
        if missing + betas_wanted.sum() == betas_wanted[previous.betas].sum():
            return previous
    alphas, betas = _with_company(alphas_wanted, room), _with_company(betas_wanted, height)
    rows = np.union1d(problem.positives[alphas], problem.competitors[betas])
    smaller = _on_rows(problem, rows, alphas, betas)
    # The expected number of competitors above the threshold stays that of the whole.
    tau = problem.tau * len(problem.competitors) / len(betas)
    return Part(smaller._replace(tau=tau), rows, alphas, betas)


def level(problem: Problem, scores: NDArray[np.float64], threshold: float) -> float:
    """The least score of a competitor that matters to the threshold."""
    if problem.family == Family.TIED_CAP:
        competing = scores[problem.competitors]  # a copy
        competing.partition(len(competing) - problem.K)
        return float(competing[-problem.K])
    return threshold - 1.0 / problem.theta


def _with_company(wanted: NDArray[np.bool_], merit: NDArray[np.float64]) -> NDArray[np.intp]:
    """The variables wanted, and some of the others: those of the largest merit."""
    company = max(LEAST_COMPANY, int(COMPANY * np.count_nonzero(wanted)))
    return np.flatnonzero(wanted | largest_of(~wanted, merit, company))


def largest_of(
    candidates: NDArray[np.bool_], merit: NDArray[np.float64], count: int
) -> NDArray[np.bool_]:
    """Marks the `count` candidates of the largest merit; of equal ones the first."""
    if count >= np.count_nonzero(candidates):
        return candidates
    if count <= 0:
        return np.zeros(len(merit), dtype=bool)
    values = merit[_few_of(candidates, merit, count)]
    values.partition(len(values) - count)
    least = values[len(values) - count]
    chosen = candidates & (merit > least)
    equal = np.flatnonzero(candidates & (merit == least))
    chosen[equal[: count - np.count_nonzero(chosen)]] = True
    return chosen


def _few_of(
    candidates: NDArray[np.bool_], merit: NDArray[np.float64], count: int
) -> NDArray[np.bool_]:
    """Some of the candidates that have the `count` of largest merit among them.

    Every so many of them tell from where on there are about twice as many.
    """
    step = len(merit) // SKETCH
    if step <= 1:
        return candidates
    sketch = merit[::step][candidates[::step]]
    rank = 2 * count // step + 32
    if rank >= len(sketch):
        return candidates
    few = candidates & (merit > np.partition(sketch, len(sketch) - rank)[len(sketch) - rank])
    return few if np.count_nonzero(few) >= count else candidates


def _on_rows(problem: Problem, rows, alphas, betas) -> Problem:
    """The problem on some of its variables, their samples counted within `rows`."""
    return problem._replace(
        positives=np.searchsorted(rows, problem.positives[alphas]),
        competitors=np.searchsorted(rows, problem.competitors[betas]),
    )
