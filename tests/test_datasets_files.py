"""The user's own files: the same samples from every format, and errors that help."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from attop.datasets import load_file


@pytest.fixture
def table():
    """A table with a label, an identifier and three numeric features."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 2)), columns=["income", "age"])
    frame["married"] = rng.random(20) < 0.5
    frame["person"] = [f"person {i}" for i in range(20)]
    frame["default"] = np.where(rng.random(20) < 0.3, "yes", "no")
    return frame


def write(frame, path):
    if path.name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.csv.gz", "A.CSV"])
def test_tables(name, table, tmp_path):
    path = write(table, tmp_path / name)
    data = load_file(path, target="default", positive="yes", ignore=["person"])
    assert data.feature_names == ["income", "age", "married"]
    assert np.allclose(data.X, table[data.feature_names].to_numpy(dtype=float))
    assert np.array_equal(data.y, table["default"] == "yes")
    assert data.X.dtype == np.float64
    assert data.source == str(path)
    assert data.name.lower() == "a"


@pytest.mark.parametrize("compressed", [False, True])
def test_libsvm_stays_sparse(compressed, tmp_path):
    X = sp.random(30, 50, density=0.1, random_state=0, format="lil")
    X[0, 49] = 1.0  # so that the file tells the number of features
    X = X.tocsr()
    y = np.where(np.arange(30) % 3 == 0, 1, -1)
    path = tmp_path / "a.libsvm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    if compressed:
        path.with_suffix(".libsvm.gz").write_bytes(gzip.compress(path.read_bytes()))
        path = path.with_suffix(".libsvm.gz")
    data = load_file(path)
    assert sp.issparse(data.X)
    assert abs(data.X - X).max() < 1e-12
    assert np.array_equal(data.y, y == 1)
    assert data.split(seed=0).X_train.shape[1] == 50


@pytest.mark.parametrize(
    ("keys", "has_test"),
    [
        (("X", "y"), False),
        (("X_train", "y_train"), False),
        (("x_train", "y_train", "x_test", "y_test"), True),
        (("X", "y", "X_test", "y_test"), True),
    ],
)
def test_npz(keys, has_test, tmp_path):
    rng = np.random.default_rng(0)
    arrays = [rng.random((10, 2, 3)), np.arange(10) % 2, rng.random((4, 2, 3)), np.arange(4) % 2]
    path = tmp_path / "a.npz"
    np.savez(path, **dict(zip(keys, arrays)))
    data = load_file(path)
    assert np.array_equal(data.X, arrays[0].reshape(10, 6))
    assert np.array_equal(data.y, arrays[1])
    if has_test:
        assert np.array_equal(data.X_test, arrays[2].reshape(4, 6))
        assert np.array_equal(data.y_test, arrays[3])
    else:
        assert data.X_test is None and data.y_test is None


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [False, True], [0.0, 1.0]])
def test_one_is_positive_by_default(labels, tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [labels[0], labels[1], labels[1]]})
    assert load_file(write(frame, tmp_path / "a.csv"), target="y").y.tolist() == [0, 1, 1]


@pytest.mark.parametrize("positive", [2, 2.0, "2"])
def test_one_class_against_all_others(positive, tmp_path):
    path = write(pd.DataFrame({"x": range(6), "y": [0, 1, 2, 0, 1, 2]}), tmp_path / "a.csv")
    assert load_file(path, target="y", positive=positive).y.tolist() == [0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"'target' parameter .* must name the column of the labels.*'income', 'age'"),
        ({"target": "defualt"}, "Got 'defualt' instead. Did you mean 'default'"),
        ({"target": "zzz"}, "Got 'zzz' instead. There are 'income'"),
        ({"target": "default", "ignore": ["persn"]}, "'ignore'.*Did you mean 'person'"),
        ({"target": "default"}, r"must be numeric. Got 'person';"),
        (
            {"target": "default", "ignore": ["person"]},
            r"'positive' parameter .* Got 'no', 'yes' in column 'default' of a.csv",
        ),
        (
            {"target": "default", "ignore": ["person"], "positive": "yess"},
            "Got 'yess' instead. Did you mean 'yes'",
        ),
    ],
)
def test_mistakes_with_columns_and_labels_are_named(options, message, table, tmp_path):
    path = write(table, tmp_path / "a.csv")
    with pytest.raises(ValueError, match=message):
        load_file(path, **options)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"x": [1.0, 2.0], "y": [1.0, None]}, "Column 'y' of a.csv has 1 labels missing"),
        ({"y": [0, 1]}, "must hold samples with features"),
        ({"x": [], "y": []}, "must hold samples with features"),
        ({"x": [1, 2], "y": [1, 2]}, "Got 1, 2 in column 'y'"),
        ({"x": [1, 2, 3], "y": [0, 1, 2]}, "Got 0, 1, 2 in column 'y'"),
        ({"x": [1, 2], "y": [1, 1]}, "Got 1 in column 'y'"),
    ],
)
def test_unclear_tables_are_refused(frame, message, tmp_path):
    path = write(pd.DataFrame(frame), tmp_path / "a.csv")
    with pytest.raises(ValueError, match=message):
        load_file(path, target="y")


