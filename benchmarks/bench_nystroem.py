"""True positive rates at small false positive rates: linear model against Nystroem features.

Covertype (286,048 x 10, 0.96 % positive), TauFPL(0.01) trained on one half and judged on the
other, at a false positive rate of 1 % and, since the linear model leaves almost nothing to gain
there, at smaller ones.  The data is an .npz file with X and y, given as argument or, in a
folder, through the environment variable ATTOP_DATA.

    python benchmarks/bench_nystroem.py path/to/covertype_adbench.npz
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from attop import TauFPL
from attop.metrics import tpr_at_fpr

TAU = 0.01
#: False positive rates at which the models are judged.
RATES = (0.01, 0.001, 0.0001)


def arguments() -> argparse.Namespace:
    folder = os.environ.get("ATTOP_DATA")
    default = Path(folder) / "covertype_adbench.npz" if folder else None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=default, help=".npz with X and y")
    parser.add_argument("--components", type=int, default=1000, help="Nystroem features")
    parser.add_argument("--rows", type=int, default=None, help="use a random part of the samples")
    parser.add_argument("--solver", default="auto", help="exact, primal or auto")
    parser.add_argument("--lambdas", type=float, nargs="+", default=[1e-1, 1e-3, 1e-5])
    parser.add_argument("--max-time", type=float, default=300.0, help="seconds for each fit")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.data is None:
        parser.error("give the data file, or the folder that holds it in ATTOP_DATA")
    return chosen


def halves(path: Path, rows: int | None, seed: int):
    """Training and test half, scaled by the training half, in single precision."""
    with np.load(path) as data:
        X, y = data["X"].astype(np.float32), (data["y"].ravel() > 0).astype(int)
    if rows is not None and rows < len(y):
        X, _, y, _ = train_test_split(X, y, train_size=rows, stratify=y, random_state=seed)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test), y_train, y_test


def main() -> None:
    options = arguments()
    X_train, X_test, y_train, y_test = halves(options.data, options.rows, options.seed)
    print(
        f"{len(y_train)} training and {len(y_test)} test samples, {np.mean(y_train):.2%} positive"
    )
    models = {
        "linear": {"kernel": "linear"},
        f"nystroem {options.components}": {
            "kernel": "rbf",
            "approximation": "nystroem",
            "n_components": options.components,
        },
    }
    heads = "".join(f"{f'TPR@{rate:.2%}':>12}" for rate in RATES)
    print(f"{'model':<15} {'lambda':>8} {'seconds':>8} {'gap':>8}{heads}")
    for name, parameters in models.items():
        for lam in options.lambdas:
            model = TauFPL(
                tau=TAU,
                C=1.0 / (lam * y_train.sum()),
                solver=options.solver,
                tol=1e-3,
                max_time=options.max_time,
                random_state=options.seed,
                **parameters,
            )
            started = time.perf_counter()
            with warnings.catch_warnings():
                # The table shows the gap reached.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X_train, y_train)
            seconds = time.perf_counter() - started
            scores = model.decision_function(X_test)
            found = "".join(f"{tpr_at_fpr(y_test, scores, rate):>12.4f}" for rate in RATES)
            figures = f"{seconds:>8.1f} {model.dual_gap_:>8.1e}{found}"
            print(f"{name:<15} {lam:>8.0e} {figures}", flush=True)


if __name__ == "__main__":
    main()
