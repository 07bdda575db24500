"""Which conclusions of the paper stand, by numbers: sentences for the page ``paper_verdict``."""

from __future__ import annotations

import pandas as pd
from paper_page import bullets, rst_table

from attop.experiments.tables import score_table
from attop.statistics import Comparison, bayesian_signed_rank_test, compare

#: Differences of a share of the positives below this do not matter.
ROPE = 0.01
TAUS = ("0.01", "0.05")


def conclusions(
    fits: pd.DataFrame, rows: pd.DataFrame, medians: pd.DataFrame, mean_ranks: pd.DataFrame
) -> str:
    """All of them."""
    parts = [
        what_they_rest_on(rows, medians),
        by_rank(rows, mean_ranks),
        bullets(
            [
                patmat_is_worst(rows, medians),
                *top_push_against_svm(rows),
                *patmat_at_its_own_tau(rows, mean_ranks),
            ]
        ),
        choices(fits),
    ]
    return "\n".join(parts)


def what_they_rest_on(rows: pd.DataFrame, medians: pd.DataFrame) -> str:
    """How much of the paper's experiments is there."""
    splits = rows.groupby("dataset", sort=False)["seed"].nunique()
    there = ", ".join(f"{name} ({count} splits)" for name, count in splits.items())
    missing = [name for name in medians["dataset"].unique() if name not in splits.index]
    text = f"What follows rests on {there}. "
    if missing:
        text += (
            f"**Not run yet: {', '.join(missing)}.** Counts of cells of the paper are over what is "
            "there, its mean ranks over all of its data sets. "
        )
    return text.rstrip() + "\n"


def comparison_of(rows: pd.DataFrame, metric: str) -> tuple[Comparison, pd.DataFrame]:
    """Ranks over data sets and seeds, and the scores they are of."""
    scores = score_table(rows, metric).dropna()
    return compare(scores), scores


def by_rank(rows: pd.DataFrame, mean_ranks: pd.DataFrame) -> str:
    """Best and worst by each metric, and how alike the two orders are."""
    cells = []
    for metric, said in mean_ranks.groupby("metric", sort=False):
        said = said.set_index("method")["mean_rank"]
        found, scores = comparison_of(rows, metric)
        ours = pd.Series(found.ranks, index=scores.columns)
        alike = ours.rank().corr(said.reindex(ours.index).rank())
        cells.append(
            [
                metric,
                *(f"{series.idxmin()} {series.min():.2f}" for series in (said, ours)),
                *(f"{series.idxmax()} {series.max():.2f}" for series in (said, ours)),
                f"{alike:.2f}",
            ]
        )
    heads = [
        "metric", "best, paper", "best, optimum", "worst, paper", "worst, optimum",
        "correlation of the orders",
    ]  # fmt: skip
    return rst_table("Mean ranks, the paper's and those of the optima", heads, cells)


def patmat_is_worst(rows: pd.DataFrame, medians: pd.DataFrame) -> str:
    """In how many cells of the paper's tables the lowest median is one of PatMatNP."""
    ours = rows.groupby(["metric", "dataset", "method"], sort=False)["value"].median()
    ours = (100 * ours).round(2).rename("median").reset_index()
    places = (
        medians[["metric", "dataset"]]
        .drop_duplicates()
        .merge(ours[["metric", "dataset"]].drop_duplicates())
    )
    counts = []
    for table in (medians, ours):
        some = table.merge(places)
        least = some.groupby(["metric", "dataset"])["median"].transform("min")
        worst = some[(some["median"] == least) & some["method"].str.startswith("PatMatNP")]
        counts.append(len(worst[["metric", "dataset"]].drop_duplicates()))
    return (
        f"*Pat&Mat-NP as the worst.* In the paper one of the two has the lowest median in "
        f"{counts[0]} of {len(places)} cells of its tables, at the optimum in {counts[1]}."
    )


def top_push_against_svm(rows: pd.DataFrame) -> list[str]:
    """At the very top, split by split."""
    return [
        f"*TopPush against SVM by {metric}*: {duel(rows, metric, 'TopPush', 'SVM')}"
        for metric in ("tpr_at_k_1", "tpr_at_k_5", "tpr_at_k_10", "roc_auc")
    ]


def patmat_at_its_own_tau(rows: pd.DataFrame, mean_ranks: pd.DataFrame) -> list[str]:
    """By the very rate that it is made for."""
    points = []
    said = mean_ranks.set_index(["metric", "method"])["mean_rank"]
    for tau in TAUS:
        metric, method = f"tpr_at_fpr_{tau}", f"PatMatNP({tau})"
        found, scores = comparison_of(rows, metric)
        ours = dict(zip(scores.columns, found.ranks))
        place = 1 + sorted(ours, key=ours.get).index(method)
        paper_place = 1 + int((said[metric] < said[metric, method]).sum())
        points.append(
            f"*{method} by {metric}*: mean rank {ours[method]:.2f}, place {place} of {len(ours)} "
            f"(paper: {said[metric, method]:.2f}, place {paper_place}). Against "
            f"TauFPL({tau}): {duel(rows, metric, method, f'TauFPL({tau})')} Against SVM: "
            f"{duel(rows, metric, method, 'SVM')}"
        )
    return points


def duel(rows: pd.DataFrame, metric: str, one: str, other: str) -> str:
    """How often each is ahead, by how much, and whether that is more than chance."""
    found, scores = comparison_of(rows, metric)
    a, b = scores[one], scores[other]
    posterior = bayesian_signed_rank_test(a.to_numpy(), b.to_numpy(), rope=ROPE)
    i, j = (list(scores.columns).index(name) for name in (one, other))
    apart = not any(i in group and j in group for group in found.groups)
    verdict = "different" if apart else "not to be told apart"
    return (
        f"ahead on {(a > b).sum()} of {len(scores)} splits, behind on {(a < b).sum()}, "
        f"{100 * (a - b).median():+.2f} % in the median; {verdict} by the Nemenyi test "
        f"(mean ranks {found.ranks[i]:.2f} and {found.ranks[j]:.2f}); better by more than "
        f"{ROPE:.0%} with probability {posterior.left:.2f}, worse {posterior.right:.2f}."
    )


def choices(fits: pd.DataFrame) -> str:
    """How often each point of the grid was chosen: at an edge it may have ended too early."""
    best = fits[fits["chosen"] == 1]
    values = sorted(best["value"].unique())
    cells = []
    for method, some in best.groupby("method", sort=False):
        tried = fits[fits["method"] == method]["value"].unique()
        counts = [str((some["value"] == v).sum()) if v in tried else "" for v in values]
        cells.append([method, str(some["parameter"].iloc[0]).partition("=")[0], *counts])
    heads = ["method", "parameter", *(f"{value:g}" for value in values)]
    return rst_table("On how many splits each point of the grid was chosen", heads, cells)
