"""Scores of new samples: right to what they say, whatever the precision, form and blocks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from attop import PatMatNP, TauFPL, TopPush
from attop._scores import kernel_expansion
from attop._scoring import Prepared, sums
from attop.kernels.blocks import as_float64
from attop.kernels.functions import Kernel
from attop.kernels.gaussian import squared_norms
from conftest import two_clouds
from test_error_bounds import CLOUDS, cloud_of

KERNELS = {
    "rbf": {"gamma": 0.3},
    "narrow": {"gamma": 10.0},
    "poly": {"gamma": 0.2, "coef0": 1.0},
    "square": {"gamma": 0.2, "degree": 2, "coef0": -0.5},
    "line": {"gamma": 0.2, "degree": 1, "coef0": 0.0},
    "root": {"gamma": 0.2, "degree": 1.5, "coef0": 1e9},
    "sigmoid": {"gamma": 0.2, "coef0": 0.5},
}
NAMES = {"narrow": "rbf", "square": "poly", "line": "poly", "root": "poly"}
FORMS = {"dense": np.asarray, "sparse": sp.csr_array}


def kernel_of(name, scale=1.0):
    parameters = KERNELS[name]
    return Kernel(NAMES.get(name, name), **(parameters | {"gamma": parameters["gamma"] * scale}))


def by_the_kernel(kernel, vectors, coefficients, X):
    """The same sums by entries in double precision."""
    entries = kernel.onto(vectors)
    rows = np.arange(X.shape[0])
    return kernel_expansion(lambda i, part: entries(X[i], part), rows, coefficients, 1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", CLOUDS, ids=lambda kind: kind.__name__)
def test_sums_are_within_their_bounds_and_on_the_right_side(kind, dtype, form):
    samples, _ = cloud_of(kind, n=700)
    scale = 1.0 / np.median(np.var(samples, axis=0) + 1e-300)
    a = np.random.default_rng(1).normal(size=550)
    X, vectors = (FORMS[form](part.astype(dtype)) for part in (samples, samples[150:]))
    for name in KERNELS:
        kernel = kernel_of(name, scale)
        exact = by_the_kernel(kernel, vectors, a, X)
        border = float(exact[3])
        found = sums(kernel, vectors, a, X, border)
        if kernel.form is None:  # by the kernel function alone
            assert_allclose(found, exact, rtol=1e-12)
            continue
        prepared = Prepared(kernel.form, vectors, a, X.dtype, form == "sparse")
        centred = X if prepared.middle is None else X - prepared.middle
        off = prepared.off(squared_norms(as_float64(centred)))
        assert np.all(np.abs(found - exact) <= 2.0 * off)  # those of the referee round as well
        if dtype == np.float32:
            clear = np.abs(exact - border) > 1e-9 * max(1.0, abs(border))
            assert_array_equal((found >= border)[clear], (exact >= border)[clear])


@pytest.mark.parametrize("vectors_form", FORMS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_and_form_of_the_model_do_not_matter(dtype, form, vectors_form):
    samples, _ = cloud_of(CLOUDS[0], n=300)
    a = np.random.default_rng(1).normal(size=200)
    X = FORMS[form](samples.astype(np.float32))
    vectors = FORMS[vectors_form](samples[:200].astype(np.float32).astype(dtype))
    for name in KERNELS:
        exact = by_the_kernel(kernel_of(name), X[:200].astype(np.float64), a, X)
        found = sums(kernel_of(name), vectors, a, X, 0.0)
        assert_allclose(found, exact, rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("estimator", [TopPush(C=3.0), TauFPL(0.1), PatMatNP(0.1, C=10.0)])
def test_single_precision_calls_the_same_samples_positive(estimator, offset):
    """Also those at the threshold, and in any company."""
    X, y = two_clouds(150, 400, distance=1.0, seed=5)
    X = (X + offset).astype(np.float32)
    model = estimator.fit(X, y)
    score, double = model.decision_function(X), model.decision_function(X.astype(np.float64))
    assert_array_equal(score >= 0.0, double >= 0.0)
    assert_array_equal(model.predict(X), model.predict(X.astype(np.float64)))
    assert_allclose(score, double, atol=1e-3)
    alone = np.concatenate([model.decision_function(X[i : i + 1]) for i in range(0, len(X), 9)])
    assert_allclose(alone, score[::9], atol=1e-3)
    assert_array_equal(alone >= 0.0, score[::9] >= 0.0)


def test_samples_far_out_are_scored_in_double_precision():
    X, y = two_clouds(150, 400, distance=1.0, seed=5)
    model = TauFPL(0.1).fit(X.astype(np.float32), y)
    far = np.full((3, X.shape[1]), -99999.0, dtype=np.float32)
    assert_array_equal(model.decision_function(far), model.decision_function(far.astype(float)))
