"""Small problems against scikit-learn's SVC: the ratio of the times, for each size.

    ATTOP_DATA=folder python benchmarks/bench_small.py [--sizes 100,300,1000]

Every formulation with a dual and both surrogates, C = 1 and 100, the Gaussian kernel, on tables of
standardised features.  SVC has the same kernel, the same C, and its own tolerance.  The two take
turns in one process, and the least seconds of the processor of each count: a small fit is shorter
than the time for which the system lets another process run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.svm import SVC

from attop import SVM, PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
from suite import program
from suite.results import Row, number
from suite.tables import Table, count, digits, figure, table_of, text
from suite.tables_data import load_table, names

NAME = "small"
SIZES, QUICK_SIZES = [100, 300, 1000, 3000, 5000], [100, 300, 1000]
QUICK_TABLES = ["breast_cancer", "cardio", "magic_gamma"]
ESTIMATORS = [
    TopPush(),
    TopPushK(5),
    TauFPL(0.05),
    TopMeanK(0.05),
    PatMat(0.05),
    PatMatNP(0.05),
    SVM(),
]
SURROGATES, WEIGHTS = ("hinge", "quadratic_hinge"), (1.0, 100.0)


@dataclass(frozen=True)
class SmallCase:
    """All fits on one table of one size."""

    data: str
    n: int

    def __str__(self) -> str:
        return f"{self.data} {self.n}"


def main() -> None:
    options = read_options()
    runner = program.Program(NAME, options)
    runner.run([SmallCase(data, n) for n in options.sizes for data in options.data], measure_small)
    runner.finish(tables)


def read_options() -> argparse.Namespace:
    parser = program.parser(__doc__)
    parser.add_argument("--data", type=program.values(str))
    parser.add_argument("--sizes", type=program.values(int))
    options = parser.parse_args()
    options.sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    options.data = options.data or (QUICK_TABLES if options.quick else names())
    return options


def measure_small(case: SmallCase, repeats: int, limit: float, ready: Callable[[], None]) -> dict:
    """Median and least ratio over all fits, and which fit has the least."""
    X, positive = load_table(case.data, case.n)
    warnings.simplefilter("ignore")  # some optima are w = 0, and say so
    for estimator in ESTIMATORS:
        for surrogate in SURROGATES:
            clone(estimator).set_params(surrogate=surrogate).fit(X[:100], positive[:100])
    ready()
    found = []
    for C in WEIGHTS:
        for estimator in ESTIMATORS:
            for surrogate in SURROGATES:
                model = clone(estimator).set_params(C=C, surrogate=surrogate)
                theirs, ours = _least([SVC(C=C), model], X, positive, max(3, repeats))
                found.append((theirs / ours, theirs, ours, f"{estimator}, {surrogate}, C = {C:g}"))
    ratios = [entry[0] for entry in found]
    worst = min(found)
    return {
        "samples": len(positive),
        "ratio": float(np.median(ratios)),
        "least_ratio": worst[0],
        "least": worst[3],
        "svc_seconds": float(np.median([entry[1] for entry in found])),
        "seconds": float(np.median([entry[2] for entry in found])),
        "fits": len(found),
    }


def _least(models: Sequence[Any], X, y, repeats: int) -> list[float]:
    """The least seconds of the processor of each model, which take turns."""
    seconds = np.full((repeats, len(models)), np.inf)
    for i in range(repeats):
        for j, model in enumerate(models):
            began = time.process_time()
            model.fit(X, y)
            seconds[i, j] = time.process_time() - began
    least: list[float] = seconds.min(axis=0).tolist()
    return least


COLUMNS = {
    "data": text("data"),
    "n": figure("samples", count),
    "SVC (s)": figure("svc_seconds", digits),
    "attop (s)": figure("seconds", digits),
    "ratio, median": figure("ratio", digits),
    "least": figure("least_ratio", digits),
    "least of": text("least"),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """A line for each size, and one for each table."""
    if not rows:
        return []
    lines = []
    for n in sorted({int(row["n"]) for row in rows}):
        some = [row for row in rows if int(row["n"]) == n]
        ratios = [number(row, "ratio") for row in some]
        least = [number(row, "least_ratio") for row in some]
        lines.append([count(n), digits(float(np.nanmedian(ratios))), digits(np.nanmin(least))])
    note = "Time of scikit-learn's SVC over ours, above 1 where we are faster; medians of tables."
    whole = Table("Small problems", note, ["n", "ratio, median", "least"], lines)
    return [whole, table_of("Small problems, each table", "The same.", COLUMNS, rows)]


if __name__ == "__main__":
    main()
