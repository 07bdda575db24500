"""Linear models at scale: attop against scikit-learn's LinearSVC with the hinge loss.

    ATTOP_DATA=folder python benchmarks/bench_linear.py [--data made,covertype,w8a]

A made problem of a million samples and 100 features, of which 5 % are positive; Covertype with
its features standardised; w8a, which is sparse.  Every attop fit is certified to a relative gap
of 1e-3; LinearSVC stops by its own rule (tol 1e-4, 1000 passes at most), which is no bound on
its gap.  Memory is the peak that a fit adds to the process, as a multiple of the samples' bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from suite import program
from suite.cases import LINEAR_SVC, Case
from suite.data import DATASETS
from suite.measure import measure_fit
from suite.results import Row, number
from suite.tables import (
    Table,
    count,
    digits,
    figure,
    hundredths,
    power,
    seconds_or_reason,
    shape,
    table_of,
    text,
)

NAME = "linear"
QUICK_SIZE = 3000


def main() -> None:
    options = read_options()
    runner = program.Program(NAME, options)
    cases = []
    for data in options.data:
        n = min(options.n or DATASETS[data].n, DATASETS[data].n)
        for method in [*options.methods, LINEAR_SVC]:
            cases.append(Case(data, n, method, options.lam, kernel="linear", tol=1e-3))
    runner.run(cases, measure_fit)
    runner.finish(tables)


def read_options() -> argparse.Namespace:
    parser = program.parser(__doc__)
    strings = program.values(str)
    parser.add_argument("--data", type=strings, default=["made", "covertype", "w8a"])
    parser.add_argument("--n", type=int, help="most samples of a data set")
    parser.add_argument("--lam", type=float, default=1e-3)
    parser.add_argument(
        "--methods",
        type=strings,
        default=["TopPush", "TauFPL(0.01)", "TauFPL(0.05)", "PatMatNP(0.05)"],
    )
    options = parser.parse_args()
    options.n = options.n or (QUICK_SIZE if options.quick else None)
    return options


COLUMNS = {
    "method": text("method"),
    "seconds": seconds_or_reason,
    "times LinearSVC": figure("times", digits),
    "gap": figure("gap", power),
    "rounds": figure("rounds", count),
    "support vectors": figure("support", count),
    "memory / data": figure("memory", hundredths),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """A table for each data set."""
    groups = dict.fromkeys((row["data"], row["n"]) for row in rows)
    return [_table([r for r in rows if (r["data"], r["n"]) == group]) for group in groups]


def _table(rows: Sequence[Row]) -> Table:
    rival = number(next((r for r in rows if r["method"] == LINEAR_SVC), None), "seconds")
    lines = [
        row
        | {
            "times": str(number(row, "seconds") / rival),
            "memory": str(number(row, "peak_gb") / number(row, "data_gb")),
        }
        for row in rows
    ]
    first = rows[0]
    note = (
        f"{first['data']}: {shape(first)}, lambda {number(first, 'lam'):g}, linear, gap 1e-3, "
        f"{first['threads']} threads."
    )
    return table_of(f"Linear models on {first['data']}", note, COLUMNS, lines)


if __name__ == "__main__":
    main()
