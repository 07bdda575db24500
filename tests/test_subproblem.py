"""The room that solves one block: its two methods, each alone, on a block of all variables."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from attop.formulations import FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.objectives import certify
from attop.solvers.exact import Tuning, open_columns
from attop.solvers.exact.outer.state import State
from attop.solvers.exact.scaling import start
from attop.solvers.exact.subproblem.block import Group, make_block
from attop.solvers.exact.subproblem.interior import Kernels, interior_point
from attop.solvers.exact.subproblem.system import System
from attop.solvers.limits import Limits
from conftest import CASES, PARAMETERS, kernel_matrix, two_clouds
from oracle import solve_dual

every_case = pytest.mark.parametrize(("name", "surrogate"), CASES)


def state_of(name, surrogate, kernel, seed=0):
    """A state at a start with few variables, and its kernel matrix; odd ones have weights."""
    X, positive = two_clouds(15, 30, 4, seed=100 + seed)
    weights = np.random.default_rng(seed).uniform(0.2, 5.0, 45) if seed % 2 else None
    problem = FORMULATIONS[name].problem(
        positive, 2.0, surrogate, sample_weight=weights, **PARAMETERS[name]
    )
    gram = Gram(kernel, X)
    state = State(problem, open_columns(gram))
    state.set(*start.small(problem))
    return state, gram


def judged(state, gram):
    """What the referee says of the state's point."""
    return certify(state.problem, gram, state.alpha, state.beta)


def assert_optimal(state, gram, gap):
    """By the referee, and the oracle, which stops short now and then, knows nothing better."""
    certificate = judged(state, gram)
    assert certificate.certifies(gap)
    _, _, optimum = solve_dual(state.problem, kernel_matrix(gram))
    assert optimum <= certificate.primal * (1.0 + 1e-7)


@every_case
@pytest.mark.parametrize("seed", range(3))
def test_pair_moves_alone_reach_the_optimum_of_an_easy_block(name, surrogate, seed):
    """Without a turn of the interior-point method, and by as many calls as they need."""
    state, gram = state_of(name, surrogate, Kernel("rbf", gamma=2.0), seed)
    with state.store:
        for _ in range(50):
            _, turns, _ = state.solve_block(np.arange(len(state.rows)), 1e-9)
            if turns == 0:
                break
    assert turns == 0
    assert_optimal(state, gram, 1e-7)


@every_case
@pytest.mark.parametrize("seed", range(3))
def test_the_interior_point_method_alone_solves_blocks_of_low_rank(name, surrogate, seed):
    state, gram = state_of(name, surrogate, Kernel("linear"), seed)
    with state.store:
        for _ in range(3):  # each begins where the last one ended
            state.solve_large_block(np.arange(len(state.rows)), 1e-12)
    assert_optimal(state, gram, 1e-5)


@pytest.mark.parametrize("name", ["TopPush", "TauFPL", "PatMatNP", "SVM"])
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
def test_blocks_of_low_rank_are_solved_next_to_samples_far_out(name, surrogate):
    """Features between 1e-3 and 1e3: the scores of large samples cancel in the weights."""
    rng = np.random.default_rng(0)
    positive = np.arange(300) % 3 == 0
    X = rng.lognormal(sigma=2.5, size=(300, 5))
    problem = FORMULATIONS[name].problem(positive, 0.1, surrogate, **PARAMETERS[name])
    gram = Gram(Kernel("linear"), X)
    state = State(problem, open_columns(gram))
    state.set(*start.small(problem))
    with state.store:
        for _ in range(3):
            state.rescale()
            state.solve_large_block(np.arange(len(state.rows)), 1e-8)
    state.balance()
    assert judged(state, gram).certifies(1e-3)


@every_case
def test_no_time_is_no_more_than_one_call_of_pair_moves(name, surrogate):
    state, gram = state_of(name, surrogate, Kernel("rbf", gamma=0.01))
    with state.store:
        everything = np.arange(len(state.rows))
        *_, turns, batches = state.solve_block(everything, 0.0, limits=Limits(-1, 0.0))
    assert turns <= 1
    assert batches <= 4
    assert judged(state, gram).infeasibility <= 1e-12


