"""A search of C and gamma: GridSearchCV and AtTopCV against GridSearchCV of scikit-learn's SVC.

    ATTOP_DATA=folder python benchmarks/bench_grid.py [--sizes 500,2000]

The three take turns in one process; seconds of the processor, in one thread and one process each.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from attop import PatMatNP, TauFPL
from attop.model_selection import AtTopCV
from suite import program
from suite.results import Row
from suite.tables import Table, count, digits, figure, table_of, text
from suite.tables_data import load_table

NAME = "grid"
SIZES, QUICK_SIZES = [500, 2000], [500]
DATA = ["magic_gamma", "cardio", "satellite"]
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0]}
METHODS = {"TauFPL(0.05)": TauFPL(0.05), "PatMatNP(0.05)": PatMatNP(0.05)}


@dataclass(frozen=True)
class GridCase:
    """The searches of one method on one table."""

    data: str
    n: int
    method: str

    def __str__(self) -> str:
        return f"{self.data} {self.n}, {self.method}"


def main() -> None:
    options = read_options()
    runner = program.Program(NAME, options)
    data = DATA[:1] if options.quick else DATA
    cases = [GridCase(d, n, method) for n in options.sizes for d in data for method in METHODS]
    runner.run(cases, measure_grid)
    runner.finish(tables)


def read_options() -> argparse.Namespace:
    parser = program.parser(__doc__)
    parser.add_argument("--sizes", type=program.values(int))
    options = parser.parse_args()
    options.sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    return options


def measure_grid(case: GridCase, repeats: int, limit: float, ready: Callable[[], None]) -> dict:
    """Seconds of the three searches, and whether ours choose the same."""
    X, positive = load_table(case.data, case.n)
    warnings.simplefilter("ignore")
    estimator = METHODS[case.method]
    scoring = {"cv": 5, "scoring": "roc_auc"}
    searches = [
        GridSearchCV(SVC(), GRID, **scoring),
        GridSearchCV(estimator, GRID, **scoring),
        AtTopCV(estimator, GRID, **scoring),
    ]
    AtTopCV(estimator, {"C": [1.0]}, cv=2).fit(X[:200], positive[:200])  # compiles
    ready()
    seconds = np.full((repeats, 3), np.inf)
    for i in range(repeats):
        for j, search in enumerate(searches):
            began = time.process_time()
            search.fit(X, positive)
            seconds[i, j] = time.process_time() - began
    theirs, ours, shared = seconds.min(axis=0)
    return {
        "samples": len(positive),
        "svc_seconds": theirs,
        "grid_seconds": ours,
        "seconds": shared,
        "grid_ratio": theirs / ours,
        "ratio": theirs / shared,
        "same": "yes" if searches[1].best_params_ == searches[2].best_params_ else "no",
    }


COLUMNS = {
    "data": text("data"),
    "n": figure("samples", count),
    "method": text("method"),
    "GridSearchCV(SVC) (s)": figure("svc_seconds", digits),
    "GridSearchCV, ratio": figure("grid_ratio", digits),
    "AtTopCV, ratio": figure("ratio", digits),
    "same choice": text("same"),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """One line for each search."""
    note = "12 values of C and gamma, 5 folds.  Time of GridSearchCV(SVC) over ours."
    return [table_of("A search of C and gamma", note, COLUMNS, rows)] if rows else []


if __name__ == "__main__":
    main()
