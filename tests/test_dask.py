"""Classifiers on a cluster: workers in processes of their own, as a scheduler sees them."""

import pickle
import random
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import attop
from attop.model_selection import AtTopCV, fit_path
from attop.solvers.solution import Status
from clusters import Cluster
from fuzz.kills import experiment as run_while_workers_die
from fuzz.kills import fit as fit_while_workers_die

with warnings.catch_warnings():  # of Dask's own
    warnings.simplefilter("ignore")
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    import dask.array as da
    import dask.dataframe as dd

    import attop.dask as attop_dask

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Port .* is already in use:UserWarning"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    return cluster.client


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(3000) < 0.2, "yes", "no")
    X = rng.normal(size=(3000, 5))
    X[y == "yes"] += 1.2
    return X, y


def lazy(X, y, rows=1000):
    return da.from_array(X, chunks=(rows, 3)), da.from_array(y, chunks=700)


def test_a_fit_on_a_cluster_is_that_of_a_local_classifier(client, samples):
    X, y = samples
    dask_X, dask_y = lazy(X, y)
    model = attop_dask.DaskTauFPL(tau=0.1, C=0.05, most_rows=500).fit(dask_X, dask_y)
    local = attop.TauFPL(tau=0.1, C=0.05, kernel="linear").fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.dual_gap_ <= 1e-4
    assert model.objective_ == pytest.approx(local.objective_, rel=2e-4)
    assert model.client_ is client

    scores, predicted = model.decision_function(dask_X), model.predict(dask_X)
    assert isinstance(scores, da.Array)
    plain = model.to_local()
    assert type(plain) is attop.TauFPL
    assert np.array_equal(predicted.compute(), plain.predict(X))
    assert np.allclose(scores.compute(), plain.decision_function(X))
    assert np.array_equal(model.predict(X), plain.predict(X))
    assert np.mean(plain.top_score(X[y == "no"]) > 0.0) <= 0.1


def test_frames_weights_and_names_of_features(client, samples):
    pd = pytest.importorskip("pandas")
    X, y = samples
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcde")).assign(
        y=(y == "yes").astype(int), w=np.arange(len(y)) % 3
    )
    table = dd.from_pandas(frame, npartitions=3)
    features = table[list("abcde")]
    model = attop_dask.DaskSVM(C=0.05, class_weight="balanced", most_rows=600)
    model.fit(features, table["y"], sample_weight=table["w"])
    local = attop.SVM(C=0.05, kernel="linear", class_weight="balanced").fit(
        frame[list("abcde")], frame["y"], sample_weight=frame["w"]
    )
    assert model.objective_ == pytest.approx(local.objective_, rel=2e-4)
    assert list(model.feature_names_in_) == list("abcde")
    predicted = model.predict(features).compute()
    assert np.array_equal(predicted, model.to_local().predict(frame[list("abcde")]))


def test_sparse_blocks_and_features_of_a_kernel(client, samples):
    X, y = samples
    dask_X, dask_y = lazy(X, y)
    sparse = dask_X.rechunk({1: -1}).map_blocks(sp.csr_matrix, meta=sp.csr_matrix((0, 0)))
    settings = {"C": 0.05, "surrogate": "quadratic_hinge"}
    model = attop_dask.DaskPatMatNP(**settings).fit(sparse, dask_y)
    local = attop.PatMatNP(kernel="linear", **settings).fit(X, y)
    assert model.objective_ == pytest.approx(local.objective_, rel=2e-4)

    model = attop_dask.DaskTauFPL(
        tau=0.3, C=0.5, kernel="rbf", approximation="nystroem", n_components=10, most_rows=800
    ).fit(dask_X, dask_y)
    features = model.feature_map_.transform(X)
    local = attop.TauFPL(tau=0.3, C=0.5, kernel="linear").fit(features, y)
    assert model.objective_ == pytest.approx(local.objective_, rel=2e-4)
    assert np.allclose(model.top_score(dask_X).compute(), model.to_local().top_score(X))


def test_workers_that_die_cost_time_only(cluster):
    """The large check is `tests/fuzz/kills.py`."""
    assert fit_while_workers_die(cluster, "TauFPL", 1, 0.2, random.Random(0), blocks=6) == ""


def test_workers_that_die_cost_no_result_of_an_experiment(cluster, tmp_path):
    wrong = run_while_workers_die(cluster, tmp_path, 1, 4, random.Random(0))
    assert wrong == ""


