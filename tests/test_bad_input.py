"""Input that cannot be fitted is refused in clear words; input that is merely odd survives."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import attop
from attop import PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
from attop.families import Largest
from attop.pipeline import prepare, problem_of
from attop.solvers.solution import Status
from conftest import PARAMETERS, two_clouds

X, POSITIVE = two_clouds(20, 40, distance=1.5)
Y = POSITIVE.astype(int)
ESTIMATORS = [
    getattr(attop, name)(random_state=0, **parameters) for name, parameters in PARAMETERS.items()
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


@every_estimator
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity(estimator, value):
    spoilt = X.copy()
    spoilt[3, 1] = value
    with pytest.raises(ValueError, match="Input X contains"):
        clone(estimator).fit(spoilt, Y)
    with pytest.raises(ValueError, match="Input X contains"):
        clone(estimator).fit(X, Y).predict(spoilt)


@every_estimator
@pytest.mark.parametrize("label", [0, 1])
def test_one_class(estimator, label):
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        clone(estimator).fit(X, np.full(len(X), label))


@every_estimator
def test_three_classes(estimator):
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        clone(estimator).fit(X, np.arange(len(X)) % 3)


def test_no_negatives_besides_the_pos_label():
    with pytest.raises(ValueError, match="'pos_label' parameter of TopPush must be one of 0, 1"):
        TopPush(pos_label="yes").fit(X, Y)


@pytest.mark.parametrize("K", [41, 10**9])
def test_K_above_the_number_of_negatives(K):
    with pytest.raises(ValueError, match=rf"'K' parameter of TopPushK .* 40\. Got {K} instead"):
        TopPushK(K=K).fit(X, Y)


OUT_OF_RANGE = [
    ("TauFPL", "tau", 0.0),
    ("TauFPL", "tau", 1.0),
    ("TauFPL", "tau", 1.5),
    ("TopMeanK", "tau", -0.1),
    ("PatMat", "tau", np.nan),
    ("PatMatNP", "tau", "0.1"),
    ("PatMat", "theta", 0.0),
    ("PatMatNP", "theta", -1.0),
    ("PatMatNP", "theta", np.inf),
    ("TopPushK", "K", 0),
    ("TopPushK", "K", 2.5),
    ("TopPushK", "K", True),
    ("TopPush", "C", 0.0),
    ("TopPush", "C", -1.0),
    ("TopPush", "C", np.nan),
    ("TopPush", "surrogate", "logistic"),
    ("TopPush", "kernel", "gauss"),
    ("TopPush", "gamma", 0.0),
    ("TopPush", "gamma", "large"),
    ("TopPush", "degree", -1),
    ("TopPush", "coef0", np.inf),
    ("TopPush", "solver", "newton"),
    ("TopPush", "solver_options", 3),
    ("TopPush", "tol", 0.0),
    ("TopPush", "max_iter", 0),
    ("TopPush", "max_time", -1.0),
    ("TopPush", "cache_size", 0),
]


@pytest.mark.parametrize("name, parameter, value", OUT_OF_RANGE)
def test_parameters_out_of_range(name, parameter, value):
    estimator = getattr(attop, name)(**{parameter: value})
    with pytest.raises(ValueError) as error:
        estimator.fit(X, Y)
    message = str(error.value)
    assert message.startswith(f"The '{parameter}' parameter of {name} must be ")
    assert message.endswith(f". Got {value!r} instead.")


def test_the_message_says_what_would_be_right():
    with pytest.raises(ValueError) as error:
        TauFPL(tau=1.5).fit(X, Y)
    expected = "The 'tau' parameter of TauFPL must be in (0, 1). Got 1.5 instead."
    assert str(error.value) == expected


@every_estimator
def test_precomputed_kernel_of_the_wrong_shape(estimator):
    model = clone(estimator).set_params(kernel="precomputed")
    with pytest.raises(ValueError, match=r"square .* Got shape \(60, 59\) instead"):
        model.fit((X @ X.T)[:, :-1], Y)
    model.fit(X @ X.T, Y)
    with pytest.raises(ValueError, match="expecting 60 features"):
        model.predict((X @ X.T)[:5, :-1])


def test_kernel_function_of_the_wrong_shape():
    with pytest.raises(ValueError, match="'kernel' function must return an array of shape"):
        TopPush(kernel=lambda A, B: np.zeros(3)).fit(X, Y)


@pytest.mark.parametrize("kernel", ["laplacian", "precomputed"])
def test_sparse_data_where_the_kernel_takes_none(kernel):
    import scipy.sparse as sp

    with pytest.raises(TypeError, match=r"[Ss]parse data"):
        TopPush(kernel=kernel).fit(sp.csr_matrix(X), Y)


def test_a_kernel_that_is_not_positive_semi_definite():
    """Whatever the solver makes of it, the user is told."""
    K = X @ X.T
    eigenvalues, vectors = np.linalg.eigh(K)
    spoilt = K - 3.0 * eigenvalues[-1] * np.outer(vectors[:, 0], vectors[:, 0])
    for kernel_matrix in (spoilt, -K):
        model = TauFPL(random_state=0, kernel="precomputed", max_time=5)
        with pytest.warns(UserWarning, match="not positive semi-definite"):
            model.fit(kernel_matrix, Y)
        assert model.status_ is Status.NOT_PSD


def test_an_asymmetric_kernel():
    K = X @ X.T
    K[:, 0] += 5.0
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        TauFPL(random_state=0, kernel="precomputed", max_time=5).fit(K, Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_false_alarm_about_a_kernel_of_low_rank(dtype):
    """The zero eigenvalues of a Gram matrix come out negative by rounding."""
    K = (100.0 * X @ X.T).astype(dtype)
    model = TauFPL(random_state=0, kernel="precomputed", C=0.01).fit(K, Y)
    assert model.status_ is Status.CONVERGED


@every_estimator
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_constant_features(estimator, kernel):
    """All samples alike: no model tells them apart, and the fit says so."""
    model = clone(estimator).set_params(kernel=kernel)
    with pytest.warns(UserWarning, match="optimum of this .* is w = 0"):
        model.fit(np.ones((60, 4)), Y)
    assert model.dual_gap_ <= model.tol
    if kernel == "linear":
        assert_allclose(model.coef_, 0.0, atol=1e-9)


@every_estimator
def test_one_constant_feature_changes_nothing(estimator):
    model = clone(estimator).set_params(gamma=0.3, tol=1e-7, random_state=0).fit(X, Y)
    wider = np.column_stack([X, np.full(len(X), 7.0)])
    same = clone(model).fit(wider, Y)
    assert_allclose(same.objective_, model.objective_, rtol=1e-6)


@every_estimator
def test_duplicated_samples(estimator):
    """Every sample twice, with half the C and twice the K, is the same problem."""
    model = clone(estimator).set_params(gamma=0.3, tol=1e-7, C=1.0).fit(X, Y)
    doubled = clone(model).set_params(C=0.5)
    if "K" in doubled.get_params():
        doubled.set_params(K=2 * estimator.K)
    doubled.fit(np.vstack([X, X]), np.concatenate([Y, Y]))
    assert doubled.status_ is Status.CONVERGED
    assert_allclose(doubled.objective_, model.objective_, rtol=1e-6)


@every_estimator
def test_the_same_samples_in_both_classes(estimator):
    contradictory = np.vstack([X[:15], X[:15]])
    y = np.repeat([0, 1], 15)
    model = clone(estimator).set_params(C=10.0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The optimum of this", UserWarning)
        model.fit(contradictory, y)
    assert model.status_ is Status.CONVERGED


@every_estimator
def test_one_positive_among_many_negatives(estimator):
    y = np.zeros(len(X), dtype=int)
    y[np.argmax(X.sum(axis=1))] = 1
    if estimator.formulation.name == "TopPushK":
        estimator = TopPushK(K=59, random_state=0)  # all the negatives
    model = clone(estimator).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert np.argmax(model.decision_function(X)) == np.argmax(y)


@every_estimator
def test_one_negative_among_many_positives(estimator):
    y = np.ones(len(X), dtype=int)
    y[np.argmin(X.sum(axis=1))] = 0
    if estimator.formulation.name == "TopPushK":
        estimator = TopPushK(K=1, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The optimum of this", UserWarning)
        model = clone(estimator).fit(X, y)
    assert model.status_ is Status.CONVERGED


@pytest.mark.parametrize("estimator_class", [TauFPL, TopMeanK])
def test_a_tau_for_which_K_would_be_zero_means_the_top_one(estimator_class):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The optimum of this", UserWarning)
        model = estimator_class(tau=1e-6, random_state=0).fit(X, Y)
    assert problem_of(model, prepare(model, X, POSITIVE)).family == Largest()
    if estimator_class is TauFPL:
        top = TopPush(random_state=0).fit(X, Y)
        assert_allclose(model.decision_function(X), top.decision_function(X))


@pytest.mark.parametrize(
    "estimator", [TopPush(), TopPushK(K=4), TauFPL(tau=0.1), PatMatNP(tau=0.1)]
)
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
def test_hard_margin_on_separable_data(estimator, surrogate):
    data, positive = two_clouds(10, 20, distance=8.0)
    model = clone(estimator).set_params(
        C=np.inf, surrogate=surrogate, random_state=0, kernel="linear"
    )
    model.fit(data, positive)
    assert model.status_ is Status.CONVERGED
    assert np.min(model.decision_function(data[positive])) >= 1.0 - 0.02
    # A large enough finite C is the same problem.
    if surrogate == "hinge":
        finite = clone(model).set_params(C=1e6).fit(data, positive)
        assert_allclose(finite.objective_, model.objective_, rtol=3e-4)


@pytest.mark.parametrize("estimator", [TopPush(), TauFPL(tau=0.1), PatMatNP(tau=0.1)])
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
def test_hard_margin_on_data_that_is_not_separable(estimator, surrogate):
    contradictory = np.vstack([X[:15], X[:15]])
    y = np.repeat([0, 1], 15)
    model = clone(estimator).set_params(C=np.inf, surrogate=surrogate, random_state=0, max_time=2)
    with pytest.warns(ConvergenceWarning, match="not separable.*finite C"):
        model.fit(contradictory, y)
    assert model.status_ is Status.UNBOUNDED
    assert model.objective_ == np.inf
    assert model.predict(X).shape == Y.shape


@every_estimator
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_badly_scaled_features(estimator, scale):
    """gamma="scale" makes the rbf kernel indifferent to the unit of the features."""
    model = clone(estimator).set_params(random_state=0, tol=1e-6).fit(X, Y)
    scaled = clone(model).fit(X * scale, Y)
    assert_allclose(scaled.objective_, model.objective_, rtol=1e-5)
