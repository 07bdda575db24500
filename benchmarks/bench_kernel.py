"""Fits with the Gaussian kernel against the floor and the SVC of two libraries.

    ATTOP_DATA=folder python benchmarks/bench_kernel.py [--data mnist,w8a] [--lambdas 1e-3] ...

The floor of a fit is the time to compute the kernel columns of its support vectors, by the
library's own fused kernel block, into memory that has been touched before.  Fits run to a
certified relative gap (1e-4, on Covertype 1e-3) and their time includes the certificate.
Peers get the same float32 samples in the same run, and stop by their own rule.  Times are
medians of several runs in a fresh process, compiled code loaded; scikit-learn's SVC runs once.
Memory is the peak of the process during the first fit beyond what it held before, the data
included in the latter.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from suite import program
from suite.cases import CACHE_SIZE, INTELEX, METHODS, SKLEARN, SVC_TOL, Case
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

NAME = "kernel"
SOME = ("TopPush", "TauFPL(0.05)", "PatMatNP(0.05)")
LAMBDAS = (1e-1, 1e-3, 1e-5)
QUICK_N, QUICK_METHODS, QUICK_LAMBDAS = 2500, ("TopPush", "PatMatNP(0.05)"), (1e-3,)


@dataclass(frozen=True)
class Plan:
    """The cases of a data set."""

    data: str
    methods: Sequence[str] = tuple(METHODS)
    lambdas: Sequence[float] = LAMBDAS
    surrogate: str = "hinge"
    tol: float = 1e-4
    cache_size: float = CACHE_SIZE

    def cases(self, n: int, peers: Sequence[str]) -> list[Case]:
        """The fits of this library and, for the hinge, of the peers, lambda by lambda."""
        result = []
        for lam in self.lambdas:
            result += [
                Case(self.data, n, method, lam, self.surrogate, "rbf", self.tol, self.cache_size)
                for method in self.methods
            ]
            if self.surrogate == "hinge":
                result += [Case(self.data, n, peer, lam, tol=SVC_TOL) for peer in peers]
        return result


PLANS = (
    Plan("mnist"),
    Plan("fashion_mnist"),
    Plan("cifar10"),
    # Leaves room within 2 GB for all that is not a column.
    Plan(
        "covertype", ("TauFPL(0.01)", "PatMatNP(0.01)", "SVM"), (1e-3,), tol=1e-3, cache_size=1500.0
    ),
    Plan("magic_gamma", ("SVM",), (1e-3, 1e-5)),
    Plan("w8a", SOME, (1e-3, 1e-5)),
    Plan("mnist", surrogate="quadratic_hinge"),
)


def main() -> None:
    options = read_options()
    runner = program.Program(NAME, options)
    cases: list[Case] = []
    for plan in PLANS:
        if plan.data in options.data and plan.surrogate in options.surrogates:
            n = min(options.n or DATASETS[plan.data].n, DATASETS[plan.data].n)
            cases += narrowed(plan, options).cases(n, runner.peers)
    runner.run(cases, measure_fit)
    runner.finish(tables)


def read_options() -> argparse.Namespace:
    parser = program.parser(__doc__)
    program.add_peer_options(parser)
    strings, floats = program.values(str), program.values(float)
    parser.add_argument("--data", type=strings, default=[plan.data for plan in PLANS])
    parser.add_argument("--methods", type=strings, help=f"of {', '.join(METHODS)}")
    parser.add_argument("--lambdas", type=floats, help="instead of those of each data set")
    parser.add_argument("--surrogates", type=strings, default=["hinge", "quadratic_hinge"])
    parser.add_argument("--n", type=int, help="most samples of a data set")
    options = parser.parse_args()
    unknown = {*options.data} - {plan.data for plan in PLANS}
    unknown |= {*(options.methods or ())} - {*METHODS}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if options.quick:
        options.n = options.n or QUICK_N
        options.methods = options.methods or QUICK_METHODS
        options.lambdas = options.lambdas or QUICK_LAMBDAS
    return options


def narrowed(plan: Plan, options: argparse.Namespace) -> Plan:
    """The plan with what the options ask for in the place of its own."""
    return Plan(
        plan.data,
        options.methods or plan.methods,
        options.lambdas or plan.lambdas,
        plan.surrogate,
        plan.tol,
        plan.cache_size,
    )


def tables(rows: Sequence[Row]) -> list[Table]:
    """A table for each data set, size and surrogate, lambda by lambda."""
    ours = [row for row in rows if row["method"] in METHODS]
    groups = dict.fromkeys((row["data"], row["n"], row["surrogate"]) for row in ours)
    return [_table(ours, rows, *group) for group in groups]


COLUMNS = {
    "method": text("method"),
    "lambda": figure("lam", plain),
    "seconds": seconds_or_reason,
    "intelex SVC": text("intelex"),
    "times as fast": figure("faster", digits),
    "scikit-learn SVC": text("sklearn"),
    "floor": figure("floor_seconds", digits),
    "times floor": figure("above", digits),
    "columns": figure("columns", count),
    "support vectors": figure("support", count),
    "blocks": figure("rounds", count),
    "gap": figure("gap", power),
    "GB beyond data": figure("peak_gb", hundredths),
    "SVC: GB": figure("intelex_gb", hundredths),
}


def _table(ours: Sequence[Row], rows: Sequence[Row], data: str, n: str, surrogate: str) -> Table:
    same = {"data": data, "n": n, "surrogate": surrogate}
    chosen = [
        beside_peers(row, rows)
        for row in ours
        if all(row[name] == value for name, value in same.items())
    ]
    chosen.sort(key=lambda row: -number(row, "lam"))  # keeps the order of the methods
    faster, above = (median(chosen, name) for name in ("faster", "above"))
    first = next((row for row in chosen if row.get("features")), chosen[0])
    note = (
        f"{DATASETS[data].about}: {shape(first)}, "
        f"gap {number(first, 'tol'):g}, {first['threads']} threads. Median: {digits(faster)} "
        f"times as fast as the SVC of scikit-learn-intelex, {digits(above)} times the floor."
    )
    if surrogate != "hinge":
        note += " The SVC has the hinge loss."
    title = f"Fits on {data}, n = {count(float(n))}, {surrogate.replace('_', ' ')}"
    return table_of(title, note, COLUMNS, chosen)


def beside_peers(row: Row, rows: Sequence[Row]) -> Row:
    """A fit with the times of its peers, and how it compares."""
    intelex, sklearn = (_peer(rows, row, name) for name in (INTELEX, SKLEARN))
    seconds = number(row, "seconds")
    return row | {
        "intelex": seconds_or_reason(intelex),
        "sklearn": seconds_or_reason(sklearn),
        "intelex_gb": str(number(intelex, "peak_gb")),
        "faster": str(number(intelex, "seconds") / seconds),
        "above": str(seconds / number(row, "floor_seconds")),
    }


def median(rows: Sequence[Row], name: str) -> float:
    """Median of the figures there are."""
    found = [number(row, name) for row in rows if math.isfinite(number(row, name))]
    return statistics.median(found) if found else math.nan


def _peer(rows: Sequence[Row], row: Row, name: str) -> Row | None:
    """The fit of a peer on the same samples at the same lambda."""
    same = ("data", "n", "lam", "kernel")
    return next(
        (o for o in rows if o["method"] == name and all(o[key] == row[key] for key in same)), None
    )


if __name__ == "__main__":
    main()