def test_samples_that_cannot_be(client, samples):
    X, y = samples
    dask_X, dask_y = lazy(X, y)
    model = attop_dask.DaskTopPush()
    gaps = da.where(dask_X > 4.0, np.nan, dask_X)
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        model.fit(gaps, dask_y)
    with pytest.raises(TypeError, match="must be an array or a data frame of Dask"):
        model.fit(X, y)
    with pytest.raises(TypeError, match="y of DaskTopPush must be"):
        model.fit(dask_X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(dask_X, dask_y[:-1])
    with pytest.raises(ValueError, match="got 1 class"):
        model.fit(dask_X, da.full_like(dask_y, "no"))
    with pytest.raises(ValueError, match="sample_weight must be finite"):
        model.fit(dask_X, dask_y, sample_weight=da.full(len(y), -1.0))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kernel": "rbf"}, "'kernel' parameter of DaskTopPush must be 'linear'"),
        ({"C": np.inf}, "'C' parameter of DaskTopPush must be finite"),
        ({"solver": "exact"}, "'solver' parameter of DaskTopPush must be 'auto'"),
        ({"most_rows": 0}, "'most_rows' parameter of DaskTopPush must be None or an integer"),
        ({"C": -1.0}, "'C' parameter of DaskTopPush must be in"),
    ],
)
def test_parameters_that_cannot_be(parameters, words):
    with pytest.raises(ValueError, match=words):
        attop_dask.DaskTopPush(**parameters).fit(None, None)


def test_a_local_estimator_names_the_class_for_dask(samples):
    X, y = samples
    dask_X, dask_y = lazy(X, y)
    with pytest.raises(TypeError, match=r"attop\.dask\.DaskTauFPL"):
        attop.TauFPL().fit(dask_X, dask_y)
    with pytest.raises(TypeError, match=r"its compute"):
        attop.Grill(kernel="linear").fit(dask_X, dask_y)
    for own in ({"y": dask_y}, {"y": y, "sample_weight": da.ones(len(y))}):
        with pytest.raises(TypeError, match=r"attop\.dask\.DaskTauFPL"):
            attop.TauFPL().fit(X, **own)
    with pytest.raises(TypeError, match="to its blocks"):
        attop.TauFPL().fit(X, y).predict(dask_X)


def test_a_client_is_no_part_of_a_model():
    marker = object()
    model = attop_dask.DaskTopPushK(K=3, client=marker)
    assert clone(model).client is marker
    assert pickle.loads(pickle.dumps(model)).client is None
    assert attop_dask.DaskTopPushK(K=3).get_params()["kernel"] == "linear"


def test_every_convex_formulation_has_its_class():
    from attop.formulations import FORMULATIONS

    assert {f"Dask{name}" for name in FORMULATIONS} == set(attop_dask.__all__)


def test_an_experiment_on_a_cluster_is_that_on_one_machine(client, tmp_path):
    from attop.experiments.runner import run_experiment
    from attop.experiments.specification import parse_experiment
    from attop.experiments.store import Store

    experiment = parse_experiment(
        """
        name = "small"
        seeds = [1, 2]
        metrics = ["roc_auc"]
        datasets = ["Ionosphere"]
        [[methods]]
        method = "TauFPL"
        tau = 0.2
        grid = {lambda = [1e-2, 1e-1]}
        """
    )
    stores = Store(tmp_path / "here"), Store(tmp_path / "there")
    here = run_experiment(experiment, stores[0])
    there = run_experiment(experiment, stores[1], dask=client.scheduler.address)
    assert there.n_fits == here.n_fits == 4
    assert not there.failures
    again = run_experiment(experiment, stores[1], dask=client.scheduler.address)
    assert again.n_skipped == 4
    for path in (tmp_path / "here").rglob("*.json"):
        assert (tmp_path / "there" / path.relative_to(tmp_path / "here")).exists()


@pytest.mark.parametrize("kind", [AtTopCV, GridSearchCV])
def test_a_search_by_joblib_on_a_cluster(client, samples, kind):
    X, y = samples[0][:600], samples[1][:600]
    model, grid = attop.TauFPL(kernel="linear", tau=0.2), {"C": [0.01, 0.1]}
    here = kind(model, grid, cv=2).fit(X, y)
    search = kind(model, grid, cv=2, n_jobs=2)
    with joblib.parallel_config(backend="dask", scatter=[X, y]):
        search.fit(X, y)
    assert search.best_params_ == here.best_params_
    scores = "mean_test_score"
    assert np.allclose(search.cv_results_[scores], here.cv_results_[scores], atol=1e-3)


def test_a_path_on_a_worker(client, samples):
    """Samples are sent once, and paths of several models run at the same time."""
    X, y = client.scatter([part[:600] for part in samples])
    models = [attop.TauFPL(kernel="linear", tau=tau) for tau in (0.1, 0.2)]
    found = client.gather([client.submit(fit_path, m, X, y, "C", [0.01, 0.1]) for m in models])
    for path in found:
        assert path.collect("dual_gap_").max() <= 1e-4


def test_a_search_over_samples_that_stay_on_the_cluster(client, samples):
    dask_X, dask_y = lazy(*samples)
    model = attop_dask.DaskTauFPL(tau=0.2, most_rows=800)
    search = GridSearchCV(model, {"C": [1e-5, 0.05]}, cv=2, scoring="roc_auc")
    search.fit(dask_X, (dask_y == "yes").astype(int))
    assert search.best_estimator_.status_ is Status.CONVERGED
    assert isinstance(search.best_estimator_.decision_function(dask_X), da.Array)
    for share in (fit_path, AtTopCV):
        with pytest.raises(TypeError, match=f"{share.__name__} cannot take DaskTauFPL"):
            if share is fit_path:
                fit_path(model, dask_X, dask_y, "C", [1.0])
            else:
                AtTopCV(model, {"C": [1.0]}).fit(dask_X, dask_y)


