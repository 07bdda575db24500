"""What each number of the exact solver's `Tuning` is worth.

    ATTOP_DATA=folder python benchmarks/ablation.py [--only free,turns] [--repeats 3]

Every number is halved and doubled, one at a time, and the fits of a small set are run again.  The
set has one case for each way through the solver: small tables, large ones by parts and with bounds
in the place of scores, many free support vectors, linear models of few and many features.  What
is shown is the processor time of one thread relative to that of the numbers as they are, which are
timed again beside each change, since machines are shared and noisy; it is 1 without timing where a
fit ends at the very same point with the same work.  There is a figure for each case, and in the
file the smallest, the mean (geometric) and the largest.  A number whose changes stay within the
noise, which the first lines show, does not pay and may go.
"""

from __future__ import annotations

import os

# As long as one thread takes, whatever else the machine does; before NumPy is imported.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import csv
import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from attop.formulations import FORMULATIONS
from attop.kernels import Gram, Kernel
from attop.solvers.exact import Tuning, solve
from suite.data import DATASETS, load

#: Data, samples, formulation with its parameters, surrogate, lambda, kernel.
CASES: tuple[tuple[str, int, str, dict[str, Any], str, float, str], ...] = (
    ("mnist", 12_000, "TopPush", {}, "hinge", 1e-3, "rbf"),
    ("mnist", 12_000, "PatMatNP", {"tau": 0.05, "theta": 1.0}, "hinge", 1e-5, "rbf"),
    ("mnist", 3_500, "TopPushK", {"K": 10}, "hinge", 1e-5, "rbf"),
    ("covertype", 40_000, "TauFPL", {"tau": 0.05}, "hinge", 1e-4, "rbf"),
    ("covertype", 1_000, "TauFPL", {"tau": 0.05}, "hinge", 1e-4, "rbf"),
    ("cifar10", 2_000, "PatMatNP", {"tau": 0.05, "theta": 1.0}, "quadratic_hinge", 1e-4, "rbf"),
    ("w8a", 3_000, "TopPushK", {"K": 20}, "quadratic_hinge", 1e-3, "rbf"),
    ("w8a", 5_000, "TauFPL", {"tau": 0.05}, "hinge", 1e-4, "linear"),
    ("covertype", 20_000, "PatMatNP", {"tau": 0.05, "theta": 1.0}, "hinge", 1e-3, "linear"),
)
#: Relative gap of the fits, and seconds after which they have failed.
TOL, LIMIT = 1e-4, 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", type=lambda names: names.split(","), default=None)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("out/ablation.csv"))
    options = parser.parse_args()
    problems = list(made())
    usual = Tuning()
    for problem in problems:
        timed(problem, usual)  # compiled code, memory
    plain = [timed(problem, usual)[1] for problem in problems]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "value", "least", "mean", "most", *map(case_name, CASES)])
        for name, value in [*[("", 0.0)] * 3, *changes(usual, options.only)]:
            changed = replace(usual, **{name: value}) if name else usual
            ratios = [
                1.0
                if name and timed(problem, changed)[1] == work
                else ratio(problem, usual, changed, options.repeats)
                for problem, work in zip(problems, plain, strict=True)
            ]
            row = [min(ratios), statistics.geometric_mean(ratios), max(ratios), *ratios]
            writer.writerow([name, value, *(f"{number:.2f}" for number in row)])
            file.flush()
            title = f"{name}={value:g}" if name else "as it is"
            print(f"{title:30s} " + " ".join(f"{number:6.2f}" for number in ratios), flush=True)


def case_name(case: tuple[Any, ...]) -> str:
    return " ".join(str(part) for part in case if not isinstance(part, dict))


def changes(usual: Tuning, only: Iterable[str] | None) -> Iterable[tuple[str, float]]:
    """Each number, halved and doubled."""
    for field in fields(Tuning):
        if only is None or field.name in only:
            value = getattr(usual, field.name)
            for factor in (0.5, 2.0):
                changed = value * factor
                yield field.name, max(1, int(changed)) if isinstance(value, int) else changed


def made() -> Iterable[tuple[Any, Gram]]:
    """The problems of the cases."""
    for data, n, name, parameters, surrogate, lam, kernel in CASES:
        X, positive = load(data, n)
        C = 1.0 / (lam * np.count_nonzero(positive))
        problem = FORMULATIONS[name].problem(positive, C, surrogate, **parameters)
        yield problem, Gram(Kernel(kernel, gamma=DATASETS[data].gamma), X)


def timed(problem: tuple[Any, Gram], tuning: Tuning) -> tuple[float, tuple[Any, ...]]:
    """Processor seconds of a fit, as many as the limit has where it fails; and what it did."""
    began = time.process_time()
    solution = solve(*problem, tol=TOL, random_state=0, max_time=LIMIT, tuning=tuning)
    seconds = time.process_time() - began
    counts = {name: solution.stats.get(name, 0.0) for name in ("columns", "steps", "parts")}
    work = (solution.n_iter, *counts.values(), solution.alpha.tobytes(), solution.beta.tobytes())
    return seconds if solution.certificate.certifies(TOL) else LIMIT, work


def ratio(problem: tuple[Any, Gram], usual: Tuning, changed: Tuning, repeats: int) -> float:
    """Time with the change, relative to that without, in turns; short fits more often."""
    before: list[float] = []
    after: list[float] = []
    while len(before) < repeats or (sum(before) < 0.5 and len(before) < 4 * repeats):
        before.append(timed(problem, usual)[0])
        after.append(timed(problem, changed)[0])
    return min(after) / min(before)


if __name__ == "__main__":
    sys.exit(main())
