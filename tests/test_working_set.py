"""Which variables come next: those that violate optimality most, within their quotas."""

from __future__ import annotations

import numpy as np
import pytest

from attop.formulations import FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.solvers.exact import Tuning, open_columns, solve
from attop.solvers.exact.outer.state import State
from attop.solvers.exact.outer.working_set import choose, choose_large, large_block
from attop.solvers.exact.scaling import start
from conftest import CASES, PARAMETERS, two_clouds

NOTHING = np.empty(0, dtype=np.intp)
#: So small that no block has all variables.
SMALL = Tuning(whole_up_to=10, violators=16, free=40)


def state_of(name="TopPush", surrogate="hinge", tuning=SMALL, kernel="rbf", seed=0):
    X, positive = two_clouds(60, 140, 4, seed=200 + seed)
    problem = FORMULATIONS[name].problem(positive, 1.0, surrogate, **PARAMETERS[name])
    gram = Gram(Kernel(kernel, gamma=0.3), X)
    state = State(problem, open_columns(gram), tuning)
    state.set(*start.small(problem))
    return state, gram


def most_violating_pair(state):
    """By definition, of a dual without a cap: the largest gain rate of what can rise, and where."""
    rates = state.full_rates()
    rises = np.where(state.is_alpha, state.value < state.problem.alpha_max, state.value > 0.0)
    falls = np.where(state.is_alpha, state.value > 0.0, True)
    up = np.where(rises, rates, -np.inf)
    down = np.where(falls, rates, np.inf)
    return int(np.argmax(up)), int(np.argmin(down)), float(np.max(up) - np.min(down))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
def test_the_most_violating_pair_is_among_the_chosen(surrogate, seed):
    state, _ = state_of(surrogate=surrogate, seed=seed)
    with state.store:
        up, down, expected = most_violating_pair(state)
        chosen, violation = choose(state, NOTHING)
    assert violation == pytest.approx(expected)
    assert {up, down} <= set(chosen)


@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_blocks_are_in_order_without_repetition_and_within_their_quotas(name, surrogate):
    state, _ = state_of(name, surrogate)
    previous = NOTHING
    with state.store:
        for creeping in (False, True, False):
            at_hand = state.store.cached(state.rows)
            chosen, _ = choose(state, previous, creeping)
            assert np.all(np.diff(chosen) > 0)
            assert len(chosen) < len(state.rows)
            new = np.unique(state.rows[chosen[~at_hand[chosen]]])
            assert len(new) <= 8
            state.solve_block(chosen, 1e-6)
            previous = chosen


@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_at_the_optimum_nothing_violates(name, surrogate):
    state, gram = state_of(name, surrogate)
    solution = solve(state.problem, gram, tol=1e-9, random_state=0)
    with state.store:
        start_violation = choose(state, NOTHING)[1]
        state.set(solution.alpha, solution.beta)
        assert choose(state, NOTHING)[1] < 0.02 * start_violation


def test_few_variables_are_all_chosen():
    state, _ = state_of(tuning=Tuning())
    with state.store:
        chosen, _ = choose(state, NOTHING)
    assert list(chosen) == list(range(len(state.rows)))


def test_large_blocks_are_for_kernels_of_low_rank():
    state, _ = state_of(kernel="rbf")
    with state.store:
        assert large_block(state) == 0
    state, _ = state_of(kernel="linear")
    with state.store:
        assert large_block(state) == len(state.rows)
        assert list(choose_large(state, len(state.rows))) == list(range(len(state.rows)))
        up, down, _ = most_violating_pair(state)
        some = choose_large(state, 40)
        assert len(some) == 40
        free = np.flatnonzero((state.value > 0.0) & (state.value < state.problem.alpha_max))
        assert set(free) | {up, down} <= set(some)