def test_one_class_only_is_refused_even_when_named(tmp_path):
    path = write(pd.DataFrame({"x": [1, 2], "y": [1, 1]}), tmp_path / "a.csv")
    with pytest.raises(ValueError, match="nothing to tell apart"):
        load_file(path, target="y", positive=1)


def test_missing_features_are_left_to_the_model(tmp_path):
    path = write(pd.DataFrame({"x": [1.0, None], "y": [0, 1]}), tmp_path / "a.csv")
    assert np.isnan(load_file(path, target="y").X[1, 0])


def test_npz_mistakes(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, features=np.ones(3))
    with pytest.raises(ValueError, match=r"must hold arrays X and y.* Got \['features'\]"):
        load_file(path)
    np.savez(path, X=np.ones((3, 2)), y=[0, 1])
    with pytest.raises(ValueError, match="Got 3 samples and 2 labels"):
        load_file(path)
    with pytest.raises(ValueError, match="names of columns, which only tables have"):
        load_file(path, target="y")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_weights_are_no_feature(name, table, tmp_path):
    path = write(table.assign(copies=np.arange(20)), tmp_path / name)
    options = {"target": "default", "positive": "yes", "ignore": ["person"]}
    data = load_file(path, **options, weight="copies")
    assert data.feature_names == ["income", "age", "married"]
    assert data.X.shape == (20, 3)
    assert data.weight.dtype == np.float64
    assert np.array_equal(data.weight, np.arange(20))
    assert load_file(path, **options).weight is None


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (["1", "many", "2"], "Column 'copies' of a.csv must hold numbers"),
        ([1.0, -2.0, 1.0], "finite weights of at least 0.* Got -2 instead"),
        ([1.0, None, 1.0], "finite weights of at least 0, without gaps. Got nan instead"),
        ([1.0, np.inf, 1.0], "finite weights of at least 0.* Got inf instead"),
        ([1.0, 0.0, 0.0], "must not leave out all positives"),
        ([0.0, 1.0, 1.0], "must not leave out all negatives"),
    ],
)
def test_weights_that_cannot_count_copies_are_refused(weights, message, tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0, 1, 1], "copies": weights})
    path = write(frame, tmp_path / "a.csv")
    with pytest.raises(ValueError, match=message):
        load_file(path, target="y", weight="copies")
    with pytest.raises(ValueError, match=r"'weight' parameter .*Did you mean 'copies'"):
        load_file(path, target="y", weight="copeis")


def test_weights_of_npz_files(tmp_path):
    path = tmp_path / "a.npz"
    arrays = {"X_train": np.ones((4, 2)), "y_train": [0, 1, 0, 1], "W_train": [1, 2, 3, 4]}
    np.savez(path, **arrays, X_test=np.ones((2, 2)), y_test=[0, 1])
    data = load_file(path, weight="W_train")
    assert data.weight.tolist() == [1, 2, 3, 4]
    assert data.weight_test is None
    assert load_file(path).weight is None
    np.savez(path, **arrays, X_test=np.ones((2, 2)), y_test=[0, 1], W_test=[5, 6])
    assert load_file(path, weight="W_train").weight_test.tolist() == [5, 6]
    with pytest.raises(ValueError, match=r"'weight' parameter .* an array of a.npz. Got 'w_tran'"):
        load_file(path, weight="w_tran")
    np.savez(path, X=np.ones((4, 2)), y=[0, 1, 0, 1], w=[1, 2, 3])
    with pytest.raises(ValueError, match="Got 4 samples and 3 weights"):
        load_file(path, weight="w")


def test_libsvm_files_have_no_weights(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n-1 1:2\n")
    with pytest.raises(ValueError, match=r"'weight' parameter .* only tables and npz files have"):
        load_file(tmp_path / "a.svm", weight="w")


def truncated(content):
    return content[: len(content) * 2 // 3]


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv.gz"])
@pytest.mark.parametrize("damage", [truncated, lambda content: b"nonsense", lambda content: b""])
def test_damaged_files_are_named(ending, damage, tmp_path):
    path = tmp_path / f"a.{ending}"
    frame = pd.DataFrame({"x": np.random.default_rng(0).random(500), "y": np.arange(500) % 2})
    if ending == "npz":
        np.savez(path, X=frame[["x"]], y=frame["y"])
    else:
        write(frame, path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises((OSError, ValueError), match=rf"a\.{ending}"):
        load_file(path, target=None if ending == "npz" else "y")


def test_other_mistakes_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        load_file(tmp_path / "a.csv", target="y")
    (tmp_path / "a.xlsx").touch()
    with pytest.raises(ValueError, match=r"must end in one of .*'\.csv'.* Got 'a\.xlsx'"):
        load_file(tmp_path / "a.xlsx")
    (tmp_path / "a.svm").write_text("this is no libsvm file\n")
    with pytest.raises(ValueError, match=r"a\.svm is not in libsvm format"):
        load_file(tmp_path / "a.svm")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n1,2,3\n")
    with pytest.raises(ValueError, match=r"a\.csv is not a table: .*line 3"):
        load_file(tmp_path / "a.csv", target="a")


def test_without_pandas_the_error_names_the_extra(monkeypatch, tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,0\n2,1\n")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'pip install "attop\[experiments\]"'):
        load_file(tmp_path / "a.csv", target="y")