def stored_as_files(folder, X, y):
    """Blocks that are maps of files."""
    blocks = []
    for number, rows in enumerate(np.array_split(np.arange(len(y)), 3)):
        np.save(folder / f"{number}.npy", X[rows])
        read = dask.delayed(np.load)(folder / f"{number}.npy", mmap_mode="r")
        blocks.append(da.from_delayed(read, X[rows].shape, X.dtype))
    return da.concatenate(blocks), da.from_array(y, chunks=blocks[0].shape[0])


def stored_as_zarr(folder, X, y):
    pytest.importorskip("zarr")
    da.from_array(X, chunks=(1000, 3)).to_zarr(folder / "X.zarr")
    return da.from_zarr(folder / "X.zarr"), da.from_array(y, chunks=900)


def stored_as_parquet(folder, X, y):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=y)
    dd.from_pandas(table, npartitions=3).to_parquet(folder / "table")
    found = dd.read_parquet(folder / "table")
    return found[list("abcde")], found["y"]


@pytest.mark.parametrize("stored", [stored_as_files, stored_as_zarr, stored_as_parquet])
def test_samples_on_the_disk(client, samples, tmp_path, stored):
    X, y = samples[0].astype(np.float32), (samples[1] == "yes").astype(int)
    model = attop_dask.DaskTopPushK(K=3, C=0.05, most_rows=800).fit(*stored(tmp_path, X, y))
    local = attop.TopPushK(K=3, C=0.05, kernel="linear").fit(X, y)
    assert model.objective_ == pytest.approx(local.objective_, rel=2e-4)


def test_chunks_of_any_kind(client, samples):
    """Empty ones, those of one class, one of a single sample."""
    order = np.argsort(samples[1], kind="stable")
    X, y = samples[0][order], samples[1][order]
    sizes = (0, 1, 0, 1200, 799, 1000, 0)
    dask_X = da.from_array(X, chunks=((3000,), 5)).rechunk(((sizes), (5,)))
    dask_y = da.from_array(y, chunks=(sizes,))
    model = attop_dask.DaskPatMat(tau=0.5, C=0.05, most_rows=800).fit(dask_X, dask_y)
    local = attop.PatMat(tau=0.5, C=0.05, kernel="linear").fit(X, y)
    assert model.objective_ == pytest.approx(local.objective_, rel=2e-4)
    assert np.array_equal(model.predict(dask_X).compute(), model.to_local().predict(X))


def test_a_line_for_each_step(client, samples, capsys):
    model = attop_dask.DaskTauFPL(tau=0.1, C=0.05, most_rows=800, verbose=1).fit(*lazy(*samples))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("labels: ") and lines[1].startswith("look: 3 chunks")
    assert sum("model: primal" in line for line in lines) >= 1
    assert sum("bound: primal" in line for line in lines) == model.n_iter_
    assert "gap" in lines[-1] and lines[-1].endswith(" s")


def test_a_parquet_file_is_fitted_block_by_block(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    from attop.cli._lazy import check_lazy, fit_lazily
    from attop.cli._samples import Roles

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(4000, 3)), columns=list("abc"))
    table["kind"] = rng.choice(["x", "y"], 4000)
    table["label"] = np.where(table.a + (table.kind == "x") > 1.0, "bad", "good")
    table.loc[::50, "b"] = np.nan
    path = tmp_path / "table.parquet"
    table.to_parquet(path, row_group_size=1000)
    classifier = attop.TauFPL(kernel="linear", C=0.1, tau=0.1)
    check_lazy(path, classifier, search=False, guarantee=None)
    found = fit_lazily(path, Roles(target="label", positive="bad"), classifier, seed=0)
    model, unseen = found.trained.model, found.unseen
    assert found.n_samples == 4000
    assert found.trained.classifier.dual_gap_ <= 1e-4
    assert np.mean(model.predict(unseen.X) == unseen.y) > 0.8
    with pytest.raises(ValueError, match="takes a Parquet file"):
        check_lazy(tmp_path / "table.csv", classifier, search=False, guarantee=None)


def test_that_no_model_is_best_is_said_before_the_passes_and_proved_by_them(client):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(6000, 4)), rng.random(6000) < 0.1
    model = attop_dask.DaskTauFPL(tau=0.01, most_rows=1500)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(*lazy(X, y))
    first, last = [str(one.message) for one in told if "w = 0" in str(one.message)]
    assert "drawn at random" in first
    assert "The optimum of this DaskTauFPL is w = 0, up to tol" in last
    for message in (first, last):
        assert "PatMatNP, which stands overlapping classes" in message
    assert model.status_ is Status.CONVERGED
