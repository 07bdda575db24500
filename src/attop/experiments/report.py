"""One HTML page with the results of an experiment, complete in itself."""

from __future__ import annotations

import html
from collections.abc import Iterable
from importlib import resources
from typing import Any

from attop import __version__
from attop.experiments.figures import (
    datasets_of,
    draw_convergence,
    draw_diagram,
    draw_roc,
    to_svg,
)
from attop.experiments.results import Results
from attop.experiments.store import Record
from attop.experiments.tables import medians_table

_FILES = resources.files("attop.experiments")


def report_page(results: Results) -> str:
    """The page: nothing in it refers to anything outside."""
    css = (_FILES / "page.css").read_text(encoding="utf-8")
    script = (_FILES / "page.js").read_text(encoding="utf-8")
    sections = {
        "Tables": _tables(results),
        "Critical differences": _diagrams(results),
        "ROC near the top": _rocs(results),
        "Convergence": _convergence(results),
        "Failures": _failures(results),
        "All fits": _fits(results),
        "Specification": f"<pre>{html.escape(results.text)}</pre>",
    }
    links = "".join(f'<a href="#{_anchor(name)}">{name}</a>' for name in sections)
    body = "".join(
        f'<section id="{_anchor(name)}"><h2>{name}</h2>{content}</section>\n'
        for name, content in sections.items()
    )
    title = f"{html.escape(results.name)}: results"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{css}</style>\n</head>\n<body>\n"
        f'<h1>{title}</h1>\n<p class="note">{_summary(results)}</p>\n<nav>{links}</nav>\n'
        f"{body}<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _summary(results: Results) -> str:
    seconds = sum(record["seconds"] for record in results.records)
    n_missing = results.n_planned - len(results.records)
    parts = [f"{len(results.records)} fits", f"{seconds:.1f} s of fitting"]
    if n_missing:
        parts.append(f"<strong>{n_missing} fits are not done yet</strong>")
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
    return note + "".join(medians_table(rows, name).to_html() for name in shown)


def _diagrams(results: Results) -> str:
    rows = results.table()
    figures = []
    for number, metric in enumerate(results.metrics):
        try:
            figure = draw_diagram(rows, metric)
        except ValueError as error:  # too few methods or splits for a test
            figures.append(f"<p>No diagram of {html.escape(metric)}: {html.escape(str(error))}</p>")
        else:
            figures.append(_figure(figure, f"cd{number}-", f"Critical differences, {metric}"))
    return "".join(figures)


def _rocs(results: Results) -> str:
    best = results.best()
    return "".join(
        _figure(draw_roc(best, name), f"roc{number}-", f"ROC near the top, {name}")
        for number, name in enumerate(datasets_of(results))
    )


def _convergence(results: Results) -> str:
    best = results.best()
    figures = []
    for number, name in enumerate(datasets_of(results)):
        figure = draw_convergence(best, name)
        if figure is not None:
            figures.append(f"<h3>{html.escape(name)}</h3>")
            figures.append(_figure(figure, f"conv{number}-", f"Convergence, {name}"))
    return "".join(figures) or "<p>No fit has a history.</p>"


def _figure(figure: Any, prefix: str, title: str) -> str:
    svg = to_svg(figure, prefix)
    label = html.escape(title, quote=True)
    opening = f'<svg role="img" aria-label="{label}"'
    return f"<figure>{svg.replace('<svg', opening, 1)}</figure>\n"


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
    head = "".join(f'<th scope="col">{html.escape(word)}</th>' for word in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="scroll"><table class="fits" id="{name}"><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _gap(record: Record) -> str:
    if record["error"]:
        return ""
    return "no certificate" if record["gap"] is None else f"{record['gap']:.1e}"
