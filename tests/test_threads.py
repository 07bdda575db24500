"""Threads: limits that end, errors that arrive, the same scores in any number of them."""

from contextlib import ExitStack

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_info

from attop import TopPush
from attop._threads import map_in_threads, one_blas_thread
from attop.kernels import functions


def test_the_limit_of_threads_ends_with_its_last_user():
    def counts():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = counts()
    first, second = one_blas_thread(), one_blas_thread()
    with ExitStack() as outer:
        outer.enter_context(first)
        second.__enter__()
        assert set(counts()) == {1}
    assert set(counts()) == {1}  # the second is still there
    second.__exit__(None, None, None)
    assert counts() == before


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_in_threads_arrive(threads):
    assert map_in_threads(abs, [-1, 2, -3], threads) == [1, 2, 3]
    with pytest.raises(TypeError):
        map_in_threads(abs, [1, "two"], threads)


def test_scores_do_not_depend_on_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = X[:, 0] > 1.0
    model = TopPush(C=100.0, kernel="rbf", random_state=0).fit(X, y)
    many = rng.normal(size=(20000, 3))
    scores = {}
    for count in (1, 2, 3):
        monkeypatch.setattr(functions, "n_threads", lambda count=count: count)
        scores[count] = model.decision_function(many)
    assert_allclose(scores[2], scores[1], rtol=1e-12, atol=1e-12 * np.ptp(scores[1]))
    assert_allclose(scores[3], scores[1], rtol=1e-12, atol=1e-12 * np.ptp(scores[1]))


def test_functions_of_users_are_called_one_at_a_time():
    inside, most = [], []

    def kernel(X, Y):
        inside.append(None)
        most.append(len(inside))
        values = np.exp(-((X[:, None] - Y[None]) ** 2).sum(-1))
        inside.pop()
        return values

    X = np.random.default_rng(0).normal(size=(300, 2))
    model = TopPush(C=1.0, kernel=kernel).fit(X, X[:, 0] > 1.0)
    model.decision_function(np.repeat(X, 10, axis=0))
    assert max(most) == 1
