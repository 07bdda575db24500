"""Thresholds against their definitions, on scores that invite trouble."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from attop.surrogates import SURROGATES
from attop.thresholds import quantile, surrogate_quantile, surrogate_root, top_mean

# Few distinct values, so that ties are common.
score_lists = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30)
any_scores = st.lists(
    st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False), min_size=1, max_size=30
)


@given(any_scores, st.data())
def test_top_mean_is_the_mean_of_the_largest(scores, data):
    K = data.draw(st.integers(1, len(scores)))
    assert_allclose(top_mean(scores, K), np.mean(sorted(scores)[-K:]), rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("K", [0, 4])
def test_top_mean_refuses_a_K_out_of_range(K):
    with pytest.raises(ValueError, match="K must be from 1"):
        top_mean([1.0, 2.0, 3.0], K)


@given(score_lists, st.integers(1, 100))
def test_quantile_is_the_largest_threshold_with_enough_above(scores, percent):
    def share_is_enough(t):
        return Fraction(sum(s >= t for s in scores), len(scores)) >= Fraction(percent, 100)

    t = quantile(scores, percent / 100)
    assert t in scores
    assert share_is_enough(t)
    assert not any(share_is_enough(higher) for higher in scores if higher > t)


@settings(max_examples=200)
@given(
    any_scores,
    st.floats(0.001, 0.999),
    st.floats(-5.0, 5.0).map(lambda exponent: 10.0**exponent),
    st.sampled_from(list(SURROGATES)),
)
def test_surrogate_quantile_solves_its_equation(scores, tau, theta, name):
    scores = np.array(scores)
    t = surrogate_quantile(scores, tau, theta, name)
    mean = np.mean(SURROGATES[name].value(theta * (scores - t)))
    # The sum of the terms is as exact as theta (s - t) is, of which t is one rounding off.
    rounding = theta * (np.max(np.abs(scores)) + abs(t)) * 1e-15
    slope = np.mean(SURROGATES[name].slope(theta * (scores - t) + rounding))
    assert abs(mean - tau) <= 1e-12 + 10 * rounding * slope


@pytest.mark.parametrize("name", list(SURROGATES))
@pytest.mark.parametrize("theta", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_surrogate_quantile_moves_with_the_scores(name, theta, shift):
    scores = np.random.default_rng(0).integers(0, 7, size=50).astype(float)
    t = surrogate_quantile(scores, 0.1, theta, name)
    assert_allclose(surrogate_quantile(scores + shift, 0.1, theta, name), t + shift, rtol=1e-12)


@pytest.mark.parametrize("name", list(SURROGATES))
def test_surrogate_quantile_of_equal_scores(name):
    """All at s: l(theta (s - t)) = tau."""
    t = surrogate_quantile(np.full(9, 3.0), 0.25, 2.0, name)
    assert_allclose(SURROGATES[name].value(2.0 * (3.0 - t)), 0.25)


@pytest.mark.parametrize("name", list(SURROGATES))
def test_a_huge_theta_gives_the_largest_score_and_a_tiny_one_goes_to_infinity(name):
    scores = np.array([1.0, 5.0, 2.0, 5.0, -1e300])
    assert_allclose(surrogate_quantile(scores, 0.2, 1e250, name), 5.0, rtol=1e-12)
    tiny = surrogate_quantile(scores[:4], 0.2, 1e-30, name)
    assert_allclose(SURROGATES[name].value(-1e-30 * tiny), 0.2)


@given(any_scores, st.floats(0.01, 0.99), st.sampled_from(list(SURROGATES)))
def test_surrogate_quantile_bounds_the_quantile(scores, tau, name):
    """The surrogate lies above the indicator, so fewer than tau lie above its threshold."""
    t = surrogate_quantile(scores, tau, 1.0, name)
    assert np.mean(np.array(scores) >= t + 1e-9 * (1 + abs(t))) <= tau


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("theta", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("share", [1e-6, 0.01, 0.7])
@pytest.mark.parametrize("name", list(SURROGATES))
def test_surrogate_root_of_many_scores(name, share, theta, weighted):
    """Where one of sixteen tells about where it is, and the largest may not be among these."""
    rng = np.random.default_rng(0)
    for scores in (rng.normal(size=20_001), rng.standard_cauchy(20_001), np.arange(20_001) % 16.0):
        weights = rng.integers(1, 5, size=len(scores)) * 0.5 if weighted else np.ones(len(scores))
        total = share * float(np.sum(weights))
        t = surrogate_root(scores, total, theta, name, weights=weights)
        values = SURROGATES[name].value(theta * (scores - t))
        rounding = theta * (np.max(np.abs(scores)) + abs(t)) * 1e-15
        slope = float(weights @ SURROGATES[name].slope(theta * (scores - t) + rounding))
        assert abs(float(weights @ values) - total) <= 1e-11 * total + 10.0 * rounding * slope
