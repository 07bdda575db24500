"""What a fit costs when only half of the kernel columns it needs fit into the memory.

    ATTOP_DATA=folder python benchmarks/bench_budget.py

A fit with room for every column tells how many it computes.  Then the same fit runs with a
`cache_size` that holds half as many; both in the same process, each the median of several runs.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np

from suite import program
from suite.cases import Case
from suite.measure import (
    PeakMemory,
    computed_columns,
    figures_at_the_top,
    hold_memory,
    run_times,
    warmed_up,
)
from suite.results import Row
from suite.tables import (
    Table,
    count,
    digits,
    figure,
    hundredths,
    plain,
    power,
    seconds_or_reason,
    table_of,
    text,
)

NAME = "budget"
SIZE, QUICK_SIZE = 45_000, 2500


def main() -> None:
    options = read_options()
    runner = program.Program(NAME, options)
    everything = megabytes(options.n, options.n)
    runner.run(
        [
            Case(options.data, options.n, method, lam, cache_size=everything)
            for lam in options.lambdas
            for method in options.methods
        ],
        measure_budget,
    )
    runner.finish(tables)


def read_options() -> argparse.Namespace:
    parser = program.parser(__doc__)
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--n", type=int)
    parser.add_argument("--lambdas", type=program.values(float))
    parser.add_argument(
        "--methods", type=program.values(str), default=["TopPush", "TauFPL(0.05)", "PatMatNP(0.05)"]
    )
    options = parser.parse_args()
    options.n = options.n or (QUICK_SIZE if options.quick else SIZE)
    options.lambdas = options.lambdas or ([1e-3] if options.quick else [1e-3, 1e-5])
    return options


def megabytes(columns: float, n: int) -> float:
    """`cache_size` for so many columns of `n` samples in single precision."""
    return columns * n * 4 / 2**20


def measure_budget(case: Case, repeats: int, limit: float, ready: Callable[[], None]) -> dict:
    """Figures of the fit with half of the columns, and of the one with all."""
    estimator, X, positive = warmed_up(case, limit)
    hold_memory(case.n)
    ready()
    free = float(np.median(run_times(lambda: estimator.fit(X, positive), repeats)))
    columns, support = computed_columns(estimator), len(estimator.support_)
    if math.isnan(columns):
        columns = support  # which it computed at least
    estimator.set_params(cache_size=megabytes(columns / 2, case.n))
    memory = PeakMemory()
    memory.start()
    times = run_times(lambda: estimator.fit(X, positive), repeats)
    seconds = float(np.median(times))
    return {
        "free_seconds": free,
        "seconds": seconds,
        "ratio": seconds / free,
        "runs": len(times),
        "support": support,
        "free_columns": columns,
        "budget_mb": estimator.cache_size,
        "peak_gb": memory.gigabytes(),
        **figures_at_the_top(estimator),
    }


COLUMNS = {
    "data": text("data"),
    "n": figure("n", count),
    "method": text("method"),
    "lambda": figure("lam", plain),
    "seconds, all fit": figure("free_seconds", digits),
    "seconds, half fit": seconds_or_reason,
    "ratio": figure("ratio", digits),
    "columns, all fit": figure("free_columns", count),
    "columns, half fit": figure("columns", count),
    "budget (MB)": figure("budget_mb", count),
    "GB beyond data": figure("peak_gb", hundredths),
    "gap": figure("gap", power),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """One line for each fit."""
    note = "Fits with room for every column, and for half of those that are computed then."
    return [table_of("Half of the columns", note, COLUMNS, rows)] if rows else []


if __name__ == "__main__":
    main()
