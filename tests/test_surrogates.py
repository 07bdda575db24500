"""Surrogates: the properties the framework asks for, and their conjugates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from attop.surrogates import SURROGATES

GRID = np.linspace(-4.0, 4.0, 8001)


@pytest.fixture(params=list(SURROGATES))
def surrogate(request):
    return SURROGATES[request.param]


def test_name_is_the_key():
    assert all(surrogate.name == name for name, surrogate in SURROGATES.items())


def test_is_a_surrogate_of_the_indicator(surrogate):
    values = surrogate.value(GRID)
    assert surrogate.value(0.0) == 1.0
    assert np.all(values >= (GRID >= 0.0))  # above the indicator, so non-negative too
    assert np.all(np.diff(values) >= 0.0)
    assert np.all(np.diff(values, 2) >= -1e-12)
    assert surrogate.value(-1e9) == 0.0


def test_slope_is_the_derivative(surrogate):
    x = np.array([-3.0, -1.5, -0.9, 0.0, 0.5, 3.0])
    h = 1e-6
    difference = (surrogate.value(x + h) - surrogate.value(x - h)) / (2 * h)
    assert_allclose(surrogate.slope(x), difference, atol=1e-8)


def test_conjugate_is_the_largest_of_linear_minus_value(surrogate):
    for y in np.linspace(0.0, 1.0, 11):  # attained within the grid for both surrogates
        assert_allclose(surrogate.conjugate(y), np.max(GRID * y - surrogate.value(GRID)))


@pytest.mark.parametrize("name, outside", [("hinge", [-0.1, 1.1]), ("quadratic_hinge", [-0.1])])
def test_conjugate_is_infinite_outside_its_domain(name, outside):
    assert np.all(np.isinf(SURROGATES[name].conjugate(outside)))


def test_level_solves_its_equation(surrogate):
    x = np.array([0.0, 0.1, 0.3, 0.35])
    q = surrogate.level(x, total=2.5)
    assert np.all(x < q)
    assert_allclose(np.sum(surrogate.value(q - 1.0 - x)), 2.5)
