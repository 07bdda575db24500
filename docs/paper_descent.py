"""What the descent of the paper comes to beside the optimum, fit by fit."""

from __future__ import annotations

import numpy as np
import pandas as pd
from paper_page import number, rst_table

PLACE = ["dataset", "seed", "method", "value"]
#: An objective this much above the optimum is no optimum.
NEAR = 0.01
SVM = "SVM"


def compared_with_optimum(descent: pd.DataFrame, fits: pd.DataFrame, metrics: list[str]) -> str:
    """Tables of how fits ended, and of what that changes on the test set."""
    own = descent[descent["method"] != SVM]
    both = own.merge(fits, on=PLACE, suffixes=("", "_optimum"))
    splits = own.groupby("dataset", sort=False)["seed"].unique()
    where = "; ".join(
        f"{name}, seeds {', '.join(map(str, seeds))}" for name, seeds in splits.items()
    )
    text = (
        f"{len(own)} fits of the descent ({where}), {len(both)} of them beside a certified "
        "optimum. The SVM is solved exactly in both, and left out.\n\n"
    )
    return text + how_they_ended(own, both) + "\n" + what_it_changes(descent, fits, metrics)


def excess(both: pd.DataFrame) -> pd.Series:
    """How much the objective is above the optimum, relative to it."""
    found, least = (both[name].astype(float) for name in ("objective", "objective_optimum"))
    return (found - least) / least.abs()


def how_they_ended(own: pd.DataFrame, both: pd.DataFrame) -> str:
    """For each method the status of its fits, and how far from the optimum they ended."""
    above = excess(both)
    rows = []
    for method in [*own["method"].unique(), "all"]:
        some = own if method == "all" else own[own["method"] == method]
        known = above if method == "all" else above[both["method"] == method]
        gaps = some["gap"].astype(float)
        finite = known[np.isfinite(known)]
        rows.append(
            [
                method,
                str(len(some)),
                *(str(int(some["status"].isin(kind).sum())) for kind in KINDS.values()),
                number(gaps.median(), ".2g"),
                f"{int((finite > NEAR).sum())} of {len(finite)}",
                number(finite.median(), ".2g"),
                number(finite.max(), ".2g"),
            ]
        )
    heads = [
        "method", "fits", *KINDS, "median gap", f"objective {NEAR:.0%} or more above the optimum",
        "median excess", "largest excess",
    ]  # fmt: skip
    return rst_table("How the fits of the descent ended", heads, rows)


#: Ends of the descent, by what is written of them.
KINDS = {
    "stopped by the paper's rule": ("CONVERGED", "PRECISION"),
    "out of epochs": ("MAX_ITER",),
    "stalled": ("STALLED",),
    "other": ("UNBOUNDED", "NOT_PSD", "FAILED", "MAX_TIME", "NO_CERTIFICATE"),
}


def what_it_changes(descent: pd.DataFrame, fits: pd.DataFrame, metrics: list[str]) -> str:
    """Medians of the chosen models where the descent has tried the whole grid of a method."""
    names = ["dataset", "seed", "method"]
    counts = descent.groupby(names).size().rename("n").reset_index()
    whole = counts[counts["n"] == fits.groupby(names).size().max()]
    picked = [
        table[table["chosen"] == 1].merge(whole[names])[[*names, *metrics]]
        for table in (descent, fits)
    ]
    both = picked[0].merge(picked[1], on=names, suffixes=("", "_optimum"))
    rows = []
    for (dataset, method), some in both.groupby(["dataset", "method"], sort=False):
        if method == SVM:
            continue
        cells = [
            f"{100 * some[metric].astype(float).median():.2f} "
            f"({100 * some[f'{metric}_optimum'].astype(float).median():.2f})"
            for metric in metrics
        ]
        rows.append([dataset, method, str(len(some)), *cells])
    if not rows:
        return ""
    heads = ["data set", "method", "seeds", *metrics]
    title = (
        "Percent on the test set, medians: models of the descent, in brackets those of the optimum"
    )
    return rst_table(title, heads, rows)
