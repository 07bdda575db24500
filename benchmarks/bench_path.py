"""A path over C against separate fits, on MNIST: time, kernel columns, optima.

    python benchmarks/bench_path.py mnist.npz
    ATTOP_DATA=folder/of/mnist python benchmarks/bench_path.py --samples 10000

The file holds ``x_train`` (images of bytes) and ``y_train``; the positive class is the
digit 1, pixels are divided by 255, and gamma is one over the number of pixels.  Both sides
take the values of lambda from 1e-1 to 1e-5, and compiled code is warm before the clock
starts.  The two sides take turns, and the medians are compared.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone

from attop import PatMatNP
from attop.model_selection import fit_path


def main() -> None:
    options = _options()
    X, y = _load(options.data, options.samples)
    estimator = PatMatNP(
        tau=options.tau, surrogate=options.surrogate, gamma=1 / X.shape[1], random_state=0
    )
    lambdas = np.logspace(-1, -5, options.points)
    values = 1.0 / (lambdas * np.count_nonzero(y))
    fit_path(estimator, X[:1000], y[:1000], "C", values[-2:])  # compiles what is not cached
    runs = [_compare(estimator, X, y, values) for _ in range(options.repeats)]
    cold, path, _ = np.median(runs, axis=0)
    difference = max(run[2] for run in runs)
    print(f"separate fits     {cold:7.2f} s")
    print(f"path              {path:7.2f} s")
    print(f"ratio             {path / cold:7.2f}")
    print(f"largest relative difference of the optima {difference:.1e}, tol {estimator.tol:g}")


def _compare(estimator: PatMatNP, X, y, values) -> tuple[float, float, float]:
    """Seconds of separate fits and of the path, and how far their optima differ."""
    began = time.perf_counter()
    separate = [clone(estimator).set_params(C=C).fit(X, y) for C in values]
    middle = time.perf_counter()
    path = fit_path(estimator, X, y, "C", values)
    ended = time.perf_counter()
    objectives = np.array([model.objective_ for model in separate])
    difference = np.max(np.abs(path.collect("objective_") / objectives - 1.0))
    print("      C  support  path: seconds  columns  rounds      gap")
    for C, model, seconds, columns in zip(values, path.estimators, path.seconds, path.columns):
        print(
            f"{C:7.3g}  {len(model.support_):7d}  {seconds:13.2f}  {columns:7d}  "
            f"{model.n_iter_:6d}  {model.dual_gap_:.1e}"
        )
    print(f"separate {middle - began:.2f} s, path {ended - middle:.2f} s", flush=True)
    return middle - began, ended - middle, float(difference)


def _load(data: Path, n_samples: int):
    with np.load(data) as archive:
        images, digits = archive["x_train"][:n_samples], archive["y_train"][:n_samples]
    return (images.reshape(len(images), -1) / 255).astype(np.float32), digits == 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, help="npz file; else $ATTOP_DATA/mnist.npz")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tau", type=float, default=0.05)
    parser.add_argument("--surrogate", default="hinge")
    options = parser.parse_args()
    if options.data is None:
        if "ATTOP_DATA" not in os.environ:
            parser.error("give the npz file, or its folder in the variable ATTOP_DATA")
        options.data = Path(os.environ["ATTOP_DATA"]) / "mnist.npz"
    return options


if __name__ == "__main__":
    main()
