"""Splits into training, validation and test set."""

from dataclasses import replace

import numpy as np
import pytest

from attop.datasets import Dataset


def numbered(n_samples, n_test=None):
    """A data set whose only feature is the number of the sample, a fifth of it positive."""
    X = np.arange(n_samples)[:, None]
    y = (X[:, 0] % 5 == 0).astype(int)
    if n_test is None:
        return Dataset("numbered", X, y)
    return Dataset("numbered", X, y, -np.arange(n_test)[:, None], np.zeros(n_test, dtype=int))


def test_the_split_of_the_paper():
    data = numbered(4001, n_test=7)
    split = data.split(seed=1)
    assert (len(split.y_train), len(split.y_valid), len(split.y_test)) == (3001, 1000, 7)
    assert sorted([*split.X_train[:, 0], *split.X_valid[:, 0]]) == list(range(4001))
    for X, y in ((split.X_train, split.y_train), (split.X_valid, split.y_valid)):
        assert np.array_equal(y, X[:, 0] % 5 == 0)
    # drawn at random, so that the shares of positives differ a little, as in the paper
    assert 0 < abs(split.y_train.mean() - split.y_valid.mean()) < 0.05
    assert np.array_equal(data.split(seed=1).X_valid, split.X_valid)
    assert not np.array_equal(data.split(seed=2).X_valid, split.X_valid)


def test_a_split_without_an_official_test_set_keeps_the_share_of_positives():
    split = numbered(400).split(seed=3)
    parts = split.X_train, split.X_valid, split.X_test
    assert [len(part) for part in parts] == [225, 75, 100]
    assert sorted(np.vstack(parts)[:, 0]) == list(range(400))
    assert all(y.mean() == 0.2 for y in (split.y_train, split.y_valid, split.y_test))


def test_fewer_training_samples_are_a_part_of_the_same_split():
    data = numbered(400, n_test=5)
    whole, few = data.split(seed=1), data.split(seed=1, n_train=30)
    assert len(few.y_train) == 30
    assert set(few.X_train[:, 0]) < set(whole.X_train[:, 0])
    assert np.array_equal(few.X_valid, whole.X_valid)
    with pytest.raises(ValueError, match=r"'n_train' parameter .* in \[1, 300\]. Got 301"):
        data.split(seed=1, n_train=301)


@pytest.mark.parametrize("n_test", [None, 7])
def test_weights_stay_with_their_samples(n_test):
    plain = numbered(400, n_test)
    weighted = replace(plain, weight=np.arange(400) / 7.0)
    if n_test is not None:
        weighted = replace(weighted, weight_test=-plain.X_test[:, 0] / 7.0)
    split = weighted.split(seed=1, n_train=50)
    for part in ("train", "valid", "test"):
        X = getattr(split, f"X_{part}")
        assert np.array_equal(X, getattr(plain.split(seed=1, n_train=50), f"X_{part}"))
        assert np.array_equal(getattr(split, f"w_{part}"), abs(X[:, 0]) / 7.0)
    unweighted = plain.split(seed=1)
    assert unweighted.w_train is unweighted.w_valid is unweighted.w_test is None
