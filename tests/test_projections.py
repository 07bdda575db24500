"""Projections: nearest, feasible, idempotent, and safe for any input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import null_space
from scipy.optimize import linprog, nnls

from attop.projections import _shift_for_cap, project_patmat, project_topk

SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9))


def topk_constraints(n, m, K, C):
    """Rows ``A x <= b`` of the feasible set of the top-K family, without the equality."""
    rows = [-np.eye(n + m), np.hstack([np.full((m, n), -1.0 / K), np.eye(m)])]
    bounds = [np.zeros(n + m), np.zeros(m)]
    return _with_upper_bound(rows, bounds, n, n + m, C)


def patmat_constraints(n, m, theta, C):
    """The same for the Pat&Mat family, with delta as the last coordinate."""
    rows, bounds = [-np.eye(n + m + 1)], [np.zeros(n + m + 1)]
    if np.isfinite(theta):
        rows.append(np.hstack([np.zeros((m, n)), np.eye(m), np.full((m, 1), -theta)]))
        bounds.append(np.zeros(m))
    return _with_upper_bound(rows, bounds, n, n + m + 1, C)


def _with_upper_bound(rows, bounds, n, size, C):
    if np.isfinite(C):
        rows.append(np.eye(n, size))
        bounds.append(np.full(n, C))
    return np.vstack(rows), np.concatenate(bounds)


def balance_row(n, m, size):
    row = np.zeros((1, size))
    row[0, :n], row[0, n : n + m] = 1.0, -1.0
    return row


def least_distance(point, equality, A, b):
    """The projection by least-distance programming: an active-set method, exact to rounding."""
    basis = null_space(equality)
    start = basis.T @ point
    normals, offsets = A @ basis, A @ basis @ start - b
    length = np.linalg.norm(normals, axis=1)
    kept = length > 1e-12
    scale = np.linalg.norm(point)
    stacked = np.vstack(
        [-(normals[kept] / length[kept, None]).T, offsets[kept] / length[kept] / scale]
    )
    target = np.eye(len(stacked))[-1]
    residual = stacked @ nnls(stacked, target, maxiter=10_000)[0] - target
    return basis @ (start - scale * residual[:-1] / residual[-1])


def farthest_along(direction, equality, A, b, size):
    """Largest ``<direction, y>`` over the feasible set within a cube around zero."""
    result = linprog(-direction, A, b, equality, [0.0], bounds=[(-size, size)] * len(direction))
    assert result.success
    return -result.fun


def random_point(rng, n, m):
    scale = 10 ** rng.uniform(-1, 1, 2)
    return rng.normal(rng.normal(), 1, n) * scale[0], rng.normal(rng.normal(), 1, m) * scale[1]


@pytest.mark.parametrize("C", [0.1, 1.0, 5.0, np.inf])
@pytest.mark.parametrize("seed", range(40))
def test_topk_equals_a_quadratic_programming_oracle(seed, C):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 12), rng.integers(3, 12)
    K = int(rng.integers(1, m - 1))
    alpha, beta = random_point(rng, n, m)
    expected = least_distance(
        np.r_[alpha, beta], balance_row(n, m, n + m), *topk_constraints(n, m, K, C)
    )
    np.testing.assert_allclose(np.r_[project_topk(alpha, beta, K, C)], expected, atol=1e-8)


@pytest.mark.parametrize("C", [0.1, 1.0, np.inf])
@pytest.mark.parametrize("theta", [0.1, 1.0, 10.0, np.inf])
@pytest.mark.parametrize("seed", range(20))
def test_patmat_equals_a_quadratic_programming_oracle(seed, theta, C):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 12), rng.integers(2, 12)
    alpha, beta = random_point(rng, n, m)
    delta = rng.normal()
    expected = least_distance(
        np.r_[alpha, beta, delta], balance_row(n, m, n + m + 1), *patmat_constraints(n, m, theta, C)
    )
    np.testing.assert_allclose(
        np.r_[project_patmat(alpha, beta, delta, theta, C)], expected, atol=1e-8
    )


@given(
    SIZES,
    st.integers(0, 10**6),
    st.sampled_from([1e-6, 1.0, 1e6]),
    st.sampled_from([0.01, 1.0, 1e9, np.inf]),
    st.sampled_from(["one", "all", "any"]),
    st.sampled_from(["normal", "negative", "zero", "integers"]),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_topk_any_input_obeys_the_variational_inequality(sizes, seed, scale, C, which_K, kind):
    n, m = sizes
    rng = np.random.default_rng(seed)
    K = {"one": 1, "all": m, "any": int(rng.integers(1, m + 1))}[which_K]
    alpha, beta = _wild(rng, n, kind) * scale, _wild(rng, m, kind) * scale
    new_alpha, new_beta = project_topk(alpha, beta, K, C)
    tolerance = 1e-10 * max(scale, 1e-300)
    assert new_alpha.min() >= 0
    assert (new_alpha <= C).all()
    assert new_beta.min() >= 0
    assert new_beta.max() <= new_alpha.sum() / K + tolerance
    assert abs(new_alpha.sum() - new_beta.sum()) <= tolerance
    _assert_nearest(
        np.r_[alpha, beta] / scale,
        np.r_[new_alpha, new_beta] / scale,
        balance_row(n, m, n + m),
        *topk_constraints(n, m, K, C / scale),
    )


@given(
    SIZES,
    st.integers(0, 10**6),
    st.sampled_from([0.01, 1.0, 1e9, np.inf]),
    st.sampled_from([1e-3, 0.1, 1.0, 30.0, np.inf]),
    st.sampled_from(["normal", "negative", "zero", "integers"]),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_patmat_any_input_obeys_the_variational_inequality(sizes, seed, C, theta, kind):
    n, m = sizes
    rng = np.random.default_rng(seed)
    alpha, beta, delta = _wild(rng, n, kind), _wild(rng, m, kind), float(_wild(rng, 1, kind)[0])
    new_alpha, new_beta, new_delta = project_patmat(alpha, beta, delta, theta, C)
    assert new_alpha.min() >= 0
    assert (new_alpha <= C).all()
    assert new_beta.min() >= 0
    assert new_delta >= 0
    assert np.isinf(theta) or new_beta.max() <= theta * new_delta + 1e-10
    assert abs(new_alpha.sum() - new_beta.sum()) <= 1e-10
    _assert_nearest(
        np.r_[alpha, beta, delta],
        np.r_[new_alpha, new_beta, new_delta],
        balance_row(n, m, n + m + 1),
        *patmat_constraints(n, m, theta, C),
    )


def _wild(rng, size, kind):
    values = {
        "normal": rng.normal(0, 3, size),
        "negative": -rng.exponential(3, size),
        "zero": np.zeros(size),
        "integers": rng.integers(-3, 4, size).astype(float),
    }
    return values[kind]


def _assert_nearest(point, projection, equality, A, b):
    """``<point - p, y - p> <= 0`` for every feasible y: what makes p the nearest point."""
    direction = point - projection
    size = 10 * (1 + np.abs(point).sum())
    reach = farthest_along(direction, equality, A, b, size)
    assert reach <= direction @ projection + 1e-6 * size * (1 + np.abs(direction).max())


@pytest.mark.parametrize("K", [1, 3, 8])
@pytest.mark.parametrize("C", [0.05, 1.0, np.inf])
def test_projections_are_idempotent(K, C):
    rng = np.random.default_rng(K)
    for _ in range(20):
        alpha, beta = random_point(rng, 6, 8)
        once = project_topk(alpha, beta, K, C)
        np.testing.assert_allclose(np.r_[project_topk(*once, K, C)], np.r_[once], atol=1e-12)
        once = project_patmat(alpha, beta, rng.normal(), K / 2, C)
        again = project_patmat(*once, K / 2, C)
        np.testing.assert_allclose(np.r_[again], np.r_[once], atol=1e-12)


def test_order_does_not_matter():
    rng = np.random.default_rng(3)
    alpha, beta = rng.normal(size=7), rng.normal(size=9)
    p, q = rng.permutation(7), rng.permutation(9)
    straight, shuffled = project_topk(alpha, beta, 3, 1.0), project_topk(alpha[p], beta[q], 3, 1.0)
    np.testing.assert_allclose(shuffled[0], straight[0][p], atol=1e-14)
    np.testing.assert_allclose(shuffled[1], straight[1][q], atol=1e-14)


def test_scaling_the_point_and_the_set_scales_the_projection():
    rng = np.random.default_rng(4)
    alpha, beta = rng.normal(size=7), rng.normal(size=9)
    unit = project_patmat(alpha, beta, 0.3, theta=2.0, C=0.5)
    large = project_patmat(1e5 * alpha, 1e5 * beta, 3e4, theta=2.0, C=5e4)
    np.testing.assert_allclose(np.r_[large], 1e5 * np.r_[unit], rtol=1e-10, atol=1e-9)


def test_one_top_score_needs_no_cap():
    rng = np.random.default_rng(5)
    alpha, beta = rng.normal(size=7), rng.normal(size=9)
    capped, free = project_topk(alpha, beta, 1, 0.7), project_patmat(alpha, beta, 0.0, C=0.7)
    np.testing.assert_allclose(np.r_[capped], np.r_[free[:2]], atol=1e-12)


def test_a_huge_bound_is_no_bound():
    rng = np.random.default_rng(6)
    alpha, beta = rng.normal(size=7), rng.normal(size=9)
    np.testing.assert_allclose(
        np.r_[project_topk(alpha, beta, 4, 1e12)], np.r_[project_topk(alpha, beta, 4)], atol=1e-12
    )


def test_the_trivial_cases_project_to_zero():
    alpha, beta = np.array([-1.0, 0.5]), np.array([-1.0, -0.5, -0.5])
    assert not np.r_[project_topk(alpha, beta, 2, 1.0)].any()  # top two average -0.5
    assert not np.r_[project_topk(alpha, beta, 1, 1.0)].any()
    assert np.r_[project_topk(alpha + 0.1, beta, 2, 1.0)].any()
    assert not np.r_[project_patmat(alpha, beta, -0.1, 1.0, 1.0)].any()
    assert project_patmat(alpha, beta, 0.2, 1.0, 1.0)[2] == pytest.approx(0.2)


@given(st.integers(1, 12), st.integers(0, 10**6), st.floats(1e-6, 1e3))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_linear_time_shift_solves_its_equation(m, seed, cap):
    rng = np.random.default_rng(seed)
    beta = np.round(rng.normal(0, 3, m), 1)
    for weights in (np.ones(m), rng.uniform(0.2, 3.0, m)):
        K = int(rng.integers(1, max(1, int(weights.sum())) + 1)) if weights.sum() >= 1.0 else 1
        order = np.argsort(-beta)
        shift = _shift_for_cap(-beta[order], weights[order], cap, K)
        total = weights @ np.clip(beta + shift, 0, cap)
        assert total == pytest.approx(min(K, weights.sum()) * cap, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("K", [0, 4])
def test_topk_rejects_a_wrong_number_of_top_scores(K):
    with pytest.raises(ValueError, match=r"The 'K' parameter of project_topk must be in \[1, 3\]"):
        project_topk([1.0], [1.0, 2.0, 3.0], K)


@pytest.mark.parametrize("bad", [{"C": 0.0}, {"theta": -1.0}, {"delta": np.nan}])
def test_patmat_rejects_wrong_parameters(bad):
    with pytest.raises(ValueError, match=f"The '{next(iter(bad))}' parameter"):
        project_patmat([1.0], [1.0], **({"delta": 0.0} | bad))


@pytest.mark.parametrize("alpha", [[], [np.nan], [[1.0]]])
def test_values_must_be_a_finite_vector(alpha):
    with pytest.raises(ValueError, match="The 'alpha' parameter"):
        project_topk(alpha, [1.0], 1)
