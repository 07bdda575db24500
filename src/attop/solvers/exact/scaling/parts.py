"""Parts of a problem: a random subsample to begin with, and the samples that matter so far.

A part is a problem of its own.  The subsample is a smaller likeness of the whole.  The active
part is the whole with all other variables held at zero: its solution is a point of the
whole, found with kernel columns that are only as long as the part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from attop import objectives
from attop._selection import largest_of
from attop._weights import of_rows
from attop.problem import Problem
from attop.solvers.exact.tuning import Tuning


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


def subsample(problem: Problem, random_state: Any, tuning: Tuning) -> Part:
    """Draw a share of the positives and of the other samples."""
    rng = check_random_state(random_state)
    n_rows = 1 + int(np.max(problem.rows))
    drawn, positive = np.zeros(n_rows, dtype=bool), np.zeros(n_rows, dtype=bool)
    positive[problem.positives] = True
    others = problem.competitors[~positive[problem.competitors]]
    for group in (problem.positives, others):
        drawn[rng.choice(group, max(1, len(group) // tuning.share), replace=False)] = True
    rows = np.flatnonzero(drawn)
    alphas = np.flatnonzero(drawn[problem.positives])
    betas = np.flatnonzero(drawn[problem.competitors])
    smaller = _on_rows(problem, rows, alphas, betas)
    copies = float(np.sum(smaller.competitor_weights))
    share = copies / float(np.sum(problem.competitor_weights))
    loss = float(np.sum(problem.positive_weights) / np.sum(smaller.positive_weights))
    family = problem.family.subsampled(share, copies)
    return Part(smaller._replace(C=problem.C * loss, family=family), rows, alphas, betas)


def active(
    problem: Problem,
    scores: NDArray[np.float64],
    alpha: NDArray[np.float64],
    beta: NDArray[np.float64],
    tuning: Tuning,
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
    height -= problem.family.level(problem, height, problem.competitor_weights, t)
    alphas_wanted, betas_wanted = (alpha > 0.0) | (room >= 0.0), (beta > 0.0) | (height >= 0.0)
    if previous is not None:
        missing = alphas_wanted.sum() - alphas_wanted[previous.alphas].sum()
        if missing + betas_wanted.sum() == betas_wanted[previous.betas].sum():
            return previous
    alphas = _with_company(alphas_wanted, room, tuning)
    betas = _with_company(betas_wanted, height, tuning)
    rows = np.union1d(problem.positives[alphas], problem.competitors[betas])
    return Part(_on_rows(problem, rows, alphas, betas), rows, alphas, betas)


def _with_company(
    wanted: NDArray[np.bool_], merit: NDArray[np.float64], tuning: Tuning
) -> NDArray[np.intp]:
    """The variables wanted, and some of the others: those of the largest merit."""
    company = max(tuning.least_company, int(tuning.company * np.count_nonzero(wanted)))
    return np.flatnonzero(wanted | largest_of(~wanted, merit, company))


def _on_rows(
    problem: Problem, rows: NDArray[np.intp], alphas: NDArray[np.intp], betas: NDArray[np.intp]
) -> Problem:
    """The problem on some of its variables, their samples counted within `rows`."""
    variables = np.concatenate([alphas, problem.n_positives + betas])
    return problem._replace(
        rows=np.searchsorted(rows, problem.rows[variables]),
        n_positives=len(alphas),
        weights=of_rows(problem.weights, variables),
    )
