"""A path over C against separate fits: time, kernel columns, optima.

    ATTOP_DATA=folder python benchmarks/bench_path.py [--n 10000]

The two sides take turns in one process, and the medians are compared.  The seconds of the
processor say more than those of the clock where other work runs beside.

The fit at the smallest C costs as much in the path as alone.  Where most samples are
support vectors there (C below 0.05), it takes most of the time of the path.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from attop import PatMatNP
from attop.model_selection import fit_path
from suite import program
from suite.data import DATASETS, load
from suite.measure import computed_columns, hold_memory
from suite.results import Row
from suite.tables import Table, count, digits, figure, power, seconds_or_reason, table_of, text

NAME = "path"
SIZE, QUICK_SIZE = 10_000, 2500


@dataclass(frozen=True)
class PathCase:
    """A path of PatMatNP over C."""

    data: str
    n: int
    points: int
    smallest: float
    largest: float
    tau: float
    surrogate: str

    def __str__(self) -> str:
        return f"{self.data} {self.n}, {self.points} values of C"


def main() -> None:
    options = read_options()
    runner = program.Program(NAME, options)
    case = PathCase(
        options.data,
        options.n,
        options.points,
        options.smallest,
        options.largest,
        options.tau,
        options.surrogate,
    )
    runner.run([case], measure_path)
    runner.finish(tables)


def read_options() -> argparse.Namespace:
    parser = program.parser(__doc__)
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--n", type=int)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--smallest", type=float, default=0.1, help="smallest C")
    parser.add_argument("--largest", type=float, default=100.0, help="largest C")
    parser.add_argument("--tau", type=float, default=0.05)
    parser.add_argument("--surrogate", default="hinge")
    options = parser.parse_args()
    options.n = options.n or (QUICK_SIZE if options.quick else SIZE)
    return options


def measure_path(case: PathCase, repeats: int, limit: float, ready: Callable[[], None]) -> dict:
    """Medians of the seconds of both sides, and what they computed."""
    X, positive = load(case.data, case.n)
    gamma = DATASETS[case.data].gamma
    estimator = PatMatNP(tau=case.tau, surrogate=case.surrogate, gamma=gamma, random_state=0)
    values = np.geomspace(case.smallest, case.largest, case.points)
    fit_path(estimator, X[:3000], positive[:3000], "C", values[-2:])  # compiles
    hold_memory(case.n)
    ready()
    runs = [_compare(estimator, X, positive, values) for _ in range(repeats)]
    alone, together = np.median([run["clocks"] for run in runs], axis=0)
    return {
        "separate_seconds": alone[0],
        "seconds": together[0],
        "ratio": together[0] / alone[0],
        "processor_ratio": together[1] / alone[1],
        "difference": max(run["difference"] for run in runs),
        "gap": max(run["gap"] for run in runs),
        "separate_columns": runs[-1]["separate_columns"],
        "columns": runs[-1]["columns"],
        "runs": repeats,
    }


def _compare(estimator: PatMatNP, X, positive, values) -> dict:
    """One run of separate fits and one of the path."""
    began = _clocks()
    separate = [clone(estimator).set_params(C=C).fit(X, positive) for C in values]
    middle = _clocks()
    path = fit_path(estimator, X, positive, "C", values)
    ended = _clocks()
    objectives = np.array([model.objective_ for model in separate])
    return {
        "clocks": [middle - began, ended - middle],
        "difference": float(np.max(np.abs(path.collect("objective_") / objectives - 1.0))),
        "gap": float(path.collect("dual_gap_").max()),
        "separate_columns": sum(computed_columns(model) for model in separate),
        "columns": int(path.columns.sum()),
    }


def _clocks() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


COLUMNS = {
    "data": text("data"),
    "n": figure("n", count),
    "C": lambda row: f"{row['points']} from {row['smallest']} to {row['largest']}",
    "separate fits (s)": figure("separate_seconds", digits),
    "path (s)": seconds_or_reason,
    "ratio": figure("ratio", digits),
    "ratio of processor times": figure("processor_ratio", digits),
    "columns, separate": figure("separate_columns", count),
    "columns, path": figure("columns", count),
    "difference": figure("difference", power),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """One line for each path."""
    note = "PatMatNP with the Gaussian kernel; optima differ relatively by at most the last column."
    return [table_of("A path over C", note, COLUMNS, rows)] if rows else []


if __name__ == "__main__":
    main()
