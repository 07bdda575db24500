"""The Bayesian signed-rank test: closed forms, symmetry, its definition written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from attop.statistics import bayesian_signed_rank_test

N_DRAWS = 20_000
#: Five standard errors of a probability.
ERROR = 5 * 0.5 / N_DRAWS**0.5

repeatable = settings(derandomize=True, deadline=None, max_examples=25)
#: Differences in hundredths, so that many lie at the border of the region.
DIFFERENCES = st.lists(st.integers(-6, 6), min_size=1, max_size=12).map(lambda z: np.array(z) / 100)


def of_differences(z, **kwargs):
    """The test of scores whose differences, second less first, are `z`."""
    kwargs = {"n_draws": N_DRAWS, **kwargs}
    return bayesian_signed_rank_test(np.zeros(len(z)), z, **kwargs)


@repeatable
@given(DIFFERENCES, st.sampled_from([0.0, 0.01, 0.025]))
def test_probabilities_sum_to_one_and_swap_with_the_methods(z, rope):
    left, middle, right = of_differences(z, rope=rope)
    assert min(left, middle, right) >= 0
    assert left + middle + right == pytest.approx(1)
    assert of_differences(-z, rope=rope) == (right, middle, left)


@repeatable
@given(DIFFERENCES, st.integers(0, 100))
def test_the_order_of_the_data_sets_does_not_matter(z, seed):
    z_moved = np.random.default_rng(seed).permutation(z)
    assert of_differences(z_moved) == pytest.approx(of_differences(z), abs=2**0.5 * ERROR)


@repeatable
@given(DIFFERENCES)
def test_only_the_scale_relative_to_the_region_matters(z):
    assert of_differences(8 * z, rope=0.08) == of_differences(z, rope=0.01)


@repeatable
@given(DIFFERENCES)
def test_a_wider_region_holds_more(z):
    inside = [of_differences(z, rope=rope).rope for rope in (0.0, 0.01, 0.02, 0.06)]
    assert inside == sorted(inside)
    assert inside[-1] == 1.0  # no difference is larger


def exact_shares(z, rope, weights):
    """Weight of the pairs to the left of the region, in it and to the right, as defined."""
    shares = np.zeros(3)
    for z_i, w_i in zip(z, weights):
        for z_j, w_j in zip(z, weights):
            mean = (round(100 * z_i) + round(100 * z_j)) / 200  # on paper
            shares[1 + (mean > rope) - (mean < -rope)] += w_i * w_j
    return shares


@pytest.mark.parametrize("rope", [0.0, 0.01, 0.02])
@pytest.mark.parametrize("strength", [0.5, 3.0])
def test_it_is_its_definition(rope, strength):
    rng = np.random.default_rng(1)
    z = np.array([-0.03, 0.05, 0.02, 0.06, -0.05, 0.04])
    draws = rng.dirichlet([strength, *np.ones(len(z))], size=3000)
    winners = [np.argmax(exact_shares([0, *z], rope, weights)) for weights in draws]
    expected = np.bincount(winners, minlength=3) / len(draws)
    found = of_differences(z, rope=rope, prior_strength=strength)
    assert found == pytest.approx(expected, abs=5 * 0.5 / len(draws) ** 0.5)
    assert 0.05 < found.right < 0.95  # an example that says something


@pytest.mark.parametrize("n", [1, 2, 5, 10])
@pytest.mark.parametrize("strength", [0.5, 2.0])
def test_equal_differences_by_the_beta_distribution(n, strength):
    """With weight w of the prior, pairs without it are 1 - w^2 - 2 w (1 - w) = (1 - w)^2."""
    prior = beta(strength, n)
    # Beyond twice the region a pair with the pseudo-observation counts too: 1 - w^2 > 1/2.
    far = of_differences(np.full(n, 0.05), rope=0.02, prior_strength=strength)
    assert far.right == pytest.approx(prior.cdf(0.5**0.5), abs=ERROR)
    # Up to twice the region it does not: (1 - w)^2 > 1/2.
    near = of_differences(np.full(n, 0.03), rope=0.02, prior_strength=strength)
    assert near.right == pytest.approx(prior.cdf(1 - 0.5**0.5), abs=ERROR)
    assert far.left == near.left == 0.0


def test_no_differences_are_certainly_equivalent():
    for z in (np.zeros(8), np.full(8, 0.01), np.full(8, -0.004)):
        for rope in (0.01, 0.1):
            assert of_differences(z, rope=rope) == (0.0, 1.0, 0.0)
    assert of_differences(np.zeros(3), rope=0.0) == (0.0, 1.0, 0.0)


def test_large_differences_on_one_side_are_certain():
    rng = np.random.default_rng(0)
    z = 0.1 + rng.random(30)
    assert of_differences(z).right > 0.9999
    assert of_differences(-z).left > 0.9999


def test_opposite_differences_favour_neither_method():
    z = np.array([0.02, 0.05, 0.09, 0.14, 0.2])
    posterior = of_differences(np.r_[z, -z])
    assert posterior.left == pytest.approx(posterior.right, abs=2**0.5 * ERROR)
    assert posterior.left > 0.3


def test_differences_of_just_the_region_are_equivalent_however_they_are_rounded():
    first = np.array([0.8, 0.7, 0.57, 0.33, 0.9, 0.95])
    second = np.array([0.81, 0.71, 0.58, 0.34, 0.91, 0.96])
    assert (second - first > 0.01).any()
    assert bayesian_signed_rank_test(first, second, rope=0.01).rope == 1.0
    assert bayesian_signed_rank_test(100 * first, 100 * second, rope=1).rope == 1.0


def test_draws_are_repeatable_and_in_batches_the_same():
    rng = np.random.default_rng(0)
    few, many = rng.normal(0.01, 0.02, size=12), rng.normal(0.001, 0.02, size=400)
    assert of_differences(few) == of_differences(few)
    assert of_differences(few, random_state=1) != of_differences(few)
    assert of_differences(few, random_state=1) == pytest.approx(of_differences(few), abs=2 * ERROR)
    # Twice as many draws as fit at once.
    assert of_differences(many) == pytest.approx(of_differences(many, n_draws=8_000), abs=2 * ERROR)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"second": [1.0]}, "inconsistent numbers of samples"),
        ({"second": [1.0, np.nan]}, "second contains NaN"),
        ({"first": [1.0, np.inf]}, "first contains infinity"),
        ({"first": []}, "minimum of 1 is required"),
        ({"first": [[1.0], [2.0]]}, r"one score for each data set. Got an array of shape \(2, 1\)"),
        ({"rope": -0.1}, r"'rope' parameter of .* a float in \[0, inf\). Got -0.1 instead"),
        ({"rope": np.nan}, "Got nan instead"),
        ({"prior_strength": 0}, r"'prior_strength' .* a float in \(0, inf\). Got 0 instead"),
        ({"n_draws": 0}, r"'n_draws' .* an int in \[1, inf\). Got 0 instead"),
        ({"n_draws": 10.5}, "Got 10.5 instead"),
        ({"n_draws": True}, "Got True instead"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        bayesian_signed_rank_test(**{"first": [1.0, 2.0], "second": [2.0, 2.0], **arguments})
