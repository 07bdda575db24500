"""Kernels and their traits: those of the package, and one that it has never heard of."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV

import attop
from attop import TauFPL, TopPush
from attop.kernels import (
    KERNELS,
    FunctionKernel,
    Gaussian,
    Gram,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    make_kernel,
    open_columns,
)
from attop.kernels.columns import ColumnStore, Workers
from attop.kernels.features import KernelNystroem
from attop.kernels.sources import GramSource
from attop.kernels.stores import open_entries
from attop.model_selection import AtTopCV, fit_path
from attop.solvers import exact
from attop.solvers.solution import Status
from conftest import PARAMETERS, two_clouds


@dataclass(frozen=True)
class RationalQuadratic(Kernel):
    """``(1 + |x - y|^2 / (2 shape width^2))^-shape``, a mixture of Gaussian kernels."""

    width: float = 1.0
    shape: float = 1.0

    definite = True

    def values(self, X, Y):
        squares = cdist(X, Y, "sqeuclidean")
        return (1.0 + squares / (2.0 * self.shape * self.width**2)) ** -self.shape


OF_SAMPLES = [
    Linear(),
    Gaussian(0.25),
    Laplacian(0.25),
    Polynomial(0.05, 3, 1.0),
    Polynomial(0.05, 2, 0.0),
    Polynomial(0.05, 2.5, 3.0),
    Sigmoid(0.05, 0.5),
    FunctionKernel(RationalQuadratic()),
    RationalQuadratic(2.0, 0.5),
]
every_kernel = pytest.mark.parametrize("kernel", OF_SAMPLES, ids=repr)
every_estimator = pytest.mark.parametrize(
    "estimator",
    [getattr(attop, name)(random_state=0, **values) for name, values in PARAMETERS.items()],
    ids=lambda estimator: type(estimator).__name__,
)

X, POSITIVE = two_clouds(20, 40, distance=1.5)
ROWS = np.arange(len(X))


def clouds():
    """Samples of ordinary scale, with an offset, and with equal ones."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    return {"normal": X, "offset": X + 3.0, "equal": np.repeat(X[:20], 3, axis=0)}


@pytest.fixture(params=clouds())
def samples(request):
    return clouds()[request.param]


# The traits


@every_kernel
def test_a_definite_kernel_has_no_negative_eigenvalues(kernel, samples):
    values = np.linalg.eigvalsh(kernel(samples, samples))
    if kernel.definite:
        assert values[0] >= -1e-13 * len(samples) * values[-1]


def test_which_kernels_are_known_to_be_definite():
    sure = [kernel for kernel in OF_SAMPLES if kernel.definite]
    assert sure == [*OF_SAMPLES[:5], OF_SAMPLES[-1]]
    assert not Polynomial(coef0=-1.0).definite
    assert not Precomputed().definite


@pytest.mark.parametrize("kernel", [k for k in OF_SAMPLES if k.takes_sparse], ids=repr)
def test_sparse_samples_have_the_entries_of_dense_ones(kernel, samples):
    data = np.where(np.abs(samples) < 0.7, 0.0, samples)
    sparse = sp.csr_matrix(data)
    assert_allclose(kernel(sparse, sparse[:9]), kernel(data, data[:9]), rtol=1e-12, atol=1e-14)
    some = Gram(kernel, sparse).extended(ROWS[:5], ROWS[:9])[0]
    assert_allclose(some, kernel(data[:5], data[:9]), rtol=1e-12, atol=1e-14)
    if kernel.definite:
        model = TauFPL(kernel=kernel, tau=0.3, tol=1e-7, random_state=0)
        positive = samples[:, 0] > samples[:, 0].mean()
        dense = clone(model).fit(data, positive).decision_function(data)
        assert_allclose(model.fit(sparse, positive).decision_function(sparse), dense, atol=1e-3)


@pytest.mark.parametrize("kernel", [k for k in OF_SAMPLES if not k.takes_sparse], ids=repr)
def test_other_kernels_refuse_sparse_samples(kernel):
    with pytest.raises(TypeError, match=r"[Ss]parse data"):
        TopPush(kernel=kernel).fit(sp.csr_matrix(X), POSITIVE)


@pytest.mark.parametrize("kernel", OF_SAMPLES[:7], ids=repr)
def test_entries_are_those_of_scikit_learn(kernel, samples):
    expected = pairwise_kernels(samples, samples[:9], metric=kernel.name, **kernel.get_params())
    assert_allclose(kernel(samples, samples[:9]), expected, rtol=1e-12, atol=1e-14)


@every_kernel
def test_extended_entries_are_those_of_double_precision(kernel, samples):
    gram, rows = Gram(kernel, samples), np.arange(len(samples))
    entries, sizes = gram.extended(rows, rows[:9])
    double = gram.block(rows, rows[:9])
    assert np.all(np.abs(entries) <= sizes * (1 + 1e-15))
    assert np.all(np.abs(entries - double) <= 1e-13 * sizes)
    if np.all(double > 0.0):  # else an inner product may vanish, but not its rounding
        assert_allclose(entries, double, rtol=1e-13)


