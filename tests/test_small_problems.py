"""Small problems: the whole matrix, Newton's method on faces, searches of gamma, compilation."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from typer.testing import CliRunner

import attop
from attop import SVM, PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK, objectives, pipeline
from attop.kernels.functions import Gaussian, Gram, Laplacian
from attop.kernels.matrix import KnownGram, MatrixStore
from attop.metrics import get_scorer
from attop.model_selection import AtTopCV
from attop.model_selection._scoring import Decided, scorer_of
from attop.solvers.exact import Tuning, solve
from attop.solvers.solution import Status

ESTIMATORS = [TopPush(), TopPushK(3), TauFPL(0.1), TopMeanK(0.6), PatMat(0.2), PatMatNP(0.1)]
WITHOUT_MATRIX = Tuning(matrix_up_to=0)


def cloud(n=150, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    y = (X[:, 0] + 0.7 * random.normal(size=n) > 0.8).astype(int)
    return X, y


@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_the_whole_matrix_leads_to_the_optimum_of_columns(estimator, C, surrogate):
    X, y = cloud()
    model = type(estimator)(**estimator.get_params()).set_params(C=C, surrogate=surrogate, tol=1e-7)
    data = pipeline.prepare(model, X, y)
    problem = pipeline.problem_of(model, data)
    whole = solve(problem, data.gram, tol=1e-7, random_state=0)
    columns = solve(problem, data.gram, tol=1e-7, random_state=0, tuning=WITHOUT_MATRIX)
    assert whole.status is columns.status is Status.CONVERGED
    assert_allclose(whole.certificate.primal, columns.certificate.primal, rtol=1e-6)
    # The referee without the matrix agrees, on scores of all samples too.
    again = objectives.certify(problem, data.gram, whole.alpha, whole.beta)
    assert again.gap <= 1e-7
    assert_allclose(whole.scores, again.scores, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
@pytest.mark.parametrize("estimator", [*ESTIMATORS, SVM()], ids=str)
def test_guesses_of_what_is_free_lead_to_the_optimum_of_faces(estimator, surrogate, C, weighted):
    X, y = cloud(200)
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    model = type(estimator)(**estimator.get_params()).set_params(C=C, surrogate=surrogate)
    data = pipeline.prepare(model, X, y, weights)
    problem = pipeline.problem_of(model, data)
    # From the first step on, and after few moves, guesses are far off.
    tunings = Tuning(faces=0, before_face=20), Tuning(faces=10**9)
    found = [solve(problem, data.gram, tol=1e-7, tuning=tuning).certificate for tuning in tunings]
    assert all(certificate.certifies(1e-7) for certificate in found)
    assert_allclose(found[0].dual, found[1].dual, rtol=2e-7)


def test_weights_are_copies_in_a_small_problem():
    X, y = cloud(80)
    copies = np.random.default_rng(1).integers(1, 4, size=len(y))
    for estimator in ESTIMATORS:
        model = type(estimator)(**estimator.get_params()).set_params(C=5.0, tol=1e-8)
        weighted = model.fit(X, y, sample_weight=copies).objective_
        repeated = model.fit(np.repeat(X, copies, axis=0), np.repeat(y, copies)).objective_
        assert_allclose(weighted, repeated, rtol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(0.3)])
def test_a_known_matrix_has_the_entries_of_the_kernel(kernel):
    X = np.random.default_rng(0).normal(size=(40, 3)) + 100.0
    gram = Gram(kernel, X)
    known = KnownGram.of(gram)
    rows, columns = np.array([3, 1, 7]), np.array([0, 3])
    bound = known.rounding(rows).absolute + known.rounding(rows).relative
    assert_allclose(known.block(rows, columns), gram.block(rows, columns), atol=2 * bound + 1e-15)
    assert_allclose(np.diagonal(known.entries), 1.0, atol=0.0)
    weights = np.arange(2.0)
    product = known.entries[np.ix_(rows, columns)] @ weights
    assert_allclose(known.sums(rows, columns, weights), product, rtol=1e-13)


@pytest.mark.parametrize("estimator", [TauFPL(0.1), PatMat(0.2)], ids=str)
def test_fits_leave_a_shared_matrix_as_it_was(estimator):
    X, y = cloud(60)
    model = estimator.set_params(surrogate="quadratic_hinge", C=1.0)
    data = pipeline.prepare(model, X, y)
    store = MatrixStore(KnownGram.of(data.gram))
    before = store.gram.entries.copy()
    for _ in range(2):
        solution = solve(pipeline.problem_of(model, data), store.gram, columns=store)
        assert solution.status is Status.CONVERGED
        assert_allclose(store.gram.entries, before, atol=0.0)


@pytest.mark.parametrize("tuning", [Tuning(), WITHOUT_MATRIX], ids=["matrix", "columns"])
def test_a_full_group_leaves_the_constraints_alone(tuning):
    # Where the group is full, both equations of a face are the same, and may contradict each other.
    X, y = cloud()
    model = TopMeanK(0.6, C=100.0)
    data = pipeline.prepare(model, X, y)
    problem = pipeline.problem_of(model, data)
    for seed in range(10):
        solution = solve(problem, data.gram, tol=1e-7, random_state=seed, tuning=tuning)
        assert solution.status is Status.CONVERGED
        assert solution.certificate.infeasibility <= 1e-9


def test_creeping_pair_moves_are_cut_short():
    # 10^4 and more of them were needed here.
    X, y = cloud(300, seed=3)
    model = TopPush(C=1000.0, gamma=2.0).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.stats_["steps"] < 3000


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_of_gamma_chooses_as_grid_search_does(n_jobs):
    X, y = cloud(120)
    grid = {"C": [0.1, 10.0], "gamma": [0.05, 0.5, 5.0]}
    estimator = TauFPL(0.1, tol=1e-7)
    ours = AtTopCV(estimator, grid, cv=3, scoring="roc_auc", n_jobs=n_jobs).fit(X, y)
    theirs = GridSearchCV(estimator, grid, cv=3, scoring="roc_auc").fit(X, y)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-3
    )
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_estimator_.gamma == ours.best_params_["gamma"]
    assert_allclose(
        ours.best_estimator_.top_score(X), theirs.best_estimator_.top_score(X), atol=1e-3
    )


def test_columns_of_a_known_matrix_add_up_whatever_their_number():
    known = KnownGram.of(Gram(Gaussian(0.7), np.random.default_rng(0).normal(size=(60, 3))))
    for columns in (np.array([5, 2, 5]), np.arange(50)):
        weights = np.random.default_rng(1).normal(size=len(columns))
        expected = known.entries[:, columns] @ weights
        assert_allclose(known.combination(columns, weights), expected, atol=1e-13)


def test_runs_of_rows_make_the_same_submatrix():
    store = MatrixStore(KnownGram.of(Gram(Gaussian(0.7), cloud(30)[0])))
    for rows in (np.r_[0:9, 0:30], np.r_[3:7, 20:29], np.arange(0, 30, 2)):
        assert_allclose(store.submatrix(rows), store.gram.entries[np.ix_(rows, rows)], atol=0.0)


def test_what_is_known_without_a_fit_is_certified():
    X, y = cloud()
    with pytest.warns(UserWarning, match="w = 0"):
        model = TopMeanK(0.05, C=3.0).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.stats_["columns"] == 0
    assert len(model.support_) == 0
    assert model.dual_gap_ <= 1e-9


@pytest.mark.parametrize("kinds", [2, 7, 1000])
def test_a_search_knows_the_area_under_the_curve_with_ties(kinds):
    random = np.random.default_rng(kinds)
    y, scores = random.random(80) < 0.3, random.integers(0, kinds, size=80).astype(float)
    judged = Decided(scores, np.array([False, True]), True)
    assert_allclose(judged.score_by(scorer_of("roc_auc"), y), roc_auc_score(y, scores), rtol=1e-13)
    turned = Decided(scores, np.array([False, True]), False)
    expected = roc_auc_score(y, -scores)
    assert_allclose(turned.score_by(scorer_of("roc_auc"), y), expected, rtol=1e-13)


@pytest.mark.parametrize("scoring", ["tpr_at_fpr_0.05", "positives_at_top", "partial_auc_0.1"])
def test_a_search_judges_as_a_scorer_does(scoring):
    random = np.random.default_rng(0)
    y, scores = np.where(random.random(80) < 0.3, "yes", "no"), random.normal(size=80)
    for positive in ("yes", "no"):
        judged = Decided(scores, np.array(["no", "yes"]), positive)
        expected = get_scorer(scoring)(judged, np.zeros((80, 1)), y)
        assert judged.score_by(scorer_of(scoring), y) == expected


def test_predict_needs_no_compiler(tmp_path):
    X, y = cloud(60)
    model, path = TauFPL(0.1).fit(X, y), tmp_path / "model.joblib"
    code = (
        "import joblib, sys, numpy as np\n"
        f"model = joblib.load({str(path)!r})\n"
        "model.predict(np.zeros((5, 3)))\n"
        "assert 'numba' not in sys.modules\n"
    )
    import joblib

    joblib.dump(model, path)
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compilation_is_announced_once(capsys):
    compilation = pytest.importorskip("attop._compilation")
    listener = compilation._make_listener(object)
    listener.on_start(None)
    listener.began -= 10.0  # as if it had taken so long
    listener.on_end(None)
    listener.on_start(None)
    listener.on_end(None)
    assert capsys.readouterr().err.count("attop: compiling the solver") == 1


def test_short_compilations_are_not_announced(capsys):
    listener = pytest.importorskip("attop._compilation")._make_listener(object)
    listener.on_start(None)
    listener.on_end(None)
    assert capsys.readouterr().err == ""


def test_warmup():
    from attop.cli.app import app

    answer = CliRunner().invoke(app, ["warmup"])
    assert answer.exit_code == 0
    assert "The solver is compiled" in answer.output
    assert attop.__version__
