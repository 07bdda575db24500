"""``attop report``: one page with everything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from attop.cli._files import ForceOption, check_output, written_whole
from attop.cli._results import open_results
from attop.cli.table import ExperimentOption

#: The command's own file, which it renews.
_DEFAULT = Path("attop-report.html")


def report(
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("attop-results"),
    experiment: ExperimentOption = None,
    output: Annotated[Path, typer.Option(help="File of the page.")] = _DEFAULT,
    force: ForceOption = False,
) -> None:
    """Write one HTML page with tables, diagrams, curves and failures, to be opened from disk."""
    check_output(output, "--output", force=force or output == _DEFAULT)

    from attop.experiments.report import report_page

    page = report_page(open_results(store, experiment))
    with written_whole(output) as temporary:
        temporary.write_text(page, encoding="utf-8")
    Console().print(f"Report: {output}", markup=False, soft_wrap=True)
