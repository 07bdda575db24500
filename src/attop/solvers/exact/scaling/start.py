"""Where the exact solver begins.

From zero the top-K family cannot move (each beta is capped by the sum of alphas, which
is zero), and a random start costs many columns in vain.  Small problems begin with a few
variables; large ones with the solution of a subsample, carried over to all samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from attop import objectives
from attop._weights import of_rows, weighted_sum
from attop.families.base import Cap
from attop.families.largest import competes, shares_of_positives
from attop.problem import Problem
from attop.solvers.exact.outer.state import State
from attop.solvers.exact.scaling.parts import Part
from attop.solvers.exact.tuning import DEFAULT, Tuning

Vector = NDArray[np.float64]
Point = tuple[Vector, Vector]

#: A larger violation of the constraints, relative to them, is mended before the certificate.
BALANCED = 1e-10


def small(problem: Problem, tuning: Tuning = DEFAULT) -> Point:
    """A feasible point with few variables: some positives against some competitors."""
    p, m = problem.n_positives, len(problem.rows) - problem.n_positives
    alpha, beta = np.zeros(p), np.zeros(m)
    if problem.family.zero_is_optimal(problem):
        # Each positive against itself: w = 0, and the loss of every positive has slope l'(0).
        alpha[:] = problem.C * float(problem.surrogate.slope(0.0))
        places = np.searchsorted(problem.competitors, problem.positives)
        beta[places] = alpha * shares_of_positives(problem)
        return alpha, beta
    few = tuning.few
    some = _spread(p, few)[:few]
    alpha[some] = min(0.5 * min(problem.C, problem.alpha_max), 1.0)
    # Prices have to be earned: a few more betas than that earn them for sure.
    terms = problem.betas
    least = max(problem.family.least_betas(problem), few if terms.linear == 0.0 else 4 * few)
    # Other rows than those of the alphas first: with all samples competing, the same row
    # on both sides cancels.
    order = _spread(m, least)
    used = np.zeros(1 + int(problem.rows.max()), dtype=bool)
    used[problem.positives[some]] = True
    clash = used[problem.competitors[order]]
    order = np.concatenate([order[~clash], order[clash]])
    weights = problem.competitor_weights
    others = order[: 1 + int(np.searchsorted(np.cumsum(weights[order]), least))]
    beta[others] = weighted_sum(alpha, problem.positive_weights) / float(np.sum(weights[others]))
    return (alpha, beta) if terms.bound == np.inf else _made_feasible(problem, alpha, beta)


def _spread(n: int, few: int) -> NDArray[np.intp]:
    """``range(n)`` in an order whose first few are spread evenly."""
    step = max(1, n // few)
    order = np.arange(-(-n // step) * step).reshape(-1, step).T.ravel()
    return order[order < n]


def cancelling(problem: Problem) -> Point | None:
    """Each positive against itself: ``w = 0``; None where positives do not compete.

    Not far from the optimum, where most positives and the samples in the way of the threshold are
    the same, but all variables are there at once: for kernel matrices that are known.
    """
    if not competes(problem, problem.positives):
        return None
    places = np.searchsorted(problem.competitors, problem.positives)
    alpha, beta = np.zeros(len(problem.positives)), np.zeros(len(problem.competitors))
    terms, weights, positive = problem.betas, problem.competitor_weights, problem.positive_weights
    beta[places] = shares_of_positives(problem)
    copies, largest = float(np.sum(positive)), float(np.max(beta))
    if terms.cap is Cap.TIED and largest * terms.K > copies:
        return None  # too few to be all of the top
    norm = weighted_sum(beta * beta, weights) ** 0.5
    gain = copies + terms.linear * weighted_sum(beta, weights)
    gain -= terms.price * largest + terms.norm_price * norm
    bend = problem.quadratic_alpha * copies + terms.curvature * norm * norm
    size = min(problem.alpha_max, terms.bound / largest, gain / bend if bend else np.inf)
    if not (gain > 0.0 and np.isfinite(size)):
        return None
    alpha[:] = size
    beta *= size
    return alpha, beta


def feasible(problem: Problem, alpha: NDArray[np.float64], beta: NDArray[np.float64]) -> Point:
    """A feasible point near the given one: clip, balance the sums, respect the cap."""
    return _made_feasible(problem, np.array(alpha, np.float64), np.array(beta, np.float64))


def _made_feasible(
    problem: Problem, alpha: NDArray[np.float64], beta: NDArray[np.float64]
) -> Point:
    """The same in place."""
    np.clip(alpha, 0.0, problem.alpha_max, out=alpha)
    np.clip(beta, 0.0, problem.betas.bound, out=beta)
    weights = problem.competitor_weights
    total = weighted_sum(alpha, problem.positive_weights)
    other = weighted_sum(beta, weights)
    if not (total > 0.0 and other > 0.0 and np.isfinite(total) and np.isfinite(other)):
        return small(problem)
    terms = problem.betas
    if np.isfinite(terms.bound):
        return _balanced(problem, alpha, beta, alpha, beta)
    beta /= other
    if terms.cap is Cap.TIED:
        beta = _share_under_cap(beta, 1.0 / terms.K, weights)
    beta *= total
    return alpha, beta


def _balanced(
    problem: Problem, alpha: Vector, beta: Vector, alpha_merit: Vector, beta_merit: Vector
) -> Point:
    """Equal sums: what one side has too much is taken from its variables of the least merit.

    The others stay where they are, most of them at their bound: a common factor would put every
    one of them off it.
    """
    excess = weighted_sum(alpha, problem.positive_weights)
    excess -= weighted_sum(beta, problem.competitor_weights)
    if excess > 0.0:
        _take(alpha, problem.positive_weights, alpha_merit, excess)
    else:
        _take(beta, problem.competitor_weights, beta_merit, -excess)
    return alpha, beta


def _take(values: Vector, weights: Vector, merit: Vector, amount: float) -> None:
    """Take an amount from the sum of the values, those of the least merit first, in place."""
    there = np.flatnonzero(values)
    order = there[np.argsort(merit[there], kind="stable")]
    so_far = np.cumsum(values[order] * weights[order])
    whole = int(np.searchsorted(so_far, amount, side="right"))
    values[order[:whole]] = 0.0
    if whole < len(order):
        taken = float(so_far[whole - 1]) if whole else 0.0
        last = order[whole]
        values[last] = max(0.0, values[last] - (amount - taken) / weights[last])


def _share_under_cap(
    shares: NDArray[np.float64], cap: float, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Shares that sum to one, none above `cap`, in place: the excess goes to the others."""
    np.minimum(shares, cap, out=shares)
    for _ in range(len(shares)):
        lacking = 1.0 - weighted_sum(shares, weights)
        if lacking <= 1e-15:
            break
        open_ = (shares < cap) & (shares > 0.0)
        if not open_.any():
            open_ = shares < cap
        if not open_.any():
            break
        room = cap - shares[open_]
        shares[open_] += room * min(1.0, lacking / weighted_sum(room, of_rows(weights, open_)))
    return shares


