"""One problem from one seed: samples, labels, and an estimator with its parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from .clouds import LARGE, a_cloud
from .referee import Function, Task, gram

#: Sizes and their shares: columns are in single precision above 2,048 samples, and fits of
#: 4,096 and more begin with a subsample and work on active parts.
SIZES = (
    (4, 60, 0.46),
    (60, 300, 0.443),
    (300, 2048, 0.07),
    (2049, 4095, 0.012),
    (4096, 6000, 0.015),
)
FORMULATIONS = ("TopPush", "TopPushK", "TauFPL", "TopMeanK", "PatMat", "PatMatNP", "SVM")
#: The share of moderate problems whose samples have weights, which count copies.
WEIGHTED = 0.15
#: The dual of these has no more rows than so for a referee of long doubles, or a full matrix.
MODERATE = 300


@dataclass(frozen=True)
class Case:
    """A problem, what the referee needs to know of it, and how to say it in words."""

    seed: int
    kind: str
    words: str
    X: Any
    y: np.ndarray
    formulation: str
    parameters: dict[str, Any] = field(repr=False)
    function: Function = field(repr=False)
    task: Task = field(repr=False)
    #: Whether the kernel matrix has no negative eigenvalues beyond its rounding.
    definite: bool = True
    #: Copies of each sample; None where there is one of each.
    weights: np.ndarray | None = field(default=None, repr=False)

    @property
    def copies(self) -> np.ndarray:
        """The sample of each copy: what the referee judges is the problem of all copies."""
        return _copies(len(self.y), self.weights)

    @property
    def repeated(self) -> Any:
        """The samples, or their kernel matrix, with all copies."""
        return _repeated(self.X, self.copies, self.parameters["kernel"])

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={_short(v)}" for name, v in self.parameters.items())
        positives, (n, d) = int(np.sum(self.y)), self.X.shape
        return (
            f"seed {self.seed}: {n} x {d}, {positives} positive; {self.kind}: {self.words}\n"
            f"  {self.formulation}({arguments}), {threads_of(self.seed)} threads"
        )


def size_of(seed: int) -> int:
    """Number of samples of the case, without making it."""
    return _draw_size(np.random.default_rng(seed))


def threads_of(seed: int) -> int:
    """Threads that the fit may use."""
    return 2 if seed % 4 == 0 else 1


def make_case(seed: int) -> Case:
    """The problem of this seed."""
    rng = np.random.default_rng(seed)
    n = _draw_size(rng)
    positive = _labels(rng, n)
    d = _log_integer(rng, 1, 60 if n <= LARGE else 12)
    kind, samples, words = a_cloud(rng, positive, d)
    formulation = str(rng.choice(FORMULATIONS))
    weights = _weights(rng, positive)
    copies = _copies(n, weights)
    own = _own(rng, formulation, positive[copies])
    parameters = {**own, **_common(rng, n, d), "random_state": seed}
    X, stored = _stored(rng, samples, parameters["kernel"])
    X, function, definite, made = _kernel(rng, X, copies, parameters)
    C, surrogate = parameters["C"], parameters["surrogate"]
    made += "" if weights is None else f"; {len(copies)} copies"
    return Case(
        seed,
        kind,
        f"{words}; {stored}{made}",
        X,
        positive.astype(int),
        formulation,
        parameters,
        function,
        Task(formulation, positive[copies], C, surrogate, **_own_of(parameters)),
        definite,
        weights,
    )


def _draw_size(rng) -> int:
    low, high, _ = SIZES[rng.choice(len(SIZES), p=[share for *_, share in SIZES])]
    return _log_integer(rng, low, high)


def _log_integer(rng, low: int, high: int) -> int:
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))


def _labels(rng, n: int) -> np.ndarray:
    """Which samples are positive: one, all but one, or any share."""
    draw = rng.random() if n <= LARGE else 1.0
    count = 1 if draw < 0.08 else n - 1 if draw < 0.14 else round(n * rng.uniform(0.02, 0.7))
    positive = np.zeros(n, dtype=bool)
    positive[rng.choice(n, min(n - 1, max(1, count)), replace=False)] = True
    return positive


def _weights(rng, positive: np.ndarray) -> np.ndarray | None:
    """How many copies there are of each sample, none of some; mostly nothing of the kind."""
    if rng.random() >= WEIGHTED or len(positive) > MODERATE:
        return None
    weights = rng.integers(0, 4, len(positive)).astype(float)
    for kind in (positive, ~positive):  # of which there has to be one
        weights[np.flatnonzero(kind)[0]] = rng.integers(1, 6)
    return weights


def _copies(n: int, weights: np.ndarray | None) -> np.ndarray:
    return np.arange(n) if weights is None else np.repeat(np.arange(n), weights.astype(int))


def _repeated(X, copies: np.ndarray, kernel: str) -> Any:
    return X[np.ix_(copies, copies)] if kernel == "precomputed" else X[copies]


def _own(rng, formulation: str, positive: np.ndarray) -> dict[str, Any]:
    """The parameters of the formulation; K is too large now and then."""
    negatives = int(np.sum(~positive))
    if formulation in ("TopPush", "SVM"):
        return {}
    if formulation == "TopPushK":
        too_many = rng.random() < 0.03
        return {"K": negatives + 1 if too_many else _log_integer(rng, 1, negatives)}
    tau = 10.0 ** rng.uniform(-3, -0.05)
    if formulation in ("TopMeanK", "PatMat") and rng.random() < 0.7:
        # Below the share of positives the optimum is w = 0, which is soon found.
        tau = rng.uniform(np.mean(positive), 1.0)
    tau = float(np.clip(tau, 1e-3, 0.999))
    if formulation in ("TauFPL", "TopMeanK"):
        return {"tau": tau}
    return {"tau": tau, "theta": float(10.0 ** rng.uniform(-2, 2))}


def _own_of(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: parameters[name] for name in ("K", "tau", "theta") if name in parameters}


def _common(rng, n: int, d: int) -> dict[str, Any]:
    """The parameters that all formulations share."""
    # Large fits that end at once show nothing, and hard ones take minutes.
    least, most = (-4, 6) if n <= MODERATE else (-4, 4) if n <= LARGE else (-2, 1)
    kernels = ["rbf", "linear", "laplacian", "poly", "sigmoid", "precomputed"]
    shares = [0.55, 0.2, 0.07, 0.05, 0.03, 0.1] if n <= MODERATE else [0.8, 0.15, 0.05, 0, 0, 0]
    kernel = str(rng.choice(kernels, p=shares))
    draw, solver = rng.random(), "exact"
    if kernel == "linear" and draw < 0.25:
        solver = "primal"
    elif n <= MODERATE and draw > 0.92:
        solver = "pairwise"
    parameters = {
        "C": float(np.inf if rng.random() < 0.07 else 10.0 ** rng.uniform(least, most)),
        "surrogate": str(rng.choice(["hinge", "quadratic_hinge"])),
        "kernel": kernel,
        "gamma": _gamma(rng, n, d),
        "solver": solver,
        "tol": 1e-4
        if rng.random() < (0.4 if n <= LARGE else 0.8)
        else float(10.0 ** rng.uniform(-6, -2)),
    }
    if kernel == "poly":
        parameters |= {"degree": int(rng.integers(1, 5)), "coef0": float(rng.choice([0.0, 1.0]))}
    if rng.random() < 0.25:  # columns are evicted
        parameters["cache_size"] = float(10.0 ** rng.uniform(-3, 0)) * max(1.0, n / 1000)
    return parameters


def _gamma(rng, n: int, d: int) -> str | float:
    if n > LARGE and rng.random() < 0.5:
        return 1.0 / d  # that of ordinary features; "scale" follows the uneven ones
    draw = rng.random()
    if draw < 0.45:
        return "scale" if draw < 0.33 else "auto"
    return float(10.0 ** (rng.uniform(-2, 1) if draw < 0.8 else rng.uniform(-6, 3)) / d)


def _stored(rng, X: np.ndarray, kernel: str) -> tuple[Any, str]:
    """The samples in a form that the kernel takes, and its name."""
    draw = rng.random()
    if kernel in ("linear", "rbf", "poly", "sigmoid") and draw < 0.15:
        dtype = rng.choice(["float64", "float32"])
        return sp.csr_matrix(X.astype(dtype)), f"CSR, {dtype}"
    if draw < 0.35:
        return X.astype(np.float32), "float32"
    return (np.asfortranarray(X), "Fortran order") if draw < 0.45 else (X, "float64")


def _kernel(rng, X, copies, parameters: dict[str, Any]) -> tuple[Any, Function, bool, str]:
    """What the estimator is given, the kernel function, whether it is definite, words."""
    function = Function.of(X[copies], **parameters)
    if function.name != "precomputed":
        return X, function, function.name != "sigmoid", ""
    parameters.pop("gamma")
    base = Function.of(
        X, **{**parameters, "kernel": rng.choice(["linear", "rbf"]), "gamma": "scale"}
    )
    K = gram(base, X).astype(np.float64)
    how = str(rng.choice(["float64", "float32", "disturbed"]))
    if how == "float32":
        K = K.astype(np.float32)
    elif how == "disturbed":
        noise = rng.normal(size=K.shape) * 10.0 ** rng.uniform(-12, -2) * np.max(np.abs(K))
        K += noise + noise.T
    least = np.linalg.eigvalsh(K.astype(np.float64))[0]
    definite = bool(least >= -1e-14 * len(K) * np.max(np.abs(K)))
    return K, function, definite, f"; its {base.name} kernel, {how}"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
