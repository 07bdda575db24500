"""One HTML page with the results of an experiment, complete in itself."""

from __future__ import annotations

import html
from collections.abc import Iterable

from attop import __version__
from attop.experiments.figures import (
    datasets_of,
    draw_convergence,
    draw_diagram,
    draw_roc,
)
from attop.experiments.page import html_figure, html_page, html_table
from attop.experiments.results import Results
from attop.experiments.store import Record
from attop.experiments.tables import medians_table


def report_page(results: Results) -> str:
    """The page: nothing in it refers to anything outside."""
    sections = {
        "Tables": _tables(results),
        "Critical differences": _diagrams(results),
        "ROC near the top": _rocs(results),
        "Convergence": _convergence(results),
        "Failures": _failures(results),
        "All fits": _fits(results),
        "Specification": f"<pre>{html.escape(results.text)}</pre>",
    }
    return html_page(f"{results.name}: results", _summary(results), sections)


def _summary(results: Results) -> str:
    seconds = sum(record["seconds"] for record in results.records)
    n_missing = results.n_planned - len(results.records)
    n_datasets = len({record["data"] for record in results.records})
    n_seeds = len({record["seed"] for record in results.records})
    parts = [
        f"{n_datasets} data set{'s' * (n_datasets != 1)} x {n_seeds} seed{'s' * (n_seeds != 1)}",
        f"{len(results.records)} fits",
        f"{seconds:.1f} s of fitting",
    ]
    if n_missing:
        parts.append(f"<strong>{n_missing} fits are not done yet</strong>")
    if results.damaged:
        names = ", ".join(html.escape(path.name) for path in results.damaged)
        parts.append(f"<strong>damaged: {names}</strong>")
    parts.append(f"{len(results.failures)} failed")
    parts.append(f"{len(results.uncertified)} without the certificate asked for")
    return f"attop {__version__}: " + ", ".join(parts) + "."


def _tables(results: Results) -> str:
    rows = results.table()
    if not rows:
        return "<p>There are no results yet.</p>"
    note = (
        '<p class="note">Test set. Each method stands at the grid point that was best on the '
        "validation set by the metric the method is made for. A click on a heading sorts.</p>"
    )
    present = {row["metric"] for row in rows}
    shown = [name for name in results.metrics if name in present]
    tables = (medians_table(rows, name).to_html() for name in shown)
    return note + "".join(f'<div class="scroll">{table}</div>\n' for table in tables)


def _diagrams(results: Results) -> str:
    rows = results.table()
    figures = []
    for number, metric in enumerate(results.metrics):
        try:
            figure = draw_diagram(rows, metric)
        except ValueError as error:  # too few methods or splits for a test
            figures.append(f"<p>No diagram of {html.escape(metric)}: {html.escape(str(error))}</p>")
        else:
            figures.append(
                html_figure(figure, f"cd{number}-", f"Critical differences, {metric}", "wide")
            )
    return "".join(figures)


def _rocs(results: Results) -> str:
    best = results.best()
    figures = "".join(
        html_figure(draw_roc(best, name), f"roc{number}-", f"ROC near the top, {name}")
        for number, name in enumerate(datasets_of(results))
    )
    return f'<div class="grid">{figures}</div>'


def _convergence(results: Results) -> str:
    best = results.best()
    figures = []
    for number, name in enumerate(datasets_of(results)):
        figure = draw_convergence(best, name)
        if figure is not None:
            drawn = html_figure(figure, f"conv{number}-", f"Convergence, {name}")
            figures.append(f"<div><h3>{html.escape(name)}</h3>{drawn}</div>")
    return (
        f'<div class="grid">{"".join(figures)}</div>' if figures else "<p>No fit has a history.</p>"
    )


def _failures(results: Results) -> str:
    if not results.failures and not results.uncertified:
        return "<p>No fit failed, and all that can be are certified optimal.</p>"
    rows = [
        [*_place(record), record["message"] or record["status"], _gap(record)]
        for record in (*results.failures, *results.uncertified)
    ]
    return _table("failures-table", ("what happened", "gap"), rows, "Fits to look at")


def _fits(results: Results) -> str:
    metrics = results.metrics
    chosen = {(record["key"], record["label"]) for record in results.best()}
    rows = [
        [
            *_place(record),
            "yes" if (record["key"], record["label"]) in chosen else "",
            record["status"].lower(),
            _gap(record),
            f"{record['seconds']:.3f}",
            *(_share(record["test"].get(metric)) for metric in metrics),
        ]
        for record in results.records
    ]
    field = (
        '<p><input type="search" data-filters="fits-table" aria-label="Filter the fits" '
        'placeholder="Filter: words that a row must have"> <span id="fits-table-shown"></span></p>'
    )
    heads = ("chosen", "status", "gap", "seconds", *metrics)
    return field + _table("fits-table", heads, rows, "Test metrics of every fit")


def _place(record: Record) -> list[str]:
    parameters = ", ".join(
        f"{name}={value:g}" if isinstance(value, int | float) else f"{name}={value}"
        for name, value in record["parameters"].items()
    )
    return [record["data"], str(record["seed"]), record["label"], parameters]


def _table(name: str, heads: Iterable[str], rows: list[list[str]], caption: str) -> str:
    heads = ("data set", "seed", "method", "parameters", *heads)
    return html_table(heads, rows, caption, "fits", name)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _gap(record: Record) -> str:
    if record["error"]:
        return ""
    return "no certificate" if record["gap"] is None else f"{record['gap']:.1e}"
