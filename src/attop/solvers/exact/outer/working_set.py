"""Which variables to solve for next: those that violate optimality most, and their company."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attop._weights import weighted
from attop.kernels.columns import ColumnStore
from attop.kernels.device.store import DeviceStore
from attop.solvers.exact.outer.state import State

#: Bytes that an entry of a block takes which is factorised: in the block, and in the factor.
_BYTES = 10


class Kind(NamedTuple):
    """The variables of one kind (alphas or betas) that can move, and their common rate.

    Attributes
    ----------
    first : number of the first variable of this kind.
    rates : gain rates of moving up.
    rises, falls : which can move up, which down.
    level : the rate of the free ones, as far as they agree yet.
    """

    first: int
    rates: NDArray[np.float64]
    rises: NDArray[np.bool_]
    falls: NDArray[np.bool_]
    level: float

    def violators(self, upwards: bool, most: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Those on the wrong side of the level, worst first: variables and violations."""
        side = self.rises & (self.rates > self.level)
        if not upwards:
            side = self.falls & (self.rates < self.level)
        which = np.flatnonzero(side)
        violation = np.abs(self.rates[which] - self.level)
        worst = _largest(violation, most)
        return self.first + which[worst], violation[worst]

    def n_outside(self) -> int:
        """How many sit at a bound that they should leave."""
        rise = self.rises & ~self.falls & (self.rates > self.level)
        fall = self.falls & ~self.rises & (self.rates < self.level)
        return int(np.count_nonzero(rise) + np.count_nonzero(fall))

    def highest(self) -> float:
        """Largest rate of what can rise."""
        return float(np.max(self.rates, where=self.rises, initial=-np.inf))

    def lowest(self) -> float:
        """Smallest rate of what can fall."""
        return float(np.min(self.rates, where=self.falls, initial=np.inf))


