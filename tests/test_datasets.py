"""The bundled data are the original ones, to the last bit, and come in scikit-learn's form."""

import csv
import hashlib
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from attop.datasets import load_ionosphere

# Of the 351 x 34 doubles of the UCI file, row by row, and of its labels (g = 1) as bytes.
FEATURES_SHA256 = "69468e18f3a97d2ed2709a0ad1fb4263f1dbd16f658b15500513ef06ccd7af71"
TARGET_SHA256 = "0f824d9799c06d8ac69ce9113a5920c70d373098f7cff295c023e9436c4f7f58"


@pytest.fixture(scope="module")
def ionosphere():
    return load_ionosphere()


def test_values_are_the_original_ones(ionosphere):
    features = ionosphere.data.astype("<f8")
    assert hashlib.sha256(features.tobytes()).hexdigest() == FEATURES_SHA256
    target = ionosphere.target.astype(np.uint8)
    assert hashlib.sha256(target.tobytes()).hexdigest() == TARGET_SHA256


def test_every_value_is_the_double_nearest_to_the_decimal_in_the_file(ionosphere):
    with Path(ionosphere.filename).open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [*ionosphere.feature_names, "target"]
    decimals = np.array([[float(Fraction(cell)) for cell in row] for row in rows])
    np.testing.assert_array_equal(ionosphere.data, decimals[:, :-1])
    np.testing.assert_array_equal(ionosphere.target, decimals[:, -1])


def test_bunch_describes_itself(ionosphere):
    assert ionosphere.data.shape == (351, 34)
    assert ionosphere.data.dtype == np.float64
    assert ionosphere.data.flags.c_contiguous
    assert len(set(ionosphere.feature_names)) == 34
    names, counts = np.unique(ionosphere.target_names[ionosphere.target], return_counts=True)
    assert dict(zip(names, counts)) == {"bad": 126, "good": 225}
    assert ionosphere.frame is None
    assert "CC BY 4.0" in ionosphere.DESCR


def test_caller_may_change_what_was_loaded(ionosphere):
    X, _ = load_ionosphere(return_X_y=True)
    X[:] = 7.0
    np.testing.assert_array_equal(load_ionosphere().data, ionosphere.data)


def test_return_X_y_gives_the_entries_of_the_bunch(ionosphere):
    X, y = load_ionosphere(return_X_y=True)
    np.testing.assert_array_equal(X, ionosphere.data)
    np.testing.assert_array_equal(y, ionosphere.target)


def test_as_frame_holds_the_same_numbers(ionosphere):
    bunch = load_ionosphere(as_frame=True)
    assert isinstance(bunch.data, pd.DataFrame) and isinstance(bunch.target, pd.Series)
    assert list(bunch.data.columns) == ionosphere.feature_names
    assert list(bunch.frame.columns) == [*ionosphere.feature_names, "target"]
    np.testing.assert_array_equal(bunch.data.to_numpy(), ionosphere.data)
    np.testing.assert_array_equal(bunch.target.to_numpy(), ionosphere.target)
    X, y = load_ionosphere(as_frame=True, return_X_y=True)
    pd.testing.assert_frame_equal(X, bunch.data)
    pd.testing.assert_series_equal(y, bunch.target)


def test_as_frame_without_pandas_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'pip install "attop\[experiments\]"'):
        load_ionosphere(as_frame=True)
