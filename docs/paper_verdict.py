"""Make the tables, diagrams and data of the page ``paper_verdict`` from stores of results.

::

    attop run paper-exact --store exact
    attop run paper --store descent
    python docs/paper_verdict.py exact --descent descent --machine "two cores of ..."

The first store has the certified optima, the second, as far as it goes, what the descent of the
paper and its stopping rule come to.  A table made earlier is a store, too: fits are added to the
page by ``paper_verdict.py docs/_static/paper_exact_results.csv exact``.  ``--data`` names the
folder of the data sets, whose samples and positives are counted even where there is no fit yet.
What the paper says stands in ``docs/_verdict/paper_*.csv``.  Nothing of the page but its frame is
written by hand.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from paper_conclusions import conclusions
from paper_descent import compared_with_optimum
from paper_page import number, rst_table
from paper_results import PARTS, read_results, write_results

from attop.datasets import load_dataset
from attop.experiments.figures import draw_diagram
from attop.experiments.specification import Experiment, load_experiment
from attop.experiments.tables import score_table
from attop.statistics import compare

HERE = Path(__file__).parent
PAGE, STATIC = HERE / "_verdict", HERE / "_static"
NOT_RUN = "The preset ``paper`` has not been run at full size yet."
#: Sizes and shares of positives in percent as the paper's table has them.
SIZES = {
    "MNIST": (45000, 11.3, 15000, 11.2, 10000, 11.4),
    "FashionMNIST": (45000, 10.0, 15000, 9.9, 10000, 10.0),
    "CIFAR10": (37500, 10.0, 12500, 9.9, 10000, 10.0),
    "CIFAR20": (37500, 5.0, 12500, 5.1, 10000, 5.0),
    "CIFAR100": (37500, 1.0, 12500, 1.0, 10000, 1.0),
    "SVHN2": (54944, 18.9, 18313, 18.9, 26032, 19.6),
}


def long_table(fits: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """Test metrics of the chosen fits, as `attop.experiments.tables` wants them."""
    names = ["dataset", "method", "seed"]
    best = fits.loc[fits["chosen"] == 1, [*names, *metrics]]
    return best.melt(names, [*metrics], "metric", "value").astype({"value": float})


def reached(fits: pd.DataFrame, preset: str, arguments: Any) -> str:
    """How many fits there are, what is missing, and what they took."""
    experiment = load_experiment(preset)
    n_points = sum(len([*method.points()]) for method in experiment.methods)
    planned = n_points * len(experiment.seeds) * len(experiment.datasets)
    certified = int((fits["status"] == "CONVERGED").sum())
    gaps = fits["gap"].astype(float)
    done = (
        f"{len(fits):,} of {planned:,} fits, {certified:,} certified to a relative duality gap of "
        f"{experiment.solver['tol']:g}; the largest gap is {gaps.max():.2g}."
    )
    seconds = fits["seconds"]
    took = (
        f"They took {seconds.sum():,.0f} s, the sum over all fits, {seconds.median():.2g} s in the "
        f"median and {seconds.max():.0f} s at most."
    )
    data = (
        "Every fit, with its certificate and its six metrics on the test set, is in "
        ":download:`paper_exact_results.csv <_static/paper_exact_results.csv>`."
    )
    lines = [done, took, data]
    if arguments.machine:
        lines.append(f"Machine: {arguments.machine}.")
    rows = []
    for dataset in [one.label for one in experiment.datasets]:
        some = fits[fits["dataset"] == dataset]
        others = some[some["status"] != "CONVERGED"]["status"].value_counts()
        rows.append(
            [
                dataset,
                f"{len(some)} of {n_points * len(experiment.seeds)}",
                f"{some['seed'].nunique()}",
                f"{(some['status'] == 'CONVERGED').sum()}",
                ", ".join(f"{count} {name}" for name, count in others.items()) or "none",
                number(some["gap"].astype(float).max(), ".1e"),
                number(some["seconds"].sum(), ",.0f"),
                number(some["seconds"].max(), ".1f"),
            ]
        )
    heads = [
        "data set",
        "fits",
        "seeds",
        "certified",
        "others",
        "largest gap",
        "seconds",
        "slowest",
    ]
    return "\n\n".join(lines) + "\n\n" + rst_table("Fits that there are", heads, rows)


def counted(experiment: Experiment, folder: Path) -> pd.DataFrame:
    """Samples and positives of all splits of the data sets in a folder."""
    rows = []
    for one in experiment.datasets:
        data = load_dataset(one.name, data_home=folder, download_if_missing=False)
        # The labels are all that is looked at.
        labels = replace(data, X=np.empty((len(data.y), 0)), X_test=np.empty((len(data.y_test), 0)))
        for seed in experiment.seeds:
            split = labels.split(seed)
            row: dict[str, Any] = {"dataset": one.label}
            for part in PARTS:
                y = getattr(split, f"y_{part}")
                row |= {f"n_{part}": len(y), f"n_positive_{part}": int(y.sum())}
            rows.append(row)
    return pd.DataFrame(rows)


def sizes(splits: pd.DataFrame) -> str:
    """Counts and shares of the data beside those of the paper."""
    rows = []
    for dataset, some in splits.dropna(subset=["n_train"]).groupby("dataset", sort=False):
        paper = SIZES[dataset]
        cells = [dataset]
        for i, part in enumerate(PARTS):
            n = int(some[f"n_{part}"].iloc[0])
            share = 100 * (some[f"n_positive_{part}"] / some[f"n_{part}"]).median()
            cells += [f"{n:,} ({paper[2 * i]:,})", f"{share:.1f} ({paper[2 * i + 1]})"]
        rows.append(cells)
    heads = ["data set"]
    for part in ("training", "validation", "test"):
        heads += [part, "positive, %"]
    return rst_table(
        "Sizes and medians of the shares of positives; the paper's in brackets", heads, rows
    )


def cell_by_cell(rows: pd.DataFrame, metric: str, paper: pd.DataFrame) -> str:
    """Medians beside those of the paper, in percent: a row for each method."""
    chosen = rows[rows["metric"] == metric]
    medians = 100 * chosen.groupby(["method", "dataset"], sort=False)["value"].median().unstack()
    methods, datasets = chosen["method"].unique(), chosen["dataset"].unique()
    said = paper[paper["metric"] == metric].set_index(["method", "dataset"])["median"]
    shown = medians.round(2)
    cells = []
    for method in methods:
        row = [method]
        for dataset in datasets:
            value, column = shown.loc[method, dataset], shown[dataset]
            text = number(value, ".2f")
            if column.nunique() > 1 and value == column.max():
                text = f"**{text}**"
            elif column.nunique() > 1 and value == column.min():
                text = f"*{text}*"
            if (method, dataset) in said.index:
                text += f" ({said[method, dataset]:.2f})"
            row.append(text)
        cells.append(row)
    note = "; the paper's in brackets" if len(said) else "; the paper has no table of it"
    return rst_table(f"{metric}, percent, medians{note}", ["method", *datasets], cells)


def ranks(rows: pd.DataFrame, metrics: list[str], paper: pd.DataFrame) -> str:
    """Mean ranks by each metric beside those of the paper."""
    said = paper.set_index(["metric", "method"])["mean_rank"]
    columns, methods = {}, list(rows["method"].unique())
    for metric in metrics:
        scores = score_table(rows, metric).dropna()
        columns[metric] = dict(zip(scores.columns, compare(scores).ranks))
    cells = [
        [
            method,
            *(f"{columns[metric][method]:.2f} ({said[metric, method]:.2f})" for metric in metrics),
        ]
        for method in methods
    ]
    return rst_table("Mean ranks, 1 the best; the paper's in brackets", ["method", *metrics], cells)


def diagrams(rows: pd.DataFrame, metrics: list[str], folder: Path) -> str:
    """A critical difference diagram for each metric."""
    parts = []
    for metric in metrics:
        name = f"verdict_{metric}.svg"
        figure = draw_diagram(rows.to_dict("records"), metric)
        figure.savefig(folder / name, metadata={"Date": None})
        plt.close(figure)
        parts.append(f".. figure:: _static/{name}\n   :alt: Critical differences, {metric}\n")
    return "\n".join(parts)


def main(arguments: list[str] | None = None) -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stores", type=Path, nargs="+", help="stores and tables of paper-exact")
    parser.add_argument("--descent", type=Path, nargs="+", help="those of the preset paper")
    parser.add_argument("--data", type=Path, help="folder of the data sets, to count samples")
    parser.add_argument("--machine", default="", help="in words, and the wall-clock time")
    parser.add_argument("--output", type=Path, default=HERE, help="folder of the documentation")
    options = parser.parse_args(arguments)
    plt.rcParams["svg.hashsalt"] = "attop"
    page, static = options.output / "_verdict", options.output / "_static"
    page.mkdir(parents=True, exist_ok=True)
    static.mkdir(parents=True, exist_ok=True)
    fits = read_results(options.stores, "paper-exact")
    experiment = load_experiment("paper-exact")
    metrics = experiment.metrics
    splits = fits if options.data is None else counted(experiment, options.data)
    rows = long_table(fits, metrics)
    medians, mean_ranks = (pd.read_csv(PAGE / f"paper_{name}.csv") for name in ("medians", "ranks"))
    write_results(fits, static / "paper_exact_results.csv")
    descent = None if options.descent is None else read_results(options.descent, "paper")
    if descent is not None:
        write_results(descent, static / "paper_descent_results.csv")
    by_metric = "\n".join(cell_by_cell(rows, metric, medians) for metric in metrics)
    parts = {
        "conclusions": conclusions(fits, rows, medians, mean_ranks),
        "tables": by_metric,
        "ranks": ranks(rows, metrics, mean_ranks) + "\n" + diagrams(rows, metrics, static),
        "reached": reached(fits, "paper-exact", options) + "\n" + sizes(splits),
        "descent": NOT_RUN if descent is None else compared_with_optimum(descent, fits, metrics),
    }
    for name, text in parts.items():
        (page / f"{name}.inc").write_text(text.rstrip() + "\n", encoding="utf-8")
    print(f"{len(fits)} fits of paper-exact: {page}")


if __name__ == "__main__":
    main()