def choose(
    state: State,
    previous: NDArray[np.intp],
    creeping: bool = False,
) -> tuple[NDArray[np.intp], float]:
    """The variables of the next block, in order, and the largest violation over all variables.

    Parameters
    ----------
    state : State
        The point.
    previous : ndarray
        The variables of the last block, of which some stay.
    creeping : bool
        Whether the last block brought little: then those join, as far as their columns are at
        hand, that have not much to go until they violate optimality, too.
    """
    # Two variables of a sample share a column: the bound counts only if columns do not all fit.
    everything_fits = state.store.capacity >= state.store.n_samples
    limit = len(state.rows) if everything_fits else state.store.capacity
    kinds, tuning = _kinds(state), state.tuning
    violation = _violation(state, kinds)
    if len(state.rows) <= min(tuning.whole_up_to, limit):
        return np.arange(len(state.rows)), violation
    quota = min(tuning.violators, limit // 2)
    # A quarter may need new columns: a later round might ask for others.
    chosen = _violators(state, kinds, quota, min(tuning.violators // 4, quota))
    stay = previous[state.value[previous] > 0.0][: quota // 2]
    known = np.concatenate([_blockers(state, quota // 8), _free(state, kinds), stay])
    if creeping:
        known = np.concatenate([known, _nearest(kinds, tuning.free)])
    known = known[state.store.cached(state.rows[known])]
    merged = np.concatenate([chosen, known])
    _, first = np.unique(merged, return_index=True)
    return np.sort(merged[np.sort(first)][:limit]), violation


def large_block(state: State) -> int:
    """Size of a block that the rank of the kernel makes cheap; 0 where it does not."""
    rank = state.store.rank
    if rank is None:
        return 0
    tuning = state.tuning
    most = int(min(tuning.large_numbers / rank, tuning.large_operations / rank**2))
    if most < 4 * rank or most <= tuning.violators:
        return 0
    large = max(min(tuning.large, tuning.per_feature * rank), 2 * count_free(state))
    return min(large, most, len(state.rows))


def free_block(state: State, effort: float) -> NDArray[np.intp] | None:
    """All free variables and those that violate optimality or nearly do, if many are free.

    On a processor only where pair moves, whose `effort` is that so far, have cost as much as a
    factorisation would: many problems are solved before.

    Columns that must be computed are those of the worst violators only: while thousands of free
    variables are off their level, many others seem to violate that do not in the end.
    """
    if not isinstance(state.store, ColumnStore | DeviceStore):
        return None
    kinds, tuning = _kinds(state), state.tuning
    n_free = sum(int(np.count_nonzero(kind.rises & kind.falls)) for kind in kinds)
    if isinstance(state.store, DeviceStore):
        least, joining = tuning.on_device_from, tuning.joining_on_device
        largest = min(tuning.on_device_up_to, state.store.largest_block())
    elif effort < n_free**3 / tuning.products:
        return None
    else:
        affordable = int((state.store.n_bytes / _BYTES) ** 0.5)
        joining = tuning.joining
        least, largest = tuning.guesses_from, min(tuning.guesses_up_to, affordable)
    most = min(state.store.capacity, largest)
    if not least <= n_free <= most:
        return None
    upwards = [kind.violators(True, most)[0] for kind in kinds]
    downwards = [kind.violators(False, most)[0] for kind in kinds]
    n_violators = sum(len(some) for some in (*upwards, *downwards))
    chosen = _nearest(kinds, min(most, n_free + n_violators + tuning.violators))
    missing = ~state.store.cached(state.rows[chosen])
    missing[:n_free] = False  # the free ones come first, and all of them
    # Those that do not violate yet wait: each column of theirs that is not needed costs as much.
    outside = sum(kind.n_outside() for kind in kinds)
    some = np.cumsum(missing) <= min(max(tuning.violators // 2, n_free // joining), outside)
    chosen = np.concatenate([chosen[some | ~missing], _blockers(state, tuning.violators)])
    return np.unique(chosen)


def count_free(state: State) -> int:
    """How many variables can both rise and fall."""
    return sum(int(np.count_nonzero(kind.rises & kind.falls)) for kind in _kinds(state))


def choose_large(state: State, size: int) -> NDArray[np.intp]:
    """The variables of a large block: violators, free ones, and those nearest to being either."""
    return np.sort(_nearest(_kinds(state), size))


def _nearest(kinds: tuple[Kind, Kind], count: int) -> NDArray[np.intp]:
    """The variables that violate optimality, are free, or would be next; worst first."""
    slack = []
    for kind in kinds:
        distance = kind.rates - kind.level
        # What sits at a bound may stay there as far as the level is on the right side.
        slack.append(np.select([~kind.rises, ~kind.falls], [distance, -distance], -np.inf))
    return _largest(-np.concatenate(slack), count)


def _kinds(state: State) -> tuple[Kind, Kind]:
    """Alphas and betas with what they can do and their levels."""
    n, rates, value = state.n_alphas, state.full_rates(), state.value
    alpha_rates, beta_rates = rates[:n], rates[n:]
    alpha_rises, alpha_falls = value[:n] < state.problem.alpha_max, value[:n] > 0.0
    beta_rises, beta_falls = value[n:] > 0.0, ~state.member[n:] & (value[n:] < state.betas.bound)
    alpha_free = alpha_rates[alpha_rises & alpha_falls]
    beta_free = beta_rates[beta_rises & beta_falls]
    alphas = Kind(0, alpha_rates, alpha_rises, alpha_falls, 0.0)
    betas = Kind(n, beta_rates, beta_rises, beta_falls, 0.0)
    if not state.tied:
        free = np.concatenate([alpha_free, beta_free])
        group = state.group_rate()
        if group is not None:  # a free variable like the others, and sometimes the only one
            free = np.append(free, group)
        level = _level([alphas, betas], free)
        return alphas._replace(level=level), betas._replace(level=level)
    # A free alpha has the score 1 + t, and the betas say what t is: the mean of their scores.
    copies = weighted(state.beta, state.problem.competitor_weights)
    total = float(np.sum(copies))
    threshold = float(np.dot(copies, -beta_rates)) / total if total > 0.0 else 0.0
    return alphas._replace(level=-threshold), betas._replace(level=_level([betas], beta_free))


def _level(kinds: list[Kind], free: NDArray[np.float64]) -> float:
    """The common rate of the free variables; between the extremes where there are none."""
    if len(free):
        return float(np.mean(free))
    most = max(kind.highest() for kind in kinds)
    least = min(kind.lowest() for kind in kinds)
    return 0.5 * (most + least) if np.isfinite(most) and np.isfinite(least) else 0.0


def _violation(state: State, kinds: tuple[Kind, Kind]) -> float:
    """Spread of the rates between what can rise and what can fall."""
    if state.tied:
        return max(kind.highest() - kind.lowest() for kind in kinds)
    group = state.group_rate()
    both = [] if group is None else [group]
    highest = max([kind.highest() for kind in kinds] + both)
    return highest - min([kind.lowest() for kind in kinds] + both)


def _violators(state: State, kinds: Any, quota: int, new: int) -> NDArray[np.intp]:
    """The worst of each kind and direction, at most `new` without a column at hand.

    Each has its share; what some leave goes to the worst of the others.
    """
    moves = [kind.violators(upwards, quota) for kind in kinds for upwards in (True, False)]
    chosen = []
    for at_hand, bound in ((True, quota), (False, new)):
        first, rest, severity, share = [], [], [], bound // len(moves)
        for which, violation in moves:
            fits = state.store.cached(state.rows[which]) == at_hand
            first.append(which[fits][:share])
            rest.append(which[fits][share:])
            severity.append(violation[fits][share:])
        left = bound - sum(len(part) for part in first)
        order = np.argsort(-np.concatenate(severity), kind="stable")
        chosen += [*first, np.concatenate(rest)[order[: max(left, 0)]]]
    return np.unique(np.concatenate(chosen))


def _blockers(state: State, count: int) -> NDArray[np.intp]:
    """The largest betas below the cap: the group cannot pass them."""
    if not state.capped:
        return np.empty(0, dtype=np.intp)
    below = np.flatnonzero((state.beta > 0.0) & ~state.member[state.n_alphas :])
    return state.n_alphas + below[_largest(state.beta[below], count)]


def _free(state: State, kinds: tuple[Kind, Kind]) -> NDArray[np.intp]:
    """Free variables with a column at hand, those farthest from their level first."""
    which, distance = [], []
    for kind in kinds:
        free = np.flatnonzero(kind.rises & kind.falls)
        free = free[state.store.cached(state.rows[kind.first + free])]
        which.append(kind.first + free)
        distance.append(np.abs(kind.rates[free] - kind.level))
    return np.concatenate(which)[_largest(np.concatenate(distance), state.tuning.free)]


def _largest(values: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Indices of the `count` largest values, largest first."""
    if len(values) > count:
        top = np.argpartition(values, len(values) - count)[len(values) - count :]
    else:
        top = np.arange(len(values))
    return top[np.argsort(-values[top], kind="stable")]
