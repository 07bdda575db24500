"""Weights of samples count their copies, in every formulation and solver."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import attop
from attop import SVM, Grill, GrillNP, PatMatNP, TauFPL, TopPush, TopPushK
from attop._validation import gamma_value
from attop._weights import are_unit, of_rows, unit_weights, weighted_sum
from attop.families import Largest, TopMean
from attop.formulations import FORMULATIONS
from attop.kernels.functions import Gram, Kernel
from attop.metrics import get_scorer
from attop.model_selection import AtTopCV, fit_path
from attop.objectives import dual_value, infeasibility, primal_value, signed_coefficients
from attop.solvers import get_solver
from attop.solvers.solution import Status
from attop.surrogates import SURROGATES
from attop.thresholds import quantile, surrogate_quantile, surrogate_root, top_mean
from conftest import CASES, PARAMETERS, kernel_matrix, two_clouds
from oracle import solve_dual

each_case = pytest.mark.parametrize("name, surrogate", CASES)


def some_weights(n, seed, whole):
    """Weights up to a few copies, some of them zero."""
    rng = np.random.default_rng(seed)
    if whole:
        return rng.integers(0, 4, n).astype(float)
    return np.where(rng.random(n) < 0.2, 0.0, rng.uniform(0.1, 6.0, n))


def repeated(X, positive, weights):
    """Every sample as often as its weight says."""
    counts = weights.astype(int)
    return np.repeat(X, counts, axis=0), np.repeat(positive, counts)


def estimator(name, **parameters):
    """A precise one, with a fixed kernel."""
    parameters = {"gamma": 0.3, "tol": 1e-9, **PARAMETERS.get(name, {}), **parameters}
    return getattr(attop, name)(**parameters)


@each_case
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("C", [0.05, 2.0])
def test_fractional_weights_lead_to_the_oracles_optimum(name, surrogate, kernel, C):
    for seed in range(3):
        X, positive = two_clouds(14, 26, seed=seed)
        weights = some_weights(40, seed, whole=False)
        problem = FORMULATIONS[name].problem(
            positive, C, surrogate, sample_weight=weights, **PARAMETERS[name]
        )
        gram = Gram(Kernel(kernel, gamma=0.3), X)
        solution = get_solver("exact")(problem, gram, tol=1e-7)
        assert solution.status is Status.CONVERGED
        _, _, optimum = solve_dual(problem, kernel_matrix(gram))
        assert_allclose(solution.certificate.dual, optimum, rtol=2e-7, atol=1e-12)
        assert_allclose(solution.certificate.primal, optimum, rtol=2e-7, atol=1e-12)


@each_case
def test_whole_weights_are_repeated_rows_and_zero_is_none(name, surrogate):
    for seed in range(3):
        X, positive = two_clouds(12, 24, seed=seed)
        weights = some_weights(36, seed, whole=True)
        model = estimator(name, surrogate=surrogate)
        one = clone(model).fit(X, positive, sample_weight=weights)
        other = clone(model).fit(*repeated(X, positive, weights))
        assert_allclose(one.objective_, other.objective_, rtol=1e-6)
        fresh, _ = two_clouds(5, 5, seed=9)
        scores = one.decision_function(fresh), other.decision_function(fresh)
        assert_allclose(*scores, atol=1e-3 * np.ptp(scores[1]) + 1e-8)
        assert not np.isin(one.support_, np.flatnonzero(weights == 0.0)).any()


@each_case
def test_the_paper_s_solver_takes_weights_as_repeated_rows(name, surrogate):
    """What it can reach depends on the steps it takes: it must stay below the optimum."""
    X, positive = two_clouds(10, 20, seed=1)
    weights = some_weights(30, 1, whole=True)
    problem = FORMULATIONS[name].problem(
        positive, 0.5, surrogate, sample_weight=weights, **PARAMETERS[name]
    )
    gram = Gram(Kernel("rbf", gamma=0.3), X)
    optimum = get_solver("exact")(problem, gram, tol=1e-8).certificate.dual
    found = get_solver("pairwise")(problem, gram, tol=1e-7, n_epochs=2000, random_state=0)
    assert infeasibility(problem, found.alpha, found.beta) <= 1e-9
    assert found.certificate.dual <= optimum * (1 + 1e-7)
    if FORMULATIONS[name].name in ("TopPush", "SVM"):  # where pairs of variables are enough
        assert found.status is Status.CONVERGED
        assert_allclose(found.certificate.dual, optimum, rtol=1e-6)


@pytest.mark.parametrize("C", [1e-3, 0.5, 20.0])
@pytest.mark.parametrize("n", [60, 1500])
def test_the_svm_is_scikit_learns(n, C):
    X, positive = two_clouds(n // 3, 2 * n // 3, distance=1.5)
    # scikit-learn's support_ counts rows without those of weight 0.
    weights = some_weights(n, 0, whole=False) + 0.01
    for own in ({}, {"sample_weight": weights}):
        model = SVM(C=C, gamma=0.2, tol=1e-6).fit(X, positive, **own)
        known = SVC(C=C, gamma=0.2, tol=1e-7).fit(X, positive, **own)
        problem = FORMULATIONS["SVM"].problem(positive, C, "hinge", **own)
        scores = known.decision_function(X)
        norm2 = float(known.dual_coef_[0] @ (scores[known.support_] - known.intercept_[0]))
        assert_allclose(model.objective_, primal_value(problem, norm2, scores, 0.0), rtol=1e-5)
        assert np.mean(model.predict(X) == known.predict(X)) > 0.99


@pytest.mark.parametrize("class_weight", ["balanced", {False: 0.3, True: 2.0}, {True: 5.0}])
def test_class_weights_multiply_those_of_the_samples(class_weight):
    X, positive = two_clouds(20, 60)
    y = np.where(positive, "yes", "no")
    if isinstance(class_weight, dict):
        class_weight = {("yes" if label else "no"): v for label, v in class_weight.items()}
    weights = some_weights(80, 3, whole=False)
    model = SVM(C=0.7, gamma=0.2, tol=1e-7, class_weight=class_weight).fit(X, y, weights)
    known = SVC(C=0.7, gamma=0.2, tol=1e-8, class_weight=class_weight).fit(X, y, weights)
    if class_weight != "balanced":  # by which scikit-learn's does not mean the copies
        assert_allclose(model.decision_function(X), known.decision_function(X), atol=2e-3)
    by_hand = SVM(C=0.7, gamma=0.2, tol=1e-7)
    if class_weight == "balanced":
        total = weights.sum()
        per_class = {"yes": total / 2 / weights[positive].sum()}
        per_class["no"] = total / 2 / weights[~positive].sum()
    else:
        per_class = {"yes": 1.0, "no": 1.0} | class_weight
    own = weights * np.where(positive, per_class["yes"], per_class["no"])
    assert_allclose(by_hand.fit(X, y, own).objective_, model.objective_, rtol=1e-6)


@pytest.mark.parametrize("model", [Grill(tau=0.4), GrillNP(tau=0.2)])
@pytest.mark.parametrize("surrogate", list(SURROGATES))
def test_grill_counts_copies(model, surrogate):
    """Its objective does, everywhere; which local minimum is found is another matter."""
    X, positive = two_clouds(15, 30, seed=2)
    weights = some_weights(45, 2, whole=True)
    more, more_positive = repeated(X, positive, weights)
    formulation, tau = model.formulation, model.tau
    problem = formulation.quantile_problem(positive, 0.3, surrogate, tau, sample_weight=weights)
    copies = formulation.quantile_problem(more_positive, 0.3, surrogate, tau)
    rng = np.random.default_rng(0)
    for w in rng.normal(size=(20, 3)):
        assert_allclose(problem.value(w @ w, X @ w), copies.value(w @ w, more @ w), rtol=1e-12)
        gradients = X.T @ problem.slopes(X @ w), more.T @ copies.slopes(more @ w)
        assert_allclose(*gradients, atol=1e-9)
    model = clone(model).set_params(surrogate=surrogate, C=0.3)
    one = clone(model).fit(X, positive, sample_weight=weights)
    other = clone(model).fit(more, more_positive)
    assert_allclose(one.objective_, other.objective_, rtol=1e-2)
    assert_allclose(problem.value(one.coef_[0] @ one.coef_[0], X @ one.coef_[0]), one.objective_)


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_scale_of_gamma_and_units_do_not_depend_on_how_copies_are_told(name):
    """The default gamma is that of the repeated rows; a weight of 1 is none."""
    X, positive = two_clouds(12, 24, seed=4)
    X[:, 0] *= 3.0
    weights = some_weights(36, 4, whole=True)
    model = estimator(name, gamma="scale")
    one = clone(model).fit(X, positive, sample_weight=weights)
    other = clone(model).fit(*repeated(X, positive, weights))
    assert_allclose(one.objective_, other.objective_, rtol=1e-6)
    csr = clone(model).fit(sparse.csr_matrix(X), positive, sample_weight=weights)
    assert_allclose(one.objective_, csr.objective_, rtol=1e-6)
    plain, ones = clone(model).fit(X, positive), clone(model).fit(X, positive, np.ones(36))
    assert plain.objective_ == ones.objective_


def test_many_samples_with_weights():
    """Subsamples, active parts and bounds on scores: all of the solver's rooms."""
    X, positive = two_clouds(1500, 4500, n_features=5, distance=1.2, seed=5)
    weights = some_weights(6000, 5, whole=True)
    for model in (
        TauFPL(0.05, C=0.05, gamma=0.1, tol=1e-5),
        PatMatNP(0.05, C=0.05, gamma=0.1, tol=1e-5),
        SVM(C=0.5, gamma=0.1, tol=1e-5),
        TopPushK(7, C=0.05, gamma=0.1, tol=1e-5, surrogate="quadratic_hinge"),
    ):
        one = clone(model).fit(X, positive, sample_weight=weights)
        other = clone(model).fit(*repeated(X, positive, weights))
        assert one.status_ is other.status_ is Status.CONVERGED
        assert_allclose(one.objective_, other.objective_, rtol=2e-5)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_thresholds_are_those_of_the_repeated_scores(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    scores = rng.integers(-4, 5, n) if rng.random() < 0.5 else rng.normal(size=n)
    scores, counts = scores.astype(float), rng.integers(1, 5, n)
    copies, weights = np.repeat(scores, counts), counts.astype(float)
    K = int(rng.integers(1, counts.sum() + 1))
    assert_allclose(top_mean(scores, K, weights=weights), top_mean(copies, K), atol=1e-12)
    tau = float(rng.uniform(0.01, 1.0))
    assert quantile(scores, tau, weights=weights) == quantile(copies, tau)
    for surrogate in SURROGATES:
        root = surrogate_root(scores, counts.sum() * tau, 0.7, surrogate, weights=weights)
        assert_allclose(root, surrogate_quantile(copies, tau, 0.7, surrogate), atol=1e-10)


@each_case
def test_any_feasible_point_is_worth_what_its_copies_are(name, surrogate):
    """Primal, dual and infeasibility, at a random point and its repetition."""
    rng = np.random.default_rng(0)
    X, positive = two_clouds(9, 18, seed=6)
    weights = rng.integers(1, 4, 27).astype(float)
    parameters = PARAMETERS[name]
    problem = FORMULATIONS[name].problem(
        positive, 0.6, surrogate, sample_weight=weights, **parameters
    )
    copies = FORMULATIONS[name].problem(
        repeated(X, positive, weights)[1], 0.6, surrogate, **parameters
    )
    alpha, beta = rng.random(9), rng.random(len(problem.competitors))
    counts = weights.astype(int)
    more_alpha = np.repeat(alpha, counts[problem.positives])
    more_beta = np.repeat(beta, counts[problem.competitors])
    assert_allclose(
        dual_value(problem, 1.3, alpha, beta), dual_value(copies, 1.3, more_alpha, more_beta)
    )
    found, expected = (
        infeasibility(problem, alpha, beta),
        infeasibility(copies, more_alpha, more_beta),
    )
    assert_allclose(found, expected)
    signed = signed_coefficients(problem, alpha, beta)
    more = signed_coefficients(copies, more_alpha, more_beta)
    assert_allclose(signed, np.add.reduceat(more, np.r_[0, np.cumsum(counts)[:-1]]))
    scores = rng.normal(size=27)
    assert_allclose(
        primal_value(problem, 1.3, scores), primal_value(copies, 1.3, np.repeat(scores, counts))
    )


def test_paths_and_searches_pass_weights_on():
    X, positive = two_clouds(20, 40, seed=7)
    weights = some_weights(60, 7, whole=True)
    model = TauFPL(0.2, gamma=0.3, tol=1e-8)
    path = fit_path(model, X, positive, "C", [0.1, 1.0], sample_weight=weights)
    for C, found in zip(path.values, path.estimators):
        alone = clone(model).set_params(C=C).fit(X, positive, sample_weight=weights)
        assert_allclose(found.objective_, alone.objective_, rtol=1e-6)
    search = AtTopCV(model, {"C": [0.1, 1.0]}, scoring="roc_auc", cv=3)
    search.fit(X, positive, sample_weight=weights)
    best = clone(model).set_params(**search.best_params_).fit(X, positive, weights)
    assert_allclose(search.best_estimator_.objective_, best.objective_, rtol=1e-6)


def test_a_hard_margin_does_not_care_for_copies():
    X, positive = two_clouds(10, 20, distance=6.0)
    weights = some_weights(30, 8, whole=False) + 0.5
    for model in (TopPush(C=np.inf, kernel="linear"), SVM(C=np.inf, kernel="linear")):
        plain = clone(model).fit(X, positive).objective_
        assert_allclose(clone(model).fit(X, positive, weights).objective_, plain, rtol=2e-4)


@pytest.mark.parametrize(
    "weights, message",
    [
        (np.ones(5), "sample_weight.shape"),
        (-np.ones(36), "[Nn]egative"),
        (np.full(36, np.nan), "NaN"),
        (np.zeros(36), "non-zero"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    X, positive = two_clouds(12, 24)
    with pytest.raises(ValueError, match=message):
        TopPush().fit(X, positive, sample_weight=weights)


def test_a_class_of_weight_zero_is_not_there():
    X, positive = two_clouds(12, 24)
    with pytest.raises(ValueError, match="number of classes"):
        TopPush().fit(X, positive, sample_weight=np.where(positive, 0.0, 1.0))
    with pytest.raises(ValueError, match=r"weight of negative samples, 2\.4\. Got 4"):
        TopPushK(4).fit(X, positive, sample_weight=np.where(positive, 1.0, 0.1))


def test_warm_starts_with_weights():
    X, positive = two_clouds(15, 30)
    weights = some_weights(45, 1, whole=False) + 0.1
    model = PatMatNP(0.2, gamma=0.3, warm_start=True).fit(X, positive, weights)
    objective = model.objective_
    assert model.fit(X, positive, weights).n_iter_ <= 1
    assert_allclose(model.objective_, objective, rtol=1e-4)


def test_an_svm_that_cannot_separate_says_so():
    X = np.zeros((6, 2))
    with pytest.warns(ConvergenceWarning, match="not separable"):
        SVM(C=np.inf, gamma=1.0).fit(X, [0, 1, 0, 1, 0, 1])


def test_ones_that_take_no_memory():
    ones = unit_weights(5)
    assert are_unit(ones) and are_unit(ones[2:]) and not are_unit(np.ones(5))
    assert are_unit(of_rows(ones, np.array([1, 3]))) and len(of_rows(ones, ones > 0.0)) == 5
    assert weighted_sum(np.arange(5.0), ones) == 10.0


def test_a_subsample_has_no_more_at_the_top_than_it_has():
    assert TopMean(8).subsampled(0.5, 2.6) == TopMean(2)
    assert isinstance(TopMean(8).subsampled(0.5, 0.4), Largest)


def test_weights_are_routed_through_searches_and_pipelines():
    X, positive = two_clouds(20, 40, seed=3)
    weights = some_weights(60, 3, whole=True)
    # Copies of a sample are in one fold, as the sample with its weight is.
    folds = [(np.arange(60) % 3 != k, np.arange(60) % 3 == k) for k in range(3)]
    folds = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in folds]
    copy_of = np.repeat(np.arange(60), weights.astype(int))
    more = [tuple(np.flatnonzero(np.isin(copy_of, rows)) for rows in fold) for fold in folds]
    grid = {"taufpl__C": [0.03, 3.0]}
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=True),
            TauFPL(0.2, gamma=0.3, tol=1e-8).set_fit_request(sample_weight=True),
        )
        scorer = get_scorer("partial_auc_0.3").set_score_request(sample_weight=True)
        search = GridSearchCV(model, grid, scoring=scorer, cv=folds)
        search.fit(X, positive, sample_weight=weights)
    plain = make_pipeline(StandardScaler(), TauFPL(0.2, gamma=0.3, tol=1e-8))
    other = GridSearchCV(plain, grid, scoring=get_scorer("partial_auc_0.3"), cv=more)
    other.fit(X[copy_of], positive[copy_of])
    scores = [found.cv_results_["mean_test_score"] for found in (search, other)]
    assert_allclose(*scores, atol=1e-9)
    objectives = [found.best_estimator_[-1].objective_ for found in (search, other)]
    assert_allclose(*objectives, rtol=1e-6)


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_scale_of_gamma_is_exact_in_single_precision(stored):
    """Weights of one are none: with C large, a gamma off by 1e-8 is another problem."""
    dense = np.random.default_rng(0).normal(size=(50, 18), scale=23.0).astype(np.float32)
    X, expected = stored(dense), 1.0 / (18 * np.var(dense.astype(np.float64)))
    assert gamma_value("scale", X, np.ones(50)) == pytest.approx(expected, rel=1e-14)
    assert gamma_value("scale", X) == pytest.approx(expected, rel=1e-14)
