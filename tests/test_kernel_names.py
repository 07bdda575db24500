"""Kernels by name, as objects and as functions; and what is wrong with those that are none."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import attop
from attop import TopPush
from attop.kernels import (
    KERNELS,
    FunctionKernel,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    make_kernel,
)
from conftest import PARAMETERS, two_clouds

X, POSITIVE = two_clouds(20, 40, distance=1.5)
every_estimator = pytest.mark.parametrize(
    "estimator",
    [getattr(attop, name)(random_state=0, **values) for name, values in PARAMETERS.items()],
    ids=lambda estimator: type(estimator).__name__,
)


def test_every_name_has_a_class_that_knows_it():
    assert all(kernel.name == name for name, kernel in KERNELS.items())
    assert (
        Kernel("rbf", gamma=0.3) == Kernel("rbf", 0.3) == make_kernel("rbf", 0.3) == Gaussian(0.3)
    )
    assert Kernel("poly", gamma=0.2, degree=2, coef0=1.0) == Polynomial(0.2, 2, 1.0)
    assert Kernel("linear", gamma=7.0) == Linear()  # which has no such parameter
    assert Kernel("precomputed") == Precomputed()
    assert Kernel(np.dot) == FunctionKernel(np.dot)
    assert make_kernel(Sigmoid(0.1)) == Sigmoid(0.1)
    with pytest.raises(ValueError, match=r"no kernel 'laplace'. Did you mean 'laplacian'\?"):
        Kernel("laplace")


def test_kernels_are_values():
    assert len({Gaussian(0.3), Gaussian(0.3), Laplacian(0.3), Gaussian(0.4)}) == 3
    for kernel in [*(kernel() for kernel in KERNELS.values()), FunctionKernel(np.dot)]:
        assert pickle.loads(pickle.dumps(kernel)) == kernel
        assert clone(kernel) is kernel
    with pytest.raises(FrozenInstanceError):
        Gaussian(0.3).gamma = 0.4


@every_estimator
@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "laplacian"])
def test_an_object_is_the_kernel_of_that_name(estimator, name):
    parameters = {"gamma": 0.2, "degree": 2, "coef0": 1.0}
    named = clone(estimator).set_params(kernel=name, **parameters).fit(X, POSITIVE)
    object_ = clone(estimator).set_params(kernel=Kernel(name, **parameters)).fit(X, POSITIVE)
    assert_array_equal(object_.decision_function(X), named.decision_function(X))
    assert object_.dual_gap_ == named.dual_gap_


def test_an_object_that_is_precomputed_is_the_matrix():
    K = Gaussian(0.3)(X, X)
    model = TopPush(kernel=Precomputed(), random_state=0).fit(K, POSITIVE)
    named = TopPush(kernel="precomputed", random_state=0).fit(K, POSITIVE)
    assert_array_equal(model.decision_function(K), named.decision_function(K))
    with pytest.raises(ValueError, match="square"):
        TopPush(kernel=Precomputed()).fit(K[:, 1:], POSITIVE)
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=3, scoring="roc_auc").fit(K, POSITIVE)
    assert search.best_score_ > 0.8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(-1.0), r"'gamma' parameter of Gaussian .*\(0, inf\). Got -1.0 instead"),
        (lambda: Laplacian("scale"), r"'gamma' parameter of Laplacian .* Got 'scale' instead"),
        (lambda: Polynomial(degree=-1), r"'degree' parameter of Polynomial must be in \[0, inf\)"),
        (lambda: Polynomial(coef0=np.nan), r"'coef0' parameter of Polynomial .* a finite number"),
        (lambda: Sigmoid(coef0=None), r"'coef0' parameter of Sigmoid must be a finite number"),
        (lambda: Gaussian().with_params(gama=1.0), r"no parameter 'gama'. Did you mean 'gamma'\?"),
        (lambda: TopPush(kernel=Gaussian()).set_params(kernel__width=1.0), "no parameter 'width'"),
        (lambda: TopPush().set_params(kernel__gamma=1.0), r"must be a Kernel.* Got 'rbf' instead"),
        (lambda: TopPush(kernel=Gaussian).fit(X, POSITIVE), r"or a ForestKernel. Got <class"),
        (lambda: TopPush(kernel=Gaussian(), solver="primal").fit(X, POSITIVE), "'linear' with"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_kernel_without_a_function_cannot_be_made():
    class Nothing(Kernel):
        pass

    with pytest.raises(TypeError, match="values"):
        Nothing()


def test_the_parameters_of_a_kernel_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), TopPush(kernel=Gaussian(0.5)))
    pipeline.set_params(toppush__kernel__gamma=0.1, toppush__C=2.0)
    assert pipeline[-1].kernel == Gaussian(0.1)
    assert pipeline[-1].C == 2.0


def test_values_of_the_wrong_shape():
    class Wrong(Kernel):
        def values(self, X, Y):
            return np.zeros(3)

    with pytest.raises(ValueError, match="'kernel' function must return an array of shape"):
        TopPush(kernel=Wrong()).fit(X, POSITIVE)
