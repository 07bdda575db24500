"""The figures of an experiment: critical differences, ROC near the top, convergence."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

from attop.experiments.results import Results
from attop.experiments.store import Record
from attop.experiments.tables import score_table
from attop.plotting import ConvergenceDisplay, CriticalDifferenceDisplay, TopROCDisplay
from attop.plotting._common import import_pyplot
from attop.solvers.solution import History


def draw_diagram(
    rows: list[Record], metric: str, *, test: str = "nemenyi", alpha: float = 0.05
) -> Any:
    """Critical difference diagram of one metric; returns the figure.

    Splits on which some method has no result are left out.
    """
    scores = score_table(rows, metric).dropna()
    display = CriticalDifferenceDisplay.from_scores(
        scores, test=test, alpha=alpha, title=metric, rows=_splits(scores)
    )
    return display.figure_


def _splits(scores: Any) -> str:
    """What the rows of a table of scores are: data sets, and the seeds of each."""
    counts = scores.groupby(level="dataset").size()
    datasets = f"{len(counts)} data set{'s' * (len(counts) != 1)}"
    if counts.nunique() > 1:
        return f"{len(scores)} splits of {datasets}"
    n_seeds = 0 if not len(counts) else int(counts.iloc[0])
    return f"{datasets} x {n_seeds} seed{'s' * (n_seeds != 1)}"


def draw_roc(best: list[Record], dataset: str) -> Any:
    """ROC curves of the best fit of each method, on the first seed of a data set."""
    records = _first_seed([record for record in best if record["data"] == dataset])
    figure, ax = import_pyplot().subplots(figsize=(6.4, 4.4), layout="constrained")
    for record in records:
        n_samples, n_positives = record["sizes"]["test"]
        TopROCDisplay(
            fpr=np.array(record["roc"]["fpr"]),
            tpr=np.array(record["roc"]["tpr"]),
            n_negatives=n_samples - n_positives,
            name=record["label"],
        ).plot(ax=ax)
    ax.set_title(f"{dataset}, test set, seed {records[0]['seed']}")
    return figure


def draw_convergence(best: list[Record], dataset: str) -> Any:
    """Primal and dual objective of the best fit of each method; None if none has a history."""
    panels = {
        record["label"]: {record["solver"]["name"]: _history(record["history"])}
        for record in _first_seed([record for record in best if record["data"] == dataset])
        if record.get("history") is not None
    }
    if not panels:
        return None
    # Two beside each other are legible on a phone, too.
    n_columns = min(2, len(panels))
    n_rows = -(-len(panels) // n_columns)
    figure, axes = import_pyplot().subplots(
        n_rows,
        n_columns,
        figsize=(1.0 + 3.1 * n_columns, 0.6 + 2.7 * n_rows),
        layout="constrained",
        squeeze=False,
    )
    figure.get_layout_engine().set(hspace=0.06)
    for ax in axes.ravel()[len(panels) :]:
        ax.remove()
    ConvergenceDisplay.from_histories(panels, axes=axes.ravel()[: len(panels)])
    for ax in axes[:, 0]:
        ax.set_ylabel("objective")
    return figure


def to_svg(figure: Any, prefix: str) -> str:
    """A figure as the text of an ``<svg>`` that can stand within a page.

    Names within the drawing get a prefix, since those of several drawings would be mixed up.
    """
    plt = import_pyplot()
    for artist in figure.findobj():
        artist.set_gid(None)  # several curves have the same one, but an id must be the only one
    buffer = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "attop", "svg.fonttype": "none"}):
        # Without a background, so that the page may be light or dark.
        unnamed = {"Date": None, "Creator": None}
        figure.savefig(buffer, format="svg", metadata=unnamed, transparent=True)
    plt.close(figure)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = re.sub(r'href="#', f'href="#{prefix}', text)
    return re.sub(r"url\(#", f"url(#{prefix}", text)


def datasets_of(results: Results) -> list[str]:
    """Data sets with results, in the order of the experiment."""
    return list(dict.fromkeys(record["data"] for record in results.best()))


def _first_seed(records: list[Record]) -> list[Record]:
    seed = min((record["seed"] for record in records), default=None)
    return [record for record in records if record["seed"] == seed]


def _history(content: Record) -> History:
    def numbers(name: str) -> Any:
        return np.array([np.nan if value is None else value for value in content[name]], float)

    return History(
        numbers("time"),
        numbers("step").astype(np.int64),
        numbers("primal"),
        numbers("dual"),
        numbers("gap"),
    )
