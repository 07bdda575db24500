"""The estimators as users meet them: optimal, and at home in scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import attop
from attop import PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
from attop._validation import gamma_value
from attop.datasets import load_ionosphere
from attop.kernels.functions import Gram, Kernel
from attop.pipeline import prepare, problem_of
from attop.solvers.solution import Status
from conftest import CASES, OPTIMA, PARAMETERS, kernel_matrix, two_clouds
from oracle import solve_dual

X, POSITIVE = two_clouds(30, 60, distance=1.5)
Y = POSITIVE.astype(int)
ESTIMATORS = [
    getattr(attop, name)(random_state=0, **parameters) for name, parameters in PARAMETERS.items()
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def seeded(estimator_class, **parameters):
    """An estimator that always takes the same path, so that models can be compared closely."""
    return estimator_class(random_state=0, **parameters)


@pytest.mark.filterwarnings("ignore:The optimum of this TopMeanK is w = 0:UserWarning")
@pytest.mark.parametrize("row", OPTIMA, ids=lambda row: "-".join(row.values()))
def test_reference_optima(row):
    data, y = load_ionosphere(return_X_y=True)
    parameters = {name: float(row[name]) for name in ("tau", "theta") if row[name]}
    if row["K"]:
        parameters["K"] = int(row["K"])
    model = getattr(attop, row["formulation"])(
        C=float(row["C"]),
        surrogate=row["surrogate"],
        kernel=row["kernel"],
        gamma=1 / 34,
        tol=1e-6,
        max_time=60,
        random_state=0,
        **parameters,
    ).fit(data, y)
    assert model.dual_gap_ <= 1e-6
    assert_allclose(model.objective_, float(row["objective"]), rtol=1e-5)


@pytest.mark.parametrize("name, surrogate", CASES)
def test_fit_reaches_the_optimum_of_the_oracle(name, surrogate):
    model = getattr(attop, name)(
        surrogate=surrogate, gamma=0.3, tol=1e-6, random_state=0, **PARAMETERS[name]
    ).fit(X, Y)
    problem = model.formulation.problem(POSITIVE, 1.0, surrogate, **PARAMETERS[name])
    optimum = solve_dual(problem, kernel_matrix(Gram(Kernel("rbf", gamma=0.3), X)))[2]
    assert model.status_ is Status.CONVERGED
    assert model.dual_gap_ <= 1e-6
    assert_allclose(model.objective_, optimum, rtol=2e-6)


@every_estimator
def test_fitted_attributes(estimator):
    model = clone(estimator).fit(X, Y)
    assert_array_equal(model.classes_, [0, 1])
    n_competitors = len(Y) if estimator.formulation.competitors == "all" else np.sum(Y == 0)
    assert model.alpha_.shape == (np.sum(Y),)
    assert model.beta_.shape == (n_competitors,)
    assert_allclose(model.alpha_.sum(), model.beta_.sum())
    assert np.all(np.diff(model.support_) > 0)
    assert np.all(model.dual_coef_ != 0.0)
    assert model.dual_coef_.shape == (1, len(model.support_))
    assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.history_.gap[-1] <= model.tol
    assert len({len(column) for column in model.history_}) == 1
    assert model.n_iter_ >= 1
    assert model.n_features_in_ == 3
    assert not hasattr(model, "coef_")


@every_estimator
def test_the_model_is_the_one_the_attributes_describe(estimator):
    """Scores, threshold and objective rebuilt from the public attributes alone."""
    model = clone(estimator).set_params(gamma=0.3, C=2.0).fit(X, Y)
    scores = rbf_kernel(X, model.support_vectors_, gamma=0.3) @ model.dual_coef_[0]
    assert_allclose(model.decision_function(X), scores - model.threshold_, atol=1e-12)
    problem = problem_of(model, prepare(model, X, POSITIVE))
    assert_allclose(attop.objectives.threshold(problem, scores), model.threshold_, atol=1e-9)
    w_norm2 = model.dual_coef_[0] @ scores[model.support_]
    assert_allclose(attop.objectives.primal_value(problem, w_norm2, scores), model.objective_)


@every_estimator
def test_decision_function_of_many_samples_is_that_of_each(estimator):
    model = clone(estimator).fit(X, Y)
    many = np.random.default_rng(0).normal(size=(5000, 3))
    decision = model.decision_function(many)
    assert_allclose(decision[::999], model.decision_function(many[::999]), atol=1e-10)
    assert_array_equal(model.predict(many), decision >= 0.0)


@every_estimator
def test_order_of_samples_does_not_matter(estimator):
    order = np.random.default_rng(1).permutation(len(Y))
    model = clone(estimator).set_params(tol=1e-8).fit(X, Y)
    shuffled = clone(model).fit(X[order], Y[order])
    assert_allclose(shuffled.decision_function(X), model.decision_function(X), atol=2e-3)
    assert_allclose(shuffled.objective_, model.objective_, rtol=1e-7)


@every_estimator
def test_linear_kernel_is_its_coef(estimator):
    model = clone(estimator).set_params(kernel="linear", tol=1e-7).fit(X, Y)
    assert_allclose(model.coef_, model.dual_coef_ @ model.support_vectors_)
    assert_allclose(model.decision_function(X), X @ model.coef_[0] - model.threshold_)
    precomputed = clone(model).set_params(kernel="precomputed").fit(X @ X.T, Y)
    assert_allclose(precomputed.decision_function(X @ X.T), model.decision_function(X), atol=1e-2)
    model.set_params(kernel="rbf").fit(X, Y)
    assert not hasattr(model, "coef_")


def test_identities_between_formulations():
    top, top_1 = (seeded(c, **p).fit(X, Y) for c, p in [(TopPush, {}), (TopPushK, {"K": 1})])
    assert_allclose(top.decision_function(X), top_1.decision_function(X))
    share, top_6 = seeded(TauFPL, tau=0.1).fit(X, Y), seeded(TopPushK, K=6).fit(X, Y)
    assert_allclose(share.decision_function(X), top_6.decision_function(X))


def rbf_with_gamma_03(A, B):
    return rbf_kernel(A, B, gamma=0.3)


@every_estimator
def test_precomputed_and_callable_kernels_are_the_rbf_kernel(estimator):
    model = clone(estimator).set_params(gamma=0.3, tol=1e-7).fit(X, Y)
    decision = model.decision_function(X)
    K = rbf_with_gamma_03(X, X)
    precomputed = clone(model).set_params(kernel="precomputed").fit(K, Y)
    assert_allclose(precomputed.decision_function(K), decision, atol=2e-3)
    assert precomputed.support_vectors_.size == 0
    function = clone(model).set_params(kernel=rbf_with_gamma_03).fit(X, Y)
    assert_allclose(function.decision_function(X), decision, atol=2e-3)


@pytest.mark.parametrize("kernel", ["poly", "laplacian"])
def test_other_kernels(kernel):
    model = seeded(TauFPL, tau=0.1, kernel=kernel, degree=2, coef0=1.0).fit(X, Y)
    assert model.status_ is Status.CONVERGED
    assert np.mean(model.predict(X)[Y == 0]) <= 0.2


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_matrix])
def test_sparse_is_dense(kernel, form):
    data = np.where(np.abs(X) < 0.7, 0.0, X)
    dense = seeded(TauFPL, tau=0.1, kernel=kernel, tol=1e-7).fit(data, Y)
    sparse = seeded(TauFPL, tau=0.1, kernel=kernel, tol=1e-7).fit(form(data), Y)
    assert sp.issparse(sparse.support_vectors_)
    assert_allclose(sparse.objective_, dense.objective_, rtol=1e-6)
    expected = dense.decision_function(data)
    assert_allclose(sparse.decision_function(form(data)), expected, atol=5e-3)
    assert_allclose(sparse.decision_function(data), sparse.decision_function(form(data)))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_single_precision_is_kept_and_gives_the_same_model(kernel):
    single = seeded(TauFPL, tau=0.1, kernel=kernel).fit(X.astype(np.float32), Y)
    double = seeded(TauFPL, tau=0.1, kernel=kernel).fit(X, Y)
    assert single.support_vectors_.dtype == np.float32
    assert double.support_vectors_.dtype == np.float64
    assert_allclose(single.objective_, double.objective_, rtol=2e-4)
    assert single.decision_function(X).dtype == np.float64


def test_gamma_of_the_data():
    scale = seeded(TopPush).fit(X, Y)
    assert_allclose(
        scale.decision_function(X),
        seeded(TopPush, gamma=1 / (3 * X.var())).fit(X, Y).decision_function(X),
    )
    sparse_scale = seeded(TopPush, tol=1e-7).fit(sp.csr_matrix(X), Y)
    assert_allclose(
        sparse_scale.objective_, seeded(TopPush, tol=1e-7).fit(X, Y).objective_, rtol=1e-6
    )
    auto = seeded(TopPush, gamma="auto").fit(X, Y)
    third = seeded(TopPush, gamma=1 / 3).fit(X, Y)
    assert_allclose(auto.decision_function(X), third.decision_function(X))


@pytest.mark.parametrize("value", [0.0, 0.1, 12345.678, 1e6])
@pytest.mark.parametrize("as_", [np.asarray, sp.csr_matrix])
def test_samples_that_are_all_equal_have_no_variance(value, as_):
    X, counts = as_(np.full((47, 2), value)), np.arange(47.0) % 3
    assert gamma_value("scale", X) == gamma_value("scale", X, counts) == 1.0
    another = np.vstack([np.full((47, 2), value), [[value + 0.5, value]]])
    assert gamma_value("scale", as_(another), np.append(counts, 0.0)) == 1.0
    assert gamma_value("scale", as_(another)) == pytest.approx(0.5 / np.var(another))


def test_labels_may_be_strings():
    labels = np.where(POSITIVE, "spam", "ham")
    model = seeded(TopPush).fit(X, labels)
    assert_array_equal(model.classes_, ["ham", "spam"])
    assert_array_equal(model.predict(X) == "spam", seeded(TopPush).fit(X, Y).predict(X) == 1)


@pytest.mark.parametrize("labels", [np.array(["a", "b"]), np.array([-1, 7]), np.array([0.0, 1.0])])
def test_pos_label_chooses_the_positive_class(labels):
    y = labels[Y]
    model = seeded(TauFPL, pos_label=labels[0].item()).fit(X, y)
    mirrored = seeded(TauFPL).fit(X, 1 - Y)
    assert_array_equal(model.classes_, labels)
    assert_allclose(model.top_score(X), mirrored.decision_function(X))
    assert_array_equal(model.decision_function(X), -model.top_score(X))
    assert_array_equal(model.predict(X) == labels[0], model.top_score(X) >= 0.0)


def test_pandas_names_are_remembered():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = seeded(TopPush).fit(frame, pd.Series(Y))
    assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    assert_allclose(model.decision_function(frame), seeded(TopPush).fit(X, Y).decision_function(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])


@every_estimator
def test_clone_and_pickle(estimator):
    assert clone(estimator).get_params() == estimator.get_params()
    model = clone(estimator).fit(X, Y)
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(restored.decision_function(X), model.decision_function(X))


@every_estimator
def test_same_input_and_seed_give_the_same_model(estimator):
    first, second = (clone(estimator).set_params(random_state=3).fit(X, Y) for _ in range(2))
    assert_array_equal(first.alpha_, second.alpha_)
    assert_array_equal(first.beta_, second.beta_)


def test_parameters_come_first_by_position():
    assert TopPushK(7).K == 7
    assert TauFPL(0.1).tau == 0.1
    assert (PatMatNP(0.1, 2.0).tau, PatMatNP(0.1, 2.0).theta) == (0.1, 2.0)
    with pytest.raises(TypeError):
        TopPush(1.0)


@every_estimator
def test_pipeline_and_grid_search(estimator):
    pipeline = make_pipeline(StandardScaler(), clone(estimator))
    name = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{name}__C": [0.1, 1.0]}, scoring="roc_auc", cv=3)
    search.fit(X, Y)
    assert search.best_score_ > 0.8
    assert_array_equal(search.predict(X), search.decision_function(X) >= 0.0)


@every_estimator
def test_grid_search_with_a_precomputed_kernel(estimator):
    """The pairwise tag makes the splitter take rows and columns."""
    model = clone(estimator).set_params(kernel="precomputed")
    search = GridSearchCV(model, {"C": [0.1, 1.0]}, scoring="roc_auc", cv=3).fit(X @ X.T, Y)
    assert search.best_score_ > 0.8


@every_estimator
def test_warm_start_needs_fewer_rounds_and_finds_the_same_optimum(estimator):
    model = clone(estimator).set_params(warm_start=True, tol=1e-6).fit(X, Y)
    cold = model.n_iter_
    objective = model.objective_
    model.fit(X, Y)
    assert model.n_iter_ <= cold
    assert_allclose(model.objective_, objective, rtol=2e-6)
    # Another C makes the old point infeasible, other samples make it useless.
    model.set_params(C=0.01).fit(X, Y)
    cold_again = clone(model).fit(X, Y)
    assert_allclose(model.objective_, cold_again.objective_, rtol=2e-6)
    model.fit(X[:-5], Y[:-5])
    assert model.status_ is Status.CONVERGED


def test_a_missed_tolerance_is_a_warning_that_states_the_gap():
    data, y = load_ionosphere(return_X_y=True)
    model = seeded(PatMatNP, C=100.0, tol=1e-9, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"duality gap of \d.*max_iter"):
        model.fit(data, y)
    assert model.status_ is Status.MAX_ITER
    assert model.dual_gap_ > 1e-9
    assert model.predict(data).shape == y.shape


@pytest.mark.parametrize(
    "estimator", [seeded(TopMeanK, tau=0.05), seeded(PatMat, tau=0.01, theta=1e6)]
)
def test_a_trivial_optimum_is_explained(estimator):
    twin = estimator.formulation.twin
    with pytest.warns(UserWarning, match=rf"is w = 0.*larger tau, or {twin}"):
        estimator.fit(X, Y)


def test_solver_options_reach_the_solver():
    with pytest.raises(ValueError, match=r"'n_epochs' parameter of the pairwise solver"):
        TopPush(solver="pairwise", solver_options={"n_epochs": -1}).fit(X, Y)
