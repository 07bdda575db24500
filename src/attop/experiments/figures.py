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
    display = CriticalDifferenceDisplay.from_scores(scores, test=test, alpha=alpha, title=metric)
    return display.figure_


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
    records = [
        record
        for record in _first_seed([record for record in best if record["data"] == dataset])
        if record.get("history") is not None
    ]
    if not records:
        return None
    panels = {
        record["label"]: {record["solver"]["name"]: _history(record["history"])}
        for record in records[:4]  # more would not be legible
    }
    return ConvergenceDisplay.from_histories(panels).figure_


def to_svg(figure: Any, prefix: str) -> str:
    """A figure as the text of an ``<svg>`` that can stand within a page.

    Names within the drawing get a prefix, since those of several drawings would be mixed up.
    """
    plt = import_pyplot()
    for artist in figure.findobj():
        artist.set_gid(None)  # several curves have the same one, but an id must be the only one
    buffer = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "attop", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
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
