"""Overlapping classes: when w = 0 is the optimum, and what a fit says of it."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog

from attop import SVM, PatMatNP, TauFPL, TopPushK
from attop.model_selection import AtTopCV
from conftest import two_clouds


def in_the_hull(X, positive, K):
    """Whether the mean of the positives is one of the negatives with weights of at most 1/K."""
    negatives = X[~positive]
    A = np.vstack([negatives.T, np.ones(len(negatives))])
    b = np.append(X[positive].mean(axis=0), 1.0)
    found = linprog(np.zeros(len(negatives)), A_eq=A, b_eq=b, bounds=(0.0, 1.0 / K))
    return found.status == 0


def is_zero(model, X, positive):
    """Whether a fit proves that w = 0 is optimal; it warns then."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, positive)
    return any("is w = 0" in str(one.message) for one in told)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
def test_zero_is_optimal_exactly_if_the_mean_is_in_the_hull(seed, surrogate):
    """Whatever C is: there is a K from which on it is not, since the hull shrinks."""
    X, positive = two_clouds(20, 60, distance=1.0, seed=seed)
    inside = [in_the_hull(X, positive, K) for K in (1, 5, 15, 30, 60)]
    assert inside == sorted(inside, reverse=True)
    for C in (0.5, 50.0):
        zero = [
            is_zero(TopPushK(K, C=C, kernel="linear", surrogate=surrogate, tol=1e-6), X, positive)
            for K in (1, 5, 15, 30, 60)
        ]
        assert zero == inside


def test_an_ordinary_svm_is_zero_where_the_mean_is_in_the_hull_of_as_many_negatives():
    for distance in (0.2, 3.0):
        X, positive = two_clouds(20, 60, distance=distance, seed=0)
        expected = in_the_hull(X, positive, 20)
        assert is_zero(SVM(C=1.0, kernel="linear", tol=1e-6), X, positive) == expected
        balanced = SVM(C=1.0, kernel="linear", class_weight="balanced", tol=1e-6)
        assert not is_zero(balanced, X, positive)


def linear_pairs(distance, seed=1):
    X, positive = two_clouds(40, 400, distance=distance, seed=seed)
    return X, positive


def test_a_search_names_the_candidates_whose_optimum_is_zero_and_what_to_use():
    """Though another one is the best, and is all that is fitted in the end."""
    X, positive = linear_pairs(0.8)
    formulations = [TauFPL(0.01, kernel="linear"), PatMatNP(0.01, kernel="linear", C=10.0)]
    with pytest.warns(UserWarning, match=r"2 of 4 candidates.*w = 0.*TauFPL.*PatMatNP"):
        AtTopCV(formulations, {"C": [1.0, 10.0]}, cv=2, scoring="roc_auc").fit(X, positive)


def test_a_search_without_such_candidates_is_silent():
    X, positive = linear_pairs(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AtTopCV(PatMatNP(0.05, kernel="linear"), {"C": [1.0]}, cv=2).fit(X, positive)


def test_patmat_np_stands_overlapping_classes_and_the_warning_says_so():
    X, positive = two_clouds(20, 60, distance=0.3, seed=1)
    with pytest.warns(UserWarning, match=r"w = 0.*larger K or tau.*PatMatNP"):
        TauFPL(0.05, kernel="linear").fit(X, positive)
    model = PatMatNP(0.05, kernel="linear", C=1.0)
    assert not is_zero(model, X, positive)
    assert np.ptp(model.decision_function(X)) > 0.0
