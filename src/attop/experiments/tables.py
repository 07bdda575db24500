"""Tables of results: medians over seeds, with the best and the worst method marked.

Results are a long table, a row for each number, with the columns of `RESULT_COLUMNS`.
"""

from __future__ import annotations

import csv
import html
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attop._words import did_you_mean

#: Columns of a long table of results.
RESULT_COLUMNS = ("dataset", "method", "seed", "metric", "value")

_MISSING = "-"
#: How each kind of document sets the best and the worst number apart.
_TEXT_MARKS = {"best": "{}*", "worst": "{}!", "": "{} "}
#: In colour as in the paper, and apart without it.
_LATEX_MARKS = {
    "best": r"\cellcolor[RGB]{{127,202,127}}\textbf{{{}}}",
    "worst": r"\cellcolor[RGB]{{202,127,127}}\underline{{{}}}",
    "": "{}",
}
_HTML_MARKS = {"best": "<strong>{}</strong>", "worst": "<em>{}</em>", "": "{}"}
_LATEX_ESCAPES = str.maketrans(
    {character: "\\" + character for character in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
)


@dataclass(frozen=True)
class MediansTable:
    """Medians of one metric over the seeds, a row for each method, a column for each data set.

    Use `medians_table` to create one.

    Attributes
    ----------
    metric : str
        The metric.
    methods, datasets : list of str
        Names of rows and columns.
    medians : ndarray of shape (n_methods, n_datasets)
        The medians; NaN where there is no result.
    n_seeds : ndarray of int of shape (n_methods, n_datasets)
        How many results each median is of.
    higher_is_better : bool
        Whether the best is the largest.
    percent : bool
        Whether shares are shown as percent.
    decimals : int
        Digits after the point.
    """

    metric: str
    methods: list[str]
    datasets: list[str]
    medians: NDArray[np.float64]
    n_seeds: NDArray[np.int64]
    higher_is_better: bool = True
    percent: bool = True
    decimals: int = 2

    @property
    def cells(self) -> list[list[str]]:
        """The numbers as they are shown."""
        shown = self._shown
        return [
            [_MISSING if np.isnan(value) else f"{value:.{self.decimals}f}" for value in row]
            for row in shown
        ]

    @property
    def marks(self) -> list[list[str]]:
        """``"best"``, ``"worst"`` or ``""`` for each number.

        Numbers that are shown alike are marked alike; a data set on which all methods are
        alike has no marks.
        """
        shown = self._shown if self.higher_is_better else -self._shown
        marks = np.full(shown.shape, "", dtype=object)
        for column in range(shown.shape[1]):
            values = shown[:, column]
            present = values[~np.isnan(values)]
            if len(present) and present.min() < present.max():
                marks[values == present.max(), column] = "best"
                marks[values == present.min(), column] = "worst"
        return marks.tolist()

    @property
    def _shown(self) -> NDArray[np.float64]:
        return np.round(self.medians * (100.0 if self.percent else 1.0), self.decimals)

    @property
    def caption(self) -> str:
        """The metric, its unit, and of how many seeds the medians are."""
        counts = self.n_seeds[self.n_seeds > 0]
        low, high = (int(counts.min()), int(counts.max())) if len(counts) else (0, 0)
        seeds = f"{low} seed{'s' * (low != 1)}" if low == high else f"{low} to {high} seeds"
        return f"{self.metric}{' [%]' if self.percent else ''}, medians of {seeds}"

    def to_text(self) -> str:
        """The table for a terminal: ``*`` marks the best, ``!`` the worst of a data set."""
        rows = [["method", *(f"{name} " for name in self.datasets)]]
        rows += [[name, *row] for name, row in zip(self.methods, self._marked(_TEXT_MARKS))]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = []
        for row in rows:
            first, *rest = (
                cell.rjust(width) if column else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(row, widths))
            )
            lines.append("  ".join([first, *rest]).rstrip())
        return "\n".join([self.caption, "", *lines, "", "* best  ! worst"]) + "\n"

    def to_csv(self) -> str:
        """A line for each number, in full precision: what a program wants to read."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(["metric", "method", "dataset", "median", "n_seeds", "mark"])
        marks = self.marks
        for i, method in enumerate(self.methods):
            for j, dataset in enumerate(self.datasets):
                median = _precise(self.medians[i, j])
                writer.writerow(
                    [self.metric, method, dataset, median, int(self.n_seeds[i, j]), marks[i][j]]
                )
        return buffer.getvalue()

    def to_latex(self) -> str:
        r"""A ``table``: the best is green and bold, the worst red and underlined.

        The colours are those of the paper; they need ``\usepackage[table]{xcolor}``.
        """
        lines = [
            r"% \usepackage[table]{xcolor}",
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_latex(self.caption)}; best green, worst red}}",
            rf"  \begin{{tabular}}{{l{'r' * len(self.datasets)}}}",
            r"    \hline",
            "    " + " & ".join(["Method", *map(_latex, self.datasets)]) + r" \\",
            r"    \hline",
        ]
        for name, row in zip(self.methods, self._marked(_LATEX_MARKS)):
            lines.append("    " + " & ".join([_latex(name), *row]) + r" \\")
        lines += [r"    \hline", r"  \end{tabular}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """A ``<table>``; cells have the class ``best`` or ``worst`` and their full value."""
        heads = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in self.datasets)
        lines = [
            '<table class="medians">',
            f"<caption>{html.escape(self.caption)}</caption>",
            f'<thead><tr><th scope="col">Method</th>{heads}</tr></thead>',
            "<tbody>",
        ]
        marks, marked = self.marks, self._marked(_HTML_MARKS)
        for i, name in enumerate(self.methods):
            cells = "".join(
                f'<td class="{marks[i][j]}" data-value="{_precise(self.medians[i, j])}">'
                f"{marked[i][j]}</td>"
                for j in range(len(self.datasets))
            )
            lines.append(f'<tr><th scope="row">{html.escape(name)}</th>{cells}</tr>')
        return "\n".join([*lines, "</tbody>", "</table>"]) + "\n"

    def _marked(self, patterns: dict[str, str]) -> list[list[str]]:
        return [
            [patterns[mark].format(cell) for cell, mark in zip(cells, marks)]
            for cells, marks in zip(self.cells, self.marks)
        ]


def medians_table(
    results: Any,
    metric: str,
    *,
    higher_is_better: bool = True,
    percent: bool = True,
    decimals: int = 2,
) -> MediansTable:
    """Medians over the seeds of one metric.

    Parameters
    ----------
    results : DataFrame, or what makes one
        Long table with the columns dataset, method, seed, metric and value.  Methods and
        data sets keep the order in which they appear.
    metric : str
        The metric.
    higher_is_better : bool, default=True
        False for times and errors.
    percent : bool, default=True
        Show shares as percent, as the paper does.
    decimals : int, default=2
        Digits after the point.

    Returns
    -------
    MediansTable
        With `to_text`, `to_csv`, `to_latex` and `to_html`.

    Examples
    --------
    >>> from attop.experiments.tables import medians_table
    >>> results = [
    ...     {"dataset": "MNIST", "method": m, "seed": s, "metric": "TPR@5", "value": v + s / 100}
    ...     for m, v in (("SVM", 0.5), ("TopPush", 0.6)) for s in (1, 2, 3)
    ... ]
    >>> print(medians_table(results, "TPR@5").to_text())
    TPR@5 [%], medians of 3 seeds
    <BLANKLINE>
    method   MNIST
    SVM      52.00!
    TopPush  62.00*
    <BLANKLINE>
    * best  ! worst
    <BLANKLINE>
    """
    chosen = _rows_of(results, metric, "medians_table")
    methods, datasets = list(chosen["method"].unique()), list(chosen["dataset"].unique())
    groups = chosen.groupby(["method", "dataset"])["value"]
    medians = groups.median().unstack("dataset").reindex(index=methods, columns=datasets)
    counts = groups.count().unstack("dataset").reindex(index=methods, columns=datasets)
    return MediansTable(
        metric,
        [str(name) for name in methods],
        [str(name) for name in datasets],
        medians.to_numpy(dtype=np.float64),
        counts.fillna(0).to_numpy(dtype=np.int64),
        higher_is_better,
        percent,
        decimals,
    )


def score_table(results: Any, metric: str) -> Any:
    """One metric as a table for `attop.statistics`: a column for each method.

    As in the paper every data set and seed is a row, so that ten seeds count as ten data sets.

    Parameters
    ----------
    results : DataFrame, or what makes one
        Long table with the columns dataset, method, seed, metric and value.
    metric : str
        The metric.

    Returns
    -------
    DataFrame
        Indexed by data set and seed; NaN where a method has no result.
    """
    chosen = _rows_of(results, metric, "score_table")
    wide = chosen.pivot(index=["dataset", "seed"], columns="method", values="value")
    return wide.reindex(columns=chosen["method"].unique())


def _rows_of(results: Any, metric: str, owner: str) -> Any:
    """The rows of `metric`, after a look at the columns and for results given twice."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            'Tables of results need pandas. Install it with: pip install "attop[experiments]"'
        ) from error
    frame = pd.DataFrame(results)
    missing = [column for column in RESULT_COLUMNS if column not in frame.columns]
    if missing:
        raise ValueError(
            f"The 'results' parameter of {owner} must have the columns {list(RESULT_COLUMNS)}. "
            f"Got {[str(column) for column in frame.columns]} instead."
        )
    chosen = frame[frame["metric"] == metric]
    if not len(chosen):
        known = [str(name) for name in frame["metric"].unique()]
        raise ValueError(
            f"The 'metric' parameter of {owner} must be one of {known}. Got {metric!r} instead. "
            f"{did_you_mean(metric, known)}".rstrip()
        )
    twice = chosen.duplicated(["dataset", "method", "seed"])
    if twice.any():
        row = chosen[twice].iloc[0]
        raise ValueError(
            f"The 'results' parameter of {owner} must hold each result once. Got several of "
            f"{metric} for data set {row['dataset']!r}, method {row['method']!r} and seed "
            f"{row['seed']!r} instead."
        )
    return chosen


def _precise(value: float) -> str:
    """A number with all its digits, nothing where it is missing."""
    return "" if np.isnan(value) else repr(float(value))


def _latex(text: str) -> str:
    return str(text).translate(_LATEX_ESCAPES)
