"""The paper's descent on one kernel matrix in single precision, shared by the fits of a split."""

import numpy as np
import pytest

from attop.experiments.kernels import SplitKernel
from attop.experiments.results import Results
from attop.experiments.runner import run_experiment
from attop.experiments.specification import parse_experiment
from attop.experiments.store import Store
from attop.kernels.functions import Kernel

SPECIFICATION = """\
name = "descent"
metrics = ["tpr_at_fpr_0.05", "roc_auc"]
datasets = ["Ionosphere"]

[solver]
name = "pairwise"
cache_size = {megabytes}
options = {{n_epochs = 20, gap_reduction = 1e-4}}

[[methods]]
method = "SVM"
lambda = 1e-2

[[methods]]
method = "PatMatNP"
tau = 0.05
grid = {{theta = [0.1, 1.0], lambda = [1e-2]}}

[[methods]]
method = "TopPushK"
grid = {{K = [5, 100000], lambda = [1e-2, 1e-1]}}
"""


def samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 5)).astype(np.float32), rng.normal(size=(30, 5)).astype(np.float32)


def test_the_matrix_is_that_of_the_kernel_to_single_precision():
    X, other = samples()
    kernel = SplitKernel(Kernel("rbf", gamma=0.2), X, other, 4 * 40 * 40)
    assert kernel.is_single
    assert kernel.training.dtype == np.float32
    np.testing.assert_allclose(kernel.training, kernel.kernel(X, X), atol=1e-5)
    np.testing.assert_array_equal(np.diagonal(kernel.training), 1.0)
    assert not SplitKernel(kernel.kernel, X, other, 8 * 40 * 40).is_single
    assert not SplitKernel(kernel.kernel, X, other, 3 * 40 * 40).remembers_training


def test_scores_of_many_models_are_those_of_each():
    X, other = samples()
    kernel = SplitKernel(Kernel("rbf", gamma=0.2), X, other, 10**6)
    rng = np.random.default_rng(1)
    models = [(np.array([3, 7, 20]), rng.normal(size=3)), (np.array([0, 7]), rng.normal(size=2))]
    found = kernel.scores_of_many(models)
    for scores, (support, coefficients) in zip(found, models, strict=True):
        expected = kernel.scores(support, coefficients)
        np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same experiment with room for the matrix in single, and in double, precision."""
    found = []
    for megabytes in (0.4, 100):  # 198 training samples
        folder = tmp_path_factory.mktemp("store")
        n_bytes = 4.5 * 198**2 / 2**20 if megabytes < 1 else megabytes
        run_experiment(parse_experiment(SPECIFICATION.format(megabytes=n_bytes)), Store(folder))
        found.append(Results(Store(folder)))
    return found


def test_single_precision_changes_no_outcome(both):
    single, double = ({_place(one): one for one in results.records} for results in both)
    assert single.keys() == double.keys()
    for place, record in single.items():
        other = double[place]
        assert bool(record["error"]) == bool(other["error"])
        if not record["error"]:
            # The descent draws the same variables; rounding may end it a look earlier or later.
            assert record["objective"] == pytest.approx(other["objective"], rel=0.02)
            assert record["test"]["roc_auc"] == pytest.approx(other["test"]["roc_auc"], abs=0.02)


def test_what_cannot_be_fitted_fails_alone(both):
    errors = [record["error"] for record in both[0].records if record["error"]]
    assert len(errors) == 2
    assert all("'K'" in error for error in errors)


def _place(record):
    return record["label"], tuple(sorted(record["parameters"].items()))
