"""Approximate kernels: the exact one in the limit, and a linear problem at all times."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import attop
from attop import Grill, GrillNP, PatMatNP, TauFPL
from attop.kernels.functions import Gram, Kernel
from attop.objectives import certify
from attop.pipeline import prepare, problem_of
from attop.solvers.solution import Status
from conftest import PARAMETERS, two_clouds

X, POSITIVE = two_clouds(30, 60, distance=1.5)
CONVEX = [
    getattr(attop, name)(random_state=0, gamma=0.3, **parameters)
    for name, parameters in PARAMETERS.items()
]
NONCONVEX = [
    Grill(tau=0.4, kernel="rbf", gamma=0.3, random_state=0),
    GrillNP(tau=0.1, kernel="rbf", gamma=0.3, random_state=0),
]
by_class = {"ids": lambda estimator: type(estimator).__name__}
every_convex = pytest.mark.parametrize("estimator", CONVEX, **by_class)
every_estimator = pytest.mark.parametrize("estimator", CONVEX + NONCONVEX, **by_class)


def approximate(estimator, **parameters):
    return clone(estimator).set_params(
        **{"approximation": "nystroem", "n_components": 20, **parameters}
    )


@every_convex
def test_nystroem_with_every_sample_is_the_exact_kernel(estimator):
    exact = clone(estimator).set_params(tol=1e-8).fit(X, POSITIVE)
    model = approximate(estimator, n_components=10**6, tol=1e-8).fit(X, POSITIVE)
    assert_allclose(model.objective_, exact.objective_, rtol=1e-5)
    assert_allclose(model.decision_function(X), exact.decision_function(X), atol=5e-3)


@every_estimator
@pytest.mark.parametrize("solver", ["auto", "primal"])
def test_is_the_linear_model_on_the_features(estimator, solver):
    """What a user would build as a pipeline."""
    model = approximate(estimator, solver=solver).fit(X, POSITIVE)
    linear = clone(estimator).set_params(kernel="linear", solver=solver)
    pipeline = make_pipeline(
        Nystroem(kernel="rbf", gamma=0.3, n_components=20, random_state=0), linear
    ).fit(X, POSITIVE)
    assert_allclose(model.coef_, pipeline[-1].coef_)
    assert_allclose(model.decision_function(X), pipeline.decision_function(X))
    assert model.coef_.shape == (1, 20)
    assert isinstance(model.feature_map_, Nystroem)


@every_estimator
@pytest.mark.parametrize("features", [Nystroem, RBFSampler])
def test_in_a_pipeline_with_the_features_of_scikit_learn(estimator, features):
    linear = clone(estimator).set_params(kernel="linear")
    pipeline = make_pipeline(features(gamma=0.3, n_components=30, random_state=0), linear)
    scores = pipeline.fit(X, POSITIVE).decision_function(X)
    ranks = scores[POSITIVE][:, np.newaxis] > scores[~POSITIVE]
    assert np.mean(ranks) > 0.85


@every_convex
def test_the_certificate_is_that_of_the_approximate_problem(estimator):
    model = approximate(estimator, tol=1e-6).fit(X, POSITIVE)
    features = model.feature_map_.transform(X)
    gram = Gram(Kernel("linear"), features)
    certificate = certify(
        problem_of(model, prepare(model, X, POSITIVE)), gram, model.alpha_, model.beta_
    )
    assert model.status_ is Status.CONVERGED
    assert certificate.certifies(1e-6)
    assert_allclose(certificate.primal, model.objective_)
    assert_array_equal(model.support_vectors_, features[model.support_])


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian"])
def test_nystroem_takes_the_parameters_of_the_kernel(kernel):
    parameters = {"kernel": kernel, "gamma": 0.2, "degree": 2, "coef0": 1.0}
    model = TauFPL(
        tau=0.1, approximation="nystroem", n_components=90, random_state=0, **parameters
    ).fit(X, POSITIVE)
    features = model.feature_map_.transform(X)
    kernel_of_samples = Kernel(kernel, 0.2, 2, 1.0)(X, X)
    assert_allclose(features @ features.T, kernel_of_samples, atol=1e-6)


def test_rbf_sampler_comes_near_the_kernel():
    model = approximate(
        TauFPL(tau=0.1, gamma=0.3, random_state=0), approximation="rbf_sampler", n_components=5000
    ).fit(X, POSITIVE)
    assert isinstance(model.feature_map_, RBFSampler)
    features = model.feature_map_.transform(X)
    assert_allclose(features @ features.T, Kernel("rbf", 0.3)(X, X), atol=0.1)
    exact = TauFPL(tau=0.1, gamma=0.3, random_state=0).fit(X, POSITIVE)
    assert_allclose(model.objective_, exact.objective_, rtol=0.05)


@every_estimator
def test_many_samples_are_scored_like_each(estimator):
    model = approximate(estimator).fit(X, POSITIVE)
    many = np.random.default_rng(0).normal(size=(5000, 3))
    decision = model.decision_function(many)
    assert_allclose(decision[::999], model.decision_function(many[::999]), atol=1e-10)


@every_estimator
def test_life_in_scikit_learn(estimator):
    model = approximate(estimator).fit(X, POSITIVE)
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(restored.decision_function(X), model.decision_function(X))
    again = clone(model).fit(X, POSITIVE)
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    search = GridSearchCV(approximate(estimator), {"n_components": [5, 30]}, scoring="roc_auc")
    assert search.fit(X, POSITIVE).best_score_ > 0.8


def test_sparse_and_single_precision_samples():
    data = np.where(np.abs(X) < 0.5, 0.0, X)
    estimator = approximate(TauFPL(tau=0.1, gamma=0.3, random_state=0))
    dense = clone(estimator).fit(data, POSITIVE)
    sparse = clone(estimator).fit(sp.csr_matrix(data), POSITIVE)
    assert_allclose(sparse.objective_, dense.objective_, rtol=1e-3)
    single = clone(estimator).fit(data.astype(np.float32), POSITIVE)
    assert single.support_vectors_.dtype == np.float32
    assert_allclose(single.objective_, dense.objective_, rtol=1e-3)


def test_a_fit_without_approximation_forgets_the_features():
    model = approximate(TauFPL(tau=0.1, gamma=0.3, random_state=0)).fit(X, POSITIVE)
    model.set_params(approximation=None).fit(X, POSITIVE)
    assert not hasattr(model, "feature_map_")
    exact = TauFPL(tau=0.1, gamma=0.3, random_state=0).fit(X, POSITIVE)
    assert_array_equal(model.decision_function(X), exact.decision_function(X))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"approximation": "fourier"}, r"'approximation' .* 'nystroem', 'rbf_sampler' or None"),
        ({"n_components": 0}, r"'n_components' .* at least 1\. Got 0 instead"),
        ({"kernel": "precomputed"}, r"'kernel' .* with approximation='nystroem'"),
        ({"kernel": np.dot}, r"'kernel' .* with approximation='nystroem'"),
        (
            {"approximation": "rbf_sampler", "kernel": "poly"},
            r"'approximation' .* 'nystroem' or None with kernel='poly'",
        ),
    ],
)
def test_what_cannot_be_approximated(parameters, message):
    with pytest.raises(ValueError, match=message):
        approximate(TauFPL(), **parameters).fit(X, POSITIVE)


# Some checks fit pure noise, or a handful of samples, whose optimum is w = 0.
@pytest.mark.filterwarnings("ignore:The optimum of this:UserWarning")
@parametrize_with_checks(
    [
        PatMatNP(approximation="nystroem", tol=1e-10),  # whose threshold is no sample's score
        GrillNP(kernel="rbf", approximation="rbf_sampler", random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
