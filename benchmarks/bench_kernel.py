"""Fits with the Gaussian kernel against scikit-learn-intelex's SVC and against the floor.

    ATTOP_DATA=folder python benchmarks/bench_kernel.py [--data mnist] [--n 45000] ...

The floor of a fit is the time to compute the kernel columns of its support vectors, by the
library's own fused kernel block, into memory that has been touched before.  Every fit runs
to a certified relative gap of 1e-4 and its time includes the certificate.  Peers get the same
float32 samples in the same run.  Times are medians of several runs after a warm-up, in which
the code is compiled and the memory touched.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import resource
import time
from pathlib import Path

import numpy as np

from attop import PatMatNP, TauFPL, TopPush, TopPushK
from attop.kernels.columns import Workers, column_source
from attop.kernels.functions import Gram, Kernel

METHODS = {
    "TopPush": TopPush(),
    "TopPushK(5)": TopPushK(5),
    "TopPushK(10)": TopPushK(10),
    "TauFPL(0.01)": TauFPL(0.01),
    "TauFPL(0.05)": TauFPL(0.05),
    "PatMatNP(0.01)": PatMatNP(0.01),
    "PatMatNP(0.05)": PatMatNP(0.05),
}


def load(name: str, n: int, seed: int = 0):
    """Pixels in [0, 1] as float32, and which samples are of class 1."""
    archive = np.load(Path(os.environ["ATTOP_DATA"]) / f"{name}.npz")
    X, y = archive["x_train"], np.ravel(archive["y_train"])
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    return X[rows].reshape(len(rows), -1).astype(np.float32) / 255, y[rows] == 1


def seconds(function, repeats: int) -> float:
    """Median time of a call."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def floor_seconds(X, gamma: float, support, repeats: int) -> float:
    """Time of the kernel columns of the support vectors alone."""
    workers = Workers()
    source = column_source(Gram(Kernel("rbf", gamma=gamma), X), np.float32, workers)
    buffer = np.zeros((min(1024, len(support)), len(X)), dtype=np.float32)

    def columns():
        for start in range(0, len(support), len(buffer)):
            part = support[start : start + len(buffer)]
            source.compute(part, buffer[: len(part)], workers)

    columns()
    result = seconds(columns, repeats)
    workers.close()
    return result


def peer(X, y, C: float, gamma: float):
    """A call that fits scikit-learn-intelex's SVC, or the reason why there is none."""
    try:
        from sklearnex.svm import SVC
    except ImportError as error:
        return None, str(error)
    return (lambda: SVC(C=C, gamma=gamma, cache_size=2000).fit(X, y)), ""


def touch(n_bytes: float) -> None:
    """Write to memory, so that no fit pays for its first use."""
    np.empty(int(n_bytes), dtype=np.uint8).fill(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--n", type=int, default=45_000)
    parser.add_argument("--lambdas", default="1e-3,1e-5")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("out/bench_kernel.csv"))
    arguments = parser.parse_args()
    if "ATTOP_DATA" not in os.environ:
        parser.error("give the folder of the npz files in the variable ATTOP_DATA")

    X, y = load(arguments.data, arguments.n)
    gamma = 1.0 / X.shape[1]
    names = arguments.methods.split(",")
    names = [name for name in METHODS if name in names]
    print(f"{arguments.data}: {X.shape[0]} x {X.shape[1]}, {y.mean():.1%} positive")
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    for estimator in METHODS.values():  # compile
        estimator.set_params(random_state=0).fit(X[:3000], y[:3000])
    touch(8000 * 4 * len(X))

    rows = []
    peak = 0.0
    for lam in (float(value) for value in arguments.lambdas.split(",")):
        for name in names:
            estimator = METHODS[name].set_params(
                C=1.0 / (lam * y.sum()), gamma=gamma, cache_size=2000, random_state=0
            )
            fit = seconds(lambda estimator=estimator: estimator.fit(X, y), arguments.repeats)
            floor = floor_seconds(X, gamma, estimator.support_, arguments.repeats)
            rows.append([name, lam, fit, floor, len(estimator.support_), estimator.dual_gap_])
        peak = max(peak, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
        rival, why = peer(X, y, 1.0 / (lam * len(y)), gamma)
        rival_seconds = seconds(rival, arguments.repeats) if rival else np.nan
        print(f"\nlambda {lam:g}: SVC of scikit-learn-intelex {rival_seconds:.2f} s {why}")
        print(f"{'method':16}{'s':>8}{'SVs':>8}{'x floor':>9}{'x faster':>10}{'gap':>10}")
        for row in rows[-len(names) :]:
            row += [rival_seconds, rival_seconds / row[2], row[2] / row[3]]
            method, _, fit, _, support, gap, _, faster, above = row
            print(f"{method:16}{fit:8.2f}{support:8d}{above:9.2f}{faster:10.2f}{gap:10.1e}")
    faster, above = [row[7] for row in rows], [row[8] for row in rows]
    print(f"\nfaster than the SVC: least {min(faster):.2f}, median {np.median(faster):.2f} times")
    print(f"above the floor: median {np.median(above):.2f}, most {max(above):.2f} times")
    print(f"peak memory before the first SVC of the last lambda: {peak:.2f} GB")
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    with arguments.output.open("w", newline="") as file:
        writer = csv.writer(file)
        header = "method lambda seconds floor_seconds support_vectors gap peer_seconds"
        writer.writerow([*header.split(), "times_faster", "times_floor"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