@every_kernel
def test_entries_round_as_the_kernel_says(kernel, samples):
    if not kernel.definite:
        return  # there is no diagonal to measure by, and no certificate that rests on it
    gram, rows = Gram(kernel, samples), np.arange(len(samples))
    relative, absolute = kernel.rounding(samples, rows)
    size = np.sqrt(gram.diagonal(rows))
    allowed = absolute + relative * np.outer(size, size)
    assert np.all(np.abs(gram.block(rows, rows) - gram.extended(rows, rows)[0]) <= allowed)


@every_kernel
def test_every_way_to_the_entries_leads_to_the_same(kernel, samples):
    gram, rows = Gram(kernel, samples), np.arange(len(samples))
    whole = kernel(samples, samples)
    assert whole.dtype == np.float64
    close = {"rtol": 1e-12, "atol": 1e-13}
    assert_allclose(gram.diagonal(rows[7:50]), np.diag(whole)[7:50], **close)
    assert_allclose(gram.block(rows[3:9], rows), whole[3:9], **close)
    assert_allclose(gram.against(rows[5:])(rows[:9], slice(2, 30)), whole[:9, 7:35], **close)
    assert_allclose(gram.against_all()(rows[3:9]), whole[3:9], **close)
    assert_allclose(kernel.within(samples)(slice(2, 9), slice(0, 4)), whole[2:9, :4], **close)
    assert_allclose(gram.among(rows, np.eye(len(rows))), whole, **close)
    store = open_entries(gram, 0)
    assert_allclose(store.column(8), whole[8], **close)
    single = kernel(samples.astype(np.float32), samples.astype(np.float32))
    assert single.dtype == np.float64


def test_a_precomputed_kernel_reads_its_entries():
    K = Gaussian(0.3)(X, X)
    gram = Gram(Precomputed(), K)
    assert_array_equal(gram.block(ROWS[:4], ROWS[2:]), K[:4, 2:])
    assert_array_equal(gram.diagonal(ROWS[3:9]), np.diag(K)[3:9])
    assert_array_equal(gram.extended(ROWS[:4], ROWS[2:])[0], K[:4, 2:])
    assert_array_equal(gram.against_all()(ROWS[:3]), K[:3])
    with pytest.raises(ValueError, match="has no values of samples"):
        Precomputed()(X, X)


def test_functions_have_one_thread_and_are_called_once_for_a_block():
    calls = []

    def function(A, B):
        calls.append(len(A))
        return A @ B.T

    kernel = make_kernel(function)
    assert kernel.threads == 1 <= Gaussian().threads
    kernel(np.zeros((5000, 2)), np.zeros((4000, 2)))
    assert calls == [5000]


def test_classes_are_called_for_so_many_entries_that_an_interrupt_is_seen():
    @dataclass(frozen=True)
    class Counting(Kernel):
        def values(self, X, Y):
            calls.append(len(X))
            return np.zeros((len(X), len(Y)))

    calls = []
    assert Counting()(np.zeros((5000, 2)), np.zeros((4000, 2))).shape == (5000, 4000)
    assert len(calls) > 1
    assert sum(calls) == 5000


def test_only_the_linear_kernel_has_explicit_features():
    assert [kernel for kernel in KERNELS.values() if kernel.explicit] == [Linear]
    assert [kernel for kernel in KERNELS.values() if kernel.precomputed] == [Precomputed]
    with open_columns(Gram(Linear(), X)) as store:
        assert store.rank == X.shape[1]


@pytest.mark.parametrize("kernel", [*OF_SAMPLES, Precomputed()], ids=repr)
def test_feature_maps_are_those_that_the_kernel_names(kernel):
    for approximation in kernel.approximations:
        features = kernel.feature_map(approximation, 2000, 0)
        if approximation == "rbf_sampler":
            assert isinstance(features, RBFSampler)
        else:
            assert isinstance(features, Nystroem)
            features.set_params(n_components=len(X))
        Z = features.fit(X).transform(X)
        near = 0.15 if approximation == "rbf_sampler" else 1e-5
        if kernel.definite:
            assert_allclose(Z @ Z.T, kernel(X, X), atol=near * np.max(kernel(X, X)))
    if not kernel.approximations:
        with pytest.raises(ValueError, match="'kernel' parameter of TopPush must be one of"):
            TopPush(kernel=kernel, approximation="nystroem").fit(X, POSITIVE)


# A kernel with parameters of its own


@every_estimator
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
def test_a_new_kernel_is_fitted_to_a_certified_gap(estimator, surrogate):
    kernel = RationalQuadratic(1.5, 0.7)
    model = clone(estimator).set_params(kernel=kernel, surrogate=surrogate, tol=1e-6)
    model.fit(X, POSITIVE)
    assert model.status_ is Status.CONVERGED
    assert model.dual_gap_ <= 1e-6
    scores = kernel(X, model.support_vectors_) @ model.dual_coef_[0] - model.threshold_
    assert_allclose(model.top_score(X), scores, atol=1e-12)
    assert_array_equal(model.predict(X), scores >= 0.0)
    K = kernel(X, X)
    precomputed = clone(model).set_params(kernel="precomputed").fit(K, POSITIVE)
    assert_allclose(model.objective_, precomputed.objective_, rtol=2e-6)
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(restored.decision_function(X), model.decision_function(X))
    assert restored.kernel == kernel
    again = clone(model).fit(X, POSITIVE)
    assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("solver", ["exact", "pairwise"])
