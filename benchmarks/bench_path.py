"""A path over C against separate fits, on MNIST: time, kernel columns, optima.

    python benchmarks/bench_path.py mnist.npz
    ATTOP_DATA=folder/of/mnist python benchmarks/bench_path.py --samples 10000

The file holds ``x_train`` (images of bytes) and ``y_train``; the positive class is the
digit 1, pixels are divided by 255, and gamma is one over the number of pixels.  Compiled
code is warm before the clock starts.  The two sides take turns, and the medians are
compared.  The seconds of the processor say more than those of the clock where other work
runs beside.

The fit at the smallest C costs as much in the path as alone.  Where most samples are
support vectors there (C below 0.05), it takes most of the time of the path.
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
    values = np.geomspace(options.smallest, options.largest, options.points)
    fit_path(estimator, X[:1000], y[:1000], "C", values[-2:])  # compiles what is not cached
    runs = [_compare(estimator, X, y, values) for _ in range(options.repeats)]
    separate, path = np.median([run[0] for run in runs], 0), np.median([run[1] for run in runs], 0)
    print("                 clock  processor")
    print(f"separate fits  {separate[0]:6.2f} s  {separate[1]:7.2f} s")
    print(f"path           {path[0]:6.2f} s  {path[1]:7.2f} s")
    print(f"ratio          {path[0] / separate[0]:6.2f}    {path[1] / separate[1]:7.2f}")
    difference = max(run[2] for run in runs)
    print(f"largest relative difference of the optima {difference:.1e}, tol {estimator.tol:g}")
    alone = [int(fit_path(estimator, X, y, "C", [C]).columns[0]) for C in values]
    together = int(fit_path(estimator, X, y, "C", values).columns.sum())
    print(f"kernel columns: separate {sum(alone)}, path {together}")


def _compare(estimator: PatMatNP, X, y, values):
    """Clock and processor seconds of separate fits, of the path; difference of the optima."""
    began = _clocks()
    separate, seconds = [], []
    for C in values:
        before = time.perf_counter()
        separate.append(clone(estimator).set_params(C=C).fit(X, y))
        seconds.append(time.perf_counter() - before)
    middle = _clocks()
    path = fit_path(estimator, X, y, "C", values)
    ended = _clocks()
    objectives = np.array([model.objective_ for model in separate])
    difference = float(np.max(np.abs(path.collect("objective_") / objectives - 1.0)))
    print("      C  support  alone (s)  in path (s)  rounds  columns      gap")
    for C, model, one, shared, columns in zip(
        values, path.estimators, seconds, path.seconds, path.columns
    ):
        print(
            f"{C:7.3g}  {len(model.support_):7d}  {one:9.2f}  {shared:11.2f}  "
            f"{model.n_iter_:6d}  {columns:7d}  {model.dual_gap_:.1e}",
            flush=True,
        )
    return middle - began, ended - middle, difference


def _clocks():
    return np.array([time.perf_counter(), time.process_time()])


def _load(data: Path, n_samples: int):
    with np.load(data) as archive:
        images, digits = archive["x_train"][:n_samples], archive["y_train"][:n_samples]
    return (images.reshape(len(images), -1) / 255).astype(np.float32), digits == 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, help="npz file; else $ATTOP_DATA/mnist.npz")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--smallest", type=float, default=0.1, help="smallest C")
    parser.add_argument("--largest", type=float, default=100.0, help="largest C")
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
