"""Experiments over a folder of tables: splits, methods that tune themselves, ranks and the page."""

import numpy as np
import pytest
from scipy.stats import rankdata

from attop.cli import main
from attop.datasets import load_ionosphere
from attop.experiments import data
from attop.experiments.kept import KeptResults, kept_of_store, kept_of_table, merged
from attop.experiments.ranking import rankings
from attop.experiments.reading import SpecificationError
from attop.experiments.results import Results
from attop.experiments.runner import run_experiment
from attop.experiments.specification import load_experiment, parse_experiment
from attop.experiments.store import Store
from attop.experiments.tabular import CANDIDATES, MODELS, Task, Tuned
from conftest import two_clouds

TEXT = """\
name = "folder"
seeds = [1, 2]
metrics = ["tpr_at_fpr_0.05", "roc_auc"]

[tables]
folder = "tables"
sizes = [60, 1000, 2000]
n_test = 50

[kernel]
name = "linear"

[[methods]]
method = "attop.experiments.tabular:Tuned"
label = "A"
model = "LogisticRegression"

[[methods]]
method = "attop.experiments.tabular:Tuned"
label = "B"
model = "SVM"

[[methods]]
method = "sklearn.naive_bayes:GaussianNB"
label = "C"
"""
IONOSPHERE = load_ionosphere(return_X_y=True)
#: Those of packages that need not be there.
OPTIONAL = {"LightGBM": "lightgbm", "XGBoost": "xgboost"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three tables, an experiment over them, and its results."""
    place = tmp_path_factory.mktemp("place")
    (place / "tables").mkdir()
    for i, distance in enumerate((0.5, 1.0, 2.0)):
        X, positive = two_clouds(60, 140, distance=distance, seed=i)
        np.savez(place / "tables" / f"cloud{i}.npz", X=X, y=positive.astype(int))
    (place / "folder.toml").write_text(TEXT)
    outcome = run_experiment(load_experiment(place / "folder.toml"), Store(place / "store"))
    assert outcome.failures == []
    return place


def test_a_table_has_each_number_of_training_samples_once(folder):
    """The tables have 200 samples: 1,000 and 2,000 both come to half of these."""
    found = load_experiment(folder / "folder.toml").datasets
    assert [one.label for one in found] == [
        f"cloud{i} ({size})" for i in range(3) for size in (60, 1000)
    ]


def test_training_and_test_samples_are_disjoint_and_keep_the_shares(folder):
    specs = load_experiment(folder / "folder.toml").datasets
    for spec, n_train in zip(specs, (60, 100) * 3):
        parts = data.split(spec, 1)
        assert (len(parts.y_train), len(parts.y_valid), len(parts.y_test)) == (n_train, 0, 50)
        assert parts.y_train.mean() == pytest.approx(0.3, abs=0.01)
        assert parts.y_test.mean() == pytest.approx(0.3, abs=0.01)
        assert not {row.tobytes() for row in parts.X_train} & {r.tobytes() for r in parts.X_test}


def test_values_in_place_of_those_of_the_file(folder):
    found = load_experiment(folder / "folder.toml", sizes=[50])
    assert [one.n_train for one in found.datasets] == [50, 50, 50]
    assert "sizes = [50]" in found.text
    with pytest.raises(SpecificationError, match="folder of tables"):
        parse_experiment('datasets = ["Ionosphere"]', sizes=[5])


def test_an_empty_folder_is_named(tmp_path):
    (tmp_path / "tables").mkdir()
    with pytest.raises(SpecificationError, match=r"no file of .*Name another by --folder"):
        parse_experiment(TEXT, tmp_path / "folder.toml")


def test_seeds_are_averaged_before_data_sets_are_ranked(folder):
    results = Results(Store(folder / "store"))
    for size, metrics in rankings(kept_of_store(results), "A").items():
        for one in metrics:
            rows = [r for r in results.best() if r["dataset"]["n_train"] == size]
            by_hand = np.array(
                [
                    [
                        np.mean([r["test"][one.metric] for r in rows
                                 if r["label"] == label and r["data"] == f"cloud{i} ({size})"])
                        for label in "ABC"
                    ]
                    for i in range(3)
                ]
            )  # fmt: skip
            np.testing.assert_allclose(one.scores.to_numpy(), by_hand)
            expected = rankdata(-by_hand, axis=1).mean(axis=0)
            np.testing.assert_allclose([one.rank(label) for label in "ABC"], expected)
            assert one.n_splits == 6
            assert set(one.bayes) == set(one.holm) == {"B", "C"}


def test_the_page_has_every_method_and_its_diagrams(folder, capsys):
    output = folder / "page"
    with pytest.raises(SystemExit) as ended:
        main(["compare", "A", "--store", str(folder / "store"), "--output", str(output)])
    assert ended.value.code == 0
    page = (output / "ranks.inc").read_text("utf-8")
    assert "3 data sets, 6 splits (2.0 seeds each on average), 3 methods." in page
    for name in ("ranks_60_tpr_at_fpr_0.05.svg", "ranks_1000_tpr_at_fpr_0.05.svg"):
        assert name in page
        assert "<svg" in (output / name).read_text("utf-8")
    for label in "ABC":
        assert f"* - {label}\n" in page


def test_a_table_that_was_kept_stands_for_its_store(folder, tmp_path):
    """Seeds add up over runs: of a store of seed 1 and a table of seed 2 as of both together."""
    whole = kept_of_store(Results(Store(folder / "store")))
    of_seed = [KeptResults(whole.fits[whole.fits["seed"] == seed]) for seed in (1, 2)]
    of_seed[1].write(tmp_path / "second.csv")
    found = merged([kept_of_table(tmp_path / "second.csv"), of_seed[0]])
    assert len(found.fits) == len(whole.fits) == 3 * 2 * 2 * 3
    for size, metrics in rankings(whole, "A").items():
        for one, other in zip(metrics, rankings(found, "A")[size], strict=True):
            np.testing.assert_allclose(one.scores, other.scores[one.scores.columns], rtol=1e-8)
            assert other.n_splits == 6


def test_of_results_in_several_sources_the_last_is_taken(folder):
    whole = kept_of_store(Results(Store(folder / "store")))
    changed = KeptResults(whole.fits.head(1).assign(roc_auc=-1.0))
    assert (merged([whole, changed]).fits["roc_auc"] == -1.0).sum() == 1
    assert (merged([changed, whole]).fits["roc_auc"] == -1.0).sum() == 0


def test_compare_keeps_its_results_and_goes_on_from_them(folder, tmp_path):
    """The page of a table alone is that of the store."""
    pages = []
    kept = str(tmp_path / "kept.csv")
    for sources in (["--store", str(folder / "store"), "--keep", kept], ["--table", kept]):
        output = tmp_path / str(len(pages))
        with pytest.raises(SystemExit) as ended:
            main(["compare", "A", *sources, "--output", str(output)])
        assert ended.value.code == 0
        pages.append((output / "ranks.inc").read_text("utf-8"))
    assert pages[0] == pages[1]


def test_a_table_of_something_else_is_a_clear_error(tmp_path, capsys):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit):
        main(["compare", "A", "--table", str(tmp_path / "other.csv")])
    message = capsys.readouterr().err
    assert "other.csv" in message
    assert "columns" in message


def test_an_unknown_reference_is_a_clear_error(folder, capsys):
    with pytest.raises(SystemExit):
        main(["compare", "Z", "--store", str(folder / "store"), "--output", str(folder / "no")])
    assert "no method 'Z'" in capsys.readouterr().err
    assert not (folder / "no").exists()


@pytest.mark.parametrize("name", MODELS)
def test_every_method_fits_and_ranks(name):
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    X, y = IONOSPHERE
    rows = np.random.default_rng(0).permutation(len(y))
    train, test = rows[:120], rows[120:]
    model = Tuned(name).fit(X[train], y[train])
    ranks = model.decision_function(X[test])
    assert sorted(ranks) == list(range(len(test)))
    assert ranks[y[test] == 1].mean() > ranks[y[test] == 0].mean()


def test_equal_scores_are_put_into_a_random_order():
    """One informative bit gives two scores, whose samples have no order of their own."""
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1], 400)
    X = np.column_stack([y ^ (rng.random(800) < 0.3), np.zeros(800)])
    ranks = Tuned("ExtraTrees").fit(X, y).decision_function(X)
    for value in (0, 1):
        tied = X[:, 0] == value
        assert np.corrcoef(np.arange(tied.sum()), ranks[tied])[0, 1] == pytest.approx(0.0, abs=0.15)


def test_all_have_as_many_candidates():
    task = Task("roc_auc", 3, 0.01, 0, 4)
    for name in ("LogisticRegression", "SVM", "HistGradientBoosting"):
        search = MODELS[name](task)
        assert np.prod([len(values) for values in search.param_grid.values()]) == CANDIDATES


def test_an_unknown_model_is_named():
    with pytest.raises(ValueError, match=r"'model' parameter of Tuned .*'ExtraTrees'"):
        Tuned("ExtraTree").fit(*IONOSPHERE)
