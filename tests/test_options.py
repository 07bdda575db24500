"""What the estimators promise about options, seeds and advice."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from attop import Grill, TauFPL, TopPush
from attop._verdict import advice
from attop.solvers.solution import Status
from conftest import two_clouds

X, POSITIVE = two_clouds(30, 60, distance=1.5)


class Unseen:
    """Samples that nobody may look at."""

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("looked at the samples")


@pytest.mark.parametrize(
    ("estimator", "option", "message"),
    [
        (TopPush(), "colums", r"solver='auto', be absent: it has none\. Got 'colums'"),
        (TopPush(solver="exact"), "columns", r"solver='exact', be absent.*Got 'columns'"),
        (TopPush(solver="pairwise"), "n_epoch", r"among 'n_epochs', .*Did you mean 'n_epochs'\?"),
        (TopPush(solver="pairwise"), "tol", r"'tol' is a parameter of TopPush itself"),
        (TopPush(solver="primal", kernel="linear"), "xyz", r"There are 'method', 'check_every'"),
        (Grill(), "starts", r"of Grill must.*Did you mean 'n_starts'\?"),
    ],
)
def test_unknown_solver_options_are_an_error_before_any_work(estimator, option, message):
    with pytest.raises(ValueError, match=message):
        clone(estimator).set_params(solver_options={option: 1}).fit(Unseen(), POSITIVE)


@pytest.mark.parametrize(
    "estimator",
    [
        TauFPL(tau=0.1),
        TauFPL(tau=0.1, solver="pairwise", solver_options={"n_epochs": 2}),
        TauFPL(tau=0.1, approximation="nystroem", n_components=20),
        TauFPL(tau=0.1, approximation="rbf_sampler", n_components=20, solver="primal"),
        Grill(tau=0.1, solver_options={"n_starts": 4}),
    ],
    ids=lambda estimator: (
        f"{type(estimator).__name__}-{estimator.solver}-{estimator.approximation}"
    ),
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_without_a_seed_the_same_samples_give_the_same_model(estimator):
    samples, positive = two_clouds(60, 90, distance=1.0, seed=5)
    models = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002 - the global generator must not matter
        models.append(clone(estimator).fit(samples, positive))
    models.append(clone(estimator).set_params(random_state=0).fit(samples, positive))
    scores = [model.decision_function(samples) for model in models]
    assert_array_equal(scores[0], scores[1])
    assert_array_equal(scores[0], scores[2])


def test_without_a_seed_a_subsample_is_the_same():
    samples, positive = two_clouds(1500, 3500, distance=4.0, seed=5)
    models = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002
        models.append(TauFPL(tau=0.1, kernel="linear").fit(samples, positive))
    assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)


@pytest.mark.parametrize("status", [Status.STALLED, Status.PRECISION])
def test_nobody_is_sent_to_the_solver_that_he_uses(status):
    for solver in ("auto", "exact"):
        assert "solver" not in advice(status, solver)
        assert "Scale the features" in advice(status, solver)
    for solver in ("pairwise", "primal"):
        assert 'Use solver="exact"' in advice(status, solver)


def test_a_limit_is_answered_by_that_limit():
    for solver in ("auto", "exact", "pairwise", "primal"):
        assert "max_iter" in advice(Status.MAX_ITER, solver)
        assert "max_time" in advice(Status.MAX_TIME, solver)
        assert "finite C" in advice(Status.UNBOUNDED, solver)
