"""The page that puts the paper's tables beside ours: from a store to its tables, by one command."""

import csv
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
pd = pytest.importorskip("pandas")

DOCS = Path(__file__).parents[1] / "docs"
PARTS = ("conclusions", "tables", "ranks", "reached", "descent")


@pytest.fixture(scope="module")
def verdict():
    """The program, as a module."""
    sys.path.insert(0, str(DOCS))
    try:
        import paper_verdict

        yield paper_verdict
    finally:
        sys.path.remove(str(DOCS))


def made_store(folder, preset, stalled=()):
    """Results of all fits of a preset on two data sets and three seeds, with invented numbers."""
    from attop.experiments.expansion import expand
    from attop.experiments.specification import load_experiment
    from attop.experiments.store import Store

    store = Store(folder)
    for group in expand(load_experiment(preset)):
        if group.dataset.label not in ("MNIST", "CIFAR10") or group.seed > 3:
            continue
        for number, fit in enumerate(group.fits):
            label = fit.method.label
            share = dict.fromkeys(fit.metrics, 0.5 + number / 200 + group.seed / 1000)
            status = "STALLED" if label in stalled else "CONVERGED"
            store.write(
                fit.key,
                {
                    "dataset": fit.dataset.identity(),
                    "seed": fit.seed,
                    "method": fit.method.method,
                    "parameters": fit.parameters,
                    "solver": fit.solver,
                    "status": status,
                    "gap": 0.5 if label in stalled else 1e-5,
                    "objective": 1.5 if label in stalled else 1.0,
                    "seconds": 1.0,
                    "n_iter": 3,
                    "sizes": {name: [1000, 100] for name in ("train", "valid", "test")},
                    "versions": {},
                    "validation": share,
                    "test": share,
                    "error": "",
                },
            )


@pytest.fixture(scope="module")
def page(verdict, tmp_path_factory):
    folder = tmp_path_factory.mktemp("verdict")
    made_store(folder / "exact", "paper-exact")
    made_store(folder / "descent", "paper", stalled=("PatMatNP(0.01)",))
    arguments = [str(folder / "exact"), "--descent", str(folder / "descent")]
    verdict.main([*arguments, "--machine", "an abacus", "--output", str(folder)])
    return folder


def test_one_command_writes_every_part(page):
    for name in PARTS:
        assert (page / "_verdict" / f"{name}.inc").read_text().strip()
    assert len(list((page / "_static").glob("verdict_*.svg"))) == 6


def test_what_is_missing_is_said(page):
    text = (page / "_verdict" / "reached.inc").read_text()
    assert "288 of 2,880 fits, 288 certified" in text
    assert "144 of 480" in text
    assert "an abacus" in text


def test_every_cell_has_our_median_and_that_of_the_paper(page):
    text = (page / "_verdict" / "tables.inc").read_text()
    # The last point of the grid is best: number 5 of 48, seed 2 the median one.
    assert f"{100 * (0.5 + 5 / 200 + 0.002):.2f}* (97.89)" in text
    assert text.count("list-table") == 6


def test_the_data_are_all_fits_once(page):
    with (page / "_static" / "paper_exact_results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 288
    assert (
        len({(row["dataset"], row["seed"], row["method"], row["parameter"]) for row in rows}) == 288
    )
    assert sum(int(row["chosen"]) for row in rows) == 2 * 3 * 8


def test_a_table_made_earlier_is_a_store_too(page, verdict, tmp_path):
    table = page / "_static" / "paper_exact_results.csv"
    verdict.main([str(table), str(page / "exact"), "--output", str(tmp_path)])
    verdict.main([str(table), "--output", str(tmp_path / "again")])
    for folder in (tmp_path, tmp_path / "again"):
        assert (folder / "_static" / table.name).read_text() == table.read_text()
        for name in ("conclusions", "tables", "ranks"):
            part = Path("_verdict") / f"{name}.inc"
            assert (folder / part).read_text() == (page / part).read_text()


def test_stalled_fits_are_counted_and_measured_against_the_optimum(page):
    text = (page / "_verdict" / "descent.inc").read_text()
    of_method = text[text.index("- PatMatNP(0.01)") :].split("   * -")[0].split("     - ")
    assert of_method[1].split() == ["36"]
    assert "36 of 36" in text
    assert of_method[4].split() == ["36"]  # stalled
    assert of_method[-1].split() == ["0.5"]  # 1.5 against an optimum of 1


def test_samples_are_counted_where_there_is_no_fit_yet(verdict, tmp_path):
    """Parts of a split have all samples between them, and all positives."""
    from types import SimpleNamespace

    digits = np.arange(4000) % 10
    images = np.zeros((4000, 28, 28), dtype=np.uint8)
    parts = {"x_test": images[:1000], "y_test": digits[:1000]}
    np.savez(tmp_path / "mnist.npz", x_train=images, y_train=digits, **parts)
    datasets = [SimpleNamespace(name="MNIST", label="MNIST")]
    found = verdict.counted(SimpleNamespace(datasets=datasets, seeds=[1, 2]), tmp_path)
    assert found["n_train"].tolist() == [3000, 3000]
    assert found["n_test"].tolist() == [1000, 1000]
    assert (found["n_positive_train"] + found["n_positive_valid"]).tolist() == [400, 400]
    assert found["n_positive_test"].tolist() == [100, 100]
    assert "3,000 (45,000)" in verdict.sizes(found)


def test_a_store_of_something_else_is_refused(verdict, tmp_path):
    (tmp_path / "results").mkdir()
    with pytest.raises(SystemExit, match="no fits of paper-exact"):
        verdict.main([str(tmp_path)])


def test_the_tables_of_the_paper_are_whole():
    medians, ranks = (
        pd.read_csv(DOCS / "_verdict" / f"paper_{name}.csv") for name in ("medians", "ranks")
    )
    assert len(medians) == 3 * 6 * 8
    assert not medians.duplicated(["metric", "dataset", "method"]).any()
    # Ranks of eight methods add up to 36 on every split, but for two digits.
    assert ranks.groupby("metric")["mean_rank"].sum().to_numpy() == pytest.approx(36, abs=0.05)
