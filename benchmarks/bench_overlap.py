"""Linear models where the classes overlap: TauFPL, PatMatNP and SVM against logistic regression.

    python benchmarks/bench_overlap.py TABLE.npz [--n 10000] [--seeds 3]

TABLE has arrays X and y.  C is not chosen: each has a row.  Shown are means over the seeds of the
true positive rate at false positive rates of 0.1, 1 and 5 %, in percent, on new samples.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from attop import SVM, PatMatNP, TauFPL
from attop.metrics import tpr_at_fpr

RATES = (0.001, 0.01, 0.05)
N_TEST = 50_000


def models() -> dict[str, Any]:
    """What is compared, by the name of its row."""
    found: dict[str, Any] = {
        f"LogisticRegression C={C:g}": LogisticRegression(C=C, max_iter=2000)
        for C in (0.01, 0.1, 1)
    }
    for C in (0.01, 0.1):
        found[f"SVM C={C:g}"] = SVM(kernel="linear", C=C)
    found["SVM balanced C=0.001"] = SVM(kernel="linear", C=1e-3, class_weight="balanced")
    for tau in (0.01, 0.05, 0.1):
        for C in (0.01, 0.1, 1.0):
            found[f"TauFPL({tau:g}) C={C:g}"] = TauFPL(tau, kernel="linear", C=C)
    for theta in (0.1, 1.0, 10.0):
        for C in (0.01, 0.1, 1.0):
            name = f"PatMatNP(0.01, theta={theta:g}) C={C:g}"
            found[name] = PatMatNP(0.01, theta=theta, kernel="linear", C=C)
    return found


def measure(X: Any, y: Any, model: Any, n: int, seed: int) -> list[float]:
    """The rates, and the seconds of the fit; rates are 0 where all scores are equal."""
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=n, test_size=min(N_TEST, len(y) - n), stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(X_train)
    began = time.perf_counter()
    model.fit(scaler.transform(X_train), y_train)
    seconds = time.perf_counter() - began
    scores = model.decision_function(scaler.transform(X_test))
    if np.ptp(scores) == 0.0:
        return [0.0, 0.0, 0.0, seconds]
    return [*(tpr_at_fpr(y_test, scores, rate) for rate in RATES), seconds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table")
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    with np.load(arguments.table) as data:
        X, y = data["X"].astype(np.float64), data["y"]
    warnings.simplefilter("ignore")  # of w = 0, which is the subject
    print(
        f"{'model':36s}"
        + "".join(f"{f'FPR {100 * rate:g} %':>10s}" for rate in RATES)
        + "   seconds"
    )
    for name, model in models().items():
        rows = [measure(X, y, model, arguments.n, seed) for seed in range(1, arguments.seeds + 1)]
        *rates, seconds = np.mean(rows, axis=0)
        print(f"{name:36s}" + "".join(f"{100 * rate:10.1f}" for rate in rates) + f"{seconds:10.2f}")


if __name__ == "__main__":
    main()
