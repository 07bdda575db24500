"""Kernel matrices on a device: the same numbers as on the CPU, in whichever framework is there.

The code is written for the array API.  Here it runs on NumPy, on the strict namespace that has
nothing beyond the standard, and on PyTorch where that is installed; the tests marked ``gpu`` run
where there is one.
"""

from __future__ import annotations

import importlib
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from attop import SVM, PatMatNP, TauFPL, TopPush, pipeline
from attop.formulations import FORMULATIONS
from attop.kernels.device.arrays import Device, as_numpy, find_device
from attop.kernels.device.dense import DeviceDense
from attop.kernels.device.gram import DeviceGram, DeviceScores, PlacedGram, expansion
from attop.kernels.device.store import DeviceStore
from attop.kernels.functions import (
    FunctionKernel,
    Gaussian,
    Gram,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from attop.kernels.stores import open_columns
from attop.model_selection import fit_path
from attop.model_selection._shared import SharedFits
from attop.solvers.exact import Tuning, solve
from attop.solvers.primal.driver import solve as solve_primal
from attop.solvers.primal.on_device import DeviceSamples, samples_of
from attop.solvers.primal.samples import Samples
from attop.solvers.solution import Status
from conftest import CASES, OPTIMA, PARAMETERS, has_gpu, kernel_matrix, two_clouds

X, POSITIVE = two_clouds(60, 140, 5, seed=11)
EVERYONE = np.arange(len(X))
rng = np.random.default_rng(0)


def _squared(a, b):
    return (a @ b.T + 1.0) ** 2


def _only_numpy(a, b):
    return np.dot(np.asarray(a, dtype=np.float64), np.asarray(b).T)


KERNELS = [
    Gaussian(0.3),
    Polynomial(0.2, 3, 1.0),
    Sigmoid(0.01, 0.1),
    Laplacian(0.3),
    FunctionKernel(_squared),
    FunctionKernel(_only_numpy),
]
NAMES = ["rbf", "poly", "sigmoid", "laplacian", "callable", "callable of NumPy"]

#: All fits take the way of large problems, with active sets as soon as some variables are free.
LARGE = Tuning(matrix_up_to=0, guesses_from=16, on_device_from=16, products=1e300)


def made(framework, n_bytes=2**28):
    """A device that is none, for the arrays of a framework."""
    if framework == "numpy":
        if np.lib.NumpyVersion(np.__version__) < "2.1.0":
            pytest.skip("this NumPy is older than the array API")
        return Device(np, "cpu", None, n_bytes)
    if framework == "strict":
        return Device(pytest.importorskip("array_api_strict"), "cpu", None, n_bytes)
    torch = pytest.importorskip("torch")
    namespace = pytest.importorskip("array_api_compat.torch")
    return Device(namespace, "cpu", torch.device("cpu"), n_bytes)


@pytest.fixture(autouse=True)
def one_thread():
    """Of BLAS: others would wait for each other on matrices as small as these."""
    with threadpool_limits(1):
        yield


@pytest.fixture(params=["numpy", "strict", "torch"])
def device(request):
    return made(request.param)


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_entries_are_those_of_the_kernel(device, kernel):
    gram, host = DeviceGram(kernel, X, device), Gram(kernel, X)
    rows, columns = EVERYONE[:40], EVERYONE[::3]
    expected = host.block(rows, columns)
    scale = np.max(np.abs(expected))
    assert_allclose(device.get(gram.entries(rows, columns)), expected, atol=1e-13 * scale)
    whole, rounding = gram.whole(EVERYONE[::-1])
    assert_allclose(whole, kernel_matrix(host)[::-1, ::-1], atol=1e-13 * scale)
    assert rounding.relative >= 0.0


def test_entries_of_samples_far_out_are_as_right_as_any(device):
    far = X.copy()
    far[[3, 50, 51]] = -99999.0
    far[51, 0] += 1.0
    kernel = Gaussian(0.3)
    gram, exact = DeviceGram(kernel, far, device), kernel_matrix(Gram(kernel, far))
    assert_allclose(device.get(gram.entries(EVERYONE)), exact, atol=1e-9)
    for dtype in (np.float32, np.float64):
        store = DeviceStore(gram, dtype)
        assert_allclose(store.block(EVERYONE, EVERYONE), exact - 1.0, atol=1e-6)


def test_sparse_samples_are_those_of_the_dense_array(device):
    few = np.where(np.abs(X) > 1.0, X, 0.0)
    dense, sparse = (DeviceGram(Gaussian(0.3), some, device) for some in (few, sp.csr_array(few)))
    expected = device.get(dense.entries(EVERYONE))
    assert_allclose(device.get(sparse.entries(EVERYONE)), expected, atol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_scores_are_sums_of_entries(device, kernel):
    gram = DeviceGram(kernel, X, device)
    support, coefficients = EVERYONE[5::7], rng.normal(size=len(EVERYONE[5::7]))
    expected = kernel_matrix(Gram(kernel, X))[:, support] @ coefficients
    scale = np.max(np.abs(expected))
    assert_allclose(gram.sums(EVERYONE, support, coefficients), expected, atol=1e-12 * scale)
    some = gram.sums(EVERYONE[9:20], support, coefficients)
    assert_allclose(some, expected[9:20], atol=1e-12 * scale)
    assert_array_equal(gram.sums(EVERYONE, support[:0], coefficients[:0]), 0.0)
    new = X[::2] + 0.1
    scores = expansion(kernel, device, new, X[support], coefficients)
    assert_allclose(scores, kernel(new, X[support]) @ coefficients, atol=1e-12 * scale)
    assert_allclose(DeviceScores(gram, new).sums(support, coefficients), scores, atol=1e-12 * scale)
    assert_array_equal(DeviceScores(gram, new).sums(support[:0], coefficients[:0]), 0.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
@pytest.mark.parametrize(("dtype", "precision"), [(np.float64, 1e-12), (np.float32, 2e-6)])
def test_columns_are_those_of_the_kernel(device, kernel, dtype, precision):
    store = DeviceStore(DeviceGram(kernel, X, device), dtype)
    expected = kernel_matrix(Gram(kernel, X)) - store.shift
    precision *= np.max(np.abs(expected))
    rows = np.array([3, 150, 9, 77])
    assert_allclose(store.block(rows, EVERYONE[::4]), expected[rows][:, ::4], atol=precision)
    assert_allclose(store.submatrix(rows), expected[np.ix_(rows, rows)], atol=precision)
    assert_allclose(store.diagonal(rows), np.diag(expected)[rows], atol=precision)
    assert store.cached(rows).all()
    squares = np.diag(expected) + expected[0, 0] - 2.0 * expected[0]
    assert_allclose(store.extent, np.max(np.abs(squares)), rtol=1e-5, atol=1e-5)
    part, some = store.subset(EVERYONE[20:90]), np.array([9, 60])
    inner = expected[20:90, 20:90][np.ix_(some, some)]
    assert_allclose(part.submatrix(some), inner, atol=precision)


@pytest.mark.parametrize("room", [1, 30, 200])
def test_products_do_not_depend_on_what_fits(device, room):
    kernel = Gaussian(0.3)
    weights = rng.normal(size=120) * rng.integers(0, 2, 120)
    rows = rng.choice(len(X), 120, replace=False)
    store = DeviceStore(DeviceGram(kernel, X, device), np.float64, least=room, n_bytes=0)
    expected = kernel_matrix(Gram(kernel, X)) - 1.0
    out = np.ones(len(X))
    for _ in range(2):
        store.add_product(rows, weights, out)
    assert_allclose(out, 1.0 + 2.0 * weights @ expected[rows], atol=1e-10)
    assert_allclose(store.submatrix(rows), expected[np.ix_(rows, rows)], atol=1e-12)


def test_less_memory_than_promised_makes_blocks(capsys):
    class Scarce(Device):
        """Has room for a hundred columns, whatever it says."""

        def empty(self, shape, dtype):
            if shape[0] > 100:
                raise MemoryError("none left")
            return super().empty(shape, dtype)

    made("numpy")  # or skip
    store = DeviceStore(DeviceGram(Gaussian(0.3), X, Scarce(np, "cpu")), np.float64, least=10)
    out = np.zeros(len(X))
    store.add_product(EVERYONE, np.ones(len(X)), out)
    assert_allclose(out, np.sum(kernel_matrix(Gram(Gaussian(0.3), X)) - 1.0, axis=0), atol=1e-10)
    assert "100 kernel columns at a time" in capsys.readouterr().out


def test_memory_is_stated_before_it_is_taken(device, capsys):
    gram = DeviceGram(Gaussian(0.3), X, device)
    DeviceStore(gram, np.float32, verbose=1)
    assert "the kernel matrix of 200 samples may take" in capsys.readouterr().out


def test_matrices_of_blocks_are_solved(device):
    matrix = kernel_matrix(Gram(Gaussian(0.3), X))
    own, added = np.full(len(X), 0.1), rng.random(20)
    dense = DeviceDense(device.put(matrix), own, device)
    x = rng.normal(size=len(X))
    assert_allclose(dense.times(x), matrix @ x + own * x, atol=1e-10)
    some = EVERYONE[::10]
    inner = matrix[np.ix_(some, some)] + 2.0 + np.diag(own[some] + added)
    solve_some = dense.solver(some, added, 2.0, precise=True)
    for right in (rng.normal(size=20), rng.normal(size=(20, 2))):
        assert_allclose(inner @ solve_some(right), right, atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError):
        DeviceDense(device.put(-matrix), own, device).solver(some, added, 0.0, precise=True)


@pytest.mark.parametrize(("name", "surrogate"), CASES)
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_optima_are_those_of_the_cpu(name, surrogate, C):
    weights = rng.integers(1, 4, len(X)).astype(np.float64)
    for sample_weight in (None, weights):
        problem = FORMULATIONS[name].problem(
            POSITIVE, C, surrogate, **PARAMETERS[name], sample_weight=sample_weight
        )
        for kernel in (Gaussian(0.3), Polynomial(0.2, 3, 1.0)):
            expected = solve(problem, Gram(kernel, X), tol=1e-6)
            found = solve(problem, DeviceGram(kernel, X, made("numpy")), tol=1e-6, tuning=LARGE)
            assert found.status is Status.CONVERGED
            assert_allclose(found.certificate.primal, expected.certificate.primal, rtol=1e-5)


@pytest.mark.parametrize("name", ["TopPush", "TauFPL", "PatMatNP", "SVM"])
def test_large_problems_and_hard_margins(device, name):
    X, positive = two_clouds(300, 900, 6, distance=0.8, seed=3)
    tuning = replace(LARGE, parts_from=500, whole_up_to=64, violators=64)
    for C in (1.0, np.inf):
        problem = FORMULATIONS[name].problem(positive, C, "hinge", **PARAMETERS[name])
        gram = DeviceGram(Gaussian(0.5), X, device)
        found = solve(problem, gram, tol=1e-4, tuning=tuning)
        assert found.certificate.certifies(1e-4)
        expected = solve(problem, Gram(Gaussian(0.5), X), tol=1e-4)
        assert_allclose(found.certificate.primal, expected.certificate.primal, rtol=2e-4)


@pytest.mark.parametrize("case", [row for row in OPTIMA if row["kernel"] == "rbf"][::3])
def test_ionosphere(case):
    from attop.datasets import load_ionosphere

    samples, y = load_ionosphere(return_X_y=True)
    formulation = FORMULATIONS[case["formulation"]]
    parameters = {
        name: int(case[name]) if name == "K" else float(case[name])
        for name in formulation.parameters
        if case.get(name)
    }
    positive = y == np.unique(y)[1]
    problem = formulation.problem(positive, float(case["C"]), case["surrogate"], **parameters)
    gram = DeviceGram(Gaussian(float(case["gamma"])), samples, made("numpy"))
    found = solve(problem, gram, tol=1e-6, tuning=LARGE)
    assert_allclose(found.certificate.primal, float(case["objective"]), rtol=1e-5)


def test_a_matrix_of_entries_is_one_of_samples(device):
    matrix = kernel_matrix(Gram(Gaussian(0.3), X))
    problem = FORMULATIONS["TopPush"].problem(POSITIVE, 1.0, "hinge")
    gram = DeviceGram(Precomputed(), matrix, device)
    found = solve(problem, gram, tol=1e-6, tuning=LARGE)
    expected = solve(problem, Gram(Gaussian(0.3), X), tol=1e-6)
    assert_allclose(found.certificate.primal, expected.certificate.primal, rtol=1e-5)
    assert_allclose(
        open_columns(gram).subset(EVERYONE[5:50]).submatrix(np.arange(9)), matrix[5:14, 5:14]
    )


@pytest.mark.parametrize("estimator", [TopPush(), TauFPL(tau=0.1), PatMatNP(), SVM()], ids=str)
def test_models_are_those_of_the_cpu(estimator):
    """The whole way from samples to a model, on a device of NumPy."""
    data = pipeline.prepare(estimator, X, POSITIVE)
    on_device = replace(data, device=made("numpy"))
    assert isinstance(on_device.gram, DeviceGram)
    problem = pipeline.problem_of(estimator, data)
    solution = pipeline.solve(estimator, problem, on_device.gram)
    pipeline.finish(estimator, on_device, problem, solution)
    reference = type(estimator)(**estimator.get_params()).fit(X, POSITIVE)
    assert isinstance(estimator.support_vectors_, np.ndarray)
    assert_allclose(estimator.objective_, reference.objective_, rtol=2e-4)
    assert_allclose(estimator.top_score(X), reference.top_score(X), atol=0.1)


def test_fits_that_share_a_matrix():
    model, device = TopPush(tol=1e-5), made("numpy")
    data = replace(pipeline.prepare(model, X, POSITIVE), device=device)
    assert data.gram_of(Gaussian(2.0)).kernel == Gaussian(2.0)
    with SharedFits(data.gram, 1e-5, 100.0) as shared:
        for C in (0.1, 1.0, 10.0):
            model.set_params(C=C)
            shared.fit(model, data, pipeline.problem_of(model, data))
            expected = TopPush(C=C, tol=1e-5).fit(X, POSITIVE).objective_
            assert_allclose(model.objective_, expected, rtol=2e-5)


def test_products_of_linear_models_are_those_of_the_cpu(device):
    host, there = Samples(X), DeviceSamples(X, device)
    w, c, rows = rng.normal(size=5), rng.random(30), rng.permutation(len(X))[:30]
    every = rng.normal(size=len(X))
    for some, other in (host, there), (host.take(rows[:9]), there.take(rows[:9])):
        assert_allclose(other.scores(w), some.scores(w), atol=1e-12)
    assert_allclose(there.scores_of(rows, w), host.scores_of(rows, w), atol=1e-12)
    assert_allclose(there.scores_of(rows[:0], w), np.empty(0))
    assert_allclose(there.combine_rows(rows, c), host.combine_rows(rows, c), atol=1e-12)
    assert_allclose(there.combine(every), host.combine(every), atol=1e-11)
    assert_allclose(there.gram(rows, c), host.gram(rows, c), atol=1e-11)
    assert_allclose(there.squares(rows, c), host.squares(rows, c), atol=1e-11)


@pytest.mark.parametrize(("name", "surrogate"), CASES)
def test_linear_optima_are_those_of_the_cpu(device, name, surrogate):
    samples, positive = two_clouds(300, 900, 6, distance=0.8, seed=3)
    problem = FORMULATIONS[name].problem(positive, 1.0, surrogate, **PARAMETERS[name])
    gram = DeviceGram.where(Linear(), samples.astype(np.float32), device)
    found = solve_primal(problem, gram, tol=1e-6)
    expected = solve_primal(problem, Gram(Linear(), gram.X), tol=1e-6)
    assert found.status is Status.CONVERGED
    assert_allclose(found.certificate.primal, expected.certificate.primal, rtol=1e-5)


def test_where_linear_models_are_fitted():
    """On the device if they are dense and fit there; what has no device is as it always was."""
    assert type(DeviceGram.where(Gaussian(1.0), X, None)) is Gram
    model, device = TopPush(kernel="linear"), made("numpy")
    data = replace(pipeline.prepare(model, X, POSITIVE), device=device)
    assert isinstance(samples_of(data.gram), DeviceSamples)
    features = TopPush(kernel="rbf", approximation="nystroem", n_components=9)
    data = replace(pipeline.prepare(features, X, POSITIVE), device=device)
    assert isinstance(samples_of(data.gram), DeviceSamples)
    assert type(samples_of(PlacedGram(Linear(), X, made("numpy", n_bytes=100)))) is Samples
    assert type(DeviceGram.where(Linear(), sp.csr_array(X), device)) is Gram


@pytest.mark.parametrize("value", ["gpu", "cuda:", "cuda:x", 0, "CUDA"])
def test_what_a_device_may_be(value):
    with pytest.raises(ValueError, match="The 'device' parameter of TopPush must be None, 'cpu'"):
        TopPush(device=value).fit(X, POSITIVE)


@pytest.mark.skipif(has_gpu(), reason="there is one")
def test_what_is_missing_is_said():
    model = TopPush(device="cuda")
    with pytest.raises((ImportError, RuntimeError), match="device='cuda' needs"):
        model.fit(X, POSITIVE)
    assert not hasattr(model, "alpha_")
    assert TopPush(device="cpu").fit(X, POSITIVE).status_ is Status.CONVERGED


def test_failures_of_a_device_are_said():
    device = Device(np, "cuda:7")

    class OutOfMemoryError(RuntimeError):
        """As PyTorch has it."""

    class CUDARuntimeError(RuntimeError):
        """As CuPy has it."""

    def work(error):
        with device.guarded():
            raise error

    with pytest.raises(MemoryError, match="memory of device='cuda:7' does not do"):
        work(OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(RuntimeError, match="The device 'cuda:7' failed, or was lost"):
        work(CUDARuntimeError("cudaErrorDevicesUnavailable"))
    with pytest.raises(ZeroDivisionError):
        work(ZeroDivisionError())


def test_samples_may_be_those_of_a_framework():
    assert as_numpy(X) is X
    torch = pytest.importorskip("torch")
    model = TopPush().fit(torch.asarray(X), torch.asarray(POSITIVE))
    assert_array_equal(model.alpha_, TopPush().fit(X, POSITIVE).alpha_)
    assert_array_equal(model.top_score(torch.asarray(X)), model.top_score(X))


def test_some_samples_stay_on_the_device():
    gram = DeviceGram(Gaussian(0.3), X, made("numpy")).subset(EVERYONE[::2])
    assert isinstance(gram, DeviceGram)
    expected = kernel_matrix(Gram(Gaussian(0.3), X[::2]))
    assert_allclose(gram.whole()[0], expected, atol=1e-13)


def test_a_matrix_can_be_sent_to_another_process():
    device = Device(np, "cpu")
    gram = DeviceGram(Gaussian(0.3), X, device)
    gram.entries(EVERYONE)
    sent = pickle.loads(pickle.dumps(gram))
    assert_array_equal(sent.X, X)


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu(), reason="needs a GPU")
@pytest.mark.parametrize("estimator", [TopPush(), TauFPL(tau=0.1), PatMatNP(), SVM()], ids=str)
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic_hinge"])
def test_fits_on_a_gpu(estimator, surrogate):
    X, positive = two_clouds(2000, 6000, 6, distance=0.8, seed=3)
    parameters = estimator.get_params() | {"surrogate": surrogate}
    found = type(estimator)(**parameters | {"device": "cuda"}).fit(X, positive)
    expected = type(estimator)(**parameters).fit(X, positive)
    assert found.dual_gap_ <= 1e-4
    assert_allclose(found.objective_, expected.objective_, rtol=2e-4)
    scores = type(expected).top_score(expected, X)
    assert_allclose(expected.set_params(device="cuda").top_score(X), scores, atol=1e-9)


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu(), reason="needs a GPU")
def test_paths_and_samples_on_a_gpu():
    device = find_device("cuda")
    path = fit_path(TopPush(device="cuda"), X, POSITIVE, "C", [0.1, 1.0, 10.0])
    assert np.all(path.collect("dual_gap_") <= 1e-4)
    placed = device.put(X)
    model = TopPush(device="cuda").fit(placed, POSITIVE)
    assert_allclose(model.top_score(placed), model.top_score(X), atol=1e-12)
    with pytest.raises(RuntimeError, match="must be 'cuda' or one of"):
        TopPush(device="cuda:99").fit(X, POSITIVE)
    assert importlib.util.find_spec("torch") or importlib.util.find_spec("cupy")
