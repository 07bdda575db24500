"""What a model is worth, from definitions alone; nothing here comes from the package.

Distances are made of differences of samples, inner products and sums are in long double,
thresholds are found by sorting or bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

LONG = np.longdouble
#: A sum of products of doubles is known up to so much of the sum of their sizes.
ROUNDING = 2.0**-50
_BLOCK = 500


@dataclass(frozen=True)
class Function:
    """A kernel function, with its parameters as numbers."""

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    #: Whether entries of kernels of distances are long doubles, as those of others always are.
    long: bool = False

    @classmethod
    def of(cls, X, kernel="rbf", gamma="scale", degree=3, coef0=0.0, **_others: Any) -> Function:
        """The one that an estimator with these parameters is to use for the samples `X`."""
        if kernel == "precomputed":
            return cls("precomputed")
        if gamma == "auto":
            gamma = 1.0 / X.shape[1]
        elif gamma == "scale":
            variance = float(np.var(dense(X).astype(LONG)))
            gamma = 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
        return cls(str(kernel), float(gamma), degree, coef0)

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        """Entries for dense samples of doubles."""
        if self.long and self.name in ("rbf", "laplacian"):
            apart = np.zeros((len(X), len(Y)), dtype=LONG)
            for j in range(X.shape[1]):
                difference = np.abs(X[:, j].astype(LONG)[:, None] - Y[:, j].astype(LONG))
                apart += difference**2 if self.name == "rbf" else difference
            return np.exp(-LONG(self.gamma) * apart)
        if self.name == "rbf":
            return np.exp(-self.gamma * cdist(X, Y, "sqeuclidean"))
        if self.name == "laplacian":
            return np.exp(-self.gamma * cdist(X, Y, "cityblock"))
        products = X.astype(LONG) @ Y.astype(LONG).T
        if self.name == "linear":
            return products
        inner = self.gamma * products + self.coef0
        return inner**self.degree if self.name == "poly" else np.tanh(inner)


def dense(X) -> np.ndarray:
    """The samples as doubles."""
    return (X.toarray() if sp.issparse(X) else np.asarray(X)).astype(np.float64)


def gram(function: Function, X) -> np.ndarray:
    """The kernel matrix."""
    X = dense(X)
    return X if function.name == "precomputed" else function(X, X)


def scores_of(function: Function, X, rows, coefficients) -> tuple[np.ndarray, np.ndarray]:
    """Scores of all samples, and for each the sum of the sizes of its terms."""
    X, a = dense(X), np.asarray(coefficients, dtype=LONG)
    if function.name == "linear":  # by the weights, which is as exact and takes less
        # From the mean: sums that are equal but for rounding make nothing of a common offset.
        middle = X.mean(axis=0) if len(rows) else np.zeros(X.shape[1])
        X = X.astype(LONG) - middle
        w = a @ X[rows]
        sizes = np.abs(X) @ (np.abs(a) @ np.abs(X[rows]))
        return X @ w + middle @ w, sizes.astype(float)
    scores, sizes = np.zeros(len(X), dtype=LONG), np.zeros(len(X))
    for i in range(0, len(X), _BLOCK):
        part = slice(i, i + _BLOCK)
        if function.name == "precomputed":
            entries = X[part][:, rows].astype(LONG)
            largest = np.abs(entries)
        else:
            entries = largest = function(X[part], X[rows])
        if function.name in ("poly", "sigmoid"):  # whose inner products may cancel
            largest = np.abs(function(np.abs(X[part]), np.abs(X[rows])))
        # Long where it costs little: entries of kernels of distances are good to a double.
        weights = a if entries.dtype == LONG else a.astype(np.float64)
        scores[part] = entries @ weights
        sizes[part] = (largest @ np.abs(weights)).astype(float)
    return scores, sizes


@dataclass(frozen=True)
class Task:
    """The mathematical problem, apart from the kernel."""

    formulation: str
    positive: np.ndarray
    C: float
    surrogate: str
    K: int = 0
    tau: float = 0.0
    theta: float = 1.0

    @property
    def competing(self) -> np.ndarray:
        everyone = self.formulation in ("TopMeanK", "PatMat")
        return np.ones_like(self.positive) if everyone else ~self.positive

    @property
    def is_quantile(self) -> bool:
        return self.formulation in ("PatMat", "PatMatNP")

    @property
    def is_machine(self) -> bool:
        """Whether it is the support vector machine, whose negatives have losses, too."""
        return self.formulation == "SVM"

    @property
    def top(self) -> int:
        """How many of the largest scores make the threshold."""
        if self.formulation in ("TauFPL", "TopMeanK"):
            return max(1, round(int(np.sum(self.competing)) * self.tau))
        return self.K if self.formulation == "TopPushK" else 1

    def loss(self, x):
        """The surrogate at `x`."""
        hinge = np.maximum(0.0, 1.0 + x)
        return hinge**2 if self.surrogate == "quadratic_hinge" else hinge

    def losses(self, scores: np.ndarray, t):
        """The sum of all losses at a threshold."""
        total = np.sum(self.loss(t - scores[self.positive]))
        return total + np.sum(self.loss(scores[~self.positive] - t)) if self.is_machine else total

    def threshold_of(self, scores: np.ndarray):
        """The threshold at the scores of all samples."""
        if not self.is_machine:
            return self.threshold(scores[self.competing])
        positives, negatives = scores[self.positive], scores[~self.positive]
        if np.isinf(self.C):
            return (np.min(positives) + np.max(negatives)) / 2
        low = min(np.min(positives), np.min(negatives)) - LONG(1.0)
        high = max(np.max(positives), np.max(negatives)) + LONG(1.0)
        if self.surrogate == "hinge":
            # The slope is minus the number of negatives at first, and one more behind each kink.
            return np.sort(np.concatenate([positives - 1, negatives + 1]))[len(negatives) - 1]
        while low < (middle := (low + high) / 2) < high:
            rising = np.sum(np.maximum(0, 1 + middle - positives))
            falling = np.sum(np.maximum(0, 1 + negatives - middle))
            low, high = (low, middle) if rising >= falling else (middle, high)
        return high

    def threshold(self, competitors: np.ndarray):
        """The threshold at scores of the competitors."""
        if not self.is_quantile:
            return np.mean(np.sort(competitors)[-self.top :])
        total = LONG(len(competitors) * self.tau)
        highest = np.max(competitors) + LONG(1.0) / self.theta  # where the sum is 0
        root = np.sqrt(total) if self.surrogate == "quadratic_hinge" else total
        low, high = highest - root / self.theta, highest  # the largest term alone is enough
        while low < (middle := (low + high) / 2) < high:
            if np.sum(self.loss(self.theta * (competitors - middle))) >= total:
                low = middle
            else:
                high = middle
        return high


class Judgement(NamedTuple):
    """Values of a dual point and of its model.  `rounding` is what float64 makes of the gap."""

    primal: float
    dual: float
    gap: float
    threshold: float
    infeasibility: float
    rounding: float
    scores: np.ndarray
    sizes: np.ndarray


def judge(
    task: Task, function: Function, X, alpha, beta, zero: bool = False, weights=None
) -> Judgement:
    """Primal and dual value, feasibility and gap of a dual point, and of its ``w`` or zero.

    Where a linear model has `weights`, these are ``w``, and have to be those of the dual point.
    """
    alpha, beta = np.asarray(alpha, dtype=LONG), np.asarray(beta, dtype=LONG)
    a = np.zeros(len(task.positive), dtype=LONG)
    a[task.positive] += alpha
    a[task.competing] -= beta
    rows = np.flatnonzero(a)
    scores, sizes = scores_of(function, X, rows, a[rows])
    norm2, other = a[rows] @ scores[rows], 0.0
    if weights is not None and not zero:
        scores, norm2, other = _by_weights(X, rows, a[rows], np.asarray(weights, dtype=LONG))
    dual = _dual(task, norm2, alpha, beta)
    if zero:
        scores, norm2 = np.zeros_like(scores), LONG(0.0)
    t = task.threshold_of(scores)
    primal = _primal(task, norm2, scores, t)
    scale = max(abs(primal), abs(dual))
    gap = np.inf if not np.isfinite(scale) else (primal - dual) / scale if scale > 0.0 else 0.0
    unit = ROUNDING * (2.0**-11 if function.long else 1.0)
    error = 4.0 * unit * np.max(sizes, initial=0.0) * np.sum(np.abs(a))
    rounding = float(error / scale) if np.isfinite(scale) and scale > 0.0 else 0.0
    violation = max(other, _infeasibility(task, alpha, beta))
    return Judgement(
        float(primal), float(dual), float(gap), float(t), violation, rounding, scores, sizes
    )


def _by_weights(X, rows, a, w):
    """Scores of weights, their squared norm, and how far they are from those of the dual point."""
    X = dense(X)
    terms = np.abs(a) @ np.abs(X[rows]) + LONG(1e-300)
    middle = X.mean(axis=0)
    X = X.astype(LONG) - middle
    # Sums of alphas and betas that differ, which is judged elsewhere, let the origin take part, and
    # sums that are equal are so but for rounding: a feature may be 0 but for its middle.
    apart = np.abs(a @ X[rows] - w) - abs(np.sum(a)) * 2.0 * np.max(np.abs(X), axis=0)
    apart -= len(rows) * np.finfo(LONG).eps * (np.abs(a) @ np.abs(X[rows]))
    return X @ w + middle @ w, w @ w, float(np.max(apart / terms, initial=0.0))


def _primal(task: Task, norm2, scores: np.ndarray, t):
    """Primal value; for ``C = inf`` that of the least multiple of the model that is feasible."""
    if np.isinf(task.C):
        multiple = _least_multiple(task, scores)
        return LONG(0.5) * norm2 * multiple**2 if np.isfinite(multiple) else LONG(np.inf)
    return LONG(0.5) * norm2 + task.C * task.losses(scores, t)


def _least_multiple(task: Task, scores: np.ndarray):
    """The least c for which all losses of the scores times c are 0."""
    lowest, competitors = np.min(scores[task.positive]), scores[task.competing]
    if task.is_machine:
        apart = lowest - np.max(competitors)
        return LONG(2.0) / apart if apart > 0.0 else np.inf

    def margin(c):
        return c * lowest - task.threshold(c * competitors)

    if not task.is_quantile:
        return LONG(1.0) / margin(LONG(1.0)) if margin(LONG(1.0)) > 0.0 else np.inf
    # The margin is concave in c and negative at 0: if it reaches 1, then first between a
    # point below and the first one above.  Near 1, where an optimum has it, the grid is fine.
    low, high, before = LONG(0.0), LONG(1.0), -np.inf
    growth = 1e-7
    while (now := margin(high)) < 1.0:
        if now < before or high > 1e12:
            return np.inf
        low, before, high, growth = high, now, 1.0 + LONG(growth), 1.3 * growth
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if margin(middle) >= 1.0 else (middle, high)
    return high


def _dual(task: Task, norm2, alpha: np.ndarray, beta: np.ndarray):
    value = np.sum(alpha) - LONG(0.5) * norm2
    if task.surrogate == "quadratic_hinge":
        value -= np.sum(alpha**2) / (4 * LONG(task.C))
    if task.is_machine:
        value += np.sum(beta)
        if task.surrogate == "quadratic_hinge":
            value -= np.sum(beta**2) / (4 * LONG(task.C))
    if task.is_quantile:
        total, theta = LONG(len(beta) * task.tau), LONG(task.theta)
        value += np.sum(beta) / theta
        if task.surrogate == "hinge":
            value -= total / theta * np.max(beta)
        else:
            value -= np.sqrt(total * np.sum(beta**2)) / theta
    return value


def _infeasibility(task: Task, alpha: np.ndarray, beta: np.ndarray) -> float:
    """The largest violation of a constraint, relative to its terms."""
    total = max(np.sum(np.abs(alpha)), np.sum(np.abs(beta)))
    if total == 0.0:
        return 0.0
    found = [
        abs(np.sum(alpha) - np.sum(beta)) / total,
        -np.min(alpha) / np.max(np.abs(alpha), initial=1e-300),
        -np.min(beta) / np.max(np.abs(beta), initial=1e-300),
    ]
    if task.surrogate == "hinge" and np.isfinite(task.C):
        found.append(np.max(alpha) / task.C - 1.0)
        if task.is_machine:
            found.append(np.max(beta) / task.C - 1.0)
    if not (task.is_quantile or task.is_machine):
        found.append(np.max(beta) * task.top / total - 1.0)
    return float(max(0.0, *found))
