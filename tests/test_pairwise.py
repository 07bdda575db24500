"""The paper's coordinate descent: what it reaches, where it stalls, and that it says so."""

import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from attop import TopPushK
from attop.datasets import load_ionosphere
from attop.formulations import FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.objectives import infeasibility
from attop.solvers import get_solver
from attop.solvers.limits import Limits
from attop.solvers.pairwise import solve
from attop.solvers.pairwise.columns import KernelColumns
from attop.solvers.solution import Status
from conftest import OPTIMA, kernel_matrix, two_clouds


def ionosphere(row):
    """Problem and kernel matrix of a row of the reference optima."""
    X, y = load_ionosphere(return_X_y=True)
    parameters = {name: float(row[name]) for name in ("K", "tau", "theta") if row[name]}
    problem = FORMULATIONS[row["formulation"]].problem(
        y == 1, float(row["C"]), row["surrogate"], **parameters
    )
    kernel = Kernel(row["kernel"], gamma=float(row["gamma"] or 1.0))
    return problem, Gram(kernel, X)


#: Weights of the loss in the reference optima: lambda = 0.1 and 0.001.
SMALL_C, LARGE_C = sorted({row["C"] for row in OPTIMA}, key=float)


def reference(formulation, surrogate, kernel="rbf", C=LARGE_C, **parameters):
    """The one row of the reference optima that has these properties."""
    wanted = {
        "formulation": formulation,
        "surrogate": surrogate,
        "kernel": kernel,
        "C": C,
        **parameters,
    }
    rows = [row for row in OPTIMA if all(row[name] == value for name, value in wanted.items())]
    assert len(rows) == 1
    return rows[0]


#: With the linear kernel and a large C the descent is right but slow.
WELL_CONDITIONED = [("rbf", SMALL_C), ("rbf", LARGE_C), ("linear", SMALL_C)]
REACHED = [
    reference("TopPush", surrogate, kernel, C)
    for surrogate in ("hinge", "quadratic_hinge")
    for kernel, C in WELL_CONDITIONED
] + [
    row
    for row in OPTIMA
    if row["formulation"] in ("PatMat", "PatMatNP")
    and row["surrogate"] == "quadratic_hinge"
    and (row["kernel"], row["C"]) in WELL_CONDITIONED
]


@pytest.mark.parametrize(
    "row", REACHED, ids=lambda row: "-".join(filter(None, list(row.values())[:8]))
)
def test_reaches_the_optimum_without_a_shared_cap(row):
    problem, gram = ionosphere(row)
    solution = solve(problem, gram, tol=1e-6, random_state=0, n_epochs=50)
    optimum = float(row["objective"])
    assert solution.status is Status.CONVERGED
    assert solution.certificate.gap <= 1e-6
    assert solution.certificate.dual == pytest.approx(optimum, rel=2e-6)
    assert solution.certificate.primal == pytest.approx(optimum, rel=2e-6)


@pytest.mark.parametrize(
    "row",
    [
        reference("TopPushK", "hinge", K="5"),
        reference("TopPushK", "quadratic_hinge", K="10"),
        reference("PatMatNP", "hinge", tau="0.05", theta="1.0"),
        reference("PatMatNP", "hinge", tau="0.05", theta="0.1"),
    ],
    ids=lambda row: "-".join(filter(None, list(row.values())[3:8])),
)
def test_a_stall_is_reported_with_an_honest_gap(row):
    problem, gram = ionosphere(row)
    solution = solve(problem, gram, random_state=0, n_epochs=100)
    certificate, optimum = solution.certificate, float(row["objective"])
    assert solution.status is Status.STALLED
    assert certificate.gap > 1e-2
    assert certificate.dual < optimum * (1 - 1e-3) < optimum < certificate.primal
    assert solution.history.gap[-1] == pytest.approx(certificate.gap, rel=1e-6)
    assert solution.n_iter == solution.history.step[-1]


def test_the_dual_never_falls_and_the_point_stays_feasible(small_case):
    problem, gram = small_case
    solution = solve(problem, gram, tol=1e-9, random_state=1, check_every=3, n_epochs=30)
    dual = solution.history.dual
    assert len(dual) > 5
    assert (np.diff(dual) >= -1e-12 * np.abs(dual).max()).all()
    assert (solution.history.primal >= dual - 1e-9 * np.abs(dual)).all()
    assert infeasibility(problem, solution.alpha, solution.beta) <= 1e-12
    assert solution.history.dual[-1] == pytest.approx(solution.certificate.dual, rel=1e-9)


