"""Draw fits at random and repeat each by itself, from nothing but what it depends on.

::

    python docs/paper_reproduce.py exact --cells 10 --seed 0

A fit of an experiment shares kernel columns with others and starts from the nearest; here each is a
single ``fit`` of its classifier.  Both are within their certified gaps of one optimum, so that
objectives agree to the sum of the two; metrics agree where no score is that near to a threshold.
The table goes to ``docs/_verdict/reproduced.inc``.
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from paper_page import rst_table
from paper_results import read_results, varied

from attop.experiments.data import resolve_dataset, split
from attop.experiments.fitting import _metrics
from attop.experiments.methods import build
from attop.experiments.specification import Experiment, load_experiment

OUTPUT = Path(__file__).parent / "_verdict" / "reproduced.inc"
#: Tables have ten digits of a metric.
DIGITS = 1e-9


def drawn(fits: pd.DataFrame, cells: int, seed: int) -> list[dict[str, Any]]:
    """So many fits, those of one data set beside each other."""
    some = fits[fits["objective"].notna()]
    places = sorted(random.Random(seed).sample(range(len(some)), min(cells, len(some))))
    return some.iloc[places].to_dict("records")


def repeat(
    fit: dict[str, Any], experiment: Experiment, cache_size: float | None, device: str | None
) -> list[str]:
    """A row of the table: the objective and the worst metric, then and now."""
    spec = next(one for one in experiment.datasets if one.label == fit["dataset"])
    method = next(one for one in experiment.methods if one.label == fit["method"])
    point = next(one for one in method.points() if one[varied(method)] == fit["value"])
    parts = split(resolve_dataset(spec), fit["seed"])
    solver = dict(experiment.solver)
    solver |= {} if cache_size is None else {"cache_size": cache_size}
    solver |= {} if device is None else {"device": device}
    model = build(
        method.method,
        point,
        experiment.kernel,
        solver,
        seed=fit["seed"],
        n_positives=float((parts.y_train == 1).sum()),
        n_samples=float(len(parts.y_train)),
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table has the gap
        model.fit(parts.X_train, parts.y_train)
    seconds = time.perf_counter() - began
    scores = model.decision_function(parts.X_test)
    metrics = _metrics(parts.y_test, scores, experiment.metrics, None)
    apart, worst = max((abs((metrics[name] or 0.0) - fit[name]), name) for name in metrics)
    off = abs(model.objective_ - fit["objective"]) / abs(fit["objective"])
    allowed = (fit["gap"] or 0.0) + model.dual_gap_
    row = [
        f"{fit['dataset']}, {fit['seed']}",
        fit["method"],
        fit["parameter"],
        f"{fit['objective']:.8g}",
        f"{model.objective_:.8g}",
        f"{off:.1e}",
        f"{allowed:.1e}",
        "yes" if off <= allowed else "NO",
        f"{100 * apart:.2f} % ({worst})" if apart > DIGITS else "none",
        f"{seconds:.1f}",
    ]
    print(" | ".join(row), flush=True)
    return row


def main(arguments: list[str] | None = None) -> None:
    """Draw, repeat, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stores", type=Path, nargs="+", help="stores, or tables made of them")
    parser.add_argument("--preset", default="paper-exact")
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache-size", type=float, help="megabytes, instead of the store's")
    parser.add_argument("--device", help="such as cuda")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    experiment = load_experiment(options.preset)
    fits = drawn(read_results(options.stores, options.preset), options.cells, options.seed)
    rows = [repeat(fit, experiment, options.cache_size, options.device) for fit in fits]
    heads = [
        "data set, seed", "method", "parameter", "objective", "by a single fit", "apart",
        "sum of the gaps", "agree", "largest change of a metric", "seconds",
    ]  # fmt: skip
    title = f"{len(rows)} fits of {options.preset}, drawn with seed {options.seed}"
    options.output.write_text(rst_table(title, heads, rows), encoding="utf-8")
    agree = sum(row[7] == "yes" for row in rows)
    print(f"{agree} of {len(rows)} agree: {options.output}")
    if agree < len(rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
