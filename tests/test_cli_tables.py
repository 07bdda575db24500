"""Fit and predict on tables as people have them: words, gaps, identifiers, dates, many formats."""

import csv

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

from attop.cli import main
from attop.cli._models import load_model


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")


def table(n=300, seed=0):
    """Loans: an identifier, numbers with gaps, words with gaps, codes, and labels as words."""
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < 0.25
    frame = pd.DataFrame(
        {
            "loan": [f"L{i:04d}" for i in range(n)],
            "income": rng.normal(size=n) - 1.5 * bad,
            "age": rng.integers(18, 80, n).astype(float),
            "job": np.where(rng.random(n) < np.where(bad, 0.8, 0.3), "none, yet", "clerk"),
            "zip": rng.choice(["007", "100", "200"], n),
            "default": np.where(bad, "yes", "no"),
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "job"] = None
    return frame


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ending:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.out + captured.err
    return ending.value.code, captured.out, captured.err


COLUMNS = ("--target", "default", "--positive", "yes", "--id", "loan", "--categorical", "zip")
FIT = (*COLUMNS, "--method", "tau-fpl", "--tau", "0.1", "--kernel", "linear")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loans")
    table().to_csv(folder / "loans.csv", index=False)
    new = table(120, seed=1).drop(columns="default")
    new.to_csv(folder / "new.csv", index=False)
    new.to_parquet(folder / "new.parquet")
    with pytest.raises(SystemExit) as ending:
        main(["fit", str(folder / "loans.csv"), *FIT, "--save", str(folder / "model.attop")])
    assert ending.value.code == 0
    return folder


def test_words_become_features_and_gaps_are_filled_and_told(capsys, folder, tmp_path):
    path = tmp_path / "model.attop"
    status, out, err = run(capsys, "fit", folder / "loans.csv", *FIT, "--save", path)
    assert status == 0, err
    assert "300 samples" in out and "categories: job (2), zip (3)" in out
    assert "age (" in out and "the median of the column takes their place" in out
    assert "job (" in out and "a category of their own" in out
    assert "Model of all 300 samples" in out
    saved = load_model(path)
    names = saved.model[:-1].get_feature_names_out()
    assert [name.split("__")[1] for name in names] == [
        *("income", "age", "job_(missing)", "job_clerk", "job_none, yet"),
        *("zip_007", "zip_100", "zip_200"),
    ]
    assert saved.model.classes_.tolist() == ["no", "yes"]
    assert saved.metadata["columns"]["id"] == "loan"


def test_the_report_is_about_samples_that_its_model_has_not_seen(capsys, folder, tmp_path):
    """Without a refit the model saved is the one of the report, on three quarters."""
    path = tmp_path / "model.attop"
    arguments = ("fit", folder / "loans.csv", *FIT, "--no-refit", "--save", path)
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    assert "TauFPL on 225 samples" in out and "Model of the report" in out
    kept, whole = load_model(path).model, load_model(folder / "model.attop").model
    assert len(kept[-1].beta_) < len(whole[-1].beta_)


@pytest.mark.parametrize("source", ["new.csv", "new.parquet"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "npz"])
@pytest.mark.parametrize("chunk_size", [7, 1000])
def test_predictions_are_the_same_in_every_format_and_chunk(
    capsys, folder, tmp_path, source, ending, chunk_size
):
    output = tmp_path / f"scores.{ending}"
    arguments = ("--output", output, "--chunk-size", chunk_size)
    status, out, err = run(capsys, "predict", folder / "model.attop", folder / source, *arguments)
    assert status == 0, err
    if ending == "npz":
        with np.load(output) as arrays:
            got = pd.DataFrame(dict(arrays))
    elif ending == "parquet":
        got = pd.read_parquet(output)
    else:
        got = pd.read_csv(output, sep="\t" if ending == "tsv" else ",")
    assert list(got.columns) == ["loan", "prediction", "score"]
    new = table(120, seed=1)
    assert got["loan"].tolist() == new["loan"].tolist()
    saved = load_model(folder / "model.attop")
    expected = saved.model.decision_function(features(new))
    np.testing.assert_allclose(got["score"], expected, rtol=1e-12)
    assert got["prediction"].tolist() == np.where(expected >= 0, "yes", "no").tolist()
    assert f"{int(sum(expected >= 0))} of 120 samples are positive ('yes')" in out


def features(frame):
    """The features as the model takes them."""
    frame = frame[["income", "age", "job", "zip"]].copy()
    frame["job"] = frame["job"].astype(object).where(frame["job"].notna(), np.nan)
    frame["zip"] = frame["zip"].astype(object)
    return frame


def test_unknown_categories_are_told(capsys, folder, tmp_path):
    path = tmp_path / "new.csv"
    table(20, seed=2).assign(job="astronaut").to_csv(path, index=False)
    status, _, err = run(capsys, "predict", folder / "model.attop", path)
    assert status == 0
    assert "'job' has values that the model does not know: 'astronaut'" in err


def test_a_header_alone_gives_a_header(capsys, folder, tmp_path):
    table(0).to_csv(tmp_path / "a.csv", index=False)
    status, out, _ = run(capsys, "predict", folder / "model.attop", tmp_path / "a.csv")
    assert (status, out) == (0, "loan,prediction,score\n")
    table(3).iloc[:0].to_parquet(tmp_path / "a.parquet")
    arguments = (tmp_path / "a.parquet", "--output", tmp_path / "s.npz")
    assert run(capsys, "predict", folder / "model.attop", *arguments)[0] == 0
    status, _, err = run(capsys, "fit", tmp_path / "a.csv", *FIT, "--save", tmp_path / "m")
    assert status == 2
    assert "no rows below its header" in err


WRONG = {
    "dates as words": ({"opened": "2021-03-04"}, "holds dates.*--ignore opened"),
    "dates": ({"opened": "04/03/2021 12:00"}, "holds dates.*--ignore opened"),
    "names": ({"name": [f"n{i}" for i in range(300)]}, "300 different words.*--id name"),
    "marks": ({"debt": ["?", *range(299)]}, r"1 times something else: '\?'.*--missing"),
    "infinite": ({"debt": [np.inf, *range(299)]}, "'debt' .* finite numbers. Got 'inf' in row 1"),
    "no label": ({"default": [None, *["yes", "no"] * 149, "yes"]}, "no label in 1 rows"),
    "one class": ({"default": "yes"}, "nothing to tell apart"),
    "one positive": ({"default": ["yes", *["no"] * 299]}, "two samples at least"),
    "weights": ({"w": [-1.0, *range(299)]}, "--weight must name a column of numbers of at least 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_columns_that_are_no_features_are_refused_with_advice(capsys, tmp_path, case):
    columns, message = WRONG[case]
    path = tmp_path / "loans.csv"
    table().assign(**columns).to_csv(path, index=False)
    more = ("--weight", "w") if case == "weights" else ()
    status, _, err = run(capsys, "fit", path, *FIT, *more, "--save", tmp_path / "m.attop")
    assert status == 2
    assert pd.Series([err]).str.contains(message).item(), err


def test_dates_of_parquet_are_refused(capsys, tmp_path):
    path = tmp_path / "loans.parquet"
    table().assign(opened=pd.Timestamp("2020-01-01")).to_parquet(path)
    status, _, err = run(capsys, "fit", path, *FIT, "--save", tmp_path / "m.attop")
    assert status == 2
    assert "'opened' of loans.parquet holds dates" in err


def test_hints(capsys, tmp_path):
    """An identifier of numbers, a column without values, a word that means a gap."""
    path = tmp_path / "loans.csv"
    frame = table().assign(row=range(300), nothing=None, debt=["?", *range(299)])
    frame.to_csv(path, index=False, sep=";")  # as spreadsheets write it in some countries
    arguments = (*FIT, "--missing", "?", "--save", tmp_path / "m.attop")
    status, out, err = run(capsys, "fit", path, *arguments)
    assert status == 0, err
    assert "'row' has another integer in every row" in out and "--id row" in out
    assert "'nothing' has no values and is left out" in out
    assert "debt (1)" in out


def test_one_label_against_all_others(capsys, tmp_path):
    path, model = tmp_path / "loans.csv", tmp_path / "m.attop"
    frame = table()
    frame.loc[::7, "default"] = "unknown"
    frame.to_csv(path, index=False)
    assert run(capsys, "fit", path, *FIT, "--save", model)[0] == 0
    _, out, _ = run(capsys, "predict", model, path)
    rows = list(csv.DictReader(out.splitlines()))
    assert {row["prediction"] for row in rows} <= {"yes", "not yes"}
    assert load_model(model).model.classes_.tolist() == ["not yes", "yes"]


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (False, True), (0.0, 1.0)])
def test_labels_of_numbers_come_back_as_they_are(capsys, tmp_path, labels):
    path, model = tmp_path / "loans.csv", tmp_path / "m.attop"
    frame = table()
    frame["default"] = np.where(frame["default"] == "yes", labels[1], labels[0])
    frame.to_csv(path, index=False)
    arguments = (
        "--target",
        "default",
        "--id",
        "loan",
        "--method",
        "top-push",
        "--kernel",
        "linear",
    )
    status, _, err = run(capsys, "fit", path, *arguments, "--save", model)
    assert status == 0, err
    _, out, _ = run(capsys, "predict", model, path)
    got = pd.Series([row["prediction"] for row in csv.DictReader(out.splitlines())])
    assert set(got) <= {str(label) for label in labels}


def test_a_guaranteed_threshold_holds_out_its_negatives_before_the_search(capsys, tmp_path):
    path, model = tmp_path / "loans.csv", tmp_path / "m.attop"
    table(900).to_csv(path, index=False)
    search = ("--search", "--C", "1", "--guarantee", "fpr=0.1", "--confidence", "0.9")
    status, out, err = run(capsys, "fit", path, *FIT, *search, "--save", model)
    assert status == 0, err
    assert "by tpr_at_fpr_0.1" in out
    assert "a false positive rate of at most 0.1 on new data" in out
    assert out.count("Searching the best TauFPL") == 2  # once more for the model of all samples
    saved = load_model(model).model
    assert saved.violation_bound_ <= 0.1 + 1e-12
    n_negatives = int((table(900)["default"] == "no").sum())
    assert saved.n_negatives_ == round(n_negatives / 2)
    # The classifier has seen only the others.
    assert len(saved.estimator_[-1].beta_) == n_negatives - saved.n_negatives_
    assert run(capsys, "predict", model, path)[0] == 0


@pytest.mark.parametrize("more", [(), ("--guarantee", "fpr=0.1", "--seed", "3"), ("--search",)])
def test_weights_count_copies(capsys, tmp_path, more):
    """Whole weights, without a refit, give the model of the copied samples."""
    frame = table(500)
    frame["copies"] = np.random.default_rng(0).integers(1, 4, 500)
    frame.to_csv(tmp_path / "a.csv", index=False)
    arguments = (*FIT, *more, "--weight", "copies", "--C", "1")
    status, _, err = run(
        capsys, "fit", tmp_path / "a.csv", *arguments, "--save", tmp_path / "m.attop"
    )
    assert status == 0, err
    saved = load_model(tmp_path / "m.attop")
    assert "copies" not in saved.metadata["columns"]["numbers"]
    if more:
        return
    prepared = saved.model[:-1].transform(features(frame))
    copied = clone(saved.model[-1]).fit(
        np.repeat(prepared, frame["copies"], axis=0), np.repeat(frame["default"], frame["copies"])
    )
    assert copied.objective_ == pytest.approx(saved.model[-1].objective_, rel=3e-4)


def test_samples_of_weight_zero_are_left_out(capsys, tmp_path):
    frame = table(300).assign(copies=1.0)
    frame.loc[::10, "copies"] = 0.0
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame[frame["copies"] > 0].to_csv(tmp_path / "b.csv", index=False)
    for name in ("a", "b"):
        arguments = (*FIT, "--weight", "copies", "--save", tmp_path / f"{name}.attop")
        status, out, err = run(capsys, "fit", tmp_path / f"{name}.csv", *arguments)
        assert status == 0, err
        assert ("30 samples of weight 0 are left out" in out) == (name == "a")
    a, b = (load_model(tmp_path / f"{name}.attop").model[-1] for name in ("a", "b"))
    assert a.objective_ == b.objective_


def test_the_search_tries_what_is_not_given_and_shows_a_table(capsys, folder, tmp_path):
    path = tmp_path / "m.attop"
    arguments = (
        *COLUMNS,
        "--method",
        "top-push-k",
        "--search",
        "--metric",
        "roc_auc",
        "--C",
        "0.5",
    )
    status, out, err = run(capsys, "fit", folder / "loans.csv", *arguments, "--save", path)
    assert status == 0, err
    assert "roc_auc" in out and "gamma" in out and "largest gap" in out
    best = load_model(path).model[-1]
    assert best.C == 0.5
    assert best.K in (1, 5, 20)


def test_a_model_that_tells_nothing_does_not_win_a_search():
    from attop.cli._search import Judge

    y, judge = np.array([0, 0, 1, 1]), Judge("tpr_at_fpr_0.05")
    assert judge(y, np.zeros(4)) == 0.0
    assert judge(y, np.array([0.0, 1.0, 2.0, 3.0])) == 1.0


def test_page_is_complete_in_itself(capsys, folder, tmp_path):
    path, page = tmp_path / "m.attop", tmp_path / "deep" / "m.html"
    arguments = (*FIT, "--search", "--save", path, "--page", page)
    status, out, err = run(capsys, "fit", folder / "loans.csv", *arguments)
    assert status == 0, err
    assert str(page) in out
    text = page.read_text()
    for heading in ("On samples held out", "ROC near the top", "Scores", "Thresholds", "Search"):
        assert f"<h2>{heading}</h2>" in text
    assert text.count("<svg") == 2
    assert "src=" not in text and 'href="http' not in text


def test_thresholds_of_the_page_keep_their_rates():
    from attop.cli._assessment import Assessment

    rng = np.random.default_rng(0)
    positive = rng.random(5000) < 0.1
    scores = rng.normal(size=5000) + positive
    for row in Assessment(positive, scores, scores >= 0).thresholds():
        if row["score at least"] != "none":
            called = scores >= float(row["score at least"]) - 1e-3  # as shown, rounded
            assert np.mean(called[~positive]) <= float(row["FPR at most"]) + 2e-3
        assert float(row["FPR"]) <= float(row["FPR at most"]) + 1e-12


@pytest.mark.parametrize("kind", ["npz", "libsvm"])
def test_matrices(capsys, tmp_path, kind):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.3, 1, -1)
    X = rng.normal(size=(200, 5)) + (y == 1)[:, None]
    X[0, 4] = 1.0
    path, model = tmp_path / f"a.{kind}", tmp_path / "m.attop"
    if kind == "npz":
        np.savez(path, X=X, y=y, id=np.arange(200))
    else:
        dump_svmlight_file(sp.csr_matrix(X), y, str(path))
    arguments = ("--method", "top-push", "--kernel", "linear", "--save", model)
    assert run(capsys, "fit", path, *arguments)[0] == 0
    status, out, err = run(capsys, "predict", model, path, "--chunk-size", 33)
    assert status == 0, err
    rows = list(csv.DictReader(out.splitlines()))
    assert len(rows) == 200
    assert ("id" in rows[0]) == (kind == "npz")
    status, _, err = run(capsys, "fit", path, "--target", "y", "--save", tmp_path / "n")
    assert (status, "has no names of columns" in err) == (2, True)


