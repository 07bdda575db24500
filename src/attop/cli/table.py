"""``attop table``: medians over the seeds."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from attop.cli._files import ForceOption, check_output
from attop.cli._results import open_results

ExperimentOption = Annotated[
    str | None, typer.Option(help="Name of the experiment; by default the one run last.")
]


class Format(StrEnum):
    """Formats of a table."""

    text = "text"
    csv = "csv"
    latex = "latex"
    html = "html"


def table(
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("attop-results"),
    experiment: ExperimentOption = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="Metric; may be given several times; all by default.")
    ] = None,
    format: Annotated[Format, typer.Option(help="Format of the table.")] = Format.text,
    output: Annotated[Path | None, typer.Option(help="File to write, instead of the screen.")] = (
        None
    ),
    force: ForceOption = False,
) -> None:
    """Table medians over the seeds, each method at its best grid point on the validation set."""
    if output is not None:
        check_output(output, "--output", force=force)

    from attop.experiments.tables import medians_table

    results = open_results(store, experiment)
    rows = results.table()
    if not rows:
        raise typer.BadParameter(f"{results.name} has no results yet.", param_hint="--experiment")
    try:
        tables = [medians_table(rows, name) for name in metric or results.metrics]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--metric") from None
    text = "\n".join(getattr(one, f"to_{format.value}")() for one in tables)
    if output is None:
        typer.echo(text)
    else:
        output.write_text(text, encoding="utf-8")
