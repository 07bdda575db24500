"""Threads: limits that end, errors that arrive, the same scores in any number of them."""

import os
import signal
import time
from threading import Timer

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_info

from attop import TopPush
from attop._threads import Pool, _one_thread, map_in_threads, with_one_blas_thread


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_the_limit_of_threads_ends_with_its_last_user():
    before, limit = blas_threads(), _one_thread()
    first, second = object(), object()
    limit.enter(first)
    limit.enter(second)
    assert set(blas_threads()) == {1}
    limit.leave(first)
    assert set(blas_threads()) == {1}  # the second is still there
    for _ in range(2):  # the second time it does not count
        limit.leave(second)
        assert blas_threads() == before
    assert set(with_one_blas_thread(blas_threads)) == {1}
    assert blas_threads() == before


def test_the_limit_of_threads_ends_with_an_error():
    before = blas_threads()
    with pytest.raises(ZeroDivisionError):
        with_one_blas_thread(divmod, 1, 0)
    assert blas_threads() == before


@pytest.fixture
def interruptible():
    """Interrupts raise KeyboardInterrupt, even in a background job, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="signals to oneself end the process there")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_the_caller_leaves_no_thread_at_work():
    pool, begun = Pool(2), []

    def call(i):
        begun.append(i)
        time.sleep(0.1)
        begun.pop()

    Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        pool.map(call, [(i,) for i in range(100)])
    assert time.monotonic() - began < 1.0
    assert not begun
    assert pool.map(abs, [(-1,), (2,)]) == [1, 2]
    pool.close()


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
    for count in (1, 2):
        monkeypatch.setenv("OMP_NUM_THREADS", str(count))
        scores[count] = model.decision_function(many)
    assert_allclose(scores[2], scores[1], rtol=1e-12, atol=1e-12 * np.ptp(scores[1]))


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
