"""Linear models against scikit-learn's LinearSVC with the same lambda and loss.

    ATTOP_DATA=folder python benchmarks/bench_linear.py [--data w8a,a9a] [--lams 1e-2,1e-4]

Sparse: w8a, a9a, and made documents of 50,000 words.  Dense, standardised: backdoor, celeba,
donors, Covertype; and a made problem of a million samples and 100 features, of which 5 % are
positive.  Every attop fit is certified to a relative gap of 1e-3; LinearSVC (`dual="auto"`) stops
by its own rule (tol 1e-4, 1000 passes at most), which is no bound on its gap, and so does
LogisticRegression.  Memory is the peak that a fit adds to the process, as a multiple of the
samples' bytes.  The ratio is the time of LinearSVC over that of the fit: above 1 the fit is faster.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from suite import program
from suite.cases import LINEAR_SVC, LOGISTIC, Case
from suite.data import DATASETS
from suite.measure import measure_fit
from suite.results import Row, number
from suite.tables import (
    Table,
    count,
    digits,
    figure,
    hundredths,
    plain,
    power,
    seconds_or_reason,
    shape,
    table_of,
    text,
)

NAME = "linear"
QUICK_SIZE = 3000
SURROGATES = ["hinge", "quadratic_hinge"]


def main() -> None:
    options = read_options()
    runner = program.Program(NAME, options)
    cases = []
    for data in options.data:
        n = min(options.n or DATASETS[data].n, DATASETS[data].n)
        for surrogate in options.surrogates:
            for lam in options.lams:
                for method in [*options.methods, LINEAR_SVC, LOGISTIC]:
                    cases.append(Case(data, n, method, lam, surrogate, kernel="linear", tol=1e-3))
    runner.run(cases, measure_fit)
    runner.finish(tables)


def read_options() -> argparse.Namespace:
    parser = program.parser(__doc__)
    strings = program.values(str)
    parser.add_argument(
        "--data",
        type=strings,
        default=["w8a", "a9a", "text", "backdoor", "celeba", "donors", "covertype", "made"],
    )
    parser.add_argument("--n", type=int, help="most samples of a data set")
    parser.add_argument("--lams", type=program.values(float), help="1e-2 to 1e-5 if not given")
    parser.add_argument("--surrogates", type=strings, default=SURROGATES)
    parser.add_argument(
        "--methods",
        type=strings,
        default=[
            "TopPush",
            "TopPushK(5)",
            "TauFPL(0.01)",
            "TauFPL(0.05)",
            "PatMatNP(0.01)",
            "PatMatNP(0.05)",
            "PatMat(0.05)",
            "TopMeanK(0.05)",
            "SVM",
        ],
    )
    options = parser.parse_args()
    options.n = options.n or (QUICK_SIZE if options.quick else None)
    options.lams = options.lams or ([1e-3] if options.quick else [1e-2, 1e-3, 1e-4, 1e-5])
    return options


COLUMNS = {
    "method": text("method"),
    "loss": text("surrogate"),
    "lambda": figure("lam", plain),
    "seconds": seconds_or_reason,
    "LinearSVC / it": figure("ratio", digits),
    "gap": figure("gap", power),
    "steps": figure("rounds", count),
    "support vectors": figure("support", count),
    "memory / data": figure("memory", hundredths),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """A table for each data set."""
    groups = dict.fromkeys((row["data"], row["n"]) for row in rows)
    return [_table([r for r in rows if (r["data"], r["n"]) == group]) for group in groups]


def _table(rows: Sequence[Row]) -> Table:
    rivals = {_problem(r): number(r, "seconds") for r in rows if r["method"] == LINEAR_SVC}
    lines = [
        row
        | {
            "ratio": str(rivals.get(_problem(row), float("nan")) / number(row, "seconds")),
            "memory": str(number(row, "peak_gb") / number(row, "data_gb")),
        }
        for row in rows
    ]
    first = rows[0]
    note = f"{first['data']}: {shape(first)}, linear, gap 1e-3, {first['threads']} threads."
    return table_of(f"Linear models on {first['data']}", note, COLUMNS, lines)


def _problem(row: Row) -> tuple[str, float]:
    """What a fit and its peer have in common."""
    return row["surrogate"], number(row, "lam")


if __name__ == "__main__":
    main()
