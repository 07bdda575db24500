"""Results of the paper's experiments as a table, from stores and from tables made earlier.

A table has all that the pages need, so that one that is kept, ``_static/paper_exact_results.csv``,
is a store for them: more fits are added to it by naming both.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from attop.experiments.methods import own_metric
from attop.experiments.specification import Experiment, MethodSpec, load_experiment

#: What says which fit it is.
PLACE = ("dataset", "seed", "method", "value")
PARTS = ("train", "valid", "test")


def read_results(sources: Iterable[Path], preset: str) -> pd.DataFrame:
    """Every fit of a preset in stores and tables; of fits in several the last is taken."""
    experiment = load_experiment(preset)
    sources = list(sources)
    rows = {}
    for source in sources:
        read = _of_table if source.suffix == ".csv" else _of_store
        for row in read(source, experiment):
            rows[tuple(row[name] for name in PLACE)] = row
    if not rows:
        raise SystemExit(f"There are no fits of {preset} in {', '.join(map(str, sources))}.")
    order = [dataset.label for dataset in experiment.datasets]
    labels = [method.label for method in experiment.methods]
    frame = pd.DataFrame(rows.values()).sort_values(
        list(PLACE),
        key=lambda column: (
            column.map({"dataset": order.index, "method": labels.index}[column.name])
            if column.name in ("dataset", "method")
            else column
        ),
    )
    return frame.reset_index(drop=True).assign(chosen=lambda fits: chosen(fits).astype(int))


def chosen(fits: pd.DataFrame) -> pd.Series:
    """Which fit of each method and split is best on the validation set: the first of equals."""
    best = fits[fits["own"].notna()].groupby(["dataset", "seed", "method"], sort=False)["own"]
    marks = pd.Series(False, index=fits.index)
    marks[best.idxmax()] = True
    return marks


def write_results(fits: pd.DataFrame, path: Path) -> None:
    """All fits as a CSV file."""
    fits.to_csv(path, index=False, float_format="%.10g", quoting=csv.QUOTE_MINIMAL)


def varied(method: MethodSpec) -> str:
    """The parameter that the grid of a method is of."""
    return next(iter(method.grid), "lambda")


def _of_table(path: Path, experiment: Experiment) -> Iterator[dict[str, Any]]:
    """The rows of a table that are of the experiment."""
    table = pd.read_csv(path)
    known = {(m.label, point[varied(m)]) for m in experiment.methods for point in m.points()}
    for row in table.to_dict("records"):
        if (row["method"], row["value"]) in known and row["seed"] in experiment.seeds:
            yield row


def _of_store(folder: Path, experiment: Experiment) -> Iterator[dict[str, Any]]:
    """The fits in a store that are of the experiment, whatever plan they were done by."""
    points = {
        (method.method, json.dumps(point, sort_keys=True)): (method.label, varied(method))
        for method in experiment.methods
        for point in method.points()
    }
    names = {dataset.name: dataset.label for dataset in experiment.datasets}
    for path in sorted((folder / "results").glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        known = points.get((record["method"], json.dumps(record["parameters"], sort_keys=True)))
        dataset, seed = record["dataset"], record["seed"]
        if known is None or dataset["name"] not in names or dataset["n_train"] is not None:
            continue
        if record["solver"]["name"] == experiment.solver["name"] and seed in experiment.seeds:
            yield _row(record, experiment.metrics, names[dataset["name"]], *known)


def _row(
    record: Any, metrics: list[str], dataset: str, label: str, parameter: str
) -> dict[str, Any]:
    """What the pages need of a fit."""
    own = own_metric(record["method"], record["parameters"])
    value = record["parameters"][parameter]
    sizes = record.get("sizes") or {}
    return {
        "dataset": dataset,
        "seed": record["seed"],
        "method": label,
        "parameter": f"{parameter}={value:g}",
        "value": value,
        "chosen": 0,
        "status": record["status"],
        "gap": record.get("gap"),
        "objective": record.get("objective"),
        "seconds": record["seconds"],
        "n_iter": record.get("n_iter"),
        "own": record["validation"].get(own),
        **{metric: record["test"].get(metric) for metric in metrics},
        **{f"n_{part}": sizes.get(part, [None])[0] for part in PARTS},
        **{f"n_positive_{part}": sizes.get(part, [None, None])[1] for part in PARTS},
    }
