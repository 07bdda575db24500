"""Scores of new samples: `decision_function` against that of the SVC.

    ATTOP_DATA=folder python benchmarks/bench_predict.py

Models fitted on MNIST score its test part.  Models differ in their support vectors, which is
a difference between the methods and not between the programs: the time is therefore given
also for each sample and support vector.  The samples are in single precision, and so are most
scores of this library and those of scikit-learn-intelex; scikit-learn's are in double precision.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from suite import program
from suite.cases import METHODS, SVC_TOL, Case
from suite.data import load_test_images
from suite.measure import figures_at_the_top, hold_memory, run_times, warmed_up
from suite.results import Row
from suite.tables import Table, count, digits, figure, plain, seconds_or_reason, table_of, text

NAME = "predict"
SIZE, QUICK_SIZE = 45_000, 2500
TEST_SIZE, QUICK_TEST_SIZE = 10_000, 1000


def main() -> None:
    options = read_options()
    runner = program.Program(NAME, options)
    cases = []
    for lam in options.lambdas:
        cases += [Case(options.data, options.n, method, lam) for method in options.methods]
        cases += [Case(options.data, options.n, peer, lam, tol=SVC_TOL) for peer in runner.peers]
    runner.run(cases, measure_scores)
    runner.finish(tables)


def read_options() -> argparse.Namespace:
    parser = program.parser(__doc__)
    program.add_peer_options(parser)
    parser.add_argument("--data", default="mnist", help="mnist, fashion_mnist")
    parser.add_argument("--n", type=int, help="samples of the fit")
    parser.add_argument("--lambdas", type=program.values(float))
    parser.add_argument(
        "--methods", type=program.values(str), default=["TopPush", "PatMatNP(0.05)"]
    )
    options = parser.parse_args()
    options.n = options.n or (QUICK_SIZE if options.quick else SIZE)
    options.lambdas = options.lambdas or ([1e-3] if options.quick else [1e-3, 1e-5])
    return options


def measure_scores(case: Case, repeats: int, limit: float, ready: Callable[[], None]) -> dict:
    """Figures of the scores of the test samples; the limit is for the fit and the scores."""
    estimator, X, positive = warmed_up(case, limit)
    hold_memory(case.n)
    test = load_test_images(case.data, QUICK_TEST_SIZE if case.n <= QUICK_SIZE else TEST_SIZE)
    ready()
    estimator.fit(X, positive)
    estimator.decision_function(test[:100])  # compiles, allocates
    times = run_times(lambda: estimator.decision_function(test), repeats)
    seconds, support = float(np.median(times)), len(estimator.support_)
    figures = {
        "seconds": seconds,
        "runs": len(times),
        "samples": len(test),
        "support": support,
        "nanoseconds": seconds / (len(test) * support) * 1e9,
    }
    return figures | (figures_at_the_top(estimator) if case.method in METHODS else {})


COLUMNS = {
    "data": text("data"),
    "n": figure("n", count),
    "model": text("method"),
    "lambda": figure("lam", plain),
    "samples": figure("samples", count),
    "seconds": seconds_or_reason,
    "support vectors": figure("support", count),
    "ns per sample and support vector": figure("nanoseconds", digits),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """One line for each model."""
    note = "Models fitted on n samples score samples of the test part."
    return [table_of("Scores of new samples", note, COLUMNS, rows)] if rows else []


if __name__ == "__main__":
    main()
