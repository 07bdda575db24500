"""Ctrl-C: a KeyboardInterrupt at once, an estimator as it was, and a process that lives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import attop
from attop.calibration import NeymanPearsonThreshold
from attop.model_selection import AtTopCV
from conftest import PARAMETERS, two_clouds

X, Y = two_clouds(60, 120, distance=2.5)

ESTIMATORS = {
    **{name: getattr(attop, name)(**own) for name, own in PARAMETERS.items()},
    "primal": attop.TopPush(C=10.0, kernel="linear", solver="primal"),
    "nystroem": attop.TopPush(approximation="nystroem", n_components=20, random_state=0),
    "warm start": attop.TopPush(warm_start=True),
    "Grill": attop.Grill(),
    "AtTopCV": AtTopCV(attop.TopPush(), {"C": [1.0]}, cv=2),
    "NeymanPearsonThreshold": NeymanPearsonThreshold(
        attop.TopPush(), fpr=0.2, confidence=0.9, random_state=0
    ),
}


class Unreadable:
    """Samples that fail when they are read."""

    def __init__(self, error):
        self.error = error

    def __array__(self, dtype=None, copy=None):
        raise self.error("of a test")


class Failing:
    """A kernel that fails at a call; all copies of it count together."""

    left = 0
    error: type[BaseException] = ValueError

    def __call__(self, some, others):
        if Failing.left == 0:
            raise Failing.error("of a test")
        Failing.left -= 1
        return rbf_kernel(some, others, gamma=0.3)


def assert_unchanged_by(model, error, samples):
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(samples, Y)
    assert vars(model).keys() == before.keys()
    assert all(value is before[key] for key, value in vars(model).items())


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_error_of_the_samples_leaves_the_estimator_as_it_was(name, error):
    fitted = clone(ESTIMATORS[name]).fit(X[:, 1:], Y)
    for model in (clone(ESTIMATORS[name]), fitted):
        assert_unchanged_by(model, error, Unreadable(error))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize(
    "name", [name for name in ESTIMATORS if name not in ("primal", "nystroem", "Grill")]
)
def test_an_error_of_the_kernel_leaves_the_estimator_as_it_was(name, error):
    """Wherever it comes: in the rounds, in the certificate, in the making of the model."""
    Failing.error = error
    model = clone(ESTIMATORS[name])
    kernel = "kernel" if hasattr(model, "kernel") else "estimator__kernel"
    model.set_params(**{kernel: Failing()})
    for _ in range(2):  # a warm start has less to do
        Failing.left = 10**6
        model.fit(X, Y)
    calls = 10**6 - Failing.left
    assert calls > 1
    for call in {0, 1, calls // 2, calls - 1}:
        Failing.left = call
        assert_unchanged_by(model, error, X)


def test_a_warning_that_is_an_error_leaves_the_estimator_as_it_was():
    model = attop.TopPush(max_iter=1, tol=1e-9)
    before = dict(vars(model))
    with pytest.raises(UserWarning, match="max_iter"):  # pytest makes errors of warnings
        model.fit(X, Y)
    assert vars(model) == before


#: Interrupts at random moments of fits of several kinds, in one process.
SCRIPT = """
import os, random, signal, sys, time
from threading import Timer
from interrupts import Victim

rng = random.Random(0)
for name in sys.argv[1:]:
    victim = Victim(name)
    for _ in range(4):
        delay = rng.uniform(0.001, 0.1)
        timer = Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        began = time.monotonic()
        took = victim.fit_until_interrupted(timer.start) - began - delay
        assert took < 1.0, (name, took)
print("alive")
"""


@pytest.mark.skipif(os.name == "nt", reason="signals to oneself end the process there")
@pytest.mark.parametrize(
    "names",
    [
        [
            "TopPush hinge exact rbf 300",
            "TopPushK quadratic_hinge exact rbf 5000",
            "TauFPL hinge exact linear 300",
            "TopMeanK hinge pairwise rbf 300",
            "PatMat hinge primal linear 300",
            "AtTopCV",
        ],
        [
            "PatMat hinge exact rbf 300",
            "PatMatNP quadratic_hinge exact rbf 300",
            "PatMat quadratic_hinge exact linear 5000",
            "TauFPL quadratic_hinge pairwise rbf 300",
            "Grill",
            "GridSearchCV",
        ],
    ],
    ids=["one", "other"],
)
def test_interrupts_at_random_moments(names):
    """The large check is `tests/fuzz/interrupts.py`."""
    fuzz = Path(__file__).parent / "fuzz"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(fuzz), *sys.path])}
    command = [sys.executable, "-X", "faulthandler", "-c", SCRIPT, *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "alive\n"
