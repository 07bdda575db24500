"""What each number of the exact solver's `Tuning` is worth.

    ATTOP_DATA=folder python benchmarks/ablation.py [--only free,turns] [--repeats 3]

Every number is halved and doubled, one at a time, and the fits of a small set are run again.  The
set has one case for each way through the solver: small tables, large ones by parts and with bounds
in the place of scores, many free support vectors, linear models of few and many features.  What
is shown is the time relative to that of the numbers as they are, which are timed again beside each
change, since machines are noisy: the median over the cases, and the case that changed most.  A
number whose changes stay within the noise (the first line shows it) does not pay and may go.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from attop.formulations import FORMULATIONS
from attop.kernels import Gram, Kernel
from attop.solvers.exact import Tuning, solve
from suite.data import load

#: Data, samples, formulation with its parameters, surrogate, lambda, kernel.
CASES = (
    ("mnist", 12_000, "TopPush", {}, "hinge", 1e-3, "rbf"),
    ("mnist", 12_000, "PatMatNP", {"tau": 0.05, "theta": 1.0}, "hinge", 1e-5, "rbf"),
    ("covertype", 12_000, "TauFPL", {"tau": 0.05}, "hinge", 1e-4, "rbf"),
    ("covertype", 1000, "TauFPL", {"tau": 0.05}, "hinge", 1e-4, "rbf"),
    ("cifar10", 2500, "PatMatNP", {"tau": 0.05, "theta": 1.0}, "quadratic_hinge", 1e-4, "rbf"),
    ("a9a", 3000, "TopPushK", {"K": 20}, "quadratic_hinge", 1e-3, "rbf"),
    ("a9a", 20_000, "TauFPL", {"tau": 0.05}, "hinge", 1e-4, "linear"),
    ("covertype", 20_000, "PatMatNP", {"tau": 0.05, "theta": 1.0}, "hinge", 1e-4, "linear"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", type=lambda names: names.split(","), default=None)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("out/ablation.csv"))
    options = parser.parse_args()
    problems = list(made())
    usual = Tuning()
    for problem in problems:
        timed(problem, usual)  # compiled code, memory
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "value", "median", "least", "most"])
        for name, value in [("", None), *changes(usual, options.only)]:
            changed = usual if value is None else replace(usual, **{name: value})
            ratios = [ratio(problem, usual, changed, options.repeats) for problem in problems]
            row = [statistics.median(ratios), min(ratios), max(ratios)]
            writer.writerow([name, value, *(f"{number:.2f}" for number in row)])
            file.flush()
            title = "as it is" if value is None else f"{name}={value:g}"
            print(f"{title:30s} " + " ".join(f"{number:6.2f}" for number in ratios), flush=True)


def changes(usual: Tuning, only: Iterable[str] | None) -> Iterable[tuple[str, float]]:
    """Each number, halved and doubled."""
    for field in fields(Tuning):
        if only is None or field.name in only:
            value = getattr(usual, field.name)
            for factor in (0.5, 2.0):
                changed = value * factor
                yield field.name, max(1, int(changed)) if isinstance(value, int) else changed


def made() -> Iterable[tuple]:
    """The problems of the cases."""
    for data, n, name, parameters, surrogate, lam, kernel in CASES:
        X, positive = load(data, n)
        C = 1.0 / (lam * np.count_nonzero(positive))
        problem = FORMULATIONS[name].problem(positive, C, surrogate, **parameters)
        gamma = 1.0 / (X.shape[1] * float(np.var(X.toarray() if hasattr(X, "toarray") else X)))
        yield problem, Gram(Kernel(kernel, gamma=gamma), X)


def timed(problem: tuple, tuning: Tuning) -> float:
    began = time.perf_counter()
    solution = solve(*problem, tol=1e-3, random_state=0, max_time=60.0, tuning=tuning)
    seconds = time.perf_counter() - began
    return seconds if solution.certificate.certifies(1e-3) else 60.0


def ratio(problem: tuple, usual: Tuning, changed: Tuning, repeats: int) -> float:
    """Time with the change, relative to that without, in turns."""
    pairs = [(timed(problem, usual), timed(problem, changed)) for _ in range(repeats)]
    before, after = zip(*pairs, strict=True)
    return min(after) / min(before)


if __name__ == "__main__":
    sys.exit(main())
