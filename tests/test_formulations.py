"""The table of formulations: competitors, families, K."""

import numpy as np
import pytest

from attop.families import Largest, QuantileHinge, QuantileQuadratic, TopMean
from attop.formulations import FORMULATIONS
from conftest import two_clouds

_, POSITIVE = two_clouds(n_positive=10, n_negative=30)


def problem(name, surrogate="hinge", positive=POSITIVE, **parameters):
    return FORMULATIONS[name].problem(positive, 2.0, surrogate, **parameters)


def assert_same(first, second):
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_there_are_the_six_convex_formulations_and_the_svm():
    names = {"TopPush", "TopPushK", "TauFPL", "TopMeanK", "PatMat", "PatMatNP", "SVM"}
    assert set(FORMULATIONS) == names
    assert all(formulation.name == name for name, formulation in FORMULATIONS.items())


@pytest.mark.parametrize("name", FORMULATIONS)
def test_rows_of_alphas_and_betas(name):
    made = problem(name, K=3, tau=0.1, theta=1.0)
    everybody = name in ("TopMeanK", "PatMat")
    competing = np.ones(40, dtype=bool) if everybody else ~POSITIVE
    assert np.array_equal(made.positives, np.flatnonzero(POSITIVE))
    assert np.array_equal(made.competitors, np.flatnonzero(competing))
    assert made.C == 2.0


def test_identities():
    assert_same(problem("TopPush"), problem("TopPushK", K=1))
    assert_same(problem("TauFPL", tau=0.1), problem("TopPushK", K=3))


@pytest.mark.parametrize(
    "name, tau, K",
    [("TauFPL", 0.1, 3), ("TauFPL", 0.12, 4), ("TauFPL", 1e-6, 1), ("TopMeanK", 0.1, 4)],
)
def test_K_is_the_rounded_share_and_at_least_one(name, tau, K):
    family = problem(name, tau=tau).family
    assert (1 if family == Largest() else family.K) == K


@pytest.mark.parametrize(
    "surrogate, family", [("hinge", QuantileHinge), ("quadratic_hinge", QuantileQuadratic)]
)
def test_the_surrogate_decides_the_dual_of_the_surrogate_quantile(surrogate, family):
    made = problem("PatMatNP", surrogate, tau=0.2, theta=0.5)
    assert made.family == family(budget=0.2 * 30, theta=0.5)
    assert problem("TopPushK", surrogate, K=2).family == TopMean(2, is_share=True)


def test_a_few_scores_among_many_are_no_share_of_them():
    """A subsample has as many of them as the whole; of a share it has its part."""
    many = np.arange(40_000) < 10_000
    few = problem("TopPushK", positive=many, K=5).family
    share = problem("TauFPL", positive=many, tau=0.01).family
    assert few.subsampled(0.1, 3000) == few
    assert share.subsampled(0.1, 3000) == TopMean(30, is_share=True)


def test_K_may_be_the_number_of_competitors_but_not_more():
    assert problem("TopPushK", K=30).family.K == 30
    with pytest.raises(ValueError, match=r"'K' parameter of TopPushK .* samples, 30\. Got 31"):
        problem("TopPushK", K=31)
