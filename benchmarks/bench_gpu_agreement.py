"""The optima of a GPU and of the CPU: are they the same?

    python benchmarks/bench_gpu_agreement.py [--device cuda] [--problems 100] [--framework cupy]
    python benchmarks/bench_gpu_agreement.py --device cpu    # the optima of the CPU, ahead

A machine with a GPU takes the optima of the CPU from ``gpu_agreement_cpu.csv`` in the folder of
``--output`` where they are there, and computes and keeps the others.

The reference optima on Ionosphere (gaps below 1e-7) are asked of the device (with seed 0), and a
hundred random problems of the device and of the CPU: every family and loss, kernels of three kinds,
hard margins, weights, some hundred to some thousand samples.  All fits have a tolerance of 1e-6 on
the relative gap; what is compared are the objectives of the models, relative to the larger one.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

import attop
from attop.datasets import load_ionosphere
from attop.kernels.device.arrays import find_device
from suite.results import Row, read_rows, write_rows

#: The largest relative difference that passes, and the tolerance of the fits.
SAME, TOL = 1e-5, 1e-6
FAMILIES = ("SVM", "TopPush", "TopPushK", "TauFPL", "TopMeanK", "PatMat", "PatMatNP")
OPTIMA = Path(__file__).parents[1] / "tests" / "data" / "ionosphere_optima.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("out/bench"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--framework", help="cupy: as if PyTorch were not installed")
    options = parser.parse_args()
    if options.framework == "cupy":
        sys.modules["torch"] = None  # type: ignore[assignment]
    warnings.simplefilter("ignore")
    options.output.mkdir(parents=True, exist_ok=True)
    seeds = range(options.seed, options.seed + options.problems)
    known = Known(options.output / "gpu_agreement_cpu.csv")
    if options.device == "cpu":
        for seed in seeds:
            print(seed, known.optimum(seed), flush=True)
        return
    device = find_device(options.device)
    print("framework:", "none" if device is None else device.framework, flush=True)
    rows: list[Row] = []
    asked = () if options.seed else references(options.device)
    for row in chain(asked, (random_problem(seed, options.device, known) for seed in seeds)):
        rows.append(row)
        write_rows(options.output / f"gpu_agreement_{options.framework or 'torch'}.csv", rows)
    differences = np.array([row["difference"] for row in rows])
    gaps = np.array([row["gap"] for row in rows])
    for row in rows:
        if row["difference"] > SAME or row["gap"] > TOL:
            print("  ".join(f"{name}={value}" for name, value in row.items()))
    print(
        f"{len(rows)} problems: largest difference {differences.max():.1e}, "
        f"{np.sum(differences > SAME)} above {SAME:.0e}; {np.sum(gaps > TOL)} gaps above {TOL:.0e}"
    )
    sys.exit(bool(np.any(differences > SAME)))


def references(device: str) -> Iterator[Row]:
    """The known optima on Ionosphere."""
    X, y = load_ionosphere(return_X_y=True)
    with OPTIMA.open(encoding="utf-8") as file:
        cases = [row for row in csv.DictReader(file) if row["kernel"] != "linear"]
    for case in cases:
        model = getattr(attop, case["formulation"])()
        for name in ("gamma", "C", "tau", "theta", "K"):
            if case.get(name) and hasattr(model, name):
                model.set_params(**{name: int(case[name]) if name == "K" else float(case[name])})
        model.set_params(surrogate=case["surrogate"], kernel=case["kernel"], tol=TOL, device=device)
        model.set_params(pos_label=np.unique(y)[1]).fit(X, y)
        yield compared("Ionosphere", model, float(case["objective"]))


class Known:
    """Optima of the CPU by seed, kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.optima = {int(row["seed"]): float(row["optimum"]) for row in read_rows(path)}

    def optimum(self, seed: int) -> float:
        """The optimum of a random problem, computed where it is not known."""
        if seed not in self.optima:
            model, *samples = made_problem(seed)
            self.optima[seed] = float(model.fit(*samples).objective_)
            rows = [{"seed": seed, "optimum": repr(value)} for seed, value in self.optima.items()]
            write_rows(self.path, rows)
        return self.optima[seed]


def made_problem(seed: int) -> tuple[Any, Any, Any, Any]:
    """A model with its parameters, samples, labels and weights."""
    rng = np.random.default_rng(seed)
    X, y = make_classification(
        n_samples=int(np.exp(rng.uniform(np.log(200), np.log(5000)))),
        n_features=int(rng.integers(5, 60)),
        weights=[rng.uniform(0.5, 0.95)],
        flip_y=rng.uniform(0.0, 0.1),
        class_sep=rng.uniform(0.5, 2.0),
        random_state=seed,
    )
    model = getattr(attop, FAMILIES[seed % len(FAMILIES)])()
    given: dict[str, Any] = {"C": float(10 ** rng.uniform(-2, 3))}
    given["kernel"] = str(rng.choice(["rbf", "rbf", "rbf", "laplacian", "poly"]))
    given["gamma"] = float(10 ** rng.uniform(-0.5, 0.5) / X.shape[1])
    if given["kernel"] == "poly":
        given |= {"degree": 2, "coef0": 1.0}
    if hasattr(model, "surrogate"):
        given["surrogate"] = str(rng.choice(["hinge", "quadratic_hinge"]))
    if "tau" in model.get_params():  # above the share of positives where all samples compete
        all_compete = type(model).__name__ in ("TopMeanK", "PatMat")
        given["tau"] = float(rng.uniform(0.6, 0.9) if all_compete else rng.uniform(0.01, 0.2))
    if "K" in model.get_params():
        given["K"] = int(rng.integers(2, 30))
    if rng.random() < 0.1 and type(model).__name__ in ("TopPush", "TopPushK", "TauFPL"):
        given |= {"C": float("inf"), "surrogate": "hinge", "kernel": "rbf", "gamma": 1.0}
    weights = rng.uniform(0.2, 3.0, len(y)) if rng.random() < 0.3 else None
    return model.set_params(tol=TOL, max_time=600.0, **given), X, y, weights


def random_problem(seed: int, device: str, known: Known) -> Row:
    """A problem, on the device and on the CPU."""
    best = known.optimum(seed)
    model, X, y, weights = made_problem(seed)
    began = time.perf_counter()
    model.set_params(device=device).fit(X, y, sample_weight=weights)
    seconds = time.perf_counter() - began
    row = compared(f"made, seed {seed}", model, best)
    return row | {"n": len(y), "weighted": weights is not None, "seconds": seconds}


def compared(data: str, model: Any, expected: float) -> Row:
    """What a model of the device and another optimum differ by."""
    larger = max(abs(model.objective_), abs(expected), np.finfo(float).tiny)
    return {
        "data": data,
        "method": type(model).__name__,
        "surrogate": model.surrogate,
        "kernel": model.kernel,
        "C": model.C,
        "objective": model.objective_,
        "expected": expected,
        "gap": model.dual_gap_,
        "difference": abs(model.objective_ - expected) / larger,
        "status": model.status_.name.lower(),
    }


if __name__ == "__main__":
    main()
