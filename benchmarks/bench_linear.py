"""Linear models at scale: attop against scikit-learn's LinearSVC with the hinge loss.

    ATTOP_DATA=folder python benchmarks/bench_linear.py [--rows 1000000]

Covertype (with ``covertype_adbench.npz`` in the folder, features standardised) and a made
problem of 100 features, of which the first draws 5 % positives.  Every attop fit is certified
to a relative gap of 1e-3; LinearSVC stops by its own rule (tol 1e-4, 1000 passes at most),
which is no bound on its gap.  Memory is what the fits add to the process, as a multiple of
the samples' bytes.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from attop import PatMatNP, TauFPL, TopPush


def covertype():
    archive = np.load(Path(os.environ["ATTOP_DATA"]) / "covertype_adbench.npz")
    X = StandardScaler().fit_transform(archive["X"]).astype(np.float32)
    return X, archive["y"].ravel()


def made(n: int):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 100), dtype=np.float32)
    scores = X @ rng.standard_normal(100).astype(np.float32) / 10 + rng.standard_normal(n)
    return X, (scores > np.quantile(scores, 0.95)).astype(int)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def timed(call) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def compare(name: str, X, y, lam: float) -> None:
    print(f"\n{name}: {X.shape[0]} x {X.shape[1]}, {np.mean(y):.2%} positive, lambda {lam:g}")
    before = peak()
    results = []
    for estimator in (TopPush(), TauFPL(0.01), TauFPL(0.05), PatMatNP(0.05)):
        estimator.set_params(
            kernel="linear", C=1 / (lam * y.sum()), tol=1e-3, random_state=0, max_time=300
        )
        results.append((estimator, timed(lambda estimator=estimator: estimator.fit(X, y))))
    memory = (peak() - before) / X.nbytes
    rival = LinearSVC(loss="hinge", C=1 / (lam * len(y)), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rival_seconds = timed(lambda: rival.fit(X, y))
    print(f"LinearSVC: {rival_seconds:.2f} s, {rival.n_iter_} passes")
    print(f"{'method':24}{'s':>8}{'x LinearSVC':>13}{'gap':>10}{'rounds':>8}{'SVs':>9}")
    for estimator, spent in results:
        label = repr(type(estimator)(*estimator.formulation.parameters and [estimator.tau]))
        print(
            f"{label:24}{spent:8.2f}{spent / rival_seconds:13.2f}{estimator.dual_gap_:10.1e}"
            f"{estimator.n_iter_:8d}{len(estimator.support_):9d}"
        )
    print(f"memory added by the fits: {memory:.2f} times the samples")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--lam", type=float, default=1e-3)
    arguments = parser.parse_args()
    X, y = made(5000)
    for estimator in (TopPush(), TauFPL(), PatMatNP()):  # compile
        estimator.set_params(kernel="linear", random_state=0).fit(X, y)
    compare("made", *made(arguments.rows), arguments.lam)
    if "ATTOP_DATA" in os.environ:
        compare("covertype", *covertype(), arguments.lam)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="The optimum of this")
    main()