def test_columns_one_by_one_give_the_same_steps_as_the_matrix(small_case):
    problem, gram = small_case
    matrix = kernel_matrix(gram)
    # Equal to the last bit, or rounding would decide between partners that gain the same.
    gram = Gram(Kernel("precomputed"), np.maximum(matrix, matrix.T))
    whole = solve(problem, gram, random_state=2, max_iter=150)
    pieces = solve(problem, gram, random_state=2, max_iter=150, cache_bytes=0)
    np.testing.assert_allclose(pieces.alpha, whole.alpha, atol=1e-12)
    np.testing.assert_allclose(pieces.beta, whole.beta, atol=1e-12)
    assert pieces.n_iter == whole.n_iter
    assert pieces.stats["columns"] > 0


def test_a_precomputed_kernel_is_an_ordinary_kernel(small_case):
    problem, gram = small_case
    precomputed = Gram(Kernel("precomputed"), kernel_matrix(gram))
    expected = solve(problem, gram, random_state=3, max_iter=100)
    found = solve(problem, precomputed, random_state=3, max_iter=100)
    np.testing.assert_allclose(found.alpha, expected.alpha, atol=1e-12)


@pytest.mark.parametrize("random_state", [7, np.random.RandomState(7)], ids=type)
def test_the_seed_decides(random_state):
    X, positive = two_clouds()
    problem = FORMULATIONS["TopPush"].problem(positive, 1.0, "hinge")
    gram = Gram(Kernel("rbf", gamma=0.3), X)
    if isinstance(random_state, int):
        other, same = 8, 7
    else:
        other, same = np.random.RandomState(8), np.random.RandomState(7)
    one = solve(problem, gram, random_state=random_state, max_iter=5)
    again = solve(problem, gram, random_state=same, max_iter=5)
    different = solve(problem, gram, random_state=other, max_iter=5)
    np.testing.assert_array_equal(one.alpha, again.alpha)
    assert not np.array_equal(one.alpha, different.alpha)


def test_an_epoch_is_half_as_many_steps_as_there_are_variables():
    X, positive = two_clouds(n_positive=10, n_negative=30)
    gram = Gram(Kernel("rbf", gamma=0.3), X)
    negatives = FORMULATIONS["PatMatNP"].problem(positive, 1.0, "hinge", tau=0.3, theta=1.0)
    everyone = FORMULATIONS["PatMat"].problem(positive, 1.0, "hinge", tau=0.5, theta=1.0)
    assert solve(negatives, gram, tol=0.0, n_epochs=1, random_state=0).n_iter == 20
    assert solve(everyone, gram, tol=0.0, n_epochs=1, random_state=0).n_iter == 25
    limited = solve(negatives, gram, tol=0.0, max_iter=7, random_state=0)
    assert (limited.n_iter, limited.status) == (7, Status.MAX_ITER)
    hurried = solve(negatives, gram, tol=0.0, max_time=0.0, random_state=0)
    assert (hurried.n_iter, hurried.status) == (0, Status.MAX_TIME)


def test_the_rule_of_the_paper_stops_at_a_share_of_the_first_gap():
    problem, gram = ionosphere(reference("TopPush", "hinge"))
    solution = solve(problem, gram, tol=1e-12, gap_reduction=1e-2, random_state=0, n_epochs=50)
    gaps = solution.history.primal - solution.history.dual
    assert solution.status is Status.CONVERGED
    assert gaps[-1] <= 1e-2 * gaps[0]
    assert (gaps[:-1] > 1e-2 * gaps[0]).all()
    assert (np.diff(solution.history.step) == 100).all()


def test_a_start_near_the_optimum_saves_the_steps():
    problem, gram = ionosphere(reference("TopPush", "hinge"))
    cold = solve(problem, gram, tol=1e-5, random_state=0)
    warm = solve(problem, gram, tol=1e-5, start=(cold.alpha, cold.beta), random_state=0)
    assert warm.status is Status.CONVERGED
    assert warm.n_iter == 0
    np.testing.assert_allclose(warm.alpha, cold.alpha, atol=1e-9)


def test_a_start_outside_the_feasible_set_is_projected(small_case):
    problem, gram = small_case
    start = (np.full(len(problem.positives), 5.0), np.full(len(problem.competitors), -1.0))
    solution = solve(problem, gram, start=start, max_iter=0)
    assert infeasibility(problem, solution.alpha, solution.beta) <= 1e-12
    assert start[0][0] == 5.0  # the caller's arrays are left alone


@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
def test_an_infinite_weight_reaches_the_largest_margin(surrogate):
    X, positive = two_clouds(distance=6.0, seed=1)
    gram = Gram(Kernel("linear"), X)
    problem = FORMULATIONS["TopPush"].problem(positive, np.inf, surrogate)
    solution = solve(problem, gram, tol=1e-6, random_state=0, n_epochs=400)
    assert solution.status is Status.CONVERGED
    margin = 1.0 / np.sqrt(solution.certificate.w_norm2)
    w = X[positive].T @ solution.alpha - X[~positive].T @ solution.beta
    scores = X @ w
    reached = (scores[positive].min() - scores[~positive].max()) / np.linalg.norm(w)
    assert reached == pytest.approx(margin, rel=1e-4)