def test_a_new_kernel_with_every_dual_solver(solver):
    model = TopPush(kernel=RationalQuadratic(1.5, 0.7), solver=solver, C=0.1, random_state=0)
    assert model.fit(X, POSITIVE).dual_gap_ <= 1e-4


def test_columns_of_a_new_kernel_in_single_precision():
    samples, positive = two_clouds(400, 2000, distance=1.5)
    kernel, rows = RationalQuadratic(2.0, 1.0), np.arange(0, 2400, 100)
    with open_columns(Gram(kernel, samples)) as store:
        assert store.source.dtype == np.float32
        _, slope, size = store.errors
        off = np.abs(store.block(rows, rows) - kernel(samples[rows], samples[rows]))
        assert np.all(off <= slope * np.add.outer(size[rows], size[rows]))
    model = TauFPL(kernel=kernel, tau=0.05, random_state=0).fit(samples, positive)
    assert model.dual_gap_ <= 1e-4


@every_estimator
def test_the_parameters_of_a_new_kernel_are_searched(estimator):
    model = clone(estimator).set_params(kernel=RationalQuadratic())
    assert model.get_params()["kernel__width"] == 1.0
    grid = {"kernel__shape": [0.5, 20.0], "kernel__width": [0.1, 2.0]}
    search = GridSearchCV(model, grid, scoring="roc_auc", cv=3).fit(X, POSITIVE)
    values = [(shape, width) for shape in (0.5, 20.0) for width in (0.1, 2.0)]
    best = values[search.best_index_]
    assert search.best_estimator_.kernel == RationalQuadratic(best[1], best[0])
    assert model.kernel == RationalQuadratic()  # which no other estimator changes
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores)) > 1
    kernels = [RationalQuadratic(width, shape) for shape, width in values]
    search = GridSearchCV(model, {"kernel": kernels}, scoring="roc_auc", cv=3).fit(X, POSITIVE)
    assert_array_equal(search.cv_results_["mean_test_score"], scores)


def test_a_new_kernel_shares_its_columns_along_paths_and_folds():
    model = TauFPL(kernel=RationalQuadratic(2.0, 1.0), tau=0.2, random_state=0)
    path = fit_path(model, X, POSITIVE, "C", [0.1, 1.0, 10.0])
    assert path.collect("dual_gap_").max() <= 1e-4
    search = AtTopCV(model, {"C": [0.1, 1.0]}, cv=3, scoring="roc_auc").fit(X, POSITIVE)
    assert search.best_estimator_.kernel == model.kernel


@every_estimator
def test_a_new_kernel_is_approximated_by_its_features(estimator):
    kernel = RationalQuadratic(1.5, 0.7)
    exact_model = clone(estimator).set_params(kernel=kernel, tol=1e-8).fit(X, POSITIVE)
    model = clone(exact_model).set_params(approximation="nystroem", n_components=10**6)
    model.fit(X, POSITIVE)
    assert isinstance(model.feature_map_, KernelNystroem)
    assert_allclose(model.objective_, exact_model.objective_, rtol=1e-5)
    assert_allclose(model.decision_function(X), exact_model.decision_function(X), atol=5e-3)
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(restored.decision_function(X), model.decision_function(X))
    assert clone(model.feature_map_).get_params() == model.feature_map_.get_params()
    with pytest.raises(ValueError, match=r"'nystroem' or None with kernel=RationalQuadratic\("):
        clone(model).set_params(approximation="rbf_sampler").fit(X, POSITIVE)


def test_a_new_kernel_gets_a_name_by_one_line(monkeypatch):
    monkeypatch.setitem(KERNELS, "rational_quadratic", RationalQuadratic)
    named = TopPush(kernel="rational_quadratic").fit(X, POSITIVE)
    object_ = TopPush(kernel=RationalQuadratic()).fit(X, POSITIVE)
    assert_array_equal(named.decision_function(X), object_.decision_function(X))


# Columns


def test_the_solver_opens_columns_where_the_kernels_do():
    assert exact.open_columns is open_columns


def test_a_column_stays_while_another_is_asked_for():
    samples = np.random.default_rng(0).normal(size=(400, 1))
    kernel = Gaussian(0.1)
    source = GramSource(Gram(kernel, samples), np.dtype(np.float64), prepare=True)
    store = ColumnStore(source, 0, Workers(), least=2, least_bytes=0)
    assert store.capacity == 2
    first = store.column(5)
    second = store.column(7)
    assert_allclose(first, kernel(samples, samples[[5]])[:, 0], atol=1e-12)
    assert store.column(5) is not second
    store.column(9)  # takes the place of the one used longer ago
    assert list(store.cached(np.array([5, 7, 9]))) == [True, False, True]
    assert store.n_computed == 3
