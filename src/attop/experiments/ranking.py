"""Methods compared over many data sets: mean ranks, tests, and a page of them.

Data sets are the comparisons, and their seeds are averaged first: ten seeds of one data set are no
ten data sets.  Only splits on which every method has a result count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from attop.experiments.kept import KeptResults
from attop.experiments.tables import score_table
from attop.statistics import bayesian_signed_rank_test, compare, wilcoxon_holm_test

#: Differences of shares that do not matter to the Bayesian test.
ROPE = 0.01


class Ranking(NamedTuple):
    """One metric at one number of training samples.

    Attributes
    ----------
    metric : str
        The metric.
    scores : DataFrame
        Means over the seeds: a row for each data set, a column for each method.
    n_splits : int
        Data sets and seeds that they are means of.
    comparison : Comparison
        Ranks, Friedman's and Nemenyi's tests.
    reference : str
        The method that the others are compared with.
    holm : dict of str to float
        p-value of each other method against it: Wilcoxon's signed-rank test, corrected by Holm for
        all pairs.
    bayes : dict of str to SignedRankPosterior
        Against each other method: how probable it is that the reference is better by more than
        `ROPE`, that they are equivalent, and that the other one is better.
    """

    metric: str
    scores: Any
    n_splits: int
    comparison: Any
    reference: str
    holm: dict[str, float]
    bayes: dict[str, Any]

    @property
    def methods(self) -> list[str]:
        """Names, the best mean rank first."""
        order = np.argsort(self.comparison.ranks, kind="stable")
        return [self.comparison.names[i] for i in order]

    def rank(self, method: str) -> float:
        """Mean rank of a method."""
        return float(self.comparison.ranks[self.comparison.names.index(method)])


def rankings(results: KeptResults, reference: str) -> dict[int | None, list[Ranking]]:
    """Every metric, for each number of training samples.

    Parameters
    ----------
    results : KeptResults
        What was run.
    reference : str
        The method that the others are compared with.

    Returns
    -------
    dict of int to list of Ranking
        By the number of training samples, None for all; what has fewer than two data sets is left
        out.
    """
    methods = results.fits["method"].unique().tolist()
    if reference not in methods:
        raise ValueError(f"There is no method {reference!r} with results, only {sorted(methods)}.")
    found: dict[int | None, list[Ranking]] = {}
    for size, fits in results.fits.groupby("n_train", dropna=False, sort=False):
        rows = KeptResults(fits).table()
        made = [_ranking(rows, metric, reference, len(methods)) for metric in results.metrics]
        if any(made):
            found[None if np.isnan(size) else int(size)] = [one for one in made if one is not None]
    return found


def _ranking(rows: Any, metric: str, reference: str, n_methods: int) -> Ranking | None:
    table = score_table(rows, metric).dropna()
    scores = table.groupby(level="dataset").mean()
    if len(scores) < 2 or scores.shape[1] < n_methods:
        return None
    names = list(scores.columns)
    at = names.index(reference)
    holm = wilcoxon_holm_test(scores)[at]
    others = [name for name in names if name != reference]
    return Ranking(
        metric,
        scores,
        len(table),
        compare(scores),
        reference,
        {name: float(holm[names.index(name)]) for name in others},
        {
            name: bayesian_signed_rank_test(scores[reference], scores[name], rope=ROPE)
            for name in others
        },
    )


def ranking_page(
    results: KeptResults, found: dict[int | None, list[Ranking]], prefix: str = ""
) -> str:
    """The tables of a page, in reStructuredText; figures are those of `draw_rankings`."""
    parts = []
    for size, metrics in found.items():
        first = metrics[0]
        title = f"{size:,} training samples" if size else "All training samples"
        parts += [
            f"{title}\n{'-' * len(title)}\n",
            _extent(first),
            _ranks_table(metrics),
            *(f".. figure:: {prefix}{figure_name(size, one)}\n   :alt: Mean ranks, {one.metric}\n"
              for one in metrics if one.metric.startswith("tpr_at_fpr")),
            _means_table(metrics, _seconds(results, size)),
            *(_against(one) for one in metrics if one.metric.startswith("tpr_at_fpr")),
        ]  # fmt: skip
    return "\n".join(parts)


def _extent(one: Ranking) -> str:
    """How much a ranking is made of."""
    mean = one.n_splits / len(one.scores)
    return (
        f"{len(one.scores)} data sets, {one.n_splits} splits ({mean:.1f} seeds each on average), "
        f"{len(one.methods)} methods.\n"
    )


def figure_name(size: int | None, ranking: Ranking) -> str:
    """Name of the file of a diagram."""
    return f"ranks_{size or 'all'}_{ranking.metric}.svg"


def _seconds(results: KeptResults, size: int | None) -> dict[str, float]:
    """Seconds of a whole search, on average."""
    sizes = results.fits["n_train"]
    there = sizes.isna() if size is None else sizes == size
    return results.fits[there].groupby("method")["seconds"].mean().to_dict()


def _ranks_table(metrics: list[Ranking]) -> str:
    best = [one.methods[0] for one in metrics]
    rows = [
        [method, *(_bold(f"{one.rank(method):.2f}", top == method)
                   for one, top in zip(metrics, best))]
        for method in _order(metrics)
    ]  # fmt: skip
    tests = [f"{one.comparison.friedman.f_pvalue:.1g}" for one in metrics]
    widths = [f"{one.comparison.critical_difference:.2f}" for one in metrics]
    rows += [["Friedman's test (Iman and Davenport), p", *tests]]
    rows += [["Nemenyi's critical difference (0.05)", *widths]]
    return _list_table("Mean ranks, 1 is the best", ["Method", *_heads(metrics)], rows)


def _means_table(metrics: list[Ranking], seconds: dict[str, float]) -> str:
    best = [one.scores.mean().max() for one in metrics]
    rows = [
        [method, *(_bold(f"{one.scores[method].mean():.3f}", one.scores[method].mean() == top)
                   for one, top in zip(metrics, best)), f"{seconds[method]:.1f}"]
        for method in _order(metrics)
    ]  # fmt: skip
    heads = ["Method", *_heads(metrics), "seconds"]
    return _list_table("Means over the data sets; processor seconds of a search", heads, rows)


def _against(one: Ranking) -> str:
    rows = [
        [name, f"{one.scores[one.reference].mean() - one.scores[name].mean():+.3f}",
         f"{one.holm[name]:.2g}",
         *(f"{share:.2f}" for share in one.bayes[name])]
        for name in one.methods if name != one.reference
    ]  # fmt: skip
    heads = ["Method", "mean difference", "p (Wilcoxon, Holm)", "better", "equivalent", "worse"]
    title = f"{one.reference} against the others, {one.metric}"
    return _list_table(title, heads, rows)


def _order(metrics: list[Ranking]) -> list[str]:
    """Methods by their mean rank at a false positive rate of 1 %, or in the first metric."""
    named = {one.metric: one for one in metrics}
    return named.get("tpr_at_fpr_0.01", metrics[0]).methods


def _heads(metrics: list[Ranking]) -> list[str]:
    return [f"``{one.metric}``" for one in metrics]


def _bold(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def _list_table(title: str, heads: list[str], rows: list[list[str]]) -> str:
    lines = [f".. list-table:: {title}", "   :header-rows: 1", ""]
    for row in [heads, *rows]:
        lines += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(row)]
    return "\n".join([*lines, ""])


def draw_rankings(found: dict[int | None, list[Ranking]]) -> dict[str, Any]:
    """Critical difference diagrams of the true positive rates, by the names of their files."""
    from attop.plotting import CriticalDifferenceDisplay

    return {
        figure_name(size, one): CriticalDifferenceDisplay.from_comparison(
            one.comparison, title=one.metric, rows=f"{len(one.scores)} data sets"
        ).figure_
        for size, metrics in found.items()
        for one in metrics
        if one.metric.startswith("tpr_at_fpr")
    }
