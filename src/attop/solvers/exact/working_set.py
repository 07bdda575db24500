"""Which variables to solve for next: those that violate optimality most, and their company."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attop.problem import Family
from attop.solvers.exact.state import State

#: Variables chosen for their violation.
VIOLATORS = 512
#: Of these, at first at most so many whose columns must be computed; bounds of that number.
NEW_COLUMNS, LEAST_NEW, MOST_NEW = 256, 96, 512
#: Free variables with a column at hand that join; without them rounds multiply.
FREE = 768


def choose(
    state: State, previous: NDArray[np.intp], new_columns: int = NEW_COLUMNS
) -> tuple[NDArray[np.intp], float]:
    """The variables of the next block and the largest violation over all variables.

    Parameters
    ----------
    state : State
        The point.
    previous : ndarray
        The variables of the last block, of which some stay.
    new_columns : int
        How many columns may be computed for the new block.
    """
    # Two variables of a sample share a column: the bound counts only if columns do not all fit.
    everything_fits = state.store.capacity >= state.store.source.n_samples
    limit = len(state.rows) if everything_fits else state.store.capacity
    rates = state.full_rates()
    total = len(rates)
    if total <= min(1024, limit):
        return np.arange(total), _violation(state, rates)
    quota = min(VIOLATORS, limit // 2)
    kinds, level = _kinds(state, rates)
    chosen = _violators(state, kinds, quota, min(new_columns, quota))
    company = [_blockers(state, quota // 8), _free(state, rates, level)]
    company.append(previous[state.value[previous] > 0.0][: quota // 2])
    known = np.concatenate(company)
    known = known[state.store.cached(state.rows[known])]
    merged = np.concatenate([chosen, known])
    _, first = np.unique(merged, return_index=True)
    return np.sort(merged[np.sort(first)][:limit]), _violation(state, rates)


def adapted(new_columns: int, useful: float) -> int:
    """How many new columns to allow next, when the share `useful` of the last was of use."""
    if useful > 0.9:
        return min(2 * new_columns, MOST_NEW)
    if useful < 0.6:
        return max(new_columns // 2, LEAST_NEW)
    return new_columns


def _can_rise(state: State) -> NDArray[np.bool_]:
    """Which variables can move up: alphas below their bound, positive betas."""
    return np.where(state.is_alpha, state.value < state.problem.alpha_max, state.value > 0.0)


def _can_fall(state: State) -> NDArray[np.bool_]:
    """Which variables can move down: positive alphas, betas below the cap."""
    return np.where(state.is_alpha, state.value > 0.0, ~state.member)


def _violation(state: State, rates: NDArray[np.float64]) -> float:
    """Spread of the rates between what can rise and what can fall, the larger of both kinds."""
    rises, falls = _can_rise(state), _can_fall(state)
    parts = [np.ones(len(rates), dtype=bool)]
    if state.capped and state.problem.family == Family.TIED_CAP:
        parts = [state.is_alpha, ~state.is_alpha]
    spreads = [
        np.max(rates, where=part & rises, initial=-np.inf)
        - np.min(rates, where=part & falls, initial=np.inf)
        for part in parts
    ]
    return float(max(spreads))


def _level(state: State, rates, part) -> float:
    """The common rate of the free variables of a kind, as far as they agree yet."""
    free = part & _can_rise(state) & _can_fall(state)
    if free.any():
        return float(np.mean(rates[free]))
    most = np.max(rates, where=part & _can_rise(state), initial=-np.inf)
    least = np.min(rates, where=part & _can_fall(state), initial=np.inf)
    return float(0.5 * (most + least)) if np.isfinite(most) and np.isfinite(least) else 0.0


def _kinds(state: State, rates):
    """For each kind of move, how much each variable violates; and each variable's level."""
    rises, falls = _can_rise(state), _can_fall(state)
    everything = np.ones(len(rates), dtype=bool)
    parts = [everything]
    if state.capped and state.problem.family == Family.TIED_CAP:
        parts = [state.is_alpha, ~state.is_alpha]
    level = np.empty(len(rates))
    kinds = []
    for part in parts:
        level[part] = _level(state, rates, part)
    if len(parts) == 2:
        # A free alpha has the score 1 + t, and the betas say what t is: the mean of their scores.
        total = np.sum(state.beta)
        if total > 0.0:
            threshold = np.dot(state.beta, state.scores[state.problem.competitors]) / total
            level[: state.n_alphas] = -threshold
    for part in parts:
        kinds.append(np.where(part & rises, rates - level, 0.0))
        kinds.append(np.where(part & falls, level - rates, 0.0))
    return kinds, level


def _violators(state: State, kinds, quota: int, new: int) -> NDArray[np.intp]:
    """The worst of each kind, with a bound on those whose columns are not at hand.

    Each kind has its share of the bound; what it leaves goes to the worst of all kinds.
    """
    share = quota // len(kinds)
    chosen, unknown, severity = [], [], []
    for violation in kinds:
        worst = _largest(violation, quota)
        worst = worst[violation[worst] > 0.0]
        known = state.store.cached(state.rows[worst])
        chosen.append(worst[known][:share])
        fresh = worst[~known]
        chosen.append(fresh[: new // len(kinds)])
        unknown.append(fresh[new // len(kinds) :])
        severity.append(violation[unknown[-1]])
    left = new - sum(len(fresh) for fresh in chosen[1::2])
    rest = np.concatenate(unknown)[np.argsort(-np.concatenate(severity), kind="stable")]
    return np.unique(np.concatenate([*chosen, rest[: max(left, 0)]]))


def _blockers(state: State, count: int) -> NDArray[np.intp]:
    """The largest betas below the cap: the group cannot pass them."""
    if not state.capped:
        return np.empty(0, dtype=np.intp)
    below = np.where(~state.is_alpha & ~state.member, state.value, 0.0)
    largest = _largest(below, count)
    return largest[below[largest] > 0.0]


def _free(state: State, rates, level) -> NDArray[np.intp]:
    """Free variables with a column at hand, those farthest from their level first."""
    free = np.flatnonzero(_can_rise(state) & _can_fall(state) & (state.value > 0.0))
    free = free[state.store.cached(state.rows[free])]
    order = np.argsort(-np.abs(rates[free] - level[free]), kind="stable")
    return free[order[:FREE]]


def _largest(values: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Indices of the `count` largest values, largest first."""
    count = min(count, len(values))
    if count == 0:
        return np.empty(0, dtype=np.intp)
    top = np.argpartition(values, len(values) - count)[len(values) - count :]
    return top[np.argsort(-values[top], kind="stable")]
