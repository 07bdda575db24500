"""A model of the user's own file, and its predictions."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

from attop.cli import main
from attop.cli._models import load_model
from attop.datasets import load_ionosphere


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Ionosphere as a file to fit, and one to predict without labels, in another order."""
    folder = tmp_path_factory.mktemp("files")
    X, y = load_ionosphere(return_X_y=True)
    names = [f"f{i}" for i in range(X.shape[1])]
    words = np.where(y == 1, "good", "bad")
    rows = [[*names, "kind"], *([*row, word] for row, word in zip(X.tolist(), words))]
    with (folder / "data.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    with (folder / "new.csv").open("w", newline="") as file:
        csv.writer(file).writerow([*names[::-1], "remark"])
        csv.writer(file).writerows([*row[::-1], "x"] for row in X.tolist())
    return folder


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ending:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return ending.value.code, captured.out, captured.err


FIT = ("--target", "kind", "--positive", "good", "--method", "patmat-np", "--tau", "0.05")


@pytest.fixture(scope="module")
def model(files):
    path = files / "model.attop"
    with pytest.raises(SystemExit) as ending:
        main(["fit", str(files / "data.csv"), *FIT, "--save", str(path)])
    assert ending.value.code == 0
    return path


def test_fit_reports_on_held_out_samples_and_saves(capsys, files, tmp_path):
    path = tmp_path / "deep" / "model.attop"
    status, out, err = run(capsys, "fit", files / "data.csv", *FIT, "--save", path)
    assert status == 0, err
    assert "PatMatNP on 263 samples" in out
    assert "88 (56 positive)" in out
    assert "FPR at its threshold" in out
    saved = load_model(path).model
    assert (saved[-1].tau, saved[-1].dual_gap_ <= 1e-4) == (0.05, True)
    assert list(path.parent.iterdir()) == [path]


def test_fit_says_in_words_that_there_is_no_certificate(capsys, files, tmp_path):
    grill = ["--target", "kind", "--positive", "bad", "--method", "grill-np", "--kernel", "linear"]
    path = tmp_path / "model.attop"
    status, out, err = run(capsys, "fit", files / "data.csv", *grill, "--save", path)
    assert status == 0, err
    assert "no certificate of optimality exists" in out
    assert "nan" not in out


def test_predictions_are_those_of_the_model_whatever_the_order_of_columns(capsys, files, model):
    status, out, err = run(capsys, "predict", model, files / "new.csv")
    assert status == 0, err
    rows = list(csv.DictReader(io.StringIO(out)))
    X, y = load_ionosphere(return_X_y=True)
    saved = load_model(model).model
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    expected = saved.decision_function(frame[saved.feature_names_in_])
    np.testing.assert_allclose([float(row["score"]) for row in rows], expected, rtol=1e-9)
    called = np.array([row["prediction"] for row in rows])
    np.testing.assert_array_equal(called, np.where(expected >= 0.0, "good", "bad"))
    assert np.mean(called[y == 1] == "good") > 0.5 > 0.1 > np.mean(called[y == 0] == "good")


def test_predictions_go_to_a_file(capsys, files, model, tmp_path):
    output = tmp_path / "scores.csv"
    status, out, _ = run(capsys, "predict", model, files / "new.csv", "--output", output)
    assert status == 0
    assert "of 351 samples are positive" in out
    assert len(output.read_text().splitlines()) == 352


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "knd"], "Did you mean 'kind'"),
        (["--target", "kind"], "--positive must say which label is positive"),
        ([*FIT, "--method", "patmatt-np"], "Did you mean 'PatMatNP'"),
        ([*FIT, "--tau", "1.5"], "--tau must be in (0, 1). Got 1.5"),
        ([*FIT, "--K", "5"], "--K is no option of PatMatNP, which has --C"),
        ([*FIT, "--kernel", "rfb"], "--kernel must be one of 'linear'"),
        ([*FIT, "--surrogate", "hing"], "--surrogate must be one of 'hinge'"),
        ([*FIT, "--approximation", "x"], "--approximation must be one of 'nystroem'"),
        ([*FIT, "--gamma", "x"], "--gamma must be 'scale', 'auto' or in (0, inf). Got 'x'"),
        ([*FIT, "--tol", "0"], "--tol must be in (0, inf)"),
        ([*FIT, "--max-time", "-1"], "--max-time must be a number of seconds in (0, inf)"),
        ([*FIT, "--metric", "roc_auc"], "add --search"),
        ([*FIT, "--search", "--metric", "roc_auk"], "Did you mean 'roc_auc'?"),
        ([*FIT, "--search", "--approximation", "nystroem"], "exclude each other"),
        ([*FIT, "--guarantee", "tpr=0.9"], "--guarantee must be such as fpr=0.01"),
        ([*FIT, "--guarantee", "fpr=0.01", "--confidence", "2"], "--confidence must be in (0, 1)"),
        ([*FIT, "--guarantee", "fpr=0.01"], "needs 598 negatives"),
        ([*FIT[:4], "--method", "sklearn.svm:SVC", "--tol", "1"], "--tol: not for sklearn.svm:SVC"),
        ([*FIT, "--id", "f99"], "--id must name a column of data.csv"),
        ([*FIT, "--weight", "kynd"], "--weight must name a column of data.csv"),
    ],
)
def test_mistakes_of_fit_are_told(capsys, files, tmp_path, arguments, message):
    path = tmp_path / "model.attop"
    status, _, err = run(capsys, "fit", files / "data.csv", *arguments, "--save", path)
    assert status == 2
    assert message in err
    assert "parameter of" not in err
    assert not path.exists()


def test_mistakes_of_predict_are_told(capsys, files, model, tmp_path):
    for arguments, message in (
        ((model, tmp_path / "nothing.csv"), "There is no file"),
        ((tmp_path / "nothing.attop", files / "new.csv"), "There is no file"),
        ((files / "data.csv", files / "new.csv"), "cannot be read"),
    ):
        status, _, err = run(capsys, "predict", *arguments)
        assert status == 2
        assert message in err
    other = tmp_path / "other.csv"
    other.write_text((files / "new.csv").read_text().replace("f12", "g12", 1))
    status, _, err = run(capsys, "predict", model, other)
    assert status == 2
    assert "no column 'f12'" in err