def mend(state: State) -> None:
    """Make a point feasible that rounding has taken out of the constraints."""
    if objectives.infeasibility(state.problem, state.alpha, state.beta) > BALANCED:
        state.set(*feasible(state.problem, state.alpha, state.beta))


def worth_subsampling(problem: Problem, tuning: Tuning) -> bool:
    """Whether a subsample still has enough samples on both sides."""
    enough = min(problem.n_positives, len(problem.competitors)) >= 8 * tuning.share
    return enough and not problem.family.zero_is_optimal(problem)


def extended(part: Part, solved: State, problem: Problem, scores: NDArray[np.float64]) -> Point:
    """The solution of a subsample carried over to all samples, by the scores it gives them.

    Positives below the margin start at their bound; competitors above the level join the betas.
    """
    alpha = np.zeros(len(problem.positives))
    ratio = part.problem.C / problem.C if np.isfinite(problem.C) else 1.0
    alpha[part.alphas] = np.minimum(solved.alpha, problem.alpha_max)
    t = objectives.threshold(part.problem, solved.scores)
    new = np.ones(len(alpha), dtype=bool)
    new[part.alphas] = False
    if np.isfinite(problem.alpha_max):
        below = scores[problem.positives] < 1.0 + t
        alpha[new & below] = problem.alpha_max
    elif np.isfinite(problem.C):
        alpha[part.alphas] /= ratio
        loss = np.maximum(0.0, 1.0 + t - scores[problem.positives])
        alpha[new] = 2.0 * problem.C * loss[new]
    weights = _beta_weights(part, solved, problem, scores)
    bound = problem.betas.bound
    if np.isfinite(bound):  # both sides know their sizes, and may only lack balance
        loss = scores[problem.competitors] - t
        return _balanced(problem, alpha, bound * weights, -scores[problem.positives], loss)
    return _made_feasible(problem, alpha, weights)


def embedded(part: Part, solved: State, problem: Problem, random_state: Any) -> Point:
    """The solution of a subsample as a point of the whole, without scores of the other samples.

    Where a share of the competitors has to fill the top, others are drawn to join its own.
    """
    alpha, weights = np.zeros(len(problem.positives)), np.zeros(len(problem.competitors))
    alpha[part.alphas] = np.minimum(solved.alpha, problem.alpha_max)
    weights[part.betas] = solved.beta / np.max(solved.beta)
    if np.isfinite(problem.betas.bound):
        weights[part.betas] = solved.beta
    if problem.betas.cap is Cap.TIED:
        copies = problem.competitor_weights
        lacking = problem.betas.K - weighted_sum(weights, copies)
        others = check_random_state(random_state).permutation(np.flatnonzero(weights == 0.0))
        so_far = np.cumsum(copies[others])
        weights[others[: int(np.searchsorted(so_far, lacking)) + (lacking > 0.0)]] = 1.0
    return _made_feasible(problem, alpha, weights)


def scores_by(part: Part, solved: State, whole: State) -> NDArray[np.float64]:
    """Scores of all samples by the support vectors of the part, where the whole has its own."""
    coefficients = solved.coefficients()
    support = np.flatnonzero(coefficients)
    whole.store.add_product(part.rows[support], coefficients[support], whole.scores)
    return whole.scores


def _beta_weights(
    part: Part, solved: State, problem: Problem, scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Betas in units of the cap: known ones keep theirs, others join by their score."""
    family, competing = problem.family, scores[problem.competitors]
    t = objectives.threshold(problem, scores)
    if problem.betas.norm_price or problem.betas.curvature:  # no cap that they could share
        return family.slopes(problem, competing, problem.competitor_weights, t)
    cap = solved.cap if solved.capped else float(np.max(solved.beta))
    cap = min(cap, problem.betas.bound)  # which is smaller than that of a subsample
    known, new = np.minimum(solved.beta / cap, 1.0), np.ones(len(competing), dtype=bool)
    new[part.betas] = False
    weights = family.joining(problem, competing, t, new, known).astype(np.float64)
    weights[part.betas] = known
    return weights