def test_the_same_sample_in_both_classes_is_not_separable():
    X, positive = two_clouds(distance=6.0, seed=1)
    X[np.flatnonzero(positive)[0]] = X[np.flatnonzero(~positive)[0]]
    problem = FORMULATIONS["TopPush"].problem(positive, np.inf, "hinge")
    solution = solve(problem, Gram(Kernel("linear"), X), random_state=0)
    assert solution.status is Status.UNBOUNDED
    assert solution.certificate.gap == np.inf
    assert np.isfinite(solution.alpha).all()


def test_features_without_information_do_no_harm(small_case):
    problem, gram = small_case
    constant = Gram(Kernel("linear"), np.zeros_like(gram.X))
    solution = solve(problem, constant, random_state=0)
    assert np.isfinite(solution.alpha).all()
    assert np.isfinite(solution.certificate.dual)
    assert infeasibility(problem, solution.alpha, solution.beta) <= 1e-10


def test_is_found_by_name():
    assert get_solver("pairwise") is solve


def test_verbose_prints_each_look(capsys):
    X, positive = two_clouds()
    problem = FORMULATIONS["TopPush"].problem(positive, 1.0, "hinge")
    solve(problem, Gram(Kernel("rbf"), X), tol=0.0, max_iter=20, check_every=10, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "step 20" in lines[-1]


@pytest.mark.parametrize(
    ("option", "value"),
    [("n_epochs", 0), ("reuse_probability", 1.5), ("check_every", 0), ("gap_reduction", 2.0)],
)
def test_wrong_options_are_named(option, value):
    X, positive = two_clouds()
    problem = FORMULATIONS["TopPush"].problem(positive, 1.0, "hinge")
    with pytest.raises(ValueError, match=f"The '{option}' parameter of the pairwise solver"):
        solve(problem, Gram(Kernel("linear"), X), **{option: value})


def test_the_warning_of_a_stall_names_the_exact_solver():
    X, y = load_ionosphere(return_X_y=True)
    model = TopPushK(
        5, C=float(LARGE_C), gamma=1 / 34, solver="pairwise", solver_options={"n_epochs": 100}
    )
    with pytest.warns(ConvergenceWarning, match=r'no step of this solver.*Use solver="exact"'):
        model.set_params(random_state=0).fit(X, y)
    assert model.status_ is Status.STALLED


@pytest.mark.filterwarnings("ignore::UserWarning")  # of a stall, and of an optimum at w = 0
@pytest.mark.parametrize("seed", range(8))
def test_without_any_limit_the_descent_ends(seed):
    rng = np.random.default_rng(seed)
    X, y = 10.0 ** rng.uniform(-6, 6) * rng.normal(size=(30, 5)), np.arange(30) % 3 == 0
    C = 10.0 ** rng.uniform(-2, 5)
    model = TopPushK(3, C=C, kernel="linear", solver="pairwise", solver_options={"n_epochs": None})
    model.fit(X, y)
    assert model.status_ in (Status.CONVERGED, Status.STALLED, Status.PRECISION)


@pytest.mark.parametrize("cache_size", [1000, 1])
def test_the_time_is_kept_whatever_has_to_be_computed(cache_size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 10))
    y = X[:, 0] + rng.normal(size=4000) > 1.0
    for max_time in (0.01, 0.5):
        model = TopPushK(solver="pairwise", tol=1e-9, max_time=max_time, cache_size=cache_size)
        began = time.perf_counter()
        with pytest.warns(ConvergenceWarning, match="max_time"):
            model.fit(X, y)
        assert time.perf_counter() - began <= 5.0  # machines may be busy
        assert model.status_ is Status.MAX_TIME
        assert np.isfinite(model.dual_gap_)


def test_a_matrix_in_single_precision_gives_the_same_descent(small_case):
    """Where the matrix fits in single precision only, but for its rounding."""
    problem, gram = small_case
    n = gram.n_samples
    double = solve(problem, gram, random_state=4, n_epochs=30)
    single = solve(problem, gram, random_state=4, n_epochs=30, cache_bytes=4 * n * n)
    # Rounding decides between partners that gain the same, and stalled ends differ by that.
    assert single.certificate.dual == pytest.approx(double.certificate.dual, rel=1e-2)
    assert infeasibility(problem, single.alpha, single.beta) <= 1e-12
    # The certificate is that of the kernel, not of what the steps looked at.
    scale = abs(single.certificate.dual)
    assert single.history.dual[-1] == pytest.approx(single.certificate.dual, abs=1e-5 * scale)


def test_a_matrix_that_is_given_is_not_copied(small_case):
    _, gram = small_case
    matrix = kernel_matrix(gram).astype(np.float32)
    columns = KernelColumns(Gram(Kernel("precomputed"), matrix), 0, Limits(-1, None))
    assert columns.matrix is matrix
