"""What can be fitted: the methods of this library and their peers, on a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from attop import SVM, PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
from suite.data import DATASETS

#: The methods of the paper: those with a dual whose competitors are the negatives, and the SVM.
METHODS = {
    "TopPush": TopPush(),
    "TopPushK(5)": TopPushK(5),
    "TopPushK(10)": TopPushK(10),
    "TauFPL(0.01)": TauFPL(0.01),
    "TauFPL(0.05)": TauFPL(0.05),
    "PatMatNP(0.01)": PatMatNP(0.01),
    "PatMatNP(0.05)": PatMatNP(0.05),
    "SVM": SVM(),
}
#: Those whose positives compete with themselves.
OF_ALL = {"PatMat(0.05)": PatMat(0.05), "TopMeanK(0.05)": TopMeanK(0.05)}
OURS = METHODS | OF_ALL
INTELEX = "SVC of scikit-learn-intelex"
SKLEARN = "SVC of scikit-learn"
LINEAR_SVC = "LinearSVC of scikit-learn"
LOGISTIC = "LogisticRegression of scikit-learn"
#: What LinearSVC calls the surrogates.
_LOSSES = {"hinge": "hinge", "quadratic_hinge": "squared_hinge"}
#: Where the peers stop: their own default, a violation of the conditions of optimality.
SVC_TOL = 1e-3
#: Megabytes for kernel columns, for this library and for its peers.
CACHE_SIZE = 2000.0


@dataclass(frozen=True)
class Case:
    """One fit: `method` is a key of `OURS` or the name of a peer."""

    data: str
    n: int
    method: str
    lam: float
    surrogate: str = "hinge"
    kernel: str = "rbf"
    tol: float = 1e-4
    cache_size: float = CACHE_SIZE

    def __str__(self) -> str:
        surrogate = "" if self.surrogate == "hinge" else f", {self.surrogate}"
        return f"{self.data} {self.n}, {self.method}{surrogate}, lambda {self.lam:g}"


def estimator_of(case: Case, positive, max_time: float | None = None) -> Any:
    """The estimator of a case, not fitted.

    ``C = 1 / (lambda m)`` makes lambda mean the same for all: `m` is the number of terms in
    the sum of losses, all samples for an SVM, the positives for classifiers at the top.
    """
    gamma = DATASETS[case.data].gamma
    if case.method in OURS:
        estimator = OURS[case.method]
        losses = len(positive) if estimator.formulation.all_have_losses else positive.sum()
        return clone(estimator).set_params(
            C=float(1 / (case.lam * losses)),
            surrogate=case.surrogate,
            kernel=case.kernel,
            gamma=gamma,
            tol=case.tol,
            cache_size=case.cache_size,
            max_time=max_time,
            random_state=0,
        )
    C = 1 / (case.lam * len(positive))
    if case.method == LINEAR_SVC:
        from sklearn.svm import LinearSVC

        return LinearSVC(loss=_LOSSES[case.surrogate], C=C, dual="auto", random_state=0)
    if case.method == LOGISTIC:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=C)
    if case.method == INTELEX:
        from sklearnex.svm import SVC
    elif case.method == SKLEARN:
        from sklearn.svm import SVC
    else:
        raise ValueError(f"There is no method {case.method!r}.")
    return SVC(C=C, kernel=case.kernel, gamma=gamma, tol=case.tol, cache_size=case.cache_size)


def kernel_peers(skip_sklearn: bool) -> list[str]:
    """The peers of fits with kernels that can be run here."""
    peers = [] if skip_sklearn else [SKLEARN]
    try:
        import sklearnex.svm  # noqa: F401
    except ImportError as error:
        print(f"Without {INTELEX}: {error}", flush=True)
        return peers
    return [INTELEX, *peers]
