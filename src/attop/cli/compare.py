"""``attop compare``: which method is better over many data sets, with tests and diagrams."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from attop.cli._results import open_results
from attop.cli.table import ExperimentOption


def compare(
    reference: Annotated[
        str, typer.Argument(help="The method that the others are compared with.")
    ] = "TopForestClassifier",
    store: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of results; may be given several times. By default attop-results, or "
            "none where there are tables."
        ),
    ] = None,
    table: Annotated[
        list[Path] | None,
        typer.Option(
            help="CSV file of results, as --keep writes them; may be given several times. Results "
            "of the folders are added, and take the place of its own."
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="CSV file to write all results to; may be one of the tables."),
    ] = None,
    experiment: ExperimentOption = None,
    output: Annotated[
        Path, typer.Option(help="Folder for the page and its diagrams.", file_okay=False)
    ] = Path("attop-comparison"),
    prefix: Annotated[
        str, typer.Option(help="What stands before the names of figures in the page.")
    ] = "",
) -> None:
    """Write mean ranks over the data sets, tests and diagrams, as ``ranks.inc`` and SVG files.

    The seeds of a data set are averaged before: they are no data sets of their own.
    """
    from attop.experiments.figures import to_svg
    from attop.experiments.ranking import draw_rankings, ranking_page, rankings

    results = _results(store or [], table or [], experiment)
    try:
        found = rankings(results, reference)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="REFERENCE") from None
    if not found:
        raise typer.BadParameter(
            "There are no two data sets on which every method has a result yet.",
            param_hint="--experiment",
        )
    if keep is not None:
        results.write(keep)
    output.mkdir(parents=True, exist_ok=True)
    (output / "ranks.inc").write_text(ranking_page(results, found, prefix), encoding="utf-8")
    for name, figure in draw_rankings(found).items():
        (output / name).write_text(to_svg(figure, name.removesuffix(".svg")), encoding="utf-8")
    Console().print(f"Comparison: {output / 'ranks.inc'}", markup=False, soft_wrap=True)


def _results(stores: list[Path], tables: list[Path], experiment: str | None) -> Any:
    """All that was named, as one; what is in a folder is newer than what was kept."""
    from attop.experiments.kept import kept_of_store, kept_of_table, merged

    if not stores and not tables:
        stores = [Path("attop-results")]
    try:
        kept = [kept_of_table(path) for path in tables]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--table") from None
    return merged([*kept, *(kept_of_store(open_results(path, experiment)) for path in stores)])
