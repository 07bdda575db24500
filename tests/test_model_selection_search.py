"""`AtTopCV`: the choice of a plain loop over folds, for less work."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, make_scorer, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import attop
from attop import PatMatNP, TauFPL, TopMeanK, TopPush
from attop import _validation as checks
from attop.families.quantile_hinge import QuantileHinge
from attop.metrics import get_scorer, tpr_at_fpr
from attop.model_selection import AtTopCV
from attop.solvers import primal
from attop.solvers.solution import Status
from conftest import PARAMETERS, two_clouds

X, POSITIVE = two_clouds(40, 80, distance=1.2)
Y = POSITIVE.astype(int)
FOLDS = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y))
PAIR = [TopPush(gamma=0.3, random_state=0), PatMatNP(tau=0.2, gamma=0.3, random_state=0)]


def plain_loop(estimator, values, scorer):
    """Scores of the candidates by separate fits on each fold, gamma that of all samples."""
    gamma = checks.gamma_value("scale", X)
    model = clone(estimator).set_params(gamma=gamma)
    return np.array(
        [
            [
                scorer(model.set_params(C=C).fit(X[train], Y[train]), X[test], Y[test])
                for train, test in FOLDS
            ]
            for C in values
        ]
    )


@pytest.mark.parametrize("scoring", ["tpr_at_fpr_0.1", "roc_auc", "accuracy", "precision_at_k_5"])
@pytest.mark.parametrize("name", ["PatMatNP", "TopPush", "PatMat"])
def test_scores_are_those_of_a_plain_loop(name, scoring):
    values = [0.05, 1.0, 20.0]
    estimator = getattr(attop, name)(tol=1e-8, random_state=0, **PARAMETERS[name])
    search = AtTopCV(estimator, {"C": values}, cv=FOLDS, scoring=scoring).fit(X, Y)
    expected = plain_loop(estimator, values, get_scorer(scoring))
    found = np.array([search.cv_results_[f"split{i}_test_score"] for i in range(3)]).T
    assert_allclose(found, expected, atol=1e-10)
    assert_allclose(search.cv_results_["mean_test_score"], expected.mean(axis=1))
    assert_allclose(search.cv_results_["std_test_score"], expected.std(axis=1), atol=1e-12)
    assert search.best_params_ == {"C": values[int(np.argmax(expected.mean(axis=1)))]}
    assert_allclose(search.best_score_, expected.mean(axis=1).max())


@pytest.mark.parametrize("kernel", ["linear", "poly", "precomputed"])
def test_scores_are_those_of_a_plain_loop_with_other_kernels(kernel):
    estimator = TopPush(kernel=kernel, gamma=0.2, tol=1e-8, random_state=0)
    K = rbf_kernel(X, gamma=0.3)
    data = K if kernel == "precomputed" else X
    search = AtTopCV(estimator, {"C": [0.1, 1.0]}, cv=FOLDS, scoring="roc_auc").fit(data, Y)
    for i, (train, test) in enumerate(FOLDS):
        model = clone(estimator).set_params(C=0.1)
        if kernel == "precomputed":
            decision = model.fit(K[np.ix_(train, train)], Y[train]).decision_function(
                K[np.ix_(test, train)]
            )
        else:
            decision = model.fit(X[train], Y[train]).decision_function(X[test])
        expected = roc_auc_score(Y[test], decision)
        assert_allclose(search.cv_results_[f"split{i}_test_score"][0], expected)


def test_the_refitted_model_is_that_of_a_plain_fit():
    search = AtTopCV(
        PatMatNP(tau=0.2, tol=1e-8, random_state=0), {"lambda": [0.1, 1e-3]}, cv=FOLDS
    ).fit(X, Y)
    best = search.best_estimator_
    assert_allclose(best.C, 1.0 / (search.best_params_["lambda"] * POSITIVE.sum()))
    plain = clone(best).fit(X, Y)
    assert_allclose(best.objective_, plain.objective_, rtol=1e-7)
    assert_allclose(search.decision_function(X), plain.decision_function(X), atol=1e-3)
    assert_array_equal(search.predict(X), np.where(search.decision_function(X) >= 0, 1, 0))
    assert_allclose(search.score(X, Y), tpr_at_fpr(Y, plain.decision_function(X), 0.05))


def test_lambda_counts_the_positives_of_the_training_samples():
    by_lambda = AtTopCV(PAIR[1], {"lambda": [0.01]}, cv=[FOLDS[0]]).fit(X, Y)
    C = 1.0 / (0.01 * np.sum(Y[FOLDS[0][0]]))
    by_C = AtTopCV(PAIR[1], {"C": [C]}, cv=[FOLDS[0]]).fit(X, Y)
    assert by_lambda.best_score_ == by_C.best_score_
    gaps = [search.cv_results_["max_dual_gap"][0] for search in (by_lambda, by_C)]
    assert gaps[0] == gaps[1]


def test_columns_are_computed_once():
    search = AtTopCV(PAIR, {"C": [0.1, 1.0]}, cv=FOLDS).fit(X, Y)
    assert 0 < search.cv_results_["n_columns"].sum() <= len(X)


def test_table_of_results_is_complete():
    grid = {"C": [0.1, 1.0], "theta": [0.3, 1.0]}
    results = AtTopCV(PAIR, grid, cv=FOLDS).fit(X, Y).cv_results_
    table = pd.DataFrame(results)
    assert len(table) == 2 + 4
    assert list(table["estimator"]) == [" ".join(repr(PAIR[i > 1]).split()) for i in range(6)]
    for i, parameters in enumerate(results["params"]):
        assert results["param_C"][i] == parameters["C"]
        assert np.ma.is_masked(results["param_theta"][i]) == ("theta" not in parameters)
    splits = table[[f"split{i}_test_score" for i in range(3)]].to_numpy()
    assert_allclose(table["mean_test_score"], splits.mean(axis=1))
    assert_array_equal(table["rank_test_score"], (-table["mean_test_score"]).rank(method="min"))
    gaps = table[[f"split{i}_dual_gap" for i in range(3)]].to_numpy()
    assert_array_equal(table["max_dual_gap"], gaps.max(axis=1))
    assert gaps.max() <= 1e-4
    assert all(
        results[f"split{i}_status"][j] is Status.CONVERGED for i in range(3) for j in range(6)
    )
    assert (table["mean_fit_time"] > 0).all() and (table["std_fit_time"] >= 0).all()


@pytest.mark.parametrize(
    "scoring",
    [
        average_precision_score,
        "average_precision",
        make_scorer(average_precision_score, response_method="decision_function"),
    ],
)
def test_metric_by_function_name_or_scorer(scoring):
    found = AtTopCV(PAIR[1], {"C": [0.1, 10.0]}, cv=FOLDS, scoring=scoring).fit(X, Y)
    named = AtTopCV(PAIR[1], {"C": [0.1, 10.0]}, cv=FOLDS, scoring="average_precision").fit(X, Y)
    assert_allclose(found.cv_results_["mean_test_score"], named.cv_results_["mean_test_score"])


def test_the_best_is_best_by_the_metric_asked_for():
    """A metric and its opposite choose opposite ends."""
    values = [1e-3, 1.0, 100.0]
    by_auc = AtTopCV(PAIR[1], {"C": values}, cv=FOLDS, scoring=roc_auc_score).fit(X, Y)
    against = AtTopCV(
        PAIR[1], {"C": values}, cv=FOLDS, scoring=lambda y, s: -roc_auc_score(y, s)
    ).fit(X, Y)
    means = by_auc.cv_results_["mean_test_score"]
    assert by_auc.best_index_ == np.argmax(means)
    assert against.best_index_ == np.argmin(means)
    assert by_auc.best_index_ != against.best_index_


def test_the_winner_may_be_any_of_several_formulations():
    search = AtTopCV(PAIR, {"C": [0.1, 1.0]}, cv=FOLDS).fit(X, Y)
    other_way = AtTopCV(PAIR[::-1], {"C": [0.1, 1.0]}, cv=FOLDS).fit(X, Y)
    means = search.cv_results_["mean_test_score"]
    assert_allclose(other_way.cv_results_["mean_test_score"], means[[2, 3, 0, 1]])
    assert type(search.best_estimator_) is type(PAIR[search.best_index_ // 2])


def test_a_grid_for_each_estimator_and_kernels_of_their_own():
    estimators = [TopPush(kernel="linear", random_state=0), PatMatNP(tau=0.2, random_state=0)]
    grids = [{"C": [0.1]}, {"theta": [0.1, 1.0]}]
    search = AtTopCV(estimators, grids, cv=FOLDS, scoring="roc_auc").fit(X, Y)
    assert search.cv_results_["params"] == [{"C": 0.1}, {"theta": 0.1}, {"theta": 1.0}]
    alone = AtTopCV(estimators[1], grids[1], cv=FOLDS, scoring="roc_auc").fit(X, Y)
    assert_allclose(
        search.cv_results_["mean_test_score"][1:], alone.cv_results_["mean_test_score"], rtol=1e-3
    )


@pytest.mark.filterwarnings("ignore:The optimum of this:UserWarning")
@pytest.mark.filterwarnings("ignore:The best candidate of AtTopCV:UserWarning")
@pytest.mark.filterwarnings("ignore:.* candidates of AtTopCV had the optimum w = 0:UserWarning")
@pytest.mark.parametrize("scoring", ["tpr_at_fpr_0.1", "positives_at_top", "roc_auc", "accuracy"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("name", ["TopMeanK", "PatMat"])
def test_a_model_that_is_zero_is_judged_as_by_grid_search(name, kernel, scoring):
    """With fewer at the top than there are positives the optimum is w = 0: all samples tie."""
    estimator = getattr(attop, name)(kernel=kernel, gamma=0.3, tol=1e-8, random_state=0)
    grid = {"tau": [0.05, 0.7], "C": [0.1, 1.0]}
    if name == "PatMat":
        grid |= {"tau": [0.01, 0.7], "theta": [0.7]}
    search = AtTopCV(estimator, grid, cv=FOLDS, scoring=scoring).fit(X, Y)
    plain = GridSearchCV(estimator, grid, cv=FOLDS, scoring=get_scorer(scoring)).fit(X, Y)
    assert search.cv_results_["params"] == plain.cv_results_["params"]
    for i in range(len(FOLDS)):
        column = f"split{i}_test_score"
        assert_allclose(search.cv_results_[column], plain.cv_results_[column], err_msg=column)
    assert_array_equal(search.cv_results_["rank_test_score"], plain.cv_results_["rank_test_score"])
    assert search.best_params_ == plain.best_params_


@pytest.mark.filterwarnings("ignore:.* candidates of AtTopCV had the optimum w = 0:UserWarning")
@pytest.mark.parametrize("order", [1, -1])
def test_a_zero_model_leaves_all_samples_tied_whatever_was_fitted_before(order):
    """Each fit starts from another one: what is left of its scores is not to break ties."""
    grid = {"tau": [0.05, 0.7, 0.04, 0.6][::order]}
    estimator = TopMeanK(gamma=0.3, random_state=0)
    scores = AtTopCV(estimator, grid, cv=FOLDS, scoring="roc_auc").fit(X, Y).cv_results_
    zero = np.array(grid["tau"]) < 0.1
    assert np.all(scores["mean_test_score"][zero] == 0.5)
    assert np.all(scores["mean_test_score"][~zero] > 0.6)


def test_a_winner_that_scores_all_samples_alike_is_a_warning():
    """Ties count as hits in TPR@FPR: w = 0 has the perfect value 1."""
    zero = TopMeanK(tau=0.05, random_state=0)
    with (
        pytest.warns(UserWarning, match="The best candidate of AtTopCV gave the same score"),
        pytest.warns(UserWarning, match="The optimum of this TopMeanK is w = 0"),
    ):
        search = AtTopCV([PAIR[1], zero], {"C": [1.0]}, cv=FOLDS).fit(X, Y)
    assert search.best_index_ == 1
    assert search.best_score_ == 1.0
    with pytest.warns(UserWarning, match=r"1 of 2 candidates .* had the optimum w = 0") as told:
        AtTopCV([PAIR[1], zero], {"C": [1.0]}, cv=FOLDS, scoring="roc_auc").fit(X, Y)
    assert len(told) == 1


def test_a_large_linear_search_is_by_newtons_method_where_a_cap_is_priced(monkeypatch):
    """The exact solver may take minutes for these, and end without a certificate."""
    calls, solve = [], primal.solve
    monkeypatch.setattr(
        primal, "solve", lambda problem, *a, **k: calls.append(problem) or solve(problem, *a, **k)
    )
    X, positive = two_clouds(300, 2700, 10, 1.5, seed=0)
    models = [PatMatNP(0.05, kernel="linear", tol=1e-3), TauFPL(0.3, kernel="linear", tol=1e-3)]
    search = AtTopCV(models, {"C": [1.0, 100.0]}, cv=2, scoring="roc_auc", refit=False)
    table = search.fit(X, positive).cv_results_
    assert np.max(table["max_dual_gap"]) <= 1e-3
    assert {type(problem.family) for problem in calls} == {QuantileHinge}
    assert len(calls) == 4
    train, test = next(iter(StratifiedKFold(2).split(X, positive)))
    alone = clone(models[0]).set_params(C=1.0, tol=1e-6).fit(X[train], positive[train])
    score = get_scorer("roc_auc")(alone, X[test], positive[test])
    assert table["split0_test_score"][0] == pytest.approx(score, abs=0.01)


def test_labels_and_folds_of_any_kind():
    labels = np.where(POSITIVE, "fraud", "honest")  # the positive one comes first
    estimator = clone(PAIR[1]).set_params(pos_label="fraud")
    search = AtTopCV(estimator, {"C": [1.0]}, cv=FOLDS).fit(X, labels)
    plain = AtTopCV(PAIR[1], {"C": [1.0]}, cv=FOLDS).fit(X, Y)
    assert search.best_score_ == plain.best_score_
    assert search.score(X, labels) == plain.score(X, Y)
    assert_array_equal(search.predict(X) == "fraud", plain.predict(X) == 1)
    groups = np.arange(len(Y)) // 10
    grouped = AtTopCV(PAIR[1], {"C": [1.0]}, cv=GroupKFold(4)).fit(X, Y, groups=groups)
    assert grouped.n_splits_ == 4


def test_random_state_shuffles_the_folds():
    def scores(random_state):
        search = AtTopCV(PAIR[1], {"C": [1.0]}, cv=3, scoring="roc_auc", random_state=random_state)
        return [search.fit(X, Y).cv_results_[f"split{i}_test_score"][0] for i in range(3)]

    assert scores(1) == scores(1)
    assert scores(1) != scores(2)
    explicit = AtTopCV(PAIR[1], {"C": [1.0]}, cv=StratifiedKFold(3), scoring="roc_auc").fit(X, Y)
    assert scores(None) == [explicit.cv_results_[f"split{i}_test_score"][0] for i in range(3)]


def test_processes_give_the_same_table():
    alone = AtTopCV(PAIR[1], {"C": [0.1, 1.0]}, cv=FOLDS).fit(X, Y).cv_results_
    shared = AtTopCV(PAIR[1], {"C": [0.1, 1.0]}, cv=FOLDS, n_jobs=2).fit(X, Y).cv_results_
    assert alone.keys() == shared.keys()
    for i in range(3):
        assert_allclose(shared[f"split{i}_test_score"], alone[f"split{i}_test_score"])
        assert list(shared[f"split{i}_status"]) == [Status.CONVERGED] * 2


def test_life_inside_scikit_learn():
    search = AtTopCV(PAIR, {"C": [0.1, 1.0]}, cv=3, random_state=0)
    pipeline = make_pipeline(StandardScaler(), search).fit(X, Y)
    again = pickle.loads(pickle.dumps(pipeline))
    assert_array_equal(again.decision_function(X), pipeline.decision_function(X))
    copy = clone(pipeline[-1])
    assert not hasattr(copy, "cv_results_")
    assert [type(e) for e in copy.estimator] == [TopPush, PatMatNP]
    nested = cross_val_score(search, X, Y, cv=2, scoring="roc_auc")
    assert nested.shape == (2,) and np.all(nested > 0.5)


def test_frames_and_sparse_samples():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    search = AtTopCV(PAIR[1], {"C": [1.0]}, cv=FOLDS).fit(frame, Y)
    assert_array_equal(search.feature_names_in_, ["a", "b", "c"])
    assert_array_equal(search.best_estimator_.feature_names_in_, ["a", "b", "c"])
    sparse = AtTopCV(PAIR[1], {"C": [1.0]}, cv=FOLDS).fit(sp.csr_matrix(X), Y)
    assert sparse.best_score_ == search.best_score_
    assert not hasattr(sparse.fit(X, Y), "feature_names_in_")


def test_without_refit_there_is_a_choice_but_no_model():
    search = AtTopCV(PAIR[1], {"C": [0.1, 1.0]}, cv=FOLDS, refit=False).fit(X, Y)
    assert search.best_params_ in search.cv_results_["params"]
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)
    with pytest.raises(NotFittedError):
        AtTopCV(PAIR[1]).predict(X)


def test_progress_is_shown_when_asked_for(capsys):
    AtTopCV(PAIR[1], {"C": [1.0]}, cv=FOLDS).fit(X, Y)
    assert capsys.readouterr().out == ""
    AtTopCV(PAIR[1], {"C": [1.0]}, cv=FOLDS, verbose=1).fit(X, Y)
    assert "100%" in capsys.readouterr().out


def test_an_interrupt_is_passed_on_and_leaves_the_earlier_fit():
    scored = []

    def interrupting(y_true, y_score):
        scored.append(y_score)
        if len(scored) == 6 + 4:  # the fourth of the second search
            raise KeyboardInterrupt
        return 0.5

    search = AtTopCV(PAIR[1], {"C": [0.1, 1.0]}, cv=FOLDS, scoring=interrupting).fit(X, Y)
    before = dict(vars(search))
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert vars(search) == before


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_an_interrupt_inside_the_solver_ends_the_search(calls):
    called = []

    def interrupted(some, others):
        called.append(None)
        if len(called) == calls:
            raise KeyboardInterrupt
        return rbf_kernel(some, others, gamma=0.3)

    search = AtTopCV(PatMatNP(tau=0.2, kernel=interrupted), {"C": [1.0]}, cv=FOLDS)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert not hasattr(search, "cv_results_")


def test_fits_that_miss_the_tolerance_are_counted():
    estimator = PatMatNP(tau=0.2, tol=1e-12, max_iter=1, random_state=0)
    search = AtTopCV(estimator, {"C": [1.0, 5.0]}, cv=FOLDS, refit=False)
    with pytest.warns(ConvergenceWarning, match="6 of 6 fits of AtTopCV are not certified"):
        search.fit(X, Y)
    assert search.cv_results_["split0_status"][0] is Status.MAX_ITER


@pytest.mark.parametrize(
    "arguments, options, error, message",
    [
        ((PatMatNP(), {"kernel": ["rbf"]}), {}, ValueError, "cannot vary 'kernel': it changes"),
        ((TopPush(), {"theta": [1.0]}), {}, ValueError, "of TopPush. Got 'theta' instead"),
        ((PatMatNP(), {"C": [1], "lambda": [1]}), {}, ValueError, "'C' or 'lambda', not both"),
        ((PatMatNP(), {"C": []}), {}, ValueError, "C"),
        ((PatMatNP(), {"C": [0.0]}), {}, ValueError, r"'C' parameter of PatMatNP must be in"),
        ((PatMatNP(), [{}, {}]), {}, ValueError, "as many dicts as there are estimators, 1"),
        (([],), {}, ValueError, "must not be an empty list"),
        ((LogisticRegression(),), {}, TypeError, "must be an AtTopClassifier"),
        ((PatMatNP(solver="pairwise"),), {}, ValueError, "only the exact solver shares"),
        ((PatMatNP(),), {"scoring": "tpr_at_fpr"}, ValueError, "not a valid scorer"),
        ((PatMatNP(),), {"scoring": 3}, ValueError, "'scoring' parameter of AtTopCV"),
        ((PatMatNP(),), {"cv": []}, ValueError, "gave no folds"),
        ((PatMatNP(),), {"cv": [(np.arange(3), [4])]}, ValueError, "both classes"),
        (
            ([PatMatNP(pos_label=0), TauFPL(pos_label=1)],),
            {},
            ValueError,
            "must agree in their 'pos_label'",
        ),
        (
            ([PatMatNP(kernel="precomputed"), TauFPL()],),
            {},
            ValueError,
            "cannot mix kernel='precomputed'",
        ),
    ],
)
def test_bad_input(arguments, options, error, message):
    order = np.argsort(POSITIVE, kind="stable")  # the first samples are of one class
    with pytest.raises(error, match=message):
        AtTopCV(*arguments, **options).fit(X[order], Y[order])


# Some checks fit pure noise, or a handful of samples, whose optimum is w = 0.
@pytest.mark.filterwarnings("ignore:The optimum of this:UserWarning")
@pytest.mark.filterwarnings("ignore:The best candidate of AtTopCV:UserWarning")
@parametrize_with_checks(
    [AtTopCV(PatMatNP(random_state=0), {"C": [0.1, 1.0]}, cv=2, scoring="roc_auc")]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
