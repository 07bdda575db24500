"""A forest as the kernel of any estimator: it is fitted where the model is, and nowhere else."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree._tree import Tree

import attop
from attop import SVM, Grill, PatMatNP, TauFPL, TopMeanK, TopPush
from attop.forest import ForestKernel
from attop.metrics import get_scorer
from attop.model_selection import AtTopCV, fit_path
from conftest import two_clouds

FOREST = ExtraTreesClassifier(20, min_samples_leaf=2, random_state=0)
X, POSITIVE = two_clouds(40, 80, 4, 1.0, seed=0)
NEW = two_clouds(30, 30, 4, 1.0, seed=1)[0]


def on_leaves(estimator):
    """The same as steps of a pipeline."""
    return make_pipeline(ForestKernel(FOREST), clone(estimator).set_params(kernel="matching"))


@pytest.mark.parametrize(
    "estimator", [TopPush(), TauFPL(0.1), PatMatNP(0.1, surrogate="quadratic_hinge"), SVM()]
)
def test_it_is_the_pipeline_of_forest_and_matching_kernel(estimator):
    model = clone(estimator).set_params(kernel=ForestKernel(FOREST)).fit(X, POSITIVE)
    pipeline = on_leaves(estimator).fit(X, POSITIVE)
    assert model.dual_gap_ <= 1e-4
    assert model.objective_ == pytest.approx(pipeline[-1].objective_, rel=1e-9)
    assert_allclose(model.top_score(NEW), pipeline[-1].top_score(pipeline[0].transform(NEW)))
    assert_array_equal(model.predict(NEW), pipeline.predict(NEW))
    assert_array_equal(model.kernel_.apply(X), pipeline[0].apply(X))
    assert model.n_features_in_ == 4
    assert model.support_vectors_.shape == (len(model.support_), 20)


def test_fit_leaves_the_kernel_as_it_was_and_another_kernel_leaves_no_trace():
    kernel = ForestKernel(FOREST)
    model = TauFPL(0.1, kernel=kernel).fit(X, POSITIVE)
    assert not hasattr(kernel, "forest_")
    model.set_params(kernel="rbf").fit(X, POSITIVE)
    assert not hasattr(model, "kernel_")
    assert model.support_vectors_.shape[1] == 4


def test_features_or_leaves_are_one_kernel():
    models = [
        TauFPL(0.1, kernel=ForestKernel(FOREST, output=output)).fit(X, POSITIVE)
        for output in ("leaves", "features")
    ]
    assert_allclose(models[0].top_score(NEW), models[1].top_score(NEW), rtol=1e-12)


def test_sparse_samples_and_weights_of_zero():
    weights = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.0)
    there = weights > 0.0
    model = TauFPL(0.1, kernel=ForestKernel(FOREST), tol=1e-8)
    weighted = clone(model).fit(sp.csr_matrix(X), POSITIVE, sample_weight=weights)
    without = clone(model).fit(X[there], POSITIVE[there])
    assert_allclose(weighted.top_score(sp.csr_matrix(NEW)), without.top_score(NEW), atol=1e-3)
    assert weighted.objective_ == pytest.approx(without.objective_, rel=1e-7)


def test_a_path_has_one_forest():
    path = fit_path(TauFPL(0.1, kernel=ForestKernel(FOREST)), X, POSITIVE, "C", [0.1, 1.0])
    for C, model in zip(path.values, path.estimators):
        alone = TauFPL(0.1, C=C, kernel=ForestKernel(FOREST)).fit(X, POSITIVE)
        assert model.dual_gap_ <= 1e-4
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-4)
        assert model.top_score(NEW).shape == (60,)
        assert model.kernel_ is path.estimators[0].kernel_


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_fits_the_forest_anew_in_each_fold(n_jobs):
    """With labels that mean nothing a forest that has seen the rows left out would be perfect."""
    noise = np.random.default_rng(0).permutation(POSITIVE)
    kernels = ForestKernel(FOREST), "rbf"
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = AtTopCV(
        [TauFPL(0.3, kernel=kernel, tol=1e-6) for kernel in kernels],
        {"C": [0.1, 1.0]},
        cv=folds,
        scoring="roc_auc",
        n_jobs=n_jobs,
    ).fit(X, noise)
    for i, (train, test) in enumerate(folds.split(X, noise)):
        for j, C in enumerate((0.1, 1.0)):
            model = TauFPL(0.3, C=C, kernel=ForestKernel(FOREST), tol=1e-6)
            alone = get_scorer("roc_auc")(model.fit(X[train], noise[train]), X[test], noise[test])
            assert search.cv_results_[f"split{i}_test_score"][j] == pytest.approx(alone, abs=0.02)
    assert np.max(search.cv_results_["mean_test_score"][:2]) < 0.7


def test_the_best_of_a_search_has_a_forest_of_all_samples():
    kernel = ForestKernel(FOREST)
    search = AtTopCV(TauFPL(0.1, kernel=kernel, tol=1e-8), {"C": [0.1, 1.0]}, cv=2).fit(X, POSITIVE)
    alone = clone(search.best_estimator_).fit(X, POSITIVE)
    assert_array_equal(search.best_estimator_.kernel_.apply(X), alone.kernel_.apply(X))
    assert search.best_estimator_.objective_ == pytest.approx(alone.objective_, rel=1e-7)


def test_parameters_of_the_forest_are_parameters_of_the_estimator():
    kernel = ForestKernel(FOREST)
    model = TauFPL(0.1, kernel=kernel)
    changed = clone(model).set_params(kernel__forest__min_samples_leaf=7, C=2.0)
    assert changed.kernel.forest.min_samples_leaf == 7
    twin = TauFPL(0.1, kernel=kernel).set_params(kernel__random_state=3)
    assert (twin.kernel.random_state, kernel.random_state) == (3, None)
    steps = make_pipeline(StandardScaler(), model)
    name = "taufpl__kernel__forest__min_samples_leaf"
    search = GridSearchCV(steps, {name: [1, 5]}, scoring="roc_auc", cv=2).fit(X, POSITIVE)
    assert search.best_estimator_[-1].kernel_.forest_.min_samples_leaf == search.best_params_[name]
    assert np.ptp(search.cv_results_["mean_test_score"]) > 0.0


def test_where_zero_is_the_optimum_there_are_no_vectors():
    with pytest.warns(UserWarning, match="w = 0"):
        model = TopMeanK(0.05, kernel=ForestKernel(FOREST)).fit(X, POSITIVE)
    assert np.ptp(model.top_score(NEW)) == 0.0


def test_models_travel(tmp_path):
    model = TauFPL(0.1, kernel=ForestKernel(FOREST)).fit(X, POSITIVE)
    with pytest.raises(ValueError, match=r"sklearn\.tree\._tree\.Tree"):
        attop.save(model, tmp_path / "model.attop")
    attop.save(model, tmp_path / "model.attop", trusted=[Tree])
    loaded = attop.load(tmp_path / "model.attop", trusted=[Tree])
    for twin in (pickle.loads(pickle.dumps(model)), loaded):
        assert_array_equal(twin.top_score(NEW), model.top_score(NEW))


def test_what_cannot_be_is_a_clear_error(tmp_path):
    model = TauFPL(0.1, kernel=ForestKernel(FOREST))
    with pytest.raises(ValueError, match="'kernel' parameter of TauFPL must be 'linear'"):
        attop.to_onnx(clone(model).fit(X, POSITIVE), tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="'kernel' parameter of TauFPL"):
        clone(model).set_params(approximation="nystroem").fit(X, POSITIVE)
    with pytest.raises(ValueError, match="'kernel' parameter of Grill"):
        Grill(0.1, kernel=ForestKernel(FOREST)).fit(X, POSITIVE)
    with pytest.raises(ValueError, match="before it has learnt"):
        attop.kernels.make_kernel(ForestKernel(FOREST))(X, X)
    with pytest.raises(ValueError, match="must be an ensemble of trees"):
        TauFPL(0.1, kernel=ForestKernel(StandardScaler())).fit(X, POSITIVE)