def test_pickles_only_where_the_user_says_so(capsys, folder, tmp_path):
    path = tmp_path / "model.pickle"
    fit = ("fit", folder / "loans.csv", *FIT, "--save", path, "--pickle")
    assert run(capsys, *fit)[0] == 0
    status, _, err = run(capsys, "predict", path, folder / "new.csv")
    assert status == 2
    assert "add --pickle" in err
    _, expected, _ = run(capsys, "predict", folder / "model.attop", folder / "new.csv")
    status, out, _ = run(capsys, "predict", path, folder / "new.csv", "--pickle")
    assert (status, out) == (0, expected)
    status, _, err = run(capsys, "predict", folder / "new.csv", folder / "new.csv", "--pickle")
    assert (status, "cannot be read" in err) == (2, True)


def test_tables_and_matrices_are_not_mixed_up(capsys, folder, tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(4))
    status, _, err = run(capsys, "predict", folder / "model.attop", tmp_path / "a.npz")
    assert (status, "fitted to named columns" in err) == (2, True)


def test_nothing_is_replaced_without_force(capsys, folder, tmp_path):
    model, output = tmp_path / "m.attop", tmp_path / "s.csv"
    model.write_text("precious")
    output.write_text("precious")
    commands = (
        ("fit", folder / "loans.csv", *FIT, "--save", model),
        ("fit", folder / "loans.csv", *FIT, "--save", tmp_path / "n", "--page", output),
        ("predict", folder / "model.attop", folder / "new.csv", "--output", output),
    )
    for command in commands:
        status, _, err = run(capsys, *command)
        assert (status, "--force" in err) == (2, True)
    assert model.read_text() == output.read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} == {"m.attop", "s.csv"}
    assert run(capsys, *commands[2], "--force")[0] == 0
    assert output.read_text().startswith("loan,")


@pytest.mark.parametrize("damage", [lambda c: c[: len(c) // 2], lambda c: b"", lambda c: b"x" * 99])
def test_damaged_and_foreign_files_are_named(capsys, folder, tmp_path, damage):
    for name in ("model.attop", "new.parquet"):
        (tmp_path / name).write_bytes(damage((folder / name).read_bytes()))
        model = tmp_path / name if "model" in name else folder / "model.attop"
        data = folder / "new.csv" if "model" in name else tmp_path / name
        status, _, err = run(capsys, "predict", model, data)
        assert status == 2
        assert name in err


def test_a_folder_that_cannot_be_written_is_told_before_the_work(capsys, folder, tmp_path):
    (tmp_path / "file").touch()
    arguments = (*FIT, "--save", tmp_path / "file" / "m.attop")
    status, out, err = run(capsys, "fit", folder / "loans.csv", *arguments)
    assert status == 2
    assert "TauFPL" not in out
    assert "file" in err
    status, _, err = run(capsys, "fit", folder / "loans.csv", *FIT, "--save", tmp_path)
    assert (status, "is a folder" in err) == (2, True)
