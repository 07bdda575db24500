"""Draw fits of a store at random and repeat each by itself, from nothing but what it depends on.

::

    python docs/paper_reproduce.py exact --cells 10 --seed 0

A fit of an experiment shares kernel columns with others and starts from the nearest; here each is a
single ``fit`` of its classifier.  Both are within their certified gaps of one optimum, so that
objectives agree to the sum of the two; metrics agree where no score is that near to a threshold.
The table goes to ``docs/_verdict/reproduced.inc``.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import warnings
from pathlib import Path
from typing import Any

from paper_page import rst_table

from attop.experiments.data import DatasetSpec, resolve_dataset, split
from attop.experiments.fitting import _metrics
from attop.experiments.methods import build, label_of
from attop.experiments.specification import load_experiment

OUTPUT = Path(__file__).parent / "_verdict" / "reproduced.inc"


def drawn(folder: Path, preset: str, cells: int, seed: int) -> list[dict[str, Any]]:
    """So many fits of the store, those of one data set beside each other."""
    solver = load_experiment(preset).solver["name"]
    records = [json.loads(path.read_text()) for path in sorted((folder / "results").glob("*.json"))]
    some = [one for one in records if one["solver"]["name"] == solver and not one["error"]]
    if not some:
        raise SystemExit(f"There are no fits of {preset} in {folder}.")
    chosen = random.Random(seed).sample(some, min(cells, len(some)))
    return sorted(chosen, key=lambda one: (one["dataset"]["name"], one["seed"], one["method"]))


def repeat(record: dict[str, Any], cache_size: float | None, device: str | None) -> list[str]:
    """A row of the table: the objective and the worst metric, then and now."""
    spec = DatasetSpec(name=record["dataset"]["name"], n_train=record["dataset"]["n_train"])
    spec = resolve_dataset(spec)
    parts = split(spec, record["seed"])
    solver = {name: value for name, value in record["solver"].items() if name != "device"}
    solver |= {} if cache_size is None else {"cache_size": cache_size}
    solver |= {} if device is None else {"device": device}
    model = build(
        record["method"],
        record["parameters"],
        record["kernel"],
        solver,
        seed=record["seed"],
        n_positives=float((parts.y_train == 1).sum()),
        n_samples=float(len(parts.y_train)),
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table has the gap
        model.fit(parts.X_train, parts.y_train)
    seconds = time.perf_counter() - began
    metrics = _metrics(parts.y_test, model.decision_function(parts.X_test), [*record["test"]], None)
    apart, worst = max(
        (abs((metrics[name] or 0.0) - (value or 0.0)), name)
        for name, value in record["test"].items()
    )
    off = abs(model.objective_ - record["objective"]) / abs(record["objective"])
    allowed = (record["gap"] or 0.0) + model.dual_gap_
    parameters = ", ".join(
        f"{k}={v:g}" for k, v in record["parameters"].items() if k in "lambdatheta"
    )
    row = [
        f"{spec.label}, {record['seed']}",
        label_of(record["method"], record["parameters"]),
        parameters,
        f"{record['objective']:.8g}",
        f"{model.objective_:.8g}",
        f"{off:.1e}",
        f"{allowed:.1e}",
        "yes" if off <= allowed else "NO",
        f"{100 * apart:.2f} % ({worst})" if apart else "none",
        f"{seconds:.1f}",
    ]
    print(" | ".join(row), flush=True)
    return row


def main(arguments: list[str] | None = None) -> None:
    """Draw, repeat, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--preset", default="paper-exact")
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache-size", type=float, help="megabytes, instead of the store's")
    parser.add_argument("--device", help="such as cuda")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    records = drawn(options.store, options.preset, options.cells, options.seed)
    rows = [repeat(record, options.cache_size, options.device) for record in records]
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