def whole_block(state, gram):
    """All variables of a state without a group as a block."""
    value, kernel = state.value.copy(), gram.block(state.rows, state.rows)
    kernel[np.diag_indices_from(kernel)] += np.where(
        state.is_alpha, state.problem.quadratic_alpha, 0.0
    )
    block = make_block(
        kernel,
        np.zeros(len(value), dtype=bool),
        state.rows,
        diagonal=np.diag(kernel).copy(),
        weight=np.ones(len(value)),
        value=value,
        rate=state.rates(),
        rise=np.where(state.is_alpha, state.problem.alpha_max - value, value),
        fall=np.where(state.is_alpha, value, np.inf),
        group_column=np.zeros(len(value)),
    )
    return block, Group(cap=np.inf, members=0, size=0.0, square=0.0, score=0.0, floor=0.0)


@pytest.mark.parametrize("kernel", [Kernel("rbf", gamma=0.01), Kernel("rbf", gamma=2.0)], ids=str)
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
def test_the_interior_point_method_alone_solves_dense_blocks(surrogate, kernel):
    """Ill-conditioned ones too, and with rates that belong to where it went."""
    state, gram = state_of("TopPush", surrogate, kernel)
    block, group = whole_block(state, gram)
    terms = state.terms(state.n_alphas)
    found = interior_point(block, Kernels(block.kernel), group, terms, state.betas, 0.0, Tuning())
    assert found is not None
    with state.store:
        state.set(block.value[: state.n_alphas], block.value[state.n_alphas :])
    assert_optimal(state, gram, 1e-6)
    shift = block.rate - state.rates()  # the columns of the state lack a constant
    assert_allclose(shift, np.full(len(shift), np.mean(shift)), atol=1e-8)


def test_no_change_where_nothing_can_be_gained():
    state, gram = state_of("TopPush", "hinge", Kernel("rbf", gamma=0.5))
    with state.store:
        for _ in range(3):  # each call ends after a budget of moves
            state.solve_block(np.arange(len(state.rows)), 1e-12)
    assert_optimal(state, gram, 1e-9)
    block, group = whole_block(state, gram)
    terms = state.terms(state.n_alphas)
    interior_point(block, Kernels(block.kernel), group, terms, state.betas, 0.0, Tuning())
    assert_allclose(block.value, state.value, atol=1e-5)


@every_case
def test_a_block_of_some_variables_changes_no_others_and_loses_nothing(name, surrogate):
    state, gram = state_of(name, surrogate, Kernel("rbf", gamma=0.3))
    rng = np.random.default_rng(0)
    with state.store:
        for _ in range(10):
            chosen = np.sort(rng.choice(len(state.rows), 12, replace=False))
            others = np.setdiff1d(np.arange(len(state.rows)), chosen)
            others = others[~state.member[others]]  # members move with the cap
            before, dual = state.value[others].copy(), judged(state, gram).dual
            state.solve_block(chosen, 1e-9)
            assert_allclose(state.value[others], before, rtol=0)
            after = judged(state, gram)
            assert after.infeasibility <= 1e-9
            assert after.dual >= dual - 1e-9 * abs(dual)
    scores = kernel_matrix(gram) @ state.coefficients()
    assert_allclose(state.scores - state.scores[0], scores - scores[0], atol=1e-9)


@pytest.mark.parametrize("dropped", [0, 1, 3])
@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_the_system_of_a_face_solves_its_equations(penalty, dropped):
    """With two variables for a sample, with a price on the norm, and after some have left."""
    rng = np.random.default_rng(dropped)
    samples = np.array([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 1, 3, 4, 5, *range(11, 25)])
    kernel = kernel_matrix(Gram(Kernel("rbf", gamma=0.3), rng.normal(size=(25, 3))))
    kernel = kernel[np.ix_(samples, samples)] + penalty * np.eye(len(samples))
    own, betas = np.where(np.arange(28) >= 10, 0.3, 0.0), np.where(np.arange(28) >= 10, 0.1, 0.0)
    system = System(kernel, np.arange(28), own, samples, None, (0.2, betas), 0.0, 1e-12)
    assert (system.pairs is not None) == (penalty > 0.0)
    gone = np.arange(28) < dropped
    assert system.drop(gone)
    form = (kernel + np.diag(own) - 0.2 * np.outer(betas, betas))[~gone][:, ~gone]
    right = rng.normal(size=(2, 28 - dropped))
    found = system.solve(np.hstack([right, np.zeros((2, 1))]))
    assert_allclose(found[:, :-1] @ form, right, atol=1e-8)
