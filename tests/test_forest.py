"""The kernel of a forest, and the classifier on it."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.tree._tree import Tree
from sklearn.utils.estimator_checks import parametrize_with_checks

import attop
from attop import SVM, PatMatNP, TauFPL
from attop.forest import ForestKernel, TopForestClassifier
from attop.forest.classifier import chosen, drawn
from attop.formulations import FORMULATIONS
from attop.kernels import Gram, Matching, open_columns
from attop.objectives import certify
from attop.solvers.exact import solve
from conftest import two_clouds

FOREST = ExtraTreesClassifier(20, min_samples_leaf=2, random_state=0)
SMALL = TopForestClassifier(
    0.1, forest=FOREST, cv=2, Cs=(1.0,), min_samples_leaf=(1,), max_features=()
)


def samples(seed=0, n=(40, 80)):
    X, positive = two_clouds(*n, 4, 1.0, seed=seed)
    return X, positive


#: Splits at random, and leaves of a least number of samples, know weights from copies.
OF_FORESTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a forest takes no weight for copies"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [ForestKernel(FOREST), ForestKernel(FOREST, output="features"), SMALL],
    expected_failed_checks=lambda estimator: OF_FORESTS,
)
def test_scikit_learn_compatible(estimator, check):
    check(estimator)


def shares(X, Y):
    return np.mean(X[:, np.newaxis] == Y, axis=2)


@pytest.mark.parametrize("values", [np.arange(3.0), np.array([-1.5, 0.25, 7e9]), [0.0, -0.0, 1.0]])
def test_matching_is_the_share_of_equal_features(values):
    rng = np.random.default_rng(0)
    X, Y = rng.choice(values, (30, 7)), rng.choice(values, (20, 7))
    assert_allclose(Matching()(X, Y), shares(X, Y), rtol=1e-15)
    assert np.linalg.eigvalsh(Matching()(X, X))[0] >= -1e-12
    entries, sizes = Matching().extended(X, Y)
    assert_allclose(entries.astype(float), shares(X, Y), rtol=1e-15)
    assert_allclose(sizes, shares(X, Y), rtol=1e-15)


@pytest.mark.parametrize("largest, n_features", [(32767, 3), (32768, 3), (1, 32767), (1, 40000)])
def test_counts_do_not_overflow(largest, n_features):
    X = np.random.default_rng(0).choice([0, largest], (12, n_features))
    X[1] = X[0]
    for codes in (X, X.astype(np.int32), -X):
        assert_allclose(Matching()(codes, codes[:5]), shares(X, X[:5]), rtol=1e-15)
    assert Matching()(X[:1], X[1:2]) == 1.0


@pytest.mark.parametrize("tol", [1e-4, 1e-6])
def test_columns_of_the_matching_kernel_are_within_their_bounds(tol):
    X = np.random.default_rng(1).integers(0, 4, (3000, 9)).astype(np.float32)
    gram = Gram(Matching(), X)
    with open_columns(gram, tol) as store:
        rows = np.array([5, 2999, 0, 77])
        columns = store.buffer[store.fetch(rows)]
        assert_array_equal(store.source.errors.size, 0.0)
        error = np.abs(columns - shares(X[rows], X))
        assert np.max(error) <= store.source.errors.constant
        block = store.block(rows, np.array([1, 2]))
        assert_allclose(block, columns[:, [1, 2]], rtol=0)
        part = store.subset(np.arange(0, 3000, 3))
        assert_allclose(
            part.source.block(np.array([1]), np.array([2]), store.workers),
            shares(X[[3]], X[[6]]),
            rtol=1e-6,
        )


@pytest.mark.parametrize("name", ["TauFPL", "PatMatNP", "SVM"])
def test_matching_and_its_matrix_have_the_same_optimum(name):
    X, positive = samples()
    leaves = ForestKernel(FOREST).fit(X, positive).transform(X)
    parameters = {"TauFPL": {"tau": 0.1}, "PatMatNP": {"tau": 0.1, "theta": 1.0}}.get(name, {})
    problem = FORMULATIONS[name].problem(positive, 1.0, "hinge", **parameters)
    found = solve(problem, Gram(Matching(), leaves), tol=1e-8, random_state=0)
    of_matrix = Gram(attop.kernels.Kernel("precomputed"), shares(leaves, leaves))
    certificate = certify(problem, of_matrix, found.alpha, found.beta)
    assert certificate.certifies(1e-7)
    assert found.certificate.primal == pytest.approx(certificate.primal, rel=1e-12)


def test_scores_are_sums_of_kernel_entries():
    """Though they are looked up leaf by leaf; leaves without a support vector count nothing."""
    X, positive = samples()
    kernel = ForestKernel(FOREST).fit(X[::2], positive[::2])
    model = TauFPL(0.1, kernel="matching").fit(kernel.transform(X[::2]), positive[::2])
    leaves = kernel.transform(X)
    leaves[0] = -1.0
    entries = shares(leaves, model.support_vectors_)
    by_entries = entries @ model.dual_coef_[0] - model.threshold_
    assert_allclose(model.top_score(leaves), by_entries, atol=1e-12)
    assert model.top_score(leaves)[0] == -model.threshold_


@pytest.mark.parametrize("forest", [FOREST, GradientBoostingClassifier(n_estimators=10)])
def test_features_have_the_kernel_of_the_leaves(forest):
    X, positive = samples()
    leaves, features = ForestKernel(forest), ForestKernel(forest, output="features")
    entries = shares(leaves.fit(X, positive).transform(X), leaves.transform(X[:10]))
    found = features.fit(X, positive).transform(X)
    assert sp.issparse(found) and found.dtype == np.float32
    assert_allclose((found @ found[:10].T).toarray(), entries[:, :10], atol=1e-6)
    assert found.shape[1] == len(features.get_feature_names_out())
    new = samples(seed=5)[0]
    assert_array_equal(np.diff(features.transform(new).indptr), features.n_trees_)


def test_a_forest_kernel_takes_what_forests_take():
    X, positive = samples()
    frame = pd.DataFrame(X, columns=list("abcd"))
    kernel = ForestKernel(FOREST).fit(frame, positive)
    assert list(kernel.feature_names_in_) == list("abcd")
    sparse = ForestKernel(FOREST).fit(sp.csr_matrix(X), positive)
    assert_array_equal(sparse.apply(sp.csr_matrix(X)), kernel.apply(frame))
    weights = np.where(np.arange(len(X)) < 50, 1.0, 0.0)
    weighted = ForestKernel(FOREST).fit(X, positive, weights)
    assert_array_equal(weighted.apply(X), ForestKernel(FOREST).fit(X[:50], positive[:50]).apply(X))


def test_the_same_samples_give_the_same_forest():
    X, positive = samples()
    forest = ExtraTreesClassifier(10)
    assert_array_equal(
        ForestKernel(forest).fit(X, positive).apply(X),
        ForestKernel(forest).fit(X, positive).apply(X),
    )
    assert forest.random_state is None


@pytest.mark.parametrize(
    "kernel, message",
    [
        (ForestKernel(LogisticRegression()), "The 'forest' parameter of ForestKernel must be an"),
        (ForestKernel(output="leaf"), "The 'output' parameter of ForestKernel must be one of"),
    ],
)
def test_errors_of_the_kernel(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.fit(*samples())


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"tau": 1.5}, r"The 'tau' parameter of TopForestClassifier must be in \(0, 1\)"),
        ({"min_samples_leaf": (0,)}, "The 'min_samples_leaf' parameter of TopForestClassifier"),
        ({"trees_to_choose": 0}, "The 'trees_to_choose' parameter of TopForestClassifier"),
        ({"max_samples": 1}, "The 'max_samples' parameter of TopForestClassifier must be"),
        ({"Cs": ()}, "The 'Cs' parameter of TopForestClassifier must be"),
        ({"Cs": (0.0,)}, "The 'Cs' parameter of TopForestClassifier must be"),
        ({"cv": 1}, "The 'cv' parameter of TopForestClassifier must be"),
        ({"classifiers": []}, "The 'classifiers' parameter of TopForestClassifier must be"),
        ({"classifiers": [FOREST]}, "The 'classifiers' parameter of TopForestClassifier must be"),
    ],
)
def test_errors_of_the_classifier(parameters, message):
    with pytest.raises(ValueError, match=message):
        clone(SMALL).set_params(**parameters).fit(*samples())


def test_the_classifier_is_the_pipeline_of_its_choice():
    X, positive = samples()
    classifiers = [TauFPL(0.2), PatMatNP(0.1), SVM()]
    model = TopForestClassifier(
        0.1, forest=FOREST, classifiers=classifiers, cv=3, min_samples_leaf=(1, 4)
    ).fit(X, positive)
    assert len(model.cv_results_["C"]) == 2 * 2 * 3 * 3
    best = model.best_params_
    scores = model.cv_results_["mean_test_score"]
    names = ("min_samples_leaf", "max_features", "C", "classifier")
    columns = [list(model.cv_results_[name]) for name in names]
    tried = [(*row[:3], repr(row[3])) for row in zip(*columns)]
    place = tried.index((*(best[name] for name in names[:3]), repr(best["classifier"])))
    assert scores[place] >= scores[0]
    own = {name: best[name] for name in ("min_samples_leaf", "max_features")}
    forest = clone(FOREST).set_params(**own)
    by_hand = make_pipeline(
        ForestKernel(forest), clone(best["classifier"]).set_params(C=best["C"])
    ).fit(X, positive)
    assert_allclose(model.decision_function(X), by_hand.decision_function(X), rtol=1e-12)
    assert model.model_.dual_gap_ <= 1e-4


@pytest.mark.parametrize("labels", [(0, 1), ("bad", "good"), (1, -1)])
@pytest.mark.parametrize("which", [0, 1])
def test_any_labels_and_either_positive(labels, which):
    X, positive = samples(n=(40, 60))
    y = np.where(positive, labels[which], labels[1 - which])
    model = clone(SMALL).set_params(pos_label=labels[which]).fit(X, y)
    assert list(model.classes_) == sorted(labels)
    assert roc_auc_score(positive, model.top_score(X)) > 0.9
    assert_array_equal(model.predict(X) == labels[which], model.top_score(X) >= 0)
    assert GridSearchCV(model, {"tau": [0.1]}, scoring="roc_auc", cv=2).fit(X, y).best_score_ > 0.7


def test_weights_of_zero_leave_samples_out():
    X, positive = samples()
    weights = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.0)
    there = weights > 0.0
    weighted = clone(SMALL).fit(X, positive, sample_weight=weights)
    assert_allclose(weighted.top_score(X), clone(SMALL).fit(X[there], positive[there]).top_score(X))


def test_few_trees_choose_and_all_are_fitted():
    X, positive = samples()
    model = clone(SMALL).set_params(Cs=(0.1, 1.0), trees_to_choose=3).fit(X, positive)
    assert model.forest_.n_trees_ == FOREST.n_estimators
    few = clone(model).set_params(forest=clone(FOREST).set_params(n_estimators=3)).fit(X, positive)
    assert_allclose(model.cv_results_["mean_test_score"], few.cv_results_["mean_test_score"])


def test_some_samples_choose_and_all_are_fitted():
    """Those drawn are as many as asked for, with the shares of the classes."""
    X, positive = samples()
    some, marks, _ = drawn(X, positive, None, 60, 0)
    assert (len(some), marks.sum()) == (60, 20)
    model = clone(SMALL).set_params(Cs=(0.1, 1.0), max_samples=60).fit(X, positive)
    few = clone(SMALL).set_params(Cs=(0.1, 1.0)).fit(some, marks)
    assert_allclose(model.cv_results_["mean_test_score"], few.cv_results_["mean_test_score"])
    assert len(model.model_.alpha_) == positive.sum()


def test_the_first_stays_unless_another_is_better_by_more_than_chance():
    assert chosen(np.array([[0.5, 0.6, 0.7], [0.6, 0.7, 0.8]])) == 1
    assert chosen(np.array([[0.5, 0.6, 0.7], [0.9, 0.2, 0.8]])) == 0
    assert chosen(np.array([[0.7, 0.7], [0.5, 0.6]])) == 0
    assert chosen(np.array([[0.5], [0.6]])) == 1


def test_the_metric_that_chooses_may_be_named():
    X, positive = samples()
    named = clone(SMALL).set_params(Cs=(0.1, 1.0), scoring="partial_auc_0.1").fit(X, positive)
    default = clone(SMALL).set_params(Cs=(0.1, 1.0)).fit(X, positive)
    assert_allclose(
        named.cv_results_["mean_test_score"], default.cv_results_["mean_test_score"], rtol=1e-12
    )


def test_few_positives_do_not_stop_the_choice():
    X, positive = samples(n=(40, 80))
    positive[np.flatnonzero(positive)[1:]] = False
    model = TopForestClassifier(0.1, forest=FOREST).fit(X, positive)
    assert model.model_.dual_gap_ <= 1e-4


def test_models_travel(tmp_path):
    X, positive = samples()
    model = clone(SMALL).fit(X, positive)
    for twin in (pickle.loads(pickle.dumps(model)), _saved(model, tmp_path / "forest.attop")):
        assert_allclose(twin.decision_function(X), model.decision_function(X), rtol=1e-12)


def _saved(model, path):
    """Trees are compiled code of scikit-learn's, which nobody but the user can trust."""
    with pytest.raises(ValueError, match=r"sklearn\.tree\._tree\.Tree"):
        attop.save(model, path)
    attop.save(model, path, trusted=[Tree])
    return attop.load(path, trusted=[Tree])
