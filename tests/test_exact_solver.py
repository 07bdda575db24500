"""The exact solver reaches the optimum, from anywhere, and says so truthfully."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from attop.datasets import load_ionosphere
from attop.families import QuantileHinge, QuantileQuadratic
from attop.families.top_mean import mean_of_largest
from attop.formulations import FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.objectives import certify, infeasibility
from attop.problem import Problem
from attop.solvers.exact import Tuning, open_columns, solve
from attop.solvers.exact.outer.loop import Loop
from attop.solvers.exact.outer.state import State
from attop.solvers.exact.scaling import start as starts
from attop.solvers.exact.scaling.bounded_scores import BoundedScores
from attop.solvers.exact.scaling.parts import largest_of
from attop.solvers.exact.subproblem.block import Group, Terms, make_block
from attop.solvers.exact.subproblem.moves import move_pairs
from attop.solvers.limits import Limits
from attop.solvers.solution import Status
from conftest import CASES, PARAMETERS, kernel_matrix, scarce_columns, two_clouds
from oracle import solve_dual

#: Where two-coordinate descent stalls; optima by an interior-point method.
STALLS = [
    ("TopPush", {}, 85.1755),
    ("TopPushK", {"K": 5}, 68.1456),
    ("TopPushK", {"K": 10}, 54.6653),
    ("PatMatNP", {"tau": 0.05, "theta": 1.0}, 101.5909),
    ("PatMatNP", {"tau": 0.05, "theta": 0.1}, 1433.38),
]


@pytest.mark.parametrize(("name", "parameters", "optimum"), STALLS)
def test_solves_the_problems_on_which_two_coordinate_descent_stalls(name, parameters, optimum):
    X, y = load_ionosphere(return_X_y=True)
    X, positive = StandardScaler().fit_transform(X), y == 1
    problem = FORMULATIONS[name].problem(
        positive, 1.0 / (1e-3 * positive.sum()), "hinge", **parameters
    )
    solution = solve(problem, Gram(Kernel("rbf", gamma=1 / 34), X), tol=1e-6, random_state=0)
    assert solution.status is Status.CONVERGED
    assert solution.certificate.dual == pytest.approx(optimum, rel=1e-5)


def random_problem(rng) -> tuple[Problem, Gram]:
    """A small problem with duplicates, few positives or heavy imbalance, any family."""
    n_positive, n_negative = rng.choice([1, 2, 5, 20, 40]), rng.choice([1, 3, 10, 60, 120])
    X, positive = two_clouds(
        int(n_positive),
        int(n_negative),
        int(rng.choice([1, 2, 5])),
        rng.choice([0.0, 0.5, 3.0]),
        seed=int(rng.integers(2**31)),
    )
    if rng.random() < 0.4:
        X = np.round(X)
    everyone = np.arange(len(X))
    competitors = everyone if rng.random() < 0.4 else np.flatnonzero(~positive)
    common = {
        "positives": np.flatnonzero(positive),
        "competitors": competitors,
        "C": float(rng.choice([1e-3, 0.1, 1.0, 30.0, 1e3])),
        "surrogate": str(rng.choice(["hinge", "quadratic_hinge"])),
    }
    if rng.random() < 0.5:
        family = mean_of_largest(int(rng.integers(1, len(competitors) + 1)))
    else:
        quantile = QuantileHinge if common["surrogate"] == "hinge" else QuantileQuadratic
        budget = len(competitors) * float(rng.choice([0.01, 0.05, 0.3, 0.9]))
        family = quantile(budget, float(rng.choice([0.01, 1.0, 10.0])))
    problem = Problem.of(**common, family=family)
    name = str(rng.choice(["rbf", "linear", "poly", "laplacian"]))
    return problem, Gram(Kernel(name, gamma=0.5, degree=2, coef0=1.0), X)


@pytest.mark.parametrize("seed", range(120))
def test_agrees_with_an_interior_point_method_on_random_problems(seed):
    problem, gram = random_problem(np.random.default_rng(seed))
    solution = solve(problem, gram, tol=1e-6, random_state=0)
    certificate = solution.certificate
    assert solution.status is Status.CONVERGED
    assert certificate.gap <= 1e-6
    assert certificate.infeasibility <= 1e-9
    _, _, optimum = solve_dual(problem, kernel_matrix(gram))
    # The oracle sometimes stops short; a dual value above ours would disprove us.
    assert optimum <= certificate.primal * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_does_not_depend_on_the_start(small_case, seed):
    problem, gram = small_case
    rng = np.random.default_rng(seed)
    wild = (
        rng.exponential(size=len(problem.positives)) * 3.0,
        rng.exponential(size=len(problem.competitors))
        * rng.integers(0, 2, len(problem.competitors)),
    )
    cold = solve(problem, gram, tol=1e-8, random_state=0)
    warm = solve(problem, gram, tol=1e-8, random_state=0, start=wild)
    assert warm.certificate.dual == pytest.approx(cold.certificate.dual, rel=1e-7)


def test_a_zero_start_is_no_trap(small_case):
    problem, gram = small_case
    zero = np.zeros(len(problem.positives)), np.zeros(len(problem.competitors))
    assert solve(problem, gram, tol=1e-6, random_state=0, start=zero).certificate.gap <= 1e-6


def hard_case(name: str, n_positive=150, n_negative=350, surrogate="hinge", **parameters):
    X, positive = two_clouds(n_positive, n_negative, 4, 0.7, seed=1)
    problem = FORMULATIONS[name].problem(positive, 5.0, surrogate, **parameters)
    return problem, Gram(Kernel("rbf", gamma=0.5), X)


HARD = [
    ("TopPush", {}),
    ("TopPushK", {"K": 7}),
    ("TauFPL", {"tau": 0.2}),
    ("PatMatNP", {"tau": 0.1, "theta": 1.0}),
]


@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize(("name", "parameters"), HARD)
def test_few_columns_in_memory_give_the_same_optimum(name, parameters, surrogate):
    problem, gram = hard_case(name, surrogate=surrogate, **parameters)
    plenty = solve(problem, gram, tol=1e-5, random_state=0)
    with scarce_columns(gram, 80) as store:  # some 190 support vectors
        scarce = solve(problem, gram, tol=1e-5, random_state=0, columns=store)
    assert scarce.certificate.gap <= 1e-5
    assert scarce.certificate.dual == pytest.approx(plenty.certificate.dual, rel=2e-5)
    assert scarce.stats["columns"] > plenty.stats["columns"]


def test_the_store_never_holds_more_columns_than_its_budget():
    problem, gram = hard_case("TauFPL", tau=0.2)
    with scarce_columns(gram, 100) as store:
        assert store.capacity == 100
        solve(problem, gram, random_state=0, columns=store)
        assert store.cached(np.arange(500)).sum() <= 100
        rows = np.flatnonzero(store.cached(np.arange(500)))
        stored = store.buffer[store.slot_of_row[rows]]
    assert_allclose(stored, gram.block(rows, np.arange(500)) - 1.0, atol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_fits_share_an_open_store(kernel):
    problem, gram = large_case("TauFPL", kernel, tau=0.05)
    with open_columns(gram) as store:
        first = solve(problem, gram, random_state=0, columns=store)
        again = solve(problem, gram, random_state=0, columns=store)
    assert again.stats["columns"] <= 0.6 * first.stats["columns"]
    assert again.certificate.dual == pytest.approx(first.certificate.dual, rel=1e-4)


@pytest.mark.parametrize(("name", "parameters"), HARD)
def test_the_same_input_and_seed_give_the_same_model(name, parameters):
    problem, gram = hard_case(name, **parameters)
    first, second = (solve(problem, gram, random_state=3) for _ in range(2))
    assert_array_equal(first.alpha, second.alpha)
    assert_array_equal(first.beta, second.beta)


def large_case(name: str, kernel: str, **parameters):
    """Enough samples for a subsample start and columns in single precision."""
    X, positive = two_clouds(700, 4300, 6, 1.0, seed=2)
    problem = FORMULATIONS[name].problem(positive, 0.5, "hinge", **parameters)
    return problem, Gram(Kernel(kernel, gamma=1 / 6), X.astype(np.float32))


@pytest.mark.parametrize(("name", "parameters"), HARD)
def test_large_problems_are_certified_and_take_few_columns_in_vain(name, parameters):
    problem, gram = large_case(name, "rbf", **parameters)
    solution = solve(problem, gram, random_state=0)
    assert solution.status is Status.CONVERGED
    assert solution.certificate.gap <= 1e-4
    # Support vectors need theirs; `benchmarks/counts.py` watches the number.
    assert solution.stats["columns"] < 2.0 * solution.stats["support"]


EVERY = [
    *HARD,
    ("PatMat", {"tau": 0.1, "theta": 1.0}),
    ("TopMeanK", {"tau": 0.1}),
]


def sparse_case(name: str, kernel: str, surrogate: str, **parameters):
    """Enough samples for parts, and so few that matter that the active part is worth solving."""
    X, positive = two_clouds(200, 4800, 5, 3.0, seed=7)
    problem = FORMULATIONS[name].problem(positive, 0.5, surrogate, **parameters)
    return problem, Gram(Kernel(kernel, gamma=0.1), X.astype(np.float32))


AT_ONCE, BY_PARTS = Tuning(parts_from=10**9), Tuning(cheaper=1, free_by_parts=1.0)


@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize(("name", "parameters"), EVERY)
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_solving_the_active_part_gives_the_optimum_of_the_whole(
    name, parameters, surrogate, kernel
):
    problem, gram = sparse_case(name, kernel, surrogate, **parameters)
    by_parts = solve(problem, gram, tol=1e-5, random_state=0, tuning=BY_PARTS)
    assert by_parts.status is Status.CONVERGED
    at_once = solve(problem, gram, tol=1e-5, random_state=0, tuning=AT_ONCE)
    assert by_parts.certificate.dual == pytest.approx(at_once.certificate.dual, rel=2e-5)
    assert at_once.stats.get("parts", 0) == 0
    if (name, surrogate) == ("TopPush", "hinge"):
        assert by_parts.stats["parts"] > 0
        if kernel == "rbf":  # the other has few support vectors in any case
            assert by_parts.stats["columns"] < at_once.stats["columns"]


@pytest.mark.parametrize(("name", "parameters"), HARD)
def test_with_many_free_variables_the_whole_follows_the_subsample_at_once(name, parameters):
    problem, gram = sparse_case(name, "rbf", "quadratic_hinge", **parameters)
    many = replace(BY_PARTS, free_by_parts=0.0)
    at_once, by_parts = (
        solve(problem, gram, tol=1e-5, random_state=0, tuning=tuning) for tuning in (many, BY_PARTS)
    )
    assert at_once.stats["seconds_subsample"] > 0.0
    assert at_once.stats.get("parts", 0) == 0
    assert at_once.status is Status.CONVERGED
    assert at_once.certificate.dual == pytest.approx(by_parts.certificate.dual, rel=2e-5)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(("name", "parameters"), HARD)
def test_a_hard_margin_is_found_by_parts_too(name, parameters, kernel):
    X, positive = two_clouds(200, 4800, 5, 8.0, seed=7)
    problem = FORMULATIONS[name].problem(positive, np.inf, "hinge", **parameters)
    gram = Gram(Kernel(kernel, gamma=0.02), X)
    by_parts = solve(problem, gram, tol=1e-5, random_state=0, tuning=BY_PARTS)
    assert by_parts.status is Status.CONVERGED
    at_once = solve(problem, gram, tol=1e-5, random_state=0, tuning=AT_ONCE)
    assert by_parts.certificate.dual == pytest.approx(at_once.certificate.dual, rel=2e-5)
    if name == "TopPush":
        assert by_parts.stats["parts"] > 0


@pytest.mark.parametrize(("name", "parameters"), HARD[:2])
def test_parts_share_a_small_budget_with_the_whole(name, parameters):
    problem, gram = sparse_case(name, "rbf", "hinge", **parameters)
    plenty = solve(problem, gram, random_state=0)
    scarce = solve(problem, gram, random_state=0, cache_bytes=100 * 5000 * 4)
    assert scarce.stats["parts"] > 0
    assert scarce.status is Status.CONVERGED
    assert scarce.certificate.dual == pytest.approx(plenty.certificate.dual, rel=2e-4)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 6, 9])
def test_the_largest_come_before_those_that_are_equal(count):
    merit = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 2.0, 9.0])
    candidates = np.array([True, True, True, True, True, True, False])
    chosen = merit[largest_of(candidates, merit, count)]
    assert_array_equal(np.sort(chosen)[::-1], [3.0, 2.0, 2.0, 1.0, 1.0, 1.0][:count])


@pytest.mark.parametrize("count", [1, 50, 4000, 60000])
@pytest.mark.parametrize("order", ["any", "rising", "falling", "many alike"])
def test_the_largest_of_many_are_those_of_a_sort(order, count):
    rng = np.random.default_rng(0)
    merit = rng.normal(size=70000)
    if order != "any":
        merit.sort()
    if order == "falling":
        merit = merit[::-1].copy()
    if order == "many alike":
        merit = np.round(merit)
    candidates = rng.uniform(size=len(merit)) < 0.9
    chosen = largest_of(candidates, merit, count)
    assert chosen.sum() == count
    assert not np.any(chosen & ~candidates)
    assert_array_equal(np.sort(merit[chosen]), np.sort(merit[candidates])[-count:])


#: With a steep surrogate few samples are near the threshold of PatMatNP.
SMOOTH = [*HARD[:2], ("TauFPL", {"tau": 0.03}), ("PatMatNP", {"tau": 0.02, "theta": 300.0})]


def smooth_case(name: str, surrogate: str, **parameters):
    """Many support vectors of a smooth model: few columns tell its scores."""
    X, positive = two_clouds(400, 5600, 30, 3.0, seed=7)
    problem = FORMULATIONS[name].problem(positive, 1e-3, surrogate, **parameters)
    return problem, Gram(Kernel("rbf", gamma=0.2 / 30), X.astype(np.float32))


class Observed(BoundedScores):
    """Remembers where it went."""

    def __init__(self, state):
        super().__init__(state)
        self.points = []

    def follow(self, part, small):
        super().follow(part, small)
        state = self.state
        self.points.append((state.coefficients(), state.scores.copy(), self.doubt.copy()))


#: A reference of any size will do.
ANY_REFERENCE = Tuning(fewer=1, cheaper=1)


def kept_by_bounds(problem, gram):
    """The keeper of the scores of a fit, after it."""
    with open_columns(gram) as store:
        keeper = Observed(State(problem, store, ANY_REFERENCE))
        loop = Loop(keeper.state, Limits(-1, None), 0, keeper=keeper)
        assert loop.begin(None, 0) is None
        assert loop.run(5e-5) is Status.CONVERGED
        yield keeper


@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize(("name", "parameters"), SMOOTH)
def test_scores_out_of_reach_are_within_their_bounds(name, parameters, surrogate):
    problem, gram = smooth_case(name, surrogate, **parameters)
    solution = solve(problem, gram, random_state=0, tuning=ANY_REFERENCE)
    (keeper,) = kept_by_bounds(problem, gram)
    points = keeper.points
    assert points
    assert solution.status is Status.CONVERGED
    exact = certify(problem, gram, solution.alpha, solution.beta)
    assert solution.certificate.gap == pytest.approx(exact.gap, abs=1e-9)
    assert solution.certificate.primal == pytest.approx(exact.primal, rel=1e-9)
    for coefficients, scores, doubt in points:
        assert np.mean(doubt > 0.0) > 0.5  # which saves most entries of the columns
        support = np.flatnonzero(coefficients)
        kernel = gram.block(np.arange(gram.n_samples), support) - 1.0
        error = scores - kernel @ coefficients[support]
        assert np.all(np.abs(error) <= doubt + 1e-5)
    assert solution.scores is None
    assert solution.stats["columns"] < solution.stats["support"]


def test_what_is_known_of_a_sample_agrees_with_its_columns():
    problem, gram = smooth_case("TauFPL", "hinge", tau=0.03)
    for found in kept_by_bounds(problem, gram):  # while its columns are open
        check_what_is_known(found, gram)


def check_what_is_known(found, gram):
    state, some = found.state, np.arange(0, gram.n_samples, 7)
    found.know(some)
    kernel = gram.block(some, np.arange(gram.n_samples)) - 1.0
    assert_allclose(state.scores[some], kernel @ state.coefficients(), atol=1e-4)
    members = np.isin(np.arange(gram.n_samples), state.rows[state.member])
    assert members.any()
    assert_allclose(state.group_column[some], kernel @ members, rtol=1e-4, atol=1e-3)
    found.settle()
    assert found.known.all()
    assert not found.doubt.any()
    everything = gram.block(np.arange(gram.n_samples), np.arange(gram.n_samples)) - 1.0
    assert_allclose(state.scores, everything @ state.coefficients(), atol=1e-4)


@pytest.mark.parametrize("C", [0.01, 100.0, np.inf])
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize(("name", "parameters"), EVERY)
def test_large_blocks_of_low_rank_give_the_same_optimum(name, parameters, surrogate, C):
    X, positive = two_clouds(120, 1400, 4, 6.0 if np.isinf(C) else 1.0, seed=3)
    problem = FORMULATIONS[name].problem(positive, C, surrogate, **parameters)
    gram = Gram(Kernel("linear"), X)
    large = solve(problem, gram, tol=1e-7, random_state=0)
    small = solve(problem, gram, tol=1e-7, random_state=0, tuning=Tuning(large_numbers=0))
    assert large.status is small.status
    if small.status is Status.CONVERGED:
        assert large.certificate.dual == pytest.approx(small.certificate.dual, rel=1e-6)
        # Near w = 0 most of the gap is the rounding onto bounds, which pair moves have to finish.
        assert large.n_iter <= small.n_iter + 2


@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize(("name", "parameters"), EVERY)
def test_sparse_samples_in_large_blocks_give_the_optimum_of_dense_ones(name, parameters, surrogate):
    X, positive = two_clouds(120, 1400, 4, 1.0, seed=3)
    X[np.abs(X) < 0.8] = 0.0
    problem = FORMULATIONS[name].problem(positive, 1.0, surrogate, **parameters)
    duals = [
        solve(problem, Gram(Kernel("linear"), samples), tol=1e-7, random_state=0).certificate.dual
        for samples in (X, sparse.csr_array(X))
    ]
    assert duals[0] == pytest.approx(duals[1], rel=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_threads_do_not_change_the_optimum(kernel, monkeypatch):
    problem, gram = large_case("TauFPL", kernel, tau=0.05)
    duals = []
    for count in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", count)
        duals.append(solve(problem, gram, random_state=0).certificate.dual)
    assert duals[0] == pytest.approx(duals[1], rel=1e-4)


@pytest.mark.parametrize("n_negatives", [2600, 4600])  # at once, and by parts
def test_single_precision_scores_are_corrected_until_the_certificate_agrees(n_negatives):
    # Large C and overlapping classes: the rounding of float32 columns shows in the gap.
    X, positive = two_clouds(400, n_negatives, 3, 0.5, seed=5)
    problem = FORMULATIONS["TauFPL"].problem(positive, 100.0, "hinge", tau=0.1)
    gram = Gram(Kernel("rbf", gamma=0.05), X)
    solution = solve(problem, gram, tol=1.1e-5, random_state=0, tuning=BY_PARTS)
    assert solution.certificate.gap <= 1.1e-5


@pytest.mark.parametrize("thetas", [[1.0, 0.1, 0.01, 1e-3, 1e-4], [1e-4, 1e-3, 0.01, 0.1, 1.0]])
def test_warm_starts_along_theta_never_stall(thetas):
    # For small theta no single variable is free at the start: the group alone sets the level.
    X, positive = two_clouds(150, 1350, 5, 1.5, seed=4)
    gram, start = Gram(Kernel("rbf", gamma=0.1), X), None
    for theta in thetas:
        problem = FORMULATIONS["PatMatNP"].problem(positive, 7.0, "hinge", tau=0.05, theta=theta)
        solution = solve(problem, gram, random_state=0, start=start)
        assert solution.status is Status.CONVERGED
        start = solution.alpha, solution.beta


def test_max_iter_and_max_time_stop_with_an_honest_gap():
    problem, gram = large_case("PatMatNP", "rbf", tau=0.1, theta=1.0)
    few = solve(problem, gram, tol=1e-9, random_state=0, max_iter=1)
    assert few.status is Status.MAX_ITER
    assert few.n_iter == 1
    assert few.certificate.gap > 1e-9
    assert np.isfinite(few.certificate.primal)
    none = solve(problem, gram, random_state=0, max_time=0.0)
    assert none.status is Status.MAX_TIME


def test_a_limit_keeps_the_point_and_a_later_fit_goes_on_from_it():
    problem, gram = large_case("TauFPL", "rbf", tau=0.05)
    stopped = solve(problem, gram, tol=1e-9, random_state=0, max_iter=10)
    assert stopped.status is Status.MAX_ITER
    resumed = solve(problem, gram, random_state=0, start=(stopped.alpha, stopped.beta))
    assert resumed.certificate.gap <= 1e-4
    assert resumed.history.dual[0] >= stopped.history.dual[0]


def test_a_second_process_finds_the_compiled_code_on_disk():
    script = (
        "import numpy as np; from attop import TopPush, TopPushK, PatMatNP\n"
        "from attop.solvers.exact.subproblem.moves import _move as moves\n"
        "X = np.random.default_rng(0).normal(size=(40, 2)); y = X[:, 0] > 0.3\n"
        "TopPush(random_state=0).fit(X, y); TopPushK(3, random_state=0).fit(X, y)\n"
        "PatMatNP(0.2, surrogate='quadratic_hinge', random_state=0).fit(X, y)\n"
        "assert sum(moves.stats.cache_hits.values()) == 1\n"
        "assert not moves.stats.cache_misses\n"
    )
    for _ in range(2):  # the first compiles what no test before has compiled
        last = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert last.returncode == 0, last.stderr


def test_moves_end_where_the_worst_kind_has_no_room():
    """The cap cannot fall below a beta outside; betas that differ by rounding are left alone."""
    rate = np.array([-1.0, -1.0, 0.0, 1e-14, 0.0])
    value, cap = np.array([0.5, 0.5, 0.1, 0.2, 0.15]), 0.3
    block = make_block(
        np.eye(5),
        np.zeros(5, dtype=bool),
        np.arange(5),
        diagonal=np.ones(5),
        weight=np.ones(5),
        value=value,
        rate=rate,
        rise=np.where(np.arange(5) < 2, 1.0 - value, value),
        fall=np.where(np.arange(5) < 2, value, cap - value),
        group_column=np.zeros(5),
    )
    group = Group(cap=cap, members=2, size=2.0, square=2.0, score=0.0, floor=cap)
    terms = Terms(2, 1.0, np.inf, 0.0, 5, 1e-12, 1e-14)
    _, steps, violation = move_pairs(block, group, terms, 1e-6, 1000)
    assert steps == 0
    assert violation == pytest.approx(1.0)


class Creeping(State):
    """A state whose large blocks hardly get anywhere."""

    def solve_large_block(self, chosen, gap, limits):
        self.solve_block(chosen[:: len(chosen) // 6], 0.0)


def test_pair_moves_take_over_where_large_blocks_creep():
    X, positive = two_clouds(120, 1400, 4, 1.0, seed=3)
    problem = FORMULATIONS["TauFPL"].problem(positive, 1.0, "hinge", tau=0.05)
    gram = Gram(Kernel("linear"), X)
    with open_columns(gram) as store:
        state, limits = Creeping(problem, store), Limits(-1, None)
        loop = Loop(state, limits, 0)
        assert loop.begin(None, 0) is None
        assert loop.run(5e-5) is Status.CONVERGED
        assert certify(problem, gram, state.alpha, state.beta).certifies(1e-4)
    assert limits.rounds <= 50


@pytest.mark.parametrize("name", ["TopPush", "TopPushK", "PatMatNP"])
def test_a_start_is_better_than_zero_whatever_the_scale(name):
    """Or else the scores of all rounds would carry the rounding of huge ones."""
    parameters = {"TopPushK": {"K": 3}, "PatMatNP": {"tau": 0.2, "theta": 1.0}}.get(name, {})
    X, positive = two_clouds(20, 40, 5, 2.0, seed=1)
    problem = FORMULATIONS[name].problem(positive, 100.0, "hinge", **parameters)
    solution = solve(problem, Gram(Kernel("linear"), 1e5 * X), tol=1e-6, random_state=0)
    assert solution.history.dual[0] > 0.0
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("C", [1.0, 100.0, 1e6])
def test_a_loss_of_one_rounding_does_not_cost_the_certificate(C):
    """Scores are 1 and ``|w|^2`` is 1e-11: with large C a loss of 1e-16 would be a gap of 1e-3."""
    X, positive = two_clouds(20, 40, 5, 2.0, seed=1)
    weights = np.ones(len(X))
    weights[-1] = 0.0  # a sample without a variable
    problem = FORMULATIONS["TopPush"].problem(positive, C, "hinge", sample_weight=weights)
    solution = solve(problem, Gram(Kernel("linear"), 1e6 * X), tol=1e-8, random_state=0)
    assert solution.status is Status.CONVERGED


def test_a_sample_far_out_does_not_drown_the_others():
    """Entries of 1e21 next to those of 1: one ridge for all of them would be a thousand."""
    X, positive = two_clouds(65, 34, 8, 0.5, seed=0)
    X[7, 2] = -9999.0
    problem = FORMULATIONS["TopPushK"].problem(positive, 3.0, "quadratic_hinge", K=3)
    gram = Gram(Kernel("poly", gamma=0.05, degree=4, coef0=1.0), X)
    solution = solve(problem, gram, tol=1e-4, random_state=0)
    assert solution.status is Status.CONVERGED


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_starts_are_feasible_whoever_competes(name, surrogate, share):
    """Positives that compete with other copies than their own, too, as merged samples do."""
    rng, positive = np.random.default_rng(0), np.arange(40) < 40 * share
    plain = FORMULATIONS[name].problem(positive, 1.0, surrogate, **PARAMETERS[name])
    both = np.concatenate([plain.positives, np.arange(len(plain.competitors))])
    for rows in (plain.rows, both):
        for weights in (np.ones(len(rows)), rng.integers(1, 9, len(rows)).astype(float)):
            problem = plain._replace(rows=rows, weights=weights)
            for start in (starts.small(problem), starts.cancelling(problem)):
                if start is not None:
                    assert infeasibility(problem, *start) <= 1e-12
