"""``attop report``: one page with everything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from attop.cli.table import ExperimentOption


def report(
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("attop-results"),
    experiment: ExperimentOption = None,
    output: Annotated[Path, typer.Option(help="File of the page.", dir_okay=False)] = Path(
        "attop-report.html"
    ),
) -> None:
    """Write one HTML page with tables, diagrams, curves and failures, to be opened from disk."""
    from attop.experiments.report import report_page
    from attop.experiments.results import Results
    from attop.experiments.store import Store

    page = report_page(Results(Store(store), experiment))
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page, encoding="utf-8")
    Console().print(f"Report: {output}", markup=False, soft_wrap=True)
