"""True positive rates at small false positive rates: linear model against Nystroem features.

    ATTOP_DATA=folder python benchmarks/bench_nystroem.py [--components 1000] [--halves 10]

Covertype (286,048 x 10, 0.96 % positive), TauFPL(0.01) trained on one half and judged on the
other, at a false positive rate of 1 % and, since the linear model leaves almost nothing to gain
there, at smaller ones.  Rates are means over several ways to halve the samples, and at 1 % the
positives that are missed are counted as well.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from attop import TauFPL
from attop.metrics import tpr_at_fpr
from suite import program
from suite.data import DATASETS, load
from suite.measure import figures_at_the_top
from suite.results import Row, number
from suite.tables import Table, count, figure, plain, power, seconds_or_reason, table_of

NAME = "nystroem"
TAU = 0.01
QUICK_SIZE = 3000
#: False positive rates at which the models are judged.
RATES = (0.01, 0.001, 0.0001)


@dataclass(frozen=True)
class FeaturesCase:
    """A model on Nystroem features, or the linear one where there are none."""

    data: str
    n: int
    components: int
    lam: float
    solver: str
    halves: int

    def __str__(self) -> str:
        return f"{self.data} {self.n}, {model_name(self.components)}, lambda {self.lam:g}"


def main() -> None:
    options = read_options()
    runner = program.Program(NAME, options)
    cases = [
        FeaturesCase("covertype", options.n, components, lam, options.solver, options.halves)
        for components in (0, options.components)
        for lam in options.lambdas
    ]
    runner.run(cases, measure_rates)
    runner.finish(tables)


def read_options() -> argparse.Namespace:
    parser = program.parser(__doc__)
    parser.add_argument("--components", type=int, help="Nystroem features")
    parser.add_argument("--n", type=int, help="samples, of which half are for training")
    parser.add_argument("--halves", type=int, help="ways to halve the samples")
    parser.add_argument("--solver", default="auto", help="exact, primal or auto")
    parser.add_argument("--lambdas", type=program.values(float), default=[1e-1, 1e-3, 1e-5])
    options = parser.parse_args()
    options.n = options.n or (QUICK_SIZE if options.quick else DATASETS["covertype"].n)
    options.components = options.components or (100 if options.quick else 1000)
    options.halves = options.halves or (2 if options.quick else 10)
    return options


def measure_rates(
    case: FeaturesCase, repeats: int, limit: float, ready: Callable[[], None]
) -> dict:
    """Seconds of the fits, the gap of the last, and the rates on the other halves."""
    warnings.filterwarnings("ignore")  # the table shows the gap reached
    X, positive = load(case.data, case.n)
    model = model_of(case, positive.sum() / 2, limit)
    model.fit(X[:3000], positive[:3000])  # compiles
    ready()
    times, rates = [], []
    for half in range(case.halves):
        X_train, X_test, y_train, y_test = train_test_split(
            X, positive, test_size=0.5, stratify=positive, random_state=half
        )
        began = time.perf_counter()
        model.fit(X_train, y_train)
        times.append(time.perf_counter() - began)
        scores = model.decision_function(X_test)
        rates.append([tpr_at_fpr(y_test, scores, rate) for rate in RATES])
    judged = case.halves * int(y_test.sum())
    means = dict(zip((f"tpr_at_{rate:g}" for rate in RATES), np.mean(rates, axis=0), strict=True))
    figures = {"seconds": float(np.median(times)), "runs": len(times), "judged": judged}
    missed = round(judged * (1.0 - means[f"tpr_at_{RATES[0]:g}"]))
    return figures | figures_at_the_top(model) | means | {"missed": missed}


def model_of(case: FeaturesCase, n_positives: float, limit: float) -> TauFPL:
    """The estimator of a case."""
    features = {"approximation": "nystroem", "n_components": case.components}
    return TauFPL(
        TAU,
        C=float(1 / (case.lam * n_positives)),
        solver=case.solver,
        tol=1e-3,
        max_time=limit,
        random_state=0,
        **({"kernel": "rbf", **features} if case.components else {"kernel": "linear"}),
    )


def model_name(components: int) -> str:
    return f"{components} Nystroem features" if components else "linear"


COLUMNS = {
    "model": lambda row: model_name(int(row["components"])),
    "lambda": figure("lam", plain),
    "seconds": seconds_or_reason,
    "gap": figure("gap", power),
    f"missed at {RATES[0]:.0%}": figure("missed", count),
} | {f"TPR at {rate:.2%}": figure(f"tpr_at_{rate:g}", "{:.4f}".format) for rate in RATES}


def tables(rows: Sequence[Row]) -> list[Table]:
    """One line for each model."""
    if not rows:
        return []
    note = (
        f"TauFPL({TAU}) on one half of {count(number(rows[0], 'n'))} samples of Covertype, true "
        "positive rates at small false positive rates on the other half: means over "
        f"{rows[0]['halves']} ways to halve them, and how many of the "
        f"{count(number(rows[0], 'judged'))} positives judged are missed at the first rate."
    )
    return [table_of("Linear models against Nystroem features", note, COLUMNS, rows)]


if __name__ == "__main__":
    main()
